//! Unquoted words in place of a value: numbers, literals, calls, and beginnings of strings without quotes.

use serde_json::Number;

use crate::finding::Doubt;
use crate::lex::json::{self, QuoteKind};
use crate::repair::rules;

use super::event::{JsonEvent, JsonSink};
use super::lookahead::{KeyCheck, Lookahead, MissingInput, WINDOW};
use super::number::{self, JsonLiteral, ParsedNumber};
use super::reader::JsonReader;
use super::repair_report::RepairRule;
use super::state::{ExpectedToken, JsonFrame, OpenLexeme, TextCursor};

impl JsonReader {
    /// Reads a token that begins with neither punctuation nor a quote.
    pub(super) fn read_word<S: JsonSink + ?Sized>(
        &mut self,
        cursor: &mut TextCursor<'_>,
        sink: &mut S,
    ) -> Result<(), MissingInput> {
        let is_in_object = self.stack.last() == Some(&JsonFrame::Object);
        if is_in_object
            && matches!(
                self.expected,
                ExpectedToken::FirstItemOrEnd | ExpectedToken::Item | ExpectedToken::CommaOrEnd
            )
        {
            return self.read_bare_key(cursor, sink);
        }
        let (bytes, at) = (cursor.bytes(), cursor.offset);
        let mut end = at + self.word_len;
        while end < bytes.len() && end - at <= self.max_number_len && json::is_word_byte(bytes[end]) {
            end += 1;
        }
        // Bytes scanned before the word was held back are not counted again.
        self.work += (end - at - self.word_len) as u64;
        self.word_len = end - at;
        if matches!(bytes.get(end), Some(b',' | b'}' | b']' | b'\n')) && end - at <= 8 {
            // Fast path for small integers and standard literals.
            let word = &cursor.text[at..end];
            if word.bytes().all(|byte| byte.is_ascii_digit()) && (word.len() == 1 || bytes[at] != b'0') {
                self.word_len = 0;
                let value = word.bytes().fold(0, |value, byte| value * 10 + u64::from(byte - b'0'));
                let parsed = ParsedNumber {
                    number: Number::from(value),
                    text: None,
                    is_nonstandard: false,
                    is_rounded: false,
                };
                self.emit_number(cursor, (at, end), &parsed, sink);
                return Ok(());
            }
            if let Some(literal) = number::parse_literal(word).filter(|literal| literal.is_standard) {
                self.word_len = 0;
                self.emit_literal(cursor, (at, end), literal, sink);
                return Ok(());
            }
        }
        let lookahead = Lookahead::new(bytes, end, cursor.is_last);
        let (next, has_newline) = lookahead.skip_space(end)?;
        let is_end = has_newline || self.ends_word(&lookahead, end, next)?;
        let word = &cursor.text[at..end];
        if let Some(length) = ellipsis_len(&bytes[at..]).filter(|&length| length >= end - at) {
            let (next, _) = Lookahead::new(bytes, at + length, cursor.is_last).skip_space(at + length)?;
            if !json::is_word_byte(bytes.get(next).copied().unwrap_or(b' ')) || next > at + length {
                self.word_len = 0;
                self.skip_ellipsis(cursor, length, sink);
                return Ok(());
            }
        }
        if is_end && end - at <= self.max_number_len {
            if let Some(literal) = number::parse_literal(word) {
                self.word_len = 0;
                self.emit_literal(cursor, (at, end), literal, sink);
                return Ok(());
            }
            if let Some(parsed) = number::parse_number(word, self.keeps_digits) {
                let stray_quote =
                    if self.ends_after_quote(&lookahead, end)? { lookahead.quote_at(end)? } else { None };
                self.word_len = 0;
                self.emit_number(cursor, (at, end), &parsed, sink);
                if let Some((_, length)) = stray_quote {
                    let texts = ("a quote after a number", "left it out");
                    self.report_repair(cursor, (end, end + length), &rules::MISSING_QUOTE, texts, sink);
                    cursor.offset = end + length;
                }
                return Ok(());
            }
            if number::is_json_number(word.as_bytes()) {
                self.word_len = 0;
                self.emit_oversized_number(cursor, (at, end), sink);
                return Ok(());
            }
            let is_truncated = cursor.is_last && next == bytes.len() && !self.stack.is_empty();
            if let Some(literal) = number::complete_literal(word).filter(|_| is_truncated) {
                self.word_len = 0;
                self.emit_literal(cursor, (at, end), literal, sink);
                return Ok(());
            }
        }
        if lookahead.byte(next)? == Some(b'(')
            && number::is_function_name(word)
            && self.opens_call(&lookahead, next + 1)?
        {
            let texts = ("a call around a value", "read only the value");
            self.report_repair(cursor, (at, next + 1), &rules::WRAPPER, texts, sink);
            self.open_calls += 1;
            self.word_len = 0;
            cursor.offset = next + 1;
            return Ok(());
        }
        self.word_len = 0;
        self.begin_item(cursor, at, sink);
        let texts = ("a text without quotes", "added quotes");
        self.report_repair(cursor, (at, end), &rules::UNQUOTED_VALUE, texts, sink);
        let is_key = false;
        self.begin_string(at, QuoteKind::Double, is_key, sink);
        self.lexeme = OpenLexeme::BareString;
        Ok(())
    }

