//! Drafts: `<think>`, and the other marks that models put around their reasoning.

use super::context::{self, QuotedFinal, ReaderContext};
use super::rules;
use super::structure::{self, ThinkingMlElement};
use crate::dialect::draft::mismatched_report;
use crate::dialect::{Intent, IntentSink};
use crate::lex::entity::EntityDecoder;
use crate::lex::marks::{self, MarkEffect, MarkKind, OpenReasoning, ReasoningMark};
use crate::lex::markup::{MarkupTag, MarkupToken, TagKind};
use crate::lex::space::is_blank;
use crate::span::Place;

/// Effect of a token on a draft.
pub(super) enum DraftOutcome<'a> {
    /// The draft continues.
    Open,
    /// The draft has ended.
    Ended,
    /// The draft was left open where another element begins, with a tag of `len` bytes; `rest` is unread.
    OtherBegins { name: ThinkingMlElement, at: Place, len: usize, rest: Option<(MarkupToken<'a>, Place)> },
}

/// The current draft.
pub(super) struct DraftReader {
    /// The opening mark, and the marks nested in it.
    marks: OpenReasoning,
    /// Place of the opening mark.
    start: Place,
    /// A `<thinking>` in the draft, until the next token decides what it is.
    pending_thinking: Option<(String, Place)>,
    /// The mark that closed the last draft, as long as no text follows it; `None` after `</think>`.
    last_close: Option<ReasoningMark>,
    /// `<final>` elements in the draft. One of them is the answer if the draft is never closed and no other
    /// answer follows.
    quoted_finals: QuotedFinals,
    /// Set while an HTML comment is open; its content is text (T-027).
    is_in_comment: bool,
    entities: EntityDecoder,
}

/// `<final>` elements in the middle of a line of a draft.
#[derive(Default)]
struct QuotedFinals {
    /// The `<final>` that is open.
    open_final: Option<QuotedFinal>,
    /// The last closed `<final>`.
    last_closed: Option<QuotedFinal>,
    /// Set if text follows the last closed `<final>`.
    has_text_after: bool,
}

impl QuotedFinals {
    /// Handles the next token of the draft; keeps at most `limit` bytes.
    fn push_token(&mut self, token: &MarkupToken<'_>, start: Place, is_in_comment: bool, limit: usize) {
        let raw = token.raw();
        if let MarkupToken::Tag(tag) = token
            && let Some((ThinkingMlElement::Final, _)) = structure::find_element(tag.name)
        {
            if tag.kind == TagKind::Open && !is_in_comment {
                self.open_final = Some(QuotedFinal { raw: raw.to_owned(), tag_len: raw.len(), start });
                return;
            }
            if tag.kind == TagKind::Close
                && let Some(mut quote) = self.open_final.take()
            {
                quote.raw.push_str(raw);
                (self.last_closed, self.has_text_after) = (Some(quote), false);
                return;
            }
        }
        match &mut self.open_final {
            Some(quote) if quote.raw.len() + raw.len() > limit => self.open_final = None,
            Some(quote) => quote.raw.push_str(raw),
            None => {}
        }
        self.has_text_after |= !is_blank(raw);
    }
}

impl DraftReader {
    fn new(mark: ReasoningMark, start: Place) -> DraftReader {
        DraftReader {
            marks: OpenReasoning::new(mark),
            start,
            pending_thinking: None,
            last_close: None,
            quoted_finals: QuotedFinals::default(),
            is_in_comment: false,
            entities: EntityDecoder::default(),
        }
    }

    /// Takes the answer that the draft holds. Unless the draft is alone in the reply, the answer must be
    /// closed and at the end of the draft.
    pub(super) fn take_quoted_final(&mut self, is_alone: bool) -> Option<QuotedFinal> {
        let QuotedFinals { open_final, last_closed, has_text_after } =
            std::mem::take(&mut self.quoted_finals);
        if is_alone { last_closed.or(open_final) } else { last_closed.filter(|_| !has_text_after) }
    }

    /// Begins `<think>`.
    pub(super) fn begin(&mut self, at: Place) {
        *self = DraftReader::new(marks::THINK_MARK, at);
    }

    /// Records that another mark opened the draft.
    pub(super) fn set_opening_mark(&mut self, mark: ReasoningMark) {
        self.marks = OpenReasoning::new(mark);
    }

    /// Takes the mark that closed the last draft, if no text followed it.
    pub(super) fn take_last_close(&mut self) -> Option<ReasoningMark> {
        self.last_close.take()
    }

    /// Ends an open comment. It began in text that was read a second time, and must not continue after that
    /// text.
    pub(super) fn leave_comment(&mut self) {
        self.is_in_comment = false;
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.entities.held_bytes()
    }

    /// Ends a run of text: emits held bytes.
    pub(super) fn flush(&mut self, out: &mut dyn IntentSink) {
        self.entities.flush(&mut |text| out.emit_intent(Intent::Draft(text)));
    }

    /// Ends the draft at `end` without its closing mark.
    pub(super) fn finish_unclosed(&mut self, end: usize, out: &mut dyn IntentSink) {
        self.flush(out);
        if let Some((raw, _)) = self.pending_thinking.take() {
            out.emit_intent(Intent::Draft(&raw));
        }
        context::report_unclosed(ThinkingMlElement::Think, self.start, end, out);
    }

    /// Handles the next token.
    pub(super) fn push_token<'a>(
        &mut self,
        token: MarkupToken<'a>,
        at: Place,
        context: &ReaderContext,
        out: &mut dyn IntentSink,
    ) -> DraftOutcome<'a> {
        if !matches!(token, MarkupToken::Text(_)) {
            self.flush(out);
        }
        let limits = &context.options.limits;
        self.quoted_finals.push_token(&token, at, self.is_in_comment, limits.hold);
        if let Some((raw, place)) = self.pending_thinking.take() {
            match token {
                MarkupToken::Text(text) if is_blank(text) && raw.len() + text.len() <= limits.tag => {
                    self.pending_thinking = Some((raw + text, place));
                    return DraftOutcome::Open;
                }
                MarkupToken::Tag(tag)
                    if structure::find_element(tag.name)
                        .is_some_and(|(name, _)| name == ThinkingMlElement::Phase) =>
                {
                    self.finish_unclosed(place.offset, out);
                    let (name, len) = (ThinkingMlElement::Thinking, "<thinking>".len());
                    return DraftOutcome::OtherBegins { name, at: place, len, rest: Some((token, at)) };
                }
                _ => {
                    let len = raw.trim_end().len();
                    context::report_tag_in_text("T-003", "thinking", place, len, "kept as text", out);
                    out.emit_intent(Intent::Draft(&raw));
                }
            }
        }
        if self.try_close(&token, at, out) {
            return DraftOutcome::Ended;
        }
        match token {
            MarkupToken::Text(text) => {
                self.entities.push(text, &mut |text| out.emit_intent(Intent::Draft(text)));
                return DraftOutcome::Open;
            }
            MarkupToken::Tag(tag) if !self.is_in_comment || tag.kind == TagKind::Close => {
                return self.handle_tag(&tag, at, context, out);
            }
            MarkupToken::CommentOpen => self.is_in_comment = true,
            MarkupToken::CommentClose | MarkupToken::HtmlCommentClose(_) => self.is_in_comment = false,
            MarkupToken::Mark(_) => context::report_embedded_marker(at, "kept as text", out),
            MarkupToken::Tag(_) | MarkupToken::Reasoning(..) => {}
        }
        out.emit_intent(Intent::Draft(token.raw()));
        DraftOutcome::Open
    }

    /// Handles a tag that does not close the draft.
    fn handle_tag<'a>(
        &mut self,
        tag: &MarkupTag<'_>,
        at: Place,
        context: &ReaderContext,
        out: &mut dyn IntentSink,
    ) -> DraftOutcome<'a> {
        let len = tag.raw.len();
        if let Some((name, is_exact)) = structure::find_element(tag.name)
            && name.is_top()
            && name != ThinkingMlElement::Think
            && tag.kind == TagKind::Open
        {
            // At the start of a line the element begins; elsewhere the draft only mentions it.
            if context.is_line_blank() {
                self.finish_unclosed(at.offset, out);
                context::check_tag(name, is_exact, tag, at, out);
                return DraftOutcome::OtherBegins { name, at, len, rest: None };
            }
            if name == ThinkingMlElement::Thinking {
                self.pending_thinking = Some((tag.raw.to_owned(), at));
                return DraftOutcome::Open;
            }
        }
        if !self.is_in_comment {
            context::report_tag_in_text("T-003", tag.name, at, len, "kept as text", out);
        }
        out.emit_intent(Intent::Draft(tag.raw));
        DraftOutcome::Open
    }

    /// Handles a mark inside the draft; returns whether it closes the draft.
    fn try_close(&mut self, token: &MarkupToken<'_>, at: Place, out: &mut dyn IntentSink) -> bool {
        let Some(mark) = mark_of(token) else { return false };
        if self.is_in_comment && mark.kind == MarkKind::Open {
            return false;
        }
        match self.marks.apply(mark) {
            MarkEffect::Text => return false,
            MarkEffect::Close => {}
            MarkEffect::CloseForeign => {
                out.report(mismatched_report(rules::THINK_MISMATCHED, token.raw(), at))
            }
        }
        if let MarkupToken::Tag(tag) = token
            && let Some((name, is_exact)) = structure::find_element(tag.name)
        {
            context::check_tag(name, is_exact, tag, at, out);
        }
        self.is_in_comment = false;
        self.last_close = Some(mark).filter(|mark| !mark.is_same_family(marks::THINK_MARK));
        true
    }

    /// Returns whether an unfinished token at the very end begins the closing mark of the draft, or of the
    /// `<final>` open in it.
    pub(super) fn is_half_end(&self, carry: &str) -> bool {
        "</think>".starts_with(carry)
            || self.quoted_finals.open_final.is_some() && "</final>".starts_with(carry)
            || self.marks.mark() != marks::THINK_MARK && marks::is_half_close(carry)
    }
}

impl Default for DraftReader {
    fn default() -> DraftReader {
        DraftReader::new(marks::THINK_MARK, Place::START)
    }
}

/// Reads a token as a reasoning mark; `None` if it is not a mark, or is a tag of ThinkingML.
pub(super) fn foreign_mark(token: &MarkupToken<'_>) -> Option<ReasoningMark> {
    let is_own_tag = matches!(token, MarkupToken::Tag(tag) if structure::find_element(tag.name).is_some());
    mark_of(token).filter(|_| !is_own_tag)
}

/// Reads a token as a reasoning mark; `None` if it is not a mark. A self-closing tag is never a mark.
fn mark_of(token: &MarkupToken<'_>) -> Option<ReasoningMark> {
    match token {
        MarkupToken::Tag(tag) if tag.kind == TagKind::SelfClosing => None,
        MarkupToken::Tag(tag) => marks::parse_tag_mark(tag.name, tag.kind == TagKind::Close),
        MarkupToken::Reasoning(_, mark) => Some(*mark),
        _ => None,
    }
}
