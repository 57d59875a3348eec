//! Answers that clients post to a waiting message: results of calls that they run, and confirmations of
//! calls. The run of the message takes them from its [`AnswerDesk`].

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::{Extension, Json};
use serde::Deserialize;
use serde_json::{Value, json};
use tambour::event::ToolError;

use super::keys::Caller;
use super::messages::find_owned;
use crate::base::problem::{Problem, parse_body};
use crate::http::app::App;
use crate::tools::{AnswerDesk, AnswerRefusal, CallDecision, ToolAnswer};

/// Maximum length in characters of the reason for a denial; a longer one is cut.
const MAX_REASON_CHARS: usize = 1000;

/// Body of `POST /api/v1/messages/{id}/tool_results`.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolResults {
    /// One or more results; all are accepted or none.
    results: Vec<PostedResult>,
}

/// Result of one call.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PostedResult {
    /// Id of the call.
    call_id: String,
    /// True if the call succeeded.
    ok: bool,
    /// Result of the call, when `ok`.
    #[serde(default)]
    result: Option<Value>,
    /// Error of the call, when not `ok`.
    #[serde(default)]
    error: Option<PostedError>,
}

/// Error of a call.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PostedError {
    /// Stable code; `failed` when absent.
    #[serde(default)]
    code: Option<String>,
    /// Description of the error, for the model to read.
    message: String,
}

/// Body of `POST /api/v1/messages/{id}/tool_confirmations`.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolConfirmations {
    /// One or more confirmations; all are accepted or none.
    confirmations: Vec<PostedConfirmation>,
}

/// Confirmation or denial of a call.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PostedConfirmation {
    /// Id of the call.
    call_id: String,
    /// True to allow the call.
    allow: bool,
    /// Reason for a denial, for the model to read.
    #[serde(default)]
    reason: Option<String>,
}

/// `POST /api/v1/messages/{id}/tool_results`
pub(super) async fn post_results(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    bytes: Bytes,
) -> Result<Json<Value>, Problem> {
    let ToolResults { results } = parse_body(&bytes)?;
    let answers: Result<Vec<(String, ToolAnswer)>, Problem> = results.into_iter().map(tool_answer).collect();
    pass_answers(&app, &caller, &id, answers?, "results", AnswerDesk::accept_results).await
}

/// `POST /api/v1/messages/{id}/tool_confirmations`
pub(super) async fn post_confirmations(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    bytes: Bytes,
) -> Result<Json<Value>, Problem> {
    let ToolConfirmations { confirmations } = parse_body(&bytes)?;
    let decisions = confirmations.into_iter().map(|confirmation| {
        let reason = confirmation.reason.map(|reason| reason.chars().take(MAX_REASON_CHARS).collect());
        (confirmation.call_id, CallDecision { allow: confirmation.allow, reason })
    });
    pass_answers(&app, &caller, &id, decisions.collect(), "confirmations", AnswerDesk::accept_decisions).await
}

/// Converts a posted result to the id of its call and its answer.
fn tool_answer(posted_result: PostedResult) -> Result<(String, ToolAnswer), Problem> {
    let PostedResult { call_id, ok, result, error } = posted_result;
    let answer = match (ok, result, error) {
        (true, result, None) => Ok(result.unwrap_or_default()),
        (false, None, Some(PostedError { code, message })) => {
            Err(ToolError { code: code.unwrap_or_else(|| "failed".to_owned()).into(), message })
        }
        (true, _, Some(_)) => {
            return Err(invalid_result(&call_id, "a result that is `ok` must not have an `error`"));
        }
        (false, Some(_), _) => {
            return Err(invalid_result(&call_id, "a result that is not `ok` must not have a `result`"));
        }
        (false, None, None) => {
            return Err(invalid_result(&call_id, "a result that is not `ok` needs an `error`"));
        }
    };
    Ok((call_id, answer))
}

/// Problem: the fields of a result contradict each other.
fn invalid_result(call_id: &str, detail: &str) -> Problem {
    Problem::invalid("invalid_field", format!("{detail} (`{call_id}`)"))
        .with("field", "results")
        .with("call_id", call_id)
}

/// Method of [`AnswerDesk`] that accepts answers, each with the id of its call.
type AcceptAnswers<T> = fn(&AnswerDesk, Vec<(String, T)>) -> Result<(), AnswerRefusal>;

/// Passes all posted answers to the running message, or none. `field` is the field of the body that contained
/// them.
async fn pass_answers<T>(
    app: &App,
    caller: &Caller,
    id: &str,
    answers: Vec<(String, T)>,
    field: &'static str,
    accept: AcceptAnswers<T>,
) -> Result<Json<Value>, Problem> {
    let row = find_owned(app, caller, id).await?;
    // The status changes a moment after the log has ended, so the live run is checked too: a client that has
    // seen the end of the log is refused.
    let is_running =
        row.status == "running" && app.running.get(id).is_some_and(|live_run| !live_run.has_ended());
    if !is_running {
        let detail = "the message has ended and no longer waits for results or confirmations";
        return Err(Problem::new(StatusCode::CONFLICT, "message_ended", detail));
    }
    let call_ids: Vec<String> = answers.iter().map(|(id, _)| id.clone()).collect();
    if call_ids.is_empty() {
        return Err(Problem::invalid("invalid_field", format!("`{field}` is empty")).with("field", field));
    }
    if let Some(repeated_id) =
        call_ids.iter().enumerate().find_map(|(index, id)| call_ids[..index].contains(id).then_some(id))
    {
        let detail = format!("`{repeated_id}` is in `{field}` twice");
        return Err(Problem::invalid("invalid_field", detail).with("field", field));
    }
    let accept_result = match app.desks.get(id) {
        Some(desk) => accept(&desk, answers),
        None => Err(AnswerRefusal::Unknown(call_ids[0].clone())),
    };
    accept_result.map_err(refusal_problem)?;
    Ok(Json(json!({"message_id": id, "accepted": call_ids})))
}

/// Converts the refusal of an answer to a problem.
fn refusal_problem(refusal: AnswerRefusal) -> Problem {
    let (problem, call) = match refusal {
        AnswerRefusal::Unknown(call) => {
            (Problem::invalid("unknown_call", format!("the message has no call `{call}`")), call)
        }
        AnswerRefusal::Answered(call) => {
            let detail = format!("`{call}` has been answered or has timed out; the first answer counts");
            (Problem::new(StatusCode::CONFLICT, "already_answered", detail), call)
        }
        AnswerRefusal::NotWaiting(call) => {
            let detail = format!("`{call}` does not wait for an answer of this kind, or not yet");
            (Problem::new(StatusCode::CONFLICT, "not_waiting", detail), call)
        }
    };
    problem.with("call_id", call)
}
