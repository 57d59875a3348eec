//! Quoted strings: text, escapes, and repair of a missing closing quote.

use crate::lex::json::{self, Quote};
use crate::lex::utf8;
use crate::repair::rules;

use super::event::{JsonEvent, JsonSink};
use super::peek::WINDOW;
use super::quote::Decision;
use super::reader::Reader;
use super::state::{Cursor, Expect, Flow, Lexeme, Spot, StringState};
use super::structure::Slot;

/// Most bytes before a quote, or before the end of the text, that may turn out to be behind the string:
/// commas, closing brackets and white space.
const TAIL: usize = 64;

impl Reader {
    /// Begins a quoted string.
    pub(super) fn open_string<S: JsonSink + ?Sized>(
        &mut self,
        c: &mut Cursor<'_>,
        quote: Quote,
        length: usize,
        sink: &mut S,
    ) {
        let at = c.at;
        let in_key = self.slot(c, at, sink) == Slot::Key;
        match quote {
            Quote::Double => {}
            Quote::Escaped => {
                let what = ("a string in escaped quotes", "read as a string");
                self.mend(c, (at, at + length), &rules::ESCAPED_TEXT, what, sink);
            }
            _ => {
                let what = ("a quote that is not `\"`", "read as `\"`");
                self.mend(c, (at, at + length), &rules::QUOTE, what, sink);
            }
        }
        self.begin_string(at, quote, in_key, sink);
        self.end.quoted = true;
        self.lexeme = Lexeme::String;
        c.at += length;
    }

    pub(super) fn begin_string<S: JsonSink + ?Sized>(
        &mut self,
        at: usize,
        quote: Quote,
        in_key: bool,
        sink: &mut S,
    ) {
        self.newline = false;
        self.string = StringState::new(quote, in_key);
        if in_key {
            self.key.clear();
            self.key_cut = false;
            self.key_at = Spot::At(at);
        } else {
            sink.event(JsonEvent::StringStart);
        }
    }

    /// Continues reading a string.
    pub(super) fn string<S: JsonSink + ?Sized>(&mut self, c: &mut Cursor<'_>, sink: &mut S) -> Flow {
        let bytes = c.bytes();
        let stops = self.string.quote.stops();
        // Start of the text not emitted yet.
        let mut from = c.at;
        let mut at = c.at;
        let mut control = None;
        loop {
            at = stops.find(bytes, at);
            let Some(&byte) = bytes.get(at) else {
                if c.last {
                    return self.unclosed(c, from, control, sink);
                }
                return self.wait_in_string(c, (from, at), control, sink);
            };
            if byte < 0x20 {
                if self.mode == super::state::Mode::Lines && byte == b'\n' {
                    match self.line_begins(bytes, at, c.last) {
                        Err(_) => return self.wait_in_string(c, (from, at), control, sink),
                        Ok(true) => {
                            self.piece(c, (from, at), control, sink);
                            c.at = at;
                            return self.cut_string(c, sink);
                        }
                        Ok(false) => {}
                    }
                }
                control = control.or(Some(at));
                at += 1;
                continue;
            }
            if byte == b'\\' && self.string.quote == Quote::Escaped && at + 1 == bytes.len() && !c.last {
                // Possibly the first half of an escaped quote.
                return self.wait_in_string(c, (from, at), control, sink);
            }
            let mark = if byte == b'"' && self.string.quote == Quote::Double {
                Some(1)
            } else {
                json::quote(bytes, at)
                    .filter(|&(mark, _)| self.string.quote.ends_with(mark))
                    .map(|(_, length)| length)
            };
            let Some(length) = mark else {
                if byte != b'\\' {
                    at += utf8::width(byte);
                    continue;
                }
                self.piece(c, (from, at), control.take(), sink);
                c.at = at;
                if self.escape(c, sink) == Flow::Wait {
                    return Flow::Wait;
                }
                (from, at) = (c.at, c.at);
                continue;
            };
            if length == 1 && self.plainly_ends(bytes, at) {
                self.close_string(c, (from, at), control, sink);
                c.at = at + 1;
                self.string_done(c, c.at, sink);
                return Flow::Go;
            }
            self.work += (at - from + WINDOW) as u64;
            let tail = self.tail(bytes, from, at);
            let Ok(decision) = self.decide(bytes, at, length, (from, tail), c.last) else {
                return self.wait_in_string(c, (from, at), control, sink);
            };
            match decision {
                Decision::Close(length) => {
                    if length > 1 && self.string.quote == Quote::Double {
                        let what = ("two quotes at the end of a string", "read as one");
                        self.close_string(c, (from, at), control, sink);
                        self.mend(c, (at, at + length), &rules::INNER_QUOTE, what, sink);
                    } else {
                        self.close_string(c, (from, at), control, sink);
                    }
                    c.at = at + length;
                    self.string_done(c, c.at, sink);
                    return Flow::Go;
                }
                Decision::Inner => {
                    // Emitted at once, so that it is not examined again.
                    self.piece(c, (from, at), control.take(), sink);
                    let what = ("a quote inside a string that is not escaped", "escaped it");
                    self.mend(c, (at, at + length), &rules::INNER_QUOTE, what, sink);
                    self.piece(c, (at, at + length), None, sink);
                    self.string.inner = !self.string.inner;
                    at += length;
                    from = at;
                }
                Decision::Drop => {
                    self.piece(c, (from, at), control.take(), sink);
                    let what = ("two quotes at the start of a string", "read as one");
                    self.mend(c, (at, at + length), &rules::INNER_QUOTE, what, sink);
                    self.string.doubled = true;
                    self.string.empty = false;
                    at += length;
                    from = at;
                }
                Decision::EndedBefore => {
                    self.close_string(c, (from, tail), control, sink);
                    let what = ("a string without its closing quote", "added the quote");
                    self.mend(c, (tail, tail), &rules::MISSING_QUOTE, what, sink);
                    c.at = tail;
                    self.string_done(c, c.at, sink);
                    return Flow::Go;
                }
                Decision::KeyEndedBefore(colon) => {
                    self.close_string(c, (from, colon), control, sink);
                    let what = ("a key without its closing quote", "added the quote");
                    self.mend(c, (colon, colon), &rules::MISSING_QUOTE, what, sink);
                    self.string_done(c, at, sink);
                    self.expect = Expect::Value;
                    c.at = at;
                    return Flow::Go;
                }
                Decision::Joined { quote, next } => {
                    self.piece(c, (from, at), control.take(), sink);
                    let what = ("strings joined by `+`", "made one string of them");
                    self.mend(c, (at, next), &rules::CONCATENATION, what, sink);
                    self.string.quote = quote;
                    c.at = next;
                    return Flow::Go;
                }
            }
        }
    }

