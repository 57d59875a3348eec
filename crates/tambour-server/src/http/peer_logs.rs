//! Logs of running messages for the other servers that share the database: a server sends the batches of its
//! own runs, as soon as they are stored. Another server that follows a message counts as a reader of it.
//!
//! A frame is a line `FIRST LAST BYTES` and a body of BYTES bytes in the format of the log
//! (`tambour_store::batch`). An empty line is a sign of life.

use std::time::Duration;

use async_trait::async_trait;
use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::{Buf as _, Bytes, BytesMut};
use futures_util::stream::{self, BoxStream, StreamExt};
use serde::Deserialize;
use subtle::ConstantTimeEq;

use crate::base::problem::Problem;
use crate::http::app::{App, AppState};
use crate::store::{Batch, PeerReader};

/// Route of the logs.
pub(super) const PATH: &str = "/internal/v1/runs/{id}/log";
/// Header with the secret of the servers.
const SECRET: HeaderName = HeaderName::from_static("x-tambour-cluster");
/// Approximate maximum size in bytes of a batch.
const BATCH_BYTES: usize = 16 << 10;
/// Maximum length in bytes of the body of a frame. A single entry can be as long as a reply.
const MAX_FRAME: usize = 64 << 20;
/// Maximum length in bytes of the line of a frame, which has three numbers.
const MAX_LINE: usize = 80;
/// Time between two signs of life.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// Longest wait for another server to take a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Time without a sign of life after which a server counts as gone.
const SILENCE: Duration = Duration::from_secs(3);

/// Query of a request for a log.
#[derive(Deserialize)]
pub(super) struct LogQuery {
    /// Number of the last entry that the reader has.
    after: u64,
}

/// `GET /internal/v1/runs/{id}/log`: the batches of a message or turn that runs on this server, as they are
/// stored.
pub(super) async fn send(
    State(app): State<AppState>,
    Path(id): Path<String>,
    Query(LogQuery { after }): Query<LogQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    if !has_secret(&app, &headers) {
        return Err(Problem::new(
            StatusCode::UNAUTHORIZED,
            "unauthorized",
            "only for servers of this cluster",
        ));
    }
    let live_run = app.running.get(&id).or_else(|| app.running.get_turn(&id));
    let Some(live_run) = live_run else {
        return Err(Problem::not_found("the message does not run on this server"));
    };
    let reader_guard = live_run.add_reader();
    let batches = app.store.follow(&id, after, BATCH_BYTES);
    let frames = stream::unfold((batches, reader_guard), |(mut batches, reader_guard)| async move {
        let frame = match tokio::time::timeout(HEARTBEAT, batches.next()).await {
            Ok(Some(Ok(batch))) => encode_frame(&batch),
            // The reader continues from the database.
            Ok(Some(Err(_)) | None) => return None,
            Err(_) => Bytes::from_static(b"\n"),
        };
        Some((Ok::<_, std::convert::Infallible>(frame), (batches, reader_guard)))
    });
    Ok(([(header::CONTENT_TYPE, "application/octet-stream")], Body::from_stream(frames)).into_response())
}

/// Returns `true` if a request shows the secret of the servers.
fn has_secret(app: &App, headers: &HeaderMap) -> bool {
    let Some(secret) = app.cluster_secret.get() else { return false };
    headers.get(SECRET).is_some_and(|sent| bool::from(sent.as_bytes().ct_eq(secret.as_bytes())))
}

fn encode_frame(batch: &Batch) -> Bytes {
    let head = format!("{} {} {}\n", batch.first(), batch.last(), batch.body().len());
    [head.as_bytes(), batch.body()].concat().into()
}

/// Returns the builder of a client for requests to other servers.
pub(super) fn client_builder() -> reqwest::ClientBuilder {
    // Fails if a crypto provider is installed already, which is fine.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = reqwest::Client::builder().connect_timeout(CONNECT_TIMEOUT).no_proxy().tcp_nodelay(true);
    builder.redirect(reqwest::redirect::Policy::none())
}

/// Client of the logs of other servers.
pub(crate) struct PeerLogs {
    client: reqwest::Client,
    secret: String,
}

