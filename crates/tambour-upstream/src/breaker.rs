//! Circuit breaker: an upstream that fails repeatedly is avoided for a while if another one can be asked.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Consecutive failures that open the breaker.
const MAX_FAILURES: u32 = 5;
/// Time that the breaker stays open; then one call probes the upstream.
const OPEN_TIME: Duration = Duration::from_secs(30);

/// Circuit breaker of an upstream. It is closed while the upstream is asked as usual, open while it is
/// avoided.
#[derive(Debug, Default)]
pub struct CircuitBreaker(Mutex<BreakerState>);

#[derive(Debug, Default)]
struct BreakerState {
    /// Consecutive failures.
    failures: u32,
    /// End of the open time. Set while the breaker is open; only a successful call clears it.
    open_until: Option<Instant>,
}

impl CircuitBreaker {
    /// Records a successful call.
    pub fn record_success(&self) {
        *self.lock_state() = BreakerState::default();
    }

    /// Records a failed call.
    pub fn record_failure(&self, now: Instant) {
        let mut state = self.lock_state();
        state.failures = state.failures.saturating_add(1);
        if state.failures >= MAX_FAILURES {
            state.open_until = Some(now + OPEN_TIME);
        }
    }

    /// Returns `true` if the upstream may be asked as usual.
    pub fn is_closed(&self) -> bool {
        self.lock_state().open_until.is_none()
    }

    /// Returns `true` if the open time is over: the caller must then probe the upstream with a call. For
    /// other callers, the open time starts again.
    pub fn try_probe(&self, now: Instant) -> bool {
        let mut state = self.lock_state();
        let may_probe = state.open_until.is_some_and(|open_until| now >= open_until);
        if may_probe {
            state.open_until = Some(now + OPEN_TIME);
        }
        may_probe
    }

    fn lock_state(&self) -> std::sync::MutexGuard<'_, BreakerState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_breaker_opens_allows_probes_and_closes() {
        let (breaker, start) = (CircuitBreaker::default(), Instant::now());
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        for second in 0..4 {
            breaker.record_failure(at(second));
            assert!(breaker.is_closed() && !breaker.try_probe(at(1000)));
        }
        // One success resets the count of failures.
        breaker.record_success();
        (0..4).for_each(|second| breaker.record_failure(at(second)));
        assert!(breaker.is_closed());
        breaker.record_failure(at(10));
        assert!(!breaker.is_closed() && !breaker.try_probe(at(39)));
        // One probe at a time; a failed one restarts the open time.
        assert!(breaker.try_probe(at(40)) && !breaker.try_probe(at(40)));
        breaker.record_failure(at(50));
        assert!(!breaker.try_probe(at(79)) && breaker.try_probe(at(80)));
        // A probe without a result allows another one later.
        assert!(!breaker.try_probe(at(109)) && breaker.try_probe(at(110)));
        breaker.record_success();
        assert!(breaker.is_closed() && !breaker.try_probe(at(1000)));
    }
}
