//! AIPlan dialect: one JSON object that says what is to be done (P-001 to P-037).
//!
//! `parse` reads objects while they arrive, each as an `object`; `judge`, `check` and `calls` check a
//! complete one against the contract, and `modes` is the table of modes. `wrapped` and `args` read other
//! forms of a plan and its calls; `outside` tracks the text around the plan. Text streams; calls are held
//! back until the end of the reply and are emitted only for a plan that is complete, valid and not truncated.
//! A reply in prose is the answer as written.

mod args;
mod calls;
mod check;
mod doubts;
mod fallback;
mod judge;
mod modes;
mod object;
mod options;
mod outside;
mod parse;
mod prompt;
mod rules;
mod schema;
mod wrapped;
mod write;

use std::sync::Arc;

use super::front::{Front, Reply};
use super::opening::{Needed, Opening, Shape};
use super::{Action, Dialect, Ending, Entry, Examples, Intent, Output, Plan, echo, marker};
use crate::event::Event;
use crate::finding::Report;
use crate::options::Options;
use crate::span::Place;
use crate::texts::Texts;
use options::{PlanOptions, Variant};
use parse::{Aside, Plans, Read};

/// Entry in the table of dialects.
pub(super) const ENTRY: Entry = Entry {
    name: "aiplan",
    summary: "a JSON plan with a response mode and tool calls",
    reader: |options| {
        echo::watch(options, rules::EXAMPLE_ECHO, prompt::prompt, |options| Box::new(AiPlan::new(options)))
    },
    opening: Opening {
        // P-002. Some replies write `null` for an empty list of calls.
        keys: &[
            Needed::new(&["thought"], &[Shape::Text]),
            Needed::new(&["response_mode"], &[Shape::Text]),
            Needed::new(&["direct_response"], &[Shape::Text, Shape::Null]),
            Needed::new(&["tool_calls"], &[Shape::List, Shape::Null]),
        ],
        ..Opening::NONE
    },
    settings: options::SETTINGS,
    rules: rules::RULES,
    write: Some(|events| write::write(events, Variant::V1)),
    prompt: Some(prompt::prompt),
    schema: Some(schema::schema),
    examples: Examples { languages: &["json"], fenced: true },
};

struct AiPlan {
    front: Front<Plans>,
    texts: Texts,
    looping: bool,
    variant: Variant,
}

impl AiPlan {
    fn new(options: &Arc<Options>) -> AiPlan {
        AiPlan {
            front: Front::new(Plans::new(options), &options.limits),
            texts: options.texts.clone(),
            looping: options.tool_loop,
            variant: options.of::<PlanOptions>().variant,
        }
    }

    /// Reports the outcome of the reply and emits its plan.
    fn conclude(&mut self, cut: bool, out: &mut dyn Output) {
        let plans = &mut self.front.body;
        let (chosen, first, others) = (plans.chosen.take(), plans.first.take(), plans.others.take());
        let Some(read) = chosen.or(first) else { return self.no_plan(cut, out) };
        let Read { mut checked, frame, start, end, others: before, sent, unsent, .. } = read;
        if checked.valid && checked.acts && cut {
            let message = "the reply was cut; no call of its plan may run";
            checked.reports.push(Report::new(rules::TRUNCATED, start, end.offset, message));
            checked.valid = false;
        }
        if checked.valid && checked.acts && self.front.body.outside.goes_on() {
            let message = "the plan stands in a sentence; no call of it may run";
            checked.reports.push(Report::new(rules::PLAN_ASIDE, start, end.offset, message));
            checked.valid = false;
        }
        self.front.body.outside.finish(&frame, cut || end.closed_by_us, &mut |report| out.report(report));
        checked.reports.drain(..).for_each(|report| out.report(report));
        for (place, end) in [before, others].into_iter().flatten() {
            let message = "the reply has more than one plan";
            let repair = if checked.valid { "not used; the first valid one is" } else { "not used" };
            out.report(Report::new(rules::MULTIPLE_PLANS, place, end, message).repaired(repair));
        }
        if !checked.valid {
            let answers = !unsent.is_empty() && !self.front.body.answered;
            if checked.lost_calls || checked.lost && !answers {
                let report = Report::new(rules::PLAN_UNUSED, start, end.offset, "the plan cannot be used");
                out.report(report.repaired("the safe fallback stands in for it"));
            }
            if answers {
                // No other object is the plan. The text of this one is the answer all the same, as if it had
                // been emitted before.
                out.intent(Intent::FinalText(&unsent));
                self.front.body.answered = true;
            }
            return self.fall_back(if cut { "truncated" } else { "plan_invalid" }, out);
        }
        let executable = checked.calls > 0;
        let waits = executable && self.looping;
        if executable && !sent && !waits {
            out.intent(Intent::ThinkingEnd);
        }
        let plan = Plan { plan: checked.plan, is_fallback: false };
        out.act(Action::Plan(plan));
        if !self.front.body.answered && !waits {
            out.intent(Intent::FinalText(&self.texts.running));
        }
    }

