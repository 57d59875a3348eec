//! Dialogues: runs of scripts.

use std::sync::Arc;
use std::time::Instant;

use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::{Extension, Json};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tambour::dialogue::{Dialogue, Turn};
use tambour::script::load;

use super::events;
use super::idempotency::{claim, reused, since};
use super::keys::Caller;
use super::page;
use super::page::Params;
use super::problem::{Problem, body, object};
use super::repeats::{Repeated, once, repeated, word};
use super::request::RequestId;
use super::versions::{owned as document, text};
use crate::app::{App, RunningTurn};
use crate::dialogues::{self, Frames, Guard, Input, Outlet};
use crate::ids;
use crate::metrics::Metrics;
use crate::store::DocumentKind::Script;
use crate::store::{DialogueRow, Once, StoreError};
use crate::streams::Opened;

/// Bytes of what a user says in one input, and of the variables and answers that a client gives.
const LONGEST: usize = 64 << 10;

/// What is asked of `POST /api/v1/dialogues`.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewDialogue {
    /// A script of the same key.
    script_id: String,
    /// A version of it; the published one when absent.
    #[serde(default)]
    version: Option<u32>,
    /// A session of the script by its name; the first when absent.
    #[serde(default)]
    session: Option<String>,
    /// Values that go before those that the script declares.
    #[serde(default)]
    #[schema(value_type = Object)]
    variables: Map<String, Value>,
}

/// What is asked of `POST /api/v1/dialogues/{id}/input`.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewInput {
    /// What the user says; absent where the model is to go on by itself.
    #[serde(default)]
    text: Option<String>,
    /// What the client has done, for the `form`, `picture` or `skill` that waits.
    #[serde(default, deserialize_with = "object")]
    answer: Option<GivenAnswer>,
    /// A word of the client's own: the same input again is the same answer. `Idempotency-Key` does the same.
    #[serde(default)]
    request_id: Option<String>,
    /// Whether the answer is the stream of events.
    #[serde(default)]
    stream: bool,
    /// Whether the stream has extension events.
    #[serde(default)]
    extensions: bool,
    /// Whether it has findings.
    #[serde(default)]
    findings: bool,
}

/// The client's answer to a request.
#[derive(Debug, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GivenAnswer {
    /// The request.
    call_id: String,
    /// What came of it, null too; goes into the variable of the action.
    value: Value,
}

fn too_long(field: &'static str) -> Problem {
    let detail = format!("`{field}` has at most {LONGEST} bytes");
    Problem::invalid("invalid_field", detail).with("field", field)
}

/// The dialogue of that id, if it is the caller's.
async fn owned(app: &App, caller: &Caller, id: &str) -> Result<DialogueRow, Problem> {
    let row = app.store.dialogue(id).await?;
    row.filter(|row| row.owner == caller.owner)
        .ok_or_else(|| Problem::not_found(format!("there is no dialogue `{id}`")))
}

/// `POST /api/v1/dialogues`
pub(super) async fn create(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    bytes: Bytes,
) -> Result<Response, Problem> {
    let new: NewDialogue = body(&bytes)?;
    if json!(new.variables).to_string().len() > LONGEST {
        return Err(too_long("variables"));
    }
    once(&app, &caller, &headers, None, ("POST dialogues", &bytes), StatusCode::CREATED, async || {
        let script = document(&app, &caller.owner, Script, &new.script_id).await?;
        if new.version.is_none() && script.published.is_none() {
            let detail = format!("no version of `{}` is published; name one with `version`", script.id);
            return Err(Problem::conflict("not_published", detail));
        }
        let version = text(&app, &caller.owner, Script, &script, new.version).await?;
        let found = load(&version.text, &app.loaded().config.limits).script;
        let parsed = found.ok_or_else(|| {
            Problem::invalid("invalid_script", "the script cannot run any more").with("field", "script_id")
        })?;
        let dialogue = Dialogue::start(&parsed, new.session.as_deref(), new.variables).map_err(|error| {
            Problem::invalid("unknown_session", error.to_string()).with("field", "session")
        })?;
        let now = ids::now();
        let row = DialogueRow {
            id: ids::new("dlg"),
            owner: caller.owner.clone(),
            created: now.clone(),
            changed: now,
            script_id: script.id,
            version: version.version,
            script: version.text,
            status: "active".to_owned(),
            state: json!(dialogue).to_string(),
        };
        app.store.insert_dialogue(&row).await?;
        Ok(json!({
            "dialogue_id": row.id,
            "script_id": row.script_id,
            "version": row.version,
            "status": dialogue.status(),
            "position": dialogue.position(&parsed),
        }))
    })
    .await
}

