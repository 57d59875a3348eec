//! Unquoted words in place of a value: numbers, literals, calls, and beginnings of strings without quotes.

use serde_json::Number;

use crate::finding::Doubt;
use crate::lex::json::{self, Quote};
use crate::repair::rules;

use super::event::{JsonEvent, JsonSink};
use super::mend::Repair;
use super::number::{self, Literal, Read};
use super::peek::{Key, More, Peek, WINDOW};
use super::reader::Reader;
use super::state::{Cursor, Expect, Frame, Lexeme};

impl Reader {
    /// Reads a token that begins with neither punctuation nor a quote.
    pub(super) fn word<S: JsonSink + ?Sized>(
        &mut self,
        c: &mut Cursor<'_>,
        sink: &mut S,
    ) -> Result<(), More> {
        let object = self.stack.last() == Some(&Frame::Object);
        if object && matches!(self.expect, Expect::First | Expect::Item | Expect::Next) {
            return self.bare_key(c, sink);
        }
        let (bytes, at) = (c.bytes(), c.at);
        let mut end = at + self.seen;
        while end < bytes.len() && end - at <= self.number && json::is_word(bytes[end]) {
            end += 1;
        }
        self.work += (end - at - self.seen) as u64;
        self.seen = end - at;
        if matches!(bytes.get(end), Some(b',' | b'}' | b']' | b'\n')) && end - at <= 8 {
            // Fast path for small integers and standard literals.
            let word = &c.text[at..end];
            if word.bytes().all(|byte| byte.is_ascii_digit()) && (word.len() == 1 || bytes[at] != b'0') {
                self.seen = 0;
                let value = word.bytes().fold(0, |value, byte| value * 10 + u64::from(byte - b'0'));
                let read = Read { number: Number::from(value), text: None, odd: false, rounded: false };
                self.number(c, (at, end), &read, sink);
                return Ok(());
            }
            if let Some(literal) = number::literal(word).filter(|literal| literal.exact) {
                self.seen = 0;
                self.literal(c, (at, end), literal, sink);
                return Ok(());
            }
        }
        let p = Peek::new(bytes, end, c.last);
        let (next, newline) = p.space(end)?;
        let ends = newline || self.ends_word(&p, end, next)?;
        let word = &c.text[at..end];
        if let Some(length) = ellipsis(&bytes[at..]).filter(|&length| length >= end - at) {
            let (next, _) = Peek::new(bytes, at + length, c.last).space(at + length)?;
            if !json::is_word(bytes.get(next).copied().unwrap_or(b' ')) || next > at + length {
                self.seen = 0;
                self.skip_ellipsis(c, length, sink);
                return Ok(());
            }
        }
        if ends && end - at <= self.number {
            if let Some(literal) = number::literal(word) {
                self.seen = 0;
                self.literal(c, (at, end), literal, sink);
                return Ok(());
            }
            if let Some(read) = number::read(word, self.exact) {
                let stray_quote = if self.ends_after_quote(&p, end)? { p.quote(end)? } else { None };
                self.seen = 0;
                self.number(c, (at, end), &read, sink);
                if let Some((_, length)) = stray_quote {
                    let what = ("a quote after a number", "left it out");
                    self.mend(c, (end, end + length), &rules::MISSING_QUOTE, what, sink);
                    c.at = end + length;
                }
                return Ok(());
            }
            if number::is_json(word.as_bytes()) {
                self.seen = 0;
                self.vast_number(c, (at, end), sink);
                return Ok(());
            }
            let cut = c.last && next == bytes.len() && !self.stack.is_empty();
            if let Some(literal) = number::cut_literal(word).filter(|_| cut) {
                self.seen = 0;
                self.literal(c, (at, end), literal, sink);
                return Ok(());
            }
        }
        if p.byte(next)? == Some(b'(') && number::is_name(word) && self.opens_call(&p, next + 1)? {
            let what = ("a call around a value", "read only the value");
            self.mend(c, (at, next + 1), &rules::WRAPPER, what, sink);
            self.calls += 1;
            self.seen = 0;
            c.at = next + 1;
            return Ok(());
        }
        self.seen = 0;
        self.slot(c, at, sink);
        let what = ("a text without quotes", "added quotes");
        self.mend(c, (at, end), &rules::UNQUOTED_VALUE, what, sink);
        self.begin_string(at, Quote::Double, false, sink);
        self.lexeme = Lexeme::Bare;
        Ok(())
    }

    /// Returns whether a number or literal may end before `next`.
    fn ends_word(&self, p: &Peek<'_>, end: usize, next: usize) -> Result<bool, More> {
        let Some(byte) = p.byte(next)? else { return Ok(true) };
        if let Some(mark) = p.mark(next)? {
            return Ok(!matches!(mark, b':' | b'('));
        }
        if byte == b'`' {
            return p.starts(next, b"```");
        }
        if p.quote(next)?.is_some() || p.comment(next)? || matches!(byte, b'#' | b';' | 0..=0x1F) {
            return Ok(true);
        }
        // A comma is missing: `[1 2]`, `{a: 1 b: 2}`.
        match self.stack.last() {
            Some(Frame::Object) => Ok(next > end && p.key(next, 1)? == Key::Yes),
            Some(_) => Ok(next > end && self.is_value_word(p, next)?),
            None => Ok(false),
        }
    }

