//! Dialogues, which run scripts: creation, listing, inputs, cancelling, deletion, and the list of model
//! calls.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::{Extension, Json};
use futures_util::FutureExt;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tambour_prompt::dialogue::{Dialogue, DialogueStatus, DialogueTurn};
use tambour_prompt::script::load;
use tokio::sync::oneshot;

use super::events::{self, EventReader, TurnEvents};
use super::idempotency::reused_key_problem;
use super::keys::{Caller, invalid_key};
use super::page;
use super::page::QueryParams;
use super::repeated_inputs::{EarlierResponse, find_response, idempotency_key};
use super::request::RequestId;
use super::turn_claims::{TurnClaim, TurnRun};
use super::versions::{find_owned as find_document, load_version};
use crate::base::fail;
use crate::base::ids;
use crate::base::metrics::Metrics;
use crate::base::problem::{Problem, deserialize_object, parse_body};
use crate::http::app::App;
use crate::run::dialogues::{self, DialogueOrigin, TurnClient, TurnInput, TurnLog, TurnQuota, TurnRequest};
use crate::run::live_run::ReaderGuard;
use crate::run::request_repeats::repeat_since;
use crate::run::run_registry::RunningTurn;
use crate::run::runner::retry_close;
use crate::store::DocumentKind::Script;
use crate::store::{
    BeginOutcome, DialogueFilter, DialogueRow, InputClaim, Lease, MessageRow, NewRun, RowPage, RunKind,
    StoreError, WriteOutcome,
};

/// Maximum length in bytes of a user's text, of the variables of a dialogue (as JSON), and of an answer (as
/// JSON).
const MAX_INPUT_BYTES: usize = 64 << 10;

/// Body of `POST /api/v1/dialogues`.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewDialogue {
    /// Id of a script of the same owner.
    script_id: String,
    /// Version of the script; the published one when absent.
    #[serde(default)]
    version: Option<u32>,
    /// Name of a session of the script; the first one when absent.
    #[serde(default)]
    session: Option<String>,
    /// Values that override those declared by the script.
    #[serde(default)]
    #[schema(value_type = Object)]
    variables: Map<String, Value>,
    /// Path of the step or action to start at, such as `sessions[0].phases[1].steps[0]`; the first one when
    /// absent.
    #[serde(default)]
    start: Option<String>,
}

/// Body of `POST /api/v1/dialogues/{id}/input`.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewInput {
    /// Text of the user; absent where the model is to continue by itself.
    #[serde(default)]
    text: Option<String>,
    /// Answer of the client to the pending `form`, `picture` or `skill`.
    #[serde(default, deserialize_with = "deserialize_object")]
    answer: Option<GivenAnswer>,
    /// Idempotency key: the same input with it gets the same response, as with `Idempotency-Key`.
    #[serde(default)]
    request_id: Option<String>,
    /// Responds with the event stream.
    #[serde(default)]
    stream: bool,
    /// Includes extension events in the stream.
    #[serde(default)]
    extensions: bool,
    /// Includes findings in the stream.
    #[serde(default)]
    findings: bool,
}

/// Answer of the client to a request.
#[derive(Debug, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GivenAnswer {
    /// Id of the request.
    call_id: String,
    /// Result, possibly null, which is stored in the variable of the action.
    value: Value,
}

fn too_long_problem(field: &'static str) -> Problem {
    let detail = format!("`{field}` may have at most {MAX_INPUT_BYTES} bytes");
    Problem::invalid("invalid_field", detail).with("field", field)
}

/// Returns the dialogue with that id if it is the caller's.
pub(super) async fn find_owned(app: &App, caller: &Caller, id: &str) -> Result<DialogueRow, Problem> {
    let row = app.store.dialogue(id).await?;
    row.filter(|row| row.owner == caller.owner)
        .ok_or_else(|| Problem::not_found(format!("there is no dialogue `{id}`")))
}

