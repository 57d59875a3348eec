//! `ai_say`: the answer of a dialogue round, one JSON object (S-051 to S-055).
//!
//! `parse` finds the answer among the objects, `message` hands its text on while it arrives, `response` tells what stands
//! beside it, `fields` reads the rest, `around` watches the text outside. What the answer leads to is decided in `dialogue`.

mod around;
mod fields;
mod mention;
mod message;
mod object;
mod options;
mod other;
mod parse;
mod placeholder;
mod prompt;
mod response;
mod rules;
mod schema;
mod stands;
mod whole;
mod write;

use std::sync::Arc;

use super::draft::LeadingThink;
use super::opening::Opening;
use super::preface::{Overflow, Preface};
use super::{Action, Dialect, Ending, Entry, Examples, Intent, Output, echo, marker};
use crate::event::Event;
use crate::exit::Answer;
use crate::finding::Report;
use crate::limits::Limits;
use crate::options::Options;
use crate::repair::json;
use crate::span::Place;

/// The table entry.
pub(super) const ENTRY: Entry = Entry {
    name: "ai_say",
    summary: "one JSON object, the answer of a dialogue round",
    reader: |options| {
        echo::watch(options, rules::EXAMPLE_ECHO, prompt::prompt, |options| Box::new(AiSay::new(options)))
    },
    opening: Opening {
        keys: &["assessment", "response", "should_exit", "exit_reason"],
        common: &["response", "exit_reason"],
        ..Opening::NONE
    },
    settings: options::SETTINGS,
    rules: rules::RULES,
    write: Some(write::write),
    prompt: Some(prompt::prompt),
    schema: Some(schema::schema),
    examples: Examples { languages: &["json"], fenced: false },
};

struct AiSay {
    draft: LeadingThink,
    reader: json::Reader,
    answers: parse::Answers,
    preface: Preface,
    limits: Limits,
    end: Place,
    role: String,
    /// What the model said, once the reply has ended.
    said: Answer,
}

impl AiSay {
    fn new(options: &Arc<Options>) -> AiSay {
        AiSay {
            draft: LeadingThink::new(rules::DRAFT, &options.limits),
            reader: json::Reader::chat(&options.limits).seeking(&fields::TOP),
            answers: parse::Answers::new(options),
            preface: Preface::new(options.limits.hold),
            limits: options.limits.clone(),
            end: Place::START,
            role: options::role(options),
            said: Answer::default(),
        }
    }

    fn begin(&mut self, rest: &str, out: &mut dyn Output) {
        self.end = self.draft.place();
        self.reader.start_at(self.end);
        self.answers.thoughts.found_in_draft(self.draft.found());
        self.answers.around.start_at(self.end);
        self.preface.start_at(self.end.offset);
        self.read(rest, out);
    }

    /// Text behind a leading draft.
    fn read(&mut self, text: &str, out: &mut dyn Output) {
        if text.is_empty() {
            return;
        }
        let start = self.end;
        self.end.advance(text);
        if self.preface.is_plain() {
            return out.intent(Intent::FinalText(text));
        }
        let AiSay { preface, reader, answers, .. } = self;
        let overflow = preface.push(text, |text, preface| {
            reader.push(text, &mut parse::Feed { answers, preface, out: &mut *out });
            answers.begun
        });
        if let Some(Overflow { held, last, rest }) = overflow {
            let message = "more text before the answer than `limits.hold`";
            let place = start.after(last);
            let report = Report::new(rules::LIMIT_EXCEEDED, place, place.offset, message);
            out.report(report.repaired("given as the message"));
            out.intent(Intent::FinalText(&held));
            out.intent(Intent::FinalText(rest));
        }
    }

    /// The end of a reply in which nothing looked like an answer.
    fn without_answer(&mut self, preface: &str, ending: Ending, out: &mut dyn Output) {
        let at = self.draft.place();
        let report = |rule, message: &str, repair: &str| {
            Report::new(rule, at, self.end.offset, message).repaired(repair)
        };
        let text = preface.trim();
        if let Some(form) = marker::form(text) {
            return rules::MARKER.declare(form, at, self.end.offset, out);
        }
        if self.answers.cut && !text.is_empty() {
            out.report(report(rules::TRUNCATED, "the answer is cut before its first field", "fallback text"));
            return out.fall_back(if ending.cut { "truncated" } else { "message_missing" });
        }
        if text.is_empty() || placeholder::is_placeholder(text) {
            if !text.is_empty() {
                let message = "the reply is a placeholder of the instructions";
                out.report(report(rules::PLACEHOLDER_COPIED, message, "not taken"));
            }
            out.report(report(rules::MESSAGE_MISSING, "the reply has no message", "fallback text"));
            if !ending.cut {
                out.fall_back("message_missing");
            }
            return;
        }
        // It is the message as it stands.
        out.intent(Intent::FinalText(preface));
        out.report(report(
            rules::UNSTRUCTURED,
            "the reply holds no answer object",
            "its text is the message",
        ));
        out.fall_back("unstructured");
    }
}

impl Dialect for AiSay {
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
        if self.preface.is_plain() {
            let at = self.draft.place();
            let report =
                Report::new(rules::UNSTRUCTURED, at, self.end.offset, "the reply holds no answer object");
            out.report(report.repaired("its text is the message"));
            out.fall_back("unstructured");
        } else {
            let AiSay { answers, preface, .. } = self;
            self.reader.finish(&mut parse::Feed { answers, preface, out });
            if let Some((place, text)) = answers.thoughts.finish(self.end.offset, out) {
                answers.around.start_at(place);
                let mut reader = json::Reader::chat(&self.limits)
                    .seeking(&fields::TOP)
                    .without_thoughts()
                    .starting_at(place);
                reader.push(&text, &mut parse::Feed { answers, preface, out });
                reader.finish(&mut parse::Feed { answers, preface, out });
            }
            match self.preface.take().filter(|_| !self.answers.begun) {
                Some(preface) => self.without_answer(&preface, ending, out),
                None => {
                    self.said = self.answers.finish(ending.cut, self.end, &mut self.preface, out);
                    if !self.answers.is_sent() && !ending.cut {
                        out.fall_back("message_missing");
                    }
                }
            }
        }
        if !ending.failed {
            out.act(Action::Answer(self.said.clone()));
        }
    }

    fn place(&self) -> Place {
        if self.draft.is_over() { self.end } else { self.draft.place() }
    }

    fn held(&self) -> usize {
        self.draft.held() + self.reader.held() + self.answers.held() + self.preface.held()
    }

    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn write(&self, events: &[Event<'_>]) -> Option<String> {
        Some(write::answer(&self.said, &self.role, events))
    }
}
