//! Text around values: where the next value starts, fences, a leading block of thinking.

use crate::lex::json::{self, PROSE, Quote, is_word};

use super::event::{JsonEvent, JsonSink, Origin};
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
    /// Nothing but white space came at all.
    leading: bool,
    /// Only white space came since the line began.
    pub(super) line: bool,
    thinking: bool,
    /// Text up to the next line break is skipped, since the limits were exceeded on this line.
    pub(super) skipping: bool,
}

impl Default for Outside {
    fn default() -> Outside {
        Outside { fence: None, fresh: true, leading: true, line: true, thinking: false, skipping: false }
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
            self.leading = false;
        }
    }
}

/// What stands at a place where a value might start.
enum Found {
    Nothing,
    Value(usize),
    /// A fence begins or ends, or thinking begins: so many bytes of text.
    Marker(usize),
    /// Thinking ends.
    ThoughtEnd(usize),
}

impl Reader {
    /// Hands out text until a value starts.
    pub(super) fn text<S: JsonSink + ?Sized>(&mut self, c: &mut Cursor<'_>, sink: &mut S) -> Flow {
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
                Ok(Found::ThoughtEnd(length)) => {
                    c.at = at + length;
                    sink_text(c, start, c.at, sink);
                    sink.event(JsonEvent::ThoughtEnd);
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

    fn look(&mut self, bytes: &[u8], at: usize, last: bool) -> Result<Found, More> {
        self.work += WINDOW as u64;
        let p = Peek::new(bytes, at, last);
        let byte = bytes[at];
        if byte == b'<' {
            return self.tag(&p, at);
        }
        if self.outside.thinking {
            return Ok(Found::Nothing);
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

    /// `<think>` and `<thinking>` as the first thing of the text, and their ends anywhere outside of values.
    fn tag(&mut self, p: &Peek<'_>, at: usize) -> Result<Found, More> {
        let mut name = [0; 8];
        let close = p.byte(at + 1)? == Some(b'/');
        let from = at + 1 + usize::from(close);
        let mut length = 0;
        while let Some(byte) = p.byte(from + length)? {
            if !byte.is_ascii_alphabetic() || length == name.len() {
                break;
            }
            name[length] = byte.to_ascii_lowercase();
            length += 1;
        }
        if !matches!(&name[..length], b"think" | b"thinking") || p.byte(from + length)? != Some(b'>') {
            return Ok(Found::Nothing);
        }
        let outside = &mut self.outside;
        let length = from + length + 1 - at;
        if close {
            outside.thinking = false;
            outside.fence = None;
            outside.fresh = true;
            outside.leading = true;
            Ok(Found::ThoughtEnd(length))
        } else if outside.leading {
            outside.thinking = true;
            Ok(Found::Marker(length))
        } else {
            Ok(Found::Nothing)
        }
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
