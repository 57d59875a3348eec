//! `GET /messages/{id}`: the record.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::{Extension, Json};
use serde_json::{Value, json};

use super::keys::Caller;
use super::messages::owned;
use super::problem::Problem;
use crate::app::App;
use crate::history::Again;
use crate::record::{Timings, fold};
use crate::store::MessageRow;

/// The record of a message: raw reply, events, findings, prompt, usage, timings. While it runs, what there is so far.
pub(super) async fn show(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    let row = owned(&app, &caller, &id).await?;
    let stored = row.record.as_deref().and_then(|record| serde_json::from_str(record).ok());
    let (status, record) = match stored {
        Some(record) => (row.status.clone(), record),
        // The end may be on the log already: a client that has seen it is told the same here.
        None => {
            let again = Again::of(&row, &app.own());
            let (status, record) = fold(&app.store, &id).await?.into_record(Timings::default(), &again);
            (status.to_owned(), record)
        }
    };
    Ok(Json(joined(&row, &status, record)))
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
