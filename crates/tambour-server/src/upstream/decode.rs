//! Decoder of a response: SSE frames, JSON lines or one JSON body, whichever a service sends, to items.

use std::sync::Arc;

use serde::Deserialize;
use serde::de::IgnoredAny;
use tambour::End;
use tambour::lex::sse::{Frame, Frames};

use super::kind::Kind;
use super::lines::Lines;
use super::{Item, NativeCall, failure};

/// Most bytes of one JSON body, and of all calls of a response.
pub(super) const WHOLE: usize = 16 << 20;

/// Most calls of a response: each new part is looked up among them.
const CALLS: usize = 1024;

/// Byte order mark.
const MARK: &[u8] = b"\xEF\xBB\xBF";

/// Decoder of a service's response, in chunks of any size.
pub struct Decoder {
    kind: Kind,
    form: Form,
    reader: Reader,
}

/// Reader of frames, up to the end.
struct Reader {
    reading: Box<dyn Reading>,
    ended: bool,
}

/// Format of the response, detected from its first bytes, since content types are unreliable.
enum Form {
    /// Only blanks and this many bytes of a byte order mark so far.
    Unknown(usize),
    /// SSE frames.
    Frames(Frames),
    /// JSON lines.
    Lines(Lines),
    /// One JSON body, although a stream was requested.
    Whole(Vec<u8>),
}

/// Meaning of the frames of a kind of service.
pub(super) trait Reading: Send {
    /// Converts one frame to items. Not called for frames without data, nor after the end.
    fn frame(&mut self, frame: &Frame<'_>, items: &mut Vec<Item>);
    /// Returns the shared progress.
    fn progress(&mut self) -> &mut Progress;
    /// Takes the calls, after everything was read.
    fn calls(&mut self) -> Vec<NativeCall>;
}

/// Progress that every kind of service reports in its own way.
#[derive(Default)]
pub(super) struct Progress {
    /// Id of the message.
    message: Arc<str>,
    /// Finish reason of the model.
    pub(super) finish: Option<End>,
    /// Set when the service has announced the end of the stream.
    pub(super) done: bool,
    /// Set once bytes were received, and once a frame of them was readable.
    some: bool,
    understood: bool,
    /// True if a JSON object was broken, so that its content is missing.
    lost: bool,
    /// Bytes of the calls so far, and their number.
    length: usize,
    count: usize,
}

impl Progress {
    /// Creates the progress of a message's reply.
    pub(super) fn new(message: &Arc<str>) -> Progress {
        Progress { message: message.clone(), ..Progress::default() }
    }

    /// Parses the data of a frame. Unreadable data is skipped: the rest of the reply is still good.
    pub(super) fn read<'a, T: Deserialize<'a>>(&mut self, data: &'a [u8]) -> Option<T> {
        match serde_json::from_slice(data) {
            Ok(read) => {
                self.understood = true;
                Some(read)
            }
            Err(error) => {
                self.lost |= data.starts_with(b"{") && !error.is_data();
                let (message_id, bytes) = (&*self.message, data.len());
                tracing::warn!(message_id, %error, bytes, "a frame of the upstream is not what it should be; passed over");
                None
            }
        }
    }

    /// Counts bytes of calls; adds a failure and returns `false` beyond the limit.
    pub(super) fn room(&mut self, bytes: usize, items: &mut Vec<Item>) -> bool {
        self.length += bytes;
        let fits = self.length <= WHOLE;
        if !fits {
            let message = format!("the calls of the answer are longer than {WHOLE} bytes");
            items.push(Item::End(End::Failed(failure("upstream_error", message, false))));
        }
        fits
    }

    /// Counts a call or block; adds a failure and returns `false` beyond the limit.
    pub(super) fn one_more(&mut self, items: &mut Vec<Item>) -> bool {
        self.count += 1;
        let fits = self.count <= CALLS;
        if !fits {
            let message = format!("the answer has more than {CALLS} calls");
            items.push(Item::End(End::Failed(failure("upstream_error", message, false))));
        }
        fits
    }

