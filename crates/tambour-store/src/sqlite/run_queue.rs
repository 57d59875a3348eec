//! Order of runs: their numbers, their queue in each conversation, and the conversations that are closed to
//! new runs. Here "conversation" also means a dialogue, whose runs are its turns.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::RequestKey;
use crate::tail::LogTail;

/// Runs and claimed requests of this server.
#[derive(Default)]
pub(super) struct RunQueue {
    order: Mutex<RunOrder>,
    /// Requests that are being processed.
    claims: Mutex<HashSet<RequestKey>>,
}

/// Runs in the order of their numbers.
#[derive(Default)]
pub(super) struct RunOrder {
    /// Last assigned number.
    last_number: i64,
    /// Runs of each conversation with their numbers and logs, oldest first, until they are removed.
    runs: HashMap<String, Vec<(i64, Arc<LogTail>)>>,
    /// Conversations that are being deleted.
    closed_conversations: HashSet<String>,
}

/// Claim of a request, released on drop unless it is kept.
pub(super) struct ClaimGuard<'a> {
    queue: &'a RunQueue,
    /// Claimed request; absent if the claim is kept.
    key: Option<RequestKey>,
}

impl RunQueue {
    /// Creates the queue of a store in which the last run has number `last_number`.
    pub(super) fn with_last_number(last_number: i64) -> RunQueue {
        let order = RunOrder { last_number, ..RunOrder::default() };
        RunQueue { order: Mutex::new(order), ..RunQueue::default() }
    }

    /// Locks the order: no run is added or removed while the guard is held.
    pub(super) fn lock_order(&self) -> MutexGuard<'_, RunOrder> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_claims(&self) -> MutexGuard<'_, HashSet<RequestKey>> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Claims a request; `false` if it is claimed already.
    pub(super) fn claim(&self, request_key: &RequestKey) -> bool {
        self.lock_claims().insert(request_key.clone())
    }

    /// Releases a claimed request.
    pub(super) fn release(&self, request_key: &RequestKey) {
        self.lock_claims().remove(request_key);
    }

    /// Claims a request until the guard is dropped; `None` if it is claimed already.
    pub(super) fn claim_guarded(&self, request_key: RequestKey) -> Option<ClaimGuard<'_>> {
        self.claim(&request_key).then(|| ClaimGuard { queue: self, key: Some(request_key) })
    }

    /// Waits until the runs of a conversation with a number below `number` are over.
    pub(super) async fn wait_earlier_runs(&self, conversation: &str, number: i64) {
        loop {
            let earlier_run = self.lock_order().last_run_before(conversation, number);
            match earlier_run {
                Some(tail) => tail.wait_ended().await,
                None => return,
            }
        }
    }
}

impl RunOrder {
    /// Returns the number of the next run, which [`RunOrder::add`] assigns.
    pub(super) fn next_number(&self) -> i64 {
        self.last_number + 1
    }

    /// Adds a run with the next number.
    pub(super) fn add(&mut self, conversation: &str, tail: &Arc<LogTail>) {
        self.last_number += 1;
        self.runs.entry(conversation.to_owned()).or_default().push((self.last_number, tail.clone()));
    }

    /// Removes a run that is over.
    pub(super) fn remove(&mut self, conversation: &str, number: i64) {
        if let Some(runs) = self.runs.get_mut(conversation) {
            runs.retain(|(other, _)| *other != number);
            if runs.is_empty() {
                self.runs.remove(conversation);
            }
        }
    }

    /// Returns the runs of a conversation that have not ended, oldest first.
    pub(super) fn unfinished_runs(&self, conversation: &str) -> impl Iterator<Item = &(i64, Arc<LogTail>)> {
        let runs = self.runs.get(conversation).into_iter().flatten();
        runs.filter(|(_, tail)| !tail.progress().has_ended)
    }

    /// Returns the log of the last unfinished run before `number`.
    fn last_run_before(&self, conversation: &str, number: i64) -> Option<Arc<LogTail>> {
        self.unfinished_runs(conversation)
            .filter(|(other, _)| *other < number)
            .last()
            .map(|(_, tail)| tail.clone())
    }

    /// Returns `true` if a conversation is closed to new runs.
    pub(super) fn is_closed(&self, conversation: &str) -> bool {
        self.closed_conversations.contains(conversation)
    }

    /// Closes a conversation to new runs.
    pub(super) fn close(&mut self, conversation: &str) {
        self.closed_conversations.insert(conversation.to_owned());
    }

    /// Opens a closed conversation again, after its deletion has succeeded or failed.
    pub(super) fn reopen(&mut self, conversation: &str) {
        self.closed_conversations.remove(conversation);
    }
}

impl ClaimGuard<'_> {
    /// Keeps the claim until it is released explicitly.
    pub(super) fn keep(mut self) {
        self.key = None;
    }
}

impl Drop for ClaimGuard<'_> {
    fn drop(&mut self) {
        if let Some(request_key) = &self.key {
            self.queue.release(request_key);
        }
    }
}
