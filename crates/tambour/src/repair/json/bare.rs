//! Unquoted strings: the rules for their end.

use crate::lex::json::{self, BARE, Quote};
use crate::lex::utf8;

use super::event::{JsonEvent, JsonSink};
use super::peek::{Key, More, Peek, WINDOW};
use super::reader::Reader;
use super::state::{Cursor, Flow, Frame};

/// Classification of a place at which an unquoted string may end.
enum BareEnd {
    Inside,
    /// The string ends here.
    Ends,
    /// The string ends at an unpaired quote of this many bytes.
    Quote(usize),
}

impl Reader {
    /// Continues reading an unquoted string.
    pub(super) fn bare_text<S: JsonSink + ?Sized>(&mut self, c: &mut Cursor<'_>, sink: &mut S) -> Flow {
        let bytes = c.bytes();
        let from = c.at;
        let at = BARE.find(bytes, from);
        let Some(&byte) = bytes.get(at) else {
            if c.last {
                return self.end_bare(c, from, at, 0, sink);
            }
            return self.wait_bare(c, from, at, sink);
        };
        self.work += (at - from + WINDOW) as u64;
        match self.bare_ends(c, from, at, byte) {
            Err(More) => return self.wait_bare(c, from, at, sink),
            Ok(BareEnd::Ends) => return self.end_bare(c, from, at, 0, sink),
            Ok(BareEnd::Quote(length)) => return self.end_bare(c, from, at, length, sink),
            Ok(BareEnd::Inside) => {}
        }
        let (braces, squares) = &mut self.string.open;
        match byte {
            b'{' => *braces += 1,
            b'}' => *braces = braces.saturating_sub(1),
            b'[' => *squares += 1,
            b']' => *squares = squares.saturating_sub(1),
            _ => {}
        }
        // Emitted at once, so that it is not counted again.
        c.at = at + utf8::width(byte);
        sink.event(JsonEvent::StringDelta(&c.text[from..c.at]));
        Flow::Go
    }

    /// Emits the text up to the white space before `at` and waits for more.
    fn wait_bare<S: JsonSink + ?Sized>(
        &mut self,
        c: &mut Cursor<'_>,
        from: usize,
        at: usize,
        sink: &mut S,
    ) -> Flow {
        let blank = |byte: &u8| !matches!(byte, b' ' | b'\t' | b'\r');
        let text = &c.bytes()[from..at];
        let mut keep = text.iter().rposition(blank).map_or(from, |last| from + last + 1);
        if at - keep > WINDOW {
            keep = at - WINDOW;
        }
        if keep > from {
            sink.event(JsonEvent::StringDelta(&c.text[from..keep]));
        }
        c.at = keep;
        Flow::Wait
    }

    fn end_bare<S: JsonSink + ?Sized>(
        &mut self,
        c: &mut Cursor<'_>,
        from: usize,
        at: usize,
        quote: usize,
        sink: &mut S,
    ) -> Flow {
        let text = &c.text[from..at];
        // White space before this window has been emitted already.
        let blank = |byte: &u8| !matches!(byte, b' ' | b'\t' | b'\r');
        let mut end = text.as_bytes().iter().rposition(blank).map_or(from, |last| from + last + 1);
        if at - end > WINDOW {
            end = at - WINDOW;
        }
        if end > from {
            sink.event(JsonEvent::StringDelta(&c.text[from..end]));
        }
        sink.event(JsonEvent::StringEnd);
        c.at = at + quote;
        if c.last && at == c.text.len() && !self.stack.is_empty() {
            self.end.closed_by_us = true;
        }
        self.string_done(c, c.at, sink);
        Flow::Go
    }

    fn bare_ends(&self, c: &Cursor<'_>, from: usize, at: usize, byte: u8) -> Result<BareEnd, More> {
        let bytes = c.bytes();
        let p = Peek::new(bytes, at, c.last);
        let ends = |yes: bool| Ok(if yes { BareEnd::Ends } else { BareEnd::Inside });
        let spaced = at > from && matches!(bytes[at - 1], b' ' | b'\t');
        let object = self.stack.last() == Some(&Frame::Object);
        match byte {
            b'/' => return ends(p.byte(at + 1)? == Some(b'*') || spaced && p.byte(at + 1)? == Some(b'/')),
            b'#' => return ends(spaced),
            b'`' => return ends(p.starts(at, b"```")?),
            b'\\' => match p.byte(at + 1)? {
                Some(b'"') => {}
                _ => return Ok(BareEnd::Inside),
            },
            _ => {}
        }
        if self.stack.is_empty() {
            return ends(byte == b'\n');
        }
        if let Some((quote, length)) = p.quote(at)? {
            let (next, newline) = p.space(at + length)?;
            if !spaced {
                let over =
                    p.byte(next)?.is_none() || newline || matches!(p.mark(next)?, Some(b',' | b'}' | b']'));
                return Ok(if over { BareEnd::Quote(length) } else { BareEnd::Inside });
            }
            let key = object && p.key(at, 1)? == Key::Yes;
            return ends(key || quote == Quote::Double && !object && p.byte(next)?.is_some() && newline);
        }
        if byte == b'\n' {
            let (next, _) = p.space(at)?;
            let over = p.byte(next)?.is_none()
                || matches!(p.mark(next)?, Some(b'}' | b']'))
                || p.comment(next)?
                || p.starts(next, b"```")?;
            return ends(!object || over || p.key(next, 3)? == Key::Yes);
        }
        match json::mark(bytes, at) {
            Some((b'}', _)) => {
                if self.string.open.0 > 0 {
                    return Ok(BareEnd::Inside);
                }
                ends(self.stack.contains(&Frame::Object))
            }
            Some((b']', _)) => {
                if self.string.open.1 > 0 {
                    return Ok(BareEnd::Inside);
                }
                ends(self.stack.contains(&Frame::Array))
            }
            Some((b')', _)) => ends(self.calls > 0 || self.stack.last() == Some(&Frame::Tuple)),
            Some((b',', _)) if !object => ends(true),
            Some((b',', length)) => {
                let (next, newline) = p.space(at + length)?;
                let Some(byte) = p.byte(next)? else { return Ok(BareEnd::Ends) };
                let key = p.key(next, if newline { 3 } else { 2 })?;
                ends(
                    key == Key::Yes
                        || matches!(p.mark(next)?, Some(b'}' | b']' | b',' | b'{'))
                        || p.comment(next)?
                        || p.starts(next, b"...")?
                        || byte == b'"' && key == Key::End,
                )
            }
            _ => Ok(BareEnd::Inside),
        }
    }
}
