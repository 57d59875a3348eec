//! Prompt templates: the owner's versions, which override files and built-in ones.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::{Extension, Json};
use serde::Deserialize;
use serde_json::{Value, json};
use tambour_prompt::template::{Layer, LayeredTemplate, find_shipped};

use super::if_match::{ETagHeader, etag};
use super::keys::Caller;
use super::page;
use super::page::QueryParams;
use super::versions::{
    DraftQuery, VersionQuery, check_length, delete, document_json, load_version, store_version,
};
use crate::base::problem::{Problem, parse_body};
use crate::http::app::App;
use crate::run::dialogues::OwnerTemplates;
use crate::store::DocumentKind::Template as Kind;

/// Body of `PUT /api/v1/templates/{id}`.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewTemplate {
    /// Text of the template.
    text: String,
}

fn template_json(template: &LayeredTemplate) -> Value {
    json!({
        "hash": template.hash(),
        "text": template.source(),
        "variables": {
            "script": template.variables(Layer::Script),
            "system": template.variables(Layer::System),
        },
    })
}

/// `GET /api/v1/templates`: all usable templates by id.
pub(super) async fn list(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    QueryParams(query): QueryParams<page::PageQuery>,
) -> Result<Json<Value>, Problem> {
    let prompts = OwnerTemplates::load(&app, &caller.owner).await?;
    let documents = app.store.documents((&caller.owner, Kind)).await?;
    let mut rows: Vec<(String, Value)> = documents
        .iter()
        .map(|document| {
            let mut row = document_json(Kind, document);
            row["source"] = "stored".into();
            (document.id.clone(), row)
        })
        .collect();
    for id in prompts.files.ids() {
        if !rows.iter().any(|(row_id, _)| row_id == id) {
            rows.push((id.to_owned(), json!({ "template_id": id, "source": template_source(&prompts, id) })));
        }
    }
    rows.sort_by(|a, b| a.0.cmp(&b.0));
    query.page_of(rows).map(Json)
}

/// Returns the source of a template that is not stored.
fn template_source(prompts: &OwnerTemplates, id: &str) -> &'static str {
    let file = prompts.files.get(id).map(|template| template.hash()).ok();
    match find_shipped(id) {
        Some(builtin) if file == Some(builtin.parse().hash()) => "builtin",
        _ => "file",
    }
}

/// `GET /api/v1/templates/{id}`
pub(super) async fn show(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    QueryParams(version_query): QueryParams<VersionQuery>,
) -> Result<(ETagHeader, Json<Value>), Problem> {
    let stored_document = app.store.document((&caller.owner, Kind), &id).await?;
    let tag = etag(stored_document.as_ref().map_or(0, |document| document.latest));
    if let Some(document) =
        stored_document.filter(|document| document.published.is_some() || version_query.version.is_some())
    {
        let version = load_version(&app, &caller.owner, Kind, &document, version_query.version).await?;
        let mut found = template_json(&LayeredTemplate::parse(version.text));
        found["template_id"] = id.into();
        found["source"] = "stored".into();
        found["version"] = version.version.into();
        found["published"] = json!(document.published);
        found["latest"] = document.latest.into();
        return Ok((tag, Json(found)));
    }
    let prompts = OwnerTemplates::load(&app, &caller.owner).await?;
    let template = prompts.files.get(&id).map_err(|error| {
        let problem = Problem::new(StatusCode::NOT_FOUND, "template_not_found", error.to_string());
        problem.with("template_id", id.as_str())
    })?;
    let mut found = template_json(&template);
    found["source"] = template_source(&prompts, &id).into();
    found["template_id"] = id.into();
    Ok((tag, Json(found)))
}

/// `PUT /api/v1/templates/{id}`: stores the next version. Files are not written.
pub(super) async fn put(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    QueryParams(draft): QueryParams<DraftQuery>,
    headers: HeaderMap,
    bytes: Bytes,
) -> Result<(ETagHeader, Json<Value>), Problem> {
    let new: NewTemplate = parse_body(&bytes)?;
    let is_allowed = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    // Dots alone could be taken for a folder in a path.
    let is_path = id.chars().all(|c| c == '.');
    if !(1..=200).contains(&id.chars().count()) || !id.chars().all(is_allowed) || is_path {
        let detail = "the id of a template must be 1 to 200 letters, digits, `_`, `-` and `.`, and not only \
                      dots";
        return Err(Problem::invalid("invalid_field", detail).with("field", "id"));
    }
    check_length(&new.text, "text")?;
    let template = LayeredTemplate::parse(new.text.as_str());
    let author = (caller.owner.as_str(), &headers);
    let version = store_version(&app, author, Kind, (id.clone(), id.clone()), new.text, &draft).await?;
    let mut answer = template_json(&template);
    if let Some(fields) = answer.as_object_mut() {
        fields.shift_remove("text");
    }
    answer["template_id"] = id.into();
    answer["version"] = version.into();
    Ok((etag(version), Json(answer)))
}

/// `DELETE /api/v1/templates/{id}`: deletes all versions of a stored template. A file or built-in one with
/// the same id applies afterwards.
pub(super) async fn remove(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<StatusCode, Problem> {
    if delete(&app, (&caller.owner, &headers), Kind, &id).await? {
        return Ok(StatusCode::NO_CONTENT);
    }
    let has_file = OwnerTemplates::load(&app, &caller.owner).await?.files.get(&id).is_ok();
    let detail = match has_file {
        true => {
            format!("`{id}` is not a stored template but a file or a built-in one, which cannot be deleted")
        }
        false => format!("there is no template `{id}`"),
    };
    let problem = Problem::new(StatusCode::NOT_FOUND, "template_not_found", detail);
    Err(problem.with("template_id", id.as_str()))
}
