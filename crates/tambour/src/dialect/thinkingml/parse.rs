//! The frame of a reply: what stands at the top level, and what ends it.

use std::sync::Arc;

use super::answer::Answer;
use super::block::Block;
use super::late::Late;
use super::leading::{Serp, Waiting};
use super::options::ThinkingMlOptions;
use super::outside::{FenceLine, Outside};
use super::rules;
use super::structure::{self, Name};
use super::think::Think;
use super::thinking::Thinking;
use crate::dialect::{Intent, Output};
use crate::finding::{Report, Rule};
use crate::lex::entity::Entities;
use crate::lex::markup::{Markup, Tag, TagKind, Token};
use crate::lex::space::is_blank;
use crate::options::Options;
use crate::span::{At, Place};
use crate::structure::Misfit;

/// Reads tokens. Each part of the reply has its own methods; `mode` says which part is under way.
pub(super) struct Reader {
    pub(super) mode: Mode,
    pub(super) options: Arc<Options>,
    pub(super) own: ThinkingMlOptions,
    /// Top-level elements that have begun, in order.
    pub(super) seen: Vec<&'static str>,
    pub(super) outside: Outside,
    /// The fence around the reply.
    pub(super) fence: Option<FenceLine>,
    pub(super) entities: Entities,
    /// Whether an HTML comment is open; its inside is text (T-027).
    pub(super) in_comment: bool,
    /// What came since the last line break.
    pub(super) line: Line,
    pub(super) think: Think,
    pub(super) serp: Serp,
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

/// What a line has held so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// White space.
    Blank,
    /// A tag of the structure, and white space.
    Tag,
    /// Text.
    Text,
}

impl Reader {
    pub(super) fn new(options: &Arc<Options>) -> Reader {
        Reader {
            mode: Mode::Outside,
            options: Arc::clone(options),
            own: options.of(),
            seen: Vec::new(),
            outside: Outside::default(),
            fence: None,
            entities: Entities::default(),
            in_comment: false,
            line: Line::Blank,
            think: Think::default(),
            serp: Serp::new(options),
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
            Token::Text(text) if self.flows(text, out) => self.text_came(text),
            _ => self.placed(token, at.into().get(), out),
        }
    }

    /// Text that goes on with the answer or with a phase, whatever its place is. Whether it does.
    #[inline]
    fn flows(&mut self, text: &str, out: &mut dyn Output) -> bool {
        match self.mode {
            Mode::Final if self.block.is_none() && self.answer.passes(text) => self.answer.flow(text, out),
            Mode::Thinking if self.thinking.flows() => {
                self.entities.push(text, &mut |text| out.intent(Intent::PhaseText(text)));
            }
            _ => return false,
        }
        true
    }

    /// Text has been read.
    #[inline]
    fn text_came(&mut self, text: &str) {
        self.line = match text.as_bytes().last() {
            // Most pieces end in a word.
            Some(b' ' | b'\n' | b'\t' | b'\r') => match crate::lex::scan::rfind(b'\n', text.as_bytes()) {
                Some(last) if is_blank(&text[last + 1..]) => Line::Blank,
                None if is_blank(text) => self.line,
                _ => Line::Text,
            },
            _ => Line::Text,
        };
    }

