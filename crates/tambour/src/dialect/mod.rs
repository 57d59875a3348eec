//! Readers of reply formats: tokens to intents, one folder per dialect.
//!
//! A dialect knows neither the source of its bytes nor the receiver of its events. It emits the meaning of a
//! reply in order as [`Intent`]s, and its faults as [`Report`]s; policy and sequencer turn these into a valid
//! stream.

mod action;
mod ai_say;
mod aiplan;
mod auto;
mod called;
mod draft;
mod echo;
mod filament;
mod front;
mod json_value;
mod jsonseq;
mod marker;
mod opening;
mod pieces;
mod plain;
mod preface;
mod said;
mod thinkingml;
mod thoughts;
mod toolcall;
mod unclosed;

use std::borrow::Cow;
use std::sync::Arc;

#[doc(hidden)]
pub use action::{Action, Call, Plan, Update};
#[doc(hidden)]
pub use ai_say::{answers_have, flag, role, roles};
#[doc(hidden)]
pub use opening::{Begin, Needed, Opening, Shape, When};
pub use thinkingml::escape_literals;

use crate::error::{Error, Result};
use crate::event::{AsideKind, Event};
use crate::finding::{Report, Rule};
use crate::options::{Options, Setting};
use crate::span::Place;

/// Failure marker: the whole output of a model that cannot comply (T-025, J-055).
const MARKER: &str = "<<ParsingError>>";

/// Meaning that a dialect read, before policy and order.
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

/// Search queries as the model wrote them.
#[derive(Clone, Copy, Debug)]
#[doc(hidden)]
pub enum Written<'a> {
    /// A text that should be a JSON array.
    Text(&'a str),
    /// A JSON value.
    Value(&'a serde_json::Value),
}

/// Receiver of everything a dialect emits.
#[doc(hidden)]
pub trait Output {
    /// Receives the next intent.
    fn intent(&mut self, intent: Intent<'_>);

    /// Receives search queries, which the policy stage cleans. `end` is the offset after them. Returns the
    /// number of queries used, or `None` if the value is not a list.
    fn queries(&mut self, written: Written<'_>, place: Place, end: usize) -> Option<usize>;

    /// Receives an action. The policy stage decides on it.
    fn act(&mut self, action: Action);

    /// Receives a finding about a broken or repaired rule.
    fn report(&mut self, report: Report);

    /// Requests the fallback text for `reason`, because the reply is not what was asked for. Text of
    /// the reply takes precedence over it.
    fn fall_back(&mut self, reason: &'static str);

    /// Ends the stream with `error`, because the reply is unusable and no text can replace it.
    fn fail(&mut self, code: &'static str, message: &str);
}

/// End of a dialect's input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(hidden)]
pub struct Ending {
    /// Set if the reply was truncated by a limit, a filter, a failure or the user: nothing unfinished may act
    ///
    pub cut: bool,
    /// Set if the connection broke or the stream ended with an error: nothing is decided (S-065).
    pub failed: bool,
    /// Set if native tool calls accompany the reply, which then needs no text.
    pub calls: bool,
}

/// Reader of one dialect.
#[doc(hidden)]
pub trait Dialect: Send {
    /// Reads the next chunk of the reply.
    fn text(&mut self, text: &str, out: &mut dyn Output);

    /// Reads reasoning that the upstream sends in a field of its own.
    fn reasoning(&mut self, text: &str, out: &mut dyn Output) {
        out.intent(Intent::Draft(text));
    }

    /// Ends the reply.
    fn finish(&mut self, ending: Ending, out: &mut dyn Output);

    /// Returns the place after all text so far.
    fn place(&self) -> Place;

    /// Returns the bytes of text held back, without values that are emitted whole (titles, summaries,
    /// queries).
    fn held(&self) -> usize;

    /// Returns the name of the dialect that the reply is read as.
    fn name(&self) -> &'static str;

    /// Returns the canonical form of the reply after its end, from its events and from data that only the
    /// dialect keeps. `None` if the events alone suffice ([`Entry::write`]).
    fn write(&self, _events: &[Event<'_>]) -> Option<String> {
        None
    }
}

/// Entry in the table of dialects.
#[non_exhaustive]
pub struct Entry {
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
    pub prompt: Option<fn(&Options) -> Prompt>,
    /// Builds the JSON Schema of the model's output under these options, for dialects of JSON.
    pub schema: Option<fn(&Options) -> serde_json::Value>,
    /// Style of examples in documents (P-037).
    pub examples: Examples,
}

/// Format instructions for a system prompt, with a worked example.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Prompt {
    /// The task, and the request of the example.
    pub opening: Cow<'static, str>,
    /// A reply that passes the strict check without a warning.
    pub example: Cow<'static, str>,
    /// The rules of the format.
    pub rules: Cow<'static, str>,
}

impl Prompt {
    /// Returns the complete instructions.
    #[must_use]
    pub fn text(&self) -> String {
        [&*self.opening, &self.example, &self.rules].concat()
    }
}

/// Style in which Markdown documents show replies of a dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Examples {
    /// Languages of the fenced blocks.
    pub languages: &'static [&'static str],
    /// Set if the fence is part of the reply.
    pub fenced: bool,
}

/// Table of all dialects.
pub static DIALECTS: &[Entry] = &[
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
pub fn entry(name: &str) -> Result<&'static Entry> {
    let found = DIALECTS.iter().find(|entry| entry.name == name);
    found.ok_or_else(|| Error::unknown("dialect", name, DIALECTS.iter().map(|entry| entry.name)))
}

/// Name of the dialect whose raw replies are XML.
pub const THINKINGML: &str = thinkingml::ENTRY.name;

/// Name of the dialect that detects the others.
pub const AUTO: &str = auto::ENTRY.name;

/// Output that discards everything.
struct Unheard;

impl Output for Unheard {
    fn intent(&mut self, _: Intent<'_>) {}
    fn queries(&mut self, _: Written<'_>, _: Place, _: usize) -> Option<usize> {
        None
    }
    fn act(&mut self, _: Action) {}
    fn report(&mut self, _: Report) {}
    fn fall_back(&mut self, _: &'static str) {}
    fn fail(&mut self, _: &'static str, _: &str) {}
}

/// Detects the dialect of a complete text.
#[must_use]
pub fn detect(text: &str) -> &'static Entry {
    let mut reader = (auto::ENTRY.reader)(&Arc::default());
    reader.text(text, &mut Unheard);
    reader.finish(Ending { cut: false, failed: false, calls: false }, &mut Unheard);
    let name = reader.name();
    DIALECTS.iter().find(|entry| entry.name == name).unwrap_or(&auto::ENTRY)
}
