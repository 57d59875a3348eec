//! `Idempotency-Key`: a request is processed once per owner, and its response is returned again for a day, or
//! for as long as a token in it is valid.
//!
//! Handlers of messages and dialogue inputs read the key themselves ([`read_key`]). Other operations that
//! create something are wrapped by [`process_once`]; the table of operations says which, and whether their
//! responses may be stored on disk.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::keys::{Caller, TOKEN_LIFETIME};
use crate::base::ids;
use crate::base::problem::Problem;
use crate::http::app::{App, AppState};
use crate::run::request_repeats::{RETENTION_HOURS, in_progress_problem, repeat_since};
use crate::store::{RequestClaim, RequestKey, StoredResponse};

/// Maximum length of an idempotency key in bytes.
pub(super) const MAX_KEY_BYTES: usize = 255;
/// Maximum number of responses of one owner kept in memory; the oldest are dropped first.
const MAX_IN_MEMORY: usize = 1000;

/// Storage of an operation's response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResponseStorage {
    /// In the database, which survives a restart.
    Stored,
    /// In memory only and for this time, since the response contains a secret. Other servers of a cluster
    /// refuse a repeated request.
    Secret(Duration),
    /// In memory only and for this time, since the response contains a token. Other servers of a cluster make
    /// another token for a repeated request.
    Token(Duration),
}

/// Storage of responses whose secret stays valid: in memory, for as long as the database keeps other
/// responses.
pub(super) const SECRET_RESPONSE: ResponseStorage =
    ResponseStorage::Secret(Duration::from_secs(RETENTION_HOURS.unsigned_abs() * 3600));
/// Storage of responses with a token of an event stream: in memory, for as long as the token is valid.
pub(super) const TOKEN_RESPONSE: ResponseStorage = ResponseStorage::Token(TOKEN_LIFETIME);

/// Responses kept in memory only.
#[derive(Default)]
pub(crate) struct MemoryResponses {
    /// Responses by owner, the newest first.
    by_owner: Mutex<HashMap<String, VecDeque<MemoryResponse>>>,
}

/// Response to one request, kept in memory.
struct MemoryResponse {
    key: RequestKey,
    response: StoredResponse,
    expires_at: Instant,
}

/// Claim of a request that is being processed, released on drop.
pub(super) struct RequestHold {
    app: AppState,
    key: RequestKey,
}

/// Returns the idempotency key of a request, if it has one.
pub(super) fn read_key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let Some(header) = headers.get("idempotency-key") else { return Ok(None) };
    match header.to_str() {
        Ok(key) if !key.is_empty() && key.len() <= MAX_KEY_BYTES => Ok(Some(key.to_owned())),
        _ => {
            let detail =
                format!("an `Idempotency-Key` must have 1 to {MAX_KEY_BYTES} visible ASCII characters");
            Err(Problem::invalid("invalid_idempotency_key", detail))
        }
    }
}

/// Claims a request for processing. Returns the claim, or the stored response if a request with this key was
/// processed before.
///
/// # Errors
/// A request with this key is in progress.
pub(super) async fn claim(
    app: &AppState,
    key: RequestKey,
) -> Result<Result<RequestHold, StoredResponse>, Problem> {
    match app.store.claim_request(&key, &repeat_since()).await? {
        RequestClaim::Claimed => {}
        RequestClaim::Responded(response) => {
            // The database has a refusal for the other servers in place of a response with a secret.
            return Ok(Err(app.memory_responses.find(&key).unwrap_or(response)));
        }
        RequestClaim::InProgress => return Err(in_progress_problem()),
    }
    // The store does not know responses that are kept in memory only. If there is one, it is returned, and
    // dropping `hold` releases the claim.
    let hold = RequestHold { app: app.clone(), key };
    Ok(app.memory_responses.find(&hold.key).map_or(Ok(hold), Err))
}

/// Problem: the key was used for another request.
pub(super) fn reused_key_problem() -> Problem {
    Problem::invalid("idempotency_key_reused", "this `Idempotency-Key` was sent with another request")
}

/// Returns the stored response of a repeated request, and stores that of a new one. A failed request has
/// created nothing and may be repeated.
pub(super) async fn process_once(
    State((app, storage)): State<(AppState, ResponseStorage)>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let Some(idempotency_key) = read_key(request.headers())? else { return Ok(next.run(request).await) };
    let caller = request.extensions().get::<Caller>().cloned().ok_or_else(Problem::internal)?;
    let route = format!("{} {}", request.method(), request.uri().path());
    let query = request.uri().query().unwrap_or_default().to_owned();
    let (parts, body) = request.into_parts();
    // `request_body` has already read the body and limited its length.
    let body = to_bytes(body, usize::MAX).await.map_err(|_| Problem::internal())?;
    // The digest tells whether a request with the same key is the same request.
    let digest = Sha256::new().chain_update(query).chain_update(&body).finalize().to_vec();
    let request_key = RequestKey { owner: caller.owner, route, idempotency_key };
    let hold = match claim(&app, request_key.clone()).await? {
        Ok(hold) => hold,
        Err(stored_response) if stored_response.digest == digest => return Ok(to_response(stored_response)),
        Err(_) => return Err(reused_key_problem()),
    };
    let request = Request::from_parts(parts, Body::from(body));
    let task_app = app.clone();
    // Completed even if the client disconnects: it may repeat the request and then needs this response.
    app.run_to_completion(async move {
        let response = next.run(request).await;
        let response = if response.status().is_success() {
            let (parts, body) = response.into_parts();
            let body = to_bytes(body, usize::MAX).await.map_err(|_| Problem::internal())?;
            let location = parts.headers.get(header::LOCATION).and_then(|value| value.to_str().ok());
            let (status, location) = (parts.status.as_u16(), location.map(str::to_owned));
            let stored_response =
                StoredResponse { digest, status, location, body: body.to_vec(), named_ids: named_ids(&body) };
            store_response(&task_app, storage, request_key, stored_response).await;
            Response::from_parts(parts, Body::from(body))
        } else {
            response
        };
        drop(hold);
        Ok(response)
    })
    .await
}

