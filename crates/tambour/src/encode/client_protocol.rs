//! Parts shared by the encoders of other clients' protocols, including state updates as JSON Patch.

use serde_json::{Value, json};

use super::json;
use crate::event::{Failure, FinishReason};
use crate::state::{ApplyOptions, Operation, apply};

/// Context of a message that is written in the protocol of another client.
#[derive(Clone, Debug, Default)]
pub struct StreamContext {
    /// Id of the message.
    pub message_id: String,
    /// Id of the request.
    pub request_id: String,
    /// Time of the request, in seconds since 1970.
    pub created_at: i64,
    /// Model name given by the client.
    pub model: String,
    /// True for an answer that must be one JSON value. It is sent as a whole at the end, and not at all if
    /// the message fails: half a value is useless, and no other text may replace it.
    pub sends_whole_answer: bool,
    /// Id of the response that this one continues, as given by the client.
    pub previous_response: Option<String>,
    /// True if the message runs in the background.
    pub is_background: bool,
    /// True if the message is deleted after it has been read.
    pub is_unstored: bool,
}

/// Token counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsageCounts {
    /// Tokens of the prompt.
    pub input: u64,
    /// Tokens of the reply.
    pub output: u64,
    /// Tokens of prompt and reply.
    pub total: u64,
    /// Tokens of the reply that are reasoning.
    pub reasoning: u64,
    /// Tokens of the prompt that were cached.
    pub cached: u64,
}

