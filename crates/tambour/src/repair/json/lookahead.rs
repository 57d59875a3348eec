//! Bounded look-ahead: classifies the text behind a place, as far as it has arrived.
//!
//! Every answer depends on at most [`WINDOW`] bytes, so it is the same for all chunk boundaries. An answer
//! that needs bytes still to come is [`MissingInput`].

use crate::lex::json::{self, QuoteKind, is_json_space, is_word_byte};
use crate::lex::utf8;

/// Most bytes examined from the place of a question.
pub(super) const WINDOW: usize = 128;

/// Error: the answer depends on bytes that have not arrived.
pub(super) struct MissingInput;

pub(super) struct Lookahead<'a> {
    bytes: &'a [u8],
    is_open: bool,
}

/// Result of a check for a key with its colon.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyCheck {
    Yes,
    No,
    /// Undecided: the window or the text ends first.
    Undecided,
}

/// End of a string, as seen from inside.
pub(super) enum StringEnd {
    /// Offset after its closing quote.
    After(usize),
    /// A line break comes first.
    LineBreak,
    /// The window or the text ends first.
    Undecided,
}

impl<'a> Lookahead<'a> {
    pub(super) fn new(bytes: &'a [u8], from: usize, last: bool) -> Lookahead<'a> {
        Lookahead::with_window(bytes, from, last, WINDOW)
    }

    pub(super) fn with_window(bytes: &'a [u8], from: usize, last: bool, window: usize) -> Lookahead<'a> {
        let limit = from + window;
        Lookahead { is_open: !last && bytes.len() < limit, bytes: &bytes[..limit.min(bytes.len())] }
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

    /// Skips white space of any kind; returns the offset behind it, and whether it contains a line break.
    #[inline]
    pub(super) fn skip_space(&self, mut at: usize) -> Result<(usize, bool), MissingInput> {
        let mut newline = false;
        loop {
            match self.byte(at)? {
                Some(byte) if is_json_space(byte) => {
                    newline |= byte == b'\n';
                    at += 1;
                }
                Some(_) => match json::odd_space_len(self.bytes, at) {
                    Some(length) => at += length,
                    None => return Ok((at, newline)),
                },
                None => return Ok((at, newline)),
            }
        }
    }

    pub(super) fn quote_at(&self, at: usize) -> Result<Option<(QuoteKind, usize)>, MissingInput> {
        match self.byte(at)? {
            None => Ok(None),
            Some(b'\\') => {
                self.byte(at + 1)?;
                Ok(json::quote_at(self.bytes, at))
            }
            Some(_) => Ok(json::quote_at(self.bytes, at)),
        }
    }

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
        for (i, &byte) in text.iter().enumerate() {
            if self.byte(at + i)? != Some(byte) {
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
                    let Some(next) = self.byte(at + 1)? else { return Ok(StringEnd::Undecided) };
                    if quote == QuoteKind::Escaped && next == b'"' {
                        return Ok(StringEnd::After(at + 2));
                    }
                    // In a text escaped as a whole, `\\"` is an inner quote.
                    let is_doubled = quote == QuoteKind::Escaped && next == b'\\';
                    at += if is_doubled && self.byte(at + 2)? == Some(b'"') { 3 } else { 2 };
                }
                Some(byte) => match json::quote_at(self.bytes, at) {
                    Some((mark, length)) if quote.can_end_with(mark) => {
                        return Ok(StringEnd::After(at + length));
                    }
                    _ => at += utf8::char_width(byte),
                },
            }
        }
    }

    /// Returns whether a key with its colon is at `at`: quoted, or of at most `words` words.
    pub(super) fn check_key(&self, at: usize, words: usize) -> Result<KeyCheck, MissingInput> {
        if let Some((quote, length)) = self.quote_at(at)? {
            let StringEnd::After(end) = self.string_end(at + length, quote)? else {
                let is_broken = matches!(self.string_end(at + length, quote)?, StringEnd::LineBreak);
                return Ok(if is_broken { KeyCheck::No } else { KeyCheck::Undecided });
            };
            return self.check_colon(end);
        }
        let (end, _) = self.skip_words(at, words)?;
        if end == at {
            return Ok(if self.byte(at)?.is_none() { KeyCheck::Undecided } else { KeyCheck::No });
        }
        if let Some((QuoteKind::Double | QuoteKind::Single, length)) = self.quote_at(end)? {
            return self.check_colon(end + length);
        }
        self.check_colon(end)
    }

    fn check_colon(&self, at: usize) -> Result<KeyCheck, MissingInput> {
        let (at, _) = self.skip_space(at)?;
        Ok(match self.mark_at(at)? {
            Some(b':') if self.starts_with(at, b"://")? => KeyCheck::No,
            Some(b':') => KeyCheck::Yes,
            _ if self.byte(at)?.is_none() => KeyCheck::Undecided,
            _ => KeyCheck::No,
        })
    }

    /// End of a run of at most `words` words on one line, and their number.
    pub(super) fn skip_words(&self, mut at: usize, words: usize) -> Result<(usize, usize), MissingInput> {
        let (mut end, mut count) = (at, 0);
        while count < words {
            let start = at;
            while let Some(byte) = self.byte(at)? {
                let letter = byte >= 0x80
                    && json::mark_at(self.bytes, at).is_none()
                    && json::quote_at(self.bytes, at).is_none()
                    && json::odd_space_len(self.bytes, at).is_none();
                if !is_word_byte(byte) && !letter {
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

    /// Word at `at`.
    pub(super) fn word_at(&self, at: usize) -> Result<&'a [u8], MissingInput> {
        let mut end = at;
        while self.byte(end)?.is_some_and(is_word_byte) {
            end += 1;
        }
        Ok(&self.bytes[at..end])
    }

    /// Skips closing brackets and white space behind them; returns the offset, their number, and whether a
    /// line break is last.
    pub(super) fn skip_closers(
        &self,
        mut at: usize,
        parens: bool,
    ) -> Result<(usize, usize, bool), MissingInput> {
        let (mut count, mut newline) = (0, false);
        loop {
            match self.byte(at)? {
                Some(_) => {}
                None => return Ok((at, count, newline)),
            }
            match json::mark_at(self.bytes, at) {
                Some((b'}' | b']', length)) => at += length,
                Some((b')', length)) if parens => at += length,
                _ => return Ok((at, count, newline)),
            }
            count += 1;
            (at, newline) = self.skip_space(at)?;
        }
    }
}
