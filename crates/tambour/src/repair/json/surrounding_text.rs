//! Text around values: starts of values, fences, thinking, comments.

use super::event::{JsonEvent, JsonSink, ThoughtClosing, ThoughtMark, ValueOrigin};
use super::lookahead::{KeyCheck, Lookahead, MissingInput, WINDOW};
use super::reader::JsonReader;
use super::state::{ReadFlow, ReaderMode, TextCursor};
use crate::lex::fence::Fence;
use crate::lex::json::{self, PROSE_STOPS, QuoteKind, is_word_byte};
use crate::lex::marks::{self, MarkEffect, MarkKind, MarkMatch, OpenReasoning, ReasoningMark};
use crate::lex::utf8;

/// Maximum length of a run of backticks or tildes; a longer run counts as this long.
const MAX_FENCE_LEN: usize = 64;

/// Start of an HTML comment.
const COMMENT: &[u8] = b"<!--";
/// End of an HTML comment.
const COMMENT_END: &[u8] = b"-->";

/// State of the text outside of values.
#[derive(Clone, Copy, Debug)]
pub(super) struct SurroundingText {
    /// Open fence, and the origin of values in it.
    pub(super) fence: Option<(Fence, ValueOrigin)>,
    /// True if only white space was read since the start of the text or of the fence, or since the end of
    /// thinking.
    pub(super) is_fresh: bool,
    /// True if only white space was read since the line began.
    pub(super) is_line_start: bool,
    /// Open thinking, which is not searched for values.
    open_thinking: Option<OpenReasoning>,
    /// Mark that ended the last thinking, and the byte offset in the input after it.
    last_closing_mark: Option<(ReasoningMark, usize)>,
    /// Byte offset in the input after the last run of one or two backticks: a mark directly after them is
    /// quoted and does not act. `usize::MAX` before the first run.
    backtick_end: usize,
    /// True if marks of thinking are only text.
    pub(super) ignores_marks: bool,
    /// True if text up to the next line break is skipped, since this line exceeded the limits.
    pub(super) skips_line: bool,
    /// True if text up to the next line break is a comment.
    is_line_comment: bool,
    /// True if an unclosed comment has begun.
    has_open_comment: bool,
    /// Byte offset in the input up to which no comment ends, so that no byte is searched twice.
    comment_search_end: usize,
    /// Byte offset in the input up to which no comment begins, since an earlier one was too long.
    comment_barrier: usize,
}

impl Default for SurroundingText {
    fn default() -> SurroundingText {
        SurroundingText {
            fence: None,
            is_fresh: true,
            is_line_start: true,
            open_thinking: None,
            last_closing_mark: None,
            backtick_end: usize::MAX,
            ignores_marks: false,
            skips_line: false,
            is_line_comment: false,
            has_open_comment: false,
            comment_search_end: 0,
            comment_barrier: 0,
        }
    }
}

impl SurroundingText {
    /// Context that the text gives to a value in it.
    pub(super) fn origin(&self) -> ValueOrigin {
        self.fence.map_or(ValueOrigin::Bare, |(_, origin)| origin)
    }

    /// Returns whether an unclosed comment has begun.
    pub(super) fn has_open_comment(&self) -> bool {
        self.has_open_comment
    }

    /// Returns whether other text precedes the current place on its line, outside of fences.
    pub(super) fn is_in_sentence(&self) -> bool {
        !self.is_line_start && !self.is_fresh && self.fence.is_none()
    }

    /// Updates the flags for text that was read.
    fn observe_text(&mut self, text: &[u8]) {
        if text.is_empty() {
            return;
        }
        let last_line_start = memchr::memrchr(b'\n', text).map(|at| at + 1);
        let is_blank = |bytes: &[u8]| {
            let mut at = 0;
            while at < bytes.len() {
                match json::odd_space_len(bytes, at) {
                    Some(length) => at += length,
                    None if json::is_json_space(bytes[at]) => at += 1,
                    None => return false,
                }
            }
            true
        };
        self.is_line_start = (last_line_start.is_some() || self.is_line_start)
            && is_blank(&text[last_line_start.unwrap_or(0)..]);
        if self.is_fresh && !is_blank(text) {
            self.is_fresh = false;
        }
    }
}

