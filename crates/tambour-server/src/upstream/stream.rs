//! Reply being received over HTTP, with its limits of size and time.

use axum::http::Response;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tambour::InputEnd;
use tambour::limits::Limits;
use tambour::texts::format_count;
use tokio::time::{Instant, Sleep, sleep_until};

use super::decode::ResponseDecoder;
use super::kind::ServiceKind;
use super::{ModelRequest, ReplyItem, Timeouts, new_failure};
use crate::base::self_woken::SelfWoken;

/// Bytes of the response allowed per byte of the reply: a frame of a few letters has hundreds of bytes of
/// JSON around them.
const FRAME_FACTOR: usize = 16;
/// Bytes without content that are always allowed.
const MIN_IDLE_BYTES: usize = 64 << 10;

/// Reply being received.
pub(super) struct HttpReply {
    bytes: Incoming,
    timeouts: Timeouts,
    /// True if the first byte was received.
    has_begun: bool,
    /// Time of the last data, and of the last content.
    last_data: Instant,
    last_content: Instant,
    /// Time at which the whole reply must be complete.
    deadline: Instant,
    /// Timeout timer. Reset only when it fires, not for each chunk.
    alarm: SelfWoken<Sleep>,
    decoder: ResponseDecoder,
    /// Limit of the reply in bytes; bytes received in all, in complete lines since the last content, and in
    /// the current unfinished line.
    limit: usize,
    received_bytes: usize,
    idle_bytes: usize,
    line_bytes: usize,
    /// Bytes of calls so far, which become items only at the end.
    call_bytes: usize,
}

impl HttpReply {
    /// Creates the stream of a reply whose request was sent at `request_time`, and whose first byte is due before
    /// `deadline`.
    pub(super) fn new(
        kind: ServiceKind,
        response: Response<Incoming>,
        timeouts: Timeouts,
        (request_time, deadline): (Instant, Instant),
        request: &ModelRequest,
    ) -> HttpReply {
        let now = Instant::now();
        HttpReply {
            bytes: response.into_body(),
            timeouts,
            has_begun: false,
            last_data: now,
            last_content: now,
            deadline: request_time + timeouts.total(),
            alarm: SelfWoken::new(sleep_until(deadline)),
            decoder: ResponseDecoder::new(kind, &request.message),
            limit: request.max_reply_bytes.unwrap_or_else(|| Limits::default().input),
            received_bytes: 0,
            idle_bytes: 0,
            line_bytes: 0,
            call_bytes: 0,
        }
    }

    pub(super) async fn next(&mut self, items: &mut Vec<ReplyItem>) {
        while items.is_empty() {
            let next = tokio::select! {
                biased;
                next = self.bytes.frame() => next,
                () = &mut self.alarm => {
                    if !self.has_begun {
                        return items.push(timeout_item("the upstream sent nothing in time"));
                    }
                    let now = Instant::now();
                    if let Some(end) = self.timeout_end(now) {
                        return items.push(end);
                    }
                    self.alarm = SelfWoken::new(sleep_until(self.next_timeout()));
                    continue;
                }
            };
            match next {
                Some(Ok(frame)) => {
                    // Trailers are ignored.
                    let Ok(chunk) = frame.into_data() else { continue };
                    self.last_data = Instant::now();
                    self.decoder.push(&chunk, items);
                    self.count(&chunk, items);
                    if !self.has_begun {
                        self.has_begun = true;
                        self.alarm = SelfWoken::new(sleep_until(self.next_timeout()));
                    }
                    // A fast upstream may keep the timer from being polled.
                    if items.is_empty()
                        && let Some(end) = self.timeout_end(self.last_data)
                    {
                        items.push(end);
                    }
                }
                Some(Err(_)) => {
                    let failure =
                        new_failure("upstream_closed", "the connection to the upstream broke", true);
                    items.push(ReplyItem::End(InputEnd::Failed(failure)));
                }
                None => self.decoder.finish(items),
            }
        }
    }

    /// Counts a chunk and its items; adds a failure beyond the limits.
    fn count(&mut self, chunk: &[u8], items: &mut Vec<ReplyItem>) {
        // An empty delta is no content.
        items.retain(
            |item| !matches!(item, ReplyItem::Text(text) | ReplyItem::Reasoning(text) if text.is_empty()),
        );
        let calls = std::mem::replace(&mut self.call_bytes, self.decoder.call_bytes());
        let has_content = calls < self.call_bytes
            || items.iter().any(|item| {
                matches!(item, ReplyItem::Text(_) | ReplyItem::Reasoning(_) | ReplyItem::Call(_))
            });
        self.received_bytes = self.received_bytes.saturating_add(chunk.len());
        match memchr::memrchr2(b'\n', b'\r', chunk) {
            Some(end) => {
                self.idle_bytes += self.line_bytes + end + 1;
                self.line_bytes = chunk.len() - end - 1;
            }
            None => self.line_bytes += chunk.len(),
        }
        if has_content {
            self.last_content = self.last_data;
            self.idle_bytes = 0;
        }
        if matches!(items.last(), Some(ReplyItem::End(_))) {
            return;
        }
        let limit = self.limit;
        let message = if self.idle_bytes > limit.max(MIN_IDLE_BYTES) {
            format!("the upstream sent more bytes without content than `limits.input`, {limit}")
        } else if self.received_bytes > limit.max(MIN_IDLE_BYTES).saturating_mul(FRAME_FACTOR) {
            format!(
                "the frames of the reply are longer than {FRAME_FACTOR} times `limits.input`, {}",
                format_count(limit, "byte")
            )
        } else {
            return;
        };
        items.push(ReplyItem::End(InputEnd::Failed(new_failure("input_too_large", message, false))));
    }

    /// Returns the end of a reply that has exceeded a timeout.
    fn timeout_end(&self, now: Instant) -> Option<ReplyItem> {
        let Timeouts { content_ms, total_ms, .. } = self.timeouts;
        if now >= self.deadline {
            Some(timeout_item(&format!("the reply took longer than `timeouts.total_ms`, {total_ms} ms")))
        } else if now >= self.last_data + self.timeouts.silence() {
            Some(timeout_item("the upstream stopped sending"))
        } else if now >= self.last_content + self.timeouts.content() {
            let reason = "the upstream sent no content, only keep-alives, for";
            Some(timeout_item(&format!("{reason} `timeouts.content_ms`, {content_ms} ms")))
        } else {
            None
        }
    }

    /// Returns the time of the next timeout if nothing more is received.
    fn next_timeout(&self) -> Instant {
        let silence_end = self.last_data + self.timeouts.silence();
        silence_end.min(self.last_content + self.timeouts.content()).min(self.deadline)
    }
}

fn timeout_item(message: &str) -> ReplyItem {
    ReplyItem::End(InputEnd::Failed(new_failure("upstream_timeout", message, true)))
}