    /// Returns whether a number or literal that ends at `end` is complete, judging by the token at `next`.
    fn ends_word(&self, lookahead: &Lookahead<'_>, end: usize, next: usize) -> Result<bool, MissingInput> {
        let Some(byte) = lookahead.byte(next)? else { return Ok(true) };
        if let Some(mark) = lookahead.mark_at(next)? {
            return Ok(!matches!(mark, b':' | b'('));
        }
        if byte == b'`' {
            return lookahead.starts_with(next, b"```");
        }
        if lookahead.quote_at(next)?.is_some()
            || lookahead.is_comment(next)?
            || matches!(byte, b'#' | b';' | 0..=0x1F)
        {
            return Ok(true);
        }
        // A comma may be missing: `[1 2]`, `{a: 1 b: 2}`.
        match self.stack.last() {
            Some(JsonFrame::Object) => Ok(next > end && lookahead.check_key(next, 1)? == KeyCheck::Yes),
            Some(_) => Ok(next > end && self.is_value_word(lookahead, next)?),
            None => Ok(false),
        }
    }

    /// Returns whether a stray quote is at `at` and the item ends after it.
    fn ends_after_quote(&self, lookahead: &Lookahead<'_>, at: usize) -> Result<bool, MissingInput> {
        let Some((_, length)) = lookahead.quote_at(at)? else { return Ok(false) };
        let (next, _) = lookahead.skip_space(at + length)?;
        Ok(lookahead.byte(next)?.is_none() || matches!(lookahead.mark_at(next)?, Some(b',' | b'}' | b']')))
    }

    /// Returns whether a value follows the round bracket of a call.
    fn opens_call(&self, lookahead: &Lookahead<'_>, at: usize) -> Result<bool, MissingInput> {
        let (at, _) = lookahead.skip_space(at)?;
        let Some(byte) = lookahead.byte(at)? else { return Ok(true) };
        Ok(lookahead.quote_at(at)?.is_some()
            || matches!(lookahead.mark_at(at)?, Some(b'{' | b'['))
            || byte.is_ascii_digit()
            || matches!(lookahead.word_at(at)?, b"true" | b"false" | b"null"))
    }

