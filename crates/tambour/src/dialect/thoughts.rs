//! Thoughts in the text around JSON: drafts before the structure, asides after it. Nothing in
//! them acts.

use super::draft::{ReasoningRules, mismatched_report, report_attributes, unclosed_report};
use super::open_reasoning::ReasoningBuffer;
use super::preface::Preface;
use super::{Intent, IntentSink};
use crate::event::AsideKind;
use crate::finding::{FindingReport, Rule};
use crate::limits::Limits;
use crate::repair::json::{JsonEvent, ThoughtClosing, ThoughtMark};
use crate::span::Place;

/// Thoughts of one reply, after its leading draft.
#[derive(Clone, Debug)]
pub(super) struct Thoughts {
    rules: ReasoningRules,
    /// Broken by reasoning that begins after the start of the structure.
    late_rule: &'static Rule,
    limits: Limits,
    /// The thought that has begun and not ended.
    open_thought: Option<OpenThought>,
    /// Set if the structure was found in an unclosed thought, or in text that counts as one.
    is_structure_in_thought: bool,
}

/// A thought that has not ended.
#[derive(Clone, Debug)]
struct OpenThought {
    start: Place,
    /// Offset after the text read so far.
    end: usize,
    /// Text of the thought, if the thought precedes the structure; a later thought is emitted as it arrives.
    draft: Option<Box<ReasoningBuffer>>,
}

impl Thoughts {
    pub(super) fn new(rules: ReasoningRules, late_rule: &'static Rule, limits: &Limits) -> Thoughts {
        Thoughts {
            rules,
            late_rule,
            limits: limits.clone(),
            open_thought: None,
            is_structure_in_thought: false,
        }
    }

    /// Returns the bytes held back.
    pub(super) fn held_bytes(&self) -> usize {
        let draft = self.open_thought.as_ref().and_then(|open_thought| open_thought.draft.as_ref());
        draft.map_or(0, |reasoning| reasoning.held_bytes())
    }

    /// Returns whether the structure was found in an unclosed thought: no part of it may act.
    pub(super) fn is_structure_in_thought(&self) -> bool {
        self.is_structure_in_thought
    }

    /// Records whether the structure was found in an unclosed leading draft or comment, both of which count
    /// as an unclosed thought.
    pub(super) fn set_structure_in_thought(&mut self, is_in_thought: bool) {
        self.is_structure_in_thought = is_in_thought;
    }

    /// Handles an event of the reader if it is about a thought, and returns whether it was. `is_late` is set
    /// once the structure has begun; until then the text is in `preface`. An unopened closing mark also turns
    /// the earlier text into a thought; the caller handles its other effects.
    #[inline]
    pub(super) fn handle_event(
        &mut self,
        event: &JsonEvent<'_>,
        is_late: bool,
        preface: &mut Preface,
        out: &mut dyn IntentSink,
    ) -> bool {
        // Once the structure has begun, there is no preface.
        let mut preface = (!is_late).then_some(preface);
        match event {
            JsonEvent::ThoughtStart(mark) => {
                let end = mark.place.offset + mark.text.len();
                report_attributes(self.rules.attributes, mark.text, mark.place, out);
                mark_thought(&mut preface, mark.place.offset, end);
                let draft = (!is_late)
                    .then(|| ReasoningBuffer::new(mark.end(), self.rules.structure_fields, &self.limits));
                self.open_thought = Some(OpenThought { start: mark.place, end, draft: draft.map(Box::new) });
            }
            JsonEvent::Thought(text) => {
                let Some(open_thought) = &mut self.open_thought else { return true };
                mark_thought(&mut preface, open_thought.end, open_thought.end + text.len());
                open_thought.end += text.len();
                match &mut open_thought.draft {
                    Some(draft) => draft.push(text, &mut |text| out.emit_intent(Intent::Draft(text))),
                    None => out.emit_intent(Intent::Aside { kind: AsideKind::Thought, text }),
                }
            }
            JsonEvent::ThoughtEnd(mark, closing) => self.end_thought(mark, *closing, preface, out),
            _ => return false,
        }
        true
    }

    /// Handles a closing mark.
    fn end_thought(
        &mut self,
        mark: &ThoughtMark<'_>,
        closing: ThoughtClosing,
        mut preface: Option<&mut Preface>,
        out: &mut dyn IntentSink,
    ) {
        let (at, end) = (mark.place, mark.place.offset + mark.text.len());
        mark_thought(&mut preface, at.offset, end);
        if closing == ThoughtClosing::Unopened {
            let message = format!("`{}` closes nothing", mark.text);
            let report = FindingReport::new(self.rules.unopened, at, end, message);
            let is_before_structure = preface.is_some();
            let repair =
                if is_before_structure { "left out; the text before it is reasoning" } else { "left out" };
            out.report(report.with_repair(repair));
            if let Some(preface) = preface {
                preface.mark_thought_before(end, &mut |text| out.emit_intent(Intent::Draft(text)));
            }
            return;
        }
        report_attributes(self.rules.attributes, mark.text, at, out);
        let Some(open_thought) = self.open_thought.take() else { return };
        match open_thought.draft {
            Some(mut draft) => draft.close(&mut |text| out.emit_intent(Intent::Draft(text))),
            None => self.report_late(open_thought.start, end, out),
        }
        if closing == ThoughtClosing::OtherName {
            out.report(mismatched_report(self.rules.mismatched, mark.text, at));
        }
    }

    /// Reports a thought after the beginning of the structure.
    fn report_late(&self, at: Place, end: usize, out: &mut dyn IntentSink) {
        let report = FindingReport::new(self.late_rule, at, end, "reasoning after the reply has begun");
        out.report(report.with_repair("sent beside the answer"));
    }

    /// Ends the reply at the offset `end`. If an unclosed thought ends with a structure, returns the start
    /// and the text of the structure.
    pub(super) fn finish(&mut self, end: usize, out: &mut dyn IntentSink) -> Option<(Place, String)> {
        let open_thought = self.open_thought.take()?;
        let Some(draft) = open_thought.draft else {
            let is_reply_found = false;
            out.report(unclosed_report(self.rules, open_thought.start, end, is_reply_found));
            self.report_late(open_thought.start, end, out);
            return None;
        };
        let (place, structure) = draft.finish(&mut |text| out.emit_intent(Intent::Draft(text)));
        self.is_structure_in_thought = structure.is_some();
        out.report(unclosed_report(
            self.rules,
            open_thought.start,
            if self.is_structure_in_thought { place.offset } else { end },
            self.is_structure_in_thought,
        ));
        Some((place, structure?))
    }
}

/// Marks the offsets `from..to` of the reply as a thought, if they are in the preface.
fn mark_thought(preface: &mut Option<&mut Preface>, from: usize, to: usize) {
    if let Some(preface) = preface {
        preface.mark_thought(from, to);
    }
}
