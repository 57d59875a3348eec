//! Structure between tokens: punctuation, comments, fences, and whether an item is a key or a value.

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
    /// Key of an object.
    Key,
    /// Value of a key, item of an array, or the whole value.
    Value,
}

impl JsonReader {
    /// Reads tokens until a string or comment begins, or the value or the text ends.
    pub(super) fn read_structure<S: JsonSink + ?Sized>(
        &mut self,
        cursor: &mut TextCursor<'_>,
        sink: &mut S,
    ) -> ReadFlow {
        let bytes = cursor.bytes();
        let start_depth = self.stack.len();
        loop {
            let (at, depth) = (cursor.offset, self.stack.len());
            let Some(&byte) = bytes.get(at) else {
                if cursor.is_last {
                    self.close_at_end(cursor, sink);
                }
                return ReadFlow::NeedsInput;
            };
            let result = match byte {
                b' ' | b'\t' | b'\r' => {
                    cursor.offset += 1;
                    Ok(())
                }
                b'\n' => {
                    self.is_after_newline = true;
                    cursor.offset += 1;
                    Ok(())
                }
                b'"' => self.read_double_quote(cursor, sink),
                // A comma and a colon in their regular place; the others are handled below.
                b',' if self.expected == ExpectedToken::CommaOrEnd && depth > 0 => {
                    self.expected = ExpectedToken::Item;
                    (self.comma_spot, self.comma_length) = (TextSpot::Current(at), 1);
                    self.is_after_newline = false;
                    self.report_stray_text(sink);
                    cursor.offset += 1;
                    Ok(())
                }
                b':' if self.expected == ExpectedToken::Colon => {
                    self.expected = ExpectedToken::Value;
                    self.is_after_newline = false;
                    cursor.offset += 1;
                    Ok(())
                }
                b',' | b':' | b'{' | b'}' | b'[' | b']' | b'(' | b')' => {
                    self.read_punctuation(cursor, byte, 1, sink)
                }
                _ => self.read_other(cursor, byte, sink),
            };
            if result.is_err() {
                return ReadFlow::NeedsInput;
            }
            // A string or comment begins, or the text around values continues.
            if self.lexeme != OpenLexeme::None
                || self.stack.is_empty() && (start_depth > 0 || self.allows_text())
            {
                return ReadFlow::Continue;
            }
        }
    }

    /// Begins a string at a `"`, or at `"""`.
    fn read_double_quote<S: JsonSink + ?Sized>(
        &mut self,
        cursor: &mut TextCursor<'_>,
        sink: &mut S,
    ) -> Result<(), MissingInput> {
        let at = cursor.offset;
        if cursor.bytes().get(at + 1).is_some_and(|&next_byte| next_byte != b'"') {
            self.open_string(cursor, QuoteKind::Double, 1, sink);
            return Ok(());
        }
        let lookahead = Lookahead::new(cursor.bytes(), at, cursor.is_last);
        let quote = if lookahead.starts_with(at, b"\"\"\"")? { QuoteKind::Triple } else { QuoteKind::Double };
        self.open_string(cursor, quote, if quote == QuoteKind::Triple { 3 } else { 1 }, sink);
        Ok(())
    }

