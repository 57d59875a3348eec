//! Text around values: starts of values, fences, thinking, comments.

use crate::lex::fence::Fence;
use crate::lex::json::{self, PROSE};
use crate::lex::marks::{self, Effect, Kind, Mark, Open, Seen};
use crate::lex::utf8;

use super::event::{Closing, JsonEvent, JsonSink, Origin, ThoughtMark};
use super::peek::{More, Peek, WINDOW};
use super::reader::Reader;
use super::state::{Cursor, Flow, Mode};

/// Longest run of backticks or tildes counted; a longer one counts as this long.
const FENCE: usize = 64;

/// Delimiters of an HTML comment.
const COMMENT: &[u8] = b"<!--";
const COMMENT_END: &[u8] = b"-->";

/// State of the text outside of values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outside {
    /// Open fence, and the origin it gives its values.
    pub(super) fence: Option<(Fence, Origin)>,
    /// Only white space since the text, its fence or its thinking began.
    pub(super) fresh: bool,
    /// Only white space since the line began.
    pub(super) line: bool,
    /// Open thinking, which is not searched for values.
    thinking: Option<Open>,
    /// Mark that ended the last thinking, and the absolute offset after it.
    closed: Option<(Mark, usize)>,
    /// Absolute offset after the last run of one or two backticks: a mark quoted there does not act.
    quoting: usize,
    /// True if marks of thinking are only text.
    pub(super) unmarked: bool,
    /// Skips text up to the next line break, since this line exceeded the limits.
    pub(super) skipping: bool,
    /// Reads a comment up to the next line break.
    comment: bool,
    /// True if an unclosed comment has begun.
    commented: bool,
    /// Absolute offset up to which no comment ends, so that no byte is searched twice.
    searched: usize,
    /// Absolute offset up to which no comment begins, since an earlier one was too long.
    unclosed: usize,
}

impl Default for Outside {
    fn default() -> Outside {
        Outside {
            fence: None,
            fresh: true,
            line: true,
            thinking: None,
            closed: None,
            quoting: usize::MAX,
            unmarked: false,
            skipping: false,
            comment: false,
            commented: false,
            searched: 0,
            unclosed: 0,
        }
    }
}

impl Outside {
    pub(super) fn origin(&self) -> Origin {
        self.fence.map_or(Origin::Bare, |(_, origin)| origin)
    }

    /// Returns whether an unclosed comment has begun.
    pub(super) fn is_commented(&self) -> bool {
        self.commented
    }

    /// Returns whether text precedes on the line, outside of fences.
    pub(super) fn in_sentence(&self) -> bool {
        !self.line && !self.fresh && self.fence.is_none()
    }

    fn passed(&mut self, text: &[u8]) {
        if text.is_empty() {
            return;
        }
        let after = memchr::memrchr(b'\n', text).map(|at| at + 1);
        let blank = |bytes: &[u8]| {
            let mut at = 0;
            while at < bytes.len() {
                match json::odd_space(bytes, at) {
                    Some(length) => at += length,
                    None if json::is_space(bytes[at]) => at += 1,
                    None => return false,
                }
            }
            true
        };
        self.line = (after.is_some() || self.line) && blank(&text[after.unwrap_or(0)..]);
        if self.fresh && !blank(text) {
            self.fresh = false;
        }
    }
}

/// Classification of a place where a value might start.
enum Found {
    Nothing,
    Value(usize),
    /// Beginning or end of a fence, of this many bytes.
    Marker(usize),
    /// Comment of this many bytes, or one that ends with its line.
    Comment(usize),
    LineComment,
    /// Beginning of thinking, with a mark of this many bytes.
    Thought(Open, usize),
    /// Mark of this many bytes that ends thinking which is closed already or was never opened.
    ThoughtEnd(usize, Closing),
}