    /// Emits a literal, and reports it if its spelling is not that of JSON.
    fn emit_literal<S: JsonSink + ?Sized>(
        &mut self,
        cursor: &mut TextCursor<'_>,
        (at, end): (usize, usize),
        literal: JsonLiteral,
        sink: &mut S,
    ) {
        self.begin_item(cursor, at, sink);
        let event = match literal.value {
            Some(value) => JsonEvent::Bool(value),
            None => JsonEvent::Null,
        };
        if !literal.is_standard {
            let repair = match literal.value {
                Some(true) => "read as `true`",
                Some(false) => "read as `false`",
                None => "read as `null`",
            };
            // `NaN` and `Infinity` are numbers that JSON cannot represent: they are lost.
            let word = &cursor.text[at..end];
            let is_number = word.eq_ignore_ascii_case("nan") || word.ends_with("Infinity");
            // `undefined` and truncated words may mean that there is no value.
            let is_certain =
                matches!(word.to_ascii_lowercase().as_str(), "true" | "false" | "none" | "null" | "nil");
            let rule = match (is_number, is_certain) {
                (true, _) => RepairRule::from(&rules::NUMBER),
                (false, true) => RepairRule::from(&rules::LITERAL),
                (false, false) => RepairRule::doubtful(&rules::LITERAL, Doubt::Guess),
            };
            self.report_repair(cursor, (at, end), rule, ("a literal that JSON does not have", repair), sink);
        }
        sink.event(event);
        cursor.offset = end;
        self.finish_item(cursor, end, sink);
    }

    /// Emits a number, and reports it if its notation is not that of JSON.
    fn emit_number<S: JsonSink + ?Sized>(
        &mut self,
        cursor: &mut TextCursor<'_>,
        (at, end): (usize, usize),
        parsed: &ParsedNumber,
        sink: &mut S,
    ) {
        self.begin_item(cursor, at, sink);
        if parsed.is_nonstandard {
            let texts = ("a number in a form that JSON does not have", "read as the number meant");
            self.report_repair(cursor, (at, end), &rules::NUMBER, texts, sink);
        }
        if self.keeps_digits {
            sink.event(JsonEvent::Digits(parsed.text.as_deref().unwrap_or(&cursor.text[at..end])));
        } else {
            if parsed.is_rounded {
                self.save_places(cursor.text);
                sink.report_rounding(self.place_at(cursor.text, at), self.base_place.offset + end);
            }
            sink.event(JsonEvent::Number(&parsed.number));
        }
        cursor.offset = end;
        self.finish_item(cursor, end, sink);
    }

    /// Emits a number beyond the range of a double, such as `1e400`, as a string.
    fn emit_oversized_number<S: JsonSink + ?Sized>(
        &mut self,
        cursor: &mut TextCursor<'_>,
        (at, end): (usize, usize),
        sink: &mut S,
    ) {
        self.begin_item(cursor, at, sink);
        let rule = RepairRule::doubtful(&rules::NUMBER, Doubt::InexactNumber);
        self.report_repair(
            cursor,
            (at, end),
            rule,
            ("a number that does not fit a double", "kept as a text"),
            sink,
        );
        sink.event(JsonEvent::StringStart);
        sink.event(JsonEvent::StringDelta(&cursor.text[at..end]));
        sink.event(JsonEvent::StringEnd);
        cursor.offset = end;
        self.finish_item(cursor, end, sink);
    }

    /// Skips and reports an ellipsis of `length` bytes at the cursor.
    pub(super) fn skip_ellipsis<S: JsonSink + ?Sized>(
        &mut self,
        cursor: &mut TextCursor<'_>,
        length: usize,
        sink: &mut S,
    ) {
        let span = (cursor.offset, cursor.offset + length);
        self.report_repair(
            cursor,
            span,
            &rules::ELLIPSIS,
            ("dots in place of items", "left the dots out"),
            sink,
        );
        cursor.offset += length;
    }
}

/// Length in bytes of the ellipsis at the start of `bytes`; `None` if there is none.
pub(super) fn ellipsis_len(bytes: &[u8]) -> Option<usize> {
    if bytes.starts_with("…".as_bytes()) {
        return Some(3);
    }
    let dots = bytes.iter().take(WINDOW).take_while(|&&byte| byte == b'.').count();
    (dots >= 3).then_some(dots)
}
