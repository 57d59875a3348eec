//! Punctuation between tokens: brackets, commas, colons, comments, and the role of an item at its place.

use crate::lex::json::{self, QuoteKind};
use crate::repair::rules;

use super::event::{JsonEvent, JsonSink};
use super::lookahead::{Lookahead, MissingInput};
use super::reader::JsonReader;
use super::repair_report::RepairRule;
use super::state::{ExpectedToken, JsonFrame, OpenLexeme, ReadFlow, TextCursor, TextSpot};

/// Role of an item at the current place.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ItemRole {
    Key,
    Value,
}

impl JsonReader {
    /// Reads between tokens until one begins, or the value or the text ends.
    pub(super) fn read_structure<S: JsonSink + ?Sized>(
        &mut self,
        c: &mut TextCursor<'_>,
        sink: &mut S,
    ) -> ReadFlow {
        let bytes = c.bytes();
        let start_depth = self.stack.len();
        loop {
            let (at, depth) = (c.offset, self.stack.len());
            let Some(&byte) = bytes.get(at) else {
                if c.is_last {
                    self.close_at_end(c, sink);
                }
                return ReadFlow::NeedsInput;
            };
            let result = match byte {
                b' ' | b'\t' | b'\r' => {
                    c.offset += 1;
                    Ok(())
                }
                b'\n' => {
                    self.is_after_newline = true;
                    c.offset += 1;
                    Ok(())
                }
                b'"' => self.read_double_quote(c, sink),
                // A comma and a colon in their regular place; the others are handled below.
                b',' if self.expected == ExpectedToken::CommaOrEnd && depth > 0 => {
                    self.expected = ExpectedToken::Item;
                    (self.comma_spot, self.comma_length) = (TextSpot::Current(at), 1);
                    self.is_after_newline = false;
                    self.report_stray_text(sink);
                    c.offset += 1;
                    Ok(())
                }
                b':' if self.expected == ExpectedToken::Colon => {
                    self.expected = ExpectedToken::Value;
                    self.is_after_newline = false;
                    c.offset += 1;
                    Ok(())
                }
                b',' | b':' | b'{' | b'}' | b'[' | b']' | b'(' | b')' => {
                    self.read_punctuation(c, byte, 1, sink)
                }
                _ => self.read_other(c, byte, sink),
            };
            if result.is_err() {
                return ReadFlow::NeedsInput;
            }
            // A token begins, or the text around values continues.
            if self.lexeme != OpenLexeme::None
                || self.stack.is_empty() && (start_depth > 0 || self.allows_text())
            {
                return ReadFlow::Continue;
            }
        }
    }

    fn read_double_quote<S: JsonSink + ?Sized>(
        &mut self,
        c: &mut TextCursor<'_>,
        sink: &mut S,
    ) -> Result<(), MissingInput> {
        let at = c.offset;
        if c.bytes().get(at + 1).is_some_and(|&next| next != b'"') {
            self.open_string(c, QuoteKind::Double, 1, sink);
            return Ok(());
        }
        let p = Lookahead::new(c.bytes(), at, c.is_last);
        let quote = if p.starts_with(at, b"\"\"\"")? { QuoteKind::Triple } else { QuoteKind::Double };
        self.open_string(c, quote, if quote == QuoteKind::Triple { 3 } else { 1 }, sink);
        Ok(())
    }