fn listed(row: &DialogueRow) -> Value {
    json!({
        "dialogue_id": row.id,
        "script_id": row.script_id,
        "version": row.version,
        "created": row.created,
        "changed": row.changed,
        "status": row.status,
    })
}

/// `GET /api/v1/dialogues`
pub(super) async fn list(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Params(query): Params<page::Query>,
) -> Result<Json<Value>, Problem> {
    if let Some(after) = query.after() {
        owned(&app, &caller, after).await.map_err(|_| page::unknown(after))?;
    }
    let page = app.store.dialogues(&caller.owner, query.after(), query.limit()?).await?;
    let data: Vec<Value> = page.rows.iter().map(listed).collect();
    Ok(Json(page::answer(&data, page.more)))
}

/// `GET /api/v1/dialogues/{id}`
pub(super) async fn show(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    let row = owned(&app, &caller, &id).await?;
    let (script, dialogue) = dialogues::machine(&app, &row)?;
    let mut shown = listed(&row);
    shown["position"] = json!(dialogue.position(&script));
    shown["variables"] = json!(dialogue.variables());
    shown["current_round"] = dialogue.current_round().into();
    shown["history"] = json!(dialogue.history());
    shown["turn"] = json!(dialogue.turn(&script));
    Ok(Json(shown))
}

/// `DELETE /api/v1/dialogues/{id}`
pub(super) async fn remove(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    let row = owned(&app, &caller, &id).await?;
    // What runs has its turn first.
    let _turn = app.turns.queue(&id).reached().await;
    app.store.delete_dialogue(&row.id).await?;
    app.deleted.notify_one();
    Ok(StatusCode::NO_CONTENT)
}

/// `GET /api/v1/dialogues/{id}/trace`: each call of a model, oldest first.
pub(super) async fn trace(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Params(query): Params<page::Query>,
) -> Result<Json<Value>, Problem> {
    let row = owned(&app, &caller, &id).await?;
    let after = match query.after() {
        None => 0,
        Some(after) => after.parse().map_err(|_| {
            Problem::invalid("invalid_field", "`after` is the `number` of a record").with("field", "after")
        })?,
    };
    let limit = query.limit()?;
    let mut rounds = app.store.rounds(&row.id, after, limit + 1).await?;
    let more = rounds.len() > limit as usize;
    rounds.truncate(limit as usize);
    let data: Vec<Value> = rounds
        .into_iter()
        .map(|(number, record)| {
            let mut record: Value = serde_json::from_str(&record).unwrap_or_default();
            record["number"] = number.into();
            record
        })
        .collect();
    Ok(Json(page::answer(&data, more)))
}

/// `POST /api/v1/dialogues/{id}/input`
pub(super) async fn input(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Extension(RequestId(request_id)): Extension<RequestId>,
    Path(id): Path<String>,
    headers: HeaderMap,
    bytes: Bytes,
) -> Result<Response, Problem> {
    if app.closing.is_cancelled() {
        let closing = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "closing", "the server is stopping");
        return Err(closing.retry_after(5));
    }
    let new: NewInput = body(&bytes)?;
    caller.limits.only(None)?;
    owned(&app, &caller, &id).await?;
    let input = what(&new)?;
    let repeat = word(&headers, new.request_id.as_deref())?;
    // How it is answered is not what is asked for.
    let request = format!("POST dialogues/{id}/input {}", json!([new.text, new.answer]));
    let begun = match &repeat {
        Some(repeat) => match begin(&app, &caller, repeat, &request, new.stream).await? {
            Begun::First(guard) => Some((claim(&app, &caller, repeat)?, guard)),
            Begun::Joined(frames) => return Ok(stream(frames, events::open(&app, &caller)?)),
        },
        None => None,
    };
    let (owner, created, since) = (caller.owner.clone(), ids::now(), since());
    let once = repeat.map(|repeat| Once { owner, repeat, request, created, since });
    let running = running(&app, &caller)?;
    if !new.stream {
        let work = app.clone();
        let turn = app.undisturbed(async move {
            let (_begun, _running) = (begun, running);
            turn(&work, &caller, &id, input, once.as_ref(), &mut Outlet::closed()).await
        });
        return Ok(Json(turn.await?).into_response());
    }
    let opened = events::open(&app, &caller)?;
    if let Some(once) = &once {
        // Refused before the stream begins.
        repeated(&app, &caller, &once.repeat, &once.request).await?;
    }
    let (mut outlet, frames) = Outlet::open(&ids::new("turn"), &request_id, new.extensions, new.findings);
    if let Some((_, guard)) = &begun {
        guard.streams(&frames);
    }
    outlet.status(&json!({ "state": "running" }));
    let work = app.clone();
    app.runs.spawn(async move {
        let (_begun, _running) = (begun, running);
        if let Err(problem) = turn(&work, &caller, &id, input, once.as_ref(), &mut outlet).await {
            outlet.refuse(&problem);
        }
    });
    Ok(stream(frames, opened))
}

