//! Reader of the objects of a reply: thought and answer are emitted while their strings arrive, everything
//! else is held back until its object is complete (P-035).
//!
//! The answer is emitted only once the mode is known to allow it and the thought has been read, whatever the
//! order of the keys; an answer longer than `limits.hold` does not wait for the thought. An object whose
//! answer was emitted is the plan, whatever follows.

use std::sync::Arc;

use serde_json::Value;

use super::check::{CheckedPlan, PLAN_FIELDS};
use super::judge::{judge_plan, too_large_report};
use super::modes::{AnswerRequirement, find_mode};
use super::object::PlanObject;
use super::options;
use super::rules;
use super::surroundings::{PlanContext, PlanSurroundings};
use crate::dialect::draft::{LeadingDraft, ReasoningRules};
use crate::dialect::preface::Preface;
use crate::dialect::structure_reader::JsonStructure;
use crate::dialect::thoughts::Thoughts;
use crate::dialect::{Intent, IntentSink};
use crate::finding::{Doubt, FindingReport, Rule};
use crate::limits::Limits;
use crate::options::Options;
use crate::repair::json::{
    BuiltValue, JsonEvent, JsonReader, ThoughtClosing, TopKeyTracker, ValueBuilder, ValueEnd,
};
use crate::repair::rules as json_rules;
use crate::span::{Extent, Place};

/// Reader of one AIPlan reply.
pub(super) struct PlanReader {
    options: Arc<Options>,
    /// Text around the objects.
    pub(super) surroundings: PlanSurroundings,
    /// Builder of the current value.
    builder: ValueBuilder,
    /// Keys around the current position.
    key_tracker: TopKeyTracker,
    /// The current object.
    object: Option<PlanObject>,
    /// Set once something that looks like a plan has begun.
    pub(super) has_begun: bool,
    /// Thoughts outside the objects.
    thoughts: Thoughts,
    /// Place of the last thought's beginning.
    thought_start: Place,
    /// Set if an object was truncated before it could be recognized as a plan.
    pub(super) is_truncated: bool,
    /// The plan, once it is known which object that is.
    pub(super) chosen_plan: Option<PlanCandidate>,
    /// The first unusable object that looks like a plan or, if none does, the first unusable object; kept for
    /// its findings and its answer.
    pub(super) first_rejected: Option<PlanCandidate>,
    /// The last plan with calls that a later closing mark, such as `</think>`, made part of a thought.
    pub(super) thought_plan: Option<ThoughtPlan>,
    /// Extent of objects that look like plans and are not used.
    pub(super) other_plans: Option<Extent>,
    /// Set once text of a thought has been emitted.
    pub(super) has_thought: bool,
    /// Set once text of an answer has been emitted.
    pub(super) has_answer: bool,
}

/// A complete object that may be the plan.
pub(super) struct PlanCandidate {
    pub(super) checked_plan: CheckedPlan,
    /// Position of the object in the reply.
    pub(super) context: PlanContext,
    /// Start of the object.
    pub(super) start: Place,
    pub(super) end: ValueEnd,
    /// Extent of the objects before it that look like plans and are not used.
    pub(super) other_plans: Option<Extent>,
    /// Set if the answer of the object was emitted.
    pub(super) has_sent_answer: bool,
    /// Answer of the object, if it was not emitted because the object is not a plan.
    pub(super) unsent_answer: String,
    /// Set if the object looks like a plan.
    is_likely: bool,
}

impl PlanCandidate {
    /// Returns the extent of the value that is or contains the object, with the language of its fence.
    fn extent(&self) -> Extent {
        Extent { place: self.context.start(), end: self.end.offset }
    }
}

/// Position of a plan with calls that was part of a thought.
#[derive(Clone, Copy)]
pub(super) struct ThoughtPlan {
    pub(super) start: Place,
    pub(super) end: usize,
    /// Extent of the text between the plan and the end of the thought.
    pub(super) extent_after: Option<Extent>,
}

impl JsonStructure for PlanReader {
    const REASONING_RULES: ReasoningRules = rules::REASONING_RULES;
    const OVERFLOW: (&'static Rule, &'static str, &'static str) = (
        &json_rules::LIMIT_EXCEEDED,
        "more text before the plan than `limits.hold` allows",
        "sent as the answer",
    );

