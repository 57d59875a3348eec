//! Outcomes of the parts: the top level again, another element, or an answer inside one.

use super::super::answer;
use super::super::block::{self, Block};
use super::super::context::{self, Quote};
use super::super::late::{self, Late};
use super::super::rules;
use super::super::structure::{self, Name};
use super::super::think;
use super::super::thinking;
use super::{Frame, Mode};
use crate::dialect::{Intent, MARKER, Output};
use crate::lex::marks::Kind;
use crate::lex::markup::{Markup, TagKind, Token};
use crate::span::Place;

impl Frame {
    pub(super) fn thinking_token(&mut self, token: Token<'_>, at: Place, out: &mut dyn Output) {
        let (token, at) = match self.thinking.token(token, at, &self.context, out) {
            thinking::Outcome::Open => return,
            thinking::Outcome::Outside => {
                self.mode = Mode::Outside;
                return;
            }
            thinking::Outcome::Final { at, len, rest } => {
                self.mode = Mode::Outside;
                self.begin(Name::Final, at, len, out);
                let Some(rest) = rest else { return };
                rest
            }
            thinking::Outcome::Answer { answer, rest } => {
                self.answer_inside(answer, out);
                rest
            }
            thinking::Outcome::Release { hold, rest } => {
                let (text, at) = hold.text();
                self.replay(text, at, out);
                self.thinking.released(hold);
                rest
            }
            thinking::Outcome::Held { blanks: (text, at), rest } => {
                if !text.is_empty() {
                    self.token(Token::Text(&text), at, out);
                }
                rest
            }
            thinking::Outcome::Serp => return self.serp_in_thinking(token, at, out),
        };
        self.token(token, at, out);
    }

    /// Begins `<think>`.
    pub(super) fn begin_think(&mut self, at: Place) {
        self.think.begin(at);
        self.mode = Mode::Think;
    }

    pub(super) fn think_token(&mut self, token: Token<'_>, at: Place, out: &mut dyn Output) {
        match self.think.token(token, at, &self.context, out) {
            think::Outcome::Open => {}
            think::Outcome::Over => self.mode = Mode::Outside,
            think::Outcome::Begins { name, at, len, rest } => {
                self.mode = Mode::Outside;
                self.begin(name, at, len, out);
                if let Some((token, at)) = rest {
                    self.token(token, at, out);
                }
            }
        }
    }

    /// Handles a reasoning mark at the top level that is not ThinkingML's. Returns `false` if it is only
    /// text.
    pub(super) fn other_think(&mut self, token: &Token<'_>, at: Place, out: &mut dyn Output) -> bool {
        let closed = self.think.take_closed();
        let Some(mark) = think::other_mark(token) else { return false };
        let len = token.raw().len();
        match mark.kind {
            Kind::Open if self.begins_draft() => {
                let message = format!("`{}` is not a tag of ThinkingML", token.raw());
                context::report(rules::UNEXPECTED_TAG, at, len, message, "read as `<think>`", out);
                self.begin(Name::Think, at, len, out);
                self.think.opened_by(mark);
                true
            }
            // Some reasoning ends with two closing marks.
            Kind::Close => closed.is_some_and(|closed| closed.same(mark)),
            Kind::Open | Kind::CloseOwn | Kind::Header | Kind::Stop => false,
        }
    }

    /// Begins an element that comes too late.
    pub(super) fn begin_late(&mut self, late: Late) {
        let further = late.is_thought() && self.had_late_thought;
        self.had_late_thought |= late.is_thought();
        self.late = Some(if further { late.further() } else { late });
        self.mode = Mode::Late;
        self.in_comment = false;
    }

    pub(super) fn late_token(&mut self, token: Token<'_>, at: Place, out: &mut dyn Output) {
        let Some(late) = &mut self.late else { return };
        match late.token(token, at, out) {
            late::Outcome::Open => {}
            late::Outcome::Over => self.end_late(at.offset + token.raw().len(), out),
            late::Outcome::LeftOpen => {
                self.end_late(at.offset, out);
                self.token(token, at, out);
            }
        }
    }

    /// Ends the late element at `end`.
    pub(super) fn end_late(&mut self, end: usize, out: &mut dyn Output) {
        let Some(late) = self.late.take() else { return };
        self.mode = if late.end(end, out) { Mode::Thinking } else { Mode::Outside };
    }

    /// Begins a summary directly in `<thinking>`, which continues after it.
    fn serp_in_thinking(&mut self, token: Token<'_>, at: Place, out: &mut dyn Output) {
        let len = token.raw().len();
        let message = "`<serp>` stands before `<thinking>`".to_owned();
        let late = Late::new(Name::Serp, rules::SERP_AFTER_THINKING, message, at, len);
        self.begin_late(late.in_thinking());
        if matches!(token, Token::Tag(tag) if tag.kind == TagKind::SelfClosing) {
            self.end_late(at.offset + len, out);
        }
    }

    /// Handles a token of a second `<thinking>`: it is text of the last phase, up to its end (T-008).
    pub(super) fn second_thinking(&mut self, token: Token<'_>, at: Place, out: &mut dyn Output) {
        if let Token::Tag(tag) = token
            && let Some((name, exact)) = structure::find(tag.name)
        {
            if name == Name::Thinking && tag.kind == TagKind::Close {
                context::check_tag(name, exact, &tag, at, out);
                self.mode = Mode::Outside;
            } else if name == Name::Final && tag.kind == TagKind::Open {
                self.mode = Mode::Outside;
                context::check_tag(name, exact, &tag, at, out);
                return self.begin(name, at, tag.raw.len(), out);
            }
        }
        out.intent(Intent::PhaseText(token.raw()));
    }

