//! Tokens of the parts and the outcomes of reading them: the part ends, another element begins, or an answer
//! inside an element is found.

use super::super::answer;
use super::super::block::{self, QueriesBlock};
use super::super::context::{self, QuotedFinal};
use super::super::draft;
use super::super::late_element::{self, LateElement};
use super::super::rules;
use super::super::structure::{self, ThinkingMlElement};
use super::super::thinking;
use super::{FramePart, ReplyFrame};
use crate::dialect::{FAILURE_MARKER, Intent, IntentSink};
use crate::lex::marks::MarkKind;
use crate::lex::markup::{MarkupLexer, MarkupToken, TagKind};
use crate::span::Place;

impl ReplyFrame {
    /// Handles a token of `<thinking>`.
    pub(super) fn push_thinking_token(
        &mut self,
        token: MarkupToken<'_>,
        at: Place,
        out: &mut dyn IntentSink,
    ) {
        let (token, at) = match self.thinking.push_token(token, at, &self.context, out) {
            thinking::ThinkingOutcome::Open => return,
            thinking::ThinkingOutcome::TopLevel => {
                self.part = FramePart::Surrounding;
                return;
            }
            thinking::ThinkingOutcome::Final { at, len, rest } => {
                self.part = FramePart::Surrounding;
                self.begin_element(ThinkingMlElement::Final, at, len, out);
                let Some(rest) = rest else { return };
                rest
            }
            thinking::ThinkingOutcome::Answer { answer, rest } => {
                self.begin_interrupting_answer(answer, out);
                rest
            }
            thinking::ThinkingOutcome::Release { early_final, rest } => {
                let (text, at) = early_final.text();
                self.replay(text, at, out);
                self.thinking.finish_release(early_final);
                rest
            }
            thinking::ThinkingOutcome::FinalHeld { blanks: (text, at), rest } => {
                if !text.is_empty() {
                    self.push_token(MarkupToken::Text(&text), at, out);
                }
                rest
            }
            thinking::ThinkingOutcome::Summary => return self.begin_summary_in_thinking(token, at, out),
        };
        self.push_token(token, at, out);
    }

    /// Begins a draft whose opening mark is at `at`.
    pub(super) fn begin_draft(&mut self, at: Place) {
        self.draft.begin(at);
        self.part = FramePart::Draft;
    }

    /// Handles a token of a draft.
    pub(super) fn push_draft_token(&mut self, token: MarkupToken<'_>, at: Place, out: &mut dyn IntentSink) {
        match self.draft.push_token(token, at, &self.context, out) {
            draft::DraftOutcome::Open => {}
            draft::DraftOutcome::Ended => self.part = FramePart::Surrounding,
            draft::DraftOutcome::OtherBegins { name, at, len, rest } => {
                self.part = FramePart::Surrounding;
                self.begin_element(name, at, len, out);
                if let Some((token, at)) = rest {
                    self.push_token(token, at, out);
                }
            }
        }
    }

    /// Handles a reasoning mark at the top level that is not a tag of ThinkingML. Returns `false` if the
    /// token is only text.
    pub(super) fn handle_foreign_mark(
        &mut self,
        token: &MarkupToken<'_>,
        at: Place,
        out: &mut dyn IntentSink,
    ) -> bool {
        let last_close = self.draft.take_last_close();
        let Some(mark) = draft::foreign_mark(token) else { return false };
        let len = token.raw().len();
        match mark.kind {
            MarkKind::Open if self.can_begin_draft() => {
                let message = format!("`{}` is not a tag of ThinkingML", token.raw());
                context::report_at(rules::UNEXPECTED_TAG, at, len, message, "read as `<think>`", out);
                self.begin_element(ThinkingMlElement::Think, at, len, out);
                self.draft.set_opening_mark(mark);
                true
            }
            // Some models end reasoning with two closing marks; the second is left out.
            MarkKind::Close => last_close.is_some_and(|last_close| last_close.is_same_family(mark)),
            MarkKind::Open | MarkKind::CloseOwn | MarkKind::Header | MarkKind::Stop => false,
        }
    }

    /// Begins an element that comes too late.
    pub(super) fn begin_late(&mut self, element: LateElement) {
        let is_further = element.is_thought() && self.has_late_thought;
        self.has_late_thought |= element.is_thought();
        self.late_element = Some(if is_further { element.into_further_thought() } else { element });
        self.part = FramePart::Late;
        self.is_in_comment = false;
    }

