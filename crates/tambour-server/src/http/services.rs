//! Services that the server calls: upstreams with a test of each, and MCP servers. Requires the `admin`
//! right.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{Path, State};
use axum::{Extension, Json};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use tambour::InputEnd;
use tambour::event::Failure;
use tambour::texts::{closest_names, list_names};

use super::keys::{Caller, require_admin};
use crate::base::problem::Problem;
use crate::base::urls::mask_url;
use crate::config::{AliasConfig, UpstreamConfig};
use crate::http::app::App;
use crate::upstream::{Message, ModelRequest, ReplyItem, Upstream};

/// Longest time of an upstream test.
const TEST_TIMEOUT: Duration = Duration::from_secs(20);
/// Most tokens of an upstream test.
const TEST_TOKENS: u32 = 16;

/// `GET /api/v1/upstreams`: configured upstreams and aliases. Secrets are masked.
pub(super) async fn list_upstreams(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<Value>, Problem> {
    require_admin(&caller)?;
    let loaded = app.loaded_config();
    let config = &loaded.config;
    let default = config.default_upstream();
    let rows = config.upstreams.iter().map(|(name, given)| {
        let upstream = loaded.upstreams.get(name);
        let aliases = config.aliases.iter();
        let of_it = |alias: &AliasConfig| alias.upstream.as_deref().or(default) == Some(name.as_str());
        let aliases: Vec<&String> = aliases.filter(|(_, alias)| of_it(alias)).map(|(name, _)| name).collect();
        let UpstreamConfig { kind, url, model, key_env, key_file, prices } = given;
        json!({
            "name": name,
            "kind": kind,
            "url": mask_url(url),
            "model": model,
            "key": upstream.is_some_and(|upstream| upstream.has_key()).then_some("***"),
            "key_env": key_env,
            "key_file": key_file,
            "prices": prices,
            "default": default == Some(name.as_str()),
            "resting": upstream.is_some_and(|upstream| !upstream.breaker().is_closed()),
            "aliases": aliases,
        })
    });
    let aliases = config.aliases.iter().map(|(name, given)| alias_json(name, given, default));
    Ok(Json(
        json!({ "currency": config.currency, "data": rows.collect::<Vec<_>>(), "aliases": aliases.collect::<Vec<_>>() }),
    ))
}

/// Returns an alias as JSON; of its prompt only whether there is one.
fn alias_json(name: &str, given: &AliasConfig, default: Option<&str>) -> Value {
    let mut shown = Map::new();
    shown.insert("name".to_owned(), name.into());
    let mut fields = given.message_fields();
    let has_prompt = fields.shift_remove("system_prompt").is_some() || given.skein.is_some();
    shown.extend(fields);
    shown.entry("upstream").or_insert_with(|| json!(default));
    shown.insert("fallback".to_owned(), json!(given.fallback));
    shown.insert("weight".to_owned(), json!(given.weight));
    shown.insert("has_prompt".to_owned(), has_prompt.into());
    shown.into()
}

/// `POST /api/v1/upstreams/{name}/test`: requests a few tokens from an upstream and waits for the first item.
/// Nothing of the reply is stored or shown.
pub(super) async fn test_upstream(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
) -> Result<Json<Value>, Problem> {
    require_admin(&caller)?;
    let loaded = app.loaded_config();
    let Some(upstream) = loaded.upstreams.get(&name).cloned() else {
        return Err(missing(("upstream", &name), loaded.upstreams.keys().map(String::as_str)));
    };
    let ask = ModelRequest { dialect: "plain".to_owned(), ..ModelRequest::default() };
    tried(&app, &caller, &upstream, ask, json!({ "name": name })).await
}

/// `POST /api/v1/aliases/{name}/test`: requests a few tokens of an alias's model from its upstream, like the test of an upstream. Its
/// fallbacks are not asked.
pub(super) async fn test_alias(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
) -> Result<Json<Value>, Problem> {
    require_admin(&caller)?;
    let loaded = app.loaded_config();
    let aliases = &loaded.config.aliases;
    let Some(AliasConfig { upstream, model, dialect, .. }) = aliases.get(&name) else {
        return Err(missing(("alias", &name), aliases.keys().map(String::as_str)));
    };
    let Some(upstream) = loaded.upstream(upstream.as_deref()) else {
        return Err(Problem::invalid("unknown_upstream", "there is no upstream"));
    };
    let dialect = dialect.clone().unwrap_or_else(|| "plain".to_owned());
    let ask = ModelRequest { model: model.clone(), dialect, ..ModelRequest::default() };
    let of = json!({ "name": name, "upstream": &*upstream.name });
    tried(&app, &caller, &upstream, ask, of).await
}

/// Problem of an unknown name; lists the known ones.
fn missing<'a>((what, name): (&str, &str), known: impl Iterator<Item = &'a str> + Clone) -> Problem {
    let names = list_names(name, known.clone());
    let names = if names.is_empty() { "there is none".to_owned() } else { format!("known: {names}") };
    Problem::not_found(format!("there is no {what} `{name}`; {names}"))
        .with("close", closest_names(name, known))
}

/// Requests a few tokens from an upstream and adds the result to `of`. Counts against the quota of the caller.
async fn tried(
    app: &App,
    caller: &Caller,
    upstream: &Upstream,
    ask: ModelRequest,
    of: Value,
) -> Result<Json<Value>, Problem> {
    app.quotas.admit(caller, Instant::now(), Timestamp::now())?;
    let ask = ModelRequest {
        messages: vec![Message::new("user", "Say: ok")],
        max_tokens: Some(TEST_TOKENS),
        has_fallback: true,
        ..ask
    };
    let began = Instant::now();
    let came = tokio::time::timeout(TEST_TIMEOUT, wait_first(upstream, &ask)).await;
    let elapsed_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    let mut answer = of;
    answer["ok"] = matches!(came, Ok(Ok(()))).into();
    answer["model"] = json!(upstream.model(&ask));
    answer["elapsed_ms"] = elapsed_ms.into();
    let failure = match came {
        Ok(Ok(())) => return Ok(Json(answer)),
        Ok(Err(failure)) => failure,
        Err(_) => {
            let message = format!("nothing came within {} s", TEST_TIMEOUT.as_secs());
            Failure::new("upstream_timeout", message, true)
        }
    };
    answer["error"] =
        json!({ "code": failure.code, "message": failure.message, "retryable": failure.retryable });
    Ok(Json(answer))
}

/// Waits for the first item of a reply.
async fn wait_first(upstream: &Upstream, ask: &ModelRequest) -> Result<(), Failure> {
    let mut reply = upstream.open(ask).await?;
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
