//! Quoted strings: text, escapes, and repair of a missing closing quote.

use crate::lex::json::{self, QuoteKind};
use crate::lex::utf8;
use crate::repair::rules;

use super::event::{JsonEvent, JsonSink};
use super::lookahead::WINDOW;
use super::quote::QuoteRole;
use super::reader::JsonReader;
use super::state::{ExpectedToken, OpenLexeme, ReadFlow, StringState, TextCursor, TextSpot};
use super::structure::ItemRole;

/// Maximum length of a tail in bytes. A tail is punctuation and white space before a quote or the end of the
/// text that may turn out not to belong to the string ([`JsonReader::tail_start`]).
const MAX_TAIL: usize = 64;

impl JsonReader {
    /// Begins a quoted string or key at the cursor, where its opening quote of `length` bytes is.
    pub(super) fn open_string<S: JsonSink + ?Sized>(
        &mut self,
        cursor: &mut TextCursor<'_>,
        quote: QuoteKind,
        length: usize,
        sink: &mut S,
    ) {
        let at = cursor.offset;
        let is_key = self.begin_item(cursor, at, sink) == ItemRole::Key;
        match quote {
            QuoteKind::Double => {}
            QuoteKind::Escaped => {
                let texts = ("a string in escaped quotes", "read as a string");
                self.report_repair(cursor, (at, at + length), &rules::ESCAPED_TEXT, texts, sink);
            }
            _ => {
                let texts = ("a quote that is not `\"`", "read as `\"`");
                self.report_repair(cursor, (at, at + length), &rules::QUOTE, texts, sink);
            }
        }
        self.begin_string(at, quote, is_key, sink);
        self.value_end.has_quotes = true;
        self.lexeme = OpenLexeme::String;
        cursor.offset += length;
    }

    /// Begins a string or key at `at`, quoted or not.
    pub(super) fn begin_string<S: JsonSink + ?Sized>(
        &mut self,
        at: usize,
        quote: QuoteKind,
        is_key: bool,
        sink: &mut S,
    ) {
        self.is_after_newline = false;
        self.string = StringState::new(quote, is_key);
        if is_key {
            self.key.clear();
            self.is_key_truncated = false;
            self.key_spot = TextSpot::Current(at);
        } else {
            sink.event(JsonEvent::StringStart);
        }
    }