/// `POST /api/v1/dialogues`: starts a version of a script, without a turn yet.
pub(super) async fn create(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    bytes: Bytes,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let new_dialogue: NewDialogue = parse_body(&bytes)?;
    if json!(new_dialogue.variables).to_string().len() > MAX_INPUT_BYTES {
        return Err(too_long_problem("variables"));
    }
    let script = find_document(&app, &caller.owner, Script, &new_dialogue.script_id).await?;
    if new_dialogue.version.is_none() && script.published.is_none() {
        let detail = format!("no version of `{}` is published; name one with `version`", script.id);
        return Err(Problem::conflict("not_published", detail));
    }
    let version = load_version(&app, &caller.owner, Script, &script, new_dialogue.version).await?;
    let parsed_script = load(&version.text, &app.loaded_config().config.limits).script;
    let parsed_script = parsed_script.ok_or_else(|| {
        Problem::invalid("invalid_script", "the script can no longer run").with("field", "script_id")
    })?;
    let session_name = new_dialogue.session;
    let origin = DialogueOrigin {
        start: new_dialogue.start,
        variables: new_dialogue.variables.clone(),
        forked_from: None,
    };
    // Started at the beginning first, so that an unknown session is reported as `unknown_session`.
    let mut dialogue =
        Dialogue::start(&parsed_script, session_name.as_deref(), new_dialogue.variables.clone()).map_err(
            |error| Problem::invalid("unknown_session", error.to_string()).with("field", "session"),
        )?;
    if let Some(start) = &origin.start {
        dialogue = Dialogue::start_at(&parsed_script, session_name.as_deref(), start, new_dialogue.variables)
            .map_err(|error| Problem::invalid("unknown_start", error.to_string()).with("field", "start"))?;
    }
    let position = dialogue.position(&parsed_script);
    let now = ids::now();
    let row = DialogueRow {
        id: ids::new_id("dlg"),
        owner: caller.owner.clone(),
        created: now.clone(),
        changed: now,
        script_id: script.id,
        version: version.version,
        session: match &position {
            Some(position) => position.session.clone(),
            // A session without any action has no position.
            None => parsed_script
                .find_session(session_name.as_deref())
                .map(|(_, session)| session.session.clone())
                .unwrap_or_default(),
        },
        script: version.text,
        status: "active".to_owned(),
        state: json!(dialogue).to_string(),
        origin: json!(origin).to_string(),
    };
    app.store.insert_dialogue(&row).await?;
    let response = json!({
        "dialogue_id": row.id,
        "script_id": row.script_id,
        "version": row.version,
        "status": dialogue.status(),
        "position": position,
    });
    Ok((StatusCode::CREATED, Json(response)))
}

/// Query of the listing of dialogues.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DialogueQuery {
    limit: Option<u32>,
    after: Option<String>,
    /// Id of the script.
    script_id: Option<String>,
    /// Name of the session.
    session: Option<String>,
    /// Status of the dialogue.
    status: Option<DialogueStatus>,
}

/// Describes a dialogue without its state.
pub(super) fn dialogue_json(row: &DialogueRow) -> Value {
    let origin: DialogueOrigin = serde_json::from_str(&row.origin).unwrap_or_default();
    json!({
        "dialogue_id": row.id,
        "script_id": row.script_id,
        "version": row.version,
        "session": row.session,
        "created": row.created,
        "changed": row.changed,
        "status": row.status,
        "start": origin.start,
        "forked_from": origin.forked_from,
    })
}

