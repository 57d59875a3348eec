//! `ai_say` dialect: the answer of a dialogue round, one JSON object (S-051 to S-055).
//!
//! The message of an answer is a member of `response`; its key, the role key, names the speaker (S-052).
//! `parse` finds the answer among the objects and `message` streams the text of the message. `response`
//! reports the other members of `response`, `fields` reads the remaining fields, `names` lists their other
//! spellings, and `prose` tracks the text outside the objects. The consequences of an answer are decided in
//! `dialogue`, not here.

mod examples;
mod field_extents;
mod fields;
mod marks;
mod message;
mod names;
mod object;
mod parse;
mod placeholder;
mod prompt;
mod prose;
mod response;
mod rules;
mod shapes;
mod values;
mod write;

use std::sync::Arc;

use super::opening::{NeededKey, Opening, ValueShape};
use super::structure_reader::{ReplyShape, StructureReader};
use super::{
    Dialect, DialectEntry, ExampleStyle, Intent, IntentSink, ReplyAction, ReplyEnding, echo, marker,
};
use crate::event::Event;
use crate::exit::RoundAnswer;
use crate::finding::FindingReport;
use crate::options::{Options, Setting, SettingValues};
use crate::span::{Extent, Place};
use crate::texts::Language;

pub use fields::parse_flag;

/// Entry in the table of dialects.
pub(super) const ENTRY: DialectEntry = DialectEntry {
    name: "ai_say",
    summary: "one JSON object, the answer of a dialogue round",
    reader: |options| {
        echo::refuse_echoes(options, rules::EXAMPLE_ECHO, prompt::prompt, |options| {
            Box::new(AiSayDialect::new(options))
        })
    },
    opening: Opening {
        // S-051, S-052. The last two may have other types too, which are repaired (S-055).
        keys: &[
            NeededKey::new(&["assessment"], &[ValueShape::Object]),
            NeededKey::new(&["response"], &[ValueShape::Object, ValueShape::Text]),
            NeededKey::new(&["should_exit"], &[ValueShape::Bool, ValueShape::Text]),
            NeededKey::new(&["exit_reason"], &[ValueShape::Text, ValueShape::Null]),
        ],
        ..Opening::NONE
    },
    settings: SETTINGS,
    rules: rules::RULES,
    write: Some(write::write),
    prompt: Some(prompt::prompt),
    schema: Some(write::schema),
    grammar: Some(write::grammar),
    examples: ExampleStyle { languages: &["json"], includes_fence: false },
};

/// Options of this dialect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct RoundOptions {
    /// Key of the message; `None` means the key of the texts' language (S-052).
    role: Option<String>,
    /// Additional keys that mark an object as an answer.
    answer_keys: &'static [&'static str],
}

const SETTINGS: &[Setting] = &[Setting {
    name: "ai_say.role",
    description: "key of the message in `response` (S-052); else `咨询师` or `counsellor`, by the language of the texts",
    default: "",
    accepts: SettingValues::Text(|options, role| {
        options.update_section(|section: &mut RoundOptions| section.role = Some(role))
    }),
}];

/// Default keys of the message, by language.
const ROLES: [(Language, &str); 2] = [(Language::Zh, "咨询师"), (Language::En, "counsellor")];

/// The key that S-052 names; it is accepted whatever the language of the texts.
const SPEC_ROLE: &str = ROLES[0].1;

/// Returns the key of the message if none is configured.
fn default_role(options: &Options) -> &'static str {
    let is_of_language = |&&(language, _): &&(Language, &str)| language == options.texts.language;
    ROLES.iter().find(is_of_language).unwrap_or(&ROLES[0]).1
}

/// Returns the key of the message.
pub fn role(options: &Options) -> String {
    options.section::<RoundOptions>().role.unwrap_or_else(|| default_role(options).to_owned())
}

/// Makes objects with these top-level keys count as answers too.
pub fn add_answer_keys(options: &mut Options, keys: &'static [&'static str]) {
    options.update_section(|section: &mut RoundOptions| section.answer_keys = keys);
}

/// Returns the additional keys that mark an object as an answer.
fn answer_keys(options: &Options) -> &'static [&'static str] {
    options.section::<RoundOptions>().answer_keys
}

/// Returns the keys under which the message is accepted, preferred first; if no key is configured, the keys
/// of all languages.
pub fn roles(options: &Options) -> Vec<String> {
    match options.section::<RoundOptions>().role {
        Some(role) => vec![role],
        None => {
            let main_role = default_role(options);
            let other_roles = ROLES.iter().map(|(_, role)| *role).filter(|role| *role != main_role);
            std::iter::once(main_role).chain(other_roles).map(str::to_owned).collect()
        }
    }
}

struct AiSayDialect {
    reader: StructureReader<parse::AiSayReader>,
    /// Key under which [`Dialect::write`] puts the message.
    role: String,
    /// The model's answer, set at the end of the reply.
    answer: RoundAnswer,
}

