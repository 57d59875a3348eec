//! API keys: who may call, and whose everything is (invariant 10).

use std::sync::{Arc, PoisonError, RwLock};

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, Request, State};
use axum::http::{StatusCode, header};
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
#[derive(Default)]
pub(crate) struct Keys {
    known: RwLock<Vec<Key>>,
}

/// Who calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    /// Id of the key; `local` while no key exists.
    pub(crate) owner: String,
    /// Whether it may change settings and keys.
    pub(crate) admin: bool,
}

impl Keys {
    /// These keys.
    #[must_use]
    pub(crate) fn new(known: Vec<Key>) -> Keys {
        Keys { known: RwLock::new(known) }
    }

    /// Whether there is none.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.known.read().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// The caller behind a secret. Every key is compared, in constant time each.
    fn caller(&self, secret: Option<&str>) -> Option<Caller> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if known.is_empty() {
            return Some(Caller { owner: "local".to_owned(), admin: true });
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

/// Lets requests with a key through, and all of them while no key exists.
pub(super) async fn authenticate(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    let headers = request.headers();
    let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let secret =
        given.and_then(|given| given.strip_prefix("Bearer ").or_else(|| given.strip_prefix("bearer ")));
    match app.keys.caller(secret.map(str::trim)) {
        Some(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        None => {
            Metrics::count(&app.metrics.unauthorized);
            let problem = Problem::new(
                StatusCode::UNAUTHORIZED,
                "unauthorized",
                "give a valid key: Authorization: Bearer KEY",
            );
            let mut response = problem.into_response();
            response
                .headers_mut()
                .insert(header::WWW_AUTHENTICATE, header::HeaderValue::from_static("Bearer"));
            response
        }
    }
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
    // The first key locks the door: without the right to make others nobody could open it again.
    if app.keys.is_empty() && !admin {
        return Err(Problem::invalid("first_key_admin", "the first key needs `rights: admin`"));
    }
    let secret = ids::secret();
    let key = Key { id: ids::new("key"), name: new.name, hash: hash(&secret), admin, created: ids::now() };
    app.store.insert_key(&key).await?;
    let mut answer = shown(&key);
    answer["key"] = json!(secret);
    app.keys.known.write().unwrap_or_else(PoisonError::into_inner).push(key);
    Ok((StatusCode::CREATED, Json(answer)))
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
    if !app.store.delete_key(&id).await? {
        return Err(Problem::not_found("there is no such key"));
    }
    app.keys.known.write().unwrap_or_else(PoisonError::into_inner).retain(|key| key.id != id);
    Ok(StatusCode::NO_CONTENT)
}
