//! Messages of Chat Completions as clients send them. Fields that the server does not know, such as
//! `refusal: null` in an answer sent back, are dropped.

use serde_json::{Map, Value, json};

use crate::base::problem::Problem;

/// Checks and cleans the field `messages` of a request.
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
        // Deprecated form of a tool's result.
        if fields.get("role") == Some(&json!("function")) {
            let name = fields.remove("name").unwrap_or_default();
            let text =
                format!("{}: {}", name.as_str().unwrap_or("function"), content_text(fields.get("content")));
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

fn content_text(content: Option<&Value>) -> String {
    match content {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    }
}
