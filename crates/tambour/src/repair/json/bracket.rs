//! Brackets: opening and closing ones, and repairs of missing or wrong ones.

use crate::repair::rules;

use super::event::{JsonEvent, JsonSink};
use super::lookahead::{KeyCheck, Lookahead, MissingInput, WINDOW};
use super::reader::JsonReader;
use super::state::{ExpectedToken, JsonFrame, OpenLexeme, TextCursor, TextSpot};

impl JsonReader {
    /// Opens the bracket `mark` at `at`; returns false at the depth limit, where the value is closed instead.
    pub(super) fn open_bracket<S: JsonSink + ?Sized>(
        &mut self,
        cursor: &TextCursor<'_>,
        at: usize,
        mark: u8,
        sink: &mut S,
    ) -> bool {
        if self.stack.len() >= self.max_depth {
            self.close_at_depth_limit(cursor, at, sink);
            return false;
        }
        let (frame, event) = match mark {
            b'{' => (JsonFrame::Object, JsonEvent::ObjectStart),
            b'[' => (JsonFrame::Array, JsonEvent::ArrayStart),
            _ => (JsonFrame::Tuple, JsonEvent::ArrayStart),
        };
        self.stack.push(frame);
        self.expected = ExpectedToken::FirstItemOrEnd;
        self.is_after_newline = false;
        sink.bracket(self.spot_place(cursor.text, TextSpot::Current(at)));
        sink.event(event);
        true
    }

    /// Reads `{`, `[` or `(` between tokens.
    pub(super) fn read_opening<S: JsonSink + ?Sized>(
        &mut self,
        cursor: &mut TextCursor<'_>,
        mark: u8,
        length: usize,
        sink: &mut S,
    ) -> Result<(), MissingInput> {
        let at = cursor.offset;
        if mark == b'{'
            && self.is_after_newline
            && self.suspicion.is_in_sentence
            && self.is_misplaced()
            && self.is_sought_key(cursor, at + length)?
        {
            self.close_all(cursor, "another value begins before this one ends", sink);
            return Ok(());
        }
        let expects_key = self.stack.last() == Some(&JsonFrame::Object)
            && matches!(
                self.expected,
                ExpectedToken::FirstItemOrEnd | ExpectedToken::Item | ExpectedToken::CommaOrEnd
            );
        if expects_key {
            let innermost_array = self.stack.iter().rposition(|&frame| frame != JsonFrame::Object);
            match innermost_array {
                // `[{"a":1, {"b":2}]`: the objects before the bracket were not closed.
                Some(array) if self.expected != ExpectedToken::FirstItemOrEnd && mark != b'(' => {
                    while self.stack.len() > array + 1 {
                        self.close_innermost(cursor, at, sink);
                    }
                    if self.expected == ExpectedToken::CommaOrEnd {
                        self.expected = ExpectedToken::Item;
                    }
                }
                None if mark == b'{'
                    && self.is_after_newline
                    && self.allows_text()
                    && self.expected == ExpectedToken::CommaOrEnd =>
                {
                    self.close_all(cursor, "another value begins before this one ends", sink);
                    return Ok(());
                }
                _ => {
                    let texts = ("a bracket where a key belongs", "left it out");
                    self.report_repair(cursor, (at, at + length), &rules::EXTRA_BRACKET, texts, sink);
                    cursor.offset += length;
                    return Ok(());
                }
            }
        }
        let is_outermost = self.stack.is_empty();
        self.begin_item(cursor, at, sink);
        if is_outermost && length > 1 {
            self.report_odd_mark(cursor, at, length, sink);
        }
        if mark == b'(' {
            let texts = ("round brackets around items", "read as an array");
            self.report_repair(cursor, (at, at + length), &rules::WRAPPER, texts, sink);
        }
        if self.open_bracket(cursor, at, mark, sink) {
            cursor.offset += length;
        }
        Ok(())
    }

    /// Returns whether an object at this place is more likely a separate value than part of the current one.
    fn is_misplaced(&self) -> bool {
        let is_expected = match self.stack.last() {
            Some(JsonFrame::Object) => self.expected == ExpectedToken::Value,
            Some(_) => matches!(self.expected, ExpectedToken::FirstItemOrEnd | ExpectedToken::Item),
            None => true,
        };
        let is_in_list = self.stack.first().is_some_and(|frame| *frame != JsonFrame::Object);
        let is_doubtful = !is_expected || self.suspicion.is_damaged;
        // A list that has objects already may have more of them.
        let is_list_of_objects = is_in_list && self.suspicion.has_object;
        is_doubtful && !is_list_of_objects
    }

