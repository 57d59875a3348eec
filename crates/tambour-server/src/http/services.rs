//! Services that the server calls: lists and tests upstreams and aliases, and lists MCP servers. All
//! operations require the `admin` right.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{Path, State};
use axum::{Extension, Json};
use serde_json::{Map, Value, json};
use tambour::InputEnd;
use tambour::event::Failure;
use tambour::texts::{closest_names, list_names};

use super::keys::{Caller, require_admin};
use crate::base::durations::millis;
use crate::base::problem::Problem;
use crate::base::urls::mask_url;
use crate::config::{AliasConfig, UpstreamConfig};
use crate::http::app::App;
use crate::upstream::{Message, ModelRequest, ReplyItem, Upstream};

/// Longest duration of a test of an upstream or alias.
const TEST_TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum number of tokens of the reply in a test.
const TEST_TOKENS: u32 = 16;

/// `GET /api/v1/upstreams`: configured upstreams and aliases. Secrets are masked.
pub(super) async fn list_upstreams(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<Value>, Problem> {
    require_admin(&caller)?;
    let loaded_config = app.loaded_config();
    let config = &loaded_config.config;
    let default = config.default_upstream();
    let rows = config.upstreams.iter().map(|(name, upstream_config)| {
        let upstream = loaded_config.upstreams.get(name);
        let aliases = config.aliases.iter();
        let uses_upstream =
            |alias: &AliasConfig| alias.upstream.as_deref().or(default) == Some(name.as_str());
        let aliases: Vec<&String> =
            aliases.filter(|(_, alias)| uses_upstream(alias)).map(|(name, _)| name).collect();
        let UpstreamConfig { kind, url, model, key_env, key_file, server, constrain, prices } =
            upstream_config;
        json!({
            "name": name,
            "kind": kind,
            "url": mask_url(url),
            "model": model,
            "key": upstream.is_some_and(|upstream| upstream.has_key()).then_some("***"),
            "key_env": key_env,
            "key_file": key_file,
            "server": server,
            "constrain": constrain.unwrap_or_default(),
            "prices": prices,
            "default": default == Some(name.as_str()),
            // After failures an upstream is not asked for a while.
            "resting": upstream.is_some_and(|upstream| !upstream.breaker().is_closed()),
            "aliases": aliases,
        })
    });
    let aliases = config.aliases.iter().map(|(name, alias)| alias_json(name, alias, default));
    Ok(Json(
        json!({ "currency": config.currency, "data": rows.collect::<Vec<_>>(), "aliases": aliases.collect::<Vec<_>>() }),
    ))
}

/// Describes an alias. Its prompt is not shown; `has_prompt` tells whether there is one.
fn alias_json(name: &str, alias: &AliasConfig, default: Option<&str>) -> Value {
    let mut alias_fields = Map::new();
    alias_fields.insert("name".to_owned(), name.into());
    let mut fields = alias.message_fields();
    let has_prompt = fields.shift_remove("system_prompt").is_some() || alias.skein.is_some();
    alias_fields.extend(fields);
    alias_fields.entry("upstream").or_insert_with(|| json!(default));
    alias_fields.insert("fallback".to_owned(), json!(alias.fallback));
    alias_fields.insert("weight".to_owned(), json!(alias.weight));
    alias_fields.insert("has_prompt".to_owned(), has_prompt.into());
    alias_fields.into()
}

/// `POST /api/v1/upstreams/{name}/test`: requests a few tokens from an upstream and waits for the first item
/// of the reply. Nothing of the reply is stored or shown.
pub(super) async fn test_upstream(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
) -> Result<Json<Value>, Problem> {
    require_admin(&caller)?;
    let loaded_config = app.loaded_config();
    let Some(upstream) = loaded_config.upstreams.get(&name).cloned() else {
        return Err(unknown_name(("upstream", &name), loaded_config.upstreams.keys().map(String::as_str)));
    };
    let request = ModelRequest { dialect: "plain".to_owned(), ..ModelRequest::default() };
    run_test(&app, &caller, &upstream, request, json!({ "name": name })).await
}

/// `POST /api/v1/aliases/{name}/test`: like the test of an upstream, for the upstream and model of an alias.
/// Its fallbacks are not asked.
pub(super) async fn test_alias(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
) -> Result<Json<Value>, Problem> {
    require_admin(&caller)?;
    let loaded_config = app.loaded_config();
    let aliases = &loaded_config.config.aliases;
    let Some(AliasConfig { upstream, model, dialect, .. }) = aliases.get(&name) else {
        return Err(unknown_name(("alias", &name), aliases.keys().map(String::as_str)));
    };
    let Some(upstream) = loaded_config.upstream(upstream.as_deref()) else {
        return Err(Problem::invalid("unknown_upstream", "no upstream is configured"));
    };
    let dialect = dialect.clone().unwrap_or_else(|| "plain".to_owned());
    let request = ModelRequest { model: model.clone(), dialect, ..ModelRequest::default() };
    let fields = json!({ "name": name, "upstream": upstream.name() });
    run_test(&app, &caller, &upstream, request, fields).await
}

/// Problem: there is no upstream or alias (`kind`) of this name. Lists the known names.
fn unknown_name<'a>(
    (kind, name): (&str, &str),
    known_names: impl Iterator<Item = &'a str> + Clone,
) -> Problem {
    let names = list_names(name, known_names.clone());
    let names = if names.is_empty() { "none is configured".to_owned() } else { format!("known: {names}") };
    Problem::not_found(format!("there is no {kind} `{name}`; {names}"))
        .with("close", closest_names(name, known_names))
}

