//! A message that is running, as the server sees it: who reads it, how far its log is, and the word to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::store::Batch;

/// A message that is running.
#[derive(Debug)]
pub(crate) struct Live {
    /// The message.
    pub(crate) id: String,
    /// Asks the run to stop.
    pub(crate) cancel: CancellationToken,
    /// Number of the last entry that the run has handed over.
    last: AtomicU64,
    /// That one was the end.
    ends: AtomicBool,
    /// The run is over, and all of its log can be read.
    over: CancellationToken,
    readers: watch::Sender<Readers>,
}

/// Who reads a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Readers {
    /// How many there are.
    now: usize,
    /// How many have gone.
    gone: u64,
}

/// A reader of a running message, counted as long as it lives.
#[derive(Debug)]
pub(crate) struct Reading(Arc<Live>);

impl Live {
    /// A message whose log is empty.
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

    /// A batch is handed to the log next: what readers see of it, they see after this.
    pub(crate) fn appending(&self, batch: &Batch) {
        self.last.store(batch.last(), Ordering::Release);
        if batch.ends() {
            self.ends.store(true, Ordering::Release);
        }
    }

    /// A number that is not above that of any entry which readers can have seen.
    pub(crate) fn last(&self) -> u64 {
        self.last.load(Ordering::Acquire)
    }

    /// Whether the log has its end: the run waits for nothing any more.
    pub(crate) fn has_ended(&self) -> bool {
        self.ends.load(Ordering::Acquire)
    }

    /// The run is over.
    pub(crate) fn end(&self) {
        self.ends.store(true, Ordering::Release);
        self.over.cancel();
    }

    /// Waits until the run is over.
    pub(crate) async fn ended(&self) {
        self.over.cancelled().await;
    }

    /// Waits until nobody reads it.
    pub(crate) async fn unread(&self) {
        // The sender lives as long as this.
        let _ = self.readers.subscribe().wait_for(|readers| readers.now == 0).await;
    }

    /// A new reader.
    pub(crate) fn read(self: &Arc<Live>) -> Reading {
        self.readers.send_modify(|readers| readers.now += 1);
        Reading(self.clone())
    }

    /// Waits until the last reader has gone and none has come for `grace`. A message nobody has begun to read waits for ever.
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
    /// The message.
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
