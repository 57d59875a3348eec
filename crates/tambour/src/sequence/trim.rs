//! White space at the borders of a section: cut at both ends, kept inside.

use crate::lex::space::is_space;

/// Passes the text of one section on without the white space around it. White space that may turn out to be the
/// end of the section is held back, `limit` bytes at most, and goes out with the text that follows it.
#[derive(Clone, Debug, Default)]
pub struct Trim {
    begun: bool,
    held: String,
    limit: usize,
    /// Bytes of a piece that white space and the text behind it are put together in.
    joined: usize,
}

impl Trim {
    /// At the start of a section. White space and the text behind it go out as one piece, if that has at most `joined`
    /// bytes; of more text so much goes with it.
    #[must_use]
    pub fn new(limit: usize, joined: usize) -> Trim {
        Trim { begun: false, held: String::new(), limit: limit.max(4), joined }
    }

    /// Text of the section.
    #[inline]
    pub fn push(&mut self, text: &str, out: &mut impl FnMut(&str)) {
        // Most pieces end in a word, and so did the one before.
        let ends = text.as_bytes().last().is_some_and(|&byte| !is_space(char::from(byte)));
        if ends && self.begun && self.held.is_empty() {
            return out(text);
        }
        self.push_spaced(text, out);
    }

    /// Text with white space before it or at its end, or before the section has begun. Not inlined, so that what comes
    /// before it is.
    #[inline(never)]
    fn push_spaced(&mut self, text: &str, out: &mut impl FnMut(&str)) {
        let empty = !self.begun && self.held.is_empty();
        let text = if empty { text.trim_start_matches(is_space) } else { text };
        let last = text.bytes().rposition(|byte| !is_space(char::from(byte)));
        let (mut inner, mut space) = text.split_at(last.map_or(0, |last| last + 1));
        if !self.begun && inner.trim().is_empty() {
            // An indentation with U+3000 is text as soon as something follows it.
            (inner, space) = ("", text);
        }
        if !inner.is_empty() {
            self.begun = true;
            self.release(inner, out);
        }
        if self.held.len() + space.len() > self.limit {
            self.overflow(space, out);
        } else if let [blank] = space.as_bytes() {
            self.held.push(char::from(*blank));
        } else {
            self.held.push_str(space);
        }
    }

    /// Starts the next section; white space held back is gone.
    pub fn reset(&mut self) {
        self.begun = false;
        self.held.clear();
    }

    /// Bytes held back.
    #[must_use]
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// Text that goes out, behind the white space that was held back.
    #[inline]
    fn release(&mut self, text: &str, out: &mut impl FnMut(&str)) {
        if self.held.is_empty() {
            return out(text);
        }
        let room = self.joined.saturating_sub(self.held.len());
        let (first, rest) =
            if text.len() <= room { (text, "") } else { text.split_at(text.floor_char_boundary(room)) };
        self.held.push_str(first);
        out(&self.held);
        self.held.clear();
        if !rest.is_empty() {
            out(rest);
        }
    }

    /// More white space than is held.
    #[cold]
    fn overflow(&mut self, mut space: &str, out: &mut impl FnMut(&str)) {
        while self.held.len() + space.len() > self.limit {
            let (fits, rest) = space.split_at(space.floor_char_boundary(self.limit - self.held.len()));
            self.held.push_str(fits);
            out(&self.held);
            self.held.clear();
            if !std::mem::replace(&mut self.begun, true) {
                // From here on U+3000 is text.
                return self.push(rest, out);
            }
            space = rest;
        }
        self.held.push_str(space);
    }
}
