//! Text around values: where the next value starts, fences, thinking.

use crate::lex::json::{self, PROSE, Quote, is_word};
use crate::lex::marks::{self, Effect, Kind, Mark, Open, Seen};

use super::event::{Closing, JsonEvent, JsonSink, Origin, ThoughtMark};
use super::peek::{Key, More, Peek, WINDOW};
use super::reader::{Cursor, Flow, Mode, Reader};

/// Longest run of backticks or tildes that is counted; a longer one counts as this long.
const FENCE: usize = 64;

/// What is known about the text outside of values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outside {
    /// The open fence: its character, length and what it is for.
    pub(super) fence: Option<(u8, usize, Origin)>,
    /// Only white space came since the text, its fence or its thinking began.
    fresh: bool,
    /// Only white space came since the line began.
    pub(super) line: bool,
    /// The thinking under way, in which no value is looked for.
    thinking: Option<Open>,
    /// The mark that ended the last thinking, and the offset in the whole text after it.
    closed: Option<(Mark, usize)>,
    /// Offset in the whole text after the last run of one or two backticks: what it quotes is only spoken of.
    quoting: usize,
    /// Whether marks of thinking are only text.
    pub(super) unmarked: bool,
    /// Text up to the next line break is skipped, since the limits were exceeded on this line.
    pub(super) skipping: bool,
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
        }
    }
}

