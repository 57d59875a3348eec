//! What stands outside of the objects: prose, and the marks of code fences.

use crate::span::Place;

/// Watches the text between objects, line by line.
#[derive(Clone, Debug, Default)]
pub(super) struct Around {
    /// The beginning of the line under way, and where it starts.
    line: String,
    /// Whether there is more of it.
    long: bool,
    start: Place,
    at: Place,
    /// Where prose began.
    prose: Option<Place>,
}

/// Bytes of a line that tell whether it is a fence.
const KEPT: usize = 64;

impl Around {
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

    /// Where prose began since it was last asked for.
    pub(super) fn take(&mut self) -> Option<Place> {
        self.prose.take()
    }
}

/// Whether a line is blank, or the mark of a fence with its language.
fn is_mark(line: &str) -> bool {
    let marks = line.bytes().take_while(|byte| matches!(byte, b'`' | b'~')).count();
    line.is_empty() || marks >= 3 && !line[marks..].trim().contains(char::is_whitespace)
}
