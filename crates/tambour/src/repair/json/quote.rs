//! Decides whether a quote ends its string, from the text behind it within a bounded look-ahead.

use crate::lex::json::{Quote, is_space, is_word};

use super::peek::{Key, More, Peek, StringEnd};
use super::reader::Reader;
use super::state::{Frame, Mode};

/// Role of a quote inside a string.
pub(super) enum Decision {
    /// End of the string, of this many bytes.
    Close(usize),
    /// Part of the text.
    Inner,
    /// Second of two quotes that open the string.
    Drop,
    /// Start of the next item: the string ended before the punctuation in front of the quote.
    EndedBefore,
    /// Start of the value: the key ended before the colon in front of the quote, at this offset.
    KeyEndedBefore(usize),
    /// End of a part that `+` joins to another; its text continues at `next`.
    Joined { quote: Quote, next: usize },
}

impl Reader {
    /// Returns whether the bytes directly behind the quote at `at` show that it ends its string: the common
    /// cases of [`Reader::decide`], in a few comparisons.
    #[inline]
    pub(super) fn plainly_ends(&self, bytes: &[u8], at: usize) -> bool {
        let Some(&next) = bytes.get(at + 1) else { return false };
        if !matches!(self.string.quote, Quote::Double | Quote::Single) {
            return false;
        }
        if self.string.in_key {
            return next == b':';
        }
        match next {
            b'}' | b']' => !self.stack.is_empty() && bytes.get(at + 2) == Some(&b','),
            b',' => match self.stack.last() {
                Some(Frame::Array) => !self.string.inner && bytes.len() > at + 2,
                Some(Frame::Object) => quoted_key(bytes, at + 2),
                _ => false,
            },
            _ => false,
        }
    }

    /// Decides about the quote at `at`. Text before it is unemitted from `from` on; from `tail` on it
    /// consists of commas, closing brackets and white space.
    pub(super) fn decide(
        &self,
        bytes: &[u8],
        at: usize,
        length: usize,
        (from, tail): (usize, usize),
        last: bool,
    ) -> Result<Decision, More> {
        let p = Peek::new(bytes, at, last);
        let mut after = at + length;
        if self.string.quote == Quote::Triple {
            if !p.starts(at, b"\"\"\"")? {
                return Ok(Decision::Inner);
            }
            after = at + 3;
        }
        let close = Decision::Close(after - at);
        let (next, newline) = p.space(after)?;
        let Some(byte) = p.byte(next)? else { return Ok(close) };
        if self.string.doubled && byte == b'"' && next == after {
            let (then, _) = p.space(after + 1)?;
            if p.byte(then)?.is_none() || matches!(p.mark(then)?, Some(b':' | b',' | b'}' | b']')) {
                return Ok(Decision::Close(2));
            }
        }
        if self.string.empty && from == at && next == after && self.string.quote == Quote::Double {
            let letter = is_word(byte) && byte != b'+' || byte >= 0x80 && p.mark(next)?.is_none();
            if letter && p.quote(next)?.is_none() {
                return Ok(Decision::Drop);
            }
        }
        if byte == b'+' && !self.string.in_key {
            let (second, _) = p.space(next + 1)?;
            if let Some((quote, length)) = p.quote(second)? {
                return Ok(Decision::Joined { quote, next: second + length });
            }
        }
        let comment = p.comment(next)? || byte == b'#' && next > after;
        if comment || byte == b'`' && p.starts(next, b"```")? {
            return Ok(close);
        }
        let ends = if self.string.in_key {
            self.key_ends(&p, next)?
        } else {
            match self.stack.last() {
                Some(Frame::Object) => self.member_ends(&p, next, newline)?,
                Some(Frame::Array | Frame::Tuple) => self.item_ends(&p, next, newline)?,
                None => self.scalar_ends(&p, next, newline)?,
            }
        };
        if ends {
            return Ok(close);
        }
        // `{"key:"value"}`
        let blanks = bytes[from..at].iter().rev().take_while(|byte| **byte == b' ').count();
        let colon = at - blanks;
        if self.string.in_key
            && bytes[from..colon].ends_with(b":")
            && self.string.quote == Quote::Double
            && let StringEnd::After(end) = p.string_end(after, Quote::Double)?
        {
            let (then, _) = p.space(end)?;
            if p.byte(then)?.is_none() || matches!(p.mark(then)?, Some(b',' | b'}')) {
                return Ok(Decision::KeyEndedBefore(colon - 1));
            }
        }
        if tail < at && self.begins_next(&p, &bytes[tail..at], at, after)? {
            return Ok(Decision::EndedBefore);
        }
        Ok(Decision::Inner)
    }

