//! Unquoted strings and keys: the rules for their ends; and stray words in an object.

use super::event::{JsonEvent, JsonSink};
use super::lookahead::{KeyCheck, Lookahead, MissingInput, WINDOW};
use super::reader::JsonReader;
use super::state::{ExpectedToken, JsonFrame, ReadFlow, TextCursor, TextSpot};
use super::structure::ItemRole;
use super::word::ellipsis_len;
use crate::lex::json::{self, BARE_STOPS, QuoteKind};
use crate::lex::utf8;
use crate::repair::rules;

/// Classification of a place at which an unquoted string may end.
enum BareStringEnd {
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
        c: &mut TextCursor<'_>,
        sink: &mut S,
    ) -> ReadFlow {
        let bytes = c.bytes();
        let from = c.offset;
        let at = BARE_STOPS.find(bytes, from);
        let Some(&byte) = bytes.get(at) else {
            if c.is_last {
                return self.end_bare_string(c, from, at, 0, sink);
            }
            return self.wait_in_bare_string(c, from, at, sink);
        };
        self.work += (at - from + WINDOW) as u64;
        match self.find_bare_end(c, from, at, byte) {
            Err(MissingInput) => return self.wait_in_bare_string(c, from, at, sink),
            Ok(BareStringEnd::End) => return self.end_bare_string(c, from, at, 0, sink),
            Ok(BareStringEnd::Quote(length)) => return self.end_bare_string(c, from, at, length, sink),
            Ok(BareStringEnd::Text) => {}
        }
        let (braces, squares) = &mut self.string.open_brackets;
        match byte {
            b'{' => *braces += 1,
            b'}' => *braces = braces.saturating_sub(1),
            b'[' => *squares += 1,
            b']' => *squares = squares.saturating_sub(1),
            _ => {}
        }
        // Emitted at once, so that it is not counted again.
        c.offset = at + utf8::char_width(byte);
        sink.event(JsonEvent::StringDelta(&c.text[from..c.offset]));
        ReadFlow::Continue
    }

    /// Emits the text up to the white space before `at` and waits for more.
    fn wait_in_bare_string<S: JsonSink + ?Sized>(
        &mut self,
        c: &mut TextCursor<'_>,
        from: usize,
        at: usize,
        sink: &mut S,
    ) -> ReadFlow {
        let is_text = |byte: &u8| !matches!(byte, b' ' | b'\t' | b'\r');
        let text = &c.bytes()[from..at];
        let mut kept_start = text.iter().rposition(is_text).map_or(from, |last| from + last + 1);
        if at - kept_start > WINDOW {
            kept_start = at - WINDOW;
        }
        if kept_start > from {
            sink.event(JsonEvent::StringDelta(&c.text[from..kept_start]));
        }
        c.offset = kept_start;
        ReadFlow::NeedsInput
    }

    fn end_bare_string<S: JsonSink + ?Sized>(
        &mut self,
        c: &mut TextCursor<'_>,
        from: usize,
        at: usize,
        quote: usize,
        sink: &mut S,
    ) -> ReadFlow {
        let text = &c.text[from..at];
        // White space before this window has been emitted already.
        let is_text = |byte: &u8| !matches!(byte, b' ' | b'\t' | b'\r');
        let mut end = text.as_bytes().iter().rposition(is_text).map_or(from, |last| from + last + 1);
        if at - end > WINDOW {
            end = at - WINDOW;
        }
        if end > from {
            sink.event(JsonEvent::StringDelta(&c.text[from..end]));
        }
        sink.event(JsonEvent::StringEnd);
        c.offset = at + quote;
        if c.is_last && at == c.text.len() && !self.stack.is_empty() {
            self.value_end.is_auto_closed = true;
        }
        self.finish_string(c, c.offset, sink);
        ReadFlow::Continue
    }

    fn find_bare_end(
        &self,
        c: &TextCursor<'_>,
        from: usize,
        at: usize,
        byte: u8,
    ) -> Result<BareStringEnd, MissingInput> {
        let bytes = c.bytes();
        let p = Lookahead::new(bytes, at, c.is_last);
        let end_if = |is_end: bool| Ok(if is_end { BareStringEnd::End } else { BareStringEnd::Text });
        let is_after_space = at > from && matches!(bytes[at - 1], b' ' | b'\t');
        let object = self.stack.last() == Some(&JsonFrame::Object);
        match byte {
            b'/' => {
                return end_if(
                    p.byte(at + 1)? == Some(b'*') || is_after_space && p.byte(at + 1)? == Some(b'/'),
                );
            }
            b'#' => return end_if(is_after_space),
            b'`' => return end_if(p.starts_with(at, b"```")?),
            b'\\' => match p.byte(at + 1)? {
                Some(b'"') => {}
                _ => return Ok(BareStringEnd::Text),
            },
            _ => {}
        }
        if self.stack.is_empty() {
            return end_if(byte == b'\n');
        }
        if let Some((quote, length)) = p.quote_at(at)? {
            let (next, newline) = p.skip_space(at + length)?;
            if !is_after_space {
                let has_end = p.byte(next)?.is_none()
                    || newline
                    || matches!(p.mark_at(next)?, Some(b',' | b'}' | b']'));
                return Ok(if has_end { BareStringEnd::Quote(length) } else { BareStringEnd::Text });
            }
            let key = object && p.check_key(at, 1)? == KeyCheck::Yes;
            return end_if(
                key || quote == QuoteKind::Double && !object && p.byte(next)?.is_some() && newline,
            );
        }
        if byte == b'\n' {
            let (next, _) = p.skip_space(at)?;
            let has_end = p.byte(next)?.is_none()
                || matches!(p.mark_at(next)?, Some(b'}' | b']'))
                || p.is_comment(next)?
                || p.starts_with(next, b"```")?;
            return end_if(!object || has_end || p.check_key(next, 3)? == KeyCheck::Yes);
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
            Some((b',', _)) if !object => end_if(true),
            Some((b',', length)) => {
                let (next, newline) = p.skip_space(at + length)?;
                let Some(byte) = p.byte(next)? else { return Ok(BareStringEnd::End) };
                let key = p.check_key(next, if newline { 3 } else { 2 })?;
                end_if(
                    key == KeyCheck::Yes
                        || matches!(p.mark_at(next)?, Some(b'}' | b']' | b',' | b'{'))
                        || p.is_comment(next)?
                        || p.starts_with(next, b"...")?
                        || byte == b'"' && key == KeyCheck::Undecided,
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
