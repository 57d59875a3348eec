//! A message that is running: the end of its log in memory, and who waits for more.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::Batch;

/// Bytes of the log that stay in memory; older entries are read from the store.
const WINDOW: usize = 16 << 10;

/// What readers follow.
#[derive(Debug)]
pub struct Live {
    /// The message.
    pub id: String,
    /// Asks the run to stop.
    pub cancel: CancellationToken,
    window: Mutex<Window>,
    committed: watch::Sender<Progress>,
    readers: watch::Sender<Readers>,
}

/// How far a log is committed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Number of the last entry that readers may see.
    pub last: u64,
    /// Whether it is the last one of all.
    pub ended: bool,
}

/// Who reads a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Readers {
    /// How many there are.
    now: usize,
    /// How many have gone.
    gone: u64,
}

#[derive(Debug, Default)]
struct Window {
    batches: VecDeque<Arc<Batch>>,
    bytes: usize,
}

/// A reader of a running message, counted as long as it lives.
#[derive(Debug)]
pub struct Reading {
    live: Arc<Live>,
    progress: watch::Receiver<Progress>,
}

impl Live {
    /// A message whose log is empty.
    #[must_use]
    pub fn new(id: String) -> Arc<Live> {
        Arc::new(Live {
            id,
            cancel: CancellationToken::new(),
            window: Mutex::default(),
            committed: watch::Sender::new(Progress::default()),
            readers: watch::Sender::new(Readers::default()),
        })
    }

    /// A batch has been committed: readers may see it.
    pub(super) fn publish(&self, batch: Batch) {
        let last = batch.last();
        {
            let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
            window.bytes += batch.body().len();
            window.batches.push_back(Arc::new(batch));
            while window.bytes > WINDOW && window.batches.len() > 1 {
                let dropped = window.batches.pop_front().map_or(0, |batch| batch.body().len());
                window.bytes -= dropped;
            }
        }
        self.committed.send_modify(|progress| progress.last = last);
    }

    /// Nothing follows any more.
    pub(super) fn end(&self) {
        self.committed.send_modify(|progress| progress.ended = true);
    }

    /// How far the log is committed.
    #[must_use]
    pub fn progress(&self) -> Progress {
        *self.committed.borrow()
    }

    /// Batches with entries after `after`, if memory still has all of them.
    #[must_use]
    pub fn since(&self, after: u64) -> Option<Vec<Arc<Batch>>> {
        let window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        let oldest = window.batches.front()?.first();
        (after >= oldest.saturating_sub(1))
            .then(|| window.batches.iter().filter(|batch| batch.last() > after).cloned().collect())
    }

    /// Number of readers.
    #[must_use]
    pub fn readers(&self) -> usize {
        self.readers.borrow().now
    }

    /// A new reader.
    pub(super) fn read(self: &Arc<Live>) -> Reading {
        self.readers.send_modify(|readers| readers.now += 1);
        Reading { live: self.clone(), progress: self.committed.subscribe() }
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
    /// Waits until there is something after `after`, or nothing will come.
    pub async fn more(&mut self, after: u64) -> Progress {
        let waited = self.progress.wait_for(|progress| progress.last > after || progress.ended).await;
        let waited = waited.map(|progress| *progress);
        waited.unwrap_or_else(|_| Progress { ended: true, ..*self.progress.borrow() })
    }

    /// The message.
    #[must_use]
    pub fn live(&self) -> &Arc<Live> {
        &self.live
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.live.readers.send_modify(|readers| {
            readers.now -= 1;
            readers.gone += 1;
        });
    }
}
