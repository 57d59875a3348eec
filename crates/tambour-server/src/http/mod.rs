//! The HTTP interface: one file a resource. Handlers translate and delegate.

mod answers;
mod conversations;
mod decode;
mod events;
pub(crate) mod idempotency;
pub(crate) mod keys;
mod messages;
mod openapi;
mod page;
pub(crate) mod problem;
mod record;
mod request;
mod routes;
mod schemas;
mod settings;
mod slow;
mod tools;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};

use crate::app::AppState;
use problem::Problem;

/// The routes.
pub(crate) fn router(app: AppState) -> Router {
    let (mut api, mut open) = (Router::new(), Router::new());
    let max_request = app.loaded().config.max_request;
    for operation in routes::OPERATIONS {
        let routes = if operation.path.starts_with("/api/") { &mut api } else { &mut open };
        *routes = std::mem::take(routes).route(operation.path, (operation.serve)());
    }
    let reading = middleware::from_fn_with_state((app.clone(), max_request), slow::whole);
    // Nobody's body is read before it is known who calls.
    open.merge(api.layer(reading).layer(middleware::from_fn_with_state(app.clone(), keys::authenticate)))
        .fallback(|| async { Problem::not_found("there is no such page") })
        .method_not_allowed_fallback(|| async {
            let detail = "the page does not take this method";
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", detail)
        })
        .layer(DefaultBodyLimit::max(max_request))
        .layer(middleware::from_fn_with_state(app.clone(), cross_origin))
        .layer(middleware::from_fn_with_state(max_request, request::identify))
        .with_state(app)
}

async fn healthy() -> &'static str {
    "ok\n"
}

async fn ready(State(app): State<AppState>) -> Response {
    if app.closing.is_cancelled() {
        return (StatusCode::SERVICE_UNAVAILABLE, "closing\n").into_response();
    }
    match app.store.ready().await {
        Ok(()) => "ready\n".into_response(),
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n")).into_response(),
    }
}

async fn metrics(State(app): State<AppState>) -> Response {
    let text = app.metrics.render(app.live.count(), app.streams.count());
    ([(header::CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], text)
        .into_response()
}

async fn home() -> Response {
    const PAGE: &str = "<!doctype html><meta charset=\"utf-8\"><title>Tambour</title>\
        <body style=\"font-family: system-ui; max-width: 40em; margin: 3em auto\">\
        <h1>Tambour</h1><p>The server is running. <a href=\"/docs\">The interface</a>, \
        <a href=\"/openapi.json\">its description</a>, <a href=\"/metrics\">counters</a>.</p>";
    ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], PAGE).into_response()
}

/// Answers browsers of configured origins, and nobody else's.
async fn cross_origin(State(app): State<AppState>, request: Request, next: Next) -> Response {
    let origin = request.headers().get(header::ORIGIN).cloned();
    let loaded = app.loaded();
    let allowed = origin.filter(|origin| {
        loaded.config.cors_origins.iter().any(|known| known == "*" || known.as_bytes() == origin.as_bytes())
    });
    let asks = request.method() == Method::OPTIONS
        && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    let mut response = if asks && allowed.is_some() {
        StatusCode::NO_CONTENT.into_response()
    } else {
        next.run(request).await
    };
    if let Some(origin) = allowed {
        let headers = response.headers_mut();
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(header::VARY, HeaderValue::from_static("origin"));
        let readable = HeaderValue::from_static("location, retry-after, x-request-id");
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, readable);
        if asks {
            let set = [
                (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, PUT, DELETE"),
                (
                    header::ACCESS_CONTROL_ALLOW_HEADERS,
                    "authorization, content-type, last-event-id, x-request-id",
                ),
                (header::ACCESS_CONTROL_MAX_AGE, "600"),
            ];
            for (name, value) in set {
                headers.insert::<HeaderName>(name, HeaderValue::from_static(value));
            }
        }
    }
    response
}
