//! Unclosed reasoning before the requested structure.
//!
//! Models forget the closing mark, and then the whole reply reads as reasoning. If its text ends with values
//! on lines of their own, with only fences between and after them, and one of them has a field of the
//! structure, the reasoning ends where they begin. Actions in them are not carried out.

use crate::lex::fence::{self, Fence};
use crate::limits::Limits;
use crate::repair::json::{JsonEvent, JsonSink, Reader};
use crate::span::Place;

/// Text of the current reasoning. It is emitted as it arrives, except for a possible structure at its end.
#[derive(Clone, Debug)]
pub(super) struct Reasoning {
    reader: Reader,
    finder: Finder,
    /// Text not emitted yet, and its start.
    text: String,
    at: Place,
    limit: usize,
}

impl Reasoning {
    /// Starts reasoning whose text begins at `at`, before a structure with one of these fields.
    pub(super) fn new(at: Place, fields: &'static [&'static str], limits: &Limits) -> Reasoning {
        Reasoning {
            reader: Reader::lines(limits).without_thoughts().starting_at(at),
            finder: Finder {
                fields,
                at: at.offset,
                line_at: at.offset,
                limit: limits.hold,
                ..Finder::default()
            },
            text: String::new(),
            at,
            limit: limits.hold,
        }
    }

    /// Returns the bytes held back.
    pub(super) fn held(&self) -> usize {
        self.text.len()
    }

    /// Returns the place after all text so far.
    pub(super) fn place(&self) -> Place {
        self.at.after(&self.text)
    }

    /// Reads text; `out` receives the part that is reasoning whether or not a closing mark follows.
    pub(super) fn push(&mut self, text: &str, out: &mut dyn FnMut(&str)) {
        self.text.push_str(text);
        self.reader.push(text, &mut self.finder);
        let read = self.reader.place().offset;
        self.finder.forget(read);
        self.release(self.finder.certain().min(read), out);
    }

    /// Closes the reasoning: all held text is part of it.
    pub(super) fn close(&mut self, out: &mut dyn FnMut(&str)) {
        self.release(usize::MAX, out);
    }

    /// Ends the reply. Returns the structure, if the text ends with one, and its place; `out` receives the
    /// text before it.
    pub(super) fn finish(mut self, out: &mut dyn FnMut(&str)) -> (Place, Option<String>) {
        let end = self.at.offset + self.text.len();
        self.reader.finish(&mut self.finder);
        self.finder.end_line();
        match self.finder.run.filter(|run| self.finder.known && end - run <= self.limit) {
            Some(run) => {
                self.release(run, out);
                (self.at, Some(self.text))
            }
            None => {
                self.close(out);
                (self.at, None)
            }
        }
    }

    /// Emits the text before an offset of the reply.
    fn release(&mut self, offset: usize, out: &mut dyn FnMut(&str)) {
        let len = offset.saturating_sub(self.at.offset).min(self.text.len());
        if len > 0 {
            out(&self.text[..len]);
            self.at.advance(&self.text[..len]);
            self.text.drain(..len);
        }
    }
}

/// Bytes of a line that decide whether it is a fence.
const KEPT: usize = 64;

/// Most bytes between the start of a fence and that of the value in it.
const FENCE: usize = 256;

/// Finds the values at the end of a text.
#[derive(Clone, Debug, Default)]
struct Finder {
    fields: &'static [&'static str],
    /// Current offset, outside of values.
    at: usize,
    /// Current line outside of values, from its first non-blank character, and the offset of that.
    line: String,
    line_at: usize,
    /// Set if the line is neither blank nor a fence.
    prose: bool,
    /// Set if a value has ended on the line.
    value: bool,
    /// Offset of the last fence, if nothing followed it.
    fence: Option<usize>,
    /// Start of the values followed by fences only, and whether one of them has a field of the structure.
    run: Option<usize>,
    known: bool,
    limit: usize,
}

impl Finder {
    /// Returns the offset before which all text is reasoning, whatever follows.
    fn certain(&self) -> usize {
        let line = if self.line.is_empty() { usize::MAX } else { self.line_at };
        self.run.or(self.fence).unwrap_or(line)
    }

    fn end_run(&mut self) {
        self.run = None;
        self.known = false;
    }

    /// Gives up a run or fence that has become too long to hold, given that the text was read up to `read`.
    fn forget(&mut self, read: usize) {
        if self.run.is_some_and(|run| read - run > self.limit) {
            self.end_run();
        }
        self.fence = self.fence.filter(|fence| read - fence <= FENCE);
    }

    fn text(&mut self, text: &str) {
        for piece in text.split_inclusive('\n') {
            let body = if self.line.is_empty() { piece.trim_start() } else { piece };
            if self.line.is_empty() {
                self.line_at = self.at + piece.len() - body.len();
            }
            self.at += piece.len();
            if !self.prose {
                let room = KEPT - self.line.len();
                self.line.push_str(&body[..body.floor_char_boundary(room)]);
                if body.len() > room || !may_be_between(self.line.trim_end()) {
                    self.prose = true;
                    self.line.clear();
                    self.end_run();
                    self.fence = None;
                }
            }
            if piece.ends_with('\n') {
                self.end_line();
            }
        }
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let line = line.trim();
        if is_fence(line) {
            self.fence = Some(self.line_at);
        } else if !(line.is_empty() || line == "," && self.value) {
            self.end_run();
            self.fence = None;
        }
        self.prose = false;
        self.value = false;
    }

    fn value_starts(&mut self, at: usize) {
        self.forget(at);
        let prefix = std::mem::take(&mut self.line);
        let prefix = prefix.trim();
        let prose = std::mem::take(&mut self.prose);
        if is_fence(prefix) {
            self.fence = Some(self.line_at);
        }
        let begins = (prefix.is_empty() || is_fence(prefix)) && !self.value;
        let goes_on = self.run.is_some() && matches!(prefix, "" | ",");
        if prose || !(begins || goes_on) {
            self.end_run();
        } else {
            self.run.get_or_insert(self.fence.unwrap_or(at));
            // If no fields are given, any value is the structure.
            self.known |= self.fields.is_empty();
        }
        self.fence = None;
    }
}

impl JsonSink for Finder {
    fn event(&mut self, event: JsonEvent<'_>) {
        match event {
            JsonEvent::Text(text) | JsonEvent::Comment(text) => self.text(text),
            JsonEvent::ValueStart(start) => self.value_starts(start.place.offset),
            JsonEvent::Key { text, depth: 1, .. } => {
                self.known |= self.run.is_some() && self.fields.contains(&text);
            }
            JsonEvent::ValueEnd(end) => {
                (self.at, self.value) = (end.offset, true);
                if end.closed_by_us || self.run.is_some_and(|run| end.offset - run > self.limit) {
                    self.end_run();
                }
            }
            _ => {}
        }
    }

    fn report(&mut self, _: crate::finding::Report) {}
}

/// Returns whether a line is a fence with at most a language.
fn is_fence(line: &str) -> bool {
    Fence::of(line).is_some_and(|(_, info)| !info.trim().contains(char::is_whitespace))
}

/// Returns whether a line with this beginning may become a fence or a comma.
fn may_be_between(line: &str) -> bool {
    line == "," || line.bytes().all(fence::is_mark) || is_fence(line)
}
