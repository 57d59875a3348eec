//! `POST /messages`, `POST /messages/{id}/regenerate` and `POST /messages/{id}/cancel`.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde_json::{Value, json};
use tambour::lex::weight::weigh;

use super::events::{self, Reader};
use super::idempotency::{key as idempotency, reused, since};
use super::keys::Caller;
use super::new_message::NewMessage;
use super::problem::{Problem, body};
use super::record;
use super::request::RequestId;
use crate::app::App;
use crate::aside::in_place;
use crate::ask::{self, Started};
use crate::live::Reading;
use crate::memory::{self, Hold};
use crate::states;
use crate::store::{MessageRow, RunKind};
use crate::streams::Opened;

/// `POST /api/v1/messages`
pub(super) async fn create(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Extension(RequestId(request_id)): Extension<RequestId>,
    headers: HeaderMap,
    bytes: Bytes,
) -> Result<Response, Problem> {
    let mut new: NewMessage = body(&bytes)?;
    new.settle(&app)?;
    let repeat = idempotency(&headers)?;
    if let Some(repeat) = &repeat
        && let Some(row) = app.store.repeated(&caller.owner, repeat, &since()).await?
    {
        return again(app, &caller, row, &new).await;
    }
    let opened = new.stream.then(|| events::open(&app, &caller)).transpose()?;
    let asked = new.asked(&app, &caller, request_id, repeat).await?;
    let Started { row, reading, repeated } = ask::start(&app, asked).await?;
    let row = MessageRow::clone(&row);
    if repeated {
        drop(opened);
        return again(app, &caller, row, &new).await;
    }
    answer(app, row, &new, reading, opened).await
}

/// Responds to a repeated request of the last day; another request with the same key is refused.
async fn again(
    app: Arc<App>,
    caller: &Caller,
    row: MessageRow,
    new: &NewMessage,
) -> Result<Response, Problem> {
    let (before, now): (Value, Value) = (serde_json::from_str(&row.request).unwrap_or_default(), json!(new));
    if before != now {
        return Err(reused());
    }
    let opened = new.stream.then(|| events::open(&app, caller)).transpose()?;
    let live = app.live.get(&row.id).filter(|_| new.stream || new.wait);
    let reading = live.map(|live| live.read());
    answer(app, row, new, reading, opened).await
}

/// Responds with the events, the record or the id of a message.
async fn answer(
    app: Arc<App>,
    row: MessageRow,
    new: &NewMessage,
    reading: Option<Reading>,
    opened: Option<Opened>,
) -> Result<Response, Problem> {
    if let Some(opened) = opened {
        return Ok(events::response(app, Reader::native(&row, new, reading, 0), opened));
    }
    if new.wait {
        if let Some(reading) = reading {
            reading.live().ended().await;
        }
        let row = app.store.message(&row.id).await?.unwrap_or(row);
        return Ok(Json(record::of(&app, &row).await?).into_response());
    }
    let answer = json!({
        "message_id": row.id,
        "conversation_id": row.conversation_id,
        "request_id": row.request_id,
    });
    let place = format!("/api/v1/messages/{}/events", row.id);
    Ok((StatusCode::ACCEPTED, [(header::LOCATION, place)], Json(answer)).into_response())
}

/// `POST /api/v1/messages/{id}/regenerate`: creates another message in its place, with the same request. That
/// one and all later ones are superseded, and their state updates are undone first (F-116).
pub(super) async fn regenerate(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Extension(RequestId(request_id)): Extension<RequestId>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let old = owned(&app, &caller, &id).await?;
    // Parsing the stored request takes memory too.
    let weight = in_place(|| weigh(old.request.as_bytes()));
    let work = app.memory.work(&caller.owner, memory::worked(weight.bytes)).await?;
    let caller = Caller { hold: Hold::new(&weight, [work]), ..caller };
    let mut new = NewMessage::again(&old)?;
    new.settle(&app)?;
    new.in_place_of = Some(old.id.clone());
    let mut asked = new.asked(&app, &caller, request_id, None).await?;
    // Messages running from that one on are cancelled.
    let work = app.clone();
    let (conversation, number) = (old.conversation_id.clone(), old.number);
    app.undisturbed(async move {
        work.end_all(|row| row.conversation_id == conversation && row.number >= number).await
    })
    .await?;
    let turn = states::turn(&app, &old.conversation_id).await?;
    asked.instead = Some((old.id, turn));
    let Started { row, reading, .. } = ask::start(&app, asked).await?;
    answer(app, MessageRow::clone(&row), &new, reading, None).await
}

/// `POST /api/v1/messages/{id}/cancel`: cancels the message with its upstream call. An ended message is
/// unchanged.
pub(super) async fn cancel(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let row = owned(&app, &caller, &id).await?;
    let Some(live) = app.live.get(&id).filter(|_| row.status == "running") else {
        // It may have ended in between.
        let status =
            if row.status == "running" { owned(&app, &caller, &id).await?.status } else { row.status };
        return Ok((StatusCode::OK, Json(json!({"message_id": id, "status": status}))));
    };
    live.cancel.cancel();
    Ok((StatusCode::ACCEPTED, Json(json!({"message_id": id, "status": "cancelling"}))))
}

/// Returns the message with that id if it is the caller's.
pub(super) async fn owned(app: &App, caller: &Caller, id: &str) -> Result<MessageRow, Problem> {
    let row = app.store.message(id).await?;
    row.filter(|row| row.owner == caller.owner && row.kind == RunKind::Message)
        .ok_or_else(|| Problem::not_found(format!("there is no message `{id}`")))
}
