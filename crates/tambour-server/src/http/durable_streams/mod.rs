//! Durable Streams: the log of a message or dialogue turn as a read-only stream of that protocol, by catch-up
//! reads, long polls and Server-Sent Events. A running message is an open stream, an ended one is closed.
//!
//! Every response is a function of the log and the offset: the same offset gives the same messages, however a
//! client divides its reading.

mod live;
mod query;
mod reader;

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use tambour::encode::NativeEncoder;

use super::events::{find_turn, message_encoder, parse_request, parse_turn_events, turn_encoder};
use super::keys::Caller;
use super::messages::find_owned;
use crate::base::metrics::Metrics;
use crate::base::problem::Problem;
use crate::http::app::App;
use crate::http::events::open_stream;
use crate::run::live_run::LiveRun;
use crate::store::StoreError;
use live::{EventSource, Growth, GrowthWait};
use query::{LiveMode, StartOffset, StreamQuery, View, next_cursor};
use reader::{Chunk, Position, StreamReader};

const NEXT_OFFSET: HeaderName = HeaderName::from_static("stream-next-offset");
const CURSOR: HeaderName = HeaderName::from_static("stream-cursor");
const UP_TO_DATE: HeaderName = HeaderName::from_static("stream-up-to-date");
const CLOSED: HeaderName = HeaderName::from_static("stream-closed");
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// `Cache-Control` of a catch-up read: only the client may cache it, and must revalidate it each time, since
/// its right to read the stream may have ended.
const REVALIDATE: &str = "private, no-cache";

/// `GET` and `HEAD /api/v1/messages/{id}/stream`: the log of a message as a Durable Stream.
pub(super) async fn read_message(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    uri: Uri,
    method: Method,
    headers: HeaderMap,
) -> Response {
    // The live run is looked up before the row: if the message ends in between, its whole log is in the
    // store.
    let live_run = app.running.get(&id);
    let request = StreamRequest { app, caller, live_run, method, uri, headers };
    let response = async {
        let row = find_owned(&request.app, &request.caller, &id).await?;
        let encoder = message_encoder(&row, &parse_request(&row)?);
        request.respond(&id, encoder).await
    };
    add_security_headers(response.await)
}

/// `GET` and `HEAD /api/v1/dialogues/{id}/turns/{turn}/stream`: the log of a turn as a Durable Stream.
pub(super) async fn read_turn(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path((id, turn)): Path<(String, String)>,
    uri: Uri,
    method: Method,
    headers: HeaderMap,
) -> Response {
    let live_run = app.running.get_turn(&turn);
    let request = StreamRequest { app, caller, live_run, method, uri, headers };
    let response = async {
        let row = find_turn(&request.app, &request.caller, &id, &turn).await?;
        let encoder = turn_encoder(&row, parse_turn_events(&row));
        request.respond(&turn, encoder).await
    };
    add_security_headers(response.await)
}