    /// Reads a token that begins with none of the usual bytes: a full-width mark, an odd space, a comment, a
    /// fence, an unusual quote, a stray character or a word.
    fn read_other<S: JsonSink + ?Sized>(
        &mut self,
        cursor: &mut TextCursor<'_>,
        byte: u8,
        sink: &mut S,
    ) -> Result<(), MissingInput> {
        let (bytes, at) = (cursor.bytes(), cursor.offset);
        let lookahead = Lookahead::new(bytes, at, cursor.is_last);
        if let Some((mark, length)) = json::mark_at(bytes, at) {
            if matches!(mark, b'{' | b'[') && self.stack.is_empty() {
                // The report belongs to the value that begins here: `read_opening` sends it after the start.
                return self.read_punctuation(cursor, mark, length, sink);
            }
            self.report_odd_mark(cursor, at, length, sink);
            return self.read_punctuation(cursor, mark, length, sink);
        }
        if let Some(length) = json::odd_space_len(bytes, at) {
            let texts = ("a space that JSON does not allow", "read as white space");
            self.report_repair(cursor, (at, at + length), &rules::SPACE, texts, sink);
            cursor.offset += length;
            return Ok(());
        }
        match byte {
            b'/' if lookahead.is_comment(at)? => {
                let is_line_comment = lookahead.byte(at + 1)? == Some(b'/');
                self.begin_comment(cursor, is_line_comment, 2, sink);
                return Ok(());
            }
            b'#' => {
                let is_line_comment = true;
                self.begin_comment(cursor, is_line_comment, 1, sink);
                return Ok(());
            }
            b'`' if lookahead.starts_with(at, b"```")? => {
                return self.read_inner_fence(cursor, &lookahead, byte, sink);
            }
            b'~' if self.is_in_fence(byte) && lookahead.starts_with(at, b"~~~")? => {
                return self.read_inner_fence(cursor, &lookahead, byte, sink);
            }
            b'\\' => match lookahead.byte(at + 1)? {
                // An escaped quote, read below.
                Some(b'"') => {}
                Some(b'n' | b'r' | b't') => {
                    let texts = ("an escaped line break between tokens", "read as white space");
                    self.report_repair(cursor, (at, at + 2), &rules::ESCAPED_TEXT, texts, sink);
                    self.is_after_newline = true;
                    cursor.offset += 2;
                    return Ok(());
                }
                _ => return self.skip_stray(cursor, 1, "a backslash between tokens", sink),
            },
            b'=' if self.expected == ExpectedToken::Colon && self.is_equals_colon(&lookahead, at)? => {
                let width = 1 + usize::from(lookahead.byte(at + 1)? == Some(b'>'));
                let texts = ("an equals sign after a key", "read as a colon");
                self.report_repair(cursor, (at, at + width), &rules::MISSING_COLON, texts, sink);
                self.expected = ExpectedToken::Value;
                self.is_after_newline = false;
                cursor.offset += width;
                return Ok(());
            }
            b';' => return self.skip_stray(cursor, 1, "a semicolon between tokens", sink),
            0..=0x1F | 0x7F => return self.skip_stray(cursor, 1, "a control character between tokens", sink),
            // A `+` that is not the sign of a number, as it is in `+1`, `+.5` and `+Infinity`.
            b'+' if !lookahead
                .byte(at + 1)?
                .is_some_and(|next_byte| next_byte.is_ascii_digit() || b".I".contains(&next_byte)) =>
            {
                return self.skip_stray(cursor, 1, "a plus sign between tokens", sink);
            }
            _ => {}
        }
        if let Some((quote, length)) = json::quote_at(bytes, at) {
            self.open_string(cursor, quote, length, sink);
            return Ok(());
        }
        self.read_word(cursor, sink)
    }

    /// Skips `length` bytes that are no token, and reports them.
    fn skip_stray<S: JsonSink + ?Sized>(
        &mut self,
        cursor: &mut TextCursor<'_>,
        length: usize,
        message: &str,
        sink: &mut S,
    ) -> Result<(), MissingInput> {
        let span = (cursor.offset, cursor.offset + length);
        self.report_repair(cursor, span, &rules::STRAY_TEXT, (message, "left it out"), sink);
        cursor.offset += length;
        Ok(())
    }

    /// Reports a full-width mark once, although it may be read again when more text arrives.
    pub(super) fn report_odd_mark<S: JsonSink + ?Sized>(
        &mut self,
        cursor: &TextCursor<'_>,
        at: usize,
        length: usize,
        sink: &mut S,
    ) {
        let end = self.base_place.offset + at + length;
        if std::mem::replace(&mut self.odd_mark_end, end) == end {
            return;
        }
        let texts = ("a full-width punctuation mark", "read as its ASCII form");
        self.report_repair(cursor, (at, at + length), &rules::PUNCTUATION, texts, sink);
    }

