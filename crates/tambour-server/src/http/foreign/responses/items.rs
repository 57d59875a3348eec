//! Conversion between items of the Responses interface and messages of the Chat Completions interface.

use serde_json::{Value, json};

use crate::base::problem::Problem;
use crate::http::foreign::chat_messages::{image_part, tool_call, tool_result};
use crate::upstream::{Content, Message};

/// Converts input items to messages of the chat completions interface.
pub(super) fn items_to_messages(input: Value) -> Result<Value, Problem> {
    let new_problem = |detail: String| Problem::invalid("invalid_field", detail).with("field", "input");
    let items = match input {
        Value::String(text) => return Ok(json!([{"role": "user", "content": text}])),
        Value::Array(items) => items,
        _ => return Err(new_problem("`input` must be a text or a list of items".to_owned())),
    };
    let mut messages: Vec<Value> = Vec::new();
    for (index, item) in items.into_iter().enumerate() {
        match item["type"].as_str().unwrap_or("message") {
            "message" => {
                let role = &item["role"];
                messages.push(json!({"role": role, "content": join_assistant_text(role, chat_content(&item["content"]))}));
            }
            "function_call" => {
                let call = tool_call(&item["call_id"], &item["name"], &item["arguments"]);
                match messages.last_mut() {
                    // Calls of one reply form one message, together with the text before them.
                    Some(last) if last["role"] == "assistant" => match last["tool_calls"].as_array_mut() {
                        Some(calls) => calls.push(call),
                        None => last["tool_calls"] = json!([call]),
                    },
                    _ => messages.push(json!({"role": "assistant", "content": null, "tool_calls": [call]})),
                }
            }
            "function_call_output" => {
                let output = match &item["output"] {
                    Value::String(text) => text.clone(),
                    other => content_text(&chat_content(other)),
                };
                messages.push(tool_result(&item["call_id"], &output));
            }
            // Reasoning is not sent back.
            "reasoning" => {}
            other => {
                return Err(new_problem(format!(
                    "`input[{index}]` has the type `{other}`, which is not supported"
                )));
            }
        }
    }
    Ok(messages.into())
}

/// Renames the parts of a message to those of the chat completions interface.
fn chat_content(content: &Value) -> Value {
    let Value::Array(parts) = content else { return content.clone() };
    let convert_part = |part: &Value| match part["type"].as_str() {
        Some("input_text" | "output_text" | "text") => json!({"type": "text", "text": part["text"]}),
        Some("refusal") => json!({"type": "text", "text": part["refusal"]}),
        Some("input_image") => image_part(&part["image_url"]),
        _ => part.clone(),
    };
    parts.iter().map(convert_part).collect()
}

/// Joins the content of an assistant's message to one text if it consists of texts only: not every service
/// accepts parts there. Other content is returned unchanged.
fn join_assistant_text(role: &Value, content: Value) -> Value {
    let parts = content.as_array().filter(|_| role == "assistant");
    match parts.is_some_and(|parts| parts.iter().all(|part| part["type"] == "text")) {
        true => content_text(&content).into(),
        false => content,
    }
}

/// Converts messages to input items. Their ids are built from a prefix for their type, their number, and
/// `message_id`, the id of the message that the response belongs to.
pub(super) fn messages_to_items(messages: &[Message], message_id: &str) -> Vec<Value> {
    let mut items: Vec<Value> = Vec::new();
    let mut add = |id_prefix: &str, mut item: Value| {
        item["id"] = format!("{id_prefix}_in{}_{message_id}", items.len()).into();
        item["status"] = "completed".into();
        items.push(item);
    };
    for message in messages {
        if let Some(call) = &message.tool_call_id {
            add("fco", json!({"type": "function_call_output", "call_id": call, "output": message.text()}));
            continue;
        }
        if let Some(content) = &message.content {
            let text_type = if message.role == "assistant" { "output_text" } else { "input_text" };
            let convert_part = |part: &Value| match part["type"].as_str() {
                Some("image_url") => json!({"type": "input_image", "image_url": part["image_url"]["url"]}),
                Some("text") => json!({"type": text_type, "text": part["text"]}),
                _ => part.clone(),
            };
            let parts = match content {
                Content::Text(text) => vec![json!({"type": text_type, "text": text})],
                Content::Parts(parts) => parts.iter().map(convert_part).collect(),
            };
            add("msg", json!({"type": "message", "role": message.role, "content": parts}));
        }
        for call in &message.tool_calls {
            let (name, arguments) = (&call.function.name, &call.function.arguments);
            let item =
                json!({"type": "function_call", "call_id": call.id, "name": name, "arguments": arguments});
            add("fc", item);
        }
    }
    items
}

/// Returns the text of a message's content; its other parts are left out.
pub(super) fn content_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    }
}
