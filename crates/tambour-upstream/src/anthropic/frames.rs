//! Decoder for the events of Anthropic's Messages interface.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use tambour::InputEnd;
use tambour::event::FinishReason;
use tambour::lex::sse::SseFrame;

use crate::decode::{DecodeProgress, FrameDecoder};
use crate::redact::redact;
use crate::{CallExtras, Function, NativeCall, ReplyItem, new_failure};

/// Decoder for the events.
pub(crate) struct AnthropicFrames {
    progress: DecodeProgress,
    /// Blocks of reasoning and calls so far, by index.
    blocks: BTreeMap<u64, AnthropicBlock>,
    /// Token counts, each as last reported.
    usage: AnthropicCounts,
}

/// Block that is collected until the reply ends, for its calls.
enum AnthropicBlock {
    /// Reasoning, which the service requires back verbatim with the calls it led to.
    Thinking { text: String, signature: String },
    /// Encrypted reasoning: the block as received.
    Redacted(Value),
    /// Tool call; `arguments` is JSON text.
    Call { id: String, name: String, arguments: String },
}

impl AnthropicFrames {
    /// Creates a decoder for the reply to a message.
    pub(crate) fn new(message_id: &Arc<str>) -> AnthropicFrames {
        AnthropicFrames {
            progress: DecodeProgress::new(message_id),
            blocks: BTreeMap::new(),
            usage: AnthropicCounts::default(),
        }
    }

    /// Processes the start of a block, or a whole block of a reply that is not a stream.
    fn start_block(&mut self, index: u64, content_block: AnthropicContent<'_>, items: &mut Vec<ReplyItem>) {
        let AnthropicContent { kind, text, thinking, signature, data, id, name, input } = content_block;
        if matches!(kind.as_ref(), "thinking" | "redacted_thinking" | "tool_use")
            && !self.progress.count_call(items)
        {
            return;
        }
        match kind.as_ref() {
            "text" => push_text(ReplyItem::Text, text.unwrap_or_default(), items),
            "thinking" => {
                self.blocks.insert(
                    index,
                    AnthropicBlock::Thinking { text: String::new(), signature: String::new() },
                );
                self.push_thinking(index, thinking.unwrap_or_default(), items);
                self.push_signature(index, &signature.unwrap_or_default(), items);
            }
            "redacted_thinking" => {
                let data = data.unwrap_or_default();
                if self.progress.count_bytes(data.len(), items) {
                    let block = json!({"type": "redacted_thinking", "data": data});
                    self.blocks.insert(index, AnthropicBlock::Redacted(block));
                }
            }
            "tool_use" => {
                let (id, name) = (id.unwrap_or_default().into_owned(), name.unwrap_or_default().into_owned());
                if !self.progress.count_bytes(id.len() + name.len(), items) {
                    return;
                }
                self.blocks.insert(index, AnthropicBlock::Call { id, name, arguments: String::new() });
                // An empty object only announces the arguments.
                if let Some(input) =
                    input.filter(|input| input.as_object().is_some_and(|map| !map.is_empty()))
                {
                    self.push_arguments(index, &input.to_string(), items);
                }
            }
            // Blocks of the service's own tools are ignored.
            _ => {}
        }
    }

    /// Adds reasoning to its block and to the items.
    fn push_thinking(&mut self, index: u64, delta: Cow<'_, str>, items: &mut Vec<ReplyItem>) {
        if let Some(AnthropicBlock::Thinking { text, .. }) = self.blocks.get_mut(&index)
            && self.progress.count_bytes(delta.len(), items)
        {
            text.push_str(&delta);
        }
        if !matches!(items.last(), Some(ReplyItem::End(_))) {
            push_text(ReplyItem::Reasoning, delta, items);
        }
    }

    /// Adds to the signature of a block of reasoning.
    fn push_signature(&mut self, index: u64, delta: &str, items: &mut Vec<ReplyItem>) {
        if let Some(AnthropicBlock::Thinking { signature, .. }) = self.blocks.get_mut(&index)
            && self.progress.count_bytes(delta.len(), items)
        {
            signature.push_str(delta);
        }
    }

    /// Adds to the arguments of a call.
    fn push_arguments(&mut self, index: u64, delta: &str, items: &mut Vec<ReplyItem>) {
        if let Some(AnthropicBlock::Call { arguments, .. }) = self.blocks.get_mut(&index)
            && self.progress.count_bytes(delta.len(), items)
        {
            arguments.push_str(delta);
        }
    }

