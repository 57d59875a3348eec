//! API keys: who may call, and whose everything is (invariant 10).

use std::sync::{Arc, PoisonError, RwLock};

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, StatusCode, Version, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::problem::{Problem, body};
use crate::app::App;
use crate::ids;
use crate::metrics::Metrics;
use crate::store::Key;

/// The keys that exist. Only hashes are kept.
pub(crate) struct Keys {
    known: RwLock<Vec<Key>>,
    /// One change at a time, so that what a change rests on still holds when it is made.
    changing: tokio::sync::Mutex<()>,
}

/// Whose everything is while no key exists.
const LOCAL: &str = "local";

/// Who calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    /// Id of the key; `local` while no key exists.
    pub(crate) owner: String,
    /// Whether it may change settings and keys.
    pub(crate) admin: bool,
}

impl Keys {
    /// The stored keys, and the configured one.
    #[must_use]
    pub(crate) fn new(mut known: Vec<Key>, configured: Option<&str>) -> Keys {
        known.extend(configured.map(|secret| Key {
            id: "configured".into(),
            name: "configured".into(),
            hash: hash(secret),
            admin: true,
            created: ids::now(),
        }));
        Keys { known: RwLock::new(known), changing: tokio::sync::Mutex::default() }
    }

    /// Whether there is none.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.known.read().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Whether a caller that was let in would be let in still.
    fn knows(&self, caller: &Caller) -> bool {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if known.is_empty() { caller.owner == LOCAL } else { known.iter().any(|key| key.id == caller.owner) }
    }

    /// Whether a caller may still change keys.
    fn may_change(&self, caller: &Caller) -> bool {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if known.is_empty() {
            caller.owner == LOCAL
        } else {
            known.iter().any(|key| key.id == caller.owner && key.admin)
        }
    }

    /// The caller behind a secret. Every key is compared, in constant time each.
    fn caller(&self, secret: Option<&str>) -> Option<Caller> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if known.is_empty() {
            return Some(Caller { owner: LOCAL.to_owned(), admin: true });
        }
        let hash = Sha256::digest(secret?.as_bytes());
        let mut found = None;
        for key in known.iter() {
            if bool::from(key.hash.as_slice().ct_eq(hash.as_slice())) {
                found = Some(Caller { owner: key.id.clone(), admin: key.admin });
            }
        }
        found
    }
}

/// SHA-256 of a secret.
pub(crate) fn hash(secret: &str) -> Vec<u8> {
    Sha256::digest(secret.as_bytes()).to_vec()
}

/// Lets requests with a key through, and those of this machine while no key exists.
pub(super) async fn authenticate(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    let headers = request.headers();
    let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let secret = given
        .and_then(|given| given.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .map(|(_, secret)| secret.trim());
    let Some(caller) = app.keys.caller(secret) else {
        Metrics::count(&app.metrics.unauthorized);
        let detail = "give a valid key: Authorization: Bearer KEY";
        let problem = Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", detail);
        let mut response = problem.into_response();
        let scheme = header::HeaderValue::from_static("Bearer");
        response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
        return response;
    };
    if caller.owner == LOCAL
        && let Err(problem) = from_here(request.version(), headers, &app.loaded().config.cors_origins)
    {
        return problem.into_response();
    }
    request.extensions_mut().insert(caller);
    next.run(request).await
}

/// Headers by which a proxy tells whom it speaks for.
const OF_PROXIES: [&str; 6] =
    ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip", "via"];

/// Without a key, only the local user is let in: a page of another site that the user's browser shows is not the user, and
/// neither is one whose name was made to point here, nor whoever comes through a proxy of this machine.
fn from_here(version: Version, headers: &HeaderMap, allowed: &[String]) -> Result<(), Problem> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let refused = |code, detail: &str| Err(Problem::new(StatusCode::FORBIDDEN, code, detail));
    let proxied = OF_PROXIES.into_iter().find(|name| headers.contains_key(*name));
    // What proxies speak that are not told to do better, and nobody else any more.
    let old = (version == Version::HTTP_10).then_some("HTTP/1.0");
    if let Some(sign) = proxied.or(old) {
        let detail = format!(
            "without a key only requests that come straight from this machine are answered, and this one came through a \
             proxy (`{sign}`): set TAMBOUR_API_KEY, or make an admin key on the machine itself"
        );
        return refused("behind_proxy", &detail);
    }
    let host = text(header::HOST);
    if headers.contains_key(header::HOST) && !host.is_some_and(is_local) {
        return refused("foreign_origin", "without a key only requests to a local address are answered");
    }
    let Some(origin) = headers.get(header::ORIGIN) else { return Ok(()) };
    let own = |host: &str| origin.as_bytes().eq_ignore_ascii_case(format!("http://{host}").as_bytes());
    if host.is_some_and(own) || allowed.iter().any(|known| known.as_bytes() == origin.as_bytes()) {
        return Ok(());
    }
    let detail = "without a key pages of other sites are not answered, and another port is another site; \
                  `cors_origins` of the configuration names those that may";
    refused("foreign_origin", detail)
}