    /// Continues reading a string.
    pub(super) fn read_string<S: JsonSink + ?Sized>(
        &mut self,
        cursor: &mut TextCursor<'_>,
        sink: &mut S,
    ) -> ReadFlow {
        let bytes = cursor.bytes();
        let stop_bytes = self.string.quote.stop_bytes();
        // Start of the text that is not emitted yet.
        let mut from = cursor.offset;
        let mut at = cursor.offset;
        // First control character in that text.
        let mut control_at = None;
        loop {
            at = stop_bytes.find(bytes, at);
            let Some(&byte) = bytes.get(at) else {
                if cursor.is_last {
                    return self.close_truncated_string(cursor, from, control_at, sink);
                }
                return self.wait_in_string(cursor, (from, at), control_at, sink);
            };
            if byte < 0x20 {
                if self.mode == super::state::ReaderMode::Lines && byte == b'\n' {
                    match self.begins_line_value(bytes, at, cursor.is_last) {
                        Err(_) => return self.wait_in_string(cursor, (from, at), control_at, sink),
                        Ok(true) => {
                            self.emit_piece(cursor, (from, at), control_at, sink);
                            cursor.offset = at;
                            return self.interrupt_string(cursor, sink);
                        }
                        Ok(false) => {}
                    }
                }
                control_at = control_at.or(Some(at));
                at += 1;
                continue;
            }
            if byte == b'\\'
                && self.string.quote == QuoteKind::Escaped
                && at + 1 == bytes.len()
                && !cursor.is_last
            {
                // Possibly the first half of an escaped quote.
                return self.wait_in_string(cursor, (from, at), control_at, sink);
            }
            let quote_len = if byte == b'"' && self.string.quote == QuoteKind::Double {
                Some(1)
            } else {
                json::quote_at(bytes, at)
                    .filter(|&(quote, _)| self.string.quote.can_end_with(quote))
                    .map(|(_, length)| length)
            };
            let Some(length) = quote_len else {
                if byte != b'\\' {
                    at += utf8::char_width(byte);
                    continue;
                }
                self.emit_piece(cursor, (from, at), control_at.take(), sink);
                cursor.offset = at;
                if self.read_escape(cursor, sink) == ReadFlow::NeedsInput {
                    return ReadFlow::NeedsInput;
                }
                (from, at) = (cursor.offset, cursor.offset);
                continue;
            };
            if length == 1 && self.is_plain_end(bytes, at) {
                self.close_string(cursor, (from, at), control_at, sink);
                cursor.offset = at + 1;
                self.finish_string(cursor, cursor.offset, sink);
                return ReadFlow::Continue;
            }
            self.work += (at - from + WINDOW) as u64;
            let tail = self.tail_start(bytes, from, at);
            let Ok(role) = self.decide_quote(bytes, at, length, (from, tail), cursor.is_last) else {
                return self.wait_in_string(cursor, (from, at), control_at, sink);
            };
            match role {
                QuoteRole::End(length) => {
                    if length > 1 && self.string.quote == QuoteKind::Double {
                        let texts = ("two quotes at the end of a string", "read as one");
                        self.close_string(cursor, (from, at), control_at, sink);
                        self.report_repair(cursor, (at, at + length), &rules::INNER_QUOTE, texts, sink);
                    } else {
                        self.close_string(cursor, (from, at), control_at, sink);
                    }
                    cursor.offset = at + length;
                    self.finish_string(cursor, cursor.offset, sink);
                    return ReadFlow::Continue;
                }
                QuoteRole::Text => {
                    // The quote is emitted at once, so that it is not examined again.
                    self.emit_piece(cursor, (from, at), control_at.take(), sink);
                    let texts = ("an unescaped quote inside a string", "escaped it");
                    self.report_repair(cursor, (at, at + length), &rules::INNER_QUOTE, texts, sink);
                    self.emit_piece(cursor, (at, at + length), None, sink);
                    self.string.is_in_inner_quotes = !self.string.is_in_inner_quotes;
                    at += length;
                    from = at;
                }
                QuoteRole::Redundant => {
                    self.emit_piece(cursor, (from, at), control_at.take(), sink);
                    let texts = ("two quotes at the start of a string", "read as one");
                    self.report_repair(cursor, (at, at + length), &rules::INNER_QUOTE, texts, sink);
                    self.string.has_double_opening = true;
                    self.string.is_empty = false;
                    at += length;
                    from = at;
                }
                QuoteRole::NextItem => {
                    self.close_string(cursor, (from, tail), control_at, sink);
                    let texts = ("a string without its closing quote", "added the quote");
                    self.report_repair(cursor, (tail, tail), &rules::MISSING_QUOTE, texts, sink);
                    cursor.offset = tail;
                    self.finish_string(cursor, cursor.offset, sink);
                    return ReadFlow::Continue;
                }
                QuoteRole::NextValue(colon) => {
                    self.close_string(cursor, (from, colon), control_at, sink);
                    let texts = ("a key without its closing quote", "added the quote");
                    self.report_repair(cursor, (colon, colon), &rules::MISSING_QUOTE, texts, sink);
                    self.finish_string(cursor, at, sink);
                    self.expected = ExpectedToken::Value;
                    cursor.offset = at;
                    return ReadFlow::Continue;
                }
                QuoteRole::Concatenation { quote, next } => {
                    self.emit_piece(cursor, (from, at), control_at.take(), sink);
                    let texts = ("strings joined by `+`", "made one string of them");
                    self.report_repair(cursor, (at, next), &rules::CONCATENATION, texts, sink);
                    self.string.quote = quote;
                    cursor.offset = next;
                    return ReadFlow::Continue;
                }
            }
        }
    }

