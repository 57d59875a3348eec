//! A circuit breaker: an upstream that failed again and again is left alone for a while where another one can be asked.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Calls in a row that must fail.
const FAILURES: u32 = 5;
/// How long the upstream is left alone; then one call finds out how it is.
const REST: Duration = Duration::from_secs(30);

/// What is known of the calls of an upstream.
#[derive(Debug, Default)]
pub(crate) struct Breaker(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Calls in a row that failed.
    failures: u32,
    /// Until when it is left alone, once that is so; nothing else ends it but a call that went well.
    open: Option<Instant>,
}

impl Breaker {
    /// A call went well.
    pub(crate) fn succeeded(&self) {
        *self.state() = State::default();
    }

    /// A call failed.
    pub(crate) fn failed(&self, now: Instant) {
        let mut state = self.state();
        state.failures = state.failures.saturating_add(1);
        if state.failures >= FAILURES {
            state.open = Some(now + REST);
        }
    }

    /// Whether it is to be asked like any other.
    pub(crate) fn is_closed(&self) -> bool {
        self.state().open.is_none()
    }

    /// Whether it has rested long enough for one call to find out how it is. Who is told so makes that call; for others the rest
    /// begins anew.
    pub(crate) fn try_again(&self, now: Instant) -> bool {
        let mut state = self.state();
        let rested = state.open.is_some_and(|until| now >= until);
        if rested {
            state.open = Some(now + REST);
        }
        rested
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_opens_rests_tries_and_closes() {
        let (breaker, start) = (Breaker::default(), Instant::now());
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        for second in 0..4 {
            breaker.failed(at(second));
            assert!(breaker.is_closed() && !breaker.try_again(at(1000)));
        }
        // One that goes well is enough to begin anew.
        breaker.succeeded();
        (0..4).for_each(|second| breaker.failed(at(second)));
        assert!(breaker.is_closed());
        breaker.failed(at(10));
        assert!(!breaker.is_closed() && !breaker.try_again(at(39)));
        // One call at a time, and it fails: the rest begins anew.
        assert!(breaker.try_again(at(40)) && !breaker.try_again(at(40)));
        breaker.failed(at(50));
        assert!(!breaker.try_again(at(79)) && breaker.try_again(at(80)));
        // Nothing came of that call; some time later there is another one.
        assert!(!breaker.try_again(at(109)) && breaker.try_again(at(110)));
        breaker.succeeded();
        assert!(breaker.is_closed() && !breaker.try_again(at(1000)));
    }
}