    /// Updates the token counts and adds them to the items.
    fn add_counts(&mut self, usage: Option<AnthropicCounts>, items: &mut Vec<ReplyItem>) {
        let Some(usage) = usage else { return };
        self.usage.update(&usage);
        items.push(ReplyItem::Usage(self.usage.to_chat_counts()));
    }

    /// Sets the end of the reply from its stop reason.
    fn set_reported_end(&mut self, reason: Option<Cow<'_, str>>) {
        let Some(reason) = reason else { return };
        self.progress.reported_end = Some(InputEnd::Finished(match reason.as_ref() {
            // `pause_turn`: the service stopped before the turn was complete.
            "max_tokens" | "model_context_window_exceeded" | "pause_turn" => FinishReason::Length,
            "refusal" => FinishReason::ContentFilter,
            "tool_use" => FinishReason::ToolCalls,
            _ => FinishReason::Stop,
        }));
    }
}

impl FrameDecoder for AnthropicFrames {
    fn progress(&mut self) -> &mut DecodeProgress {
        &mut self.progress
    }

    /// Takes the calls. Each has the blocks of reasoning that precede it, since the service wants them back.
    fn take_calls(&mut self) -> Vec<NativeCall> {
        let (mut calls, mut reasoning_blocks) = (Vec::new(), Vec::new());
        for block in std::mem::take(&mut self.blocks).into_values() {
            match block {
                AnthropicBlock::Thinking { text, signature } => {
                    reasoning_blocks
                        .push(json!({"type": "thinking", "thinking": text, "signature": signature}));
                }
                AnthropicBlock::Redacted(block) => reasoning_blocks.push(block),
                AnthropicBlock::Call { id, name, arguments } => {
                    let arguments = if arguments.trim().is_empty() { "{}".to_owned() } else { arguments };
                    let extras = (!reasoning_blocks.is_empty())
                        .then(|| CallExtras::Anthropic(std::mem::take(&mut reasoning_blocks)));
                    let function = Function { name, arguments };
                    calls.push(NativeCall { id, kind: "function".to_owned(), function, extras });
                }
            }
        }
        calls
    }

    fn decode_frame(&mut self, frame: &SseFrame<'_>, items: &mut Vec<ReplyItem>) {
        let Some(event) = self.progress.parse::<AnthropicEvent<'_>>(frame.data) else { return };
        let AnthropicEvent { kind, index, message, content_block, delta, usage, error, content, stop_reason } =
            event;
        let index = index.unwrap_or_default();
        let kind = kind.as_deref().unwrap_or(frame.name);
        if kind == "error" || error.is_some() {
            // Without `error`, the text of the failure is in `message`.
            return items.push(ReplyItem::End(stream_failure(&error.or(message).unwrap_or_default())));
        }
        match kind {
            "message_start" => {
                let usage = message
                    .as_ref()
                    .and_then(|message| AnthropicCounts::deserialize(message.get("usage")?).ok());
                self.add_counts(usage, items);
            }
            "content_block_start" => {
                if let Some(block) = content_block {
                    self.start_block(index, block, items);
                }
            }
            "content_block_delta" => {
                let Some(delta) = delta else { return };
                match delta.kind.as_deref().unwrap_or_default() {
                    "text_delta" => push_text(ReplyItem::Text, delta.text.unwrap_or_default(), items),
                    "thinking_delta" => self.push_thinking(index, delta.thinking.unwrap_or_default(), items),
                    "signature_delta" => {
                        self.push_signature(index, &delta.signature.unwrap_or_default(), items)
                    }
                    "input_json_delta" => {
                        self.push_arguments(index, &delta.partial_json.unwrap_or_default(), items);
                    }
                    _ => {}
                }
            }
            "message_delta" => {
                self.add_counts(usage, items);
                self.set_reported_end(delta.and_then(|delta| delta.stop_reason));
            }
            "message_stop" => self.progress.is_done = true,
            // A whole reply instead of a stream.
            "message" => {
                for (index, block) in (0..).zip(content.unwrap_or_default()) {
                    if matches!(items.last(), Some(ReplyItem::End(_))) {
                        return;
                    }
                    self.start_block(index, block, items);
                }
                self.add_counts(usage, items);
                self.set_reported_end(stop_reason);
            }
            // `ping`, the end of a block, and future events.
            _ => {}
        }
    }
}

