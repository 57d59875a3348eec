//! Encoder of the protocol of Anthropic Messages: a sequence of blocks, or a whole message.

use serde_json::{Value, json};

use super::client_protocol::{
    AnswerBuffer, PhaseTitles, StreamContext, UsageCounts, unique_call_id, write_named_frame, write_value,
};
use super::encoder::{Encoder, EncoderEntry};
use super::entry_content::{EntryContent, FoldedMessage};
use crate::event::{Completed, Failure, FinishReason, ToolCall};

/// Writes the events of one message.
#[derive(Debug)]
pub struct AnthropicEncoder {
    context: StreamContext,
    /// Number of finished blocks, which is the index of the open one.
    block_count: usize,
    /// Kind of the open block.
    open_block: Option<BlockKind>,
    answer: AnswerBuffer,
    phase_titles: PhaseTitles,
    has_calls: bool,
    is_over: bool,
}

/// Kind of a content block that is streamed as deltas; calls are written whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlockKind {
    Thinking,
    Text,
}

impl AnthropicEncoder {
    /// Creates the encoder of one message.
    #[must_use]
    pub fn new(context: StreamContext) -> AnthropicEncoder {
        let answer = AnswerBuffer::new(&context);
        AnthropicEncoder {
            context,
            block_count: 0,
            open_block: None,
            answer,
            phase_titles: PhaseTitles::default(),
            has_calls: false,
            is_over: false,
        }
    }

    /// Begins a block of `kind`, unless both it and the open block are text.
    fn begin_block(&mut self, kind: BlockKind, out: &mut Vec<u8>) {
        if self.open_block == Some(BlockKind::Text) && kind == BlockKind::Text {
            return;
        }
        self.close_block(out);
        let block = match kind {
            BlockKind::Thinking => json!({"type": "thinking", "thinking": "", "signature": ""}),
            BlockKind::Text => json!({"type": "text", "text": ""}),
        };
        let fields = json!({"index": self.block_count, "content_block": block});
        write_event("content_block_start", &fields, out);
        self.open_block = Some(kind);
    }

    /// Writes text of the open block; `text` is a JSON string.
    fn write_text(&self, text: &str, out: &mut Vec<u8>) {
        let (kind, field) = match self.open_block {
            Some(BlockKind::Thinking) => ("thinking_delta", "thinking"),
            Some(BlockKind::Text) => ("text_delta", "text"),
            None => return,
        };
        let start = format!(
            "{{\"type\":\"content_block_delta\",\"index\":{},\"delta\":{{\"type\":\"{kind}\",\"{field}\":",
            self.block_count
        );
        write_named_frame(out, "content_block_delta", |out| {
            out.extend_from_slice(start.as_bytes());
            out.extend_from_slice(text.as_bytes());
            out.extend_from_slice(b"}}");
        });
    }

    /// Begins the thinking block of a phase with the title of the phase.
    fn write_title(&mut self, title: &str, out: &mut Vec<u8>) {
        self.begin_block(BlockKind::Thinking, out);
        self.write_text(&Value::from(format!("{title}\n")).to_string(), out);
    }

    fn close_block(&mut self, out: &mut Vec<u8>) {
        if let Some(kind) = self.open_block.take() {
            if kind == BlockKind::Thinking {
                // Only the provider can sign reasoning, so the signature is empty.
                let delta = json!({"type": "signature_delta", "signature": ""});
                write_event("content_block_delta", &json!({"index": self.block_count, "delta": delta}), out);
            }
            write_event("content_block_stop", &json!({"index": self.block_count}), out);
            self.block_count += 1;
        }
    }

    fn write_call(&mut self, call: &ToolCall, out: &mut Vec<u8>) {
        self.close_block(out);
        let mut block = tool_use_block(&self.context, call);
        // The block starts without arguments; they follow as one delta.
        let input = std::mem::replace(&mut block["input"], json!({}));
        write_event("content_block_start", &json!({"index": self.block_count, "content_block": block}), out);
        let delta = json!({"type": "input_json_delta", "partial_json": input.to_string()});
        write_event("content_block_delta", &json!({"index": self.block_count, "delta": delta}), out);
        write_event("content_block_stop", &json!({"index": self.block_count}), out);
        self.block_count += 1;
        self.has_calls = true;
    }

    fn write_end(&mut self, completed: &Completed, out: &mut Vec<u8>) {
        let is_fallback = completed.metadata.fallback_reason.is_some();
        for text in self.answer.take_held(is_fallback && self.has_calls) {
            self.begin_block(BlockKind::Text, out);
            self.write_text(&text, out);
        }
        self.close_block(out);
        let tokens = UsageCounts::from_usage(&completed.usage);
        let delta = json!({"stop_reason": stop_reason(completed, self.has_calls), "stop_sequence": null});
        let usage = json!({"input_tokens": tokens.input, "output_tokens": tokens.output});
        write_event("message_delta", &json!({"delta": delta, "usage": usage}), out);
        write_event("message_stop", &json!({}), out);
        self.is_over = true;
    }
}