impl PeerLogs {
    /// Creates the client; `None` if TLS cannot be set up.
    pub(crate) fn new(secret: String) -> Option<PeerLogs> {
        let client = client_builder().read_timeout(SILENCE).build().ok()?;
        Some(PeerLogs { client, secret })
    }
}

#[async_trait]
impl PeerReader for PeerLogs {
    async fn follow(&self, address: &str, message: &str, after: u64) -> Option<BoxStream<'static, Batch>> {
        let path = PATH.replace("{id}", message);
        let url = format!("{}{path}?after={after}", address.trim_end_matches('/'));
        let response = self.client.get(url).header(SECRET, &self.secret).send().await.ok()?;
        if response.status() != reqwest::StatusCode::OK {
            return None;
        }
        let frames = FrameReader { response, buffer: BytesMut::new() };
        Some(stream::unfold(frames, |mut frames| async move { Some((frames.next().await?, frames)) }).boxed())
    }
}

/// Reader of the frames of a response.
struct FrameReader {
    response: reqwest::Response,
    buffer: BytesMut,
}

impl FrameReader {
    /// Returns the next batch; `None` at the end, or if the other server is silent or sends malformed bytes.
    async fn next(&mut self) -> Option<Batch> {
        loop {
            match take_frame(&mut self.buffer) {
                Ok(Some(batch)) => return Some(batch),
                Ok(None) => {}
                Err(MalformedFrame) => return None,
            }
            self.buffer.extend_from_slice(&self.response.chunk().await.ok()??);
        }
    }
}

/// Error: the bytes are not a frame.
#[derive(Debug, PartialEq, Eq)]
struct MalformedFrame;

/// Takes the first frame from the buffer; `None` if it is not complete yet. Drops signs of life before it.
fn take_frame(buffer: &mut BytesMut) -> Result<Option<Batch>, MalformedFrame> {
    while buffer.first() == Some(&b'\n') {
        buffer.advance(1);
    }
    let Some(line_end) = memchr::memchr(b'\n', buffer) else {
        return if buffer.len() > MAX_LINE { Err(MalformedFrame) } else { Ok(None) };
    };
    let head = std::str::from_utf8(&buffer[..line_end]).map_err(|_| MalformedFrame)?;
    let mut numbers = head.split(' ').map(str::parse::<u64>);
    let (Some(Ok(first)), Some(Ok(last)), Some(Ok(bytes)), None) =
        (numbers.next(), numbers.next(), numbers.next(), numbers.next())
    else {
        return Err(MalformedFrame);
    };
    let bytes = usize::try_from(bytes).map_err(|_| MalformedFrame)?;
    if first == 0 || last < first || bytes > MAX_FRAME {
        return Err(MalformedFrame);
    }
    if buffer.len() < line_end + 1 + bytes {
        return Ok(None);
    }
    buffer.advance(line_end + 1);
    Ok(Some(Batch::from_stored(first, last, buffer.split_to(bytes).to_vec())))
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;

    use super::{Batch, MalformedFrame, encode_frame, take_frame};

    #[test]
    fn frames_are_read_in_every_division() {
        let mut batches = Vec::new();
        for first in [1, 4] {
            let mut batch = Batch::new(first);
            (0..3).for_each(|at| batch.push_raw(first + at, "a\nb"));
            batches.push(batch);
        }
        let mut bytes = Vec::new();
        for batch in &batches {
            bytes.extend_from_slice(b"\n\n");
            bytes.extend_from_slice(&encode_frame(batch));
        }
        for size in 1..bytes.len() {
            let (mut buffer, mut read) = (BytesMut::new(), Vec::new());
            for chunk in bytes.chunks(size) {
                buffer.extend_from_slice(chunk);
                while let Some(batch) = take_frame(&mut buffer).unwrap() {
                    read.push(batch);
                }
            }
            assert_eq!(read, batches, "{size}");
        }
    }

    #[test]
    fn malformed_frames_are_refused() {
        for text in ["1 2\n", "0 1 3\nabc", "3 2 1\na", "1 2 99999999999\n", "x\n", &"1".repeat(100)] {
            let mut buffer = BytesMut::from(text);
            assert_eq!(take_frame(&mut buffer), Err(MalformedFrame), "{text}");
        }
    }
}
