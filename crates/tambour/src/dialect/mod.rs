//! How models write their replies: tokens to intents, one folder per dialect.
//!
//! A dialect knows neither where bytes come from nor where events go. It says what the model meant, in order, as
//! [`Intent`]s, and what was wrong, as [`Report`]s; policy and sequencer make a valid stream of it.

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

/// The whole output of a model that cannot comply (T-025, J-055).
const MARKER: &str = "<<ParsingError>>";

/// What the model meant, before policy and order.
#[derive(Clone, Debug, PartialEq)]
#[doc(hidden)]
pub enum Intent<'a> {
    /// An answer without thinking before it needs no thinking block.
    SkipThinking,
    /// The search summary.
    Summary(Cow<'a, str>),
    /// Thinking begins.
    ThinkingStart,
    /// The next phase begins at a place, with this title; a blank one gets the fallback title.
    Phase(Cow<'a, str>, Place),
    /// Text of the phase under way.
    PhaseText(&'a str),
    /// Thinking is over.
    ThinkingEnd,
    /// Text of the answer.
    FinalText(&'a str),
    /// Search queries, cleaned.
    Queries(Vec<String>),
    /// Reasoning outside the contract.
    Draft(&'a str),
    /// A comment or a late thought.
    Aside {
        /// Which of the two.
        kind: AsideKind,
        /// Its text.
        text: &'a str,
    },
}

/// Search queries as the model wrote them.
#[derive(Clone, Copy, Debug)]
#[doc(hidden)]
pub enum Written<'a> {
    /// As text that should be a JSON array.
    Text(&'a str),
    /// As a JSON value.
    Value(&'a serde_json::Value),
}

/// Receives what a dialect has to say.
#[doc(hidden)]
pub trait Output {
    /// The next intent.
    fn intent(&mut self, intent: Intent<'_>);

    /// Search queries, to be cleaned by the policy. `end` is the offset after them. Returns how many are used; `None` when
    /// what was written is no list.
    fn queries(&mut self, written: Written<'_>, place: Place, end: usize) -> Option<usize>;

    /// What the reply wants done. The policy stage decides about it.
    fn act(&mut self, action: Action);

    /// A broken or repaired rule.
    fn report(&mut self, report: Report);

    /// The reply is not what was asked for, for this reason: the fallback text is the answer, unless text of the
    /// reply is.
    fn fall_back(&mut self, reason: &'static str);

    /// The reply is of no use, and no text stands in for it: the stream ends with `error`.
    fn fail(&mut self, code: &'static str, message: &str);
}

/// How the input of a dialect ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(hidden)]
pub struct Ending {
    /// Cut by a limit, a filter, a failure or the user, so that nothing unfinished may act.
    pub cut: bool,
    /// The connection broke or the stream ended with an error: nothing is decided (S-065).
    pub failed: bool,
    /// Calls of tools came beside the reply, which needs no text then.
    pub calls: bool,
}

/// A reader of one dialect.
#[doc(hidden)]
pub trait Dialect: Send {
    /// The next piece of the reply.
    fn text(&mut self, text: &str, out: &mut dyn Output);

    /// Reasoning that the upstream sends beside the reply.
    fn reasoning(&mut self, text: &str, out: &mut dyn Output) {
        out.intent(Intent::Draft(text));
    }

    /// The end of the reply.
    fn finish(&mut self, ending: Ending, out: &mut dyn Output);

    /// The place after all text so far.
    fn place(&self) -> Place;

    /// Bytes of text held back, without what is delivered whole (titles, summaries, queries).
    fn held(&self) -> usize;

    /// The name of the dialect the reply is read as.
    fn name(&self) -> &'static str;

    /// After the end: the reply as it should have been written, with its events and what the dialect keeps beside them.
    /// `None` when events are all there is ([`Entry::write`]).
    fn write(&self, _events: &[Event<'_>]) -> Option<String> {
        None
    }
}

/// One line of the table of dialects.
#[non_exhaustive]
pub struct Entry {
    /// Public name.
    pub name: &'static str,
    /// What it is, in one line.
    pub summary: &'static str,
    /// Makes a reader.
    #[doc(hidden)]
    pub reader: fn(&Arc<Options>) -> Box<dyn Dialect>,
    /// How `auto` knows its beginning.
    #[doc(hidden)]
    pub opening: Opening,
    /// Options of its own.
    pub settings: &'static [Setting],
    /// Rules of its own.
    pub rules: &'static [&'static Rule],
    /// Writes the events of a reply in this dialect, so that it passes the strict check.
    pub write: Option<fn(&[Event<'_>]) -> String>,
    /// Format instructions for a system prompt (T-066, P-023), in the language of the options' texts.
    pub prompt: Option<fn(&Options) -> Prompt>,
    /// JSON Schema of what a model writes under these options, where that is JSON.
    pub schema: Option<fn(&Options) -> serde_json::Value>,
    /// How documents show examples of it (P-037).
    pub examples: Examples,
}

/// Format instructions for a system prompt, with a worked example.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Prompt {
    /// What to do, and the request of the example.
    pub opening: Cow<'static, str>,
    /// A reply that passes the strict check without a warning.
    pub example: Cow<'static, str>,
    /// The rules.
    pub rules: Cow<'static, str>,
}

impl Prompt {
    /// The whole instructions.
    #[must_use]
    pub fn text(&self) -> String {
        [&*self.opening, &self.example, &self.rules].concat()
    }
}

/// How Markdown documents show replies of a dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Examples {
    /// Languages of the fenced blocks.
    pub languages: &'static [&'static str],
    /// Whether the fence is part of the reply.
    pub fenced: bool,
}

/// The dialects.
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

/// The dialect called `name`.
///
/// # Errors
/// There is none of that name.
pub fn entry(name: &str) -> Result<&'static Entry> {
    let found = DIALECTS.iter().find(|entry| entry.name == name);
    found.ok_or_else(|| Error::unknown("dialect", name, DIALECTS.iter().map(|entry| entry.name)))
}

/// The name of the entry whose raw replies are XML.
pub const THINKINGML: &str = thinkingml::ENTRY.name;

/// The name of the entry that finds out.
pub const AUTO: &str = auto::ENTRY.name;

/// Takes what a reader gives, and does nothing with it.
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

/// The dialect that a whole text is written in.
#[must_use]
pub fn detect(text: &str) -> &'static Entry {
    let mut reader = (auto::ENTRY.reader)(&Arc::default());
    reader.text(text, &mut Unheard);
    reader.finish(Ending { cut: false, failed: false, calls: false }, &mut Unheard);
    let name = reader.name();
    DIALECTS.iter().find(|entry| entry.name == name).unwrap_or(&auto::ENTRY)
}
