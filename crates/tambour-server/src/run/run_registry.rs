//! Registry of running messages and dialogue turns, which clients may read, cancel or wait for.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::base::ids;
use crate::run::engine::RunEngine;
use crate::run::live_run::LiveRun;
use crate::store::RunKind;

/// Running messages and turns of dialogues, by id.
#[derive(Default)]
pub(crate) struct RunRegistry {
    by_id: Mutex<HashMap<String, OwnedRun>>,
}

/// Running message or turn with its owner.
struct OwnedRun {
    owner: String,
    live_run: Arc<LiveRun>,
    kind: RunKind,
    /// Id of the conversation of a message, or of the dialogue of a turn.
    conversation: String,
    /// Set for a turn once the turns before it in its dialogue are over; never for a message.
    is_active: bool,
}

/// Registration of a turn of a dialogue; dropping it removes the turn.
pub(crate) struct RunningTurn {
    engine: Arc<RunEngine>,
    live_run: Arc<LiveRun>,
}

impl RunningTurn {
    /// Registers a turn of an owner's dialogue; `None` if the owner already has the maximum number of runs,
    /// `remote_runs` of them on other servers.
    pub(crate) fn begin(
        engine: &Arc<RunEngine>,
        owner: &str,
        dialogue: &str,
        remote_runs: usize,
    ) -> Option<RunningTurn> {
        let max = engine.loaded_config().config.max_running.saturating_sub(remote_runs);
        let live_run = LiveRun::new(ids::new_id("turn"));
        let was_added = engine.running.insert(owner, dialogue, RunKind::Turn, live_run.clone(), max);
        was_added.then(|| RunningTurn { engine: engine.clone(), live_run })
    }

    /// Returns the handle of the turn, with its readers and its cancellation.
    pub(crate) fn live_run(&self) -> &Arc<LiveRun> {
        &self.live_run
    }

    /// Marks the turn as active: the turns before it in its dialogue are over.
    pub(crate) fn mark_active(&self) {
        let mut by_id = self.engine.running.lock();
        if let Some(turn) = by_id.get_mut(&self.live_run.id) {
            turn.is_active = true;
        }
    }
}

impl Drop for RunningTurn {
    fn drop(&mut self) {
        self.live_run.mark_over();
        self.engine.running.remove(&self.live_run.id);
    }
}

impl RunRegistry {
    /// Adds a message of an owner's conversation; returns `false` if the owner has `max` runs already.
    pub(crate) fn add(&self, owner: &str, conversation: &str, live_run: Arc<LiveRun>, max: usize) -> bool {
        self.insert(owner, conversation, RunKind::Message, live_run, max)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, OwnedRun>> {
        self.by_id.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a run; returns `false` if the owner has `max` runs already.
    fn insert(
        &self,
        owner: &str,
        conversation: &str,
        kind: RunKind,
        live_run: Arc<LiveRun>,
        max: usize,
    ) -> bool {
        let mut by_id = self.lock();
        // The length is checked first, to count the runs of the owner only if there can be enough of them.
        if by_id.len() >= max && by_id.values().filter(|other| other.owner == owner).count() >= max {
            return false;
        }
        let (owner, conversation) = (owner.to_owned(), conversation.to_owned());
        by_id.insert(live_run.id.clone(), OwnedRun { owner, live_run, kind, conversation, is_active: false });
        true
    }

    /// Returns the running message of that id.
    pub(crate) fn get(&self, id: &str) -> Option<Arc<LiveRun>> {
        let by_id = self.lock();
        by_id.get(id).filter(|run| run.kind == RunKind::Message).map(|run| run.live_run.clone())
    }

    /// Returns the running turn of that id.
    pub(crate) fn get_turn(&self, id: &str) -> Option<Arc<LiveRun>> {
        let by_id = self.lock();
        by_id.get(id).filter(|run| run.kind == RunKind::Turn).map(|run| run.live_run.clone())
    }

    /// Returns all running messages.
    pub(crate) fn all_messages(&self) -> Vec<Arc<LiveRun>> {
        self.select(|run| run.kind == RunKind::Message)
    }

    /// Returns the running messages of a conversation, including queued ones and ones about to begin.
    pub(crate) fn conversation_messages(&self, conversation: &str) -> Vec<Arc<LiveRun>> {
        self.select(|run| run.kind == RunKind::Message && run.conversation == conversation)
    }

    /// Returns the active turn of a dialogue, and ended ones not yet removed.
    pub(crate) fn active_turns(&self, dialogue: &str) -> Vec<Arc<LiveRun>> {
        self.select(|run| run.kind == RunKind::Turn && run.conversation == dialogue && run.is_active)
    }

    /// Returns the running turns of a dialogue, including queued ones.
    pub(crate) fn dialogue_turns(&self, dialogue: &str) -> Vec<Arc<LiveRun>> {
        self.select(|run| run.kind == RunKind::Turn && run.conversation == dialogue)
    }

    fn select(&self, predicate: impl Fn(&OwnedRun) -> bool) -> Vec<Arc<LiveRun>> {
        self.lock().values().filter(|run| predicate(run)).map(|run| run.live_run.clone()).collect()
    }

    /// Removes a message or turn that has ended.
    pub(crate) fn remove(&self, id: &str) {
        self.lock().remove(id);
    }

    /// Returns the number of running messages and turns.
    pub(crate) fn count(&self) -> usize {
        self.lock().len()
    }
}
