//! Unclosed reasoning before the requested structure.
//!
//! Models forget the closing mark, and then the whole reply reads as reasoning. A series is one or more JSON
//! values on separate lines, with only fences and commas between and after the values. If the text ends with
//! a series, and one of its values has a field of the structure, the reasoning ends where the series begins.
//! Actions in the series are not carried out.

use crate::lex::fence::{self, Fence};
use crate::limits::Limits;
use crate::repair::json::{JsonEvent, JsonReader, JsonSink};
use crate::span::Place;

/// Text of the current reasoning. It is emitted as it arrives, except for a possible structure at its end.
#[derive(Clone, Debug)]
pub(super) struct ReasoningBuffer {
    reader: JsonReader,
    finder: TrailingValueFinder,
    /// Text not emitted yet, and its start.
    held_text: String,
    start: Place,
    /// Maximum length of a series in bytes (`limits.hold`).
    limit: usize,
}

impl ReasoningBuffer {
    /// Starts reasoning whose text begins at `start`, before a structure that has one of these fields.
    pub(super) fn new(start: Place, fields: &'static [&'static str], limits: &Limits) -> ReasoningBuffer {
        ReasoningBuffer {
            reader: JsonReader::new_lines(limits).without_thoughts().with_start(start),
            finder: TrailingValueFinder {
                fields,
                offset: start.offset,
                line_offset: start.offset,
                limit: limits.hold,
                ..TrailingValueFinder::default()
            },
            held_text: String::new(),
            start,
            limit: limits.hold,
        }
    }

    /// Returns the bytes held back.
    pub(super) fn held_bytes(&self) -> usize {
        self.held_text.len()
    }

    /// Returns the place after all text so far.
    pub(super) fn place(&self) -> Place {
        self.start.end_of(&self.held_text)
    }

    /// Reads text; `out` receives the part that is reasoning whether or not a closing mark follows.
    pub(super) fn push(&mut self, text: &str, out: &mut dyn FnMut(&str)) {
        self.held_text.push_str(text);
        self.reader.push(text, &mut self.finder);
        let read_end = self.reader.place().offset;
        self.finder.drop_overlong(read_end);
        self.release(self.finder.certain_offset().min(read_end), out);
    }

    /// Closes the reasoning: all held text is part of it.
    pub(super) fn close(&mut self, out: &mut dyn FnMut(&str)) {
        self.release(usize::MAX, out);
    }

    /// Ends the reply. Returns the place and the text of the structure at the end of the text; without one,
    /// the place after the text. `out` receives the text before the structure.
    pub(super) fn finish(mut self, out: &mut dyn FnMut(&str)) -> (Place, Option<String>) {
        let end = self.start.offset + self.held_text.len();
        self.reader.finish(&mut self.finder);
        self.finder.end_line();
        match self.finder.series_start.filter(|start| self.finder.has_field && end - start <= self.limit) {
            Some(series_start) => {
                self.release(series_start, out);
                (self.start, Some(self.held_text))
            }
            None => {
                self.close(out);
                (self.start, None)
            }
        }
    }

    /// Emits the text before an offset of the reply.
    fn release(&mut self, offset: usize, out: &mut dyn FnMut(&str)) {
        let len = offset.saturating_sub(self.start.offset).min(self.held_text.len());
        if len > 0 {
            out(&self.held_text[..len]);
            self.start.advance(&self.held_text[..len]);
            self.held_text.drain(..len);
        }
    }
}

/// Number of leading bytes of a line that decide whether it is a fence.
const FENCE_LINE_BYTES: usize = 64;

/// Maximum number of bytes from the start of a fence to the start of the value in it.
const MAX_FENCE_GAP: usize = 256;

/// Finds the series at the end of a text.
#[derive(Clone, Debug, Default)]
struct TrailingValueFinder {
    /// Fields of the structure; if empty, any value is the structure.
    fields: &'static [&'static str],
    /// Offset after the text read so far, without the current value.
    offset: usize,
    /// Text of the current line outside of values, from its first non-blank character; empty in prose.
    line: String,
    /// Offset of the first non-blank character of the line.
    line_offset: usize,
    /// Set if the line is neither blank nor a fence.
    is_prose: bool,
    /// Set if a value has ended on the line.
    has_value: bool,
    /// Offset of the last fence, if nothing followed it.
    fence_offset: Option<usize>,
    /// Offset of the start of the series, if there is one.
    series_start: Option<usize>,
    /// Set if a value of the series has a field of the structure.
    has_field: bool,
    /// Maximum length of a series in bytes (`limits.hold`).
    limit: usize,
}

