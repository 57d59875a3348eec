//! Brackets: opening and closing ones, and repairs of missing or wrong ones.

use crate::repair::rules;

use super::event::{JsonEvent, JsonSink};
use super::lookahead::{KeyCheck, Lookahead, MissingInput, WINDOW};
use super::reader::JsonReader;
use super::state::{ExpectedToken, JsonFrame, OpenLexeme, TextCursor, TextSpot};

impl JsonReader {
    /// Opens a bracket, unless that exceeds the depth limit.
    pub(super) fn open_bracket<S: JsonSink + ?Sized>(
        &mut self,
        c: &TextCursor<'_>,
        at: usize,
        mark: u8,
        sink: &mut S,
    ) -> bool {
        if self.stack.len() >= self.max_depth {
            self.close_at_depth_limit(c, at, sink);
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
        sink.bracket(self.spot_place(c.text, TextSpot::Current(at)));
        sink.event(event);
        true
    }

    /// Reads `{`, `[` or `(` between tokens.
    pub(super) fn read_opening<S: JsonSink + ?Sized>(
        &mut self,
        c: &mut TextCursor<'_>,
        mark: u8,
        length: usize,
        sink: &mut S,
    ) -> Result<(), MissingInput> {
        let at = c.offset;
        if mark == b'{'
            && self.is_after_newline
            && self.suspicion.is_in_sentence
            && self.is_misplaced()
            && self.is_sought_key(c, at + length)?
        {
            self.close_all(c, "another value begins before this one ends", sink);
            return Ok(());
        }
        let keys = self.stack.last() == Some(&JsonFrame::Object)
            && matches!(
                self.expected,
                ExpectedToken::FirstItemOrEnd | ExpectedToken::Item | ExpectedToken::CommaOrEnd
            );
        if keys {
            let array = self.stack.iter().rposition(|&frame| frame != JsonFrame::Object);
            match array {
                // `[{"a":1, {"b":2}]`
                Some(array) if self.expected != ExpectedToken::FirstItemOrEnd && mark != b'(' => {
                    while self.stack.len() > array + 1 {
                        self.close_innermost(c, at, sink);
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
                    self.close_all(c, "another value begins before this one ends", sink);
                    return Ok(());
                }
                _ => {
                    let texts = ("a bracket where a key belongs", "left it out");
                    self.report_repair(c, (at, at + length), &rules::EXTRA_BRACKET, texts, sink);
                    c.offset += length;
                    return Ok(());
                }
            }
        }
        let is_outermost = self.stack.is_empty();
        self.begin_item(c, at, sink);
        if is_outermost && length > 1 {
            self.report_odd_mark(c, at, length, sink);
        }
        if mark == b'(' {
            let texts = ("round brackets around items", "read as an array");
            self.report_repair(c, (at, at + length), &rules::WRAPPER, texts, sink);
        }
        if self.open_bracket(c, at, mark, sink) {
            c.offset += length;
        }
        Ok(())
    }

    /// Returns whether an object at this place is more likely a value of its own than part of the current
    /// one.
    fn is_misplaced(&self) -> bool {
        let is_expected = match self.stack.last() {
            Some(JsonFrame::Object) => self.expected == ExpectedToken::Value,
            Some(_) => matches!(self.expected, ExpectedToken::FirstItemOrEnd | ExpectedToken::Item),
            None => true,
        };
        let is_in_list = self.stack.first().is_some_and(|frame| *frame != JsonFrame::Object);
        let is_doubtful = !is_expected || self.suspicion.is_damaged;
        let is_list_of_objects = is_in_list && self.suspicion.has_object;
        is_doubtful && !is_list_of_objects
    }

    /// Returns whether one of the sought keys is at `at`, with a colon.
    pub(super) fn is_sought_key(&mut self, c: &TextCursor<'_>, at: usize) -> Result<bool, MissingInput> {
        if self.sought_keys.is_empty() {
            return Ok(false);
        }
        self.work += WINDOW as u64;
        let p = Lookahead::new(c.bytes(), at, c.is_last);
        let (at, _) = p.skip_space(at)?;
        let from = at + p.quote_at(at)?.map_or(0, |(_, length)| length);
        let word = p.word_at(from)?;
        if !self.sought_keys.iter().any(|key| key.as_bytes() == word) {
            return Ok(false);
        }
        Ok(p.check_key(at, 1)? == KeyCheck::Yes)
    }

    /// Reads `}`, `]` or `)` between tokens.
    pub(super) fn read_closing<S: JsonSink + ?Sized>(
        &mut self,
        c: &mut TextCursor<'_>,
        mark: u8,
        length: usize,
        sink: &mut S,
    ) -> Result<(), MissingInput> {
        let at = c.offset;
        let span = (at, at + length);
        let is_closed = |frame: &JsonFrame| match frame {
            JsonFrame::Object => mark == b'}',
            JsonFrame::Array => mark == b']',
            JsonFrame::Tuple => mark == b')',
        };
        let levels = self.stack.iter().rev().position(is_closed);
        if levels != Some(0) {
            if mark == b')' && self.open_calls > 0 {
                self.open_calls -= 1;
                c.offset += length;
                return Ok(());
            }
            self.work += WINDOW as u64;
            // A wrong bracket closes the bracket it matches, replaces the right one, or is surplus.
            let p = Lookahead::new(c.bytes(), at + length, c.is_last);
            let (next, _) = p.skip_space(at + length)?;
            let next_mark = p.mark_at(next)?;
            let after = if next_mark == Some(b',') { p.skip_space(next + 1)?.0 } else { next };
            let is_key_next = next_mark == Some(b',') && p.check_key(after, 1)? == KeyCheck::Yes;
            let parent = self.stack.len().checked_sub(2).map(|parent| self.stack[parent]);
            let is_replacement = match levels {
                None => {
                    mark != b')' && (self.stack.len() > 1 || !matches!(next_mark, Some(b',' | b']' | b'}')))
                }
                // `{"a": [1}, "b": 2}`: a key follows, so the object has not ended.
                Some(_) => {
                    mark == b'}' && is_key_next && parent == Some(JsonFrame::Object)
                        || mark == b']'
                            && next_mark == Some(b',')
                            && is_key_next
                            && parent == Some(JsonFrame::Object)
                }
            };
            if self.stack.is_empty() || levels.is_none() && !is_replacement {
                let texts = ("a closing bracket too many", "left it out");
                self.report_repair(c, span, &rules::EXTRA_BRACKET, texts, sink);
                c.offset += length;
                return Ok(());
            }
            if is_replacement {
                let texts = ("a closing bracket of the wrong kind", "read as the right one");
                self.report_repair(c, span, &rules::EXTRA_BRACKET, texts, sink);
            } else {
                for _ in 0..levels.unwrap_or(0) {
                    self.close_innermost(c, at, sink);
                }
            }
        }
        self.repair_before_closing(c, at, sink);
        c.offset += length;
        self.pop_frame(c, c.offset, sink);
        Ok(())
    }

    /// Repairs an unfinished item before a closing bracket.
    fn repair_before_closing<S: JsonSink + ?Sized>(&mut self, c: &TextCursor<'_>, at: usize, sink: &mut S) {
        match self.expected {
            ExpectedToken::Item => {
                let place = match self.comma_spot {
                    TextSpot::Current(comma) => self.place_at(c.text, comma),
                    TextSpot::Known(place) => place,
                };
                let texts = ("a comma before a closing bracket", "left it out");
                self.report_repair_at(place, self.comma_length, &rules::TRAILING_COMMA, texts, sink);
            }
            ExpectedToken::Colon | ExpectedToken::Value => self.insert_null(c, at, sink),
            ExpectedToken::FirstItemOrEnd | ExpectedToken::CommaOrEnd => {}
        }
    }

    fn pop_frame<S: JsonSink + ?Sized>(&mut self, c: &TextCursor<'_>, after: usize, sink: &mut S) {
        sink.bracket(self.spot_place(c.text, TextSpot::Current(after)));
        match self.stack.pop() {
            Some(JsonFrame::Object) => {
                self.suspicion.has_object = true;
                sink.event(JsonEvent::ObjectEnd);
            }
            Some(_) => sink.event(JsonEvent::ArrayEnd),
            None => {}
        }
        self.finish_item(c, after, sink);
        self.is_after_bracket = true;
    }

    /// Adds the missing bracket of the innermost value.
    fn close_innermost<S: JsonSink + ?Sized>(&mut self, c: &TextCursor<'_>, at: usize, sink: &mut S) {
        let texts = match self.stack.last() {
            Some(JsonFrame::Object) => ("an object is not closed", "added `}`"),
            _ => ("an array is not closed", "added `]`"),
        };
        self.repair_before_closing(c, at, sink);
        self.report_repair(c, (at, at), &rules::MISSING_BRACKET, texts, sink);
        self.pop_frame(c, at, sink);
    }

    /// Closes all open brackets at the current place, where the value is truncated.
    pub(super) fn close_all<S: JsonSink + ?Sized>(&mut self, c: &TextCursor<'_>, reason: &str, sink: &mut S) {
        let at = c.offset;
        if self.stack.is_empty() {
            return;
        }
        self.report_stray_text(sink);
        self.value_end.is_auto_closed = true;
        self.surrounding_text.is_line_start = self.is_after_newline;
        self.report_repair(c, (at, at), &rules::MISSING_BRACKET, (reason, "closed the value"), sink);
        while !self.stack.is_empty() {
            if matches!(self.expected, ExpectedToken::Colon | ExpectedToken::Value) {
                self.insert_null(c, at, sink);
            }
            self.pop_frame(c, at, sink);
        }
    }

    pub(super) fn close_at_end<S: JsonSink + ?Sized>(&mut self, c: &TextCursor<'_>, sink: &mut S) {
        self.close_all(c, "the text ends before the value does", sink);
    }

    /// Ends the value at the depth limit; the rest of the line is text.
    pub(super) fn close_at_depth_limit<S: JsonSink + ?Sized>(
        &mut self,
        c: &TextCursor<'_>,
        at: usize,
        sink: &mut S,
    ) {
        let reason = format!("more than {} brackets are open", self.max_depth);
        let texts = (reason.as_str(), "closed the value and read the rest of the line as text");
        self.value_end.is_auto_closed = true;
        self.report_repair(c, (at, at), &rules::LIMIT_EXCEEDED, texts, sink);
        if self.stack.is_empty() {
            // Not even one bracket is allowed.
            sink.event(JsonEvent::Null);
            self.end_value(c, at, sink);
        }
        while !self.stack.is_empty() {
            if matches!(self.expected, ExpectedToken::Colon | ExpectedToken::Value) {
                sink.event(JsonEvent::Null);
            }
            self.pop_frame(c, at, sink);
        }
        if self.allows_text() {
            self.surrounding_text.skips_line = true;
        } else {
            self.lexeme = OpenLexeme::LineComment;
        }
    }
}
