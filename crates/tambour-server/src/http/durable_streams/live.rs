//! Live reads: waiting for a log to grow, and the frames of Server-Sent Events.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use futures_util::StreamExt;
use futures_util::stream::{BoxStream, Stream};
use serde_json::json;
use tambour::encode::sse::write_comment;
use tokio_util::sync::CancellationToken;

use super::ReadError;
use super::query::View;
use super::reader::{Chunk, Position, StreamReader};
use crate::http::app::App;
use crate::http::streams::OpenStream;
use crate::run::live_run::ReaderGuard;
use crate::store::{Batch, StoreError};

/// Approximate maximum size in bytes of the batches of the followed log.
const BATCH_BYTES: usize = 16 << 10;

/// Result of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Growth {
    /// The log has entries after the position, or can no longer be followed.
    Grown,
    /// No entry was added in time.
    Quiet,
    /// The key that opened the stream was removed.
    KeyRemoved,
}

/// Wait for the growth of a log.
pub(super) struct GrowthWait {
    /// Cancelled when the key of the client is removed.
    removal: CancellationToken,
    /// Longest wait for growth.
    interval: Duration,
    /// Followed log; opened when first needed.
    batches: Option<BoxStream<'static, Result<Batch, StoreError>>>,
    /// True once no batch is left.
    has_ended: bool,
}

impl GrowthWait {
    pub(super) fn new(removal: CancellationToken, interval: Duration) -> GrowthWait {
        GrowthWait { removal, interval, batches: None, has_ended: false }
    }

    /// Returns whether the key of the client was removed.
    fn is_key_removed(&self) -> bool {
        self.removal.is_cancelled()
    }

    /// Waits until the log has entries after `position`, for at most `interval`. The position must not be
    /// lower than in earlier calls.
    ///
    /// # Errors
    /// The store failed, or an earlier call has already reached the end of the followed log. In the second
    /// case the log has no `completed` or `error` because the server is stopping; the next start writes it.
    pub(super) async fn wait(
        &mut self,
        app: &App,
        run_id: &str,
        position: Position,
    ) -> Result<Growth, StoreError> {
        if self.has_ended {
            return Err(StoreError::Closed);
        }
        let batches =
            self.batches.get_or_insert_with(|| app.store.follow(run_id, position.read, BATCH_BYTES));
        let has_ended = &mut self.has_ended;
        let follow = async {
            while let Some(batch) = batches.next().await {
                if batch?.last() > position.read {
                    return Ok(Growth::Grown);
                }
            }
            // Either the message has ended or was deleted, as the next read shows, or the server is stopping.
            *has_ended = true;
            Ok(Growth::Grown)
        };
        tokio::select! {
            biased;
            () = self.removal.cancelled() => Ok(Growth::KeyRemoved),
            growth = follow => growth,
            () = tokio::time::sleep(self.interval) => Ok(Growth::Quiet),
        }
    }
}

/// Source of Server-Sent Events for one client.
pub(super) struct EventSource {
    pub(super) app: Arc<App>,
    pub(super) reader: StreamReader,
    pub(super) position: Position,
    /// True if the text before `position` ends with a carriage return.
    pub(super) ends_with_return: bool,
    /// Cursor of all control events of the connection.
    pub(super) cursor: u64,
    pub(super) growth_wait: GrowthWait,
    /// These two guards count the stream and, while the message runs, its reader.
    pub(super) _open_stream: OpenStream,
    pub(super) _reader_guard: Option<ReaderGuard>,
    pub(super) progress: Progress,
}

/// Progress of an event source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// Nothing was sent yet.
    New,
    /// There may be more to read.
    Reading,
    /// Everything written so far was read.
    Waiting,
    /// The stream has ended, or was broken off.
    Over,
}

impl EventSource {
    /// Returns a stream of the frames; each item is sent at once. An error breaks the connection off, so that
    /// the client reconnects with its offset.
    pub(super) fn into_frames(self) -> impl Stream<Item = Result<Bytes, StoreError>> + Send {
        // Boxed, so that the state is not moved at each step.
        futures_util::stream::unfold(Box::new(self), |mut source| async move {
            let frames = source.next_frames().await?;
            Some((frames, source))
        })
    }

