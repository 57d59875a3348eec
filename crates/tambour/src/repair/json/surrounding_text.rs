//! Text around values: starts of values, fences, thinking, comments.

use super::event::{JsonEvent, JsonSink, ThoughtClosing, ThoughtMark, ValueOrigin};
use super::lookahead::{KeyCheck, Lookahead, MissingInput, WINDOW};
use super::reader::JsonReader;
use super::state::{ReadFlow, ReaderMode, TextCursor};
use crate::lex::fence::Fence;
use crate::lex::json::{self, PROSE_STOPS, QuoteKind, is_word_byte};
use crate::lex::marks::{self, MarkEffect, MarkKind, MarkMatch, OpenReasoning, ReasoningMark};
use crate::lex::utf8;

/// Longest run of backticks or tildes counted; a longer one counts as this long.
const MAX_FENCE_LEN: usize = 64;

/// Delimiters of an HTML comment.
const COMMENT: &[u8] = b"<!--";
const COMMENT_END: &[u8] = b"-->";

/// State of the text outside of values.
#[derive(Clone, Copy, Debug)]
pub(super) struct SurroundingText {
    /// Open fence, and the origin it gives its values.
    pub(super) fence: Option<(Fence, ValueOrigin)>,
    /// Only white space since the text, its fence or its thinking began.
    pub(super) is_fresh: bool,
    /// Only white space since the line began.
    pub(super) is_line_start: bool,
    /// Open thinking, which is not searched for values.
    open_thinking: Option<OpenReasoning>,
    /// Mark that ended the last thinking, and the absolute offset after it.
    last_closing_mark: Option<(ReasoningMark, usize)>,
    /// Absolute offset after the last run of one or two backticks: a mark quoted there does not act.
    backtick_end: usize,
    /// True if marks of thinking are only text.
    pub(super) ignores_marks: bool,
    /// Skips text up to the next line break, since this line exceeded the limits.
    pub(super) skips_line: bool,
    /// Reads a comment up to the next line break.
    is_line_comment: bool,
    /// True if an unclosed comment has begun.
    has_open_comment: bool,
    /// Absolute offset up to which no comment ends, so that no byte is searched twice.
    comment_search_end: usize,
    /// Absolute offset up to which no comment begins, since an earlier one was too long.
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
    pub(super) fn origin(&self) -> ValueOrigin {
        self.fence.map_or(ValueOrigin::Bare, |(_, origin)| origin)
    }

    /// Returns whether an unclosed comment has begun.
    pub(super) fn has_open_comment(&self) -> bool {
        self.has_open_comment
    }

    /// Returns whether text precedes on the line, outside of fences.
    pub(super) fn is_in_sentence(&self) -> bool {
        !self.is_line_start && !self.is_fresh && self.fence.is_none()
    }

    fn observe_text(&mut self, text: &[u8]) {
        if text.is_empty() {
            return;
        }
        let after = memchr::memrchr(b'\n', text).map(|at| at + 1);
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
        self.is_line_start = (after.is_some() || self.is_line_start) && is_blank(&text[after.unwrap_or(0)..]);
        if self.is_fresh && !is_blank(text) {
            self.is_fresh = false;
        }
    }
}

/// Classification of a place where a value might start.
enum TextMatch {
    NoMatch,
    Value(usize),
    /// Beginning or end of a fence, of this many bytes.
    FenceMarker(usize),
    /// Comment of this many bytes, or one that ends with its line.
    Comment(usize),
    LineComment,
    /// Beginning of thinking, with a mark of this many bytes.
    Thought(OpenReasoning, usize),
    /// Mark of this many bytes that ends thinking which is closed already or was never opened.
    ThoughtEnd(usize, ThoughtClosing),
}

