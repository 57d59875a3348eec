//! Drafts: `<think>`, and the other marks that models put around their reasoning.

use super::context::{self, Context, Quote};
use super::rules;
use super::structure::{self, Name};
use crate::dialect::draft::mismatched;
use crate::dialect::{Intent, Output};
use crate::lex::entity::Entities;
use crate::lex::marks::{self, Effect, Kind, Mark, Open};
use crate::lex::markup::{Tag, TagKind, Token};
use crate::lex::space::is_blank;
use crate::span::Place;

/// Effect of a token on a draft.
pub(super) enum Outcome<'a> {
    /// The draft continues.
    Open,
    /// The draft has ended.
    Over,
    /// The draft was left open where another element begins, with a tag of `len` bytes; `rest` is unread.
    Begins { name: Name, at: Place, len: usize, rest: Option<(Token<'a>, Place)> },
}

/// The current draft.
pub(super) struct Think {
    /// The opening mark, and the marks nested in it.
    open: Open,
    at: Place,
    /// A `<thinking>` in the draft, until the next token decides what it is.
    pending: Option<(String, Place)>,
    /// The mark that closed the last draft, as long as no text follows it.
    closed: Option<Mark>,
    /// Quoted `<final>`: the answer, if the draft is never closed and no other answer follows.
    told: Told,
    /// Set while an HTML comment is open; its content is text (T-027).
    in_comment: bool,
    entities: Entities,
}

/// `<final>` elements in the middle of a line of a draft.
#[derive(Default)]
struct Told {
    /// The last open one, and the last closed one.
    open: Option<Quote>,
    whole: Option<Quote>,
    /// Set if text follows the closed one.
    behind: bool,
}

impl Told {
    /// Handles the next token of the draft; keeps at most `limit` bytes.
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
        Think {
            open: Open::new(mark),
            at,
            pending: None,
            closed: None,
            told: Told::default(),
            in_comment: false,
            entities: Entities::default(),
        }
    }

    /// Takes the answer that the draft holds. Unless the draft is `alone` in the reply, the answer must be
    /// closed and last.
    pub(super) fn take_told(&mut self, alone: bool) -> Option<Quote> {
        let Told { open, whole, behind } = std::mem::take(&mut self.told);
        if alone { whole.or(open) } else { whole.filter(|_| !behind) }
    }

    /// Begins `<think>`.
    pub(super) fn begin(&mut self, at: Place) {
        *self = Think::new(marks::THINK, at);
    }

    /// Records that another mark opened the draft.
    pub(super) fn opened_by(&mut self, mark: Mark) {
        self.open = Open::new(mark);
    }

    /// Takes the mark that closed the last draft, if no text followed it.
    pub(super) fn take_closed(&mut self) -> Option<Mark> {
        self.closed.take()
    }

    /// Ends an open comment, because it began in text that was read a second time.
    pub(super) fn leave_comment(&mut self) {
        self.in_comment = false;
    }

    pub(super) fn held(&self) -> usize {
        self.entities.held()
    }

    /// Ends a run of text.
    pub(super) fn flush(&mut self, out: &mut dyn Output) {
        self.entities.flush(&mut |text| out.intent(Intent::Draft(text)));
    }

    /// Ends the draft at `end` without its closing mark.
    pub(super) fn left_open(&mut self, end: usize, out: &mut dyn Output) {
        self.flush(out);
        if let Some((raw, _)) = self.pending.take() {
            out.intent(Intent::Draft(&raw));
        }
        context::unclosed(Name::Think, self.at, end, out);
    }

    /// Handles the next token.
    pub(super) fn token<'a>(
        &mut self,
        token: Token<'a>,
        at: Place,
        context: &Context,
        out: &mut dyn Output,
    ) -> Outcome<'a> {
        if !matches!(token, Token::Text(_)) {
            self.flush(out);
        }
        let limits = &context.options.limits;
        self.told.see(&token, at, self.in_comment, limits.hold);
        if let Some((raw, place)) = self.pending.take() {
            match token {
                Token::Text(text) if is_blank(text) && raw.len() + text.len() <= limits.tag => {
                    self.pending = Some((raw + text, place));
                    return Outcome::Open;
                }
                Token::Tag(tag) if structure::find(tag.name).is_some_and(|(name, _)| name == Name::Phase) => {
                    self.left_open(place.offset, out);
                    let (name, len) = (Name::Thinking, "<thinking>".len());
                    return Outcome::Begins { name, at: place, len, rest: Some((token, at)) };
                }
                _ => {
                    let len = raw.trim_end().len();
                    context::tag_in_plain_text("T-003", "thinking", place, len, "kept as text", out);
                    out.intent(Intent::Draft(&raw));
                }
            }
        }
        if self.closes(&token, at, out) {
            return Outcome::Over;
        }
        match token {
            Token::Text(text) => {
                self.entities.push(text, &mut |text| out.intent(Intent::Draft(text)));
                return Outcome::Open;
            }
            Token::Tag(tag) if !self.in_comment || tag.kind == TagKind::Close => {
                return self.tag(&tag, at, context, out);
            }
            Token::CommentOpen => self.in_comment = true,
            Token::CommentClose | Token::CommentEnd(_) => self.in_comment = false,
            Token::Mark(_) => context::embedded_marker(at, "kept as text", out),
            Token::Tag(_) | Token::Reasoning(..) => {}
        }
        out.intent(Intent::Draft(token.raw()));
        Outcome::Open
    }

    /// Handles a tag that does not close the draft.
    fn tag<'a>(&mut self, tag: &Tag<'_>, at: Place, context: &Context, out: &mut dyn Output) -> Outcome<'a> {
        let len = tag.raw.len();
        if let Some((name, exact)) = structure::find(tag.name)
            && name.is_top()
            && name != Name::Think
            && tag.kind == TagKind::Open
        {
            if context.line_blank() {
                self.left_open(at.offset, out);
                context::check_tag(name, exact, tag, at, out);
                return Outcome::Begins { name, at, len, rest: None };
            }
            if name == Name::Thinking {
                self.pending = Some((tag.raw.to_owned(), at));
                return Outcome::Open;
            }
        }
        if !self.in_comment {
            context::tag_in_plain_text("T-003", tag.name, at, len, "kept as text", out);
        }
        out.intent(Intent::Draft(tag.raw));
        Outcome::Open
    }

    /// Handles a mark inside the draft; returns whether it closes the draft.
    fn closes(&mut self, token: &Token<'_>, at: Place, out: &mut dyn Output) -> bool {
        let Some(mark) = mark_of(token) else { return false };
        if self.in_comment && mark.kind == Kind::Open {
            return false;
        }
        match self.open.see(mark) {
            Effect::Text => return false,
            Effect::Close => {}
            Effect::CloseForeign => out.report(mismatched(rules::THINK_MISMATCHED, token.raw(), at)),
        }
        if let Token::Tag(tag) = token
            && let Some((name, exact)) = structure::find(tag.name)
        {
            context::check_tag(name, exact, tag, at, out);
        }
        self.in_comment = false;
        self.closed = Some(mark).filter(|mark| !mark.same(marks::THINK));
        true
    }

    /// Returns whether an unfinished token at the very end begins the closing mark of the draft.
    pub(super) fn is_half_end(&self, carry: &str) -> bool {
        "</think>".starts_with(carry)
            || self.told.open.is_some() && "</final>".starts_with(carry)
            || self.open.mark() != marks::THINK && marks::is_half_close(carry)
    }
}

impl Default for Think {
    fn default() -> Think {
        Think::new(marks::THINK, Place::START)
    }
}

/// Returns the reasoning mark of a token that is not a tag of ThinkingML.
pub(super) fn other_mark(token: &Token<'_>) -> Option<Mark> {
    let own = matches!(token, Token::Tag(tag) if structure::find(tag.name).is_some());
    mark_of(token).filter(|_| !own)
}

/// Returns the reasoning mark of a token. A self-closing tag is not one.
fn mark_of(token: &Token<'_>) -> Option<Mark> {
    match token {
        Token::Tag(tag) if tag.kind == TagKind::SelfClosing => None,
        Token::Tag(tag) => marks::of_tag(tag.name, tag.kind == TagKind::Close),
        Token::Reasoning(_, mark) => Some(*mark),
        _ => None,
    }
}
