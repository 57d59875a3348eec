//! Context of a prompt: the variables of F-020 as one JSON object.

use jiff::Zoned;
use serde_json::{Map, Value};

use super::dates::{self, Locale};
use super::descriptions;
use super::marks;
use crate::role;
use tambour::error::{Error, Result};

/// Maximum nesting depth of a context.
const MAX_CONTEXT_DEPTH: usize = 128;

/// The values a prompt is rendered with. `docs/prompts.md` lists the keys.
#[derive(Clone, Debug, Default)]
pub struct PromptContext {
    /// All values from the caller. Roles of messages have their standard names, contents of messages are
    /// texts or `null`, and the internal marks of [`marks`] are replaced.
    pub(super) values: Map<String, Value>,
    /// The value of `now`.
    pub(super) now: Option<Zoned>,
    /// Locale that the language tag under the key `locale` selects.
    pub(super) locale: Locale,
    /// The value of `seed`, printed as JSON.
    pub(super) seed: Option<String>,
    /// The value of `state`, without the descriptions in pairs of a value and its description.
    pub(super) state: Value,
    /// Descriptions of the state's fields: those of `state_desc`, else those from the pairs.
    pub(super) state_descriptions: Value,
}

/// Takes the content of a message and returns it as a text, or as `null` if it is `null`. Text parts are
/// joined by blank lines. Returns `None` if the content has another type or a part is not text.
fn content_text(content: &mut Value) -> Option<Value> {
    let text = |part: &Value| match part {
        Value::String(text) => Some(text.clone()),
        Value::Object(part) if part.get("type").is_none_or(|kind| kind == "text") => {
            part.get("text")?.as_str().map(str::to_owned)
        }
        _ => None,
    };
    match content {
        Value::Null | Value::String(_) => Some(content.take()),
        Value::Array(parts) => {
            let texts: Vec<String> = parts.iter().map(text).collect::<Option<_>>()?;
            Some(texts.join("\n\n").into())
        }
        _ => None,
    }
}

impl PromptContext {
    /// Reads a context from one JSON object, in the form of a context file.
    ///
    /// # Errors
    /// Fails when the value is not an object or is nested too deeply, or when a reserved key has the wrong
    /// form; the message names the key.
    pub fn from_json(value: &Value) -> Result<PromptContext> {
        let Value::Object(values) = value else {
            return Err(Error::invalid("a context must be a JSON object"));
        };
        if is_nested_deeper(value, MAX_CONTEXT_DEPTH) {
            return Err(Error::invalid(format!(
                "a context may be nested at most {MAX_CONTEXT_DEPTH} levels deep"
            )));
        }
        PromptContext::new(values.clone())
    }

