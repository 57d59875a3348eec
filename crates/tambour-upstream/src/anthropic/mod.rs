//! Requests to services with Anthropic's Messages interface.

mod frames;

use std::sync::Arc;

use http::request::Builder;
use serde_json::{Map, Value, json};
use tambour::event::Failure;

use super::chat_turns::{ChatPart, ChatTurn, ImageSource, PromptTurns, arguments, build_turns};
use super::decode::FrameDecoder;
use super::fields::{
    ExtraFields, ReplyFormat, ToolSelection, functions, object_of, require_model, response_format,
    stop_sequences, tool_selection,
};
use super::kind::{ServiceApi, ServiceRequest, add_secret_header};
use super::{CallExtras, ModelRequest};
use frames::AnthropicFrames;

/// Version of the interface, for a header.
const API_VERSION: &str = "2023-06-01";
/// Default limit of a reply's tokens; the interface requires one.
const DEFAULT_MAX_TOKENS: u32 = 8192;

/// Messages interface of Anthropic.
pub(super) struct AnthropicApi;

impl ServiceApi for AnthropicApi {
    fn name(&self) -> &'static str {
        "anthropic"
    }

    fn example_url(&self) -> &'static str {
        "https://api.anthropic.com"
    }

    fn path(&self) -> &'static str {
        "/v1/messages"
    }

    fn build_request(
        &self,
        base: &str,
        model: Option<&str>,
        request: &ModelRequest,
    ) -> Result<ServiceRequest, Failure> {
        // The base URL may end with the version.
        let version = if base.ends_with("/v1") { "" } else { "/v1" };
        Ok(ServiceRequest { url: format!("{base}{version}/messages"), body: build_body(model, request)? })
    }

    fn add_headers(&self, request: Builder, key: Option<&str>) -> Builder {
        let request = request.header("accept", "text/event-stream").header("anthropic-version", API_VERSION);
        add_secret_header(request, "x-api-key", key)
    }

    fn frame_decoder(&self, message_id: &Arc<str>) -> Box<dyn FrameDecoder> {
        Box::new(AnthropicFrames::new(message_id))
    }
}

/// Builds the body of a request.
fn build_body(model: Option<&str>, request: &ModelRequest) -> Result<Value, Failure> {
    let PromptTurns { system, turns } = build_turns(&request.messages)?;
    let last_index = turns.len().saturating_sub(1);
    let messages: Vec<Value> =
        turns.iter().enumerate().map(|(index, turn)| message(turn, index == last_index)).collect();
    let mut fields = ExtraFields::from_request(request);
    // A limit given as a field of the service takes precedence over the default.
    let max_tokens = fields
        .max_tokens(request)
        .or_else(|| fields.take("max_tokens"))
        .unwrap_or_else(|| DEFAULT_MAX_TOKENS.into());
    let body = object_of([
        ("model", Some(require_model(model, "anthropic")?.into())),
        ("max_tokens", Some(max_tokens)),
        ("system", (!system.is_empty()).then(|| system.into())),
        ("messages", Some(messages.into())),
        ("stream", Some(true.into())),
        ("temperature", request.temperature.map(Value::from)),
        ("top_p", request.top_p.map(Value::from)),
        ("stop_sequences", stop_sequences(request)),
        ("tools", (!request.tools.is_empty()).then(|| functions(request).map(tool).collect())),
        ("tool_choice", tool_choice(request, &fields)),
        ("output_config", output_config(request)),
    ]);
    Ok(fields.finish(Value::Object(body)))
}

/// Converts a function of a tool, from the form of OpenAI's chat completions interface.
fn tool(function: &Value) -> Value {
    let schema = function.get("parameters").filter(|schema| schema.is_object()).cloned();
    let mut schema = schema.unwrap_or_else(|| json!({}));
    if schema.get("type").is_none() {
        schema["type"] = "object".into();
    }
    Value::Object(object_of([
        ("name", Some(function["name"].clone())),
        ("description", function.get("description").cloned()),
        ("input_schema", Some(schema)),
        ("strict", function.get("strict").filter(|strict| **strict == true).cloned()),
    ]))
}

