//! Reply being received over HTTP, with its limits of size and time.

use http::Response;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tambour::InputEnd;
use tambour::event::Failure;
use tambour::limits::Limits;
use tambour::texts::format_count;
use tokio::time::{Instant, Sleep, sleep_until};

use super::decode::ResponseDecoder;
use super::kind::ServiceKind;
use super::{ModelRequest, ReplyItem, Timeouts, new_failure};
use crate::polled_when_woken::PolledWhenWoken;

/// Bytes of the response allowed per byte of the limit of the reply: in a frame, a few letters of text are
/// surrounded by hundreds of bytes of JSON.
const FRAME_FACTOR: usize = 16;
/// Lower bound of the reply limit in the checks of received bytes: a smaller limit counts as this many bytes.
const MIN_LIMIT_BYTES: usize = 64 << 10;

/// Reply being received over HTTP.
pub(super) struct HttpReply {
    body: Incoming,
    timeouts: Timeouts,
    /// True once a chunk of the body was received.
    has_begun: bool,
    /// Time of the last bytes.
    last_data: Instant,
    /// Time of the last content: text, reasoning or a part of a call.
    last_content: Instant,
    /// Time at which the whole reply must be complete.
    deadline: Instant,
    /// Timer of the next timeout. Reset at the first chunk and when it fires, not at each chunk.
    timer: PolledWhenWoken<Sleep>,
    decoder: ResponseDecoder,
    /// Maximum length of the reply in bytes.
    limit: usize,
    /// Bytes of the response received so far.
    received_bytes: usize,
    /// Bytes of complete lines since the last content; an unfinished line may still bring content.
    idle_bytes: usize,
    /// Bytes of the current, unfinished line.
    line_bytes: usize,
    /// Bytes of calls so far, which become items only at the end.
    call_bytes: usize,
    /// Items that were read ahead.
    first_items: Vec<ReplyItem>,
    /// Failure by which the reply ended before it had content.
    first_failure: Option<Failure>,
}

impl HttpReply {
    /// Creates the stream of a reply whose first byte is due before `first_byte_deadline`. `request_time` is
    /// the start of the first attempt.
    pub(super) fn new(
        kind: ServiceKind,
        response: Response<Incoming>,
        timeouts: Timeouts,
        request_time: Instant,
        first_byte_deadline: Instant,
        request: &ModelRequest,
    ) -> HttpReply {
        let now = Instant::now();
        HttpReply {
            body: response.into_body(),
            timeouts,
            has_begun: false,
            last_data: now,
            last_content: now,
            deadline: request_time + timeouts.total(),
            timer: PolledWhenWoken::new(sleep_until(first_byte_deadline)),
            decoder: ResponseDecoder::new(kind, &request.message_id),
            limit: request.max_reply_bytes.unwrap_or_else(|| Limits::default().input),
            received_bytes: 0,
            idle_bytes: 0,
            line_bytes: 0,
            call_bytes: 0,
            first_items: Vec::new(),
            first_failure: None,
        }
    }

    /// Reads ahead until there is content or the end, within the limits of size and time. Returns the failure by
    /// which the reply ended before it had content. [`HttpReply::next`] gives the items.
    pub(super) async fn read_first(&mut self) -> Option<&Failure> {
        let mut items = std::mem::take(&mut self.first_items);
        loop {
            let old_len = items.len();
            let mut new_items = Vec::new();
            self.receive(&mut new_items).await;
            items.append(&mut new_items);
            match items[old_len..].iter().find(|item| !matches!(item, ReplyItem::Usage(_))) {
                None => continue,
                Some(ReplyItem::End(InputEnd::Failed(failure))) => {
                    self.first_failure = Some(failure.clone());
                }
                Some(_) => {}
            }
            self.first_items = items;
            return self.first_failure.as_ref();
        }
    }

    /// Waits for the next items and adds them. The last item is an end.
    pub(super) async fn next(&mut self, items: &mut Vec<ReplyItem>) {
        if self.first_items.is_empty() {
            return self.receive(items).await;
        }
        items.append(&mut self.first_items);
    }

    /// Waits for the next items and adds them. Adds an end if a limit or timeout is exceeded or the
    /// connection breaks.
    async fn receive(&mut self, items: &mut Vec<ReplyItem>) {
        while items.is_empty() {
            let frame_result = tokio::select! {
                biased;
                frame_result = self.body.frame() => frame_result,
                () = &mut self.timer => {
                    if !self.has_begun {
                        return items.push(timeout_item("the upstream sent nothing in time"));
                    }
                    let now = Instant::now();
                    if let Some(end) = self.timeout_end(now) {
                        return items.push(end);
                    }
                    self.timer = PolledWhenWoken::new(sleep_until(self.next_timeout()));
                    continue;
                }
            };
            match frame_result {
                Some(Ok(frame)) => {
                    // Trailers are ignored.
                    let Ok(chunk) = frame.into_data() else { continue };
                    self.last_data = Instant::now();
                    self.decoder.push(&chunk, items);
                    self.check_limits(&chunk, items);
                    if !self.has_begun {
                        self.has_begun = true;
                        self.timer = PolledWhenWoken::new(sleep_until(self.next_timeout()));
                    }
                    // The biased `select!` never polls the timer while the upstream always has bytes.
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

    /// Counts the bytes of a chunk, from which `items` were decoded; adds a failure if a limit is exceeded.
    /// Removes empty texts from the items.
    fn check_limits(&mut self, chunk: &[u8], items: &mut Vec<ReplyItem>) {
        // Empty texts do not count as content.
        items.retain(
            |item| !matches!(item, ReplyItem::Text(text) | ReplyItem::Reasoning(text) if text.is_empty()),
        );
        let old_call_bytes = std::mem::replace(&mut self.call_bytes, self.decoder.call_bytes());
        let has_content = old_call_bytes < self.call_bytes
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
        let message = if self.idle_bytes > limit.max(MIN_LIMIT_BYTES) {
            format!("the upstream sent more bytes without content than `limits.input`, {limit}")
        } else if self.received_bytes > limit.max(MIN_LIMIT_BYTES).saturating_mul(FRAME_FACTOR) {
            format!(
                "the frames of the reply are longer than {FRAME_FACTOR} times `limits.input`, {}",
                format_count(limit, "byte")
            )
        } else {
            return;
        };
        items.push(ReplyItem::End(InputEnd::Failed(new_failure("input_too_large", message, false))));
    }

    /// Returns the end of the reply if it has exceeded a timeout.
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

/// Returns the end of a reply that exceeded a timeout.
fn timeout_item(message: &str) -> ReplyItem {
    ReplyItem::End(InputEnd::Failed(new_failure("upstream_timeout", message, true)))
}
