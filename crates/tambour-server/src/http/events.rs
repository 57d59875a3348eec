//! Event streams: each reader follows the log of a message or dialogue turn at its own pace.

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use futures_util::{FutureExt, StreamExt};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tambour::encode::sse::Envelope;
use tambour::encode::{Encoder, EncoderEntry, EncoderEntryKind, NativeEncoder, OutputProtocol};
use tambour::event::Failure;
use tokio_util::sync::CancellationToken;

use super::keys::Caller;
use super::messages::find_owned;
use super::new_message::NewMessage;
use super::page::QueryParams;
use crate::base::ids;
use crate::base::metrics::Metrics;
use crate::base::polled_when_woken::PolledWhenWoken;
use crate::base::problem::Problem;
use crate::http::app::App;
use crate::http::streams::{OpenStream, StreamLimit};
use crate::record;
use crate::run::live_run::{LiveRun, ReaderGuard};
use crate::store::batch::BatchPosition;
use crate::store::{Batch, LogState, MessageRow, RunKind, StoreError};
use crate::upstream::new_failure;

/// Approximate maximum size in bytes of the batches read from the log, and of the frames built at once.
/// Further frames are built only when the client has read the earlier ones.
const FRAME_BYTES: usize = 16 << 10;

/// Reader of the log of one message or turn, for one client.
pub(super) struct EventReader {
    /// Id of the message or turn.
    run_id: String,
    /// Writes entries as frames of the client's protocol.
    encoder: Box<dyn Encoder>,
    /// Number of the last entry that was encoded or skipped. `end_with_error` continues the numbers.
    last_number: u64,
    /// Number of the last entry that the client has seen; frames of entries up to it are not sent.
    seen_number: u64,
    /// Counts the client as a reader of the run; absent if the run was over when the stream began.
    reader_guard: Option<ReaderGuard>,
    /// Batches of the log; opened when first needed.
    batches: Option<BoxStream<'static, Result<Batch, StoreError>>>,
    /// Batch being sent.
    batch: Option<Arc<Batch>>,
    /// Position in `batch` of the next entry; `None` at the beginning of the batch.
    position: Option<BatchPosition>,
    /// True between `thinking_start` and `thinking_end`, at this reader's position.
    is_in_thinking: bool,
    /// True between `final_delta` and `final_end`, at this reader's position.
    is_in_answer: bool,
    /// True once the stream was ended with an error that is not in the log; nothing more of the log is sent.
    is_cut: bool,
    /// Bytes of frames not sent yet. Kept here so that waiting can be cancelled at any point.
    frames: Vec<u8>,
}

/// Selection of optional events in the stream of a turn.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct TurnEvents {
    pub(super) extensions: bool,
    pub(super) findings: bool,
}

/// Query of an event stream.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CursorQuery {
    /// Number of the last event that the client has seen.
    #[serde(default)]
    after: Option<String>,
    /// Stream token, which `keys::authenticate` reads. Listed here so that it does not count as unknown.
    #[serde(default, rename = "token")]
    _token: Option<String>,
}

/// `GET /api/v1/messages/{id}/events`: the events of a running or ended message, after a cursor.
pub(super) async fn follow(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    QueryParams(query): QueryParams<CursorQuery>,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    // The live run is looked up before the row: if the message ends in between, its whole log is in the
    // store.
    let live_run = app.running.get(&id);
    let row = find_owned(&app, &caller, &id).await?;
    let request = parse_request(&row)?;
    let stream_request =
        StreamRequest { caller, live_run, method, after: read_cursor(&headers, query.after.as_deref())? };
    stream_request
        .respond(app, &id, |reader_guard, resume_from| {
            EventReader::of_request(&row, &request, reader_guard, resume_from)
        })
        .await
}