impl JsonReader {
    /// Emits text until a value starts.
    pub(super) fn read_text<S: JsonSink + ?Sized>(
        &mut self,
        c: &mut TextCursor<'_>,
        sink: &mut S,
    ) -> ReadFlow {
        if let Some(reasoning) = self.surrounding_text.open_thinking {
            return self.read_thought(c, reasoning, sink);
        }
        if self.surrounding_text.is_line_comment {
            let rest = &c.text[c.offset..];
            let line = memchr::memchr(b'\n', rest.as_bytes());
            self.surrounding_text.is_line_comment = line.is_none();
            self.emit_comment(c, line.unwrap_or(rest.len()), sink);
        }
        let bytes = c.bytes();
        let start = c.offset;
        let mut at = c.offset;
        if self.surrounding_text.skips_line {
            match memchr::memchr(b'\n', &bytes[at..]) {
                None => at = bytes.len(),
                Some(line) => {
                    at += line + 1;
                    self.surrounding_text.skips_line = false;
                }
            }
            self.surrounding_text.observe_text(&bytes[start..at]);
        }
        let mut observed_end = at;
        loop {
            at = PROSE_STOPS.find(bytes, at);
            if at == bytes.len() {
                self.surrounding_text.observe_text(&bytes[observed_end..at]);
                break;
            }
            self.surrounding_text.observe_text(&bytes[observed_end..at]);
            observed_end = at;
            match self.classify_place(bytes, at, c.is_last) {
                Err(MissingInput) => break,
                Ok(TextMatch::NoMatch) => at += utf8::char_width(bytes[at]),
                Ok(TextMatch::FenceMarker(length)) => {
                    at += length;
                    observed_end = at;
                }
                Ok(TextMatch::Comment(length)) => {
                    emit_text(c, start, at, sink);
                    c.offset = at;
                    self.emit_comment(c, length, sink);
                    return ReadFlow::Continue;
                }
                Ok(TextMatch::LineComment) => {
                    emit_text(c, start, at, sink);
                    c.offset = at;
                    self.surrounding_text.is_line_comment = true;
                    return ReadFlow::Continue;
                }
                Ok(TextMatch::Thought(reasoning, length)) => {
                    emit_text(c, start, at, sink);
                    let mark = self.take_mark(c, at, length);
                    self.surrounding_text.open_thinking = Some(reasoning);
                    sink.event(JsonEvent::ThoughtStart(mark));
                    return ReadFlow::Continue;
                }
                Ok(TextMatch::ThoughtEnd(length, closing)) => {
                    emit_text(c, start, at, sink);
                    let mark = self.take_mark(c, at, length);
                    if closing == ThoughtClosing::Unopened {
                        self.surrounding_text.fence = None;
                    }
                    self.surrounding_text.is_fresh = true;
                    sink.event(JsonEvent::ThoughtEnd(mark, closing));
                    return ReadFlow::Continue;
                }
                Ok(TextMatch::Value(length)) => {
                    emit_text(c, start, at, sink);
                    let mark = json::mark_at(bytes, at).map_or(b'{', |(mark, _)| mark);
                    self.begin_value(c, at, sink);
                    self.surrounding_text.observe_text(b"x");
                    if length > 1 {
                        self.report_odd_mark(c, at, length, sink);
                    }
                    self.open_bracket(c, at, mark, sink);
                    c.offset = at + length;
                    return ReadFlow::Continue;
                }
            }
        }
        emit_text(c, start, at, sink);
        c.offset = at;
        ReadFlow::NeedsInput
    }

    /// Emits `length` bytes of a comment. The text around it is read as if it were absent.
    fn emit_comment<S: JsonSink + ?Sized>(&mut self, c: &mut TextCursor<'_>, length: usize, sink: &mut S) {
        if length > 0 {
            sink.event(JsonEvent::Comment(&c.text[c.offset..c.offset + length]));
            c.offset += length;
        }
    }

