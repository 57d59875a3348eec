//! Attribute names and values of the OpenTelemetry convention for model and tool calls. The convention is
//! still changing; a new version of it affects this file only.

use opentelemetry::{Array, KeyValue, StringValue, Value as Attribute};
use reqwest::Url;
use serde_json::{Value, json};
use tambour::event::FinishReason;

use super::{CallTarget, ToolCallInfo};
use crate::run::quotas::TokenCounts;
use crate::upstream::{Message, ModelRequest, NativeCall};

/// Conversation or dialogue.
pub(super) const CONVERSATION: &str = "gen_ai.conversation.id";
/// Failure code.
pub(super) const ERROR: &str = "error.type";
const OPERATION: &str = "gen_ai.operation.name";
const PROVIDER: &str = "gen_ai.provider.name";
const MODEL: &str = "gen_ai.request.model";
const TEMPERATURE: &str = "gen_ai.request.temperature";
const TOP_P: &str = "gen_ai.request.top_p";
const MAX_TOKENS: &str = "gen_ai.request.max_tokens";
const SEED: &str = "gen_ai.request.seed";
const STOP: &str = "gen_ai.request.stop_sequences";
const OUTPUT: &str = "gen_ai.output.type";
const REASONS: &str = "gen_ai.response.finish_reasons";
const FIRST: &str = "gen_ai.response.time_to_first_chunk";
const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
const INPUT_MESSAGES: &str = "gen_ai.input.messages";
const OUTPUT_MESSAGES: &str = "gen_ai.output.messages";
const TOOL: &str = "gen_ai.tool.name";
const TOOL_CALL: &str = "gen_ai.tool.call.id";
const TOOL_TYPE: &str = "gen_ai.tool.type";
const ARGUMENTS: &str = "gen_ai.tool.call.arguments";
const RESULT: &str = "gen_ai.tool.call.result";
const ADDRESS: &str = "server.address";
const PORT: &str = "server.port";
/// Most bytes of one text attribute; longer ones are omitted and marked.
const MAX_TEXT_BYTES: usize = 256 << 10;
/// Name of an omitted attribute.
const OMITTED: &str = "tambour.content_omitted";

/// Reply of a model, if texts are traced.
#[derive(Default)]
pub(super) struct CollectedReply {
    pub(super) text: String,
    pub(super) reasoning: String,
    pub(super) calls: Vec<NativeCall>,
}

/// Returns the span name of a model call.
pub(super) fn chat_name(asked: &CallTarget<'_>) -> String {
    asked.model.map_or_else(|| "chat".to_owned(), |model| format!("chat {model}"))
}

/// Returns the attributes of a model call that are known before the response.
pub(super) fn chat_attributes(asked: &CallTarget<'_>, ask: &ModelRequest, content: bool) -> Vec<KeyValue> {
    let provider = match asked.provider {
        "gemini" => "gcp.gemini",
        other => other,
    };
    let mut all = vec![KeyValue::new(OPERATION, "chat"), KeyValue::new(PROVIDER, provider.to_owned())];
    all.extend(asked.model.map(|model| KeyValue::new(MODEL, model.to_owned())));
    if let Some(url) = asked.base.and_then(|base| Url::parse(base).ok()) {
        all.extend(url.host_str().map(|host| KeyValue::new(ADDRESS, host.to_owned())));
        all.extend(url.port_or_known_default().map(|port| KeyValue::new(PORT, i64::from(port))));
    }
    all.extend(ask.temperature.map(|value| KeyValue::new(TEMPERATURE, value)));
    all.extend(ask.top_p.map(|value| KeyValue::new(TOP_P, value)));
    all.extend(ask.max_tokens.map(|value| KeyValue::new(MAX_TOKENS, i64::from(value))));
    all.extend(ask.seed.map(|value| KeyValue::new(SEED, value)));
    let stops: Vec<StringValue> = match &ask.stop {
        Some(Value::String(stop)) => vec![stop.clone().into()],
        Some(Value::Array(stops)) => {
            stops.iter().filter_map(Value::as_str).map(|stop| stop.to_owned().into()).collect()
        }
        _ => Vec::new(),
    };
    if !stops.is_empty() {
        all.push(KeyValue::new(STOP, Attribute::Array(Array::String(stops))));
    }
    if ask.response_format.as_ref().is_some_and(|format| format["type"] != "text") {
        all.push(KeyValue::new(OUTPUT, "json"));
    }
    if content {
        let messages: Vec<Value> = ask.messages.iter().map(message_json).collect();
        all.push(text_attribute(INPUT_MESSAGES, &json!(messages)));
    }
    all
}

