//! Middleware for all requests: assigns an id, writes a log line, and converts framework errors to problems.

use std::time::Instant;
use tambour::texts::format_count;

use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::base::ids;
use crate::base::problem::Problem;

/// Id of a request: that of the header `x-request-id` if it is valid, otherwise a new one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RequestId(pub(super) String);

/// Maximum length in bytes of an error text of the framework (axum); a longer one is replaced by an empty
/// text.
const MAX_ERROR_BYTES: usize = 2000;

/// Header of requests and responses with the id of the request.
const REQUEST_ID_HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// Assigns an id to the request, and logs one line without query, headers or bodies.
pub(super) async fn identify(State(max_request): State<usize>, mut request: Request, next: Next) -> Response {
    let header = request.headers().get(REQUEST_ID_HEADER).and_then(|value| value.to_str().ok());
    let is_acceptable = |id: &&str| {
        (1..=64).contains(&id.len())
            && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
    };
    let id = header.filter(is_acceptable).map_or_else(|| ids::new_id("req"), str::to_owned);
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    request.extensions_mut().insert(RequestId(id.clone()));
    let start_time = Instant::now();
    let mut response = to_problem_document(next.run(request).await, max_request).await;
    let (status, ms) = (response.status().as_u16(), start_time.elapsed().as_millis());
    tracing::info!(request = id, %method, path, status, ms, "request");
    if let Ok(id) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(REQUEST_ID_HEADER, id);
    }
    response
}

/// Converts plain-text errors of the framework to problem documents.
async fn to_problem_document(response: Response, max_request: usize) -> Response {
    let status = response.status();
    let is_plain_text = response
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"text/plain; charset=utf-8"));
    if !(status.is_client_error() || status.is_server_error()) || !is_plain_text {
        return response;
    }
    let code = match status {
        StatusCode::PAYLOAD_TOO_LARGE => {
            return too_large_problem("max_request", max_request).into_response();
        }
        StatusCode::BAD_REQUEST => "malformed_request",
        // `/readyz` responds with plain text.
        StatusCode::SERVICE_UNAVAILABLE => return response,
        _ => "refused",
    };
    let body = to_bytes(response.into_body(), MAX_ERROR_BYTES).await.unwrap_or_default();
    Problem::new(status, code, String::from_utf8_lossy(&body).trim()).into_response()
}

/// Problem: the request is longer than `max` bytes, the value of the setting named `setting`.
pub(super) fn too_large_problem(setting: &str, max: usize) -> Problem {
    let detail = format!("the request is longer than `{setting}`, {}", format_count(max, "byte"));
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", detail)
}
