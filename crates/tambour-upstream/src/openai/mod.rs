//! Requests to services with OpenAI's chat completions interface.

mod frames;

use std::sync::Arc;

use http::request::Builder;
use serde_json::{Value, json};
use tambour::event::Failure;

use super::ModelRequest;
use super::decode::FrameDecoder;
use super::kind::{ServiceApi, ServiceRequest, add_bearer};
use frames::OpenAiFrames;

/// Chat completions interface of OpenAI.
pub(super) struct OpenAiApi;

impl ServiceApi for OpenAiApi {
    fn name(&self) -> &'static str {
        "openai"
    }

    fn example_url(&self) -> &'static str {
        "http://127.0.0.1:9100/v1"
    }

    fn path(&self) -> &'static str {
        "/chat/completions"
    }

    fn build_request(
        &self,
        base: &str,
        model: Option<&str>,
        request: &ModelRequest,
    ) -> Result<ServiceRequest, Failure> {
        Ok(ServiceRequest { url: format!("{base}/chat/completions"), body: build_body(model, request) })
    }

    fn add_headers(&self, request: Builder, key: Option<&str>) -> Builder {
        add_bearer(request.header("accept", "text/event-stream"), key)
    }

    fn frame_decoder(&self, message_id: &Arc<str>) -> Box<dyn FrameDecoder> {
        Box::new(OpenAiFrames::new(message_id))
    }
}

/// Builds the body of a request.
fn build_body(model: Option<&str>, request: &ModelRequest) -> Value {
    let mut body = json!({
        "messages": request.messages,
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    if let Some(model) = model {
        body["model"] = json!(model);
    }
    let fields = [
        ("temperature", request.temperature.map(Value::from)),
        ("max_tokens", request.max_tokens.map(Value::from)),
        ("top_p", request.top_p.map(Value::from)),
        ("stop", request.stop.clone()),
        ("seed", request.seed.map(Value::from)),
        ("response_format", request.response_format.clone()),
        ("tools", (!request.tools.is_empty()).then(|| Value::from(request.tools.clone()))),
        ("tool_choice", request.tool_choice.clone()),
    ];
    for (name, value) in fields {
        if let Some(value) = value {
            body[name] = value;
        }
    }
    // Extra fields never override the fields above.
    for (name, value) in &request.extra_fields {
        if body.get(name).is_none() {
            body[name] = value.clone();
        }
    }
    body
}
