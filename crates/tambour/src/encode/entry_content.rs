//! Content of log entries, for the protocols of other clients.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::encoder::{EncoderEntry, EncoderEntryKind};
use crate::event::{Completed, Failure, ToolCall, ToolResult};

/// Content of a log entry.
#[derive(Debug)]
pub(crate) enum EntryContent<'a> {
    /// `serp_summary`, as JSON.
    Summary(&'a str),
    ThinkingStart,
    /// Start of a phase.
    PhaseStart {
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
    Extension(&'a str, &'a str),
    /// `status`, as JSON.
    Status(&'a str),
    Completed(Box<Completed>),
    Error(Failure),
}

impl<'a> EntryContent<'a> {
    /// Parses an entry; `None` if it is internal or cannot be read.
    pub(crate) fn new(entry: &EncoderEntry<'a>) -> Option<EntryContent<'a>> {
        let EncoderEntryKind::Event(name) = entry.kind else { return None };
        let json = entry.json;
        Some(match name {
            "final_delta" => EntryContent::FinalText(delta_text(json)?),
            "phase_delta" => EntryContent::PhaseText(delta_text(json)?),
            "phase_start" => {
                #[derive(Deserialize)]
                struct Phase<'a> {
                    id: u64,
                    #[serde(borrow)]
                    title: Cow<'a, str>,
                }
                let Phase { id, title } = serde_json::from_str(json).ok()?;
                EntryContent::PhaseStart { id, title }
            }
            "thinking_start" => EntryContent::ThinkingStart,
            "thinking_end" => EntryContent::ThinkingEnd,
            "final_end" => EntryContent::FinalEnd,
            "serp_summary" => EntryContent::Summary(json),
            "serp_queries" => EntryContent::Queries(json),
            "tool_call" => EntryContent::Call(serde_json::from_str(json).ok()?),
            "tool_result" => EntryContent::Result(serde_json::from_str(json).ok()?),
            "status" => EntryContent::Status(json),
            "completed" => EntryContent::Completed(serde_json::from_str(json).ok()?),
            "error" => EntryContent::Error(serde_json::from_str(json).ok()?),
            name if crate::event::parse_kind(name).is_some() => EntryContent::Extension(name, json),
            _ => return None,
        })
    }
}

/// JSON string that holds the text of a delta.
fn delta_text(json: &str) -> Option<&str> {
    // Fast path: deltas of the answer as this library writes them.
    if let Some(text) = json.strip_prefix("{\"text\":").and_then(|rest| rest.strip_suffix('}'))
        && is_one_string(text)
    {
        return Some(text);
    }
    #[derive(Deserialize)]
    struct Delta<'a> {
        #[serde(borrow)]
        text: &'a RawValue,
    }
    serde_json::from_str::<Delta<'_>>(json).ok().map(|delta| delta.text.get())
}

/// Returns whether a part of a JSON text is one string, not several values.
fn is_one_string(json: &str) -> bool {
    let Some(inner) = json.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else { return false };
    let mut unread = inner.as_bytes();
    while let Some(at) = memchr::memchr2(b'"', b'\\', unread) {
        // A quote that is not escaped ends the string before the end.
        if unread[at] == b'"' || at + 1 == unread.len() {
            return false;
        }
        unread = &unread[at + 2..];
    }
    true
}

/// Text of a JSON string.
pub(crate) fn decode_string(json: &str) -> Cow<'_, str> {
    serde_json::from_str::<Cow<'_, str>>(json).unwrap_or_default()
}

/// A whole message, for clients without streaming: the result of reading all entries of its log.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct FoldedMessage {
    /// Phases of the reasoning: title and text.
    pub phases: Vec<(String, String)>,
    /// Text of the answer; empty if there are only calls.
    pub answer: String,
    /// Calls in order.
    pub calls: Vec<ToolCall>,
    /// True if the first text of the answer came after a call.
    pub has_calls_first: bool,
    /// Results of calls that ran.
    pub results: Vec<ToolResult>,
    /// Summary, queries, and all extension events except calls and results: name and data.
    pub extensions: Vec<(String, Value)>,
    /// End of the message; `None` while it runs or if it failed.
    pub completed: Option<Box<Completed>>,
    /// Failure that ended the message.
    pub failure: Option<Failure>,
    /// True if text of the answer came before any call.
    has_text_before_calls: bool,
}

impl FoldedMessage {
    /// Adds the next entry of the log.
    pub fn push_entry(&mut self, entry: &EncoderEntry<'_>) {
        match EntryContent::new(entry) {
            Some(EntryContent::PhaseStart { title, .. }) => {
                self.phases.push((title.into_owned(), String::new()))
            }
            Some(EntryContent::PhaseText(text)) => {
                if let Some((_, phase)) = self.phases.last_mut() {
                    phase.push_str(&decode_string(text));
                }
            }
            Some(EntryContent::FinalText(text)) => {
                self.has_text_before_calls |= self.calls.is_empty();
                self.has_calls_first = !self.has_text_before_calls;
                self.answer.push_str(&decode_string(text));
            }
            Some(EntryContent::Call(call)) => self.calls.push(call),
            Some(EntryContent::Result(result)) => self.results.push(result),
            Some(EntryContent::Summary(json)) => self.push_extension("serp_summary", json),
            Some(EntryContent::Queries(json)) => self.push_extension("serp_queries", json),
            Some(EntryContent::Extension(name, json)) => self.push_extension(name, json),
            Some(EntryContent::Completed(completed)) => {
                // The fallback text must not replace an answer that only calls tools.
                if !self.has_text_before_calls
                    && !self.calls.is_empty()
                    && completed.metadata.fallback_reason.is_some()
                {
                    self.answer.clear();
                }
                self.completed = Some(completed);
            }
            Some(EntryContent::Error(failure)) => self.failure = Some(failure),
            _ => {}
        }
    }

    /// Phases of the reasoning; an empty single phase is left out.
    #[must_use]
    pub(crate) fn reasoning_phases(&self) -> &[(String, String)] {
        match &self.phases[..] {
            [(_, text)] if text.is_empty() => &[],
            phases => phases,
        }
    }

    /// Reasoning as one text, with titles if `with_titles`.
    #[must_use]
    pub fn reasoning(&self, with_titles: bool) -> String {
        let format_phase = |(title, text): &(String, String)| {
            if with_titles { format!("**{title}**\n{text}") } else { text.clone() }
        };
        self.reasoning_phases()
            .iter()
            .map(format_phase)
            .filter(|text| !text.is_empty())
            .collect::<Vec<_>>()
            .join("\n\n")
    }

    fn push_extension(&mut self, name: &str, json: &str) {
        if let Ok(data) = serde_json::from_str(json) {
            self.extensions.push((name.to_owned(), data));
        }
    }
}
