//! Repeated dialogue inputs, identified by `request_id` in the body or `Idempotency-Key`: a turn is not taken
//! twice.

use axum::http::HeaderMap;
use serde_json::Value;

use super::idempotency::{MOST, key, reused, since};
use super::keys::Caller;
use super::problem::Problem;
use crate::app::App;
use crate::store::Repeat;

/// Response to an earlier request.
pub(super) struct Repeated {
    /// Absent if the server stopped after taking the request.
    pub(super) answer: Option<Value>,
    /// Turn that took it, if known.
    pub(super) turn: Option<String>,
}

/// Returns the idempotency key of a request: the header, or the id in the body.
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

/// Returns the response to the same request within a day; another request with the same key is refused.
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
