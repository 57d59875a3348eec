//! Drafts: `<think>`, and the other marks that models put around their reasoning.

use super::parse::{Line, Mode, Reader};
use super::rules;
use super::structure::{self, Name};
use crate::dialect::draft::mismatched;
use crate::dialect::{Intent, Output};
use crate::lex::marks::{self, Effect, Kind, Mark, Open};
use crate::lex::markup::{TagKind, Token};
use crate::lex::space::is_blank;
use crate::span::Place;

/// The draft under way.
pub(super) struct Think {
    /// The mark that opened it, and those inside.
    open: Open,
    at: Place,
    /// `<thinking>` inside, until the next token tells what it is.
    pending: Option<(String, Place)>,
    /// The mark that closed the last draft, while nothing else has come.
    closed: Option<Mark>,
    /// What of it is the answer if it is never closed and no other one comes.
    told: Told,
}

/// `<final>` in the middle of a line of a draft.
#[derive(Default)]
struct Told {
    /// The last one that is open, and the last one that was closed.
    open: Option<Quote>,
    whole: Option<Quote>,
    /// Whether text stands behind the one that was closed.
    behind: bool,
}

/// `<final>` and what follows it, as it was written.
pub(super) struct Quote {
    pub(super) raw: String,
    pub(super) tag_len: usize,
    pub(super) at: Place,
}

impl Told {
    /// The next token of the draft; more than `limit` bytes are not kept.
    fn see(&mut self, token: &Token<'_>, at: Place, in_comment: bool, limit: usize) {
        let raw = token.raw();
        if let Token::Tag(tag) = token
            && let Some((Name::Final, _)) = structure::find(tag.name)
        {
            if tag.kind == TagKind::Open && !in_comment {
                self.open = Some(Quote { raw: raw.to_owned(), tag_len: raw.len(), at });
                return;
            }
            if tag.kind == TagKind::Close
                && let Some(mut quote) = self.open.take()
            {
                quote.raw.push_str(raw);
                (self.whole, self.behind) = (Some(quote), false);
                return;
            }
        }
        match &mut self.open {
            Some(quote) if quote.raw.len() + raw.len() > limit => self.open = None,
            Some(quote) => quote.raw.push_str(raw),
            None => {}
        }
        self.behind |= !is_blank(raw);
    }
}

impl Think {
    fn new(mark: Mark, at: Place) -> Think {
        Think { open: Open::new(mark), at, pending: None, closed: None, told: Told::default() }
    }

    /// The answer that the draft holds. Beside text outside it must be whole and the last there is.
    pub(super) fn take_told(&mut self, alone: bool) -> Option<Quote> {
        let Told { open, whole, behind } = std::mem::take(&mut self.told);
        if alone { whole.or(open) } else { whole.filter(|_| !behind) }
    }

    /// Something else has come.
    pub(super) fn forget_closed(&mut self) {
        self.closed = None;
    }
}

impl Default for Think {
    fn default() -> Think {
        Think::new(marks::THINK, Place::START)
    }
}

impl Reader {
    /// `<think>` begins.
    pub(super) fn begin_think(&mut self, at: Place) {
        self.think = Think::new(marks::THINK, at);
        self.mode = Mode::Think;
    }

    pub(super) fn end_think(&mut self, at: Place, out: &mut dyn Output) {
        self.think_left_open(at.offset, out);
        self.mode = Mode::Outside;
    }

    pub(super) fn think_left_open(&mut self, end: usize, out: &mut dyn Output) {
        if let Some((raw, _)) = self.think.pending.take() {
            out.intent(Intent::Draft(&raw));
        }
        self.unclosed(Name::Think, self.think.at, end, out);
    }

    /// Whether marks count that are no tags: before the structure begins.
    pub(super) fn reads_marks(&self) -> bool {
        // The last one is most often one of them.
        !self.seen.iter().rev().any(|name| matches!(*name, "thinking" | "final"))
    }

    /// Whether a mark of reasoning at this place of the top level opens a draft: in a sentence it is a mention.
    pub(super) fn begins_draft(&self) -> bool {
        self.line != Line::Text || self.outside.is_blank()
    }

