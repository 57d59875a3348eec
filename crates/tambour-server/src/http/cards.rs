//! Imported cards and lorebooks: listing, content and deletion. `imports` adds them.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::Deserialize;
use serde_json::{Value, json};
use tambour_prompt::skein::from_import;

use super::keys::Caller;
use super::page;
use super::page::QueryParams;
use crate::base::problem::Problem;
use crate::http::app::App;
use crate::run::skeins::{missing_import, reparse_import};
use crate::store::{ImportKind, ImportRow};

/// Query of a card or lorebook.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CardQuery {
    #[serde(default)]
    format: CardFormat,
}

/// Form in which a card or lorebook is returned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum CardFormat {
    /// Parsed content.
    #[default]
    Read,
    /// V3 JSON, with everything that the file contained.
    V3,
    /// Original file.
    Original,
}

/// Returns the name of the field with the id of a card or lorebook.
pub(super) fn id_field(kind: ImportKind) -> &'static str {
    match kind {
        ImportKind::Card => "card_id",
        ImportKind::Lorebook => "lorebook_id",
    }
}

/// Describes an imported file, without its content.
fn import_json(kind: ImportKind, row: &ImportRow) -> Value {
    let mut json = json!({ id_field(kind): row.id });
    json["name"] = row.name.as_str().into();
    json["file"] = row.file.as_str().into();
    json["version"] = row.version.as_str().into();
    json["entry_count"] = row.entries.into();
    json["created"] = row.created.as_str().into();
    json["size"] = row.size.into();
    json
}

async fn list(
    app: &App,
    caller: &Caller,
    kind: ImportKind,
    query: &page::PageQuery,
) -> Result<Json<Value>, Problem> {
    let rows = app.store.imports(&caller.owner, kind).await?;
    query
        .page_of(rows.iter().map(|import| (import.id.clone(), import_json(kind, import))).collect())
        .map(Json)
}

async fn show(
    app: &App,
    caller: &Caller,
    kind: ImportKind,
    id: &str,
    format: CardFormat,
) -> Result<Response, Problem> {
    let not_found = || missing_import(kind, id);
    let row = app.store.import(&caller.owner, kind, id).await?.ok_or_else(not_found)?;
    let bytes = app.store.import_bytes(&caller.owner, kind, id).await?.ok_or_else(not_found)?;
    if format == CardFormat::Original {
        let headers = [
            (header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream")),
            // Untrusted content must not be shown as a page.
            (header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment")),
            (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        ];
        return Ok((headers, bytes).into_response());
    }
    app.cpu_pool
        .run(&caller.owner, move || {
            let imported_file = reparse_import(&row.file, &bytes)?;
            if format == CardFormat::V3 {
                return Ok(Json(imported_file.export()).into_response());
            }
            let mut json = import_json(kind, &row);
            if let Some(card) = &imported_file.card {
                json["card"] = json!(card);
            }
            if let Some(book) = &imported_file.book {
                json["book"] = json!(book);
            }
            json["entries"] = json!(imported_file.entries);
            json["warnings"] = json!(imported_file.warnings);
            json["skein"] = from_import(&imported_file).to_value();
            Ok(Json(json).into_response())
        })
        .await?
}

async fn remove(app: &Arc<App>, caller: Caller, kind: ImportKind, id: String) -> Result<StatusCode, Problem> {
    let task_app = app.clone();
    app.run_to_completion(async move {
        if !task_app.store.delete_import(&caller.owner, kind, &id).await? {
            return Err(missing_import(kind, &id));
        }
        task_app.memory_responses.drop_stale(Some(&id));
        task_app.deletion_notify.notify_one();
        Ok(StatusCode::NO_CONTENT)
    })
    .await
}

/// `GET /api/v1/cards`: newest first.
pub(super) async fn list_cards(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    QueryParams(query): QueryParams<page::PageQuery>,
) -> Result<Json<Value>, Problem> {
    list(&app, &caller, ImportKind::Card, &query).await
}

/// `GET /api/v1/lorebooks`: newest first.
pub(super) async fn list_books(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    QueryParams(query): QueryParams<page::PageQuery>,
) -> Result<Json<Value>, Problem> {
    list(&app, &caller, ImportKind::Lorebook, &query).await
}

/// `GET /api/v1/cards/{id}`
pub(super) async fn show_card(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    QueryParams(query): QueryParams<CardQuery>,
) -> Result<Response, Problem> {
    show(&app, &caller, ImportKind::Card, &id, query.format).await
}

/// `GET /api/v1/lorebooks/{id}`
pub(super) async fn show_book(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    QueryParams(query): QueryParams<CardQuery>,
) -> Result<Response, Problem> {
    show(&app, &caller, ImportKind::Lorebook, &id, query.format).await
}

/// `DELETE /api/v1/cards/{id}`: deletes a card with its file. Messages keep the prompts made from it.
pub(super) async fn remove_card(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    remove(&app, caller, ImportKind::Card, id).await
}

/// `DELETE /api/v1/lorebooks/{id}`: deletes a lorebook with its file.
pub(super) async fn remove_book(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    remove(&app, caller, ImportKind::Lorebook, id).await
}
