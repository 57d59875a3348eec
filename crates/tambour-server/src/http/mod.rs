//! HTTP interface: one file per resource. Handlers translate requests and delegate.

mod about;
mod answers;
mod cards;
mod conversations;
mod decode;
mod dialogue_turns;
mod dialogues;
mod events;
mod figures;
mod foreign;
pub(crate) mod idempotency;
mod if_match;
mod imports;
pub(crate) mod keys;
mod messages;
mod new_message;
pub(crate) mod openapi;
mod origins;
mod page;
mod play;
pub(crate) mod problem;
mod prompts;
mod record;
mod repeats;
mod request;
mod routes;
mod rules;
mod schemas;
mod scripts;
mod search;
mod services;
mod settings;
mod slow;
mod states;
mod templates;
mod tool_calls;
mod tools;
mod usage;
mod versions;

use axum::Router;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{StatusCode, header};
use axum::middleware;
use axum::response::{IntoResponse, Response};

use crate::app::AppState;
pub(crate) use foreign::Threads;
use problem::Problem;
use slow::Most;

/// Builds the router of all operations.
pub(crate) fn router(app: AppState) -> Router {
    let (mut api, mut open) = (Router::new(), Router::new());
    let (max_request, max_import) = {
        let loaded = app.loaded();
        (loaded.config.max_request, loaded.config.max_import)
    };
    for operation in routes::OPERATIONS {
        let routes = if operation.needs_key() { &mut api } else { &mut open };
        let mut serve = (operation.serve)();
        if let Some(keep) = operation.keep {
            serve = serve.layer(middleware::from_fn_with_state((app.clone(), keep), idempotency::once));
        }
        if operation.path == imports::PATH {
            serve = serve.layer(DefaultBodyLimit::max(max_import));
        }
        *routes = std::mem::take(routes).route(operation.path, serve);
    }
    let reading =
        middleware::from_fn_with_state((app.clone(), Most { max_request, max_import }), slow::whole);
    // The body is read only after the caller is authenticated.
    open.merge(api.layer(reading).layer(middleware::from_fn_with_state(app.clone(), keys::authenticate)))
        .fallback(crate::studio::serve)
        .method_not_allowed_fallback(|| async {
            let detail = "the page does not take this method";
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", detail)
        })
        .layer(DefaultBodyLimit::max(max_request))
        .layer(middleware::from_fn_with_state(app.clone(), origins::answer))
        .layer(middleware::from_fn(foreign::forms::of_protocol))
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
