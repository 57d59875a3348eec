//! Prompt templates: versions that the owner stores, which override files and built-in templates.

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
    DraftQuery, NewVersion, VersionQuery, check_length, delete, document_json, load_version, store_version,
};
use crate::base::problem::{Problem, parse_body};
use crate::http::app::App;
use crate::run::dialogues::OwnerTemplates;
use crate::store::DocumentKind::Template;

/// Body of `PUT /api/v1/templates/{name}`.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewTemplate {
    /// Text of the template.
    text: String,
}

/// Describes a template: its hash, its text, and its variables by kind of placeholder: `{name}` (`script`)
/// and `{%name%}` (`system`).
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

/// `GET /api/v1/templates`: all templates that the owner can use, by id.
pub(super) async fn list(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    QueryParams(query): QueryParams<page::PageQuery>,
) -> Result<Json<Value>, Problem> {
    let templates = OwnerTemplates::load(&app, &caller.owner).await?;
    let documents = app.store.documents((&caller.owner, Template)).await?;
    let mut rows: Vec<(String, Value)> = documents
        .iter()
        .map(|document| {
            let mut row = document_json(Template, document);
            row["source"] = "stored".into();
            (document.id.clone(), row)
        })
        .collect();
    for id in templates.files.ids() {
        if !rows.iter().any(|(row_id, _)| row_id == id) {
            let source = template_source(&templates, id);
            rows.push((id.to_owned(), json!({ "template_id": id, "source": source })));
        }
    }
    rows.sort_by(|a, b| a.0.cmp(&b.0));
    query.page_of(rows).map(Json)
}

/// Returns the source of a template that is not stored: `builtin` if it equals the built-in template with
/// this id, otherwise `file`.
fn template_source(templates: &OwnerTemplates, id: &str) -> &'static str {
    let file_hash = templates.files.get(id).map(|template| template.hash()).ok();
    match find_shipped(id) {
        Some(builtin) if file_hash == Some(builtin.parse().hash()) => "builtin",
        _ => "file",
    }
}

/// `GET /api/v1/templates/{name}`: a stored version, otherwise the file or the built-in template.
pub(super) async fn show(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    QueryParams(version_query): QueryParams<VersionQuery>,
) -> Result<(ETagHeader, Json<Value>), Problem> {
    let stored_document = app.store.document((&caller.owner, Template), &id).await?;
    let tag = etag(stored_document.as_ref().map_or(0, |document| document.latest));
    // A stored template without a published version is used only if the request names a version.
    if let Some(document) =
        stored_document.filter(|document| document.published.is_some() || version_query.version.is_some())
    {
        let version = load_version(&app, &caller.owner, Template, &document, version_query.version).await?;
        let mut response = template_json(&LayeredTemplate::parse(version.text));
        response["template_id"] = id.into();
        response["source"] = "stored".into();
        response["version"] = version.version.into();
        response["published"] = json!(document.published);
        response["latest"] = document.latest.into();
        return Ok((tag, Json(response)));
    }
    let templates = OwnerTemplates::load(&app, &caller.owner).await?;
    let template = templates.files.get(&id).map_err(|error| {
        let problem = Problem::new(StatusCode::NOT_FOUND, "template_not_found", error.to_string());
        problem.with("template_id", id.as_str())
    })?;
    let mut response = template_json(&template);
    response["source"] = template_source(&templates, &id).into();
    response["template_id"] = id.into();
    Ok((tag, Json(response)))
}

/// `PUT /api/v1/templates/{name}`: stores the next version. Files are not written.
pub(super) async fn put(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    QueryParams(draft_query): QueryParams<DraftQuery>,
    headers: HeaderMap,
    bytes: Bytes,
) -> Result<(ETagHeader, Json<Value>), Problem> {
    let new_template: NewTemplate = parse_body(&bytes)?;
    let is_allowed = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    // `.` and `..` stand for folders in a path.
    let is_only_dots = id.chars().all(|c| c == '.');
    if !(1..=200).contains(&id.chars().count()) || !id.chars().all(is_allowed) || is_only_dots {
        let detail = "the id of a template must be 1 to 200 letters, digits, `_`, `-` and `.`, and not only \
                      dots";
        return Err(Problem::invalid("invalid_field", detail).with("field", "id"));
    }
    check_length(&new_template.text, "text")?;
    let template = LayeredTemplate::parse(new_template.text.as_str());
    let new_version = NewVersion { id: id.clone(), name: id.clone(), text: new_template.text };
    let version = store_version(&app, &caller.owner, &headers, Template, new_version, &draft_query).await?;
    let mut response = template_json(&template);
    if let Some(fields) = response.as_object_mut() {
        fields.shift_remove("text");
    }
    response["template_id"] = id.into();
    response["version"] = version.into();
    Ok((etag(version), Json(response)))
}

/// `DELETE /api/v1/templates/{name}`: deletes all versions of a stored template. A file or built-in one with
/// the same id applies afterwards.
pub(super) async fn remove(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<StatusCode, Problem> {
    if delete(&app, &caller.owner, &headers, Template, &id).await? {
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
