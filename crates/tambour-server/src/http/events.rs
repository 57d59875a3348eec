//! Event streams: each reader follows the log of a message at its own pace.

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
use tambour::encode::{Encoder, Entry, EntryKind, Native, Protocol};
use tambour::event::Failure;
use tokio_util::sync::CancellationToken;

use super::keys::Caller;
use super::messages::owned;
use super::new_message::NewMessage;
use super::page::Params;
use super::problem::Problem;
use crate::apart::Apart;
use crate::app::App;
use crate::ids;
use crate::live::{Live, Reading};
use crate::metrics::Metrics;
use crate::record;
use crate::store::batch::Place;
use crate::store::{Batch, LogState, MessageRow, RunKind, StoreError};
use crate::streams::{Full, Opened};
use crate::upstream::failure;

/// Approximate bytes of frames built at once; more only when the client has read these.
const PIECE: usize = 16 << 10;

/// Reader of one message's log.
pub(super) struct Reader {
    message: String,
    encoder: Box<dyn Encoder>,
    /// Number of the last entry that was encoded or skipped.
    after: u64,
    /// Number of the last entry that the client has seen; frames of entries up to it are not sent.
    seen: u64,
    /// Present while the message is running.
    reading: Option<Reading>,
    /// Batches of the log; opened when first needed.
    batches: Option<BoxStream<'static, Result<Batch, StoreError>>>,
    /// Batch being sent.
    batch: Option<Arc<Batch>>,
    /// Position within the batch.
    place: Option<Place>,
    /// True while thinking, or the answer, is open at this reader's position.
    thinking: bool,
    answering: bool,
    /// Set when nothing of the log is sent any more.
    cut: bool,
    /// Frames not sent yet. Kept here so that waiting can be cancelled at any point.
    out: Vec<u8>,
}

/// Optional events in the stream of a turn.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct TurnEvents {
    pub(super) extensions: bool,
    pub(super) findings: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct After {
    #[serde(default)]
    after: Option<String>,
    /// Checked earlier; see `by_token`.
    #[serde(default, rename = "token")]
    _token: Option<String>,
}

/// `GET /api/v1/messages/{id}/events`
pub(super) async fn follow(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Params(query): Params<After>,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    // The live run is looked up before the row: a message that ends in between has its log in the store.
    let live = app.live.get(&id);
    let row = owned(&app, &caller, &id).await?;
    let asked: NewMessage = serde_json::from_str(&row.request).map_err(|_| {
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "damaged", "the stored request cannot be read")
    })?;
    let resumed = Resumed { caller, live, method, after: cursor(&headers, query.after.as_deref())? };
    resumed.answer(app, &id, |reading, seen| Reader::native(&row, &asked, reading, seen)).await
}

/// `GET /api/v1/dialogues/{id}/turns/{turn}/events`
pub(super) async fn follow_turn(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path((id, turn)): Path<(String, String)>,
    Params(query): Params<After>,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let live = app.live.get_turn(&turn);
    let row =
        app.store.message(&turn).await?.filter(|row| {
            row.kind == RunKind::Turn && row.conversation_id == id && row.owner == caller.owner
        });
    let row = row.ok_or_else(|| Problem::not_found(format!("the dialogue `{id}` has no turn `{turn}`")))?;
    let asked = serde_json::from_str(&row.request).unwrap_or_default();
    let resumed = Resumed { caller, live, method, after: cursor(&headers, query.after.as_deref())? };
    resumed.answer(app, &turn, |reading, seen| Reader::turn(&row, asked, reading, seen)).await
}

/// Request for the events after a number.
struct Resumed {
    caller: Caller,
    /// Present while the run continues.
    live: Option<Arc<Live>>,
    method: Method,
    after: u64,
}

impl Resumed {
    async fn answer(
        self,
        app: Arc<App>,
        id: &str,
        reader: impl FnOnce(Option<Reading>, u64) -> Reader,
    ) -> Result<Response, Problem> {
        let Resumed { caller, live, method, after } = self;
        let seen = match &live {
            // Entries that a client has seen are committed, so a larger number is invalid.
            Some(live) if !live.has_ended() => (after <= live.last()).then_some(after),
            _ => unsent(&app, id, after).await?,
        };
        let Some(seen) = seen else { return Ok(StatusCode::NO_CONTENT.into_response()) };
        let opened = open(&app, &caller)?;
        if method == Method::HEAD {
            return Ok(stream_headers(Body::empty()));
        }
        // The client counts as a reader only from here on.
        let reading = live.map(|live| live.read());
        Ok(response(app, reader(reading, seen), opened))
    }
}

/// Returns the number after which a client that has seen events up to `after` continues an ended message;
/// `None` if it has seen the end. A log without an end is followed. If the client has seen more than exists,
/// the rest was lost with a part of the store: it is sent the end of the log, if that is an `error`, which it
/// has not seen.
async fn unsent(app: &App, id: &str, after: u64) -> Result<Option<u64>, StoreError> {
    let (behind, state) = app.store.read(id, after, 1).await?;
    if !behind.is_empty() || state == LogState::Open {
        return Ok(Some(after));
    }
    if after == 0 || !app.store.read(id, after - 1, 1).await?.0.is_empty() {
        return Ok(None);
    }
    let end = record::fold(&*app.store, id).await?.error_number();
    Ok(end.map(|number| number.saturating_sub(1)))
}

