//! Leading reasoning of replies in dialects without markup: it becomes a draft, which is not part of the
//! answer.

use super::open_reasoning::ReasoningBuffer;
use super::{Intent, IntentSink};
use crate::finding::{FindingReport, Rule};
use crate::lex::marks::{self, MarkEffect, MarkKind, MarkMatch, OpenReasoning, ReasoningMark};
use crate::limits::Limits;
use crate::span::Place;

/// Rules that reasoning may break, and the fields of the structure it may hide.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReasoningRules {
    /// Broken by reasoning that is never closed.
    pub(super) unclosed: &'static Rule,
    /// Broken by reasoning that a mark of another name closes.
    pub(super) mismatched: &'static Rule,
    /// Broken by a closing mark without an opening one.
    pub(super) unopened: &'static Rule,
    /// Broken by a reasoning mark with attributes.
    pub(super) attributes: &'static Rule,
    /// Fields of the requested structure; a structure inside reasoning has at least one of them. If there are
    /// none, any JSON value is a structure.
    pub(super) structure_fields: &'static [&'static str],
}

/// Separates leading reasoning, such as `<think>...</think>`, from the reply itself, and emits the reasoning
/// as a draft.
#[derive(Clone, Debug)]
pub(super) struct LeadingDraft {
    state: LeadingState,
    /// Possible beginning of a mark.
    held_text: String,
    /// Place after the text read so far, without `held_text`; within a draft, the start of its text.
    place: Place,
    /// Start of the first draft, if any, and of the last.
    first_draft_start: Option<Place>,
    last_draft_start: Place,
    rules: ReasoningRules,
    limits: Limits,
    /// Set if the reply itself was found in an unclosed draft: it must not act.
    is_reply_in_draft: bool,
}

#[derive(Clone, Debug)]
enum LeadingState {
    /// Only white space and drafts so far; holds the mark that closed the last draft, if any.
    Start(Option<ReasoningMark>),
    /// In a draft: its open mark and its text.
    InDraft(OpenReasoning, Box<ReasoningBuffer>),
    /// In the reply itself.
    Reply,
}

impl LeadingDraft {
    pub(super) fn new(rules: ReasoningRules, limits: &Limits) -> LeadingDraft {
        LeadingDraft {
            state: LeadingState::Start(None),
            held_text: String::new(),
            place: Place::START,
            first_draft_start: None,
            last_draft_start: Place::START,
            rules,
            limits: limits.clone(),
            is_reply_in_draft: false,
        }
    }

    /// Returns whether all further text belongs to the reply itself.
    #[inline]
    pub(super) fn is_over(&self) -> bool {
        matches!(self.state, LeadingState::Reply)
    }

    /// Returns the place after all text so far; once the draft is over, the start of the reply itself.
    pub(super) fn place(&self) -> Place {
        match &self.state {
            LeadingState::InDraft(_, reasoning) => reasoning.place().end_of(&self.held_text),
            LeadingState::Start(_) | LeadingState::Reply => self.place.end_of(&self.held_text),
        }
    }

    /// Returns whether the reply itself was found in an unclosed draft: no part of it may act.
    pub(super) fn is_reply_in_draft(&self) -> bool {
        self.is_reply_in_draft
    }

    /// Returns the start of the first draft, if any.
    pub(super) fn draft_start(&self) -> Option<Place> {
        self.first_draft_start
    }

    pub(super) fn held_bytes(&self) -> usize {
        let inner_bytes = match &self.state {
            LeadingState::InDraft(_, reasoning) => reasoning.held_bytes(),
            LeadingState::Start(_) | LeadingState::Reply => 0,
        };
        self.held_text.len() + inner_bytes
    }

    /// Reads text and returns the part that belongs to the reply itself, held text included.
    pub(super) fn push(&mut self, text: &str, out: &mut dyn IntentSink) -> String {
        let held_and_new = std::mem::take(&mut self.held_text) + text;
        let mut text = held_and_new.as_str();
        while !text.is_empty() {
            text = match std::mem::replace(&mut self.state, LeadingState::Reply) {
                LeadingState::Start(closed_mark) => self.read_start(text, closed_mark, out),
                LeadingState::InDraft(open_reasoning, reasoning) => {
                    self.read_draft(text, open_reasoning, reasoning, out)
                }
                LeadingState::Reply => return text.to_owned(),
            };
        }
        String::new()
    }

