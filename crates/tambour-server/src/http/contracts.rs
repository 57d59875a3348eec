//! `/api/v1/contracts/{name}`: the contract of a dialect as instructions, JSON Schema or grammar, as the CLI
//! command `contract show` prints it.

use std::sync::Arc;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use tambour::Options;
use tambour::dialect::{self, DIALECTS, DialectEntry};
use tambour::texts::{closest_names, list_names};
use tambour::verdict::{Contract as VerdictContract, ContractForm};

use super::keys::Caller;
use super::new_message::request_options;
use super::page::QueryParams;
use super::tools::{ToolChoice, select_tools};
use crate::base::problem::{Problem, parse_body};
use crate::config::reading_defaults::Contract;
use crate::http::app::App;
use crate::tools::{self, OfferedTool};

/// Query of `GET /api/v1/contracts/{name}`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ContractQuery {
    /// Name of a form.
    format: Option<String>,
}

/// Body of `POST /api/v1/contracts/{name}`.
#[derive(Debug, Default, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ContractRequest {
    /// `prompt` (default), `json-schema`, `lark`, `gbnf` or `structural-tag`.
    #[serde(default)]
    format: Option<String>,
    /// Options by their public names.
    #[serde(default)]
    options: std::collections::BTreeMap<String, Value>,
    /// Tools that replies may call: names of registered ones, or inline tools.
    #[serde(default)]
    tools: Option<Vec<ToolChoice>>,
    /// Caller on whose behalf tools run; a tool may be limited to callers.
    #[serde(default)]
    caller: Option<String>,
    /// Expected structure of `filament`: the option `filament.structure`.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    structure: Option<Value>,
    /// JSON Schema of `json_value`: the option `json_value.schema`.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    schema: Option<Value>,
}

/// `GET /api/v1/contracts/{name}`: the contract under the server's default options.
pub(super) async fn show(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    QueryParams(query): QueryParams<ContractQuery>,
) -> Result<Response, Problem> {
    let request = ContractRequest { format: query.format, ..ContractRequest::default() };
    write_contract(&app, &caller, find_entry(&name)?, request).await
}

/// `POST /api/v1/contracts/{name}`: the contract under options, with tools, a structure or a schema.
pub(super) async fn write(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    bytes: Bytes,
) -> Result<Response, Problem> {
    let request = parse_body(&bytes)?;
    write_contract(&app, &caller, find_entry(&name)?, request).await
}

/// Returns the dialect of this name.
///
/// # Errors
/// There is no such dialect, or it has no form at all.
fn find_entry(name: &str) -> Result<&'static DialectEntry, Problem> {
    let has_forms = |entry: &DialectEntry| ContractForm::ALL.iter().any(|form| form.exists_for(entry));
    dialect::find_dialect(name).ok().filter(|entry| has_forms(entry)).ok_or_else(|| {
        let known_names = DIALECTS.iter().filter(|entry| has_forms(entry)).map(|entry| entry.name);
        let list = list_names(name, known_names.clone());
        Problem::not_found(format!("there is no contract `{name}`; known: {list}"))
            .with("close", closest_names(name, known_names))
    })
}

/// Writes a contract, or takes it from the cache.
async fn write_contract(
    app: &App,
    caller: &Caller,
    entry: &'static DialectEntry,
    mut request: ContractRequest,
) -> Result<Response, Problem> {
    let invalid_format =
        |error: tambour::Error| Problem::invalid("invalid_field", error.to_string()).with("field", "format");
    let form = request.format.as_deref().map_or(Ok(ContractForm::default()), ContractForm::from_name);
    let form = form.map_err(invalid_format)?;
    for (field, option, value) in [
        ("structure", "filament.structure", request.structure.take()),
        ("schema", "json_value.schema", request.schema.take()),
    ] {
        if let Some(value) = value
            && request.options.insert(option.to_owned(), value).is_some()
        {
            let detail = format!("give `{field}` or the option `{option}`, not both");
            return Err(Problem::invalid("invalid_field", detail).with("field", field));
        }
    }
    let contract = Contract { profile: None, options: request.options };
    let mut options = request_options(app, &caller.owner, Some(&contract)).await?;
    let offered_tools = match &request.tools {
        Some(choices) => Some(select_tools(app, caller, choices).await?),
        None => None,
    };
    if let Some(offered_tools) = &offered_tools {
        options.tools = Some(tools::tool_registry(offered_tools));
    }
    options.caller.clone_from(&request.caller);
    let content = json!([
        form.name(),
        entry.name,
        contract.options,
        content_of(&options, offered_tools.as_deref()),
        app.settings().values,
    ]);
    let pool = (&app.cpu_pool, caller.owner.as_str());
    let text = app.contract_texts.get(pool, &content, move || form_text(entry, form, &options)).await?;
    let media_type = if form.is_json() { "application/json" } else { "text/plain; charset=utf-8" };
    Ok(([(header::CONTENT_TYPE, media_type)], String::clone(&text)).into_response())
}

/// Writes a form of a contract; also returns its size in bytes.
fn form_text(
    entry: &'static DialectEntry,
    form: ContractForm,
    options: &Options,
) -> Result<(String, usize), Problem> {
    let text = VerdictContract::Dialect(entry).write(form, options).map_err(|error| {
        if form.exists_for(entry) {
            Problem::invalid("grammar_impossible", error.to_string())
        } else {
            Problem::invalid("invalid_field", error.to_string()).with("field", "format")
        }
    })?;
    let size = text.len();
    Ok((text, size))
}

/// Describes what shapes a contract besides its own options: limits, caller and tools.
pub(super) fn content_of(options: &Options, offered_tools: Option<&[OfferedTool]>) -> Value {
    let tool = |OfferedTool { tool, .. }: &OfferedTool| {
        json!([tool.name, tool.description, tool.read_only, tool.callers, tool.schema()])
    };
    let offered_tools = offered_tools.map(|tools| tools.iter().map(tool).collect::<Vec<Value>>());
    json!([options.limits, options.caller, offered_tools])
}
