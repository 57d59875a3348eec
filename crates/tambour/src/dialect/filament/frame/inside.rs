//! Tokens in a thought, the content or a block.

use super::super::block::{Block, Quotes};
use super::super::prose::Stand;
use super::super::rules;
use super::super::tags::{Form, Kind, Known, Meaning};
use super::comment::Comment;
use super::draft::InnerEnd;
use super::{Frame, Mode, report};
use crate::dialect::Output;
use crate::finding::Report;
use crate::lex::marks::{Effect, Kind as MarkKind, Mark, of_tag};
use crate::lex::markup::{Tag, TagKind, Token};
use crate::lex::space::is_space;
use crate::span::{At, Place};
use crate::structure::Written;
use crate::texts::counted;

/// Inline HTML elements, which are not tags of a reply.
const INLINE: &[&str] = &["span", "br", "b", "strong", "i", "em", "u", "s", "ruby", "rt", "rp"];

impl Frame {
    /// Handles a token in a thought or the content.
    pub(super) fn inside(&mut self, token: Token<'_>, at: At<'_>, out: &mut dyn Output) {
        if self.comment.is_some() {
            return self.comment_token(token, at.get(), out);
        }
        if self.fence_line.is_some() {
            return self.fence_token(token, at.get(), out);
        }
        if let Token::Tag(tag) = &token {
            self.count_quoting(tag);
        }
        match token {
            Token::Text(text) if self.is_loose() => {
                let place = at.get();
                self.free_text(text, place, out);
            }
            Token::Text(text) => self.plain(text, at, out),
            Token::Tag(tag) if self.counts(&tag) => self.tag_inside(&token, &tag, at.get(), out),
            Token::CommentOpen if matches!(self.mode, Mode::Content(_)) => match self.prose.stand() {
                Stand::Markup => self.markup(token, at.get(), out),
                Stand::Undecided => self.prose.hold_span(&token, at.get()),
                Stand::Span | Stand::Fence => self.plain(token.raw(), at, out),
            },
            Token::Reasoning(raw, mark) if self.word_counts(mark) => match self.prose.stand() {
                Stand::Markup => self.markup(token, at.get(), out),
                Stand::Undecided => self.prose.hold_span(&token, at.get()),
                Stand::Span | Stand::Fence => self.plain(raw, at, out),
            },
            Token::Tag(tag) if self.is_loose() => {
                let place = at.get();
                self.unknown_outside(&tag, place, out);
                self.plain(tag.raw, At::from(place), out);
            }
            _ => {
                if let (Token::CommentOpen | Token::CommentClose | Token::CommentEnd(_), Mode::Thought(_)) =
                    (&token, &self.mode)
                {
                    self.remark = matches!(token, Token::CommentOpen);
                }
                self.plain(token.raw(), at, out);
            }
        }
    }

    /// Tracks HTML elements that quote.
    fn count_quoting(&mut self, tag: &Tag<'_>) {
        if matches!(self.mode, Mode::Content(_)) && self.prose.stand() == Stand::Markup {
            self.quoting.see(tag);
        }
    }

    /// Returns whether a reasoning mark that is not a tag may count: in a thought, or at the start of a line
    /// where one may begin.
    fn word_counts(&self, mark: Mark) -> bool {
        match &self.mode {
            Mode::Thought(_) => true,
            Mode::Content(open) => {
                open.tag.is_none() && mark.kind == MarkKind::Open && self.prose.line_blank()
            }
            _ => false,
        }
    }

    /// Returns whether the open part began without a tag.
    pub(super) fn is_loose(&self) -> bool {
        matches!(&self.mode, Mode::Thought(open) | Mode::Content(open) if open.tag.is_none())
    }

    /// Returns whether the open part began without a tag, or nothing is open.
    pub(super) fn is_outside(&self) -> bool {
        matches!(self.mode, Mode::Outside) || self.is_loose()
    }

    /// Reports a tag that the structure does not know, in text outside of tags.
    fn unknown_outside(&mut self, tag: &Tag<'_>, at: Place, out: &mut dyn Output) {
        let html = INLINE.iter().any(|name| name.eq_ignore_ascii_case(tag.name));
        if html || tag.kind == TagKind::Close || self.draft.is_some() || self.prose.stand() != Stand::Markup {
            return;
        }
        let message = format!("`{}` is no tag of the structure", tag.name);
        let found = Report::new(rules::TAG_UNEXPECTED, at, at.offset + tag.raw.len(), message);
        let row = if matches!(self.tags.meaning(tag), Meaning::Inactive) { "F-234" } else { "F-206" };
        out.report(found.row(row).repaired("read as text"));
    }