    fn new_reader(limits: &Limits) -> JsonReader {
        JsonReader::new_chat(limits).with_sought_keys(&PLAN_FIELDS)
    }

    fn start_at(&mut self, place: Place, draft: &LeadingDraft) {
        self.surroundings = PlanSurroundings::new(place);
        if let Some(place) = draft.draft_start() {
            self.surroundings.begin_with_draft(place);
        }
        if draft.is_reply_in_draft() {
            self.surroundings.begin_unclosed_thought(place);
        }
    }

    fn enter_thought(&mut self, place: Place) {
        self.surroundings.begin_unclosed_thought(place);
    }

    #[inline]
    fn handle_event(&mut self, event: &JsonEvent<'_>, preface: &mut Preface, out: &mut dyn IntentSink) {
        if let JsonEvent::StringDelta(text) = event {
            // Text is split at the limit of the builder, so that the emitted part of an answer does not
            // depend on the chunks.
            let room = self.builder.remaining_bytes();
            if room > 0 && text.len() > room {
                let (fitting_text, excess_text) = text.split_at(text.floor_char_boundary(room));
                self.push_event(&JsonEvent::StringDelta(fitting_text), preface, out);
                return self.push_event(&JsonEvent::StringDelta(excess_text), preface, out);
            }
        }
        self.push_event(event, preface, out);
    }

    fn handle_report(&mut self, report: FindingReport, out: &mut dyn IntentSink) {
        self.builder.note_report(&report);
        match &mut self.object {
            Some(object) => object.reports.push(report),
            None => out.report(report),
        }
    }

    fn handle_rounding(&mut self, place: Place, end: usize) {
        let message = "a number with more digits than can be kept";
        let report =
            FindingReport::new(&json_rules::NUMBER, place, end, message).with_doubt(Doubt::InexactNumber);
        self.builder.note_report(&report);
        if let Some(object) = &mut self.object
            && !std::mem::replace(&mut object.has_rounded_number, true)
        {
            object.reports.push(report.with_repair("rounded"));
        }
    }

    fn has_begun(&self) -> bool {
        self.has_begun
    }

    fn thoughts(&mut self) -> &mut Thoughts {
        &mut self.thoughts
    }

    /// Counts the bytes of answers that wait for the mode or the thought, for the end of a wrapper, or for
    /// another object that may be the plan.
    fn held_bytes(&self) -> usize {
        let object_bytes = self.object.as_ref().map_or(0, |object| match object.is_wrapped() {
            true => self.builder.size().0,
            false => object.held_answer.len(),
        });
        object_bytes
            + self.thoughts.held_bytes()
            + self.first_rejected.as_ref().map_or(0, |candidate| candidate.unsent_answer.len())
    }
}

impl PlanReader {
    pub(super) fn new(options: &Arc<Options>) -> PlanReader {
        PlanReader {
            options: Arc::clone(options),
            surroundings: PlanSurroundings::default(),
            builder: ValueBuilder::with_limits(options.limits.value, options.limits.items),
            key_tracker: TopKeyTracker::default(),
            object: None,
            has_begun: false,
            thoughts: Thoughts::new(rules::REASONING_RULES, rules::THINK_LATE, &options.limits),
            thought_start: Place::START,
            is_truncated: false,
            chosen_plan: None,
            first_rejected: None,
            thought_plan: None,
            other_plans: None,
            has_thought: false,
            has_answer: false,
        }
    }

