//! Requests that are repeated under an id of their own, in the body or as `Idempotency-Key`: a turn of a dialogue is not taken twice.

use axum::Json;
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::idempotency::{MOST, claim, key, reused, since};
use super::keys::Caller;
use super::problem::Problem;
use crate::app::App;
use crate::ids;
use crate::store::Repeat;

/// The answer to a request that came before.
pub(super) struct Repeated {
    pub(super) status: StatusCode,
    /// None of a request that was taken when the server stopped.
    pub(super) answer: Option<Value>,
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
    let status = StatusCode::from_u16(found.status).unwrap_or_default();
    if found.status == Repeat::TAKEN {
        return Ok(Some(Repeated { status, answer: None }));
    }
    let answer = serde_json::from_str(&found.answer).map_err(|_| Problem::internal())?;
    Ok(Some(Repeated { status, answer: Some(answer) }))
}

impl Repeated {
    /// Keeps the answer. Where that fails, the same request is carried out again.
    pub(super) async fn keep(&self, app: &App, caller: &Caller, repeat: &str, request: String) {
        let answer = json!(self.answer).to_string();
        let kept = Repeat { request, status: self.status.as_u16(), answer };
        let of = (caller.owner.as_str(), repeat);
        if let Err(error) = app.store.keep_repeat(of, &kept, (&ids::now(), &since())).await {
            tracing::error!(%error, "the answer to a request is not kept");
        }
    }
}

/// Carries a request out once: with a word, the same request within a day has the same answer. What was refused may be tried
/// again.
pub(super) async fn once(
    app: &App,
    caller: &Caller,
    headers: &HeaderMap,
    request_id: Option<&str>,
    (place, body): (&str, &Bytes),
    status: StatusCode,
    work: impl AsyncFnOnce() -> Result<Value, Problem>,
) -> Result<Response, Problem> {
    let Some(repeat) = word(headers, request_id)? else {
        return Ok((status, Json(work().await?)).into_response());
    };
    let _claim = claim(app, caller, &repeat)?;
    let request = format!("{place} {}", String::from_utf8_lossy(body));
    let found = match repeated(app, caller, &repeat, &request).await? {
        Some(found) => found,
        None => {
            let made = Repeated { status, answer: Some(work().await?) };
            made.keep(app, caller, &repeat, request).await;
            made
        }
    };
    Ok((found.status, Json(found.answer)).into_response())
}
