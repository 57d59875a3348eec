//! Queries blocks in the answer and after it: where one begins and what becomes of it.

use super::answer;
use super::block::{Block, Ended, Outcome};
use super::parse::{Mode, Reader};
use crate::dialect::Output;
use crate::lex::markup::Token;
use crate::span::Place;

impl Reader {
    /// A token of the answer.
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

    /// A token inside the block that is under way.
    pub(super) fn block_token(&mut self, token: Token<'_>, at: Place, out: &mut dyn Output) {
        let in_answer = self.mode == Mode::Final;
        let Some(block) = &mut self.block else { return };
        match block.token(token, at, in_answer, &self.context, out) {
            Outcome::Open => {}
            Outcome::Over { end, marked, rest } => {
                self.end_block(end, marked, out);
                if let Some((token, at)) = rest {
                    self.token(token, at, out);
                }
            }
            Outcome::LeftOpen { end, rest: (token, at) } => {
                self.leave_block(end, out);
                self.token(token, at, out);
            }
            Outcome::Next { end, next } => {
                self.leave_block(end, out);
                self.block.get_or_insert(next);
            }
            Outcome::Text { rest: (token, at) } => {
                self.give_up_block(out);
                self.token(token, at, out);
            }
        }
    }

    /// The block is text.
    fn give_up_block(&mut self, out: &mut dyn Output) {
        let Some(block) = self.block.take() else { return };
        let (text, at) = block.into_text();
        if self.mode == Mode::Final {
            self.answer.text(&text.replace('<', "&lt;"), at, out);
        } else {
            self.leave_outside(&text, at, false);
        }
    }

    /// The block is over at `end` without its closing tag: what of it is no queries is text.
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

    /// What began like a block is only markup.
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

    /// Text after the answer, which is left out.
    fn leave_outside(&mut self, text: &str, at: Place, whole: bool) {
        if let Some((rest, at)) = self.outside.push(text, at, whole, self.context.options.limits.hold) {
            self.outside.overflow(rest, at);
        }
    }

    /// The block ends at `end`; `marked` says whether by its own end marker.
    fn end_block(&mut self, end: Place, marked: bool, out: &mut dyn Output) {
        let Some(block) = self.block.take() else { return };
        self.in_comment = false;
        let ended: Ended = block.end(end, marked, out);
        self.answer.block_ended(&ended, self.mode == Mode::Final, out);
    }
}