/// Returns the number of the last event that the client has seen: from the header, which a browser sends when
/// it reconnects, or from the query.
fn cursor(headers: &HeaderMap, after: Option<&str>) -> Result<u64, Problem> {
    let last_id = headers.get("last-event-id").map(|value| value.to_str().unwrap_or("?"));
    let given = last_id.or(after).unwrap_or("");
    if given.is_empty() {
        return Ok(0);
    }
    // A number too large for an event id is past the end.
    if given.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(given.parse().unwrap_or(u64::MAX));
    }
    let detail = format!("a cursor is the id of an event, not `{given}`");
    Err(Problem::new(StatusCode::BAD_REQUEST, "malformed_cursor", detail))
}

/// Registers a stream of the caller, or refuses it.
pub(super) fn open(app: &App, caller: &Caller) -> Result<Opened, Problem> {
    let loaded = app.loaded();
    let (most, total) = (loaded.config.max_streams, loaded.config.max_streams_total);
    app.streams.open(caller, most, total).map_err(|full| {
        Metrics::count(&app.metrics.limited);
        let problem = match full {
            Full::Owner => {
                let detail = format!("{most} event streams of this key are open; wait until one has ended");
                Problem::new(StatusCode::TOO_MANY_REQUESTS, "too_many_streams", detail)
            }
            Full::Server => {
                tracing::warn!(total, "no more event streams are taken");
                let detail = format!(
                    "{total} event streams are open, as many as the server takes (`max_streams_total`); wait until one \
                     has ended, or ask for the message without its stream"
                );
                Problem::new(StatusCode::SERVICE_UNAVAILABLE, "server_full", detail)
            }
        };
        problem.retry_after(1)
    })
}

/// Returns the response that streams a reader's events.
pub(super) fn response(app: Arc<App>, reader: Reader, opened: Opened) -> Response {
    Metrics::count(&app.metrics.streams);
    opened.watch(reader.reading.as_ref().map(|reading| reading.live().clone()));
    let heartbeat = Duration::from_millis(app.loaded().config.heartbeat_ms.max(10));
    let rare = rare(opened.removed.clone(), heartbeat);
    // Boxed, so that the state is not moved at each step.
    let sending = Box::new(Sending { app, reader, opened, heartbeat, rare, progress: Progress::New });
    let stream = futures_util::stream::unfold(sending, |mut sending| async move {
        let frames = sending.next().await?;
        Some((frames, sending))
    });
    stream_headers(Body::from_stream(stream))
}

/// Stream being sent.
struct Sending {
    app: Arc<App>,
    reader: Reader,
    opened: Opened,
    heartbeat: Duration,
    rare: Apart<BoxFuture<'static, Rare>>,
    progress: Progress,
}

/// Progress of a stream.
#[derive(PartialEq, Eq)]
enum Progress {
    New,
    Greeted,
    Broken,
}

/// Rare events beside a stream.
enum Rare {
    Heartbeat,
    KeyRemoved,
}

/// Returns a future for the next rare event.
fn rare(removed: CancellationToken, heartbeat: Duration) -> Apart<BoxFuture<'static, Rare>> {
    let waits = async move {
        let waited = tokio::time::timeout(heartbeat, removed.cancelled()).await;
        waited.map_or(Rare::Heartbeat, |()| Rare::KeyRemoved)
    };
    Apart::new(waits.boxed())
}

impl Sending {
    /// Waits for frames; `None` at the end.
    async fn next(&mut self) -> Option<Result<Bytes, StoreError>> {
        let Sending { app, reader, opened, heartbeat, rare, progress } = self;
        if *progress == Progress::New {
            // The first bytes are sent at once, so that clients and proxies see the headers.
            *progress = Progress::Greeted;
            reader.greet();
        } else if *progress == Progress::Broken || reader.encoder.is_over() || reader.cut {
            return None;
        } else {
            tokio::select! {
                biased;
                seldom = &mut *rare => match seldom {
                    // A client whose key was removed is told that and nothing else.
                    Rare::KeyRemoved => reader.cut(&failure("unauthorized", "the key was removed", false)),
                    Rare::Heartbeat => {
                        *rare = self::rare(opened.removed.clone(), *heartbeat);
                        reader.encoder.heartbeat(&ids::now(), &mut reader.out);
                    }
                },
                read = reader.next(app) => if let Err(error) = read {
                    // The connection is broken off, so that the client does not take this for the end; it
                    // reconnects with its cursor.
                    tracing::error!(%error, message_id = reader.message, "a stream breaks");
                    // Sent data is flushed first: breaking off drops unflushed data.
                    tokio::task::yield_now().await;
                    *progress = Progress::Broken;
                    return Some(Err(error));
                },
            }
        }
        Some(Ok(Bytes::from(std::mem::take(&mut reader.out))))
    }
}

