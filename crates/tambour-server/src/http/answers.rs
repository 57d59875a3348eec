//! What clients post while a message waits for them: results of calls they run, and yes or no to calls.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::{Extension, Json};
use serde::Deserialize;
use serde_json::{Value, json};
use tambour::event::ToolError;

use super::keys::Caller;
use super::messages::owned;
use super::problem::{Problem, body};
use crate::app::App;
use crate::tools::{Answer, Decision, Desk, Refusal};

/// What is asked of `POST /api/v1/messages/{id}/tool_results`.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolResults {
    /// One or more; all of them are taken or none.
    results: Vec<PostedResult>,
}

/// What a call gave.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PostedResult {
    /// The call.
    call_id: String,
    /// Whether the tool did what it was asked.
    ok: bool,
    /// What it gave, when `ok`.
    #[serde(default)]
    result: Option<Value>,
    /// What went wrong, when not `ok`.
    #[serde(default)]
    error: Option<PostedError>,
}

/// Why a call gave no result.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PostedError {
    /// Stable word; `failed` when absent.
    #[serde(default)]
    code: Option<String>,
    /// What happened, for the model to read.
    message: String,
}

/// What is asked of `POST /api/v1/messages/{id}/tool_confirmations`.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolConfirmations {
    /// One or more; all of them are taken or none.
    confirmations: Vec<PostedConfirmation>,
}

/// Yes or no to a call.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PostedConfirmation {
    /// The call.
    call_id: String,
    /// Whether it may run.
    allow: bool,
    /// Why not, for the model to read.
    #[serde(default)]
    reason: Option<String>,
}

/// `POST /api/v1/messages/{id}/tool_results`
pub(super) async fn results(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    bytes: Bytes,
) -> Result<Json<Value>, Problem> {
    let ToolResults { results } = body(&bytes)?;
    let given: Result<Vec<(String, Answer)>, Problem> = results.into_iter().map(answer).collect();
    take(&app, &caller, &id, given?, "results", Desk::answer).await
}

/// `POST /api/v1/messages/{id}/tool_confirmations`
pub(super) async fn confirmations(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    bytes: Bytes,
) -> Result<Json<Value>, Problem> {
    let ToolConfirmations { confirmations } = body(&bytes)?;
    let given = confirmations.into_iter().map(|posted| {
        let reason = posted.reason.map(|reason| reason.chars().take(1000).collect());
        (posted.call_id, Decision { allow: posted.allow, reason })
    });
    take(&app, &caller, &id, given.collect(), "confirmations", Desk::decide).await
}

fn answer(posted: PostedResult) -> Result<(String, Answer), Problem> {
    let PostedResult { call_id, ok, result, error } = posted;
    let answer = match (ok, result, error) {
        (true, result, None) => Ok(result.unwrap_or_default()),
        (false, None, Some(PostedError { code, message })) => {
            Err(ToolError { code: code.unwrap_or_else(|| "failed".to_owned()).into(), message })
        }
        (true, _, Some(_)) => return Err(wrong(&call_id, "a result that is `ok` has no `error`")),
        (false, Some(_), _) => return Err(wrong(&call_id, "a result that is not `ok` has no `result`")),
        (false, None, None) => return Err(wrong(&call_id, "a result that is not `ok` has an `error`")),
    };
    Ok((call_id, answer))
}

fn wrong(call_id: &str, detail: &str) -> Problem {
    Problem::invalid("invalid_field", format!("{detail} (`{call_id}`)"))
        .with("field", "results")
        .with("call_id", call_id)
}

/// How something is left at the desk of a message.
type Leave<T> = fn(&Desk, Vec<(String, T)>) -> Result<(), Refusal>;

/// Leaves what was posted with the running message.
async fn take<T>(
    app: &App,
    caller: &Caller,
    id: &str,
    given: Vec<(String, T)>,
    field: &'static str,
    leave: Leave<T>,
) -> Result<Json<Value>, Problem> {
    let row = owned(app, caller, id).await?;
    // The record is made a moment after the end; who has seen the end is told of it here too.
    let running = row.status == "running" && app.live.get(id).is_some_and(|live| !live.has_ended());
    if !running {
        let detail = "the message has ended; nothing waits for this any more";
        return Err(Problem::new(StatusCode::CONFLICT, "message_ended", detail));
    }
    let calls: Vec<String> = given.iter().map(|(call, _)| call.clone()).collect();
    if calls.is_empty() {
        return Err(Problem::invalid("invalid_field", format!("`{field}` is empty")).with("field", field));
    }
    if let Some(twice) =
        calls.iter().enumerate().find_map(|(at, call)| calls[..at].contains(call).then_some(call))
    {
        let detail = format!("`{twice}` is in `{field}` twice");
        return Err(Problem::invalid("invalid_field", detail).with("field", field));
    }
    let left = match app.desks.get(id) {
        Some(desk) => leave(&desk, given),
        None => Err(Refusal::Unknown(calls[0].clone())),
    };
    left.map_err(refused)?;
    Ok(Json(json!({"message_id": id, "accepted": calls})))
}

fn refused(refusal: Refusal) -> Problem {
    let (problem, call) = match refusal {
        Refusal::Unknown(call) => {
            (Problem::invalid("unknown_call", format!("the message has no call `{call}`")), call)
        }
        Refusal::Answered(call) => {
            let detail = format!("`{call}` has been answered, or its time is over; the first answer holds");
            (Problem::new(StatusCode::CONFLICT, "already_answered", detail), call)
        }
        Refusal::NotWaiting(call) => {
            let detail = format!("nothing waits for this about `{call}`, or not yet");
            (Problem::new(StatusCode::CONFLICT, "not_waiting", detail), call)
        }
    };
    problem.with("call_id", call)
}
