//! A message that is running: the end of its log in memory, and who waits for more.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Notify, watch};
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
    readers: AtomicUsize,
    /// Told when the last reader has gone.
    pub(crate) deserted: Notify,
}

/// How far a log is committed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Number of the last entry that readers may see.
    pub last: u64,
    /// Whether it is the last one of all.
    pub ended: bool,
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
            readers: AtomicUsize::new(0),
            deserted: Notify::new(),
        })
    }

    /// Batches have been committed: readers may see them.
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
    pub fn end(&self) {
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
        (after + 1 >= oldest)
            .then(|| window.batches.iter().filter(|batch| batch.last() > after).cloned().collect())
    }

    /// Number of readers.
    #[must_use]
    pub fn readers(&self) -> usize {
        self.readers.load(Ordering::Acquire)
    }

    /// A new reader.
    #[must_use]
    pub fn read(self: &Arc<Live>) -> Reading {
        self.readers.fetch_add(1, Ordering::AcqRel);
        Reading { live: self.clone(), progress: self.committed.subscribe() }
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
        if self.live.readers.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.live.deserted.notify_one();
        }
    }
}