    /// Handles a token of the answer.
    #[inline]
    pub(super) fn answer_token(&mut self, token: Token<'_>, at: Place, out: &mut dyn Output) {
        match self.answer.token(token, at, &self.context, out) {
            answer::Outcome::Open => {}
            answer::Outcome::Over => self.mode = Mode::Outside,
            answer::Outcome::Closes(name) => self.thinking.closed_late(name),
            answer::Outcome::Block { opening, at, line_start } => {
                self.block = Some(Block::begin(&opening, token.raw(), at, line_start));
            }
        }
    }

    /// Handles a token of the open queries block.
    pub(super) fn block_token(&mut self, token: Token<'_>, at: Place, out: &mut dyn Output) {
        let in_answer = self.mode == Mode::Final;
        let Some(block) = &mut self.block else { return };
        match block.token(token, at, in_answer, &self.context, out) {
            block::Outcome::Open => {}
            block::Outcome::Over { end, marked, rest } => {
                self.end_block(end, marked, out);
                if let Some((token, at)) = rest {
                    self.token(token, at, out);
                }
            }
            block::Outcome::LeftOpen { end, rest: (token, at) } => {
                self.leave_block(end, out);
                self.token(token, at, out);
            }
            block::Outcome::Next { end, next } => {
                self.leave_block(end, out);
                self.block.get_or_insert(next);
            }
            block::Outcome::Text { rest: (token, at) } => {
                self.give_up_block(out);
                self.token(token, at, out);
            }
        }
    }

    /// Turns the block into text.
    fn give_up_block(&mut self, out: &mut dyn Output) {
        let Some(block) = self.block.take() else { return };
        let (text, at) = block.into_text();
        if self.mode == Mode::Final {
            self.answer.text(&text.replace('<', "&lt;"), at, out);
        } else {
            self.leave_outside(&text, at, false);
        }
    }

    /// Ends an unclosed block at `end`: the part that is not queries is text.
    pub(super) fn leave_block(&mut self, end: Place, out: &mut dyn Output) {
        let Some(block) = &mut self.block else { return };
        let Some((rest, at)) = block.take_rest(end) else { return self.end_block(end, false, out) };
        if block.is_empty() {
            self.drop_block(out);
        } else {
            self.end_block(at, false, out);
        }
        self.context.no_blocks = true;
        self.replay(&rest, at, out);
        self.context.no_blocks = false;
        self.in_comment = false;
        self.answer.leave_comment();
        self.think.leave_comment();
    }

    /// Discards a block that is only markup.
    fn drop_block(&mut self, out: &mut dyn Output) {
        let Some(block) = self.block.take() else { return };
        self.in_comment = false;
        let Some((tag, at)) = block.into_markup(out) else { return };
        if self.mode == Mode::Final {
            self.answer.unused_block(&tag, at, out);
        } else {
            self.leave_outside(&tag, at, true);
        }
    }

    /// Keeps text after the answer outside the elements, where it is left out.
    fn leave_outside(&mut self, text: &str, at: Place, whole: bool) {
        if let Some((rest, at)) = self.outside.push(text, at, whole, self.context.options.limits.hold) {
            self.outside.overflow(rest, at);
        }
    }

    /// Ends the block at `end`; `marked` tells whether by its own end marker.
    fn end_block(&mut self, end: Place, marked: bool, out: &mut dyn Output) {
        let Some(block) = self.block.take() else { return };
        self.in_comment = false;
        let ended = block.end(end, marked, out);
        self.answer.block_ended(&ended, self.mode == Mode::Final, out);
    }

    /// Reads text a second time, now that its role is known.
    pub(super) fn replay(&mut self, raw: &str, at: Place, out: &mut dyn Output) {
        let mut lexer = Markup::at(at, MARKER, self.context.options.limits.tag);
        lexer.push(raw, &mut |token, at| self.token(token, at, out));
        lexer.finish(&mut |token, at| self.token(token, at, out));
    }

    /// Starts an answer that interrupts a phase or `<thinking>`.
    pub(super) fn answer_inside(&mut self, answer: Quote, out: &mut dyn Output) {
        self.answer.interrupt();
        self.read_quote(answer, out);
    }

    /// Reads a `<final>` that was emitted as text of `place` as the answer too.
    pub(super) fn answer_too(&mut self, place: &str, quote: Quote, out: &mut dyn Output) {
        let message = format!("`<final>` begins inside {place}, and no other one comes");
        let repair = "read as the answer too";
        context::report(rules::FINAL_INSIDE_THINKING, quote.at, quote.raw.len(), message, repair, out);
        self.read_quote(quote, out);
    }

    fn read_quote(&mut self, Quote { raw, tag_len, at }: Quote, out: &mut dyn Output) {
        self.mode = Mode::Outside;
        self.begin(Name::Final, at, tag_len, out);
        self.replay(&raw[tag_len..], at.after(&raw[..tag_len]), out);
    }
}