    fn read_other<S: JsonSink + ?Sized>(
        &mut self,
        c: &mut TextCursor<'_>,
        byte: u8,
        sink: &mut S,
    ) -> Result<(), MissingInput> {
        let (bytes, at) = (c.bytes(), c.offset);
        let p = Lookahead::new(bytes, at, c.is_last);
        if let Some((mark, length)) = json::mark_at(bytes, at) {
            if matches!(mark, b'{' | b'[') && self.stack.is_empty() {
                // The report belongs to the value that begins here.
                return self.read_punctuation(c, mark, length, sink);
            }
            self.report_odd_mark(c, at, length, sink);
            return self.read_punctuation(c, mark, length, sink);
        }
        if let Some(length) = json::odd_space_len(bytes, at) {
            let texts = ("a space JSON does not know", "read as white space");
            self.report_repair(c, (at, at + length), &rules::SPACE, texts, sink);
            c.offset += length;
            return Ok(());
        }
        match byte {
            b'/' if p.is_comment(at)? => {
                let line = p.byte(at + 1)? == Some(b'/');
                self.begin_comment(c, line, 2, sink);
                return Ok(());
            }
            b'#' => {
                self.begin_comment(c, true, 1, sink);
                return Ok(());
            }
            b'`' if p.starts_with(at, b"```")? => return self.read_inner_fence(c, &p, byte, sink),
            b'~' if self.is_in_fence(byte) && p.starts_with(at, b"~~~")? => {
                return self.read_inner_fence(c, &p, byte, sink);
            }
            b'\\' => match p.byte(at + 1)? {
                Some(b'"') => {}
                Some(b'n' | b'r' | b't') => {
                    let texts = ("an escaped line break between tokens", "read as white space");
                    self.report_repair(c, (at, at + 2), &rules::ESCAPED_TEXT, texts, sink);
                    self.is_after_newline = true;
                    c.offset += 2;
                    return Ok(());
                }
                _ => return self.skip_stray(c, 1, "a backslash between tokens", sink),
            },
            b'=' if self.expected == ExpectedToken::Colon && self.is_equals_colon(&p, at)? => {
                let width = 1 + usize::from(p.byte(at + 1)? == Some(b'>'));
                let texts = ("an equals sign after a key", "read as a colon");
                self.report_repair(c, (at, at + width), &rules::MISSING_COLON, texts, sink);
                self.expected = ExpectedToken::Value;
                self.is_after_newline = false;
                c.offset += width;
                return Ok(());
            }
            b';' => return self.skip_stray(c, 1, "a semicolon between tokens", sink),
            0..=0x1F | 0x7F => return self.skip_stray(c, 1, "a control character between tokens", sink),
            b'+' if !p.byte(at + 1)?.is_some_and(|next| next.is_ascii_digit() || b".I".contains(&next)) => {
                return self.skip_stray(c, 1, "a plus sign between tokens", sink);
            }
            _ => {}
        }
        if let Some((quote, length)) = json::quote_at(bytes, at) {
            self.open_string(c, quote, length, sink);
            return Ok(());
        }
        self.read_word(c, sink)
    }

    fn skip_stray<S: JsonSink + ?Sized>(
        &mut self,
        c: &mut TextCursor<'_>,
        length: usize,
        message: &str,
        sink: &mut S,
    ) -> Result<(), MissingInput> {
        let span = (c.offset, c.offset + length);
        self.report_repair(c, span, &rules::STRAY_TEXT, (message, "left it out"), sink);
        c.offset += length;
        Ok(())
    }

    /// Reports a full-width mark once, although it may be read again when more text arrives.
    pub(super) fn report_odd_mark<S: JsonSink + ?Sized>(
        &mut self,
        c: &TextCursor<'_>,
        at: usize,
        length: usize,
        sink: &mut S,
    ) {
        let end = self.base_place.offset + at + length;
        if std::mem::replace(&mut self.odd_mark_end, end) == end {
            return;
        }
        let texts = ("a full-width punctuation mark", "read as its ASCII form");
        self.report_repair(c, (at, at + length), &rules::PUNCTUATION, texts, sink);
    }

    fn begin_comment<S: JsonSink + ?Sized>(
        &mut self,
        c: &mut TextCursor<'_>,
        line: bool,
        length: usize,
        sink: &mut S,
    ) {
        self.report_stray_text(sink);
        // Reported when its end is known.
        self.value_end.is_repaired = true;
        self.save_places(c.text);
        self.comment_place = Some(self.place_at(c.text, c.offset));
        self.lexeme = if line { OpenLexeme::LineComment } else { OpenLexeme::BlockComment };
        c.offset += length;
    }

