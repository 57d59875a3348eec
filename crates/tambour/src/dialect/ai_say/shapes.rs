//! Answers in other shapes: under a wrapper key, written as a string, with another name of `response`.
//! They are recognized once they are complete.

use serde_json::{Map, Value};

use super::field_extents::FieldExtents;
use super::fields::{ANSWER_FIELDS, ASSESSMENT_FIELDS, RESPONSE_ALIASES};
use super::message::{AnswerMessage, StringOutcome, TextPosition};
use super::names;
use crate::dialect::IntentSink;
use crate::dialect::value_text::text_in;
use crate::limits::Limits;
use crate::repair::json::{MemberPlace, find};
use crate::span::Place;

/// Parses a text that is exactly one complete object.
pub(super) fn parse_object(text: &str, limits: &Limits) -> Option<Map<String, Value>> {
    let found = find(text, limits);
    let body = text.trim();
    let start = text.len() - text.trim_start().len();
    let is_whole = found.span.start == start && found.span.end == start + body.len();
    match found.value {
        Some(Value::Object(map)) if is_whole && found.candidate_count == 1 && !found.is_auto_closed => {
            Some(map)
        }
        _ => None,
    }
}

/// Returns the answer that is the value of an object's only key, as an object or as a string.
pub(super) fn unwrap_answer(object: &Map<String, Value>, limits: &Limits) -> Option<Map<String, Value>> {
    let mut values = object.values();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    let inner = match value {
        Value::Object(map) => map.clone(),
        Value::String(text) if text.trim_start().starts_with('{') => parse_object(text, limits)?,
        _ => return None,
    };
    is_answer(&inner).then_some(inner)
}

/// Returns true if the object has a field of an answer; `exit_reason` alone does not count.
pub(super) fn is_answer(object: &Map<String, Value>) -> bool {
    ANSWER_FIELDS.iter().any(|name| *name != "exit_reason" && object.contains_key(*name))
}

/// Returns the key of the answer's response: `response`, if it is not empty, else a role key, else the only
/// key that can be another name of `response`, else an empty `response`.
pub(super) fn find_response_key<'a>(answer: &'a Map<String, Value>, roles: &[String]) -> Option<&'a str> {
    let response = answer.get("response");
    if response.is_some_and(|response| !is_empty(response)) {
        return Some("response");
    }
    let is_response = |name: &&str| {
        let value = answer.get(*name);
        matches!(value, Some(Value::String(_) | Value::Object(_)))
            || value.is_some_and(|value| text_in(value).is_some())
    };
    // Instead of a response, the answer may have the message itself, for example under a role key.
    let keys = || answer.keys().map(String::as_str).filter(is_response);
    let take_only = |names: &mut dyn Iterator<Item = &'a str>| match (names.next(), names.next()) {
        (name, None) => name,
        _ => None,
    };
    let role_key = roles.iter().find_map(|role| keys().find(|key| key == role));
    let holds_assessment = |key: &str| answer.get(key).is_some_and(contains_assessment);
    let aliases = || keys().filter(|key| RESPONSE_ALIASES.contains(key) && !holds_assessment(key));
    let message_keys = || {
        keys().filter(|key| {
            !ANSWER_FIELDS.contains(key) && names::is_message_key(key) && !holds_assessment(key)
        })
    };
    let name = match (role_key, aliases().next()) {
        (Some(role_key), _) => Some(role_key),
        (None, Some(_)) => take_only(&mut aliases()),
        (None, None) => take_only(&mut message_keys()),
    };
    name.or_else(|| response.filter(|response| !response.is_null()).map(|_| "response"))
}

/// Finds the first object with an assessment anywhere inside the JSON value of a text; its keys get the names
/// of the fields they stand for.
pub(super) fn find_nested_answer(text: &str, limits: &Limits) -> Option<Map<String, Value>> {
    if !text.contains(['{', '｛']) {
        return None;
    }
    fn find_within(value: &Value) -> Option<&Map<String, Value>> {
        match value {
            Value::Object(fields) if has_assessment(fields) => Some(fields),
            Value::Object(fields) => fields.values().find_map(find_within),
            Value::Array(items) => items.iter().find_map(find_within),
            _ => None,
        }
    }
    let value = find(text, limits).value?;
    let mut answer = Map::new();
    for (key, value) in find_within(&value)? {
        let name = names::find_any_field(key).map_or(key.clone(), str::to_owned);
        answer.entry(name).or_insert_with(|| value.clone());
    }
    Some(answer)
}

