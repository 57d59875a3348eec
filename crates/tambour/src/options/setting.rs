//! A single option under its public name.

use serde_json::Value;

use super::Options;
use crate::error::{Error, Result};

/// An option: its public name, description and setter. Options of a dialect are defined in the folder of the
/// dialect.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Public name.
    pub name: &'static str,
    /// One-line description, with the specification row in brackets if there is one.
    pub description: &'static str,
    /// Default value as written on the command line; empty if there is none.
    pub default: &'static str,
    /// Accepted values and the setter.
    pub accepts: SettingValues,
}

/// Values that an option accepts, with the setter. Every value can be given as text.
#[derive(Clone, Copy, Debug)]
pub enum SettingValues {
    /// One of these words; the setter gets its index.
    Choice(&'static [&'static str], fn(&mut Options, usize)),
    /// `true` or `false`.
    Flag(fn(&mut Options, bool)),
    /// A whole number above 0 in this unit.
    Number(&'static str, fn(&mut Options, usize)),
    /// A string that is not blank.
    Text(fn(&mut Options, String)),
    /// Any JSON value. A string that is itself JSON is parsed first.
    Json(fn(&mut Options, &Value) -> Result<()>),
}

impl Setting {
    /// Sets the option.
    ///
    /// # Errors
    /// The option does not accept the value.
    pub fn set(&self, options: &mut Options, value: &Value) -> Result<()> {
        match self.accepts {
            SettingValues::Choice(words, set) => set(options, self.parse_choice(value, words)?),
            SettingValues::Flag(set) => match value {
                Value::Bool(is_on) => set(options, *is_on),
                _ => set(options, self.parse_choice(value, &["false", "true"])? == 1),
            },
            SettingValues::Number(unit, set) => set(options, self.parse_number(value, unit)?),
            SettingValues::Text(set) => set(options, self.parse_text(value)?),
            SettingValues::Json(set) => match value.as_str().and_then(|text| serde_json::from_str(text).ok())
            {
                Some(value) => set(options, &value)?,
                None => set(options, value)?,
            },
        }
        Ok(())
    }

    /// Returns the accepted values in one line: the words of a choice, the unit of a number, or a kind of
    /// value.
    #[doc(hidden)]
    #[must_use]
    pub fn values_label(&self) -> String {
        match self.accepts {
            SettingValues::Choice(words, _) => words.join("|"),
            SettingValues::Flag(_) => "true|false".to_owned(),
            SettingValues::Number(unit, _) => unit.to_owned(),
            SettingValues::Text(_) => "text".to_owned(),
            SettingValues::Json(_) => "JSON".to_owned(),
        }
    }

    /// Returns the JSON Schema of the value.
    #[must_use]
    pub fn schema(&self) -> Value {
        let mut schema = match self.accepts {
            SettingValues::Choice(words, _) => serde_json::json!({ "type": "string", "enum": words }),
            SettingValues::Flag(_) => serde_json::json!({ "enum": [true, false, "true", "false"] }),
            SettingValues::Number(..) => serde_json::json!({ "type": ["integer", "string"], "minimum": 1 }),
            SettingValues::Text(_) => serde_json::json!({ "type": "string" }),
            SettingValues::Json(_) => serde_json::json!({}),
        };
        schema["description"] = match self.accepts {
            SettingValues::Number(unit, _) => format!("{}; in {unit}", self.description).into(),
            _ => self.description.into(),
        };
        if !self.default.is_empty() {
            schema["default"] = self.default.into();
        }
        schema
    }

    fn parse_choice(&self, value: &Value, words: &[&str]) -> Result<usize> {
        let text = value.as_str();
        text.and_then(|text| words.iter().position(|word| *word == text)).ok_or_else(|| {
            let value_text = text.map_or_else(|| value.to_string(), str::to_owned);
            Error::invalid(format!(
                "option `{}` must be one of {}, not `{value_text}`",
                self.name,
                words.join(", ")
            ))
        })
    }

    fn parse_number(&self, value: &Value, unit: &str) -> Result<usize> {
        let number = match value {
            Value::String(text) => text.parse().ok(),
            value => value.as_u64().and_then(|number| usize::try_from(number).ok()),
        };
        number.filter(|number| *number > 0).ok_or_else(|| {
            let value_text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let name = self.name;
            Error::invalid(format!(
                "option `{name}` must be a whole number of {unit} above 0, not `{value_text}`"
            ))
        })
    }

    fn parse_text(&self, value: &Value) -> Result<String> {
        match value.as_str() {
            Some(text) if !text.trim().is_empty() => Ok(text.to_owned()),
            _ => Err(Error::invalid(format!("option `{}` must be a string that is not empty", self.name))),
        }
    }
}
