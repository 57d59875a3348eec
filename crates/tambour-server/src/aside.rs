//! Work that takes long and waits for nothing: on threads of its own, a few at a time, so that the workers stay free for streams.
//!
//! Owners take turns: what one asks for waits in that one's own line, of which only the first few stand in the line of all.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::by_owner::ByOwner;
use crate::fail;
use crate::http::problem::Problem;

/// Bytes of a request from which on its work is done here; less is done sooner than handed over.
pub(crate) const LONG: usize = 64 << 10;

/// Work of one owner that waits, at most.
const WAITING: usize = 256;

/// Does work beside the workers.
pub(crate) struct Aside {
    all: Arc<Semaphore>,
    /// Turns of one owner at a time.
    each: usize,
    lines: ByOwner<Line>,
}

/// The line of one owner.
struct Line {
    turns: Arc<Semaphore>,
    /// Places in it, those that have their turn too.
    places: Arc<Semaphore>,
}

/// A turn to work, which lasts as long as this does.
pub(crate) struct WorkTurn {
    _place: OwnedSemaphorePermit,
    _own: OwnedSemaphorePermit,
    _all: OwnedSemaphorePermit,
    _line: Arc<Line>,
}

impl Aside {
    /// As many at a time as half of the processors, since streams want them too; half of these, one at least, for one owner.
    pub(crate) fn new() -> Aside {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Aside::of((processors / 2).max(1))
    }

    fn of(turns: usize) -> Aside {
        Aside { all: Arc::new(Semaphore::new(turns)), each: turns.div_ceil(2), lines: ByOwner::default() }
    }

    /// Does the work when it is its owner's turn. Nobody waits for it any more when the caller has gone; what has not begun then is not
    /// begun, and what has keeps its turn until it is done.
    ///
    /// # Errors
    /// Too much of the same owner waits, or the work panicked.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        owner: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let turn = self.turn(owner).await?;
        let done = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            fail::point("aside");
            work()
        });
        done.await.map_err(|_| Problem::internal())
    }

    /// Waits for a turn of an owner.
    ///
    /// # Errors
    /// Too much of the same owner waits.
    pub(crate) async fn turn(&self, owner: &str) -> Result<WorkTurn, Problem> {
        let line = self.line(owner);
        let place = line.places.clone().try_acquire_owned().map_err(|_| {
            let detail = format!(
                "{WAITING} requests of this key that take long wait already; send fewer at a time, and this one again later"
            );
            Problem::too_many("too_many_running", detail)
        })?;
        // Nothing closes these.
        let own = line.turns.clone().acquire_owned().await.map_err(|_| Problem::internal())?;
        let all = self.all.clone().acquire_owned().await.map_err(|_| Problem::internal())?;
        Ok(WorkTurn { _place: place, _own: own, _all: all, _line: line })
    }

    fn line(&self, owner: &str) -> Arc<Line> {
        self.lines.get(owner, || Line {
            turns: Arc::new(Semaphore::new(self.each)),
            places: Arc::new(Semaphore::new(WAITING + self.each)),
        })
    }
}

/// A flag that is set when this is dropped: work ends by it that nobody waits for any more.
#[derive(Default)]
pub(crate) struct EndFlag(pub(crate) Arc<AtomicBool>);

impl Drop for EndFlag {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Does work that may take long on this thread; the other tasks of a worker go on elsewhere meanwhile.
pub(crate) fn in_place<T>(work: impl FnOnce() -> T) -> T {
    let several = Handle::try_current().is_ok_and(|at| at.runtime_flavor() == RuntimeFlavor::MultiThread);
    if several { tokio::task::block_in_place(work) } else { work() }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn one_owner_does_not_fill_the_line_of_all() {
        let aside = Aside::of(1);
        let first = aside.turn("a").await.ok().unwrap();
        let mut others: Vec<_> = (0..WAITING).map(|_| Box::pin(aside.turn("a"))).collect();
        assert!(others.iter_mut().all(|other| other.now_or_never().is_none()));
        let full = aside.turn("a").now_or_never().unwrap();
        assert_eq!(full.err().unwrap().code(), "too_many_running");
        let mut b = Box::pin(aside.turn("b"));
        assert!((&mut b).now_or_never().is_none());
        drop(first);
        // The next one of the first owner has only now come into the line of all, behind the other owner's.
        assert!(others[0].as_mut().now_or_never().is_none());
        let turn = (&mut b).now_or_never().expect("it is the other owner's turn").ok().unwrap();
        drop(turn);
        assert!(others[0].as_mut().now_or_never().is_some());
    }
}
