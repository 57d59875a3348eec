//! Unquoted keys, and stray words in an object.

use crate::lex::json::{self, Quote};
use crate::lex::utf8;
use crate::repair::rules;

use super::event::{JsonEvent, JsonSink};
use super::peek::{Key, More, Peek, WINDOW};
use super::reader::Reader;
use super::state::{Cursor, Expect, Spot};
use super::structure::Slot;
use super::word::ellipsis;

impl Reader {
    /// Reads an unquoted key, or skips stray words.
    pub(super) fn bare_key<S: JsonSink + ?Sized>(
        &mut self,
        c: &mut Cursor<'_>,
        sink: &mut S,
    ) -> Result<(), More> {
        let (bytes, at) = (c.bytes(), c.at);
        if let Some(length) = ellipsis(&bytes[at..]) {
            // An ellipsis may still grow.
            let p = Peek::new(bytes, at + length, c.last);
            if p.byte(at + length)? != Some(b'.') {
                self.skip_ellipsis(c, length, sink);
                return Ok(());
            }
        } else if bytes[at] == b'.' && bytes.len() < at + 3 && !c.last {
            return Err(More);
        }
        let word = bytes[at..].iter().take(WINDOW / 2).take_while(|&&byte| json::is_word(byte)).count();
        if word > 0 && bytes.get(at + word) == Some(&b':') {
            self.key_without_quotes(c, (at, at + word), sink);
            c.at = at + word;
            return Ok(());
        }
        self.work += WINDOW as u64;
        let p = Peek::new(bytes, at, c.last);
        // Scans the words up to the end of a key.
        let mut end = at;
        let (stop, colon) = loop {
            let Some(byte) = p.byte(end)? else { break (end, false) };
            match json::mark(bytes, end) {
                Some((b'(' | b')', length)) => end += length,
                Some((mark, _)) => break (end, mark == b':'),
                None if byte == b'\n' || byte < 0x20 && byte != b'\t' => break (end, false),
                None if json::quote(bytes, end)
                    .is_some_and(|(quote, _)| quote != Quote::Single || !tight(bytes, at, end)) =>
                {
                    break (end, false);
                }
                None if byte == b'/' && p.comment(end)? => break (end, false),
                None => end += utf8::width(byte),
            }
        };
        let stop = stop.min(bytes.len());
        let stop = (at..=stop).rev().find(|&stop| c.text.is_char_boundary(stop)).unwrap_or(at);
        let trimmed = at + c.text[at..stop].trim_end().len();
        let quote = p.quote(stop)?;
        if let Some((_, length)) = quote.filter(|_| trimmed == stop && stop > at) {
            // `a":1`: the opening quote of the key is missing.
            let (next, _) = p.space(stop + length)?;
            if p.mark(next)? == Some(b':') {
                self.key_without_quotes(c, (at, stop), sink);
                c.at = stop + length;
                return Ok(());
            }
        }
        let valued = match (quote, p.mark(stop)?) {
            _ if colon => true,
            (Some(_), _) => p.key(stop, 1)? != Key::Yes && self.expect != Expect::Next,
            (None, Some(b'{' | b'[')) => self.expect != Expect::Next,
            (None, _) => false,
        };
        let lone = self.expect != Expect::Next
            && stop - at < WINDOW
            && p.words(at, 2)?.1 == 1
            && (matches!(p.mark(stop)?, Some(b',' | b'}')) || p.byte(stop)?.is_none());
        if (valued || lone) && trimmed > at {
            self.key_without_quotes(c, (at, trimmed), sink);
            c.at = trimmed;
            return Ok(());
        }
        // Skips stray text such as `1 2` in `{"a" 1 2}`; at least one character, to guarantee progress.
        let stop = stop.max(at + utf8::width(bytes[at])).min(bytes.len());
        let end = self.base.offset + stop;
        self.settle(c.text);
        let place = self.place_at(c.text, at);
        self.stray.get_or_insert((place, end)).1 = end;
        c.at = stop;
        Ok(())
    }

    fn key_without_quotes<S: JsonSink + ?Sized>(
        &mut self,
        c: &Cursor<'_>,
        (at, end): (usize, usize),
        sink: &mut S,
    ) {
        let in_key = self.slot(c, at, sink) == Slot::Key;
        debug_assert!(in_key, "keys are read where keys belong");
        let what = ("a key without quotes", "added quotes");
        self.mend(c, (at, end), &rules::UNQUOTED_KEY, what, sink);
        self.key_at = Spot::At(at);
        let place = self.key_place(c.text, end);
        self.newline = false;
        self.expect = Expect::Colon;
        sink.event(JsonEvent::Key { text: &c.text[at..end], place, depth: self.stack.len() });
    }
}

/// Returns whether no white space precedes `at`, as in `it's`.
fn tight(bytes: &[u8], start: usize, at: usize) -> bool {
    at > start && !json::is_space(bytes[at - 1])
}