/// `GET /api/v1/dialogues/{id}/turns/{turn}/events`: the events of a running or ended turn, after a cursor.
pub(super) async fn follow_turn(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path((id, turn)): Path<(String, String)>,
    QueryParams(query): QueryParams<CursorQuery>,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let live_run = app.running.get_turn(&turn);
    let row = find_turn(&app, &caller, &id, &turn).await?;
    let stream_request =
        StreamRequest { caller, live_run, method, after: read_cursor(&headers, query.after.as_deref())? };
    stream_request
        .respond(app, &turn, |reader_guard, resume_from| {
            EventReader::of_turn(&row, parse_turn_events(&row), reader_guard, resume_from)
        })
        .await
}

/// Reads the stored request of a message.
pub(super) fn parse_request(row: &MessageRow) -> Result<NewMessage, Problem> {
    serde_json::from_str(&row.request).map_err(|_| {
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "damaged", "the stored request cannot be read")
    })
}

/// Returns the row of a turn of the caller's dialogue `id`.
pub(super) async fn find_turn(
    app: &App,
    caller: &Caller,
    id: &str,
    turn: &str,
) -> Result<MessageRow, Problem> {
    let row =
        app.store.message(turn).await?.filter(|row| {
            row.kind == RunKind::Turn && row.conversation_id == id && row.owner == caller.owner
        });
    row.ok_or_else(|| Problem::not_found(format!("the dialogue `{id}` has no turn `{turn}`")))
}

/// Creates the encoder of a message, in the output protocol and with the events that its request selects.
pub(super) fn message_encoder(row: &MessageRow, request: &NewMessage) -> NativeEncoder {
    let protocol = request.output_protocol.as_deref().and_then(OutputProtocol::from_name).unwrap_or_default();
    let envelope = Envelope::new(&row.id, &row.request_id);
    NativeEncoder::new(envelope, protocol, request.extensions, request.findings)
}

/// Reads the optional events that the stored request of a turn selects.
pub(super) fn parse_turn_events(row: &MessageRow) -> TurnEvents {
    serde_json::from_str(&row.request).unwrap_or_default()
}

/// Creates the encoder of a dialogue turn, with the events that its request selects.
pub(super) fn turn_encoder(row: &MessageRow, request: TurnEvents) -> NativeEncoder {
    let envelope = Envelope::new(&row.id, &row.request_id);
    NativeEncoder::new(envelope, OutputProtocol::JsonSeqV1, request.extensions, request.findings)
}

/// Request for the events of a message or turn after a number.
struct StreamRequest {
    caller: Caller,
    /// Present while the run continues, and for a moment after its end.
    live_run: Option<Arc<LiveRun>>,
    method: Method,
    /// Number of the last event that the client has seen; 0 if none.
    after: u64,
}

impl StreamRequest {
    /// Responds with the stream of the reader that `create_reader` builds from a reader guard and the number
    /// after which the stream resumes; with 204 if nothing follows.
    async fn respond(
        self,
        app: Arc<App>,
        id: &str,
        create_reader: impl FnOnce(Option<ReaderGuard>, u64) -> EventReader,
    ) -> Result<Response, Problem> {
        let StreamRequest { caller, live_run, method, after } = self;
        let resume_from = match &live_run {
            // Clients see only committed entries, so a number above the last one is invalid: nothing follows.
            Some(run) if !run.has_ended() => (after <= run.last_entry()).then_some(after),
            _ => resume_number(&app, id, after).await?,
        };
        let Some(resume_from) = resume_from else { return Ok(StatusCode::NO_CONTENT.into_response()) };
        let event_stream = open_stream(&app, &caller)?;
        if method == Method::HEAD {
            return Ok(stream_headers(Body::empty()));
        }
        // The client counts as a reader only from here on.
        let reader_guard = live_run.map(|run| run.add_reader());
        Ok(stream_response(app, create_reader(reader_guard, resume_from), event_stream))
    }
}

