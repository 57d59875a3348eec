//! `ai_say` dialect: the answer of a dialogue round, one JSON object (S-051 to S-055).
//!
//! `parse` finds the answer among the objects and `message` streams its text. `response` reports the other
//! members of `response`, `fields` reads the remaining fields, `names` knows their other spellings, and
//! `outside` tracks the text outside the objects. The consequences of an answer are decided in `dialogue`,
//! not here.

mod fields;
mod mention;
mod message;
mod names;
mod object;
mod options;
mod other;
mod outside;
mod parse;
mod placeholder;
mod prompt;
mod prose;
mod response;
mod rules;
mod schema;
mod stands;
mod surroundings;
mod whole;
mod write;

use std::sync::Arc;

use super::front::{Front, Reply};
use super::opening::{Needed, Opening, Shape};
use super::{Action, Dialect, Ending, Entry, Examples, Intent, Output, echo, marker};
use crate::event::Event;
use crate::exit::Answer;
use crate::finding::Report;
use crate::options::Options;
use crate::span::Place;

pub use fields::flag;
pub use options::{answers_have, role, roles};

/// Entry in the table of dialects.
pub(super) const ENTRY: Entry = Entry {
    name: "ai_say",
    summary: "one JSON object, the answer of a dialogue round",
    reader: |options| {
        echo::watch(options, rules::EXAMPLE_ECHO, prompt::prompt, |options| Box::new(AiSay::new(options)))
    },
    opening: Opening {
        // S-051, S-052. Values of the last two are repaired (S-055).
        keys: &[
            Needed::new(&["assessment"], &[Shape::Object]),
            Needed::new(&["response"], &[Shape::Object, Shape::Text]),
            Needed::new(&["should_exit"], &[Shape::Bool, Shape::Text]),
            Needed::new(&["exit_reason"], &[Shape::Text, Shape::Null]),
        ],
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
    front: Front<parse::Answers>,
    role: String,
    /// The model's answer, set at the end of the reply.
    said: Answer,
}

impl AiSay {
    fn new(options: &Arc<Options>) -> AiSay {
        AiSay {
            front: Front::new(parse::Answers::new(options), &options.limits),
            role: options::role(options),
            said: Answer::default(),
        }
    }

    /// Ends a reply in which nothing looked like an answer.
    fn without_answer(&mut self, preface: &str, ending: Ending, out: &mut dyn Output) {
        let (at, end) = self.front.span();
        let report = |rule, message: &str, repair: &str| Report::new(rule, at, end, message).repaired(repair);
        let text = preface.trim();
        if let Some(form) = marker::form(text) {
            return rules::MARKER.declare(form, at, end, out);
        }
        if let Some(cut) = self.front.body.cut.filter(|_| !text.is_empty()) {
            let message = "the answer is cut before its first field";
            let rest = end.saturating_sub(cut.offset);
            let before = &preface[..preface.floor_char_boundary(preface.len().saturating_sub(rest))];
            if before.lines().all(|line| outside::is_mark(line.trim())) {
                out.report(report(rules::TRUNCATED, message, "fallback text"));
                return out.fall_back(if ending.cut { "truncated" } else { "message_missing" });
            }
            // the text before the truncated object is the answer.
            out.report(Report::new(rules::TRUNCATED, cut, end, message).repaired("left out"));
            out.intent(Intent::FinalText(before));
            return self.unstructured(out);
        }
        if let Some(inner) = other::buried(text, &self.front.body.limits) {
            // A text that contains an assessment is never shown as written.
            let message = "the answer stands inside of another value";
            out.report(report(rules::ANSWER_WRAPPED, message, "its message is read, the rest not used"));
            let name = other::response_of(&inner, &self.front.body.roles).unwrap_or("response");
            if let Some(response) = inner.get(name) {
                self.front.body.take(response, other::Standing::at(at), out);
            }
            if !self.front.body.is_sent() {
                out.report(report(rules::MESSAGE_MISSING, "the answer has no message", "fallback text"));
                if !ending.cut {
                    out.fall_back("message_missing");
                }
            }
            return;
        }
        if let Some((name, object)) = other::lone(text, &self.front.body.limits)
            && let Some(response) = object.get(&name)
        {
            self.front.body.take(response, other::Standing::at(at), out);
            if self.front.body.is_sent() {
                return self.unstructured(out);
            }
        }
        let copied = placeholder::is_placeholder(text);
        if copied || placeholder::is_hollow(text) {
            if copied {
                let message = "the reply is a placeholder of the instructions";
                out.report(report(rules::PLACEHOLDER_COPIED, message, "not taken"));
            }
            out.report(report(rules::MESSAGE_MISSING, "the reply has no message", "fallback text"));
            if !ending.cut {
                out.fall_back("message_missing");
            }
            return;
        }
        // The reply is the message as written.
        out.intent(Intent::FinalText(preface));
        self.unstructured(out);
    }

    /// Reports a reply without an answer object, after its text has been emitted.
    fn unstructured(&self, out: &mut dyn Output) {
        let (at, end) = self.front.span();
        let report = Report::new(rules::UNSTRUCTURED, at, end, "the reply holds no answer object");
        out.report(report.repaired("its text is the message"));
        out.fall_back("unstructured");
    }
}

impl Dialect for AiSay {
    #[inline]
    fn text(&mut self, text: &str, out: &mut dyn Output) {
        self.front.text(text, out);
    }

    fn finish(&mut self, ending: Ending, out: &mut dyn Output) {
        match self.front.finish(out) {
            Reply::Plain => self.unstructured(out),
            Reply::Text(text) => self.without_answer(&text, ending, out),
            Reply::Structure => {
                let end = self.front.place();
                let Front { body, preface, .. } = &mut self.front;
                self.said = body.finish(ending.cut, end, preface, out);
                if !body.is_sent() && !ending.cut {
                    out.fall_back("message_missing");
                }
            }
        }
        if !ending.failed {
            out.act(Action::Answer(self.said.clone()));
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
        Some(write::answer(&self.said, &self.role, events))
    }
}