/// Classification of a place where a value might start.
enum TextMatch {
    NoMatch,
    /// Value whose opening bracket has this many bytes.
    Value(usize),
    /// Run of backticks or tildes; the length in bytes includes the language after it. It begins or ends a
    /// fence; a run that is too short or inside another fence is only skipped.
    FenceMarker(usize),
    /// Comment of this many bytes.
    Comment(usize),
    /// Comment up to the end of the line.
    LineComment,
    /// Beginning of thinking, with a mark of this many bytes.
    Thought(OpenReasoning, usize),
    /// Closing mark of this many bytes; no thinking is open, since it was closed just before or never opened.
    ThoughtEnd(usize, ThoughtClosing),
}

impl JsonReader {
    /// Emits text until a value, a comment or thinking starts.
    pub(super) fn read_text<S: JsonSink + ?Sized>(
        &mut self,
        cursor: &mut TextCursor<'_>,
        sink: &mut S,
    ) -> ReadFlow {
        if let Some(reasoning) = self.surrounding_text.open_thinking {
            return self.read_thought(cursor, reasoning, sink);
        }
        if self.surrounding_text.is_line_comment {
            let unread = &cursor.text[cursor.offset..];
            let line_end = memchr::memchr(b'\n', unread.as_bytes());
            self.surrounding_text.is_line_comment = line_end.is_none();
            self.emit_comment(cursor, line_end.unwrap_or(unread.len()), sink);
        }
        let bytes = cursor.bytes();
        let start = cursor.offset;
        let mut at = cursor.offset;
        if self.surrounding_text.skips_line {
            match memchr::memchr(b'\n', &bytes[at..]) {
                None => at = bytes.len(),
                Some(line_end) => {
                    at += line_end + 1;
                    self.surrounding_text.skips_line = false;
                }
            }
            self.surrounding_text.observe_text(&bytes[start..at]);
        }
        // End of the text that was observed.
        let mut observed_end = at;
        loop {
            at = PROSE_STOPS.find(bytes, at);
            if at == bytes.len() {
                self.surrounding_text.observe_text(&bytes[observed_end..at]);
                break;
            }
            self.surrounding_text.observe_text(&bytes[observed_end..at]);
            observed_end = at;
            match self.classify_place(bytes, at, cursor.is_last) {
                Err(MissingInput) => break,
                Ok(TextMatch::NoMatch) => at += utf8::char_width(bytes[at]),
                Ok(TextMatch::FenceMarker(length)) => {
                    at += length;
                    observed_end = at;
                }
                Ok(TextMatch::Comment(length)) => {
                    emit_text(cursor, start, at, sink);
                    cursor.offset = at;
                    self.emit_comment(cursor, length, sink);
                    return ReadFlow::Continue;
                }
                Ok(TextMatch::LineComment) => {
                    emit_text(cursor, start, at, sink);
                    cursor.offset = at;
                    self.surrounding_text.is_line_comment = true;
                    return ReadFlow::Continue;
                }
                Ok(TextMatch::Thought(reasoning, length)) => {
                    emit_text(cursor, start, at, sink);
                    let mark = self.take_mark(cursor, at, length);
                    self.surrounding_text.open_thinking = Some(reasoning);
                    sink.event(JsonEvent::ThoughtStart(mark));
                    return ReadFlow::Continue;
                }
                Ok(TextMatch::ThoughtEnd(length, closing)) => {
                    emit_text(cursor, start, at, sink);
                    let mark = self.take_mark(cursor, at, length);
                    if closing == ThoughtClosing::Unopened {
                        self.surrounding_text.fence = None;
                    }
                    self.surrounding_text.is_fresh = true;
                    sink.event(JsonEvent::ThoughtEnd(mark, closing));
                    return ReadFlow::Continue;
                }
                Ok(TextMatch::Value(length)) => {
                    emit_text(cursor, start, at, sink);
                    let mark = json::mark_at(bytes, at).map_or(b'{', |(mark, _)| mark);
                    self.begin_value(cursor, at, sink);
                    // The value counts as text that is not blank.
                    self.surrounding_text.observe_text(b"x");
                    if length > 1 {
                        self.report_odd_mark(cursor, at, length, sink);
                    }
                    self.open_bracket(cursor, at, mark, sink);
                    cursor.offset = at + length;
                    return ReadFlow::Continue;
                }
            }
        }
        emit_text(cursor, start, at, sink);
        cursor.offset = at;
        ReadFlow::NeedsInput
    }

