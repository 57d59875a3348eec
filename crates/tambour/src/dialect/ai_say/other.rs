//! Answers in other shapes: under a wrapper key, written as a string, with another name of `response`.
//! They are recognized once they are complete.

use serde_json::{Map, Value};

use super::fields::{ASSESSMENT, RESPONSES, TOP};
use super::message::{Ended, Message, Stand};
use super::names;
use super::stands::Stands;
use crate::dialect::Output;
use crate::dialect::said::text_in;
use crate::limits::Limits;
use crate::repair::json::{Member, find};
use crate::span::Place;

/// Parses a text that is exactly one complete object.
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

/// Returns the answer in an object with a single key, as an object or as a string.
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

/// Returns true if the object has fields of an answer that are not common words.
pub(super) fn is_answer(object: &Map<String, Value>) -> bool {
    TOP.iter().any(|name| *name != "exit_reason" && object.contains_key(*name))
}

/// Returns the key of the answer's response: `response`, or the only other candidate.
pub(super) fn response_of<'a>(answer: &'a Map<String, Value>, roles: &[String]) -> Option<&'a str> {
    let own = answer.get("response");
    if own.is_some_and(|response| !is_empty(response)) {
        return Some("response");
    }
    let is_response = |name: &&str| {
        let value = answer.get(*name);
        matches!(value, Some(Value::String(_) | Value::Object(_)))
            || value.is_some_and(|v| text_in(v).is_some())
    };
    // The message itself may be beside the assessment.
    let keys = || answer.keys().map(String::as_str).filter(is_response);
    let only = |names: &mut dyn Iterator<Item = &'a str>| match (names.next(), names.next()) {
        (name, None) => name,
        _ => None,
    };
    let role = roles.iter().find_map(|role| keys().find(|key| key == role));
    let holds = |key: &str| answer.get(key).is_some_and(assesses_inside);
    let usual = || keys().filter(|key| RESPONSES.contains(key) && !holds(key));
    let others = || keys().filter(|key| !TOP.contains(key) && names::is_message(key) && !holds(key));
    let name = match (role, usual().next()) {
        (Some(role), _) => Some(role),
        (None, Some(_)) => only(&mut usual()),
        (None, None) => only(&mut others()),
    };
    name.or_else(|| own.filter(|response| !response.is_null()).map(|_| "response"))
}

/// Finds the first object with an assessment anywhere inside a text that is JSON.
pub(super) fn buried(text: &str, limits: &Limits) -> Option<Map<String, Value>> {
    if !text.contains(['{', '｛']) {
        return None;
    }
    fn within(value: &Value) -> Option<&Map<String, Value>> {
        match value {
            Value::Object(fields) if holds_assessment(fields) => Some(fields),
            Value::Object(fields) => fields.values().find_map(within),
            Value::Array(items) => items.iter().find_map(within),
            _ => None,
        }
    }
    let value = find(text, limits).value?;
    let mut answer = Map::new();
    for (key, value) in within(&value)? {
        let name = names::beside(key).map_or(key.clone(), str::to_owned);
        answer.entry(name).or_insert_with(|| value.clone());
    }
    Some(answer)
}

/// Recognizes a reply that is only an object with a message, besides a role name, numbers and flags. Returns
/// the message's key and the object.
pub(super) fn lone(text: &str, limits: &Limits) -> Option<(String, Map<String, Value>)> {
    let object = object_of(text, limits)?;
    let mut others = object.iter().filter(|(key, value)| {
        let told = value.is_number() || value.is_boolean() || value.is_null();
        !told && *key != "role"
    });
    match (others.next(), others.next()) {
        (Some((key, Value::String(text))), None) if names::is_message(key) && !text.trim().is_empty() => {
            let key = key.clone();
            Some((key, object))
        }
        _ => None,
    }
}

/// Returns true if the object has an assessment, or fields of one; under other names only if it is an object
/// or there is a message beside it.
fn holds_assessment(fields: &Map<String, Value>) -> bool {
    let known = |key: &String| names::beside(key).is_some_and(assesses);
    let named = |(key, value): (&String, &Value)| names::is_assessed(key) && value.is_object();
    let inside = |value: &Value| value.as_object().is_some_and(|inner| inner.keys().any(known));
    let beside = || {
        let spoken = fields.iter().any(|(key, value)| {
            names::is_message(key) && text_in(value).is_some() && !assesses_inside(value)
        });
        spoken && (fields.keys().any(|key| names::is_assessed(key)) || fields.values().any(inside))
    };
    fields.keys().any(known) || fields.iter().any(named) || beside()
}

/// Returns true if the value contains an assessment, so that it is not a message, whatever its name.
fn assesses_inside(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.iter().any(|(key, value)| {
            names::beside(key).is_some_and(assesses) || names::is_assessed(key) || assesses_inside(value)
        }),
        Value::Array(items) => items.iter().any(assesses_inside),
        _ => false,
    }
}

/// Returns true if the field is an assessment or belongs to one.
fn assesses(field: &str) -> bool {
    field == "assessment" || ASSESSMENT.contains(&field) && field != "reasoning"
}

