//! API keys over HTTP: authentication, listing, creation, changes, removal, and tokens of event streams.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, StatusCode, Uri, Version, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::conversations::serde_with_null;
use super::messages::find_owned;
use super::page;
use super::page::QueryParams;
use crate::base::connection::Connection;
use crate::base::ids;
use crate::base::metrics::Metrics;
use crate::base::problem::{Problem, parse_body};
use crate::http::app::App;
pub(crate) use crate::run::keys::Caller;
pub(super) use crate::run::keys::TOKEN_LIFETIME;
use crate::run::keys::{CONFIGURED_KEY, LOCAL_OWNER, hash};
use crate::run::quotas::KeyLimits;
use crate::store::{KeyRow, StreamTokenRow};

/// Admits requests with a valid key or stream token, and requests of the local user while no key exists.
pub(super) async fn authenticate(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    let headers = request.headers();
    let header = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let secret = header
        .and_then(|header| header.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .map(|(_, secret)| secret.trim())
        // Anthropic clients send this header.
        .or_else(|| headers.get("x-api-key").and_then(|value| value.to_str().ok()));
    let mut found_caller = app.keys.find_caller(secret);
    if found_caller.is_none() {
        found_caller = caller_by_token(&app, request.uri()).await;
    }
    let Some(mut caller) = found_caller else {
        Metrics::increment(&app.metrics.unauthorized);
        let detail = "give a valid key: Authorization: Bearer KEY";
        let problem = Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", detail);
        let mut response = problem.into_response();
        let scheme = header::HeaderValue::from_static("Bearer");
        response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
        return response;
    };
    // The local user has no key: `LOCAL_OWNER` takes the place of its id.
    if caller.key == LOCAL_OWNER
        && let Err(problem) = check_local(&request, &app.loaded_config().config.cors_origins)
    {
        return problem.into_response();
    }
    caller.span = app.traces.read_parent(headers);
    caller.connection = request.extensions().get::<Arc<Connection>>().cloned();
    request.extensions_mut().insert(caller);
    next.run(request).await
}

/// Returns the caller that created the stream token in the query. The token is in the query since browsers'
/// `EventSource` cannot send it in a header.
async fn caller_by_token(app: &App, uri: &Uri) -> Option<Caller> {
    let path = uri.path().strip_prefix("/api/v1/messages/")?;
    let message = path.strip_suffix("/events").or_else(|| path.strip_suffix("/stream"))?;
    let mut fields = uri.query()?.split('&');
    let token = fields.find_map(|field| field.strip_prefix("token="))?;
    if let Some(caller) = app.keys.find_by_token(token, message) {
        return Some(caller);
    }
    // Another server may have created it.
    match app.store.cluster()?.stream_token(&hash(token)).await {
        Ok(stored) => stored
            .filter(|stored| stored.message == message)
            .and_then(|stored| app.keys.caller_of_key(&stored.key)),
        Err(error) => {
            tracing::error!(%error, "a stream token could not be looked up");
            None
        }
    }
}

/// Headers that proxies add.
const PROXY_HEADERS: [&str; 6] =
    ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip", "via"];

/// Checks that a request without a key comes from the local user. It must not come through a local proxy, nor
/// from a page of another site in the user's browser, even if that site's name resolves to this machine.
fn check_local(request: &Request, cors_origins: &[String]) -> Result<(), Problem> {
    let (version, headers) = (request.version(), request.headers());
    let refusal = |code, detail: &str| Err(Problem::new(StatusCode::FORBIDDEN, code, detail));
    let proxy_header = PROXY_HEADERS.into_iter().find(|name| headers.contains_key(*name));
    // Some proxies send HTTP/1.0 by default; other clients hardly use it.
    let old_version = (version == Version::HTTP_10).then_some("HTTP/1.0");
    if let Some(sign) = proxy_header.or(old_version) {
        let detail = format!(
            "without a key only direct requests from this machine are answered, and this one came through a \
             proxy (`{sign}`): set TAMBOUR_API_KEY, or make an admin key on the machine itself"
        );
        return refusal("behind_proxy", &detail);
    }
    let Some(host) = local_host(request.uri(), headers) else {
        let detail = "without a key only requests to a local address are answered: they need one `Host` \
                      header that is `localhost`, `127.0.0.1` or `[::1]`, with or without a port, and a \
                      target that begins with `/`";
        return refusal("foreign_origin", detail);
    };
    let Some(origin) = headers.get(header::ORIGIN) else { return Ok(()) };
    let is_same_origin = origin.as_bytes().eq_ignore_ascii_case(format!("http://{host}").as_bytes());
    let is_allowed = cors_origins.iter().any(|allowed| allowed.as_bytes() == origin.as_bytes());
    if is_same_origin || is_allowed {
        return Ok(());
    }
    let detail = "without a key requests from pages of other sites are refused, and another port is another \
                  site; allow sites with `cors_origins` of the configuration";
    refusal("foreign_origin", detail)
}

/// Returns the single host that a request names, if it is this machine. A request whose target has a host
/// (`GET http://HOST/...`) is meant for a proxy and is not local, whatever its `Host` header says.
fn local_host<'a>(target: &Uri, headers: &'a HeaderMap) -> Option<&'a str> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let (host, None) = (hosts.next()?.to_str().ok()?, hosts.next()) else { return None };
    (target.authority().is_none() && target.scheme().is_none() && is_local(host)).then_some(host)
}