    /// Skips a comment.
    pub(super) fn skip_comment<S: JsonSink + ?Sized>(
        &mut self,
        c: &mut TextCursor<'_>,
        sink: &mut S,
    ) -> ReadFlow {
        let rest = &c.bytes()[c.offset..];
        let end = if self.lexeme == OpenLexeme::LineComment {
            memchr::memchr(b'\n', rest)
        } else {
            memchr::memmem::find(rest, b"*/").map(|at| at + 2)
        };
        match end {
            Some(end) => c.offset += end,
            None if c.is_last => c.offset += rest.len(),
            None => {
                // Possibly half of `*/`.
                let has_half_end = self.lexeme == OpenLexeme::BlockComment && rest.last() == Some(&b'*');
                c.offset += rest.len() - usize::from(has_half_end);
                return ReadFlow::NeedsInput;
            }
        }
        if let Some(place) = self.comment_place.take() {
            let length = self.base_place.offset + c.offset - place.offset;
            self.report_repair_at(place, length, &rules::COMMENT, ("a comment", "left it out"), sink);
        }
        self.lexeme = OpenLexeme::None;
        ReadFlow::Continue
    }

    /// Returns whether the value is in a fence of this character.
    fn is_in_fence(&self, byte: u8) -> bool {
        self.allows_text() && self.surrounding_text.fence.is_some_and(|(fence, _)| fence.mark == byte)
    }

    /// Handles a fence between tokens: it ends a value that is in a fence; any other is dropped with its
    /// language.
    fn read_inner_fence<S: JsonSink + ?Sized>(
        &mut self,
        c: &mut TextCursor<'_>,
        p: &Lookahead<'_>,
        byte: u8,
        sink: &mut S,
    ) -> Result<(), MissingInput> {
        if self.is_in_fence(byte) {
            self.close_all(c, "the fence ends before the value does", sink);
            return Ok(());
        }
        let mut end = c.offset + 3;
        while p.byte(end)? == Some(b'`') {
            end += 1;
        }
        let word = p.word_at(end)?;
        if self.surrounding_text.fence.is_none() && self.allows_text() {
            let (next, newline) = p.skip_space(end + word.len())?;
            if newline && p.mark_at(next)? == Some(b'{') && self.is_sought_key(c, next + 1)? {
                self.close_all(c, "a fence begins before the value ends", sink);
                return Ok(());
            }
        }
        self.skip_stray(c, end + word.len() - c.offset, "a fence between tokens", sink)
    }

    fn read_punctuation<S: JsonSink + ?Sized>(
        &mut self,
        c: &mut TextCursor<'_>,
        mark: u8,
        length: usize,
        sink: &mut S,
    ) -> Result<(), MissingInput> {
        let at = c.offset;
        match mark {
            b',' => self.read_comma(c, at, length, sink),
            b':' => self.read_colon(c, at, length, sink),
            b'{' | b'[' | b'(' => return self.read_opening(c, mark, length, sink),
            _ => return self.read_closing(c, mark, length, sink),
        }
        self.is_after_newline = false;
        c.offset += length;
        Ok(())
    }

