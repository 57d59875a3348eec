//! End of an element. A block is read when it closes; parts of it that cannot be read are shown as text.

use super::super::block::{BlockOutcome, FilamentBlock, emit_notice};
use super::super::rules;
use super::super::tags::{ElementKind, KnownElement};
use super::super::{choice, elements, status, tool_call, update};
use super::{FilamentFrame, OpenElementState, OpenPart};
use crate::dialect::{IntentSink, call_check};
use crate::finding::FindingReport;
use crate::span::Place;

impl FilamentFrame {
    /// Closes the open element before the offset `end`, without a closing tag.
    pub(super) fn close_unclosed(&mut self, end: usize, out: &mut dyn IntentSink) {
        match &mut self.open_element {
            OpenElementState::Outside => {}
            OpenElementState::Thought(_) | OpenElementState::Content(_) => {
                let is_closed = false;
                self.close_part(is_closed, end, out);
            }
            OpenElementState::Block(block) => {
                block.is_unclosed = true;
                let (name, tag) = (block.name.clone(), block.tag_start);
                self.report_unclosed(&name, tag, end, out);
                self.close_block(out);
            }
        }
    }

    /// Reports the element `name`, whose tag is at `at`, as closed before the offset `end` without a closing
    /// tag.
    fn report_unclosed(&self, name: &str, at: Place, end: usize, out: &mut dyn IntentSink) {
        // A mark that is not a tag is named as written.
        let tag = if name.starts_with(char::is_alphanumeric) { format!("<{name}>") } else { name.to_owned() };
        let report = FindingReport::new(rules::TAG_UNCLOSED, at, end, format!("`{tag}` is not closed"));
        out.report(report.with_repair("closed here"));
    }

    /// Closes a thought or the content whose tag closes itself.
    pub(super) fn close_empty_part(&mut self, out: &mut dyn IntentSink) {
        // The end is used only for reports on parts without a closing tag.
        let (is_closed, unused_end) = (true, 0);
        self.close_part(is_closed, unused_end, out);
    }

    /// Closes a thought or the content before the offset `end`; `is_closed` is set if a tag closed it.
    pub(super) fn close_part(&mut self, is_closed: bool, end: usize, out: &mut dyn IntentSink) {
        let (OpenElementState::Thought(part) | OpenElementState::Content(part)) =
            std::mem::replace(&mut self.open_element, OpenElementState::Outside)
        else {
            return;
        };
        self.finish_part(&part, is_closed, end, out);
    }

    /// Reports a thought or the content that was closed without its tag, or began without one.
    fn finish_part(&mut self, part: &OpenPart, is_closed: bool, end: usize, out: &mut dyn IntentSink) {
        self.last_closed = None;
        self.has_line_break = false;
        match &part.tag {
            Some((name, at, _)) if !is_closed => self.report_unclosed(name, *at, end, out),
            Some(_) => {}
            None => self.report_untagged_text(part, is_closed, end, out),
        }
    }

    /// Closes a block.
    pub(super) fn close_block(&mut self, out: &mut dyn IntentSink) {
        let OpenElementState::Block(mut block) =
            std::mem::replace(&mut self.open_element, OpenElementState::Outside)
        else {
            return;
        };
        block.strip_byte_order_mark();
        let KnownElement { index, kind, .. } = block.element;
        self.last_closed = Some(index);
        if block.is_nested {
            self.resume_content();
        }
        if block.is_overlong {
            // The body was shown as text when it exceeded the limit.
            self.content.begin_paragraph();
            return match kind {
                ElementKind::Update => emit_notice(update::FAILED_CODE, None, out),
                ElementKind::Call => emit_notice(call_check::REFUSED_CODE, None, out),
                _ => {}
            };
        }
        if self.is_doubtful && matches!(kind, ElementKind::Update | ElementKind::Call) {
            return self.refuse_doubtful(&block, out);
        }
        let cx = &self.context;
        let outcome = match kind {
            ElementKind::Update => update::read_update(&block, cx, out),
            ElementKind::Call => {
                tool_call::read_call(&block, cx, &mut self.held_calls, &mut self.check_steps, out)
            }
            ElementKind::Status => status::read_status(&block, cx, out),
            ElementKind::Details => elements::read_details(&block, cx, out),
            ElementKind::Choice => choice::read_choice(&block, cx, out),
            ElementKind::Component => elements::read_component(&block, cx, out),
            ElementKind::Media => elements::read_media(&block, cx, out),
            ElementKind::Custom => elements::read_custom(&block, self.tags.element(index), cx, out),
            ElementKind::Thought | ElementKind::Content => BlockOutcome::Read,
        };
        self.apply_outcome(outcome, &block, out);
    }

    /// Refuses a block that may be inside a thought or a comment.
    fn refuse_doubtful(&mut self, block: &FilamentBlock, out: &mut dyn IntentSink) {
        let message =
            format!("`<{}>` comes after a thought or a comment that may not have ended", block.name);
        let report = FindingReport::new(rules::BLOCK_IN_THOUGHT, block.tag_start, block.end(), message);
        out.report(report.with_repair("shown as text"));
        let outcome = match block.element.kind {
            ElementKind::Update => update::fail_block(block, out),
            _ => {
                emit_notice(call_check::REFUSED_CODE, block.attribute("name").map(str::to_owned), out);
                block.raw_outcome(out)
            }
        };
        self.apply_outcome(outcome, block, out);
    }

    /// Shows the unreadable part of a block as text of the content (F-210).
    pub(super) fn apply_outcome(
        &mut self,
        outcome: BlockOutcome,
        block: &FilamentBlock,
        out: &mut dyn IntentSink,
    ) {
        match outcome {
            BlockOutcome::Read => {}
            BlockOutcome::Raw(text) if text.trim().is_empty() => {}
            BlockOutcome::Raw(text) => {
                self.content.push_paragraph(&mut [(block.body_start, &*text)].into_iter(), out)
            }
            BlockOutcome::RestFrom(start) => {
                let blank_len = block.body[start..].len() - block.body[start..].trim_start().len();
                let place = block.body_start.end_of(&block.body[..start + blank_len]);
                let rest = &block.body[start + blank_len..];
                self.content.push_paragraph(&mut [(place, rest)].into_iter(), out);
            }
            BlockOutcome::Text => {
                // `place` is the place of the offset `counted_end` in the body.
                let (mut place, mut counted_end) = (block.body_start, 0);
                let mut lines = Vec::new();
                for (start, text) in status::text_pieces(&block.body) {
                    place.advance(&block.body[counted_end..start]);
                    counted_end = start;
                    if !lines.is_empty() {
                        lines.push((place, "\n"));
                    }
                    lines.push((place, text));
                }
                self.content.push_paragraph(&mut lines.into_iter(), out);
            }
        }
    }

    /// Resumes the content after a block in it.
    pub(super) fn resume_content(&mut self) {
        self.content.mark_gap();
        if let Some((part, markdown)) = self.suspended_content.take() {
            (self.open_element, self.markdown) = (OpenElementState::Content(part), markdown);
        }
    }
}
