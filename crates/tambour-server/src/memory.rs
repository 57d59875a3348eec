//! Memory that requests take: each is weighed before it is read into values, and waits until there is room for it.
//!
//! Rooms are apart by size, so that small requests never wait behind large ones, and of each room one owner has half at most.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::StatusCode;
use tambour::lex::weight::Weight;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::by_owner::ByOwner;
use crate::http::problem::Problem;

/// Bytes that are counted as one.
const UNIT: usize = 1 << 10;
/// Longest wait of a request for room.
const PATIENCE: Duration = Duration::from_secs(20);
/// Seconds after which it may come again.
const AGAIN: u64 = 5;
/// Bytes of memory that the values of any body may take.
const FIRST: usize = 4 << 20;
/// Bytes more for each of its bytes: as many as those of short fields take.
const EACH: usize = 24;
/// Times that the values of a request are there at once, at most.
const COPIES: usize = 4;
/// Times that a running message keeps what is no text of them.
const KEPT: usize = 3;
/// Rooms for what requests become while they are worked at: the largest request of each, and its size.
const WORK: [(usize, usize); 3] = [(128 << 10, 64 << 20), (4 << 20, 96 << 20), (usize::MAX, 192 << 20)];
/// Room for bodies, as they come.
const BODIES: usize = 128 << 20;
/// Room for what running messages keep.
const RUNS: usize = 256 << 20;

/// The rooms.
pub(crate) struct Memory {
    work: [Room; 3],
    bodies: Room,
    runs: Room,
}

/// A part of the memory, which owners share.
struct Room {
    all: Arc<Semaphore>,
    /// Units of one owner.
    each: usize,
    shares: ByOwner<Semaphore>,
}

/// A part of a room, taken as long as this lasts.
#[derive(Debug)]
pub(crate) struct Taken {
    _all: OwnedSemaphorePermit,
    _own: OwnedSemaphorePermit,
    /// Held so that it is not made anew meanwhile.
    _share: Arc<Semaphore>,
}

/// Memory of a request while it is worked at; the one that carries it may give it back.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hold {
    taken: Arc<Mutex<Vec<Taken>>>,
    kept: usize,
}

impl Hold {
    /// A request that weighs so much, and the room that was taken for it.
    pub(crate) fn new(weight: &Weight, taken: impl IntoIterator<Item = Taken>) -> Hold {
        let kept = weight.text + KEPT * (weight.bytes - weight.text);
        Hold { taken: Arc::new(Mutex::new(taken.into_iter().collect())), kept }
    }

    /// Bytes that a message keeps of the request as long as it runs.
    pub(crate) fn kept(&self) -> usize {
        self.kept
    }

    /// Gives back what the request took: its values are gone, or counted elsewhere.
    pub(crate) fn release(&self) {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// Bytes that a request of this weight takes while it is worked at.
pub(crate) fn worked(weight: usize) -> usize {
    COPIES.saturating_mul(weight)
}

/// Bytes of memory that the values of a body of so many bytes may take, where bodies have `max_request`.
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
    /// Room for a request that takes so many bytes while it is worked at.
    ///
    /// # Errors
    /// There is none for a long time.
    pub(crate) async fn work(&self, owner: &str, bytes: usize) -> Result<Taken, Problem> {
        let room = WORK.iter().zip(&self.work).find(|((most, _), _)| bytes <= *most).map(|(_, room)| room);
        room.ok_or_else(Problem::internal)?.wait(owner, bytes).await
    }

    /// Room for a body that is about to come.
    ///
    /// # Errors
    /// There is none for a long time.
    pub(crate) async fn body(&self, owner: &str, bytes: usize) -> Result<Taken, Problem> {
        self.bodies.wait(owner, bytes).await
    }

    /// Room for what a message keeps as long as it runs.
    ///
    /// # Errors
    /// There is none.
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

    /// Units for so many bytes; no more than one owner has, so that what is larger comes alone.
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
        // Nothing closes these.
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