impl TrailingValueFinder {
    /// Returns the offset before which all text is reasoning, whatever follows.
    fn certain_offset(&self) -> usize {
        let line_start = if self.line.is_empty() { usize::MAX } else { self.line_offset };
        self.series_start.or(self.fence_offset).unwrap_or(line_start)
    }

    /// Gives up the series, because other text follows it.
    fn end_series(&mut self) {
        self.series_start = None;
        self.has_field = false;
    }

    /// Gives up a series that is too long to hold, and a fence too far from its value. `read_end` is the
    /// offset up to which the text was read.
    fn drop_overlong(&mut self, read_end: usize) {
        if self.series_start.is_some_and(|start| read_end - start > self.limit) {
            self.end_series();
        }
        self.fence_offset = self.fence_offset.filter(|fence| read_end - fence <= MAX_FENCE_GAP);
    }

    /// Reads text outside of values.
    fn push_text(&mut self, text: &str) {
        for piece in text.split_inclusive('\n') {
            let body = if self.line.is_empty() { piece.trim_start() } else { piece };
            if self.line.is_empty() {
                self.line_offset = self.offset + piece.len() - body.len();
            }
            self.offset += piece.len();
            if !self.is_prose {
                let room = FENCE_LINE_BYTES - self.line.len();
                self.line.push_str(&body[..body.floor_char_boundary(room)]);
                if body.len() > room || !may_be_separator(self.line.trim_end()) {
                    self.is_prose = true;
                    self.line.clear();
                    self.end_series();
                    self.fence_offset = None;
                }
            }
            if piece.ends_with('\n') {
                self.end_line();
            }
        }
    }

    /// Ends the line. Any line ends the series, except a blank line, a fence, or a comma after a value.
    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let line = line.trim();
        if is_fence(line) {
            self.fence_offset = Some(self.line_offset);
        } else if !(line.is_empty() || line == "," && self.has_value) {
            self.end_series();
            self.fence_offset = None;
        }
        self.is_prose = false;
        self.has_value = false;
    }

    /// Begins a value at this offset: it begins a series, continues one, or is part of prose.
    fn begin_value(&mut self, at: usize) {
        self.drop_overlong(at);
        let prefix = std::mem::take(&mut self.line);
        let prefix = prefix.trim();
        let is_after_prose = std::mem::take(&mut self.is_prose);
        if is_fence(prefix) {
            self.fence_offset = Some(self.line_offset);
        }
        let may_start_series = (prefix.is_empty() || is_fence(prefix)) && !self.has_value;
        let continues_series = self.series_start.is_some() && matches!(prefix, "" | ",");
        if is_after_prose || !(may_start_series || continues_series) {
            self.end_series();
        } else {
            self.series_start.get_or_insert(self.fence_offset.unwrap_or(at));
            self.has_field |= self.fields.is_empty();
        }
        self.fence_offset = None;
    }
}

impl JsonSink for TrailingValueFinder {
    fn event(&mut self, event: JsonEvent<'_>) {
        match event {
            JsonEvent::Text(text) | JsonEvent::Comment(text) => self.push_text(text),
            JsonEvent::ValueStart(start) => self.begin_value(start.place.offset),
            JsonEvent::Key { text, depth: 1, .. } => {
                self.has_field |= self.series_start.is_some() && self.fields.contains(&text);
            }
            JsonEvent::ValueEnd(end) => {
                (self.offset, self.has_value) = (end.offset, true);
                // A value that the reader had to close is not a structure.
                if end.is_auto_closed
                    || self.series_start.is_some_and(|start| end.offset - start > self.limit)
                {
                    self.end_series();
                }
            }
            _ => {}
        }
    }

    fn report(&mut self, _: crate::finding::FindingReport) {}
}

/// Returns whether a line is a fence with at most a language.
fn is_fence(line: &str) -> bool {
    Fence::parse(line).is_some_and(|(_, info)| !info.trim().contains(char::is_whitespace))
}

/// Returns whether a line with this beginning may become a fence or a comma.
fn may_be_separator(line: &str) -> bool {
    line == "," || line.bytes().all(fence::is_mark) || is_fence(line)
}
