//! The frame of a reply: passes each token to the current part, and continues as the part's outcome says.

mod end;
mod follow;
mod kept;
mod mention;
mod order;

use std::sync::Arc;

use super::answer::Answer;
use super::block::Block;
use super::context::{Context, Line};
use super::late::Late;
use super::outside::{FenceLine, Outside};
use super::serp::Serp;
use super::structure::{self, Name, Seen};
use super::think::Think;
use super::thinking::Thinking;
use crate::dialect::Output;
use crate::finding::Report;
use crate::lex::markup::Token;
use crate::options::Options;
use crate::span::{At, Place};
use kept::{Prose, Waiting};
use mention::Mention;

/// Reads tokens. Each part of the reply has its own methods; `mode` is the current part.
pub(super) struct Frame {
    mode: Mode,
    context: Context,
    /// Top-level elements that have begun.
    seen: Seen,
    outside: Outside,
    /// The fence around the reply.
    fence: Option<FenceLine>,
    /// Set while an HTML comment is open; its content is text (T-027).
    in_comment: bool,
    think: Think,
    serp: Serp,
    /// Text before the current summary, and findings about it that are wrong if it is an example.
    prose: Option<Prose>,
    kept_back: Vec<Report>,
    /// The summary held until a structure begins.
    waiting: Option<Waiting>,
    thinking: Thinking,
    /// `</thinking>` that may be only text.
    mention: Option<Mention>,
    /// The current late element.
    late: Option<Late>,
    had_late_thought: bool,
    answer: Answer,
    /// The open queries block, in or after the answer.
    block: Option<Block>,
    /// Place of a failure marker outside the elements.
    marker: Option<Place>,
    /// Text before `<final>`, which is the answer if that is empty.
    dropped: Outside,
}

/// Current part of the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Before, between or after the elements.
    Outside,
    Think,
    Serp,
    /// Directly in `<thinking>`, or in one of its phases.
    Thinking,
    /// In a second `<thinking>`: text of the last phase, up to its end (T-008).
    SecondThinking,
    Final,
    /// In a late element, up to its end.
    Late,
}

impl Frame {
    pub(super) fn new(options: &Arc<Options>) -> Frame {
        Frame {
            mode: Mode::Outside,
            context: Context::new(options),
            seen: Seen::default(),
            outside: Outside::default(),
            fence: None,
            in_comment: false,
            think: Think::default(),
            serp: Serp::new(options),
            prose: None,
            kept_back: Vec::new(),
            waiting: None,
            thinking: Thinking::default(),
            mention: None,
            late: None,
            had_late_thought: false,
            answer: Answer::new(options),
            block: None,
            marker: None,
            dropped: Outside::default(),
        }
    }

    pub(super) fn context(&self) -> &Context {
        &self.context
    }

    /// Handles the next token.
    #[inline]
    pub(super) fn token<'a>(&mut self, token: Token<'_>, at: impl Into<At<'a>>, out: &mut dyn Output) {
        match token {
            Token::Text(text) if self.flows(text, out) => self.context.text_came(text),
            _ => self.placed(token, at.into().get(), out),
        }
    }

    /// Emits text that continues the answer or a phase, whatever its place is; returns whether it did.
    #[inline]
    fn flows(&mut self, text: &str, out: &mut dyn Output) -> bool {
        match self.mode {
            Mode::Final if self.block.is_none() && self.answer.passes(text) => self.answer.flow(text, out),
            Mode::Thinking if self.mention.is_none() && self.thinking.flows() => {
                self.thinking.flow(text, out);
            }
            _ => return false,
        }
        true
    }

    fn placed(&mut self, token: Token<'_>, at: Place, out: &mut dyn Output) {
        let mut token = token;
        if let Token::Reasoning(raw, _) = token
            && !self.reads_marks()
        {
            token = Token::Text(raw);
        }
        if self.mention.is_some() && self.behind_mention(&token, out) || self.may_mention(&token, at) {
            return;
        }
        let within = self.mode;
        match within {
            Mode::Final if self.block.is_some() => self.block_token(token, at, out),
            Mode::Final => self.answer_token(token, at, out),
            Mode::Thinking => self.thinking_token(token, at, out),
            Mode::Outside => self.outside_token(token, at, out),
            Mode::Think => self.think_token(token, at, out),
            Mode::Serp => self.serp_token(token, at, out),
            Mode::SecondThinking => self.second_thinking(token, at, out),
            Mode::Late => self.late_token(token, at, out),
        }
        self.context.line = match token {
            Token::Text(text) => return self.context.text_came(text),
            Token::Tag(tag)
                if matches!(
                    structure::find(tag.name),
                    Some((Name::Thinking | Name::Phase | Name::Title, _))
                ) =>
            {
                Line::Tag
            }
            // The end of an element, such as a draft.
            Token::Tag(_) if within != self.mode && self.mode == Mode::Outside => Line::Tag,
            _ => Line::Text,
        };
    }

    pub(super) fn held(&self) -> usize {
        self.think.held()
            + self.answer.held()
            + self.thinking.held()
            + self.mention.as_ref().map_or(0, Mention::len)
            + self.late.as_ref().map_or(0, Late::held)
            + self.waiting.as_ref().map_or(0, Waiting::held)
            + match self.seen.has(Name::Final) {
                true if self.answer.is_empty() => self.outside.len() + self.dropped.len(),
                true => 0,
                false => self.outside.len(),
            }
    }

    /// Ends the current run of text.
    pub(super) fn flush(&mut self, out: &mut dyn Output) {
        match (self.mode, &mut self.late) {
            (Mode::Thinking, _) => self.thinking.flush(out),
            (Mode::Think, _) => self.think.flush(out),
            (Mode::Late, Some(late)) => late.flush(out),
            _ => {}
        }
    }
}
