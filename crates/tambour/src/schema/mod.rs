//! JSON Schema (draft 2020-12 unless a schema says otherwise): values against a schema, and a schema as a model reads it best.
//!
//! ```
//! use serde_json::json;
//! use tambour::schema::Schema;
//!
//! let schema = Schema::new(json!({"type": "object", "properties": {"text": {"type": "string"}}}))?;
//! assert_eq!(schema.check(&json!({"text": 1}), 8)[0].pointer, "/text");
//! assert_eq!(schema.signature(), "(text?: string)");
//! # Ok::<(), tambour::Error>(())
//! ```

mod cost;
mod limits;
mod shape;

use std::sync::{Arc, OnceLock};

use jsonschema::{PatternOptions, Regex, ValidationError, Validator};
use serde_json::Value;

use crate::error::{Error, Result};
use crate::finding::clip;
use cost::Size;
pub use limits::{SchemaLimits, Unfit};

/// Most characters of a message of the schema library: values of any length may stand in it.
const MESSAGE: usize = 200;

/// A schema. Cloning shares what it is compiled to.
#[derive(Clone, Debug)]
pub struct Schema {
    value: Value,
    /// `None` if the schema is none.
    validator: Arc<OnceLock<Option<Validator>>>,
    size: Size,
}

/// A value that breaks a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mismatch {
    /// JSON Pointer into the value.
    pub pointer: String,
    /// What is wrong there.
    pub message: String,
}

impl PartialEq for Schema {
    fn eq(&self, other: &Schema) -> bool {
        self.value == other.value
    }
}

impl Eq for Schema {}

impl Schema {
    /// Compiles a schema.
    ///
    /// # Errors
    /// It is none, or refers to another document.
    pub fn new(value: Value) -> Result<Schema> {
        let validator = compile(&value, PatternOptions::regex()).map_err(|error| {
            let place = place(&error.instance_path().to_string());
            Error::invalid(format!("not a JSON Schema: {error} at {place}"))
        })?;
        Ok(Schema::of(value, validator))
    }

    /// Compiles a schema of somebody who is not trusted: its patterns are bounded in number and size.
    ///
    /// # Errors
    /// See [`Unfit`].
    pub fn limited(value: Value, limits: &SchemaLimits) -> std::result::Result<Schema, Unfit> {
        let validator = limits.compile(&value)?;
        Ok(Schema::of(value, validator))
    }

    fn of(value: Value, validator: Validator) -> Schema {
        Schema { size: Size::of(&value), value, validator: Arc::new(OnceLock::from(Some(validator))) }
    }

    /// A schema that was taken by [`Schema::new`] before: it is compiled when it is first needed, since that takes
    /// milliseconds. If it is none, no value satisfies it.
    #[must_use]
    pub fn trusted(value: Value) -> Schema {
        Schema { size: Size::of(&value), value, validator: Arc::default() }
    }

    /// A schema that keeps the form of one, which is cheap to tell; it is compiled when it is first needed.
    ///
    /// # Errors
    /// It does not.
    pub fn checked(value: Value) -> Result<Schema> {
        jsonschema::meta::validate(&value).map_err(|error| {
            let place = place(&error.instance_path().to_string());
            Error::invalid(format!("not a JSON Schema: {error} at {place}"))
        })?;
        Ok(Schema::trusted(value))
    }

    /// The schema itself.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// How many patterns it has, as [`SchemaLimits`] counts them.
    #[must_use]
    pub fn patterns(&self) -> usize {
        limits::Patterns::count(&self.value)
    }

    /// What is wrong with `value`: the first `most` places. A value that would take more than four million steps to check,
    /// about half a second, is not checked; that is what is wrong with it then.
    #[must_use]
    pub fn check(&self, value: &Value, most: usize) -> Vec<Mismatch> {
        let alone = |message: String| vec![Mismatch { pointer: String::new(), message }];
        if !self.size.allows(&self.value, value) {
            return alone(format!(
                "checking it against its schema would take more than {} steps",
                cost::STEPS
            ));
        }
        let mismatch = |error: ValidationError<'_>| Mismatch {
            pointer: error.instance_path().to_string(),
            message: clip(&error.masked().to_string(), MESSAGE).into_owned(),
        };
        match self.validator() {
            // Most values are right, and to tell that is cheaper than to look for what is wrong.
            Some(validator) if validator.is_valid(value) => Vec::new(),
            Some(validator) => validator.iter_errors(value).take(most).map(mismatch).collect(),
            None => alone("there is no usable schema".to_owned()),
        }
    }

    /// Whether `value` satisfies it, and can be checked ([`Schema::check`]).
    #[must_use]
    pub fn accepts(&self, value: &Value) -> bool {
        self.size.allows(&self.value, value)
            && self.validator().is_some_and(|validator| validator.is_valid(value))
    }

    /// The fields of an object as a signature: `(userInput: string, projectName?: string)`.
    #[must_use]
    pub fn signature(&self) -> String {
        shape::signature(&self.value)
    }

    /// An object for an example, if one that satisfies the schema can be made up.
    #[must_use]
    pub fn sample(&self) -> Option<Value> {
        let sample = shape::sample(&self.value);
        (sample.is_object() && self.accepts(&sample)).then_some(sample)
    }

    fn validator(&self) -> Option<&Validator> {
        self.validator.get_or_init(|| compile(&self.value, PatternOptions::regex()).ok()).as_ref()
    }
}

/// Patterns must stay linear in the text: they meet what a model wrote.
fn compile(
    schema: &Value,
    patterns: PatternOptions<Regex>,
) -> std::result::Result<Validator, ValidationError<'static>> {
    jsonschema::options().with_pattern_options(patterns).build(schema)
}

/// A place in a schema, in words.
fn place(pointer: &str) -> String {
    if pointer.is_empty() { "its top".to_owned() } else { format!("`{pointer}`") }
}

/// The type of a JSON value in words, with its article.
#[must_use]
pub fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