/// Returns the number after which the stream of an ended message resumes, for a client that has seen the
/// events up to `after`; `None` if nothing follows. If the client has seen more events than exist, a part of
/// the store was lost. The client then gets the end of the log if that is an `error`, which it cannot have
/// seen.
async fn resume_number(app: &App, id: &str, after: u64) -> Result<Option<u64>, StoreError> {
    // An open log gets further entries later, at least its end.
    let (later_batches, state) = app.store.read(id, after, 1).await?;
    if !later_batches.is_empty() || state == LogState::Open {
        return Ok(Some(after));
    }
    // If `after` is 0, the log is empty. Otherwise, if the event `after` exists, the client has seen the
    // whole log.
    if after == 0 || !app.store.read(id, after - 1, 1).await?.0.is_empty() {
        return Ok(None);
    }
    let error_entry_number = record::fold_log(&*app.store, id).await?.error_entry_number();
    // The number before the error, so that the error itself is sent.
    Ok(error_entry_number.map(|number| number.saturating_sub(1)))
}

/// Returns the number of the last event that the client has seen: from the header `Last-Event-ID`, which a
/// browser sends when it reconnects, otherwise from `after` of the query. 0 without a cursor.
fn read_cursor(headers: &HeaderMap, after: Option<&str>) -> Result<u64, Problem> {
    // `?` is refused below, like any cursor that is not a number.
    let last_id = headers.get("last-event-id").map(|value| value.to_str().unwrap_or("?"));
    let cursor = last_id.or(after).unwrap_or("");
    if cursor.is_empty() {
        return Ok(0);
    }
    // A number that does not fit into 64 bits is past the end.
    if cursor.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(cursor.parse().unwrap_or(u64::MAX));
    }
    let detail = format!("a cursor is the id of an event, not `{cursor}`");
    Err(Problem::new(StatusCode::BAD_REQUEST, "malformed_cursor", detail))
}

/// Registers an event stream of the caller.
///
/// # Errors
/// The limit of open streams of the owner or of the server is reached.
pub(super) fn open_stream(app: &App, caller: &Caller) -> Result<OpenStream, Problem> {
    let loaded_config = app.loaded_config();
    let (max_streams, total) = (loaded_config.config.max_streams, loaded_config.config.max_streams_total);
    app.streams.open(caller, max_streams, total).map_err(|limit| {
        Metrics::increment(&app.metrics.limited_requests);
        let problem = match limit {
            StreamLimit::Owner => {
                let detail =
                    format!("{max_streams} event streams of this owner are open; wait until one has ended");
                Problem::new(StatusCode::TOO_MANY_REQUESTS, "too_many_streams", detail)
            }
            StreamLimit::Server => {
                tracing::warn!(total, "the limit of event streams is reached; further ones are refused");
                let detail = format!(
                    "{total} event streams are open, the most that the server allows (`max_streams_total`); \
                     wait until one has ended, or ask for the message without its stream"
                );
                Problem::new(StatusCode::SERVICE_UNAVAILABLE, "server_full", detail)
            }
        };
        problem.retry_after(1)
    })
}

/// Returns the response that streams a reader's events.
pub(super) fn stream_response(app: Arc<App>, reader: EventReader, open_stream: OpenStream) -> Response {
    Metrics::increment(&app.metrics.streams);
    open_stream.watch(reader.reader_guard.as_ref().map(|reader_guard| reader_guard.live_run().clone()));
    // A shorter interval would keep the stream busy with heartbeats.
    let heartbeat = Duration::from_millis(app.loaded_config().config.heartbeat_ms.max(10));
    let next_rare_event = wait_rare_event(open_stream.removal.clone(), heartbeat);
    // Boxed, so that the state is not moved at each step.
    let sending_stream = Box::new(SendingStream {
        app,
        reader,
        open_stream,
        heartbeat,
        next_rare_event,
        progress: StreamProgress::New,
    });
    let stream = futures_util::stream::unfold(sending_stream, |mut sending_stream| async move {
        let frames = sending_stream.next().await?;
        Some((frames, sending_stream))
    });
    stream_headers(Body::from_stream(stream))
}

/// Event stream that is being sent.
struct SendingStream {
    app: Arc<App>,
    reader: EventReader,
    open_stream: OpenStream,
    /// Interval of heartbeats.
    heartbeat: Duration,
    /// Polled only when it was woken itself, not at every chunk of the log.
    next_rare_event: PolledWhenWoken<BoxFuture<'static, RareEvent>>,
    progress: StreamProgress,
}

