//! Attributes of model calls in the OpenTelemetry convention (`gen_ai`).

use opentelemetry::{Array, KeyValue, StringValue, Value as Attribute};
use serde_json::{Value, json};
use tambour::event::FinishReason;
use url::Url;

use super::{CallTarget, Message, ModelRequest, NativeCall};
use crate::telemetry::genai::{
    FINISH_REASONS, FIRST_CHUNK_TIME, INPUT_MESSAGES, INPUT_TOKENS, MAX_TOKENS, MODEL, OPERATION,
    OUTPUT_MESSAGES, OUTPUT_TOKENS, OUTPUT_TYPE, PROVIDER, SEED, SERVER_ADDRESS, SERVER_PORT, STOP_SEQUENCES,
    TEMPERATURE, TOP_P, text_attribute,
};
use crate::token_counts::TokenCounts;

/// Reply of a model, collected if content is traced.
#[derive(Default)]
pub(super) struct CollectedReply {
    pub(super) text: String,
    pub(super) reasoning: String,
    pub(super) calls: Vec<NativeCall>,
}

/// Returns the span name of a model call.
pub(super) fn chat_span_name(target: &CallTarget<'_>) -> String {
    target.model.map_or_else(|| "chat".to_owned(), |model| format!("chat {model}"))
}

/// Returns the attributes of a model call that are known before the response; with its messages if
/// `with_content`.
pub(super) fn chat_attributes(
    target: &CallTarget<'_>,
    request: &ModelRequest,
    with_content: bool,
) -> Vec<KeyValue> {
    let mut attributes =
        vec![KeyValue::new(OPERATION, "chat"), KeyValue::new(PROVIDER, target.provider.to_owned())];
    attributes.extend(target.model.map(|model| KeyValue::new(MODEL, model.to_owned())));
    if let Some(url) = target.base.and_then(|base| Url::parse(base).ok()) {
        attributes.extend(url.host_str().map(|host| KeyValue::new(SERVER_ADDRESS, host.to_owned())));
        let port = url.port_or_known_default();
        attributes.extend(port.map(|port| KeyValue::new(SERVER_PORT, i64::from(port))));
    }
    attributes.extend(request.temperature.map(|value| KeyValue::new(TEMPERATURE, value)));
    attributes.extend(request.top_p.map(|value| KeyValue::new(TOP_P, value)));
    attributes.extend(request.max_tokens.map(|value| KeyValue::new(MAX_TOKENS, i64::from(value))));
    attributes.extend(request.seed.map(|value| KeyValue::new(SEED, value)));
    let stop_sequences: Vec<StringValue> = match &request.stop {
        Some(Value::String(stop)) => vec![stop.clone().into()],
        Some(Value::Array(stop_sequences)) => {
            stop_sequences.iter().filter_map(Value::as_str).map(|stop| stop.to_owned().into()).collect()
        }
        _ => Vec::new(),
    };
    if !stop_sequences.is_empty() {
        attributes.push(KeyValue::new(STOP_SEQUENCES, Attribute::Array(Array::String(stop_sequences))));
    }
    if request.response_format.as_ref().is_some_and(|format| format["type"] != "text") {
        attributes.push(KeyValue::new(OUTPUT_TYPE, "json"));
    }
    if with_content {
        let messages: Vec<Value> = request.messages.iter().map(message_json).collect();
        attributes.push(text_attribute(INPUT_MESSAGES, &json!(messages)));
    }
    attributes
}

/// Returns the attributes of an ended model call. `first_text` is in seconds from the start of the call.
pub(super) fn chat_end_attributes(
    usage: Option<&Value>,
    first_text: Option<f64>,
    finish_reason: Option<FinishReason>,
    collected_reply: Option<&CollectedReply>,
) -> Vec<KeyValue> {
    let mut attributes = Vec::new();
    if let Some(usage) = usage {
        let TokenCounts { input, output } = TokenCounts::from_usage(usage);
        let token_count = |tokens: u64| i64::try_from(tokens).unwrap_or(i64::MAX);
        attributes.push(KeyValue::new(INPUT_TOKENS, token_count(input)));
        attributes.push(KeyValue::new(OUTPUT_TOKENS, token_count(output)));
    }
    attributes.extend(first_text.map(|seconds| KeyValue::new(FIRST_CHUNK_TIME, seconds)));
    let reason_text = finish_reason.map(|reason| json!(reason).as_str().unwrap_or_default().to_owned());
    if let Some(reason_text) = &reason_text {
        let reasons = Array::String(vec![reason_text.clone().into()]);
        attributes.push(KeyValue::new(FINISH_REASONS, Attribute::Array(reasons)));
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
            json!([{"role": "assistant", "parts": parts, "finish_reason": reason_text.unwrap_or_default()}]);
        attributes.push(text_attribute(OUTPUT_MESSAGES, &reply));
    }
    attributes
}

/// Converts a message to the convention's form.
fn message_json(message: &Message) -> Value {
    let text = message.text();
    let mut parts = Vec::new();
    if let Some(id) = &message.tool_call_id {
        parts.push(json!({"type": "tool_call_response", "id": id, "response": text}));
    } else if !text.is_empty() {
        parts.push(json!({"type": "text", "content": text}));
    }
    parts.extend(message.tool_calls.iter().map(call_json));
    json!({"role": message.role, "parts": parts})
}

fn call_json(call: &NativeCall) -> Value {
    let arguments: Value = serde_json::from_str(&call.function.arguments)
        .unwrap_or_else(|_| Value::String(call.function.arguments.clone()));
    json!({"type": "tool_call", "id": call.id, "name": call.function.name, "arguments": arguments})
}