    /// Emits the text before `at`, except a tail that may be behind the string, and waits for more.
    fn wait_in_string<S: JsonSink + ?Sized>(
        &mut self,
        c: &mut Cursor<'_>,
        (from, at): (usize, usize),
        control: Option<usize>,
        sink: &mut S,
    ) -> Flow {
        let keep = self.tail(c.bytes(), from, at);
        self.piece(c, (from, keep), control, sink);
        c.at = keep;
        Flow::Wait
    }

    /// Emits a piece of the string's text.
    fn piece<S: JsonSink + ?Sized>(
        &mut self,
        c: &Cursor<'_>,
        (mut from, to): (usize, usize),
        control: Option<usize>,
        sink: &mut S,
    ) {
        if from >= to {
            return;
        }
        if let Some(at) = control.filter(|&at| at < to && !self.string.control) {
            self.string.control = true;
            if from < at {
                // The text before it is emitted first, so that the order does not depend on chunk boundaries.
                self.add(&c.text[from..at], sink);
                from = at;
            }
            let what = match c.bytes()[at] {
                b'\n' | b'\r' => ("a raw line break in a string", "escaped it"),
                _ => ("a raw control character in a string", "escaped it"),
            };
            self.mend(c, (at, at + 1), &rules::RAW_CONTROL, what, sink);
        }
        self.add(&c.text[from..to], sink);
    }

    /// Appends decoded text to the string or key.
    pub(super) fn add<S: JsonSink + ?Sized>(&mut self, text: &str, sink: &mut S) {
        self.string.empty = false;
        if self.string.in_key {
            self.add_to_key(text);
            return;
        }
        if !self.string.brackets {
            // `{` and `[` differ in one bit. Without an early exit the loop takes few instructions.
            self.string.brackets = text.bytes().fold(false, |any, byte| any | (byte | 0x20 == b'{'));
        }
        sink.event(JsonEvent::StringDelta(text));
    }

    pub(super) fn add_char<S: JsonSink + ?Sized>(&mut self, character: char, sink: &mut S) {
        self.add(character.encode_utf8(&mut [0; 4]), sink);
    }

