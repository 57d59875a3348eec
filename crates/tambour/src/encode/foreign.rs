//! Parts shared by the protocols of other clients.

use serde_json::{Value, json};

use super::json;
use crate::event::{Failure, FinishReason};

/// Context of a stream.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// Id of the message.
    pub message: String,
    /// Id of the request.
    pub request: String,
    /// Time of the request, in seconds since 1970.
    pub created: i64,
    /// Model name given by the client.
    pub model: String,
    /// True if the answer is sent as a whole, and not at all if the message fails: half a JSON value is
    /// useless, and no other text may replace it.
    pub whole: bool,
    /// Id of the response it continues, as given by the client.
    pub previous: Option<String>,
    /// True if it runs in the background.
    pub background: bool,
    /// True if it is deleted after it has been read.
    pub unstored: bool,
}

/// Token counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    /// Tokens of the prompt.
    pub input: u64,
    /// Tokens of the reply.
    pub output: u64,
    /// Tokens of both.
    pub total: u64,
    /// Tokens of the reply that are reasoning.
    pub reasoning: u64,
    /// Tokens of the prompt that were cached.
    pub cached: u64,
}

impl Tokens {
    /// Reads the counts of any upstream, under any of their names.
    #[must_use]
    pub fn of(usage: &Value) -> Tokens {
        let count = |names: &[&str]| names.iter().find_map(|name| usage.pointer(name)?.as_u64()).unwrap_or(0);
        let input = count(&["/prompt_tokens", "/input_tokens"]);
        let output = count(&["/completion_tokens", "/output_tokens"]);
        Tokens {
            input,
            output,
            total: count(&["/total_tokens"]).max(input + output),
            reasoning: count(&[
                "/completion_tokens_details/reasoning_tokens",
                "/output_tokens_details/reasoning_tokens",
            ]),
            cached: count(&["/prompt_tokens_details/cached_tokens", "/cache_read_input_tokens"]),
        }
    }

    /// Counts in the form of the chat completions interface.
    #[must_use]
    pub fn chat(&self) -> Value {
        let Tokens { input, output, total, reasoning, cached } = self;
        json!({
            "prompt_tokens": input, "completion_tokens": output, "total_tokens": total,
            "prompt_tokens_details": {"cached_tokens": cached},
            "completion_tokens_details": {"reasoning_tokens": reasoning},
        })
    }
}

/// Answer text to be sent. Text behind tool calls is held back until the end, since the fallback text must
/// not replace an answer that only calls tools. So is an answer that is sent as a whole.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) said: bool,
    called: bool,
    whole: bool,
    held: Vec<String>,
}

impl Answer {
    pub(super) fn new(about: &About) -> Answer {
        Answer { said: false, called: false, whole: about.whole, held: Vec::new() }
    }

    /// Accepts text, a JSON string; returns whether it may be sent now.
    pub(super) fn text(&mut self, text: &str) -> bool {
        if self.whole || self.called && !self.said {
            self.held.push(text.to_owned());
            return false;
        }
        self.said = true;
        true
    }

    pub(super) fn call(&mut self) {
        self.called = true;
    }

    /// Takes the held text at the end of a message; drops it if the answer was `replaced`.
    pub(super) fn release(&mut self, replaced: bool) -> Vec<String> {
        let held = std::mem::take(&mut self.held);
        if replaced { Vec::new() } else { held }
    }
}

/// Titles of phases that are sent as text. The first is held back until its phase has text: an empty single
/// phase is not sent.
#[derive(Debug, Default)]
pub(super) struct Titles {
    count: usize,
    held: Option<String>,
}

impl Titles {
    /// Begins a phase; returns the titles to be sent now.
    pub(super) fn phase(&mut self, title: &str) -> Vec<String> {
        self.count += 1;
        if self.count == 1 {
            self.held = Some(title.to_owned());
            return Vec::new();
        }
        self.held.take().into_iter().chain([title.to_owned()]).collect()
    }

    /// Title to be sent before the next text of the phase, if it is still held back.
    pub(super) fn text(&mut self) -> Option<String> {
        self.held.take()
    }
}

/// Id of a call that is unique across messages.
pub(super) fn call_id(about: &About, call: &str) -> String {
    let message = about.message.rsplit_once('_').map_or(&*about.message, |(_, id)| id);
    format!("{call}_{message}")
}

/// Error code of a failure: that of an upstream which refused the request, since clients act on it, otherwise
/// our own.
pub(super) fn code(failure: &Failure) -> &str {
    failure.upstream.as_ref().and_then(|refusal| refusal.code.as_deref()).unwrap_or(&failure.code)
}

/// Appends a frame without an event name.
pub(super) fn data(out: &mut Vec<u8>, json: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(b"data: ");
    json(out);
    out.extend_from_slice(b"\n\n");
}

/// Appends a frame named after the `type` of its data.
pub(super) fn named(out: &mut Vec<u8>, name: &str, json: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(b"event: ");
    out.extend_from_slice(name.as_bytes());
    out.push(b'\n');
    data(out, json);
}

/// Appends a JSON value.
pub(super) fn value(out: &mut Vec<u8>, value: &Value) {
    json::value(value, out);
}

/// Title as text of the reasoning, on its own line.
pub(super) fn title(title: &str, first: bool) -> String {
    format!("{}**{title}**\n", if first { "" } else { "\n\n" })
}

/// Finish reason in terms of the chat completions interface.
pub(super) fn finish_reason(reason: FinishReason, called: bool) -> &'static str {
    match reason {
        FinishReason::Length => "length",
        FinishReason::ContentFilter => "content_filter",
        FinishReason::Stop | FinishReason::ToolCalls | FinishReason::Cancelled if called => "tool_calls",
        FinishReason::Stop | FinishReason::ToolCalls | FinishReason::Cancelled => "stop",
    }
}