    /// Ends a reply in which nothing looks like a plan.
    fn without_plan(&mut self, preface: &str, cut: bool, out: &mut dyn Output) {
        if let Some(form) = marker::form(preface) {
            let (at, end) = self.front.span();
            rules::MARKER.declare(form, at, end, out);
            return self.fall_back("parsing_error", out);
        }
        if !self.front.body.outside.is_prose() || self.front.body.cut {
            return self.conclude(cut, out);
        }
        out.intent(Intent::FinalText(preface));
        self.answered_in_prose(out);
    }

    /// Reports that the answer was prose.
    fn answered_in_prose(&mut self, out: &mut dyn Output) {
        self.front.body.answered = true;
        let ((at, end), message) = (self.front.span(), "there is no plan in the reply");
        let report = Report::new(rules::PLAN_MISSING, at, end, message);
        out.report(report.row("R-70").repaired("its text is the answer"));
        self.fall_back("plan_missing", out);
    }

    /// Ends a reply without plan and prose: only thoughts, nothing, or the beginning of an object.
    fn no_plan(&mut self, cut: bool, out: &mut dyn Output) {
        let (at, end) = self.front.span();
        let plans = &mut self.front.body;
        if let Some(Aside { start, end, behind }) = plans.aside {
            plans.outside.finish_aside(start, behind, &mut |report| out.report(report));
            let message = "the plan stands in a thought; no call of it may run";
            let report = Report::new(rules::REPAIR_UNSAFE, start, end, message);
            out.report(report.repaired("the safe fallback"));
            return self.fall_back(if cut { "truncated" } else { "plan_invalid" }, out);
        }
        let message = "there is no plan in the reply";
        let report = Report::new(rules::PLAN_MISSING, at, end, message);
        out.report(report.repaired("the safe fallback"));
        let reason = match cut {
            _ if plans.cut || plans.begun => "parsing_error",
            true => "truncated",
            false => "answer_missing",
        };
        self.fall_back(reason, out);
    }

    /// Emits the safe fallback in place of an unusable plan (P-017).
    fn fall_back(&mut self, reason: &'static str, out: &mut dyn Output) {
        out.fall_back(reason);
        if !self.front.body.thought && !self.front.body.answered {
            out.intent(Intent::Phase("".into(), self.front.place()));
            out.intent(Intent::PhaseText(&self.texts.plan_thought));
        }
        if !self.front.body.answered {
            out.intent(Intent::ThinkingEnd);
        }
        let plan = fallback::plan(self.variant, &self.texts);
        let plan = Plan { plan, is_fallback: true };
        out.act(Action::Plan(plan));
    }
}

impl Dialect for AiPlan {
    #[inline]
    fn text(&mut self, text: &str, out: &mut dyn Output) {
        self.front.text(text, out);
    }

    fn finish(&mut self, ending: Ending, out: &mut dyn Output) {
        match self.front.finish(out) {
            Reply::Plain => self.answered_in_prose(out),
            Reply::Text(text) => self.without_plan(&text, ending.cut, out),
            Reply::Structure => self.conclude(ending.cut, out),
        }
    }

    fn place(&self) -> Place {
        self.front.place()
    }

    fn held(&self) -> usize {
        self.front.held()
    }

    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn write(&self, events: &[Event<'_>]) -> Option<String> {
        Some(write::write(events, self.variant))
    }
}
