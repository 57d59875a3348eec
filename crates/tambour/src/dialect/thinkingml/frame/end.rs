//! The end of the input: closes open elements, and decides on a reply without an answer.

use super::super::context;
use super::super::rules;
use super::super::structure::ThinkingMlElement;
use super::{FramePart, ReplyFrame};
use crate::dialect::{FAILURE_MARKER, IntentSink, marker};
use crate::finding::FindingReport;
use crate::span::{Extent, Place};

impl ReplyFrame {
    /// Returns whether an unfinished token at the very end begins a tag that would have been read here.
    pub(in super::super) fn is_half_tag(&self, carry: &str) -> bool {
        // `<` alone is text, except after `<!--` in the answer, where it can only have begun a queries block.
        if carry.len() < 2 {
            return carry == "<" && self.answer.has_held_comment();
        }
        let expected: &[&str] = match self.part {
            FramePart::Final if self.block.is_some() => &["</serp_queries>", "</final>"],
            FramePart::Final => &["</final>", "<!--", "<serp_queries>"],
            FramePart::Thinking => {
                &["</phase>", "</title>", "</thinking>", "<phase id=", "<title>", "<final>"]
            }
            FramePart::Draft => return self.draft.is_half_end(carry),
            FramePart::Summary => &["</serp>"],
            FramePart::Surrounding if self.block.is_some() => &["</serp_queries>"],
            // Text after the answer is left out anyway, an unfinished tag included.
            FramePart::Surrounding if self.seen_elements.has(ThinkingMlElement::Final) => &[],
            FramePart::Surrounding => {
                &["<thinking>", "<final>", "<think>", "<serp>", "<phase id=", FAILURE_MARKER]
            }
            FramePart::SecondThinking => &["</thinking>"],
            FramePart::Late => &["</thinking>", "</phase>", "</title>"],
        };
        expected
            .iter()
            .any(|tag| tag.starts_with(carry) || (carry.starts_with("<phase ") && *tag == "<phase id="))
    }

    /// Leaves out and reports a tag truncated at the very end. A truncated `</serp_queries>` closes its
    /// block.
    pub(in super::super) fn report_partial_tag(
        &mut self,
        partial_tag: &str,
        at: Place,
        out: &mut dyn IntentSink,
    ) {
        if let Some(block) = self.block.as_mut().filter(|_| "</serp_queries>".starts_with(partial_tag)) {
            return block.set_closing(partial_tag);
        }
        let message = format!("the reply ends inside a tag: `{partial_tag}`");
        context::report_at(rules::UNCLOSED_ELEMENT, at, partial_tag.len(), message, "left out", out);
    }

    /// Ends the input.
    pub(in super::super) fn finish(&mut self, end: Place, out: &mut dyn IntentSink) {
        self.flush(out);
        self.end_at_mention(out);
        if let Some(answer) = self.thinking.finish_held(&self.context, out) {
            self.begin_interrupting_answer(answer, out);
        }
        self.thinking.report_interrupted(end, out);
        self.close_current(end, out);
        self.thinking.report_missing_close(end, out);
        if self.part == FramePart::Draft
            && !self.seen_elements.has(ThinkingMlElement::Final)
            && let Some(quote) = self.draft.take_quoted_final(self.surrounding.is_blank())
        {
            self.begin_quoted_answer("a draft that is not closed", quote, out);
            // The answer may be open too.
            self.close_current(end, out);
        }
        if !self.seen_elements.has(ThinkingMlElement::Final) && self.surrounding.is_blank() {
            // A complete `<final>` in a phase, which was emitted as text, is the answer.
            if let Some(answer) = self.thinking.take_quoted() {
                self.answer.interrupt();
                self.begin_quoted_answer("a phase", answer, out);
            }
        }
        self.answer.report_missing_block(&self.context, out);
        let has_final = self.seen_elements.has(ThinkingMlElement::Final);
        if has_final && self.answer.is_empty() && self.surrounding.is_blank() {
            // Text before an empty `<final>` is the answer.
            self.surrounding = std::mem::take(&mut self.text_before_final);
            if !self.surrounding.is_blank() {
                self.answer_with_surrounding(end, out);
            }
        }
        if !has_final {
            self.finish_without_answer(end, out);
        } else if !self.surrounding.is_blank() {
            if let Some(fence) = &self.fence {
                self.surrounding.remove_leading_fence_line(&fence.clone());
            }
            let is_empty = self.answer.is_empty();
            if is_empty && let Some(fence) = &self.fence {
                self.surrounding.remove_trailing_fence_line(&fence.clone());
            }
            for Extent { place, end } in self.surrounding.extents() {
                let report =
                    FindingReport::new(rules::TEXT_OUTSIDE_STRUCTURE, place, end, "text after `</final>`");
                out.report(report.with_repair(if is_empty { "read as the answer" } else { "left out" }));
            }
            if is_empty {
                self.answer_with_surrounding(end, out);
            }
        }
        if !self.has_thinking_tag() {
            let lacks_tag = self.seen_elements.has(ThinkingMlElement::Thinking);
            let repair = if lacks_tag { "read from its phases" } else { "a phase with the fallback title" };
            let report =
                FindingReport::new(rules::THINKING_MISSING, end, end.offset, "there is no `<thinking>`");
            out.report(report.with_repair(repair));
        }
    }