/// Returns `true` if a host, with or without a port, is exactly a name or address of this machine.
fn is_local(host: &str) -> bool {
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok();
    let (name, port) = match host.strip_prefix('[') {
        Some(address_and_port) => {
            let Some((address, port)) = address_and_port.split_once(']') else { return false };
            let is_loopback = address.parse::<Ipv6Addr>().is_ok_and(|address| address.is_loopback());
            return is_loopback && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port));
        }
        None => match host.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (host, None),
        },
    };
    let is_loopback = name.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback());
    (name.eq_ignore_ascii_case("localhost") || is_loopback) && port.is_none_or(is_port)
}

/// Refuses callers without the `admin` right.
pub(super) fn require_admin(caller: &Caller) -> Result<(), Problem> {
    if caller.is_admin {
        return Ok(());
    }
    Err(Problem::new(StatusCode::FORBIDDEN, "forbidden", "this request needs a key with the `admin` right"))
}

/// Describes a key with its limits, without its secret.
fn key_json(key: &KeyRow) -> Value {
    let rights = if key.is_admin { "admin" } else { "plain" };
    let mut json =
        json!({"id": key.id, "owner": key.owner, "name": key.name, "rights": rights, "created": key.created});
    let limits =
        key.limits.as_deref().and_then(|limits| serde_json::from_str::<Map<String, Value>>(limits).ok());
    if let (Some(json), Some(limits)) = (json.as_object_mut(), limits) {
        json.extend(limits);
    }
    json
}

/// `GET /api/v1/keys`: all keys, without their secrets.
pub(super) async fn list(
    State(app): State<Arc<App>>,
    axum::Extension(caller): axum::Extension<Caller>,
    QueryParams(query): QueryParams<page::PageQuery>,
) -> Result<Json<Value>, Problem> {
    require_admin(&caller)?;
    let keys = app.store.keys().await?;
    query.page_of(keys.iter().map(|key| (key.id.clone(), key_json(key))).collect()).map(Json)
}

/// Body of `POST /api/v1/keys`.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewKey {
    /// Display name.
    name: String,
    /// `admin` or `plain` (default).
    #[serde(default)]
    rights: Option<String>,
    /// Owner of everything created with the key, shared by all keys of that owner; a new one when absent.
    #[serde(default)]
    owner: Option<String>,
    /// Maximum number of messages and turns of dialogues a minute.
    #[serde(default)]
    requests_per_minute: Option<u32>,
    /// Maximum number of tokens of prompts and replies a day (UTC), as counted by upstreams.
    #[serde(default)]
    tokens_per_day: Option<u64>,
    /// The only aliases that the key may use, through the routes of other protocols.
    #[serde(default)]
    aliases: Option<Vec<String>>,
}

/// Body of `PATCH /api/v1/keys/{id}`: absent fields are kept, `null` removes a limit.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeyChange {
    /// Display name.
    #[serde(default)]
    name: Option<String>,
    /// Maximum number of messages and turns of dialogues a minute.
    #[serde(default, with = "serde_with_null")]
    #[schema(value_type = Option<u32>)]
    requests_per_minute: Option<Option<u32>>,
    /// Maximum number of tokens of prompts and replies a day (UTC), as counted by upstreams.
    #[serde(default, with = "serde_with_null")]
    #[schema(value_type = Option<u64>)]
    tokens_per_day: Option<Option<u64>>,
    /// The only aliases that the key may use, through the routes of other protocols.
    #[serde(default, with = "serde_with_null")]
    #[schema(value_type = Option<Vec<String>>)]
    aliases: Option<Option<Vec<String>>>,
}