/// Progress of a stream.
#[derive(PartialEq, Eq)]
enum StreamProgress {
    /// Nothing was sent yet.
    New,
    /// The opening frames were sent.
    Opened,
    /// Broken off after an error of the store.
    Broken,
}

/// Event other than an entry of the log; rare in comparison.
enum RareEvent {
    /// A heartbeat is due.
    Heartbeat,
    /// The key that opened the stream was removed.
    KeyRemoved,
}

/// Returns a future for the next rare event.
fn wait_rare_event(
    removal: CancellationToken,
    heartbeat: Duration,
) -> PolledWhenWoken<BoxFuture<'static, RareEvent>> {
    let wait = async move {
        let wait_result = tokio::time::timeout(heartbeat, removal.cancelled()).await;
        wait_result.map_or(RareEvent::Heartbeat, |()| RareEvent::KeyRemoved)
    };
    PolledWhenWoken::new(wait.boxed())
}

impl SendingStream {
    /// Waits for the next frames; `None` at the end.
    async fn next(&mut self) -> Option<Result<Bytes, StoreError>> {
        let SendingStream { app, reader, open_stream, heartbeat, next_rare_event, progress } = self;
        if *progress == StreamProgress::New {
            // The first bytes are sent at once, so that clients and proxies see the headers.
            *progress = StreamProgress::Opened;
            reader.write_opening();
        } else if *progress == StreamProgress::Broken || reader.encoder.is_over() || reader.is_cut {
            return None;
        } else {
            tokio::select! {
                biased;
                rare_result = &mut *next_rare_event => match rare_result {
                    // A client whose key was removed gets this error, and nothing more of the log.
                    RareEvent::KeyRemoved => reader.end_with_error(&new_failure("unauthorized", "the key was removed", false)),
                    RareEvent::Heartbeat => {
                        *next_rare_event = wait_rare_event(open_stream.removal.clone(), *heartbeat);
                        reader.encoder.write_heartbeat(&ids::now(), &mut reader.frames);
                    }
                },
                fill_result = reader.fill_frames(app) => if let Err(error) = fill_result {
                    // The connection is broken off, so that the client does not take this for the end but
                    // reconnects with its cursor.
                    tracing::error!(%error, message_id = reader.run_id, "an event stream was broken off");
                    // Lets the connection flush the bytes sent so far: breaking it off drops unflushed bytes.
                    tokio::task::yield_now().await;
                    *progress = StreamProgress::Broken;
                    return Some(Err(error));
                },
            }
        }
        Some(Ok(Bytes::from(std::mem::take(&mut reader.frames))))
    }
}

/// Builds the response of a stream. Its headers forbid proxies to cache, change or buffer it.
fn stream_headers(body: Body) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform")),
        (header::HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
    ];
    (StatusCode::OK, headers, body).into_response()
}

impl EventReader {
    /// Creates a reader for a client that has seen the entries up to number `seen_number`.
    pub(super) fn new(
        run_id: &str,
        encoder: Box<dyn Encoder>,
        reader_guard: Option<ReaderGuard>,
        seen_number: u64,
    ) -> EventReader {
        EventReader {
            run_id: run_id.to_owned(),
            last_number: if encoder.needs_all_entries() { 0 } else { seen_number },
            encoder,
            seen_number,
            reader_guard,
            batches: None,
            batch: None,
            position: None,
            is_in_thinking: false,
            is_in_answer: false,
            is_cut: false,
            frames: Vec::new(),
        }
    }

    /// Creates a reader of a message in the output protocol that its request selects.
    pub(super) fn of_request(
        row: &MessageRow,
        request: &NewMessage,
        reader_guard: Option<ReaderGuard>,
        resume_from: u64,
    ) -> EventReader {
        EventReader::new(&row.id, Box::new(message_encoder(row, request)), reader_guard, resume_from)
    }