/// Whether a host, with or without a port, is this machine.
fn is_local(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or(""),
        None => host.split(':').next().unwrap_or(""),
    };
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Refuses callers without the `admin` right.
pub(super) fn admin(caller: &Caller) -> Result<(), Problem> {
    if caller.admin {
        return Ok(());
    }
    Err(Problem::new(StatusCode::FORBIDDEN, "forbidden", "this needs a key with the `admin` right"))
}

fn shown(key: &Key) -> Value {
    let rights = if key.admin { "admin" } else { "plain" };
    json!({"id": key.id, "name": key.name, "rights": rights, "created": key.created})
}

/// `GET /api/v1/keys`
pub(super) async fn list(
    State(app): State<Arc<App>>,
    axum::Extension(caller): axum::Extension<Caller>,
) -> Result<Json<Value>, Problem> {
    admin(&caller)?;
    let keys: Vec<Value> = app.store.keys().await?.iter().map(shown).collect();
    Ok(Json(json!({ "keys": keys })))
}

/// What is asked of `POST /api/v1/keys`.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewKey {
    /// A name, for people.
    name: String,
    /// `admin` or `plain` (default).
    #[serde(default)]
    rights: Option<String>,
}

/// `POST /api/v1/keys`: the secret is in the answer and nowhere else.
pub(super) async fn create(
    State(app): State<Arc<App>>,
    axum::Extension(caller): axum::Extension<Caller>,
    bytes: Bytes,
) -> Result<(StatusCode, Json<Value>), Problem> {
    admin(&caller)?;
    let new: NewKey = body(&bytes)?;
    let admin = match new.rights.as_deref() {
        None | Some("plain") => false,
        Some("admin") => true,
        Some(other) => {
            return Err(Problem::invalid(
                "invalid_field",
                format!("`rights` is admin or plain, not `{other}`"),
            ));
        }
    };
    let work = app.clone();
    let answer = app.undisturbed(async move {
        let _changing = work.keys.changing.lock().await;
        still(&work, &caller)?;
        // The first key locks the door: without the right to make others nobody could open it again.
        if work.keys.is_empty() && !admin {
            return Err(Problem::invalid("first_key_admin", "the first key needs `rights: admin`"));
        }
        let secret = ids::secret();
        let key =
            Key { id: ids::new("key"), name: new.name, hash: hash(&secret), admin, created: ids::now() };
        work.store.insert_key(&key).await?;
        let mut answer = shown(&key);
        answer["key"] = json!(secret);
        work.keys.known.write().unwrap_or_else(PoisonError::into_inner).push(key);
        Ok(answer)
    });
    Ok((StatusCode::CREATED, Json(answer.await?)))
}

/// Refuses a caller whose key was removed, or who came before the first key, while this change waited.
fn still(app: &App, caller: &Caller) -> Result<(), Problem> {
    if app.keys.may_change(caller) { Ok(()) } else { Err(gone()) }
}

/// Refuses a caller whose key was removed, or who came before the first key, while the body came.
pub(super) fn known(app: &App, caller: &Caller) -> Result<(), Problem> {
    if app.keys.knows(caller) { Ok(()) } else { Err(gone()) }
}

fn gone() -> Problem {
    Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", "this key is not valid any more")
}

/// `DELETE /api/v1/keys/{id}`
pub(super) async fn remove(
    State(app): State<Arc<App>>,
    axum::Extension(caller): axum::Extension<Caller>,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    admin(&caller)?;
    if caller.owner == id {
        return Err(Problem::new(StatusCode::CONFLICT, "own_key", "a key cannot remove itself"));
    }
    let work = app.clone();
    app.undisturbed(async move {
        let _changing = work.keys.changing.lock().await;
        still(&work, &caller)?;
        if !work.store.delete_key(&id).await? {
            return Err(Problem::not_found("there is no such key"));
        }
        work.keys.known.write().unwrap_or_else(PoisonError::into_inner).retain(|key| key.id != id);
        Ok(StatusCode::NO_CONTENT)
    })
    .await
}
