//! Limits on the cost of compiling and using a schema, and the checks that reject a schema beyond them.

use std::borrow::Cow;
use std::fmt;
use std::sync::LazyLock;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::{Map, Value, json};

use super::compile_cost::{CompileCost, MAX_COMPILED};
use super::cost::{MAX_CHECK_STEPS, SchemaSize};
use super::references::{SchemaReferences, escape_key, visit_schemas};

/// Limits on the patterns of a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct SchemaLimits {
    /// Maximum number of patterns anywhere in the schema: values of `pattern` and keys of
    /// `patternProperties`.
    pub patterns: usize,
    /// Approximate size limit of one compiled pattern, in bytes.
    pub pattern_bytes: usize,
}

/// Reason why a schema is rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SchemaRejection {
    /// JSON Pointer into the schema; empty for its root.
    pub pointer: String,
    /// Description of the problem with its place and, for a limit, a remedy.
    pub message: String,
    /// One of `invalid_schema`, `schema_limit` and `schema_too_complex`.
    pub code: &'static str,
}

/// Code for a value that is not a usable schema.
pub(super) const INVALID_SCHEMA: &str = "invalid_schema";
/// Code for a valid schema that exceeds a limit.
const SCHEMA_LIMIT: &str = "schema_limit";

/// Maximum nesting depth of schemas, through references too; compiling takes stack space for each level.
const MAX_LEVELS: usize = 1024;

impl Default for SchemaLimits {
    fn default() -> SchemaLimits {
        SchemaLimits { patterns: 64, pattern_bytes: 256 << 10 }
    }
}

impl SchemaLimits {
    /// Creates limits.
    #[must_use]
    pub fn new(patterns: usize, pattern_bytes: usize) -> SchemaLimits {
        SchemaLimits { patterns, pattern_bytes }
    }

    /// Returns limits for a schema from a trusted source.
    pub(super) fn trusted() -> SchemaLimits {
        // The size is the default limit of the regex engine.
        SchemaLimits { patterns: usize::MAX, pattern_bytes: 10 << 20 }
    }

    /// Compiles a schema within the limits.
    pub(super) fn compile(&self, schema: &Value) -> Result<Validator, SchemaRejection> {
        if let Some(pointer) = PatternCounter::new(self.patterns).first_over_limit(schema) {
            let SchemaLimits { patterns, .. } = self;
            let message = format!(
                "the pattern at `{pointer}` is one more than the {patterns} that a schema may have: \
                 replace some patterns by `enum`, `const`, `format` or lengths"
            );
            return Err(SchemaRejection { pointer, message, code: SCHEMA_LIMIT });
        }
        let options = PatternOptions::regex().size_limit(self.pattern_bytes);
        // The engine caches states up to the same limit (its lazy DFA). If they do not fit, it uses a slower
        // algorithm, which is linear too.
        let options = options.dfa_size_limit(self.pattern_bytes);
        super::compile_with(schema, options).map_err(|error| self.rejection(schema, &error))
    }

    /// Explains an error of the schema library.
    fn rejection(&self, schema: &Value, error: &ValidationError<'_>) -> SchemaRejection {
        let only_certain = false;
        if let ValidationErrorKind::Referencing(_) = error.kind()
            && let Some(rejection) = SchemaReferences::collect(schema).find_invalid(only_certain)
        {
            return rejection;
        }
        let pointer = error.instance_path().to_string();
        let place = super::describe_place(&pointer);
        let pattern = match error.kind() {
            ValidationErrorKind::Format { format } if format == "regex" => error.instance().as_str(),
            _ => None,
        };
        let (message, code) = match pattern {
            Some(pattern) if !is_pattern(pattern) => (
                format!("not a JSON Schema: the pattern at {place} is not a regular expression"),
                INVALID_SCHEMA,
            ),
            Some(pattern) if has_look_around(pattern) => (look_around_message(&place), INVALID_SCHEMA),
            Some(_) => (
                format!(
                    "the pattern at {place} takes more than {} bytes when it is compiled: use fewer \
                     repetitions, and bound the length by `maxLength` instead",
                    self.pattern_bytes
                ),
                SCHEMA_LIMIT,
            ),
            None => (format!("not a JSON Schema: {error} at {place}"), INVALID_SCHEMA),
        };
        SchemaRejection { pointer, message, code }
    }
}

impl fmt::Display for SchemaRejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for SchemaRejection {}

/// Checks that a value is a well-formed schema, without compiling it.
pub(super) fn check_form(schema: &Value) -> Result<(), SchemaRejection> {
    jsonschema::meta::validate(schema).map_err(|error| {
        let pointer = error.instance_path().to_string();
        let message = format!("not a JSON Schema: {error} at {}", super::describe_place(&pointer));
        SchemaRejection { pointer, message, code: INVALID_SCHEMA }
    })?;
    if let Some(pointer) = find_pattern(schema, has_look_around) {
        let message = look_around_message(&super::describe_place(&pointer));
        return Err(SchemaRejection { pointer, message, code: INVALID_SCHEMA });
    }
    let only_certain = true;
    SchemaReferences::collect(schema).find_invalid(only_certain).map_or(Ok(()), Err)
}

