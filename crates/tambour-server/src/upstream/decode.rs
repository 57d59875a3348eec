//! The bytes of an answer to items: frames of a stream, lines of JSON, or one JSON body, whatever a service sends.

use std::sync::Arc;

use serde::Deserialize;
use serde::de::IgnoredAny;
use tambour::End;
use tambour::lex::sse::{Frame, Frames};

use super::kind::Kind;
use super::lines::Lines;
use super::{Item, NativeCall, failure};

/// Bytes that one JSON body, and the calls of an answer, may have.
pub(super) const WHOLE: usize = 16 << 20;

/// Calls that an answer may have: each new part is looked up among them.
const CALLS: usize = 1024;

/// A byte order mark.
const MARK: &[u8] = b"\xEF\xBB\xBF";

/// Reads the answer of a service, in pieces of any size.
pub struct Decoder {
    kind: Kind,
    form: Form,
    reader: Reader,
}

/// What reads frames, up to the end.
struct Reader {
    reading: Box<dyn Reading>,
    ended: bool,
}

/// What the bytes are. Found out from the first of them, since content types are not to be trusted.
enum Form {
    /// Nothing but blanks and so many bytes of a byte order mark have come.
    Unknown(usize),
    /// Frames of a stream.
    Frames(Frames),
    /// Lines of JSON.
    Lines(Lines),
    /// One JSON body, although a stream was asked for.
    Whole(Vec<u8>),
}

/// What the frames of a kind of service mean.
pub(super) trait Reading: Send {
    /// One frame to items. Comes for no frame without data, and none after the end.
    fn frame(&mut self, frame: &Frame<'_>, items: &mut Vec<Item>);
    /// What was learnt so far.
    fn progress(&mut self) -> &mut Progress;
    /// The calls, once all has come.
    fn calls(&mut self) -> Vec<NativeCall>;
}

/// What every kind of service tells in its own words.
#[derive(Default)]
pub(super) struct Progress {
    /// The message it is for.
    message: Arc<str>,
    /// Why the model stopped.
    pub(super) finish: Option<End>,
    /// The service has said that nothing follows.
    pub(super) done: bool,
    /// Whether bytes have come, and whether a frame of them could be read.
    some: bool,
    understood: bool,
    /// Whether an object among them was broken: what was in it is missing.
    lost: bool,
    /// Bytes of the calls so far, and how many they are.
    length: usize,
    count: usize,
}

impl Progress {
    /// Of the reply for that message.
    pub(super) fn new(message: &Arc<str>) -> Progress {
        Progress { message: message.clone(), ..Progress::default() }
    }

    /// The data of a frame. What cannot be read is passed over: the rest of the reply is still good.
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

    /// Whether there is room for more bytes of calls; the end if there is not.
    pub(super) fn room(&mut self, bytes: usize, items: &mut Vec<Item>) -> bool {
        self.length += bytes;
        let fits = self.length <= WHOLE;
        if !fits {
            let message = format!("the calls of the answer are longer than {WHOLE} bytes");
            items.push(Item::End(End::Failed(failure("upstream_error", message, false))));
        }
        fits
    }

    /// Whether there is room for one more call, or what goes back with one; the end if there is not.
    pub(super) fn one_more(&mut self, items: &mut Vec<Item>) -> bool {
        self.count += 1;
        let fits = self.count <= CALLS;
        if !fits {
            let message = format!("the answer has more than {CALLS} calls");
            items.push(Item::End(End::Failed(failure("upstream_error", message, false))));
        }
        fits
    }

    /// The end of a clean stream.
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
            // It ended as the service says, and is not whole: nothing of it may act.
            End::Finished(reason) if self.lost => End::Incomplete(reason),
            end => end,
        }
    }
}

impl Decoder {
    /// Of an answer for that message, by which lines of the log name it.
    #[must_use]
    pub fn new(kind: Kind, message: &Arc<str>) -> Decoder {
        let reader = Reader { reading: kind.reading(message), ended: false };
        Decoder { kind, form: Form::Unknown(0), reader }
    }

    /// Reads bytes. Nothing counts after an [`Item::End`].
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
            // Nothing that counts follows.
            reader.close(items);
        }
    }

    /// Bytes of calls that have come; those are handed on at the end alone.
    pub(super) fn call_bytes(&mut self) -> usize {
        self.reader.reading.progress().length
    }

    /// The bytes have ended well.
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

    /// What follows a byte order mark and blanks, which may come before anything; `None` while there is nothing else.
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
    /// Reads one frame, unless the end was before it.
    fn frame(&mut self, frame: &Frame<'_>, items: &mut Vec<Item>) {
        let data = frame.data.trim_ascii();
        if self.ended || self.reading.progress().done || data.is_empty() {
            return;
        }
        if frame.cut && serde_json::from_slice::<IgnoredAny>(data).is_err() {
            // What is missing may be the answer.
            return self.too_long("a frame of the answer", items);
        }
        self.reading.frame(&Frame { data, ..*frame }, items);
        self.ended = matches!(items.last(), Some(Item::End(_)));
    }

    /// Reads what has no name.
    fn line(&mut self, data: &[u8], cut: bool, items: &mut Vec<Item>) {
        self.frame(&Frame { name: "", data, cut }, items);
    }

    /// The calls, then the end of a clean stream.
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
