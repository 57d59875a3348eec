//! A comment in the content, or outside of tags: its text, and its end (F-103, R-85).
//!
//! An unclosed comment ends at the closing tag of the content or, if no tag is open, before the first tag of
//! the structure in it. It is known to be unclosed when another comment begins or the reply ends; the text
//! after that tag is read then. Outside of tags, one without such a tag is not a comment: `<!--` is text, and
//! the text after it is read normally.

use super::super::rules;
use super::{Frame, Mode, report};
use crate::dialect::{Intent, Output};
use crate::event::AsideKind;
use crate::finding::Report;
use crate::lex::markup::{Markup, Tag, TagKind, Token, Tolerant};
use crate::lex::space::{is_blank, trim};
use crate::span::{At, Place};
use crate::texts::counted;

/// A comment that is held until it ends.
pub(super) struct Comment {
    text: String,
    at: Place,
    line_blank: bool,
    /// Set if it is between elements.
    outside: bool,
    close: Option<Close>,
}

/// Escaped `<!--` for text of the content, where it would begin an HTML comment.
const ESCAPED: &str = "&lt;!--";

/// The first tag in a comment that may end it.
struct Close {
    /// Length of the comment before the tag.
    len: usize,
    at: Place,
    /// Set if a tag of the structure opens after it.
    reopened: bool,
}

impl Comment {
    /// Creates a comment that begins at `at`; `outside` is set between elements.
    pub(super) fn new(at: Place, outside: bool) -> Comment {
        Comment { text: String::new(), at, line_blank: false, outside, close: None }
    }

    /// Returns the bytes held.
    pub(super) fn held(&self) -> usize {
        self.text.len()
    }

    /// Appends text.
    pub(super) fn push(&mut self, text: &str) {
        self.line_blank = match text.rfind('\n') {
            Some(at) => is_blank(&text[at..]),
            None => self.line_blank && is_blank(text),
        };
        self.text.push_str(text);
    }
}

impl Frame {
    /// Handles a token in a comment.
    pub(super) fn comment_token(&mut self, token: Token<'_>, at: Place, out: &mut dyn Output) {
        match token {
            Token::CommentClose | Token::CommentEnd(_) => {
                self.comment_ends(true, at.offset + token.raw().len(), out);
            }
            // A comment inside a comment: the earlier one has ended.
            Token::CommentOpen if self.comment_closes() => {
                self.end_at_close(out);
                self.token(token, At::from(at), out);
            }
            _ if self.is_outside() && self.fills_comment(&token, at, out) => {}
            Token::Tag(tag) => self.comment_tag(&token, &tag, at, out),
            _ => self.plain(token.raw(), At::from(at), out),
        }
    }

    /// Handles a token that exceeds the limit of a comment outside of tags: it is not a comment then, and
    /// both are read. Returns whether it did.
    fn fills_comment(&mut self, token: &Token<'_>, at: Place, out: &mut dyn Output) -> bool {
        let most = self.cx.options.limits.hold.max(4);
        let Some(comment) = &mut self.comment else { return false };
        let room = most.saturating_sub(comment.text.len());
        if token.raw().len() <= room {
            return false;
        }
        // Cut at the limit itself, so that the result does not depend on the chunks.
        let taken = match token {
            Token::Text(text) => text.floor_char_boundary(room),
            _ => 0,
        };
        comment.push(&token.raw()[..taken]);
        let (start, end) = (comment.at, at.offset + taken);
        let message = format!("a comment has more than {}", counted(most, "byte"));
        let repair = if comment.close.is_some() { "ends before a tag" } else { "read as text" };
        out.report(Report::new(rules::LIMIT_EXCEEDED, start, end, message).repaired(repair));
        match self.comment_closes() {
            true => self.end_at_close(out),
            false => self.no_comment(out),
        }
        match token {
            Token::Text(text) => {
                self.token(Token::Text(&text[taken..]), At::from(at.after(&text[..taken])), out);
            }
            _ => self.token(*token, At::from(at), out),
        }
        true
    }

    /// Turns the held comment into text, since it is unclosed and no tag in it can end it.
    pub(super) fn no_comment(&mut self, out: &mut dyn Output) {
        let Some(Comment { text, at, .. }) = self.comment.take() else { return };
        let found = Report::new(rules::COMMENT_UNCLOSED, at, at.offset + 4, "a comment is not closed");
        out.report(found.repaired("read as text"));
        // If this one is unclosed, the ones in it are too.
        self.comments_over = true;
        self.read_comment_open(at, out);
        self.read_again(&text, at.after("<!--"), out);
    }

