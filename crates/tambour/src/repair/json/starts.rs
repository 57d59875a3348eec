//! Decision whether a bracket in text begins a value or belongs to prose.

use crate::lex::json::{Quote, is_word};
use crate::lex::utf8;

use super::peek::{Key, More, Peek};
use super::reader::Reader;

impl Reader {
    /// Returns whether the text behind `{` is an object rather than prose in braces.
    pub(super) fn object_starts(&self, p: &Peek<'_>, at: usize) -> Result<bool, More> {
        let (at, _) = p.space(at)?;
        let fresh = self.outside.fresh;
        let Some(byte) = p.byte(at)? else { return Ok(fresh) };
        if let Some((quote, length)) = p.quote(at)? {
            return Ok(match quote {
                Quote::Back if p.starts(at, b"```")? => false,
                Quote::Double if p.byte(at + length)? != Some(b'"') => true,
                Quote::Double | Quote::Escaped => true,
                _ => fresh || p.key(at, 1)? != Key::No,
            });
        }
        Ok(match byte {
            b'}' => true,
            b']' | b',' => fresh,
            b'/' => p.comment(at)?,
            b'#' => fresh,
            b'\\' => matches!(p.byte(at + 1)?, Some(b'n' | b'r' | b't')),
            b'.' => fresh && p.starts(at, b"...")?,
            _ if is_word(byte) || byte >= 0x80 => match p.key(at, if fresh { 3 } else { 2 })? {
                Key::Yes => true,
                Key::End => fresh,
                Key::No => {
                    let (end, words) = p.words(at, 1)?;
                    let (next, _) = p.space(end)?;
                    fresh && words == 1 && p.quote(next)?.is_some_and(|(quote, _)| quote != Quote::Back)
                }
            },
            _ => false,
        })
    }

    /// Returns whether the text behind `[` is an array rather than prose in brackets.
    pub(super) fn array_starts(&self, p: &Peek<'_>, mut at: usize) -> Result<bool, More> {
        let fresh = self.outside.fresh;
        loop {
            (at, _) = p.space(at)?;
            match p.mark(at)? {
                Some(b'[') => at += 1,
                Some(b'{') => return Ok(fresh || self.object_starts(p, at + 1)?),
                Some(b']') => return Ok(true),
                Some(b',' | b'}') => return Ok(fresh),
                _ => break,
            }
            // Full-width brackets have three bytes; skips the other two.
            while p.byte(at)?.is_some_and(|byte| (0x80..0xC0).contains(&byte)) {
                at += 1;
            }
        }
        let Some(byte) = p.byte(at)? else { return Ok(fresh) };
        if let Some((quote, _)) = p.quote(at)? {
            return Ok(matches!(quote, Quote::Double | Quote::Escaped) || fresh && quote != Quote::Back);
        }
        Ok(match byte {
            b'/' => p.comment(at)?,
            b'-' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'.' => {
                let word = p.word(at)?;
                let (next, newline) = p.space(at + word.len())?;
                let ends = newline
                    || matches!(p.mark(next)?, Some(b',' | b']'))
                    || fresh && p.byte(next)? == Some(b';')
                    || p.comment(next)?;
                let plain = !byte.is_ascii_alphabetic()
                    || matches!(word, b"true" | b"false" | b"null" | b"True" | b"False" | b"None");
                match p.byte(next)? {
                    _ if self.interval(p, at)? => false,
                    None => fresh,
                    Some(_) => plain && ends || fresh && self.words_end(p, at)?,
                }
            }
            _ => fresh && byte >= 0x80 && self.words_end(p, at)?,
        })
    }

    /// Returns whether unquoted items end with a round bracket, as in an interval (`[0, 1)`).
    fn interval(&self, p: &Peek<'_>, mut at: usize) -> Result<bool, More> {
        loop {
            let (end, _) = p.words(at, 2)?;
            let (next, _) = p.space(end)?;
            match p.mark(next)? {
                Some(b')') => return Ok(end > at),
                Some(b',') => at = p.space(next + utf8::width(p.byte(next)?.unwrap_or(b',')))?.0,
                _ => return Ok(false),
            }
        }
    }

    /// Returns whether a few words end like an item of an array.
    fn words_end(&self, p: &Peek<'_>, at: usize) -> Result<bool, More> {
        if p.starts(at, b"http")? {
            return Ok(true);
        }
        let (end, _) = p.words(at, 4)?;
        let (next, newline) = p.space(end)?;
        if p.quote(next)?.is_some() {
            return Ok(end > at);
        }
        Ok(match p.byte(next)? {
            None => true,
            Some(_) => end > at && (newline || matches!(p.mark(next)?, Some(b',' | b']' | b'}'))),
        })
    }
}
