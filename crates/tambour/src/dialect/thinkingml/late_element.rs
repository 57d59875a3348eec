//! Elements that come too late: left out, or read as thoughts after the answer. One finding covers the whole
//! element.

use super::context;
use super::rules;
use super::structure::{self, ThinkingMlElement};
use crate::dialect::{Intent, IntentSink};
use crate::event::AsideKind;
use crate::finding::{FindingReport, Rule};
use crate::lex::entity::EntityDecoder;
use crate::lex::markup::{MarkupTag, MarkupToken, TagKind};
use crate::lex::space::is_space;
use crate::span::Place;

/// Effect of a token on a late element.
pub(super) enum LateOutcome {
    /// The element continues.
    Open,
    /// The element has ended.
    Ended,
    /// The element was left open before the token, which is unread.
    LeftOpen,
}

/// An element that comes too late.
pub(super) struct LateElement {
    name: ThinkingMlElement,
    /// Rule that it breaks.
    rule: &'static Rule,
    /// Message of its finding.
    message: String,
    start: Place,
    /// Offset after the opening tag.
    tag_end: usize,
    /// Set if the element is in an open `<thinking>`, which continues after it.
    is_in_thinking: bool,
    entities: EntityDecoder,
    /// Set once text of a late thought was emitted, of this element or an earlier one.
    has_text: bool,
    /// Set if markup followed that text, so that the next text begins a new paragraph.
    has_gap: bool,
}

impl LateElement {
    /// Creates an element whose opening tag starts at `start` and has `len` bytes.
    pub(super) fn new(
        name: ThinkingMlElement,
        rule: &'static Rule,
        message: String,
        start: Place,
        len: usize,
    ) -> LateElement {
        let tag_end = start.offset + len;
        let (is_in_thinking, entities) = (false, EntityDecoder::default());
        LateElement {
            name,
            rule,
            message,
            start,
            tag_end,
            is_in_thinking,
            entities,
            has_text: false,
            has_gap: false,
        }
    }

    /// Returns the same element as part of an open `<thinking>`, which continues after it.
    pub(super) fn into_part_of_thinking(self) -> LateElement {
        LateElement { is_in_thinking: true, ..self }
    }

    /// Returns the same element, marked as following another late thought: its text begins a new paragraph.
    pub(super) fn into_further_thought(self) -> LateElement {
        LateElement { has_text: true, has_gap: true, ..self }
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.entities.held_bytes()
    }

    /// Returns whether the element is read as a thought after the answer.
    pub(super) fn is_thought(&self) -> bool {
        matches!(self.name, ThinkingMlElement::Thinking | ThinkingMlElement::Phase)
    }

    /// Emits text of a late thought: its phases and titles are paragraphs.
    fn emit_thought(&mut self, text: &str, out: &mut dyn IntentSink) {
        let continues_paragraph = self.has_text && !self.has_gap;
        let inner = if continues_paragraph { text } else { text.trim_start_matches(is_space) };
        if inner.is_empty() {
            return;
        }
        if self.has_text && self.has_gap {
            out.emit_intent(Intent::Aside { kind: AsideKind::Thought, text: "\n" });
        }
        (self.has_text, self.has_gap) = (true, false);
        out.emit_intent(Intent::Aside { kind: AsideKind::Thought, text: inner });
    }

    /// Returns whether a tag of the element `name` ends this element without being its closing tag.
    fn is_ended_by(&self, tag: &MarkupTag<'_>, name: ThinkingMlElement) -> bool {
        let is_opening = tag.kind == TagKind::Open;
        match (self.is_in_thinking, name) {
            (true, ThinkingMlElement::Thinking | ThinkingMlElement::Phase) => true,
            // A late phase that is not closed ends at a tag of the `<thinking>` around late phases.
            (_, ThinkingMlElement::Thinking) if self.name == ThinkingMlElement::Phase => true,
            _ => is_opening && name.is_top() && name != self.name,
        }
    }

    /// Handles the next token.
    pub(super) fn push_token(
        &mut self,
        token: MarkupToken<'_>,
        at: Place,
        out: &mut dyn IntentSink,
    ) -> LateOutcome {
        if !matches!(token, MarkupToken::Text(_)) {
            self.flush(out);
        }
        if let MarkupToken::Tag(tag) = token
            && let Some((name, is_exact)) = structure::find_element(tag.name)
        {
            if name == self.name && tag.kind == TagKind::Close {
                context::check_tag(name, is_exact, &tag, at, out);
                return LateOutcome::Ended;
            }
            if self.is_ended_by(&tag, name) {
                return LateOutcome::LeftOpen;
            }
            if self.is_thought() && matches!(name, ThinkingMlElement::Phase | ThinkingMlElement::Title) {
                self.has_gap = true;
                context::check_tag(name, is_exact, &tag, at, out);
                report_lost_attributes(name, &tag, at, out);
                return LateOutcome::Open;
            }
        }
        if self.is_thought() {
            match token {
                MarkupToken::Text(text) => self.push_text(text, out),
                other => self.emit_thought(other.raw(), out),
            }
        }
        LateOutcome::Open
    }

    /// Reads text of a late thought.
    fn push_text(&mut self, text: &str, out: &mut dyn IntentSink) {
        let mut entities = std::mem::take(&mut self.entities);
        entities.push(text, &mut |text| self.emit_thought(text, out));
        self.entities = entities;
    }

    /// Ends a run of text.
    pub(super) fn flush(&mut self, out: &mut dyn IntentSink) {
        let mut entities = std::mem::take(&mut self.entities);
        entities.flush(&mut |text| self.emit_thought(text, out));
    }

    /// Ends the element at `end`. Returns whether an open `<thinking>` continues after it.
    pub(super) fn finish(mut self, end: usize, out: &mut dyn IntentSink) -> bool {
        self.flush(out);
        let repair = if self.is_thought() { "read as a late thought" } else { "left out" };
        let report = FindingReport::new(self.rule, self.start, end.max(self.tag_end), self.message);
        out.report(report.with_repair(repair));
        self.is_in_thinking
    }
}

/// Reports attributes of a late phase, other than its number, that are lost.
pub(super) fn report_lost_attributes(
    name: ThinkingMlElement,
    tag: &MarkupTag<'_>,
    at: Place,
    out: &mut dyn IntentSink,
) {
    let is_number = |value: &str| value.bytes().all(|byte| byte.is_ascii_digit());
    let has_only_id = tag.attribute_text().trim().is_empty()
        || tag
            .attribute_text()
            .trim()
            .strip_prefix("id=\"")
            .and_then(|rest| rest.strip_suffix('"'))
            .is_some_and(is_number);
    if name == ThinkingMlElement::Phase && tag.kind != TagKind::Close && !has_only_id {
        let message = "a phase must be written exactly `<phase id=\"N\">`";
        context::report_at(rules::PHASE_ATTR_INVALID, at, tag.raw.len(), message, "left out", out);
    }
}