    /// Turns the text outside the elements into the answer, since `<final>` holds none.
    fn answer_with_surrounding(&mut self, end: Place, out: &mut dyn IntentSink) {
        self.answer.imply();
        self.replay_surrounding_as_answer(end.offset, out);
        self.end_unclosed_block(end, out);
        self.answer.finish_unclosed(end, out);
    }

    /// Closes the current element.
    fn close_current(&mut self, end: Place, out: &mut dyn IntentSink) {
        match self.part {
            FramePart::Surrounding => {
                self.end_unclosed_block(end, out);
                // Text after the block may have begun an element.
                if self.part != FramePart::Surrounding {
                    self.close_current(end, out);
                }
            }
            FramePart::Late => {
                self.end_late(end.offset, out);
                // An open `<thinking>` around it must be closed too.
                self.close_current(end, out);
            }
            FramePart::Draft => self.draft.finish_unclosed(end.offset, out),
            FramePart::Summary => self.close_summary(end.offset, out),
            FramePart::Thinking | FramePart::SecondThinking => {
                self.thinking.close(end, out);
            }
            FramePart::Final => {
                self.end_unclosed_block(end, out);
                self.answer.finish_unclosed(end, out);
            }
        }
    }

    /// Ends a reply without `<final>`: the text outside the elements is the answer, or there is none (R-08,
    ///
    fn finish_without_answer(&mut self, end: Place, out: &mut dyn IntentSink) {
        self.drop_held_summary(out);
        // Apart from the failure marker, the reply may have a draft, but no other element.
        let has_only_think = self.seen_elements.has_only(ThinkingMlElement::Think);
        let marker_form = marker::marker_form(self.surrounding.text()).filter(|_| has_only_think);
        let marker_place = self.marker_place.take();
        match (marker_form, marker_place) {
            (Some(form), _) => {
                let extents = self.surrounding.extents();
                let at = extents.first().map_or(end, |extent| extent.place);
                let end = extents.last().map_or(end.offset, |extent| extent.end);
                rules::MARKER_RULES.report_marker(form, at, end, out);
            }
            (None, Some(at)) => context::report_embedded_marker(at, "escaped", out),
            (None, None) => {}
        }
        let has_thinking = self.seen_elements.has(ThinkingMlElement::Thinking);
        if marker_form.is_some() {
            self.surrounding.take();
        } else if !self.surrounding.is_blank() {
            if !has_thinking && let Some(fence) = &self.fence.clone() {
                self.surrounding.remove_leading_fence_line(fence);
            }
            if !has_thinking {
                out.fall_back("structure_missing");
            }
            // A `</final>` in the text, such as in a comment, does not end an implied answer.
            self.answer.imply();
            self.replay_surrounding_as_answer(end.offset, out);
            self.end_unclosed_block(end, out);
            self.answer.finish_unclosed(end, out);
        }
        let report = FindingReport::new(rules::FINAL_MISSING, end, end.offset, "there is no `<final>`");
        out.report(report.with_repair("text outside the elements or the fallback text as the answer"));
    }
}
