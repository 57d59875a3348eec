//! In-memory handle of a running message: its readers, the position of its log, and its cancellation.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::store::Batch;

/// Handle of a running message or turn.
#[derive(Debug)]
pub(crate) struct Live {
    /// Id of the message.
    pub(crate) id: String,
    /// Cancels the run.
    pub(crate) cancel: CancellationToken,
    /// Number of the last entry that the run has appended.
    last: AtomicU64,
    /// Set when that entry is the last of the log.
    ends: AtomicBool,
    /// Cancelled when the run is over and its whole log is readable.
    over: CancellationToken,
    readers: watch::Sender<Readers>,
}

/// Counts of the readers of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Readers {
    /// Readers now.
    now: usize,
    /// Readers that have left so far.
    gone: u64,
}

/// Registration of a reader; dropping it ends the reading.
#[derive(Debug)]
pub(crate) struct Reading(Arc<Live>);

impl Live {
    /// Creates the handle of a message with an empty log.
    pub(crate) fn new(id: String) -> Arc<Live> {
        Arc::new(Live {
            id,
            cancel: CancellationToken::new(),
            last: AtomicU64::new(0),
            ends: AtomicBool::new(false),
            over: CancellationToken::new(),
            readers: watch::Sender::default(),
        })
    }

    /// Notes a batch that is about to be appended. Must precede the append, so that readers never see entries
    /// beyond `last`.
    pub(crate) fn appending(&self, batch: &Batch) {
        self.last.store(batch.last(), Ordering::Release);
        if batch.ends() {
            self.ends.store(true, Ordering::Release);
        }
    }

    /// Returns a number that is at least that of any entry a reader can have seen.
    pub(crate) fn last(&self) -> u64 {
        self.last.load(Ordering::Acquire)
    }

    /// Returns `true` once the log has its end, so that the run waits for nothing any more.
    pub(crate) fn has_ended(&self) -> bool {
        self.ends.load(Ordering::Acquire)
    }

    /// Marks the run as over.
    pub(crate) fn end(&self) {
        self.ends.store(true, Ordering::Release);
        self.over.cancel();
    }

    /// Waits until the run is over.
    pub(crate) async fn ended(&self) {
        self.over.cancelled().await;
    }

    /// Waits until the message has no reader.
    pub(crate) async fn unread(&self) {
        // The sender lives as long as `self`.
        let _ = self.readers.subscribe().wait_for(|readers| readers.now == 0).await;
    }

    /// Registers a reader.
    pub(crate) fn read(self: &Arc<Live>) -> Reading {
        self.readers.send_modify(|readers| readers.now += 1);
        Reading(self.clone())
    }

    /// Waits until the last reader has left and none has come for `grace`. Never returns for a message that
    /// had no reader yet.
    pub(crate) async fn deserted(&self, grace: Duration) {
        let mut readers = self.readers.subscribe();
        let mut gone = 0;
        loop {
            let left = readers.wait_for(|readers| readers.now == 0 && readers.gone > gone).await;
            gone = left.map_or(gone, |readers| readers.gone);
            let came = readers.wait_for(|readers| readers.now > 0 || readers.gone > gone);
            if tokio::time::timeout(grace, came).await.is_err() {
                return;
            }
        }
    }
}

impl Reading {
    /// Returns the handle of the message.
    pub(crate) fn live(&self) -> &Arc<Live> {
        &self.0
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.0.readers.send_modify(|readers| {
            readers.now -= 1;
            readers.gone += 1;
        });
    }
}