    /// Reads white space, and decides whether a draft or the reply itself follows. Returns the unread text.
    fn read_start<'a>(
        &mut self,
        text: &'a str,
        closed_mark: Option<ReasoningMark>,
        out: &mut dyn IntentSink,
    ) -> &'a str {
        // Leading white space is dropped, since its length is unbounded.
        let body = text.trim_start_matches(['\u{FEFF}', ' ', '\t', '\r', '\n']);
        self.place.advance(&text[..text.len() - body.len()]);
        let unread;
        (self.state, unread) = match marks::match_mark(body.as_bytes()) {
            _ if body.is_empty() => (LeadingState::Start(closed_mark), body),
            MarkMatch::Prefix => {
                body.clone_into(&mut self.held_text);
                (LeadingState::Start(closed_mark), "")
            }
            MarkMatch::Mark(mark, len) if mark.kind == MarkKind::Open => {
                self.last_draft_start = self.place;
                self.first_draft_start.get_or_insert(self.place);
                report_attributes(self.rules.attributes, &body[..len], self.place, out);
                self.place.advance(&body[..len]);
                let reasoning =
                    Box::new(ReasoningBuffer::new(self.place, self.rules.structure_fields, &self.limits));
                (LeadingState::InDraft(OpenReasoning::new(mark), reasoning), &body[len..])
            }
            // Some reasoning ends with two closing marks.
            MarkMatch::Mark(mark, len)
                if closed_mark.is_some_and(|closed_mark| closed_mark.is_same_family(mark)) =>
            {
                report_attributes(self.rules.attributes, &body[..len], self.place, out);
                self.place.advance(&body[..len]);
                (LeadingState::Start(None), &body[len..])
            }
            MarkMatch::Mismatch | MarkMatch::Mark(..) => (LeadingState::Reply, body),
        };
        unread
    }

    /// Reads text of a draft. Returns the text after the draft.
    fn read_draft<'a>(
        &mut self,
        text: &'a str,
        mut open_reasoning: OpenReasoning,
        mut reasoning: Box<ReasoningBuffer>,
        out: &mut dyn IntentSink,
    ) -> &'a str {
        let mut emit_draft = |text: &str| out.emit_intent(Intent::Draft(text));
        let (mut at, mut closing) = (0, None);
        while let Some(found) = marks::find(&text.as_bytes()[at..]) {
            at += found;
            match marks::match_mark(&text.as_bytes()[at..]) {
                MarkMatch::Mismatch => at += 1,
                MarkMatch::Prefix => {
                    reasoning.push(&text[..at], &mut emit_draft);
                    text[at..].clone_into(&mut self.held_text);
                    self.state = LeadingState::InDraft(open_reasoning, reasoning);
                    return "";
                }
                MarkMatch::Mark(mark, len) => match open_reasoning.apply(mark) {
                    MarkEffect::Text => at += len,
                    effect => {
                        closing = Some((mark, len, effect));
                        break;
                    }
                },
            }
        }
        let Some((mark, len, effect)) = closing else {
            reasoning.push(text, &mut emit_draft);
            self.state = LeadingState::InDraft(open_reasoning, reasoning);
            return "";
        };
        reasoning.push(&text[..at], &mut emit_draft);
        reasoning.close(&mut emit_draft);
        self.place = reasoning.place();
        let (raw, unread) = text[at..].split_at(len);
        if effect == MarkEffect::CloseForeign {
            out.report(mismatched_report(self.rules.mismatched, raw, self.place));
        }
        report_attributes(self.rules.attributes, raw, self.place, out);
        self.place.advance(raw);
        self.state = LeadingState::Start(Some(mark));
        unread
    }

    /// Ends the input and returns the held text that belongs to the reply itself, or the reply that was found
    /// at the end of an unclosed draft.
    pub(super) fn finish(&mut self, out: &mut dyn IntentSink) -> String {
        let held_text = std::mem::take(&mut self.held_text);
        match std::mem::replace(&mut self.state, LeadingState::Reply) {
            LeadingState::Start(_) | LeadingState::Reply => held_text,
            LeadingState::InDraft(_, reasoning) => {
                let (place, reply) = reasoning.finish(&mut |text| out.emit_intent(Intent::Draft(text)));
                self.place = place;
                self.is_reply_in_draft = reply.is_some();
                // An incomplete mark at the very end is not draft text.
                if !self.is_reply_in_draft {
                    self.place.advance(&held_text);
                }
                out.report(unclosed_report(
                    self.rules,
                    self.last_draft_start,
                    self.place.offset,
                    self.is_reply_in_draft,
                ));
                reply.unwrap_or_default()
            }
        }
    }
}

/// Returns the report on unclosed reasoning; `is_reply_found` is set if the reply itself was found at its
/// end.
pub(super) fn unclosed_report(
    rules: ReasoningRules,
    at: Place,
    end: usize,
    is_reply_found: bool,
) -> FindingReport {
    let repair = if is_reply_found { "closed where the reply begins" } else { "closed at the end" };
    FindingReport::new(rules.unclosed, at, end, "the reasoning is not closed").with_repair(repair)
}

/// Returns the report on reasoning closed by a mark of another name.
pub(super) fn mismatched_report(rule: &'static Rule, raw: &str, at: Place) -> FindingReport {
    let message = format!("`{raw}` closes reasoning that began with another mark");
    FindingReport::new(rule, at, at.offset + raw.len(), message).with_repair("read as its end")
}

/// Reports the attributes of a mark; they appear in no event.
pub(super) fn report_attributes(rule: &'static Rule, raw: &str, at: Place, out: &mut dyn IntentSink) {
    if marks::has_attributes(raw) {
        let report =
            FindingReport::new(rule, at, at.offset + raw.len(), "a mark of reasoning with attributes");
        out.report(report.with_repair("left them out"));
    }
}
