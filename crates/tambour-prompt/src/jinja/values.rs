//! Values of templates that are not plain data, such as participants, messages and times. They print as a
//! special text, or have fields that are computed on reading (F-029, F-034).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Weak};

use jiff::Zoned;
use minijinja::value::{Enumerator, Object, ObjectExt, ObjectRepr, Serde, Value};

use super::context::PromptContext;
use super::scope::PromptScope;
use super::text;

/// Returns the special text that a value of this module prints as; `None` for a value without such a text.
pub(super) fn custom_text(value: &Value) -> Option<String> {
    if let Some(person) = value.downcast_object_ref::<ParticipantObject>() {
        return Some(person.name.clone());
    }
    if let Some(message) = value.downcast_object_ref::<MessageObject>() {
        return Some(message.content());
    }
    if let Some(group) = value.downcast_object_ref::<GroupObject>() {
        return Some(group.text());
    }
    if let Some(time_object) = value.downcast_object_ref::<TimeObject>() {
        return Some(time_object.text());
    }
    if let Some(description) = value.downcast_object_ref::<StateDescription>() {
        return Some(description.text());
    }
    value.downcast_object_ref::<MissingValue>().map(|_| String::new())
}

/// Value that the context lacks but imported texts, such as cards, may read even in strict mode (F-033): it
/// prints nothing and counts as undefined, and so do its fields.
#[derive(Debug)]
pub(super) struct MissingValue;

/// Returns [`MissingValue`] as a value.
pub(super) fn missing_value() -> Value {
    Value::from_object(MissingValue)
}

/// Returns true if a value is undefined or [`MissingValue`].
pub(super) fn is_missing(value: &Value) -> bool {
    value.is_undefined() || value.downcast_object_ref::<MissingValue>().is_some()
}

impl Object for MissingValue {
    fn get_value(self: &Arc<Self>, _: &Value) -> Option<Value> {
        Some(missing_value())
    }

    fn is_true(self: &Arc<Self>) -> bool {
        false
    }

    fn render(self: &Arc<Self>, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}

/// A map whose missing fields are [`MissingValue`].
#[derive(Debug)]
pub(super) struct LenientMap(pub(super) Value);

impl LenientMap {
    /// Wraps a map of the context; a missing one is empty.
    pub(super) fn from_context(map: Option<&serde_json::Value>) -> Value {
        Value::from_object(LenientMap(map.map_or_else(missing_value, |map| Value::from(Serde(map)))))
    }
}

impl Object for LenientMap {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let value = self.0.get_item(key).ok().filter(|value| !value.is_undefined());
        Some(value.unwrap_or_else(missing_value))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        enumerate_keys(&self.0)
    }

    fn is_true(self: &Arc<Self>) -> bool {
        self.0.is_true()
    }
}

/// Enumerates the keys of a map lazily, so that a loop that ends early does not build a list of all keys.
fn enumerate_keys(map: &Value) -> Enumerator {
    match map.as_object().map(|object| object.enumerate()) {
        None | Some(Enumerator::NonEnumerable) => Enumerator::Empty,
        Some(keys) => keys,
    }
}

/// A user, character or group member: prints the name and has fields.
pub(super) struct ParticipantObject {
    pub(super) name: String,
    /// Fields that are read as they are.
    pub(super) fields: BTreeMap<String, Value>,
    /// Fields whose text may contain macros; rendered when a template reads them (M-021).
    pub(super) macro_texts: BTreeMap<String, Arc<str>>,
    /// Fields that imported texts may read: [`MissingValue`], and not undefined, if they are missing.
    pub(super) readable_fields: &'static [&'static str],
    /// Scope in which macro texts are rendered.
    pub(super) scope: Weak<PromptScope>,
}

impl fmt::Debug for ParticipantObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl Object for ParticipantObject {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let key = key.as_str()?;
        if let Some(value) = self.fields.get(key) {
            return Some(value.clone());
        }
        if let (Some(text), Some(scope)) = (self.macro_texts.get(key), self.scope.upgrade()) {
            return Some(scope.render_field(key, text));
        }
        self.readable_fields.contains(&key).then(missing_value)
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        self.mapped_enumerator(|object| {
            let texts = object.macro_texts.keys().filter(|key| !object.fields.contains_key(*key));
            Box::new(object.fields.keys().chain(texts).map(|key| Value::from(key.as_str())))
        })
    }

    fn is_true(self: &Arc<Self>) -> bool {
        true
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// A message of the history: prints its content.
#[derive(Debug)]
pub(super) struct MessageObject(pub(super) Value);

/// Fields of a message that imported texts may read: [`MissingValue`] if they are missing.
const MESSAGE_FIELDS: &[&str] = &["id", "role", "content", "name", "swipe_count", "current_swipe"];

impl MessageObject {
    /// Returns the content as text.
    fn content(&self) -> String {
        let content = self.0.get_attr("content").unwrap_or_default();
        text::to_text(&content).map(std::borrow::Cow::into_owned).unwrap_or_default()
    }
}

impl Object for MessageObject {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let value = self.0.get_item(key).ok().filter(|value| !value.is_undefined());
        value.or_else(|| key.as_str().filter(|key| MESSAGE_FIELDS.contains(key)).map(|_| missing_value()))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        enumerate_keys(&self.0)
    }

    fn is_true(self: &Arc<Self>) -> bool {
        self.0.is_true()
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.content())
    }
}

/// A list of messages. An index past the end gives [`MissingValue`].
#[derive(Debug)]
pub(super) struct MessageList(pub(super) Vec<Value>);

