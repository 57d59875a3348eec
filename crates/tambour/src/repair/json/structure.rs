//! Punctuation between tokens: brackets, commas, colons, comments, and the role of an item at its place.

use crate::lex::json::{self, Quote};
use crate::repair::rules;

use super::event::{JsonEvent, JsonSink};
use super::mend::Repair;
use super::peek::{More, Peek};
use super::reader::Reader;
use super::state::{Cursor, Expect, Flow, Frame, Lexeme, Spot};

/// Role of an item at the current place.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Slot {
    Key,
    Value,
}

impl Reader {
    /// Reads between tokens until one begins, or the value or the text ends.
    pub(super) fn structure<S: JsonSink + ?Sized>(&mut self, c: &mut Cursor<'_>, sink: &mut S) -> Flow {
        let bytes = c.bytes();
        let began = self.stack.len();
        loop {
            let (at, depth) = (c.at, self.stack.len());
            let Some(&byte) = bytes.get(at) else {
                if c.last {
                    self.close_at_end(c, sink);
                }
                return Flow::Wait;
            };
            let done = match byte {
                b' ' | b'\t' | b'\r' => {
                    c.at += 1;
                    Ok(())
                }
                b'\n' => {
                    self.newline = true;
                    c.at += 1;
                    Ok(())
                }
                b'"' => self.double_quote(c, sink),
                // A comma and a colon in their regular place; the others are handled below.
                b',' if self.expect == Expect::Next && depth > 0 => {
                    self.expect = Expect::Item;
                    (self.comma, self.comma_length) = (Spot::At(at), 1);
                    self.newline = false;
                    self.stray_over(sink);
                    c.at += 1;
                    Ok(())
                }
                b':' if self.expect == Expect::Colon => {
                    self.expect = Expect::Value;
                    self.newline = false;
                    c.at += 1;
                    Ok(())
                }
                b',' | b':' | b'{' | b'}' | b'[' | b']' | b'(' | b')' => self.punctuation(c, byte, 1, sink),
                _ => self.other(c, byte, sink),
            };
            if done.is_err() {
                return Flow::Wait;
            }
            // A token begins, or the text around values continues.
            if self.lexeme != Lexeme::None || self.stack.is_empty() && (began > 0 || self.chatty()) {
                return Flow::Go;
            }
        }
    }

    fn double_quote<S: JsonSink + ?Sized>(&mut self, c: &mut Cursor<'_>, sink: &mut S) -> Result<(), More> {
        let at = c.at;
        if c.bytes().get(at + 1).is_some_and(|&next| next != b'"') {
            self.open_string(c, Quote::Double, 1, sink);
            return Ok(());
        }
        let p = Peek::new(c.bytes(), at, c.last);
        let quote = if p.starts(at, b"\"\"\"")? { Quote::Triple } else { Quote::Double };
        self.open_string(c, quote, if quote == Quote::Triple { 3 } else { 1 }, sink);
        Ok(())
    }

    fn other<S: JsonSink + ?Sized>(
        &mut self,
        c: &mut Cursor<'_>,
        byte: u8,
        sink: &mut S,
    ) -> Result<(), More> {
        let (bytes, at) = (c.bytes(), c.at);
        let p = Peek::new(bytes, at, c.last);
        if let Some((mark, length)) = json::mark(bytes, at) {
            if matches!(mark, b'{' | b'[') && self.stack.is_empty() {
                // The report belongs to the value that begins here.
                return self.punctuation(c, mark, length, sink);
            }
            self.odd_mark(c, at, length, sink);
            return self.punctuation(c, mark, length, sink);
        }
        if let Some(length) = json::odd_space(bytes, at) {
            let what = ("a space JSON does not know", "read as white space");
            self.mend(c, (at, at + length), &rules::SPACE, what, sink);
            c.at += length;
            return Ok(());
        }
        match byte {
            b'/' if p.comment(at)? => {
                let line = p.byte(at + 1)? == Some(b'/');
                self.begin_comment(c, line, 2, sink);
                return Ok(());
            }
            b'#' => {
                self.begin_comment(c, true, 1, sink);
                return Ok(());
            }
            b'`' if p.starts(at, b"```")? => return self.fence_inside(c, &p, byte, sink),
            b'~' if self.in_fence(byte) && p.starts(at, b"~~~")? => {
                return self.fence_inside(c, &p, byte, sink);
            }
            b'\\' => match p.byte(at + 1)? {
                Some(b'"') => {}
                Some(b'n' | b'r' | b't') => {
                    let what = ("an escaped line break between tokens", "read as white space");
                    self.mend(c, (at, at + 2), &rules::ESCAPED_TEXT, what, sink);
                    self.newline = true;
                    c.at += 2;
                    return Ok(());
                }
                _ => return self.skip(c, 1, "a backslash between tokens", sink),
            },
            b'=' if self.expect == Expect::Colon && self.equals(&p, at)? => {
                let width = 1 + usize::from(p.byte(at + 1)? == Some(b'>'));
                let what = ("an equals sign after a key", "read as a colon");
                self.mend(c, (at, at + width), &rules::MISSING_COLON, what, sink);
                self.expect = Expect::Value;
                self.newline = false;
                c.at += width;
                return Ok(());
            }
            b';' => return self.skip(c, 1, "a semicolon between tokens", sink),
            0..=0x1F | 0x7F => return self.skip(c, 1, "a control character between tokens", sink),
            b'+' if !p.byte(at + 1)?.is_some_and(|next| next.is_ascii_digit() || b".I".contains(&next)) => {
                return self.skip(c, 1, "a plus sign between tokens", sink);
            }
            _ => {}
        }
        if let Some((quote, length)) = json::quote(bytes, at) {
            self.open_string(c, quote, length, sink);
            return Ok(());
        }
        self.word(c, sink)
    }