    /// A mark of reasoning at the top level that is not ThinkingML's; `false` where it is only text.
    pub(super) fn other_think(&mut self, token: &Token<'_>, at: Place, out: &mut dyn Output) -> bool {
        let closed = self.think.closed.take();
        let Some(mark) = mark_of(token).filter(|_| !is_own(token)) else { return false };
        let len = token.raw().len();
        match mark.kind {
            Kind::Open if self.begins_draft() => {
                let message = format!("`{}` is not a tag of ThinkingML", token.raw());
                self.report(rules::UNEXPECTED_TAG, at, len, message, "read as `<think>`", out);
                self.begin(Name::Think, at, len, out);
                self.think.open = Open::new(mark);
                true
            }
            // Some reasoning ends in two marks.
            Kind::Close => closed.is_some_and(|closed| closed.same(mark)),
            Kind::Open | Kind::CloseOwn => false,
        }
    }

    pub(super) fn think_token(&mut self, token: Token<'_>, at: Place, out: &mut dyn Output) {
        self.think.told.see(&token, at, self.in_comment, self.options.limits.hold);
        if let Some((raw, place)) = self.think.pending.take() {
            match token {
                Token::Text(text) if is_blank(text) && raw.len() + text.len() <= self.options.limits.tag => {
                    self.think.pending = Some((raw + text, place));
                    return;
                }
                Token::Tag(tag) if structure::find(tag.name).is_some_and(|(name, _)| name == Name::Phase) => {
                    self.end_think(place, out);
                    self.begin(Name::Thinking, place, "<thinking>".len(), out);
                    return self.token(token, at, out);
                }
                _ => {
                    self.tag_in_plain_text("thinking", place, raw.trim_end().len(), "kept as text", out);
                    out.intent(Intent::Draft(&raw));
                }
            }
        }
        if self.think_closes(&token, at, out) {
            return;
        }
        match token {
            Token::Text(text) => {
                self.entities.push(text, &mut |text| out.intent(Intent::Draft(text)));
            }
            Token::Tag(tag) if !self.in_comment || tag.kind == TagKind::Close => {
                if let Some((name, exact)) = structure::find(tag.name)
                    && name.is_top()
                    && name != Name::Think
                    && tag.kind == TagKind::Open
                {
                    if self.line_blank() {
                        self.end_think(at, out);
                        self.check_tag(name, exact, &tag, at, out);
                        return self.begin(name, at, tag.raw.len(), out);
                    }
                    if name == Name::Thinking {
                        self.think.pending = Some((tag.raw.to_owned(), at));
                        return;
                    }
                }
                if !self.in_comment {
                    self.tag_in_plain_text(tag.name, at, tag.raw.len(), "kept as text", out);
                }
                out.intent(Intent::Draft(tag.raw));
            }
            other => {
                self.plain_token(&other, at, out);
                out.intent(Intent::Draft(other.raw()));
            }
        }
    }

    /// A mark inside the draft; whether it ends it.
    fn think_closes(&mut self, token: &Token<'_>, at: Place, out: &mut dyn Output) -> bool {
        let Some(mark) = mark_of(token) else { return false };
        if self.in_comment && mark.kind == Kind::Open {
            return false;
        }
        match self.think.open.see(mark) {
            Effect::Text => return false,
            Effect::Close => {}
            Effect::CloseForeign => out.report(mismatched(rules::THINK_MISMATCHED, token.raw(), at)),
        }
        if let Token::Tag(tag) = token
            && let Some((name, exact)) = structure::find(tag.name)
        {
            self.check_tag(name, exact, tag, at, out);
        }
        self.in_comment = false;
        self.mode = Mode::Outside;
        self.think.closed = Some(mark).filter(|mark| !mark.same(marks::THINK));
        true
    }

    /// Whether an unfinished token at the very end of a draft is the beginning of its end.
    pub(super) fn is_half_think_end(&self, carry: &str) -> bool {
        "</think>".starts_with(carry)
            || self.think.told.open.is_some() && "</final>".starts_with(carry)
            || self.think.open.mark() != marks::THINK && marks::is_half_close(carry)
    }
}

/// Whether a token is a tag of ThinkingML.
fn is_own(token: &Token<'_>) -> bool {
    matches!(token, Token::Tag(tag) if structure::find(tag.name).is_some())
}

/// The mark of reasoning that a token is. A tag that closes itself is none.
fn mark_of(token: &Token<'_>) -> Option<Mark> {
    match token {
        Token::Tag(tag) if tag.kind == TagKind::SelfClosing => None,
        Token::Tag(tag) => marks::of_tag(tag.name, tag.kind == TagKind::Close),
        Token::Reasoning(_, mark) => Some(*mark),
        _ => None,
    }
}