    /// Emits the text `from..at`, except its tail, and waits for more text.
    fn wait_in_string<S: JsonSink + ?Sized>(
        &mut self,
        cursor: &mut TextCursor<'_>,
        (from, at): (usize, usize),
        control_at: Option<usize>,
        sink: &mut S,
    ) -> ReadFlow {
        let tail = self.tail_start(cursor.bytes(), from, at);
        self.emit_piece(cursor, (from, tail), control_at, sink);
        cursor.offset = tail;
        ReadFlow::NeedsInput
    }

    /// Emits the text `from..to` of the string, and reports the control character at `control_at` if it is
    /// the first one of the string.
    fn emit_piece<S: JsonSink + ?Sized>(
        &mut self,
        cursor: &TextCursor<'_>,
        (mut from, to): (usize, usize),
        control_at: Option<usize>,
        sink: &mut S,
    ) {
        if from >= to {
            return;
        }
        if let Some(at) = control_at.filter(|&at| at < to && !self.string.has_reported_control) {
            self.string.has_reported_control = true;
            if from < at {
                // The text before the character is emitted before the report, so that the order does not
                // depend on chunk boundaries.
                self.push_text(&cursor.text[from..at], sink);
                from = at;
            }
            let texts = match cursor.bytes()[at] {
                b'\n' | b'\r' => ("a raw line break in a string", "escaped it"),
                _ => ("a raw control character in a string", "escaped it"),
            };
            self.report_repair(cursor, (at, at + 1), &rules::RAW_CONTROL, texts, sink);
        }
        self.push_text(&cursor.text[from..to], sink);
    }

    /// Appends decoded text to the string or key.
    pub(super) fn push_text<S: JsonSink + ?Sized>(&mut self, text: &str, sink: &mut S) {
        self.string.is_empty = false;
        if self.string.is_key {
            self.add_to_key(text);
            return;
        }
        if !self.string.has_brackets {
            // `{` and `[` differ only in the bit 0x20. Without an early exit the loop takes few instructions.
            self.string.has_brackets =
                text.bytes().fold(false, |has_bracket, byte| has_bracket | (byte | 0x20 == b'{'));
        }
        sink.event(JsonEvent::StringDelta(text));
    }

    /// Appends a decoded character to the string or key.
    pub(super) fn push_char<S: JsonSink + ?Sized>(&mut self, character: char, sink: &mut S) {
        self.push_text(character.encode_utf8(&mut [0; 4]), sink);
    }

    /// Emits the last piece and ends the string or key.
    fn close_string<S: JsonSink + ?Sized>(
        &mut self,
        cursor: &TextCursor<'_>,
        (from, to): (usize, usize),
        control_at: Option<usize>,
        sink: &mut S,
    ) {
        let depth = self.stack.len();
        if !self.string.is_key {
            self.emit_piece(cursor, (from, to), control_at, sink);
            sink.event(JsonEvent::StringEnd);
        } else if self.key.is_empty() && control_at.is_none() && to - from <= self.max_key_len() {
            // Nothing of the key had to be buffered.
            let text = &cursor.text[from..to];
            let place = self.key_place(cursor.text, to);
            sink.event(JsonEvent::Key { text, place, depth });
        } else {
            self.emit_piece(cursor, (from, to), control_at, sink);
            let place = self.key_place(cursor.text, to);
            if self.is_key_truncated {
                let texts = ("the key is longer than the limit", "cut the key");
                let place = place.place();
                let length = self.base_place.offset + to - place.offset;
                self.report_repair_at(place, length, &rules::LIMIT_EXCEEDED, texts, sink);
            }
            sink.event(JsonEvent::Key { text: &self.key, place, depth });
        }
        // A complete quoted key is trusted: repairs before it no longer count as damage.
        self.suspicion.is_damaged &= !self.string.is_key;
    }