    /// Returns whether a tag may count here if it is not code.
    fn counts(&self, tag: &Tag<'_>) -> bool {
        match self.tags.meaning(tag) {
            Meaning::Known(_) => true,
            Meaning::Reasoning(_) => {
                matches!(self.mode, Mode::Thought(_)) || self.is_loose() && tag.kind == TagKind::Open
            }
            Meaning::Envelope => self.is_loose(),
            Meaning::Inactive | Meaning::Unknown => self.is_loose() && self.tags.html_status(tag).is_some(),
        }
    }

    fn tag_inside(&mut self, token: &Token<'_>, tag: &Tag<'_>, at: Place, out: &mut dyn Output) {
        let alone = self.prose.line_blank();
        match self.prose.stand() {
            Stand::Markup => self.markup(*token, at, out),
            Stand::Undecided => self.prose.hold_span(token, at),
            // A closing tag on a line of its own ends even a fence (F-105).
            Stand::Fence if alone && self.closes(tag) => self.prose.hold_line(token, at),
            Stand::Span | Stand::Fence => self.plain(tag.raw, At::from(at), out),
        }
    }

    /// Returns whether a tag closes the open element.
    pub(super) fn closes(&self, tag: &Tag<'_>) -> bool {
        let kind = match &self.mode {
            Mode::Thought(_) => Kind::Thought,
            Mode::Content(_) => Kind::Content,
            Mode::Block(block) => block.known.kind,
            Mode::Outside => return false,
        };
        tag.kind == TagKind::Close && self.known(tag).is_some_and(|known| known.kind == kind)
    }

    /// Handles a tag, or the beginning of a comment, that is not code.
    pub(super) fn markup(&mut self, token: Token<'_>, at: Place, out: &mut dyn Output) {
        if let Token::Reasoning(raw, mark) = token {
            return self.word(raw, mark, at, out);
        }
        let Token::Tag(tag) = token else {
            if self.comments_over && self.is_loose() {
                return self.read_comment_open(at, out);
            }
            self.content.gap();
            self.comment = Some(Comment::new(at, false));
            return;
        };
        if self.comment.is_some() && self.ends_alone(at, out) {
            return self.token(token, At::from(at), out);
        }
        if let Mode::Block(block) = &mut self.mode {
            // A tag held because of an open JSON string is outside of any string.
            block.quotes = Quotes::default();
            return self.block_tag(&token, &tag, at, out);
        }
        let meaning = self.tags.meaning(&tag);
        let known = self.known(&tag).or_else(|| self.tags.html_status(&tag));
        let draft = !matches!(meaning, Meaning::Reasoning(_)) && self.is_drafted(&tag, known, at);
        if draft || self.is_quoted(&tag, known) {
            return self.plain(tag.raw, At::from(at), out);
        }
        let known = match meaning {
            Meaning::Known(known) => known,
            Meaning::Reasoning(known) if matches!(self.mode, Mode::Thought(_)) => {
                let mark = of_tag(tag.name, tag.kind == TagKind::Close);
                let Mode::Thought(open) = &mut self.mode else { return };
                let ends = mark.is_some_and(|mark| open.marks.see(mark) != Effect::Text);
                if !ends {
                    match tag.kind {
                        TagKind::Close => _ = self.closes_inside(),
                        kind => self.opens_inside(kind == TagKind::Open),
                    }
                    return self.plain(tag.raw, At::from(at), out);
                }
                known
            }
            // An envelope, an HTML status bar, or reasoning after text outside of tags.
            _ => {
                self.leave(at.offset, out);
                return self.token(token, At::from(at), out);
            }
        };
        if tag.kind == TagKind::Close {
            let inner = match meaning {
                Meaning::Known(_) => InnerEnd::Phase,
                _ => InnerEnd::Text,
            };
            let thought = self.closes(&tag) && matches!(self.mode, Mode::Thought(_));
            if thought && !self.ends_thought(tag.raw, inner, at, out) {
                return;
            }
            return self.closing(&tag, known, at, out);
        }
        if self.has_draft() {
            self.read_draft(out);
            return self.token(token, At::from(at), out);
        }
        if known.kind == Kind::Details && matches!(self.mode, Mode::Content(_)) {
            // The content continues after it.
            return self.begin(&tag, known, at, out);
        }
        self.leave(at.offset, out);
        self.token(token, At::from(at), out);
    }

