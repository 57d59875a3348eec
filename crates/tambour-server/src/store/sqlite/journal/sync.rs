//! With `durable`: nothing is shown before the disk has it. One thread syncs for all who wait.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::Segment;
use crate::fail;
use crate::store::sqlite::tail::{Position, Tail};

/// Hands what was written to the thread that syncs.
pub(in crate::store::sqlite) struct Syncer {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    more: Condvar,
}

/// What waits for the disk.
#[derive(Default)]
struct Queue {
    segments: Vec<Arc<Segment>>,
    tails: Vec<(Arc<Tail>, Position)>,
    waiting: Vec<oneshot::Sender<()>>,
    closed: bool,
    /// The thread has ended: nothing is brought to the disk any more.
    over: bool,
}

impl Syncer {
    pub(super) fn start(dead: CancellationToken) -> io::Result<Syncer> {
        let shared = Arc::new(Shared::default());
        let of_thread = shared.clone();
        std::thread::Builder::new().name("journal".into()).spawn(move || {
            // Nobody would be told of anything any more, and all would wait.
            if catch_unwind(AssertUnwindSafe(|| of_thread.run(&dead))).is_err() {
                tracing::error!("the thread that brings the journal to the disk has died");
                dead.cancel();
            }
            // Who waits, or is about to, is told so.
            let mut queue = of_thread.queue.lock().unwrap_or_else(PoisonError::into_inner);
            *queue = Queue { over: true, ..Queue::default() };
            drop(queue);
            fail::point("sync.over");
        })?;
        Ok(Syncer { shared })
    }

    /// Entries of a message were written to `segment`.
    pub(in crate::store::sqlite) fn entries(&self, segment: &Arc<Segment>, tail: &Arc<Tail>, upto: Position) {
        self.shared.add(segment, |queue| queue.tails.push((tail.clone(), upto)));
    }

    /// Something was written to `segment` that is waited for.
    pub(in crate::store::sqlite) fn wait(&self, segment: &Arc<Segment>) -> oneshot::Receiver<()> {
        let (done, waiting) = oneshot::channel();
        self.shared.add(segment, |queue| queue.waiting.push(done));
        waiting
    }
}

impl Drop for Syncer {
    fn drop(&mut self) {
        self.shared.queue.lock().unwrap_or_else(PoisonError::into_inner).closed = true;
        self.shared.more.notify_one();
    }
}

impl Shared {
    fn add(&self, segment: &Arc<Segment>, add: impl FnOnce(&mut Queue)) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        if !queue.segments.iter().any(|known| Arc::ptr_eq(known, segment)) {
            queue.segments.push(segment.clone());
        }
        if !queue.over {
            add(&mut queue);
        }
        drop(queue);
        self.more.notify_one();
    }

    fn run(&self, dead: &CancellationToken) {
        loop {
            let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
            let idle = |queue: &mut Queue| queue.segments.is_empty() && !queue.closed;
            let waited = self.more.wait_while(queue, idle);
            let mut queue = waited.unwrap_or_else(PoisonError::into_inner);
            if queue.segments.is_empty() {
                return;
            }
            let closed = queue.closed;
            let Queue { segments, tails, waiting, .. } = std::mem::take(&mut *queue);
            queue.closed = closed;
            drop(queue);
            fail::point("sync.before");
            // After a sync that failed nobody knows what is on the disk.
            let synced = segments.iter().try_for_each(|segment| {
                let length = segment.length();
                segment.file.sync_data()?;
                segment.synced.store(length, Ordering::Release);
                io::Result::Ok(())
            });
            if let Err(error) = synced {
                tracing::error!(%error, "the journal cannot be brought to the disk");
                dead.cancel();
                return;
            }
            fail::point("sync.after");
            tails.iter().for_each(|(tail, upto)| tail.publish(*upto));
            waiting.into_iter().for_each(|done| {
                let _ = done.send(());
            });
        }
    }
}
