//! The frame of a reply: what stands at the top level, and what ends it.

use std::sync::Arc;

use super::answer::Answer;
use super::block::Block;
use super::context::{self, Context, Line};
use super::late::Late;
use super::outside::{Fence, Outside};
use super::rules;
use super::serp::Serp;
use super::structure::{self, Name};
use super::think::{self, Think};
use super::thinking::Thinking;
use super::waiting::{Prose, Waiting};
use crate::dialect::{Intent, Output};
use crate::finding::Report;
use crate::lex::marks::Kind;
use crate::lex::markup::{Markup, Tag, TagKind, Token};
use crate::lex::space::is_blank;
use crate::options::Options;
use crate::span::{At, Place};
use crate::structure::Misfit;

/// Reads tokens. Each part of the reply has its own methods; `mode` says which part is under way.
pub(super) struct Reader {
    pub(super) mode: Mode,
    pub(super) context: Context,
    /// Top-level elements that have begun, in order.
    pub(super) seen: Vec<&'static str>,
    pub(super) outside: Outside,
    /// The fence around the reply.
    pub(super) fence: Option<Fence>,
    /// Whether an HTML comment is open; its inside is text (T-027).
    pub(super) in_comment: bool,
    pub(super) think: Think,
    pub(super) serp: Serp,
    /// What stands before the summary under way, and findings on it that are untrue if it is an example.
    pub(super) prose: Option<Prose>,
    pub(super) kept_back: Vec<Report>,
    /// The summary that waits for a structure.
    pub(super) waiting: Option<Waiting>,
    pub(super) thinking: Thinking,
    /// The element under way that came too late.
    pub(super) late: Option<Late>,
    pub(super) had_late_thought: bool,
    pub(super) answer: Answer,
    /// The queries block under way, in or after the answer.
    pub(super) block: Option<Block>,
    /// Where the failure marker stands outside the elements.
    pub(super) marker: Option<Place>,
}

/// Where the reader is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Before, between or after the elements.
    Outside,
    Think,
    Serp,
    /// Directly in `<thinking>`, or in one of its phases.
    Thinking,
    /// A second `<thinking>`: text of the last phase, up to its end (T-008).
    SecondThinking,
    Final,
    /// In an element that came too late, up to its end.
    Late,
}

impl Reader {
    pub(super) fn new(options: &Arc<Options>) -> Reader {
        Reader {
            mode: Mode::Outside,
            context: Context::new(options),
            seen: Vec::new(),
            outside: Outside::default(),
            fence: None,
            in_comment: false,
            think: Think::default(),
            serp: Serp::new(options),
            prose: None,
            kept_back: Vec::new(),
            waiting: None,
            thinking: Thinking::default(),
            late: None,
            had_late_thought: false,
            answer: Answer::new(options),
            block: None,
            marker: None,
        }
    }

