//! Requests to services with OpenAI's chat completions interface.

mod frames;

use axum::http::request::Builder;
use serde_json::{Value, json};

use super::ModelRequest;
use super::kind::{ServiceRequest, add_bearer};
pub(super) use frames::OpenAiFrames;

/// Adds the headers of a request, with the key of the service.
pub(super) fn add_headers(request: Builder, key: Option<&str>) -> Builder {
    add_bearer(request.header("accept", "text/event-stream"), key)
}

/// Builds a request to a service at the URL `base`.
pub(super) fn build_request(base: &str, model: Option<&str>, request: &ModelRequest) -> ServiceRequest {
    ServiceRequest { url: format!("{base}/chat/completions"), body: build_body(model, request) }
}

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