/// Recognizes a reply that is one object whose only text is a message, apart from the speaker's name under
/// `role`. Returns the message's key and the object.
pub(super) fn parse_lone_message(text: &str, limits: &Limits) -> Option<(String, Map<String, Value>)> {
    let object = parse_object(text, limits)?;
    let mut other_members = object.iter().filter(|(key, value)| {
        let is_scalar = value.is_number() || value.is_boolean() || value.is_null();
        !is_scalar && *key != "role"
    });
    match (other_members.next(), other_members.next()) {
        (Some((key, Value::String(text))), None) if names::is_message_key(key) && !text.trim().is_empty() => {
            let key = key.clone();
            Some((key, object))
        }
        _ => None,
    }
}

/// Returns true if the object has an assessment or fields of one. A key that only resembles these counts if
/// its value is an object, or if the object also has a message. Such fields in a nested object count only if
/// the outer object has a message.
fn has_assessment(fields: &Map<String, Value>) -> bool {
    let is_known = |key: &String| names::find_any_field(key).is_some_and(is_assessment_field);
    let is_named = |(key, value): (&String, &Value)| names::is_assessment_key(key) && value.is_object();
    let has_inner = |value: &Value| value.as_object().is_some_and(|inner| inner.keys().any(is_known));
    let has_message = || {
        let has_text = fields.iter().any(|(key, value)| {
            names::is_message_key(key) && text_in(value).is_some() && !contains_assessment(value)
        });
        has_text && (fields.keys().any(|key| names::is_assessment_key(key)) || fields.values().any(has_inner))
    };
    fields.keys().any(is_known) || fields.iter().any(is_named) || has_message()
}

/// Returns true if the value contains an assessment. Such a value is not a message, whatever its key.
fn contains_assessment(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.iter().any(|(key, value)| {
            names::find_any_field(key).is_some_and(is_assessment_field)
                || names::is_assessment_key(key)
                || contains_assessment(value)
        }),
        Value::Array(items) => items.iter().any(contains_assessment),
        _ => false,
    }
}

/// Returns true if the field is an assessment or belongs to one.
fn is_assessment_field(field: &str) -> bool {
    field == "assessment" || ASSESSMENT_FIELDS.contains(&field) && field != "reasoning"
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
pub(super) struct ResponseReader<'a> {
    pub(super) roles: &'a [String],
    pub(super) limits: &'a Limits,
    pub(super) message: &'a mut AnswerMessage,
    pub(super) place: ValuePlace<'a>,
}

/// Place of a value that is read once it is complete.
#[derive(Clone)]
pub(super) struct ValuePlace<'a> {
    /// Place of the value's key, or of the closest key around the value whose place is known.
    key_place: Place,
    /// The member that contains the value, if known, and the number of the object in it.
    member: Option<(&'a FieldExtents, &'a MemberPlace, Option<usize>)>,
}

impl<'a> ValuePlace<'a> {
    /// Creates the place of a value of which only the place of the key is known. Everything in the value gets
    /// that place too.
    pub(super) fn new(key_place: Place) -> ValuePlace<'a> {
        ValuePlace { key_place, member: None }
    }

    /// Returns the place of the field with this path of keys.
    pub(super) fn from_path(extents: &'a FieldExtents, path: &[&str]) -> ValuePlace<'a> {
        match extents.get(path) {
            Some(member) => ValuePlace::from_member(extents, member),
            None => ValuePlace::new(extents.nearest_extent(path).place),
        }
    }

    /// Returns the place of a member's value.
    fn from_member(extents: &'a FieldExtents, member: &'a MemberPlace) -> ValuePlace<'a> {
        ValuePlace {
            key_place: member.extent.place,
            member: Some((extents, member, extents.objects(member).next())),
        }
    }

    /// Returns the place of the value's key.
    pub(super) fn place(&self) -> Place {
        self.key_place
    }

    /// Returns the place of the field `key` in the value.
    fn field(&self, key: &str) -> ValuePlace<'a> {
        let found =
            self.member.and_then(|(extents, _, object)| Some((extents, extents.inner_member(object?, key)?)));
        found.map_or(ValuePlace::new(self.key_place), |(extents, member)| {
            ValuePlace::from_member(extents, member)
        })
    }

    /// Returns the places of the objects in the value, which is a list, and in lists nested in it, as far as
    /// they were recorded.
    fn items(&self) -> impl Iterator<Item = ValuePlace<'a>> + use<'a> {
        let key_place = self.key_place;
        self.member.into_iter().flat_map(move |(extents, member, _)| {
            extents
                .objects(member)
                .map(move |object| ValuePlace { key_place, member: Some((extents, member, Some(object))) })
        })
    }
}

