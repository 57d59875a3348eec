//! Role of a quote inside a string: whether it ends the string is decided from the text after it, within a
//! bounded look-ahead.

use crate::lex::json::{QuoteKind, is_json_space, is_word_byte};

use super::lookahead::{KeyCheck, Lookahead, MissingInput, StringEnd};
use super::reader::JsonReader;
use super::state::{JsonFrame, ReaderMode};

/// Role of a quote inside a string.
pub(super) enum QuoteRole {
    /// Closing quote of the string, of this many bytes.
    End(usize),
    /// Part of the text.
    Text,
    /// Second of two quotes that open the string.
    Redundant,
    /// Start of the next item: the string ended before the punctuation in front of the quote.
    NextItem,
    /// Start of the value: the key ended before the colon in front of the quote, at this offset.
    NextValue(usize),
    /// Closing quote of a string that `+` joins to another. The other string opens with `quote`, and its text
    /// begins at `next`.
    Concatenation { quote: QuoteKind, next: usize },
}

impl JsonReader {
    /// Returns whether the bytes directly after the quote at `at` show that it ends its string: the common
    /// cases of [`JsonReader::decide_quote`], in a few comparisons.
    #[inline]
    pub(super) fn is_plain_end(&self, bytes: &[u8], at: usize) -> bool {
        let Some(&next_byte) = bytes.get(at + 1) else { return false };
        if !matches!(self.string.quote, QuoteKind::Double | QuoteKind::Single) {
            return false;
        }
        if self.string.is_key {
            return next_byte == b':';
        }
        match next_byte {
            b'}' | b']' => !self.stack.is_empty() && bytes.get(at + 2) == Some(&b','),
            b',' => match self.stack.last() {
                Some(JsonFrame::Array) => !self.string.is_in_inner_quotes && bytes.len() > at + 2,
                Some(JsonFrame::Object) => is_quoted_key(bytes, at + 2),
                _ => false,
            },
            _ => false,
        }
    }

    /// Decides about the quote at `at` of `length` bytes. The text of the string before the quote is emitted
    /// up to `from`; its tail ([`JsonReader::tail_start`]) begins at `tail`.
    pub(super) fn decide_quote(
        &self,
        bytes: &[u8],
        at: usize,
        length: usize,
        (from, tail): (usize, usize),
        is_last: bool,
    ) -> Result<QuoteRole, MissingInput> {
        let lookahead = Lookahead::new(bytes, at, is_last);
        let mut after = at + length;
        if self.string.quote == QuoteKind::Triple {
            if !lookahead.starts_with(at, b"\"\"\"")? {
                return Ok(QuoteRole::Text);
            }
            after = at + 3;
        }
        let end_role = QuoteRole::End(after - at);
        let (next, has_newline) = lookahead.skip_space(after)?;
        let Some(byte) = lookahead.byte(next)? else { return Ok(end_role) };
        // A string that began with two quotes may end with two.
        if self.string.has_double_opening && byte == b'"' && next == after {
            let (following, _) = lookahead.skip_space(after + 1)?;
            if lookahead.byte(following)?.is_none()
                || matches!(lookahead.mark_at(following)?, Some(b':' | b',' | b'}' | b']'))
            {
                return Ok(QuoteRole::End(2));
            }
        }
        // A letter right after the second of two quotes: the string begins with both.
        if self.string.is_empty && from == at && next == after && self.string.quote == QuoteKind::Double {
            let is_letter =
                is_word_byte(byte) && byte != b'+' || byte >= 0x80 && lookahead.mark_at(next)?.is_none();
            if is_letter && lookahead.quote_at(next)?.is_none() {
                return Ok(QuoteRole::Redundant);
            }
        }
        if byte == b'+' && !self.string.is_key {
            let (second, _) = lookahead.skip_space(next + 1)?;
            if let Some((quote, length)) = lookahead.quote_at(second)? {
                return Ok(QuoteRole::Concatenation { quote, next: second + length });
            }
        }
        let is_comment_next = lookahead.is_comment(next)? || byte == b'#' && next > after;
        if is_comment_next || byte == b'`' && lookahead.starts_with(next, b"```")? {
            return Ok(end_role);
        }
        let is_end = if self.string.is_key {
            self.ends_key(&lookahead, next)?
        } else {
            match self.stack.last() {
                Some(JsonFrame::Object) => self.ends_member(&lookahead, next, has_newline)?,
                Some(JsonFrame::Array | JsonFrame::Tuple) => self.ends_item(&lookahead, next, has_newline)?,
                None => self.ends_scalar(&lookahead, next, has_newline)?,
            }
        };
        if is_end {
            return Ok(end_role);
        }
        // `{"key:"value"}`: the closing quote of the key is missing.
        let blanks = bytes[from..at].iter().rev().take_while(|byte| **byte == b' ').count();
        let colon = at - blanks;
        if self.string.is_key
            && bytes[from..colon].ends_with(b":")
            && self.string.quote == QuoteKind::Double
            && let StringEnd::After(end) = lookahead.string_end(after, QuoteKind::Double)?
        {
            let (following, _) = lookahead.skip_space(end)?;
            if lookahead.byte(following)?.is_none()
                || matches!(lookahead.mark_at(following)?, Some(b',' | b'}'))
            {
                return Ok(QuoteRole::NextValue(colon - 1));
            }
        }
        if tail < at && self.begins_next(&lookahead, &bytes[tail..at], at, after)? {
            return Ok(QuoteRole::NextItem);
        }
        Ok(QuoteRole::Text)
    }