/// Requests a few tokens from an upstream, and returns `fields` with the result added. Counts against the
/// caller's quota.
async fn run_test(
    app: &App,
    caller: &Caller,
    upstream: &Upstream,
    request: ModelRequest,
    fields: Value,
) -> Result<Json<Value>, Problem> {
    app.admit_request(caller).await?;
    let request = ModelRequest {
        messages: vec![Message::new("user", "Say: ok")],
        max_tokens: Some(TEST_TOKENS),
        // With a fallback the pauses before retries are shorter, which keeps the test short.
        has_fallback: true,
        ..request
    };
    let start_time = Instant::now();
    let first_item = tokio::time::timeout(TEST_TIMEOUT, wait_first_item(upstream, &request)).await;
    let elapsed_ms = millis(start_time.elapsed());
    let mut answer = fields;
    answer["ok"] = matches!(first_item, Ok(Ok(()))).into();
    answer["model"] = json!(upstream.model(&request));
    answer["elapsed_ms"] = elapsed_ms.into();
    let failure = match first_item {
        Ok(Ok(())) => return Ok(Json(answer)),
        Ok(Err(failure)) => failure,
        Err(_) => {
            let message = format!("no answer within {} s", TEST_TIMEOUT.as_secs());
            Failure::new("upstream_timeout", message, true)
        }
    };
    answer["error"] =
        json!({ "code": failure.code, "message": failure.message, "retryable": failure.retryable });
    Ok(Json(answer))
}

/// Waits for the first item of a reply.
///
/// # Errors
/// The request failed, or the first item is a failure.
async fn wait_first_item(upstream: &Upstream, request: &ModelRequest) -> Result<(), Failure> {
    let mut reply = upstream.open(request).await?;
    let mut items = Vec::new();
    while items.is_empty() {
        reply.next(&mut items).await;
    }
    match items.swap_remove(0) {
        ReplyItem::End(InputEnd::Failed(failure)) => Err(failure),
        _ => Ok(()),
    }
}

/// `GET /api/v1/mcp`: MCP servers by name.
pub(super) async fn list_mcp(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<Value>, Problem> {
    require_admin(&caller)?;
    Ok(Json(json!({ "data": app.loaded_config().mcp.states() })))
}