/// Returns the attributes of an ended model call.
pub(super) fn chat_end_attributes(
    usage: Option<&Value>,
    first_text: Option<f64>,
    finish: Option<FinishReason>,
    said: Option<&CollectedReply>,
) -> Vec<KeyValue> {
    let mut all = Vec::new();
    if let Some(usage) = usage {
        let TokenCounts { input, output } = TokenCounts::from_usage(usage);
        let count = |tokens: u64| i64::try_from(tokens).unwrap_or(i64::MAX);
        all.push(KeyValue::new(INPUT_TOKENS, count(input)));
        all.push(KeyValue::new(OUTPUT_TOKENS, count(output)));
    }
    all.extend(first_text.map(|seconds| KeyValue::new(FIRST, seconds)));
    let reason = finish.map(|reason| json!(reason).as_str().unwrap_or_default().to_owned());
    if let Some(reason) = &reason {
        all.push(KeyValue::new(REASONS, Attribute::Array(Array::String(vec![reason.clone().into()]))));
    }
    if let Some(said) = said {
        let mut parts = Vec::new();
        if !said.reasoning.is_empty() {
            parts.push(json!({"type": "reasoning", "content": said.reasoning}));
        }
        if !said.text.is_empty() {
            parts.push(json!({"type": "text", "content": said.text}));
        }
        parts.extend(said.calls.iter().map(call_json));
        let reply =
            json!([{"role": "assistant", "parts": parts, "finish_reason": reason.unwrap_or_default()}]);
        all.push(text_attribute(OUTPUT_MESSAGES, &reply));
    }
    all
}

/// Returns the span name of a tool call.
pub(super) fn tool_name(tool: &ToolCallInfo<'_>) -> String {
    format!("execute_tool {}", tool.name)
}

/// Returns the attributes of a tool call that are known before its result.
pub(super) fn tool_attributes(tool: &ToolCallInfo<'_>, content: bool) -> Vec<KeyValue> {
    let mut all = vec![
        KeyValue::new(OPERATION, "execute_tool"),
        KeyValue::new(TOOL, tool.name.to_owned()),
        KeyValue::new(TOOL_CALL, tool.call_id.to_owned()),
        KeyValue::new(TOOL_TYPE, if tool.is_client_call { "function" } else { "extension" }),
    ];
    if content {
        all.push(text_attribute(ARGUMENTS, tool.args));
    }
    all
}

/// Returns the attribute of a tool's result.
pub(super) fn result_attribute(result: &Value) -> KeyValue {
    text_attribute(RESULT, result)
}

/// Returns a JSON text attribute.
fn text_attribute(name: &'static str, value: &Value) -> KeyValue {
    let text = value.to_string();
    if text.len() > MAX_TEXT_BYTES { KeyValue::new(OMITTED, name) } else { KeyValue::new(name, text) }
}

/// Converts a message to the convention's form.
fn message_json(said: &Message) -> Value {
    let text = said.text();
    let mut parts = Vec::new();
    if let Some(id) = &said.tool_call_id {
        parts.push(json!({"type": "tool_call_response", "id": id, "response": text}));
    } else if !text.is_empty() {
        parts.push(json!({"type": "text", "content": text}));
    }
    parts.extend(said.tool_calls.iter().map(call_json));
    json!({"role": said.role, "parts": parts})
}

fn call_json(call: &NativeCall) -> Value {
    let arguments: Value = serde_json::from_str(&call.function.arguments)
        .unwrap_or_else(|_| Value::String(call.function.arguments.clone()));
    json!({"type": "tool_call", "id": call.id, "name": call.function.name, "arguments": arguments})
}