/// Builds the response of a stream: nothing on the way may cache, change or buffer it.
fn stream_headers(body: Body) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform")),
        (header::HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
    ];
    (StatusCode::OK, headers, body).into_response()
}

impl Reader {
    /// Creates a reader for a client that has seen the entries up to number `seen`.
    pub(super) fn new(
        message: &str,
        encoder: Box<dyn Encoder>,
        reading: Option<Reading>,
        seen: u64,
    ) -> Reader {
        Reader {
            message: message.to_owned(),
            after: if encoder.folds() { 0 } else { seen },
            encoder,
            seen,
            reading,
            batches: None,
            batch: None,
            place: None,
            thinking: false,
            answering: false,
            cut: false,
            out: Vec::new(),
        }
    }

    /// Creates a reader in the native protocol of the request.
    pub(super) fn native(
        row: &MessageRow,
        asked: &NewMessage,
        reading: Option<Reading>,
        seen: u64,
    ) -> Reader {
        let protocol = asked.output_protocol.as_deref().and_then(Protocol::named).unwrap_or_default();
        let envelope = Envelope::new(&row.id, &row.request_id);
        let native = Native::new(envelope, protocol, asked.extensions, asked.findings);
        Reader::new(&row.id, Box::new(native), reading, seen)
    }

    /// Creates a reader of a dialogue turn.
    pub(super) fn turn(row: &MessageRow, asked: TurnEvents, reading: Option<Reading>, seen: u64) -> Reader {
        let envelope = Envelope::new(&row.id, &row.request_id);
        let native = Native::new(envelope, Protocol::JsonSeqV1, asked.extensions, asked.findings);
        Reader::new(&row.id, Box::new(native), reading, seen)
    }

    /// Ends the stream for this client, after closing open parts (J-035), whatever follows in the log.
    fn cut(&mut self, failure: &Failure) {
        self.cut = true;
        let open = [("thinking_end", self.thinking), ("final_end", self.answering)];
        let closing = open.into_iter().filter(|(_, open)| *open).map(|(name, _)| (name, "{}".to_owned()));
        for (name, json) in closing.chain([("error", json!(failure).to_string())]) {
            self.after += 1;
            let entry = Entry { number: self.after, kind: EntryKind::Event(name), json: &json, reply: None };
            self.encoder.entry(&entry, &mut self.out);
        }
    }

    /// Writes the opening frames.
    fn greet(&mut self) {
        self.encoder.open(self.reading.is_some(), &ids::now(), &mut self.out);
    }

    /// Waits for entries and builds their frames, about `PIECE` bytes at most.
    async fn next(&mut self, app: &App) -> Result<(), StoreError> {
        while self.out.is_empty() && !self.encoder.is_over() {
            if self.batch.is_none() {
                self.fetch(app).await?;
            }
            while self.out.len() < PIECE
                && !self.encoder.is_over()
                && let Some(batch) = self.batch.clone()
            {
                self.frames(&batch, app).await?;
            }
        }
        Ok(())
    }

    /// Waits for the next batch.
    async fn fetch(&mut self, app: &App) -> Result<(), StoreError> {
        let batches = self.batches.get_or_insert_with(|| app.store.follow(&self.message, self.after, PIECE));
        // A log may end without an end entry: the server is stopping, and the next start writes one.
        let batch = batches.next().await.unwrap_or(Err(StoreError::Closed))?;
        self.batch = Some(Arc::new(batch));
        Ok(())
    }

    /// Appends frames of the batch that this client sees, until there are enough.
    async fn frames(&mut self, batch: &Batch, app: &App) -> Result<(), StoreError> {
        let mut place = self.place.unwrap_or_else(|| batch.start());
        while self.out.len() < PIECE && !self.encoder.is_over() {
            // The position is stored per finished entry, since waiting may be cancelled before.
            self.place = Some(place);
            let Some(entry) = batch.entry(&mut place) else {
                self.batch = None;
                self.place = None;
                self.after = self.after.max(batch.last());
                break;
            };
            if entry.number <= self.after {
                continue;
            }
            let kind = EntryKind::from(entry.kind);
            match kind {
                EntryKind::Event("thinking_start") => self.thinking = true,
                EntryKind::Event("thinking_end") => self.thinking = false,
                EntryKind::Event("final_delta") => self.answering = true,
                EntryKind::Event("final_end") => self.answering = false,
                _ => {}
            }
            let reply = match self.encoder.wants_reply(kind) {
                true => Some(record::fold(&*app.store, &self.message).await?.reply),
                false => None,
            };
            let (before, reply) = (self.out.len(), reply.as_deref());
            let shown = Entry { number: entry.number, kind, json: entry.json, reply };
            self.encoder.entry(&shown, &mut self.out);
            if entry.number <= self.seen {
                self.out.truncate(before);
            }
            self.after = entry.number;
        }
        Ok(())
    }
}