    /// Begins a comment whose delimiter has `length` bytes.
    fn begin_comment<S: JsonSink + ?Sized>(
        &mut self,
        cursor: &mut TextCursor<'_>,
        is_line_comment: bool,
        length: usize,
        sink: &mut S,
    ) {
        self.report_stray_text(sink);
        // The comment is reported when its end is known.
        self.value_end.is_repaired = true;
        self.save_places(cursor.text);
        self.comment_place = Some(self.place_at(cursor.text, cursor.offset));
        self.lexeme = if is_line_comment { OpenLexeme::LineComment } else { OpenLexeme::BlockComment };
        cursor.offset += length;
    }

    /// Skips the text of a comment, as far as it has arrived.
    pub(super) fn skip_comment<S: JsonSink + ?Sized>(
        &mut self,
        cursor: &mut TextCursor<'_>,
        sink: &mut S,
    ) -> ReadFlow {
        let unread = &cursor.bytes()[cursor.offset..];
        let end = if self.lexeme == OpenLexeme::LineComment {
            memchr::memchr(b'\n', unread)
        } else {
            memchr::memmem::find(unread, b"*/").map(|at| at + 2)
        };
        match end {
            Some(end) => cursor.offset += end,
            None if cursor.is_last => cursor.offset += unread.len(),
            None => {
                // The last byte may be the first half of `*/`.
                let has_half_end = self.lexeme == OpenLexeme::BlockComment && unread.last() == Some(&b'*');
                cursor.offset += unread.len() - usize::from(has_half_end);
                return ReadFlow::NeedsInput;
            }
        }
        if let Some(place) = self.comment_place.take() {
            let length = self.base_place.offset + cursor.offset - place.offset;
            self.report_repair_at(place, length, &rules::COMMENT, ("a comment", "left it out"), sink);
        }
        self.lexeme = OpenLexeme::None;
        ReadFlow::Continue
    }

    /// Returns whether the value is in a fence of this character, a backtick or a tilde.
    fn is_in_fence(&self, byte: u8) -> bool {
        self.allows_text() && self.surrounding_text.fence.is_some_and(|(fence, _)| fence.mark == byte)
    }

    /// Handles a fence between tokens. If the value is in a fence of the same kind, this fence ends it. A
    /// fence also ends a value outside of fences if an object with a sought key follows. Any other fence is
    /// dropped, together with its language.
    fn read_inner_fence<S: JsonSink + ?Sized>(
        &mut self,
        cursor: &mut TextCursor<'_>,
        lookahead: &Lookahead<'_>,
        byte: u8,
        sink: &mut S,
    ) -> Result<(), MissingInput> {
        if self.is_in_fence(byte) {
            self.close_all(cursor, "the fence ends before the value does", sink);
            return Ok(());
        }
        let mut end = cursor.offset + 3;
        while lookahead.byte(end)? == Some(b'`') {
            end += 1;
        }
        let language = lookahead.word_at(end)?;
        if self.surrounding_text.fence.is_none() && self.allows_text() {
            let (next, has_newline) = lookahead.skip_space(end + language.len())?;
            if has_newline
                && lookahead.mark_at(next)? == Some(b'{')
                && self.is_sought_key(cursor, next + 1)?
            {
                self.close_all(cursor, "a fence begins before the value ends", sink);
                return Ok(());
            }
        }
        self.skip_stray(cursor, end + language.len() - cursor.offset, "a fence between tokens", sink)
    }

    /// Reads the bracket, comma or colon at the cursor, which is `mark` in ASCII and has `length` bytes.
    fn read_punctuation<S: JsonSink + ?Sized>(
        &mut self,
        cursor: &mut TextCursor<'_>,
        mark: u8,
        length: usize,
        sink: &mut S,
    ) -> Result<(), MissingInput> {
        let at = cursor.offset;
        match mark {
            b',' => self.read_comma(cursor, at, length, sink),
            b':' => self.read_colon(cursor, at, length, sink),
            b'{' | b'[' | b'(' => return self.read_opening(cursor, mark, length, sink),
            _ => return self.read_closing(cursor, mark, length, sink),
        }
        self.is_after_newline = false;
        cursor.offset += length;
        Ok(())
    }

