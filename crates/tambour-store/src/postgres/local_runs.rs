//! Runs whose lease this server holds: their tails in memory, and the stage of their appends.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use crate::tail::LogTail;

/// Run whose lease this server holds or has held.
pub(super) struct LocalRun {
    pub(super) tail: Arc<LogTail>,
    /// Epoch of the lease.
    pub(super) epoch: i64,
    stage: Mutex<AppendStage>,
    /// Set when the lease was dropped before the end. The run is removed once the database knows of that.
    is_given_up: AtomicBool,
    /// Notified when the stage becomes [`AppendStage::Idle`].
    idle: Notify,
}

/// Stage of the appends of a run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AppendStage {
    /// The database has all entries.
    Idle,
    /// Entries wait for a collector.
    Queued,
    /// A collector writes entries.
    Writing,
    /// A collector writes entries, and more wait.
    WritingWithMore,
}

impl LocalRun {
    pub(super) fn new(message: &str, epoch: i64) -> Arc<LocalRun> {
        let tail = LogTail::new(message.to_owned(), epoch);
        Arc::new(LocalRun {
            tail,
            epoch,
            stage: Mutex::new(AppendStage::Idle),
            is_given_up: AtomicBool::new(false),
            idle: Notify::new(),
        })
    }

    fn lock_stage(&self) -> MutexGuard<'_, AppendStage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns `true` while the lease may write.
    pub(super) fn is_held(&self) -> bool {
        self.tail.is_held(self.epoch)
    }

    /// Notes that the lease was dropped before the end.
    pub(super) fn mark_given_up(&self) {
        self.is_given_up.store(true, Ordering::Release);
    }

    /// Notes that entries were appended. Returns `true` if the run has to be queued.
    pub(super) fn mark_appended(&self) -> bool {
        let mut stage = self.lock_stage();
        let (next, must_queue) = match *stage {
            AppendStage::Idle => (AppendStage::Queued, true),
            AppendStage::Queued => (AppendStage::Queued, false),
            AppendStage::Writing | AppendStage::WritingWithMore => (AppendStage::WritingWithMore, false),
        };
        *stage = next;
        must_queue
    }

    /// Notes that a collector has taken the entries.
    pub(super) fn mark_taken(&self) {
        *self.lock_stage() = AppendStage::Writing;
    }

    /// Notes that the taken entries are stored or refused. Returns `true` if the run has to be queued again.
    pub(super) fn mark_written(&self) -> bool {
        let mut stage = self.lock_stage();
        let must_queue = *stage == AppendStage::WritingWithMore;
        *stage = if must_queue { AppendStage::Queued } else { AppendStage::Idle };
        drop(stage);
        if !must_queue {
            self.idle.notify_waiters();
        }
        must_queue
    }

    /// Waits until no append is queued or being written.
    pub(super) async fn wait_idle(&self) {
        loop {
            let mut idle = std::pin::pin!(self.idle.notified());
            idle.as_mut().enable();
            if *self.lock_stage() == AppendStage::Idle {
                return;
            }
            idle.await;
        }
    }
}

/// Runs of this server, by the id of the message.
#[derive(Default)]
pub(super) struct LocalRuns {
    /// In the order of ids, so that a simulation takes them in the same order each time.
    runs: Mutex<BTreeMap<String, Arc<LocalRun>>>,
    /// Notified when a run is removed, because it has ended, was given up or was fenced.
    run_ended: Notify,
}

impl LocalRuns {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<LocalRun>>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the run of a message, if this server holds its lease.
    pub(super) fn find(&self, message: &str) -> Option<Arc<LocalRun>> {
        self.lock().get(message).cloned()
    }

    /// Returns the ids of the messages whose lease this server holds.
    pub(super) fn messages(&self) -> Vec<String> {
        self.lock().keys().cloned().collect()
    }

    pub(super) fn insert(&self, run: &Arc<LocalRun>) {
        self.lock().insert(run.tail.message.clone(), run.clone());
    }

    /// Removes a run, unless another lease of the same message has taken its place.
    pub(super) fn remove(&self, run: &Arc<LocalRun>) {
        let mut runs = self.lock();
        if runs.get(&run.tail.message).is_some_and(|present| Arc::ptr_eq(present, run)) {
            runs.remove(&run.tail.message);
        }
        drop(runs);
        self.run_ended.notify_waiters();
    }

    /// Returns the number of runs whose lease this server holds.
    pub(super) fn count(&self) -> usize {
        self.lock().len()
    }

    /// Fences the runs of these messages.
    pub(super) fn fence(&self, messages: &[String]) {
        for run in messages.iter().filter_map(|message| self.find(message)) {
            run.tail.fence();
        }
    }

    /// Fences and removes all runs.
    pub(super) fn fence_all(&self) {
        let runs = std::mem::take(&mut *self.lock());
        for run in runs.values() {
            run.tail.fence();
        }
        self.run_ended.notify_waiters();
    }

    /// Waits until no append is queued or being written.
    pub(super) async fn wait_idle(&self) {
        let runs: Vec<_> = self.lock().values().cloned().collect();
        for run in runs {
            run.wait_idle().await;
        }
    }

    /// Waits until the database knows of all leases that were dropped before their end.
    pub(super) async fn wait_given_up(&self) {
        loop {
            let run_ended = self.run_ended.notified();
            if !self.lock().values().any(|run| run.is_given_up.load(Ordering::Acquire)) {
                return;
            }
            run_ended.await;
        }
    }

    /// Resolves when the next run ends, is given up or is fenced.
    pub(super) fn wait_run_ended(&self) -> Notified<'_> {
        self.run_ended.notified()
    }
}
