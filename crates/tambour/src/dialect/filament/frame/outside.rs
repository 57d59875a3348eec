//! Text between elements: text outside of tags, fences around elements, comments.

use super::super::rules;
use super::super::tags::{Kind, Meaning};
use super::comment::Comment;
use super::{FenceLine, Frame, Mode, Open, mark_of, report};
use crate::dialect::Output;
use crate::finding::Report;
use crate::lex::fence::{Fence, is_mark};
use crate::lex::markup::{TagKind, Token};
use crate::lex::space::{is_blank, is_space};
use crate::span::{At, Place};

/// Longest fence line, with the white space after it, in bytes.
const FENCE_LINE: usize = 256;

impl Frame {
    pub(super) fn outside(&mut self, token: Token<'_>, at: Place, out: &mut dyn Output) {
        if self.comment.is_some() {
            return self.comment_token(token, at, out);
        }
        if self.fence_line.is_some() {
            return self.fence_token(token, at, out);
        }
        match token {
            Token::Text(text) => self.free_text(text, at, out),
            Token::CommentOpen if self.comments_over => self.read_comment_open(at, out),
            Token::CommentOpen => self.comment = Some(Comment::new(at, true)),
            Token::Tag(tag) => match self.tags.meaning(&tag) {
                Meaning::Known(known) | Meaning::Reasoning(known) if tag.kind != TagKind::Close => {
                    self.begin(&tag, known, at, out);
                }
                Meaning::Known(_) | Meaning::Reasoning(_) => self.unopened(&tag, at, out),
                Meaning::Envelope => {
                    let message = format!("`{}` stands around the reply", tag.raw);
                    report(rules::ENVELOPE, at, tag.raw.len(), message, "left out", out);
                }
                Meaning::Inactive | Meaning::Unknown => {
                    if tag.kind != TagKind::Close
                        && let Some(known) = self.tags.html_status(&tag)
                    {
                        return self.begin(&tag, known, at, out);
                    }
                    self.begin_text(at, false, out);
                    self.token(token, At::from(at), out);
                }
            },
            Token::Reasoning(raw, mark) => self.word(raw, mark, at, out),
            _ => self.free_text(token.raw(), at, out),
        }
    }

    /// Reads text outside of tags: it may begin a thought or the content, and fence lines in it may surround
    /// elements.
    pub(super) fn free_text(&mut self, text: &str, at: Place, out: &mut dyn Output) {
        let (mut rest, mut place) = (text, at);
        while !rest.is_empty() {
            let taken = if self.fence_line.is_some() {
                self.fence_text(rest, place, out)
            } else {
                match &self.mode {
                    Mode::Outside => self.first_text(rest, place, out),
                    _ => self.loose_text(rest, place, out),
                }
            };
            place.advance(&rest[..taken]);
            rest = &rest[taken..];
        }
    }

    /// Reads text between elements; returns the bytes read.
    fn first_text(&mut self, text: &str, at: Place, out: &mut dyn Output) -> usize {
        let blank = text.len() - text.trim_start_matches(is_space).len();
        self.between |= text[..blank].contains('\n');
        if blank == text.len() {
            return blank;
        }
        let (begins, at) = (&text[blank..], at.after(&text[..blank]));
        if begins.starts_with(['`', '~']) {
            self.fence_line = Some(FenceLine { raw: String::new(), at, whole: false });
        } else {
            self.begin_text(at, !begins.starts_with('<'), out);
        }
        blank
    }

    /// Reads text of a part without a tag, up to a possible fence line; returns the bytes read.
    fn loose_text(&mut self, text: &str, at: Place, out: &mut dyn Output) -> usize {
        let mut line = 0;
        let mut first = true;
        loop {
            let blank = text[line..].len() - text[line..].trim_start_matches([' ', '\t']).len();
            let begins = line + blank;
            if text[begins..].starts_with(['`', '~']) && (!first || self.prose.line_blank()) {
                self.plain(&text[..begins], At::from(at), out);
                if self.prose.line_blank() && self.prose.is_plain() {
                    let place = at.after(&text[..begins]);
                    self.fence_line = Some(FenceLine { raw: String::new(), at: place, whole: false });
                    return begins;
                }
                // The rest of the line is text.
                let end = text[begins..].find('\n').map_or(text.len(), |end| begins + end + 1);
                self.plain(&text[begins..end], At::from(at.after(&text[..begins])), out);
                return end;
            }
            first = false;
            match text[line..].find('\n') {
                Some(end) => line += end + 1,
                None => break,
            }
        }
        self.plain(text, At::from(at), out);
        text.len()
    }

