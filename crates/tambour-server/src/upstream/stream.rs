//! A reply that is arriving over HTTP: its bytes, how many there may be, and how long they are waited for.

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

/// Bytes that a service may send for each byte of a reply: a frame of a few letters has some hundred bytes of names around them.
const FRAMES: usize = 16;
/// Bytes without content that are no flood, whatever the limit.
const SOME: usize = 64 << 10;

/// A reply that is arriving.
pub(super) struct Stream {
    bytes: Incoming,
    timeouts: Timeouts,
    /// Whether the first byte has come.
    begun: bool,
    /// When something came last, and when that was content.
    last: Instant,
    content: Instant,
    /// When all of it has to be there.
    until: Instant,
    /// Ends when nothing has come for too long. Set anew only when it ends, not for each chunk.
    alarm: Apart<Sleep>,
    decoder: Decoder,
    /// Bytes that a reply may have, and those that have come: all, those of lines since there was content, and those of a line
    /// that has not ended, of which nobody knows what it brings.
    limit: usize,
    received: usize,
    idle: usize,
    open: usize,
    /// Bytes of calls so far, which come to no item before the end.
    calls: usize,
}

impl Stream {
    /// A reply whose request was sent at `asked`, and whose first byte has to come before `deadline`.
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
                    // Trailers say nothing here.
                    let Ok(chunk) = frame.into_data() else { continue };
                    self.last = Instant::now();
                    self.decoder.push(&chunk, items);
                    self.count(&chunk, items);
                    if !self.begun {
                        self.begun = true;
                        self.alarm = Apart::new(sleep_until(self.next_due()));
                    }
                    // An upstream that floods leaves the alarm no time.
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

    /// Counts a chunk, and what it came to; adds the end when that is too much.
    fn count(&mut self, chunk: &[u8], items: &mut Vec<Item>) {
        // A delta without text is none.
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

    /// The end of a reply that takes too long.
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

    /// When it would be overdue if nothing more came.
    fn next_due(&self) -> Instant {
        let silence = self.last + self.timeouts.silence();
        silence.min(self.content + self.timeouts.content()).min(self.until)
    }
}

fn late(message: &str) -> Item {
    Item::End(End::Failed(failure("upstream_timeout", message, true)))
}
