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

mod compiling;
mod cost;
mod limits;
mod references;
mod shape;

use std::sync::{Arc, OnceLock};

use jsonschema::{PatternOptions, Regex, ValidationError, Validator};
use serde_json::Value;

use crate::error::{Error, Result};
use crate::finding::clip;
use cost::{AGAIN, REPORT, STEPS, Size};
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
    /// Whether the check was cut, since it would take too much time or memory.
    pub too_complex: bool,
}

/// The code of what is told of a check that was cut, and of a schema that no value could be checked against.
pub const TOO_COMPLEX: &str = "schema_too_complex";

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
        let validator =
            SchemaLimits::none().compile(&value).map_err(|unfit| Error::invalid(unfit.message))?;
        Ok(Schema::of(value, validator))
    }

    /// Compiles a schema of somebody who is not trusted: its patterns are bounded in number and size, and one that no value could be checked
    /// against in time is refused.
    ///
    /// # Errors
    /// See [`Unfit`].
    pub fn limited(value: Value, limits: &SchemaLimits) -> std::result::Result<Schema, Unfit> {
        limits::bounded(&value)?;
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
    /// It does not, refers to another document, or has a pattern that looks around.
    pub fn checked(value: Value) -> Result<Schema> {
        limits::form(&value).map_err(|unfit| Error::invalid(unfit.message))?;
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

    /// What is wrong with `value`: the first `most` places. A value that would take more than two million steps to check, some hundredths of a
    /// second, is not checked; that is what is wrong with it then. Where collecting all faults would take more than 16 MiB, the first is
    /// told alone, or that there is one.
    #[must_use]
    pub fn check(&self, value: &Value, most: usize) -> Vec<Mismatch> {
        let mut left = u64::MAX;
        self.check_within(value, most, &mut left)
    }

    /// The same for one of several values, which have so many steps together. Takes off what this one takes.
    pub(crate) fn check_within(&self, value: &Value, most: usize, left: &mut u64) -> Vec<Mismatch> {
        let alone = |message: String, too_complex| {
            // What is told of it stands in findings of several rules, all of which say this.
            let message = if too_complex { format!("{TOO_COMPLEX}: {message}") } else { message };
            vec![Mismatch { pointer: String::new(), message, too_complex }]
        };
        let bound = STEPS.min(*left);
        let steps = if bound == 0 { None } else { self.size.steps(&self.value, value, bound) };
        let Some(steps) = steps else {
            // To find that out took as many.
            *left -= bound;
            let message = if bound < STEPS {
                "the checks of the values before it have taken the steps that all may take together"
                    .to_owned()
            } else {
                format!("checking it against its schema would take more than {STEPS} steps")
            };
            return alone(message, true);
        };
        *left = left.saturating_sub(steps);
        let mismatch = |error: ValidationError<'_>| Mismatch {
            pointer: error.instance_path().to_string(),
            message: clip(&error.masked().to_string(), MESSAGE).into_owned(),
            too_complex: false,
        };
        let Some(validator) = self.validator() else {
            return alone("there is no usable schema".to_owned(), false);
        };
        // Most values are right, and to tell that is cheaper than to look for what is wrong.
        if validator.is_valid(value) {
            return Vec::new();
        }
        match self.size.cost(&self.value, value, STEPS) {
            Some(cost) if cost.all <= REPORT => {
                *left = left.saturating_sub(cost.all / AGAIN);
                validator.iter_errors(value).take(most).map(mismatch).collect()
            }
            Some(cost) if cost.first <= REPORT => {
                *left = left.saturating_sub(cost.first / AGAIN);
                validator.validate(value).err().map(mismatch).into_iter().take(most).collect()
            }
            _ => {
                let message =
                    format!("it breaks its schema; to say where would take more than {REPORT} bytes");
                alone(message, true)
            }
        }
    }

    /// Whether `value` satisfies it, and can be checked ([`Schema::check`]).
    #[must_use]
    pub fn accepts(&self, value: &Value) -> bool {
        self.size.steps(&self.value, value, STEPS).is_some()
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
        self.validator.get_or_init(|| SchemaLimits::none().compile(&self.value).ok()).as_ref()
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
