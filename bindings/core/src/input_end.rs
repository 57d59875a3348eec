//! End of a reply by word.

use tambour::InputEnd;
use tambour::error::{Error, Result};
use tambour::event::{Failure, FinishReason};

/// Words for the ends of a reply that finished.
pub const FINISH_REASONS: [&str; 5] = ["stop", "length", "content_filter", "tool_calls", "cancelled"];

/// Returns the end that a word names; `None` is a clean end without a reason, after which the reply counts as
/// truncated. `is_incomplete` is true if part of the reply was lost in transit.
///
/// # Errors
/// The word is not one of [`FINISH_REASONS`].
pub fn parse_end(reason: Option<&str>, is_incomplete: bool) -> Result<InputEnd> {
    let Some(word) = reason else { return Ok(InputEnd::WithoutReason) };
    let reason = match word {
        "stop" => FinishReason::Stop,
        "length" => FinishReason::Length,
        "content_filter" => FinishReason::ContentFilter,
        "tool_calls" => FinishReason::ToolCalls,
        "cancelled" => FinishReason::Cancelled,
        _ => return Err(Error::unknown("finish reason", word, FINISH_REASONS)),
    };
    Ok(if is_incomplete { InputEnd::Incomplete(reason) } else { InputEnd::Finished(reason) })
}

/// Returns the end of a reply that broke off.
#[must_use]
pub fn failed_end(code: String, message: String, is_retryable: bool) -> InputEnd {
    InputEnd::Failed(Failure::new(code, message, is_retryable))
}
