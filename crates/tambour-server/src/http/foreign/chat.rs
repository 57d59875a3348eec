//! OpenAI Chat Completions: `POST /v1/chat/completions`.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde_json::{Map, Value};
use tambour::encode::Encoder;
use tambour::encode::chat::{self, ChatEncoder, ChatOptions};

use super::{ForeignRequest, chat_messages, failure_response, run_message, stream_message};
use crate::base::problem::{Problem, parse_body};
use crate::http::app::App;
use crate::http::keys::Caller;
use crate::http::new_message::NewMessage;
use crate::http::request::RequestId;

/// `POST /v1/chat/completions`
pub(in crate::http) async fn complete(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Extension(RequestId(request)): Extension<RequestId>,
    bytes: Bytes,
) -> Result<Response, Problem> {
    let (wanted, streams, mut options) = parse_request(&app, parse_body(&bytes)?)?;
    // Calls that the server runs are not the client's to run.
    options.calls = !wanted.has_tools();
    options.extensions = wanted.extensions;
    if streams {
        let encoder = move |about| Box::new(ChatEncoder::new(about, options)) as Box<dyn Encoder>;
        return stream_message(app, &caller, request, wanted, encoder).await;
    }
    let (about, whole) = run_message(&app, &caller, request, wanted).await?;
    match &whole.failure {
        Some(failure) => Ok(failure_response(failure, &chat::error_body(failure))),
        None => Ok(Json(chat::completion_from_log(&about, &options, &whole)).into_response()),
    }
}

/// Parses the request; returns the message, whether to stream, and the options of the encoder.
fn parse_request(
    app: &App,
    mut body: Map<String, Value>,
) -> Result<(NewMessage, bool, ChatOptions), Problem> {
    let wrong =
        |field: &'static str, detail: &str| Problem::invalid("invalid_field", detail).with("field", field);
    let mut wanted = ForeignRequest::for_model(app, &mut body)?;
    wanted.set("messages", chat_messages::convert_messages(body.remove("messages"))?);
    let streams = match body.remove("stream") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(streams)) => streams,
        Some(_) => return Err(wrong("stream", "`stream` is true or false")),
    };
    let mut options = ChatOptions::default();
    if let Some(how) = body.remove("stream_options") {
        options.usage = how["include_usage"] == true;
    }
    if body.remove("n").is_some_and(|n| !matches!(n.as_u64(), Some(1)) && !n.is_null()) {
        return Err(wrong("n", "one answer at a time: `n` is 1"));
    }
    for name in ["temperature", "max_tokens", "top_p", "stop", "seed", "response_format"] {
        wanted.move_field(&mut body, name, name);
    }
    match body.remove("tools") {
        None | Some(Value::Null) => {}
        Some(Value::Array(tools)) => {
            if let Some(tool) = tools.iter().find(|tool| !tool["function"].is_object()) {
                return Err(wrong(
                    "tools",
                    &format!("a tool is {{\"type\": \"function\", \"function\": ...}}, not {tool}"),
                ));
            }
            wanted.add_tools(tools.iter().map(|tool| (&tool["function"], "parameters")))?;
        }
        Some(_) => return Err(wrong("tools", "`tools` is a list")),
    }
    wanted.foreign.tool_choice = body.remove("tool_choice").filter(|choice| !choice.is_null());
    if wanted.foreign.tool_choice.as_ref().is_some_and(|choice| choice == "none") {
        wanted.foreign.tools.clear();
        wanted.foreign.tool_choice = None;
    }
    wanted.foreign.ends_with_client = true;
    let more = body.remove("tambour");
    // Fields for storage and accounting at the service, without meaning here.
    for name in ["store", "metadata", "service_tier", "safety_identifier", "prompt_cache_key"] {
        body.remove(name);
    }
    // The remaining fields are passed to the upstream.
    let rest: Map<String, Value> = body.into_iter().filter(|(_, value)| !value.is_null()).collect();
    if !rest.is_empty() {
        wanted.set("upstream_fields", rest);
    }
    wanted.enable_json(more.as_ref())?;
    wanted.enable_calls();
    Ok((wanted.into_message(more, streams)?, streams, options))
}