/// `GET /api/v1/dialogues`: dialogues of the caller, newest first, filtered.
pub(super) async fn list(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    QueryParams(query): QueryParams<DialogueQuery>,
) -> Result<Json<Value>, Problem> {
    let after = query.after.as_deref();
    if let Some(after) = after {
        find_owned(&app, &caller, after).await.map_err(|_| page::unknown_cursor(after))?;
    }
    let status = query.status.as_ref().map(|status| json!(status).as_str().unwrap_or_default().to_owned());
    let filter = DialogueFilter {
        script_id: query.script_id.as_deref(),
        session: query.session.as_deref(),
        status: status.as_deref(),
    };
    let page = app.store.dialogues(&caller.owner, filter, after, page::check_limit(query.limit)?).await?;
    Ok(Json(page::page_json(page, |row| dialogue_json(&row))))
}

/// `GET /api/v1/dialogues/{id}`: a dialogue with its position, variables and history.
pub(super) async fn show(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    let row = find_owned(&app, &caller, &id).await?;
    let (script, dialogue) = dialogues::load_machine(&app, &row)?;
    let mut response = dialogue_json(&row);
    response["position"] = json!(dialogue.position(&script));
    response["variables"] = json!(dialogue.variables());
    response["current_round"] = dialogue.current_round().into();
    response["history"] = json!(dialogue.history());
    response["turn"] = json!(dialogue.turn(&script));
    Ok(Json(response))
}

/// `DELETE /api/v1/dialogues/{id}`: deletes a dialogue with its turns; running ones are cancelled first.
pub(super) async fn remove(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    find_owned(&app, &caller, &id).await?;
    let task_app = app.clone();
    app.run_to_completion(async move {
        // No turn begins from here on; running and waiting ones are cancelled.
        task_app.store.close_conversation(&id).await?;
        task_app.cancel_runs(task_app.running.dialogue_turns(&id)).await;
        task_app.store.delete_dialogue(&id).await?;
        task_app.memory_responses.drop_stale(Some(&id));
        task_app.deletion_notify.notify_one();
        Ok(StatusCode::NO_CONTENT)
    })
    .await
}

