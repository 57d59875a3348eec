//! Tolerant lexer: reads text tokens of the strict lexer again and finds misspelled tags of known names in
//! them.
//!
//! Each tag of the strict syntax stays a tag, whatever its name, and no byte is read more than twice. In
//! comments only strict tags count.

use super::head::{HeadStep, TagHead};
use super::lexer::MarkupLexer;
use super::names::TagNames;
use super::token::{MarkupTag, MarkupToken};
use crate::lex::scan;
use crate::span::{LazyPlace, Place, PlaceCounter};

/// Lexer that also accepts tags of known names with blanks inside, in another letter case, with full-width
/// brackets and slashes, or without the closing bracket; each has its [`TagFaults`](super::TagFaults).
#[derive(Clone, Debug)]
pub struct TolerantLexer {
    strict: MarkupLexer,
    reader: TolerantReader,
}

/// Reader of the strict lexer's tokens. Either the reader or the strict lexer may have an unfinished token,
/// never both.
#[derive(Clone, Debug)]
struct TolerantReader {
    /// Names of the tags that may be misspelled.
    names: TagNames,
    /// Maximum length of a tag in bytes.
    limit: usize,
    /// True if `<!--` begins a comment.
    reads_comments: bool,
    /// True inside a comment.
    is_in_comment: bool,
    /// State of the unfinished tag.
    head: Option<TagHead>,
    /// Part of the unfinished tag from earlier text.
    carry: String,
    /// True if the current line has only blanks and tags up to the end of the last token.
    is_first_on_line: bool,
    /// Start of the unfinished token, or the place after the last one.
    place: PlaceCounter,
}

impl MarkupLexer {
    /// Makes the lexer tolerant of faults in tags with `names`. Reasoning marks that are not tags are text.
    #[must_use]
    pub fn into_tolerant(mut self, names: TagNames) -> TolerantLexer {
        self.leave_reasoning();
        let place = PlaceCounter::new(self.place());
        let reader = TolerantReader {
            names,
            limit: self.tag_limit(),
            reads_comments: self.reads_comments(),
            is_in_comment: false,
            head: None,
            carry: String::new(),
            is_first_on_line: true,
            place,
        };
        TolerantLexer { strict: self, reader }
    }
}

impl TolerantLexer {
    /// Reads `text` and passes each token to `out` with the place it starts at.
    pub fn push(&mut self, text: &str, out: &mut impl FnMut(MarkupToken<'_>, LazyPlace<'_>)) {
        let TolerantLexer { strict, reader } = self;
        strict.push(text, &mut |token, _| reader.push_token(token, out));
        if !strict.carry().is_empty() {
            // The strict lexer holds a token that begins with `<`, which ends a misspelled tag before it.
            reader.end_head(out);
        }
    }

    /// Fast path of most text, before [`TolerantLexer::push`]: whether `text` continues text and contains the
    /// start of no other token.
    #[inline]
    pub fn is_plain_text(&self, text: &str) -> bool {
        // The strict lexer skips `< ` as a less-than sign, but it may begin a tag with blanks inside.
        self.reader.head.is_none() && self.strict.is_plain_text(text) && find_bracket(text).is_none()
    }

    /// Skips text for which [`TolerantLexer::is_plain_text`] holds.
    #[inline]
    pub fn skip_text(&mut self, text: &str) {
        self.strict.skip_text(text);
        self.reader.is_first_on_line = is_line_start(self.reader.is_first_on_line, text);
        self.reader.place.add(text);
    }

    /// Ends the input. An unfinished token is emitted as text.
    pub fn finish(&mut self, out: &mut impl FnMut(MarkupToken<'_>, LazyPlace<'_>)) {
        let TolerantLexer { strict, reader } = self;
        strict.finish(&mut |token, _| reader.push_token(token, out));
        reader.abandon_head(out);
        reader.is_in_comment = false;
    }

    /// Text of the unfinished token.
    #[must_use]
    pub fn carry(&self) -> &str {
        if self.reader.carry.is_empty() { self.strict.carry() } else { &self.reader.carry }
    }

    /// The unfinished token if it is the beginning of a tag with a known name. At the end of a reply it is
    /// dropped instead of being emitted as text (F-204).
    #[must_use]
    pub fn unfinished_tag(&self) -> Option<&str> {
        let carry = self.carry();
        (!self.reader.is_in_comment && self.reader.names.starts_tag(carry)).then_some(carry)
    }

    /// Discards the unfinished token and returns its start.
    pub fn drop_carry(&mut self) -> Place {
        let start = self.reader.place.count_pending();
        self.reader.place.add(self.strict.carry());
        self.strict.drop_carry();
        self.reader.place.add(&std::mem::take(&mut self.reader.carry));
        self.reader.head = None;
        start
    }

    /// Place after the last token.
    #[must_use]
    pub fn place(&self) -> Place {
        self.reader.place.place()
    }
}

