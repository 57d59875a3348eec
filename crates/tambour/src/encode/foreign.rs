//! What the protocols of other clients have in common.

use serde_json::{Value, json};

use super::json;
use crate::event::{Failure, FinishReason};

/// What a stream is about.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// Id of the message.
    pub message: String,
    /// Id of the request.
    pub request: String,
    /// When it was asked, in seconds since 1970.
    pub created: i64,
    /// The model as the client named it.
    pub model: String,
    /// Whether the answer is sent whole, and nothing of it where the message fails: half a JSON value is none, and no other text may
    /// stand in for it.
    pub whole: bool,
    /// Id of the response that it goes on from, as the client named it.
    pub previous: Option<String>,
    /// Whether nobody waits for it.
    pub background: bool,
    /// Whether it goes when it has been read.
    pub unstored: bool,
}

/// Token counts by their plain names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    /// Of the prompt.
    pub input: u64,
    /// Of the reply.
    pub output: u64,
    /// Of both.
    pub total: u64,
    /// Of the reply, those of reasoning.
    pub reasoning: u64,
    /// Of the prompt, those that a cache had.
    pub cached: u64,
}

impl Tokens {
    /// The counts in what an upstream gave, under any of its names.
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

    /// As the chat completions interface has them.
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

/// The answer as a stream of text: what follows calls of tools waits for the end, since the fallback text is not what a model
/// said that calls tools and says nothing. So does an answer that is sent whole.
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

    /// Takes text, a JSON string; whether it may be sent now.
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

    /// What was held, at the end of a message.
    pub(super) fn release(&mut self, replaced: bool) -> Vec<String> {
        let held = std::mem::take(&mut self.held);
        if replaced { Vec::new() } else { held }
    }
}

/// Titles of phases that are told as text: the first waits for the text of its phase, since one without any, alone, says nothing.
#[derive(Debug, Default)]
pub(super) struct Titles {
    count: usize,
    held: Option<String>,
}

impl Titles {
    /// A phase begins; the titles that are told now.
    pub(super) fn phase(&mut self, title: &str) -> Vec<String> {
        self.count += 1;
        if self.count == 1 {
            self.held = Some(title.to_owned());
            return Vec::new();
        }
        self.held.take().into_iter().chain([title.to_owned()]).collect()
    }

    /// Text of the phase comes; the title that is told before it.
    pub(super) fn text(&mut self) -> Option<String> {
        self.held.take()
    }
}

/// The id of a call that is unique in all messages.
pub(super) fn call_id(about: &About, call: &str) -> String {
    let message = about.message.rsplit_once('_').map_or(&*about.message, |(_, id)| id);
    format!("{call}_{message}")
}

/// The word for a failure: that of the service which found the request wrong, since clients act on it, else our own.
pub(super) fn code(failure: &Failure) -> &str {
    failure.upstream.as_ref().and_then(|refusal| refusal.code.as_deref()).unwrap_or(&failure.code)
}

/// Appends a frame without a name.
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

/// Appends a value.
pub(super) fn value(out: &mut Vec<u8>, value: &Value) {
    json::value(value, out);
}

/// Titles as text of the reasoning, in a line of their own.
pub(super) fn title(title: &str, first: bool) -> String {
    format!("{}**{title}**\n", if first { "" } else { "\n\n" })
}

/// Why it ended, in the words of the chat completions interface.
pub(super) fn finish_reason(reason: FinishReason, called: bool) -> &'static str {
    match reason {
        FinishReason::Length => "length",
        FinishReason::ContentFilter => "content_filter",
        FinishReason::Stop | FinishReason::ToolCalls | FinishReason::Cancelled if called => "tool_calls",
        FinishReason::Stop | FinishReason::ToolCalls | FinishReason::Cancelled => "stop",
    }
}