/// `POST /api/v1/dialogues/{id}/cancel`: cancels the running turn with its model call. Without a running turn
/// nothing changes.
pub(super) async fn cancel(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<(StatusCode, Json<Value>), Problem> {
    find_owned(&app, &caller, &id).await?;
    let mut turns = app.running.active_turns(&id);
    // Turns that have ended may still be registered for a moment.
    turns.retain(|live_run| !live_run.has_ended());
    if turns.is_empty() {
        // Read after the check: a turn may have ended in between.
        let status = find_owned(&app, &caller, &id).await?.status;
        return Ok((StatusCode::OK, Json(json!({"dialogue_id": id, "status": status}))));
    }
    turns.iter().for_each(|live_run| live_run.cancel.cancel());
    Ok((StatusCode::ACCEPTED, Json(json!({"dialogue_id": id, "status": "cancelling"}))))
}

/// `GET /api/v1/dialogues/{id}/trace`: model calls, oldest first.
pub(super) async fn trace(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    QueryParams(query): QueryParams<page::PageQuery>,
) -> Result<Json<Value>, Problem> {
    let row = find_owned(&app, &caller, &id).await?;
    let after = match query.after() {
        None => 0,
        Some(after) => after.parse().map_err(|_| {
            Problem::invalid("invalid_field", "`after` must be the `number` of a record")
                .with("field", "after")
        })?,
    };
    let limit = query.limit()?;
    let page = RowPage::from_rows(app.store.call_records(&row.id, after, limit + 1).await?, limit);
    let is_turn_running = !app.running.active_turns(&row.id).is_empty();
    // Number of the dialogue's last call, if this page has it.
    let last_number = page.rows.last().map(|(number, _)| *number).filter(|_| !page.has_more);
    let call_json = |(number, record): (i64, String)| {
        let mut record: Value = serde_json::from_str(&record).unwrap_or_default();
        record["number"] = number.into();
        // Only the last call of a running turn can be in progress. Any other call recorded as running was
        // interrupted: its end was never stored.
        if record["status"] == "running" && !(is_turn_running && last_number == Some(number)) {
            record["status"] = "interrupted".into();
            record["error"] = json!(dialogues::interrupted_call_failure());
        }
        record
    };
    Ok(Json(page::page_json(page, call_json)))
}

/// `POST /api/v1/dialogues/{id}/input`: runs a turn with the input of the user or the answer of the client.
/// Responds with its result, or with its events. A repeated input gets the response of its first turn.
pub(super) async fn input(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Extension(RequestId(request_id)): Extension<RequestId>,
    Path(id): Path<String>,
    headers: HeaderMap,
    bytes: Bytes,
) -> Result<Response, Problem> {
    if app.shutdown.is_cancelled() {
        return Err(closing_problem());
    }
    let new_input: NewInput = parse_body(&bytes)?;
    // Turns are not run for keys that are limited to aliases.
    caller.limits.check_alias(None)?;
    find_owned(&app, &caller, &id).await?;
    let input = parse_input(&new_input)?;
    let idempotency_key = idempotency_key(&headers, new_input.request_id.as_deref())?;
    // Identifies repetitions of the input; the form of the response (`stream` and so on) does not matter.
    let request = format!("POST dialogues/{id}/input {}", json!([new_input.text, new_input.answer]));
    let selected_events = TurnEvents { extensions: new_input.extensions, findings: new_input.findings };
    let turn_claim = match &idempotency_key {
        Some(key) => match register_input(&app, &caller, key, &request, new_input.stream).await? {
            InputStart::First(claim) => Some(claim),
            InputStart::Joined((row, live_run)) => {
                let event_stream = events::open_stream(&app, &caller)?;
                let reader = EventReader::of_turn(&row, selected_events, Some(live_run.add_reader()), 0);
                return Ok(events::stream_response(app, reader, event_stream));
            }
        },
        None => None,
    };
    if let Some(idempotency_key) = &idempotency_key
        && let Some(stored_response) = respond_repeated(
            &app,
            &caller,
            idempotency_key,
            &request,
            new_input.stream.then_some(selected_events),
        )
        .await?
    {
        return Ok(stored_response);
    }
    let event_stream = new_input.stream.then(|| events::open_stream(&app, &caller)).transpose()?;
    let quota = TurnQuota::reserve(&app, &caller).await?;
    let running_turn = register_turn(&app, &caller, &id).await?;
    let (owner, created_at, turn_id) = (caller.owner.clone(), ids::now(), running_turn.live_run().id.clone());
    let row = MessageRow {
        id: turn_id.clone(),
        conversation_id: id,
        request_id,
        owner: owner.clone(),
        created: created_at.clone(),
        status: "running".to_owned(),
        request: json!(selected_events).to_string(),
        kind: RunKind::Turn,
        ..MessageRow::default()
    };
    let input_claim = idempotency_key.map(|idempotency_key| InputClaim {
        owner,
        repeat: idempotency_key,
        request,
        created: created_at,
        since: repeat_since(),
        turn: turn_id,
    });
    let (start_sender, start_receiver) = oneshot::channel();
    let task_app = app.clone();
    let turn = RequestedTurn { caller, running_turn, turn_claim, input, quota, input_claim };
    // A turn that has begun runs to its end, even if the client disconnects.
    let turn_task = app.run_tasks.spawn(async move { drive_turn(&task_app, turn, row, start_sender).await });
    // A turn that fails before it has a log is answered with the problem instead of a stream.
    if let Some(event_stream) = event_stream
        && let Ok((row, reader_guard)) = start_receiver.await
    {
        return Ok(events::stream_response(
            app,
            EventReader::of_turn(&row, selected_events, Some(reader_guard), 0),
            event_stream,
        ));
    }
    let turn = turn_task.await.unwrap_or_else(|_| Err(Problem::internal()))?;
    Ok(Json(turn).into_response())
}

/// Runs one turn to its end, without an idempotency key or a stream. The turn continues if the client
/// disconnects.
pub(super) async fn run_turn(
    app: &Arc<App>,
    caller: &Caller,
    id: &str,
    input: TurnInput,
    request_id: &str,
) -> Result<DialogueTurn, Problem> {
    let quota = TurnQuota::reserve(app, caller).await?;
    let running_turn = register_turn(app, caller, id).await?;
    let row = MessageRow {
        id: running_turn.live_run().id.clone(),
        conversation_id: id.to_owned(),
        request_id: request_id.to_owned(),
        owner: caller.owner.clone(),
        created: ids::now(),
        status: "running".to_owned(),
        request: json!(TurnEvents::default()).to_string(),
        kind: RunKind::Turn,
        ..MessageRow::default()
    };
    let (start_sender, _) = oneshot::channel();
    // The input is small, so the memory reserved for the request is released before the turn waits for its
    // model.
    caller.memory.release();
    let (task_app, caller) = (app.clone(), caller.clone());
    let turn = RequestedTurn { caller, running_turn, turn_claim: None, input, quota, input_claim: None };
    let turn_task = app.run_tasks.spawn(async move { drive_turn(&task_app, turn, row, start_sender).await });
    turn_task.await.unwrap_or_else(|_| Err(Problem::internal()))
}

/// Returns the response to an earlier, equal input with the key: the stored result of its turn or, if the
/// client wants a stream, the events that `stream_events` selects. `None` if there is no such input, if its
/// turn is not over or was deleted, or if repeating the input asks the model again.
async fn respond_repeated(
    app: &Arc<App>,
    caller: &Caller,
    idempotency_key: &str,
    request: &str,
    stream_events: Option<TurnEvents>,
) -> Result<Option<Response>, Problem> {
    let Some(EarlierResponse { response: Some(answer), turn: turn_id }) =
        find_response(app, caller, idempotency_key, request).await?
    else {
        return Ok(None);
    };
    let can_retry = serde_json::from_value(answer.clone()).map(|turn: DialogueTurn| is_retryable(&turn));
    let (Some(turn_id), Ok(false)) = (turn_id, can_retry) else { return Ok(None) };
    let Some(events) = stream_events else { return Ok(Some(Json(answer).into_response())) };
    let Some(row) = app.store.message(&turn_id).await? else { return Ok(None) };
    let event_stream = events::open_stream(app, caller)?;
    Ok(Some(events::stream_response(app.clone(), EventReader::of_turn(&row, events, None, 0), event_stream)))
}

/// Returns `true` if repeating the input asks the model again (S-065).
fn is_retryable(turn: &DialogueTurn) -> bool {
    turn.error.as_ref().is_some_and(|failure| failure.retryable)
}

/// Turn that a client has requested.
struct RequestedTurn {
    caller: Caller,
    /// Registration among the running turns.
    running_turn: RunningTurn,
    /// Claim of the idempotency key in memory while the turn runs, if the request has a key.
    turn_claim: Option<TurnClaim>,
    input: TurnInput,
    /// Request as counted against the caller's API key.
    quota: TurnQuota,
    /// Lasting claim of the idempotency key in the store, if the request has a key.
    input_claim: Option<InputClaim>,
}

/// Runs a turn to its end. Sends the row of the turn and a reader to `start_sender` as soon as the log of the
/// turn exists. The log always ends with one `completed` or `error`.
async fn drive_turn(
    app: &Arc<App>,
    requested_turn: RequestedTurn,
    row: MessageRow,
    start_sender: oneshot::Sender<(Arc<MessageRow>, ReaderGuard)>,
) -> Result<DialogueTurn, Problem> {
    let RequestedTurn { caller, running_turn, turn_claim, input, quota, input_claim } = requested_turn;
    let id = row.conversation_id.clone();
    let lease = acquire_lease(app, row).await?;
    let (row, live_run) = (lease.row().clone(), running_turn.live_run().clone());
    if let Some(turn_claim) = &turn_claim {
        turn_claim.publish_run((row.clone(), live_run.clone()));
    }
    // The receiver is gone if the client has disconnected, or if the turn belongs to a dry run.
    let _ = start_sender.send((row, live_run.add_reader()));
    let mut turn_log = TurnLog::new(live_run.clone(), lease, &app.reading_defaults().options);
    let request = TurnRequest { input: Some(input), quota, claim: input_claim.as_ref() };
    let turn_future = run_queued_turn(app, &caller, &running_turn, &id, request, &mut turn_log);
    let result = AssertUnwindSafe(turn_future).catch_unwind().await.unwrap_or_else(|_| {
        tracing::error!(dialogue = id, "a turn panicked; the dialogue is as it was last stored");
        Err(Problem::internal())
    });
    fail::point("turn.over");
    let Err(problem) = result else { return result };
    turn_log.refuse(&problem);
    match AssertUnwindSafe(turn_log.finish("failed", None)).catch_unwind().await {
        // The log contains the end of the turn, or the turn was deleted.
        Ok(Ok(()) | Err(WriteOutcome::Stored | WriteOutcome::Fenced)) => {}
        unfinished => {
            tracing::error!(
                dialogue = id,
                ?unfinished,
                "the end of a turn could not be written; trying again"
            );
            // The registration of the turn is given up first, so that later turns may begin.
            drop((turn_log, turn_claim, running_turn));
            Box::pin(retry_close(app, &live_run.id)).await;
        }
    }
    Err(problem)
}

/// Creates the log of a turn. Returns the right to append to it as soon as the row of the turn is durable.
async fn acquire_lease(app: &App, row: MessageRow) -> Result<Box<dyn Lease>, Problem> {
    let id = row.conversation_id.clone();
    match app.store.begin(NewRun { row, ..NewRun::default() }).await? {
        BeginOutcome::Started { lease, durable } => match durable.await {
            WriteOutcome::Stored => Ok(lease),
            _ => Err(StoreError::Closed.into()),
        },
        _ => Err(Problem::not_found(format!("there is no dialogue `{id}`"))),
    }
}

/// Problem: the server accepts no more inputs.
fn closing_problem() -> Problem {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "closing", "the server is stopping").retry_after(5)
}