    /// Emits `length` bytes of a comment. The text around the comment is read as if the comment were absent.
    fn emit_comment<S: JsonSink + ?Sized>(
        &mut self,
        cursor: &mut TextCursor<'_>,
        length: usize,
        sink: &mut S,
    ) {
        if length > 0 {
            sink.event(JsonEvent::Comment(&cursor.text[cursor.offset..cursor.offset + length]));
            cursor.offset += length;
        }
    }

    /// Moves the cursor past a mark of thinking at `at`; returns the mark.
    fn take_mark<'b>(&mut self, cursor: &mut TextCursor<'b>, at: usize, length: usize) -> ThoughtMark<'b> {
        cursor.offset = at + length;
        ThoughtMark { text: &cursor.text[at..cursor.offset], place: self.place_at(cursor.text, at) }
    }

    /// Emits text of thinking until it ends.
    fn read_thought<S: JsonSink + ?Sized>(
        &mut self,
        cursor: &mut TextCursor<'_>,
        mut reasoning: OpenReasoning,
        sink: &mut S,
    ) -> ReadFlow {
        let bytes = cursor.bytes();
        let start = cursor.offset;
        let mut at = cursor.offset;
        let mut flow = ReadFlow::NeedsInput;
        // Length of the mark that ends the thinking, and its relation to the opening mark.
        let mut end = None;
        loop {
            let Some(mark_offset) = marks::find(&bytes[at..]) else {
                at = bytes.len();
                break;
            };
            at += mark_offset;
            self.work += marks::MAX_MARK_LEN as u64;
            match marks::match_mark(&bytes[at..]) {
                MarkMatch::Prefix if !cursor.is_last => break,
                MarkMatch::Mismatch | MarkMatch::Prefix => at += 1,
                MarkMatch::Mark(mark, length) => match reasoning.apply(mark) {
                    MarkEffect::Text => at += length,
                    effect => {
                        let is_foreign = effect == MarkEffect::CloseForeign;
                        end = Some((
                            length,
                            if is_foreign { ThoughtClosing::OtherName } else { ThoughtClosing::SameName },
                        ));
                        self.surrounding_text.last_closing_mark =
                            Some((mark, self.base_place.offset + at + length));
                        flow = ReadFlow::Continue;
                        break;
                    }
                },
            }
        }
        self.surrounding_text.open_thinking = Some(reasoning);
        if at > start {
            sink.event(JsonEvent::Thought(&cursor.text[start..at]));
        }
        cursor.offset = at;
        if let Some((length, closing)) = end {
            let mark = self.take_mark(cursor, at, length);
            self.surrounding_text.open_thinking = None;
            self.surrounding_text.is_fresh = true;
            sink.event(JsonEvent::ThoughtEnd(mark, closing));
        }
        flow
    }

    /// Classifies the place `at`, at a byte that may begin a value, fence, comment or mark.
    fn classify_place(&mut self, bytes: &[u8], at: usize, is_last: bool) -> Result<TextMatch, MissingInput> {
        self.work += WINDOW as u64;
        let lookahead = Lookahead::new(bytes, at, is_last);
        let byte = bytes[at];
        if byte == b'<' && lookahead.starts_with(at, COMMENT)? {
            return self.match_comment(bytes, at, is_last);
        }
        if matches!(byte, b'<' | b'[' | 0xE2) && !self.surrounding_text.ignores_marks {
            let mark_match = self.match_thinking_mark(bytes, at, is_last)?;
            if !matches!(mark_match, TextMatch::NoMatch) {
                return Ok(mark_match);
            }
        }
        match byte {
            b'`' | b'~' => self.match_fence(&lookahead, at, byte),
            b'/' => {
                let is_line_comment = self.surrounding_text.fence.is_some()
                    && self.surrounding_text.is_line_start
                    && lookahead.starts_with(at, b"//")?;
                Ok(if is_line_comment { TextMatch::LineComment } else { TextMatch::NoMatch })
            }
            _ => match json::mark_at(bytes, at) {
                Some((mark @ (b'{' | b'['), length)) => {
                    let is_start = match mark {
                        b'{' => self.starts_object(&lookahead, at + length)?,
                        _ => self.starts_array(&lookahead, at + length)?,
                    };
                    Ok(if is_start { TextMatch::Value(length) } else { TextMatch::NoMatch })
                }
                _ => Ok(TextMatch::NoMatch),
            },
        }
    }

    /// Matches an HTML comment at `at`, if it ends within the limit: an unclosed one hides nothing.
    fn match_comment(&mut self, bytes: &[u8], at: usize, is_last: bool) -> Result<TextMatch, MissingInput> {
        let base = self.base_place.offset;
        let surrounding = &mut self.surrounding_text;
        if base + at == surrounding.backtick_end || base + at < surrounding.comment_barrier {
            return Ok(TextMatch::NoMatch);
        }
        let limit = at + self.max_key_len;
        let from = (at + COMMENT.len()).max(surrounding.comment_search_end.saturating_sub(base));
        let to = limit.min(bytes.len());
        let unsearched = bytes.get(from..to).unwrap_or_default();
        if let Some(end) = memchr::memmem::find(unsearched, COMMENT_END) {
            return Ok(TextMatch::Comment(from + end + COMMENT_END.len() - at));
        }
        self.work += unsearched.len() as u64;
        // The last two bytes may be the start of `-->`, so they are searched again.
        surrounding.comment_search_end = base + from.max((to + 1).saturating_sub(COMMENT_END.len()));
        if bytes.len() < limit && !is_last {
            return Err(MissingInput);
        }
        (surrounding.comment_barrier, surrounding.has_open_comment) = (base + limit, true);
        Ok(TextMatch::NoMatch)
    }

    /// Matches a mark outside of thinking. A mark directly after one or two backticks does not act.
    fn match_thinking_mark(
        &mut self,
        bytes: &[u8],
        at: usize,
        is_last: bool,
    ) -> Result<TextMatch, MissingInput> {
        let (mark, length) = match marks::match_mark(&bytes[at..]) {
            MarkMatch::Prefix if !is_last => return Err(MissingInput),
            MarkMatch::Mismatch | MarkMatch::Prefix => return Ok(TextMatch::NoMatch),
            MarkMatch::Mark(mark, length) => (mark, length),
        };
        Ok(match mark.kind {
            _ if self.base_place.offset + at == self.surrounding_text.backtick_end => TextMatch::NoMatch,
            MarkKind::Open => TextMatch::Thought(OpenReasoning::new(mark), length),
            // Some thinking ends with two marks in a row.
            MarkKind::Close
                if self.surrounding_text.last_closing_mark
                    == Some((mark.as_own_closing(), self.base_place.offset + at)) =>
            {
                TextMatch::ThoughtEnd(length, ThoughtClosing::SameName)
            }
            MarkKind::Close => TextMatch::ThoughtEnd(length, ThoughtClosing::Unopened),
            // Outside of thinking, these marks are text.
            MarkKind::CloseOwn | MarkKind::Header | MarkKind::Stop => TextMatch::NoMatch,
        })
    }

    /// Matches a run of three or more backticks, or of tildes at the start of a line.
    fn match_fence(
        &mut self,
        lookahead: &Lookahead<'_>,
        at: usize,
        byte: u8,
    ) -> Result<TextMatch, MissingInput> {
        let mut length = 0;
        while length < MAX_FENCE_LEN && lookahead.byte(at + length)? == Some(byte) {
            length += 1;
        }
        let is_inline_tilde = byte == b'~' && !self.surrounding_text.is_line_start;
        let Some(fence) = Fence::new(byte, length).filter(|_| !is_inline_tilde) else {
            // A short run is skipped as a whole, since its later characters begin no fence either. It counts
            // as text that is not blank.
            self.surrounding_text.observe_text(b"x");
            if byte == b'`' {
                self.surrounding_text.backtick_end = self.base_place.offset + at + length;
            }
            return Ok(if length > 1 { TextMatch::FenceMarker(length) } else { TextMatch::NoMatch });
        };
        if let Some((open_fence, _)) = self.surrounding_text.fence {
            if open_fence.is_closed_by(fence) {
                self.surrounding_text.fence = None;
                self.surrounding_text.is_line_start = false;
            }
            return Ok(TextMatch::FenceMarker(length));
        }
        // At most four blanks may precede the language of the fence.
        let fence_end = at + length;
        let mut end = fence_end;
        while lookahead.byte(end)? == Some(b' ') && end < fence_end + 4 {
            end += 1;
        }
        let word = lookahead.word_at(end)?;
        let origin = match word.get(..4) {
            _ if word.is_empty() => ValueOrigin::JsonFence,
            Some(start) if start.eq_ignore_ascii_case(b"json") => ValueOrigin::JsonFence,
            _ => ValueOrigin::OtherFence,
        };
        end += word.len();
        self.surrounding_text.fence = Some((fence, origin));
        self.surrounding_text.is_fresh = true;
        Ok(TextMatch::FenceMarker(end - at))
    }

    /// Returns whether text around values is allowed.
    pub(super) fn allows_text(&self) -> bool {
        self.mode != ReaderMode::Document
    }
}

