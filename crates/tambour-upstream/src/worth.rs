//! Worth of a reply, given how it ended.

use tambour::InputEnd;
use tambour::event::{ReplyAppraisal, ReplyWorth};

/// Returns the worth of a reply that ended with `end`. Whether the model is re-asked, and which of its replies is
/// used, depends on it.
#[must_use]
pub fn reply_worth(appraisal: &ReplyAppraisal, end: &InputEnd) -> ReplyWorth {
    let worth = appraisal.worth();
    match end {
        InputEnd::Failed(_) => ReplyWorth::Useless,
        // A truncated reply is worth no more than a broken one.
        _ if end.is_truncated() => worth.min(ReplyWorth::Text),
        _ => worth,
    }
}