    fn read_comma<S: JsonSink + ?Sized>(
        &mut self,
        cursor: &TextCursor<'_>,
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
                self.insert_null(cursor, at, sink);
                self.expected = ExpectedToken::Item;
                (self.comma_spot, self.comma_length) = (TextSpot::Current(at), length);
            }
            _ if self.stack.is_empty() => {
                let texts = ("a comma outside of the value", "left it out");
                self.report_repair(cursor, span, &rules::EXTRA_COMMA, texts, sink);
            }
            ExpectedToken::FirstItemOrEnd => {
                let texts = ("a comma before the first item", "left it out");
                self.report_repair(cursor, span, &rules::EXTRA_COMMA, texts, sink);
            }
            _ => {
                self.report_repair(cursor, span, &rules::EXTRA_COMMA, ("a second comma", "left it out"), sink)
            }
        }
    }

    fn read_colon<S: JsonSink + ?Sized>(
        &mut self,
        cursor: &TextCursor<'_>,
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
            self.report_repair(cursor, span, &rules::EXTRA_COLON, texts, sink);
            self.expected = ExpectedToken::Item;
            (self.comma_spot, self.comma_length) = (TextSpot::Current(at), length);
        } else {
            let texts = ("a colon that follows no key", "left it out");
            self.report_repair(cursor, span, &rules::EXTRA_COLON, texts, sink);
        }
    }

    /// Inserts `null` for a missing value.
    pub(super) fn insert_null<S: JsonSink + ?Sized>(
        &mut self,
        cursor: &TextCursor<'_>,
        at: usize,
        sink: &mut S,
    ) {
        let texts = ("a key without value", "gave it `null`");
        self.report_repair(cursor, (at, at), &rules::MISSING_VALUE, texts, sink);
        sink.event(JsonEvent::Null);
        self.expected = ExpectedToken::CommaOrEnd;
    }

    /// Begins an item at `at` and returns its role; repairs a missing comma or colon before the item.
    pub(super) fn begin_item<S: JsonSink + ?Sized>(
        &mut self,
        cursor: &TextCursor<'_>,
        at: usize,
        sink: &mut S,
    ) -> ItemRole {
        self.report_stray_text(sink);
        let is_in_object = match self.stack.last() {
            None => {
                self.begin_value(cursor, at, sink);
                return ItemRole::Value;
            }
            Some(frame) => *frame == JsonFrame::Object,
        };
        match self.expected {
            ExpectedToken::FirstItemOrEnd | ExpectedToken::Item => {}
            ExpectedToken::Value => return ItemRole::Value,
            ExpectedToken::Colon => {
                let texts = ("no colon after the key", "added one");
                self.report_repair(cursor, (at, at), &rules::MISSING_COLON, texts, sink);
                self.expected = ExpectedToken::Value;
                return ItemRole::Value;
            }
            ExpectedToken::CommaOrEnd => {
                let texts = ("no comma between two items", "added one");
                // After a bracket there is only one reading; after a word or a string there may be others.
                let first_byte = cursor.bytes().get(at).copied().unwrap_or_default();
                let is_certain = self.is_after_bracket
                    && matches!((is_in_object, first_byte), (true, b'"') | (false, b'{' | b'['));
                let rule = match is_certain {
                    true => RepairRule::certain(&rules::MISSING_COMMA),
                    false => RepairRule::from(&rules::MISSING_COMMA),
                };
                self.report_repair(cursor, (at, at), rule, texts, sink);
                self.expected = ExpectedToken::Item;
                (self.comma_spot, self.comma_length) = (TextSpot::Current(at), 1);
            }
        }
        if is_in_object { ItemRole::Key } else { ItemRole::Value }
    }
}
