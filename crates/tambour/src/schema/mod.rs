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

mod compile_cost;
mod cost;
mod limits;
mod references;
mod shape;

use std::sync::{Arc, OnceLock};

use jsonschema::{PatternOptions, Regex, ValidationError, Validator};
use serde_json::Value;

use crate::error::{Error, Result};
use crate::finding::clip;
use cost::{FAULT_BYTES_PER_STEP, MAX_CHECK_STEPS, MAX_REPORT_BYTES, SchemaSize};
pub use limits::{SchemaLimits, SchemaRejection};

/// Maximum length in characters of a message of the schema library, which may quote values of any length.
const MAX_MESSAGE_CHARS: usize = 200;

/// A schema. Clones share the compiled form.
#[derive(Clone, Debug)]
pub struct Schema {
    value: Value,
    /// Compiled form, empty until the schema is first used; `None` if the schema is invalid.
    validator: Arc<OnceLock<Option<Validator>>>,
    /// Size from which the cost of a check is estimated.
    size: SchemaSize,
}

/// A violation of a schema by a value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SchemaMismatch {
    /// JSON Pointer into the value.
    pub pointer: String,
    /// Description of the problem.
    pub message: String,
    /// True if the check was not made, or its faults not collected, because of the time or memory it would
    /// take.
    pub is_too_complex: bool,
}

