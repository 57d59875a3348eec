//! Requests to services with Ollama's interface.

mod frames;

use std::sync::Arc;

use http::request::Builder;
use serde_json::{Value, json};
use tambour::event::Failure;

use super::chat_turns::{CallIndex, ChatPart, ImageSource, arguments, message_parts, unsendable_failure};
use super::decode::FrameDecoder;
use super::fields::{
    ExtraFields, ReplyFormat, ToolSelection, object_of, require_model, response_format, stop_sequences,
    tool_selection,
};
use super::kind::{ServiceApi, ServiceRequest, add_bearer};
use super::{Message, ModelRequest};
use frames::OllamaFrames;

/// Interface of Ollama.
pub(super) struct OllamaApi;

impl ServiceApi for OllamaApi {
    fn name(&self) -> &'static str {
        "ollama"
    }

    fn example_url(&self) -> &'static str {
        "http://127.0.0.1:11434"
    }

    fn path(&self) -> &'static str {
        "/api/chat"
    }

    fn build_request(
        &self,
        base: &str,
        model: Option<&str>,
        request: &ModelRequest,
    ) -> Result<ServiceRequest, Failure> {
        // The base URL may end with `/api`.
        let folder = if base.ends_with("/api") { "" } else { "/api" };
        Ok(ServiceRequest { url: format!("{base}{folder}/chat"), body: build_body(model, request)? })
    }

    fn add_headers(&self, request: Builder, key: Option<&str>) -> Builder {
        add_bearer(request.header("accept", "application/x-ndjson"), key)
    }

    fn sends_json_lines(&self) -> bool {
        true
    }

    fn frame_decoder(&self, message_id: &Arc<str>) -> Box<dyn FrameDecoder> {
        Box::new(OllamaFrames::new(message_id))
    }
}

/// Builds the body of a request.
fn build_body(model: Option<&str>, request: &ModelRequest) -> Result<Value, Failure> {
    let mut call_index = CallIndex::default();
    let mut messages = Vec::with_capacity(request.messages.len());
    for message in &request.messages {
        call_index.add(message);
        messages.push(message_body(message, &call_index)?);
    }
    let mut fields = ExtraFields::from_request(request);
    let top_k = fields.take("top_k");
    let options = object_of([
        ("temperature", request.temperature.map(Value::from)),
        ("top_p", request.top_p.map(Value::from)),
        ("top_k", top_k),
        ("num_predict", fields.max_tokens(request)),
        ("stop", stop_sequences(request)),
        ("seed", request.seed.map(Value::from)),
        ("frequency_penalty", fields.chat_field("frequency_penalty")),
        ("presence_penalty", fields.chat_field("presence_penalty")),
    ]);
    let format = response_format(request).map(|format| match format {
        ReplyFormat::Json => "json".into(),
        ReplyFormat::Schema(schema, _) => schema.clone(),
    });
    // The service has no tool choice, so for "none" no tools are sent.
    let has_tools =
        !request.tools.is_empty() && !matches!(tool_selection(request), Some(ToolSelection::None));
    let body = object_of([
        ("model", Some(require_model(model, "ollama")?.into())),
        ("messages", Some(messages.into())),
        ("stream", Some(true.into())),
        ("format", format),
        ("tools", has_tools.then(|| request.tools.clone().into())),
        ("options", (!options.is_empty()).then(|| Value::Object(options))),
    ]);
    Ok(fields.finish(Value::Object(body)))
}

/// Converts a message. `call_index` has the calls up to this message, to find the tool of a tool result.
fn message_body(message: &Message, call_index: &CallIndex<'_>) -> Result<Value, Failure> {
    let role = if message.role == "developer" { "system" } else { message.role.as_str() };
    let (mut texts, mut images, mut calls) = (Vec::new(), Vec::new(), Vec::new());
    for part in message_parts(message)? {
        match part {
            ChatPart::Text(text) => texts.push(text),
            ChatPart::Image(ImageSource::Inline { data, .. }) => images.push(Value::from(data)),
            ChatPart::Image(ImageSource::Remote(_)) => {
                let problem = "a service of the kind `ollama` takes images as `data:` URLs only";
                return Err(unsendable_failure(problem));
            }
            ChatPart::Other(part) => {
                let kind = part["type"].as_str().unwrap_or_default();
                let problem =
                    format!("a part of the type `{kind}` cannot be sent to a service of the kind `ollama`");
                return Err(unsendable_failure(problem));
            }
            ChatPart::Call(call) => {
                calls.push(json!({"function": {"name": call.function.name, "arguments": arguments(call)}}));
            }
            // Never among the parts of a message: the text of a tool result is its content.
            ChatPart::Result { .. } => {}
        }
    }
    Ok(Value::Object(object_of([
        ("role", Some(role.into())),
        ("content", Some(texts.concat().into())),
        ("thinking", message.reasoning_content.as_deref().map(Value::from)),
        ("images", (!images.is_empty()).then(|| images.into())),
        ("tool_calls", (!calls.is_empty()).then(|| calls.into())),
        ("tool_name", call_index.call_of(message).map(|call| call.function.name.as_str().into())),
    ])))
}