    /// Moves on after the string or key, which ends before `after`.
    pub(super) fn finish_string<S: JsonSink + ?Sized>(
        &mut self,
        cursor: &TextCursor<'_>,
        after: usize,
        sink: &mut S,
    ) {
        self.lexeme = OpenLexeme::None;
        if self.string.is_key {
            self.expected = ExpectedToken::Colon;
            self.is_after_newline = false;
        } else {
            self.finish_item(cursor, after, sink);
        }
    }

    /// Start of the tail that ends at `to` ([`MAX_TAIL`]): commas, closing brackets, backticks and white
    /// space; in a key, a colon and the blanks after it.
    fn tail_start(&self, bytes: &[u8], from: usize, to: usize) -> usize {
        if self.string.is_key {
            let blanks =
                bytes[from..to].iter().rev().take(MAX_TAIL).take_while(|byte| **byte == b' ').count();
            let colon = to - blanks;
            return if colon > from && bytes[colon - 1] == b':' { colon - 1 } else { to };
        }
        let min_start = to.saturating_sub(MAX_TAIL).max(from);
        let mut at = to;
        while at > min_start
            && matches!(bytes[at - 1], b' ' | b'\n' | b'\r' | b'\t' | b',' | b'}' | b']' | b'`')
        {
            at -= 1;
        }
        at
    }

    /// Ends a string that is open at the end of the text.
    fn close_truncated_string<S: JsonSink + ?Sized>(
        &mut self,
        cursor: &mut TextCursor<'_>,
        from: usize,
        control_at: Option<usize>,
        sink: &mut S,
    ) -> ReadFlow {
        let bytes = cursor.bytes();
        let mut end = bytes.len();
        let tail = self.tail_start(bytes, from, end);
        // Closing brackets at the end do not belong to the string if they close the whole value and the
        // string has no opening brackets.
        if !self.string.has_brackets && self.closes_all(&bytes[tail..]) {
            end = tail;
            let trimmed_len = bytes[from..end].trim_ascii_end().len();
            end = from + trimmed_len;
        }
        // Nothing of a key was read, so there is no key to emit.
        let is_empty_key = self.string.is_key && self.string.is_empty && from == end;
        if !is_empty_key {
            self.close_string(cursor, (from, end), control_at, sink);
        }
        self.value_end.is_auto_closed = true;
        let texts = ("the text ends inside a string", "added the quote");
        self.report_repair(cursor, (end, end), &rules::MISSING_QUOTE, texts, sink);
        cursor.offset = end;
        if is_empty_key {
            self.lexeme = OpenLexeme::None;
            return ReadFlow::Continue;
        }
        self.finish_string(cursor, end, sink);
        ReadFlow::Continue
    }

    /// Returns whether the closing brackets in `tail` close all open brackets, and no more.
    fn closes_all(&self, tail: &[u8]) -> bool {
        let mut open_frames = self.stack.iter().rev();
        let mut closed_count = 0;
        for &byte in tail {
            let frame = match byte {
                b'}' => super::state::JsonFrame::Object,
                b']' => super::state::JsonFrame::Array,
                _ => continue,
            };
            if open_frames.next() != Some(&frame) {
                return false;
            }
            closed_count += 1;
        }
        closed_count > 0 && closed_count == self.stack.len()
    }

    /// Ends the string and the value at the current place, where another value begins.
    fn interrupt_string<S: JsonSink + ?Sized>(
        &mut self,
        cursor: &mut TextCursor<'_>,
        sink: &mut S,
    ) -> ReadFlow {
        self.close_string(cursor, (cursor.offset, cursor.offset), None, sink);
        self.value_end.is_auto_closed = true;
        let texts = ("the line ends inside a string", "added the quote");
        self.report_repair(cursor, (cursor.offset, cursor.offset), &rules::MISSING_QUOTE, texts, sink);
        self.finish_string(cursor, cursor.offset, sink);
        self.close_all(cursor, "another value begins before this one ends", sink);
        ReadFlow::Continue
    }
}
