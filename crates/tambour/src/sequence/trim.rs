//! Removal of white space around the text of a section: a phase, or the answer.

use crate::lex::space::is_space;

/// Maximum length of a UTF-8 character in bytes. The limit is never less, so that any one character fits.
const MAX_CHAR_BYTES: usize = 4;

/// Passes on the text of one section without leading and trailing white space. White space that may be
/// trailing is held back, up to `limit` bytes, and emitted with the text that follows it.
#[derive(Clone, Debug, Default)]
pub struct SpaceTrimmer {
    /// Set once the section has text.
    has_text: bool,
    /// White space that is trailing unless more text follows.
    held_space: String,
    /// Maximum length of the held white space in bytes.
    limit: usize,
    /// Maximum length in bytes of a piece that joins held white space with the text after it.
    max_joined: usize,
}

impl SpaceTrimmer {
    /// Creates a trimmer at the start of a section. `limit` bounds the held white space, in bytes. Held white
    /// space and the text after it are emitted as one piece of at most `max_joined` bytes; the rest of a
    /// longer text follows in another piece.
    #[must_use]
    pub fn new(limit: usize, max_joined: usize) -> SpaceTrimmer {
        SpaceTrimmer {
            has_text: false,
            held_space: String::new(),
            limit: limit.max(MAX_CHAR_BYTES),
            max_joined,
        }
    }

    /// Passes on text of the section.
    #[inline]
    pub fn push(&mut self, text: &str, out: &mut impl FnMut(&str)) {
        // Fast path: most pieces end in a word and follow one that did.
        let ends_in_text = text.as_bytes().last().is_some_and(|&byte| !is_space(char::from(byte)));
        if ends_in_text && self.has_text && self.held_space.is_empty() {
            return out(text);
        }
        self.push_spaced(text, out);
    }

    /// Handles text with white space at its ends, or before the section has text. Not inlined, so that the
    /// fast path is.
    #[inline(never)]
    fn push_spaced(&mut self, text: &str, out: &mut impl FnMut(&str)) {
        let is_section_start = !self.has_text && self.held_space.is_empty();
        let text = if is_section_start { text.trim_start_matches(is_space) } else { text };
        let last_text_byte = text.bytes().rposition(|byte| !is_space(char::from(byte)));
        let (mut inner, mut space) = text.split_at(last_text_byte.map_or(0, |index| index + 1));
        if !self.has_text && inner.trim().is_empty() {
            // An indentation with U+3000 counts as text only once other text follows it.
            (inner, space) = ("", text);
        }
        if !inner.is_empty() {
            self.has_text = true;
            self.release(inner, out);
        }
        if self.held_space.len() + space.len() > self.limit {
            self.overflow(space, out);
        } else if let [blank] = space.as_bytes() {
            // Fast path: most often it is one blank between words.
            self.held_space.push(char::from(*blank));
        } else {
            self.held_space.push_str(space);
        }
    }

    /// Starts the next section and drops held white space.
    pub fn reset(&mut self) {
        self.has_text = false;
        self.held_space.clear();
    }

    /// Returns the number of bytes held back.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.held_space.len()
    }

    /// Emits text, with the held white space before it.
    #[inline]
    fn release(&mut self, text: &str, out: &mut impl FnMut(&str)) {
        if self.held_space.is_empty() {
            return out(text);
        }
        let room = self.max_joined.saturating_sub(self.held_space.len());
        let (first, rest) =
            if text.len() <= room { (text, "") } else { text.split_at(text.floor_char_boundary(room)) };
        self.held_space.push_str(first);
        out(&self.held_space);
        self.held_space.clear();
        if !rest.is_empty() {
            out(rest);
        }
    }

    /// Emits white space in pieces of `limit` bytes until the remainder fits the limit.
    #[cold]
    fn overflow(&mut self, mut space: &str, out: &mut impl FnMut(&str)) {
        while self.held_space.len() + space.len() > self.limit {
            let room = self.limit - self.held_space.len();
            let (head, rest) = space.split_at(space.floor_char_boundary(room));
            self.held_space.push_str(head);
            out(&self.held_space);
            self.held_space.clear();
            if !std::mem::replace(&mut self.has_text, true) {
                // From here on U+3000 is text.
                return self.push(rest, out);
            }
            space = rest;
        }
        self.held_space.push_str(space);
    }
}
