//! `GET` and `DELETE /messages/{id}`: the record.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::{Extension, Json};
use serde_json::{Value, json};

use super::keys::Caller;
use super::messages::owned;
use super::problem::Problem;
use crate::app::App;
use crate::history::Sent;
use crate::record::{Timings, fold};
use crate::store::{MessageRow, StoreError};

/// The record of a message: raw reply, events, findings, prompt, usage, timings. While it runs, what there is so far.
pub(super) async fn show(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    let row = owned(&app, &caller, &id).await?;
    Ok(Json(of(&app, &row).await?))
}

/// `DELETE /api/v1/messages/{id}`: gone, with its log; if it runs, it is cancelled first.
pub(super) async fn remove(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    owned(&app, &caller, &id).await?;
    let work = app.clone();
    app.undisturbed(async move {
        work.end_all(|row| row.id == id).await?;
        work.claims.forget(Some(&id));
        work.store.delete_messages(&[id]).await?;
        work.deleted.notify_one();
        Ok(StatusCode::NO_CONTENT)
    })
    .await
}

/// The record of a message.
pub(super) async fn of(app: &App, row: &MessageRow) -> Result<Value, StoreError> {
    let (status, mut record) = match &row.outcome {
        Some(outcome) => {
            let mut record: Value = serde_json::from_str(&outcome.summary).unwrap_or_default();
            let details = outcome.details.as_deref().map(serde_json::from_str::<Value>);
            if let (Value::Object(record), Some(Ok(Value::Object(details)))) = (&mut record, details) {
                record.extend(details);
            }
            (row.status.as_str(), record)
        }
        // The end may be on the log already: a client that has seen it is told the same here.
        None => fold(&*app.store, &row.id).await?.into_record(Timings::default(), &row.request, &app.own()),
    };
    if let Some(sent) = record.get_mut("prompt") {
        let kept: Sent = serde_json::from_value(sent.take()).unwrap_or_default();
        *sent = json!(kept.messages(app).await?);
    }
    Ok(joined(row, status, record))
}

/// The row's own fields, then those of the record.
pub(super) fn joined(row: &MessageRow, status: &str, record: Value) -> Value {
    let request: Value = serde_json::from_str(&row.request).unwrap_or_default();
    let mut shown = json!({
        "message_id": row.id,
        "conversation_id": row.conversation_id,
        "request_id": row.request_id,
        "created": row.created,
        "status": status,
        "request": request,
    });
    if let (Value::Object(shown), Value::Object(record)) = (&mut shown, record) {
        shown.extend(record);
    }
    shown
}
