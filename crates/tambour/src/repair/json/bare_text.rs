//! Unquoted strings and keys, and stray words in an object.

use super::event::{JsonEvent, JsonSink};
use super::lookahead::{KeyCheck, Lookahead, MissingInput, WINDOW};
use super::reader::JsonReader;
use super::state::{ExpectedToken, JsonFrame, ReadFlow, TextCursor, TextSpot};
use super::structure::ItemRole;
use super::word::ellipsis_len;
use crate::lex::json::{self, BARE_STOPS, QuoteKind};
use crate::lex::utf8;
use crate::repair::rules;
use crate::span::Extent;

/// Classification of a place at which an unquoted string may end.
enum BareStringEnd {
    /// The string continues.
    Text,
    /// The string ends here.
    End,
    /// The string ends at an unpaired quote of this many bytes.
    Quote(usize),
}

impl JsonReader {
    /// Continues reading an unquoted string.
    pub(super) fn read_bare_string<S: JsonSink + ?Sized>(
        &mut self,
        cursor: &mut TextCursor<'_>,
        sink: &mut S,
    ) -> ReadFlow {
        let bytes = cursor.bytes();
        let from = cursor.offset;
        let at = BARE_STOPS.find(bytes, from);
        let Some(&byte) = bytes.get(at) else {
            if cursor.is_last {
                return self.end_bare_string(cursor, from, at, 0, sink);
            }
            return self.wait_in_bare_string(cursor, from, at, sink);
        };
        self.work += (at - from + WINDOW) as u64;
        match self.find_bare_end(cursor, from, at, byte) {
            Err(MissingInput) => return self.wait_in_bare_string(cursor, from, at, sink),
            Ok(BareStringEnd::End) => return self.end_bare_string(cursor, from, at, 0, sink),
            Ok(BareStringEnd::Quote(length)) => return self.end_bare_string(cursor, from, at, length, sink),
            Ok(BareStringEnd::Text) => {}
        }
        let (open_braces, open_squares) = &mut self.string.open_brackets;
        match byte {
            b'{' => *open_braces += 1,
            b'}' => *open_braces = open_braces.saturating_sub(1),
            b'[' => *open_squares += 1,
            b']' => *open_squares = open_squares.saturating_sub(1),
            _ => {}
        }
        // The byte is emitted at once, so that a bracket is not counted again.
        cursor.offset = at + utf8::char_width(byte);
        sink.event(JsonEvent::StringDelta(&cursor.text[from..cursor.offset]));
        ReadFlow::Continue
    }

    /// Emits the text up to the white space before `at` and waits for more.
    fn wait_in_bare_string<S: JsonSink + ?Sized>(
        &mut self,
        cursor: &mut TextCursor<'_>,
        from: usize,
        at: usize,
        sink: &mut S,
    ) -> ReadFlow {
        let is_text = |byte: &u8| !matches!(byte, b' ' | b'\t' | b'\r');
        let text = &cursor.bytes()[from..at];
        let mut text_end = text.iter().rposition(is_text).map_or(from, |last| from + last + 1);
        // At most `WINDOW` bytes of white space are held back.
        if at - text_end > WINDOW {
            text_end = at - WINDOW;
        }
        if text_end > from {
            sink.event(JsonEvent::StringDelta(&cursor.text[from..text_end]));
        }
        cursor.offset = text_end;
        ReadFlow::NeedsInput
    }

    /// Ends an unquoted string before `at`, where an unpaired quote of `quote_len` bytes is skipped.
    fn end_bare_string<S: JsonSink + ?Sized>(
        &mut self,
        cursor: &mut TextCursor<'_>,
        from: usize,
        at: usize,
        quote_len: usize,
        sink: &mut S,
    ) -> ReadFlow {
        let text = &cursor.text[from..at];
        // White space before the window may have been emitted already, so it is text.
        let is_text = |byte: &u8| !matches!(byte, b' ' | b'\t' | b'\r');
        let mut end = text.as_bytes().iter().rposition(is_text).map_or(from, |last| from + last + 1);
        if at - end > WINDOW {
            end = at - WINDOW;
        }
        if end > from {
            sink.event(JsonEvent::StringDelta(&cursor.text[from..end]));
        }
        sink.event(JsonEvent::StringEnd);
        cursor.offset = at + quote_len;
        if cursor.is_last && at == cursor.text.len() && !self.stack.is_empty() {
            self.value_end.is_auto_closed = true;
        }
        self.finish_string(cursor, cursor.offset, sink);
        ReadFlow::Continue
    }

