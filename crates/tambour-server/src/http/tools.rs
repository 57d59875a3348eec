//! Registered tools: listing, registration and removal, and selection of the tools of a message.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::{Extension, Json};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};
use tambour::options::Language;
use tambour::schema::Schema;

use super::keys::Caller;
use super::page;
use super::page::QueryParams;
use crate::base::ids;
use crate::base::problem::{Problem, parse_body};
use crate::http::app::App;
use crate::mcp::{ListedTool, McpServers, ToolLookup};
use crate::store::ToolRow;
use crate::tools::is_tool_name;
use crate::tools::{
    Definition, Executor, HiddenText, MAX_DEFINITION_BYTES, MAX_DESCRIPTION_BYTES, OfferedTool,
    SECRET_ENV_PREFIX, ToolLimits, WebhookGuard, secret_from_env,
};

/// Maximum number of registered tools of one owner.
const MAX_TOOLS: u32 = 1000;
/// Maximum number of tools of one message.
const MAX_OFFERED: usize = 128;
/// Maximum number of patterns in the schemas of all tools of a message, as a multiple of the limit of one
/// schema.
const PATTERN_FACTOR: usize = 4;

/// `GET /api/v1/tools`: registered tools and tools of MCP servers, by name.
pub(super) async fn list(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    QueryParams(query): QueryParams<page::PageQuery>,
) -> Result<Json<Value>, Problem> {
    let rows = app.store.tools(&caller.owner).await?;
    let mut rows: BTreeMap<String, Value> =
        rows.iter().map(|row| (row.name.clone(), tool_json(row))).collect();
    for (name, tool) in app.loaded_config().mcp.all_tools() {
        // An MCP tool replaces a registered one of the same name only if the configuration lists it by name.
        if tool.is_listed_explicitly || !rows.contains_key(&name) {
            rows.insert(name, mcp_tool_json(&tool));
        }
    }
    query.page_of(rows.into_iter().collect()).map(Json)
}

/// `GET /api/v1/tools/{name}`: a tool without its secret.
pub(super) async fn show(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
) -> Result<Json<Value>, Problem> {
    let row = app.store.tool(&caller.owner, &name).await?;
    match (app.loaded_config().mcp.find_tool(&name), row) {
        (ToolLookup::Tool(tool), row) if tool.is_listed_explicitly || row.is_none() => {
            Ok(Json(mcp_tool_json(&tool)))
        }
        (_, Some(row)) => Ok(Json(tool_json(&row))),
        (_, None) => Err(missing_tool(&name)),
    }
}

/// `PUT /api/v1/tools/{name}`: replaces the whole tool, including its secret.
pub(super) async fn put(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    bytes: Bytes,
) -> Result<Json<Value>, Problem> {
    if bytes.len() > MAX_DEFINITION_BYTES {
        let detail = format!(
            "the definition of a tool may have at most {MAX_DEFINITION_BYTES} bytes, not {}",
            bytes.len()
        );
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", detail));
    }
    let definition: Definition = parse_body(&bytes)?;
    let loaded_config = app.loaded_config();
    check_name(&name, "name")?;
    // A tool that was registered before an MCP server listed one of the same name may still be replaced.
    let mcp_tool = loaded_config.mcp.find_tool(&name);
    let yields_to_registered = matches!(&mcp_tool, ToolLookup::Tool(listed) if !listed.is_listed_explicitly);
    if !yields_to_registered || app.store.tool(&caller.owner, &name).await?.is_none() {
        refuse_mcp_name(&loaded_config.mcp, &name)?;
    }
    check_definition(&app, &caller.owner, &definition).await?;
    check_secret_env(&caller, &definition.executor)?;
    check_executor(&definition.executor, &loaded_config.config.tools, loaded_config.webhooks.guard())?;
    let now = ids::now();
    let row = ToolRow {
        owner: caller.owner,
        name: name.clone(),
        created: now.clone(),
        changed: now,
        definition: json!(definition).to_string(),
        secret: match definition.executor {
            Executor::Http { secret, .. } => secret.map(|HiddenText(secret)| secret),
            Executor::Client {} | Executor::Mcp { .. } => None,
        },
    };
    let task_app = app.clone();
    app.run_to_completion(async move {
        if !task_app.store.put_tool(&row, MAX_TOOLS).await? {
            let detail = format!("an owner may have at most {MAX_TOOLS} tools; remove one first");
            return Err(Problem::invalid("too_many_tools", detail));
        }
        let row_now = task_app.store.tool(&row.owner, &row.name).await?.unwrap_or(row);
        Ok(Json(tool_json(&row_now)))
    })
    .await
}