/// Converts an error in the stream to the end of the reply. The error is `{"type": ..., "message": ...}` or a
/// text.
fn stream_failure(error: &Value) -> InputEnd {
    let (code, retryable) = match error["type"].as_str().unwrap_or_default() {
        "authentication_error" | "permission_error" => ("upstream_unauthorized", false),
        "invalid_request_error" | "not_found_error" | "request_too_large" | "billing_error" => {
            ("upstream_refused", false)
        }
        "rate_limit_error" => ("upstream_rate_limited", true),
        _ => ("upstream_error", true),
    };
    let reason = error.as_str().or_else(|| error["message"].as_str()).filter(|reason| !reason.is_empty());
    let reason = reason.map_or_else(|| "no reason given".to_owned(), redact);
    InputEnd::Failed(new_failure(code, format!("the upstream failed: {reason}"), retryable))
}

/// Adds an item unless its text is empty.
fn push_text(item: fn(String) -> ReplyItem, text: Cow<'_, str>, items: &mut Vec<ReplyItem>) {
    if !text.is_empty() {
        items.push(item(text.into_owned()));
    }
}

/// Event, or a whole reply.
#[derive(Deserialize)]
struct AnthropicEvent<'a> {
    /// Type of the event; in a whole reply `message`.
    #[serde(borrow, default, rename = "type")]
    kind: Option<Cow<'a, str>>,
    /// Index of the content block that the event is about.
    #[serde(default)]
    index: Option<u64>,
    /// Start of the reply, with the first token counts; in an error event without `error`, the error.
    #[serde(default)]
    message: Option<Value>,
    #[serde(borrow, default)]
    content_block: Option<AnthropicContent<'a>>,
    #[serde(borrow, default)]
    delta: Option<AnthropicDelta<'a>>,
    #[serde(default)]
    usage: Option<AnthropicCounts>,
    #[serde(default)]
    error: Option<Value>,
    /// Blocks of a whole reply.
    #[serde(borrow, default)]
    content: Option<Vec<AnthropicContent<'a>>>,
    /// Stop reason of a whole reply; that of a stream is in `delta`.
    #[serde(borrow, default)]
    stop_reason: Option<Cow<'a, str>>,
}

/// Content block: its start in a stream, or a whole block.
#[derive(Deserialize)]
struct AnthropicContent<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    thinking: Option<Cow<'a, str>>,
    /// Signature of the reasoning in `thinking`.
    #[serde(borrow, default)]
    signature: Option<Cow<'a, str>>,
    /// Encrypted reasoning.
    #[serde(borrow, default)]
    data: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    /// Arguments of a tool call.
    #[serde(default)]
    input: Option<Value>,
}

/// Addition to a block, or to the whole message (`stop_reason`).
#[derive(Deserialize)]
struct AnthropicDelta<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    thinking: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    signature: Option<Cow<'a, str>>,
    /// Piece of the arguments of a tool call.
    #[serde(borrow, default)]
    partial_json: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    stop_reason: Option<Cow<'a, str>>,
}

/// Token counts. Each report has totals, so later values replace earlier ones.
#[derive(Default, Deserialize)]
struct AnthropicCounts {
    #[serde(default)]
    input_tokens: Option<u64>,
    #[serde(default)]
    output_tokens: Option<u64>,
    #[serde(default)]
    cache_creation_input_tokens: Option<u64>,
    #[serde(default)]
    cache_read_input_tokens: Option<u64>,
}

impl AnthropicCounts {
    /// Replaces the counts that `newer` has.
    fn update(&mut self, newer: &AnthropicCounts) {
        self.input_tokens = newer.input_tokens.or(self.input_tokens);
        self.output_tokens = newer.output_tokens.or(self.output_tokens);
        self.cache_creation_input_tokens =
            newer.cache_creation_input_tokens.or(self.cache_creation_input_tokens);
        self.cache_read_input_tokens = newer.cache_read_input_tokens.or(self.cache_read_input_tokens);
    }

    /// Converts to the counts of the chat completions interface, whose prompt tokens include those of the
    /// cache.
    fn to_chat_counts(&self) -> Value {
        let cache_read = self.cache_read_input_tokens.unwrap_or_default();
        let cache_write = self.cache_creation_input_tokens.unwrap_or_default();
        let input =
            self.input_tokens.unwrap_or_default().saturating_add(cache_read).saturating_add(cache_write);
        let output = self.output_tokens.unwrap_or_default();
        json!({
            "prompt_tokens": input,
            "completion_tokens": output,
            "total_tokens": input.saturating_add(output),
            "prompt_tokens_details": {"cached_tokens": cache_read},
        })
    }
}