    /// Decides whether an unquoted string ends at `at`, the offset of `byte`. The text of the string before
    /// `from` has been emitted.
    fn find_bare_end(
        &self,
        cursor: &TextCursor<'_>,
        from: usize,
        at: usize,
        byte: u8,
    ) -> Result<BareStringEnd, MissingInput> {
        let bytes = cursor.bytes();
        let lookahead = Lookahead::new(bytes, at, cursor.is_last);
        let end_if = |is_end: bool| Ok(if is_end { BareStringEnd::End } else { BareStringEnd::Text });
        let is_after_space = at > from && matches!(bytes[at - 1], b' ' | b'\t');
        let is_in_object = self.stack.last() == Some(&JsonFrame::Object);
        match byte {
            b'/' => {
                return end_if(
                    lookahead.byte(at + 1)? == Some(b'*')
                        || is_after_space && lookahead.byte(at + 1)? == Some(b'/'),
                );
            }
            b'#' => return end_if(is_after_space),
            b'`' => return end_if(lookahead.starts_with(at, b"```")?),
            b'\\' => match lookahead.byte(at + 1)? {
                // An escaped quote, handled below.
                Some(b'"') => {}
                _ => return Ok(BareStringEnd::Text),
            },
            _ => {}
        }
        if self.stack.is_empty() {
            // The string is the whole value.
            return end_if(byte == b'\n');
        }
        if let Some((quote, length)) = lookahead.quote_at(at)? {
            let (next, has_newline) = lookahead.skip_space(at + length)?;
            if !is_after_space {
                // Directly after a word, a quote is unpaired if the item ends after it.
                let has_end = lookahead.byte(next)?.is_none()
                    || has_newline
                    || matches!(lookahead.mark_at(next)?, Some(b',' | b'}' | b']'));
                return Ok(if has_end { BareStringEnd::Quote(length) } else { BareStringEnd::Text });
            }
            let is_key = is_in_object && lookahead.check_key(at, 1)? == KeyCheck::Yes;
            let is_quote_at_line_end =
                quote == QuoteKind::Double && !is_in_object && lookahead.byte(next)?.is_some() && has_newline;
            return end_if(is_key || is_quote_at_line_end);
        }
        if byte == b'\n' {
            let (next, _) = lookahead.skip_space(at)?;
            let has_end = lookahead.byte(next)?.is_none()
                || matches!(lookahead.mark_at(next)?, Some(b'}' | b']'))
                || lookahead.is_comment(next)?
                || lookahead.starts_with(next, b"```")?;
            return end_if(!is_in_object || has_end || lookahead.check_key(next, 3)? == KeyCheck::Yes);
        }
        match json::mark_at(bytes, at) {
            Some((b'}', _)) => {
                if self.string.open_brackets.0 > 0 {
                    return Ok(BareStringEnd::Text);
                }
                end_if(self.stack.contains(&JsonFrame::Object))
            }
            Some((b']', _)) => {
                if self.string.open_brackets.1 > 0 {
                    return Ok(BareStringEnd::Text);
                }
                end_if(self.stack.contains(&JsonFrame::Array))
            }
            Some((b')', _)) => end_if(self.open_calls > 0 || self.stack.last() == Some(&JsonFrame::Tuple)),
            Some((b',', _)) if !is_in_object => end_if(true),
            Some((b',', length)) => {
                let (next, has_newline) = lookahead.skip_space(at + length)?;
                let Some(byte) = lookahead.byte(next)? else { return Ok(BareStringEnd::End) };
                // At the start of a line a longer key is likely.
                let max_key_words = if has_newline { 3 } else { 2 };
                let key_check = lookahead.check_key(next, max_key_words)?;
                end_if(
                    key_check == KeyCheck::Yes
                        || matches!(lookahead.mark_at(next)?, Some(b'}' | b']' | b',' | b'{'))
                        || lookahead.is_comment(next)?
                        || lookahead.starts_with(next, b"...")?
                        || byte == b'"' && key_check == KeyCheck::Undecided,
                )
            }
            _ => Ok(BareStringEnd::Text),
        }
    }
}