/// Emits the text `start..end`, if it is not empty.
fn emit_text<S: JsonSink + ?Sized>(cursor: &TextCursor<'_>, start: usize, end: usize, sink: &mut S) {
    if end > start {
        sink.event(JsonEvent::Text(&cursor.text[start..end]));
    }
}

impl JsonReader {
    /// Returns whether the text after `{` is an object rather than prose in braces.
    fn starts_object(&self, lookahead: &Lookahead<'_>, at: usize) -> Result<bool, MissingInput> {
        let (at, _) = lookahead.skip_space(at)?;
        let is_fresh = self.surrounding_text.is_fresh;
        let Some(byte) = lookahead.byte(at)? else { return Ok(is_fresh) };
        if let Some((quote, length)) = lookahead.quote_at(at)? {
            return Ok(match quote {
                QuoteKind::Back if lookahead.starts_with(at, b"```")? => false,
                QuoteKind::Double if lookahead.byte(at + length)? != Some(b'"') => true,
                QuoteKind::Double | QuoteKind::Escaped => true,
                _ => is_fresh || lookahead.check_key(at, 1)? != KeyCheck::No,
            });
        }
        Ok(match byte {
            b'}' => true,
            b']' | b',' => is_fresh,
            b'/' => lookahead.is_comment(at)?,
            b'#' => is_fresh,
            b'\\' => matches!(lookahead.byte(at + 1)?, Some(b'n' | b'r' | b't')),
            b'.' => is_fresh && lookahead.starts_with(at, b"...")?,
            _ if is_word_byte(byte) || byte >= 0x80 => {
                let max_key_words = if is_fresh { 3 } else { 2 };
                match lookahead.check_key(at, max_key_words)? {
                    KeyCheck::Yes => true,
                    KeyCheck::Undecided => is_fresh,
                    // A key without its colon, as in `{key "value"}`.
                    KeyCheck::No => {
                        let (end, words) = lookahead.skip_words(at, 1)?;
                        let (next, _) = lookahead.skip_space(end)?;
                        is_fresh
                            && words == 1
                            && lookahead.quote_at(next)?.is_some_and(|(quote, _)| quote != QuoteKind::Back)
                    }
                }
            }
            _ => false,
        })
    }

