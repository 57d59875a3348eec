//! Bounded look-ahead: classifies the text behind a place, as far as it has arrived.
//!
//! Every answer depends on at most [`WINDOW`] bytes, so it is the same for all chunk boundaries. An answer
//! that needs bytes still to come is [`More`].

use crate::lex::json::{self, Quote, is_space, is_word};
use crate::lex::utf8;

/// Most bytes examined from the place of a question.
pub(super) const WINDOW: usize = 128;

/// Error: the answer depends on bytes that have not arrived.
pub(super) struct More;

pub(super) struct Peek<'a> {
    bytes: &'a [u8],
    open: bool,
}

/// Result of a check for a key with its colon.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Yes,
    No,
    /// Undecided: the window or the text ends first.
    End,
}

/// End of a string, as seen from inside.
pub(super) enum StringEnd {
    /// Offset after its closing quote.
    After(usize),
    /// A line break comes first.
    Broken,
    /// The window or the text ends first.
    End,
}

impl<'a> Peek<'a> {
    pub(super) fn new(bytes: &'a [u8], from: usize, last: bool) -> Peek<'a> {
        Peek::wide(bytes, from, last, WINDOW)
    }

    pub(super) fn wide(bytes: &'a [u8], from: usize, last: bool, window: usize) -> Peek<'a> {
        let limit = from + window;
        Peek { open: !last && bytes.len() < limit, bytes: &bytes[..limit.min(bytes.len())] }
    }

    /// Byte at `at`; `None` at the end of text or window.
    #[inline]
    pub(super) fn byte(&self, at: usize) -> Result<Option<u8>, More> {
        match self.bytes.get(at) {
            Some(&byte) => Ok(Some(byte)),
            None if self.open => Err(More),
            None => Ok(None),
        }
    }

    /// Skips white space of any kind; returns the offset behind it, and whether it contains a line break.
    #[inline]
    pub(super) fn space(&self, mut at: usize) -> Result<(usize, bool), More> {
        let mut newline = false;
        loop {
            match self.byte(at)? {
                Some(byte) if is_space(byte) => {
                    newline |= byte == b'\n';
                    at += 1;
                }
                Some(_) => match json::odd_space(self.bytes, at) {
                    Some(length) => at += length,
                    None => return Ok((at, newline)),
                },
                None => return Ok((at, newline)),
            }
        }
    }

    pub(super) fn quote(&self, at: usize) -> Result<Option<(Quote, usize)>, More> {
        match self.byte(at)? {
            None => Ok(None),
            Some(b'\\') => {
                self.byte(at + 1)?;
                Ok(json::quote(self.bytes, at))
            }
            Some(_) => Ok(json::quote(self.bytes, at)),
        }
    }

    pub(super) fn mark(&self, at: usize) -> Result<Option<u8>, More> {
        Ok(match self.byte(at)? {
            None => None,
            Some(_) => json::mark(self.bytes, at).map(|(mark, _)| mark),
        })
    }

    /// Returns whether a comment starts at `at`.
    pub(super) fn comment(&self, at: usize) -> Result<bool, More> {
        Ok(self.byte(at)? == Some(b'/') && matches!(self.byte(at + 1)?, Some(b'/' | b'*')))
    }

    /// Returns whether `text` is at `at`.
    pub(super) fn starts(&self, at: usize, text: &[u8]) -> Result<bool, More> {
        for (i, &byte) in text.iter().enumerate() {
            if self.byte(at + i)? != Some(byte) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// End of the string that `quote` opened before `at`.
    pub(super) fn string_end(&self, mut at: usize, quote: Quote) -> Result<StringEnd, More> {
        loop {
            at = quote.stops().find(self.bytes, at);
            match self.byte(at)? {
                None => return Ok(StringEnd::End),
                Some(b'\n') => return Ok(StringEnd::Broken),
                Some(b'\\') => {
                    let Some(escaped) = self.byte(at + 1)? else { return Ok(StringEnd::End) };
                    if quote == Quote::Escaped && escaped == b'"' {
                        return Ok(StringEnd::After(at + 2));
                    }
                    // In a text escaped as a whole, `\\"` is an inner quote.
                    let doubled = quote == Quote::Escaped && escaped == b'\\';
                    at += if doubled && self.byte(at + 2)? == Some(b'"') { 3 } else { 2 };
                }
                Some(byte) => match json::quote(self.bytes, at) {
                    Some((mark, length)) if quote.ends_with(mark) => {
                        return Ok(StringEnd::After(at + length));
                    }
                    _ => at += utf8::width(byte),
                },
            }
        }
    }

    /// Returns whether a key with its colon is at `at`: quoted, or of at most `words` words.
    pub(super) fn key(&self, at: usize, words: usize) -> Result<Key, More> {
        if let Some((quote, length)) = self.quote(at)? {
            let StringEnd::After(end) = self.string_end(at + length, quote)? else {
                let broken = matches!(self.string_end(at + length, quote)?, StringEnd::Broken);
                return Ok(if broken { Key::No } else { Key::End });
            };
            return self.colon(end);
        }
        let (end, _) = self.words(at, words)?;
        if end == at {
            return Ok(if self.byte(at)?.is_none() { Key::End } else { Key::No });
        }
        if let Some((Quote::Double | Quote::Single, length)) = self.quote(end)? {
            return self.colon(end + length);
        }
        self.colon(end)
    }

    fn colon(&self, at: usize) -> Result<Key, More> {
        let (at, _) = self.space(at)?;
        Ok(match self.mark(at)? {
            Some(b':') if self.starts(at, b"://")? => Key::No,
            Some(b':') => Key::Yes,
            _ if self.byte(at)?.is_none() => Key::End,
            _ => Key::No,
        })
    }

    /// End of a run of at most `words` words on one line, and their number.
    pub(super) fn words(&self, mut at: usize, words: usize) -> Result<(usize, usize), More> {
        let (mut end, mut count) = (at, 0);
        while count < words {
            let start = at;
            while let Some(byte) = self.byte(at)? {
                let letter = byte >= 0x80
                    && json::mark(self.bytes, at).is_none()
                    && json::quote(self.bytes, at).is_none()
                    && json::odd_space(self.bytes, at).is_none();
                if !is_word(byte) && !letter {
                    break;
                }
                at += utf8::width(byte);
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
    pub(super) fn word(&self, at: usize) -> Result<&'a [u8], More> {
        let mut end = at;
        while self.byte(end)?.is_some_and(is_word) {
            end += 1;
        }
        Ok(&self.bytes[at..end])
    }

    /// Skips closing brackets and white space behind them; returns the offset, their number, and whether a
    /// line break is last.
    pub(super) fn closers(&self, mut at: usize, parens: bool) -> Result<(usize, usize, bool), More> {
        let (mut count, mut newline) = (0, false);
        loop {
            match self.byte(at)? {
                Some(_) => {}
                None => return Ok((at, count, newline)),
            }
            match json::mark(self.bytes, at) {
                Some((b'}' | b']', length)) => at += length,
                Some((b')', length)) if parens => at += length,
                _ => return Ok((at, count, newline)),
            }
            count += 1;
            (at, newline) = self.space(at)?;
        }
    }
}
