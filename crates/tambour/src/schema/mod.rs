//! JSON Schema (draft 2020-12 unless a schema says otherwise): validation of values, and compact forms for
//! models.
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

/// Most characters of a message of the schema library, which may quote values of any length.
const MESSAGE: usize = 200;

/// A schema. Clones share the compiled form.
#[derive(Clone, Debug)]
pub struct Schema {
    value: Value,
    /// Compiled form; `None` if the schema is invalid.
    validator: Arc<OnceLock<Option<Validator>>>,
    size: Size,
}

/// A violation of a schema by a value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mismatch {
    /// JSON Pointer into the value.
    pub pointer: String,
    /// Description of the problem.
    pub message: String,
    /// True if the check was stopped because it would take too much time or memory.
    pub too_complex: bool,
}

/// Code for a check that was stopped, and for a schema that no value could be checked against.
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
    /// The value is not a valid schema, or refers to another document.
    pub fn new(value: Value) -> Result<Schema> {
        let validator =
            SchemaLimits::none().compile(&value).map_err(|unfit| Error::invalid(unfit.message))?;
        Ok(Schema::of(value, validator))
    }

    /// Compiles a schema from an untrusted source: patterns are limited in number and size, and a schema that
    /// would make every check too expensive is rejected.
    ///
    /// # Errors
    /// The schema is invalid, exceeds a limit, or is too complex; see [`Unfit`].
    pub fn limited(value: Value, limits: &SchemaLimits) -> std::result::Result<Schema, Unfit> {
        limits::bounded(&value)?;
        let validator = limits.compile(&value)?;
        Ok(Schema::of(value, validator))
    }

    fn of(value: Value, validator: Validator) -> Schema {
        Schema { size: Size::of(&value), value, validator: Arc::new(OnceLock::from(Some(validator))) }
    }

    /// Creates a schema that [`Schema::new`] accepted before. It is compiled on first use, which takes
    /// milliseconds. If it is invalid, no value satisfies it.
    #[must_use]
    pub fn trusted(value: Value) -> Schema {
        Schema { size: Size::of(&value), value, validator: Arc::default() }
    }

    /// Creates a schema after checking its form, which is cheap. It is compiled on first use.
    ///
    /// # Errors
    /// The value is not a schema, refers to another document, or has a pattern with look-around.
    pub fn checked(value: Value) -> Result<Schema> {
        limits::form(&value).map_err(|unfit| Error::invalid(unfit.message))?;
        Ok(Schema::trusted(value))
    }

    /// Returns the schema as JSON.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// Counts its patterns, as limited by [`SchemaLimits`].
    #[must_use]
    pub fn patterns(&self) -> usize {
        limits::Patterns::count(&self.value)
    }

    /// Returns the first `most` violations of `value`. A value whose check would take more than two million
    /// steps, some hundredths of a second, is not checked, which is reported as its only violation. If
    /// collecting all faults would take more than 16 MiB, only the first one is reported, or merely that
    /// there is one.
    #[must_use]
    pub fn check(&self, value: &Value, most: usize) -> Vec<Mismatch> {
        let mut left = u64::MAX;
        self.check_within(value, most, &mut left)
    }

    /// Like [`Schema::check`], for one of several values with a common budget. Deducts the steps from `left`.
    pub(crate) fn check_within(&self, value: &Value, most: usize, left: &mut u64) -> Vec<Mismatch> {
        let alone = |message: String, too_complex| {
            // The message repeats the code, because findings of several rules quote it.
            let message = if too_complex { format!("{TOO_COMPLEX}: {message}") } else { message };
            vec![Mismatch { pointer: String::new(), message, too_complex }]
        };
        let bound = STEPS.min(*left);
        let steps = if bound == 0 { None } else { self.size.steps(&self.value, value, bound) };
        let Some(steps) = steps else {
            // Finding out has cost as many steps.
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
        // Most values are valid, and testing that is cheaper than collecting violations.
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

    /// Returns true if `value` can be checked ([`Schema::check`]) and satisfies the schema.
    #[must_use]
    pub fn accepts(&self, value: &Value) -> bool {
        self.size.steps(&self.value, value, STEPS).is_some()
            && self.validator().is_some_and(|validator| validator.is_valid(value))
    }

    /// Returns the fields of an object as a signature: `(userInput: string, projectName?: string)`.
    #[must_use]
    pub fn signature(&self) -> String {
        shape::signature(&self.value)
    }

    /// Returns an example object, if one that satisfies the schema can be generated.
    #[must_use]
    pub fn sample(&self) -> Option<Value> {
        let sample = shape::sample(&self.value);
        (sample.is_object() && self.accepts(&sample)).then_some(sample)
    }

    fn validator(&self) -> Option<&Validator> {
        self.validator.get_or_init(|| SchemaLimits::none().compile(&self.value).ok()).as_ref()
    }
}

/// Compiles a schema. Patterns must be linear in the text, because they run on model output.
fn compile(
    schema: &Value,
    patterns: PatternOptions<Regex>,
) -> std::result::Result<Validator, ValidationError<'static>> {
    jsonschema::options().with_pattern_options(patterns).build(schema)
}

/// Describes a place in a schema.
fn place(pointer: &str) -> String {
    if pointer.is_empty() { "its top".to_owned() } else { format!("`{pointer}`") }
}

/// Returns the type of a JSON value in words, with an article.
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
