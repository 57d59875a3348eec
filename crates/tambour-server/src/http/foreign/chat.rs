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

/// `POST /v1/chat/completions`: runs a message; responds with its chunks or with the whole completion.
pub(in crate::http) async fn complete(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Extension(RequestId(request_id)): Extension<RequestId>,
    bytes: Bytes,
) -> Result<Response, Problem> {
    let (new_message, wants_stream, mut options) = parse_request(&app, parse_body(&bytes)?)?;
    // Calls whose results the server sends to the model are not sent to the client.
    options.sends_calls = !new_message.has_tools();
    options.sends_extensions = new_message.extensions;
    if wants_stream {
        let encoder = move |context| Box::new(ChatEncoder::new(context, options)) as Box<dyn Encoder>;
        return stream_message(app, &caller, request_id, new_message, encoder).await;
    }
    let (context, folded) = run_message(&app, &caller, request_id, new_message).await?;
    match &folded.failure {
        Some(failure) => Ok(failure_response(failure, &chat::error_body(failure))),
        None => Ok(Json(chat::completion_from_log(&context, &options, &folded)).into_response()),
    }
}

/// Converts a request to a message. Also returns whether the client wants a stream, and the options of its
/// encoder.
fn parse_request(
    app: &App,
    mut body: Map<String, Value>,
) -> Result<(NewMessage, bool, ChatOptions), Problem> {
    let new_problem =
        |field: &'static str, detail: &str| Problem::invalid("invalid_field", detail).with("field", field);
    let mut foreign_request = ForeignRequest::for_model(app, &mut body)?;
    foreign_request.set("messages", chat_messages::convert_messages(body.remove("messages"))?);
    let wants_stream = match body.remove("stream") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(wants_stream)) => wants_stream,
        Some(_) => return Err(new_problem("stream", "`stream` must be true or false")),
    };
    let mut options = ChatOptions::default();
    if let Some(stream_options) = body.remove("stream_options") {
        options.sends_usage = stream_options["include_usage"] == true;
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
    foreign_request.settings.tool_choice = body.remove("tool_choice").filter(|choice| !choice.is_null());
    if foreign_request.settings.tool_choice.as_ref().is_some_and(|choice| choice == "none") {
        foreign_request.settings.tools.clear();
        foreign_request.settings.tool_choice = None;
    }
    foreign_request.settings.ends_with_client = true;
    let tambour_fields = body.remove("tambour");
    // Fields for storage and accounting at OpenAI, without meaning here.
    for name in ["store", "metadata", "service_tier", "safety_identifier", "prompt_cache_key"] {
        body.remove(name);
    }
    // The remaining fields are passed to the upstream.
    let further_fields: Map<String, Value> = body.into_iter().filter(|(_, value)| !value.is_null()).collect();
    if !further_fields.is_empty() {
        foreign_request.set("upstream_fields", further_fields);
    }
    foreign_request.enable_json(tambour_fields.as_ref())?;
    foreign_request.enable_calls();
    Ok((foreign_request.into_message(tambour_fields, wants_stream)?, wants_stream, options))
}