    fn skip<S: JsonSink + ?Sized>(
        &mut self,
        c: &mut Cursor<'_>,
        length: usize,
        message: &str,
        sink: &mut S,
    ) -> Result<(), More> {
        let span = (c.at, c.at + length);
        self.mend(c, span, &rules::STRAY_TEXT, (message, "left it out"), sink);
        c.at += length;
        Ok(())
    }

    /// Reports a full-width mark once, although it may be read again when more text arrives.
    pub(super) fn odd_mark<S: JsonSink + ?Sized>(
        &mut self,
        c: &Cursor<'_>,
        at: usize,
        length: usize,
        sink: &mut S,
    ) {
        let end = self.base.offset + at + length;
        if std::mem::replace(&mut self.odd_end, end) == end {
            return;
        }
        let what = ("a full-width punctuation mark", "read as its ASCII form");
        self.mend(c, (at, at + length), &rules::PUNCTUATION, what, sink);
    }

    fn begin_comment<S: JsonSink + ?Sized>(
        &mut self,
        c: &mut Cursor<'_>,
        line: bool,
        length: usize,
        sink: &mut S,
    ) {
        self.stray_over(sink);
        // Reported when its end is known.
        self.end.repaired = true;
        self.settle(c.text);
        self.comment_at = Some(self.place_at(c.text, c.at));
        self.lexeme = if line { Lexeme::LineComment } else { Lexeme::BlockComment };
        c.at += length;
    }

    /// Skips a comment.
    pub(super) fn comment<S: JsonSink + ?Sized>(&mut self, c: &mut Cursor<'_>, sink: &mut S) -> Flow {
        let rest = &c.bytes()[c.at..];
        let end = if self.lexeme == Lexeme::LineComment {
            memchr::memchr(b'\n', rest)
        } else {
            memchr::memmem::find(rest, b"*/").map(|at| at + 2)
        };
        match end {
            Some(end) => c.at += end,
            None if c.last => c.at += rest.len(),
            None => {
                // Possibly half of `*/`.
                let half = self.lexeme == Lexeme::BlockComment && rest.last() == Some(&b'*');
                c.at += rest.len() - usize::from(half);
                return Flow::Wait;
            }
        }
        if let Some(place) = self.comment_at.take() {
            let length = self.base.offset + c.at - place.offset;
            self.mend_at(place, length, &rules::COMMENT, ("a comment", "left it out"), sink);
        }
        self.lexeme = Lexeme::None;
        Flow::Go
    }

    /// Returns whether the value is in a fence of this character.
    fn in_fence(&self, byte: u8) -> bool {
        self.chatty() && self.outside.fence.is_some_and(|(open, _)| open.mark == byte)
    }

    /// Handles a fence between tokens: it ends a value that is in a fence; any other is dropped with its
    /// language.
    fn fence_inside<S: JsonSink + ?Sized>(
        &mut self,
        c: &mut Cursor<'_>,
        p: &Peek<'_>,
        byte: u8,
        sink: &mut S,
    ) -> Result<(), More> {
        if self.in_fence(byte) {
            self.close_all(c, "the fence ends before the value does", sink);
            return Ok(());
        }
        let mut end = c.at + 3;
        while p.byte(end)? == Some(b'`') {
            end += 1;
        }
        let word = p.word(end)?;
        if self.outside.fence.is_none() && self.chatty() {
            let (next, newline) = p.space(end + word.len())?;
            if newline && p.mark(next)? == Some(b'{') && self.sought(c, next + 1)? {
                self.close_all(c, "a fence begins before the value ends", sink);
                return Ok(());
            }
        }
        self.skip(c, end + word.len() - c.at, "a fence between tokens", sink)
    }