    /// Reads a `<!--` that begins no comment.
    pub(super) fn read_comment_open(&mut self, at: Place, out: &mut dyn Output) {
        if matches!(self.mode, Mode::Outside) {
            self.begin_text(at, true, out);
        }
        let text = if matches!(self.mode, Mode::Content(_)) { ESCAPED } else { "<!--" };
        self.plain(text, At::from(at), out);
        // The emitted text is longer than the source, so the next text needs its place.
        self.content.gap();
    }

    fn comment_tag(&mut self, token: &Token<'_>, tag: &Tag<'_>, at: Place, out: &mut dyn Output) {
        let opens = tag.kind != TagKind::Close && self.known(tag).is_some();
        let closes = self.closes(tag);
        let ends = closes || opens && self.is_outside();
        if let Some(comment) = &mut self.comment {
            if ends {
                let len = comment.text.len();
                comment.close.get_or_insert(Close { len, at, reopened: false });
                if closes && comment.line_blank {
                    return self.prose.hold_line(token, at);
                }
            } else if let Some(close) = &mut comment.close {
                close.reopened |= opens;
            }
        }
        self.plain(tag.raw, At::from(at), out);
    }

    /// Returns whether the comment holds a tag that may end it.
    pub(super) fn comment_closes(&self) -> bool {
        self.comment.as_ref().is_some_and(|comment| comment.close.is_some())
    }

    /// Ends an unclosed comment at a closing tag that is alone on its line. Returns whether the comment ended
    /// earlier, at another tag after which the reply continued.
    pub(super) fn ends_alone(&mut self, at: Place, out: &mut dyn Output) -> bool {
        let close = self.comment.as_ref().and_then(|comment| comment.close.as_ref());
        let earlier = close.is_some_and(|close| close.reopened && close.at != at);
        match earlier {
            true => self.end_at_close(out),
            false => self.comment_ends(false, at.offset, out),
        }
        earlier
    }

    /// Ends the comment before the tag in it, and reads the rest.
    pub(super) fn end_at_close(&mut self, out: &mut dyn Output) {
        let Some(comment) = &mut self.comment else { return };
        let Some(Close { len, at, .. }) = comment.close.take() else { return };
        let rest = comment.text.split_off(len);
        // Text after it may still be in the comment: nothing acts before a content begins.
        self.doubtful |= comment.outside;
        self.comment_ends(false, at.offset, out);
        self.read_again(&rest, at, out);
    }

    /// Ends a comment; `closed` is set if it ended properly.
    pub(super) fn comment_ends(&mut self, closed: bool, end: usize, out: &mut dyn Output) {
        let Some(Comment { text, at, outside, .. }) = self.comment.take() else { return };
        if outside {
            let message = "a comment stands outside of tags";
            report(rules::TEXT_OUTSIDE_TAGS, at, 4, message, "read as one", out);
        }
        if !closed {
            let found = Report::new(rules::COMMENT_UNCLOSED, at, end, "a comment is not closed");
            out.report(found.repaired("kept as a comment"));
        }
        if !trim(&text).is_empty() {
            out.intent(Intent::Aside { kind: AsideKind::Comment, text: trim(&text) });
        }
        self.content.gap();
    }

    /// Emits a comment in pieces once it exceeds the hold limit.
    pub(super) fn long_comment(&mut self, out: &mut dyn Output) {
        let most = self.cx.options.limits.hold.max(4);
        while let Some(comment) = &mut self.comment
            && comment.text.len() > most
        {
            let rest = comment.text.split_off(comment.text.floor_char_boundary(most));
            let piece = std::mem::replace(&mut comment.text, rest);
            comment.close = None;
            // After `<!--`.
            let (at, end) = (comment.at, comment.at.offset + 4 + piece.len());
            out.intent(Intent::Aside { kind: AsideKind::Comment, text: &piece });
            if !std::mem::replace(&mut self.long_comment, true) {
                let found = Report::new(
                    rules::LIMIT_EXCEEDED,
                    at,
                    end,
                    format!("a comment has more than {}", counted(most, "byte")),
                );
                out.report(found.repaired("given in pieces"));
            }
        }
    }

    /// Reads held text again; a tag, a comment or the end follows it.
    pub(super) fn read_again(&mut self, text: &str, at: Place, out: &mut dyn Output) {
        let mut lexer = self.lexer(at);
        lexer.push(text, &mut |token, at| self.read(token, at, out));
        // Unfinished markup is finished as it was the first time.
        lexer.push("<", &mut |token, at| self.read(token, at, out));
        lexer.drop_carry();
        self.words_end(out);
    }

    /// Creates a lexer for text at a place.
    pub(in super::super) fn lexer(&self, at: Place) -> Tolerant {
        let markup = Markup::at(at, "", self.cx.options.limits.tag).with_html_comments();
        let markup = if self.comments_over { markup.without_comments() } else { markup };
        markup.tolerant(self.tags.names())
    }
}
