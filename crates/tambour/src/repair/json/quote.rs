//! Decides whether a quote ends its string, from the text behind it within a bounded look-ahead.

use crate::lex::json::{QuoteKind, is_json_space, is_word_byte};

use super::lookahead::{KeyCheck, Lookahead, MissingInput, StringEnd};
use super::reader::JsonReader;
use super::state::{JsonFrame, ReaderMode};

/// Role of a quote inside a string.
pub(super) enum QuoteRole {
    /// End of the string, of this many bytes.
    End(usize),
    /// Part of the text.
    Text,
    /// Second of two quotes that open the string.
    Redundant,
    /// Start of the next item: the string ended before the punctuation in front of the quote.
    NextItem,
    /// Start of the value: the key ended before the colon in front of the quote, at this offset.
    NextValue(usize),
    /// End of a part that `+` joins to another; its text continues at `next`.
    Concatenation { quote: QuoteKind, next: usize },
}

impl JsonReader {
    /// Returns whether the bytes directly behind the quote at `at` show that it ends its string: the common
    /// cases of [`JsonReader::decide_quote`], in a few comparisons.
    #[inline]
    pub(super) fn is_plain_end(&self, bytes: &[u8], at: usize) -> bool {
        let Some(&next) = bytes.get(at + 1) else { return false };
        if !matches!(self.string.quote, QuoteKind::Double | QuoteKind::Single) {
            return false;
        }
        if self.string.is_key {
            return next == b':';
        }
        match next {
            b'}' | b']' => !self.stack.is_empty() && bytes.get(at + 2) == Some(&b','),
            b',' => match self.stack.last() {
                Some(JsonFrame::Array) => !self.string.is_in_inner_quotes && bytes.len() > at + 2,
                Some(JsonFrame::Object) => is_quoted_key(bytes, at + 2),
                _ => false,
            },
            _ => false,
        }
    }

    /// Decides about the quote at `at`. Text before it is unemitted from `from` on; from `tail` on it
    /// consists of commas, closing brackets and white space.
    pub(super) fn decide_quote(
        &self,
        bytes: &[u8],
        at: usize,
        length: usize,
        (from, tail): (usize, usize),
        last: bool,
    ) -> Result<QuoteRole, MissingInput> {
        let p = Lookahead::new(bytes, at, last);
        let mut after = at + length;
        if self.string.quote == QuoteKind::Triple {
            if !p.starts_with(at, b"\"\"\"")? {
                return Ok(QuoteRole::Text);
            }
            after = at + 3;
        }
        let close = QuoteRole::End(after - at);
        let (next, newline) = p.skip_space(after)?;
        let Some(byte) = p.byte(next)? else { return Ok(close) };
        if self.string.has_double_opening && byte == b'"' && next == after {
            let (following, _) = p.skip_space(after + 1)?;
            if p.byte(following)?.is_none()
                || matches!(p.mark_at(following)?, Some(b':' | b',' | b'}' | b']'))
            {
                return Ok(QuoteRole::End(2));
            }
        }
        if self.string.is_empty && from == at && next == after && self.string.quote == QuoteKind::Double {
            let is_letter = is_word_byte(byte) && byte != b'+' || byte >= 0x80 && p.mark_at(next)?.is_none();
            if is_letter && p.quote_at(next)?.is_none() {
                return Ok(QuoteRole::Redundant);
            }
        }
        if byte == b'+' && !self.string.is_key {
            let (second, _) = p.skip_space(next + 1)?;
            if let Some((quote, length)) = p.quote_at(second)? {
                return Ok(QuoteRole::Concatenation { quote, next: second + length });
            }
        }
        let is_comment_next = p.is_comment(next)? || byte == b'#' && next > after;
        if is_comment_next || byte == b'`' && p.starts_with(next, b"```")? {
            return Ok(close);
        }
        let is_end = if self.string.is_key {
            self.ends_key(&p, next)?
        } else {
            match self.stack.last() {
                Some(JsonFrame::Object) => self.ends_member(&p, next, newline)?,
                Some(JsonFrame::Array | JsonFrame::Tuple) => self.ends_item(&p, next, newline)?,
                None => self.ends_scalar(&p, next, newline)?,
            }
        };
        if is_end {
            return Ok(close);
        }
        // `{"key:"value"}`
        let blanks = bytes[from..at].iter().rev().take_while(|byte| **byte == b' ').count();
        let colon = at - blanks;
        if self.string.is_key
            && bytes[from..colon].ends_with(b":")
            && self.string.quote == QuoteKind::Double
            && let StringEnd::After(end) = p.string_end(after, QuoteKind::Double)?
        {
            let (following, _) = p.skip_space(end)?;
            if p.byte(following)?.is_none() || matches!(p.mark_at(following)?, Some(b',' | b'}')) {
                return Ok(QuoteRole::NextValue(colon - 1));
            }
        }
        if tail < at && self.begins_next(&p, &bytes[tail..at], at, after)? {
            return Ok(QuoteRole::NextItem);
        }
        Ok(QuoteRole::Text)
    }

