//! Decoder for the responses of Gemini's interface.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tambour::InputEnd;
use tambour::event::FinishReason;
use tambour::lex::sse::SseFrame;

use crate::decode::{DecodeProgress, FrameDecoder};
use crate::service::error_text;
use crate::{CallExtras, Function, NativeCall, ReplyItem, new_failure};

/// Decoder for the responses.
pub(crate) struct GeminiFrames {
    progress: DecodeProgress,
    calls: Vec<NativeCall>,
    /// Token counts as last added to the items. Every response has them, mostly unchanged.
    usage: Option<Value>,
}

impl GeminiFrames {
    /// Creates a decoder for the reply to a message.
    pub(crate) fn new(message_id: &Arc<str>) -> GeminiFrames {
        GeminiFrames { progress: DecodeProgress::new(message_id), calls: Vec::new(), usage: None }
    }

    /// Converts one response of the stream to items.
    fn read_response(&mut self, response: GeminiResponse<'_>, items: &mut Vec<ReplyItem>) {
        let GeminiResponse { candidates, prompt_feedback, usage_metadata, error } = response;
        if let Some(error) = error.filter(|error| !error.is_null()) {
            return items.push(ReplyItem::End(stream_failure(&error)));
        }
        if prompt_feedback.and_then(|feedback| feedback.block_reason).is_some_and(|reason| !reason.is_empty())
        {
            // The service refused the prompt, so there is no reply.
            self.progress.reported_end = Some(InputEnd::Finished(FinishReason::ContentFilter));
        }
        if let Some(candidate) = candidates.and_then(|candidates| candidates.into_iter().next()) {
            self.read_candidate(candidate, items);
        }
        let usage = usage_metadata.as_ref().map(GeminiCounts::to_chat_counts);
        if usage.is_some() && usage != self.usage && !matches!(items.last(), Some(ReplyItem::End(_))) {
            items.extend(usage.clone().map(ReplyItem::Usage));
            self.usage = usage;
        }
    }

    /// Converts the content and finish reason of a response to items.
    fn read_candidate(&mut self, candidate: GeminiCandidate<'_>, items: &mut Vec<ReplyItem>) {
        for part in candidate.content.and_then(|content| content.parts).unwrap_or_default() {
            let GeminiPart { text, thought, function_call, thought_signature } = part;
            if let Some(text) = text.filter(|text| !text.is_empty()) {
                let text = text.into_owned();
                items.push(if thought { ReplyItem::Reasoning(text) } else { ReplyItem::Text(text) });
            }
            if let Some(call) = function_call
                && !self.add_call(call, thought_signature, items)
            {
                return;
            }
        }
        if let Some(reason) = candidate.finish_reason.filter(|reason| !reason.is_empty()) {
            self.progress.reported_end = Some(end_of_reason(&reason));
        }
        // The service has no finish reason for tool calls.
        if !self.calls.is_empty() && self.progress.reported_end == Some(InputEnd::stop()) {
            self.progress.reported_end = Some(InputEnd::Finished(FinishReason::ToolCalls));
        }
    }

    /// Adds a complete call; returns `false` if it exceeds the limits.
    fn add_call(
        &mut self,
        call: GeminiCall<'_>,
        signature: Option<String>,
        items: &mut Vec<ReplyItem>,
    ) -> bool {
        let id = call.id.unwrap_or_default().into_owned();
        let name = call.name.unwrap_or_default().into_owned();
        let arguments = Value::Object(call.args.unwrap_or_default()).to_string();
        let bytes = id.len() + name.len() + arguments.len() + signature.as_ref().map_or(0, String::len);
        if !self.progress.count_bytes(bytes, items) || !self.progress.count_call(items) {
            return false;
        }
        let extras = Some(CallExtras::Gemini { signature, has_service_id: !id.is_empty() });
        let function = Function { name, arguments };
        self.calls.push(NativeCall { id, kind: "function".to_owned(), function, extras });
        true
    }
}

impl FrameDecoder for GeminiFrames {
    fn progress(&mut self) -> &mut DecodeProgress {
        &mut self.progress
    }

    fn take_calls(&mut self) -> Vec<NativeCall> {
        std::mem::take(&mut self.calls)
    }

    fn decode_frame(&mut self, frame: &SseFrame<'_>, items: &mut Vec<ReplyItem>) {
        if frame.data.starts_with(b"[") {
            // All responses in one list instead of a stream.
            for response in self.progress.parse::<Vec<GeminiResponse<'_>>>(frame.data).unwrap_or_default() {
                if matches!(items.last(), Some(ReplyItem::End(_))) {
                    return;
                }
                self.read_response(response, items);
            }
        } else if let Some(response) = self.progress.parse(frame.data) {
            self.read_response(response, items);
        }
    }
}

