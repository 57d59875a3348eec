//! Unquoted keys, and stray words in an object.

use crate::lex::json::{self, QuoteKind};
use crate::lex::utf8;
use crate::repair::rules;

use super::event::{JsonEvent, JsonSink};
use super::lookahead::{KeyCheck, Lookahead, MissingInput, WINDOW};
use super::reader::JsonReader;
use super::state::{ExpectedToken, TextCursor, TextSpot};
use super::structure::ItemRole;
use super::word::ellipsis_len;

impl JsonReader {
    /// Reads an unquoted key, or skips stray words.
    pub(super) fn read_bare_key<S: JsonSink + ?Sized>(
        &mut self,
        c: &mut TextCursor<'_>,
        sink: &mut S,
    ) -> Result<(), MissingInput> {
        let (bytes, at) = (c.bytes(), c.offset);
        if let Some(length) = ellipsis_len(&bytes[at..]) {
            // An ellipsis may still grow.
            let p = Lookahead::new(bytes, at + length, c.is_last);
            if p.byte(at + length)? != Some(b'.') {
                self.skip_ellipsis(c, length, sink);
                return Ok(());
            }
        } else if bytes[at] == b'.' && bytes.len() < at + 3 && !c.is_last {
            return Err(MissingInput);
        }
        let word = bytes[at..].iter().take(WINDOW / 2).take_while(|&&byte| json::is_word_byte(byte)).count();
        if word > 0 && bytes.get(at + word) == Some(&b':') {
            self.emit_bare_key(c, (at, at + word), sink);
            c.offset = at + word;
            return Ok(());
        }
        self.work += WINDOW as u64;
        let p = Lookahead::new(bytes, at, c.is_last);
        // Scans the words up to the end of a key.
        let mut end = at;
        let (text_end, colon) = loop {
            let Some(byte) = p.byte(end)? else { break (end, false) };
            match json::mark_at(bytes, end) {
                Some((b'(' | b')', length)) => end += length,
                Some((mark, _)) => break (end, mark == b':'),
                None if byte == b'\n' || byte < 0x20 && byte != b'\t' => break (end, false),
                None if json::quote_at(bytes, end)
                    .is_some_and(|(quote, _)| quote != QuoteKind::Single || !is_adjacent(bytes, at, end)) =>
                {
                    break (end, false);
                }
                None if byte == b'/' && p.is_comment(end)? => break (end, false),
                None => end += utf8::char_width(byte),
            }
        };
        let text_end = text_end.min(bytes.len());
        let text_end =
            (at..=text_end).rev().find(|&text_end| c.text.is_char_boundary(text_end)).unwrap_or(at);
        let trimmed_end = at + c.text[at..text_end].trim_end().len();
        let quote = p.quote_at(text_end)?;
        if let Some((_, length)) = quote.filter(|_| trimmed_end == text_end && text_end > at) {
            // `a":1`: the opening quote of the key is missing.
            let (next, _) = p.skip_space(text_end + length)?;
            if p.mark_at(next)? == Some(b':') {
                self.emit_bare_key(c, (at, text_end), sink);
                c.offset = text_end + length;
                return Ok(());
            }
        }
        let has_value = match (quote, p.mark_at(text_end)?) {
            _ if colon => true,
            (Some(_), _) => {
                p.check_key(text_end, 1)? != KeyCheck::Yes && self.expected != ExpectedToken::CommaOrEnd
            }
            (None, Some(b'{' | b'[')) => self.expected != ExpectedToken::CommaOrEnd,
            (None, _) => false,
        };
        let is_lone = self.expected != ExpectedToken::CommaOrEnd
            && text_end - at < WINDOW
            && p.skip_words(at, 2)?.1 == 1
            && (matches!(p.mark_at(text_end)?, Some(b',' | b'}')) || p.byte(text_end)?.is_none());
        if (has_value || is_lone) && trimmed_end > at {
            self.emit_bare_key(c, (at, trimmed_end), sink);
            c.offset = trimmed_end;
            return Ok(());
        }
        // Skips stray text such as `1 2` in `{"a" 1 2}`; at least one character, to guarantee progress.
        let text_end = text_end.max(at + utf8::char_width(bytes[at])).min(bytes.len());
        let end = self.base_place.offset + text_end;
        self.save_places(c.text);
        let place = self.place_at(c.text, at);
        self.stray_text.get_or_insert((place, end)).1 = end;
        c.offset = text_end;
        Ok(())
    }

    fn emit_bare_key<S: JsonSink + ?Sized>(
        &mut self,
        c: &TextCursor<'_>,
        (at, end): (usize, usize),
        sink: &mut S,
    ) {
        let is_key = self.begin_item(c, at, sink) == ItemRole::Key;
        debug_assert!(is_key, "keys are read where keys belong");
        let texts = ("a key without quotes", "added quotes");
        self.report_repair(c, (at, end), &rules::UNQUOTED_KEY, texts, sink);
        self.key_spot = TextSpot::Current(at);
        let place = self.key_place(c.text, end);
        self.is_after_newline = false;
        self.expected = ExpectedToken::Colon;
        sink.event(JsonEvent::Key { text: &c.text[at..end], place, depth: self.stack.len() });
    }
}

/// Returns whether no white space precedes `at`, as in `it's`.
fn is_adjacent(bytes: &[u8], start: usize, at: usize) -> bool {
    at > start && !json::is_json_space(bytes[at - 1])
}
