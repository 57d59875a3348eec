//! Brackets: opening and closing ones, and repairs of missing or wrong ones.

use crate::repair::rules;

use super::event::{JsonEvent, JsonSink};
use super::peek::{Key, More, Peek, WINDOW};
use super::reader::Reader;
use super::state::{Cursor, Expect, Frame, Lexeme, Spot};

impl Reader {
    /// Opens a bracket, unless that exceeds the depth limit.
    pub(super) fn open_bracket<S: JsonSink + ?Sized>(
        &mut self,
        c: &Cursor<'_>,
        at: usize,
        mark: u8,
        sink: &mut S,
    ) -> bool {
        if self.stack.len() >= self.depth {
            self.too_deep(c, at, sink);
            return false;
        }
        let (frame, event) = match mark {
            b'{' => (Frame::Object, JsonEvent::ObjectStart),
            b'[' => (Frame::Array, JsonEvent::ArrayStart),
            _ => (Frame::Tuple, JsonEvent::ArrayStart),
        };
        self.stack.push(frame);
        self.expect = Expect::First;
        self.newline = false;
        sink.bracket(self.marked(c.text, Spot::At(at)));
        sink.event(event);
        true
    }

    /// Reads `{`, `[` or `(` between tokens.
    pub(super) fn opening<S: JsonSink + ?Sized>(
        &mut self,
        c: &mut Cursor<'_>,
        mark: u8,
        length: usize,
        sink: &mut S,
    ) -> Result<(), More> {
        let at = c.at;
        if mark == b'{'
            && self.newline
            && self.suspicion.loose
            && self.misfits()
            && self.sought(c, at + length)?
        {
            self.close_all(c, "another value begins before this one ends", sink);
            return Ok(());
        }
        let keys = self.stack.last() == Some(&Frame::Object)
            && matches!(self.expect, Expect::First | Expect::Item | Expect::Next);
        if keys {
            let array = self.stack.iter().rposition(|&frame| frame != Frame::Object);
            match array {
                // `[{"a":1, {"b":2}]`
                Some(array) if self.expect != Expect::First && mark != b'(' => {
                    while self.stack.len() > array + 1 {
                        self.close_for(c, at, sink);
                    }
                    if self.expect == Expect::Next {
                        self.expect = Expect::Item;
                    }
                }
                None if mark == b'{' && self.newline && self.chatty() && self.expect == Expect::Next => {
                    self.close_all(c, "another value begins before this one ends", sink);
                    return Ok(());
                }
                _ => {
                    let what = ("a bracket where a key belongs", "left it out");
                    self.mend(c, (at, at + length), &rules::EXTRA_BRACKET, what, sink);
                    c.at += length;
                    return Ok(());
                }
            }
        }
        let top = self.stack.is_empty();
        self.slot(c, at, sink);
        if top && length > 1 {
            self.odd_mark(c, at, length, sink);
        }
        if mark == b'(' {
            let what = ("round brackets around items", "read as an array");
            self.mend(c, (at, at + length), &rules::WRAPPER, what, sink);
        }
        if self.open_bracket(c, at, mark, sink) {
            c.at += length;
        }
        Ok(())
    }

    /// Returns whether an object at this place is more likely a value of its own than part of the current
    /// one.
    fn misfits(&self) -> bool {
        let fits = match self.stack.last() {
            Some(Frame::Object) => self.expect == Expect::Value,
            Some(_) => matches!(self.expect, Expect::First | Expect::Item),
            None => true,
        };
        let list = self.stack.first().is_some_and(|frame| *frame != Frame::Object);
        let doubtful = !fits || self.suspicion.broken;
        let holds = list && self.suspicion.holds;
        doubtful && !holds
    }

    /// Returns whether one of the sought keys is at `at`, with a colon.
    pub(super) fn sought(&mut self, c: &Cursor<'_>, at: usize) -> Result<bool, More> {
        if self.keys.is_empty() {
            return Ok(false);
        }
        self.work += WINDOW as u64;
        let p = Peek::new(c.bytes(), at, c.last);
        let (at, _) = p.space(at)?;
        let from = at + p.quote(at)?.map_or(0, |(_, length)| length);
        let word = p.word(from)?;
        if !self.keys.iter().any(|key| key.as_bytes() == word) {
            return Ok(false);
        }
        Ok(p.key(at, 1)? == Key::Yes)
    }