    fn ends_after_quote(&self, p: &Peek<'_>, at: usize) -> Result<bool, More> {
        let Some((_, length)) = p.quote(at)? else { return Ok(false) };
        let (next, _) = p.space(at + length)?;
        Ok(p.byte(next)?.is_none() || matches!(p.mark(next)?, Some(b',' | b'}' | b']')))
    }

    /// Returns whether a value follows the round bracket of a call.
    fn opens_call(&self, p: &Peek<'_>, at: usize) -> Result<bool, More> {
        let (at, _) = p.space(at)?;
        let Some(byte) = p.byte(at)? else { return Ok(true) };
        Ok(p.quote(at)?.is_some()
            || matches!(p.mark(at)?, Some(b'{' | b'['))
            || byte.is_ascii_digit()
            || matches!(p.word(at)?, b"true" | b"false" | b"null"))
    }

    fn literal<S: JsonSink + ?Sized>(
        &mut self,
        c: &mut Cursor<'_>,
        (at, end): (usize, usize),
        literal: Literal,
        sink: &mut S,
    ) {
        self.slot(c, at, sink);
        let event = match literal.value {
            Some(value) => JsonEvent::Bool(value),
            None => JsonEvent::Null,
        };
        if !literal.exact {
            let repair = match literal.value {
                Some(true) => "read as `true`",
                Some(false) => "read as `false`",
                None => "read as `null`",
            };
            // A number that JSON cannot represent is lost.
            let word = &c.text[at..end];
            let number = word.eq_ignore_ascii_case("nan") || word.ends_with("Infinity");
            // `undefined` and truncated words may mean that there is no value.
            let certain =
                matches!(word.to_ascii_lowercase().as_str(), "true" | "false" | "none" | "null" | "nil");
            let rule = match (number, certain) {
                (true, _) => Repair::from(&rules::NUMBER),
                (false, true) => Repair::from(&rules::LITERAL),
                (false, false) => Repair::doubtful(&rules::LITERAL, Doubt::Guess),
            };
            self.mend(c, (at, end), rule, ("a literal JSON does not know", repair), sink);
        }
        sink.event(event);
        c.at = end;
        self.after_value(c, end, sink);
    }

    fn number<S: JsonSink + ?Sized>(
        &mut self,
        c: &mut Cursor<'_>,
        (at, end): (usize, usize),
        read: &Read,
        sink: &mut S,
    ) {
        self.slot(c, at, sink);
        if read.odd {
            let what = ("a number in a form JSON does not know", "read as the number meant");
            self.mend(c, (at, end), &rules::NUMBER, what, sink);
        }
        if self.exact {
            sink.event(JsonEvent::Digits(read.text.as_deref().unwrap_or(&c.text[at..end])));
        } else {
            if read.rounded {
                self.settle(c.text);
                sink.rounded(self.place_at(c.text, at), self.base.offset + end);
            }
            sink.event(JsonEvent::Number(&read.number));
        }
        c.at = end;
        self.after_value(c, end, sink);
    }

    /// Emits a number beyond the range of a double, such as `1e400`, as a string.
    fn vast_number<S: JsonSink + ?Sized>(
        &mut self,
        c: &mut Cursor<'_>,
        (at, end): (usize, usize),
        sink: &mut S,
    ) {
        self.slot(c, at, sink);
        let rule = Repair::doubtful(&rules::NUMBER, Doubt::Range);
        self.mend(c, (at, end), rule, ("a number that no double holds", "kept as a text"), sink);
        sink.event(JsonEvent::StringStart);
        sink.event(JsonEvent::StringDelta(&c.text[at..end]));
        sink.event(JsonEvent::StringEnd);
        c.at = end;
        self.after_value(c, end, sink);
    }

    pub(super) fn skip_ellipsis<S: JsonSink + ?Sized>(
        &mut self,
        c: &mut Cursor<'_>,
        length: usize,
        sink: &mut S,
    ) {
        let span = (c.at, c.at + length);
        self.mend(c, span, &rules::ELLIPSIS, ("items left out", "left the dots out"), sink);
        c.at += length;
    }
}

/// Length of the ellipsis at the start of `bytes`.
pub(super) fn ellipsis(bytes: &[u8]) -> Option<usize> {
    if bytes.starts_with("…".as_bytes()) {
        return Some(3);
    }
    let dots = bytes.iter().take(WINDOW).take_while(|&&byte| byte == b'.').count();
    (dots >= 3).then_some(dots)
}
