//! Syncing with `durable`: nothing becomes visible before it is on disk. One thread syncs for all waiters.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::Segment;
use crate::fail;
use crate::sqlite::tail::{LogPosition, LogTail};

/// Handle of the thread that syncs.
pub(in crate::sqlite) struct JournalSyncer {
    shared: Arc<SyncState>,
}

#[derive(Default)]
struct SyncState {
    queue: Mutex<SyncQueue>,
    work_ready: Condvar,
}

/// Work that waits for the disk.
#[derive(Default)]
struct SyncQueue {
    segments: Vec<Arc<Segment>>,
    tails: Vec<(Arc<LogTail>, LogPosition)>,
    waiters: Vec<oneshot::Sender<()>>,
    is_closed: bool,
    /// Set when the thread has ended: nothing is synced any more.
    is_over: bool,
}

impl JournalSyncer {
    pub(super) fn start(dead: CancellationToken) -> io::Result<JournalSyncer> {
        let shared = Arc::new(SyncState::default());
        let thread_state = shared.clone();
        std::thread::Builder::new().name("journal".into()).spawn(move || {
            // Otherwise all waiters would hang.
            if catch_unwind(AssertUnwindSafe(|| thread_state.run(&dead))).is_err() {
                tracing::error!("the thread that writes the journal to the disk panicked");
                dead.cancel();
            }
            // Dropping the queue notifies waiters; later ones see `over`.
            let mut queue = thread_state.queue.lock().unwrap_or_else(PoisonError::into_inner);
            *queue = SyncQueue { is_over: true, ..SyncQueue::default() };
            drop(queue);
            fail::point("sync.over");
        })?;
        Ok(JournalSyncer { shared })
    }

    /// Queues entries of a message, written to `segment`.
    pub(in crate::sqlite) fn queue_entries(
        &self,
        segment: &Arc<Segment>,
        tail: &Arc<LogTail>,
        extent: LogPosition,
    ) {
        self.shared.enqueue(segment, |queue| queue.tails.push((tail.clone(), extent)));
    }

    /// Queues a waiter for data written to `segment`.
    pub(in crate::sqlite) fn queue_waiter(&self, segment: &Arc<Segment>) -> oneshot::Receiver<()> {
        let (done_sender, done_receiver) = oneshot::channel();
        self.shared.enqueue(segment, |queue| queue.waiters.push(done_sender));
        done_receiver
    }
}

impl Drop for JournalSyncer {
    fn drop(&mut self) {
        self.shared.queue.lock().unwrap_or_else(PoisonError::into_inner).is_closed = true;
        self.shared.work_ready.notify_one();
    }
}

impl SyncState {
    fn enqueue(&self, segment: &Arc<Segment>, add: impl FnOnce(&mut SyncQueue)) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        if !queue.segments.iter().any(|queued| Arc::ptr_eq(queued, segment)) {
            queue.segments.push(segment.clone());
        }
        if !queue.is_over {
            add(&mut queue);
        }
        drop(queue);
        self.work_ready.notify_one();
    }

    fn run(&self, dead: &CancellationToken) {
        loop {
            let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
            let idle = |queue: &mut SyncQueue| queue.segments.is_empty() && !queue.is_closed;
            let wait = self.work_ready.wait_while(queue, idle);
            let mut queue = wait.unwrap_or_else(PoisonError::into_inner);
            if queue.segments.is_empty() {
                return;
            }
            let is_closed = queue.is_closed;
            let SyncQueue { segments, tails, waiters, .. } = std::mem::take(&mut *queue);
            queue.is_closed = is_closed;
            drop(queue);
            fail::point("sync.before");
            // After a failed sync the contents of the disk are unknown.
            let sync_result = segments.iter().try_for_each(|segment| {
                let length = segment.length();
                segment.file.sync_data()?;
                segment.synced.store(length, Ordering::Release);
                io::Result::Ok(())
            });
            if let Err(error) = sync_result {
                tracing::error!(%error, "the journal cannot be written to the disk");
                dead.cancel();
                return;
            }
            fail::point("sync.after");
            tails.iter().for_each(|(tail, extent)| tail.publish(*extent));
            waiters.into_iter().for_each(|done_sender| {
                let _ = done_sender.send(());
            });
        }
    }
}
