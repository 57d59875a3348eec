//! Messages: creating, regenerating and cancelling them. Their records are in `record`, their events in
//! `events`.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde_json::{Value, json};
use tambour::lex::weight::weigh;

use super::events::{self, EventReader};
use super::idempotency::{read_key, reused_key_problem};
use super::keys::Caller;
use super::new_message::NewMessage;
use super::record;
use super::request::RequestId;
use crate::base::cpu_pool::run_in_place;
use crate::base::memory::{self, MemoryHold};
use crate::base::problem::{Problem, parse_body};
use crate::http::app::App;
use crate::http::streams::OpenStream;
use crate::run::live_run::ReaderGuard;
use crate::run::message_start::{self, StartedMessage};
use crate::run::request_repeats::repeat_since;
use crate::run::states;
use crate::store::{MessageRow, RunKind};

/// `POST /api/v1/messages`: starts a message; responds with its id, its events (`stream`) or its record
/// (`wait`).
pub(super) async fn create(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Extension(RequestId(request_id)): Extension<RequestId>,
    headers: HeaderMap,
    bytes: Bytes,
) -> Result<Response, Problem> {
    let mut new_message: NewMessage = parse_body(&bytes)?;
    new_message.check(&app)?;
    let idempotency_key = read_key(&headers)?;
    if let Some(idempotency_key) = &idempotency_key
        && let Some(row) = app.store.message_by_key(&caller.owner, idempotency_key, &repeat_since()).await?
    {
        return respond_repeated(app, &caller, row, &new_message).await;
    }
    let event_stream = new_message.stream.then(|| events::open_stream(&app, &caller)).transpose()?;
    let start_request = new_message.to_start_request(&app, &caller, request_id, idempotency_key).await?;
    let StartedMessage { row, reader: reader_guard, is_repeated } =
        message_start::start_message(&app, start_request).await?;
    let row = MessageRow::clone(&row);
    if is_repeated {
        // `respond_repeated` opens a stream itself, so this one must no longer count.
        drop(event_stream);
        return respond_repeated(app, &caller, row, &new_message).await;
    }
    respond(app, row, &new_message, reader_guard, event_stream).await
}

/// Responds to a repeated request as to the first one, whose message is `row`. Another request with the same
/// idempotency key is refused.
async fn respond_repeated(
    app: Arc<App>,
    caller: &Caller,
    row: MessageRow,
    new_message: &NewMessage,
) -> Result<Response, Problem> {
    let (first_request, this_request): (Value, Value) =
        (serde_json::from_str(&row.request).unwrap_or_default(), json!(new_message));
    if first_request != this_request {
        return Err(reused_key_problem());
    }
    let event_stream = new_message.stream.then(|| events::open_stream(&app, caller)).transpose()?;
    // A client that gets only the id is not a reader.
    let live_run = app.running.get(&row.id).filter(|_| new_message.stream || new_message.wait);
    let reader_guard = live_run.map(|live_run| live_run.add_reader());
    respond(app, row, new_message, reader_guard, event_stream).await
}

/// Responds with the events, the record or the id of a message.
async fn respond(
    app: Arc<App>,
    row: MessageRow,
    new_message: &NewMessage,
    reader_guard: Option<ReaderGuard>,
    event_stream: Option<OpenStream>,
) -> Result<Response, Problem> {
    if let Some(event_stream) = event_stream {
        return Ok(events::stream_response(
            app,
            EventReader::of_request(&row, new_message, reader_guard, 0),
            event_stream,
        ));
    }
    if new_message.wait {
        if let Some(reader_guard) = reader_guard {
            reader_guard.live_run().wait_over().await;
        }
        let row = app.store.message(&row.id).await?.unwrap_or(row);
        return Ok(Json(record::full_record(&app, &row).await?).into_response());
    }
    let answer = json!({
        "message_id": row.id,
        "conversation_id": row.conversation_id,
        "request_id": row.request_id,
    });
    let location = format!("/api/v1/messages/{}/events", row.id);
    Ok((StatusCode::ACCEPTED, [(header::LOCATION, location)], Json(answer)).into_response())
}

/// `POST /api/v1/messages/{id}/regenerate`: creates a message with the same request in place of an old one.
/// The old message and all later ones are superseded, and their state updates are undone first (F-116).
pub(super) async fn regenerate(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Extension(RequestId(request_id)): Extension<RequestId>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let old_message = find_owned(&app, &caller, &id).await?;
    // Parsing the stored request takes memory too.
    let weight = run_in_place(|| weigh(old_message.request.as_bytes()));
    let permit = app.memory.reserve_work(&caller.owner, memory::work_bytes(weight.bytes)).await?;
    let caller = Caller { memory: MemoryHold::new(&weight, [permit]), ..caller };
    let mut new_message = NewMessage::from_stored(&old_message)?;
    new_message.check(&app)?;
    new_message.in_place_of = Some(old_message.id.clone());
    let mut start_request = new_message.to_start_request(&app, &caller, request_id, None).await?;
    // The old message and later ones are cancelled if they are running.
    let task_app = app.clone();
    let (conversation, number) = (old_message.conversation_id.clone(), old_message.number);
    app.run_to_completion(async move {
        task_app.cancel_messages(|row| row.conversation_id == conversation && row.number >= number).await
    })
    .await?;
    let conversation_lock = states::lock_conversation(&app, &old_message.conversation_id).await?;
    start_request.replaces = Some((old_message.id, conversation_lock));
    let StartedMessage { row, reader: reader_guard, .. } =
        message_start::start_message(&app, start_request).await?;
    respond(app, MessageRow::clone(&row), &new_message, reader_guard, None).await
}

/// `POST /api/v1/messages/{id}/cancel`: cancels the message with its upstream call. An ended message is
/// unchanged.
pub(super) async fn cancel(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let row = find_owned(&app, &caller, &id).await?;
    let Some(live_run) = app.running.get(&id).filter(|_| row.status == "running") else {
        // A row that says `running` is read again: the message may have ended after the first read.
        let status =
            if row.status == "running" { find_owned(&app, &caller, &id).await?.status } else { row.status };
        return Ok((StatusCode::OK, Json(json!({"message_id": id, "status": status}))));
    };
    live_run.cancel.cancel();
    Ok((StatusCode::ACCEPTED, Json(json!({"message_id": id, "status": "cancelling"}))))
}

/// Returns the message with that id if it is the caller's.
pub(super) async fn find_owned(app: &App, caller: &Caller, id: &str) -> Result<MessageRow, Problem> {
    let row = app.store.message(id).await?;
    row.filter(|row| row.owner == caller.owner && row.kind == RunKind::Message)
        .ok_or_else(|| Problem::not_found(format!("there is no message `{id}`")))
}
