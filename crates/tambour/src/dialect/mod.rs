//! Readers of reply formats, called dialects: one folder for each, and one file for `auto`, which detects the
//! dialect of a reply. The other files are shared by several dialects.
//!
//! A dialect knows neither the source of its bytes nor the receiver of its events. It emits the meaning of a
//! reply in order as [`Intent`]s, and its faults as [`FindingReport`]s; policy and sequencer turn these into
//! a valid stream.

mod ai_say;
mod aiplan;
mod auto;
mod call_check;
mod draft;
mod echo;
mod filament;
mod json_value;
mod jsonseq;
mod marker;
mod open_reasoning;
mod opening;
mod plain;
mod preface;
mod structure_reader;
mod surroundings;
mod thinkingml;
mod thoughts;
mod toolcall;
mod value_text;

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;

use crate::error::{Error, Result};
use crate::event::{AsideKind, Event, Extension};
use crate::exit::RoundAnswer;
use crate::finding::{FindingReport, Rule};
use crate::grammar::{Grammar, GrammarLimits};
use crate::options::{Options, Setting};
use crate::span::Place;
use crate::state::Operation;

#[doc(hidden)]
pub use ai_say::{add_answer_keys, parse_flag, role, roles};
#[doc(hidden)]
pub use opening::{NeededKey, Opening, OpeningTag, TagPosition, ValueShape};
pub(crate) use thinkingml::escape_literals;

/// Maximum length in characters of a name or text of the reply that a message or notice quotes.
const MAX_EXCERPT_CHARS: usize = 60;

/// Failure marker: the whole output of a model that cannot comply (T-025, J-055).
const FAILURE_MARKER: &str = "<<ParsingError>>";