    /// Returns whether the text after `[` is an array rather than prose in brackets.
    fn starts_array(&self, lookahead: &Lookahead<'_>, mut at: usize) -> Result<bool, MissingInput> {
        let is_fresh = self.surrounding_text.is_fresh;
        loop {
            (at, _) = lookahead.skip_space(at)?;
            match lookahead.mark_at(at)? {
                Some(b'[') => at += 1,
                Some(b'{') => return Ok(is_fresh || self.starts_object(lookahead, at + 1)?),
                Some(b']') => return Ok(true),
                Some(b',' | b'}') => return Ok(is_fresh),
                _ => break,
            }
            // A full-width bracket has three bytes: the other two are skipped.
            while lookahead.byte(at)?.is_some_and(|byte| (0x80..0xC0).contains(&byte)) {
                at += 1;
            }
        }
        let Some(byte) = lookahead.byte(at)? else { return Ok(is_fresh) };
        if let Some((quote, _)) = lookahead.quote_at(at)? {
            return Ok(matches!(quote, QuoteKind::Double | QuoteKind::Escaped)
                || is_fresh && quote != QuoteKind::Back);
        }
        Ok(match byte {
            b'/' => lookahead.is_comment(at)?,
            b'-' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'.' => {
                let word = lookahead.word_at(at)?;
                let (next, has_newline) = lookahead.skip_space(at + word.len())?;
                let is_end = has_newline
                    || matches!(lookahead.mark_at(next)?, Some(b',' | b']'))
                    || is_fresh && lookahead.byte(next)? == Some(b';')
                    || lookahead.is_comment(next)?;
                let is_plain = !byte.is_ascii_alphabetic()
                    || matches!(word, b"true" | b"false" | b"null" | b"True" | b"False" | b"None");
                match lookahead.byte(next)? {
                    _ if self.is_interval(lookahead, at)? => false,
                    None => is_fresh,
                    Some(_) => is_plain && is_end || is_fresh && self.ends_like_item(lookahead, at)?,
                }
            }
            _ => is_fresh && byte >= 0x80 && self.ends_like_item(lookahead, at)?,
        })
    }

