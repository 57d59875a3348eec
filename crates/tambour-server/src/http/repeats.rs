//! Requests that are repeated under an id of their own, in the body or as `Idempotency-Key`: a turn of a dialogue is not taken twice.

use axum::http::HeaderMap;
use serde_json::Value;

use super::idempotency::{MOST, key, reused, since};
use super::keys::Caller;
use super::problem::Problem;
use crate::app::App;
use crate::store::Repeat;

/// The answer to a request that came before.
pub(super) struct Repeated {
    /// None of a request that was taken when the server stopped.
    pub(super) answer: Option<Value>,
    /// The turn in which it came, if that is known.
    pub(super) turn: Option<String>,
}

/// The word of a request: its `Idempotency-Key`, or the id that stands in it.
pub(super) fn word(headers: &HeaderMap, request_id: Option<&str>) -> Result<Option<String>, Problem> {
    let header = key(headers)?;
    match request_id {
        Some(id) if id.is_empty() || id.len() > MOST => {
            let detail = format!("`request_id` has 1 to {MOST} bytes");
            Err(Problem::invalid("invalid_field", detail).with("field", "request_id"))
        }
        id => Ok(header.or_else(|| id.map(str::to_owned))),
    }
}

/// The answer to the same request within a day; the word of another request is refused.
pub(super) async fn repeated(
    app: &App,
    caller: &Caller,
    repeat: &str,
    request: &str,
) -> Result<Option<Repeated>, Problem> {
    let Some(found) = app.store.repeat(&caller.owner, repeat, &since()).await? else { return Ok(None) };
    if found.request != request {
        return Err(reused());
    }
    if found.status == Repeat::TAKEN {
        return Ok(Some(Repeated { answer: None, turn: None }));
    }
    let answer = serde_json::from_str(&found.answer).map_err(|_| Problem::internal())?;
    Ok(Some(Repeated { answer: Some(answer), turn: found.turn }))
}
