//! Repeated dialogue inputs, identified by `request_id` in the body or `Idempotency-Key`: a turn is not taken
//! twice.

use axum::http::HeaderMap;
use serde_json::Value;

use super::idempotency::{MAX_KEY_BYTES, read_key, reused_key_problem};
use super::keys::Caller;
use crate::base::problem::Problem;
use crate::http::app::App;
use crate::run::request_repeats::repeat_since;
use crate::store::InputResponse;

/// Response to an earlier request.
pub(super) struct EarlierResponse {
    /// Absent if the server stopped after taking the request.
    pub(super) response: Option<Value>,
    /// Turn that took it, if known.
    pub(super) turn: Option<String>,
}

/// Returns the idempotency key of a request: the header, or the id in the body.
pub(super) fn idempotency_key(
    headers: &HeaderMap,
    request_id: Option<&str>,
) -> Result<Option<String>, Problem> {
    let header = read_key(headers)?;
    match request_id {
        Some(id) if id.is_empty() || id.len() > MAX_KEY_BYTES => {
            let detail = format!("`request_id` must have 1 to {MAX_KEY_BYTES} bytes");
            Err(Problem::invalid("invalid_field", detail).with("field", "request_id"))
        }
        id => Ok(header.or_else(|| id.map(str::to_owned))),
    }
}

/// Returns the response to the same request within a day; another request with the same key is refused.
pub(super) async fn find_response(
    app: &App,
    caller: &Caller,
    repeat: &str,
    request: &str,
) -> Result<Option<EarlierResponse>, Problem> {
    let Some(found) = app.store.input_response(&caller.owner, repeat, &repeat_since()).await? else {
        return Ok(None);
    };
    if found.request != request {
        return Err(reused_key_problem());
    }
    if found.status == InputResponse::NO_RESPONSE {
        return Ok(Some(EarlierResponse { response: None, turn: None }));
    }
    let answer = serde_json::from_str(&found.body).map_err(|_| Problem::internal())?;
    Ok(Some(EarlierResponse { response: Some(answer), turn: found.turn }))
}