    /// Returns whether a key ends before `next`: a colon follows, or a value whose colon is missing.
    fn ends_key(&self, p: &Lookahead<'_>, next: usize) -> Result<bool, MissingInput> {
        if let Some(mark) = p.mark_at(next)? {
            return Ok(mark != b')');
        }
        if p.byte(next)? == Some(b'=') {
            return self.is_equals_colon(p, next);
        }
        Ok(p.quote_at(next)?.is_some() || self.is_value_word(p, next)?)
    }

    /// Returns whether `=` or `=>` at `at` replaces a colon, with a value behind it.
    pub(super) fn is_equals_colon(&self, p: &Lookahead<'_>, at: usize) -> Result<bool, MissingInput> {
        let width = 1 + usize::from(p.byte(at + 1)? == Some(b'>'));
        let (value, _) = p.skip_space(at + width)?;
        Ok(p.quote_at(value)?.is_some()
            || matches!(p.mark_at(value)?, Some(b'{' | b'['))
            || self.is_value_word(p, value)?)
    }

    /// Returns whether the value of a key ends before `next`.
    fn ends_member(&self, p: &Lookahead<'_>, next: usize, newline: bool) -> Result<bool, MissingInput> {
        match p.mark_at(next)? {
            Some(b'}' | b']') => return self.ends_containers(p, next),
            Some(b')') => return Ok(self.open_calls > 0),
            Some(b'{' | b'[') => return Ok(newline),
            Some(b',') => {}
            Some(_) => return Ok(false),
            None if p.byte(next)? == Some(b';') => {
                let (key, _) = p.skip_space(next + 1)?;
                return Ok(p.byte(key)?.is_none()
                    || p.mark_at(key)? == Some(b'}')
                    || p.check_key(key, 1)? == KeyCheck::Yes);
            }
            None if p.quote_at(next)?.is_some() => return Ok(p.check_key(next, 1)? == KeyCheck::Yes),
            None => return Ok(newline && p.check_key(next, 3)? == KeyCheck::Yes),
        }
        // The text behind the comma must look like a key.
        let width = if p.byte(next)? == Some(b',') { 1 } else { 3 };
        let (item, newline) = p.skip_space(next + width)?;
        let Some(byte) = p.byte(item)? else { return Ok(true) };
        if p.mark_at(item)?.is_some() || p.is_comment(item)? || matches!(byte, b'#' | b'`') {
            return Ok(true);
        }
        let Some((quote, length)) = p.quote_at(item)? else {
            if p.starts_with(item, b"...")? || p.starts_with(item, "…".as_bytes())? {
                return Ok(true);
            }
            if p.check_key(item, if newline { 3 } else { 1 })? != KeyCheck::No {
                return Ok(true);
            }
            // A stray word before the next key.
            let (end, _) = p.skip_words(item, 2)?;
            return Ok(end > item
                && p.quote_at(end + 1)?.is_some()
                && p.check_key(end + 1, 1)? == KeyCheck::Yes);
        };
        if p.check_key(item, 1)? != KeyCheck::No {
            return Ok(true);
        }
        // A string without a colon: inside inner quotes more likely the next quotation.
        let StringEnd::After(end) = p.string_end(item + length, quote)? else { return Ok(true) };
        let (following, _) = p.skip_space(end)?;
        Ok(!self.string.is_in_inner_quotes || following > end && p.quote_at(following)?.is_some())
    }

    /// Returns whether an item of an array ends before `next`.
    fn ends_item(&self, p: &Lookahead<'_>, next: usize, newline: bool) -> Result<bool, MissingInput> {
        let inner = self.string.is_in_inner_quotes;
        match p.mark_at(next)? {
            Some(b'}' | b']') => return self.ends_containers(p, next),
            Some(b')') => {
                return Ok(self.open_calls > 0 || self.stack.last() == Some(&JsonFrame::Tuple));
            }
            Some(b',') => {}
            None if p.byte(next)? == Some(b';') => {
                let (item, _) = p.skip_space(next + 1)?;
                return Ok(!inner && (p.quote_at(item)?.is_some() || p.mark_at(item)?.is_some()));
            }
            Some(_) => return Ok(!inner),
            None if p.quote_at(next)?.is_some() => return Ok(!inner || newline),
            None => return Ok(!inner && self.is_value_word(p, next)?),
        }
        let width = if p.byte(next)? == Some(b',') { 1 } else { 3 };
        let (item, newline) = p.skip_space(next + width)?;
        let Some(byte) = p.byte(item)? else { return Ok(true) };
        if !inner || newline || p.mark_at(item)?.is_some() {
            return Ok(true);
        }
        if let Some((quote, length)) = p.quote_at(item)? {
            let StringEnd::After(end) = p.string_end(item + length, quote)? else { return Ok(true) };
            let (following, _) = p.skip_space(end)?;
            return Ok(p.byte(following)?.is_none() || p.mark_at(following)?.is_some());
        }
        Ok(!byte.is_ascii_alphabetic() || self.is_value_word(p, item)?)
    }

