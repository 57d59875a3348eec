//! Durations as numbers.

use std::time::Duration;

/// Returns a duration in whole milliseconds, as a `u64` for JSON, log lines and counters.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
