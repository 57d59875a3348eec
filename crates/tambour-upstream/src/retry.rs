//! Retries of a request whose reply has not begun: conditions and pauses.

use std::time::Duration;

use http::header::RETRY_AFTER;
use http::{HeaderMap, StatusCode};

use super::Timeouts;

/// Longest acceptable pause; a service that requests a longer one is not retried.
const MAX_PAUSE: Duration = Duration::from_secs(20);

/// Longest acceptable pause if a fallback can be asked instead.
const MAX_PAUSE_WITH_FALLBACK: Duration = Duration::from_secs(1);

/// Returns `true` if a refusal with this status may succeed later.
pub(super) fn is_retryable(status: StatusCode) -> bool {
    status.is_server_error() || matches!(status.as_u16(), 408 | 409 | 425 | 429)
}

/// Returns the pause before attempt number `attempt` (from 2); `None` if there must be no such attempt.
/// `headers` are those of the refusal, if there was a response. If a fallback can be asked, only a short
/// pause is acceptable.
pub(super) fn retry_pause(
    attempt: u32,
    headers: Option<&HeaderMap>,
    timeouts: &Timeouts,
    has_fallback: bool,
) -> Option<Duration> {
    if attempt > timeouts.attempts {
        return None;
    }
    // Factor in 256ths: up to a quarter is added at random, so that requests refused together are not
    // repeated together.
    let jitter = 256 + u64::from(uuid::Uuid::new_v4().as_bytes()[0] / 4);
    // The pause doubles with each attempt, at most ten times.
    let computed_pause = || (timeouts.retry_ms << (attempt - 2).min(10)).saturating_mul(jitter) / 256;
    let pause = headers.and_then(requested_pause).unwrap_or_else(|| Duration::from_millis(computed_pause()));
    let max_pause = if has_fallback { MAX_PAUSE_WITH_FALLBACK } else { MAX_PAUSE };
    Some(pause).filter(|pause| *pause <= max_pause)
}

/// Returns the pause that the service requests: `retry-after-ms`, or `retry-after` in seconds or as a date.
fn requested_pause(headers: &HeaderMap) -> Option<Duration> {
    let text = |name| headers.get(name)?.to_str().ok().map(str::trim);
    let seconds = match text("retry-after-ms") {
        Some(milliseconds) => milliseconds.parse::<f64>().ok()? / 1000.0,
        None => {
            let header_text = text(RETRY_AFTER.as_str())?;
            header_text.parse().ok().or_else(|| seconds_until(header_text))?
        }
    };
    Duration::try_from_secs_f64(seconds).ok()
}

/// Returns the seconds until an HTTP date; zero if it is past.
fn seconds_until(date: &str) -> Option<f64> {
    let timestamp = jiff::fmt::rfc2822::parse(date).ok()?.timestamp();
    Some((timestamp.as_second() - jiff::Timestamp::now().as_second()).max(0) as f64)
}
