//! Repeated dialogue inputs, identified by `Idempotency-Key` or by `request_id` in the body: a dialogue takes
//! an input once, however often it is sent.

use axum::http::HeaderMap;
use serde_json::Value;

use super::idempotency::{MAX_KEY_BYTES, read_key, reused_key_problem};
use super::keys::Caller;
use crate::base::problem::Problem;
use crate::http::app::App;
use crate::run::request_repeats::repeat_since;
use crate::store::InputResponse;

/// Response to an earlier input with the same key and request.
pub(super) struct EarlierResponse {
    /// Result of the turn; absent if the server stopped before the turn ended.
    pub(super) response: Option<Value>,
    /// Id of the turn of the input, if known.
    pub(super) turn: Option<String>,
}

/// Returns the idempotency key of a request: the header, otherwise `request_id` of the body.
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

/// Returns the response to the same request, if it was sent within a day.
///
/// # Errors
/// The key was used for another request.
pub(super) async fn find_response(
    app: &App,
    caller: &Caller,
    idempotency_key: &str,
    request: &str,
) -> Result<Option<EarlierResponse>, Problem> {
    let Some(stored) = app.store.input_response(&caller.owner, idempotency_key, &repeat_since()).await?
    else {
        return Ok(None);
    };
    if stored.request != request {
        return Err(reused_key_problem());
    }
    if stored.status == InputResponse::NO_RESPONSE {
        return Ok(Some(EarlierResponse { response: None, turn: None }));
    }
    let response = serde_json::from_str(&stored.body).map_err(|_| Problem::internal())?;
    Ok(Some(EarlierResponse { response: Some(response), turn: stored.turn }))
}
