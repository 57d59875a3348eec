//! Memory budget of requests: the memory that a request takes is estimated before it is parsed, and the
//! request waits until that much is free.
//!
//! Large and small requests have separate pools, so that small ones never wait for large ones. One owner may
//! use at most half of a pool.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::StatusCode;
use tambour::lex::weight::JsonWeight;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::base::owner_map::OwnerMap;
use crate::base::problem::Problem;

/// Bytes per semaphore permit.
const PERMIT_BYTES: usize = 1 << 10;
/// Longest wait of a request for memory.
const MAX_WAIT: Duration = Duration::from_secs(20);
/// Seconds after which a refused request may be repeated.
const RETRY_SECONDS: u64 = 5;
/// Bytes of memory that the parsed values of a body may take, however small the body is.
const BASE_BYTES: usize = 4 << 20;
/// Further bytes of memory allowed per byte of the body: enough for many short fields.
const BYTES_PER_BODY_BYTE: usize = 24;
/// Maximum number of copies of a request's values that exist at once.
const MAX_COPIES: usize = 4;
/// Number of copies that a running message keeps of each value that is not a string; strings are kept once.
const KEPT_COPIES: usize = 3;
/// Pools for requests being processed: the most memory that a request of the pool may take, and the size of
/// the pool, both in bytes.
const WORK_POOLS: [(usize, usize); 3] = [(128 << 10, 64 << 20), (4 << 20, 96 << 20), (usize::MAX, 192 << 20)];
/// Size of the pool for incoming bodies.
const BODY_POOL_BYTES: usize = 128 << 20;
/// Size of the pool for the requests that running messages keep.
const RUN_POOL_BYTES: usize = 256 << 20;

/// Memory pools of the server.
pub(crate) struct MemoryBudget {
    /// Pools of `WORK_POOLS`, for requests being processed.
    work: [MemoryPool; 3],
    /// Pool for incoming bodies, until they are parsed.
    bodies: MemoryPool,
    /// Pool for what running messages keep of their requests.
    runs: MemoryPool,
}

/// Memory pool shared by all owners.
struct MemoryPool {
    /// Permits of the whole pool, each for `PERMIT_BYTES`.
    total: Arc<Semaphore>,
    /// Maximum number of permits of one owner.
    max_owner_permits: usize,
    /// Permits of each owner; a reservation takes as many from here as from `total`.
    shares: OwnerMap<Semaphore>,
}

/// Reservation in a pool, released on drop.
#[derive(Debug)]
pub(crate) struct MemoryPermit {
    _total_permit: OwnedSemaphorePermit,
    _owner_permit: OwnedSemaphorePermit,
    /// Keeps the owner's share alive, so that no second one is created while this permit is held.
    _share: Arc<Semaphore>,
}

/// Reservation of a request while it is processed. Clones share the reservation: the first clone that
/// releases it does so for all.
#[derive(Clone, Debug, Default)]
pub(crate) struct MemoryHold {
    permits: Arc<Mutex<Vec<MemoryPermit>>>,
    /// Bytes that a message keeps of the request while it runs.
    kept_bytes: usize,
}

impl MemoryHold {
    /// Creates the reservation of a request of this weight, from the permits reserved for it.
    pub(crate) fn new(weight: &JsonWeight, reserved: impl IntoIterator<Item = MemoryPermit>) -> MemoryHold {
        let bytes_of_other_values = weight.bytes - weight.text;
        let kept_bytes = weight.text + KEPT_COPIES * bytes_of_other_values;
        MemoryHold { permits: Arc::new(Mutex::new(reserved.into_iter().collect())), kept_bytes }
    }

    /// Returns the bytes that a message keeps of the request while it runs.
    pub(crate) fn kept_bytes(&self) -> usize {
        self.kept_bytes
    }