    /// Returns whether a key ends before `next`: a colon follows, or a value whose colon is missing.
    fn key_ends(&self, p: &Peek<'_>, next: usize) -> Result<bool, More> {
        if let Some(mark) = p.mark(next)? {
            return Ok(mark != b')');
        }
        if p.byte(next)? == Some(b'=') {
            return self.equals(p, next);
        }
        Ok(p.quote(next)?.is_some() || self.is_value_word(p, next)?)
    }

    /// Returns whether `=` or `=>` at `at` replaces a colon, with a value behind it.
    pub(super) fn equals(&self, p: &Peek<'_>, at: usize) -> Result<bool, More> {
        let width = 1 + usize::from(p.byte(at + 1)? == Some(b'>'));
        let (value, _) = p.space(at + width)?;
        Ok(p.quote(value)?.is_some()
            || matches!(p.mark(value)?, Some(b'{' | b'['))
            || self.is_value_word(p, value)?)
    }

    /// Returns whether the value of a key ends before `next`.
    fn member_ends(&self, p: &Peek<'_>, next: usize, newline: bool) -> Result<bool, More> {
        match p.mark(next)? {
            Some(b'}' | b']') => return self.closes(p, next),
            Some(b')') => return Ok(self.calls > 0),
            Some(b'{' | b'[') => return Ok(newline),
            Some(b',') => {}
            Some(_) => return Ok(false),
            None if p.byte(next)? == Some(b';') => {
                let (key, _) = p.space(next + 1)?;
                return Ok(p.byte(key)?.is_none()
                    || p.mark(key)? == Some(b'}')
                    || p.key(key, 1)? == Key::Yes);
            }
            None if p.quote(next)?.is_some() => return Ok(p.key(next, 1)? == Key::Yes),
            None => return Ok(newline && p.key(next, 3)? == Key::Yes),
        }
        // The text behind the comma must look like a key.
        let width = if p.byte(next)? == Some(b',') { 1 } else { 3 };
        let (item, newline) = p.space(next + width)?;
        let Some(byte) = p.byte(item)? else { return Ok(true) };
        if p.mark(item)?.is_some() || p.comment(item)? || matches!(byte, b'#' | b'`') {
            return Ok(true);
        }
        let Some((quote, length)) = p.quote(item)? else {
            if p.starts(item, b"...")? || p.starts(item, "…".as_bytes())? {
                return Ok(true);
            }
            if p.key(item, if newline { 3 } else { 1 })? != Key::No {
                return Ok(true);
            }
            // A stray word before the next key.
            let (end, _) = p.words(item, 2)?;
            return Ok(end > item && p.quote(end + 1)?.is_some() && p.key(end + 1, 1)? == Key::Yes);
        };
        if p.key(item, 1)? != Key::No {
            return Ok(true);
        }
        // A string without a colon: inside inner quotes more likely the next quotation.
        let StringEnd::After(end) = p.string_end(item + length, quote)? else { return Ok(true) };
        let (then, _) = p.space(end)?;
        Ok(!self.string.inner || then > end && p.quote(then)?.is_some())
    }

    /// Returns whether an item of an array ends before `next`.
    fn item_ends(&self, p: &Peek<'_>, next: usize, newline: bool) -> Result<bool, More> {
        let inner = self.string.inner;
        match p.mark(next)? {
            Some(b'}' | b']') => return self.closes(p, next),
            Some(b')') => {
                return Ok(self.calls > 0 || self.stack.last() == Some(&Frame::Tuple));
            }
            Some(b',') => {}
            None if p.byte(next)? == Some(b';') => {
                let (item, _) = p.space(next + 1)?;
                return Ok(!inner && (p.quote(item)?.is_some() || p.mark(item)?.is_some()));
            }
            Some(_) => return Ok(!inner),
            None if p.quote(next)?.is_some() => return Ok(!inner || newline),
            None => return Ok(!inner && self.is_value_word(p, next)?),
        }
        let width = if p.byte(next)? == Some(b',') { 1 } else { 3 };
        let (item, newline) = p.space(next + width)?;
        let Some(byte) = p.byte(item)? else { return Ok(true) };
        if !inner || newline || p.mark(item)?.is_some() {
            return Ok(true);
        }
        if let Some((quote, length)) = p.quote(item)? {
            let StringEnd::After(end) = p.string_end(item + length, quote)? else { return Ok(true) };
            let (then, _) = p.space(end)?;
            return Ok(p.byte(then)?.is_none() || p.mark(then)?.is_some());
        }
        Ok(!byte.is_ascii_alphabetic() || self.is_value_word(p, item)?)
    }