/// Code for a check that would cost too much, and for a schema that makes every check cost too much.
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
            SchemaLimits::trusted().compile(&value).map_err(|rejection| Error::invalid(rejection.message))?;
        Ok(Schema::from_validator(value, validator))
    }

    /// Compiles a schema from an untrusted source: patterns are limited in number and size, and a schema that
    /// would make every check too expensive is rejected.
    ///
    /// # Errors
    /// The schema is invalid, exceeds a limit, or is too complex; see [`SchemaRejection`].
    pub fn with_limits(value: Value, limits: &SchemaLimits) -> std::result::Result<Schema, SchemaRejection> {
        limits::check_bounds(&value)?;
        let validator = limits.compile(&value)?;
        Ok(Schema::from_validator(value, validator))
    }

    fn from_validator(value: Value, validator: Validator) -> Schema {
        Schema {
            size: SchemaSize::measure(&value),
            value,
            validator: Arc::new(OnceLock::from(Some(validator))),
        }
    }

    /// Creates a schema that [`Schema::new`] accepted before. It is compiled on first use, which takes
    /// milliseconds. If it is invalid, no value satisfies it.
    #[must_use]
    pub fn from_trusted(value: Value) -> Schema {
        Schema { size: SchemaSize::measure(&value), value, validator: Arc::default() }
    }

    /// Creates a schema after checking its form, which is cheap. It is compiled on first use.
    ///
    /// # Errors
    /// The value is not a schema, refers to another document or to a place that does not exist, or has a
    /// pattern with look-around or a back reference.
    pub fn from_checked(value: Value) -> Result<Schema> {
        limits::check_form(&value).map_err(|rejection| Error::invalid(rejection.message))?;
        Ok(Schema::from_trusted(value))
    }

    /// Returns the schema as JSON.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// Counts the patterns of the schema, which [`SchemaLimits::patterns`] limits.
    #[must_use]
    pub fn count_patterns(&self) -> usize {
        limits::PatternCounter::count(&self.value)
    }

    /// Returns the first `max_mismatches` violations of `value`. A value whose check would take more than two
    /// million steps, some hundredths of a second, is not checked, which is reported as its only violation.
    /// If collecting all faults would take more than 16 MiB, only the first one is reported, or merely that
    /// there is one.
    #[must_use]
    pub fn check(&self, value: &Value, max_mismatches: usize) -> Vec<SchemaMismatch> {
        let mut steps_left = u64::MAX;
        self.check_within(value, max_mismatches, &mut steps_left)
    }

    /// Like [`Schema::check`], for one of several values with a common budget. Deducts the steps from
    /// `steps_left`.
    pub(crate) fn check_within(
        &self,
        value: &Value,
        max_mismatches: usize,
        steps_left: &mut u64,
    ) -> Vec<SchemaMismatch> {
        // Makes one violation of the whole value.
        let single = |message: String, is_too_complex| {
            // The message repeats the code, because findings of several rules quote it.
            let message = if is_too_complex { format!("{TOO_COMPLEX}: {message}") } else { message };
            vec![SchemaMismatch { pointer: String::new(), message, is_too_complex }]
        };
        let max_steps = MAX_CHECK_STEPS.min(*steps_left);
        let steps = if max_steps == 0 { None } else { self.size.count_steps(&self.value, value, max_steps) };
        let Some(steps) = steps else {
            // The estimate itself has taken that many steps.
            *steps_left -= max_steps;
            let message = if max_steps < MAX_CHECK_STEPS {
                "the checks of earlier values have used up the steps allowed for all checks together"
                    .to_owned()
            } else {
                format!("checking it against its schema would take more than {MAX_CHECK_STEPS} steps")
            };
            let is_too_complex = true;
            return single(message, is_too_complex);
        };
        *steps_left = steps_left.saturating_sub(steps);
        let to_mismatch = |error: ValidationError<'_>| SchemaMismatch {
            pointer: error.instance_path().to_string(),
            message: clip(&error.masked().to_string(), MAX_MESSAGE_CHARS).into_owned(),
            is_too_complex: false,
        };
        let Some(validator) = self.validator() else {
            let is_too_complex = false;
            return single("there is no usable schema".to_owned(), is_too_complex);
        };
        // Most values are valid, and testing that is cheaper than collecting violations.
        if validator.is_valid(value) {
            return Vec::new();
        }
        match self.size.estimate_cost(&self.value, value, MAX_CHECK_STEPS) {
            Some(cost) if cost.all_fault_bytes <= MAX_REPORT_BYTES => {
                *steps_left = steps_left.saturating_sub(cost.all_fault_bytes / FAULT_BYTES_PER_STEP);
                validator.iter_errors(value).take(max_mismatches).map(to_mismatch).collect()
            }
            Some(cost) if cost.first_fault_bytes <= MAX_REPORT_BYTES => {
                *steps_left = steps_left.saturating_sub(cost.first_fault_bytes / FAULT_BYTES_PER_STEP);
                validator.validate(value).err().map(to_mismatch).into_iter().take(max_mismatches).collect()
            }
            _ => {
                let message = format!(
                    "it breaks its schema; reporting where would take more than {MAX_REPORT_BYTES} bytes"
                );
                let is_too_complex = true;
                single(message, is_too_complex)
            }
        }
    }

    /// Returns true if `value` can be checked ([`Schema::check`]) and satisfies the schema.
    #[must_use]
    pub fn accepts(&self, value: &Value) -> bool {
        self.size.count_steps(&self.value, value, MAX_CHECK_STEPS).is_some()
            && self.validator().is_some_and(|validator| validator.is_valid(value))
    }

    /// Returns the fields of an object as a signature: `(userInput: string, projectName?: string)`.
    #[must_use]
    pub fn signature(&self) -> String {
        shape::format_signature(&self.value)
    }

    /// Returns an example object that satisfies the schema; `None` if none could be generated.
    #[must_use]
    pub fn sample(&self) -> Option<Value> {
        let sample = shape::generate_sample(&self.value);
        (sample.is_object() && self.accepts(&sample)).then_some(sample)
    }

    fn validator(&self) -> Option<&Validator> {
        self.validator.get_or_init(|| SchemaLimits::trusted().compile(&self.value).ok()).as_ref()
    }
}

/// Compiles a schema. Patterns must be linear in the text, because they run on model output.
fn compile_with(
    schema: &Value,
    patterns: PatternOptions<Regex>,
) -> std::result::Result<Validator, ValidationError<'static>> {
    jsonschema::options().with_pattern_options(patterns).build(schema)
}

/// Describes the place of a JSON Pointer in a schema.
fn describe_place(pointer: &str) -> String {
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