    /// Releases the reservation, once the values are dropped or counted elsewhere.
    pub(crate) fn release(&self) {
        self.permits.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// Returns the bytes of memory that a request takes while it is processed, if its values take `value_bytes`.
pub(crate) fn work_bytes(value_bytes: usize) -> usize {
    MAX_COPIES.saturating_mul(value_bytes)
}

/// Returns the maximum memory, in bytes, that the values of a body of `body_bytes` may take. It is capped at
/// 4 times the largest body allowed (`max_body_bytes`), or at 16 MiB if that is more.
pub(crate) fn max_value_bytes(body_bytes: usize, max_body_bytes: usize) -> usize {
    let max_of_any_body = max_body_bytes.saturating_mul(4).max(16 << 20);
    (BASE_BYTES + body_bytes.saturating_mul(BYTES_PER_BODY_BYTE)).min(max_of_any_body)
}

impl Default for MemoryBudget {
    fn default() -> MemoryBudget {
        MemoryBudget {
            work: WORK_POOLS.map(|(_, size)| MemoryPool::new(size)),
            bodies: MemoryPool::new(BODY_POOL_BYTES),
            runs: MemoryPool::new(RUN_POOL_BYTES),
        }
    }
}

impl MemoryBudget {
    /// Reserves memory for a request that takes `bytes` while it is processed.
    ///
    /// # Errors
    /// No memory became free in time.
    pub(crate) async fn reserve_work(&self, owner: &str, bytes: usize) -> Result<MemoryPermit, Problem> {
        let pool = WORK_POOLS
            .iter()
            .zip(&self.work)
            .find(|((max_request_bytes, _), _)| bytes <= *max_request_bytes)
            .map(|(_, pool)| pool);
        pool.ok_or_else(Problem::internal)?.acquire(owner, bytes).await
    }

    /// Reserves memory for an incoming body.
    ///
    /// # Errors
    /// No memory became free in time.
    pub(crate) async fn reserve_body(&self, owner: &str, bytes: usize) -> Result<MemoryPermit, Problem> {
        self.bodies.acquire(owner, bytes).await
    }

    /// Reserves memory for what a running message keeps of its request.
    ///
    /// # Errors
    /// The owner's share or the pool is used up.
    pub(crate) fn reserve_run(&self, owner: &str, bytes: usize) -> Result<MemoryPermit, Problem> {
        self.runs.try_acquire(owner, bytes).ok_or_else(|| {
            let detail = format!(
                "the running messages of this owner already hold {} MiB of request data, the most allowed; \
                 wait until one has ended",
                (RUN_POOL_BYTES / 2) >> 20
            );
            Problem::too_many("too_many_running", detail)
        })
    }
}

impl MemoryPool {
    fn new(bytes: usize) -> MemoryPool {
        let permits = bytes / PERMIT_BYTES;
        MemoryPool {
            total: Arc::new(Semaphore::new(permits)),
            max_owner_permits: permits / 2,
            shares: OwnerMap::default(),
        }
    }

    /// Returns the number of permits for `bytes`, at most one owner's share: a request that needs more takes
    /// the whole share, so that its owner has no other request at the same time.
    fn permits_for(&self, bytes: usize) -> u32 {
        u32::try_from(bytes.div_ceil(PERMIT_BYTES).clamp(1, self.max_owner_permits)).unwrap_or(u32::MAX)
    }

    async fn acquire(&self, owner: &str, bytes: usize) -> Result<MemoryPermit, Problem> {
        let (permits, share) = (self.permits_for(bytes), self.share(owner));
        // The semaphores are never closed.
        let reservation = async {
            let owner_permit = share.clone().acquire_many_owned(permits).await.ok()?;
            let total_permit = self.total.clone().acquire_many_owned(permits).await.ok()?;
            Some(MemoryPermit {
                _total_permit: total_permit,
                _owner_permit: owner_permit,
                _share: share.clone(),
            })
        };
        timeout(MAX_WAIT, reservation).await.ok().flatten().ok_or_else(|| {
            let detail = format!(
                "other requests are using the memory that this one needs ({bytes} bytes); send fewer large \
                 ones at a time, and retry this one later"
            );
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "overloaded", detail).retry_after(RETRY_SECONDS)
        })
    }

    fn try_acquire(&self, owner: &str, bytes: usize) -> Option<MemoryPermit> {
        let (permits, share) = (self.permits_for(bytes), self.share(owner));
        let owner_permit = share.clone().try_acquire_many_owned(permits).ok()?;
        let total_permit = self.total.clone().try_acquire_many_owned(permits).ok()?;
        Some(MemoryPermit { _total_permit: total_permit, _owner_permit: owner_permit, _share: share })
    }

    fn share(&self, owner: &str) -> Arc<Semaphore> {
        self.shares.get(owner, || Semaphore::new(self.max_owner_permits))
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn an_owner_has_half_and_small_requests_wait_for_no_large_ones() {
        let memory = MemoryBudget::default();
        let large = memory.reserve_work("a", 80 << 20).now_or_never().unwrap().unwrap();
        assert!(memory.reserve_work("a", 80 << 20).now_or_never().is_none());
        assert!(memory.reserve_work("a", 3 << 20).now_or_never().is_some());
        assert!(memory.reserve_work("a", 1).now_or_never().is_some());
        let other = memory.reserve_work("b", 80 << 20).now_or_never().unwrap().unwrap();
        assert!(memory.reserve_work("c", 80 << 20).now_or_never().is_none());
        drop(large);
        let hold = MemoryHold::new(&JsonWeight::default(), [other]);
        assert!(memory.reserve_work("c", usize::MAX - 1).now_or_never().is_some());
        hold.release();
        assert!(memory.reserve_work("b", 80 << 20).now_or_never().is_some());
    }

    #[tokio::test]
    async fn runs_that_keep_too_much_are_refused() {
        let memory = MemoryBudget::default();
        let first = memory.reserve_run("a", 120 << 20).unwrap();
        assert_eq!(memory.reserve_run("a", 9 << 20).unwrap_err().code(), "too_many_running");
        assert!(memory.reserve_run("b", 9 << 20).is_ok());
        drop(first);
        assert!(memory.reserve_run("a", 9 << 20).is_ok());
    }
}
