//! Content of log entries, for the protocols of other clients.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::encoder::{Entry, EntryKind};
use crate::event::{Completed, Failure, ToolCall, ToolResult};

/// Content of a log entry.
#[derive(Debug)]
pub(crate) enum Seen<'a> {
    /// `serp_summary`, as JSON.
    Summary(&'a str),
    ThinkingStart,
    /// Start of a phase.
    Phase {
        id: u64,
        title: Cow<'a, str>,
    },
    /// Text of the open phase, as a JSON string.
    PhaseText(&'a str),
    ThinkingEnd,
    /// Text of the answer, as a JSON string.
    FinalText(&'a str),
    /// `serp_queries`, as JSON.
    Queries(&'a str),
    FinalEnd,
    Call(ToolCall),
    Result(ToolResult),
    /// Another extension event: its name, and its JSON.
    Beside(&'a str, &'a str),
    /// `status`, as JSON.
    Status(&'a str),
    Completed(Box<Completed>),
    Error(Failure),
}

impl<'a> Seen<'a> {
    /// Parses an entry; `None` if it is internal or cannot be read.
    pub(crate) fn new(entry: &Entry<'a>) -> Option<Seen<'a>> {
        let EntryKind::Event(name) = entry.kind else { return None };
        let json = entry.json;
        Some(match name {
            "final_delta" => Seen::FinalText(text(json)?),
            "phase_delta" => Seen::PhaseText(text(json)?),
            "phase_start" => {
                #[derive(Deserialize)]
                struct Phase<'a> {
                    id: u64,
                    #[serde(borrow)]
                    title: Cow<'a, str>,
                }
                let Phase { id, title } = serde_json::from_str(json).ok()?;
                Seen::Phase { id, title }
            }
            "thinking_start" => Seen::ThinkingStart,
            "thinking_end" => Seen::ThinkingEnd,
            "final_end" => Seen::FinalEnd,
            "serp_summary" => Seen::Summary(json),
            "serp_queries" => Seen::Queries(json),
            "tool_call" => Seen::Call(serde_json::from_str(json).ok()?),
            "tool_result" => Seen::Result(serde_json::from_str(json).ok()?),
            "status" => Seen::Status(json),
            "completed" => Seen::Completed(serde_json::from_str(json).ok()?),
            "error" => Seen::Error(serde_json::from_str(json).ok()?),
            name if crate::event::kind_of(name).is_some() => Seen::Beside(name, json),
            _ => return None,
        })
    }
}

/// JSON string that holds the text of a delta.
fn text(json: &str) -> Option<&str> {
    // Fast path: deltas as this library writes them.
    if let Some(text) = json.strip_prefix("{\"text\":").and_then(|rest| rest.strip_suffix('}')) {
        return Some(text);
    }
    #[derive(Deserialize)]
    struct Delta<'a> {
        #[serde(borrow)]
        text: &'a RawValue,
    }
    serde_json::from_str::<Delta<'_>>(json).ok().map(|delta| delta.text.get())
}

/// Text of a JSON string.
pub(crate) fn plain(json: &str) -> Cow<'_, str> {
    serde_json::from_str::<Cow<'_, str>>(json).unwrap_or_default()
}

/// A whole message, for clients without streaming: a fold of the log.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Whole {
    /// Phases of the reasoning: title and text.
    pub phases: Vec<(String, String)>,
    /// Answer. Empty if there are only calls.
    pub answer: String,
    /// Calls in order.
    pub calls: Vec<ToolCall>,
    /// True if the answer, if any, follows the calls.
    pub calls_first: bool,
    /// Results of calls that ran.
    pub results: Vec<ToolResult>,
    /// Other extension events: name and data.
    pub beside: Vec<(String, Value)>,
    /// End of the message; `None` while it runs or if it failed.
    pub completed: Option<Box<Completed>>,
    /// Failure that ended the message.
    pub failure: Option<Failure>,
    said: bool,
}

impl Whole {
    /// Folds the next entry.
    pub fn add(&mut self, entry: &Entry<'_>) {
        match Seen::new(entry) {
            Some(Seen::Phase { title, .. }) => self.phases.push((title.into_owned(), String::new())),
            Some(Seen::PhaseText(text)) => {
                if let Some((_, phase)) = self.phases.last_mut() {
                    phase.push_str(&plain(text));
                }
            }
            Some(Seen::FinalText(text)) => {
                self.said |= self.calls.is_empty();
                self.calls_first = !self.said;
                self.answer.push_str(&plain(text));
            }
            Some(Seen::Call(call)) => self.calls.push(call),
            Some(Seen::Result(result)) => self.results.push(result),
            Some(Seen::Summary(json)) => self.keep("serp_summary", json),
            Some(Seen::Queries(json)) => self.keep("serp_queries", json),
            Some(Seen::Beside(name, json)) => self.keep(name, json),
            Some(Seen::Completed(completed)) => {
                // The fallback text must not replace an answer that only calls tools.
                if !self.said && !self.calls.is_empty() && completed.metadata.fallback_reason.is_some() {
                    self.answer.clear();
                }
                self.completed = Some(completed);
            }
            Some(Seen::Error(failure)) => self.failure = Some(failure),
            _ => {}
        }
    }

    /// Phases of the reasoning; an empty single phase is left out.
    #[must_use]
    pub fn thoughts(&self) -> &[(String, String)] {
        match &self.phases[..] {
            [(_, text)] if text.is_empty() => &[],
            phases => phases,
        }
    }

    /// Reasoning as one text, with titles if `titled`.
    #[must_use]
    pub fn reasoning(&self, titled: bool) -> String {
        let phase = |(title, text): &(String, String)| {
            if titled { format!("**{title}**\n{text}") } else { text.clone() }
        };
        self.thoughts().iter().map(phase).filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n")
    }

    fn keep(&mut self, name: &str, json: &str) {
        if let Ok(data) = serde_json::from_str(json) {
            self.beside.push((name.to_owned(), data));
        }
    }
}
