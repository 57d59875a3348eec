//! Reads request bodies completely before any handler runs, so that a slow client occupies only its
//! connection, and reserves memory for long bodies and for the values parsed from them.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::BytesMut;
use http_body_util::BodyExt;
use tambour::lex::weight::{JsonWeight, weigh};
use tokio::time::{Instant, timeout_at};

use super::imports;
use super::keys::{Caller, check_admitted};
use super::request::too_large_problem;
use super::states::OPERATIONS_SUFFIX;
use crate::base::connection::Connection;
use crate::base::cpu_pool::{OFFLOAD_BYTES, run_in_place};
use crate::base::memory::{self, MemoryHold, MemoryPermit};
use crate::base::problem::Problem;
use crate::http::app::App;

/// Size limits of all bodies, in bytes: the settings of the same names.
#[derive(Clone, Copy)]
pub(super) struct BodyLimits {
    pub(super) max_request: usize,
    pub(super) max_import: usize,
}

impl BodyLimits {
    /// Returns the setting that limits the length of requests to a path: its name and its value in bytes.
    fn limit_for(self, path: &str) -> (&'static str, usize) {
        if path == imports::PATH {
            ("max_import", self.max_import)
        } else {
            ("max_request", self.max_request)
        }
    }
}

/// Time and size limits of one body.
#[derive(Clone, Copy)]
struct BodyBounds {
    /// Longest pause within the body, in milliseconds.
    idle_ms: u64,
    /// Longest time for the whole body, in milliseconds.
    total_ms: u64,
    /// Setting that limits the length: its name and its value in bytes.
    limit: (&'static str, usize),
}

/// Reads the whole body and reserves memory for its values, then runs the handlers.
pub(super) async fn read_whole(
    State((app, body_limits)): State<(Arc<App>, BodyLimits)>,
    request: Request,
    next: Next,
) -> Response {
    let (mut parts, body) = request.into_parts();
    if body.is_end_stream() {
        return next.run(Request::from_parts(parts, body)).await;
    }
    let (idle_ms, total_ms) = {
        let loaded_config = app.loaded_config();
        (loaded_config.config.body_idle_ms, loaded_config.config.body_ms)
    };
    let Some(mut caller) = parts.extensions.remove::<Caller>() else {
        return Problem::internal().into_response();
    };
    let bounds = BodyBounds { idle_ms, total_ms, limit: body_limits.limit_for(parts.uri.path()) };
    let result = match read_body(&app, &caller.owner, body, bounds).await {
        // The key may have been removed while the body was received.
        Ok(received) => check_admitted(&app, &caller).map(|()| received),
        Err(problem) => Err(problem),
    };
    match result {
        Ok((bytes, body_permit)) => {
            let path = parts.uri.path();
            let max_request = body_limits.max_request;
            match reserve_memory(&app, &caller.owner, path, max_request, &bytes, body_permit).await {
                Ok(hold) => caller.memory = hold,
                Err(problem) => return problem.into_response(),
            }
            // Keeps the memory reserved until the handler has responded, even if the handler drops `caller`,
            // unless it releases the memory earlier (`MemoryHold::release`).
            let _hold = caller.memory.clone();
            parts.extensions.insert(caller);
            next.run(Request::from_parts(parts, Body::from(bytes))).await
        }
        Err(problem) => {
            let mut response = problem.into_response();
            if response.status() == StatusCode::REQUEST_TIMEOUT
                && let Some(connection) = parts.extensions.get::<Arc<Connection>>()
            {
                // The client has used up its time, so the connection does not wait for more of the body.
                connection.skip_drain();
            }
            // A part of the body may be unread, so the connection cannot be used again.
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            response
        }
    }
}

/// Estimates the memory that the values of a body will take (its weight), and waits until it is available.
async fn reserve_memory(
    app: &App,
    owner: &str,
    path: &str,
    max_request: usize,
    bytes: &Bytes,
    body_permit: Option<MemoryPermit>,
) -> Result<MemoryHold, Problem> {
    let weight = if path == imports::PATH {
        // Imported files stay text; the memory of their content is estimated when it is parsed.
        JsonWeight { bytes: bytes.len(), text: bytes.len(), ..JsonWeight::default() }
    } else if bytes.len() > OFFLOAD_BYTES {
        run_in_place(|| weigh(bytes))
    } else {
        weigh(bytes)
    };
    let max_bytes = memory::max_value_bytes(bytes.len(), max_request);
    // State operations are weighed again one by one when they are parsed (`states`), so a heavy body of them
    // is allowed; at most `max_bytes` is reserved for it.
    if weight.bytes > max_bytes && !path.ends_with(OPERATIONS_SUFFIX) {
        return Err(too_heavy_problem(&weight, bytes, max_bytes));
    }
    let work_permit = app.memory.reserve_work(owner, memory::work_bytes(weight.bytes.min(max_bytes))).await?;
    Ok(MemoryHold::new(&weight, body_permit.into_iter().chain([work_permit])))
}

/// Problem: the values of a body would take more than `max` bytes of memory.
fn too_heavy_problem(weight: &JsonWeight, bytes: &[u8], max: usize) -> Problem {
    let text_before = &bytes[..weight.largest_offset.min(bytes.len())];
    let line = text_before.iter().filter(|byte| **byte == b'\n').count() + 1;
    let column = text_before.iter().rev().take_while(|byte| **byte != b'\n').count() + 1;
    let detail = format!(
        "the request has {} values, which would take {} bytes of memory, more than the {} allowed; most of \
         them are in the list or object at line {line}, column {column}: send fewer at a time",
        weight.values, weight.bytes, max
    );
    let problem = Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too_many_values", detail);
    problem.with("line", line).with("column", column)
}

/// Reads a body. Also returns the memory reserved for it, if it is long.
async fn read_body(
    app: &App,
    owner: &str,
    mut body: Body,
    bounds: BodyBounds,
) -> Result<(Bytes, Option<MemoryPermit>), Problem> {
    let BodyBounds { idle_ms, total_ms, limit: (setting, max_bytes) } = bounds;
    let max_length = u64::try_from(max_bytes).unwrap_or(u64::MAX);
    if body.size_hint().lower() > max_length {
        return Err(too_large_problem(setting, max_bytes));
    }
    let announced_bytes =
        usize::try_from(body.size_hint().upper().unwrap_or(max_length)).unwrap_or(max_bytes);
    let mut permit = None;
    if body.size_hint().exact().is_some() && announced_bytes > OFFLOAD_BYTES {
        permit = Some(app.memory.reserve_body(owner, announced_bytes).await?);
    }
    let deadline = Instant::now() + Duration::from_millis(total_ms);
    let mut idle_deadline = Instant::now() + Duration::from_millis(idle_ms);
    // Allocated in full only after the memory is reserved.
    let mut received = BytesMut::with_capacity(if permit.is_some() { announced_bytes } else { 0 });
    loop {
        let frame = match timeout_at(idle_deadline.min(deadline), body.frame()).await {
            Ok(None) => return Ok((received.freeze(), permit)),
            Ok(Some(Ok(frame))) => frame,
            Ok(Some(Err(_))) => {
                let detail = "the body broke off";
                return Err(Problem::new(StatusCode::BAD_REQUEST, "malformed_request", detail));
            }
            Err(_) if deadline <= idle_deadline => {
                return Err(slow_body(&format!("had not arrived completely after `body_ms`, {total_ms} ms")));
            }
            Err(_) => return Err(slow_body(&format!("stopped for `body_idle_ms`, {idle_ms} ms"))),
        };
        // Trailers have no data.
        let Ok(data) = frame.into_data() else { continue };
        if data.is_empty() {
            continue;
        }
        if received.len() + data.len() > max_bytes {
            return Err(too_large_problem(setting, max_bytes));
        }
        if permit.is_none() && received.len() + data.len() > OFFLOAD_BYTES {
            // The length of the body is unknown, so it may reach the limit.
            permit = Some(app.memory.reserve_body(owner, max_bytes).await?);
        }
        idle_deadline = Instant::now() + Duration::from_millis(idle_ms);
        received.extend_from_slice(&data);
    }
}

/// Problem: the body did not arrive in time.
fn slow_body(reason: &str) -> Problem {
    let detail = format!("the body of the request {reason}");
    Problem::new(StatusCode::REQUEST_TIMEOUT, "slow_body", detail)
}