/// `PATCH /api/v1/keys/{id}`: changes name and limits for later requests. The secret is kept and not shown.
pub(super) async fn change(
    State(app): State<Arc<App>>,
    axum::Extension(caller): axum::Extension<Caller>,
    Path(id): Path<String>,
    bytes: Bytes,
) -> Result<Json<Value>, Problem> {
    require_admin(&caller)?;
    let change: KeyChange = parse_body(&bytes)?;
    let task_app = app.clone();
    let change_result = app.run_to_completion(async move {
        let _change_guard = task_app.keys.change_lock.lock().await;
        check_can_change(&task_app, &caller)?;
        if id == CONFIGURED_KEY {
            return Err(Problem::not_found("the key `configured` can only be changed in the configuration"));
        }
        let stored_key = task_app.store.keys().await?.into_iter().find(|key| key.id == id);
        let mut key = stored_key.ok_or_else(|| Problem::not_found("there is no such key"))?;
        // Unreadable limits block a key, and a change of its name must not lift that.
        let limits = key.limits.as_deref().map(serde_json::from_str::<KeyLimits>).transpose();
        let mut limits = limits.map_err(|_| damaged_key())?.unwrap_or_default();
        if let Some(name) = change.name {
            key.name = name;
        }
        if let Some(max_requests) = change.requests_per_minute {
            limits.requests_per_minute = max_requests;
        }
        if let Some(max_tokens) = change.tokens_per_day {
            limits.tokens_per_day = max_tokens;
        }
        if let Some(aliases) = change.aliases {
            limits.aliases = aliases;
            check_aliases(&task_app, &limits)?;
        }
        key.limits = (limits != KeyLimits::default()).then(|| json!(limits).to_string());
        task_app.store.change_key(&key).await?;
        let answer = key_json(&key);
        task_app.keys.change(key);
        Ok(answer)
    });
    Ok(Json(change_result.await?))
}

/// `POST /api/v1/keys`: the response contains the secret, which is shown nowhere else.
pub(super) async fn create(
    State(app): State<Arc<App>>,
    axum::Extension(caller): axum::Extension<Caller>,
    bytes: Bytes,
) -> Result<(StatusCode, Json<Value>), Problem> {
    require_admin(&caller)?;
    let new_key: NewKey = parse_body(&bytes)?;
    let is_admin = match new_key.rights.as_deref() {
        None | Some("plain") => false,
        Some("admin") => true,
        Some(other) => {
            return Err(Problem::invalid(
                "invalid_field",
                format!("`rights` must be admin or plain, not `{other}`"),
            ));
        }
    };
    let is_valid_owner = |owner: &String| {
        (1..=64).contains(&owner.len())
            && owner.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
            && owner != LOCAL_OWNER
    };
    if new_key.owner.as_ref().is_some_and(|owner| !is_valid_owner(owner)) {
        let detail = "an `owner` must have 1 to 64 letters, digits, `-`, `_` or `.`, and must not be `local`";
        return Err(Problem::invalid("invalid_field", detail).with("field", "owner"));
    }
    let limits = KeyLimits {
        requests_per_minute: new_key.requests_per_minute,
        tokens_per_day: new_key.tokens_per_day,
        aliases: new_key.aliases,
    };
    check_aliases(&app, &limits)?;
    let task_app = app.clone();
    let answer = app.run_to_completion(async move {
        let _change_guard = task_app.keys.change_lock.lock().await;
        check_can_change(&task_app, &caller)?;
        // The first key locks the server: without the admin right no one could create further keys.
        if task_app.keys.is_empty() && !is_admin {
            return Err(Problem::invalid("first_key_admin", "the first key needs `rights: admin`"));
        }
        let is_first_key = task_app.keys.is_empty();
        let secret = ids::new_secret();
        let owner = new_key.owner.unwrap_or_else(|| ids::new_id("owner"));
        let key = KeyRow {
            id: ids::new_id("key"),
            owner: owner.clone(),
            name: new_key.name,
            hash: hash(&secret),
            is_admin,
            created: ids::now(),
            limits: (limits != KeyLimits::default()).then(|| json!(limits).to_string()),
        };
        task_app.store.insert_key(&key).await?;
        let mut answer = key_json(&key);
        answer["key"] = json!(secret);
        task_app.keys.add(key);
        if is_first_key {
            // The local user ceases to exist: the owner of the first key takes over its data.
            task_app.store.hand_over(LOCAL_OWNER, &owner).await?;
        }
        Ok(answer)
    });
    Ok((StatusCode::CREATED, Json(answer.await?)))
}