impl Outside {
    pub(super) fn origin(&self) -> Origin {
        self.fence.map_or(Origin::Bare, |(_, _, origin)| origin)
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

/// What stands at a place where a value might start.
enum Found {
    Nothing,
    Value(usize),
    /// A fence begins or ends: so many bytes of text.
    Marker(usize),
    /// Thinking begins.
    Thought(Open, usize),
    /// A mark of so many bytes ends thinking that has ended with another one already, or has not begun.
    ThoughtEnd(usize, Closing),
}

impl Reader {
    /// Hands out text until a value starts.
    pub(super) fn text<S: JsonSink + ?Sized>(&mut self, c: &mut Cursor<'_>, sink: &mut S) -> Flow {
        if let Some(open) = self.outside.thinking {
            return self.thought(c, open, sink);
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
                Ok(Found::Nothing) => at += json::width(bytes[at]),
                Ok(Found::Marker(length)) => {
                    at += length;
                    passed = at;
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
                    self.outside.passed(b"x");
                    let mark = json::mark(bytes, at).map_or(b'{', |(mark, _)| mark);
                    self.begin(c, at, sink);
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

    /// A mark at `at` of the text being read, which goes on after it.
    fn mark<'b>(&mut self, c: &mut Cursor<'b>, at: usize, length: usize) -> ThoughtMark<'b> {
        c.at = at + length;
        ThoughtMark { text: &c.text[at..c.at], place: self.place_at(c.text, at) }
    }

    /// Hands out the text of thinking until it ends.
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
        if matches!(byte, b'<' | b'[' | 0xE2) && !self.outside.unmarked {
            let found = self.thinking(bytes, at, last)?;
            if !matches!(found, Found::Nothing) {
                return Ok(found);
            }
        }
        match byte {
            b'`' | b'~' => self.fence_mark(&p, at, byte),
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

    /// A mark of thinking outside of it. One in a code span is only spoken of.
    fn thinking(&mut self, bytes: &[u8], at: usize, last: bool) -> Result<Found, More> {
        let (mark, length) = match marks::at(&bytes[at..]) {
            Seen::Part if !last => return Err(More),
            Seen::No | Seen::Part => return Ok(Found::Nothing),
            Seen::Mark(mark, length) => (mark, length),
        };
        Ok(match mark.kind {
            _ if self.base.offset + at == self.outside.quoting => Found::Nothing,
            Kind::Open => Found::Thought(Open::new(mark), length),
            // Some thinking ends in two marks.
            Kind::Close if self.outside.closed == Some((mark.as_own(), self.base.offset + at)) => {
                Found::ThoughtEnd(length, Closing::Own)
            }
            Kind::Close => Found::ThoughtEnd(length, Closing::Unopened),
            Kind::CloseOwn => Found::Nothing,
        })
    }

    /// A run of three or more backticks, or of tildes at the start of a line.
    fn fence_mark(&mut self, p: &Peek<'_>, at: usize, byte: u8) -> Result<Found, More> {
        let mut length = 0;
        while length < FENCE && p.byte(at + length)? == Some(byte) {
            length += 1;
        }
        let tilde_inside = byte == b'~' && !self.outside.line;
        if length < 3 || tilde_inside {
            // A short run is passed as a whole: its later characters are no fence either.
            self.outside.passed(b"x");
            if byte == b'`' {
                self.outside.quoting = self.base.offset + at + length;
            }
            return Ok(if length > 1 { Found::Marker(length) } else { Found::Nothing });
        }
        if let Some((open, least, _)) = self.outside.fence {
            if open == byte && length >= least {
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
        self.outside.fence = Some((byte, length, origin));
        self.outside.fresh = true;
        Ok(Found::Marker(end - at))
    }

    /// Whether what follows `{` is an object rather than prose in braces.
    fn object_starts(&self, p: &Peek<'_>, at: usize) -> Result<bool, More> {
        let (at, _) = p.space(at)?;
        let fresh = self.outside.fresh;
        let Some(byte) = p.byte(at)? else { return Ok(fresh) };
        if let Some((quote, length)) = p.quote(at)? {
            return Ok(match quote {
                Quote::Back if p.starts(at, b"```")? => false,
                Quote::Double if p.byte(at + length)? != Some(b'"') => true,
                Quote::Double | Quote::Escaped => true,
                _ => fresh || p.key(at, 1)? != Key::No,
            });
        }
        Ok(match byte {
            b'}' => true,
            b']' | b',' => fresh,
            b'/' => p.comment(at)?,
            b'#' => fresh,
            b'\\' => matches!(p.byte(at + 1)?, Some(b'n' | b'r' | b't')),
            b'.' => fresh && p.starts(at, b"...")?,
            _ if is_word(byte) || byte >= 0x80 => match p.key(at, if fresh { 3 } else { 2 })? {
                Key::Yes => true,
                Key::End => fresh,
                Key::No => {
                    let (end, words) = p.words(at, 1)?;
                    let (next, _) = p.space(end)?;
                    fresh && words == 1 && p.quote(next)?.is_some_and(|(quote, _)| quote != Quote::Back)
                }
            },
            _ => false,
        })
    }

    /// Whether what follows `[` is an array rather than prose in brackets.
    fn array_starts(&self, p: &Peek<'_>, mut at: usize) -> Result<bool, More> {
        let fresh = self.outside.fresh;
        loop {
            (at, _) = p.space(at)?;
            match p.mark(at)? {
                Some(b'[') => at += 1,
                Some(b'{') => return Ok(fresh || self.object_starts(p, at + 1)?),
                Some(b']') => return Ok(true),
                Some(b',' | b'}') => return Ok(fresh),
                _ => break,
            }
            // Full-width brackets are three bytes; the two left over are skipped as what they are not.
            while p.byte(at)?.is_some_and(|byte| (0x80..0xC0).contains(&byte)) {
                at += 1;
            }
        }
        let Some(byte) = p.byte(at)? else { return Ok(fresh) };
        if let Some((quote, _)) = p.quote(at)? {
            return Ok(matches!(quote, Quote::Double | Quote::Escaped) || fresh && quote != Quote::Back);
        }
        Ok(match byte {
            b'/' => p.comment(at)?,
            b'-' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'.' => {
                let word = p.word(at)?;
                let (next, newline) = p.space(at + word.len())?;
                let ends = newline || matches!(p.mark(next)?, Some(b',' | b']')) || p.comment(next)?;
                let plain = !byte.is_ascii_alphabetic()
                    || matches!(word, b"true" | b"false" | b"null" | b"True" | b"False" | b"None");
                match p.byte(next)? {
                    None => fresh,
                    Some(_) => plain && ends || fresh && self.words_end(p, at)?,
                }
            }
            _ => fresh && byte >= 0x80 && self.words_end(p, at)?,
        })
    }

    /// Whether a few words end like an item of an array.
    fn words_end(&self, p: &Peek<'_>, at: usize) -> Result<bool, More> {
        if p.starts(at, b"http")? {
            return Ok(true);
        }
        let (end, _) = p.words(at, 4)?;
        let (next, newline) = p.space(end)?;
        if p.quote(next)?.is_some() {
            return Ok(end > at);
        }
        Ok(match p.byte(next)? {
            None => true,
            Some(_) => end > at && (newline || matches!(p.mark(next)?, Some(b',' | b']' | b'}'))),
        })
    }

    /// Whether text around values is allowed.
    pub(super) fn chatty(&self) -> bool {
        self.mode != Mode::Document
    }
}

fn sink_text<S: JsonSink + ?Sized>(c: &Cursor<'_>, start: usize, end: usize, sink: &mut S) {
    if end > start {
        sink.event(JsonEvent::Text(&c.text[start..end]));
    }
}
