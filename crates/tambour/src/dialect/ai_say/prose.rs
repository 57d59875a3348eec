//! Text outside the objects: its extents, and the prose around an answer, which becomes the message if the
//! answer has none.

use serde_json::{Map, Value};

use crate::dialect::surroundings::{KeptText, SurroundingLines};
use crate::lex::fence::{self, Fence};
use crate::span::{Extent, Place};

/// Prose around an answer, as far as it was read.
#[derive(Debug)]
pub(super) struct AnswerProse {
    /// The prose, until there is a message.
    kept_text: KeptText,
    /// Position of the answer, once it has begun.
    answer: Option<AnswerPosition>,
}

/// Position of an answer in its prose.
#[derive(Debug)]
struct AnswerPosition {
    /// Number of bytes of prose before it.
    offset: usize,
    /// Set if it began in a fence.
    is_fenced: bool,
}

impl AnswerProse {
    pub(super) fn new(limit: usize) -> AnswerProse {
        AnswerProse { kept_text: KeptText::new(limit), answer: None }
    }

    /// Returns the bytes held back.
    pub(super) fn held_bytes(&self) -> usize {
        self.kept_text.held_bytes()
    }

    /// Adds text outside the objects.
    pub(super) fn push(&mut self, text: &str) {
        self.kept_text.push(text);
    }

    /// Adds an object that is not an answer, as JSON.
    pub(super) fn push_object(&mut self, value: Option<&Map<String, Value>>) {
        let value = value.filter(|_| self.kept_text.is_keeping());
        if let Some(text) = value.and_then(|value| serde_json::to_string(value).ok()) {
            self.push(&text);
        }
    }

    /// Begins the answer, which may be in a fence.
    pub(super) fn begin_answer(&mut self, is_fenced: bool) {
        self.answer = Some(AnswerPosition { offset: self.kept_text.held_bytes(), is_fenced });
    }

    /// Discards the prose collected so far.
    pub(super) fn clear(&mut self) {
        self.kept_text.clear();
        if let Some(answer) = &mut self.answer {
            answer.offset = 0;
        }
    }

    /// Stops collecting and discards the prose.
    pub(super) fn stop(&mut self) {
        self.kept_text.stop();
    }

    /// Takes all prose, without the fence of the answer; `None` if there is none that may be shown.
    pub(super) fn take(&mut self) -> Option<String> {
        if !self.kept_text.is_keeping() {
            return None;
        }
        let (text, answer) = (self.kept_text.take(), self.answer.take());
        let (before, after) = text.split_at(answer.as_ref().map_or(text.len(), |answer| answer.offset));
        let (mut before, mut after) = (before.trim(), after.trim());
        if answer.is_some_and(|answer| answer.is_fenced) {
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
    lines: SurroundingLines,
    /// Start of the current prose, if there is any.
    prose_start: Option<Place>,
    /// Extents of prose that ended at a thought or an answer.
    past_extents: Vec<Extent>,
}

/// Maximum number of extents of prose recorded; the last one is extended over further ones.
const MAX_EXTENTS: usize = 64;

/// Maximum length in bytes of a line that is only a fence mark.
const MAX_MARK_LINE: usize = 64;

impl ProseExtents {
    /// Sets the place of the next text, after input that is not prose.
    pub(super) fn start_at(&mut self, place: Place) {
        self.lines.move_to(place);
    }

    /// Reads text outside the objects.
    pub(super) fn push(&mut self, text: &str) {
        for piece in text.split_inclusive('\n') {
            self.lines.push(piece);
            if piece.ends_with('\n') {
                self.end_line();
            }
        }
    }

    /// Handles a comment: it is prose, and fence marks inside it do not count.
    pub(super) fn push_comment(&mut self, text: &str) {
        self.end_line();
        self.mark_prose(self.lines.place());
        self.lines.skip(text);
    }

    /// Ends the line, also where an object begins or the input ends. Records the line as prose unless it is
    /// blank or a fence mark.
    pub(super) fn end_line(&mut self) {
        let line = self.lines.take_line();
        // A line longer than any fence mark is prose.
        if line.is_longer_than(MAX_MARK_LINE) || !is_blank_or_fence(line.text()) {
            self.mark_prose(line.extent().place);
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

/// Returns true for a blank line, and for a fence mark without a language or with the language JSON.
pub(super) fn is_blank_or_fence(line: &str) -> bool {
    let is_json = |language: &str| fence::is_json(language) && !language.contains(char::is_whitespace);
    line.is_empty()
        || Fence::parse(line).is_some_and(|(_, language)| language.is_empty() || is_json(language))
}
