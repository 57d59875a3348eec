//! What stands outside of the objects: prose, and the marks of code fences.

use crate::lex::fence::{self, Fence};
use crate::span::Place;

/// Watches the text between objects, line by line.
#[derive(Clone, Debug, Default)]
pub(super) struct Outside {
    /// The beginning of the line under way, and where it starts.
    line: String,
    /// Whether there is more of it.
    long: bool,
    start: Place,
    at: Place,
    /// Where prose began, and prose that thoughts follow.
    prose: Option<Place>,
    before: Vec<(Place, usize)>,
}

/// Places of prose that are told apart.
const PLACES: usize = 64;

/// Bytes of a line that tell whether it is a fence.
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

    /// A comment: it is prose, and marks of fences in it are none.
    pub(super) fn comment(&mut self, text: &str) {
        self.end_line();
        self.prose(self.at);
        self.at.advance(text);
    }

    /// An object begins or the input ends.
    pub(super) fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        // What is longer than any mark is text.
        if std::mem::take(&mut self.long) || !is_mark(line.trim()) {
            self.prose(self.start);
        }
    }

    /// Something at `place` is not part of the answer.
    pub(super) fn prose(&mut self, place: Place) {
        self.prose.get_or_insert(place);
    }

    /// Something that is no prose follows at the offset `end`.
    pub(super) fn cut(&mut self, end: usize) {
        self.end_line();
        let Some(place) = self.prose.take() else { return };
        let full = self.before.len() >= PLACES;
        match self.before.last_mut() {
            Some(last) if full => last.1 = end,
            _ => self.before.push((place, end)),
        }
    }

    /// Where prose stood since it was last asked for; the last of it ends at the offset `end`.
    pub(super) fn take(&mut self, end: usize) -> Vec<(Place, usize)> {
        let mut prose = std::mem::take(&mut self.before);
        prose.extend(self.prose.take().map(|place| (place, end)));
        prose
    }
}

/// Whether a line is blank, or the mark of a fence that is for JSON, or for nothing in particular.
pub(super) fn is_mark(line: &str) -> bool {
    let json = |language: &str| fence::is_json(language) && !language.contains(char::is_whitespace);
    line.is_empty() || Fence::of(line).is_some_and(|(_, language)| language.is_empty() || json(language))
}
