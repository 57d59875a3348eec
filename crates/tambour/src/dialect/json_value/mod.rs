//! JSON value dialect: one JSON value and nothing else, as services promise with `json_object` and
//! `json_schema`.
//!
//! `read` finds the value in a reply and checks it against the schema. Only reasoning streams; the outcome at
//! the end is a valid value as text of the answer, or an error.

mod options;
mod prompt;
mod read;
mod rules;

use std::ops::Range;
use std::sync::Arc;

use super::draft::{self, LeadingThink};
use super::opening::Opening;
use super::{Dialect, Ending, Entry, Examples, Intent, Output, echo, marker};
use crate::event::Event;
use crate::finding::Report;
use crate::lex::marks::{self, Kind, Seen};
use crate::lex::space::is_blank;
use crate::options::Options;
use crate::span::Place;
use crate::texts::counted;
use read::{Fault, Wanted};

/// Entry in the table of dialects. `auto` never chooses it, because any reply may contain a JSON value.
pub(super) const ENTRY: Entry = Entry {
    name: "json_value",
    summary: "one JSON value, held against a schema; a reply without a valid one is an error",
    reader: |options: &Arc<Options>| {
        echo::tell(options, rules::EXAMPLE_ECHO, prompt::prompt, |options| Box::new(Json::new(options)))
    },
    opening: Opening::NONE,
    settings: options::SETTINGS,
    rules: rules::RULES,
    write: None,
    prompt: Some(prompt::prompt),
    schema: Some(options::schema),
    examples: Examples { languages: &["json"], fenced: false },
};

struct Json {
    wanted: Wanted,
    /// Leading reasoning, which streams.
    draft: LeadingThink,
    thoughts: bool,
    /// The reply after it, up to `limits.value` bytes.
    text: String,
    /// Set if the reply is longer.
    over: bool,
    end: Place,
    /// The value, once it has been accepted.
    value: Option<String>,
}

impl Json {
    fn new(options: &Arc<Options>) -> Json {
        Json {
            wanted: Wanted::new(options),
            draft: LeadingThink::new(rules::DRAFT, &options.limits),
            thoughts: false,
            text: String::new(),
            over: false,
            end: Place::START,
            value: None,
        }
    }

    fn keep(&mut self, text: &str) {
        if self.text.len() + text.len() <= self.wanted.options.limits.value {
            self.text.push_str(text);
        } else {
            self.over = true;
        }
    }

    /// Finds and checks the value of the reply.
    fn decide(&mut self, cut: bool, out: &mut dyn Output) -> Result<String, Fault> {
        let at = self.draft.place();
        if self.over {
            let most = self.wanted.options.limits.value;
            let message = format!("the reply is longer than `limits.value`, {}", counted(most, "byte"));
            return Err(Fault::new(rules::LIMIT_EXCEEDED, message));
        }
        let rest = std::mem::take(&mut self.text);
        if let Some(form) = marker::form(rest.trim()) {
            rules::MARKER.declare(form, at, self.end.offset, out);
            return Err(Fault::missing("the model says that it cannot comply"));
        }
        let found = self.wanted.find(&rest);
        let mut from = 0;
        if let Some(mark) = unopened(&rest[..found.span.start]) {
            let place = at.after(&rest[..mark.start]);
            let report =
                Report::new(rules::THINK_UNOPENED, place, at.offset + mark.end, "closes no reasoning");
            out.report(report.repaired("what stands before it is reasoning"));
            draft::attributes(rules::THINK_ATTRIBUTES, &rest[mark.clone()], place, out);
            let thoughts = &mut self.thoughts;
            Phases { out, thoughts }.intent(Intent::Draft(&rest[..mark.start]));
            from = mark.end;
        }
        let (reports, value) = self.wanted.judge(&rest, from, found, cut);
        reports.into_iter().for_each(|report| out.report(read::moved(report, at)));
        self.text = rest;
        value
    }
}

/// Returns the last closing mark of reasoning before the value that nothing opened.
fn unopened(text: &str) -> Option<Range<usize>> {
    let (mut at, mut last) = (0, None);
    while let Some(found) = marks::find(&text.as_bytes()[at..]) {
        at += found;
        match marks::at(&text.as_bytes()[at..]) {
            Seen::Mark(mark, len) => {
                last = (mark.kind == Kind::Close).then_some(at..at + len).or(last);
                at += len;
            }
            Seen::No | Seen::Part => at += 1,
        }
    }
    last
}

/// Output that shows reasoning as one phase.
struct Phases<'a> {
    out: &'a mut dyn Output,
    thoughts: &'a mut bool,
}

impl Output for Phases<'_> {
    fn intent(&mut self, intent: Intent<'_>) {
        let Intent::Draft(text) = intent else { return };
        if is_blank(text) && !*self.thoughts {
            return;
        }
        if !std::mem::replace(self.thoughts, true) {
            self.out.intent(Intent::Phase("".into(), Place::START));
        }
        self.out.intent(Intent::PhaseText(text));
    }

    fn queries(&mut self, _: super::Written<'_>, _: Place, _: usize) -> Option<usize> {
        None
    }

    fn act(&mut self, _: super::Action) {}

    fn report(&mut self, report: Report) {
        self.out.report(report);
    }

    fn fall_back(&mut self, _: &'static str) {}

    fn fail(&mut self, _: &'static str, _: &str) {}
}

impl Dialect for Json {
    fn text(&mut self, text: &str, out: &mut dyn Output) {
        self.end.advance(text);
        if self.draft.is_over() {
            return self.keep(text);
        }
        let Json { draft, thoughts, .. } = self;
        let rest = draft.push(text, &mut Phases { out, thoughts });
        self.keep(&rest);
    }

    fn reasoning(&mut self, text: &str, out: &mut dyn Output) {
        Phases { out, thoughts: &mut self.thoughts }.intent(Intent::Draft(text));
    }

    fn finish(&mut self, ending: Ending, out: &mut dyn Output) {
        if !self.draft.is_over() {
            let Json { draft, thoughts, .. } = self;
            let rest = draft.finish(&mut Phases { out, thoughts });
            self.keep(&rest);
        }
        if ending.failed {
            // The failure has its own event.
            let message = "the reply broke off";
            return out.report(Report::new(rules::JSON_INCOMPLETE, Place::START, self.end.offset, message));
        }
        match self.decide(ending.cut, out) {
            Ok(value) => {
                out.intent(Intent::FinalText(&value));
                self.value = Some(value);
            }
            Err(_) if ending.calls && !ending.cut => {
                // The model calls tools and answers after they have run; its text so far is not an answer.
                let Json { text, thoughts, .. } = self;
                Phases { out, thoughts }.intent(Intent::Draft(text));
            }
            Err(Fault { rule, message }) => {
                out.report(Report::new(rule, Place::START, self.end.offset, &*message));
                out.fail(rule.code, &message);
            }
        }
    }

    fn place(&self) -> Place {
        self.end
    }

    /// The value is delivered complete and not counted.
    fn held(&self) -> usize {
        self.draft.held()
    }

    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn write(&self, _: &[Event<'_>]) -> Option<String> {
        self.value.clone()
    }
}