    /// Returns whether a key ends before `next`: at `next` there is a colon, a value without its colon, or
    /// punctuation where the value should be.
    fn ends_key(&self, lookahead: &Lookahead<'_>, next: usize) -> Result<bool, MissingInput> {
        if let Some(mark) = lookahead.mark_at(next)? {
            return Ok(mark != b')');
        }
        if lookahead.byte(next)? == Some(b'=') {
            return self.is_equals_colon(lookahead, next);
        }
        Ok(lookahead.quote_at(next)?.is_some() || self.is_value_word(lookahead, next)?)
    }

    /// Returns whether `=` or `=>` at `at` replaces a colon before a value.
    pub(super) fn is_equals_colon(&self, lookahead: &Lookahead<'_>, at: usize) -> Result<bool, MissingInput> {
        let width = 1 + usize::from(lookahead.byte(at + 1)? == Some(b'>'));
        let (value, _) = lookahead.skip_space(at + width)?;
        Ok(lookahead.quote_at(value)?.is_some()
            || matches!(lookahead.mark_at(value)?, Some(b'{' | b'['))
            || self.is_value_word(lookahead, value)?)
    }

    /// Returns whether the value of a key ends before `next`. `has_newline` is whether a line break precedes
    /// `next`.
    fn ends_member(
        &self,
        lookahead: &Lookahead<'_>,
        next: usize,
        has_newline: bool,
    ) -> Result<bool, MissingInput> {
        match lookahead.mark_at(next)? {
            Some(b'}' | b']') => return self.ends_containers(lookahead, next),
            Some(b')') => return Ok(self.open_calls > 0),
            // Between the string and a bracket on a new line the comma is missing.
            Some(b'{' | b'[') => return Ok(has_newline),
            Some(b',') => {}
            // A colon or an opening round bracket.
            Some(_) => return Ok(false),
            // A semicolon in place of the comma.
            None if lookahead.byte(next)? == Some(b';') => {
                let (key, _) = lookahead.skip_space(next + 1)?;
                return Ok(lookahead.byte(key)?.is_none()
                    || lookahead.mark_at(key)? == Some(b'}')
                    || lookahead.check_key(key, 1)? == KeyCheck::Yes);
            }
            // The comma before the next key is missing.
            None if lookahead.quote_at(next)?.is_some() => {
                return Ok(lookahead.check_key(next, 1)? == KeyCheck::Yes);
            }
            None => return Ok(has_newline && lookahead.check_key(next, 3)? == KeyCheck::Yes),
        }
        // The text after the comma decides. A comma that is not ASCII has three bytes.
        let comma_len = if lookahead.byte(next)? == Some(b',') { 1 } else { 3 };
        let (item, has_newline) = lookahead.skip_space(next + comma_len)?;
        let Some(byte) = lookahead.byte(item)? else { return Ok(true) };
        if lookahead.mark_at(item)?.is_some() || lookahead.is_comment(item)? || matches!(byte, b'#' | b'`') {
            return Ok(true);
        }
        let Some((quote, length)) = lookahead.quote_at(item)? else {
            if lookahead.starts_with(item, b"...")? || lookahead.starts_with(item, "…".as_bytes())? {
                return Ok(true);
            }
            let max_key_words = if has_newline { 3 } else { 1 };
            if lookahead.check_key(item, max_key_words)? != KeyCheck::No {
                return Ok(true);
            }
            // A stray word before the next key.
            let (end, _) = lookahead.skip_words(item, 2)?;
            return Ok(end > item
                && lookahead.quote_at(end + 1)?.is_some()
                && lookahead.check_key(end + 1, 1)? == KeyCheck::Yes);
        };
        if lookahead.check_key(item, 1)? != KeyCheck::No {
            return Ok(true);
        }
        // A string without a colon follows: if inner quotes are open, it is more likely the next quotation.
        let StringEnd::After(end) = lookahead.string_end(item + length, quote)? else { return Ok(true) };
        let (following, _) = lookahead.skip_space(end)?;
        Ok(!self.string.is_in_inner_quotes || following > end && lookahead.quote_at(following)?.is_some())
    }

