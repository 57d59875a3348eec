//! Reply being received over HTTP, with its limits of size and time.

use axum::http::Response;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tambour::End;
use tambour::limits::Limits;
use tambour::texts::counted;
use tokio::time::{Instant, Sleep, sleep_until};

use super::decode::Decoder;
use super::kind::Kind;
use super::{Ask, Item, Timeouts, failure};
use crate::apart::Apart;

/// Bytes of the response allowed per byte of the reply: a frame of a few letters has hundreds of bytes of
/// JSON around them.
const FRAMES: usize = 16;
/// Bytes without content that are always allowed.
const SOME: usize = 64 << 10;

/// Reply being received.
pub(super) struct Stream {
    bytes: Incoming,
    timeouts: Timeouts,
    /// True if the first byte was received.
    begun: bool,
    /// Time of the last data, and of the last content.
    last: Instant,
    content: Instant,
    /// Time at which the whole reply must be complete.
    until: Instant,
    /// Timeout timer. Reset only when it fires, not for each chunk.
    alarm: Apart<Sleep>,
    decoder: Decoder,
    /// Limit of the reply in bytes; bytes received in all, in complete lines since the last content, and in
    /// the current unfinished line.
    limit: usize,
    received: usize,
    idle: usize,
    open: usize,
    /// Bytes of calls so far, which become items only at the end.
    calls: usize,
}

impl Stream {
    /// Creates the stream of a reply whose request was sent at `asked`, and whose first byte is due before
    /// `deadline`.
    pub(super) fn new(
        kind: Kind,
        response: Response<Incoming>,
        timeouts: Timeouts,
        (asked, deadline): (Instant, Instant),
        ask: &Ask,
    ) -> Stream {
        let now = Instant::now();
        Stream {
            bytes: response.into_body(),
            timeouts,
            begun: false,
            last: now,
            content: now,
            until: asked + timeouts.total(),
            alarm: Apart::new(sleep_until(deadline)),
            decoder: Decoder::new(kind, &ask.message),
            limit: ask.input.unwrap_or_else(|| Limits::default().input),
            received: 0,
            idle: 0,
            open: 0,
            calls: 0,
        }
    }

    pub(super) async fn next(&mut self, items: &mut Vec<Item>) {
        while items.is_empty() {
            let next = tokio::select! {
                biased;
                next = self.bytes.frame() => next,
                () = &mut self.alarm => {
                    if !self.begun {
                        return items.push(late("the upstream sent nothing in time"));
                    }
                    let now = Instant::now();
                    if let Some(end) = self.overdue(now) {
                        return items.push(end);
                    }
                    self.alarm = Apart::new(sleep_until(self.next_due()));
                    continue;
                }
            };
            match next {
                Some(Ok(frame)) => {
                    // Trailers are ignored.
                    let Ok(chunk) = frame.into_data() else { continue };
                    self.last = Instant::now();
                    self.decoder.push(&chunk, items);
                    self.count(&chunk, items);
                    if !self.begun {
                        self.begun = true;
                        self.alarm = Apart::new(sleep_until(self.next_due()));
                    }
                    // A fast upstream may keep the timer from being polled.
                    if items.is_empty()
                        && let Some(end) = self.overdue(self.last)
                    {
                        items.push(end);
                    }
                }
                Some(Err(_)) => {
                    let broken = failure("upstream_closed", "the connection to the upstream broke", true);
                    items.push(Item::End(End::Failed(broken)));
                }
                None => self.decoder.finish(items),
            }
        }
    }

    /// Counts a chunk and its items; adds a failure beyond the limits.
    fn count(&mut self, chunk: &[u8], items: &mut Vec<Item>) {
        // An empty delta is no content.
        items.retain(|item| !matches!(item, Item::Text(text) | Item::Reasoning(text) if text.is_empty()));
        let calls = std::mem::replace(&mut self.calls, self.decoder.call_bytes());
        let has_content = calls < self.calls
            || items.iter().any(|item| matches!(item, Item::Text(_) | Item::Reasoning(_) | Item::Call(_)));
        self.received = self.received.saturating_add(chunk.len());
        match memchr::memrchr2(b'\n', b'\r', chunk) {
            Some(end) => {
                self.idle += self.open + end + 1;
                self.open = chunk.len() - end - 1;
            }
            None => self.open += chunk.len(),
        }
        if has_content {
            self.content = self.last;
            self.idle = 0;
        }
        if matches!(items.last(), Some(Item::End(_))) {
            return;
        }
        let limit = self.limit;
        let message = if self.idle > limit.max(SOME) {
            format!("the upstream sent more bytes without content than `limits.input`, {limit}")
        } else if self.received > limit.max(SOME).saturating_mul(FRAMES) {
            format!(
                "the frames of the reply are longer than {FRAMES} times `limits.input`, {}",
                counted(limit, "byte")
            )
        } else {
            return;
        };
        items.push(Item::End(End::Failed(failure("input_too_large", message, false))));
    }

    /// Returns the end of a reply that has exceeded a timeout.
    fn overdue(&self, now: Instant) -> Option<Item> {
        let Timeouts { content_ms, total_ms, .. } = self.timeouts;
        if now >= self.until {
            Some(late(&format!("the reply took longer than `timeouts.total_ms`, {total_ms} ms")))
        } else if now >= self.last + self.timeouts.silence() {
            Some(late("the upstream fell silent"))
        } else if now >= self.content + self.timeouts.content() {
            let what = "the upstream sent no content, only signs of life, for";
            Some(late(&format!("{what} `timeouts.content_ms`, {content_ms} ms")))
        } else {
            None
        }
    }

    /// Returns the time of the next timeout if nothing more is received.
    fn next_due(&self) -> Instant {
        let silence = self.last + self.timeouts.silence();
        silence.min(self.content + self.timeouts.content()).min(self.until)
    }
}

fn late(message: &str) -> Item {
    Item::End(End::Failed(failure("upstream_timeout", message, true)))
}