impl Reader {
    /// Emits text until a value starts.
    pub(super) fn text<S: JsonSink + ?Sized>(&mut self, c: &mut Cursor<'_>, sink: &mut S) -> Flow {
        if let Some(open) = self.outside.thinking {
            return self.thought(c, open, sink);
        }
        if self.outside.comment {
            let rest = &c.text[c.at..];
            let line = memchr::memchr(b'\n', rest.as_bytes());
            self.outside.comment = line.is_none();
            self.comment_text(c, line.unwrap_or(rest.len()), sink);
        }
        let bytes = c.bytes();
        let start = c.at;
        let mut at = c.at;
        if self.outside.skipping {
            match memchr::memchr(b'\n', &bytes[at..]) {
                None => at = bytes.len(),
                Some(line) => {
                    at += line + 1;
                    self.outside.skipping = false;
                }
            }
            self.outside.passed(&bytes[start..at]);
        }
        let mut passed = at;
        loop {
            at = PROSE.find(bytes, at);
            if at == bytes.len() {
                self.outside.passed(&bytes[passed..at]);
                break;
            }
            self.outside.passed(&bytes[passed..at]);
            passed = at;
            match self.look(bytes, at, c.last) {
                Err(More) => break,
                Ok(Found::Nothing) => at += utf8::width(bytes[at]),
                Ok(Found::Marker(length)) => {
                    at += length;
                    passed = at;
                }
                Ok(Found::Comment(length)) => {
                    sink_text(c, start, at, sink);
                    c.at = at;
                    self.comment_text(c, length, sink);
                    return Flow::Go;
                }
                Ok(Found::LineComment) => {
                    sink_text(c, start, at, sink);
                    c.at = at;
                    self.outside.comment = true;
                    return Flow::Go;
                }
                Ok(Found::Thought(open, length)) => {
                    sink_text(c, start, at, sink);
                    let mark = self.mark(c, at, length);
                    self.outside.thinking = Some(open);
                    sink.event(JsonEvent::ThoughtStart(mark));
                    return Flow::Go;
                }
                Ok(Found::ThoughtEnd(length, closing)) => {
                    sink_text(c, start, at, sink);
                    let mark = self.mark(c, at, length);
                    if closing == Closing::Unopened {
                        self.outside.fence = None;
                    }
                    self.outside.fresh = true;
                    sink.event(JsonEvent::ThoughtEnd(mark, closing));
                    return Flow::Go;
                }
                Ok(Found::Value(length)) => {
                    sink_text(c, start, at, sink);
                    let mark = json::mark(bytes, at).map_or(b'{', |(mark, _)| mark);
                    self.begin(c, at, sink);
                    self.outside.passed(b"x");
                    if length > 1 {
                        self.odd_mark(c, at, length, sink);
                    }
                    self.open_bracket(c, at, mark, sink);
                    c.at = at + length;
                    return Flow::Go;
                }
            }
        }
        sink_text(c, start, at, sink);
        c.at = at;
        Flow::Wait
    }

    /// Emits `length` bytes of a comment. The text around it is read as if it were absent.
    fn comment_text<S: JsonSink + ?Sized>(&mut self, c: &mut Cursor<'_>, length: usize, sink: &mut S) {
        if length > 0 {
            sink.event(JsonEvent::Comment(&c.text[c.at..c.at + length]));
            c.at += length;
        }
    }

