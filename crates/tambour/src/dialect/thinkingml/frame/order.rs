//! The top level: elements that begin there, come twice or too late, and phases without `<thinking>`.

use super::super::block::QueriesBlock;
use super::super::context::{self, LineContent};
use super::super::late_element::{self, LateElement};
use super::super::rules;
use super::super::structure::{self, ThinkingMlElement};
use super::{FramePart, ReplyFrame};
use crate::dialect::{Intent, IntentSink};
use crate::finding::FindingReport;
use crate::lex::markup::{MarkupLexer, MarkupTag, MarkupToken, TagKind};
use crate::lex::space::is_blank;
use crate::span::Place;
use crate::structure::ElementMisfit;

impl ReplyFrame {
    /// Handles a token outside the elements.
    pub(super) fn push_surrounding_token(
        &mut self,
        token: MarkupToken<'_>,
        at: Place,
        out: &mut dyn IntentSink,
    ) {
        if self.block.is_some() {
            return self.push_block_token(token, at, out);
        }
        let is_after_final = self.seen_elements.has(ThinkingMlElement::Final);
        match token {
            MarkupToken::CommentOpen => self.is_in_comment = true,
            MarkupToken::CommentClose | MarkupToken::HtmlCommentClose(_) => {
                self.is_in_comment = false;
                self.surrounding.end_comment();
            }
            MarkupToken::Mark(_) => {
                self.marker_place.get_or_insert(at);
                if is_after_final {
                    context::report_embedded_marker(at, "left out", out);
                }
            }
            MarkupToken::Tag(tag)
                if is_after_final
                    && tag.name == "serp_queries"
                    && tag.kind == TagKind::Open
                    && !self.context.forbids_blocks =>
            {
                let (opening, at) = self.surrounding.take_comment(at);
                // A block after the answer never counts as exact, wherever on its line it begins.
                let is_line_start = false;
                self.block = Some(QueriesBlock::begin(&opening, tag.raw, at, is_line_start));
                return;
            }
            MarkupToken::Text(text) if is_blank(text) => {}
            // A second closing mark of the draft counts only directly after the first.
            MarkupToken::Text(_) => {
                self.draft.take_last_close();
            }
            MarkupToken::Tag(tag) if self.is_in_comment => {
                let is_opening = tag.kind == TagKind::Open;
                if is_opening && structure::find_element(tag.name).is_some_and(|(name, _)| name.is_top()) {
                    self.surrounding.record_hidden(self.context.is_line_blank());
                }
            }
            MarkupToken::Tag(_) | MarkupToken::Reasoning(..)
                if !self.is_in_comment && self.handle_foreign_mark(&token, at, out) =>
            {
                return;
            }
            MarkupToken::Tag(tag) if self.handle_top_tag(&tag, at, out) => return,
            MarkupToken::Tag(_) | MarkupToken::Reasoning(..) => {}
        }
        self.keep_surrounding(&token, at, out);
    }

    /// Handles a tag at the top level; returns `false` if it is only text there.
    pub(super) fn handle_top_tag(
        &mut self,
        tag: &MarkupTag<'_>,
        at: Place,
        out: &mut dyn IntentSink,
    ) -> bool {
        let len = tag.raw.len();
        let Some((name, is_exact)) = structure::find_element(tag.name) else {
            if !self.seen_elements.has(ThinkingMlElement::Final) {
                let message = format!("`{}` is not a tag of ThinkingML", tag.name);
                context::report_at(rules::UNEXPECTED_TAG, at, len, message, "read as text", out);
            }
            return false;
        };
        if tag.kind == TagKind::Close
            && self.answer.is_interrupting()
            && matches!(name, ThinkingMlElement::Phase | ThinkingMlElement::Thinking)
        {
            // The tag closes an element that the answer interrupted.
            context::check_tag(name, is_exact, tag, at, out);
            self.thinking.handle_late_close(name);
            return true;
        }
        if tag.kind == TagKind::Close
            && name == ThinkingMlElement::Thinking
            && self.thinking.take_missing_close()
        {
            context::check_tag(name, is_exact, tag, at, out);
            return true;
        }
        if self.handle_loose_tag(name, is_exact, tag, at, out) {
            return true;
        }
        if tag.kind == TagKind::Close && name == ThinkingMlElement::Final {
            if self.surrounding.has_hidden_element() {
                // The tag closes an element that the comment hides.
                return false;
            }
            let message = "`</final>` closes nothing here";
            context::report_at(rules::TAG_MISPLACED, at, len, message, "left out", out);
            return true;
        }
        let is_mention = name == ThinkingMlElement::Think && !self.can_begin_draft();
        if tag.kind == TagKind::Close || !name.is_top() || is_mention {
            let message = format!("`{}` is not allowed at the top level here", tag.raw);
            context::report_at(rules::TAG_MISPLACED, at, len, message, "read as text", out);
            return false;
        }
        if name == ThinkingMlElement::Serp && self.held_summary.is_some() {
            context::report_at(rules::SERP_DUPLICATE, at, len, "a second `<serp>`", "read as text", out);
            return false;
        }
        if name == ThinkingMlElement::Serp && tag.kind == TagKind::Open {
            self.begin_summary_tag(is_exact, tag, at, out);
            return true;
        }
        context::check_tag(name, is_exact, tag, at, out);
        self.begin_element(name, at, len, out);
        if tag.kind == TagKind::SelfClosing {
            // The element ends at once: a closing tag, which the reply does not have, is supplied.
            let closing_tag = format!("</{}>", name.as_str());
            let mut lexer = MarkupLexer::from_place(at, "", closing_tag.len() + 1);
            lexer.push(&closing_tag, &mut |token, _| self.push_token(token, at, out));
        }
        true
    }

