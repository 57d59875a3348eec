//! Comments in the content or outside of tags: their text, and their end (F-103, R-85).
//!
//! An unclosed comment ends before the first closing tag of the content in it or, outside of tags, also
//! before the first opening tag of the structure in it; the text from that tag on is read again. The comment
//! is known to be unclosed when another comment begins after such a tag, or when the reply ends. Outside of
//! tags, an unclosed comment without such a tag is not a comment: `<!--` is text, and the text after it is
//! read again too.

use super::super::rules;
use super::{FilamentFrame, OpenElementState, report_at};
use crate::dialect::{Intent, IntentSink};
use crate::event::AsideKind;
use crate::finding::FindingReport;
use crate::lex::markup::{MarkupLexer, MarkupTag, MarkupToken, TagKind, TolerantLexer};
use crate::lex::space::{is_blank, trim};
use crate::span::{LazyPlace, Place};
use crate::texts::format_count;

/// A comment that is held until it ends.
pub(super) struct HeldComment {
    /// Text after `<!--`.
    text: String,
    /// Place of `<!--`.
    start: Place,
    /// Set if only white space was read on the current line.
    is_line_blank: bool,
    /// Set if the comment is outside of tags.
    is_outside: bool,
    /// The first tag in the comment that may end it.
    end_tag: Option<CommentEndTag>,
}

/// Escaped `<!--` for text of the content, where it would begin an HTML comment.
const ESCAPED_OPEN: &str = "&lt;!--";

/// The first tag in a comment that may end it.
struct CommentEndTag {
    /// Bytes of the comment before the tag.
    len: usize,
    /// Place of the tag.
    start: Place,
    /// Set if an opening tag of the structure follows this tag in a comment in the content.
    is_reopened: bool,
}

impl HeldComment {
    /// Creates a comment whose `<!--` is at `start`; `is_outside` is set outside of tags.
    pub(super) fn new(start: Place, is_outside: bool) -> HeldComment {
        HeldComment { text: String::new(), start, is_line_blank: false, is_outside, end_tag: None }
    }

    /// Returns the bytes held.
    pub(super) fn held_bytes(&self) -> usize {
        self.text.len()
    }

    /// Appends text.
    pub(super) fn push(&mut self, text: &str) {
        self.is_line_blank = match text.rfind('\n') {
            Some(at) => is_blank(&text[at..]),
            None => self.is_line_blank && is_blank(text),
        };
        self.text.push_str(text);
    }
}

impl FilamentFrame {
    /// Handles a token in a comment.
    pub(super) fn push_comment_token(&mut self, token: MarkupToken<'_>, at: Place, out: &mut dyn IntentSink) {
        match token {
            MarkupToken::CommentClose | MarkupToken::HtmlCommentClose(_) => {
                let is_closed = true;
                self.end_comment(is_closed, at.offset + token.raw().len(), out);
            }
            // A comment inside a comment: the earlier one has ended.
            MarkupToken::CommentOpen if self.has_comment_end_tag() => {
                self.end_at_end_tag(out);
                self.push_token(token, LazyPlace::from(at), out);
            }
            // The guard has handled the token.
            _ if self.is_outside() && self.handle_overlong_comment(&token, at, out) => {}
            MarkupToken::Tag(tag) => self.handle_comment_tag(&token, &tag, at, out),
            _ => self.push_text(token.raw(), LazyPlace::from(at), out),
        }
    }