/// Checks that a schema can be compiled and used in bounded time and stack space.
pub(super) fn check_bounds(schema: &Value) -> Result<(), SchemaRejection> {
    let reject = |pointer: String, reason: String| {
        Err(SchemaRejection { pointer, message: reason, code: super::TOO_COMPLEX })
    };
    let references = SchemaReferences::collect(schema);
    let only_certain = true;
    if let Some(rejection) = references.find_invalid(only_certain) {
        return Err(rejection);
    }
    if references.count_levels() > MAX_LEVELS {
        let reason = format!(
            "the schema has more than {MAX_LEVELS} levels when references are followed: put \
             repeated parts into fewer `$defs`"
        );
        return reject(String::new(), reason);
    }
    if let Some(pointer) = CompileCost::new(&references).first_over_limit(schema) {
        let reason = format!(
            "compiling the schema at {} takes more than {MAX_COMPILED} schemas, because each path through \
             its references and alternatives is compiled separately to find what `unevaluatedProperties` or \
             `unevaluatedItems` applies to: use `additionalProperties` or `items`, or name each alternative \
             once",
            super::describe_place(&pointer)
        );
        return reject(pointer, reason);
    }
    match SchemaSize::measure(schema).find_endless(schema) {
        None => Ok(()),
        Some(pointer) => {
            let reason = format!(
                "checking any value against the schema at {} would take more than {MAX_CHECK_STEPS} steps, \
                 or never end: its references multiply (`anyOf` and the like with references to the same \
                 kind), or lead back to it; name each alternative once",
                super::describe_place(&pointer)
            );
            reject(pointer, reason)
        }
    }
}

fn look_around_message(place: &str) -> String {
    format!(
        "the pattern at {place} has a look-around or a back reference: matching those takes time without bound, so write it \
         without them"
    )
}

/// Returns true if a text is a regular expression, without compiling it.
fn is_pattern(text: &str) -> bool {
    static REGEX_SCHEMA: LazyLock<Option<Validator>> = LazyLock::new(|| {
        jsonschema::options().should_validate_formats(true).build(&json!({"format": "regex"})).ok()
    });
    REGEX_SCHEMA.as_ref().is_none_or(|validator| validator.is_valid(&Value::from(text)))
}

/// Returns true if a pattern has a look-around or a back reference.
fn has_look_around(pattern: &str) -> bool {
    let mut rest = pattern;
    while let Some(at) = rest.find(['\\', '(']) {
        let after = &rest[at + 1..];
        let is_escape = rest[at..].starts_with('\\');
        let is_found = match is_escape {
            true => after.starts_with(|c: char| matches!(c, '1'..='9' | 'k')),
            false => ["?=", "?!", "?<=", "?<!"].iter().any(|start| after.starts_with(start)),
        };
        if is_found {
            return true;
        }
        // An escaped character begins nothing.
        let mut chars = after.chars();
        if is_escape {
            chars.next();
        }
        rest = chars.as_str();
    }
    false
}

/// Returns the pointer of the first pattern that satisfies `is_match`.
fn find_pattern(schema: &Value, is_match: fn(&str) -> bool) -> Option<String> {
    let mut found = None;
    visit_schemas(schema, &mut |pointer, fields| {
        let pattern = fields.get("pattern").and_then(Value::as_str);
        let keys = fields.get("patternProperties").and_then(Value::as_object);
        if pattern.is_some_and(is_match) {
            found = Some(format!("{pointer}/pattern"));
        } else if let Some(key) = keys.into_iter().flat_map(Map::keys).find(|key| is_match(key)) {
            found = Some(format!("{pointer}/patternProperties/{}", escape_key(key)));
        }
        found.is_none()
    });
    found
}

/// Counter of the patterns of a schema. References can reach any place, so all places count.
pub(super) struct PatternCounter<'a> {
    patterns_left: usize,
    /// Keys and indexes from the root to the current place.
    path: Vec<Cow<'a, str>>,
}

impl<'a> PatternCounter<'a> {
    pub(super) fn new(limit: usize) -> PatternCounter<'a> {
        PatternCounter { patterns_left: limit, path: Vec::new() }
    }

    /// Counts all patterns.
    pub(super) fn count(schema: &Value) -> usize {
        let mut counter = PatternCounter::new(usize::MAX);
        counter.walk(schema);
        usize::MAX - counter.patterns_left
    }

    /// Returns the pointer of the first pattern beyond the limit.
    fn first_over_limit(mut self, schema: &'a Value) -> Option<String> {
        self.walk(schema).then(|| self.pointer())
    }

    fn pointer(&self) -> String {
        let escaped_parts = self.path.iter().map(|part| part.replace('~', "~0").replace('/', "~1"));
        escaped_parts.fold(String::new(), |pointer, part| pointer + "/" + &part)
    }

    /// Returns true if there are too many patterns; `path` then leads to the first one beyond the limit.
    fn walk(&mut self, value: &'a Value) -> bool {
        match value {
            Value::Object(fields) => fields.iter().any(|(key, value)| {
                let keys = value.as_object().filter(|_| key == "patternProperties");
                self.path.push(key.into());
                let is_over = (key == "pattern" && value.is_string() && self.count_pattern())
                    || keys.is_some_and(|keys| keys.keys().any(|key| self.count_key(key)))
                    || self.walk(value);
                if !is_over {
                    self.path.pop();
                }
                is_over
            }),
            Value::Array(items) => items.iter().enumerate().any(|(at, item)| {
                if !(item.is_object() || item.is_array()) {
                    return false;
                }
                self.path.push(at.to_string().into());
                let is_over = self.walk(item);
                if !is_over {
                    self.path.pop();
                }
                is_over
            }),
            _ => false,
        }
    }

    /// Counts a key that is a pattern; returns true, with the key added to `path`, if it is beyond the limit.
    fn count_key(&mut self, key: &'a str) -> bool {
        let is_over = self.count_pattern();
        if is_over {
            self.path.push(key.into());
        }
        is_over
    }

    /// Counts one pattern; returns true if it is beyond the limit.
    fn count_pattern(&mut self) -> bool {
        match self.patterns_left.checked_sub(1) {
            Some(patterns_left) => self.patterns_left = patterns_left,
            None => return true,
        }
        false
    }
}