    fn punctuation<S: JsonSink + ?Sized>(
        &mut self,
        c: &mut Cursor<'_>,
        mark: u8,
        length: usize,
        sink: &mut S,
    ) -> Result<(), More> {
        let at = c.at;
        match mark {
            b',' => self.comma(c, at, length, sink),
            b':' => self.colon(c, at, length, sink),
            b'{' | b'[' | b'(' => return self.opening(c, mark, length, sink),
            _ => return self.closing(c, mark, length, sink),
        }
        self.newline = false;
        c.at += length;
        Ok(())
    }

    fn comma<S: JsonSink + ?Sized>(&mut self, c: &Cursor<'_>, at: usize, length: usize, sink: &mut S) {
        self.stray_over(sink);
        if self.expect == Expect::Next && !self.stack.is_empty() {
            self.expect = Expect::Item;
            (self.comma, self.comma_length) = (Spot::At(at), length);
            return;
        }
        let span = (at, at + length);
        match self.expect {
            Expect::Colon | Expect::Value => {
                self.null_value(c, at, sink);
                self.expect = Expect::Item;
                (self.comma, self.comma_length) = (Spot::At(at), length);
            }
            _ if self.stack.is_empty() => {
                let what = ("a comma outside of the value", "left it out");
                self.mend(c, span, &rules::EXTRA_COMMA, what, sink);
            }
            Expect::First => {
                let what = ("a comma before the first item", "left it out");
                self.mend(c, span, &rules::EXTRA_COMMA, what, sink);
            }
            _ => self.mend(c, span, &rules::EXTRA_COMMA, ("a second comma", "left it out"), sink),
        }
    }

    fn colon<S: JsonSink + ?Sized>(&mut self, c: &Cursor<'_>, at: usize, length: usize, sink: &mut S) {
        let span = (at, at + length);
        if self.expect == Expect::Colon {
            self.expect = Expect::Value;
        } else if self.expect == Expect::Next
            && matches!(self.stack.last(), Some(Frame::Array | Frame::Tuple))
        {
            let what = ("a colon between items of an array", "read as a comma");
            self.mend(c, span, &rules::EXTRA_COLON, what, sink);
            self.expect = Expect::Item;
            (self.comma, self.comma_length) = (Spot::At(at), length);
        } else {
            let what = ("a colon that follows no key", "left it out");
            self.mend(c, span, &rules::EXTRA_COLON, what, sink);
        }
    }

    /// Inserts `null` for a missing value.
    pub(super) fn null_value<S: JsonSink + ?Sized>(&mut self, c: &Cursor<'_>, at: usize, sink: &mut S) {
        let what = ("a key without value", "gave it `null`");
        self.mend(c, (at, at), &rules::MISSING_VALUE, what, sink);
        sink.event(JsonEvent::Null);
        self.expect = Expect::Next;
    }

    /// Begins an item at `at` and returns its role; repairs a missing comma or colon before it.
    pub(super) fn slot<S: JsonSink + ?Sized>(&mut self, c: &Cursor<'_>, at: usize, sink: &mut S) -> Slot {
        self.stray_over(sink);
        let object = match self.stack.last() {
            None => {
                self.begin(c, at, sink);
                return Slot::Value;
            }
            Some(frame) => *frame == Frame::Object,
        };
        match self.expect {
            Expect::First | Expect::Item => {}
            Expect::Value => return Slot::Value,
            Expect::Colon => {
                let what = ("no colon after the key", "added one");
                self.mend(c, (at, at), &rules::MISSING_COLON, what, sink);
                self.expect = Expect::Value;
                return Slot::Value;
            }
            Expect::Next => {
                let what = ("no comma between two items", "added one");
                // Between brackets there is one reading; behind a word or a string there may be others.
                let next = c.bytes().get(at).copied().unwrap_or_default();
                let certain = self.bracketed && matches!((object, next), (true, b'"') | (false, b'{' | b'['));
                let rule = match certain {
                    true => Repair::certain(&rules::MISSING_COMMA),
                    false => Repair::from(&rules::MISSING_COMMA),
                };
                self.mend(c, (at, at), rule, what, sink);
                self.expect = Expect::Item;
                (self.comma, self.comma_length) = (Spot::At(at), 1);
            }
        }
        if object { Slot::Key } else { Slot::Value }
    }
}