    /// Consumes a mark at `at` of the current text.
    fn mark<'b>(&mut self, c: &mut Cursor<'b>, at: usize, length: usize) -> ThoughtMark<'b> {
        c.at = at + length;
        ThoughtMark { text: &c.text[at..c.at], place: self.place_at(c.text, at) }
    }

    /// Emits text of thinking until it ends.
    fn thought<S: JsonSink + ?Sized>(&mut self, c: &mut Cursor<'_>, mut open: Open, sink: &mut S) -> Flow {
        let bytes = c.bytes();
        let start = c.at;
        let mut at = c.at;
        let mut flow = Flow::Wait;
        let mut end = None;
        loop {
            let Some(found) = marks::find(&bytes[at..]) else {
                at = bytes.len();
                break;
            };
            at += found;
            self.work += marks::LONGEST as u64;
            match marks::at(&bytes[at..]) {
                Seen::Part if !c.last => break,
                Seen::No | Seen::Part => at += 1,
                Seen::Mark(mark, length) => match open.see(mark) {
                    Effect::Text => at += length,
                    effect => {
                        let foreign = effect == Effect::CloseForeign;
                        end = Some((length, if foreign { Closing::Foreign } else { Closing::Own }));
                        self.outside.closed = Some((mark, self.base.offset + at + length));
                        flow = Flow::Go;
                        break;
                    }
                },
            }
        }
        self.outside.thinking = Some(open);
        if at > start {
            sink.event(JsonEvent::Thought(&c.text[start..at]));
        }
        c.at = at;
        if let Some((length, closing)) = end {
            let mark = self.mark(c, at, length);
            self.outside.thinking = None;
            self.outside.fresh = true;
            sink.event(JsonEvent::ThoughtEnd(mark, closing));
        }
        flow
    }

    fn look(&mut self, bytes: &[u8], at: usize, last: bool) -> Result<Found, More> {
        self.work += WINDOW as u64;
        let p = Peek::new(bytes, at, last);
        let byte = bytes[at];
        if byte == b'<' && p.starts(at, COMMENT)? {
            return self.comment_ends(bytes, at, last);
        }
        if matches!(byte, b'<' | b'[' | 0xE2) && !self.outside.unmarked {
            let found = self.thinking(bytes, at, last)?;
            if !matches!(found, Found::Nothing) {
                return Ok(found);
            }
        }
        match byte {
            b'`' | b'~' => self.fence_mark(&p, at, byte),
            b'/' => {
                let comment = self.outside.fence.is_some() && self.outside.line && p.starts(at, b"//")?;
                Ok(if comment { Found::LineComment } else { Found::Nothing })
            }
            _ => match json::mark(bytes, at) {
                Some((mark @ (b'{' | b'['), length)) => {
                    let yes = match mark {
                        b'{' => self.object_starts(&p, at + length)?,
                        _ => self.array_starts(&p, at + length)?,
                    };
                    Ok(if yes { Found::Value(length) } else { Found::Nothing })
                }
                _ => Ok(Found::Nothing),
            },
        }
    }

    /// Matches an HTML comment at `at`, if it ends within the limit: an unclosed one hides nothing.
    fn comment_ends(&mut self, bytes: &[u8], at: usize, last: bool) -> Result<Found, More> {
        let base = self.base.offset;
        let outside = &mut self.outside;
        if base + at == outside.quoting || base + at < outside.unclosed {
            return Ok(Found::Nothing);
        }
        let limit = at + self.hold;
        let from = (at + COMMENT.len()).max(outside.searched.saturating_sub(base));
        let to = limit.min(bytes.len());
        let rest = bytes.get(from..to).unwrap_or_default();
        if let Some(end) = memchr::memmem::find(rest, COMMENT_END) {
            return Ok(Found::Comment(from + end + COMMENT_END.len() - at));
        }
        self.work += rest.len() as u64;
        // A prefix of the end marker may be there.
        outside.searched = base + from.max((to + 1).saturating_sub(COMMENT_END.len()));
        if bytes.len() < limit && !last {
            return Err(More);
        }
        (outside.unclosed, outside.commented) = (base + limit, true);
        Ok(Found::Nothing)
    }

    /// Matches a mark outside of thinking. A mark in a code span does not act.
    fn thinking(&mut self, bytes: &[u8], at: usize, last: bool) -> Result<Found, More> {
        let (mark, length) = match marks::at(&bytes[at..]) {
            Seen::Part if !last => return Err(More),
            Seen::No | Seen::Part => return Ok(Found::Nothing),
            Seen::Mark(mark, length) => (mark, length),
        };
        Ok(match mark.kind {
            _ if self.base.offset + at == self.outside.quoting => Found::Nothing,
            Kind::Open => Found::Thought(Open::new(mark), length),
            // Some thinking ends with two marks.
            Kind::Close if self.outside.closed == Some((mark.as_own(), self.base.offset + at)) => {
                Found::ThoughtEnd(length, Closing::Own)
            }
            Kind::Close => Found::ThoughtEnd(length, Closing::Unopened),
            Kind::CloseOwn | Kind::Header | Kind::Stop => Found::Nothing,
        })
    }

    /// Matches a run of three or more backticks, or of tildes at the start of a line.
    fn fence_mark(&mut self, p: &Peek<'_>, at: usize, byte: u8) -> Result<Found, More> {
        let mut length = 0;
        while length < FENCE && p.byte(at + length)? == Some(byte) {
            length += 1;
        }
        let tilde_inside = byte == b'~' && !self.outside.line;
        let Some(run) = Fence::new(byte, length).filter(|_| !tilde_inside) else {
            // A short run is skipped as a whole: its later characters begin no fence either.
            self.outside.passed(b"x");
            if byte == b'`' {
                self.outside.quoting = self.base.offset + at + length;
            }
            return Ok(if length > 1 { Found::Marker(length) } else { Found::Nothing });
        };
        if let Some((open, _)) = self.outside.fence {
            if open.is_closed_by(run) {
                self.outside.fence = None;
                self.outside.line = false;
            }
            return Ok(Found::Marker(length));
        }
        let tag = at + length;
        let mut end = tag;
        while p.byte(end)? == Some(b' ') && end < tag + 4 {
            end += 1;
        }
        let word = p.word(end)?;
        let origin = match word.get(..4) {
            _ if word.is_empty() => Origin::JsonFence,
            Some(json) if json.eq_ignore_ascii_case(b"json") => Origin::JsonFence,
            _ => Origin::OtherFence,
        };
        end += word.len();
        self.outside.fence = Some((run, origin));
        self.outside.fresh = true;
        Ok(Found::Marker(end - at))
    }

    /// Returns whether text around values is allowed.
    pub(super) fn chatty(&self) -> bool {
        self.mode != Mode::Document
    }
}

fn sink_text<S: JsonSink + ?Sized>(c: &Cursor<'_>, start: usize, end: usize, sink: &mut S) {
    if end > start {
        sink.event(JsonEvent::Text(&c.text[start..end]));
    }
}