/// Result of registering an input with an idempotency key.
enum InputStart {
    /// The input is not in progress yet.
    First(TurnClaim),
    /// The same input is in progress, and its stream is joined from the beginning.
    Joined(TurnRun),
}

/// Registers an input under its idempotency key. If the same input is in progress, joins its stream or waits
/// for its end. Another input with the same key is refused.
async fn register_input(
    app: &App,
    caller: &Caller,
    idempotency_key: &str,
    request: &str,
    wants_stream: bool,
) -> Result<InputStart, Problem> {
    loop {
        match app.turn_claims.claim(&caller.owner, idempotency_key, request) {
            Ok(claim) => return Ok(InputStart::First(claim)),
            Err(earlier) if earlier.request != request => return Err(reused_key_problem()),
            Err(earlier) if wants_stream => match earlier.wait_run().await {
                Some(run) => return Ok(InputStart::Joined(run)),
                None => earlier.wait_over().await,
            },
            Err(earlier) => earlier.wait_over().await,
        }
    }
}

/// Returns the text or answer of an input.
fn parse_input(new_input: &NewInput) -> Result<TurnInput, Problem> {
    match (&new_input.text, &new_input.answer) {
        (Some(_), Some(_)) => {
            Err(Problem::invalid("invalid_field", "give `text` or `answer`, not both")
                .with("field", "answer"))
        }
        (Some(text), None) if text.len() > MAX_INPUT_BYTES => Err(too_long_problem("text")),
        (text, None) => Ok(TurnInput::Text(text.clone())),
        (None, Some(answer)) if answer.value.to_string().len() > MAX_INPUT_BYTES => {
            Err(too_long_problem("answer"))
        }
        (None, Some(answer)) => {
            Ok(TurnInput::Answer { call_id: answer.call_id.clone(), value: answer.value.clone() })
        }
    }
}

