//! Bounded pool for CPU-bound work on blocking threads, so that the async workers stay free for streams.
//!
//! Owners are served fairly: each has its own queue, from which only a few jobs at a time go on to the common
//! queue of all owners.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::base::fail;
use crate::base::owner_map::OwnerMap;
use crate::base::problem::Problem;

/// Largest input of a request, in bytes, that is worked on in the async worker itself: handing over such
/// small work would take longer than doing it.
pub(crate) const OFFLOAD_BYTES: usize = 64 << 10;

/// Maximum number of waiting jobs of one owner; further ones are refused.
const MAX_QUEUED: usize = 256;

/// Bounded pool for CPU-bound work.
pub(crate) struct CpuPool {
    /// A permit for each job that may run at once, of all owners.
    total_permits: Arc<Semaphore>,
    /// Maximum number of jobs of one owner that run or wait in the common queue.
    max_owner_jobs: usize,
    queues: OwnerMap<OwnerQueue>,
}

/// Queue of one owner.
struct OwnerQueue {
    /// Permits for the owner's jobs that run or wait in the common queue.
    permits: Arc<Semaphore>,
    /// Places for all unfinished jobs of the owner, waiting or running.
    places: Arc<Semaphore>,
}

/// Permission to run one job of an owner, released on drop.
pub(crate) struct WorkPermit {
    _place: OwnedSemaphorePermit,
    _owner_permit: OwnedSemaphorePermit,
    _total_permit: OwnedSemaphorePermit,
    /// Keeps the owner's queue alive, so that no second one is created while this permit is held.
    _queue: Arc<OwnerQueue>,
}

impl CpuPool {
    /// Creates a pool for half as many jobs as there are processors, since streams need processors too. One
    /// owner gets half of the pool. Both are at least one job.
    pub(crate) fn new() -> CpuPool {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        CpuPool::with_max_jobs((processors / 2).max(1))
    }

    fn with_max_jobs(max_jobs: usize) -> CpuPool {
        CpuPool {
            total_permits: Arc::new(Semaphore::new(max_jobs)),
            max_owner_jobs: max_jobs.div_ceil(2),
            queues: OwnerMap::default(),
        }
    }

    /// Runs `work` on a blocking thread, after the owner's earlier jobs. If the returned future is dropped,
    /// work that has not begun never begins; begun work runs on and holds its permit until it is done.
    ///
    /// # Errors
    /// The owner's queue is full, or the work panicked.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        owner: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let permit = self.acquire(owner).await?;
        let running_work = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            fail::point("aside");
            work()
        });
        running_work.await.map_err(|_| Problem::internal())
    }

    /// Waits for a permit to run one job of this owner.
    ///
    /// # Errors
    /// The owner's queue is full.
    pub(crate) async fn acquire(&self, owner: &str) -> Result<WorkPermit, Problem> {
        let queue = self.owner_queue(owner);
        let place = queue.places.clone().try_acquire_owned().map_err(|_| {
            let detail = format!(
                "{MAX_QUEUED} long-running requests of this owner are already waiting; send fewer at a time, \
                 and retry this one later"
            );
            Problem::too_many("too_many_running", detail)
        })?;
        // The semaphores are never closed.
        let owner_permit = queue.permits.clone().acquire_owned().await.map_err(|_| Problem::internal())?;
        let total_permit =
            self.total_permits.clone().acquire_owned().await.map_err(|_| Problem::internal())?;
        Ok(WorkPermit {
            _place: place,
            _owner_permit: owner_permit,
            _total_permit: total_permit,
            _queue: queue,
        })
    }

    fn owner_queue(&self, owner: &str) -> Arc<OwnerQueue> {
        self.queues.get(owner, || OwnerQueue {
            permits: Arc::new(Semaphore::new(self.max_owner_jobs)),
            places: Arc::new(Semaphore::new(MAX_QUEUED + self.max_owner_jobs)),
        })
    }
}

/// Holder of a flag that is set when the holder is dropped. Work that holds a copy of the flag can see that
/// nobody waits for its result any more, and stop.
#[derive(Default)]
pub(crate) struct DropFlag(pub(crate) Arc<AtomicBool>);

impl Drop for DropFlag {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs work that may take long on this thread. In a multi-threaded runtime, the other tasks of this worker
/// move to another thread meanwhile.
pub(crate) fn run_in_place<T>(work: impl FnOnce() -> T) -> T {
    let is_multi_thread =
        Handle::try_current().is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread);
    if is_multi_thread { tokio::task::block_in_place(work) } else { work() }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn one_owner_does_not_fill_the_common_queue() {
        let pool = CpuPool::with_max_jobs(1);
        let first = pool.acquire("a").await.ok().unwrap();
        let mut waiting: Vec<_> = (0..MAX_QUEUED).map(|_| Box::pin(pool.acquire("a"))).collect();
        assert!(waiting.iter_mut().all(|acquisition| acquisition.now_or_never().is_none()));
        let refused = pool.acquire("a").now_or_never().unwrap();
        assert_eq!(refused.err().unwrap().code(), "too_many_running");
        let mut other_owner = Box::pin(pool.acquire("b"));
        assert!((&mut other_owner).now_or_never().is_none());
        drop(first);
        // The first owner's next job has only now entered the common queue, after the other owner's.
        assert!(waiting[0].as_mut().now_or_never().is_none());
        let permit = (&mut other_owner).now_or_never().expect("it is the other owner's turn").ok().unwrap();
        drop(permit);
        assert!(waiting[0].as_mut().now_or_never().is_some());
    }
}