    /// Returns whether a sought key ([`JsonReader::with_sought_keys`]) is at `at`, with its colon.
    pub(super) fn is_sought_key(&mut self, cursor: &TextCursor<'_>, at: usize) -> Result<bool, MissingInput> {
        if self.sought_keys.is_empty() {
            return Ok(false);
        }
        self.work += WINDOW as u64;
        let lookahead = Lookahead::new(cursor.bytes(), at, cursor.is_last);
        let (at, _) = lookahead.skip_space(at)?;
        let word_start = at + lookahead.quote_at(at)?.map_or(0, |(_, length)| length);
        let word = lookahead.word_at(word_start)?;
        if !self.sought_keys.iter().any(|key| key.as_bytes() == word) {
            return Ok(false);
        }
        Ok(lookahead.check_key(at, 1)? == KeyCheck::Yes)
    }

    /// Reads `}`, `]` or `)` between tokens.
    pub(super) fn read_closing<S: JsonSink + ?Sized>(
        &mut self,
        cursor: &mut TextCursor<'_>,
        mark: u8,
        length: usize,
        sink: &mut S,
    ) -> Result<(), MissingInput> {
        let at = cursor.offset;
        let span = (at, at + length);
        let is_closed_by_mark = |frame: &JsonFrame| match frame {
            JsonFrame::Object => mark == b'}',
            JsonFrame::Array => mark == b']',
            JsonFrame::Tuple => mark == b')',
        };
        // Number of open brackets inside the bracket that `mark` closes.
        let inner_count = self.stack.iter().rev().position(is_closed_by_mark);
        if inner_count != Some(0) {
            if mark == b')' && self.open_calls > 0 {
                self.open_calls -= 1;
                cursor.offset += length;
                return Ok(());
            }
            self.work += WINDOW as u64;
            // A bracket that does not match the innermost one closes an outer bracket that it matches,
            // replaces the right one, or is surplus.
            let lookahead = Lookahead::new(cursor.bytes(), at + length, cursor.is_last);
            let (next, _) = lookahead.skip_space(at + length)?;
            let next_mark = lookahead.mark_at(next)?;
            let item_start = if next_mark == Some(b',') { lookahead.skip_space(next + 1)?.0 } else { next };
            let is_key_next = next_mark == Some(b',') && lookahead.check_key(item_start, 1)? == KeyCheck::Yes;
            let parent = self.stack.len().checked_sub(2).map(|parent| self.stack[parent]);
            let is_replacement = match inner_count {
                // `mark` matches no open bracket. It is surplus if it is round, or if only one bracket is
                // open and the value continues. Otherwise it replaces the right bracket.
                None => {
                    mark != b')' && (self.stack.len() > 1 || !matches!(next_mark, Some(b',' | b']' | b'}')))
                }
                // `{"a": [1}, "b": 2}`: a key follows, so the object has not ended.
                Some(_) => matches!(mark, b'}' | b']') && is_key_next && parent == Some(JsonFrame::Object),
            };
            if self.stack.is_empty() || inner_count.is_none() && !is_replacement {
                let texts = ("a closing bracket too many", "left it out");
                self.report_repair(cursor, span, &rules::EXTRA_BRACKET, texts, sink);
                cursor.offset += length;
                return Ok(());
            }
            if is_replacement {
                let texts = ("a closing bracket of the wrong kind", "read as the right one");
                self.report_repair(cursor, span, &rules::EXTRA_BRACKET, texts, sink);
            } else {
                for _ in 0..inner_count.unwrap_or(0) {
                    self.close_innermost(cursor, at, sink);
                }
            }
        }
        self.repair_before_closing(cursor, at, sink);
        cursor.offset += length;
        self.pop_frame(cursor, cursor.offset, sink);
        Ok(())
    }

