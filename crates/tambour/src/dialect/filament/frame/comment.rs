//! A comment in the content, or outside of tags: what it holds, and where it ends (F-103, R-85).
//!
//! One that nothing closes ends at the closing tag of the content. That it is not closed is known when another comment
//! begins, or the reply ends; what stands behind that tag is read then.

use super::super::rules;
use super::Frame;
use crate::dialect::{Intent, Output};
use crate::event::AsideKind;
use crate::finding::Report;
use crate::lex::markup::{Markup, Tag, TagKind, Token, Tolerant};
use crate::lex::space::{is_blank, trim};
use crate::span::{At, Place};

/// A comment that is kept until it ends.
pub(super) struct Comment {
    text: String,
    at: Place,
    line_blank: bool,
    close: Option<Close>,
}

/// The first closing tag of the content in a comment: it ends there if nothing else ends it.
struct Close {
    /// Bytes of the comment before it.
    len: usize,
    at: Place,
    /// Whether a tag of the structure opens behind it.
    reopened: bool,
}

impl Comment {
    /// One that begins at `at`.
    pub(super) fn new(at: Place) -> Comment {
        Comment { text: String::new(), at, line_blank: false, close: None }
    }

    /// Bytes that are kept.
    pub(super) fn held(&self) -> usize {
        self.text.len()
    }

    /// Text of it.
    pub(super) fn push(&mut self, text: &str) {
        self.line_blank = match text.rfind('\n') {
            Some(at) => is_blank(&text[at..]),
            None => self.line_blank && is_blank(text),
        };
        self.text.push_str(text);
    }
}

impl Frame {
    /// A token in a comment.
    pub(super) fn comment_token(&mut self, token: Token<'_>, at: Place, out: &mut dyn Output) {
        match token {
            Token::CommentClose | Token::CommentEnd(_) => {
                self.comment_ends(true, at.offset + token.raw().len(), out);
            }
            // A comment in a comment: the one before it has ended.
            Token::CommentOpen if self.comment_closes() => {
                self.end_at_close(out);
                self.token(token, At::from(at), out);
            }
            Token::Tag(tag) => self.comment_tag(&token, &tag, at, out),
            _ => self.plain(token.raw(), At::from(at), out),
        }
    }

    fn comment_tag(&mut self, token: &Token<'_>, tag: &Tag<'_>, at: Place, out: &mut dyn Output) {
        let closes = self.closes(tag);
        let opens = tag.kind != TagKind::Close && self.known(tag).is_some();
        if let Some(comment) = &mut self.comment {
            if closes {
                let len = comment.text.len();
                comment.close.get_or_insert(Close { len, at, reopened: false });
                if comment.line_blank {
                    return self.prose.hold_line(token, at);
                }
            } else if let Some(close) = &mut comment.close {
                close.reopened |= opens;
            }
        }
        self.plain(tag.raw, At::from(at), out);
    }

    /// Whether the closing tag of the content stands in the comment.
    pub(super) fn comment_closes(&self) -> bool {
        self.comment.as_ref().is_some_and(|comment| comment.close.is_some())
    }

    /// A closing tag stands alone on its line, at `at`, in a comment that is not closed. Returns whether the comment ended before
    /// it, at another one behind which the reply went on.
    pub(super) fn ends_alone(&mut self, at: Place, out: &mut dyn Output) -> bool {
        let close = self.comment.as_ref().and_then(|comment| comment.close.as_ref());
        let earlier = close.is_some_and(|close| close.reopened && close.at != at);
        match earlier {
            true => self.end_at_close(out),
            false => self.comment_ends(false, at.offset, out),
        }
        earlier
    }

    /// The comment ended at the closing tag in it; what follows that is read.
    pub(super) fn end_at_close(&mut self, out: &mut dyn Output) {
        let Some(comment) = &mut self.comment else { return };
        let Some(Close { len, at, .. }) = comment.close.take() else { return };
        let rest = comment.text.split_off(len);
        self.comment_ends(false, at.offset, out);
        self.read_again(&rest, at, out);
    }

    /// A comment ends; `closed`: as it should.
    pub(super) fn comment_ends(&mut self, closed: bool, end: usize, out: &mut dyn Output) {
        let Some(Comment { text, at, .. }) = self.comment.take() else { return };
        if !closed {
            let found = Report::new(rules::COMMENT_UNCLOSED, at, end, "a comment is not closed");
            out.report(found.repaired("kept as a comment"));
        }
        if !trim(&text).is_empty() {
            out.intent(Intent::Aside { kind: AsideKind::Comment, text: trim(&text) });
        }
        self.content.gap();
    }

    /// A comment that is longer than what may be held comes in pieces.
    pub(super) fn long_comment(&mut self, out: &mut dyn Output) {
        let most = self.cx.options.limits.hold.max(4);
        while let Some(comment) = &mut self.comment
            && comment.text.len() > most
        {
            let rest = comment.text.split_off(comment.text.floor_char_boundary(most));
            let piece = std::mem::replace(&mut comment.text, rest);
            comment.close = None;
            // Behind `<!--`.
            let (at, end) = (comment.at, comment.at.offset + 4 + piece.len());
            out.intent(Intent::Aside { kind: AsideKind::Comment, text: &piece });
            if !std::mem::replace(&mut self.long_comment, true) {
                let found = Report::new(
                    rules::LIMIT_EXCEEDED,
                    at,
                    end,
                    format!("a comment has more than {most} bytes"),
                );
                out.report(found.repaired("given in pieces"));
            }
        }
    }

    /// Reads a text again that was held; a tag, a comment or the end follows.
    pub(super) fn read_again(&mut self, text: &str, at: Place, out: &mut dyn Output) {
        let mut lexer = self.lexer(at);
        lexer.push(text, &mut |token, at| self.read(token, at, out));
        // What is unfinished is finished as it was then.
        lexer.push("<", &mut |token, at| self.read(token, at, out));
        lexer.drop_carry();
        self.words_end(out);
    }

    /// A lexer of what stands at a place.
    pub(in super::super) fn lexer(&self, at: Place) -> Tolerant {
        Markup::at(at, "", self.cx.options.limits.tag).with_html_comments().tolerant(self.tags.names())
    }
}
