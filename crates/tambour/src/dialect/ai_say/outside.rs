//! Text outside the objects: extents of prose, and marks of code fences.

use crate::lex::fence::{self, Fence};
use crate::span::Place;

/// Extents of prose between objects, read line by line.
#[derive(Clone, Debug, Default)]
pub(super) struct Outside {
    /// The beginning of the current line.
    line: String,
    /// Set if the line is longer than `line` keeps.
    long: bool,
    start: Place,
    at: Place,
    /// Start of the current prose, and the prose before the last thought or answer.
    prose: Option<Place>,
    before: Vec<(Place, usize)>,
}

/// Most extents of prose that are kept apart.
const PLACES: usize = 64;

/// Bytes of a line that decide whether it is a fence mark.
const KEPT: usize = 64;

impl Outside {
    pub(super) fn start_at(&mut self, place: Place) {
        self.start = place;
        self.at = place;
    }

    pub(super) fn push(&mut self, text: &str) {
        for piece in text.split_inclusive('\n') {
            let room = KEPT.saturating_sub(self.line.len());
            let body = if self.line.is_empty() { piece.trim_start() } else { piece };
            if self.line.is_empty() {
                self.start = self.at.after(&piece[..piece.len() - body.len()]);
            }
            self.long |= body.len() > room;
            self.line.push_str(&body[..body.floor_char_boundary(room)]);
            self.at.advance(piece);
            if piece.ends_with('\n') {
                self.end_line();
            }
        }
    }

    /// Handles a comment: it is prose, and fence marks inside it do not count.
    pub(super) fn comment(&mut self, text: &str) {
        self.end_line();
        self.prose(self.at);
        self.at.advance(text);
    }

    /// Ends the line: an object begins or the input ends.
    pub(super) fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        // A line longer than any mark is text.
        if std::mem::take(&mut self.long) || !is_mark(line.trim()) {
            self.prose(self.start);
        }
    }

    /// Marks text at `place` as prose.
    pub(super) fn prose(&mut self, place: Place) {
        self.prose.get_or_insert(place);
    }

    /// Ends the current prose at the offset `end`; something else follows.
    pub(super) fn cut(&mut self, end: usize) {
        self.end_line();
        let Some(place) = self.prose.take() else { return };
        let full = self.before.len() >= PLACES;
        match self.before.last_mut() {
            Some(last) if full => last.1 = end,
            _ => self.before.push((place, end)),
        }
    }

    /// Takes the extents of prose since the last call; the last one ends at the offset `end`.
    pub(super) fn take(&mut self, end: usize) -> Vec<(Place, usize)> {
        let mut prose = std::mem::take(&mut self.before);
        prose.extend(self.prose.take().map(|place| (place, end)));
        prose
    }
}

/// Returns true for a blank line, or a fence mark with no language or that of JSON.
pub(super) fn is_mark(line: &str) -> bool {
    let json = |language: &str| fence::is_json(language) && !language.contains(char::is_whitespace);
    line.is_empty() || Fence::of(line).is_some_and(|(_, language)| language.is_empty() || json(language))
}
