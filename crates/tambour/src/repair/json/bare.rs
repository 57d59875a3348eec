//! What stands without quotes: numbers, literals, calls, keys, strings that lost theirs.

use serde_json::Number;

use crate::lex::json::{self, BARE, Quote};
use crate::repair::rules;

use super::event::{JsonEvent, JsonSink};
use super::number::{self, Literal, Read};
use super::peek::{Key, More, Peek, WINDOW};
use super::reader::{Cursor, Expect, Flow, Frame, Lexeme, Mark, Reader};
use super::structure::Slot;

/// What a place is at which a string without quotes may end.
enum BareEnd {
    Inside,
    /// It ends here.
    Ends,
    /// It ends with a quote, so many bytes, that has lost its partner.
    Quote(usize),
}

impl Reader {
    /// Reads what begins with something that is no punctuation and no quote.
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
            // What most words are, without a further look.
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

    /// Whether a number or literal may end before `next`.
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

    /// Whether a value follows the round bracket of a call.
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
            // A number that JSON cannot say is lost with it.
            let word = &c.text[at..end];
            let number = word.eq_ignore_ascii_case("nan") || word.ends_with("Infinity");
            let rule = if number { &rules::NUMBER } else { &rules::LITERAL };
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

    fn skip_ellipsis<S: JsonSink + ?Sized>(&mut self, c: &mut Cursor<'_>, length: usize, sink: &mut S) {
        let span = (c.at, c.at + length);
        self.mend(c, span, &rules::ELLIPSIS, ("items left out", "left the dots out"), sink);
        c.at += length;
    }

    /// Reads a key without quotes, or skips words that are none.
    fn bare_key<S: JsonSink + ?Sized>(&mut self, c: &mut Cursor<'_>, sink: &mut S) -> Result<(), More> {
        let (bytes, at) = (c.bytes(), c.at);
        if let Some(length) = ellipsis(&bytes[at..]) {
            // A second look, for an ellipsis may still grow.
            let p = Peek::new(bytes, at + length, c.last);
            if p.byte(at + length)? != Some(b'.') {
                self.skip_ellipsis(c, length, sink);
                return Ok(());
            }
        } else if bytes[at] == b'.' && bytes.len() < at + 3 && !c.last {
            return Err(More);
        }
        let word = bytes[at..].iter().take(WINDOW / 2).take_while(|&&byte| json::is_word(byte)).count();
        if word > 0 && bytes.get(at + word) == Some(&b':') {
            self.key_without_quotes(c, (at, at + word), sink);
            c.at = at + word;
            return Ok(());
        }
        self.work += WINDOW as u64;
        let p = Peek::new(bytes, at, c.last);
        // The words up to what ends a key.
        let mut end = at;
        let (stop, colon) = loop {
            let Some(byte) = p.byte(end)? else { break (end, false) };
            match json::mark(bytes, end) {
                Some((b'(' | b')', length)) => end += length,
                Some((mark, _)) => break (end, mark == b':'),
                None if byte == b'\n' || byte < 0x20 && byte != b'\t' => break (end, false),
                None if json::quote(bytes, end)
                    .is_some_and(|(quote, _)| quote != Quote::Single || !tight(bytes, at, end)) =>
                {
                    break (end, false);
                }
                None if byte == b'/' && p.comment(end)? => break (end, false),
                None => end += json::width(byte),
            }
        };
        let stop = stop.min(bytes.len());
        let stop = (at..=stop).rev().find(|&stop| c.text.is_char_boundary(stop)).unwrap_or(at);
        let trimmed = at + c.text[at..stop].trim_end().len();
        let quote = p.quote(stop)?;
        if let Some((_, length)) = quote.filter(|_| trimmed == stop && stop > at) {
            // `a":1`: the first quote of the key is missing.
            let (next, _) = p.space(stop + length)?;
            if p.mark(next)? == Some(b':') {
                self.key_without_quotes(c, (at, stop), sink);
                c.at = stop + length;
                return Ok(());
            }
        }
        let valued = match (quote, p.mark(stop)?) {
            _ if colon => true,
            (Some(_), _) => p.key(stop, 1)? != Key::Yes && self.expect != Expect::Next,
            (None, Some(b'{' | b'[')) => self.expect != Expect::Next,
            (None, _) => false,
        };
        let lone = self.expect != Expect::Next
            && stop - at < WINDOW
            && p.words(at, 2)?.1 == 1
            && (matches!(p.mark(stop)?, Some(b',' | b'}')) || p.byte(stop)?.is_none());
        if (valued || lone) && trimmed > at {
            self.key_without_quotes(c, (at, trimmed), sink);
            c.at = trimmed;
            return Ok(());
        }
        // `{"a" 1 2}` and the like: at least one character goes, so that this comes to an end.
        let stop = stop.max(at + json::width(bytes[at])).min(bytes.len());
        let end = self.base.offset + stop;
        self.settle(c.text);
        let place = self.place_at(c.text, at);
        self.stray.get_or_insert((place, end)).1 = end;
        c.at = stop;
        Ok(())
    }

    fn key_without_quotes<S: JsonSink + ?Sized>(
        &mut self,
        c: &Cursor<'_>,
        (at, end): (usize, usize),
        sink: &mut S,
    ) {
        let in_key = self.slot(c, at, sink) == Slot::Key;
        debug_assert!(in_key, "keys are read where keys belong");
        let what = ("a key without quotes", "added quotes");
        self.mend(c, (at, end), &rules::UNQUOTED_KEY, what, sink);
        self.key_at = Mark::At(at);
        let place = self.key_place(c.text, end);
        self.newline = false;
        self.expect = Expect::Colon;
        sink.event(JsonEvent::Key { text: &c.text[at..end], place, depth: self.stack.len() });
    }

    /// Reads on in a string without quotes.
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
        // Handed out at once, so that it is not counted again.
        c.at = at + json::width(byte);
        sink.event(JsonEvent::StringDelta(&c.text[from..c.at]));
        Flow::Go
    }

    /// Hands out the text up to the white space before `at`, and waits.
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
        // At most a window of the white space before the end can still be left out.
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

/// Whether no white space stands before `at`, as in `it's`.
fn tight(bytes: &[u8], start: usize, at: usize) -> bool {
    at > start && !json::is_space(bytes[at - 1])
}

/// Length of the ellipsis at the start of `bytes`.
fn ellipsis(bytes: &[u8]) -> Option<usize> {
    if bytes.starts_with("…".as_bytes()) {
        return Some(3);
    }
    let dots = bytes.iter().take(WINDOW).take_while(|&&byte| byte == b'.').count();
    (dots >= 3).then_some(dots)
}