impl JsonReader {
    /// Reads an unquoted key, or skips stray words.
    pub(super) fn read_bare_key<S: JsonSink + ?Sized>(
        &mut self,
        cursor: &mut TextCursor<'_>,
        sink: &mut S,
    ) -> Result<(), MissingInput> {
        let (bytes, at) = (cursor.bytes(), cursor.offset);
        if let Some(length) = ellipsis_len(&bytes[at..]) {
            // Further dots may still arrive.
            let lookahead = Lookahead::new(bytes, at + length, cursor.is_last);
            if lookahead.byte(at + length)? != Some(b'.') {
                self.skip_ellipsis(cursor, length, sink);
                return Ok(());
            }
        } else if bytes[at] == b'.' && bytes.len() < at + 3 && !cursor.is_last {
            return Err(MissingInput);
        }
        // Fast path: one word and a colon.
        let word_len =
            bytes[at..].iter().take(WINDOW / 2).take_while(|&&byte| json::is_word_byte(byte)).count();
        if word_len > 0 && bytes.get(at + word_len) == Some(&b':') {
            self.emit_bare_key(cursor, (at, at + word_len), sink);
            cursor.offset = at + word_len;
            return Ok(());
        }
        self.work += WINDOW as u64;
        let lookahead = Lookahead::new(bytes, at, cursor.is_last);
        // Scans the words up to the end of a key.
        let mut end = at;
        let (text_end, has_colon) = loop {
            let Some(byte) = lookahead.byte(end)? else { break (end, false) };
            match json::mark_at(bytes, end) {
                Some((b'(' | b')', length)) => end += length,
                Some((mark, _)) => break (end, mark == b':'),
                None if byte == b'\n' || byte < 0x20 && byte != b'\t' => break (end, false),
                None if json::quote_at(bytes, end)
                    .is_some_and(|(quote, _)| quote != QuoteKind::Single || !is_adjacent(bytes, at, end)) =>
                {
                    break (end, false);
                }
                None if byte == b'/' && lookahead.is_comment(end)? => break (end, false),
                None => end += utf8::char_width(byte),
            }
        };
        // The window may end inside a character.
        let text_end = text_end.min(bytes.len());
        let text_end =
            (at..=text_end).rev().find(|&text_end| cursor.text.is_char_boundary(text_end)).unwrap_or(at);
        let trimmed_end = at + cursor.text[at..text_end].trim_end().len();
        let quote = lookahead.quote_at(text_end)?;
        if let Some((_, length)) = quote.filter(|_| trimmed_end == text_end && text_end > at) {
            // `a":1`: the opening quote of the key is missing.
            let (next, _) = lookahead.skip_space(text_end + length)?;
            if lookahead.mark_at(next)? == Some(b':') {
                self.emit_bare_key(cursor, (at, text_end), sink);
                cursor.offset = text_end + length;
                return Ok(());
            }
        }
        // The words are a key if a value follows them, with or without a colon.
        let has_value = match (quote, lookahead.mark_at(text_end)?) {
            _ if has_colon => true,
            (Some(_), _) => {
                lookahead.check_key(text_end, 1)? != KeyCheck::Yes
                    && self.expected != ExpectedToken::CommaOrEnd
            }
            (None, Some(b'{' | b'[')) => self.expected != ExpectedToken::CommaOrEnd,
            (None, _) => false,
        };
        // A single word before a comma, a closing brace or the end is a key without a value.
        let is_single_word = self.expected != ExpectedToken::CommaOrEnd
            && text_end - at < WINDOW
            && lookahead.skip_words(at, 2)?.1 == 1
            && (matches!(lookahead.mark_at(text_end)?, Some(b',' | b'}'))
                || lookahead.byte(text_end)?.is_none());
        if (has_value || is_single_word) && trimmed_end > at {
            self.emit_bare_key(cursor, (at, trimmed_end), sink);
            cursor.offset = trimmed_end;
            return Ok(());
        }
        // Skips stray text such as `1 2` in `{"a" 1 2}`; at least one character, to guarantee progress.
        let text_end = text_end.max(at + utf8::char_width(bytes[at])).min(bytes.len());
        let end = self.base_place.offset + text_end;
        self.save_places(cursor.text);
        let place = self.place_at(cursor.text, at);
        // Begins the stray text, or extends it.
        self.stray_text.get_or_insert(Extent { place, end }).end = end;
        cursor.offset = text_end;
        Ok(())
    }

    /// Emits an unquoted key, and reports it.
    fn emit_bare_key<S: JsonSink + ?Sized>(
        &mut self,
        cursor: &TextCursor<'_>,
        (at, end): (usize, usize),
        sink: &mut S,
    ) {
        let is_key = self.begin_item(cursor, at, sink) == ItemRole::Key;
        debug_assert!(is_key, "keys are read where keys belong");
        let texts = ("a key without quotes", "added quotes");
        self.report_repair(cursor, (at, end), &rules::UNQUOTED_KEY, texts, sink);
        self.key_spot = TextSpot::Current(at);
        let place = self.key_place(cursor.text, end);
        self.is_after_newline = false;
        self.expected = ExpectedToken::Colon;
        sink.event(JsonEvent::Key { text: &cursor.text[at..end], place, depth: self.stack.len() });
    }
}

/// Returns whether `at` directly follows text that began at `start`, without white space between, as the
/// quote of `it's` does.
fn is_adjacent(bytes: &[u8], start: usize, at: usize) -> bool {
    at > start && !json::is_json_space(bytes[at - 1])
}
