//! Decoder of a response into items of a reply. A response is SSE frames, JSON lines or one JSON body,
//! whichever the service sends.

use std::sync::Arc;

use serde::Deserialize;
use serde::de::IgnoredAny;
use tambour::InputEnd;
use tambour::lex::sse::{SseFrame, SseReader};

use super::kind::ServiceKind;
use super::lines::LineReader;
use super::{NativeCall, ReplyItem, new_failure};

/// Maximum length in bytes of one JSON body, line or SSE frame, and of all calls of a response together.
pub(super) const MAX_BODY_BYTES: usize = 16 << 20;

/// Maximum number of calls of a response: each part of a call is looked up among them, which is slow for
/// many.
const MAX_CALLS: usize = 1024;

/// Byte order mark.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Decoder of a service's response, in chunks of any size.
pub struct ResponseDecoder {
    kind: ServiceKind,
    format: ResponseFormat,
    reader: FrameReader,
}

/// Reader of frames, up to the end of the reply.
struct FrameReader {
    decoder: Box<dyn FrameDecoder>,
    /// Set once an end was added; later frames are ignored.
    has_ended: bool,
}

/// Format of a response, detected from its first bytes, since content types are unreliable.
enum ResponseFormat {
    /// Unknown so far: there were only blanks, and this many bytes of a byte order mark.
    Unknown(usize),
    /// SSE frames.
    Sse(SseReader),
    /// JSON lines.
    Lines(LineReader),
    /// One JSON body, although a stream was requested.
    Body(Vec<u8>),
}

/// Decoder of the frames of one kind of service. A JSON line or body counts as a frame.
pub(super) trait FrameDecoder: Send {
    /// Converts one frame to items. Not called for frames without data, nor after the end.
    fn decode_frame(&mut self, frame: &SseFrame<'_>, items: &mut Vec<ReplyItem>);
    /// Returns the shared progress.
    fn progress(&mut self) -> &mut DecodeProgress;
    /// Takes the collected calls, after everything was read.
    fn take_calls(&mut self) -> Vec<NativeCall>;
}

/// Progress of decoding, which the frame decoders of all kinds of services share.
#[derive(Default)]
pub(super) struct DecodeProgress {
    /// Id of the message, for log lines.
    message_id: Arc<str>,
    /// End of the reply according to the finish reason that the service reported.
    pub(super) reported_end: Option<InputEnd>,
    /// Set when the service has announced the end of the stream.
    pub(super) is_done: bool,
    /// Set once bytes other than blanks and a byte order mark were received.
    has_bytes: bool,
    /// Set once a frame was readable.
    has_frame: bool,
    /// True if a JSON object was broken, so that its content is missing.
    is_damaged: bool,
    /// Bytes of the calls so far, and of the reasoning blocks kept with them.
    call_bytes: usize,
    /// Number of calls so far, and of the reasoning blocks kept with them.
    call_count: usize,
}

impl DecodeProgress {
    /// Creates the progress of the reply to a message.
    pub(super) fn new(message_id: &Arc<str>) -> DecodeProgress {
        DecodeProgress { message_id: message_id.clone(), ..DecodeProgress::default() }
    }

    /// Parses the data of a frame. Unreadable data is skipped: the rest of the reply is still good.
    pub(super) fn parse<'a, T: Deserialize<'a>>(&mut self, data: &'a [u8]) -> Option<T> {
        match serde_json::from_slice(data) {
            Ok(frame) => {
                self.has_frame = true;
                Some(frame)
            }
            Err(error) => {
                // Valid JSON of another shape (`is_data`) is an unknown frame, not a damaged one.
                self.is_damaged |= data.starts_with(b"{") && !error.is_data();
                let (message_id, bytes) = (&*self.message_id, data.len());
                tracing::warn!(message_id, %error, bytes, "skipped a malformed frame of the upstream");
                None
            }
        }
    }

    /// Counts bytes of a call, or of a reasoning block kept with it; adds a failure and returns `false`
    /// beyond the limit.
    pub(super) fn count_bytes(&mut self, bytes: usize, items: &mut Vec<ReplyItem>) -> bool {
        self.call_bytes += bytes;
        let is_within_limit = self.call_bytes <= MAX_BODY_BYTES;
        if !is_within_limit {
            let message = format!("the tool calls of the answer are longer than {MAX_BODY_BYTES} bytes");
            items.push(ReplyItem::End(InputEnd::Failed(new_failure("upstream_error", message, false))));
        }
        is_within_limit
    }

    /// Counts a call, or a reasoning block kept with it; adds a failure and returns `false` beyond the limit.
    pub(super) fn count_call(&mut self, items: &mut Vec<ReplyItem>) -> bool {
        self.call_count += 1;
        let is_within_limit = self.call_count <= MAX_CALLS;
        if !is_within_limit {
            let message = format!("the answer has more than {MAX_CALLS} tool calls");
            items.push(ReplyItem::End(InputEnd::Failed(new_failure("upstream_error", message, false))));
        }
        is_within_limit
    }

