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
    let (foreign_request, streams, mut options) = parse_request(&app, parse_body(&bytes)?)?;
    // Calls that the server runs are not the client's to run.
    options.calls = !foreign_request.has_tools();
    options.extensions = foreign_request.extensions;
    if streams {
        let encoder = move |context| Box::new(ChatEncoder::new(context, options)) as Box<dyn Encoder>;
        return stream_message(app, &caller, request, foreign_request, encoder).await;
    }
    let (context, folded) = run_message(&app, &caller, request, foreign_request).await?;
    match &folded.failure {
        Some(failure) => Ok(failure_response(failure, &chat::error_body(failure))),
        None => Ok(Json(chat::completion_from_log(&context, &options, &folded)).into_response()),
    }
}

/// Parses the request; returns the message, whether to stream, and the options of the encoder.
fn parse_request(
    app: &App,
    mut body: Map<String, Value>,
) -> Result<(NewMessage, bool, ChatOptions), Problem> {
    let new_problem =
        |field: &'static str, detail: &str| Problem::invalid("invalid_field", detail).with("field", field);
    let mut foreign_request = ForeignRequest::for_model(app, &mut body)?;
    foreign_request.set("messages", chat_messages::convert_messages(body.remove("messages"))?);
    let streams = match body.remove("stream") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(streams)) => streams,
        Some(_) => return Err(new_problem("stream", "`stream` must be true or false")),
    };
    let mut options = ChatOptions::default();
    if let Some(stream_options) = body.remove("stream_options") {
        options.usage = stream_options["include_usage"] == true;
    }
    if body.remove("n").is_some_and(|n| !matches!(n.as_u64(), Some(1)) && !n.is_null()) {
        return Err(new_problem("n", "only one answer at a time: `n` must be 1"));
    }
    for name in ["temperature", "max_tokens", "top_p", "stop", "seed", "response_format"] {
        foreign_request.move_field(&mut body, name, name);
    }
    match body.remove("tools") {
        None | Some(Value::Null) => {}
        Some(Value::Array(tools)) => {
            if let Some(tool) = tools.iter().find(|tool| !tool["function"].is_object()) {
                return Err(new_problem(
                    "tools",
                    &format!("a tool must be {{\"type\": \"function\", \"function\": ...}}, not {tool}"),
                ));
            }
            foreign_request.add_tools(tools.iter().map(|tool| (&tool["function"], "parameters")))?;
        }
        Some(_) => return Err(new_problem("tools", "`tools` must be a list")),
    }
    foreign_request.foreign.tool_choice = body.remove("tool_choice").filter(|choice| !choice.is_null());
    if foreign_request.foreign.tool_choice.as_ref().is_some_and(|choice| choice == "none") {
        foreign_request.foreign.tools.clear();
        foreign_request.foreign.tool_choice = None;
    }
    foreign_request.foreign.ends_with_client = true;
    let tambour_fields = body.remove("tambour");
    // Fields for storage and accounting at the service, without meaning here.
    for name in ["store", "metadata", "service_tier", "safety_identifier", "prompt_cache_key"] {
        body.remove(name);
    }
    // The remaining fields are passed to the upstream.
    let rest: Map<String, Value> = body.into_iter().filter(|(_, value)| !value.is_null()).collect();
    if !rest.is_empty() {
        foreign_request.set("upstream_fields", rest);
    }
    foreign_request.enable_json(tambour_fields.as_ref())?;
    foreign_request.enable_calls();
    Ok((foreign_request.into_message(tambour_fields, streams)?, streams, options))
}
