//! HTTP interface: one file per resource, and files for what resources share (table of operations,
//! middleware, OpenAPI description). Handlers translate requests and delegate.

pub(crate) mod app;
mod cards;
mod contracts;
mod conversations;
mod cors;
mod decode;
mod dialogue_turns;
mod dialogues;
mod durable_streams;
mod events;
mod figures;
mod foreign;
mod forward;
pub(crate) mod idempotency;
mod if_match;
mod imports;
pub(crate) mod keys;
mod messages;
mod new_message;
pub(crate) mod openapi;
mod operation_docs;
mod page;
mod parameters;
pub(crate) mod peer_logs;
mod play;
mod prompts;
mod record;
mod repeated_inputs;
mod request;
mod request_body;
mod routes;
mod rules;
mod schemas;
mod scripts;
mod search;
mod services;
mod settings;
mod states;
pub(crate) mod streams;
mod studio;
pub(crate) mod takeover;
mod templates;
mod tool_answers;
mod tool_calls;
mod tools;
mod turn_claims;
mod usage;
mod versions;

use axum::Router;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{StatusCode, header};
use axum::middleware;
use axum::response::{IntoResponse, Response};

use crate::base::problem::Problem;
use crate::http::app::AppState;
pub(crate) use foreign::RunningThreads;
use request_body::BodyLimits;

/// Builds the router of all operations.
pub(crate) fn build_router(app: AppState) -> Router {
    let (mut keyed_routes, mut public_routes) = (Router::new(), Router::new());
    let (max_request, max_import) = {
        let loaded_config = app.loaded_config();
        (loaded_config.config.max_request, loaded_config.config.max_import)
    };
    for operation in routes::OPERATIONS {
        let routes = if operation.needs_key() { &mut keyed_routes } else { &mut public_routes };
        let mut method_router = (operation.handler)();
        if let Some(storage) = operation.stored_response {
            method_router = method_router
                .layer(middleware::from_fn_with_state((app.clone(), storage), idempotency::process_once));
        }
        if operation.path == imports::PATH {
            method_router = method_router.layer(DefaultBodyLimit::max(max_import));
        }
        *routes = std::mem::take(routes).route(operation.path, method_router);
    }
    let body_reading = middleware::from_fn_with_state(
        (app.clone(), BodyLimits { max_request, max_import }),
        request_body::read_whole,
    );
    // A layer added later runs earlier, so the body is read only after the caller is authenticated.
    let keyed_routes = keyed_routes
        .layer(middleware::from_fn_with_state(app.clone(), forward::forward))
        .layer(body_reading)
        .layer(middleware::from_fn_with_state(app.clone(), keys::authenticate));
    if app.store.cluster().is_some() {
        // For other servers only, so it is no operation of the interface.
        public_routes = public_routes.route(peer_logs::PATH, axum::routing::get(peer_logs::send));
    }
    public_routes
        .merge(keyed_routes)
        .fallback(studio::serve_file)
        .method_not_allowed_fallback(|| async {
            let detail = "the route does not support this method";
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", detail)
        })
        .layer(DefaultBodyLimit::max(max_request))
        .layer(middleware::from_fn_with_state(app.clone(), cors::handle_cors))
        .layer(middleware::from_fn(foreign::forms::convert_errors))
        .layer(middleware::from_fn_with_state(max_request, request::identify))
        .with_state(app)
}

/// `GET /healthz`: 200 while the process runs.
async fn show_health() -> &'static str {
    "ok\n"
}

/// `GET /readyz`: 503 while the server stops, or if the store cannot write.
async fn show_ready(State(app): State<AppState>) -> Response {
    if app.shutdown.is_cancelled() {
        return (StatusCode::SERVICE_UNAVAILABLE, "closing\n").into_response();
    }
    match app.store.check_ready().await {
        Ok(()) => "ready\n".into_response(),
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n")).into_response(),
    }
}

/// `GET /metrics`: counters and times in the OpenMetrics format.
async fn show_metrics(State(app): State<AppState>) -> Response {
    if let Some(cluster) = app.store.cluster() {
        app.metrics.note_cluster(cluster.status());
    }
    let text = app.metrics.render(app.running.count(), app.streams.count());
    ([(header::CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], text)
        .into_response()
}