    /// Returns whether the tag of a block in the content, or its closing tag, is in a quotation: it is an
    /// example.
    fn is_quoted(&self, tag: &Tag<'_>, known: Option<Known>) -> bool {
        let block = known.is_some_and(|known| {
            !matches!(known.kind, Kind::Thought | Kind::Content)
                && (known.kind != Kind::Details || tag.kind == TagKind::Close)
        });
        block && matches!(self.mode, Mode::Content(_)) && (self.quoting.is_open() || self.prose.is_quoted())
    }

    /// Handles a closing tag in a thought or the content.
    fn closing(&mut self, tag: &Tag<'_>, known: Known, at: Place, out: &mut dyn Output) {
        let (kind, open) = match &self.mode {
            Mode::Thought(open) => (Kind::Thought, open),
            Mode::Content(open) => (Kind::Content, open),
            _ => return,
        };
        if known.kind != kind {
            return self.unopened(tag, at, out);
        }
        self.check_tag(tag, known, at, out);
        self.unused(tag, known, at, &[], out);
        let (element, head) = (open.at, open.head);
        match &open.tag {
            Some((name, ..)) if !name.eq_ignore_ascii_case(tag.name) && known.written != Written::Typo => {
                let message = format!("`{}` closes `<{name}>`", tag.raw);
                report(rules::TAG_MISMATCHED, at, tag.raw.len(), message, "closed", out);
            }
            None if !head => self.unopened(tag, at, out),
            _ => {}
        }
        if head && !self.seen.contains(&element) {
            self.seen.push(element);
        }
        self.close_prose_at(true, at.offset, out);
        self.closed = Some(element);
    }

    /// Handles a token in a block.
    pub(super) fn block(&mut self, token: Token<'_>, at: Place, out: &mut dyn Output) {
        let Mode::Block(block) = &mut self.mode else { return };
        let void = block.known.kind == Kind::Media && block.attribute("src").is_some();
        let (kind, own) = (block.known.kind, block.known.at);
        // Names inside are free (F-130, F-235): one that resembles a tag of the reply is not that tag.
        if let Token::Tag(tag) = token
            && matches!(kind, Kind::Status | Kind::Details)
            && self.known(&tag).is_some_and(|known| known.written == Written::Typo && known.at != own)
        {
            return self.plain(tag.raw, At::from(at), out);
        }
        match token {
            Token::Text(text) if void => {
                let blank = text.len() - text.trim_start_matches(is_space).len();
                self.block_text(&text[..blank], At::from(at), out);
                if blank < text.len() {
                    // A medium is empty: its closing tag is missing.
                    let at = at.after(&text[..blank]);
                    self.leave(at.offset, out);
                    self.token(Token::Text(&text[blank..]), At::from(at), out);
                }
            }
            Token::Tag(tag) if kind == Kind::Details && self.known(&tag).is_some() => {
                self.tag_inside(&token, &tag, at, out);
            }
            Token::Tag(tag) if void => match self.closes(&tag) {
                true => self.block_tag(&token, &tag, at, out),
                false => {
                    self.leave(at.offset, out);
                    self.token(token, At::from(at), out);
                }
            },
            Token::Tag(tag) => self.block_tag(&token, &tag, at, out),
            _ => self.plain(token.raw(), At::from(at), out),
        }
    }