/// Converts the tool choice. The limit to one call at a time is a part of the service's tool choice, so a
/// request with this limit gets a tool choice even if it names none.
fn tool_choice(request: &ModelRequest, fields: &ExtraFields) -> Option<Value> {
    let one_at_a_time =
        fields.chat_field("parallel_tool_calls") == Some(false.into()) && !request.tools.is_empty();
    let mut choice = match tool_selection(request) {
        None if one_at_a_time => json!({"type": "auto"}),
        None => return None,
        Some(ToolSelection::Auto) => json!({"type": "auto"}),
        Some(ToolSelection::Any) => json!({"type": "any"}),
        Some(ToolSelection::One(name)) => json!({"type": "tool", "name": name}),
        Some(ToolSelection::None) => return Some(json!({"type": "none"})),
    };
    if one_at_a_time {
        choice["disable_parallel_tool_use"] = true.into();
    }
    Some(choice)
}

/// Returns the schema of the response format if it is strict. Other schemas leave properties open, which the
/// service refuses, so they are not sent; the reply is checked against them when it is read.
fn output_config(request: &ModelRequest) -> Option<Value> {
    match response_format(request)? {
        ReplyFormat::Schema(schema, true) => {
            Some(json!({"format": {"type": "json_schema", "schema": schema}}))
        }
        _ => None,
    }
}

/// Converts a turn to a message. If the last turn is the model's, it must not end with white space.
fn message(ChatTurn { is_model, parts }: &ChatTurn<'_>, is_last: bool) -> Value {
    let mut blocks = Vec::new();
    // The reasoning that led to the calls precedes all other blocks.
    blocks.extend(parts.iter().filter_map(reasoning).flatten().cloned());
    blocks.extend(parts.iter().map(block));
    if *is_model
        && is_last
        && let Some(Value::Object(block)) = blocks.last_mut()
        && let Some(Value::String(text)) = block.get_mut("text")
    {
        text.truncate(text.trim_end().len());
    }
    json!({"role": if *is_model { "assistant" } else { "user" }, "content": blocks})
}

/// Returns the signed reasoning that the service requires back with a call.
fn reasoning<'a>(part: &ChatPart<'a>) -> Option<&'a Vec<Value>> {
    match part {
        ChatPart::Call(call) => match &call.extras {
            Some(CallExtras::Anthropic(blocks)) => Some(blocks),
            _ => None,
        },
        _ => None,
    }
}

/// Converts a part of a turn to a content block.
fn block(part: &ChatPart<'_>) -> Value {
    match part {
        ChatPart::Text(text) => json!({"type": "text", "text": text}),
        ChatPart::Image(ImageSource::Remote(url)) => {
            json!({"type": "image", "source": {"type": "url", "url": url}})
        }
        ChatPart::Image(ImageSource::Inline { media_type, data }) => {
            json!({"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}})
        }
        // Unknown blocks are passed on as they are.
        ChatPart::Other(block) => (*block).clone(),
        ChatPart::Call(call) => json!({
            "type": "tool_use", "id": map_call_id(&call.id), "name": call.function.name, "input": arguments(call),
        }),
        ChatPart::Result { id: call_id, text, .. } => {
            let mut result = Map::from_iter([("type".to_owned(), "tool_result".into())]);
            result.insert("tool_use_id".to_owned(), map_call_id(call_id).into());
            if !text.trim().is_empty() {
                result.insert("content".to_owned(), text.as_str().into());
            }
            Value::Object(result)
        }
    }
}

/// Replaces the characters of a call id that the service does not accept: all but letters, digits, `_` and
/// `-`.
fn map_call_id(id: &str) -> String {
    id.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '_' }).collect()
}