    /// Handles a token with which a comment outside of tags exceeds its limit: the comment ends at a tag in
    /// it or is text, and the token is read after it. Returns whether the limit was exceeded.
    fn handle_overlong_comment(
        &mut self,
        token: &MarkupToken<'_>,
        at: Place,
        out: &mut dyn IntentSink,
    ) -> bool {
        // At least 4 bytes, so that any one character fits.
        let limit = self.context.options.limits.hold.max(4);
        let Some(comment) = &mut self.comment else { return false };
        let room = limit.saturating_sub(comment.text.len());
        if token.raw().len() <= room {
            return false;
        }
        // Cut at the limit itself, so that the result does not depend on the chunks.
        let taken_len = match token {
            MarkupToken::Text(text) => text.floor_char_boundary(room),
            _ => 0,
        };
        comment.push(&token.raw()[..taken_len]);
        let (start, end) = (comment.start, at.offset + taken_len);
        let message = format!("a comment is longer than {}", format_count(limit, "byte"));
        let repair = if comment.end_tag.is_some() { "ends before a tag" } else { "read as text" };
        out.report(FindingReport::new(rules::LIMIT_EXCEEDED, start, end, message).with_repair(repair));
        match self.has_comment_end_tag() {
            true => self.end_at_end_tag(out),
            false => self.turn_comment_into_text(out),
        }
        match token {
            MarkupToken::Text(text) => {
                self.push_token(
                    MarkupToken::Text(&text[taken_len..]),
                    LazyPlace::from(at.end_of(&text[..taken_len])),
                    out,
                );
            }
            _ => self.push_token(*token, LazyPlace::from(at), out),
        }
        true
    }

    /// Turns the held comment into text, since it is unclosed and no tag in it can end it.
    pub(super) fn turn_comment_into_text(&mut self, out: &mut dyn IntentSink) {
        let Some(HeldComment { text, start, .. }) = self.comment.take() else { return };
        let mark_end = start.offset + "<!--".len();
        let report = FindingReport::new(rules::COMMENT_UNCLOSED, start, mark_end, "a comment is not closed");
        out.report(report.with_repair("read as text"));
        // If this comment is unclosed, the comments in it are too.
        self.ignores_comments = true;
        self.read_comment_open(start, out);
        self.replay(&text, start.end_of("<!--"), out);
    }

    /// Reads `<!--` as text.
    pub(super) fn read_comment_open(&mut self, at: Place, out: &mut dyn IntentSink) {
        if matches!(self.open_element, OpenElementState::Outside) {
            let is_text = true;
            self.begin_untagged_part(at, is_text, out);
        }
        let is_in_content = matches!(self.open_element, OpenElementState::Content(_));
        let text = if is_in_content { ESCAPED_OPEN } else { "<!--" };
        self.push_text(text, LazyPlace::from(at), out);
        // The emitted text may be longer than the source, so the next text needs its place.
        self.content.mark_gap();
    }

    /// Handles a tag in a comment. A closing tag of the open element that is alone on its line ends the
    /// comment.
    fn handle_comment_tag(
        &mut self,
        token: &MarkupToken<'_>,
        tag: &MarkupTag<'_>,
        start: Place,
        out: &mut dyn IntentSink,
    ) {
        let is_opening = tag.kind != TagKind::Close && self.known_element(tag).is_some();
        let is_closing = self.closes_open_element(tag);
        let ends_comment = is_closing || is_opening && self.is_outside();
        if let Some(comment) = &mut self.comment {
            if ends_comment {
                let len = comment.text.len();
                comment.end_tag.get_or_insert(CommentEndTag { len, start, is_reopened: false });
                if is_closing && comment.is_line_blank {
                    return self.markdown.hold_line(token, start);
                }
            } else if let Some(end_tag) = &mut comment.end_tag {
                end_tag.is_reopened |= is_opening;
            }
        }
        self.push_text(tag.raw, LazyPlace::from(start), out);
    }

    /// Returns whether the comment holds a tag that may end it.
    pub(super) fn has_comment_end_tag(&self) -> bool {
        self.comment.as_ref().is_some_and(|comment| comment.end_tag.is_some())
    }