/// Returns true if the response has no content at all.
pub(super) fn is_empty(response: &Value) -> bool {
    match response {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Reads the message of a complete response.
pub(super) struct Reader<'a> {
    pub(super) roles: &'a [String],
    pub(super) limits: &'a Limits,
    pub(super) message: &'a mut Message,
    pub(super) place: Standing<'a>,
}

/// Place of a value that is read once it is complete.
#[derive(Clone)]
pub(super) struct Standing<'a> {
    at: Place,
    /// The member that contains the value, if known, and the object in it.
    inside: Option<(&'a Stands, &'a Member, Option<usize>)>,
}

impl<'a> Standing<'a> {
    /// Returns the place of all of the value under the key at `at`.
    pub(super) fn at(at: Place) -> Standing<'a> {
        Standing { at, inside: None }
    }

    /// Returns the place of the field with this path of keys.
    pub(super) fn under(stands: &'a Stands, path: &[&str]) -> Standing<'a> {
        match stands.get(path) {
            Some(member) => Standing::of(stands, member),
            None => Standing::at(stands.near(path).0),
        }
    }

    /// Returns the place of a member's value.
    fn of(stands: &'a Stands, member: &'a Member) -> Standing<'a> {
        Standing { at: member.stand.0, inside: Some((stands, member, stands.objects(member).next())) }
    }

    pub(super) fn get(&self) -> Place {
        self.at
    }

    /// Returns the place of the field `key` in the value.
    fn field(&self, key: &str) -> Standing<'a> {
        let found = self.inside.and_then(|(stands, _, object)| Some((stands, stands.inner(object?, key)?)));
        found.map_or(Standing::at(self.at), |(stands, member)| Standing::of(stands, member))
    }

    /// Returns the places of the objects in the list and in nested lists, if recorded.
    fn items(&self) -> impl Iterator<Item = Standing<'a>> + use<'a> {
        let at = self.at;
        self.inside.into_iter().flat_map(move |(stands, member, _)| {
            stands.objects(member).map(move |object| {
                let inside = Some((stands, member, Some(object)));
                Standing { at, inside }
            })
        })
    }
}

impl<'a> Reader<'a> {
    /// Takes the message out of `response`. Returns true if it is a placeholder of the instructions.
    pub(super) fn take(&mut self, response: &'a Value, out: &mut dyn Output) -> bool {
        let place = self.place.clone();
        let placeholder = match response {
            Value::String(text) => {
                let ended = self.string(text, Stand::Plain, &place, out);
                if let Ended::Whole(text) = &ended {
                    // The string contains another object of roles as a string.
                    match object_of(text, self.limits).filter(|map| map.values().any(Value::is_string)) {
                        Some(map) => {
                            let (roles, limits, message) = (self.roles, self.limits, &mut *self.message);
                            let place = Standing::at(place.get());
                            return Reader { roles, limits, message, place }.take(&Value::Object(map), out);
                        }
                        None => self.message.send(text, out),
                    }
                }
                ended == Ended::Placeholder
            }
            Value::Object(map) => {
                let role = self.roles.iter().find(|role| map.get(*role).is_some_and(Value::is_string));
                let mut placeholder = false;
                if let Some((role, Value::String(text))) = role.and_then(|role| map.get_key_value(role)) {
                    let ended = self.string(text, Stand::Role, &place.field(role), out);
                    placeholder = ended == Ended::Placeholder;
                }
                let others = map.iter().filter(|(key, _)| Some(*key) != role);
                others.for_each(|(key, value)| self.elsewhere(key, value, &place.field(key), out));
                placeholder
            }
            value => {
                self.elsewhere("", value, &place, out);
                false
            }
        };
        self.message.close(out);
        placeholder
    }

    /// Reads texts under `key`, or in a list there, which is not the role key.
    fn elsewhere(&mut self, key: &str, value: &'a Value, place: &Standing<'a>, out: &mut dyn Output) {
        match value {
            Value::String(text) => {
                self.string(text, Stand::under(key), place, out);
            }
            Value::Object(map) => {
                map.iter().for_each(|(key, value)| self.elsewhere(key, value, &place.field(key), out));
            }
            Value::Array(items) => self.list(key, items, place.get(), &mut place.items(), out),
            _ => self.message.lose(place.get()),
        }
    }

    /// Reads a list under `key`. Its non-empty objects have places of their own, in order.
    fn list(
        &mut self,
        key: &str,
        items: &'a [Value],
        at: Place,
        places: &mut dyn Iterator<Item = Standing<'a>>,
        out: &mut dyn Output,
    ) {
        for value in items {
            match value {
                Value::Array(inner) => self.list(key, inner, at, places, out),
                Value::Object(map) if !map.is_empty() => {
                    let place = places.next().unwrap_or(Standing::at(at));
                    self.elsewhere(key, value, &place, out);
                }
                _ => self.elsewhere(key, value, &Standing::at(at), out),
            }
        }
    }

    fn string(&mut self, text: &str, stand: Stand, place: &Standing<'_>, out: &mut dyn Output) -> Ended {
        self.message.begin(stand, place.get());
        if !text.is_empty() {
            self.message.push(text, out);
        }
        self.message.end(out)
    }
}