/// What becomes of an input that may have come before.
enum Begun {
    /// No other is under way.
    First(Guard),
    /// It is under way, and its stream is joined from the beginning on.
    Joined(Frames),
}

/// Begins an input under a word. One that is under way is waited for, unless its stream can be joined.
async fn begin(
    app: &App,
    caller: &Caller,
    repeat: &str,
    request: &str,
    stream: bool,
) -> Result<Begun, Problem> {
    loop {
        match app.under_way.begin(&caller.owner, repeat, request) {
            Ok(guard) => return Ok(Begun::First(guard)),
            Err(other) if other.request != request => return Err(reused()),
            Err(other) => match other.frames().filter(|_| stream) {
                Some(frames) => return Ok(Begun::Joined(frames)),
                None => other.over().await,
            },
        }
    }
}

/// What an input holds.
fn what(new: &NewInput) -> Result<Input, Problem> {
    match (&new.text, &new.answer) {
        (Some(_), Some(_)) => {
            Err(Problem::invalid("invalid_field", "give `text` or `answer`, not both")
                .with("field", "answer"))
        }
        (Some(text), None) if text.len() > LONGEST => Err(too_long("text")),
        (text, None) => Ok(Input::Text(text.clone())),
        (None, Some(answer)) if answer.value.to_string().len() > LONGEST => Err(too_long("answer")),
        (None, Some(answer)) => {
            Ok(Input::Answer { call_id: answer.call_id.clone(), value: answer.value.clone() })
        }
    }
}

/// Counts a turn among what the caller has running, those that wait in the line of their dialogue too.
fn running(app: &Arc<App>, caller: &Caller) -> Result<RunningTurn, Problem> {
    RunningTurn::begin(app, &caller.owner).ok_or_else(|| {
        Metrics::count(&app.metrics.limited);
        let detail = "as many messages and turns of this key run as may; wait until one has ended";
        Problem::too_many("too_many_running", detail)
    })
}

/// One turn of a dialogue, when those before it are over. An input that has come before is not taken again: its answer is given, or
/// what it had begun is gone on with.
async fn turn(
    app: &App,
    caller: &Caller,
    id: &str,
    input: Input,
    once: Option<&Once>,
    outlet: &mut Outlet,
) -> Result<Turn, Problem> {
    let _turn = app.turns.queue(id).reached().await;
    let row = owned(app, caller, id).await?;
    let found = match once {
        Some(once) => repeated(app, caller, &once.repeat, &once.request).await?,
        None => None,
    };
    match found {
        Some(Repeated { answer: Some(answer), .. }) => {
            let turn: Turn = serde_json::from_value(answer).map_err(|_| Problem::internal())?;
            let failed = turn.error.as_ref().is_some_and(|failure| failure.retryable);
            if failed && dialogues::machine(app, &row)?.1.waits_to_ask_again() {
                // Nothing came of it, and who asks again wants the model asked again (S-065).
                let again = Some(Input::Text(None));
                return dialogues::run(app, row, caller, again, once, outlet).await;
            }
            // What was said is said again, in one piece.
            let requests = turn.request.clone().map(Into::into);
            outlet.close(&turn, requests.as_slice(), &app.own().options);
            Ok(turn)
        }
        Some(_) => dialogues::run(app, row, caller, None, once, outlet).await,
        None => {
            app.quotas.ask(caller, Instant::now(), Timestamp::now())?;
            app.spent(&caller.key, &caller.owner, 1, &Value::Null).await;
            dialogues::run(app, row, caller, Some(input), once, outlet).await
        }
    }
}

/// Frames as they come.
fn stream(frames: Frames, opened: Opened) -> Response {
    let frames = futures_util::stream::unfold((frames, opened), |(mut frames, opened)| async move {
        let frame = frames.next().await?;
        Some((Ok::<Bytes, StoreError>(frame), (frames, opened)))
    });
    let mut response = Response::new(Body::from_stream(frames));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
