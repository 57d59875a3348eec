//! Decision whether a bracket in text begins a value or belongs to prose.

use crate::lex::json::{QuoteKind, is_word_byte};
use crate::lex::utf8;

use super::lookahead::{KeyCheck, Lookahead, MissingInput};
use super::reader::JsonReader;

impl JsonReader {
    /// Returns whether the text behind `{` is an object rather than prose in braces.
    pub(super) fn starts_object(&self, p: &Lookahead<'_>, at: usize) -> Result<bool, MissingInput> {
        let (at, _) = p.skip_space(at)?;
        let is_fresh = self.surrounding_text.is_fresh;
        let Some(byte) = p.byte(at)? else { return Ok(is_fresh) };
        if let Some((quote, length)) = p.quote_at(at)? {
            return Ok(match quote {
                QuoteKind::Back if p.starts_with(at, b"```")? => false,
                QuoteKind::Double if p.byte(at + length)? != Some(b'"') => true,
                QuoteKind::Double | QuoteKind::Escaped => true,
                _ => is_fresh || p.check_key(at, 1)? != KeyCheck::No,
            });
        }
        Ok(match byte {
            b'}' => true,
            b']' | b',' => is_fresh,
            b'/' => p.is_comment(at)?,
            b'#' => is_fresh,
            b'\\' => matches!(p.byte(at + 1)?, Some(b'n' | b'r' | b't')),
            b'.' => is_fresh && p.starts_with(at, b"...")?,
            _ if is_word_byte(byte) || byte >= 0x80 => match p.check_key(at, if is_fresh { 3 } else { 2 })? {
                KeyCheck::Yes => true,
                KeyCheck::Undecided => is_fresh,
                KeyCheck::No => {
                    let (end, words) = p.skip_words(at, 1)?;
                    let (next, _) = p.skip_space(end)?;
                    is_fresh
                        && words == 1
                        && p.quote_at(next)?.is_some_and(|(quote, _)| quote != QuoteKind::Back)
                }
            },
            _ => false,
        })
    }

    /// Returns whether the text behind `[` is an array rather than prose in brackets.
    pub(super) fn starts_array(&self, p: &Lookahead<'_>, mut at: usize) -> Result<bool, MissingInput> {
        let is_fresh = self.surrounding_text.is_fresh;
        loop {
            (at, _) = p.skip_space(at)?;
            match p.mark_at(at)? {
                Some(b'[') => at += 1,
                Some(b'{') => return Ok(is_fresh || self.starts_object(p, at + 1)?),
                Some(b']') => return Ok(true),
                Some(b',' | b'}') => return Ok(is_fresh),
                _ => break,
            }
            // Full-width brackets have three bytes; skips the other two.
            while p.byte(at)?.is_some_and(|byte| (0x80..0xC0).contains(&byte)) {
                at += 1;
            }
        }
        let Some(byte) = p.byte(at)? else { return Ok(is_fresh) };
        if let Some((quote, _)) = p.quote_at(at)? {
            return Ok(matches!(quote, QuoteKind::Double | QuoteKind::Escaped)
                || is_fresh && quote != QuoteKind::Back);
        }
        Ok(match byte {
            b'/' => p.is_comment(at)?,
            b'-' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'.' => {
                let word = p.word_at(at)?;
                let (next, newline) = p.skip_space(at + word.len())?;
                let is_end = newline
                    || matches!(p.mark_at(next)?, Some(b',' | b']'))
                    || is_fresh && p.byte(next)? == Some(b';')
                    || p.is_comment(next)?;
                let is_plain = !byte.is_ascii_alphabetic()
                    || matches!(word, b"true" | b"false" | b"null" | b"True" | b"False" | b"None");
                match p.byte(next)? {
                    _ if self.is_interval(p, at)? => false,
                    None => is_fresh,
                    Some(_) => is_plain && is_end || is_fresh && self.ends_like_item(p, at)?,
                }
            }
            _ => is_fresh && byte >= 0x80 && self.ends_like_item(p, at)?,
        })
    }

    /// Returns whether unquoted items end with a round bracket, as in an interval (`[0, 1)`).
    fn is_interval(&self, p: &Lookahead<'_>, mut at: usize) -> Result<bool, MissingInput> {
        loop {
            let (end, _) = p.skip_words(at, 2)?;
            let (next, _) = p.skip_space(end)?;
            match p.mark_at(next)? {
                Some(b')') => return Ok(end > at),
                Some(b',') => at = p.skip_space(next + utf8::char_width(p.byte(next)?.unwrap_or(b',')))?.0,
                _ => return Ok(false),
            }
        }
    }

    /// Returns whether a few words end like an item of an array.
    fn ends_like_item(&self, p: &Lookahead<'_>, at: usize) -> Result<bool, MissingInput> {
        if p.starts_with(at, b"http")? {
            return Ok(true);
        }
        let (end, _) = p.skip_words(at, 4)?;
        let (next, newline) = p.skip_space(end)?;
        if p.quote_at(next)?.is_some() {
            return Ok(end > at);
        }
        Ok(match p.byte(next)? {
            None => true,
            Some(_) => end > at && (newline || matches!(p.mark_at(next)?, Some(b',' | b']' | b'}'))),
        })
    }
}