/// Adds the headers that keep browsers from guessing another content type and from giving the response to
/// pages of other sites.
fn add_security_headers(result: Result<Response, Problem>) -> Response {
    let mut response = result.into_response();
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(RESOURCE_POLICY, HeaderValue::from_static("same-origin"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// Request for the stream of a message or turn.
struct StreamRequest {
    app: Arc<App>,
    caller: Caller,
    /// Present while the run continues, and for a moment after its end.
    live_run: Option<Arc<LiveRun>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
}

impl StreamRequest {
    /// Responds from the log of the run. `encoder` writes the events that the run's own request selected.
    async fn respond(self, run_id: &str, encoder: NativeEncoder) -> Result<Response, Problem> {
        let query = StreamQuery::parse(&self.uri)?;
        let mut reader = StreamReader::new(run_id, query.view, encoder);
        if self.method == Method::HEAD {
            let tail = reader.find_tail(&self.app).await?;
            return Ok(chunk_response(StatusCode::OK, query.view, &tail, "no-store", None));
        }
        match query.live {
            None => self.catch_up(&query, reader).await,
            Some(LiveMode::LongPoll) => self.long_poll(&query, reader).await,
            Some(LiveMode::Sse) => self.stream_events(&query, reader).await,
        }
    }

    /// Responds at once with the messages after the offset.
    async fn catch_up(self, query: &StreamQuery, mut reader: StreamReader) -> Result<Response, Problem> {
        let StartOffset::Number(offset) = query.offset.unwrap_or_default() else {
            let tail = reader.find_tail(&self.app).await?;
            let body = query.view.wrap(Vec::new());
            return Ok(chunk_response(StatusCode::OK, query.view, &tail, "no-store", Some(body)));
        };
        let start = reader.start_at(&self.app, offset).await?;
        let mut chunk = reader.read(&self.app, start).await?;
        let tag = etag(query.view, start, &chunk);
        let body = query.view.wrap(std::mem::take(&mut chunk.body));
        let mut response = match matches_etag(&self.headers, &tag) {
            true => chunk_response(StatusCode::NOT_MODIFIED, query.view, &chunk, REVALIDATE, None),
            false => chunk_response(StatusCode::OK, query.view, &chunk, REVALIDATE, Some(body)),
        };
        if let Ok(tag) = HeaderValue::from_str(&tag) {
            response.headers_mut().insert(header::ETAG, tag);
        }
        Ok(response)
    }

    /// Responds with the messages after the offset as soon as there are any; with 204 at the end of a closed
    /// stream, or if none is added within a heartbeat interval.
    async fn long_poll(self, query: &StreamQuery, mut reader: StreamReader) -> Result<Response, Problem> {
        let app = &self.app;
        let mut position = self.start(query, &mut reader).await?;
        let open_stream = open_stream(app, &self.caller)?;
        Metrics::increment(&app.metrics.streams);
        // The client counts as a reader only from here on.
        let _reader_guard = self.live_run.as_ref().map(LiveRun::add_reader);
        let mut growth_wait = GrowthWait::new(open_stream.removal.clone(), heartbeat(app));
        loop {
            let mut chunk = reader.read(app, position).await?;
            position = chunk.next;
            let growth = match chunk.body.is_empty() && !chunk.is_closed {
                true => growth_wait.wait(app, reader.run_id(), position).await?,
                false => Growth::Grown,
            };
            let status = match growth {
                Growth::KeyRemoved => {
                    let detail = "the key was removed";
                    return Err(Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", detail));
                }
                Growth::Grown if !chunk.body.is_empty() => StatusCode::OK,
                Growth::Grown if !chunk.is_closed => continue,
                Growth::Grown | Growth::Quiet => StatusCode::NO_CONTENT,
            };
            let body = (status == StatusCode::OK).then(|| query.view.wrap(std::mem::take(&mut chunk.body)));
            let mut response = chunk_response(status, query.view, &chunk, "no-store", body);
            response.headers_mut().insert(CURSOR, HeaderValue::from(next_cursor(query.cursor)));
            return Ok(response);
        }
    }

    /// Responds with Server-Sent Events from the offset to the end of the stream.
    async fn stream_events(self, query: &StreamQuery, mut reader: StreamReader) -> Result<Response, Problem> {
        let position = self.start(query, &mut reader).await?;
        let ends_with_return = reader.has_return_at(&self.app, position).await?;
        let open_stream = open_stream(&self.app, &self.caller)?;
        Metrics::increment(&self.app.metrics.streams);
        open_stream.watch(self.live_run.clone());
        let reader_guard = self.live_run.as_ref().map(LiveRun::add_reader);
        let growth_wait = GrowthWait::new(open_stream.removal.clone(), heartbeat(&self.app));
        let source = EventSource {
            app: self.app,
            reader,
            position,
            ends_with_return,
            cursor: next_cursor(query.cursor),
            growth_wait,
            _open_stream: open_stream,
            _reader_guard: reader_guard,
            progress: live::Progress::New,
        };
        let headers = [
            (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
            (header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache, no-transform")),
            (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
        ];
        Ok((StatusCode::OK, headers, Body::from_stream(source.into_frames())).into_response())
    }

    /// Returns the position at which a live read starts.
    async fn start(&self, query: &StreamQuery, reader: &mut StreamReader) -> Result<Position, Problem> {
        match query.offset.unwrap_or_default() {
            StartOffset::Number(offset) => reader.start_at(&self.app, offset).await,
            StartOffset::Tail => Ok(reader.find_tail(&self.app).await?.next),
        }
    }
}

/// Returns the longest wait of a long poll, and the interval of comments that keep a quiet event stream open.
fn heartbeat(app: &App) -> Duration {
    Duration::from_millis(app.loaded_config().config.heartbeat_ms.max(10))
}

/// Builds the response for a chunk, with the headers of the protocol.
fn chunk_response(
    status: StatusCode,
    view: View,
    chunk: &Chunk,
    caching: &'static str,
    body: Option<Vec<u8>>,
) -> Response {
    let mut response = (status, body.map_or_else(Body::empty, Body::from)).into_response();
    let headers = response.headers_mut();
    if status == StatusCode::OK {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(view.content_type()));
    }
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(caching));
    if let Ok(offset) = HeaderValue::from_str(&chunk.next.offset()) {
        headers.insert(NEXT_OFFSET, offset);
    }
    for (name, is_set) in [(UP_TO_DATE, chunk.is_tail), (CLOSED, chunk.is_closed)] {
        if is_set {
            headers.insert(name, HeaderValue::from_static("true"));
        }
    }
    response
}

/// Returns the entity tag of a catch-up read. The start of the read, its next offset and the state of the
/// stream determine the body.
fn etag(view: View, start: Position, chunk: &Chunk) -> String {
    let state = match (chunk.is_closed, chunk.is_tail) {
        (true, _) => "closed",
        (false, true) => "tail",
        (false, false) => "part",
    };
    format!("\"{}-{}-{}-{state}\"", view.name(), start.offset(), chunk.next.offset())
}

/// Returns whether `If-None-Match` names the tag.
fn matches_etag(headers: &HeaderMap, tag: &str) -> bool {
    let values = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let mut tags = values.flat_map(|value| value.split(',')).map(str::trim);
    tags.any(|named| named == "*" || named.strip_prefix("W/").unwrap_or(named) == tag)
}

/// Error of a read.
#[derive(Debug)]
enum ReadError {
    /// The message was deleted.
    Gone,
    /// The message has ended, but its log lacks `completed` or `error`.
    Damaged,
    Store(StoreError),
}

impl From<StoreError> for ReadError {
    fn from(error: StoreError) -> ReadError {
        ReadError::Store(error)
    }
}

impl From<ReadError> for Problem {
    fn from(error: ReadError) -> Problem {
        match error {
            ReadError::Gone => Problem::not_found("the message was deleted"),
            ReadError::Damaged => {
                let detail = "the stored log of this message has no end";
                Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "damaged", detail)
            }
            ReadError::Store(error) => error.into(),
        }
    }
}