    /// Returns whether a string that is the whole value ends before `next`.
    fn ends_scalar(&self, p: &Lookahead<'_>, next: usize, newline: bool) -> Result<bool, MissingInput> {
        if p.mark_at(next)? == Some(b')') {
            return Ok(self.open_calls > 0);
        }
        if p.mark_at(next)? == Some(b',') {
            let (item, _) = p.skip_space(next + 1)?;
            return Ok(p.byte(item)?.is_none() || self.starts_value(p, item)?);
        }
        Ok(newline && self.starts_value(p, next)?)
    }

    fn starts_value(&self, p: &Lookahead<'_>, at: usize) -> Result<bool, MissingInput> {
        Ok(matches!(p.mark_at(at)?, Some(b'{' | b'['))
            || p.quote_at(at)?.is_some()
            || self.is_value_word(p, at)?)
    }

    /// Returns whether the closing brackets at `at` end containers rather than a bracketed part of the text.
    fn ends_containers(&self, p: &Lookahead<'_>, at: usize) -> Result<bool, MissingInput> {
        let (next, count, newline) = p.skip_closers(at, self.open_calls > 0)?;
        if count >= self.stack.len() || newline {
            return Ok(true);
        }
        let Some(byte) = p.byte(next)? else { return Ok(true) };
        Ok(matches!(p.mark_at(next)?, Some(b',' | b'{' | b'['))
            || p.quote_at(next)?.is_some()
            || p.is_comment(next)?
            || matches!(byte, b'#' | b';' | b'.'))
    }

    /// Returns whether a number or literal is at `at`, as a separate word.
    pub(super) fn is_value_word(&self, p: &Lookahead<'_>, at: usize) -> Result<bool, MissingInput> {
        let mut at = at;
        // Further words may follow, as in `[1 2 3]`.
        loop {
            let Some(end) = JsonReader::value_word_end(p, at)? else { return Ok(false) };
            let (next, newline) = p.skip_space(end)?;
            let Some(byte) = p.byte(next)? else { return Ok(true) };
            if newline || p.mark_at(next)?.is_some() || byte == b'"' || byte == b';' || p.is_comment(next)? {
                return Ok(true);
            }
            if next == end {
                return Ok(false);
            }
            at = next;
        }
    }

    /// End of the number or literal at `at`.
    fn value_word_end(p: &Lookahead<'_>, at: usize) -> Result<Option<usize>, MissingInput> {
        let word = p.word_at(at)?;
        let end = at + word.len();
        let is_literal = matches!(
            word,
            b"true" | b"false" | b"null" | b"True" | b"False" | b"None" | b"TRUE" | b"FALSE" | b"NULL"
        );
        let is_number = word.iter().any(u8::is_ascii_digit)
            && word.iter().all(|&byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
        Ok((is_literal || is_number).then_some(end))
    }

    /// Returns whether the quote at `at` opens the next item; `tail` is the text before it, `after` the
    /// offset behind it.
    fn begins_next(
        &self,
        p: &Lookahead<'_>,
        tail: &[u8],
        at: usize,
        after: usize,
    ) -> Result<bool, MissingInput> {
        if self.string.is_key || self.stack.is_empty() {
            return Ok(false);
        }
        let has_comma = tail.contains(&b',');
        let has_newline = tail.contains(&b'\n');
        let has_closing = tail.iter().any(|byte| matches!(byte, b'}' | b']'));
        if !has_comma && !has_newline {
            return Ok(false);
        }
        if self.stack.last() == Some(&JsonFrame::Object) || has_closing {
            return Ok(p.check_key(at, 1)? == KeyCheck::Yes);
        }
        // In an array a comma and a space may precede a quotation too.
        let is_tight = has_newline && has_comma || tail == b",";
        if !is_tight || self.string.is_in_inner_quotes {
            return Ok(false);
        }
        let StringEnd::After(end) = p.string_end(after, self.string.quote)? else { return Ok(false) };
        let (following, _) = p.skip_space(end)?;
        Ok(matches!(p.mark_at(following)?, Some(b',' | b']')))
    }

    /// For JSON Lines: whether the line behind the line break at `at` begins like an object.
    pub(super) fn begins_line_value(
        &self,
        bytes: &[u8],
        at: usize,
        last: bool,
    ) -> Result<bool, MissingInput> {
        debug_assert!(self.mode == ReaderMode::Lines, "only JSON Lines are cut at line breaks");
        let p = Lookahead::new(bytes, at, last);
        if p.byte(at + 1)? != Some(b'{') {
            return Ok(false);
        }
        let (key, _) = p.skip_space(at + 2)?;
        Ok(p.byte(key)? == Some(b'"') && p.check_key(key, 1)? == KeyCheck::Yes)
    }
}

/// Returns whether a plain quoted key is at `at`, directly followed by a colon.
fn is_quoted_key(bytes: &[u8], at: usize) -> bool {
    let spaces = bytes[at..].iter().take(32).take_while(|&&byte| is_json_space(byte)).count();
    let Some((&quote @ (b'"' | b'\''), rest)) = bytes[at + spaces..].split_first() else { return false };
    let length =
        rest.iter().take(64).take_while(|&&byte| byte >= 0x20 && byte != quote && byte != b'\\').count();
    rest[length..].starts_with(&[quote, b':'])
}