    /// Begins a top-level element, whose tag starts at `at` and has `len` bytes.
    pub(super) fn begin_element(
        &mut self,
        name: ThinkingMlElement,
        at: Place,
        len: usize,
        out: &mut dyn IntentSink,
    ) {
        self.is_in_comment = false;
        if name.begins_structure() {
            self.emit_held_summary(out);
        }
        if self.fence.is_none()
            && !self.seen_elements.has(ThinkingMlElement::Final)
            && let Some(fence) = self.surrounding.take_fence()
        {
            self.fence = Some(fence);
        }
        // A summary after text may be an example in that text. A fence before it is then part of the example.
        let may_be_example = name == ThinkingMlElement::Serp
            && !self.surrounding.is_blank()
            && self.accepts_marks()
            && !self.seen_elements.has(ThinkingMlElement::Serp);
        if !may_be_example {
            self.report_fence(out);
        }
        let is_second_final = name == ThinkingMlElement::Final
            && self.seen_elements.has(ThinkingMlElement::Final)
            && self.answer.is_empty();
        if is_second_final {
            // The first `<final>` is empty, so the second is the answer.
            let message = "a second `<final>`, after an empty one";
            context::report_at(rules::FINAL_DUPLICATE, at, len, message, "read as the answer", out);
        } else if let Some(misfit) = self.seen_elements.misfit(name) {
            self.handle_misfit(name, misfit, at, len, out);
            return;
        }
        if name.begins_structure() {
            self.take_loose_text(out);
            self.drop_surrounding(name, out);
        }
        self.seen_elements.add(name);
        match name {
            ThinkingMlElement::Think => self.begin_draft(at),
            ThinkingMlElement::Serp => {
                self.summary.begin(at);
                self.part = FramePart::Summary;
            }
            ThinkingMlElement::Thinking => {
                self.thinking.begin(at);
                out.emit_intent(Intent::ThinkingStart);
                self.part = FramePart::Thinking;
            }
            ThinkingMlElement::Final => {
                out.emit_intent(Intent::ThinkingEnd);
                self.answer.begin(at);
                self.part = FramePart::Final;
            }
            ThinkingMlElement::Phase | ThinkingMlElement::Title => {}
        }
    }

    /// Handles a top-level element that comes twice or too late.
    pub(super) fn handle_misfit(
        &mut self,
        name: ThinkingMlElement,
        misfit: ElementMisfit<'_>,
        at: Place,
        len: usize,
        out: &mut dyn IntentSink,
    ) {
        let is_after_final = self.seen_elements.has(ThinkingMlElement::Final);
        let tag_name = name.as_str();
        let (rule, message) = match (name, misfit) {
            (ThinkingMlElement::Serp, ElementMisfit::Late(_)) => {
                (rules::SERP_AFTER_THINKING, "`<serp>` must come before `<thinking>`".to_owned())
            }
            (_, ElementMisfit::Late(other)) => {
                (rules::ORDER_INVALID, format!("`<{tag_name}>` must come before `<{other}>`"))
            }
            (ThinkingMlElement::Think, _) => (rules::THINK_DUPLICATE, "a second `<think>`".to_owned()),
            (ThinkingMlElement::Serp, _) => (rules::SERP_DUPLICATE, "a second `<serp>`".to_owned()),
            (ThinkingMlElement::Thinking, _) => {
                (rules::THINKING_DUPLICATE, "a second `<thinking>`".to_owned())
            }
            _ => (rules::FINAL_DUPLICATE, "a second `<final>`".to_owned()),
        };
        self.seen_elements.add(name);
        match name {
            ThinkingMlElement::Think => {
                let report =
                    FindingReport::new(rule, at, at.offset + len, message).with_repair("read as a draft");
                // T-007: a summary before the draft.
                let is_swapped = matches!(misfit, ElementMisfit::Late("serp"));
                out.report(if is_swapped { report.with_row("T-007") } else { report });
                self.begin_draft(at);
            }
            ThinkingMlElement::Thinking if !is_after_final => {
                context::report_at(rule, at, len, message, "read as text of the last phase", out);
                self.part = FramePart::SecondThinking;
                out.emit_intent(Intent::PhaseText("<thinking>"));
            }
            _ => self.begin_late(LateElement::new(name, rule, message, at, len)),
        }
    }