/// `DELETE /api/v1/tools/{name}`. Running messages keep the tool.
pub(super) async fn remove(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
) -> Result<StatusCode, Problem> {
    match app.store.delete_tool(&caller.owner, &name).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => {
            refuse_mcp_name(&app.loaded_config().mcp, &name)?;
            Err(missing_tool(&name))
        }
    }
}

/// Refuses the name of an MCP tool, which only the operator can change.
fn refuse_mcp_name(mcp: &McpServers, name: &str) -> Result<(), Problem> {
    let server = match mcp.find_tool(name) {
        ToolLookup::Unknown => return Ok(()),
        ToolLookup::Reserved(server) => server,
        ToolLookup::Tool(tool) => match tool.definition.executor {
            Executor::Mcp { server, .. } => server,
            _ => String::new(),
        },
    };
    let detail = format!(
        "`{name}` is a tool of the MCP server `{server}` in the server's configuration \
         (`mcp.{server}.tools`), which no key can change; choose another name"
    );
    Err(Problem::new(StatusCode::CONFLICT, "tool_of_server", detail).with("field", "name"))
}

/// Problem: the caller has no tool of this name.
fn missing_tool(name: &str) -> Problem {
    Problem::not_found(format!("there is no tool `{name}`"))
}

/// Describes a tool of an MCP server.
fn mcp_tool_json(tool: &ListedTool) -> Value {
    let mut tool_json = json!(tool.definition);
    tool_json["name"] = tool.name.as_str().into();
    tool_json["signed"] = false.into();
    tool_json["created"] = tool.listed_at.as_str().into();
    tool_json["changed"] = tool.listed_at.as_str().into();
    tool_json
}

/// Describes a registered tool without its secret.
fn tool_json(row: &ToolRow) -> Value {
    let mut tool_json: Value = serde_json::from_str(&row.definition).unwrap_or_default();
    tool_json["name"] = row.name.as_str().into();
    let has_env_secret = tool_json["executor"]["secret_env"].is_string();
    tool_json["signed"] = (row.secret.is_some() || has_env_secret).into();
    tool_json["created"] = row.created.as_str().into();
    tool_json["changed"] = row.changed.as_str().into();
    tool_json
}

fn invalid_field(field: &str, detail: impl Into<String>) -> Problem {
    Problem::invalid("invalid_field", detail).with("field", field)
}

/// Checks the name of a tool. `field` is the field of the request that contains the name.
fn check_name(name: &str, field: &str) -> Result<(), Problem> {
    if is_tool_name(name) {
        return Ok(());
    }
    Err(invalid_field(field, "the name of a tool must be 1 to 64 letters, digits, `_`, `-` and `.`"))
}

/// Checks a definition, except its executor. Returns its compiled schema.
async fn check_definition(app: &App, owner: &str, definition: &Definition) -> Result<Arc<Schema>, Problem> {
    if !definition.schema.is_object() {
        return Err(Problem::invalid("invalid_schema", "`schema` must be a JSON Schema object")
            .with("field", "schema"));
    }
    if definition
        .description
        .as_ref()
        .is_some_and(|text| text.len() > MAX_DESCRIPTION_BYTES || text.contains(['\n', '\r']))
    {
        let detail = format!("`description` must be one line of at most {MAX_DESCRIPTION_BYTES} bytes");
        return Err(invalid_field("description", detail));
    }
    let is_bad_name = |caller: &String| caller.trim().is_empty() || caller.len() > 200;
    if definition.callers.iter().flatten().any(is_bad_name) {
        return Err(invalid_field("callers", "a caller must be a name of at most 200 bytes"));
    }
    app.schemas.get((&app.cpu_pool, owner), &definition.schema, &app.loaded_config().config.tools).await
}

