//! Memory budget of requests: each is weighed before it is parsed, and waits until there is room.
//!
//!
//! Large and small requests have separate pools, so that small ones never wait for large ones. One owner may
//! use half of a pool at most.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::StatusCode;
use tambour::lex::weight::Weight;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::by_owner::ByOwner;
use crate::http::problem::Problem;

/// Bytes per semaphore permit.
const UNIT: usize = 1 << 10;
/// Longest wait of a request for memory.
const PATIENCE: Duration = Duration::from_secs(20);
/// Seconds after which a refused request may be repeated.
const AGAIN: u64 = 5;
/// Bytes of memory that the values of any body may take.
const FIRST: usize = 4 << 20;
/// Further bytes of memory allowed per byte of the body: enough for short fields.
const EACH: usize = 24;
/// Most copies of a request's values that exist at once.
const COPIES: usize = 4;
/// Copies of the non-text part that a running message keeps.
const KEPT: usize = 3;
/// Pools for requests being processed: the largest request of each, and its size in bytes.
const WORK: [(usize, usize); 3] = [(128 << 10, 64 << 20), (4 << 20, 96 << 20), (usize::MAX, 192 << 20)];
/// Size of the pool for incoming bodies.
const BODIES: usize = 128 << 20;
/// Size of the pool for the requests that running messages keep.
const RUNS: usize = 256 << 20;

/// Memory pools of the server.
pub(crate) struct Memory {
    work: [Room; 3],
    bodies: Room,
    runs: Room,
}

/// Memory pool shared by all owners.
struct Room {
    all: Arc<Semaphore>,
    /// Most units of one owner.
    each: usize,
    shares: ByOwner<Semaphore>,
}

/// Reservation in a pool, released on drop.
#[derive(Debug)]
pub(crate) struct Taken {
    _all: OwnedSemaphorePermit,
    _own: OwnedSemaphorePermit,
    /// Keeps the owner's share alive, so that it is not created anew meanwhile.
    _share: Arc<Semaphore>,
}

/// Reservation of a request while it is processed; any holder may release it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hold {
    taken: Arc<Mutex<Vec<Taken>>>,
    kept: usize,
}

impl Hold {
    /// Creates the reservation of a request of this weight.
    pub(crate) fn new(weight: &Weight, taken: impl IntoIterator<Item = Taken>) -> Hold {
        let kept = weight.text + KEPT * (weight.bytes - weight.text);
        Hold { taken: Arc::new(Mutex::new(taken.into_iter().collect())), kept }
    }

    /// Returns the bytes that a message keeps of the request while it runs.
    pub(crate) fn kept(&self) -> usize {
        self.kept
    }

    /// Releases the reservation: the values are dropped, or counted elsewhere.
    pub(crate) fn release(&self) {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// Returns the bytes that a request of this weight takes while it is processed.
pub(crate) fn worked(weight: usize) -> usize {
    COPIES.saturating_mul(weight)
}

/// Returns the most bytes of memory that the values of a body of `bytes` may take.
pub(crate) fn most(bytes: usize, max_request: usize) -> usize {
    (FIRST + bytes.saturating_mul(EACH)).min(max_request.saturating_mul(4).max(16 << 20))
}

impl Default for Memory {
    fn default() -> Memory {
        Memory {
            work: WORK.map(|(_, size)| Room::new(size)),
            bodies: Room::new(BODIES),
            runs: Room::new(RUNS),
        }
    }
}

impl Memory {
    /// Reserves memory for a request that takes `bytes` while it is processed.
    ///
    /// # Errors
    /// No memory became free in time.
    pub(crate) async fn work(&self, owner: &str, bytes: usize) -> Result<Taken, Problem> {
        let room = WORK.iter().zip(&self.work).find(|((most, _), _)| bytes <= *most).map(|(_, room)| room);
        room.ok_or_else(Problem::internal)?.wait(owner, bytes).await
    }

    /// Reserves memory for an incoming body.
    ///
    /// # Errors
    /// No memory became free in time.
    pub(crate) async fn body(&self, owner: &str, bytes: usize) -> Result<Taken, Problem> {
        self.bodies.wait(owner, bytes).await
    }

    /// Reserves memory for the part that a running message keeps.
    ///
    /// # Errors
    /// The owner's share or the pool is used up.
    pub(crate) fn run(&self, owner: &str, bytes: usize) -> Result<Taken, Problem> {
        self.runs.take(owner, bytes).ok_or_else(|| {
            let detail = format!(
                "the messages of this key that are running keep as much of their requests as they may ({} MiB); wait until one has \
                 ended",
                (RUNS / 2) >> 20
            );
            Problem::too_many("too_many_running", detail)
        })
    }
}

impl Room {
    fn new(bytes: usize) -> Room {
        let units = bytes / UNIT;
        Room { all: Arc::new(Semaphore::new(units)), each: units / 2, shares: ByOwner::default() }
    }

    /// Converts bytes to units, capped at one owner's share, so that larger requests run alone.
    fn units(&self, bytes: usize) -> u32 {
        u32::try_from(bytes.div_ceil(UNIT).clamp(1, self.each)).unwrap_or(u32::MAX)
    }

    async fn wait(&self, owner: &str, bytes: usize) -> Result<Taken, Problem> {
        let (units, share) = (self.units(bytes), self.share(owner));
        let taken = async {
            let own = share.clone().acquire_many_owned(units).await.ok()?;
            let all = self.all.clone().acquire_many_owned(units).await.ok()?;
            Some(Taken { _all: all, _own: own, _share: share.clone() })
        };
        // The semaphores are never closed.
        timeout(PATIENCE, taken).await.ok().flatten().ok_or_else(|| {
            let detail = format!(
                "other requests take the memory that this one needs, {bytes} bytes; send fewer large ones at a time, and this one again \
                 later"
            );
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "overloaded", detail).retry_after(AGAIN)
        })
    }

    fn take(&self, owner: &str, bytes: usize) -> Option<Taken> {
        let (units, share) = (self.units(bytes), self.share(owner));
        let own = share.clone().try_acquire_many_owned(units).ok()?;
        let all = self.all.clone().try_acquire_many_owned(units).ok()?;
        Some(Taken { _all: all, _own: own, _share: share })
    }

    fn share(&self, owner: &str) -> Arc<Semaphore> {
        self.shares.get(owner, || Semaphore::new(self.each))
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn an_owner_has_half_and_small_requests_wait_for_no_large_ones() {
        let memory = Memory::default();
        let large = memory.work("a", 80 << 20).now_or_never().unwrap().unwrap();
        assert!(memory.work("a", 80 << 20).now_or_never().is_none());
        assert!(memory.work("a", 3 << 20).now_or_never().is_some());
        assert!(memory.work("a", 1).now_or_never().is_some());
        let other = memory.work("b", 80 << 20).now_or_never().unwrap().unwrap();
        assert!(memory.work("c", 80 << 20).now_or_never().is_none());
        drop(large);
        let hold = Hold::new(&Weight::default(), [other]);
        assert!(memory.work("c", usize::MAX - 1).now_or_never().is_some());
        hold.release();
        assert!(memory.work("b", 80 << 20).now_or_never().is_some());
    }

    #[tokio::test]
    async fn runs_that_keep_too_much_are_refused() {
        let memory = Memory::default();
        let first = memory.run("a", 120 << 20).unwrap();
        assert_eq!(memory.run("a", 9 << 20).unwrap_err().code(), "too_many_running");
        assert!(memory.run("b", 9 << 20).is_ok());
        drop(first);
        assert!(memory.run("a", 9 << 20).is_ok());
    }
}