    /// The next token.
    #[inline]
    pub(super) fn token<'a>(&mut self, token: Token<'_>, at: impl Into<At<'a>>, out: &mut dyn Output) {
        match token {
            Token::Text(text) if self.flows(text, out) => self.context.text_came(text),
            _ => self.placed(token, at.into().get(), out),
        }
    }

    /// Text that goes on with the answer or with a phase, whatever its place is. Whether it does.
    #[inline]
    fn flows(&mut self, text: &str, out: &mut dyn Output) -> bool {
        match self.mode {
            Mode::Final if self.block.is_none() && self.answer.passes(text) => self.answer.flow(text, out),
            Mode::Thinking if self.thinking.flows() => {
                self.thinking.flow(text, out);
            }
            _ => return false,
        }
        true
    }

    fn placed(&mut self, token: Token<'_>, at: Place, out: &mut dyn Output) {
        let mut token = token;
        if !matches!(token, Token::Text(_)) {
            if let Token::Reasoning(raw, _) = token
                && !self.reads_marks()
            {
                token = Token::Text(raw);
            }
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
            // The end of an element, such as of a draft.
            Token::Tag(_) if within != self.mode && self.mode == Mode::Outside => Line::Tag,
            _ => Line::Text,
        };
    }

    pub(super) fn held(&self) -> usize {
        self.think.held()
            + self.answer.held()
            + self.thinking.held()
            + self.late.as_ref().map_or(0, Late::held)
            + self.waiting.as_ref().map_or(0, Waiting::held)
            + if self.seen.contains(&"final") { 0 } else { self.outside.len() }
    }

    /// The run of text under way ends.
    pub(super) fn flush(&mut self, out: &mut dyn Output) {
        match (self.mode, &mut self.late) {
            (Mode::Thinking, _) => self.thinking.flush(out),
            (Mode::Think, _) => self.think.flush(out),
            (Mode::Late, Some(late)) => late.flush(out),
            _ => {}
        }
    }

    // ---- outside the elements ------------------------------------------------------------------------------

    pub(super) fn outside_token(&mut self, token: Token<'_>, at: Place, out: &mut dyn Output) {
        if self.block.is_some() {
            return self.block_token(token, at, out);
        }
        let after_final = self.seen.contains(&"final");
        match token {
            Token::CommentOpen => self.in_comment = true,
            Token::CommentClose => {
                self.in_comment = false;
                self.outside.comment_closes();
            }
            Token::Mark(_) => {
                self.marker.get_or_insert(at);
                if after_final {
                    context::embedded_marker(at, "left out", out);
                }
            }
            Token::Tag(tag)
                if after_final
                    && tag.name == "serp_queries"
                    && tag.kind == TagKind::Open
                    && !self.context.no_blocks =>
            {
                let (opening, at) = self.outside.take_comment(at);
                self.block = Some(Block::begin(&opening, tag.raw, at, false));
                return;
            }
            Token::Text(text) if is_blank(text) => {}
            Token::Text(_) => {
                self.think.take_closed();
            }
            Token::Tag(tag) if self.in_comment => {
                let opens = tag.kind == TagKind::Open;
                if opens && structure::find(tag.name).is_some_and(|(name, _)| name.is_top()) {
                    self.outside.hides_structure(self.context.line_blank());
                }
            }
            Token::Tag(_) | Token::Reasoning(..) if !self.in_comment && self.other_think(&token, at, out) => {
                return;
            }
            Token::Tag(tag) if self.outside_tag(&tag, at, out) => return,
            Token::Tag(_) | Token::Reasoning(..) => {}
        }
        self.keep_outside(&token, at, out);
    }

    /// A tag at the top level; `false` when it is only text there.
    pub(super) fn outside_tag(&mut self, tag: &Tag<'_>, at: Place, out: &mut dyn Output) -> bool {
        let len = tag.raw.len();
        let Some((name, exact)) = structure::find(tag.name) else {
            if !self.seen.contains(&"final") {
                let message = format!("`{}` is not a tag of ThinkingML", tag.name);
                context::report(rules::UNEXPECTED_TAG, at, len, message, "read as text", out);
            }
            return false;
        };
        if tag.kind == TagKind::Close
            && self.answer.interrupts()
            && matches!(name, Name::Phase | Name::Thinking)
        {
            // These close what the answer interrupted.
            context::check_tag(name, exact, tag, at, out);
            self.thinking.closed_late(name);
            return true;
        }
        if tag.kind == TagKind::Close && name == Name::Thinking && self.thinking.close_forgotten() {
            context::check_tag(name, exact, tag, at, out);
            return true;
        }
        if self.loose_tag(name, exact, tag, at, out) {
            return true;
        }
        if tag.kind == TagKind::Close && name == Name::Final {
            if self.outside.is_hiding() {
                // It closes what the comment hides.
                return false;
            }
            let message = "`</final>` closes nothing here";
            context::report(rules::TAG_MISPLACED, at, len, message, "left out", out);
            return true;
        }
        let mentioned = name == Name::Think && !self.begins_draft();
        if tag.kind == TagKind::Close || !name.is_top() || mentioned {
            let message = format!("`{}` does not stand at the top level here", tag.raw);
            context::report(rules::TAG_MISPLACED, at, len, message, "read as text", out);
            return false;
        }
        if name == Name::Serp && self.waiting.is_some() {
            context::report(rules::SERP_DUPLICATE, at, len, "a second `<serp>`", "read as text", out);
            return false;
        }
        if name == Name::Serp && tag.kind == TagKind::Open {
            self.begin_serp_tag(exact, tag, at, out);
            return true;
        }
        context::check_tag(name, exact, tag, at, out);
        self.begin(name, at, len, out);
        if tag.kind == TagKind::SelfClosing {
            let close = format!("</{}>", name.text());
            let mut lexer = Markup::at(at, "", close.len() + 1);
            lexer.push(&close, &mut |token, _| self.token(token, at, out));
        }
        true
    }

    /// A top-level element begins.
    pub(super) fn begin(&mut self, name: Name, at: Place, len: usize, out: &mut dyn Output) {
        self.in_comment = false;
        if matches!(name, Name::Thinking | Name::Final) {
            self.send_waiting(out);
        }
        if self.fence.is_none()
            && !self.seen.contains(&"final")
            && let Some(fence) = self.outside.take_fence()
        {
            self.fence = Some(fence);
        }
        // In front of a summary that may be an example it may be part of it.
        let first = self.reads_marks() && !self.seen.contains(&"serp");
        if name != Name::Serp || self.outside.is_blank() || !first {
            self.tell_fence(out);
        }
        let misfit = structure::expected().misfit(name.text(), &self.seen);
        if let Some(misfit) = misfit {
            self.misfit(name, misfit, at, len, out);
            return;
        }
        if matches!(name, Name::Thinking | Name::Final) {
            self.take_loose_text(out);
            self.drop_outside(name, out);
        }
        self.seen.push(name.text());
        match name {
            Name::Think => self.begin_think(at),
            Name::Serp => {
                self.serp.begin(at);
                self.mode = Mode::Serp;
            }
            Name::Thinking => {
                self.thinking.begin(at);
                out.intent(Intent::ThinkingStart);
                self.mode = Mode::Thinking;
            }
            Name::Final => {
                out.intent(Intent::ThinkingEnd);
                self.answer.begin(at);
                self.mode = Mode::Final;
            }
            Name::Phase | Name::Title => {}
        }
    }

    /// A top-level element that comes twice or too late.
    pub(super) fn misfit(
        &mut self,
        name: Name,
        misfit: Misfit<'_>,
        at: Place,
        len: usize,
        out: &mut dyn Output,
    ) {
        let after_final = self.seen.contains(&"final");
        let text = name.text();
        let (rule, message) = match (name, misfit) {
            (Name::Serp, Misfit::Late(_)) => {
                (rules::SERP_AFTER_THINKING, "`<serp>` stands before `<thinking>`".to_owned())
            }
            (_, Misfit::Late(other)) => {
                (rules::ORDER_INVALID, format!("`<{text}>` stands before `<{other}>`"))
            }
            (Name::Think, _) => (rules::THINK_DUPLICATE, "a second `<think>`".to_owned()),
            (Name::Serp, _) => (rules::SERP_DUPLICATE, "a second `<serp>`".to_owned()),
            (Name::Thinking, _) => (rules::THINKING_DUPLICATE, "a second `<thinking>`".to_owned()),
            _ => (rules::FINAL_DUPLICATE, "a second `<final>`".to_owned()),
        };
        if !self.seen.contains(&text) {
            self.seen.push(text);
        }
        match name {
            Name::Think => {
                let report = Report::new(rule, at, at.offset + len, message).repaired("read as a draft");
                // T-007: a summary before the draft.
                let swapped = matches!(misfit, Misfit::Late("serp"));
                out.report(if swapped { report.row("T-007") } else { report });
                self.begin_think(at);
            }
            Name::Thinking if !after_final => {
                context::report(rule, at, len, message, "read as text of the last phase", out);
                self.mode = Mode::SecondThinking;
                out.intent(Intent::PhaseText("<thinking>"));
            }
            _ => self.begin_late(Late::new(name, rule, message, at, len)),
        }
    }

    /// `<think>` begins.
    fn begin_think(&mut self, at: Place) {
        self.think.begin(at);
        self.mode = Mode::Think;
    }

    fn think_token(&mut self, token: Token<'_>, at: Place, out: &mut dyn Output) {
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

    /// A mark of reasoning at the top level that is not ThinkingML's; `false` where it is only text.
    fn other_think(&mut self, token: &Token<'_>, at: Place, out: &mut dyn Output) -> bool {
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
            // Some reasoning ends in two marks.
            Kind::Close => closed.is_some_and(|closed| closed.same(mark)),
            Kind::Open | Kind::CloseOwn => false,
        }
    }

    /// Whether marks count that are no tags: before the structure begins.
    pub(super) fn reads_marks(&self) -> bool {
        // The last one is most often one of them.
        !self.seen.iter().rev().any(|name| matches!(*name, "thinking" | "final"))
    }

    /// Whether a mark of reasoning at this place of the top level opens a draft: in a sentence it is a mention.
    fn begins_draft(&self) -> bool {
        self.context.line != Line::Text || self.outside.is_blank()
    }
}