/// Refuses secrets of the environment to callers without the `admin` right, since the owner of a tool can
/// have anything signed with the tool's secret.
fn check_secret_env(caller: &Caller, executor: &Executor) -> Result<(), Problem> {
    match executor {
        Executor::Http { secret_env: Some(_), .. } if !caller.is_admin => {
            let detail = "`secret_env` needs a key with the `admin` right; give `secret` instead";
            Err(Problem::new(StatusCode::FORBIDDEN, "forbidden", detail).with("field", "secret_env"))
        }
        _ => Ok(()),
    }
}

/// Checks the executor of a tool: address, timeout and secret of a webhook.
fn check_executor(executor: &Executor, limits: &ToolLimits, guard: &WebhookGuard) -> Result<(), Problem> {
    let Executor::Http { url, timeout_ms, secret, secret_env } = executor else { return Ok(()) };
    guard.check_url(url).map_err(|refusal| {
        Problem::invalid("webhook_not_allowed", refusal.to_string()).with("field", "url")
    })?;
    if let Some(ms) = timeout_ms.filter(|ms| !(1..=limits.max_timeout_ms).contains(ms)) {
        let detail = format!("`timeout_ms` must be 1 to {}, not {ms}", limits.max_timeout_ms);
        return Err(invalid_field("timeout_ms", detail));
    }
    match (secret, secret_env) {
        (Some(_), Some(_)) => Err(invalid_field("secret_env", "give `secret` or `secret_env`, not both")),
        (Some(HiddenText(secret)), None) if secret.len() < 8 || secret.len() > 1000 => {
            Err(invalid_field("secret", "a secret must have 8 to 1000 bytes"))
        }
        (None, Some(name)) if !name.starts_with(SECRET_ENV_PREFIX) => Err(invalid_field(
            "secret_env",
            format!("`secret_env` must name a variable that begins with `{SECRET_ENV_PREFIX}`"),
        )),
        (None, Some(name)) => secret_from_env(name)
            .map(|_| ())
            .map_err(|missing_secret| invalid_field("secret_env", missing_secret.text(Language::En))),
        _ => Ok(()),
    }
}

/// Tool of a message: the name of a registered one, or an inline tool that the client runs.
#[derive(Clone, Debug, Serialize, utoipa::ToSchema)]
#[serde(untagged)]
pub(crate) enum ToolChoice {
    /// Name of a registered tool.
    Named(String),
    /// Tool of this message only.
    Inline(InlineTool),
}

/// Tool of one message. The client runs it and posts the results.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct InlineTool {
    /// Name of the tool.
    name: String,
    /// Description in one line; the `description` of its schema when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// JSON Schema of its arguments.
    #[schema(value_type = Object)]
    schema: Value,
    /// Requires a person to confirm each call.
    #[serde(default)]
    confirm: bool,
}

impl<'de> Deserialize<'de> for ToolChoice {
    /// Implemented by hand, so that an unknown field is named in the error.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ToolChoice, D::Error> {
        use serde::de::Error;
        match Value::deserialize(deserializer)? {
            Value::String(name) => Ok(ToolChoice::Named(name)),
            object @ Value::Object(_) => {
                InlineTool::deserialize(object).map(ToolChoice::Inline).map_err(D::Error::custom)
            }
            other => Err(D::Error::custom(format!("a tool must be a name or an object, not {other}"))),
        }
    }
}

/// Returns the tools that a message names, in their order.
pub(super) async fn select_tools(
    app: &App,
    caller: &Caller,
    choices: &[ToolChoice],
) -> Result<Vec<OfferedTool>, Problem> {
    if choices.len() > MAX_OFFERED {
        let detail = format!("a message may offer at most {MAX_OFFERED} tools, not {}", choices.len());
        return Err(invalid_field("tools", detail));
    }
    let mut selected_tools: Vec<OfferedTool> = Vec::with_capacity(choices.len());
    let max_patterns = app.loaded_config().config.tools.max_patterns.saturating_mul(PATTERN_FACTOR);
    let mut pattern_count = 0;
    for choice in choices {
        let offered_tool = match choice {
            ToolChoice::Named(name) => select_named(app, caller, name).await?,
            ToolChoice::Inline(inline) => {
                check_name(&inline.name, "tools")?;
                let definition = Definition {
                    description: inline.description.clone(),
                    schema: inline.schema.clone(),
                    callers: None,
                    read_only: None,
                    confirm: inline.confirm,
                    executor: Executor::Client {},
                };
                let schema = check_definition(app, &caller.owner, &definition).await?;
                definition.into_tool(&inline.name, &schema)
            }
        };
        if selected_tools.iter().any(|other| other.tool.name == offered_tool.tool.name) {
            return Err(invalid_field("tools", format!("`{}` is named twice", offered_tool.tool.name)));
        }
        pattern_count += offered_tool.tool.count_patterns();
        if pattern_count > max_patterns {
            let detail = format!(
                "the schemas of the tools up to `{}` have {pattern_count} patterns together, and a message may \
                 have {max_patterns}: offer fewer tools at a time",
                offered_tool.tool.name
            );
            return Err(Problem::invalid("schema_limit", detail).with("field", "tools"));
        }
        selected_tools.push(offered_tool);
    }
    Ok(selected_tools)
}

