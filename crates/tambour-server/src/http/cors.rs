//! Cross-origin requests (CORS): web pages of configured origins may call the HTTP interface.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::http::app::AppState;

const ALLOWED_METHODS: &str = "GET, POST, PUT, PATCH, DELETE";
/// Request headers allowed if a browser names none. If it names some, all of them are allowed, since a
/// configured origin is trusted.
const ALLOWED_HEADERS: &str =
    "authorization, content-type, idempotency-key, if-none-match, last-event-id, x-api-key, x-request-id";
/// Response headers that pages may read.
const EXPOSED_HEADERS: &str = "content-disposition, etag, location, retry-after, stream-closed, stream-cursor, \
                               stream-next-offset, stream-up-to-date, x-request-id";
/// Seconds for which a browser may cache a preflight response.
const MAX_AGE_SECONDS: &str = "600";

/// Answers preflight requests and marks responses for configured origins only.
pub(super) async fn handle_cors(State(app): State<AppState>, request: Request, next: Next) -> Response {
    let origin = request.headers().get(header::ORIGIN).cloned();
    let loaded_config = app.loaded_config();
    let allowed_origin = origin.filter(|origin| {
        loaded_config
            .config
            .cors_origins
            .iter()
            .any(|configured| configured == "*" || configured.as_bytes() == origin.as_bytes())
    });
    let is_preflight = request.method() == Method::OPTIONS
        && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    if is_preflight && let Some(origin) = allowed_origin {
        let requested_headers = request.headers().get(header::ACCESS_CONTROL_REQUEST_HEADERS).cloned();
        let mut response = StatusCode::NO_CONTENT.into_response();
        let headers = response.headers_mut();
        headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(ALLOWED_METHODS));
        let allowed_headers = requested_headers.unwrap_or(HeaderValue::from_static(ALLOWED_HEADERS));
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, allowed_headers);
        headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(MAX_AGE_SECONDS));
        let vary_headers = [header::ACCESS_CONTROL_REQUEST_METHOD, header::ACCESS_CONTROL_REQUEST_HEADERS];
        vary_headers.into_iter().for_each(|name| add_vary(headers, name));
        add_allow_headers(headers, origin);
        return response;
    }
    let is_cors_configured = !loaded_config.config.cors_origins.is_empty();
    drop(loaded_config);
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    if let Some(origin) = allowed_origin {
        add_allow_headers(headers, origin);
    } else if is_cors_configured {
        // A cache must not reuse this response for an allowed origin.
        add_vary(headers, header::ORIGIN);
    }
    response
}

fn add_allow_headers(headers: &mut HeaderMap, origin: HeaderValue) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED_HEADERS));
    add_vary(headers, header::ORIGIN);
}

fn add_vary(headers: &mut HeaderMap, name: HeaderName) {
    headers.append(header::VARY, name.into());
}
