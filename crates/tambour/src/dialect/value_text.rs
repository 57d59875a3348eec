//! Texts in JSON values: reads them where a string is expected, and writes them from several pieces
//! without joining the pieces first.

use std::fmt;

use serde::{Serialize, Serializer};
use serde_json::Value;

/// Members that describe an object rather than hold its text.
const DESCRIPTIVE_KEYS: [&str; 4] = ["type", "role", "index", "annotations"];

/// Members that may hold the text of an object, and whose names add nothing to that text.
const TEXT_KEYS: [&str; 5] = ["text", "content", "delta", "message", "value"];

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
                return fields.get("text").and_then(member_text);
            }
            let mut texts = fields.iter().filter(|(key, _)| !DESCRIPTIVE_KEYS.contains(&key.as_str()));
            let text = texts.find_map(|(_, value)| member_text(value))?;
            texts.all(|(_, value)| member_text(value).is_none()).then_some(text)
        }
        Value::Null | Value::Bool(_) => None,
    }
}

/// Returns the text of an object's member; a number does not count as text there.
fn member_text(value: &Value) -> Option<String> {
    if value.is_number() { None } else { text_in(value) }
}

/// Returns whether [`text_in`] loses nothing of a value: each item of a list is text or null, and each key of
/// an object either names its text or only describes it.
pub(super) fn is_lossless(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().all(is_lossless),
        Value::Object(fields) => {
            let is_preserved = |(key, value): (&String, &Value)| {
                let is_nested = value.is_object() || value.as_array().is_some_and(|items| !items.is_empty());
                let is_descriptive = DESCRIPTIVE_KEYS.contains(&key.as_str()) && !is_nested;
                is_descriptive
                    || TEXT_KEYS.contains(&key.as_str()) && member_text(value).is_some() && is_lossless(value)
            };
            text_in(value).is_some() && fields.iter().all(is_preserved)
        }
        Value::String(_) | Value::Number(_) | Value::Null => true,
        Value::Bool(_) => false,
    }
}

/// Pieces that form one text in their order.
pub(super) struct TextPieces<I>(pub(super) I);

impl<'a, I: Iterator<Item = &'a str> + Clone> TextPieces<I> {
    /// Appends the text as a JSON string.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        serde_json::to_writer(out, self).expect("writing a string to memory does not fail");
    }
}

impl<'a, I: Iterator<Item = &'a str> + Clone> fmt::Display for TextPieces<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.clone().try_for_each(|piece| f.write_str(piece))
    }
}

impl<'a, I: Iterator<Item = &'a str> + Clone> Serialize for TextPieces<I> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Converts written bytes to a string.
pub(super) fn utf8_string(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("JSON and event names are valid UTF-8")
}
