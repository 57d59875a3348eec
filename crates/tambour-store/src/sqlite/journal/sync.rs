//! Syncing with `durable`: nothing becomes visible to readers before it is on disk. One thread syncs for all
//! runs.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::Segment;
use crate::fail;
use crate::tail::{LogPosition, LogTail};

/// Handle of the thread that syncs. Dropping it ends the thread after its queued work.
pub(in crate::sqlite) struct JournalSyncer {
    shared: Arc<SyncState>,
}

/// State shared by the handle and the thread.
#[derive(Default)]
struct SyncState {
    queue: Mutex<SyncQueue>,
    work_ready: Condvar,
}

/// Work for the next sync.
#[derive(Default)]
struct SyncQueue {
    /// Segments to sync.
    segments: Vec<Arc<Segment>>,
    /// Logs, with the positions up to which readers may see them after the sync.
    tails: Vec<(Arc<LogTail>, LogPosition)>,
    /// Notified after the sync; dropped if it fails.
    waiters: Vec<oneshot::Sender<()>>,
    /// Set when the handle is dropped.
    is_closed: bool,
    /// Set when the thread has ended: nothing is synced any more.
    is_over: bool,
}

impl JournalSyncer {
    /// Starts the thread, which cancels `dead` if a sync fails.
    pub(super) fn start(dead: CancellationToken) -> io::Result<JournalSyncer> {
        let shared = Arc::new(SyncState::default());
        let thread_state = shared.clone();
        std::thread::Builder::new().name("journal".into()).spawn(move || {
            // The rest of this closure must run even after a panic: otherwise all waiters would hang.
            if catch_unwind(AssertUnwindSafe(|| thread_state.run(&dead))).is_err() {
                tracing::error!("the thread that writes the journal to the disk panicked");
                dead.cancel();
            }
            // Dropping the queue notifies waiters; later ones see `is_over`.
            let mut queue = thread_state.queue.lock().unwrap_or_else(PoisonError::into_inner);
            *queue = SyncQueue { is_over: true, ..SyncQueue::default() };
            drop(queue);
            fail::point("sync.over");
        })?;
        Ok(JournalSyncer { shared })
    }

    /// Queues entries of a log, written to `segment`: readers may see them up to `end` after the sync.
    pub(in crate::sqlite) fn queue_entries(
        &self,
        segment: &Arc<Segment>,
        tail: &Arc<LogTail>,
        end: LogPosition,
    ) {
        self.shared.enqueue(segment, |queue| queue.tails.push((tail.clone(), end)));
    }

    /// Queues a waiter for data written to `segment`. The receiver fails if the data is never synced.
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
    /// Adds work that needs `segment` synced. Once the thread has ended, `add` is dropped with its waiter.
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

    /// Runs the thread until the handle is dropped and the queue is empty, or a sync fails.
    fn run(&self, dead: &CancellationToken) {
        loop {
            let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
            let is_idle = |queue: &mut SyncQueue| queue.segments.is_empty() && !queue.is_closed;
            let wait = self.work_ready.wait_while(queue, is_idle);
            let mut queue = wait.unwrap_or_else(PoisonError::into_inner);
            if queue.segments.is_empty() {
                return;
            }
            let is_closed = queue.is_closed;
            let SyncQueue { segments, tails, waiters, .. } = std::mem::take(&mut *queue);
            queue.is_closed = is_closed;
            drop(queue);
            fail::point("sync.before");
            let sync_result = segments.iter().try_for_each(|segment| {
                // Read before the sync, which may miss later bytes.
                let length = segment.length();
                segment.file.sync_data()?;
                segment.synced.store(length, Ordering::Release);
                io::Result::Ok(())
            });
            if let Err(error) = sync_result {
                // After a failed sync it is unknown what is on the disk: trying again would prove nothing.
                tracing::error!(%error, "the journal cannot be written to the disk");
                dead.cancel();
                return;
            }
            fail::point("sync.after");
            tails.iter().for_each(|(tail, end)| tail.publish(*end));
            waiters.into_iter().for_each(|done_sender| {
                let _ = done_sender.send(());
            });
        }
    }
}
