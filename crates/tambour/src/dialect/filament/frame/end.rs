//! End of the reply: open elements are closed, and missing elements are reported.

use super::super::block::{BlockOutcome, emit_notice};
use super::super::rules;
use super::super::tags::ElementKind;
use super::super::tool_call::HeldToolCall;
use super::super::{choice, elements, update};
use super::draft::DraftEnd;
use super::{FilamentFrame, OpenElementState};
use crate::dialect::{Intent, IntentSink, ReplyAction};
use crate::finding::FindingReport;
use crate::span::{LazyPlace, Place};

impl FilamentFrame {
    /// Reports an incomplete tag at the end of the reply, which is left out (F-204).
    pub(in super::super) fn report_partial_tag(
        &mut self,
        partial_tag: &str,
        at: Place,
        out: &mut dyn IntentSink,
    ) {
        let message = format!("the reply ends within a tag: `{partial_tag}`");
        let report = FindingReport::new(rules::TAG_CUT, at, at.offset + partial_tag.len(), message);
        out.report(report.with_repair("left out"));
    }

    /// Ends the reply at `end`; `is_truncated` is set if it was truncated.
    pub(in super::super) fn finish(&mut self, end: Place, is_truncated: bool, out: &mut dyn IntentSink) {
        self.flush_mark_carry(out);
        // Held text that is read again may be held once more, so this repeats until nothing is held.
        loop {
            while let Some((is_counted, tokens)) = self.markdown.finish() {
                self.handle_decided(is_counted, &tokens, out);
            }
            self.finish_fence(out);
            match &self.draft {
                // A truncated reply may have ended within the comment.
                None if !is_truncated && self.has_comment_end_tag() => self.end_at_end_tag(out),
                None if !is_truncated && self.comment.is_some() && self.is_outside() => {
                    self.turn_comment_into_text(out)
                }
                None => break,
                Some(_) if is_truncated => self.keep_draft(DraftEnd::Truncated, out),
                Some(_) => self.replay_draft(out),
            }
        }
        if self.comment.is_some() {
            let is_closed = false;
            self.end_comment(is_closed, end.offset, out);
        }
        while !matches!(self.open_element, OpenElementState::Outside) {
            if is_truncated && matches!(self.open_element, OpenElementState::Block(_)) {
                self.end_truncated_block(end.offset, out);
            } else {
                self.close_unclosed(end.offset, out);
            }
        }
        self.report_missing(end, out);
        self.content.finish(out);
        if let Some(text_choice) = self.content.tail().and_then(choice::choice_from_text) {
            let report = FindingReport::new(
                rules::CHOICES_FROM_TEXT,
                end,
                end.offset,
                "a list at the end of the text",
            );
            out.report(report.with_repair("offered as a choice"));
            out.emit_action(ReplyAction::Extension(text_choice.into()));
        }
        for HeldToolCall { call, start, end } in std::mem::take(&mut self.held_calls) {
            if is_truncated {
                let message = format!("the reply was cut; `{}` is not called", call.name);
                out.report(FindingReport::new(rules::TOOL_CALL_CUT, start, end, message));
                emit_notice("tool_call_cut", Some(call.name), out);
            } else {
                out.emit_action(ReplyAction::Call(call));
            }
        }
    }

    /// Handles a block that the end of the reply truncated: no part of it runs (F-214).
    fn end_truncated_block(&mut self, end: usize, out: &mut dyn IntentSink) {
        let OpenElementState::Block(mut block) =
            std::mem::replace(&mut self.open_element, OpenElementState::Outside)
        else {
            return;
        };
        block.strip_byte_order_mark();
        if block.is_nested {
            self.resume_content();
        }
        let message = format!("the reply was cut within `<{}>`", block.name);
        let report = FindingReport::new(rules::BLOCK_CUT, block.tag_start, end, message);
        out.report(report.with_repair(match block.element.kind {
            ElementKind::Details => "shown as far as it arrived",
            ElementKind::Status | ElementKind::Choice => "none of it runs; shown as text, its tags not used",
            _ => "none of it runs; shown as text",
        }));
        if block.is_overlong {
            return;
        }
        let outcome = match block.element.kind {
            ElementKind::Update => {
                emit_notice(update::FAILED_CODE, None, out);
                BlockOutcome::Raw(block.body.clone())
            }
            ElementKind::Call => {
                emit_notice("tool_call_cut", block.attribute("name").map(str::to_owned), out);
                BlockOutcome::Raw(block.body.clone())
            }
            // Folded text does not act, so the part that arrived is shown as `details`.
            ElementKind::Details => elements::read_details(&block, &self.context, out),
            ElementKind::Status | ElementKind::Choice => BlockOutcome::Text,
            _ => BlockOutcome::Raw(block.body.clone()),
        };
        self.apply_outcome(outcome, &block, out);
    }

    /// Reports missing mandatory elements. If the content is mandatory and missing, the text before all tags
    /// becomes the content (F-209).
    fn report_missing(&mut self, end: Place, out: &mut dyn IntentSink) {
        self.seen_elements.extend(self.assumed_head);
        for index in self.tags.missing(&self.seen_elements) {
            let name = self.tags.element(index).name.clone();
            let message = format!("there is no `<{name}>`");
            let report = FindingReport::new(rules::TAG_MISSING, end, end.offset, message);
            out.report(match self.tags.kind(index) {
                ElementKind::Content if self.content.has_text() => {
                    report.with_repair("text outside of tags is the content")
                }
                ElementKind::Content => report.with_repair("other text takes its place"),
                _ => report,
            });
        }
        let is_content_mandatory = self
            .tags
            .first_of_kind(ElementKind::Content)
            .is_some_and(|index| self.tags.element(index).is_mandatory);
        if self.content.has_text() || !is_content_mandatory {
            return;
        }
        let head_text = std::mem::take(&mut self.head_text);
        let report = FindingReport::new(rules::CONTENT_MISSING, end, end.offset, "the reply has no content");
        if head_text.trim().is_empty() {
            return out.report(report.with_repair("the fallback text is used as the content"));
        }
        out.report(report.with_repair("the text before all tags is the content"));
        if !std::mem::replace(&mut self.is_answering, true) {
            out.emit_intent(Intent::ThinkingEnd);
        }
        self.content.begin_paragraph();
        self.content.push_text(head_text.trim_end(), LazyPlace::from(end), out);
    }
}
