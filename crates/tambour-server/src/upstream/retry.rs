//! Asking again before anything has come: when, and after how long.

use std::time::Duration;

use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderMap, StatusCode};

use super::Timeouts;

/// The longest wait that is worth it.
const LONGEST: Duration = Duration::from_secs(20);

/// The longest wait that is worth it where somebody else can be asked.
pub(super) const SHORT: Duration = Duration::from_secs(1);

/// Whether a refusal may be different next time.
pub(super) fn worth(status: StatusCode) -> bool {
    status.is_server_error() || matches!(status.as_u16(), 408 | 409 | 425 | 429)
}

/// How long to wait before attempt `next` (from 2), `None` when it is not worth it.
pub(super) fn wait(next: u32, headers: Option<&HeaderMap>, timeouts: &Timeouts) -> Option<Duration> {
    if next > timeouts.attempts {
        return None;
    }
    // Up to a quarter more, so that those who were refused together do not come back together.
    let spread = 256 + u64::from(uuid::Uuid::new_v4().as_bytes()[0] / 4);
    let own = || (timeouts.retry_ms << (next - 2).min(10)).saturating_mul(spread) / 256;
    let wait = headers.and_then(asked_for).unwrap_or_else(|| Duration::from_millis(own()));
    Some(wait).filter(|wait| *wait <= LONGEST)
}

/// What the service asked for: `retry-after-ms`, or `retry-after` in seconds or as a date.
fn asked_for(headers: &HeaderMap) -> Option<Duration> {
    let text = |name| headers.get(name)?.to_str().ok().map(str::trim);
    let seconds = match text("retry-after-ms") {
        Some(milliseconds) => milliseconds.parse::<f64>().ok()? / 1000.0,
        None => {
            let asked = text(RETRY_AFTER.as_str())?;
            asked.parse().ok().or_else(|| until(asked))?
        }
    };
    Duration::try_from_secs_f64(seconds).ok()
}

/// Seconds until a date; none for one that is past.
fn until(date: &str) -> Option<f64> {
    let then = jiff::fmt::rfc2822::parse(date).ok()?.timestamp();
    Some((then.as_second() - jiff::Timestamp::now().as_second()).max(0) as f64)
}