    /// Reads `}`, `]` or `)` between tokens.
    pub(super) fn closing<S: JsonSink + ?Sized>(
        &mut self,
        c: &mut Cursor<'_>,
        mark: u8,
        length: usize,
        sink: &mut S,
    ) -> Result<(), More> {
        let at = c.at;
        let span = (at, at + length);
        let fits = |frame: &Frame| match frame {
            Frame::Object => mark == b'}',
            Frame::Array => mark == b']',
            Frame::Tuple => mark == b')',
        };
        let levels = self.stack.iter().rev().position(fits);
        if levels != Some(0) {
            if mark == b')' && self.calls > 0 {
                self.calls -= 1;
                c.at += length;
                return Ok(());
            }
            self.work += WINDOW as u64;
            // A wrong bracket closes the bracket it matches, replaces the right one, or is surplus.
            let p = Peek::new(c.bytes(), at + length, c.last);
            let (next, _) = p.space(at + length)?;
            let goes_on = p.mark(next)?;
            let after = if goes_on == Some(b',') { p.space(next + 1)?.0 } else { next };
            let key = goes_on == Some(b',') && p.key(after, 1)? == Key::Yes;
            let parent = self.stack.len().checked_sub(2).map(|parent| self.stack[parent]);
            let instead = match levels {
                None => {
                    mark != b')' && (self.stack.len() > 1 || !matches!(goes_on, Some(b',' | b']' | b'}')))
                }
                // `{"a": [1}, "b": 2}`: a key follows, so the object has not ended.
                Some(_) => {
                    mark == b'}' && key && parent == Some(Frame::Object)
                        || mark == b']' && goes_on == Some(b',') && key && parent == Some(Frame::Object)
                }
            };
            if self.stack.is_empty() || levels.is_none() && !instead {
                let what = ("a closing bracket too many", "left it out");
                self.mend(c, span, &rules::EXTRA_BRACKET, what, sink);
                c.at += length;
                return Ok(());
            }
            if instead {
                let what = ("a closing bracket of the wrong kind", "read as the right one");
                self.mend(c, span, &rules::EXTRA_BRACKET, what, sink);
            } else {
                for _ in 0..levels.unwrap_or(0) {
                    self.close_for(c, at, sink);
                }
            }
        }
        self.before_closing(c, at, sink);
        c.at += length;
        self.pop(c, c.at, sink);
        Ok(())
    }

    /// Repairs an unfinished item before a closing bracket.
    fn before_closing<S: JsonSink + ?Sized>(&mut self, c: &Cursor<'_>, at: usize, sink: &mut S) {
        match self.expect {
            Expect::Item => {
                let place = match self.comma {
                    Spot::At(comma) => self.place_at(c.text, comma),
                    Spot::Was(place) => place,
                };
                let what = ("a comma before a closing bracket", "left it out");
                self.mend_at(place, self.comma_length, &rules::TRAILING_COMMA, what, sink);
            }
            Expect::Colon | Expect::Value => self.null_value(c, at, sink),
            Expect::First | Expect::Next => {}
        }
    }

    fn pop<S: JsonSink + ?Sized>(&mut self, c: &Cursor<'_>, after: usize, sink: &mut S) {
        sink.bracket(self.marked(c.text, Spot::At(after)));
        match self.stack.pop() {
            Some(Frame::Object) => {
                self.suspicion.holds = true;
                sink.event(JsonEvent::ObjectEnd);
            }
            Some(_) => sink.event(JsonEvent::ArrayEnd),
            None => {}
        }
        self.after_value(c, after, sink);
        self.bracketed = true;
    }

    /// Adds the missing bracket of the innermost value.
    fn close_for<S: JsonSink + ?Sized>(&mut self, c: &Cursor<'_>, at: usize, sink: &mut S) {
        let what = match self.stack.last() {
            Some(Frame::Object) => ("an object is not closed", "added `}`"),
            _ => ("an array is not closed", "added `]`"),
        };
        self.before_closing(c, at, sink);
        self.mend(c, (at, at), &rules::MISSING_BRACKET, what, sink);
        self.pop(c, at, sink);
    }

    /// Closes all open brackets at the current place, where the value is truncated.
    pub(super) fn close_all<S: JsonSink + ?Sized>(&mut self, c: &Cursor<'_>, why: &str, sink: &mut S) {
        let at = c.at;
        if self.stack.is_empty() {
            return;
        }
        self.stray_over(sink);
        self.end.closed_by_us = true;
        self.outside.line = self.newline;
        self.mend(c, (at, at), &rules::MISSING_BRACKET, (why, "closed the value"), sink);
        while !self.stack.is_empty() {
            if matches!(self.expect, Expect::Colon | Expect::Value) {
                self.null_value(c, at, sink);
            }
            self.pop(c, at, sink);
        }
    }

    pub(super) fn close_at_end<S: JsonSink + ?Sized>(&mut self, c: &Cursor<'_>, sink: &mut S) {
        self.close_all(c, "the text ends before the value does", sink);
    }

    /// Ends the value at the depth limit; the rest of the line is text.
    pub(super) fn too_deep<S: JsonSink + ?Sized>(&mut self, c: &Cursor<'_>, at: usize, sink: &mut S) {
        let why = format!("more than {} brackets are open", self.depth);
        let what = (why.as_str(), "closed the value and read the rest of the line as text");
        self.end.closed_by_us = true;
        self.mend(c, (at, at), &rules::LIMIT_EXCEEDED, what, sink);
        if self.stack.is_empty() {
            // Not even one bracket is allowed.
            sink.event(JsonEvent::Null);
            self.complete(c, at, sink);
        }
        while !self.stack.is_empty() {
            if matches!(self.expect, Expect::Colon | Expect::Value) {
                sink.event(JsonEvent::Null);
            }
            self.pop(c, at, sink);
        }
        if self.chatty() {
            self.outside.skipping = true;
        } else {
            self.lexeme = Lexeme::LineComment;
        }
    }
}