/// One piece of the meaning that a dialect reads from a reply. Policy and sequencer turn intents into events.
#[derive(Clone, Debug, PartialEq)]
#[doc(hidden)]
pub enum Intent<'a> {
    /// The answer needs no thinking block, since no thinking preceded it.
    SkipThinking,
    /// Search summary.
    Summary(Cow<'a, str>),
    /// Start of thinking.
    ThinkingStart,
    /// Start of the next phase: its title and place. A blank title gets the fallback title.
    Phase(Cow<'a, str>, Place),
    /// Text of the current phase.
    PhaseText(&'a str),
    /// End of thinking.
    ThinkingEnd,
    /// Text of the answer.
    FinalText(&'a str),
    /// Search queries, cleaned.
    Queries(Vec<String>),
    /// Reasoning outside the contract.
    Draft(&'a str),
    /// A comment or a late thought.
    Aside {
        /// Comment or thought.
        kind: AsideKind,
        /// Text of the aside.
        text: &'a str,
    },
}

/// One action that a reply asks for.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ReplyAction {
    /// The plan with its tool calls, or the fallback plan, at the end of the reply.
    Plan(PlanIntent),
    /// One tool call, at the end of the reply.
    Call(CallIntent),
    /// The answer of a dialogue round, at the end of the reply.
    Answer(RoundAnswer),
    /// State operations, when their block closes (F-214).
    Update(UpdateIntent),
    /// An extension event for the client to display, when its block closes.
    Extension(Extension),
    /// A notice to the user that does not end the reply: its code, and its subject.
    Notice(&'static str, Option<String>),
}

/// State operations of one block.
#[doc(hidden)]
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UpdateIntent {
    /// Reason for the operations, in the model's words.
    pub analysis: String,
    /// The operations, including those that can never be applied.
    pub operations: Vec<Operation>,
    /// Set if either all operations are applied or none (F-113).
    pub is_atomic: bool,
}

/// The plan of a reply.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq)]
pub struct PlanIntent {
    /// The plan object, or the fallback (P-017). Each item of its `tool_calls` may run: it has a `name`, and
    /// `args` that satisfy the schema of that tool.
    pub plan: Value,
    /// Set if `plan` is the fallback.
    pub is_fallback: bool,
}

/// A tool call that may run. If tools are registered, its arguments satisfy the schema of its tool.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq)]
pub struct CallIntent {
    /// Name of the tool.
    pub name: String,
    /// Arguments.
    pub args: Value,
}

/// Search queries as the model wrote them.
#[derive(Clone, Copy, Debug)]
#[doc(hidden)]
pub enum RawQueries<'a> {
    /// A text that should be a JSON array.
    Text(&'a str),
    /// A JSON value.
    Value(&'a serde_json::Value),
}

/// Receiver of everything a dialect emits.
#[doc(hidden)]
pub trait IntentSink {
    /// Receives the next intent.
    fn emit_intent(&mut self, intent: Intent<'_>);

    /// Receives search queries, which the policy stage cleans. They begin at `place`, and `end` is the offset
    /// after them. Returns the number of queries used, or `None` if the value is not a list.
    fn emit_queries(&mut self, raw_queries: RawQueries<'_>, place: Place, end: usize) -> Option<usize>;

    /// Receives an action. The policy stage decides on it.
    fn emit_action(&mut self, action: ReplyAction);

    /// Receives a finding about a broken or repaired rule.
    fn report(&mut self, report: FindingReport);

    /// Requests the fallback text for `reason`, because the reply is not what was asked for. Text of
    /// the reply takes precedence over it.
    fn fall_back(&mut self, reason: &'static str);

    /// Ends the stream with an `error` event, because the reply is unusable and no text can replace it.
    fn fail(&mut self, code: &'static str, message: &str);
}

/// End of a dialect's input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(hidden)]
pub struct ReplyEnding {
    /// Set if the reply was truncated by a limit, a filter, a failure or the user: nothing unfinished may act
    ///
    pub is_truncated: bool,
    /// Set if the connection broke or the stream ended with an error: neither a JSON value nor the answer of
    /// a dialogue round is taken from the reply (S-065).
    pub is_failed: bool,
    /// Set if native tool calls accompany the reply, which then needs no text.
    pub has_native_calls: bool,
}

/// Reader of one dialect.
#[doc(hidden)]
pub trait Dialect: Send {
    /// Reads the next chunk of the reply.
    fn push_text(&mut self, text: &str, out: &mut dyn IntentSink);

    /// Reads reasoning that the upstream sends in a separate field.
    fn push_reasoning(&mut self, text: &str, out: &mut dyn IntentSink) {
        out.emit_intent(Intent::Draft(text));
    }

    /// Ends the reply.
    fn finish(&mut self, ending: ReplyEnding, out: &mut dyn IntentSink);

    /// Returns the place after all text so far.
    fn place(&self) -> Place;

    /// Returns the bytes of text held back, without values that are emitted whole (titles, summaries,
    /// queries).
    fn held_bytes(&self) -> usize;

    /// Returns the name of the dialect that the reply is read as.
    fn name(&self) -> &'static str;

    /// Returns the canonical form of the reply after its end, from its events and from data that only the
    /// dialect keeps. `None` if the events alone suffice ([`DialectEntry::write`]).
    fn write(&self, _events: &[Event<'_>]) -> Option<String> {
        None
    }
}

/// Entry in the table of dialects.
#[non_exhaustive]
pub struct DialectEntry {
    /// Public name.
    pub name: &'static str,
    /// One-line description.
    pub summary: &'static str,
    /// Builds a reader.
    #[doc(hidden)]
    pub reader: fn(&Arc<Options>) -> Box<dyn Dialect>,
    /// Beginnings by which `auto` detects the dialect.
    #[doc(hidden)]
    pub opening: Opening,
    /// Options of the dialect.
    pub settings: &'static [Setting],
    /// Rules of the dialect.
    pub rules: &'static [&'static Rule],
    /// Writes the events of a reply in this dialect, so that it passes the strict check.
    pub write: Option<fn(&[Event<'_>]) -> String>,
    /// Builds the format instructions for a system prompt (T-066, P-023), in the language of the options'
    /// texts.
    pub prompt: Option<fn(&Options) -> FormatInstructions>,
    /// Builds the JSON Schema of the model's output under these options, for dialects of JSON.
    pub schema: Option<fn(&Options) -> serde_json::Value>,
    /// Builds the grammar of the model's output under these options, for constrained decoding. Fails for a
    /// schema that a grammar cannot follow, or if the grammar would be too large.
    pub grammar: Option<fn(&Options, &GrammarLimits) -> Result<Grammar>>,
    /// Style of examples in documents (P-037).
    #[doc(hidden)]
    pub examples: ExampleStyle,
}

/// Format instructions for a model, with a worked example.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FormatInstructions {
    /// The task, and the request of the example.
    pub opening: Cow<'static, str>,
    /// A reply that passes the strict check without a warning.
    pub example: Cow<'static, str>,
    /// The rules of the format.
    pub rules: Cow<'static, str>,
    /// Texts for showing the example as a turn of the conversation, which small models follow far better than an
    /// example in the system prompt; `None` where that is not so.
    pub turn: Option<ExampleTurn>,
}

/// Texts of instructions whose example is a turn of the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExampleTurn {
    /// The task, which does not speak of an example below it.
    pub task: &'static str,
    /// The request that the example answers.
    pub request: &'static str,
}

impl ExampleTurn {
    /// Creates the texts.
    #[must_use]
    pub const fn new(task: &'static str, request: &'static str) -> ExampleTurn {
        ExampleTurn { task, request }
    }
}

/// Format instructions as messages: a system prompt, then the request and the reply of the example.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InstructionMessages {
    /// Text for the system prompt.
    pub system: String,
    /// Request and reply of the example, messages of the user and of the model before those of the conversation;
    /// `None` if the example is in the system prompt.
    pub example: Option<(String, String)>,
}

impl FormatInstructions {
    /// Returns the complete instructions as one text.
    #[must_use]
    pub fn text(&self) -> String {
        [&*self.opening, &self.example, &self.rules].concat()
    }

    /// Returns the instructions in the form that models follow best.
    #[must_use]
    pub fn messages(&self) -> InstructionMessages {
        let Some(turn) = &self.turn else {
            return InstructionMessages { system: self.text(), example: None };
        };
        let reply = self.example.trim_end_matches('\n').to_owned();
        InstructionMessages {
            system: format!("{}\n{}", turn.task, self.rules),
            example: Some((turn.request.to_owned(), reply)),
        }
    }
}

/// Style in which Markdown documents show replies of a dialect.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExampleStyle {
    /// Languages that the opening fences of these replies name.
    pub languages: &'static [&'static str],
    /// Set if the fence is part of the reply.
    pub includes_fence: bool,
}

/// Table of all dialects.
pub static DIALECTS: &[DialectEntry] = &[
    thinkingml::ENTRY,
    jsonseq::ENTRY,
    aiplan::ENTRY,
    filament::ENTRY,
    ai_say::ENTRY,
    toolcall::ENTRY,
    json_value::ENTRY,
    plain::ENTRY,
    auto::ENTRY,
];

/// Returns the dialect called `name`.
///
/// # Errors
/// Returns an error if no dialect has that name.
pub fn find_dialect(name: &str) -> Result<&'static DialectEntry> {
    let found = DIALECTS.iter().find(|entry| entry.name == name);
    found.ok_or_else(|| Error::unknown("dialect", name, DIALECTS.iter().map(|entry| entry.name)))
}

/// Name of the dialect whose raw replies are XML.
pub(crate) const THINKINGML: &str = thinkingml::ENTRY.name;

/// Name of the dialect that detects the others.
pub const AUTO: &str = auto::ENTRY.name;

/// Sink that discards everything.
struct NullSink;

impl IntentSink for NullSink {
    fn emit_intent(&mut self, _: Intent<'_>) {}
    fn emit_queries(&mut self, _: RawQueries<'_>, _: Place, _: usize) -> Option<usize> {
        None
    }
    fn emit_action(&mut self, _: ReplyAction) {}
    fn report(&mut self, _: FindingReport) {}
    fn fall_back(&mut self, _: &'static str) {}
    fn fail(&mut self, _: &'static str, _: &str) {}
}

/// Detects the dialect of a complete text.
#[must_use]
pub fn detect(text: &str) -> &'static DialectEntry {
    let mut reader = (auto::ENTRY.reader)(&Arc::default());
    reader.push_text(text, &mut NullSink);
    reader.finish(
        ReplyEnding { is_truncated: false, is_failed: false, has_native_calls: false },
        &mut NullSink,
    );
    let name = reader.name();
    DIALECTS.iter().find(|entry| entry.name == name).unwrap_or(&auto::ENTRY)
}