impl TolerantReader {
    /// Reads a token of the strict lexer.
    fn push_token(&mut self, token: MarkupToken<'_>, out: &mut impl FnMut(MarkupToken<'_>, LazyPlace<'_>)) {
        match token {
            MarkupToken::Text(text) if !self.is_in_comment => return self.push_text(text, out),
            MarkupToken::CommentOpen => self.is_in_comment = self.reads_comments,
            MarkupToken::CommentClose | MarkupToken::HtmlCommentClose(_) => self.is_in_comment = false,
            _ => {}
        }
        self.end_head(out);
        let token = match token {
            MarkupToken::Tag(tag) => {
                MarkupToken::Tag(MarkupTag { faults: self.names.case_faults(tag.name), ..tag })
            }
            other => other,
        };
        self.emit(token, out);
    }

    /// Reads a text token of the strict lexer and looks for misspelled tags in it.
    fn push_text(&mut self, text: &str, out: &mut impl FnMut(MarkupToken<'_>, LazyPlace<'_>)) {
        // `from`: start of the text not emitted yet. `tag_start`: start of the current tag, or 0 if that is
        // carried.
        let (mut from, mut tag_start, mut at) = (0, 0, 0);
        loop {
            let Some(head) = &mut self.head else {
                let Some(found) = find_bracket(&text[at..]) else {
                    return self.emit_text(&text[from..], out);
                };
                tag_start = at + found;
                let bracket = if text.as_bytes()[tag_start] == b'<' { '<' } else { '＜' };
                let is_first = is_line_start(self.is_first_on_line, &text[from..tag_start]);
                self.head = Some(TagHead::new(bracket, is_first, &self.names));
                at = tag_start + bracket.len_utf8();
                continue;
            };
            let Some(c) = text[at..].chars().next() else {
                self.emit_text(&text[from..tag_start], out);
                self.carry.push_str(&text[tag_start..]);
                return;
            };
            let (step, len) = (head.step(c, &self.names), self.carry.len() + at - tag_start + c.len_utf8());
            match step {
                HeadStep::Continue | HeadStep::End if len > self.limit => self.abandon_head(out),
                HeadStep::Continue => at += c.len_utf8(),
                HeadStep::Mismatch => self.abandon_head(out),
                HeadStep::End | HeadStep::MissingBracket => {
                    at += if step == HeadStep::End { c.len_utf8() } else { 0 };
                    self.emit_text(&text[from..tag_start], out);
                    self.emit_tag(&text[tag_start..at], out);
                    (from, tag_start) = (at, at);
                }
            }
        }
    }

    /// Ends a tag before a token that begins with `<`.
    fn end_head(&mut self, out: &mut impl FnMut(MarkupToken<'_>, LazyPlace<'_>)) {
        match self.head.as_mut().map(|head| head.step('<', &self.names)) {
            Some(HeadStep::MissingBracket) => self.emit_tag("", out),
            _ => self.abandon_head(out),
        }
    }

    /// Treats the current tag as text, and emits the part of it that came in earlier texts.
    fn abandon_head(&mut self, out: &mut impl FnMut(MarkupToken<'_>, LazyPlace<'_>)) {
        self.head = None;
        if !self.carry.is_empty() {
            let mut text = std::mem::take(&mut self.carry);
            self.emit_text(&text, out);
            text.clear();
            self.carry = text;
        }
    }

    /// Emits the current tag, which ends with `tail`.
    fn emit_tag(&mut self, tail: &str, out: &mut impl FnMut(MarkupToken<'_>, LazyPlace<'_>)) {
        let Some(head) = self.head.take() else { return };
        let mut tag_text = std::mem::take(&mut self.carry);
        let raw = if tag_text.is_empty() {
            tail
        } else {
            tag_text.push_str(tail);
            &tag_text
        };
        let mut tag = MarkupTag::parse_tolerant(raw, head.is_closing, head.name_len());
        tag.faults = head.faults.union(self.names.case_faults(tag.name));
        self.emit(MarkupToken::Tag(tag), out);
        tag_text.clear();
        self.carry = tag_text;
    }

    fn emit_text(&mut self, text: &str, out: &mut impl FnMut(MarkupToken<'_>, LazyPlace<'_>)) {
        if !text.is_empty() {
            self.is_first_on_line = is_line_start(self.is_first_on_line, text);
            self.emit(MarkupToken::Text(text), out);
        }
    }

    fn emit(&mut self, token: MarkupToken<'_>, out: &mut impl FnMut(MarkupToken<'_>, LazyPlace<'_>)) {
        let raw = token.raw();
        out(token, LazyPlace::from_counter(&mut self.place));
        self.place.add(raw);
    }
}

/// Returns whether the line at the end of `text` has only blanks so far. `was_line_start` is the same before
/// `text`.
fn is_line_start(was_line_start: bool, text: &str) -> bool {
    match text.bytes().rev().find(|byte| !matches!(byte, b' ' | b'\t')) {
        Some(last) => matches!(last, b'\n' | b'\r'),
        None => was_line_start,
    }
}

/// Offset of the next opening bracket.
fn find_bracket(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 0;
    loop {
        at += scan::find2(b'<', "＜".as_bytes()[0], &bytes[at..])?;
        if bytes[at] == b'<' || text[at..].starts_with('＜') {
            return Some(at);
        }
        // Many Chinese characters begin with the same byte.
        at += "＜".len();
    }
}
