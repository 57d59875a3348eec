//! Conversations: messages in order.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::{Extension, Json};
use serde::Deserialize;
use serde_json::{Value, json};

use super::keys::Caller;
use super::problem::{Problem, body};
use super::record::joined;
use crate::app::App;
use crate::ids;

/// Conversations of one listing.
const MOST: u32 = 200;

/// What is asked of `POST /api/v1/conversations`: nothing yet.
#[derive(Debug, Default, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewConversation {}

/// `GET /api/v1/conversations`: the caller's, newest first.
pub(super) async fn list(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<Value>, Problem> {
    let rows = app.store.conversations(&caller.owner, MOST).await?;
    let shown: Vec<Value> =
        rows.into_iter().map(|(id, created)| json!({"conversation_id": id, "created": created})).collect();
    Ok(Json(json!({ "conversations": shown })))
}

/// `POST /api/v1/conversations`
pub(super) async fn create(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    bytes: Bytes,
) -> Result<(StatusCode, Json<Value>), Problem> {
    if !bytes.is_empty() {
        let NewConversation {} = body(&bytes)?;
    }
    let (id, created) = (ids::new("conv"), ids::now());
    app.store.insert_conversation(&id, &caller.owner, &created).await?;
    Ok((StatusCode::CREATED, Json(json!({"conversation_id": id, "created": created}))))
}

/// `GET /api/v1/conversations/{id}`: its messages, oldest first, without their events.
pub(super) async fn show(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    let known = app.store.conversation(&id).await?.filter(|(owner, _)| *owner == caller.owner);
    let (_, created) = known.ok_or_else(|| Problem::not_found(format!("there is no conversation `{id}`")))?;
    let mut messages = Vec::new();
    for row in app.store.messages_of(&id).await? {
        let mut record: Value =
            row.record.as_deref().and_then(|r| serde_json::from_str(r).ok()).unwrap_or_default();
        if let Value::Object(record) = &mut record {
            record.retain(|name, _| !matches!(name.as_str(), "events" | "findings"));
        }
        messages.push(joined(&row, &row.status, record));
    }
    Ok(Json(json!({"conversation_id": id, "created": created, "messages": messages})))
}
