//! Decoder for the events of Anthropic's Messages interface.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use tambour::End;
use tambour::event::FinishReason;
use tambour::lex::sse::Frame;

use crate::upstream::decode::{Progress, Reading};
use crate::upstream::redact::redacted;
use crate::upstream::{Function, Item, Kept, NativeCall, failure};

/// Decoder for the events.
pub(in crate::upstream) struct Frames {
    progress: Progress,
    /// Incomplete blocks of reasoning and calls, by index.
    blocks: BTreeMap<u64, Block>,
    /// Token counts, each as last reported.
    usage: Counts,
}

/// Block that is collected whole.
enum Block {
    /// Reasoning, which the service requires back verbatim with the calls it led to.
    Thinking {
        text: String,
        signature: String,
    },
    /// Encrypted reasoning.
    Redacted(Value),
    Call {
        id: String,
        name: String,
        arguments: String,
    },
}

impl Frames {
    /// Creates a decoder for a message's reply.
    pub(in crate::upstream) fn new(message: &Arc<str>) -> Frames {
        Frames { progress: Progress::new(message), blocks: BTreeMap::new(), usage: Counts::default() }
    }

    /// Processes the start of a block, or a whole block of a reply that is not a stream.
    fn start(&mut self, index: u64, given: Content<'_>, items: &mut Vec<Item>) {
        let Content { kind, text, thinking, signature, data, id, name, input } = given;
        if matches!(kind.as_ref(), "thinking" | "redacted_thinking" | "tool_use")
            && !self.progress.one_more(items)
        {
            return;
        }
        match kind.as_ref() {
            "text" => push(Item::Text, text.unwrap_or_default(), items),
            "thinking" => {
                self.blocks.insert(index, Block::Thinking { text: String::new(), signature: String::new() });
                self.thinking(index, thinking.unwrap_or_default(), items);
                self.signed(index, &signature.unwrap_or_default(), items);
            }
            "redacted_thinking" => {
                let data = data.unwrap_or_default();
                if self.progress.room(data.len(), items) {
                    let block = json!({"type": "redacted_thinking", "data": data});
                    self.blocks.insert(index, Block::Redacted(block));
                }
            }
            "tool_use" => {
                let (id, name) = (id.unwrap_or_default().into_owned(), name.unwrap_or_default().into_owned());
                if !self.progress.room(id.len() + name.len(), items) {
                    return;
                }
                self.blocks.insert(index, Block::Call { id, name, arguments: String::new() });
                // An empty object only announces the arguments.
                if let Some(input) =
                    input.filter(|input| input.as_object().is_some_and(|map| !map.is_empty()))
                {
                    self.arguments(index, &input.to_string(), items);
                }
            }
            // Blocks of the service's own tools are ignored.
            _ => {}
        }
    }

    fn thinking(&mut self, index: u64, more: Cow<'_, str>, items: &mut Vec<Item>) {
        if let Some(Block::Thinking { text, .. }) = self.blocks.get_mut(&index)
            && self.progress.room(more.len(), items)
        {
            text.push_str(&more);
        }
        if !matches!(items.last(), Some(Item::End(_))) {
            push(Item::Reasoning, more, items);
        }
    }

    fn signed(&mut self, index: u64, more: &str, items: &mut Vec<Item>) {
        if let Some(Block::Thinking { signature, .. }) = self.blocks.get_mut(&index)
            && self.progress.room(more.len(), items)
        {
            signature.push_str(more);
        }
    }

    fn arguments(&mut self, index: u64, more: &str, items: &mut Vec<Item>) {
        if let Some(Block::Call { arguments, .. }) = self.blocks.get_mut(&index)
            && self.progress.room(more.len(), items)
        {
            arguments.push_str(more);
        }
    }

    fn counted(&mut self, usage: Option<Counts>, items: &mut Vec<Item>) {
        let Some(usage) = usage else { return };
        self.usage.add(&usage);
        items.push(Item::Usage(self.usage.value()));
    }

    fn stopped(&mut self, reason: Option<Cow<'_, str>>) {
        let Some(reason) = reason else { return };
        self.progress.finish = Some(End::Finished(match reason.as_ref() {
            // A paused turn is incomplete too.
            "max_tokens" | "model_context_window_exceeded" | "pause_turn" => FinishReason::Length,
            "refusal" => FinishReason::ContentFilter,
            "tool_use" => FinishReason::ToolCalls,
            _ => FinishReason::Stop,
        }));
    }
}

impl Reading for Frames {
    fn progress(&mut self) -> &mut Progress {
        &mut self.progress
    }

    /// Returns the calls; the first one carries the reasoning before it.
    fn calls(&mut self) -> Vec<NativeCall> {
        let (mut calls, mut before) = (Vec::new(), Vec::new());
        for block in std::mem::take(&mut self.blocks).into_values() {
            match block {
                Block::Thinking { text, signature } => {
                    before.push(json!({"type": "thinking", "thinking": text, "signature": signature}));
                }
                Block::Redacted(block) => before.push(block),
                Block::Call { id, name, arguments } => {
                    let arguments = if arguments.trim().is_empty() { "{}".to_owned() } else { arguments };
                    let kept = (!before.is_empty()).then(|| Kept::Anthropic(std::mem::take(&mut before)));
                    let function = Function { name, arguments };
                    calls.push(NativeCall { id, kind: "function".to_owned(), function, kept });
                }
            }
        }
        calls
    }