    /// Handles a token of the late element.
    pub(super) fn push_late_token(&mut self, token: MarkupToken<'_>, at: Place, out: &mut dyn IntentSink) {
        let Some(element) = &mut self.late_element else { return };
        match element.push_token(token, at, out) {
            late_element::LateOutcome::Open => {}
            late_element::LateOutcome::Ended => self.end_late(at.offset + token.raw().len(), out),
            late_element::LateOutcome::LeftOpen => {
                self.end_late(at.offset, out);
                self.push_token(token, at, out);
            }
        }
    }

    /// Ends the late element at `end`.
    pub(super) fn end_late(&mut self, end: usize, out: &mut dyn IntentSink) {
        let Some(element) = self.late_element.take() else { return };
        self.part = if element.finish(end, out) { FramePart::Thinking } else { FramePart::Surrounding };
    }

    /// Begins a summary directly in `<thinking>`, which continues after it.
    fn begin_summary_in_thinking(&mut self, token: MarkupToken<'_>, at: Place, out: &mut dyn IntentSink) {
        let len = token.raw().len();
        let message = "`<serp>` must come before `<thinking>`".to_owned();
        let element = LateElement::new(ThinkingMlElement::Serp, rules::SERP_AFTER_THINKING, message, at, len);
        self.begin_late(element.into_part_of_thinking());
        if matches!(token, MarkupToken::Tag(tag) if tag.kind == TagKind::SelfClosing) {
            self.end_late(at.offset + len, out);
        }
    }

    /// Handles a token of a second `<thinking>`: it is text of the last phase, up to its end (T-008).
    pub(super) fn push_second_thinking_token(
        &mut self,
        token: MarkupToken<'_>,
        at: Place,
        out: &mut dyn IntentSink,
    ) {
        if let MarkupToken::Tag(tag) = token
            && let Some((name, is_exact)) = structure::find_element(tag.name)
        {
            if name == ThinkingMlElement::Thinking && tag.kind == TagKind::Close {
                context::check_tag(name, is_exact, &tag, at, out);
                self.part = FramePart::Surrounding;
            } else if name == ThinkingMlElement::Final && tag.kind == TagKind::Open {
                self.part = FramePart::Surrounding;
                context::check_tag(name, is_exact, &tag, at, out);
                return self.begin_element(name, at, tag.raw.len(), out);
            }
        }
        out.emit_intent(Intent::PhaseText(token.raw()));
    }

    /// Handles a token of the answer.
    #[inline]
    pub(super) fn push_answer_token(&mut self, token: MarkupToken<'_>, at: Place, out: &mut dyn IntentSink) {
        match self.answer.push_token(token, at, &self.context, out) {
            answer::FinalOutcome::Open => {}
            answer::FinalOutcome::Ended => self.part = FramePart::Surrounding,
            answer::FinalOutcome::ClosesInterrupted(name) => self.thinking.handle_late_close(name),
            answer::FinalOutcome::Block { opening, at, is_line_start } => {
                self.block = Some(QueriesBlock::begin(&opening, token.raw(), at, is_line_start));
            }
        }
    }

    /// Handles a token of the open queries block.
    pub(super) fn push_block_token(&mut self, token: MarkupToken<'_>, at: Place, out: &mut dyn IntentSink) {
        let is_in_answer = self.part == FramePart::Final;
        let Some(block) = &mut self.block else { return };
        match block.push_token(token, at, is_in_answer, &self.context, out) {
            block::QueriesBlockOutcome::Open => {}
            block::QueriesBlockOutcome::Ended { end, has_end_marker, rest } => {
                self.end_block(end, has_end_marker, out);
                if let Some((token, at)) = rest {
                    self.push_token(token, at, out);
                }
            }
            block::QueriesBlockOutcome::LeftOpen { end, rest: (token, at) } => {
                self.end_unclosed_block(end, out);
                self.push_token(token, at, out);
            }
            block::QueriesBlockOutcome::Next { end, next } => {
                self.end_unclosed_block(end, out);
                // Text of the first block, when read again, may have begun another block, which then stays.
                self.block.get_or_insert(next);
            }
            block::QueriesBlockOutcome::Text { rest: (token, at) } => {
                self.turn_block_into_text(out);
                self.push_token(token, at, out);
            }
        }
    }