    /// Emits the last piece and ends the string or key.
    fn close_string<S: JsonSink + ?Sized>(
        &mut self,
        c: &Cursor<'_>,
        (from, to): (usize, usize),
        control: Option<usize>,
        sink: &mut S,
    ) {
        let depth = self.stack.len();
        if !self.string.in_key {
            self.piece(c, (from, to), control, sink);
            sink.event(JsonEvent::StringEnd);
        } else if self.key.is_empty() && control.is_none() && to - from <= self.hold() {
            let text = &c.text[from..to];
            let place = self.key_place(c.text, to);
            sink.event(JsonEvent::Key { text, place, depth });
        } else {
            self.piece(c, (from, to), control, sink);
            let place = self.key_place(c.text, to);
            if self.key_cut {
                let what = ("the key is longer than the limit", "cut the key");
                let place = place.get();
                let length = self.base.offset + to - place.offset;
                self.mend_at(place, length, &rules::LIMIT_EXCEEDED, what, sink);
            }
            sink.event(JsonEvent::Key { text: &self.key, place, depth });
        }
        // A value under a quoted key belongs to it, whatever was repaired before the key.
        self.suspicion.broken &= !self.string.in_key;
    }

    /// Continues behind the string or key.
    pub(super) fn string_done<S: JsonSink + ?Sized>(&mut self, c: &Cursor<'_>, after: usize, sink: &mut S) {
        self.lexeme = Lexeme::None;
        if self.string.in_key {
            self.expect = Expect::Colon;
            self.newline = false;
        } else {
            self.after_value(c, after, sink);
        }
    }

    /// Start of the commas, closing brackets and white space before `to`.
    fn tail(&self, bytes: &[u8], from: usize, to: usize) -> usize {
        if self.string.in_key {
            // A colon, with blanks behind it, may turn out to be behind the key.
            let blanks = bytes[from..to].iter().rev().take(TAIL).take_while(|byte| **byte == b' ').count();
            let colon = to - blanks;
            return if colon > from && bytes[colon - 1] == b':' { colon - 1 } else { to };
        }
        let least = to.saturating_sub(TAIL).max(from);
        let mut at = to;
        while at > least && matches!(bytes[at - 1], b' ' | b'\n' | b'\r' | b'\t' | b',' | b'}' | b']' | b'`')
        {
            at -= 1;
        }
        at
    }

    /// Ends a string that the end of the text truncates.
    fn unclosed<S: JsonSink + ?Sized>(
        &mut self,
        c: &mut Cursor<'_>,
        from: usize,
        control: Option<usize>,
        sink: &mut S,
    ) -> Flow {
        let bytes = c.bytes();
        let mut end = bytes.len();
        let tail = self.tail(bytes, from, end);
        // Closing brackets count as such only if they end the whole value and the string contains no opening
        // ones.
        if !self.string.brackets && self.closes_everything(&bytes[tail..]) {
            end = tail;
            let trimmed = bytes[from..end].trim_ascii_end().len();
            end = from + trimmed;
        }
        let nothing = self.string.in_key && self.string.empty && from == end;
        if !nothing {
            self.close_string(c, (from, end), control, sink);
        }
        self.end.closed_by_us = true;
        let what = ("the text ends inside a string", "added the quote");
        self.mend(c, (end, end), &rules::MISSING_QUOTE, what, sink);
        c.at = end;
        if nothing {
            // Not even half a key was read.
            self.lexeme = Lexeme::None;
            return Flow::Go;
        }
        self.string_done(c, end, sink);
        Flow::Go
    }

    fn closes_everything(&self, tail: &[u8]) -> bool {
        let mut open = self.stack.iter().rev();
        let mut closed = 0;
        for &byte in tail {
            let fits = match byte {
                b'}' => super::state::Frame::Object,
                b']' => super::state::Frame::Array,
                _ => continue,
            };
            if open.next() != Some(&fits) {
                return false;
            }
            closed += 1;
        }
        closed > 0 && closed == self.stack.len()
    }

    /// Ends the string and the value at the current place, where another value begins.
    fn cut_string<S: JsonSink + ?Sized>(&mut self, c: &mut Cursor<'_>, sink: &mut S) -> Flow {
        self.close_string(c, (c.at, c.at), None, sink);
        self.end.closed_by_us = true;
        let what = ("the line ends inside a string", "added the quote");
        self.mend(c, (c.at, c.at), &rules::MISSING_QUOTE, what, sink);
        self.string_done(c, c.at, sink);
        self.close_all(c, "another value begins before this one ends", sink);
        Flow::Go
    }
}
