//! Decoder for the responses of Gemini's interface.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tambour::End;
use tambour::event::FinishReason;
use tambour::lex::sse::Frame;

use crate::upstream::decode::{Progress, Reading};
use crate::upstream::service::error_text;
use crate::upstream::{Function, Item, Kept, NativeCall, failure};

/// Decoder for the responses.
pub(in crate::upstream) struct Frames {
    progress: Progress,
    calls: Vec<NativeCall>,
    /// Token counts as last reported; every response has them.
    usage: Option<Value>,
}

impl Frames {
    /// Creates a decoder for a message's reply.
    pub(in crate::upstream) fn new(message: &Arc<str>) -> Frames {
        Frames { progress: Progress::new(message), calls: Vec::new(), usage: None }
    }

    fn response(&mut self, response: Response<'_>, items: &mut Vec<Item>) {
        let Response { candidates, prompt_feedback, usage_metadata, error } = response;
        if let Some(error) = error.filter(|error| !error.is_null()) {
            return items.push(Item::End(failed(&error)));
        }
        if prompt_feedback.and_then(|feedback| feedback.block_reason).is_some_and(|reason| !reason.is_empty())
        {
            // The prompt was refused: there is no answer.
            self.progress.finish = Some(End::Finished(FinishReason::ContentFilter));
        }
        if let Some(candidate) = candidates.and_then(|candidates| candidates.into_iter().next()) {
            self.candidate(candidate, items);
        }
        let usage = usage_metadata.as_ref().map(Counts::value);
        if usage.is_some() && usage != self.usage && !matches!(items.last(), Some(Item::End(_))) {
            items.extend(usage.clone().map(Item::Usage));
            self.usage = usage;
        }
    }

    fn candidate(&mut self, candidate: Candidate<'_>, items: &mut Vec<Item>) {
        for part in candidate.content.and_then(|content| content.parts).unwrap_or_default() {
            let Part { text, thought, function_call, thought_signature } = part;
            if let Some(text) = text.filter(|text| !text.is_empty()) {
                let text = text.into_owned();
                items.push(if thought { Item::Reasoning(text) } else { Item::Text(text) });
            }
            if let Some(call) = function_call
                && !self.call(call, thought_signature, items)
            {
                return;
            }
        }
        if let Some(reason) = candidate.finish_reason.filter(|reason| !reason.is_empty()) {
            self.progress.finish = Some(end(&reason));
        }
        // The service has no finish reason for tool calls.
        if !self.calls.is_empty() && self.progress.finish == Some(End::stop()) {
            self.progress.finish = Some(End::Finished(FinishReason::ToolCalls));
        }
    }

    /// Adds a complete call; `false` if it exceeds the limits.
    fn call(&mut self, call: Call<'_>, signature: Option<String>, items: &mut Vec<Item>) -> bool {
        let id = call.id.unwrap_or_default().into_owned();
        let name = call.name.unwrap_or_default().into_owned();
        let arguments = Value::Object(call.args.unwrap_or_default()).to_string();
        let bytes = id.len() + name.len() + arguments.len() + signature.as_ref().map_or(0, String::len);
        if !self.progress.room(bytes, items) || !self.progress.one_more(items) {
            return false;
        }
        let kept = Some(Kept::Gemini { signature, named: !id.is_empty() });
        let function = Function { name, arguments };
        self.calls.push(NativeCall { id, kind: "function".to_owned(), function, kept });
        true
    }
}

impl Reading for Frames {
    fn progress(&mut self) -> &mut Progress {
        &mut self.progress
    }

    fn calls(&mut self) -> Vec<NativeCall> {
        std::mem::take(&mut self.calls)
    }

    fn frame(&mut self, frame: &Frame<'_>, items: &mut Vec<Item>) {
        if frame.data.starts_with(b"[") {
            // All responses in one list instead of a stream.
            for response in self.progress.read::<Vec<Response<'_>>>(frame.data).unwrap_or_default() {
                if matches!(items.last(), Some(Item::End(_))) {
                    return;
                }
                self.response(response, items);
            }
        } else if let Some(response) = self.progress.read(frame.data) {
            self.response(response, items);
        }
    }
}

/// Converts a finish reason. With an unknown one the reply is not trusted: it counts as truncated.
fn end(reason: &str) -> End {
    match reason {
        "STOP" => End::stop(),
        "MAX_TOKENS" => End::Finished(FinishReason::Length),
        "SAFETY" | "RECITATION" | "LANGUAGE" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII"
        | "IMAGE_SAFETY" => End::Finished(FinishReason::ContentFilter),
        "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" | "TOO_MANY_TOOL_CALLS" | "MALFORMED_RESPONSE" => {
            let message =
                format!("the upstream failed: the model wrote what its service cannot read ({reason})");
            End::Failed(failure("upstream_error", message, true))
        }
        _ => End::Unknown,
    }
}

/// Converts an error in the stream: `{"code": 503, "message": ..., "status": ...}`.
fn failed(error: &Value) -> End {
    let (code, retryable) = match error["code"].as_u64() {
        Some(401 | 403) => ("upstream_unauthorized", false),
        Some(429) => ("upstream_rate_limited", true),
        Some(400..=499) => ("upstream_refused", false),
        _ => ("upstream_error", true),
    };
    let said = error_text(&json!({ "error": error })).unwrap_or_else(|| "no reason given".to_owned());
    End::Failed(failure(code, format!("the upstream failed: {said}"), retryable))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Response<'a> {
    #[serde(borrow, default)]
    candidates: Option<Vec<Candidate<'a>>>,
    #[serde(borrow, default)]
    prompt_feedback: Option<Feedback<'a>>,
    #[serde(default)]
    usage_metadata: Option<Counts>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback<'a> {
    #[serde(borrow, default)]
    block_reason: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<'a> {
    #[serde(borrow, default)]
    content: Option<Content<'a>>,
    #[serde(borrow, default)]
    finish_reason: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow, default)]
    parts: Option<Vec<Part<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    #[serde(borrow, default)]
    text: Option<Cow<'a, str>>,
    /// True if it is reasoning.
    #[serde(default)]
    thought: bool,
    #[serde(borrow, default)]
    function_call: Option<Call<'a>>,
    #[serde(default)]
    thought_signature: Option<String>,
}

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow, default)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    #[serde(default)]
    args: Option<Map<String, Value>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Counts {
    #[serde(default)]
    prompt_token_count: u64,
    #[serde(default)]
    candidates_token_count: u64,
    #[serde(default)]
    total_token_count: u64,
    #[serde(default)]
    thoughts_token_count: u64,
    #[serde(default)]
    tool_use_prompt_token_count: u64,
    #[serde(default)]
    cached_content_token_count: u64,
}

impl Counts {
    /// Converts to the counts of the chat completions interface, whose reply tokens include those of
    /// reasoning.
    fn value(&self) -> Value {
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