/// Registers a turn among the running messages and turns of the caller's owner. It counts even while it waits
/// for earlier turns of its dialogue.
///
/// # Errors
/// The owner has reached `max_running`.
pub(super) async fn register_turn(
    app: &Arc<App>,
    caller: &Caller,
    dialogue: &str,
) -> Result<RunningTurn, Problem> {
    let remote_runs = app.count_remote_runs(&caller.owner).await?;
    RunningTurn::begin(app, &caller.owner, dialogue, remote_runs).ok_or_else(|| {
        Metrics::increment(&app.metrics.limited_requests);
        let detail =
            "this owner has reached the limit of running messages and turns; wait until one has ended";
        Problem::too_many("too_many_running", detail)
    })
}

/// Runs one turn of a dialogue after the turns before it. A repeated input is not applied again: its response
/// is returned, or the turn that it began is continued.
async fn run_queued_turn(
    app: &App,
    caller: &Caller,
    running_turn: &RunningTurn,
    id: &str,
    TurnRequest { input, quota, claim }: TurnRequest<'_>,
    turn_log: &mut TurnLog,
) -> Result<DialogueTurn, Problem> {
    let live_run = running_turn.live_run();
    let client = TurnClient { caller, live_run };
    let mut earlier_turns = turn_log.wait_earlier_turns();
    let wait_turn = async {
        // Polled once first, so that the fail point is reached only by a turn that must wait.
        if earlier_turns.as_mut().now_or_never().is_none() {
            fail::point("turn.behind");
            earlier_turns.await;
        }
        // The retention sweep enqueues too: it deletes an expired dialogue only between two turns.
        app.conversation_queues.enter(id).await
    };
    // Held until this function returns: one turn of a dialogue runs at a time.
    let _turn_guard = tokio::select! {
        biased;
        () = caller.removal.cancelled() => return Err(invalid_key()),
        // Deleting the dialogue cancels waiting turns.
        () = live_run.cancel.cancelled() => return Err(Problem::not_found(format!("the dialogue `{id}` was deleted"))),
        // A stopping server starts no waiting turn.
        () = app.shutdown.cancelled() => return Err(closing_problem()),
        turn_guard = wait_turn => turn_guard,
    };
    running_turn.mark_active();
    let row = find_owned(app, caller, id).await?;
    let earlier_response = match claim {
        Some(claim) => find_response(app, caller, &claim.repeat, &claim.request).await?,
        None => None,
    };
    let input = match earlier_response {
        Some(EarlierResponse { response: Some(answer), .. }) => {
            let turn: DialogueTurn = serde_json::from_value(answer).map_err(|_| Problem::internal())?;
            if !is_retryable(&turn) {
                // The repetition is a turn with a log too, which gets the stored text in one piece.
                let requests = turn.request.clone().map(Into::into);
                turn_log.close(&turn, requests.as_slice(), &app.reading_defaults().options);
                turn_log.finish("completed", None).await.map_err(dialogues::log_problem)?;
                return Ok(turn);
            }
            // The turn failed, and repeating the input asks the model again (S-065). An answer that the
            // dialogue has applied already is not applied twice: the dialogue only continues.
            match input {
                Some(TurnInput::Answer { .. }) if dialogues::load_machine(app, &row)?.1.needs_retry() => {
                    Some(TurnInput::Text(None))
                }
                input => input,
            }
        }
        // The dialogue has taken the input already, but the turn did not end: it continues without input.
        Some(EarlierResponse { response: None, .. }) => None,
        None => input,
    };
    dialogues::run_turn(app, row, client, TurnRequest { input, quota, claim }, turn_log).await
}