impl UsageCounts {
    /// Reads the counts as any kind of upstream reports them; a missing count is 0.
    #[must_use]
    pub fn from_usage(usage: &Value) -> UsageCounts {
        let count = |names: &[&str]| names.iter().find_map(|name| usage.pointer(name)?.as_u64()).unwrap_or(0);
        let input = count(&["/prompt_tokens", "/input_tokens"]);
        let output = count(&["/completion_tokens", "/output_tokens"]);
        UsageCounts {
            input,
            output,
            // The sum replaces a total that is missing or too small.
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
    pub(crate) fn to_chat_usage(self) -> Value {
        let UsageCounts { input, output, total, reasoning, cached } = self;
        json!({
            "prompt_tokens": input, "completion_tokens": output, "total_tokens": total,
            "prompt_tokens_details": {"cached_tokens": cached},
            "completion_tokens_details": {"reasoning_tokens": reasoning},
        })
    }
}

/// JSON of an empty text.
pub(super) const EMPTY_JSON_STRING: &str = "\"\"";

/// Answer text to be sent. It is held back until the end of the message in two cases: if it must be sent as a
/// whole, and if it begins after tool calls. Text after calls may be the fallback text, which must not
/// become the answer of a message that only calls tools.
#[derive(Debug)]
pub(super) struct AnswerBuffer {
    /// True if text was released before the end.
    pub(super) has_sent_text: bool,
    has_calls: bool,
    sends_whole_answer: bool,
    /// Text held back, as JSON strings.
    held_text: Vec<String>,
}

impl AnswerBuffer {
    pub(super) fn new(context: &StreamContext) -> AnswerBuffer {
        AnswerBuffer {
            has_sent_text: false,
            has_calls: false,
            sends_whole_answer: context.sends_whole_answer,
            held_text: Vec::new(),
        }
    }

    /// Accepts text, a JSON string; returns whether it may be sent now.
    pub(super) fn push_text(&mut self, text: &str) -> bool {
        let begins_after_calls = self.has_calls && !self.has_sent_text;
        if self.sends_whole_answer || begins_after_calls {
            self.held_text.push(text.to_owned());
            return false;
        }
        self.has_sent_text = true;
        true
    }

    /// Records that the message has a tool call.
    pub(super) fn note_call(&mut self) {
        self.has_calls = true;
    }

    /// Takes the held text at the end of a message; drops it if `is_unwanted_fallback`, which is true for the
    /// fallback text of a message with calls.
    pub(super) fn take_held(&mut self, is_unwanted_fallback: bool) -> Vec<String> {
        let texts = std::mem::take(&mut self.held_text);
        if is_unwanted_fallback { Vec::new() } else { texts }
    }
}

/// Titles of phases, for protocols that send them as text. The first title is held back until its phase has
/// text or a second phase begins, since an empty single phase is not sent.
#[derive(Debug, Default)]
pub(super) struct PhaseTitles {
    phase_count: usize,
    held_title: Option<String>,
}

impl PhaseTitles {
    /// Begins a phase; returns the titles to be sent now.
    pub(super) fn begin_phase(&mut self, title: &str) -> Vec<String> {
        self.phase_count += 1;
        if self.phase_count == 1 {
            self.held_title = Some(title.to_owned());
            return Vec::new();
        }
        self.held_title.take().into_iter().chain([title.to_owned()]).collect()
    }

    /// Takes the held title, which is to be sent before the next text of its phase.
    pub(super) fn take_held(&mut self) -> Option<String> {
        self.held_title.take()
    }
}

/// Id of a call that is unique across messages.
pub(super) fn unique_call_id(context: &StreamContext, call_id: &str) -> String {
    // `msg_ID` without its prefix.
    let message = context.message_id.rsplit_once('_').map_or(&*context.message_id, |(_, id)| id);
    format!("{call_id}_{message}")
}

/// Error code of a failure: the code of the upstream if it refused the request, since clients act on it,
/// otherwise our own.
pub(super) fn error_code(failure: &Failure) -> &str {
    failure.upstream.as_ref().and_then(|refusal| refusal.code.as_deref()).unwrap_or(&failure.code)
}

/// Appends a frame without an event name; `write_json` appends its data in one line.
pub(super) fn write_data_frame(out: &mut Vec<u8>, write_json: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(b"data: ");
    write_json(out);
    out.extend_from_slice(b"\n\n");
}

/// Appends a frame with an event name; `write_json` appends its data in one line.
pub(super) fn write_named_frame(out: &mut Vec<u8>, name: &str, write_json: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(b"event: ");
    out.extend_from_slice(name.as_bytes());
    out.push(b'\n');
    write_data_frame(out, write_json);
}

/// Appends a JSON value.
pub(super) fn write_value(out: &mut Vec<u8>, value: &Value) {
    json::write_value(value, out);
}

/// Title as text of the reasoning, on its own line, after a blank line unless it is the first text.
pub(super) fn format_title(title: &str, is_first: bool) -> String {
    format!("{}**{title}**\n", if is_first { "" } else { "\n\n" })
}

/// Finish reason in terms of the chat completions interface.
pub(super) fn finish_reason(reason: FinishReason, has_calls: bool) -> &'static str {
    match reason {
        FinishReason::Length => "length",
        FinishReason::ContentFilter => "content_filter",
        FinishReason::Stop | FinishReason::ToolCalls | FinishReason::Cancelled if has_calls => "tool_calls",
        FinishReason::Stop | FinishReason::ToolCalls | FinishReason::Cancelled => "stop",
    }
}

/// Effect of a `state_update`.
#[derive(Default)]
pub(super) struct StatePatch {
    /// Applied operations, as `[op, path, value?]`.
    pub(super) applied_operations: Vec<Value>,
    /// Patch from the state before to the state after.
    pub(super) patch: Vec<Value>,
    /// Refused operations, each with its result.
    pub(super) refused_operations: Vec<(Value, Value)>,
}

/// Applies a `state_update` to `state` and converts it to JSON Patch (RFC 6902).
pub(super) fn apply_update(update: &Value, state: &mut Value) -> StatePatch {
    let list = |name: &str| update[name].as_array().map_or(&[][..], Vec::as_slice);
    let before = state.clone();
    let mut state_patch = StatePatch::default();
    for (at, operation) in list("operations").iter().enumerate() {
        let elements = ["op", "path", "value"].into_iter().filter_map(|key| operation.get(key).cloned());
        let operation = Value::Array(elements.collect());
        // The results say which operations were applied; an operation without a result is skipped.
        let Some(result) = list("results").iter().find(|result| result["index"].as_u64() == Some(at as u64))
        else {
            continue;
        };
        if result["ok"] == true {
            apply(state, &[Operation::from_value(&operation)], &ApplyOptions::default());
            state_patch.applied_operations.push(operation);
        } else {
            state_patch.refused_operations.push((operation, result.clone()));
        }
    }
    let patch = json!(json_patch::diff(&before, state));
    state_patch.patch = patch.as_array().cloned().unwrap_or_default();
    state_patch
}

/// Initial state of a conversation.
pub(super) fn initial_state() -> Value {
    json!({})
}
