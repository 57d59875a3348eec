//! Bounded pool for CPU-bound work on blocking threads, so that the async workers stay free for streams.
//!
//! Owners are served fairly: each has its own queue, of which only the first few entries are in the common
//! queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::base::fail;
use crate::base::owner_map::OwnerMap;
use crate::base::problem::Problem;

/// Size in bytes from which a request's work is done in the pool; smaller work is faster than handing it
/// over.
pub(crate) const OFFLOAD_BYTES: usize = 64 << 10;

/// Most waiting jobs of one owner.
const MAX_QUEUED: usize = 256;

/// Bounded pool for CPU-bound work.
pub(crate) struct CpuPool {
    total_permits: Arc<Semaphore>,
    /// Most running jobs of one owner.
    owner_turns: usize,
    queues: OwnerMap<OwnerQueue>,
}

/// Queue of one owner.
struct OwnerQueue {
    turns: Arc<Semaphore>,
    /// Places in the queue, including those of running jobs.
    places: Arc<Semaphore>,
}

/// Permission to work, released on drop.
pub(crate) struct WorkPermit {
    _place: OwnedSemaphorePermit,
    _own: OwnedSemaphorePermit,
    _all: OwnedSemaphorePermit,
    _line: Arc<OwnerQueue>,
}

impl CpuPool {
    /// Creates a pool with half of the processors, since streams need them too; one owner gets half of the
    /// pool, at least one.
    pub(crate) fn new() -> CpuPool {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        CpuPool::with_turns((processors / 2).max(1))
    }

    fn with_turns(turns: usize) -> CpuPool {
        CpuPool {
            total_permits: Arc::new(Semaphore::new(turns)),
            owner_turns: turns.div_ceil(2),
            queues: OwnerMap::default(),
        }
    }

    /// Runs the work when it is its owner's turn. If the caller is dropped, work that has not begun is not
    /// begun, and work that has keeps its permission until it is done.
    ///
    /// # Errors
    /// The owner's queue is full, or the work panicked.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        owner: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let turn = self.acquire(owner).await?;
        let finished = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            fail::point("aside");
            work()
        });
        finished.await.map_err(|_| Problem::internal())
    }

    /// Waits for a permission of an owner.
    ///
    /// # Errors
    /// The owner's queue is full.
    pub(crate) async fn acquire(&self, owner: &str) -> Result<WorkPermit, Problem> {
        let line = self.owner_queue(owner);
        let place = line.places.clone().try_acquire_owned().map_err(|_| {
            let detail = format!(
                "{MAX_QUEUED} long-running requests of this key are already waiting; send fewer at a time, and retry this one later"
            );
            Problem::too_many("too_many_running", detail)
        })?;
        // The semaphores are never closed.
        let own_turn = line.turns.clone().acquire_owned().await.map_err(|_| Problem::internal())?;
        let all = self.total_permits.clone().acquire_owned().await.map_err(|_| Problem::internal())?;
        Ok(WorkPermit { _place: place, _own: own_turn, _all: all, _line: line })
    }

    fn owner_queue(&self, owner: &str) -> Arc<OwnerQueue> {
        self.queues.get(owner, || OwnerQueue {
            turns: Arc::new(Semaphore::new(self.owner_turns)),
            places: Arc::new(Semaphore::new(MAX_QUEUED + self.owner_turns)),
        })
    }
}

/// Flag that is set on drop, so that work nobody waits for can stop.
#[derive(Default)]
pub(crate) struct DropFlag(pub(crate) Arc<AtomicBool>);

impl Drop for DropFlag {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs work that may take long on this thread; other tasks of the worker move elsewhere meanwhile.
pub(crate) fn run_in_place<T>(work: impl FnOnce() -> T) -> T {
    let is_multi_thread =
        Handle::try_current().is_ok_and(|at| at.runtime_flavor() == RuntimeFlavor::MultiThread);
    if is_multi_thread { tokio::task::block_in_place(work) } else { work() }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn one_owner_does_not_fill_the_line_of_all() {
        let aside = CpuPool::with_turns(1);
        let first = aside.acquire("a").await.ok().unwrap();
        let mut waiting: Vec<_> = (0..MAX_QUEUED).map(|_| Box::pin(aside.acquire("a"))).collect();
        assert!(waiting.iter_mut().all(|other| other.now_or_never().is_none()));
        let full = aside.acquire("a").now_or_never().unwrap();
        assert_eq!(full.err().unwrap().code(), "too_many_running");
        let mut b = Box::pin(aside.acquire("b"));
        assert!((&mut b).now_or_never().is_none());
        drop(first);
        // The first owner's next job has only now entered the common queue, after the other owner's.
        assert!(waiting[0].as_mut().now_or_never().is_none());
        let turn = (&mut b).now_or_never().expect("it is the other owner's turn").ok().unwrap();
        drop(turn);
        assert!(waiting[0].as_mut().now_or_never().is_some());
    }
}
