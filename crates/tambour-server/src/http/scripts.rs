//! Dialogue scripts: versions of their text, stored as written.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::{Extension, Json};
use serde::Deserialize;
use serde_json::{Value, json};
use tambour::options::Language;
use tambour_prompt::dialogue::check::check_all_in_languages;
use tambour_prompt::script::{ScriptProblem as ScriptFault, load_with_language};

use super::if_match::{ETagHeader, etag};
use super::keys::Caller;
use super::page;
use super::page::QueryParams;
use super::versions::{
    DraftQuery, NewVersion, VersionQuery, check_length, check_name, delete, document_json, find_owned,
    load_version, missing_document, store_version,
};
use crate::base::ids;
use crate::base::problem::{Problem, parse_body};
use crate::http::app::App;
use crate::run::dialogues::OwnerTemplates;
use crate::store::DocumentKind::Script;

/// Body of `POST /api/v1/scripts` and `PUT /api/v1/scripts/{id}`.
#[derive(Clone, Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewScript {
    /// Display name; `PUT` keeps the current one if absent.
    #[serde(default)]
    name: Option<String>,
    /// Text of the script.
    yaml: String,
    /// Language of messages about the script, `zh` or `en`; that of the setting if absent.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    text_language: Option<Language>,
}

/// Body of `POST /api/v1/scripts/validate`.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScriptText {
    /// Text of the script.
    yaml: String,
    /// Language of messages about the script, `zh` or `en`; that of the setting if absent.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    text_language: Option<Language>,
}

/// Maximum length in bytes of a script that is checked without the CPU pool. Lower than for other requests,
/// since a check takes much longer than parsing.
const INLINE_SCRIPT_BYTES: usize = 4 << 10;

/// Faults of a script: errors prevent it from running, warnings do not.
struct ScriptFaults {
    errors: Vec<Value>,
    warnings: Vec<Value>,
}

/// Checks a script. Messages are in `language`, or in the language of the settings.
async fn check_script(
    app: &App,
    owner: &str,
    yaml: &str,
    language: Option<Language>,
) -> Result<ScriptFaults, Problem> {
    check_length(yaml, "yaml")?;
    let templates = OwnerTemplates::load(app, owner).await?;
    let limits = app.loaded_config().config.limits.clone();
    let settings_language = app.settings().texts().language;
    let (yaml_text, language) = (yaml.to_owned(), language.unwrap_or(settings_language));
    let check = move || {
        let script = load_with_language(&yaml_text, &limits, language);
        check_all_in_languages(script, &templates, settings_language, language)
    };
    let faults =
        if yaml.len() > INLINE_SCRIPT_BYTES { app.cpu_pool.run(owner, check).await? } else { check() };
    // A missing template can still be added before the script runs.
    let prevents_run =
        |fault: &ScriptFault| fault.is_error() && fault.report.rule.code != "template_not_found";
    let (errors, warnings): (Vec<ScriptFault>, Vec<ScriptFault>) = faults.into_iter().partition(prevents_run);
    let to_json = |faults: Vec<ScriptFault>| faults.iter().map(fault_json).collect();
    Ok(ScriptFaults { errors: to_json(errors), warnings: to_json(warnings) })
}

fn fault_json(fault: &ScriptFault) -> Value {
    let finding = fault.finding();
    json!({
        "path": fault.path,
        "line": finding.line,
        "column": finding.column,
        "code": finding.code,
        "rule": finding.rule,
        "message": finding.message,
    })
}

/// Returns the warnings of a script that can run.
///
/// # Errors
/// The script cannot run.
async fn require_valid(app: &App, owner: &str, new_script: &NewScript) -> Result<Vec<Value>, Problem> {
    let ScriptFaults { errors, warnings } =
        check_script(app, owner, &new_script.yaml, new_script.text_language).await?;
    if errors.is_empty() {
        return Ok(warnings);
    }
    let first_error = errors[0]["message"].as_str().unwrap_or_default();
    let detail = match new_script.text_language.unwrap_or_else(|| app.settings().texts().language) {
        Language::Zh => format!("脚本无法运行：{first_error}"),
        Language::En => format!("the script cannot run: {first_error}"),
    };
    let problem = Problem::invalid("invalid_script", detail).with("field", "yaml");
    Err(problem.with("errors", errors).with("warnings", warnings))
}

