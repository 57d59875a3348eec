//! AIPlan: one JSON object that says what is to be done (P-001 to P-037).
//!
//! `parse` reads objects while they arrive, each as an `object`, `check` and `calls` hold a complete one against the contract, `modes` has the modes as
//! data, `around` knows what stands beside the plan. Text streams; calls wait for the end of the reply, and come only of
//! a plan that is complete, valid and not cut.

mod around;
mod calls;
mod check;
mod fallback;
mod modes;
mod object;
mod parse;
mod prompt;
mod rules;
mod schema;
mod write;

use super::draft::LeadingThink;
use super::{Dialect, Ending, Entry, Examples, Intent, MARKER, Output, echo};
use crate::event::{Event, PlanOutcome};
use crate::finding::Report;
use crate::options::Options;
use crate::repair::json;
use crate::span::Place;
use crate::texts::Texts;
use around::Around;
use parse::{Feed, Plans, Read};

/// The table entry.
pub(super) const ENTRY: Entry = Entry {
    name: "aiplan",
    summary: "a JSON plan with a response mode and tool calls",
    reader: |options| {
        echo::watch(options, rules::EXAMPLE_ECHO, prompt::prompt, |options| Box::new(AiPlan::new(options)))
    },
    rules: rules::RULES,
    write: Some(write::write),
    prompt: Some(prompt::prompt),
    schema: Some(schema::schema),
    examples: Examples { languages: &["json"], fenced: true },
};

struct AiPlan {
    draft: LeadingThink,
    reader: json::Reader,
    plans: Plans,
    texts: Texts,
    looping: bool,
    /// Bytes of the failure marker that the reply has been so far, as long as it may be that.
    marker: Option<usize>,
    end: Place,
}

impl AiPlan {
    fn new(options: &Options) -> AiPlan {
        AiPlan {
            draft: LeadingThink::new(rules::DRAFT_UNCLOSED),
            reader: json::Reader::chat(&options.limits),
            plans: Plans::new(options),
            texts: options.texts.clone(),
            looping: options.tool_loop,
            marker: Some(0),
            end: Place::START,
        }
    }

    fn begin(&mut self, rest: &str, out: &mut dyn Output) {
        self.end = self.draft.place();
        let reader = std::mem::replace(&mut self.reader, json::Reader::chat(&Default::default()));
        self.reader = reader.starting_at(self.end);
        self.plans.around = Around::starting_at(self.end);
        if let Some(place) = self.draft.opened() {
            self.plans.around.led_by(place);
        }
        self.read(rest, out);
    }

    fn read(&mut self, text: &str, out: &mut dyn Output) {
        self.end.advance(text);
        if let Some(matched) = self.marker {
            self.marker = marker(matched, text);
        }
        self.reader.push(text, &mut Feed { plans: &mut self.plans, out });
    }

    /// Reports what the reply came to, and sends its plan.
    fn conclude(&mut self, cut: bool, out: &mut dyn Output) {
        let extra = self.plans.seen > 1;
        let (chosen, first) = (self.plans.chosen.take(), self.plans.first.take());
        let Some(read) = chosen.or(first) else { return self.no_plan(out) };
        let Read { mut checked, frame, end, sent, unsent, .. } = read;
        if checked.valid && checked.acts && cut {
            let message = "the reply was cut; no call of its plan may run";
            checked.reports.push(Report::new(rules::TRUNCATED, end.place, end.offset, message));
            checked.valid = false;
        }
        self.plans.around.finish(&frame, cut || end.closed_by_us, &mut |report| out.report(report));
        checked.reports.into_iter().for_each(|report| out.report(report));
        if extra {
            let message = "the reply has more than one plan";
            let repair = if checked.valid { "the first valid one is used" } else { "none is used" };
            let report = Report::new(rules::MULTIPLE_PLANS, end.place, end.offset, message);
            out.report(report.repaired(repair));
        }
        if !checked.valid {
            if !unsent.is_empty() && !self.plans.answered {
                // No other object is the plan. Its text answers all the same, as it would have if it had been sent before.
                out.intent(Intent::FinalText(&unsent));
                self.plans.answered = true;
            }
            return self.fall_back(if cut { "truncated" } else { "plan_invalid" }, out);
        }
        let executable = !checked.calls.is_empty();
        let plan = Event::Plan(Box::new(PlanOutcome { plan: checked.plan, executable, is_fallback: false }));
        let waits = executable && self.looping;
        if executable && !sent && !waits {
            out.intent(Intent::ThinkingEnd);
        }
        out.intent(Intent::Extension(Box::new(plan)));
        for call in checked.calls {
            out.intent(Intent::Extension(Box::new(Event::ToolCall(Box::new(call)))));
        }
        if !self.plans.answered && !waits {
            out.intent(Intent::FinalText(&self.texts.running));
        }
    }

    fn no_plan(&mut self, out: &mut dyn Output) {
        let place = self.draft.place();
        let marker = self.marker == Some(MARKER.len());
        let report = if marker {
            let message = "the model declared that it cannot answer in this form";
            Report::new(rules::PARSING_ERROR_MARKER, place, self.end.offset, message)
        } else {
            Report::new(rules::PLAN_MISSING, place, self.end.offset, "there is no plan in the reply")
        };
        out.report(report.repaired("the safe fallback"));
        self.fall_back("parsing_error", out);
    }

    /// The plan cannot be used: the safe fallback stands in for it (P-017).
    fn fall_back(&mut self, reason: &'static str, out: &mut dyn Output) {
        out.fall_back(reason);
        if !self.plans.thought && !self.plans.answered {
            out.intent(Intent::Phase("".into(), self.end));
            out.intent(Intent::PhaseText(&self.texts.plan_thought));
        }
        if !self.plans.answered {
            out.intent(Intent::ThinkingEnd);
        }
        let plan = fallback::plan(&self.texts);
        let outcome = PlanOutcome { plan, executable: false, is_fallback: true };
        out.intent(Intent::Extension(Box::new(Event::Plan(Box::new(outcome)))));
    }
}

/// Bytes of the failure marker after `text`, if nothing but white space stands beside it.
fn marker(mut matched: usize, text: &str) -> Option<usize> {
    for c in text.chars() {
        if MARKER[matched..].starts_with(c) {
            matched += c.len_utf8();
        } else if !c.is_whitespace() || !(matched == 0 || matched == MARKER.len()) {
            return None;
        }
    }
    Some(matched)
}

impl Dialect for AiPlan {
    #[inline]
    fn text(&mut self, text: &str, out: &mut dyn Output) {
        if self.draft.is_over() {
            return self.read(text, out);
        }
        let rest = self.draft.push(text, out);
        if self.draft.is_over() {
            self.begin(&rest, out);
        }
    }

    fn finish(&mut self, ending: Ending, out: &mut dyn Output) {
        if !self.draft.is_over() {
            let rest = self.draft.finish(out);
            self.begin(&rest, out);
        }
        self.reader.finish(&mut Feed { plans: &mut self.plans, out });
        self.conclude(ending.cut, out);
    }

    fn place(&self) -> Place {
        if self.draft.is_over() { self.end } else { self.draft.place() }
    }

    fn held(&self) -> usize {
        self.draft.held() + self.reader.held()
    }

    fn name(&self) -> &'static str {
        ENTRY.name
    }
}