    fn placed(&mut self, token: Token<'_>, at: Place, out: &mut dyn Output) {
        let mut token = token;
        if !matches!(token, Token::Text(_)) {
            self.flush_entities(out);
            if let Token::Reasoning(raw, _) = token
                && !self.reads_marks()
            {
                token = Token::Text(raw);
            }
        }
        let within = self.mode;
        match within {
            Mode::Final => self.answer_token(token, at, out),
            Mode::Thinking => self.thinking_token(token, at, out),
            Mode::Outside => self.outside_token(token, at, out),
            Mode::Think => self.think_token(token, at, out),
            Mode::Serp => self.serp_token(token, at, out),
            Mode::SecondThinking => self.second_thinking(token, at, out),
            Mode::Late => self.late_token(token, at, out),
        }
        self.line = match token {
            Token::Text(text) => return self.text_came(text),
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

    /// Whether only white space came since the last line break.
    pub(super) fn line_blank(&self) -> bool {
        self.line == Line::Blank
    }

    pub(super) fn held(&self) -> usize {
        self.entities.held()
            + self.answer.held()
            + self.thinking.held()
            + self.waiting.as_ref().map_or(0, Waiting::held)
            + if self.seen.contains(&"final") { 0 } else { self.outside.len() }
    }

    /// Reports a rule over a tag or other short token.
    pub(super) fn report(
        &self,
        rule: &'static Rule,
        at: Place,
        len: usize,
        message: impl Into<String>,
        repair: &str,
        out: &mut dyn Output,
    ) {
        out.report(Report::new(rule, at, at.offset + len, message).repaired(repair));
    }

    /// Reports attributes and case of a tag that is read as a tag.
    pub(super) fn check_tag(&self, name: Name, exact: bool, tag: &Tag<'_>, at: Place, out: &mut dyn Output) {
        let len = tag.raw.len();
        if !exact {
            let message = format!("`{}` is written in lower case: `{}`", tag.name, name.text());
            self.report(rules::TAG_CASE, at, len, message, "read as the lower-case tag", out);
        }
        let bare = tag.rest().trim().is_empty();
        if !bare && (name != Name::Phase || tag.kind == TagKind::Close) {
            let message = format!("`{}` carries no attributes", name.text());
            self.report(rules::ATTR_UNEXPECTED, at, len, message, "attributes left out", out);
        }
        if tag.kind == TagKind::SelfClosing {
            let message = format!("`{}` does not close itself", name.text());
            self.report(rules::SELF_CLOSING, at, len, message, "read as an empty element", out);
        }
    }

    pub(super) fn flush_entities(&mut self, out: &mut dyn Output) {
        let mut entities = std::mem::take(&mut self.entities);
        entities.flush(&mut |text| match self.mode {
            Mode::Think => out.intent(Intent::Draft(text)),
            Mode::Thinking => self.thinking.plain(text, out),
            Mode::Late => {
                if let Some(late) = &mut self.late {
                    late.thought(text, out);
                }
            }
            _ => {}
        });
        self.entities = entities;
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
                    self.embedded_marker(at, "left out", out);
                }
            }
            Token::Tag(tag)
                if after_final
                    && tag.name == "serp_queries"
                    && tag.kind == TagKind::Open
                    && !self.answer.no_blocks =>
            {
                let (opening, at) = self.outside.take_comment(at);
                self.block = Some(Block::begin(&opening, tag.raw, at, false));
                return;
            }
            Token::Text(text) if is_blank(text) => {}
            Token::Text(_) => self.think.forget_closed(),
            Token::Tag(tag) if self.in_comment => {
                let opens = tag.kind == TagKind::Open;
                if opens && structure::find(tag.name).is_some_and(|(name, _)| name.is_top()) {
                    self.outside.hides_structure(self.line_blank());
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
                self.report(rules::UNEXPECTED_TAG, at, len, message, "read as text", out);
            }
            return false;
        };
        if tag.kind == TagKind::Close && self.answer.moved && matches!(name, Name::Phase | Name::Thinking) {
            // These close what the answer interrupted.
            self.check_tag(name, exact, tag, at, out);
            self.thinking.closed_late(name);
            return true;
        }
        if tag.kind == TagKind::Close && name == Name::Thinking && self.thinking.forgotten {
            self.check_tag(name, exact, tag, at, out);
            self.thinking.forgotten = false;
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
            self.report(rules::TAG_MISPLACED, at, len, message, "left out", out);
            return true;
        }
        let mentioned = name == Name::Think && !self.begins_draft();
        if tag.kind == TagKind::Close || !name.is_top() || mentioned {
            let message = format!("`{}` does not stand at the top level here", tag.raw);
            self.report(rules::TAG_MISPLACED, at, len, message, "read as text", out);
            return false;
        }
        if name == Name::Serp && self.waiting.is_some() {
            self.report(rules::SERP_DUPLICATE, at, len, "a second `<serp>`", "read as text", out);
            return false;
        }
        if name == Name::Serp && tag.kind == TagKind::Open {
            self.begin_serp_tag(exact, tag, at, out);
            return true;
        }
        self.check_tag(name, exact, tag, at, out);
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
                self.serp.at = at;
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
                self.report(rule, at, len, message, "read as text of the last phase", out);
                self.mode = Mode::SecondThinking;
                out.intent(Intent::PhaseText("<thinking>"));
            }
            _ => self.begin_late(Late::new(name, rule, message, at, len)),
        }
    }
}
