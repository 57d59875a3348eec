//! Bodies of requests, read whole before anybody works with them: a client that takes its time holds nothing but its connection.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::BytesMut;
use http_body_util::BodyExt;
use tokio::time::{Instant, timeout_at};

use super::imports::PATH;
use super::keys::{Caller, known};
use super::problem::Problem;
use super::request::too_large;
use crate::app::App;
use crate::connection::Connection;

/// How long bodies may be.
#[derive(Clone, Copy)]
pub(super) struct Most {
    pub(super) max_request: usize,
    pub(super) max_import: usize,
}

impl Most {
    /// The setting for a path, and its value.
    fn of(self, path: &str) -> (&'static str, usize) {
        if path == PATH { ("max_import", self.max_import) } else { ("max_request", self.max_request) }
    }
}

/// How long a body may take, and how long it may be.
#[derive(Clone, Copy)]
struct Patience {
    idle_ms: u64,
    whole_ms: u64,
    most: (&'static str, usize),
}

/// Gives handlers the body when all of it is there.
pub(super) async fn whole(
    State((app, most)): State<(Arc<App>, Most)>,
    request: Request,
    next: Next,
) -> Response {
    let (parts, body) = request.into_parts();
    if body.is_end_stream() {
        return next.run(Request::from_parts(parts, body)).await;
    }
    let (idle_ms, whole_ms) = {
        let loaded = app.loaded();
        (loaded.config.body_idle_ms, loaded.config.body_ms)
    };
    let bytes = match read(body, Patience { idle_ms, whole_ms, most: most.of(parts.uri.path()) }).await {
        // A body may take longer than the key it came with is valid.
        Ok(bytes) => {
            parts.extensions.get::<Caller>().map_or(Ok(()), |caller| known(&app, caller)).map(|()| bytes)
        }
        Err(problem) => Err(problem),
    };
    match bytes {
        Ok(bytes) => next.run(Request::from_parts(parts, Body::from(bytes))).await,
        Err(problem) => {
            let mut response = problem.into_response();
            if response.status() == StatusCode::REQUEST_TIMEOUT
                && let Some(connection) = parts.extensions.get::<Arc<Connection>>()
            {
                connection.give_up();
            }
            // What is left of the body is not waited for.
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            response
        }
    }
}

async fn read(mut body: Body, patience: Patience) -> Result<Bytes, Problem> {
    let Patience { idle_ms, whole_ms, most: (setting, most) } = patience;
    let limit = u64::try_from(most).unwrap_or(u64::MAX);
    if body.size_hint().lower() > limit {
        return Err(too_large(setting, most));
    }
    let whole = Instant::now() + Duration::from_millis(whole_ms);
    let mut idle = Instant::now() + Duration::from_millis(idle_ms);
    let mut all = BytesMut::new();
    loop {
        let frame = match timeout_at(idle.min(whole), body.frame()).await {
            Ok(None) => return Ok(all.freeze()),
            Ok(Some(Ok(frame))) => frame,
            Ok(Some(Err(_))) => {
                let detail = "the body broke off";
                return Err(Problem::new(StatusCode::BAD_REQUEST, "malformed_request", detail));
            }
            Err(_) if whole <= idle => {
                return Err(slow(&format!("was not there after `body_ms`, {whole_ms} ms")));
            }
            Err(_) => return Err(slow(&format!("stopped for `body_idle_ms`, {idle_ms} ms"))),
        };
        let Ok(data) = frame.into_data() else { continue };
        if data.is_empty() {
            continue;
        }
        if all.len() + data.len() > most {
            return Err(too_large(setting, most));
        }
        idle = Instant::now() + Duration::from_millis(idle_ms);
        all.extend_from_slice(&data);
    }
}

fn slow(what: &str) -> Problem {
    let detail = format!("the body of the request {what}");
    Problem::new(StatusCode::REQUEST_TIMEOUT, "slow_body", detail)
}