    /// Returns whether a string that is the whole value ends before `next`.
    fn scalar_ends(&self, p: &Peek<'_>, next: usize, newline: bool) -> Result<bool, More> {
        if p.mark(next)? == Some(b')') {
            return Ok(self.calls > 0);
        }
        if p.mark(next)? == Some(b',') {
            let (item, _) = p.space(next + 1)?;
            return Ok(p.byte(item)?.is_none() || self.starts_value(p, item)?);
        }
        Ok(newline && self.starts_value(p, next)?)
    }

    fn starts_value(&self, p: &Peek<'_>, at: usize) -> Result<bool, More> {
        Ok(matches!(p.mark(at)?, Some(b'{' | b'[')) || p.quote(at)?.is_some() || self.is_value_word(p, at)?)
    }

    /// Returns whether the closing brackets at `at` end containers rather than a bracketed part of the text.
    fn closes(&self, p: &Peek<'_>, at: usize) -> Result<bool, More> {
        let (next, count, newline) = p.closers(at, self.calls > 0)?;
        if count >= self.stack.len() || newline {
            return Ok(true);
        }
        let Some(byte) = p.byte(next)? else { return Ok(true) };
        Ok(matches!(p.mark(next)?, Some(b',' | b'{' | b'['))
            || p.quote(next)?.is_some()
            || p.comment(next)?
            || matches!(byte, b'#' | b';' | b'.'))
    }

    /// Returns whether a number or literal is at `at`, as a separate word.
    pub(super) fn is_value_word(&self, p: &Peek<'_>, at: usize) -> Result<bool, More> {
        let mut at = at;
        // Further words may follow, as in `[1 2 3]`.
        loop {
            let Some(end) = Reader::value_word(p, at)? else { return Ok(false) };
            let (next, newline) = p.space(end)?;
            let Some(byte) = p.byte(next)? else { return Ok(true) };
            if newline || p.mark(next)?.is_some() || byte == b'"' || byte == b';' || p.comment(next)? {
                return Ok(true);
            }
            if next == end {
                return Ok(false);
            }
            at = next;
        }
    }

    /// End of the number or literal at `at`.
    fn value_word(p: &Peek<'_>, at: usize) -> Result<Option<usize>, More> {
        let word = p.word(at)?;
        let end = at + word.len();
        let literal = matches!(
            word,
            b"true" | b"false" | b"null" | b"True" | b"False" | b"None" | b"TRUE" | b"FALSE" | b"NULL"
        );
        let number = word.iter().any(u8::is_ascii_digit)
            && word.iter().all(|&byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
        Ok((literal || number).then_some(end))
    }

    /// Returns whether the quote at `at` opens the next item; `tail` is the text before it, `after` the
    /// offset behind it.
    fn begins_next(&self, p: &Peek<'_>, tail: &[u8], at: usize, after: usize) -> Result<bool, More> {
        if self.string.in_key || self.stack.is_empty() {
            return Ok(false);
        }
        let comma = tail.contains(&b',');
        let newline = tail.contains(&b'\n');
        let ends = tail.iter().any(|byte| matches!(byte, b'}' | b']'));
        if !comma && !newline {
            return Ok(false);
        }
        if self.stack.last() == Some(&Frame::Object) || ends {
            return Ok(p.key(at, 1)? == Key::Yes);
        }
        // In an array a comma and a space may precede a quotation too.
        let tight = newline && comma || tail == b",";
        if !tight || self.string.inner {
            return Ok(false);
        }
        let StringEnd::After(end) = p.string_end(after, self.string.quote)? else { return Ok(false) };
        let (then, _) = p.space(end)?;
        Ok(matches!(p.mark(then)?, Some(b',' | b']')))
    }

    /// For JSON Lines: whether the line behind the line break at `at` begins like an object.
    pub(super) fn line_begins(&self, bytes: &[u8], at: usize, last: bool) -> Result<bool, More> {
        debug_assert!(self.mode == Mode::Lines, "only JSON Lines are cut at line breaks");
        let p = Peek::new(bytes, at, last);
        if p.byte(at + 1)? != Some(b'{') {
            return Ok(false);
        }
        let (key, _) = p.space(at + 2)?;
        Ok(p.byte(key)? == Some(b'"') && p.key(key, 1)? == Key::Yes)
    }
}

/// Returns whether a plain quoted key is at `at`, directly followed by a colon.
fn quoted_key(bytes: &[u8], at: usize) -> bool {
    let spaces = bytes[at..].iter().take(32).take_while(|&&byte| is_space(byte)).count();
    let Some((&quote @ (b'"' | b'\''), rest)) = bytes[at + spaces..].split_first() else { return false };
    let length =
        rest.iter().take(64).take_while(|&&byte| byte >= 0x20 && byte != quote && byte != b'\\').count();
    rest[length..].starts_with(&[quote, b':'])
}