    /// Waits for the next frames; `None` at the end.
    async fn next_frames(&mut self) -> Option<Result<Bytes, StoreError>> {
        let next_frames = self.try_next_frames().await;
        if let Err(error) = next_frames {
            self.progress = Progress::Over;
            tracing::error!(?error, message_id = self.reader.run_id(), "a stream was broken off");
            // Lets the connection flush the bytes sent so far: breaking it off drops unflushed bytes.
            tokio::task::yield_now().await;
            return Some(Err(match error {
                ReadError::Store(error) => error,
                ReadError::Gone | ReadError::Damaged => StoreError::Closed,
            }));
        }
        next_frames.ok().flatten().map(|frames| Ok(Bytes::from(frames)))
    }

    async fn try_next_frames(&mut self) -> Result<Option<Vec<u8>>, ReadError> {
        let mut frames = Vec::new();
        while frames.is_empty() {
            // A client whose key was removed learns why when it reconnects.
            if self.progress == Progress::Over || self.growth_wait.is_key_removed() {
                return Ok(None);
            }
            if self.progress == Progress::Waiting {
                let EventSource { app, reader, position, growth_wait, .. } = self;
                match growth_wait.wait(app, reader.run_id(), *position).await? {
                    Growth::Grown => self.progress = Progress::Reading,
                    Growth::Quiet => write_comment("heartbeat", &mut frames),
                    Growth::KeyRemoved => self.progress = Progress::Over,
                }
                continue;
            }
            let chunk = self.reader.read(&self.app, self.position).await?;
            self.position = chunk.next;
            let next_progress = match (chunk.is_closed, chunk.is_tail) {
                (true, _) => Progress::Over,
                (false, true) => Progress::Waiting,
                (false, false) => Progress::Reading,
            };
            // The first control event is sent even without data, so that the client learns its offset at
            // once.
            if !chunk.body.is_empty() || chunk.is_closed || self.progress == Progress::New {
                self.write_chunk(chunk, &mut frames);
            }
            self.progress = next_progress;
        }
        Ok(Some(frames))
    }

    /// Appends the data of a chunk, if there is any, and the control event that follows it.
    fn write_chunk(&mut self, chunk: Chunk, out: &mut Vec<u8>) {
        if !chunk.body.is_empty() {
            out.extend_from_slice(b"event: data\n");
            match self.reader.view() {
                View::Events => write_line(&View::Events.wrap(chunk.body), out),
                View::Text => self.write_text(&chunk.body, out),
            }
            out.push(b'\n');
        }
        let mut control = json!({"streamNextOffset": chunk.next.offset()});
        if chunk.is_closed {
            control["streamClosed"] = true.into();
        } else {
            control["streamCursor"] = self.cursor.to_string().into();
        }
        if chunk.is_tail {
            control["upToDate"] = true.into();
        }
        out.extend_from_slice(b"event: control\n");
        write_line(control.to_string().as_bytes(), out);
        out.push(b'\n');
    }

    /// Appends the lines of a text. Frames contain no carriage returns: a carriage return, alone or followed
    /// by a line feed, ends a line, even if the text is divided between the two.
    fn write_text(&mut self, text: &[u8], out: &mut Vec<u8>) {
        let mut line = Vec::new();
        for byte in text {
            match byte {
                b'\n' if self.ends_with_return => {}
                b'\n' | b'\r' => {
                    write_line(&line, out);
                    line.clear();
                }
                _ => line.push(*byte),
            }
            self.ends_with_return = *byte == b'\r';
        }
        write_line(&line, out);
    }
}

/// Appends a data line. Clients remove one leading space, so a line that begins with a space gets another
/// one.
fn write_line(line: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"data:");
    if line.first() == Some(&b' ') {
        out.push(b' ');
    }
    out.extend_from_slice(line);
    out.push(b'\n');
}