    /// Returns the end of a reply whose response was closed cleanly.
    fn end(&mut self) -> InputEnd {
        if self.has_bytes && !self.has_frame && !self.is_done {
            let message = "the upstream sent data that is not a reply";
            return InputEnd::Failed(new_failure("upstream_malformed", message, false));
        }
        let end = match (self.reported_end.take(), self.is_done) {
            (Some(end), _) => end,
            (None, true) => InputEnd::stop(),
            (None, false) => InputEnd::WithoutReason,
        };
        match end {
            // The service reports a complete reply, but a part of it is missing: it must not count as
            // complete.
            InputEnd::Finished(reason) if self.is_damaged => InputEnd::Incomplete(reason),
            end => end,
        }
    }
}

impl ResponseDecoder {
    /// Creates a decoder for the response to a message. `message_id` appears in log lines.
    #[must_use]
    pub fn new(kind: ServiceKind, message_id: &Arc<str>) -> ResponseDecoder {
        let reader = FrameReader { decoder: kind.api().frame_decoder(message_id), has_ended: false };
        ResponseDecoder { kind, format: ResponseFormat::Unknown(0), reader }
    }

    /// Decodes bytes. Nothing is decoded after a [`ReplyItem::End`].
    pub fn push(&mut self, chunk: &[u8], items: &mut Vec<ReplyItem>) {
        let Some(chunk) = self.skip_start(chunk) else { return };
        let ResponseDecoder { format, reader, .. } = self;
        if reader.has_ended {
            return;
        }
        match format {
            ResponseFormat::Unknown(_) => {}
            ResponseFormat::Body(body) if body.len() + chunk.len() > MAX_BODY_BYTES => {
                reader.push_too_long("the answer", items)
            }
            ResponseFormat::Body(body) => body.extend_from_slice(chunk),
            ResponseFormat::Sse(frames) => frames.push(chunk, &mut |frame| reader.read_frame(&frame, items)),
            ResponseFormat::Lines(lines) => {
                lines.push(chunk, &mut |data, is_truncated| reader.read_line(data, is_truncated, items))
            }
        }
        if reader.decoder.progress().is_done {
            // The service has announced the end: bytes that follow are ignored.
            reader.close(items);
        }
    }

    /// Returns the bytes of the calls so far, and of the reasoning blocks kept with them. Calls become items
    /// only at the end.
    pub(super) fn call_bytes(&mut self) -> usize {
        self.reader.decoder.progress().call_bytes
    }

    /// Ends a response that was closed cleanly: adds the remaining items and the end.
    pub fn finish(&mut self, items: &mut Vec<ReplyItem>) {
        let ResponseDecoder { format, reader, .. } = self;
        match format {
            ResponseFormat::Unknown(_) => {}
            ResponseFormat::Body(body) => reader.read_line(body, false, items),
            ResponseFormat::Sse(frames) => frames.finish(&mut |frame| reader.read_frame(&frame, items)),
            ResponseFormat::Lines(lines) => {
                lines.finish(&mut |data, is_truncated| reader.read_line(data, is_truncated, items));
            }
        }
        reader.close(items);
    }

    /// Skips a byte order mark and blanks at the beginning, and detects the format. Returns the bytes to
    /// decode; `None` while only skipped bytes have arrived.
    fn skip_start<'a>(&mut self, mut chunk: &'a [u8]) -> Option<&'a [u8]> {
        let ResponseFormat::Unknown(mark_len) = &mut self.format else { return Some(chunk) };
        let first = loop {
            match chunk.first()? {
                byte if BYTE_ORDER_MARK.get(*mark_len) == Some(byte) => *mark_len += 1,
                byte if byte.is_ascii_whitespace() => {}
                byte => break *byte,
            }
            chunk = &chunk[1..];
        };
        self.format = match first {
            _ if self.kind.api().sends_json_lines() => ResponseFormat::Lines(LineReader::new(MAX_BODY_BYTES)),
            b'{' | b'[' => ResponseFormat::Body(Vec::new()),
            _ => ResponseFormat::Sse(SseReader::new(MAX_BODY_BYTES)),
        };
        self.reader.decoder.progress().has_bytes = true;
        Some(chunk)
    }
}

impl FrameReader {
    /// Reads one frame, unless the end was reached.
    fn read_frame(&mut self, frame: &SseFrame<'_>, items: &mut Vec<ReplyItem>) {
        let data = frame.data.trim_ascii();
        if self.has_ended || self.decoder.progress().is_done || data.is_empty() {
            return;
        }
        if frame.is_truncated && serde_json::from_slice::<IgnoredAny>(data).is_err() {
            // The missing part may have been the answer.
            return self.push_too_long("a frame of the answer", items);
        }
        self.decoder.decode_frame(&SseFrame { data, ..*frame }, items);
        self.has_ended = matches!(items.last(), Some(ReplyItem::End(_)));
    }

    /// Reads a JSON line or body, as a frame without a name.
    fn read_line(&mut self, data: &[u8], is_truncated: bool, items: &mut Vec<ReplyItem>) {
        self.read_frame(&SseFrame { name: "", data, is_truncated }, items);
    }

    /// Adds the calls and the end of a cleanly closed response, unless an end was added before.
    fn close(&mut self, items: &mut Vec<ReplyItem>) {
        if std::mem::replace(&mut self.has_ended, true) {
            return;
        }
        items.extend(self.decoder.take_calls().into_iter().map(ReplyItem::Call));
        items.push(ReplyItem::End(self.decoder.progress().end()));
    }

    /// Adds the failure of a response in which `subject` is too long.
    fn push_too_long(&mut self, subject: &str, items: &mut Vec<ReplyItem>) {
        self.has_ended = true;
        let failure =
            new_failure("upstream_error", format!("{subject} is longer than {MAX_BODY_BYTES} bytes"), false);
        items.push(ReplyItem::End(InputEnd::Failed(failure)));
    }
}