    /// Turns the block into text.
    fn turn_block_into_text(&mut self, out: &mut dyn IntentSink) {
        let Some(block) = self.block.take() else { return };
        let (text, at) = block.into_text();
        if self.part == FramePart::Final {
            self.answer.push_text(&text.replace('<', "&lt;"), at, out);
        } else {
            let is_atomic = false;
            self.keep_after_answer(&text, at, is_atomic);
        }
    }

    /// Ends an unclosed block at `end`: the part that is not queries is text.
    pub(super) fn end_unclosed_block(&mut self, end: Place, out: &mut dyn IntentSink) {
        let Some(block) = &mut self.block else { return };
        let has_end_marker = false;
        let Some((text, at)) = block.split_off_text(end) else {
            return self.end_block(end, has_end_marker, out);
        };
        if block.is_empty() {
            self.drop_block(out);
        } else {
            self.end_block(at, has_end_marker, out);
        }
        self.context.forbids_blocks = true;
        self.replay(&text, at, out);
        self.context.forbids_blocks = false;
        self.is_in_comment = false;
        self.answer.leave_comment();
        self.draft.leave_comment();
    }

    /// Discards a block that is only markup.
    fn drop_block(&mut self, out: &mut dyn IntentSink) {
        let Some(block) = self.block.take() else { return };
        self.is_in_comment = false;
        let Some((tag, at)) = block.discard(out) else { return };
        if self.part == FramePart::Final {
            self.answer.keep_block_tag(&tag, at, out);
        } else {
            let is_atomic = true;
            self.keep_after_answer(&tag, at, is_atomic);
        }
    }

    /// Keeps text after the answer as text outside the elements, which is left out. Text that is `is_atomic`,
    /// such as a tag, is not cut at the limit.
    fn keep_after_answer(&mut self, text: &str, at: Place, is_atomic: bool) {
        if let Some((rest, at)) = self.surrounding.push(text, at, is_atomic, self.context.options.limits.hold)
        {
            self.surrounding.record_overflow(rest, at);
        }
    }

    /// Ends the block at `end`, with or without its end marker.
    fn end_block(&mut self, end: Place, has_end_marker: bool, out: &mut dyn IntentSink) {
        let Some(block) = self.block.take() else { return };
        self.is_in_comment = false;
        let finished_block = block.finish(end, has_end_marker, out);
        self.answer.finish_block(&finished_block, self.part == FramePart::Final, out);
    }

    /// Reads text a second time, now that its role is known.
    pub(super) fn replay(&mut self, raw: &str, at: Place, out: &mut dyn IntentSink) {
        let mut lexer = MarkupLexer::from_place(at, FAILURE_MARKER, self.context.options.limits.tag);
        lexer.push(raw, &mut |token, at| self.push_token(token, at, out));
        lexer.finish(&mut |token, at| self.push_token(token, at, out));
    }

    /// Starts an answer that interrupts a phase or `<thinking>`.
    pub(super) fn begin_interrupting_answer(&mut self, answer: QuotedFinal, out: &mut dyn IntentSink) {
        self.answer.interrupt();
        self.read_quote(answer, out);
    }

    /// Reads a `<final>` again as the answer, after it was emitted as text of another element. `parent` names
    /// that element in the finding.
    pub(super) fn begin_quoted_answer(&mut self, parent: &str, quote: QuotedFinal, out: &mut dyn IntentSink) {
        let message = format!("`<final>` begins inside {parent}, and no other one follows");
        let repair = "read as the answer too";
        context::report_at(rules::FINAL_INSIDE_THINKING, quote.start, quote.raw.len(), message, repair, out);
        self.read_quote(quote, out);
    }

    /// Begins the answer with a `<final>` that was held or emitted as text, and reads its text again.
    fn read_quote(&mut self, QuotedFinal { raw, tag_len, start }: QuotedFinal, out: &mut dyn IntentSink) {
        self.part = FramePart::Surrounding;
        self.begin_element(ThinkingMlElement::Final, start, tag_len, out);
        self.replay(&raw[tag_len..], start.end_of(&raw[..tag_len]), out);
    }
}
