//! Repeated requests: how long they are known, and the refusal of one in progress.

use jiff::{SignedDuration, Timestamp};

use crate::base::problem::Problem;

/// Hours for which a response is returned again.
pub(crate) const RETENTION_HOURS: i64 = 24;

/// Problem: the same request is in progress.
pub(crate) fn in_progress_problem() -> Problem {
    Problem::conflict("request_under_way", "a request with this `Idempotency-Key` is under way")
}

/// Returns the RFC 3339 time before which responses are not returned again.
pub(crate) fn repeat_since() -> String {
    let day = SignedDuration::from_hours(RETENTION_HOURS);
    Timestamp::now().checked_sub(day).map(|time| format!("{time:.3}")).unwrap_or_default()
}
