//! Requests to services with the chat completions interface.

mod frames;

use axum::http::request::Builder;
use serde_json::{Value, json};

use super::Ask;
use super::kind::{Request, bearer};
pub(super) use frames::Frames;

/// Adds the headers of a request.
pub(super) fn headers(request: Builder, key: Option<&str>) -> Builder {
    bearer(request.header("accept", "text/event-stream"), key)
}

/// Builds a request to a service at `base`.
pub(super) fn request(base: &str, model: Option<&str>, ask: &Ask) -> Request {
    Request { url: format!("{base}/chat/completions"), body: body(model, ask) }
}

fn body(model: Option<&str>, ask: &Ask) -> Value {
    let mut body = json!({
        "messages": ask.messages,
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    if let Some(model) = model {
        body["model"] = json!(model);
    }
    let fields = [
        ("temperature", ask.temperature.map(Value::from)),
        ("max_tokens", ask.max_tokens.map(Value::from)),
        ("top_p", ask.top_p.map(Value::from)),
        ("stop", ask.stop.clone()),
        ("seed", ask.seed.map(Value::from)),
        ("response_format", ask.response_format.clone()),
        ("tools", (!ask.tools.is_empty()).then(|| Value::from(ask.tools.clone()))),
        ("tool_choice", ask.tool_choice.clone()),
    ];
    for (name, value) in fields {
        if let Some(value) = value {
            body[name] = value;
        }
    }
    // Extra fields never override the ones we set.
    for (name, value) in &ask.more {
        if body.get(name).is_none() {
            body[name] = value.clone();
        }
    }
    body
}