impl MessageList {
    /// Converts a list of the context to messages.
    pub(super) fn from_context(list: Option<&serde_json::Value>) -> Value {
        let items = list.and_then(serde_json::Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let messages = items.iter().enumerate().map(|(at, item)| {
            let mut fields = match item {
                serde_json::Value::Object(fields) => fields.clone(),
                other => [("content".to_owned(), other.clone())].into_iter().collect(),
            };
            // The id of a message defaults to its index, from 0.
            fields.entry("id").or_insert_with(|| at.into());
            Value::from_object(MessageObject(Value::from(Serde(fields))))
        });
        Value::from_object(MessageList(messages.collect()))
    }
}

impl Object for MessageList {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Seq
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        Some(key.as_usize().and_then(|at| self.0.get(at)).cloned().unwrap_or_else(missing_value))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Seq(self.0.len())
    }
}

/// The members of a group: prints their names joined by `, `.
#[derive(Debug)]
pub(super) struct GroupObject {
    pub(super) members: Vec<Value>,
    /// Text printed when there are no members.
    pub(super) fallback_name: String,
}

impl GroupObject {
    /// Returns the names of the members, or the fallback without members.
    pub(super) fn text(&self) -> String {
        if self.members.is_empty() {
            return self.fallback_name.clone();
        }
        let names: Vec<String> = self.members.iter().filter_map(custom_text).collect();
        names.join(", ")
    }
}

impl Object for GroupObject {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Seq
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.members.get(key.as_usize()?).cloned()
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Seq(self.members.len())
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

/// A moment in time: prints as RFC 3339.
#[derive(Debug)]
pub(super) struct TimeObject(pub(super) Zoned);

impl TimeObject {
    /// Returns the time in RFC 3339.
    fn text(&self) -> String {
        self.0.timestamp().display_with_offset(self.0.offset()).to_string()
    }
}

impl Object for TimeObject {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let time = &self.0;
        Some(match key.as_str()? {
            "year" => Value::from(time.year()),
            "month" => Value::from(time.month()),
            "day" => Value::from(time.day()),
            "hour" => Value::from(time.hour()),
            "minute" => Value::from(time.minute()),
            "second" => Value::from(time.second()),
            _ => return None,
        })
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

/// Place in the state: prints the description of the place, or nothing if there is none. Fields lead to
/// nested places (F-029).
#[derive(Clone, Debug)]
pub(super) struct StateDescription {
    /// Descriptions of the context, by nested keys or by whole paths.
    pub(super) descriptions: Arc<serde_json::Value>,
    /// JSON Schema of the state, whose descriptions apply where the context has none.
    pub(super) schema: Option<Arc<serde_json::Value>>,
    /// Keys that lead to the described place.
    pub(super) path: Vec<String>,
}

impl StateDescription {
    /// Returns the description of the whole state of a context.
    pub(super) fn from_context(context: &PromptContext) -> StateDescription {
        let schema = context.get("state_schema").cloned().map(Arc::new);
        StateDescription {
            descriptions: Arc::new(context.state_descriptions.clone()),
            schema,
            path: Vec::new(),
        }
    }

    /// Returns the description; empty if there is none.
    pub(super) fn text(&self) -> String {
        let description = super::descriptions::find_description(&self.descriptions, &self.path);
        let description = description
            .or_else(|| super::descriptions::find_schema_description(self.schema.as_deref()?, &self.path));
        description.unwrap_or_default()
    }
}

impl Object for StateDescription {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let key = key.as_str().map(str::to_owned).or_else(|| key.as_i64().map(|index| index.to_string()))?;
        let length = self.path.iter().map(String::len).sum::<usize>() + key.len();
        // These limits exceed any real state; a path beyond them has no description.
        if self.path.len() >= 64 || length > 4 << 10 {
            return Some(missing_value());
        }
        let mut path = self.path.clone();
        path.push(key);
        let (descriptions, schema) = (Arc::clone(&self.descriptions), self.schema.clone());
        Some(Value::from_object(StateDescription { descriptions, schema, path }))
    }

    fn is_true(self: &Arc<Self>) -> bool {
        !self.text().is_empty()
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

/// The state, without the descriptions in pairs of a value and its description. `state.global` is the global
/// state if the state has no key of that name (M-090).
#[derive(Debug)]
pub(super) struct StateObject {
    pub(super) value: Value,
    pub(super) global_state: Value,
}

impl Object for StateObject {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let value = self.value.get_item(key).ok().filter(|value| !value.is_undefined());
        value.or_else(|| (key.as_str() == Some("global")).then(|| self.global_state.clone()))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        enumerate_keys(&self.value)
    }

    fn is_true(self: &Arc<Self>) -> bool {
        self.value.is_true()
    }
}

/// The global state including requested writes (F-023); a missing key is [`MissingValue`].
pub(super) struct GlobalStateObject(pub(super) Weak<PromptScope>);

impl fmt::Debug for GlobalStateObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("global state")
    }
}

impl Object for GlobalStateObject {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let key = text::to_text(key).ok()?;
        Some(self.0.upgrade()?.global_variable(&key).unwrap_or_else(missing_value))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        let Some(names) = self.0.upgrade().map(|scope| scope.global_names()) else {
            return Enumerator::Empty;
        };
        Enumerator::Iter(Box::new((0..names.len()).map(move |at| names[at].clone())))
    }

    fn is_true(self: &Arc<Self>) -> bool {
        self.0.upgrade().is_some_and(|scope| scope.has_globals())
    }
}

/// Returns true for objects of this module, which nest no deeper than the context from which they come.
pub(super) fn is_own_object(value: &Value) -> bool {
    custom_text(value).is_some()
        || value.downcast_object_ref::<MessageList>().is_some()
        || value.downcast_object_ref::<LenientMap>().is_some()
        || value.downcast_object_ref::<StateObject>().is_some()
        || value.downcast_object_ref::<GlobalStateObject>().is_some()
}