    /// Creates a reader of a dialogue turn.
    pub(super) fn of_turn(
        row: &MessageRow,
        request: TurnEvents,
        reader_guard: Option<ReaderGuard>,
        resume_from: u64,
    ) -> EventReader {
        EventReader::new(&row.id, Box::new(turn_encoder(row, request)), reader_guard, resume_from)
    }

    /// Ends the stream for this client with an error, after the ends of open parts (J-035), whatever follows
    /// in the log.
    fn end_with_error(&mut self, failure: &Failure) {
        self.is_cut = true;
        let parts = [("thinking_end", self.is_in_thinking), ("final_end", self.is_in_answer)];
        let closing_events =
            parts.into_iter().filter(|(_, is_open)| *is_open).map(|(name, _)| (name, "{}".to_owned()));
        for (name, json) in closing_events.chain([("error", json!(failure).to_string())]) {
            self.last_number += 1;
            let entry = EncoderEntry {
                number: self.last_number,
                kind: EncoderEntryKind::Event(name),
                json: &json,
                reply: None,
            };
            self.encoder.write_entry(&entry, &mut self.frames);
        }
    }

    /// Writes the opening frames.
    fn write_opening(&mut self) {
        let is_running = self.reader_guard.is_some();
        self.encoder.write_start(is_running, &ids::now(), &mut self.frames);
    }

    /// Waits for entries and builds their frames, about `FRAME_BYTES` bytes at most.
    async fn fill_frames(&mut self, app: &App) -> Result<(), StoreError> {
        while self.frames.is_empty() && !self.encoder.is_over() {
            if self.batch.is_none() {
                self.fetch_batch(app).await?;
            }
            while self.frames.len() < FRAME_BYTES
                && !self.encoder.is_over()
                && let Some(batch) = self.batch.clone()
            {
                self.append_frames(&batch, app).await?;
            }
        }
        Ok(())
    }

    /// Waits for the next batch.
    async fn fetch_batch(&mut self, app: &App) -> Result<(), StoreError> {
        let batches =
            self.batches.get_or_insert_with(|| app.store.follow(&self.run_id, self.last_number, FRAME_BYTES));
        // No batch is left, but no entry ended the log: the server is stopping, and the next start writes the
        // end.
        let batch = batches.next().await.unwrap_or(Err(StoreError::Closed))?;
        self.batch = Some(Arc::new(batch));
        Ok(())
    }

    /// Appends the frames of those entries of the batch that this client sees, until there are enough.
    async fn append_frames(&mut self, batch: &Batch, app: &App) -> Result<(), StoreError> {
        let mut position = self.position.unwrap_or_else(|| batch.first_position());
        while self.frames.len() < FRAME_BYTES && !self.encoder.is_over() {
            // `self.position` moves past an entry only when its frames are built. If `fold_log` below is
            // cancelled, the entry is read again.
            self.position = Some(position);
            let Some(entry) = batch.next_entry(&mut position) else {
                self.batch = None;
                self.position = None;
                self.last_number = self.last_number.max(batch.last());
                break;
            };
            if entry.number <= self.last_number {
                continue;
            }
            let kind = EncoderEntryKind::from(entry.kind);
            match kind {
                EncoderEntryKind::Event("thinking_start") => self.is_in_thinking = true,
                EncoderEntryKind::Event("thinking_end") => self.is_in_thinking = false,
                EncoderEntryKind::Event("final_delta") => self.is_in_answer = true,
                EncoderEntryKind::Event("final_end") => self.is_in_answer = false,
                _ => {}
            }
            let reply = match self.encoder.wants_reply(kind) {
                true => Some(record::fold_log(&*app.store, &self.run_id).await?.reply),
                false => None,
            };
            let (length_before, reply) = (self.frames.len(), reply.as_deref());
            let encoder_entry = EncoderEntry { number: entry.number, kind, json: entry.json, reply };
            self.encoder.write_entry(&encoder_entry, &mut self.frames);
            if entry.number <= self.seen_number {
                // Encoded only to update the encoder: the client has these frames already.
                self.frames.truncate(length_before);
            }
            self.last_number = entry.number;
        }
        Ok(())
    }
}