    /// Ends an unclosed comment at a closing tag that is alone on its line, or at an earlier tag after which
    /// the structure continued. Returns whether the comment ended at the earlier tag.
    pub(super) fn end_at_lone_closing_tag(&mut self, at: Place, out: &mut dyn IntentSink) -> bool {
        let end_tag = self.comment.as_ref().and_then(|comment| comment.end_tag.as_ref());
        let ends_at_earlier_tag = end_tag.is_some_and(|end_tag| end_tag.is_reopened && end_tag.start != at);
        let is_closed = false;
        match ends_at_earlier_tag {
            true => self.end_at_end_tag(out),
            false => self.end_comment(is_closed, at.offset, out),
        }
        ends_at_earlier_tag
    }

    /// Ends the comment before the tag in it that may end it, and reads the text from that tag on again.
    pub(super) fn end_at_end_tag(&mut self, out: &mut dyn IntentSink) {
        let Some(comment) = &mut self.comment else { return };
        let Some(CommentEndTag { len, start, .. }) = comment.end_tag.take() else { return };
        let text_after = comment.text.split_off(len);
        // The text may still belong to the comment: nothing acts until the content begins.
        self.is_doubtful |= comment.is_outside;
        let is_closed = false;
        self.end_comment(is_closed, start.offset, out);
        self.replay(&text_after, start, out);
    }

    /// Ends a comment before the offset `end`, and emits it; `is_closed` is set if `-->` closed it.
    pub(super) fn end_comment(&mut self, is_closed: bool, end: usize, out: &mut dyn IntentSink) {
        let Some(HeldComment { text, start, is_outside, .. }) = self.comment.take() else { return };
        if is_outside {
            let message = "a comment is outside of all tags";
            report_at(rules::TEXT_OUTSIDE_TAGS, start, "<!--".len(), message, "read as a comment", out);
        }
        if !is_closed {
            let report = FindingReport::new(rules::COMMENT_UNCLOSED, start, end, "a comment is not closed");
            out.report(report.with_repair("kept as a comment"));
        }
        if !trim(&text).is_empty() {
            out.emit_intent(Intent::Aside { kind: AsideKind::Comment, text: trim(&text) });
        }
        self.content.mark_gap();
    }

    /// Emits a comment in the content in pieces once it exceeds the hold limit.
    pub(super) fn emit_overlong_comment(&mut self, out: &mut dyn IntentSink) {
        // At least 4 bytes, so that any one character fits.
        let limit = self.context.options.limits.hold.max(4);
        while let Some(comment) = &mut self.comment
            && comment.text.len() > limit
        {
            let rest = comment.text.split_off(comment.text.floor_char_boundary(limit));
            let piece = std::mem::replace(&mut comment.text, rest);
            // The end tag found so far no longer counts: the text before it is emitted as a comment.
            comment.end_tag = None;
            let (at, end) = (comment.start, comment.start.offset + "<!--".len() + piece.len());
            out.emit_intent(Intent::Aside { kind: AsideKind::Comment, text: &piece });
            if !std::mem::replace(&mut self.has_overlong_comment, true) {
                let report = FindingReport::new(
                    rules::LIMIT_EXCEEDED,
                    at,
                    end,
                    format!("a comment is longer than {}", format_count(limit, "byte")),
                );
                out.report(report.with_repair("sent in pieces"));
            }
        }
    }

    /// Reads held text again. A tag, a comment or the end of the reply follows it.
    pub(super) fn replay(&mut self, text: &str, at: Place, out: &mut dyn IntentSink) {
        let mut lexer = self.new_lexer(at);
        lexer.push(text, &mut |token, at| self.read_token(token, at, out));
        // A `<` after the text ends unfinished markup in it, as the tag or comment that followed it did the
        // first time.
        lexer.push("<", &mut |token, at| self.read_token(token, at, out));
        lexer.drop_carry();
        self.flush_mark_carry(out);
    }

    /// Creates a lexer for text at a place.
    pub(in super::super) fn new_lexer(&self, at: Place) -> TolerantLexer {
        let markup = MarkupLexer::from_place(at, "", self.context.options.limits.tag).with_html_comments();
        let markup = if self.ignores_comments { markup.without_comments() } else { markup };
        markup.into_tolerant(self.tags.names())
    }
}
