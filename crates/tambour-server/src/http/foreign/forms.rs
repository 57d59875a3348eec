//! Error responses as other protocols write them, converted from problem documents.

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use serde_json::{Value, json};

/// Maximum length in bytes of a problem document that is converted.
const MAX_DOCUMENT_BYTES: usize = 64 << 10;

/// Converts the error responses of the OpenAI and Anthropic routes.
pub(in crate::http) async fn convert_errors(request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    let response = next.run(request).await;
    let to_error: fn(StatusCode, &Value) -> Value = match path.as_str() {
        "/v1/messages" | "/v1/messages/count_tokens" => anthropic_error,
        path if path.starts_with("/v1/") => openai_error,
        _ => return response,
    };
    let is_problem = response
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes() == b"application/problem+json");
    if !is_problem {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let problem = to_bytes(body, MAX_DOCUMENT_BYTES).await.unwrap_or_default();
    let problem: Value = serde_json::from_slice(&problem).unwrap_or_default();
    let body = to_error(parts.status, &problem).to_string();
    parts.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    parts.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(body.len()));
    // Repeating an invalid request does not help; an overload is temporary.
    let is_retryable =
        matches!(parts.status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
    let retry_header = HeaderValue::from_static(if is_retryable { "true" } else { "false" });
    parts.headers.insert(HeaderName::from_static("x-should-retry"), retry_header);
    Response::from_parts(parts, Body::from(body))
}

fn openai_error(status: StatusCode, problem: &Value) -> Value {
    let kind = match status.as_u16() {
        401 => "authentication_error",
        403 => "permission_error",
        429 => "rate_limit_error",
        500.. => "server_error",
        _ => "invalid_request_error",
    };
    json!({"error": {
        "message": problem["detail"], "type": kind, "param": problem["field"], "code": problem["code"],
    }})
}

fn anthropic_error(status: StatusCode, problem: &Value) -> Value {
    let kind = match status.as_u16() {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        503 => "overloaded_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    };
    json!({"type": "error", "error": {"type": kind, "message": problem["detail"]}})
}
