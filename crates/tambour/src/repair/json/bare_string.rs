//! Unquoted strings: the rules for their end.

use crate::lex::json::{self, BARE_STOPS, QuoteKind};
use crate::lex::utf8;

use super::event::{JsonEvent, JsonSink};
use super::lookahead::{KeyCheck, Lookahead, MissingInput, WINDOW};
use super::reader::JsonReader;
use super::state::{JsonFrame, ReadFlow, TextCursor};

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
