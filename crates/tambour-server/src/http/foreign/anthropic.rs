//! Anthropic Messages: `POST /v1/messages`, and counting the tokens of a request.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde_json::{Map, Value, json};
use tambour::encode::{Encoder, anthropic};
use tambour_prompt::tokens::estimate_tokens;

use super::chat_messages::{data_url, image_part, join_texts, tool_call, tool_result};
use super::{ForeignRequest, failure_response, run_message, stream_message};
use crate::base::problem::{Problem, parse_body};
use crate::http::app::App;
use crate::http::keys::Caller;
use crate::http::new_message::NewMessage;
use crate::http::request::RequestId;
use crate::upstream::{Content, Message};

/// `POST /v1/messages`: runs a message; responds with its events or with the whole message.
pub(in crate::http) async fn create(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Extension(RequestId(request_id)): Extension<RequestId>,
    bytes: Bytes,
) -> Result<Response, Problem> {
    let (new_message, wants_stream) = parse_request(&app, parse_body(&bytes)?)?;
    if wants_stream {
        let encoder = |context| Box::new(anthropic::AnthropicEncoder::new(context)) as Box<dyn Encoder>;
        return stream_message(app, &caller, request_id, new_message, encoder).await;
    }
    let (context, folded) = run_message(&app, &caller, request_id, new_message).await?;
    match &folded.failure {
        Some(failure) => Ok(failure_response(failure, &anthropic::error_body(failure))),
        None => Ok(Json(anthropic::message_from_log(&context, &folded)).into_response()),
    }
}

/// `POST /v1/messages/count_tokens`: an estimate of the tokens sent to the model, since its tokenizer is not
/// available.
pub(in crate::http) async fn count_tokens(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Extension(RequestId(request_id)): Extension<RequestId>,
    bytes: Bytes,
) -> Result<Json<Value>, Problem> {
    let mut body: Map<String, Value> = parse_body(&bytes)?;
    // Required by `parse_request`, but not a field of this operation.
    body.entry("max_tokens").or_insert(1.into());
    let (mut new_message, _) = parse_request(&app, body)?;
    new_message.check(&app)?;
    let start_request = new_message.to_start_request(&app, &caller, request_id, None).await?;
    let tool_tokens: usize =
        start_request.candidates[0].request.tools.iter().map(|tool| estimate_tokens(&tool.to_string())).sum();
    let prompt_tokens: usize = start_request
        .prompt
        .load_messages(&*app.store, &app.reading_defaults())
        .await?
        .iter()
        .map(message_tokens)
        .sum();
    Ok(Json(json!({ "input_tokens": prompt_tokens + tool_tokens })))
}

/// Estimated tokens that services add to each message.
const MESSAGE_TOKENS: usize = 4;
/// Estimated tokens of an image of usual size.
const IMAGE_TOKENS: usize = 1500;

/// Estimates the tokens of a message.
fn message_tokens(message: &Message) -> usize {
    let image_count = match &message.content {
        Some(Content::Parts(parts)) => parts.iter().filter(|part| part["type"] != "text").count(),
        _ => 0,
    };
    let calls = message.tool_calls.iter();
    let call_tokens: usize = calls
        .map(|call| estimate_tokens(&call.function.name) + estimate_tokens(&call.function.arguments))
        .sum();
    MESSAGE_TOKENS + estimate_tokens(&message.text()) + image_count * IMAGE_TOKENS + call_tokens
}

