//! The top level: elements that begin there, come twice or too late, and phases without `<thinking>`.

use super::super::block::Block;
use super::super::context::{self, Line};
use super::super::late::{self, Late};
use super::super::rules;
use super::super::structure::{self, Name};
use super::{Frame, Mode};
use crate::dialect::{Intent, Output};
use crate::finding::Report;
use crate::lex::markup::{Markup, Tag, TagKind, Token};
use crate::lex::space::is_blank;
use crate::span::Place;
use crate::structure::Misfit;

impl Frame {
    pub(super) fn outside_token(&mut self, token: Token<'_>, at: Place, out: &mut dyn Output) {
        if self.block.is_some() {
            return self.block_token(token, at, out);
        }
        let after_final = self.seen.has(Name::Final);
        match token {
            Token::CommentOpen => self.in_comment = true,
            Token::CommentClose | Token::CommentEnd(_) => {
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

    /// Handles a tag at the top level; returns `false` if it is only text there.
    pub(super) fn outside_tag(&mut self, tag: &Tag<'_>, at: Place, out: &mut dyn Output) -> bool {
        let len = tag.raw.len();
        let Some((name, exact)) = structure::find(tag.name) else {
            if !self.seen.has(Name::Final) {
                let message = format!("`{}` is not a tag of ThinkingML", tag.name);
                context::report(rules::UNEXPECTED_TAG, at, len, message, "read as text", out);
            }
            return false;
        };
        if tag.kind == TagKind::Close
            && self.answer.interrupts()
            && matches!(name, Name::Phase | Name::Thinking)
        {
            // These tags close an element that the answer interrupted.
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
                // It closes an element that the comment hides.
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

    /// Begins a top-level element.
    pub(super) fn begin(&mut self, name: Name, at: Place, len: usize, out: &mut dyn Output) {
        self.in_comment = false;
        if name.begins_structure() {
            self.send_waiting(out);
        }
        if self.fence.is_none()
            && !self.seen.has(Name::Final)
            && let Some(fence) = self.outside.take_fence()
        {
            self.fence = Some(fence);
        }
        // A fence before a summary that may be an example may be part of the example.
        let first = self.reads_marks() && !self.seen.has(Name::Serp);
        if name != Name::Serp || self.outside.is_blank() || !first {
            self.tell_fence(out);
        }
        let again = name == Name::Final && self.seen.has(Name::Final) && self.answer.is_empty();
        if again {
            // The first one is empty.
            let message = "a second `<final>`, behind one that is empty";
            context::report(rules::FINAL_DUPLICATE, at, len, message, "read as the answer", out);
        } else if let Some(misfit) = self.seen.misfit(name) {
            self.misfit(name, misfit, at, len, out);
            return;
        }
        if name.begins_structure() {
            self.take_loose_text(out);
            self.drop_outside(name, out);
        }
        self.seen.add(name);
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

    /// Handles a top-level element that comes twice or too late.
    pub(super) fn misfit(
        &mut self,
        name: Name,
        misfit: Misfit<'_>,
        at: Place,
        len: usize,
        out: &mut dyn Output,
    ) {
        let after_final = self.seen.has(Name::Final);
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
        self.seen.add(name);
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

    /// Handles a top-level tag that belongs to phases without `<thinking>`; returns whether it is consumed.
    pub(super) fn loose_tag(
        &mut self,
        name: Name,
        exact: bool,
        tag: &Tag<'_>,
        at: Place,
        out: &mut dyn Output,
    ) -> bool {
        let close = tag.kind == TagKind::Close;
        match name {
            // A mere mention is in the middle of a line.
            Name::Phase if !close && (self.outside.is_blank() || self.context.line != Line::Text) => {
                self.loose_phase(tag, at, out);
                true
            }
            Name::Phase if close && self.thinking.close_nested() => {
                context::check_tag(name, exact, tag, at, out);
                true
            }
            Name::Thinking if self.thinking.is_loose() && !self.seen.has(Name::Final) => {
                context::check_tag(name, exact, tag, at, out);
                self.take_loose_text(out);
                self.thinking.tag_came((!close).then_some(at));
                if !close {
                    // The tag comes after its first phase.
                    self.mode = Mode::Thinking;
                }
                true
            }
            _ => false,
        }
    }

    fn loose_phase(&mut self, tag: &Tag<'_>, at: Place, out: &mut dyn Output) {
        let len = tag.raw.len();
        if self.seen.has(Name::Final) {
            late::check_attributes(Name::Phase, tag, at, out);
            let message = "a phase stands in `<thinking>`, before `<final>`".to_owned();
            self.begin_late(Late::new(Name::Phase, rules::TAG_MISPLACED, message, at, len));
            if tag.kind == TagKind::SelfClosing {
                self.end_late(at.offset + len, out);
            }
            return;
        }
        let further = self.seen.has(Name::Thinking);
        if !self.thinking.is_loose() {
            let message = "`<phase>` stands in `<thinking>`";
            let repair =
                if further { "read as a further phase" } else { "read as thinking that lacks its tag" };
            context::report(rules::TAG_MISPLACED, at, len, message, repair, out);
        }
        if further {
            self.thinking.loosen();
            self.take_loose_text(out);
        } else {
            self.begin(Name::Thinking, at, len, out);
            self.thinking.begin_tagless();
        }
        self.mode = Mode::Thinking;
        self.thinking_token(Token::Tag(*tag), at, out);
        if self.thinking.is_left() {
            self.mode = Mode::Outside;
        }
    }

    /// Moves text after a phase without `<thinking>` into that phase, because thinking continues or the
    /// answer begins.
    pub(super) fn take_loose_text(&mut self, out: &mut dyn Output) {
        if self.thinking.is_loose() && !self.seen.has(Name::Final) {
            let outside = self.outside.take();
            self.thinking.loose_text(outside.runs(), outside.is_blank(), out);
        }
    }

    /// Returns whether there is a `<thinking>` tag.
    pub(super) fn has_thinking_tag(&self) -> bool {
        self.seen.has(Name::Thinking) && !self.thinking.is_tagless()
    }

    /// Returns whether marks that are not tags count: only before the structure begins.
    pub(in super::super) fn reads_marks(&self) -> bool {
        !self.seen.structure_begun()
    }

    /// Returns whether a reasoning mark at the top level opens a draft here: in a sentence it is a mention
    ///
    pub(super) fn begins_draft(&self) -> bool {
        self.context.line != Line::Text || self.outside.is_blank()
    }
}