impl AiSayDialect {
    fn new(options: &Arc<Options>) -> AiSayDialect {
        AiSayDialect {
            reader: StructureReader::new(parse::AiSayReader::new(options), &options.limits),
            role: role(options),
            answer: RoundAnswer::default(),
        }
    }

    /// Ends a reply in which nothing looked like an answer; `reply_text` is all of it.
    fn finish_unstructured(&mut self, reply_text: &str, ending: ReplyEnding, out: &mut dyn IntentSink) {
        let Extent { place: at, end } = self.reader.extent();
        let report = |rule, message: &str, repair: &str| {
            FindingReport::new(rule, at, end, message).with_repair(repair)
        };
        let text = reply_text.trim();
        if let Some(form) = marker::marker_form(text) {
            return rules::MARKER_RULES.report_marker(form, at, end, out);
        }
        if let Some(object_start) = self.reader.structure.truncated_object.filter(|_| !text.is_empty()) {
            let message = "the answer is cut off before its first field";
            let object_len = end.saturating_sub(object_start.offset);
            let text_len = reply_text.floor_char_boundary(reply_text.len().saturating_sub(object_len));
            let text_before = &reply_text[..text_len];
            if text_before.lines().all(|line| prose::is_blank_or_fence(line.trim())) {
                out.report(report(rules::TRUNCATED, message, "fallback text"));
                return out.fall_back(if ending.is_truncated { "truncated" } else { "message_missing" });
            }
            // The text before the truncated object is the message.
            out.report(
                FindingReport::new(rules::TRUNCATED, object_start, end, message).with_repair("left out"),
            );
            out.emit_intent(Intent::FinalText(text_before));
            return self.report_unstructured(out);
        }
        if let Some(inner) = shapes::find_nested_answer(text, &self.reader.structure.limits) {
            // A text that contains an assessment is never shown as written.
            let message = "the answer is inside another value";
            out.report(report(rules::ANSWER_WRAPPED, message, "its message is read, the rest not used"));
            let name = shapes::find_response_key(&inner, &self.reader.structure.roles).unwrap_or("response");
            if let Some(response) = inner.get(name) {
                self.reader.structure.read_response(response, shapes::ValuePlace::new(at), out);
            }
            if !self.reader.structure.is_sent() {
                out.report(report(rules::MESSAGE_MISSING, "the answer has no message", "fallback text"));
                if !ending.is_truncated {
                    out.fall_back("message_missing");
                }
            }
            return;
        }
        if let Some((name, object)) = shapes::parse_lone_message(text, &self.reader.structure.limits)
            && let Some(response) = object.get(&name)
        {
            self.reader.structure.read_response(response, shapes::ValuePlace::new(at), out);
            if self.reader.structure.is_sent() {
                return self.report_unstructured(out);
            }
        }
        let is_placeholder = placeholder::is_placeholder(text);
        if is_placeholder || placeholder::is_hollow(text) {
            if is_placeholder {
                let message = "the reply is a placeholder from the instructions";
                out.report(report(rules::PLACEHOLDER_COPIED, message, "not taken"));
            }
            out.report(report(rules::MESSAGE_MISSING, "the reply has no message", "fallback text"));
            if !ending.is_truncated {
                out.fall_back("message_missing");
            }
            return;
        }
        // The reply is the message as written.
        out.emit_intent(Intent::FinalText(reply_text));
        self.report_unstructured(out);
    }

    /// Reports a reply without an answer object, after its text has been emitted.
    fn report_unstructured(&self, out: &mut dyn IntentSink) {
        let Extent { place: at, end } = self.reader.extent();
        let report = FindingReport::new(rules::UNSTRUCTURED, at, end, "the reply holds no answer object");
        out.report(report.with_repair("its text is the message"));
        out.fall_back("unstructured");
    }
}

impl Dialect for AiSayDialect {
    #[inline]
    fn push_text(&mut self, text: &str, out: &mut dyn IntentSink) {
        self.reader.push_text(text, out);
    }

    fn finish(&mut self, ending: ReplyEnding, out: &mut dyn IntentSink) {
        match self.reader.finish(out) {
            ReplyShape::Plain => self.report_unstructured(out),
            ReplyShape::Text(text) => self.finish_unstructured(&text, ending, out),
            ReplyShape::Structure => {
                let end = self.reader.place();
                let StructureReader { structure, preface, .. } = &mut self.reader;
                self.answer = structure.finish(ending.is_truncated, end, preface, out);
                if !structure.is_sent() && !ending.is_truncated {
                    out.fall_back("message_missing");
                }
            }
        }
        if !ending.is_failed {
            out.emit_action(ReplyAction::Answer(self.answer.clone()));
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
        Some(write::write_answer(&self.answer, &self.role, events))
    }
}