/// Converts the result of a lookup among MCP tools to an offered tool; `None` if no MCP server has the tool.
///
/// # Errors
/// The configuration reserves the name for a server that lacks the tool or cannot be reached, or the tool's
/// definition is invalid.
async fn select_mcp_tool(
    app: &App,
    caller: &Caller,
    mcp: &McpServers,
    lookup: ToolLookup,
) -> Result<Option<OfferedTool>, Problem> {
    match lookup {
        ToolLookup::Unknown => Ok(None),
        ToolLookup::Tool(tool) => {
            let schema = check_definition(app, &caller.owner, &tool.definition).await?;
            Ok(Some(tool.definition.into_tool(&tool.name, &schema)))
        }
        ToolLookup::Reserved(server) if mcp.has_listed_tools(&server) => {
            let detail =
                format!("the MCP server `{server}` does not have this tool, which the configuration names");
            Err(Problem::invalid("unknown_tool", detail).with("field", "tools"))
        }
        ToolLookup::Reserved(server) => {
            let detail = format!(
                "the MCP server `{server}` of this tool cannot be reached, and has not been connected before; try again later"
            );
            let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "tool_unavailable", detail);
            Err(problem.with("field", "tools").retry_after(5))
        }
    }
}

/// Returns the registered tool or MCP tool of this name. If both exist, the MCP tool is chosen only if the
/// configuration lists it by name.
pub(super) async fn select_named(app: &App, caller: &Caller, name: &str) -> Result<OfferedTool, Problem> {
    let loaded_config = app.loaded_config();
    let mcp = &loaded_config.mcp;
    let lookup = match mcp.find_tool(name) {
        ToolLookup::Reserved(_) => mcp.wait_for_tool(name).await,
        lookup => lookup,
    };
    let row = app.store.tool(&caller.owner, name).await?;
    let prefers_registered =
        row.is_some() && matches!(&lookup, ToolLookup::Tool(listed) if !listed.is_listed_explicitly);
    if !prefers_registered && let Some(mcp_tool) = select_mcp_tool(app, caller, mcp, lookup).await? {
        return Ok(mcp_tool);
    }
    let Some(row) = row else {
        // A server that exposes all its tools may not have listed them yet.
        if let Some(mcp_tool) = select_mcp_tool(app, caller, mcp, mcp.wait_for_tool(name).await).await? {
            return Ok(mcp_tool);
        }
        let rows = app.store.tools(&caller.owner).await?;
        let mcp_tools = mcp.all_tools();
        let names = rows.iter().map(|row| row.name.as_str()).chain(mcp_tools.keys().map(String::as_str));
        let similar_names = tambour::tool::closest_names(name, names);
        let hint = if similar_names.is_empty() {
            "register it with `PUT /api/v1/tools/{name}`, or give its full definition".to_owned()
        } else {
            format!("similar: {}", similar_names.join(", "))
        };
        let problem = Problem::invalid("unknown_tool", format!("there is no tool `{name}`; {hint}"));
        return Err(problem.with("field", "tools").with("close", similar_names));
    };
    let damage_problem = || {
        let detail = format!("the stored tool `{name}` cannot be read");
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "damaged", detail)
    };
    let definition: Definition = serde_json::from_str(&row.definition).map_err(|_| damage_problem())?;
    check_secret_env(caller, &definition.executor)?;
    let schema = check_definition(app, &caller.owner, &definition).await?;
    let mut offered_tool = definition.into_tool(name, &schema);
    if let Executor::Http { secret, .. } = &mut offered_tool.executor {
        *secret = row.secret.map(HiddenText);
    }
    Ok(offered_tool)
}