    /// Creates a context from these values.
    ///
    /// # Errors
    /// Fails when a reserved key has the wrong form; the message names the key.
    pub fn new(mut values: Map<String, Value>) -> Result<PromptContext> {
        values.values_mut().for_each(replace_marks_in);
        role::normalize_roles(&mut values)?;
        for key in role::MESSAGE_LISTS {
            let messages = values.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten();
            for (at, message) in messages.enumerate() {
                let Some(content) = message.get_mut("content") else { continue };
                let text = content_text(content).ok_or_else(|| {
                    let form = "a text, or a list of parts of `type` `text`";
                    Error::invalid(format!("`{key}[{at}].content` of a context must be {form}"))
                })?;
                *content = text;
            }
        }
        let form_error =
            |key: &str, form: &str| Error::invalid(format!("`{key}` of a context must be {form}"));
        let check_shape = |key: &str, form: &str, accepts: fn(&Value) -> bool| match values.get(key) {
            Some(value) if !value.is_null() && !accepts(value) => Err(form_error(key, form)),
            _ => Ok(()),
        };
        for key in ["user", "char"] {
            check_shape(key, "a name or an object with `name`", |value| {
                value.is_string() || value.is_object()
            })?;
        }
        for key in ["state", "global_state", "config", "instruct", "outlets", "state_desc", "state_schema"] {
            check_shape(key, "an object", Value::is_object)?;
        }
        for key in role::MESSAGE_LISTS {
            let accepts = |value: &Value| {
                value
                    .as_array()
                    .is_some_and(|items| items.iter().all(|item| item.is_object() || item.is_string()))
            };
            check_shape(key, "a list of messages", accepts)?;
        }
        check_shape("group", "a list of names or of objects with `name`", |value| {
            let has_name = |item: &Value| item.is_string() || item.get("name").is_some_and(Value::is_string);
            value.as_array().is_some_and(|items| items.iter().all(has_name))
        })?;
        check_shape("note_depth", "the number of messages after the author's note", Value::is_u64)?;
        check_shape("note_role", "`system`, `user` or `assistant`", |value| {
            value.as_str().is_some_and(|name| role::parse_role(name).is_some())
        })?;
        check_shape("locale", "a language tag such as `en` or `zh`", Value::is_string)?;
        check_shape("chat_id", "a text or a number", |value| value.is_string() || value.is_number())?;
        check_shape("seed", "a text or a number", |value| value.is_string() || value.is_number())?;
        // `Some(None)` is an invalid time. A bare date or time of day is not precise enough.
        let now = match values.get("now") {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) if text.contains(['T', 't', ' ']) => Some(dates::parse(text, None)),
            Some(_) => Some(None),
        };
        let now = match now {
            Some(None) => {
                return Err(form_error("now", "a time with offset, such as `2026-03-14T15:09:00+08:00`"));
            }
            now => now.flatten(),
        };
        let locale = values.get("locale").and_then(Value::as_str).map_or(Locale::default(), Locale::from_tag);
        let seed = values.get("seed").filter(|seed| !seed.is_null()).map(ToString::to_string);
        let state = values.get("state").cloned().unwrap_or_default();
        let (state, pair_descriptions) = match values.get("state_schema") {
            Some(schema) => descriptions::split_descriptions(state, schema),
            None => (state, Value::Null),
        };
        let state_descriptions = match values.get("state_desc") {
            Some(descriptions) if !descriptions.is_null() => descriptions.clone(),
            _ => pair_descriptions,
        };
        Ok(PromptContext { values, now, locale, seed, state, state_descriptions })
    }

    /// Returns a context that also has those of `values` whose keys this context lacks, such as the metadata
    /// of a Skein (F-028).
    ///
    /// # Errors
    /// Same as [`PromptContext::new`].
    #[doc(hidden)]
    pub fn with_defaults(&self, values: &Map<String, Value>) -> Result<PromptContext> {
        let mut all = self.values.clone();
        for (key, value) in values {
            all.entry(key.as_str()).or_insert_with(|| value.clone());
        }
        PromptContext::new(all)
    }

    /// Returns the value of a key; `None` if it is missing or `null`.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.values.get(key).filter(|value| !value.is_null())
    }
}

/// Returns true if lists and maps nest in a value more than `depth` levels deep.
fn is_nested_deeper(value: &Value, depth: usize) -> bool {
    match (value, depth.checked_sub(1)) {
        (Value::Array(_) | Value::Object(_), None) => true,
        (Value::Array(items), Some(depth)) => items.iter().any(|item| is_nested_deeper(item, depth)),
        (Value::Object(fields), Some(depth)) => fields.values().any(|field| is_nested_deeper(field, depth)),
        _ => false,
    }
}

/// Replaces the internal marks of [`marks`] in all texts.
fn replace_marks_in(value: &mut Value) {
    match value {
        Value::String(text) if marks::has_mark(text) => *text = marks::replace_marks(text),
        Value::Array(items) => items.iter_mut().for_each(replace_marks_in),
        Value::Object(fields) => fields.values_mut().for_each(replace_marks_in),
        _ => {}
    }
}
