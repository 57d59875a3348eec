//! Attributes of model calls in the OpenTelemetry convention.

use opentelemetry::{Array, KeyValue, StringValue, Value as Attribute};
use reqwest::Url;
use serde_json::{Value, json};
use tambour::event::FinishReason;

use super::{CallTarget, Message, ModelRequest, NativeCall};
use crate::base::token_counts::TokenCounts;
use crate::telemetry::genai::{
    ADDRESS, FIRST, INPUT_MESSAGES, INPUT_TOKENS, MAX_TOKENS, MODEL, OPERATION, OUTPUT, OUTPUT_MESSAGES,
    OUTPUT_TOKENS, PORT, PROVIDER, REASONS, SEED, STOP, TEMPERATURE, TOP_P, text_attribute,
};

/// Reply of a model, if texts are traced.
#[derive(Default)]
pub(super) struct CollectedReply {
    pub(super) text: String,
    pub(super) reasoning: String,
    pub(super) calls: Vec<NativeCall>,
}

/// Returns the span name of a model call.
pub(super) fn chat_name(model_name: &CallTarget<'_>) -> String {
    model_name.model.map_or_else(|| "chat".to_owned(), |model| format!("chat {model}"))
}

/// Returns the attributes of a model call that are known before the response.
pub(super) fn chat_attributes(
    target: &CallTarget<'_>,
    request: &ModelRequest,
    content: bool,
) -> Vec<KeyValue> {
    let mut all = vec![KeyValue::new(OPERATION, "chat"), KeyValue::new(PROVIDER, target.provider.to_owned())];
    all.extend(target.model.map(|model| KeyValue::new(MODEL, model.to_owned())));
    if let Some(url) = target.base.and_then(|base| Url::parse(base).ok()) {
        all.extend(url.host_str().map(|host| KeyValue::new(ADDRESS, host.to_owned())));
        all.extend(url.port_or_known_default().map(|port| KeyValue::new(PORT, i64::from(port))));
    }
    all.extend(request.temperature.map(|value| KeyValue::new(TEMPERATURE, value)));
    all.extend(request.top_p.map(|value| KeyValue::new(TOP_P, value)));
    all.extend(request.max_tokens.map(|value| KeyValue::new(MAX_TOKENS, i64::from(value))));
    all.extend(request.seed.map(|value| KeyValue::new(SEED, value)));
    let stops: Vec<StringValue> = match &request.stop {
        Some(Value::String(stop)) => vec![stop.clone().into()],
        Some(Value::Array(stops)) => {
            stops.iter().filter_map(Value::as_str).map(|stop| stop.to_owned().into()).collect()
        }
        _ => Vec::new(),
    };
    if !stops.is_empty() {
        all.push(KeyValue::new(STOP, Attribute::Array(Array::String(stops))));
    }
    if request.response_format.as_ref().is_some_and(|format| format["type"] != "text") {
        all.push(KeyValue::new(OUTPUT, "json"));
    }
    if content {
        let messages: Vec<Value> = request.messages.iter().map(message_json).collect();
        all.push(text_attribute(INPUT_MESSAGES, &json!(messages)));
    }
    all
}

/// Returns the attributes of an ended model call.
pub(super) fn chat_end_attributes(
    usage: Option<&Value>,
    first_text: Option<f64>,
    finish: Option<FinishReason>,
    collected_reply: Option<&CollectedReply>,
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
    if let Some(collected_reply) = collected_reply {
        let mut parts = Vec::new();
        if !collected_reply.reasoning.is_empty() {
            parts.push(json!({"type": "reasoning", "content": collected_reply.reasoning}));
        }
        if !collected_reply.text.is_empty() {
            parts.push(json!({"type": "text", "content": collected_reply.text}));
        }
        parts.extend(collected_reply.calls.iter().map(call_json));
        let reply =
            json!([{"role": "assistant", "parts": parts, "finish_reason": reason.unwrap_or_default()}]);
        all.push(text_attribute(OUTPUT_MESSAGES, &reply));
    }
    all
}

/// Converts a message to the convention's form.
fn message_json(reply_parts: &Message) -> Value {
    let text = reply_parts.text();
    let mut parts = Vec::new();
    if let Some(id) = &reply_parts.tool_call_id {
        parts.push(json!({"type": "tool_call_response", "id": id, "response": text}));
    } else if !text.is_empty() {
        parts.push(json!({"type": "text", "content": text}));
    }
    parts.extend(reply_parts.tool_calls.iter().map(call_json));
    json!({"role": reply_parts.role, "parts": parts})
}

fn call_json(call: &NativeCall) -> Value {
    let arguments: Value = serde_json::from_str(&call.function.arguments)
        .unwrap_or_else(|_| Value::String(call.function.arguments.clone()));
    json!({"type": "tool_call", "id": call.id, "name": call.function.name, "arguments": arguments})
}