    /// Handles an event whose text lies on one side of the builder's limit.
    #[inline]
    fn push_event(&mut self, event: &JsonEvent<'_>, preface: &mut Preface, out: &mut dyn IntentSink) {
        self.key_tracker.push_event(event);
        if self.thoughts.handle_event(event, self.has_begun, preface, out) {
            return self.handle_thought_event(event);
        }
        match event {
            JsonEvent::Text(text) => return self.surroundings.push_text(text),
            JsonEvent::Comment(text) => return self.surroundings.push_comment(text),
            JsonEvent::ValueStart(start) => {
                let context = self.surroundings.begin_value(start);
                self.object = Some(PlanObject::new(context, start.place, self.surroundings.is_prose()));
            }
            _ => {}
        }
        let Some(object) = &mut self.object else { return };
        // Once an object is the plan, later objects are not used.
        if self.chosen_plan.is_none() {
            let built_value = self.builder.push_event(event);
            if self.builder.is_over_limit() {
                object.mark_too_large();
            }
            object.push_event(
                event,
                &self.key_tracker,
                &self.options,
                (&mut self.has_thought, &mut self.has_answer),
                out,
            );
            self.has_begun |= object.is_likely;
            if let JsonEvent::ValueEnd(end) = event {
                return self.finish_object(*end, built_value, out);
            }
        } else if let JsonEvent::Key { text, depth: 1, .. } = event {
            object.is_likely |= PLAN_FIELDS.contains(text);
        }
        if let JsonEvent::ValueEnd(end) = event {
            self.surroundings.end_value(end);
            let extent = Extent { place: object.context.start(), end: end.offset };
            let is_likely = object.is_likely;
            self.object = None;
            self.skip_object(extent, is_likely);
        }
    }

    /// Handles the start or end of a thought outside the objects.
    fn handle_thought_event(&mut self, event: &JsonEvent<'_>) {
        match event {
            JsonEvent::ThoughtStart(mark) => self.thought_start = mark.place,
            JsonEvent::ThoughtEnd(mark, ThoughtClosing::Unopened) => {
                self.surroundings.end_thought(None, mark.end());
                if self.has_begun {
                    self.discard_as_thought();
                } else {
                    self.first_rejected = None;
                    self.surroundings.mark_draft();
                }
            }
            JsonEvent::ThoughtEnd(mark, _) => {
                let is_early = !self.has_begun;
                self.surroundings.end_thought(is_early.then_some(self.thought_start), mark.end());
            }
            _ => {}
        }
    }

    /// Treats everything so far as thinking, plans included; only an emitted answer stays.
    fn discard_as_thought(&mut self) {
        match &mut self.chosen_plan {
            Some(PlanCandidate { has_sent_answer: true, checked_plan, start, end, .. }) => {
                if checked_plan.is_valid && checked_plan.is_acting {
                    let message = "the plan is inside a thought; none of its calls may run";
                    checked_plan.reports.push(FindingReport::new(
                        rules::REPAIR_UNSAFE,
                        *start,
                        end.offset,
                        message,
                    ));
                    checked_plan.is_valid = false;
                }
            }
            chosen_plan => {
                let acting_plan = chosen_plan.as_ref().filter(|candidate| candidate.checked_plan.is_acting);
                let thought_plan = acting_plan.map(|candidate| ThoughtPlan {
                    start: candidate.start,
                    end: candidate.end.offset,
                    extent_after: self.surroundings.extent_after(),
                });
                for candidate in [chosen_plan.take(), self.first_rejected.take()].into_iter().flatten() {
                    self.surroundings.skip_value(&candidate.context, candidate.end.offset);
                }
                if let Some(extent) = self.other_plans.take() {
                    self.surroundings.skip_extent(extent);
                }
                self.surroundings.skip_all();
                if thought_plan.is_some() {
                    self.surroundings.mark_thought_plan();
                    self.thought_plan = thought_plan;
                }
            }
        }
        self.first_rejected = None;
    }

    /// Records an object that is not used; `is_likely` is set if it looks like a plan.
    fn skip_object(&mut self, extent: Extent, is_likely: bool) {
        if is_likely {
            self.other_plans = Extent::join_present([self.other_plans, Some(extent)]);
        } else {
            self.surroundings.skip_extent(extent);
        }
    }

