//! Answers in other shapes: under a wrapper key, written as a string, with another name of `response`. They are
//! known once they have been read whole.

use serde_json::{Map, Value};

use super::fields::{RESPONSES, TOP};
use super::message::{Ended, Message, Stand};
use crate::dialect::Output;
use crate::limits::Limits;
use crate::repair::json::find;
use crate::span::Place;

/// The object that a text is, all of it and complete.
pub(super) fn object_of(text: &str, limits: &Limits) -> Option<Map<String, Value>> {
    let found = find(text, limits);
    let body = text.trim();
    let start = body.as_ptr() as usize - text.as_ptr() as usize;
    let whole = found.span.start == start && found.span.end == start + body.len();
    match found.value {
        Some(Value::Object(map)) if whole && found.candidates == 1 && !found.closed_by_us => Some(map),
        _ => None,
    }
}

/// The answer in an object that has one key and nothing else, as an object or as a string.
pub(super) fn unwrapped(object: &Map<String, Value>, limits: &Limits) -> Option<Map<String, Value>> {
    let mut values = object.values();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    let inner = match value {
        Value::Object(map) => map.clone(),
        Value::String(text) if text.trim_start().starts_with('{') => object_of(text, limits)?,
        _ => return None,
    };
    is_answer(&inner).then_some(inner)
}

/// Whether an object has fields of an answer that are no common words.
pub(super) fn is_answer(object: &Map<String, Value>) -> bool {
    TOP.iter().any(|name| *name != "exit_reason" && object.contains_key(*name))
}

/// The key under which the response of an answer stands: its own, or the only other one.
pub(super) fn response_of(answer: &Map<String, Value>) -> Option<&'static str> {
    if answer.get("response").is_some_and(|response| !response.is_null()) {
        return Some("response");
    }
    let is_response = |name: &&&str| matches!(answer.get(**name), Some(Value::String(_) | Value::Object(_)));
    let mut names = RESPONSES.iter().filter(is_response);
    match (names.next(), names.next()) {
        (Some(name), None) => Some(name),
        _ => None,
    }
}

/// Reads the message of a response that is whole.
pub(super) struct Reader<'a> {
    pub(super) roles: &'a [String],
    pub(super) limits: &'a Limits,
    pub(super) message: &'a mut Message,
    /// Where the answer stands.
    pub(super) at: Place,
    pub(super) end: usize,
}

impl Reader<'_> {
    /// Takes the message out of `response`. Whether that is a placeholder of the instructions.
    pub(super) fn take(&mut self, response: &Value, out: &mut dyn Output) -> bool {
        let placeholder = match response {
            Value::String(text) => {
                let ended = self.string(text, Stand::Plain, out);
                if let Ended::Whole(text) = &ended {
                    // A map of roles in a string in its turn.
                    match object_of(text, self.limits).filter(|map| map.values().any(Value::is_string)) {
                        Some(map) => return self.take(&Value::Object(map), out),
                        None => self.message.send(text, out),
                    }
                }
                ended == Ended::Placeholder
            }
            Value::Object(map) => {
                let role = self.roles.iter().find(|role| map.get(*role).is_some_and(Value::is_string));
                let mut placeholder = false;
                if let Some(Value::String(text)) = role.and_then(|role| map.get(role)) {
                    placeholder = self.string(text, Stand::Role, out) == Ended::Placeholder;
                }
                let others = map.iter().filter(|(key, _)| Some(*key) != role);
                others.for_each(|(_, value)| self.elsewhere(value, out));
                placeholder
            }
            value => {
                self.elsewhere(value, out);
                false
            }
        };
        self.message.close(self.end, out);
        placeholder
    }

    fn elsewhere(&mut self, value: &Value, out: &mut dyn Output) {
        match value {
            Value::String(text) => {
                self.string(text, Stand::Elsewhere, out);
            }
            Value::Object(map) => map.values().for_each(|value| self.elsewhere(value, out)),
            Value::Array(items) => items.iter().for_each(|value| self.elsewhere(value, out)),
            _ => {}
        }
    }

    fn string(&mut self, text: &str, stand: Stand, out: &mut dyn Output) -> Ended {
        self.message.begin(stand, self.at);
        if !text.is_empty() {
            self.message.push(text, self.at, out);
        }
        self.message.end(out)
    }
}
