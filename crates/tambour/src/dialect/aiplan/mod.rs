//! AIPlan dialect: one JSON object that says what is to be done (P-001 to P-037).
//!
//! `parse` reads objects while they arrive, each as an `object`; `judge`, `check` and `calls` check a
//! complete one against the contract, and `modes` is the table of modes. `args` reads other forms of a call's
//! arguments; `surroundings` tracks the text around the plan. Texts stream, which means that they are emitted
//! as they arrive; calls are held back until the end of the reply and are emitted only for a plan that is
//! complete, valid and not truncated. A reply in prose is the answer as written.

mod args;
mod calls;
mod check;
mod grammar;
mod judge;
mod modes;
mod object;
mod options;
mod parse;
mod prompt;
mod rules;
mod surroundings;
mod write;

use std::sync::Arc;

use serde_json::{Value, json};

use super::opening::{NeededKey, Opening, ValueShape};
use super::structure_reader::{ReplyShape, StructureReader};
use super::{
    Dialect, DialectEntry, ExampleStyle, Intent, IntentSink, PlanIntent, ReplyAction, ReplyEnding, echo,
    marker,
};
use crate::event::Event;
use crate::finding::FindingReport;
use crate::options::Options;
use crate::span::{Extent, Place};
use crate::texts::Texts;
use options::{PlanOptions, PlanVariant};
use parse::{PlanCandidate, PlanReader, ThoughtPlan};

/// Entry in the table of dialects.
pub(super) const ENTRY: DialectEntry = DialectEntry {
    name: "aiplan",
    summary: "a JSON plan with a response mode and tool calls",
    reader: |options| {
        echo::refuse_echoes(options, rules::EXAMPLE_ECHO, prompt::prompt, |options| {
            Box::new(AiPlanDialect::new(options))
        })
    },
    opening: Opening {
        // P-002. Some replies write `null` for an empty list of calls.
        keys: &[
            NeededKey::new(&["thought"], &[ValueShape::Text]),
            NeededKey::new(&["response_mode"], &[ValueShape::Text]),
            NeededKey::new(&["direct_response"], &[ValueShape::Text, ValueShape::Null]),
            NeededKey::new(&["tool_calls"], &[ValueShape::List, ValueShape::Null]),
        ],
        ..Opening::NONE
    },
    settings: options::SETTINGS,
    rules: rules::RULES,
    write: Some(|events| write::write(events, PlanVariant::V1)),
    prompt: Some(prompt::prompt),
    schema: Some(write::schema),
    grammar: Some(grammar::grammar),
    examples: ExampleStyle { languages: &["json"], includes_fence: true },
};

struct AiPlanDialect {
    reader: StructureReader<PlanReader>,
    texts: Texts,
    /// Set if the results of calls go back to the model, which then answers.
    is_tool_loop: bool,
    variant: PlanVariant,
}

impl AiPlanDialect {
    fn new(options: &Arc<Options>) -> AiPlanDialect {
        AiPlanDialect {
            reader: StructureReader::new(PlanReader::new(options), &options.limits),
            texts: options.texts.clone(),
            is_tool_loop: options.tool_loop,
            variant: options.section::<PlanOptions>().variant,
        }
    }

    /// Reports the outcome of the reply and emits its plan.
    fn emit_plan(&mut self, is_truncated: bool, out: &mut dyn IntentSink) {
        let plan_reader = &mut self.reader.structure;
        let (chosen_plan, first_rejected) =
            (plan_reader.chosen_plan.take(), plan_reader.first_rejected.take());
        let later_plans = plan_reader.other_plans.take();
        let Some(candidate) = chosen_plan.or(first_rejected) else {
            return self.report_no_plan(is_truncated, out);
        };
        let PlanCandidate {
            mut checked_plan,
            context,
            start,
            end,
            other_plans: earlier_plans,
            has_sent_answer,
            unsent_answer,
            ..
        } = candidate;
        if checked_plan.is_valid && checked_plan.is_acting && is_truncated {
            let message = "the reply was cut off; no call of its plan may run";
            checked_plan.reports.push(FindingReport::new(rules::TRUNCATED, start, end.offset, message));
            checked_plan.is_valid = false;
        }
        let is_continued = self.reader.structure.surroundings.is_continued();
        if checked_plan.is_valid && checked_plan.is_acting && is_continued {
            let message = "the plan is in a sentence; none of its calls may run";
            checked_plan.reports.push(FindingReport::new(rules::PLAN_ASIDE, start, end.offset, message));
            checked_plan.is_valid = false;
        }
        self.reader.structure.surroundings.finish(
            &context,
            is_truncated || end.is_auto_closed,
            &mut |report| out.report(report),
        );
        checked_plan.reports.drain(..).for_each(|report| out.report(report));
        for Extent { place, end } in [earlier_plans, later_plans].into_iter().flatten() {
            let message = "the reply has more than one plan";
            let repair = if checked_plan.is_valid { "not used; the first valid one is" } else { "not used" };
            out.report(FindingReport::new(rules::MULTIPLE_PLANS, place, end, message).with_repair(repair));
        }
        if !checked_plan.is_valid {
            let gives_answer = !unsent_answer.is_empty() && !self.reader.structure.has_answer;
            if checked_plan.has_lost_calls || checked_plan.has_lost_answer && !gives_answer {
                let report =
                    FindingReport::new(rules::PLAN_UNUSED, start, end.offset, "the plan cannot be used");
                out.report(report.with_repair("replaced by the safe fallback"));
            }
            if gives_answer {
                // No other object turned out to be the plan, so the direct response of this one becomes the
                // answer, as if it had been streamed.
                out.emit_intent(Intent::FinalText(&unsent_answer));
                self.reader.structure.has_answer = true;
            }
            return self.fall_back(if is_truncated { "truncated" } else { "plan_invalid" }, out);
        }
        let has_calls = checked_plan.valid_call_count > 0;
        // In a tool loop, thinking stays open and the answer follows the calls.
        let must_wait = has_calls && self.is_tool_loop;
        if has_calls && !has_sent_answer && !must_wait {
            out.emit_intent(Intent::ThinkingEnd);
        }
        let plan = PlanIntent { plan: checked_plan.plan, is_fallback: false };
        out.emit_action(ReplyAction::Plan(plan));
        if !self.reader.structure.has_answer && !must_wait {
            out.emit_intent(Intent::FinalText(&self.texts.running_tools));
        }
    }