    /// Handles a tag at the top level that belongs to loose phases, which are phases outside of `<thinking>`.
    /// Returns whether the tag is consumed.
    pub(super) fn handle_loose_tag(
        &mut self,
        name: ThinkingMlElement,
        is_exact: bool,
        tag: &MarkupTag<'_>,
        at: Place,
        out: &mut dyn IntentSink,
    ) -> bool {
        let is_closing = tag.kind == TagKind::Close;
        match name {
            // A `<phase>` in the middle of a line of text is a mere mention, which no arm consumes.
            ThinkingMlElement::Phase
                if !is_closing && (self.surrounding.is_blank() || self.context.line != LineContent::Text) =>
            {
                self.begin_loose_phase(tag, at, out);
                true
            }
            ThinkingMlElement::Phase if is_closing && self.thinking.take_nested_close() => {
                context::check_tag(name, is_exact, tag, at, out);
                true
            }
            ThinkingMlElement::Thinking
                if self.thinking.is_loose() && !self.seen_elements.has(ThinkingMlElement::Final) =>
            {
                context::check_tag(name, is_exact, tag, at, out);
                self.take_loose_text(out);
                self.thinking.handle_late_tag((!is_closing).then_some(at));
                if !is_closing {
                    // The opening tag comes after the first phase; thinking continues in it.
                    self.part = FramePart::Thinking;
                }
                true
            }
            _ => false,
        }
    }

    /// Begins a phase outside of `<thinking>`, or a late phase after the answer.
    fn begin_loose_phase(&mut self, tag: &MarkupTag<'_>, at: Place, out: &mut dyn IntentSink) {
        let len = tag.raw.len();
        if self.seen_elements.has(ThinkingMlElement::Final) {
            late_element::report_lost_attributes(ThinkingMlElement::Phase, tag, at, out);
            let message = "a phase must be in `<thinking>`, before `<final>`".to_owned();
            self.begin_late(LateElement::new(
                ThinkingMlElement::Phase,
                rules::TAG_MISPLACED,
                message,
                at,
                len,
            ));
            if tag.kind == TagKind::SelfClosing {
                self.end_late(at.offset + len, out);
            }
            return;
        }
        let is_further = self.seen_elements.has(ThinkingMlElement::Thinking);
        if !self.thinking.is_loose() {
            let message = "`<phase>` must be in `<thinking>`";
            let repair =
                if is_further { "read as a further phase" } else { "read as thinking that lacks its tag" };
            context::report_at(rules::TAG_MISPLACED, at, len, message, repair, out);
        }
        if is_further {
            self.thinking.set_loose();
            self.take_loose_text(out);
        } else {
            self.begin_element(ThinkingMlElement::Thinking, at, len, out);
            self.thinking.begin_tagless();
        }
        self.part = FramePart::Thinking;
        self.push_thinking_token(MarkupToken::Tag(*tag), at, out);
        if self.thinking.is_at_top_level() {
            self.part = FramePart::Surrounding;
        }
    }

    /// Moves text after a phase outside of `<thinking>` into that phase, because thinking continues or the
    /// answer begins.
    pub(super) fn take_loose_text(&mut self, out: &mut dyn IntentSink) {
        if self.thinking.is_loose() && !self.seen_elements.has(ThinkingMlElement::Final) {
            let loose_text = self.surrounding.take();
            self.thinking.emit_loose_text(loose_text.runs(), loose_text.is_blank(), out);
        }
    }

    /// Returns whether there is a `<thinking>` tag.
    pub(super) fn has_thinking_tag(&self) -> bool {
        self.seen_elements.has(ThinkingMlElement::Thinking) && !self.thinking.is_tagless()
    }

    /// Returns whether the structure has not begun: only until then, reasoning marks that are not tags count,
    /// and a summary may be an example.
    pub(in super::super) fn accepts_marks(&self) -> bool {
        !self.seen_elements.has_structure()
    }

    /// Returns whether a reasoning mark at the top level opens a draft here: in a sentence it is a mention
    ///
    pub(super) fn can_begin_draft(&self) -> bool {
        self.context.line != LineContent::Text || self.surrounding.is_blank()
    }
}
