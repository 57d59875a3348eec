//! In-memory handle of a running message or turn: its readers, the end of its log, and its cancellation.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::store::Batch;

/// Handle of a running message or turn.
#[derive(Debug)]
pub(crate) struct LiveRun {
    /// Id of the message or turn.
    pub(crate) id: String,
    /// Cancels the run when cancelled.
    pub(crate) cancel: CancellationToken,
    /// Number of the last entry that the run has appended, or is about to append.
    last_entry: AtomicU64,
    /// Set when that entry ends the log, or the run is over.
    has_end: AtomicBool,
    /// Cancelled when the run is over and its whole log is readable.
    over_token: CancellationToken,
    readers: watch::Sender<ReaderCounts>,
}

/// Counts of the readers of a message or turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ReaderCounts {
    /// Readers now.
    current: usize,
    /// Readers that have left so far.
    departed: u64,
}

/// Registration of a reader, which counts as reading until the guard is dropped.
#[derive(Debug)]
pub(crate) struct ReaderGuard(Arc<LiveRun>);

impl LiveRun {
    /// Creates the handle of a run with an empty log.
    pub(crate) fn new(id: String) -> Arc<LiveRun> {
        Arc::new(LiveRun {
            id,
            cancel: CancellationToken::new(),
            last_entry: AtomicU64::new(0),
            has_end: AtomicBool::new(false),
            over_token: CancellationToken::new(),
            readers: watch::Sender::default(),
        })
    }

    /// Notes a batch that is about to be appended. Must be called before the append, so that readers never
    /// see entries beyond `last_entry`.
    pub(crate) fn note_append(&self, batch: &Batch) {
        self.last_entry.store(batch.last(), Ordering::Release);
        if batch.has_end() {
            self.has_end.store(true, Ordering::Release);
        }
    }

    /// Returns the number of the last noted entry: no reader can have seen one beyond it.
    pub(crate) fn last_entry(&self) -> u64 {
        self.last_entry.load(Ordering::Acquire)
    }

    /// Returns `true` once the last noted entry ends the log, or the run is over. The run then no longer
    /// waits for anything.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_end.load(Ordering::Acquire)
    }

    /// Marks the run as over: its whole log is readable.
    pub(crate) fn mark_over(&self) {
        self.has_end.store(true, Ordering::Release);
        self.over_token.cancel();
    }

    /// Waits until the run is over.
    pub(crate) async fn wait_over(&self) {
        self.over_token.cancelled().await;
    }

    /// Waits until the run has no reader.
    pub(crate) async fn wait_no_readers(&self) {
        // The sender lives as long as `self`.
        let _ = self.readers.subscribe().wait_for(|readers| readers.current == 0).await;
    }

    /// Registers a reader.
    pub(crate) fn add_reader(self: &Arc<LiveRun>) -> ReaderGuard {
        self.readers.send_modify(|readers| readers.current += 1);
        ReaderGuard(self.clone())
    }

    /// Waits until the last reader has left and none has come for `grace`. Does not return before the run has
    /// had a reader.
    pub(crate) async fn wait_deserted(&self, grace: Duration) {
        let mut readers = self.readers.subscribe();
        let mut departed = 0;
        loop {
            let all_left =
                readers.wait_for(|readers| readers.current == 0 && readers.departed > departed).await;
            departed = all_left.map_or(departed, |readers| readers.departed);
            // A reader that came and left meanwhile starts the grace time again.
            let any_came = readers.wait_for(|readers| readers.current > 0 || readers.departed > departed);
            if tokio::time::timeout(grace, any_came).await.is_err() {
                return;
            }
        }
    }
}

impl ReaderGuard {
    /// Returns the handle of the run.
    pub(crate) fn live_run(&self) -> &Arc<LiveRun> {
        &self.0
    }
}

impl Drop for ReaderGuard {
    fn drop(&mut self) {
        self.0.readers.send_modify(|readers| {
            readers.current -= 1;
            readers.departed += 1;
        });
    }
}