    /// Returns whether an item of an array ends before `next`. `has_newline` is whether a line break precedes
    /// `next`.
    fn ends_item(
        &self,
        lookahead: &Lookahead<'_>,
        next: usize,
        has_newline: bool,
    ) -> Result<bool, MissingInput> {
        let is_in_inner_quotes = self.string.is_in_inner_quotes;
        match lookahead.mark_at(next)? {
            Some(b'}' | b']') => return self.ends_containers(lookahead, next),
            Some(b')') => {
                return Ok(self.open_calls > 0 || self.stack.last() == Some(&JsonFrame::Tuple));
            }
            Some(b',') => {}
            // A semicolon in place of the comma.
            None if lookahead.byte(next)? == Some(b';') => {
                let (item, _) = lookahead.skip_space(next + 1)?;
                return Ok(!is_in_inner_quotes
                    && (lookahead.quote_at(item)?.is_some() || lookahead.mark_at(item)?.is_some()));
            }
            Some(_) => return Ok(!is_in_inner_quotes),
            None if lookahead.quote_at(next)?.is_some() => return Ok(!is_in_inner_quotes || has_newline),
            None => return Ok(!is_in_inner_quotes && self.is_value_word(lookahead, next)?),
        }
        // A comma that is not ASCII has three bytes.
        let comma_len = if lookahead.byte(next)? == Some(b',') { 1 } else { 3 };
        let (item, has_newline) = lookahead.skip_space(next + comma_len)?;
        let Some(byte) = lookahead.byte(item)? else { return Ok(true) };
        if !is_in_inner_quotes || has_newline || lookahead.mark_at(item)?.is_some() {
            return Ok(true);
        }
        if let Some((quote, length)) = lookahead.quote_at(item)? {
            let StringEnd::After(end) = lookahead.string_end(item + length, quote)? else { return Ok(true) };
            let (following, _) = lookahead.skip_space(end)?;
            return Ok(lookahead.byte(following)?.is_none() || lookahead.mark_at(following)?.is_some());
        }
        // A word after the comma continues the text between inner quotes.
        Ok(!byte.is_ascii_alphabetic() || self.is_value_word(lookahead, item)?)
    }

    /// Returns whether a string that is the whole value ends before `next`. `has_newline` is whether a line
    /// break precedes `next`.
    fn ends_scalar(
        &self,
        lookahead: &Lookahead<'_>,
        next: usize,
        has_newline: bool,
    ) -> Result<bool, MissingInput> {
        if lookahead.mark_at(next)? == Some(b')') {
            return Ok(self.open_calls > 0);
        }
        if lookahead.mark_at(next)? == Some(b',') {
            let (item, _) = lookahead.skip_space(next + 1)?;
            return Ok(lookahead.byte(item)?.is_none() || self.starts_value(lookahead, item)?);
        }
        Ok(has_newline && self.starts_value(lookahead, next)?)
    }