    /// Ends a reply in which nothing looks like a plan; `text` is all of it.
    fn finish_prose(&mut self, text: &str, is_truncated: bool, out: &mut dyn IntentSink) {
        if let Some(form) = marker::marker_form(text) {
            let Extent { place: at, end } = self.reader.extent();
            rules::MARKER_RULES.report_marker(form, at, end, out);
            return self.fall_back("parsing_error", out);
        }
        if !self.reader.structure.surroundings.is_prose() || self.reader.structure.is_truncated {
            return self.emit_plan(is_truncated, out);
        }
        out.emit_intent(Intent::FinalText(text));
        self.report_prose(out);
    }

    /// Reports that the answer was prose.
    fn report_prose(&mut self, out: &mut dyn IntentSink) {
        self.reader.structure.has_answer = true;
        let (Extent { place: at, end }, message) = (self.reader.extent(), "there is no plan in the reply");
        let report = FindingReport::new(rules::PLAN_MISSING, at, end, message);
        out.report(report.with_row("R-70").with_repair("its text is the answer"));
        self.fall_back("plan_missing", out);
    }

    /// Ends a reply with neither a plan nor prose: it is empty, or has only thoughts or the beginning of an
    /// object.
    fn report_no_plan(&mut self, is_truncated: bool, out: &mut dyn IntentSink) {
        let Extent { place: at, end } = self.reader.extent();
        let plan_reader = &mut self.reader.structure;
        if let Some(ThoughtPlan { start, end, extent_after }) = plan_reader.thought_plan {
            plan_reader
                .surroundings
                .report_around_thought(start, extent_after, &mut |report| out.report(report));
            let message = "the plan is inside a thought; none of its calls may run";
            let report = FindingReport::new(rules::REPAIR_UNSAFE, start, end, message);
            out.report(report.with_repair("the safe fallback"));
            return self.fall_back(if is_truncated { "truncated" } else { "plan_invalid" }, out);
        }
        let message = "there is no plan in the reply";
        let report = FindingReport::new(rules::PLAN_MISSING, at, end, message);
        out.report(report.with_repair("the safe fallback"));
        let reason = match is_truncated {
            _ if plan_reader.is_truncated || plan_reader.has_begun => "parsing_error",
            true => "truncated",
            false => "answer_missing",
        };
        self.fall_back(reason, out);
    }

    /// Emits the safe fallback in place of an unusable plan (P-017).
    fn fall_back(&mut self, reason: &'static str, out: &mut dyn IntentSink) {
        out.fall_back(reason);
        if !self.reader.structure.has_thought && !self.reader.structure.has_answer {
            out.emit_intent(Intent::Phase("".into(), self.reader.place()));
            out.emit_intent(Intent::PhaseText(&self.texts.plan_thought));
        }
        if !self.reader.structure.has_answer {
            out.emit_intent(Intent::ThinkingEnd);
        }
        let plan = fallback_plan(self.variant, &self.texts);
        let plan = PlanIntent { plan, is_fallback: true };
        out.emit_action(ReplyAction::Plan(plan));
    }
}

impl Dialect for AiPlanDialect {
    #[inline]
    fn push_text(&mut self, text: &str, out: &mut dyn IntentSink) {
        self.reader.push_text(text, out);
    }

    fn finish(&mut self, ending: ReplyEnding, out: &mut dyn IntentSink) {
        match self.reader.finish(out) {
            ReplyShape::Plain => self.report_prose(out),
            ReplyShape::Text(text) => self.finish_prose(&text, ending.is_truncated, out),
            ReplyShape::Structure => self.emit_plan(ending.is_truncated, out),
        }
    }

    fn place(&self) -> Place {
        self.reader.place()
    }

    fn held_bytes(&self) -> usize {
        self.reader.held_bytes()
    }

    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn write(&self, events: &[Event<'_>]) -> Option<String> {
        Some(write::write(events, self.variant))
    }
}

/// Returns the safe fallback plan, which replaces an unusable one (P-017).
fn fallback_plan(variant: PlanVariant, texts: &Texts) -> Value {
    json!({
        "thought": texts.plan_thought,
        "response_mode": modes::answer_mode(variant),
        "direct_response": texts.fallback,
        "tool_calls": [],
    })
}