/// Converts a finish reason. With an unknown reason the reply is not trusted: it ends without a reason, which
/// counts as truncated.
fn end_of_reason(reason: &str) -> InputEnd {
    match reason {
        "STOP" => InputEnd::stop(),
        "MAX_TOKENS" => InputEnd::Finished(FinishReason::Length),
        "SAFETY" | "RECITATION" | "LANGUAGE" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII"
        | "IMAGE_SAFETY" => InputEnd::Finished(FinishReason::ContentFilter),
        "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" | "TOO_MANY_TOOL_CALLS" | "MALFORMED_RESPONSE" => {
            let message =
                format!("the upstream failed: its service could not read the model's output ({reason})");
            InputEnd::Failed(new_failure("upstream_error", message, true))
        }
        _ => InputEnd::WithoutReason,
    }
}

/// Converts an error in the stream to the end of the reply. The error is
/// `{"code": 503, "message": ..., "status": ...}`.
fn stream_failure(error: &Value) -> InputEnd {
    let (code, retryable) = match error["code"].as_u64() {
        Some(401 | 403) => ("upstream_unauthorized", false),
        Some(429) => ("upstream_rate_limited", true),
        Some(400..=499) => ("upstream_refused", false),
        _ => ("upstream_error", true),
    };
    let reason = error_text(&json!({ "error": error })).unwrap_or_else(|| "no reason given".to_owned());
    InputEnd::Failed(new_failure(code, format!("the upstream failed: {reason}"), retryable))
}

/// One response of the stream.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiResponse<'a> {
    #[serde(borrow, default)]
    candidates: Option<Vec<GeminiCandidate<'a>>>,
    #[serde(borrow, default)]
    prompt_feedback: Option<GeminiFeedback<'a>>,
    #[serde(default)]
    usage_metadata: Option<GeminiCounts>,
    #[serde(default)]
    error: Option<Value>,
}

/// Judgement of the service about the prompt.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiFeedback<'a> {
    #[serde(borrow, default)]
    block_reason: Option<Cow<'a, str>>,
}

/// One of the replies that the service may send for a request; only the first is read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiCandidate<'a> {
    #[serde(borrow, default)]
    content: Option<GeminiContent<'a>>,
    #[serde(borrow, default)]
    finish_reason: Option<Cow<'a, str>>,
}

/// Content of a reply.
#[derive(Deserialize)]
struct GeminiContent<'a> {
    #[serde(borrow, default)]
    parts: Option<Vec<GeminiPart<'a>>>,
}

/// Part of a reply: text, reasoning or a call.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiPart<'a> {
    #[serde(borrow, default)]
    text: Option<Cow<'a, str>>,
    /// True if the text is reasoning.
    #[serde(default)]
    thought: bool,
    #[serde(borrow, default)]
    function_call: Option<GeminiCall<'a>>,
    /// Signature of the reasoning that led to the call.
    #[serde(default)]
    thought_signature: Option<String>,
}

/// Complete tool call.
#[derive(Deserialize)]
struct GeminiCall<'a> {
    #[serde(borrow, default)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    #[serde(default)]
    args: Option<Map<String, Value>>,
}

/// Token counts of the reply so far.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiCounts {
    #[serde(default)]
    prompt_token_count: u64,
    /// Tokens of the reply without its reasoning.
    #[serde(default)]
    candidates_token_count: u64,
    #[serde(default)]
    total_token_count: u64,
    /// Tokens of the reasoning.
    #[serde(default)]
    thoughts_token_count: u64,
    /// Tokens of tool results in the prompt, which `prompt_token_count` leaves out.
    #[serde(default)]
    tool_use_prompt_token_count: u64,
    /// Number of the prompt tokens that the service had cached; included in `prompt_token_count`.
    #[serde(default)]
    cached_content_token_count: u64,
}

impl GeminiCounts {
    /// Converts to the counts of the chat completions interface, whose reply tokens include those of
    /// reasoning.
    fn to_chat_counts(&self) -> Value {
        let input = self.prompt_token_count.saturating_add(self.tool_use_prompt_token_count);
        let output = self.candidates_token_count.saturating_add(self.thoughts_token_count);
        json!({
            "prompt_tokens": input,
            "completion_tokens": output,
            "total_tokens": self.total_token_count.max(input.saturating_add(output)),
            "prompt_tokens_details": {"cached_tokens": self.cached_content_token_count},
            "completion_tokens_details": {"reasoning_tokens": self.thoughts_token_count},
        })
    }
}