    /// Consumes a mark at `at` of the current text.
    fn take_mark<'b>(&mut self, c: &mut TextCursor<'b>, at: usize, length: usize) -> ThoughtMark<'b> {
        c.offset = at + length;
        ThoughtMark { text: &c.text[at..c.offset], place: self.place_at(c.text, at) }
    }

    /// Emits text of thinking until it ends.
    fn read_thought<S: JsonSink + ?Sized>(
        &mut self,
        c: &mut TextCursor<'_>,
        mut reasoning: OpenReasoning,
        sink: &mut S,
    ) -> ReadFlow {
        let bytes = c.bytes();
        let start = c.offset;
        let mut at = c.offset;
        let mut flow = ReadFlow::NeedsInput;
        let mut end = None;
        loop {
            let Some(found) = marks::find(&bytes[at..]) else {
                at = bytes.len();
                break;
            };
            at += found;
            self.work += marks::MAX_MARK_LEN as u64;
            match marks::match_mark(&bytes[at..]) {
                MarkMatch::Prefix if !c.is_last => break,
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
            sink.event(JsonEvent::Thought(&c.text[start..at]));
        }
        c.offset = at;
        if let Some((length, closing)) = end {
            let mark = self.take_mark(c, at, length);
            self.surrounding_text.open_thinking = None;
            self.surrounding_text.is_fresh = true;
            sink.event(JsonEvent::ThoughtEnd(mark, closing));
        }
        flow
    }

    fn classify_place(&mut self, bytes: &[u8], at: usize, last: bool) -> Result<TextMatch, MissingInput> {
        self.work += WINDOW as u64;
        let p = Lookahead::new(bytes, at, last);
        let byte = bytes[at];
        if byte == b'<' && p.starts_with(at, COMMENT)? {
            return self.match_comment(bytes, at, last);
        }
        if matches!(byte, b'<' | b'[' | 0xE2) && !self.surrounding_text.ignores_marks {
            let found = self.match_thinking_mark(bytes, at, last)?;
            if !matches!(found, TextMatch::NoMatch) {
                return Ok(found);
            }
        }
        match byte {
            b'`' | b'~' => self.match_fence(&p, at, byte),
            b'/' => {
                let comment = self.surrounding_text.fence.is_some()
                    && self.surrounding_text.is_line_start
                    && p.starts_with(at, b"//")?;
                Ok(if comment { TextMatch::LineComment } else { TextMatch::NoMatch })
            }
            _ => match json::mark_at(bytes, at) {
                Some((mark @ (b'{' | b'['), length)) => {
                    let is_start = match mark {
                        b'{' => self.starts_object(&p, at + length)?,
                        _ => self.starts_array(&p, at + length)?,
                    };
                    Ok(if is_start { TextMatch::Value(length) } else { TextMatch::NoMatch })
                }
                _ => Ok(TextMatch::NoMatch),
            },
        }
    }

    /// Matches an HTML comment at `at`, if it ends within the limit: an unclosed one hides nothing.
    fn match_comment(&mut self, bytes: &[u8], at: usize, last: bool) -> Result<TextMatch, MissingInput> {
        let base = self.base_place.offset;
        let surrounding = &mut self.surrounding_text;
        if base + at == surrounding.backtick_end || base + at < surrounding.comment_barrier {
            return Ok(TextMatch::NoMatch);
        }
        let limit = at + self.max_key_len;
        let from = (at + COMMENT.len()).max(surrounding.comment_search_end.saturating_sub(base));
        let to = limit.min(bytes.len());
        let rest = bytes.get(from..to).unwrap_or_default();
        if let Some(end) = memchr::memmem::find(rest, COMMENT_END) {
            return Ok(TextMatch::Comment(from + end + COMMENT_END.len() - at));
        }
        self.work += rest.len() as u64;
        // A prefix of the end marker may be there.
        surrounding.comment_search_end = base + from.max((to + 1).saturating_sub(COMMENT_END.len()));
        if bytes.len() < limit && !last {
            return Err(MissingInput);
        }
        (surrounding.comment_barrier, surrounding.has_open_comment) = (base + limit, true);
        Ok(TextMatch::NoMatch)
    }

    /// Matches a mark outside of thinking. A mark in a code span does not act.
    fn match_thinking_mark(
        &mut self,
        bytes: &[u8],
        at: usize,
        last: bool,
    ) -> Result<TextMatch, MissingInput> {
        let (mark, length) = match marks::match_mark(&bytes[at..]) {
            MarkMatch::Prefix if !last => return Err(MissingInput),
            MarkMatch::Mismatch | MarkMatch::Prefix => return Ok(TextMatch::NoMatch),
            MarkMatch::Mark(mark, length) => (mark, length),
        };
        Ok(match mark.kind {
            _ if self.base_place.offset + at == self.surrounding_text.backtick_end => TextMatch::NoMatch,
            MarkKind::Open => TextMatch::Thought(OpenReasoning::new(mark), length),
            // Some thinking ends with two marks.
            MarkKind::Close
                if self.surrounding_text.last_closing_mark
                    == Some((mark.as_own_closing(), self.base_place.offset + at)) =>
            {
                TextMatch::ThoughtEnd(length, ThoughtClosing::SameName)
            }
            MarkKind::Close => TextMatch::ThoughtEnd(length, ThoughtClosing::Unopened),
            MarkKind::CloseOwn | MarkKind::Header | MarkKind::Stop => TextMatch::NoMatch,
        })
    }

    /// Matches a run of three or more backticks, or of tildes at the start of a line.
    fn match_fence(&mut self, p: &Lookahead<'_>, at: usize, byte: u8) -> Result<TextMatch, MissingInput> {
        let mut length = 0;
        while length < MAX_FENCE_LEN && p.byte(at + length)? == Some(byte) {
            length += 1;
        }
        let tilde_inside = byte == b'~' && !self.surrounding_text.is_line_start;
        let Some(fence) = Fence::new(byte, length).filter(|_| !tilde_inside) else {
            // A short run is skipped as a whole: its later characters begin no fence either.
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
        let tag = at + length;
        let mut end = tag;
        while p.byte(end)? == Some(b' ') && end < tag + 4 {
            end += 1;
        }
        let word = p.word_at(end)?;
        let origin = match word.get(..4) {
            _ if word.is_empty() => ValueOrigin::JsonFence,
            Some(json) if json.eq_ignore_ascii_case(b"json") => ValueOrigin::JsonFence,
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

fn emit_text<S: JsonSink + ?Sized>(c: &TextCursor<'_>, start: usize, end: usize, sink: &mut S) {
    if end > start {
        sink.event(JsonEvent::Text(&c.text[start..end]));
    }
}

impl JsonReader {
    /// Returns whether the text behind `{` is an object rather than prose in braces.
    fn starts_object(&self, p: &Lookahead<'_>, at: usize) -> Result<bool, MissingInput> {
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
    fn starts_array(&self, p: &Lookahead<'_>, mut at: usize) -> Result<bool, MissingInput> {
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
