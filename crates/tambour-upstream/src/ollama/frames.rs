//! Decoder for the lines of Ollama's interface.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use tambour::InputEnd;
use tambour::event::FinishReason;
use tambour::lex::sse::SseFrame;

use crate::decode::{DecodeProgress, FrameDecoder};
use crate::service::error_text;
use crate::{Function, NativeCall, ReplyItem, new_failure};

/// Decoder for the lines.
pub(crate) struct OllamaFrames {
    progress: DecodeProgress,
    calls: Vec<NativeCall>,
}

impl OllamaFrames {
    /// Creates a decoder for the reply to a message.
    pub(crate) fn new(message_id: &Arc<str>) -> OllamaFrames {
        OllamaFrames { progress: DecodeProgress::new(message_id), calls: Vec::new() }
    }

    /// Adds a complete call; returns `false` if it exceeds the limits.
    fn add_call(&mut self, call: OllamaCall<'_>, items: &mut Vec<ReplyItem>) -> bool {
        let OllamaCall { id, function } = call;
        let id = id.unwrap_or_default().into_owned();
        let OllamaFunction { name, arguments } = function.unwrap_or_default();
        let name = name.unwrap_or_default().into_owned();
        let arguments = match arguments {
            None | Some(Value::Null) => "{}".to_owned(),
            Some(Value::String(text)) => text,
            Some(value) => value.to_string(),
        };
        if !self.progress.count_bytes(id.len() + name.len() + arguments.len(), items)
            || !self.progress.count_call(items)
        {
            return false;
        }
        let function = Function { name, arguments };
        self.calls.push(NativeCall { id, kind: "function".to_owned(), function, extras: None });
        true
    }
}

impl FrameDecoder for OllamaFrames {
    fn progress(&mut self) -> &mut DecodeProgress {
        &mut self.progress
    }

    fn take_calls(&mut self) -> Vec<NativeCall> {
        std::mem::take(&mut self.calls)
    }

    fn decode_frame(&mut self, frame: &SseFrame<'_>, items: &mut Vec<ReplyItem>) {
        let Some(line) = self.progress.parse::<OllamaLine<'_>>(frame.data) else { return };
        if let Some(error) = line.error.filter(|error| !error.is_null()) {
            let reason =
                error_text(&json!({ "error": error })).unwrap_or_else(|| "no reason given".to_owned());
            let failure = new_failure("upstream_error", format!("the upstream failed: {reason}"), true);
            return items.push(ReplyItem::End(InputEnd::Failed(failure)));
        }
        let OllamaMessage { content, thinking, tool_calls } = line.message.unwrap_or_default();
        if let Some(text) = thinking.filter(|text| !text.is_empty()) {
            items.push(ReplyItem::Reasoning(text.into_owned()));
        }
        if let Some(text) = content.filter(|text| !text.is_empty()) {
            items.push(ReplyItem::Text(text.into_owned()));
        }
        for call in tool_calls.unwrap_or_default() {
            if !self.add_call(call, items) {
                return;
            }
        }
        if !line.done {
            return;
        }
        if line.prompt_eval_count.is_some() || line.eval_count.is_some() {
            let (input, output) =
                (line.prompt_eval_count.unwrap_or_default(), line.eval_count.unwrap_or_default());
            items.push(ReplyItem::Usage(json!({
                "prompt_tokens": input,
                "completion_tokens": output,
                "total_tokens": input.saturating_add(output),
            })));
        }
        self.progress.is_done = true;
        self.progress.reported_end = Some(InputEnd::Finished(match line.done_reason.as_deref() {
            Some("length") => FinishReason::Length,
            // The service has no finish reason for tool calls.
            _ if !self.calls.is_empty() => FinishReason::ToolCalls,
            _ => FinishReason::Stop,
        }));
    }
}

/// Line of the stream; the last one has `done` and the token counts.
#[derive(Deserialize)]
struct OllamaLine<'a> {
    #[serde(borrow, default)]
    message: Option<OllamaMessage<'a>>,
    #[serde(default)]
    done: bool,
    #[serde(borrow, default)]
    done_reason: Option<Cow<'a, str>>,
    /// Tokens of the prompt.
    #[serde(default)]
    prompt_eval_count: Option<u64>,
    /// Tokens of the reply.
    #[serde(default)]
    eval_count: Option<u64>,
    #[serde(default)]
    error: Option<Value>,
}

/// Part of a reply.
#[derive(Default, Deserialize)]
struct OllamaMessage<'a> {
    #[serde(borrow, default)]
    content: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    thinking: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    tool_calls: Option<Vec<OllamaCall<'a>>>,
}

/// Complete tool call.
#[derive(Deserialize)]
struct OllamaCall<'a> {
    #[serde(borrow, default)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    function: Option<OllamaFunction<'a>>,
}

/// Function of a call; the arguments are an object, or JSON text.
#[derive(Default, Deserialize)]
struct OllamaFunction<'a> {
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    #[serde(default)]
    arguments: Option<Value>,
}