    /// Continues a possible fence line; returns the bytes read.
    fn fence_text(&mut self, text: &str, at: Place, out: &mut dyn Output) -> usize {
        let Some(line) = &mut self.fence_line else { return 0 };
        let (mut taken, mut closes) = (0, false);
        for c in text.chars() {
            if !line.fits(c) {
                break;
            }
            line.raw.push(c);
            line.whole |= c == '\n';
            taken += c.len_utf8();
            closes = line.whole && self.fence.is_some_and(|fence| fence.is_closed_by_line(&line.raw));
            if closes {
                // Text after it is ordinary again.
                break;
            }
        }
        if closes {
            self.fence_closes();
        } else if taken < text.len() {
            let whole = line.whole;
            self.fence_is_text(out);
            if !whole {
                // It is an ordinary line.
                let end = text[taken..].find('\n').map_or(text.len(), |end| taken + end + 1);
                self.plain(&text[taken..end], At::from(at.after(&text[..taken])), out);
                return end;
            }
        }
        taken
    }

    /// Begins a part without a tag: thinking at the head of a reply if that is expected, content otherwise
    /// (F-201, F-206).
    pub(super) fn begin_text(&mut self, at: Place, text: bool, out: &mut dyn Output) {
        let head = !std::mem::replace(&mut self.begun, true);
        let thinking = head && text && self.tags.thinking_head(self.cx.own.mandatory_head);
        let kind = if thinking { Kind::Thought } else { Kind::Content };
        self.closed = None;
        let element = self.tags.first(kind).unwrap_or_default();
        if head && text {
            let what = if thinking { "a thinking head is inserted" } else { "it is content" };
            report(rules::HEAD_MISSING, at, 0, "the reply does not begin with a tag", what, out);
            self.assumed = self.tags.first(kind);
        }
        let open = Open {
            at: element,
            tag: None,
            from: at,
            head: head && text,
            marks: mark_of("thought"),
            begun: false,
        };
        self.open(kind, open, false, out);
    }

    /// Reports text outside of tags that ends before `end`; `closed` is set if a tag closed it.
    pub(super) fn end_text(&mut self, open: &Open, closed: bool, end: usize, out: &mut dyn Output) {
        if open.head && closed || open.tag.is_some() {
            return;
        }
        let thought = matches!(self.tags.kind(open.at), Kind::Thought);
        let repair = if thought { "read as a thought" } else { "read as text of the content" };
        let found = Report::new(rules::TEXT_OUTSIDE_TAGS, open.from, end, "text stands outside of tags");
        out.report(found.repaired(repair));
    }

    /// Handles a token after a fence line, or in it.
    pub(super) fn fence_token(&mut self, token: Token<'_>, at: Place, out: &mut dyn Output) {
        match token {
            Token::Text(text) => self.free_text(text, at, out),
            Token::Tag(tag)
                if self.fence_line.as_ref().is_some_and(|line| line.whole)
                    && tag.kind != TagKind::Close
                    && self.known(&tag).is_some_and(|known| {
                        // After text, an acting block in a fence is an example.
                        matches!(self.mode, Mode::Outside)
                            || matches!(known.kind, Kind::Thought | Kind::Content)
                    }) =>
            {
                let Some(FenceLine { raw, at: from, .. }) = self.fence_line.take() else { return };
                let shown = raw.trim_end();
                let message = "the reply, or a part of it, stands in a code fence";
                report(rules::FENCED_REPLY, from, shown.len(), message, "the fence is left out", out);
                self.fence = Fence::of(shown).map(|(fence, _)| fence);
                self.content.gap();
                self.token(token, At::from(at), out);
            }
            _ => {
                self.fence_is_text(out);
                self.token(token, At::from(at), out);
            }
        }
    }

    /// Ends the removed fence.
    fn fence_closes(&mut self) {
        self.fence = None;
        self.fence_line = None;
        self.content.gap();
    }

    /// Turns the fence line into ordinary text.
    fn fence_is_text(&mut self, out: &mut dyn Output) {
        let Some(FenceLine { raw, at, .. }) = self.fence_line.take() else { return };
        if matches!(self.mode, Mode::Outside) {
            self.begin_text(at, true, out);
        }
        self.plain(&raw, At::from(at), out);
    }

    /// Ends the reply within a fence line.
    pub(super) fn fence_ends(&mut self, out: &mut dyn Output) {
        let Some(FenceLine { raw, .. }) = &self.fence_line else { return };
        match self.fence.is_some_and(|fence| fence.is_closed_by_line(raw)) {
            true => self.fence_closes(),
            false => self.fence_is_text(out),
        }
    }
}

impl FenceLine {
    /// Returns whether the line can continue with a character.
    fn fits(&self, c: char) -> bool {
        if self.raw.len() >= FENCE_LINE {
            return false;
        }
        if self.whole {
            return is_space(c);
        }
        let mark = self.raw.chars().next();
        let run = self.raw.chars().take_while(|known| Some(*known) == mark).count();
        match mark {
            None => u8::try_from(c).is_ok_and(is_mark),
            Some(mark) if run == self.raw.len() && c == mark => true,
            Some(_) if run < 3 || c == '`' => false,
            Some(_) => {
                let info = &self.raw[run..];
                let word = !is_blank(info);
                let behind = word && info.ends_with([' ', '\t']);
                is_space(c) || !behind
            }
        }
    }
}
