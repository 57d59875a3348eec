//! Records of messages: `GET` and `DELETE /api/v1/messages/{id}`, and records as parts of other responses.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::{Extension, Json};
use serde_json::{Value, json};

use super::keys::Caller;
use super::messages::find_owned;
use crate::base::problem::Problem;
use crate::http::app::App;
use crate::record::history::PromptRecord;
use crate::record::{Timings, fold_log};
use crate::run::live_run::LiveRun;
use crate::store::{MessageRow, StoreError};

/// `GET /api/v1/messages/{id}`: the record of a message, with raw reply, events, findings, prompt, usage and
/// timings. While the message runs, the record contains what exists so far.
pub(super) async fn show(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    let row = find_owned(&app, &caller, &id).await?;
    Ok(Json(full_record(&app, &row).await?))
}

/// `DELETE /api/v1/messages/{id}`: deletes a message with its log; a running one is cancelled first.
pub(super) async fn remove(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    find_owned(&app, &caller, &id).await?;
    delete(&app, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Deletes a message with its log; a running one is cancelled first.
pub(super) async fn delete(app: &Arc<App>, id: String) -> Result<(), Problem> {
    let task_app = app.clone();
    app.run_to_completion(async move { cancel_and_delete(&task_app, id).await }).await
}

/// Spawns a task that deletes a message as soon as it has ended and has no reader, for clients that do not
/// want it to be stored.
pub(super) fn delete_when_read(app: &Arc<App>, live_run: Arc<LiveRun>) {
    let task_app = app.clone();
    app.run_tasks.spawn(async move {
        live_run.wait_over().await;
        live_run.wait_no_readers().await;
        if let Err(problem) = cancel_and_delete(&task_app, live_run.id.clone()).await {
            tracing::error!(
                message_id = live_run.id,
                ?problem,
                "a message that must not be kept could not be deleted"
            );
        }
    });
}

async fn cancel_and_delete(app: &App, id: String) -> Result<(), Problem> {
    app.cancel_messages(|row| row.id == id).await?;
    app.memory_responses.drop_stale(Some(&id));
    app.store.delete_messages(&[id]).await?;
    app.deletion_notify.notify_one();
    Ok(())
}

/// Returns the status of a message, and its record as it is stored: the prompt refers to earlier messages by
/// their ids.
pub(super) async fn stored_record(app: &App, row: &MessageRow) -> Result<(String, Value), StoreError> {
    Ok(match &row.outcome {
        Some(outcome) => {
            let mut record: Value = serde_json::from_str(&outcome.summary).unwrap_or_default();
            let details = outcome.details.as_deref().map(serde_json::from_str::<Value>);
            if let (Value::Object(record), Some(Ok(Value::Object(details)))) = (&mut record, details) {
                record.extend(details);
            }
            (row.status.clone(), record)
        }
        // Without a stored outcome the record is folded from the log. The log may already contain the end, so
        // a client that has seen the end gets the result too.
        None => {
            let fold = fold_log(&*app.store, &row.id).await?;
            let (status, record) =
                fold.into_record(Timings::default(), &row.request, &app.reading_defaults());
            (status.to_owned(), record)
        }
    })
}

/// Returns the record of a message, with the messages of its prompt loaded.
pub(super) async fn full_record(app: &App, row: &MessageRow) -> Result<Value, StoreError> {
    let (status, mut record) = stored_record(app, row).await?;
    if let Some(prompt) = record.get_mut("prompt") {
        let prompt_record: PromptRecord = serde_json::from_value(prompt.take()).unwrap_or_default();
        *prompt = json!(prompt_record.load_messages(&*app.store, &app.reading_defaults()).await?);
    }
    Ok(record_json(row, &status, record))
}

/// Combines the fields of the row with those of the record. Shows `status` instead of the row's status.
pub(super) fn record_json(row: &MessageRow, status: &str, record: Value) -> Value {
    let mut request: Value = serde_json::from_str(&row.request).unwrap_or_default();
    let replaced_id = request.as_object_mut().and_then(|request| request.shift_remove("in_place_of"));
    let mut json = json!({
        "message_id": row.id,
        "conversation_id": row.conversation_id,
        "request_id": row.request_id,
        "created": row.created,
        "status": status,
        "current": status != "superseded",
        "request": request,
    });
    if let Some(replaced_id) = replaced_id {
        json["in_place_of"] = replaced_id;
    }
    if let (Value::Object(json), Value::Object(record)) = (&mut json, record) {
        json.extend(record);
    }
    json
}
