//! The end of the input: closes open elements, and decides on a reply without an answer.

use super::super::context;
use super::super::rules;
use super::super::structure::Name;
use super::{Frame, Mode};
use crate::dialect::{MARKER, Output, marker};
use crate::finding::Report;
use crate::span::Place;

impl Frame {
    /// Returns whether an unfinished token at the very end begins a tag that would have been read here.
    pub(in super::super) fn is_half_tag(&self, carry: &str) -> bool {
        // `<` alone is text, unless only a queries block can have begun.
        if carry.len() < 2 {
            return carry == "<" && self.answer.comment_begins();
        }
        let expected: &[&str] = match self.mode {
            Mode::Final if self.block.is_some() => &["</serp_queries>", "</final>"],
            Mode::Final => &["</final>", "<!--", "<serp_queries>"],
            Mode::Thinking => &["</phase>", "</title>", "</thinking>", "<phase id=", "<title>", "<final>"],
            Mode::Think => return self.think.is_half_end(carry),
            Mode::Serp => &["</serp>"],
            Mode::Outside if self.block.is_some() => &["</serp_queries>"],
            // Text after the answer is left out as text.
            Mode::Outside if self.seen.has(Name::Final) => &[],
            Mode::Outside => &["<thinking>", "<final>", "<think>", "<serp>", "<phase id=", MARKER],
            Mode::SecondThinking => &["</thinking>"],
            Mode::Late => &["</thinking>", "</phase>", "</title>"],
        };
        expected
            .iter()
            .any(|tag| tag.starts_with(carry) || (carry.starts_with("<phase ") && *tag == "<phase id="))
    }

    /// Leaves out a tag truncated at the very end.
    pub(in super::super) fn half_tag(&mut self, half: &str, at: Place, out: &mut dyn Output) {
        if let Some(block) = self.block.as_mut().filter(|_| "</serp_queries>".starts_with(half)) {
            return block.closed_by(half);
        }
        let message = format!("the reply ends inside a tag: `{half}`");
        context::report(rules::UNCLOSED_ELEMENT, at, half.len(), message, "left out", out);
    }

    /// Ends the input.
    pub(in super::super) fn finish(&mut self, end: Place, out: &mut dyn Output) {
        self.flush(out);
        self.mention_closes(out);
        if let Some(answer) = self.thinking.end_of_input(&self.context, out) {
            self.answer_inside(answer, out);
        }
        self.thinking.left_open_late(end, out);
        self.close_at_end(end, out);
        self.thinking.left_open(end, out);
        if self.mode == Mode::Think
            && !self.seen.has(Name::Final)
            && let Some(quote) = self.think.take_told(self.outside.is_blank())
        {
            self.answer_too("a draft that is not closed", quote, out);
            // The answer may be open too.
            self.close_at_end(end, out);
        }
        if !self.seen.has(Name::Final) && self.outside.is_blank() {
            // A phase held a complete one.
            if let Some(answer) = self.thinking.take_quoted() {
                self.answer.interrupt();
                self.answer_too("a phase", answer, out);
            }
        }
        self.answer.block_missing(&self.context, out);
        let has_final = self.seen.has(Name::Final);
        if has_final && self.answer.is_empty() && self.outside.is_blank() {
            //
            self.outside = std::mem::take(&mut self.dropped);
            if !self.outside.is_blank() {
                self.give_all_outside(end, out);
            }
        }
        if !has_final {
            self.finish_without_answer(end, out);
        } else if !self.outside.is_blank() {
            if let Some(fence) = &self.fence {
                self.outside.take_closing(&fence.clone());
            }
            let empty = self.answer.is_empty();
            if empty && let Some(fence) = &self.fence {
                self.outside.take_last_closing(&fence.clone());
            }
            for (start, end) in self.outside.ranges() {
                let report = Report::new(rules::TEXT_OUTSIDE_STRUCTURE, start, end, "text after `</final>`");
                out.report(report.repaired(if empty { "read as the answer" } else { "left out" }));
            }
            if empty {
                self.give_all_outside(end, out);
            }
        }
        if !self.has_thinking_tag() {
            let tagless = self.seen.has(Name::Thinking);
            let repair = if tagless { "read from its phases" } else { "a phase with the fallback title" };
            let report = Report::new(rules::THINKING_MISSING, end, end.offset, "there is no `<thinking>`");
            out.report(report.repaired(repair));
        }
    }

    /// Makes the text outside the answer, since `<final>` holds none.
    fn give_all_outside(&mut self, end: Place, out: &mut dyn Output) {
        self.answer.imply();
        self.give_outside_as_answer(end.offset, out);
        self.leave_block(end, out);
        self.answer.end_of_input(end, out);
    }

    /// Closes the current element.
    fn close_at_end(&mut self, end: Place, out: &mut dyn Output) {
        match self.mode {
            Mode::Outside => {
                self.leave_block(end, out);
                // Text after the block may have begun an element.
                if self.mode != Mode::Outside {
                    self.close_at_end(end, out);
                }
            }
            Mode::Late => {
                self.end_late(end.offset, out);
                // An open `<thinking>` around it must be closed too.
                self.close_at_end(end, out);
            }
            Mode::Think => self.think.left_open(end.offset, out),
            Mode::Serp => self.close_serp(end.offset, out),
            Mode::Thinking | Mode::SecondThinking => {
                self.thinking.close(end, out);
            }
            Mode::Final => {
                self.leave_block(end, out);
                self.answer.end_of_input(end, out);
            }
        }
    }

    /// Ends a reply without `<final>`: the text outside is the answer, or there is none.
    fn finish_without_answer(&mut self, end: Place, out: &mut dyn Output) {
        self.drop_waiting(out);
        let alone = self.seen.only(Name::Think);
        let declared = marker::form(self.outside.text()).filter(|_| alone);
        let marker = self.marker.take();
        match (declared, marker) {
            (Some(form), _) => {
                let ranges = self.outside.ranges();
                let at = ranges.first().map_or(end, |(at, _)| *at);
                let end = ranges.last().map_or(end.offset, |(_, end)| *end);
                rules::MARKER.declare(form, at, end, out);
            }
            (None, Some(at)) => context::embedded_marker(at, "escaped", out),
            (None, None) => {}
        }
        let structured = self.seen.has(Name::Thinking);
        if declared.is_some() {
            self.outside.take();
        } else if !self.outside.is_blank() {
            if !structured && let Some(fence) = &self.fence.clone() {
                self.outside.take_closing(fence);
            }
            // A `</final>` in it, such as in a comment, ends nothing.
            if !structured {
                out.fall_back("structure_missing");
            }
            self.answer.imply();
            self.give_outside_as_answer(end.offset, out);
            self.leave_block(end, out);
            self.answer.end_of_input(end, out);
        }
        let report = Report::new(rules::FINAL_MISSING, end, end.offset, "there is no `<final>`");
        out.report(report.repaired("text outside the elements or the fallback text as the answer"));
    }
}
