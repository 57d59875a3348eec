//! Asking again before anything has come: when, and after how long.

use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::{HeaderMap, RETRY_AFTER};

/// Attempts in all.
pub(super) const ATTEMPTS: u32 = 3;
/// The longest wait that is worth it.
const LONGEST: Duration = Duration::from_secs(20);

/// Whether a refusal may be different next time.
pub(super) fn worth(status: StatusCode) -> bool {
    status.is_server_error() || matches!(status.as_u16(), 408 | 409 | 425 | 429)
}

/// How long to wait before attempt `next` (from 2), `None` when it is not worth it.
pub(super) fn wait(next: u32, headers: Option<&HeaderMap>) -> Option<Duration> {
    if next > ATTEMPTS {
        return None;
    }
    let asked = headers.and_then(asked_for);
    let own = Duration::from_millis(250 << (next - 2));
    Some(asked.unwrap_or(own)).filter(|wait| *wait <= LONGEST)
}

/// What the service asked for: `retry-after-ms`, or `retry-after` in seconds.
fn asked_for(headers: &HeaderMap) -> Option<Duration> {
    let number = |name| headers.get(name)?.to_str().ok()?.trim().parse::<f64>().ok();
    let seconds = match headers.get("retry-after-ms") {
        Some(_) => number("retry-after-ms")? / 1000.0,
        None => number(RETRY_AFTER.as_str())?,
    };
    Duration::try_from_secs_f64(seconds).ok()
}
