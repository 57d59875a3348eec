//! Hands a request about a running message or turn to the server that runs it, if that is another one.

use std::sync::OnceLock;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::peer_logs::client_builder;
use crate::base::metrics::Metrics;
use crate::base::problem::Problem;
use crate::http::app::{App, AppState};
use crate::store::{Cluster, StoreError};

/// Header of a request that was handed on once; it is not handed on again.
const HANDED_ON: HeaderName = HeaderName::from_static("x-tambour-handed-on");
/// Longest wait for the response of the other server.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum length in bytes of a request body that is handed on.
const MAX_BODY: usize = 64 << 20;

/// Time between two looks at the lease of this server.
const LOOK: Duration = Duration::from_millis(500);
/// Time in which requests that wait for the database end by themselves once the lease is lost.
const GRACE: Duration = Duration::from_secs(1);

/// Client for requests to other servers; `None` if it could not be created.
static PEER_CLIENT: OnceLock<Option<reqwest::Client>> = OnceLock::new();

/// Headers that belong to one connection.
const HOP_HEADERS: [HeaderName; 5] = [
    header::CONNECTION,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::TE,
    HeaderName::from_static("keep-alive"),
];

/// Hands the request on if another server runs the message or turn that it is about. A request that waits for a
/// database that does not answer gets a problem once this server has lost its lease.
pub(super) async fn forward(State(app): State<AppState>, request: Request, next: Next) -> Response {
    if app.store.cluster().is_none() {
        return next.run(request).await;
    }
    tokio::select! {
        biased;
        response = find_server(&app, request, next) => response,
        () = wait_loss(&app) => Problem::from(StoreError::LeaseLost).into_response(),
    }
}

/// Resolves some time after this server has lost its lease, even if it holds it again: what the request waits for
/// may be lost all the same.
async fn wait_loss(app: &App) {
    let regains = || app.store.cluster().map_or(0, |cluster| cluster.status().lease_regains);
    let first_regains = regains();
    while app.store.check_available().is_ok() && regains() == first_regains {
        tokio::time::sleep(LOOK).await;
    }
    tokio::time::sleep(GRACE).await;
}

/// Hands the request on, or answers it.
async fn find_server(app: &App, request: Request, next: Next) -> Response {
    if request.headers().contains_key(HANDED_ON) {
        return next.run(request).await;
    }
    let path = request.uri().path().to_owned();
    match find_remote(app, request.method().clone(), &path).await {
        Ok(Some(address)) => {
            hand_on(app, &address, request).await.unwrap_or_else(IntoResponse::into_response)
        }
        Ok(None) => next.run(request).await,
        Err(error) => Problem::from(error).into_response(),
    }
}

/// Returns the base URL of the server that runs what a request to `path` is about; `None` if this one can answer.
async fn find_remote(app: &App, method: Method, path: &str) -> Result<Option<String>, StoreError> {
    let Some(cluster) = app.store.cluster() else { return Ok(None) };
    let segments: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    match segments[..] {
        ["api", "v1", "messages", id, "cancel" | "regenerate" | "tool_results" | "tool_confirmations"] => {
            find_message(app, cluster, id).await
        }
        ["api", "v1", "messages", id] if method == Method::DELETE => find_message(app, cluster, id).await,
        ["api", "v1", "conversations", id] if method == Method::DELETE => {
            match cluster.running_message(id).await? {
                Some(message) => find_message(app, cluster, &message).await,
                None => Ok(None),
            }
        }
        ["api", "v1", "dialogues", id] if method == Method::DELETE => find_turn(app, cluster, id).await,
        ["api", "v1", "dialogues", id, "cancel"] => find_turn(app, cluster, id).await,
        _ => Ok(None),
    }
}

/// Returns the base URL of the server that runs a message; `None` if none does, or this one.
async fn find_message(app: &App, cluster: &dyn Cluster, id: &str) -> Result<Option<String>, StoreError> {
    if app.running.get(id).is_some() { Ok(None) } else { cluster.remote_address(id).await }
}

/// Returns the base URL of the server that runs a turn of a dialogue; `None` if none does, or this one.
async fn find_turn(app: &App, cluster: &dyn Cluster, dialogue: &str) -> Result<Option<String>, StoreError> {
    match cluster.running_message(dialogue).await? {
        Some(turn) if app.running.get_turn(&turn).is_none() => cluster.remote_address(&turn).await,
        _ => Ok(None),
    }
}

/// Sends the request to another server, and returns its response.
async fn hand_on(app: &App, address: &str, request: Request) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let url = format!("{}{path}", address.trim_end_matches('/'));
    let body = axum::body::to_bytes(body, MAX_BODY).await.map_err(|_| unreachable_problem())?;
    let mut headers = parts.headers;
    for name in HOP_HEADERS.iter().chain([&header::HOST, &header::CONTENT_LENGTH]) {
        headers.remove(name);
    }
    headers.insert(HANDED_ON, HeaderValue::from_static("1"));
    let client = PEER_CLIENT.get_or_init(new_client).as_ref().ok_or_else(Problem::internal)?;
    let answer = async {
        let response = client.request(parts.method, url).headers(headers).body(body).send().await?;
        let (status, headers) = (response.status(), response.headers().clone());
        Ok::<_, reqwest::Error>((status, headers, response.bytes().await?))
    };
    let (status, mut headers, body) = answer.await.map_err(|error| {
        tracing::warn!(%error, address, "a request could not be handed to the server that runs its message");
        unreachable_problem()
    })?;
    Metrics::increment(&app.metrics.forwarded_requests);
    for name in HOP_HEADERS.iter().chain([&header::CONTENT_LENGTH]) {
        headers.remove(name);
    }
    Ok((status, headers, body).into_response())
}

/// Creates the client for requests to other servers.
fn new_client() -> Option<reqwest::Client> {
    client_builder().timeout(ANSWER_TIMEOUT).build().ok()
}

/// Problem: the server that runs the message does not answer; another one will take the message over.
fn unreachable_problem() -> Problem {
    let detail = "the server that runs the message does not answer; try again in a few seconds";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "owner_unreachable", detail).retry_after(2)
}