    /// Returns whether a value begins at `at`.
    fn starts_value(&self, lookahead: &Lookahead<'_>, at: usize) -> Result<bool, MissingInput> {
        Ok(matches!(lookahead.mark_at(at)?, Some(b'{' | b'['))
            || lookahead.quote_at(at)?.is_some()
            || self.is_value_word(lookahead, at)?)
    }

    /// Returns whether the closing brackets at `at` end containers rather than a bracketed part of the text.
    fn ends_containers(&self, lookahead: &Lookahead<'_>, at: usize) -> Result<bool, MissingInput> {
        let accepts_parens = self.open_calls > 0;
        let (next, count, has_newline) = lookahead.skip_closers(at, accepts_parens)?;
        if count >= self.stack.len() || has_newline {
            return Ok(true);
        }
        let Some(byte) = lookahead.byte(next)? else { return Ok(true) };
        Ok(matches!(lookahead.mark_at(next)?, Some(b',' | b'{' | b'['))
            || lookahead.quote_at(next)?.is_some()
            || lookahead.is_comment(next)?
            || matches!(byte, b'#' | b';' | b'.'))
    }

    /// Returns whether a number or literal is at `at`, or several of them as separate words, up to the end of
    /// an item.
    pub(super) fn is_value_word(&self, lookahead: &Lookahead<'_>, at: usize) -> Result<bool, MissingInput> {
        let mut at = at;
        // Further words may follow, as in `[1 2 3]`.
        loop {
            let Some(end) = JsonReader::value_word_end(lookahead, at)? else { return Ok(false) };
            let (next, has_newline) = lookahead.skip_space(end)?;
            let Some(byte) = lookahead.byte(next)? else { return Ok(true) };
            if has_newline
                || lookahead.mark_at(next)?.is_some()
                || byte == b'"'
                || byte == b';'
                || lookahead.is_comment(next)?
            {
                return Ok(true);
            }
            if next == end {
                return Ok(false);
            }
            at = next;
        }
    }

    /// Offset after the number or literal at `at`; `None` if there is none.
    fn value_word_end(lookahead: &Lookahead<'_>, at: usize) -> Result<Option<usize>, MissingInput> {
        let word = lookahead.word_at(at)?;
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
    /// offset after it.
    fn begins_next(
        &self,
        lookahead: &Lookahead<'_>,
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
            return Ok(lookahead.check_key(at, 1)? == KeyCheck::Yes);
        }
        // In an array, a comma and a space may also precede a quotation within the string. So the tail must
        // be a lone comma, or a comma with a line break.
        let is_tight = has_newline && has_comma || tail == b",";
        if !is_tight || self.string.is_in_inner_quotes {
            return Ok(false);
        }
        let StringEnd::After(end) = lookahead.string_end(after, self.string.quote)? else { return Ok(false) };
        let (following, _) = lookahead.skip_space(end)?;
        Ok(matches!(lookahead.mark_at(following)?, Some(b',' | b']')))
    }

    /// Returns whether the line after the line break at `at` begins like an object; for JSON Lines only.
    pub(super) fn begins_line_value(
        &self,
        bytes: &[u8],
        at: usize,
        is_last: bool,
    ) -> Result<bool, MissingInput> {
        debug_assert!(self.mode == ReaderMode::Lines, "only JSON Lines are cut at line breaks");
        let lookahead = Lookahead::new(bytes, at, is_last);
        if lookahead.byte(at + 1)? != Some(b'{') {
            return Ok(false);
        }
        let (key, _) = lookahead.skip_space(at + 2)?;
        Ok(lookahead.byte(key)? == Some(b'"') && lookahead.check_key(key, 1)? == KeyCheck::Yes)
    }
}

/// Returns whether a quoted key without escapes, directly followed by a colon, is at `at` after at most 32
/// blanks. Only keys of at most 64 bytes are recognized; others take the slow path.
fn is_quoted_key(bytes: &[u8], at: usize) -> bool {
    let spaces = bytes[at..].iter().take(32).take_while(|&&byte| is_json_space(byte)).count();
    let Some((&quote @ (b'"' | b'\''), unread)) = bytes[at + spaces..].split_first() else { return false };
    let length =
        unread.iter().take(64).take_while(|&&byte| byte >= 0x20 && byte != quote && byte != b'\\').count();
    unread[length..].starts_with(&[quote, b':'])
}
