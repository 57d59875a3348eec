//! Text around a JSON structure: its current line, and text that is kept because its meaning depends on what
//! follows. For example, kept text is the answer if the reply has no other. Each dialect decides what
//! a line means, and what is kept.

use crate::span::{Extent, Place};

/// Text outside a structure, read line by line.
#[derive(Clone, Debug, Default)]
pub(super) struct SurroundingLines {
    /// The current line.
    line: SurroundingLine,
    /// Place after all text so far.
    place: Place,
}

/// A line outside a structure, or the part of a line before or after a value or thought.
#[derive(Clone, Debug, Default)]
pub(super) struct SurroundingLine {
    /// Beginning of the line, from the first non-blank character; at most [`MAX_LINE_PREFIX`] bytes.
    prefix: String,
    /// Text after the prefix.
    rest: LineRest,
    /// Extent from the first non-blank character to the last; unspecified if there is none.
    extent: Extent,
}

/// Text of a line after its prefix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum LineRest {
    #[default]
    Absent,
    /// White space.
    Blank,
    /// More than white space.
    Text,
}

/// Maximum length in bytes of the beginning of a line that is kept; enough to classify it.
const MAX_LINE_PREFIX: usize = 256;

impl SurroundingLines {
    /// Returns the place after all text so far.
    pub(super) fn place(&self) -> Place {
        self.place
    }

    /// Sets the place of the next text, which follows content of another kind.
    pub(super) fn move_to(&mut self, place: Place) {
        self.place = place;
    }

    /// Moves past text that is part of no line.
    pub(super) fn skip(&mut self, text: &str) {
        self.place.advance(text);
    }

    /// Reads text of one line, which may end with its line break.
    pub(super) fn push(&mut self, piece: &str) {
        let line = &mut self.line;
        let is_first = line.prefix.is_empty();
        let body = if is_first { piece.trim_start() } else { piece };
        let visible = body.trim_end();
        if !visible.is_empty() {
            let body_start = self.place.end_of(&piece[..piece.len() - body.len()]);
            if is_first {
                line.extent.place = body_start;
            }
            line.extent.end = body_start.offset + visible.len();
        }
        line.push(body);
        self.place.advance(piece);
    }

    /// Ends the current line and takes it.
    pub(super) fn take_line(&mut self) -> SurroundingLine {
        std::mem::take(&mut self.line)
    }
}

impl SurroundingLine {
    /// Adds text; the prefix takes as much of it as fits.
    fn push(&mut self, text: &str) {
        let kept_len = match self.rest {
            LineRest::Absent => text.floor_char_boundary(MAX_LINE_PREFIX - self.prefix.len()),
            LineRest::Blank | LineRest::Text => 0,
        };
        let (kept, rest) = text.split_at(kept_len);
        self.prefix.push_str(kept);
        if !rest.trim().is_empty() {
            self.rest = LineRest::Text;
        } else if !rest.is_empty() && self.rest == LineRest::Absent {
            self.rest = LineRest::Blank;
        }
    }

    /// Returns the beginning of the line, without white space around it; empty if the line is blank.
    pub(super) fn text(&self) -> &str {
        self.prefix.trim()
    }

    /// Returns true if [`SurroundingLine::text`] omits text of the line.
    pub(super) fn is_cut(&self) -> bool {
        self.rest == LineRest::Text
    }

    /// Returns true if the line, from its first non-blank character up to and including its line break, has
    /// more than `len` bytes. `len` is less than [`MAX_LINE_PREFIX`].
    pub(super) fn is_longer_than(&self, len: usize) -> bool {
        self.rest != LineRest::Absent || self.prefix.len() > len
    }

    /// Returns the extent from the first non-blank character to the last; the line must not be blank.
    pub(super) fn extent(&self) -> Extent {
        self.extent
    }
}

/// Text kept for later. Once it exceeds its limit, it is discarded, and no more is kept until
/// [`KeptText::restart`].
#[derive(Clone, Debug)]
pub(super) struct KeptText {
    /// `None` while nothing is kept.
    text: Option<String>,
    /// Maximum number of bytes held back (`limits.hold`).
    limit: usize,
}

impl KeptText {
    /// Creates a buffer that keeps text from the start.
    pub(super) fn new(limit: usize) -> KeptText {
        KeptText { text: Some(String::new()), limit }
    }

    /// Creates a buffer that keeps nothing until [`KeptText::restart`].
    pub(super) fn stopped(limit: usize) -> KeptText {
        KeptText { text: None, limit }
    }

    /// Returns the bytes held back.
    pub(super) fn held_bytes(&self) -> usize {
        self.text.as_ref().map_or(0, String::len)
    }

    /// Returns true while text is kept.
    pub(super) fn is_keeping(&self) -> bool {
        self.text.is_some()
    }

    /// Adds text.
    pub(super) fn push(&mut self, text: &str) {
        let Some(kept) = &mut self.text else { return };
        if kept.len() + text.len() > self.limit {
            self.text = None;
        } else {
            kept.push_str(text);
        }
    }

    /// Puts back a line that was taken out with [`KeptText::split_off`], and a line break. The limit is not
    /// checked again.
    pub(super) fn push_line(&mut self, line: &str) {
        if let Some(kept) = &mut self.text {
            kept.push_str(line);
            kept.push('\n');
        }
    }

    /// Takes the text from the offset `at` on.
    pub(super) fn split_off(&mut self, at: usize) -> String {
        self.text.as_mut().map(|kept| kept.split_off(at)).unwrap_or_default()
    }

    /// Takes the text; later text is kept as before.
    pub(super) fn take(&mut self) -> String {
        self.text.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Discards the text; later text is kept as before.
    pub(super) fn clear(&mut self) {
        self.take();
    }

    /// Discards the text and keeps no more until [`KeptText::restart`].
    pub(super) fn stop(&mut self) {
        self.text = None;
    }

    /// Discards the text and keeps later text, also after [`KeptText::stop`].
    pub(super) fn restart(&mut self) {
        self.text = Some(String::new());
    }
}
