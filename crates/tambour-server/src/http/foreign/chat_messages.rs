//! Messages of the Chat Completions interface. Checks and cleans the messages of a request, and builds parts
//! of messages from requests of other protocols.

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::base::problem::Problem;

/// Checks and cleans the field `messages` of a request. Unknown fields are dropped, such as `refusal: null`
/// in a reply that the client sends back.
pub(super) fn convert_messages(messages: Option<Value>) -> Result<Value, Problem> {
    let new_problem = |detail: String| Problem::invalid("invalid_field", detail).with("field", "messages");
    let Some(Value::Array(messages)) = messages else {
        return Err(new_problem("`messages` must be a list of messages".to_owned()));
    };
    let known_fields = ["role", "content", "name", "tool_calls", "tool_call_id"];
    let convert = |(index, message): (usize, Value)| {
        let Value::Object(fields) = message else {
            let detail = format!("`messages[{index}]` must be an object with `role` and `content`");
            return Err(new_problem(detail));
        };
        let mut fields: Map<String, Value> = fields
            .into_iter()
            .filter(|(name, value)| {
                known_fields.contains(&name.as_str()) && !(value.is_null() && name != "content")
            })
            .collect();
        if fields.get("tool_calls").and_then(Value::as_array).is_some_and(Vec::is_empty) {
            fields.remove("tool_calls");
        }
        // Deprecated role of a tool's result without the id of its call. The result is sent as a text of the
        // user.
        if fields.get("role") == Some(&json!("function")) {
            let name = fields.remove("name").unwrap_or_default();
            let text =
                format!("{}: {}", name.as_str().unwrap_or("function"), text_or_json(fields.get("content")));
            return Ok(json!({"role": "user", "content": text}));
        }
        // Only a message with calls may go without content.
        if fields.get("content").is_none_or(Value::is_null) && !fields.contains_key("tool_calls") {
            fields.insert("content".to_owned(), "".into());
        }
        Ok(Value::Object(fields))
    };
    messages.into_iter().enumerate().map(convert).collect::<Result<Vec<_>, _>>().map(Value::from)
}

/// Builds the part of a message with the image at this URL.
pub(super) fn image_part(url: &(impl Serialize + ?Sized)) -> Value {
    json!({"type": "image_url", "image_url": {"url": url}})
}

/// Builds the URL of an image whose bytes are sent in base64; it is a PNG unless there is a media type.
pub(super) fn data_url(media_type: &Value, data: &Value) -> String {
    let media_type = media_type.as_str().unwrap_or("image/png");
    format!("data:{media_type};base64,{}", data.as_str().unwrap_or_default())
}

/// Builds a tool call for an assistant's message; `arguments` is JSON text.
pub(super) fn tool_call(
    id: &Value,
    name: &(impl Serialize + ?Sized),
    arguments: &(impl Serialize + ?Sized),
) -> Value {
    json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
}

/// Builds the message with the result of a call.
pub(super) fn tool_result(call_id: &Value, content: &(impl Serialize + ?Sized)) -> Value {
    json!({"role": "tool", "tool_call_id": call_id, "content": content})
}

/// Joins parts into one text if all of them are texts, since not every service accepts lists of parts.
/// Otherwise returns the parts unchanged; null if there are none.
pub(super) fn join_texts(parts: Vec<Value>, separator: &str) -> Value {
    if parts.is_empty() {
        return Value::Null;
    }
    if parts.iter().any(|part| part["type"] != "text") {
        return parts.into();
    }
    let texts: Vec<&str> = parts.iter().filter_map(|part| part["text"].as_str()).collect();
    texts.join(separator).into()
}

/// Returns a text as it is, and other content as JSON.
fn text_or_json(content: Option<&Value>) -> String {
    match content {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    }
}
