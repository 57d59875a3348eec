//! Text in a JSON value where a string is expected.

use serde_json::Value;

/// Members that describe an object rather than hold its text.
const ABOUT: [&str; 4] = ["type", "role", "index", "annotations"];

/// Members that hold the text of an object and carry no meaning of their own.
const TEXTS: [&str; 5] = ["text", "content", "delta", "message", "value"];

/// Returns the text of a value: a string, a number, a list of texts or of content parts joined by blank
/// lines, or an object with one text. `None` if it holds no text, or several under different keys.
pub(super) fn text_in(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()).filter(|text| !text.trim().is_empty()),
        Value::Number(number) => Some(number.to_string()),
        Value::Array(items) => {
            let texts: Vec<String> = items.iter().filter_map(text_in).collect();
            (!texts.is_empty()).then(|| texts.join("\n\n"))
        }
        Value::Object(fields) => {
            // A part of another kind, such as an image, has text only under `text`.
            let kind = fields.get("type").and_then(Value::as_str);
            if kind.is_some_and(|kind| !kind.contains("text")) {
                return fields.get("text").and_then(of_member);
            }
            let mut texts = fields.iter().filter(|(key, _)| !ABOUT.contains(&key.as_str()));
            let text = texts.find_map(|(_, value)| of_member(value))?;
            texts.all(|(_, value)| of_member(value).is_none()).then_some(text)
        }
        Value::Null | Value::Bool(_) => None,
    }
}

/// Returns the text of an object's member; a number is no text there.
fn of_member(value: &Value) -> Option<String> {
    if value.is_number() { None } else { text_in(value) }
}

/// Returns whether [`text_in`] loses nothing of a value: no item with content but without text, and no key
/// with a meaning of its own.
pub(super) fn is_whole(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().all(is_whole),
        Value::Object(fields) => {
            let whole = |(key, value): (&String, &Value)| {
                let nested = value.is_object() || value.as_array().is_some_and(|items| !items.is_empty());
                let about = ABOUT.contains(&key.as_str()) && !nested;
                about || TEXTS.contains(&key.as_str()) && of_member(value).is_some() && is_whole(value)
            };
            text_in(value).is_some() && fields.iter().all(whole)
        }
        Value::String(_) | Value::Number(_) | Value::Null => true,
        Value::Bool(_) => false,
    }
}