/// `POST /api/v1/scripts`: stores the first version of a script.
pub(super) async fn create(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    QueryParams(draft_query): QueryParams<DraftQuery>,
    bytes: Bytes,
) -> Result<(StatusCode, ETagHeader, Json<Value>), Problem> {
    let new_script: NewScript = parse_body(&bytes)?;
    let missing_name =
        || Problem::invalid("missing_field", "a script must have a `name`").with("field", "name");
    let name = new_script.name.clone().ok_or_else(missing_name)?;
    check_name(&name)?;
    let warnings = require_valid(&app, &caller.owner, &new_script).await?;
    let id = ids::new_id("script");
    let new_version = NewVersion { id: id.clone(), name, text: new_script.yaml };
    // A new script has no version that `If-Match` could name.
    let no_headers = HeaderMap::new();
    let version = store_version(&app, &caller.owner, &no_headers, Script, new_version, &draft_query).await?;
    let response = json!({ "script_id": id, "version": version, "warnings": warnings });
    Ok((StatusCode::CREATED, etag(version), Json(response)))
}

/// `PUT /api/v1/scripts/{id}`: stores the next version.
pub(super) async fn put(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    QueryParams(draft_query): QueryParams<DraftQuery>,
    headers: HeaderMap,
    bytes: Bytes,
) -> Result<(ETagHeader, Json<Value>), Problem> {
    let new_script: NewScript = parse_body(&bytes)?;
    let document = find_owned(&app, &caller.owner, Script, &id).await?;
    let name = new_script.name.clone().unwrap_or(document.name);
    check_name(&name)?;
    let warnings = require_valid(&app, &caller.owner, &new_script).await?;
    let new_version = NewVersion { id: id.clone(), name, text: new_script.yaml };
    let version = store_version(&app, &caller.owner, &headers, Script, new_version, &draft_query).await?;
    Ok((etag(version), Json(json!({ "script_id": id, "version": version, "warnings": warnings }))))
}

/// `GET /api/v1/scripts`: scripts of the owner, by id.
pub(super) async fn list(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    QueryParams(query): QueryParams<page::PageQuery>,
) -> Result<Json<Value>, Problem> {
    let documents = app.store.documents((&caller.owner, Script)).await?;
    let rows = documents.iter().map(|document| (document.id.clone(), document_json(Script, document)));
    query.page_of(rows.collect()).map(Json)
}

/// `GET /api/v1/scripts/{id}`: the requested version, otherwise the published one, otherwise the latest.
pub(super) async fn show(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    QueryParams(version_query): QueryParams<VersionQuery>,
) -> Result<(ETagHeader, Json<Value>), Problem> {
    let document = find_owned(&app, &caller.owner, Script, &id).await?;
    let version = load_version(&app, &caller.owner, Script, &document, version_query.version).await?;
    let mut response = document_json(Script, &document);
    response["version"] = version.version.into();
    response["hash"] = version.hash.into();
    response["yaml"] = version.text.into();
    Ok((etag(document.latest), Json(response)))
}

/// `DELETE /api/v1/scripts/{id}`. Running dialogues keep the version they began with.
pub(super) async fn remove(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<StatusCode, Problem> {
    match delete(&app, &caller.owner, &headers, Script, &id).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(missing_document(Script, &id)),
    }
}

/// `POST /api/v1/scripts/validate`: errors and warnings of a text; nothing is stored.
pub(super) async fn validate(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    bytes: Bytes,
) -> Result<Json<Value>, Problem> {
    let ScriptText { yaml, text_language } = parse_body(&bytes)?;
    let ScriptFaults { errors, warnings } = check_script(&app, &caller.owner, &yaml, text_language).await?;
    Ok(Json(json!({ "valid": errors.is_empty(), "errors": errors, "warnings": warnings })))
}