/// Stores the response to a request for its repetitions.
async fn store_response(
    app: &App,
    storage: ResponseStorage,
    request_key: RequestKey,
    response: StoredResponse,
) {
    let lifetime = match storage {
        ResponseStorage::Token(lifetime) => lifetime,
        ResponseStorage::Secret(lifetime) => {
            if app.store.cluster().is_some() {
                let refusal = secret_refusal(&response).await;
                if let Err(error) = app.store.store_response(&request_key, &refusal, &ids::now()).await {
                    tracing::warn!(%error, "other servers do not know of a request with an `Idempotency-Key`");
                }
            }
            lifetime
        }
        ResponseStorage::Stored => match app.store.store_response(&request_key, &response, &ids::now()).await
        {
            Ok(()) => return,
            Err(error) => {
                // The resource exists, and a repeated request must not create it again.
                tracing::warn!(%error, "the answer of a request with an `Idempotency-Key` is kept in memory only");
                Duration::from_secs(RETENTION_HOURS.unsigned_abs() * 3600)
            }
        },
    };
    app.memory_responses.insert(request_key, response, lifetime);
}

/// Returns the response to a repetition of the request on other servers, which do not know the secret.
async fn secret_refusal(response: &StoredResponse) -> StoredResponse {
    let detail = "the request succeeded on another server, which alone has the response with its secret; \
                  if you did not get it, delete what was created and send the request with another key";
    let problem = Problem::conflict("secret_not_stored", detail).with("ids", response.named_ids.clone());
    let problem = problem.into_response();
    let status = problem.status().as_u16();
    let body = to_bytes(problem.into_body(), usize::MAX).await.unwrap_or_default().to_vec();
    StoredResponse { status, body, location: None, ..response.clone() }
}

/// Builds the response to a repeated request.
fn to_response(stored: StoredResponse) -> Response {
    let status = StatusCode::from_u16(stored.status).unwrap_or(StatusCode::OK);
    let mut response = (status, stored.body).into_response();
    let headers = response.headers_mut();
    let content_type = if status.is_success() { "application/json" } else { "application/problem+json" };
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    if let Some(location) = stored.location.and_then(|location| HeaderValue::from_str(&location).ok()) {
        headers.insert(header::LOCATION, location);
    }
    response
}

/// Returns the ids in a response: its fields `id` and `..._id`, and those of the elements of `data`.
fn named_ids(body: &Bytes) -> Vec<String> {
    let response: Value = serde_json::from_slice(body).unwrap_or_default();
    let objects = response["data"].as_array().into_iter().flatten().chain([&response]);
    let fields = objects.filter_map(Value::as_object).flatten();
    let ids = fields.filter(|(name, _)| *name == "id" || name.ends_with("_id"));
    ids.filter_map(|(_, value)| value.as_str().map(str::to_owned)).collect()
}

impl MemoryResponses {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, VecDeque<MemoryResponse>>> {
        self.by_owner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, request_key: &RequestKey) -> Option<StoredResponse> {
        let by_owner = self.lock();
        let now = Instant::now();
        let mut responses = by_owner.get(&request_key.owner)?.iter();
        let found = responses.find(|entry| entry.expires_at > now && entry.key == *request_key)?;
        Some(found.response.clone())
    }

    fn insert(&self, key: RequestKey, response: StoredResponse, lifetime: Duration) {
        let mut by_owner = self.lock();
        let responses = by_owner.entry(key.owner.clone()).or_default();
        responses.retain(|entry| entry.key != key);
        responses.truncate(MAX_IN_MEMORY - 1);
        responses.push_front(MemoryResponse { key, response, expires_at: Instant::now() + lifetime });
    }

    /// Drops expired responses, and those that name `deleted_id`, the id of a deleted resource.
    pub(crate) fn drop_stale(&self, deleted_id: Option<&str>) {
        let now = Instant::now();
        let names_deleted = |entry: &MemoryResponse| {
            deleted_id.is_some_and(|id| entry.response.named_ids.iter().any(|named_id| named_id == id))
        };
        self.lock().retain(|_, responses| {
            responses.retain(|entry| entry.expires_at > now && !names_deleted(entry));
            !responses.is_empty()
        });
    }
}

impl Drop for RequestHold {
    fn drop(&mut self) {
        self.app.store.release_request(&self.key);
    }
}
