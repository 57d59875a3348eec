//! Typed access to fields of a JSON object, with full names in errors: `data.character_book.entries[3].keys`.

use serde_json::{Map, Value};

use tambour::error::{Error, Result};

use super::ImportFile;

/// Warnings of an import, up to a limit.
#[derive(Debug, Default)]
pub(super) struct ImportWarnings {
    pub(super) list: Vec<String>,
    /// Number of warnings beyond the limit.
    pub(super) dropped_count: usize,
}

/// Fields of an object in a file. A `null` field counts as absent. Methods that read a field return an error
/// if it has a type they do not accept.
#[derive(Clone, Copy)]
pub(super) struct CardFields<'a> {
    pub(super) file: &'a ImportFile<'a>,
    pub(super) map: &'a Map<String, Value>,
    /// Full name of the object in the file; empty for the root.
    path: &'a str,
}

/// Describes the type of a value for messages.
pub(super) fn describe_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

impl<'a> CardFields<'a> {
    pub(super) fn new(
        file: &'a ImportFile<'a>,
        map: &'a Map<String, Value>,
        path: &'a str,
    ) -> CardFields<'a> {
        CardFields { file, map, path }
    }

    /// Returns the full name of a field for messages.
    pub(super) fn full_name(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// Returns the error for a field of the wrong type.
    pub(super) fn type_error(&self, key: &str, expected: &str, value: &Value) -> Error {
        self.file.refuse(&format!(
            "`{}` should be {expected}, but is {}",
            self.full_name(key),
            describe_type(value)
        ))
    }

    /// Warns about a field; `problem` follows its full name in the message.
    pub(super) fn warn(&self, key: &str, problem: &str) {
        self.file.warn(format!("`{}` {problem}", self.full_name(key)));
    }

    /// Returns a field unless it is absent or `null`.
    pub(super) fn get(&self, key: &str) -> Option<&'a Value> {
        self.map.get(key).filter(|value| !value.is_null())
    }

    /// Returns the first of `keys` that is present.
    pub(super) fn first_present(&self, keys: &[&'static str]) -> Option<&'static str> {
        keys.iter().copied().find(|key| self.get(key).is_some())
    }

    /// Returns a text; empty if absent.
    pub(super) fn text(&self, key: &str) -> Result<String> {
        match self.get(key) {
            None => Ok(String::new()),
            Some(Value::String(text)) => Ok(text.clone()),
            Some(other) => Err(self.type_error(key, "text", other)),
        }
    }

    /// Returns a text that may be written as a number, such as a version.
    pub(super) fn label(&self, key: &str) -> Result<String> {
        match self.get(key) {
            Some(Value::Number(number)) => {
                self.warn(key, "is a number and was taken as text");
                Ok(number.to_string())
            }
            _ => self.text(key),
        }
    }

    /// Returns a list of texts. Numbers become texts, and a single text that is not empty counts as a list of
    /// one; empty items are kept.
    pub(super) fn texts(&self, key: &str) -> Result<Vec<String>> {
        match self.get(key) {
            None => Ok(Vec::new()),
            Some(Value::Array(items)) => items
                .iter()
                .enumerate()
                .map(|(index, item)| match item {
                    Value::String(text) => Ok(text.clone()),
                    Value::Number(number) => Ok(number.to_string()),
                    other => Err(self.type_error(&format!("{key}[{index}]"), "text", other)),
                })
                .collect(),
            Some(Value::String(text)) => {
                self.warn(key, "is text and was taken as a list of one");
                Ok(if text.is_empty() { Vec::new() } else { vec![text.clone()] })
            }
            Some(other) => Err(self.type_error(key, "a list of texts", other)),
        }
    }

    /// Returns texts from a list or a comma-separated text.
    pub(super) fn text_list(&self, key: &str) -> Result<Vec<String>> {
        match self.get(key) {
            Some(Value::String(text)) => Ok(split_commas(text)),
            _ => self.texts(key),
        }
    }

    /// Returns keys of an entry: a list of texts, or a comma-separated text with a warning.
    pub(super) fn keys(&self, key: &str) -> Result<Vec<String>> {
        match self.get(key) {
            Some(Value::String(text)) => {
                let keys = split_keys(text);
                if !keys.is_empty() {
                    self.warn(
                        key,
                        &format!("is one text and was taken as a list of {}, divided at commas", keys.len()),
                    );
                }
                Ok(keys)
            }
            _ => self.texts(key),
        }
    }

    /// Returns a number; a numeric text is accepted with a warning, and an empty one counts as absent.
    pub(super) fn number(&self, key: &str) -> Result<Option<f64>> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Number(number)) => Ok(number.as_f64()),
            Some(Value::String(text)) if text.trim().is_empty() => Ok(None),
            Some(Value::String(text)) => match text.trim().parse::<f64>() {
                Ok(number) if number.is_finite() => {
                    self.warn(key, "is text and was taken as a number");
                    Ok(Some(number))
                }
                _ => Err(self
                    .file
                    .refuse(&format!("`{}` should be a number, but is `{text}`", self.full_name(key)))),
            },
            Some(other) => Err(self.type_error(key, "a number", other)),
        }
    }

    /// Returns a whole number from 0 to [`u32::MAX`]; other numbers are rounded and clamped with a warning.
    pub(super) fn count(&self, key: &str) -> Result<Option<u32>> {
        let number = self.number(key)?;
        Ok(number.map(|number| {
            let rounded = number.round().clamp(0.0, f64::from(u32::MAX));
            if rounded != number {
                self.warn(key, &format!("is {number} and was taken as {rounded}"));
            }
            rounded as u32
        }))
    }

    /// Returns a whole number; fractions are rounded.
    pub(super) fn integer(&self, key: &str) -> Result<Option<i64>> {
        Ok(self.number(key)?.map(|number| number.round() as i64))
    }

    /// Returns a boolean; a number counts as true unless it is 0.
    pub(super) fn flag(&self, key: &str) -> Result<Option<bool>> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(Value::Number(number)) => Ok(Some(number.as_f64() != Some(0.0))),
            Some(other) => Err(self.type_error(key, "true or false", other)),
        }
    }

    /// Returns an object; an empty list counts as absent.
    pub(super) fn object(&self, key: &str) -> Result<Option<&'a Map<String, Value>>> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Object(map)) => Ok(Some(map)),
            // Programs without maps write an empty list.
            Some(Value::Array(items)) if items.is_empty() => Ok(None),
            Some(other) => Err(self.type_error(key, "an object", other)),
        }
    }

    /// Returns a list; empty if absent.
    pub(super) fn list(&self, key: &str) -> Result<&'a [Value]> {
        match self.get(key) {
            None => Ok(&[]),
            Some(Value::Array(items)) => Ok(items),
            Some(other) => Err(self.type_error(key, "a list", other)),
        }
    }
}

/// Splits keys like [`split_commas`], but not inside regular expressions (`/…/`).
pub(super) fn split_keys(text: &str) -> Vec<String> {
    let (mut keys, mut start, mut is_in_pattern, mut is_escaped) = (Vec::new(), 0, false, false);
    let mut add_key = |key: &str| {
        if !key.trim().is_empty() {
            keys.push(key.trim().to_owned());
        }
    };
    for (at, c) in text.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '/' if is_in_pattern => is_in_pattern = false,
            // An unclosed regular expression is text.
            '/' if text[start..at].trim().is_empty() => is_in_pattern = text[at + 1..].contains('/'),
            ',' | '，' if !is_in_pattern => {
                add_key(&text[start..at]);
                start = at + c.len_utf8();
            }
            _ => {}
        }
    }
    add_key(&text[start..]);
    keys
}

/// Splits a text at commas, also full-width ones, trims the parts and drops empty ones.
pub(super) fn split_commas(text: &str) -> Vec<String> {
    text.split([',', '，']).map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
}
