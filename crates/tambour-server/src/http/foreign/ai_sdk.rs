//! Vercel AI SDK: `POST /api/chat`, resuming its stream, and stopping it.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde_json::{Map, Value, json};
use tambour::encode::ai_sdk::AiSdkEncoder;
use tambour::encode::{Encoder, StreamContext};

use super::chat_messages::{image_part, join_texts, tool_call, tool_result};
use super::{ForeignRequest, describe_message, stream_message, threads};
use crate::base::problem::{Problem, parse_body};
use crate::http::app::App;
use crate::http::events::{self, EventReader};
use crate::http::keys::Caller;
use crate::http::messages::find_owned;
use crate::http::request::RequestId;
use crate::run::states;

/// Word of this protocol for a conversation.
const CHAT_KIND: &str = "chat";

/// `POST /api/chat`: runs a message in the client's chat and streams its events.
pub(in crate::http) async fn chat(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Extension(RequestId(request_id)): Extension<RequestId>,
    bytes: Bytes,
) -> Result<Response, Problem> {
    let mut body: Map<String, Value> = parse_body(&bytes)?;
    let mut foreign_request = ForeignRequest::for_model_or_default(&app, &mut body)?;
    let chat_name = body.remove("id");
    let conversation = match chat_name.as_ref().and_then(Value::as_str) {
        Some(chat_name) => Some(threads::find_or_create(&app, &caller, CHAT_KIND, chat_name).await?),
        None => None,
    };
    match (body.remove("messages"), body.remove("message")) {
        (Some(Value::Array(messages)), _) => {
            let messages: Vec<Vec<Value>> = messages.iter().map(chat_messages).collect();
            foreign_request.set("messages", messages.concat());
        }
        (_, Some(message)) => {
            // The client sends only the new message; the server knows the earlier ones of the chat.
            let converted_messages = chat_messages(&message);
            let texts = converted_messages.iter().filter_map(|message| message["content"].as_str());
            foreign_request.set("text", texts.collect::<Vec<_>>().join("\n\n"));
        }
        _ => {
            let detail = "send `messages`, a list of AI SDK messages, or `message`, only the newest one";
            return Err(Problem::invalid("missing_field", detail).with("field", "messages"));
        }
    }
    if let Some(conversation) = &conversation {
        foreign_request.set("conversation_id", conversation.as_str());
    }
    let tambour_fields = body.remove("tambour");
    let new_message = foreign_request.into_message(tambour_fields, true)?;
    let state = match &conversation {
        Some(conversation) => states::state_before(&app, conversation).await?,
        None => None,
    };
    let app_for_encoder = app.clone();
    let encoder = move |context: StreamContext| {
        if let Some(conversation) = &conversation {
            app_for_encoder.threads.register(&app_for_encoder, conversation, &context.message_id);
        }
        Box::new(AiSdkEncoder::new(context, state)) as Box<dyn Encoder>
    };
    Ok(add_stream_header(stream_message(app, &caller, request_id, new_message, encoder).await?))
}

/// `GET /api/chat/{id}/stream`: the whole stream of the running message; 204 if none is running.
pub(in crate::http) async fn resume_stream(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(chat_name): Path<String>,
) -> Result<Response, Problem> {
    let conversation = threads::conversation_id(&caller, CHAT_KIND, &chat_name)?;
    let Some(live_run) = app.threads.running_message(&app, &conversation) else {
        return Ok(StatusCode::NO_CONTENT.into_response());
    };
    let row = find_owned(&app, &caller, &live_run.id).await?;
    let event_stream = events::open_stream(&app, &caller)?;
    // This is the state before the running message, whose updates are stored when it has ended.
    let state = app.store.state(&conversation).await?.map(|row| row.state);
    let encoder: Box<dyn Encoder> = Box::new(AiSdkEncoder::new(describe_message(&row), state));
    let reader_guard = live_run.add_reader();
    Ok(add_stream_header(events::stream_response(
        app,
        EventReader::new(&row.id, encoder, Some(reader_guard), 0),
        event_stream,
    )))
}

/// `POST /api/chat/{id}/stop`: cancels the running message. `stopped` says whether there was one.
pub(in crate::http) async fn stop(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(chat_name): Path<String>,
) -> Result<Json<Value>, Problem> {
    let conversation = threads::conversation_id(&caller, CHAT_KIND, &chat_name)?;
    let live_run = app.threads.running_message(&app, &conversation);
    if let Some(live_run) = &live_run {
        live_run.cancel.cancel();
    }
    Ok(Json(json!({ "stopped": live_run.is_some() })))
}

/// Marks a response as a UI message stream, as the AI SDK requires.
fn add_stream_header(mut response: Response) -> Response {
    let name = HeaderName::from_static("x-vercel-ai-ui-message-stream");
    response.headers_mut().insert(name, HeaderValue::from_static("v1"));
    response
}

/// Converts a message of the AI SDK to messages of the chat completions interface, where results of calls are
/// separate messages. Parts for display only are dropped.
fn chat_messages(message: &Value) -> Vec<Value> {
    let role = message["role"].as_str().unwrap_or("user");
    let parts = match (&message["parts"], &message["content"]) {
        (Value::Array(parts), _) => parts.clone(),
        (_, Value::String(text)) => vec![json!({"type": "text", "text": text})],
        (_, Value::Array(parts)) => parts.clone(),
        _ => Vec::new(),
    };
    let (mut content, mut calls, mut results) = (Vec::new(), Vec::new(), Vec::new());
    for part in &parts {
        let kind = part["type"].as_str().unwrap_or_default();
        match kind {
            "text" => content.push(json!({"type": "text", "text": part["text"]})),
            "file" => content.push(image_part(&part["url"])),
            _ => {
                // A call has the type `tool-NAME`, or `dynamic-tool` with the name in `toolName`.
                let name_in_type = kind.strip_prefix("tool-").filter(|_| part["toolCallId"].is_string());
                let name = if kind == "dynamic-tool" { part["toolName"].as_str() } else { name_in_type };
                let result_text = match part["state"].as_str() {
                    Some("output-available") => part["output"].to_string(),
                    Some("output-error") => part["errorText"].as_str().unwrap_or("failed").to_owned(),
                    // Services refuse a call without a result, so it is left out.
                    _ => continue,
                };
                let Some(name) = name else { continue };
                calls.push(tool_call(&part["toolCallId"], name, &part["input"].to_string()));
                results.push(tool_result(&part["toolCallId"], &result_text));
            }
        }
    }
    let mut converted_message = json!({"role": role, "content": join_texts(content, "")});
    if !calls.is_empty() {
        converted_message["tool_calls"] = calls.into();
    } else if converted_message["content"].is_null() {
        converted_message["content"] = "".into();
    }
    [converted_message].into_iter().chain(results).collect()
}
