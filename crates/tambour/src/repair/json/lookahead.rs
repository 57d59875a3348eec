//! Bounded look-ahead: classifies the text after a place, as far as it has arrived.
//!
//! Every answer depends on at most [`WINDOW`] bytes, so it is the same for all chunk boundaries. An answer
//! that needs bytes still to come is [`MissingInput`].

use crate::lex::json::{self, QuoteKind, is_json_space, is_word_byte};
use crate::lex::utf8;

/// Maximum number of bytes examined to answer one question.
pub(super) const WINDOW: usize = 128;

/// Error that means: the answer depends on bytes that have not arrived.
pub(super) struct MissingInput;

/// Text that may be examined for one question.
pub(super) struct Lookahead<'a> {
    /// Text up to the end of the window.
    bytes: &'a [u8],
    /// True if text inside the window may still arrive.
    is_open: bool,
}

/// Result of a check for a key with its colon.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyCheck {
    Yes,
    No,
    /// The window or the text ends too early to decide.
    Undecided,
}

/// End of a string, searched for from inside the string.
pub(super) enum StringEnd {
    /// Offset after its closing quote.
    After(usize),
    /// A line break precedes any closing quote.
    LineBreak,
    /// The window or the text ends before any closing quote.
    Undecided,
}

impl<'a> Lookahead<'a> {
    /// Creates a look-ahead of [`WINDOW`] bytes from `from` on. `is_last` is true if no text follows `bytes`.
    pub(super) fn new(bytes: &'a [u8], from: usize, is_last: bool) -> Lookahead<'a> {
        Lookahead::with_window(bytes, from, is_last, WINDOW)
    }

    /// Like [`Lookahead::new`], with a window of another size.
    pub(super) fn with_window(bytes: &'a [u8], from: usize, is_last: bool, window: usize) -> Lookahead<'a> {
        let limit = from + window;
        Lookahead { is_open: !is_last && bytes.len() < limit, bytes: &bytes[..limit.min(bytes.len())] }
    }

    /// Byte at `at`; `None` at the end of text or window.
    #[inline]
    pub(super) fn byte(&self, at: usize) -> Result<Option<u8>, MissingInput> {
        match self.bytes.get(at) {
            Some(&byte) => Ok(Some(byte)),
            None if self.is_open => Err(MissingInput),
            None => Ok(None),
        }
    }

    /// Skips white space of any kind; returns the offset after it, and whether it contains a line break.
    #[inline]
    pub(super) fn skip_space(&self, mut at: usize) -> Result<(usize, bool), MissingInput> {
        let mut has_newline = false;
        loop {
            match self.byte(at)? {
                Some(byte) if is_json_space(byte) => {
                    has_newline |= byte == b'\n';
                    at += 1;
                }
                Some(_) => match json::odd_space_len(self.bytes, at) {
                    Some(length) => at += length,
                    None => return Ok((at, has_newline)),
                },
                None => return Ok((at, has_newline)),
            }
        }
    }

    /// Quote at `at`: its kind and its length in bytes.
    pub(super) fn quote_at(&self, at: usize) -> Result<Option<(QuoteKind, usize)>, MissingInput> {
        match self.byte(at)? {
            None => Ok(None),
            // An escaped quote needs the byte after the backslash.
            Some(b'\\') => {
                self.byte(at + 1)?;
                Ok(json::quote_at(self.bytes, at))
            }
            Some(_) => Ok(json::quote_at(self.bytes, at)),
        }
    }

    /// Bracket, comma or colon at `at`, in ASCII; full-width marks count.
    pub(super) fn mark_at(&self, at: usize) -> Result<Option<u8>, MissingInput> {
        Ok(match self.byte(at)? {
            None => None,
            Some(_) => json::mark_at(self.bytes, at).map(|(mark, _)| mark),
        })
    }

    /// Returns whether a comment starts at `at`.
    pub(super) fn is_comment(&self, at: usize) -> Result<bool, MissingInput> {
        Ok(self.byte(at)? == Some(b'/') && matches!(self.byte(at + 1)?, Some(b'/' | b'*')))
    }

    /// Returns whether `text` is at `at`.
    pub(super) fn starts_with(&self, at: usize, text: &[u8]) -> Result<bool, MissingInput> {
        for (offset, &byte) in text.iter().enumerate() {
            if self.byte(at + offset)? != Some(byte) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// End of the string that `quote` opened before `at`.
    pub(super) fn string_end(&self, mut at: usize, quote: QuoteKind) -> Result<StringEnd, MissingInput> {
        loop {
            at = quote.stop_bytes().find(self.bytes, at);
            match self.byte(at)? {
                None => return Ok(StringEnd::Undecided),
                Some(b'\n') => return Ok(StringEnd::LineBreak),
                Some(b'\\') => {
                    let Some(escaped_byte) = self.byte(at + 1)? else { return Ok(StringEnd::Undecided) };
                    if quote == QuoteKind::Escaped && escaped_byte == b'"' {
                        return Ok(StringEnd::After(at + 2));
                    }
                    // In a text escaped as a whole, `\\"` is an inner quote.
                    let is_doubled = quote == QuoteKind::Escaped && escaped_byte == b'\\';
                    at += if is_doubled && self.byte(at + 2)? == Some(b'"') { 3 } else { 2 };
                }
                Some(byte) => match json::quote_at(self.bytes, at) {
                    Some((end_quote, length)) if quote.can_end_with(end_quote) => {
                        return Ok(StringEnd::After(at + length));
                    }
                    _ => at += utf8::char_width(byte),
                },
            }
        }
    }

    /// Returns whether a key with its colon is at `at`: quoted, or of at most `max_words` words.
    pub(super) fn check_key(&self, at: usize, max_words: usize) -> Result<KeyCheck, MissingInput> {
        if let Some((quote, length)) = self.quote_at(at)? {
            let StringEnd::After(end) = self.string_end(at + length, quote)? else {
                let is_broken = matches!(self.string_end(at + length, quote)?, StringEnd::LineBreak);
                return Ok(if is_broken { KeyCheck::No } else { KeyCheck::Undecided });
            };
            return self.check_colon(end);
        }
        let (end, _) = self.skip_words(at, max_words)?;
        if end == at {
            return Ok(if self.byte(at)?.is_none() { KeyCheck::Undecided } else { KeyCheck::No });
        }
        // A key without its opening quote: `a":1`.
        if let Some((QuoteKind::Double | QuoteKind::Single, length)) = self.quote_at(end)? {
            return self.check_colon(end + length);
        }
        self.check_colon(end)
    }

    /// Returns whether a colon is at `at`, after optional white space; one in `://` is part of an address.
    fn check_colon(&self, at: usize) -> Result<KeyCheck, MissingInput> {
        let (at, _) = self.skip_space(at)?;
        Ok(match self.mark_at(at)? {
            Some(b':') if self.starts_with(at, b"://")? => KeyCheck::No,
            Some(b':') => KeyCheck::Yes,
            _ if self.byte(at)?.is_none() => KeyCheck::Undecided,
            _ => KeyCheck::No,
        })
    }

    /// Skips at most `max_words` words with blanks between them; returns the offset after them and their
    /// number.
    pub(super) fn skip_words(&self, mut at: usize, max_words: usize) -> Result<(usize, usize), MissingInput> {
        let (mut end, mut count) = (at, 0);
        while count < max_words {
            let start = at;
            while let Some(byte) = self.byte(at)? {
                let is_letter = byte >= 0x80
                    && json::mark_at(self.bytes, at).is_none()
                    && json::quote_at(self.bytes, at).is_none()
                    && json::odd_space_len(self.bytes, at).is_none();
                if !is_word_byte(byte) && !is_letter {
                    break;
                }
                at += utf8::char_width(byte);
            }
            // The window may end inside a character.
            at = at.min(self.bytes.len());
            if at == start {
                break;
            }
            (end, count) = (at, count + 1);
            while self.byte(at)? == Some(b' ') {
                at += 1;
            }
        }
        Ok((end, count))
    }

    /// Word at `at`, empty if there is none.
    pub(super) fn word_at(&self, at: usize) -> Result<&'a [u8], MissingInput> {
        let mut end = at;
        while self.byte(end)?.is_some_and(is_word_byte) {
            end += 1;
        }
        Ok(&self.bytes[at..end])
    }

    /// Skips closing brackets and the white space after them; round brackets count only with
    /// `accepts_parens`. Returns the offset, the number of brackets, and whether a line break follows the
    /// last one.
    pub(super) fn skip_closers(
        &self,
        mut at: usize,
        accepts_parens: bool,
    ) -> Result<(usize, usize, bool), MissingInput> {
        let (mut count, mut has_newline) = (0, false);
        loop {
            match self.byte(at)? {
                Some(_) => {}
                None => return Ok((at, count, has_newline)),
            }
            match json::mark_at(self.bytes, at) {
                Some((b'}' | b']', length)) => at += length,
                Some((b')', length)) if accepts_parens => at += length,
                _ => return Ok((at, count, has_newline)),
            }
            count += 1;
            (at, has_newline) = self.skip_space(at)?;
        }
    }
}