    fn frame(&mut self, frame: &Frame<'_>, items: &mut Vec<Item>) {
        let Some(event) = self.progress.read::<Event<'_>>(frame.data) else { return };
        let Event { kind, index, message, content_block, delta, usage, error, content, stop_reason } = event;
        let index = index.unwrap_or_default();
        let kind = kind.as_deref().unwrap_or(frame.name);
        if kind == "error" || error.is_some() {
            return items.push(Item::End(failed(&error.or(message).unwrap_or_default())));
        }
        match kind {
            "message_start" => {
                let usage =
                    message.as_ref().and_then(|message| Counts::deserialize(message.get("usage")?).ok());
                self.counted(usage, items);
            }
            "content_block_start" => {
                if let Some(block) = content_block {
                    self.start(index, block, items);
                }
            }
            "content_block_delta" => {
                let Some(delta) = delta else { return };
                match delta.kind.as_deref().unwrap_or_default() {
                    "text_delta" => push(Item::Text, delta.text.unwrap_or_default(), items),
                    "thinking_delta" => self.thinking(index, delta.thinking.unwrap_or_default(), items),
                    "signature_delta" => self.signed(index, &delta.signature.unwrap_or_default(), items),
                    "input_json_delta" => {
                        self.arguments(index, &delta.partial_json.unwrap_or_default(), items);
                    }
                    _ => {}
                }
            }
            "message_delta" => {
                self.counted(usage, items);
                self.stopped(delta.and_then(|delta| delta.stop_reason));
            }
            "message_stop" => self.progress.done = true,
            // A whole reply instead of a stream.
            "message" => {
                for (index, block) in (0..).zip(content.unwrap_or_default()) {
                    if matches!(items.last(), Some(Item::End(_))) {
                        return;
                    }
                    self.start(index, block, items);
                }
                self.counted(usage, items);
                self.stopped(stop_reason);
            }
            // `ping`, the end of a block, and future events.
            _ => {}
        }
    }
}

/// Converts an error in the stream, `{"type": ..., "message": ...}` or a text.
fn failed(error: &Value) -> End {
    let (code, retryable) = match error["type"].as_str().unwrap_or_default() {
        "authentication_error" | "permission_error" => ("upstream_unauthorized", false),
        "invalid_request_error" | "not_found_error" | "request_too_large" | "billing_error" => {
            ("upstream_refused", false)
        }
        "rate_limit_error" => ("upstream_rate_limited", true),
        _ => ("upstream_error", true),
    };
    let said = error.as_str().or_else(|| error["message"].as_str()).filter(|said| !said.is_empty());
    let said = said.map_or_else(|| "no reason given".to_owned(), redacted);
    End::Failed(failure(code, format!("the upstream failed: {said}"), retryable))
}

/// Adds an item unless its text is empty.
fn push(item: fn(String) -> Item, text: Cow<'_, str>, items: &mut Vec<Item>) {
    if !text.is_empty() {
        items.push(item(text.into_owned()));
    }
}

/// Event, or a whole reply.
#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<Cow<'a, str>>,
    #[serde(default)]
    index: Option<u64>,
    #[serde(default)]
    message: Option<Value>,
    #[serde(borrow, default)]
    content_block: Option<Content<'a>>,
    #[serde(borrow, default)]
    delta: Option<Delta<'a>>,
    #[serde(default)]
    usage: Option<Counts>,
    #[serde(default)]
    error: Option<Value>,
    #[serde(borrow, default)]
    content: Option<Vec<Content<'a>>>,
    #[serde(borrow, default)]
    stop_reason: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    thinking: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    signature: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    data: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    #[serde(default)]
    input: Option<Value>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    thinking: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    signature: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    partial_json: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    stop_reason: Option<Cow<'a, str>>,
}

/// Token counts. They are totals: later values replace earlier ones.
#[derive(Default, Deserialize)]
struct Counts {
    #[serde(default)]
    input_tokens: Option<u64>,
    #[serde(default)]
    output_tokens: Option<u64>,
    #[serde(default)]
    cache_creation_input_tokens: Option<u64>,
    #[serde(default)]
    cache_read_input_tokens: Option<u64>,
}

impl Counts {
    fn add(&mut self, later: &Counts) {
        self.input_tokens = later.input_tokens.or(self.input_tokens);
        self.output_tokens = later.output_tokens.or(self.output_tokens);
        self.cache_creation_input_tokens =
            later.cache_creation_input_tokens.or(self.cache_creation_input_tokens);
        self.cache_read_input_tokens = later.cache_read_input_tokens.or(self.cache_read_input_tokens);
    }

    /// Converts to the counts of the chat completions interface, whose prompt tokens include those of the
    /// cache.
    fn value(&self) -> Value {
        let read = self.cache_read_input_tokens.unwrap_or_default();
        let made = self.cache_creation_input_tokens.unwrap_or_default();
        let input = self.input_tokens.unwrap_or_default().saturating_add(read).saturating_add(made);
        let output = self.output_tokens.unwrap_or_default();
        json!({
            "prompt_tokens": input,
            "completion_tokens": output,
            "total_tokens": input.saturating_add(output),
            "prompt_tokens_details": {"cached_tokens": read},
        })
    }
}