/// Problem: the stored limits of a key are unreadable.
fn damaged_key() -> Problem {
    let detail = "the stored limits of this key cannot be read; remove it and make another one";
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "damaged", detail)
}

/// Refuses limits with aliases that are not configured.
fn check_aliases(app: &App, limits: &KeyLimits) -> Result<(), Problem> {
    let alias_names = limits.aliases.iter().flatten();
    if let Some(alias) = alias_names.clone().find(|alias| alias.is_empty() || alias.len() > 200) {
        let detail = format!("an alias must have 1 to 200 bytes, not {}", alias.len());
        return Err(Problem::invalid("invalid_field", detail).with("field", "aliases"));
    }
    let loaded_config = app.loaded_config();
    let aliases = &loaded_config.config.aliases;
    let mut unknown_aliases = alias_names.filter(|alias| !aliases.contains_key(*alias));
    unknown_aliases.next().map_or(Ok(()), |alias| {
        let aliases = aliases.keys().map(String::as_str);
        Err(Problem::unknown("unknown_alias", ("alias", alias), aliases).with("field", "aliases"))
    })
}

/// Refuses a caller that ceased to be valid while this change waited: its key was removed, or it is the local
/// user and the first key was created.
fn check_can_change(app: &App, caller: &Caller) -> Result<(), Problem> {
    if app.keys.can_change(caller) { Ok(()) } else { Err(invalid_key()) }
}

/// Refuses a caller that ceased to be valid while its body was received: its key was removed, or it is the
/// local user and the first key was created.
pub(super) fn check_admitted(app: &App, caller: &Caller) -> Result<(), Problem> {
    if app.keys.is_admitted(caller) { Ok(()) } else { Err(invalid_key()) }
}

/// Problem: the caller's key is no longer valid.
pub(super) fn invalid_key() -> Problem {
    Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", "this key is no longer valid")
}

/// `DELETE /api/v1/keys/{id}`: removes a key and ends its streams and runs. Everything created with the key
/// still belongs to its owner.
pub(super) async fn remove(
    State(app): State<Arc<App>>,
    axum::Extension(caller): axum::Extension<Caller>,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    require_admin(&caller)?;
    if caller.key == id {
        return Err(Problem::new(StatusCode::CONFLICT, "own_key", "a key cannot remove itself"));
    }
    let task_app = app.clone();
    app.run_to_completion(async move {
        let _change_guard = task_app.keys.change_lock.lock().await;
        check_can_change(&task_app, &caller)?;
        if !task_app.store.delete_key(&id).await? {
            return Err(Problem::not_found("there is no such key"));
        }
        task_app.keys.remove(&id);
        task_app.quotas.forget(&id);
        task_app.memory_responses.drop_stale(Some(&id));
        Ok(StatusCode::NO_CONTENT)
    })
    .await
}

/// `POST /api/v1/messages/{id}/stream_tokens`: creates a token for the event stream of a message, for clients
/// that cannot send headers. `expires_in` is in seconds.
pub(super) async fn create_token(
    State(app): State<Arc<App>>,
    axum::Extension(caller): axum::Extension<Caller>,
    Path(id): Path<String>,
) -> Result<(StatusCode, Json<Value>), Problem> {
    find_owned(&app, &caller, &id).await?;
    let token = app.keys.create_token(&caller, &id);
    if let Some(cluster) = app.store.cluster() {
        let row = StreamTokenRow { hash: hash(&token), message: id, key: caller.key };
        cluster.put_stream_token(&row, TOKEN_LIFETIME).await?;
    }
    let expires = TOKEN_LIFETIME.as_secs();
    Ok((StatusCode::CREATED, Json(json!({"token": token, "expires_in": expires}))))
}
