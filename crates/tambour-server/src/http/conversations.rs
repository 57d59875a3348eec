//! Conversations: listing, creation, changes, deletion, and export with their messages.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::keys::Caller;
use super::page;
use super::page::QueryParams;
use super::record;
use super::search::search;
use crate::base::ids;
use crate::base::problem::{Problem, parse_body};
use crate::http::app::App;
use crate::store::{ConversationRow, MessageRow, StoreError};

/// Approximate maximum size in bytes of a page of messages.
const PAGE_BYTES: usize = 4 << 20;
/// Maximum length of a title in characters.
const MAX_TITLE_CHARS: usize = 500;
/// Maximum length in bytes of metadata as JSON.
const MAX_METADATA_BYTES: usize = 16 << 10;

/// Body of `POST /api/v1/conversations` and `PATCH /api/v1/conversations/{id}`.
#[derive(Debug, Default, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewConversation {
    /// Title, at most 500 characters; `null` removes it.
    #[serde(default, with = "serde_with_null")]
    #[schema(value_type = Option<String>)]
    title: Option<Option<String>>,
    /// Metadata of the client, at most 16 KiB; `null` removes it.
    #[serde(default, with = "serde_with_null")]
    #[schema(value_type = Option<Object>)]
    metadata: Option<Option<Map<String, Value>>>,
}

/// Deserializes a field with a `serde` default that may be absent (`None`), `null` (`Some(None)`) or a value.
pub(super) mod serde_with_null {
    use serde::{Deserialize, Deserializer};

    pub(in crate::http) fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Option<T>>, D::Error> {
        Option::deserialize(deserializer).map(Some)
    }
}

impl NewConversation {
    /// Applies the fields that the request has; absent ones are kept.
    fn apply(self, row: &mut ConversationRow) -> Result<(), Problem> {
        let too_long = |field: &'static str, max: &str| {
            Problem::invalid("invalid_field", format!("`{field}` may have at most {max}"))
                .with("field", field)
        };
        if let Some(title) = self.title {
            if title.as_ref().is_some_and(|title| title.chars().count() > MAX_TITLE_CHARS) {
                return Err(too_long("title", "500 characters"));
            }
            row.title = title;
        }
        if let Some(metadata) = self.metadata {
            row.metadata = metadata.map(|metadata| Value::Object(metadata).to_string());
            if row.metadata.as_ref().is_some_and(|metadata| metadata.len() > MAX_METADATA_BYTES) {
                return Err(too_long("metadata", "16 KiB"));
            }
        }
        Ok(())
    }
}

/// Returns a conversation without its messages.
pub(super) fn conversation_json(row: &ConversationRow) -> Value {
    let metadata: Option<Value> = row.metadata.as_deref().and_then(|text| serde_json::from_str(text).ok());
    json!({
        "conversation_id": row.id,
        "created": row.created,
        "title": row.title,
        "metadata": metadata,
    })
}

/// Query of the listing of conversations.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ConversationQuery {
    limit: Option<u32>,
    after: Option<String>,
    /// Text to search for in titles and messages.
    q: Option<String>,
}

/// `GET /api/v1/conversations`: conversations of the caller, newest first; with `q` those that contain a
/// text.
pub(super) async fn list(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    QueryParams(query): QueryParams<ConversationQuery>,
) -> Result<Json<Value>, Problem> {
    let (after, limit) = (query.after.as_deref(), page::check_limit(query.limit)?);
    if let Some(after) = after {
        find_owned(&app, &caller, after).await.map_err(|_| page::unknown_cursor(after))?;
    }
    if let Some(text) = &query.q {
        return search(&app, &caller.owner, text, after, limit).await.map(Json);
    }
    let page = app.store.conversations(&caller.owner, after, limit).await?;
    Ok(Json(page::page_json(page, |row| conversation_json(&row))))
}

/// `POST /api/v1/conversations`
pub(super) async fn create(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    bytes: Bytes,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let request = if bytes.is_empty() { NewConversation::default() } else { parse_body(&bytes)? };
    let mut row = ConversationRow {
        id: ids::new_id("conv"),
        owner: caller.owner,
        created: ids::now(),
        ..ConversationRow::default()
    };
    request.apply(&mut row)?;
    app.store.insert_conversation(&row).await?;
    Ok((StatusCode::CREATED, Json(conversation_json(&row))))
}