    fn read_comma<S: JsonSink + ?Sized>(
        &mut self,
        c: &TextCursor<'_>,
        at: usize,
        length: usize,
        sink: &mut S,
    ) {
        self.report_stray_text(sink);
        if self.expected == ExpectedToken::CommaOrEnd && !self.stack.is_empty() {
            self.expected = ExpectedToken::Item;
            (self.comma_spot, self.comma_length) = (TextSpot::Current(at), length);
            return;
        }
        let span = (at, at + length);
        match self.expected {
            ExpectedToken::Colon | ExpectedToken::Value => {
                self.insert_null(c, at, sink);
                self.expected = ExpectedToken::Item;
                (self.comma_spot, self.comma_length) = (TextSpot::Current(at), length);
            }
            _ if self.stack.is_empty() => {
                let texts = ("a comma outside of the value", "left it out");
                self.report_repair(c, span, &rules::EXTRA_COMMA, texts, sink);
            }
            ExpectedToken::FirstItemOrEnd => {
                let texts = ("a comma before the first item", "left it out");
                self.report_repair(c, span, &rules::EXTRA_COMMA, texts, sink);
            }
            _ => self.report_repair(c, span, &rules::EXTRA_COMMA, ("a second comma", "left it out"), sink),
        }
    }

    fn read_colon<S: JsonSink + ?Sized>(
        &mut self,
        c: &TextCursor<'_>,
        at: usize,
        length: usize,
        sink: &mut S,
    ) {
        let span = (at, at + length);
        if self.expected == ExpectedToken::Colon {
            self.expected = ExpectedToken::Value;
        } else if self.expected == ExpectedToken::CommaOrEnd
            && matches!(self.stack.last(), Some(JsonFrame::Array | JsonFrame::Tuple))
        {
            let texts = ("a colon between items of an array", "read as a comma");
            self.report_repair(c, span, &rules::EXTRA_COLON, texts, sink);
            self.expected = ExpectedToken::Item;
            (self.comma_spot, self.comma_length) = (TextSpot::Current(at), length);
        } else {
            let texts = ("a colon that follows no key", "left it out");
            self.report_repair(c, span, &rules::EXTRA_COLON, texts, sink);
        }
    }

    /// Inserts `null` for a missing value.
    pub(super) fn insert_null<S: JsonSink + ?Sized>(&mut self, c: &TextCursor<'_>, at: usize, sink: &mut S) {
        let texts = ("a key without value", "gave it `null`");
        self.report_repair(c, (at, at), &rules::MISSING_VALUE, texts, sink);
        sink.event(JsonEvent::Null);
        self.expected = ExpectedToken::CommaOrEnd;
    }

    /// Begins an item at `at` and returns its role; repairs a missing comma or colon before it.
    pub(super) fn begin_item<S: JsonSink + ?Sized>(
        &mut self,
        c: &TextCursor<'_>,
        at: usize,
        sink: &mut S,
    ) -> ItemRole {
        self.report_stray_text(sink);
        let object = match self.stack.last() {
            None => {
                self.begin_value(c, at, sink);
                return ItemRole::Value;
            }
            Some(frame) => *frame == JsonFrame::Object,
        };
        match self.expected {
            ExpectedToken::FirstItemOrEnd | ExpectedToken::Item => {}
            ExpectedToken::Value => return ItemRole::Value,
            ExpectedToken::Colon => {
                let texts = ("no colon after the key", "added one");
                self.report_repair(c, (at, at), &rules::MISSING_COLON, texts, sink);
                self.expected = ExpectedToken::Value;
                return ItemRole::Value;
            }
            ExpectedToken::CommaOrEnd => {
                let texts = ("no comma between two items", "added one");
                // Between brackets there is one reading; behind a word or a string there may be others.
                let next = c.bytes().get(at).copied().unwrap_or_default();
                let is_certain =
                    self.is_after_bracket && matches!((object, next), (true, b'"') | (false, b'{' | b'['));
                let rule = match is_certain {
                    true => RepairRule::certain(&rules::MISSING_COMMA),
                    false => RepairRule::from(&rules::MISSING_COMMA),
                };
                self.report_repair(c, (at, at), rule, texts, sink);
                self.expected = ExpectedToken::Item;
                (self.comma_spot, self.comma_length) = (TextSpot::Current(at), 1);
            }
        }
        if object { ItemRole::Key } else { ItemRole::Value }
    }
}
