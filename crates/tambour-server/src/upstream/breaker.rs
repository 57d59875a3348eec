//! Circuit breaker: an upstream that fails repeatedly is skipped for a while if another one can be asked.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Consecutive failures that open the breaker.
const FAILURES: u32 = 5;
/// Time that it stays open; then one call probes the upstream.
const REST: Duration = Duration::from_secs(30);

/// Circuit breaker of an upstream.
#[derive(Debug, Default)]
pub(crate) struct Breaker(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Consecutive failures.
    failures: u32,
    /// End of the open time. Set while the breaker is open; only a successful call clears it.
    open: Option<Instant>,
}

impl Breaker {
    /// Records a successful call.
    pub(crate) fn succeeded(&self) {
        *self.state() = State::default();
    }

    /// Records a failed call.
    pub(crate) fn failed(&self, now: Instant) {
        let mut state = self.state();
        state.failures = state.failures.saturating_add(1);
        if state.failures >= FAILURES {
            state.open = Some(now + REST);
        }
    }

    /// Returns `true` if the upstream may be asked as usual.
    pub(crate) fn is_closed(&self) -> bool {
        self.state().open.is_none()
    }

    /// Returns `true` if the open time is over, so that the caller probes the upstream; the open time
    /// restarts for others.
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
        // One success resets it.
        breaker.succeeded();
        (0..4).for_each(|second| breaker.failed(at(second)));
        assert!(breaker.is_closed());
        breaker.failed(at(10));
        assert!(!breaker.is_closed() && !breaker.try_again(at(39)));
        // One probe at a time; a failed one restarts the open time.
        assert!(breaker.try_again(at(40)) && !breaker.try_again(at(40)));
        breaker.failed(at(50));
        assert!(!breaker.try_again(at(79)) && breaker.try_again(at(80)));
        // A probe without a result allows another one later.
        assert!(!breaker.try_again(at(109)) && breaker.try_again(at(110)));
        breaker.succeeded();
        assert!(breaker.is_closed() && !breaker.try_again(at(1000)));
    }
}
