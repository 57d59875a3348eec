//! With `durable`: nothing is shown before the disk has it. One thread syncs for all who wait.

use std::fs::File;
use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

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
    files: Vec<Arc<File>>,
    tails: Vec<(Arc<Tail>, Position)>,
    waiting: Vec<oneshot::Sender<()>>,
    closed: bool,
}

impl Syncer {
    pub(super) fn start(dead: CancellationToken) -> io::Result<Syncer> {
        let shared = Arc::new(Shared::default());
        let of_thread = shared.clone();
        std::thread::Builder::new().name("journal".into()).spawn(move || of_thread.run(&dead))?;
        Ok(Syncer { shared })
    }

    /// Entries of a message were written to `file`.
    pub(in crate::store::sqlite) fn entries(&self, file: &Arc<File>, tail: &Arc<Tail>, upto: Position) {
        self.shared.add(file, |queue| queue.tails.push((tail.clone(), upto)));
    }

    /// Something was written to `file` that is waited for.
    pub(in crate::store::sqlite) fn wait(&self, file: &Arc<File>) -> oneshot::Receiver<()> {
        let (done, waiting) = oneshot::channel();
        self.shared.add(file, |queue| queue.waiting.push(done));
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
    fn add(&self, file: &Arc<File>, add: impl FnOnce(&mut Queue)) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        if !queue.files.iter().any(|known| Arc::ptr_eq(known, file)) {
            queue.files.push(file.clone());
        }
        add(&mut queue);
        drop(queue);
        self.more.notify_one();
    }

    fn run(&self, dead: &CancellationToken) {
        loop {
            let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
            let idle = |queue: &mut Queue| queue.files.is_empty() && !queue.closed;
            let waited = self.more.wait_while(queue, idle);
            let mut queue = waited.unwrap_or_else(PoisonError::into_inner);
            if queue.files.is_empty() {
                return;
            }
            let closed = queue.closed;
            let Queue { files, tails, waiting, .. } = std::mem::take(&mut *queue);
            queue.closed = closed;
            drop(queue);
            fail::point("sync.before");
            // After a sync that failed nobody knows what is on the disk.
            if let Err(error) = files.iter().try_for_each(|file| file.sync_data()) {
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