    /// Returns whether unquoted items end with a round bracket, as in an interval (`[0, 1)`).
    fn is_interval(&self, lookahead: &Lookahead<'_>, mut at: usize) -> Result<bool, MissingInput> {
        loop {
            let (end, _) = lookahead.skip_words(at, 2)?;
            let (next, _) = lookahead.skip_space(end)?;
            match lookahead.mark_at(next)? {
                Some(b')') => return Ok(end > at),
                Some(b',') => {
                    at = lookahead
                        .skip_space(next + utf8::char_width(lookahead.byte(next)?.unwrap_or(b',')))?
                        .0
                }
                _ => return Ok(false),
            }
        }
    }

    /// Returns whether the item at `at`, an address or at most four words, ends like an item of an array.
    fn ends_like_item(&self, lookahead: &Lookahead<'_>, at: usize) -> Result<bool, MissingInput> {
        if lookahead.starts_with(at, b"http")? {
            return Ok(true);
        }
        let (end, _) = lookahead.skip_words(at, 4)?;
        let (next, has_newline) = lookahead.skip_space(end)?;
        if lookahead.quote_at(next)?.is_some() {
            return Ok(end > at);
        }
        Ok(match lookahead.byte(next)? {
            None => true,
            Some(_) => {
                end > at && (has_newline || matches!(lookahead.mark_at(next)?, Some(b',' | b']' | b'}')))
            }
        })
    }
}
