//! Text outside the objects: its extents, and the prose around an answer, which becomes the message if the
//! answer has none.

use serde_json::{Map, Value};

use crate::lex::fence::{self, Fence};
use crate::span::{Extent, Place};

/// Prose around an answer, as far as it was read.
#[derive(Debug)]
pub(super) struct AnswerProse {
    text_before: String,
    text_after: String,
    /// Set once the answer has begun.
    has_begun: bool,
    /// Set if the answer began in a fence.
    is_fenced: bool,
    /// Set once no more prose is kept: it exceeds the hold limit, or there is a message.
    is_discarding: bool,
    /// Maximum number of bytes held back (`limits.hold`).
    limit: usize,
}

impl AnswerProse {
    pub(super) fn new(limit: usize) -> AnswerProse {
        AnswerProse {
            text_before: String::new(),
            text_after: String::new(),
            has_begun: false,
            is_fenced: false,
            is_discarding: false,
            limit,
        }
    }

    /// Returns the bytes held back.
    pub(super) fn held_bytes(&self) -> usize {
        self.text_before.len() + self.text_after.len()
    }

    /// Adds text outside the objects.
    pub(super) fn push(&mut self, text: &str) {
        if self.is_discarding {
            return;
        }
        if self.held_bytes() + text.len() > self.limit {
            return self.stop();
        }
        if self.has_begun { &mut self.text_after } else { &mut self.text_before }.push_str(text);
    }

    /// Adds an object that is not an answer, as JSON.
    pub(super) fn push_object(&mut self, value: Option<&Map<String, Value>>) {
        if let Some(text) =
            value.filter(|_| !self.is_discarding).and_then(|value| serde_json::to_string(value).ok())
        {
            self.push(&text);
        }
    }

    /// Begins the answer, which may be in a fence.
    pub(super) fn begin_answer(&mut self, is_fenced: bool) {
        (self.has_begun, self.is_fenced) = (true, is_fenced);
    }

    /// Discards the prose collected so far.
    pub(super) fn clear(&mut self) {
        (self.text_before, self.text_after) = (String::new(), String::new());
    }

    /// Stops collecting and discards the prose.
    pub(super) fn stop(&mut self) {
        self.is_discarding = true;
        self.clear();
    }

    /// Takes all prose, without the fence of the answer; `None` if there is none that may be shown.
    pub(super) fn take(&mut self) -> Option<String> {
        let (before, after) = (std::mem::take(&mut self.text_before), std::mem::take(&mut self.text_after));
        let (mut before, mut after) = (before.trim(), after.trim());
        if self.is_fenced {
            let (lines_before, last_line) = before.rsplit_once('\n').unwrap_or(("", before));
            if is_blank_or_fence(last_line.trim()) {
                before = lines_before.trim_end();
            }
        }
        let (first_line, lines_after) = after.split_once('\n').unwrap_or((after, ""));
        if is_blank_or_fence(first_line.trim()) {
            after = lines_after.trim_start();
        }
        // The remains of an answer with mismatched brackets must not reach the user.
        if after.starts_with([',', '}', ']', ':']) {
            return None;
        }
        let texts: Vec<&str> = [before, after].into_iter().filter(|text| !text.is_empty()).collect();
        (!texts.is_empty()).then(|| texts.join("\n\n"))
    }
}

/// Extents of prose between objects, read line by line.
#[derive(Clone, Debug, Default)]
pub(super) struct ProseExtents {
    /// The beginning of the current line, from its first non-blank character.
    line: String,
    /// Set if the line is longer than `line` may be ([`MAX_LINE_PREFIX`]).
    is_long: bool,
    /// Place of the line's first non-blank character.
    line_start: Place,
    /// Place after the text so far.
    place: Place,
    /// Start of the current prose, if there is any.
    prose_start: Option<Place>,
    /// Extents of prose that ended at a thought or an answer.
    past_extents: Vec<Extent>,
}

/// Maximum number of extents of prose recorded; the last one is extended over further ones.
const MAX_EXTENTS: usize = 64;

/// Bytes of a line that decide whether it is a fence mark.
const MAX_LINE_PREFIX: usize = 64;

impl ProseExtents {
    /// Sets the place of the next text, after something else.
    pub(super) fn start_at(&mut self, place: Place) {
        self.line_start = place;
        self.place = place;
    }

    /// Reads text outside the objects.
    pub(super) fn push(&mut self, text: &str) {
        for piece in text.split_inclusive('\n') {
            let room = MAX_LINE_PREFIX.saturating_sub(self.line.len());
            // Leading white space of the line is skipped.
            let body = if self.line.is_empty() { piece.trim_start() } else { piece };
            if self.line.is_empty() {
                self.line_start = self.place.end_of(&piece[..piece.len() - body.len()]);
            }
            self.is_long |= body.len() > room;
            self.line.push_str(&body[..body.floor_char_boundary(room)]);
            self.place.advance(piece);
            if piece.ends_with('\n') {
                self.end_line();
            }
        }
    }

    /// Handles a comment: it is prose, and fence marks inside it do not count.
    pub(super) fn push_comment(&mut self, text: &str) {
        self.end_line();
        self.mark_prose(self.place);
        self.place.advance(text);
    }

    /// Ends the line, also where an object begins or the input ends, and records it as prose if it is.
    pub(super) fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        // A line longer than any mark is text.
        if std::mem::take(&mut self.is_long) || !is_blank_or_fence(line.trim()) {
            self.mark_prose(self.line_start);
        }
    }

    /// Marks text at `place` as prose.
    pub(super) fn mark_prose(&mut self, place: Place) {
        self.prose_start.get_or_insert(place);
    }

    /// Ends the current prose at the offset `end`, because something else follows.
    pub(super) fn end_prose(&mut self, end: usize) {
        self.end_line();
        let Some(place) = self.prose_start.take() else { return };
        let is_full = self.past_extents.len() >= MAX_EXTENTS;
        match self.past_extents.last_mut() {
            Some(last) if is_full => last.end = end,
            _ => self.past_extents.push(Extent { place, end }),
        }
    }

    /// Takes the extents of prose since the last call; the last one ends at the offset `end`.
    pub(super) fn take_extents(&mut self, end: usize) -> Vec<Extent> {
        let mut extents = std::mem::take(&mut self.past_extents);
        extents.extend(self.prose_start.take().map(|place| Extent { place, end }));
        extents
    }
}

/// Returns true for a blank line, or a fence mark with no language or that of JSON.
pub(super) fn is_blank_or_fence(line: &str) -> bool {
    let is_json = |language: &str| fence::is_json(language) && !language.contains(char::is_whitespace);
    line.is_empty()
        || Fence::parse(line).is_some_and(|(_, language)| language.is_empty() || is_json(language))
}