/// Converts a request to a message. Also returns whether the client wants a stream.
fn parse_request(app: &App, mut body: Map<String, Value>) -> Result<(NewMessage, bool), Problem> {
    let new_problem =
        |field: &'static str, detail: &str| Problem::invalid("invalid_field", detail).with("field", field);
    let mut foreign_request = ForeignRequest::for_model(app, &mut body)?;
    let wants_stream = body.remove("stream") == Some(Value::Bool(true));
    if !body.get("max_tokens").is_some_and(Value::is_u64) {
        return Err(
            Problem::invalid("missing_field", "missing field `max_tokens`").with("field", "max_tokens")
        );
    }
    for (name, message_field) in [
        ("max_tokens", "max_tokens"),
        ("temperature", "temperature"),
        ("top_p", "top_p"),
        ("stop_sequences", "stop"),
    ] {
        foreign_request.move_field(&mut body, name, message_field);
    }
    if let Some(system) = body.remove("system").filter(|system| !system.is_null()) {
        foreign_request.set_system(&field_text(&system));
    }
    let messages = body.remove("messages");
    let Some(Value::Array(messages)) = messages else {
        return Err(new_problem("messages", "`messages` must be a list of messages"));
    };
    let messages: Vec<Vec<Value>> = messages.iter().map(chat_messages).collect::<Result<_, _>>()?;
    foreign_request.set("messages", messages.concat());
    if let Some(tools) = body.remove("tools").filter(|tools| !tools.is_null()) {
        let tools = tools.as_array().ok_or_else(|| new_problem("tools", "`tools` must be a list"))?;
        foreign_request.add_tools(tools.iter().map(|tool| (tool, "input_schema")))?;
    }
    if let Some(choice) = body.remove("tool_choice") {
        foreign_request.settings.tool_choice = match choice["type"].as_str() {
            Some("any") => Some("required".into()),
            Some("tool") => Some(json!({"type": "function", "function": {"name": choice["name"]}})),
            Some("none") => {
                foreign_request.settings.tools.clear();
                None
            }
            _ => None,
        };
    }
    foreign_request.settings.ends_with_client = true;
    let tambour_fields = body.remove("tambour");
    if let Some(top_k) = body.remove("top_k") {
        foreign_request.set("upstream_fields", json!({ "top_k": top_k }));
    }
    foreign_request.enable_calls();
    Ok((foreign_request.into_message(tambour_fields, wants_stream)?, wants_stream))
}

/// Converts a message to messages of the chat completions interface, where results of tools are separate
/// messages.
fn chat_messages(message: &Value) -> Result<Vec<Value>, Problem> {
    let new_problem = |detail: String| Problem::invalid("invalid_field", detail).with("field", "messages");
    let role = message["role"].as_str().filter(|role| matches!(*role, "user" | "assistant" | "system"));
    let role =
        role.ok_or_else(|| new_problem("a role must be `user`, `assistant` or `system`".to_owned()))?;
    let blocks = match &message["content"] {
        Value::Array(blocks) => blocks,
        content => return Ok(vec![json!({"role": role, "content": content})]),
    };
    let (mut results, mut parts, mut calls) = (Vec::new(), Vec::new(), Vec::new());
    for block in blocks {
        match block["type"].as_str() {
            Some("text") => parts.push(json!({"type": "text", "text": block["text"]})),
            Some("image") => {
                let source = &block["source"];
                let url = match source["url"].as_str() {
                    Some(url) => url.to_owned(),
                    None => data_url(&source["media_type"], &source["data"]),
                };
                parts.push(image_part(&url));
            }
            Some("tool_use") => {
                calls.push(tool_call(&block["id"], &block["name"], &block["input"].to_string()));
            }
            Some("tool_result") => {
                results.push(tool_result(&block["tool_use_id"], &field_text(&block["content"])));
            }
            // Reasoning of Tambour's own replies is not sent to the model again: its signature is empty.
            Some("thinking" | "redacted_thinking") => {}
            other => {
                let kind = other.unwrap_or("none");
                return Err(new_problem(format!("a block of the type `{kind}` is not supported")));
            }
        }
    }
    let mut converted_message = json!({"role": role, "content": join_texts(parts, "\n\n")});
    if !calls.is_empty() {
        converted_message["tool_calls"] = calls.into();
    }
    let has_content =
        !converted_message["content"].is_null() || converted_message.get("tool_calls").is_some();
    Ok(results.into_iter().chain(has_content.then_some(converted_message)).collect())
}

/// Returns the text of a field that is a text or a list of blocks.
fn field_text(field: &Value) -> String {
    match field {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            blocks.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n\n")
        }
        Value::Null => String::new(),
        other => other.to_string(),
    }
}