    /// Handles a tag in a block that is not code.
    fn block_tag(&mut self, token: &Token<'_>, tag: &Tag<'_>, at: Place, out: &mut dyn Output) {
        let Mode::Block(block) = &mut self.mode else { return };
        if block.known.form == Form::Html {
            return self.html_tag(tag, at, out);
        }
        let Some(known) =
            self.known(tag).filter(|_| !matches!(self.tags.meaning(tag), Meaning::Reasoning(_)))
        else {
            return self.plain(tag.raw, At::from(at), out);
        };
        let Mode::Block(block) = &mut self.mode else { return };
        let name = tag.name.to_ascii_lowercase();
        let same = known.kind == block.known.kind && (known.at == block.known.at);
        let own = block.name.eq_ignore_ascii_case(tag.name);
        if tag.kind == TagKind::Close {
            if let Some(inner) = block.inner.iter().rposition(|inner| *inner == name) {
                block.inner.truncate(inner);
                return self.plain(tag.raw, At::from(at), out);
            }
            // It may be text of a string: the rest of the line decides. Apostrophes do not hold back the end
            // of their block.
            if let Some(quote) = block.quotes.open
                && (block.is_json() || block.is_commands() && !same)
            {
                return self.prose.hold_quote(token, at, quote);
            }
            if same {
                if !own {
                    let message = format!("`{}` closes `<{}>`", tag.raw, block.name);
                    report(rules::TAG_MISMATCHED, at, tag.raw.len(), message, "closed", out);
                }
                self.check_tag(tag, known, at, out);
                self.unused(tag, known, at, &[], out);
                return self.close_block(out);
            }
            if block.nested && known.kind == Kind::Content {
                self.leave(at.offset, out);
                return self.token(*token, At::from(at), out);
            }
            return self.unopened(tag, at, out);
        }
        if block.quotes.open.is_some() && block.is_json() {
            return self.plain(tag.raw, At::from(at), out);
        }
        let deep = matches!(known.kind, Kind::Details | Kind::Own | Kind::Status);
        let nests = same && (deep || !own);
        if nests && block.inner.len() < self.cx.options.limits.depth {
            if tag.kind == TagKind::Open {
                block.inner.push(name);
            }
            return self.plain(tag.raw, At::from(at), out);
        }
        // The open block is closed first (F-202).
        self.leave(at.offset, out);
        self.token(*token, At::from(at), out);
    }

    /// Handles a tag in an HTML status bar, which ends with the element that began it.
    fn html_tag(&mut self, tag: &Tag<'_>, at: Place, out: &mut dyn Output) {
        let Mode::Block(block) = &mut self.mode else { return };
        let same = block.name.eq_ignore_ascii_case(tag.name);
        match tag.kind {
            TagKind::Close if same => match block.inner.pop() {
                Some(_) => self.plain(tag.raw, At::from(at), out),
                None => self.close_block(out),
            },
            TagKind::Open if same && block.inner.len() < self.cx.options.limits.depth => {
                block.inner.push(String::new());
                self.plain(tag.raw, At::from(at), out);
            }
            _ if self.known(tag).is_some_and(|known| known.kind != Kind::Status) => {
                self.leave(at.offset, out);
                self.token(Token::Tag(*tag), At::from(at), out);
            }
            _ => self.plain(tag.raw, At::from(at), out),
        }
    }

    /// Reads text of a block; beyond the limit it is text of the content.
    pub(super) fn block_text(&mut self, text: &str, at: At<'_>, out: &mut dyn Output) {
        let limit = self.cx.options.limits.value;
        let Mode::Block(block) = &mut self.mode else { return };
        if block.over {
            return self.content.text(text, at, out);
        }
        if block.is_json() || block.is_commands() {
            let quotes: &[u8] = if block.is_commands() { b"\"'`" } else { b"\"" };
            block.quotes.read(text, quotes);
        }
        block.body.push_str(text);
        if block.body.len() <= limit {
            return;
        }
        block.over = true;
        let body = std::mem::take(&mut block.body);
        let (tag, place, name) = (block.tag, block.at, block.name.clone());
        let message = format!("`<{name}>` has more than {}", counted(limit, "byte"));
        let end = place.offset + body.floor_char_boundary(limit);
        let found = Report::new(rules::LIMIT_EXCEEDED, tag, end, message);
        out.report(found.repaired("shown as text of the content"));
        self.content.part();
        self.content.text(&body, At::from(place), out);
    }
}

impl Block {
    /// Returns whether the block holds JSON.
    pub(super) fn is_json(&self) -> bool {
        matches!(self.known.kind, Kind::Update | Kind::Call | Kind::Component)
            && !matches!(self.known.form, Form::Commands | Form::OneUpdate)
    }

    /// Returns whether the block holds commands, or JSON in their place.
    fn is_commands(&self) -> bool {
        self.known.form == Form::Commands
    }
}