impl<'a> ResponseReader<'a> {
    /// Takes the message out of `response`. Returns true if the message is a placeholder of the instructions.
    pub(super) fn read_message(&mut self, response: &'a Value, out: &mut dyn IntentSink) -> bool {
        let place = self.place.clone();
        let is_placeholder = match response {
            Value::String(text) => {
                let outcome = self.read_string(text, TextPosition::WholeResponse, &place, out);
                if let StringOutcome::PossibleObject(text) = &outcome {
                    // The string may contain a `response` object in turn.
                    match parse_object(text, self.limits).filter(|map| map.values().any(Value::is_string)) {
                        Some(map) => {
                            let (roles, limits, message) = (self.roles, self.limits, &mut *self.message);
                            let place = ValuePlace::new(place.place());
                            return ResponseReader { roles, limits, message, place }
                                .read_message(&Value::Object(map), out);
                        }
                        None => self.message.send(text, out),
                    }
                }
                outcome == StringOutcome::Placeholder
            }
            Value::Object(map) => {
                let role = self.roles.iter().find(|role| map.get(*role).is_some_and(Value::is_string));
                let mut is_placeholder = false;
                if let Some((role, Value::String(text))) = role.and_then(|role| map.get_key_value(role)) {
                    let outcome = self.read_string(text, TextPosition::Role, &place.field(role), out);
                    is_placeholder = outcome == StringOutcome::Placeholder;
                }
                let other_members = map.iter().filter(|(key, _)| Some(*key) != role);
                other_members.for_each(|(key, value)| self.read_value(key, value, &place.field(key), out));
                is_placeholder
            }
            value => {
                self.read_value("", value, &place, out);
                false
            }
        };
        self.message.close(out);
        is_placeholder
    }

    /// Reads the texts of the value under `key`, which is not the role key.
    fn read_value(&mut self, key: &str, value: &'a Value, place: &ValuePlace<'a>, out: &mut dyn IntentSink) {
        match value {
            Value::String(text) => {
                self.read_string(text, TextPosition::for_key(key), place, out);
            }
            Value::Object(map) => {
                map.iter().for_each(|(key, value)| self.read_value(key, value, &place.field(key), out));
            }
            Value::Array(items) => self.read_list(key, items, place.place(), &mut place.items(), out),
            _ => self.message.mark_lost(place.place()),
        }
    }

    /// Reads a list under `key`, whose key is at `at`. `places` yields the recorded places of the non-empty
    /// objects in the list, in order.
    fn read_list(
        &mut self,
        key: &str,
        items: &'a [Value],
        at: Place,
        places: &mut dyn Iterator<Item = ValuePlace<'a>>,
        out: &mut dyn IntentSink,
    ) {
        for value in items {
            match value {
                Value::Array(inner) => self.read_list(key, inner, at, places, out),
                Value::Object(map) if !map.is_empty() => {
                    let place = places.next().unwrap_or(ValuePlace::new(at));
                    self.read_value(key, value, &place, out);
                }
                _ => self.read_value(key, value, &ValuePlace::new(at), out),
            }
        }
    }

    /// Reads a complete string as if it had just arrived.
    fn read_string(
        &mut self,
        text: &str,
        position: TextPosition,
        place: &ValuePlace<'_>,
        out: &mut dyn IntentSink,
    ) -> StringOutcome {
        self.message.begin(position, place.place());
        if !text.is_empty() {
            self.message.push(text, out);
        }
        self.message.end(out)
    }
}
