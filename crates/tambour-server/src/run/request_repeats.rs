//! Requests repeated with the same `Idempotency-Key`: the time for which their responses are kept, and the
//! refusal of a repetition while the first is in progress.

use jiff::SignedDuration;

use crate::base::clock;
use crate::base::problem::Problem;

/// Hours for which a repeated request gets the response of the first one.
pub(crate) const RETENTION_HOURS: i64 = 24;

/// Problem: the same request is in progress.
pub(crate) fn in_progress_problem() -> Problem {
    Problem::conflict("request_under_way", "a request with this `Idempotency-Key` is under way")
}

/// Returns the earliest time (RFC 3339) at which a request may have come for a repetition to get its
/// response.
pub(crate) fn repeat_since() -> String {
    let retention = SignedDuration::from_hours(RETENTION_HOURS);
    clock::now().checked_sub(retention).map(|time| format!("{time:.3}")).unwrap_or_default()
}