/// `GET /api/v1/conversations/{id}`: a conversation with a page of its messages, oldest first, without their
/// events.
pub(super) async fn show(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    QueryParams(query): QueryParams<page::PageQuery>,
) -> Result<Json<Value>, Problem> {
    let row = find_owned(&app, &caller, &id).await?;
    let after_number = match query.after() {
        None => 0,
        Some(after) => {
            let number = app.store.message_number(&id, after).await?;
            number.ok_or_else(|| page::unknown_cursor(after))?
        }
    };
    let page = app.store.conversation_messages(&id, after_number, query.limit()?, PAGE_BYTES).await?;
    let mut conversation = conversation_json(&row);
    conversation["messages"] = page.rows.iter().map(message_json).collect();
    conversation["has_more"] = page.has_more.into();
    Ok(Json(conversation))
}

fn message_json(row: &MessageRow) -> Value {
    let summary = row.outcome.as_ref().and_then(|outcome| serde_json::from_str(&outcome.summary).ok());
    record::record_json(row, &row.status, summary.unwrap_or_default())
}

/// `PATCH /api/v1/conversations/{id}`: changes title and metadata; absent fields are kept.
pub(super) async fn change(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    bytes: Bytes,
) -> Result<Json<Value>, Problem> {
    let request: NewConversation = parse_body(&bytes)?;
    let mut row = find_owned(&app, &caller, &id).await?;
    request.apply(&mut row)?;
    app.store.change_conversation(&row).await?;
    Ok(Json(conversation_json(&row)))
}

/// `DELETE /api/v1/conversations/{id}`: deletes a conversation with all its messages; running ones are
/// cancelled first.
pub(super) async fn remove(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    find_owned(&app, &caller, &id).await?;
    let task_app = app.clone();
    app.run_to_completion(async move {
        // No message begins in the conversation from here on.
        task_app.store.close_conversation(&id).await?;
        // Independent of the database: running messages end even if the deletion fails and the conversation
        // is reopened.
        task_app.cancel_runs(task_app.running.conversation_messages(&id)).await;
        task_app.store.delete_conversation(&id).await?;
        task_app.memory_responses.drop_stale(Some(&id));
        task_app.deletion_notify.notify_one();
        Ok(StatusCode::NO_CONTENT)
    })
    .await
}

/// `GET /api/v1/conversations/{id}/export`: JSON Lines with the conversation first, then one record per
/// message.
pub(super) async fn export(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let row = find_owned(&app, &caller, &id).await?;
    let first_line = format!("{}\n", conversation_json(&row));
    let lines = futures_util::stream::unfold(
        ConversationExport { app, id, first_line: Some(first_line), last_number: 0 },
        ConversationExport::next,
    );
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/jsonl; charset=utf-8")),
        (
            header::CONTENT_DISPOSITION,
            HeaderValue::from_static("attachment; filename=\"conversation.jsonl\""),
        ),
    ];
    Ok((headers, Body::from_stream(lines)).into_response())
}

/// Export in progress. Holds one message at a time in memory.
struct ConversationExport {
    app: Arc<App>,
    id: String,
    /// Line of the conversation itself; taken when it is written.
    first_line: Option<String>,
    /// Number of the last written message. It stays valid if that message is deleted meanwhile.
    last_number: i64,
}

impl ConversationExport {
    /// Returns the next line with the export itself, as `unfold` expects; `None` at the end.
    async fn next(mut self) -> Option<(Result<String, StoreError>, ConversationExport)> {
        if let Some(first_line) = self.first_line.take() {
            return Some((Ok(first_line), self));
        }
        match self.next_line().await {
            Ok(None) => None,
            Ok(Some(line)) => Some((Ok(line), self)),
            Err(error) => Some((Err(error), self)),
        }
    }

    /// Returns the line of the next message; `None` after the last one.
    async fn next_line(&mut self) -> Result<Option<String>, StoreError> {
        // One row without its details, which are loaded below. A page has at least one row, even within 0
        // bytes.
        let page = self.app.store.conversation_messages(&self.id, self.last_number, 1, 0).await?;
        let Some(row) = page.rows.into_iter().next() else { return Ok(None) };
        // Every message of a conversation has a number; a row without one would end the export.
        self.last_number = row.number.unwrap_or(i64::MAX);
        // A message that was deleted between the two reads is left out of the export.
        let Some(row) = self.app.store.message(&row.id).await? else { return Ok(Some(String::new())) };
        let record = record::full_record(&self.app, &row).await?;
        Ok(Some(format!("{record}\n")))
    }
}

/// Returns the conversation with that id if it is the caller's.
pub(super) async fn find_owned(app: &App, caller: &Caller, id: &str) -> Result<ConversationRow, Problem> {
    let row = app.store.conversation(id).await?;
    row.filter(|row| row.owner == caller.owner)
        .ok_or_else(|| Problem::not_found(format!("there is no conversation `{id}`")))
}