    /// Repairs an unfinished item before a closing bracket.
    fn repair_before_closing<S: JsonSink + ?Sized>(
        &mut self,
        cursor: &TextCursor<'_>,
        at: usize,
        sink: &mut S,
    ) {
        match self.expected {
            ExpectedToken::Item => {
                let place = match self.comma_spot {
                    TextSpot::Current(comma) => self.place_at(cursor.text, comma),
                    TextSpot::Known(place) => place,
                };
                let texts = ("a comma before a closing bracket", "left it out");
                self.report_repair_at(place, self.comma_length, &rules::TRAILING_COMMA, texts, sink);
            }
            ExpectedToken::Colon | ExpectedToken::Value => self.insert_null(cursor, at, sink),
            ExpectedToken::FirstItemOrEnd | ExpectedToken::CommaOrEnd => {}
        }
    }

    /// Closes the innermost bracket; `after` is the offset after its closing bracket.
    fn pop_frame<S: JsonSink + ?Sized>(&mut self, cursor: &TextCursor<'_>, after: usize, sink: &mut S) {
        sink.bracket(self.spot_place(cursor.text, TextSpot::Current(after)));
        match self.stack.pop() {
            Some(JsonFrame::Object) => {
                self.suspicion.has_object = true;
                sink.event(JsonEvent::ObjectEnd);
            }
            Some(_) => sink.event(JsonEvent::ArrayEnd),
            None => {}
        }
        self.finish_item(cursor, after, sink);
        self.is_after_bracket = true;
    }

    /// Closes the innermost value, whose closing bracket is missing.
    fn close_innermost<S: JsonSink + ?Sized>(&mut self, cursor: &TextCursor<'_>, at: usize, sink: &mut S) {
        let texts = match self.stack.last() {
            Some(JsonFrame::Object) => ("an object is not closed", "added `}`"),
            _ => ("an array is not closed", "added `]`"),
        };
        self.repair_before_closing(cursor, at, sink);
        self.report_repair(cursor, (at, at), &rules::MISSING_BRACKET, texts, sink);
        self.pop_frame(cursor, at, sink);
    }

    /// Closes all open brackets at the current place; `reason` says why the value ends there.
    pub(super) fn close_all<S: JsonSink + ?Sized>(
        &mut self,
        cursor: &TextCursor<'_>,
        reason: &str,
        sink: &mut S,
    ) {
        let at = cursor.offset;
        if self.stack.is_empty() {
            return;
        }
        self.report_stray_text(sink);
        self.value_end.is_auto_closed = true;
        self.surrounding_text.is_line_start = self.is_after_newline;
        self.report_repair(cursor, (at, at), &rules::MISSING_BRACKET, (reason, "closed the value"), sink);
        while !self.stack.is_empty() {
            if matches!(self.expected, ExpectedToken::Colon | ExpectedToken::Value) {
                self.insert_null(cursor, at, sink);
            }
            self.pop_frame(cursor, at, sink);
        }
    }

    /// Closes all open brackets at the end of the text.
    pub(super) fn close_at_end<S: JsonSink + ?Sized>(&mut self, cursor: &TextCursor<'_>, sink: &mut S) {
        self.close_all(cursor, "the text ends before the value does", sink);
    }

    /// Ends the value at the depth limit. The rest of the line is read as text, or skipped in a document.
    pub(super) fn close_at_depth_limit<S: JsonSink + ?Sized>(
        &mut self,
        cursor: &TextCursor<'_>,
        at: usize,
        sink: &mut S,
    ) {
        let reason = format!("more than {} brackets are open", self.max_depth);
        let texts = (reason.as_str(), "closed the value and read the rest of the line as text");
        self.value_end.is_auto_closed = true;
        self.report_repair(cursor, (at, at), &rules::LIMIT_EXCEEDED, texts, sink);
        if self.stack.is_empty() {
            // The limit is 0: `null` stands for the value.
            sink.event(JsonEvent::Null);
            self.end_value(cursor, at, sink);
        }
        while !self.stack.is_empty() {
            if matches!(self.expected, ExpectedToken::Colon | ExpectedToken::Value) {
                sink.event(JsonEvent::Null);
            }
            self.pop_frame(cursor, at, sink);
        }
        if self.allows_text() {
            self.surrounding_text.skips_line = true;
        } else {
            // Skipped like a comment, but without a report of one, since `comment_place` is `None`.
            self.lexeme = OpenLexeme::LineComment;
        }
    }
}