    /// Handles a complete object and decides whether it is the plan. `built_value` is `None` for an object
    /// beyond the limits.
    fn finish_object(&mut self, end: ValueEnd, built_value: Option<BuiltValue>, out: &mut dyn IntentSink) {
        let Some(mut object) = self.object.take() else { return };
        let start = object.places.start;
        self.surroundings.end_value(&end);
        object.places.end_member(end.offset);
        object.inner_places.end_member(end.offset);
        let is_object = built_value.as_ref().is_some_and(|built_value| built_value.value.is_object());
        // Unclosed brackets without an object are prose.
        let items = built_value.as_ref().and_then(|built_value| built_value.value.as_array());
        if end.is_auto_closed && items.is_some_and(|items| !items.iter().any(contains_object)) {
            self.surroundings.mark_text();
        }
        let may_be_plan = object.places.may_become_plan() || object.places.field_count() > 0;
        if end.is_auto_closed && is_object && may_be_plan {
            self.is_truncated = true;
            object.emit_held_thought((&mut self.has_thought, self.has_answer), out);
        }
        let mut checked_plan = match built_value {
            Some(built_value) => judge_plan(built_value, &mut object, &self.options),
            None => {
                let report = too_large_report(start, end.offset, &self.options);
                CheckedPlan { reports: vec![report], ..CheckedPlan::default() }
            }
        };
        if checked_plan.is_wrapped {
            self.emit_wrapped_plan(&mut object, &checked_plan, out);
        }
        object.has_thought = true;
        object.hold_converted_answer(&checked_plan);
        // Only a valid plan may answer now. If this object is not one, a later object may be.
        if checked_plan.is_valid {
            object.allows_answer = true;
        }
        if checked_plan.is_valid || object.has_sent_answer() {
            object.emit_answer(&self.options, &mut self.has_answer, out);
        }
        let has_sent_answer = object.has_sent_answer();
        let unsent_answer = if object.allows_answer && !has_sent_answer && !object.held_answer.is_empty() {
            std::mem::take(&mut object.held_answer)
        } else if checked_plan.is_valid || has_sent_answer {
            String::new()
        } else {
            checked_plan.answer()
        };
        let PlanObject { context, mut reports, is_likely, .. } = object;
        reports.append(&mut checked_plan.reports);
        checked_plan.reports = reports;
        let mut candidate = PlanCandidate {
            context,
            start,
            end,
            other_plans: None,
            has_sent_answer,
            unsent_answer,
            is_likely,
            checked_plan,
        };
        if !is_likely {
            self.surroundings.skip_value(&candidate.context, end.offset);
        }
        if candidate.checked_plan.is_valid || candidate.has_sent_answer {
            let first_rejected = self.first_rejected.take().filter(|rejected| rejected.is_likely);
            candidate.other_plans = Extent::join_present([
                first_rejected.map(|rejected| rejected.extent()),
                self.other_plans.take(),
            ]);
            self.surroundings.mark_plan(&candidate.context);
            self.chosen_plan = Some(candidate);
        } else if self.first_rejected.as_ref().is_none_or(|rejected| is_likely && !rejected.is_likely) {
            self.surroundings.mark_plan(&candidate.context);
            self.first_rejected = Some(candidate);
        } else if is_likely {
            self.skip_object(candidate.extent(), true);
        }
    }

    /// Emits the thought of a wrapped plan, which is in a list or under a key, and holds its answer. Both are
    /// handled only at the end of the list or object around the plan, because another item or key there would
    /// mean that there is no plan.
    fn emit_wrapped_plan(
        &mut self,
        object: &mut PlanObject,
        checked_plan: &CheckedPlan,
        out: &mut dyn IntentSink,
    ) {
        let text_field =
            |field: &str| checked_plan.plan.get(field).and_then(Value::as_str).unwrap_or_default();
        if self.has_thought && !self.has_answer {
            out.emit_intent(Intent::PhaseText("\n\n"));
        }
        object.emit_thought(text_field("thought"), (&mut self.has_thought, self.has_answer), out);
        let mode = find_mode(options::plan_variant(&self.options), text_field("response_mode"));
        object.allows_answer = mode.is_some_and(|mode| mode.answer != AnswerRequirement::Null);
        object.hold_answer(text_field("direct_response"));
    }
}

/// Returns true if the value is or contains an object.
fn contains_object(value: &Value) -> bool {
    match value {
        Value::Object(_) => true,
        Value::Array(items) => items.iter().any(contains_object),
        _ => false,
    }
}