impl Encoder for AnthropicEncoder {
    fn write_start(&mut self, _: bool, _: &str, out: &mut Vec<u8>) {
        let message = message_body(&self.context, &[], None, UsageCounts::default());
        write_event("message_start", &json!({ "message": message }), out);
    }

    fn write_entry(&mut self, entry: &EncoderEntry<'_>, out: &mut Vec<u8>) {
        match EntryContent::new(entry) {
            Some(EntryContent::PhaseStart { title, .. }) => {
                for title in self.phase_titles.begin_phase(&title) {
                    self.write_title(&title, out);
                }
            }
            Some(EntryContent::PhaseText(text)) => {
                if let Some(title) = self.phase_titles.take_held() {
                    self.write_title(&title, out);
                }
                self.write_text(text, out);
            }
            Some(EntryContent::ThinkingEnd) => self.close_block(out),
            Some(EntryContent::FinalText(text)) if self.answer.push_text(text) => {
                self.begin_block(BlockKind::Text, out);
                self.write_text(text, out);
            }
            Some(EntryContent::Call(call)) => {
                self.answer.note_call();
                self.write_call(&call, out);
            }
            Some(EntryContent::Completed(completed)) => self.write_end(&completed, out),
            Some(EntryContent::Error(failure)) => {
                write_named_frame(out, "error", |out| write_value(out, &error_body(&failure)));
                self.is_over = true;
            }
            _ => {}
        }
    }

    fn write_heartbeat(&mut self, _: &str, out: &mut Vec<u8>) {
        write_event("ping", &json!({}), out);
    }

    fn is_over(&self) -> bool {
        self.is_over
    }
}

/// Error body for a failure in this protocol.
#[must_use]
pub fn error_body(failure: &Failure) -> Value {
    let status = failure.upstream.as_ref().map(|refusal| refusal.status);
    let kind = match &*failure.code {
        _ if status == Some(404) => "not_found_error",
        _ if status == Some(413) => "request_too_large",
        _ if status.is_some() => "invalid_request_error",
        "upstream_rate_limited" => "rate_limit_error",
        "upstream_timeout" => "timeout_error",
        "input_too_large" => "invalid_request_error",
        code if failure.retryable && code.starts_with("upstream") => "overloaded_error",
        _ => "api_error",
    };
    json!({"type": "error", "error": {"type": kind, "message": failure.message}})
}

/// Body of a message that is not streamed.
#[must_use]
pub fn message_from_log(context: &StreamContext, folded_message: &FoldedMessage) -> Value {
    let thinking = folded_message.reasoning_phases().iter().map(
        |(title, text)| json!({"type": "thinking", "thinking": format!("{title}\n{text}"), "signature": ""}),
    );
    let text =
        (!folded_message.answer.is_empty()).then(|| json!({"type": "text", "text": folded_message.answer}));
    let calls = folded_message.calls.iter().map(|call| tool_use_block(context, call));
    let content: Vec<Value> = thinking.chain(text).chain(calls).collect();
    let completed = folded_message.completed.as_deref().cloned().unwrap_or_default();
    let reason = stop_reason(&completed, !folded_message.calls.is_empty());
    message_body(context, &content, Some(reason), UsageCounts::from_usage(&completed.usage))
}

fn message_body(
    context: &StreamContext,
    content: &[Value],
    stop_reason: Option<&str>,
    tokens: UsageCounts,
) -> Value {
    json!({
        "id": context.message_id, "type": "message", "role": "assistant", "model": context.model, "content": content,
        "stop_reason": stop_reason, "stop_sequence": null,
        "usage": {"input_tokens": tokens.input, "output_tokens": tokens.output},
    })
}

fn tool_use_block(context: &StreamContext, ToolCall { call_id: id, name, args }: &ToolCall) -> Value {
    json!({"type": "tool_use", "id": unique_call_id(context, id), "name": name, "input": args})
}

fn stop_reason(completed: &Completed, has_calls: bool) -> &'static str {
    match completed.finish_reason {
        FinishReason::Length => "max_tokens",
        FinishReason::ContentFilter => "refusal",
        FinishReason::Stop | FinishReason::ToolCalls | FinishReason::Cancelled if has_calls => "tool_use",
        FinishReason::Stop | FinishReason::ToolCalls | FinishReason::Cancelled => "end_turn",
    }
}

/// Writes an event. `kind` is its name and the value of its field `type`; the members of `fields` follow.
fn write_event(kind: &str, fields: &Value, out: &mut Vec<u8>) {
    let mut event = json!({ "type": kind });
    if let (Value::Object(event), Value::Object(fields)) = (&mut event, fields) {
        event.extend(fields.clone());
    }
    write_named_frame(out, kind, |out| write_value(out, &event));
}