    /// Returns the end of a cleanly ended stream.
    fn end(&mut self) -> End {
        if self.some && !self.understood && !self.done {
            let message = "the upstream sent something that is no reply";
            return End::Failed(failure("upstream_malformed", message, false));
        }
        let end = match (self.finish.take(), self.done) {
            (Some(end), _) => end,
            (None, true) => End::stop(),
            (None, false) => End::Unknown,
        };
        match end {
            // The service reports a complete reply, but a part is missing: nothing of it may act.
            End::Finished(reason) if self.lost => End::Incomplete(reason),
            end => end,
        }
    }
}

impl Decoder {
    /// Creates a decoder for a message's response; the id appears in log lines.
    #[must_use]
    pub fn new(kind: Kind, message: &Arc<str>) -> Decoder {
        let reader = Reader { reading: kind.reading(message), ended: false };
        Decoder { kind, form: Form::Unknown(0), reader }
    }

    /// Decodes bytes. Nothing is decoded after an [`Item::End`].
    pub fn push(&mut self, chunk: &[u8], items: &mut Vec<Item>) {
        let Some(chunk) = self.begun(chunk) else { return };
        let Decoder { form, reader, .. } = self;
        if reader.ended {
            return;
        }
        match form {
            Form::Unknown(_) => {}
            Form::Whole(whole) if whole.len() + chunk.len() > WHOLE => reader.too_long("the answer", items),
            Form::Whole(whole) => whole.extend_from_slice(chunk),
            Form::Frames(frames) => frames.push(chunk, &mut |frame| reader.frame(&frame, items)),
            Form::Lines(lines) => lines.push(chunk, &mut |data, cut| reader.line(data, cut, items)),
        }
        if reader.reading.progress().done {
            // Anything that follows is ignored.
            reader.close(items);
        }
    }

    /// Returns the bytes of calls so far; calls become items only at the end.
    pub(super) fn call_bytes(&mut self) -> usize {
        self.reader.reading.progress().length
    }

    /// Ends a cleanly closed response.
    pub fn finish(&mut self, items: &mut Vec<Item>) {
        let Decoder { form, reader, .. } = self;
        match form {
            Form::Unknown(_) => {}
            Form::Whole(whole) => reader.line(whole, false, items),
            Form::Frames(frames) => frames.finish(&mut |frame| reader.frame(&frame, items)),
            Form::Lines(lines) => lines.finish(&mut |data, cut| reader.line(data, cut, items)),
        }
        reader.close(items);
    }

    /// Skips a byte order mark and blanks at the beginning; `None` while there is nothing else.
    fn begun<'a>(&mut self, mut chunk: &'a [u8]) -> Option<&'a [u8]> {
        let Form::Unknown(mark) = &mut self.form else { return Some(chunk) };
        let first = loop {
            match chunk.first()? {
                byte if MARK.get(*mark) == Some(byte) => *mark += 1,
                byte if byte.is_ascii_whitespace() => {}
                byte => break *byte,
            }
            chunk = &chunk[1..];
        };
        self.form = match first {
            _ if self.kind.has_lines() => Form::Lines(Lines::new(WHOLE)),
            b'{' | b'[' => Form::Whole(Vec::new()),
            _ => Form::Frames(Frames::new(WHOLE)),
        };
        self.reader.reading.progress().some = true;
        Some(chunk)
    }
}

impl Reader {
    /// Reads one frame, unless the end was reached.
    fn frame(&mut self, frame: &Frame<'_>, items: &mut Vec<Item>) {
        let data = frame.data.trim_ascii();
        if self.ended || self.reading.progress().done || data.is_empty() {
            return;
        }
        if frame.cut && serde_json::from_slice::<IgnoredAny>(data).is_err() {
            // The missing part may be the answer.
            return self.too_long("a frame of the answer", items);
        }
        self.reading.frame(&Frame { data, ..*frame }, items);
        self.ended = matches!(items.last(), Some(Item::End(_)));
    }

    /// Reads data without a frame name.
    fn line(&mut self, data: &[u8], cut: bool, items: &mut Vec<Item>) {
        self.frame(&Frame { name: "", data, cut }, items);
    }

    /// Adds the calls, then the end of a clean stream.
    fn close(&mut self, items: &mut Vec<Item>) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        items.extend(self.reading.calls().into_iter().map(Item::Call));
        items.push(Item::End(self.reading.progress().end()));
    }

    fn too_long(&mut self, what: &str, items: &mut Vec<Item>) {
        self.ended = true;
        let failure = failure("upstream_error", format!("{what} is longer than {WHOLE} bytes"), false);
        items.push(Item::End(End::Failed(failure)));
    }
}
