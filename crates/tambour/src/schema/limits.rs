//! What a schema may cost whoever compiles it: its patterns are counted, and each is bounded in size.

use std::borrow::Cow;
use std::fmt;
use std::sync::LazyLock;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::{Value, json};

/// What a schema may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct SchemaLimits {
    /// Patterns in all, wherever they stand: values of `pattern` and keys of `patternProperties`.
    pub patterns: usize,
    /// Bytes of one pattern when it is compiled, about.
    pub pattern_bytes: usize,
}

/// Why a schema is not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unfit {
    /// JSON Pointer into the schema; empty for its top.
    pub pointer: String,
    /// What is wrong there, the place included, and what to do where it is a limit.
    pub message: String,
    /// Whether it is a schema, and over a limit.
    pub over_limit: bool,
}

impl Default for SchemaLimits {
    fn default() -> SchemaLimits {
        SchemaLimits { patterns: 64, pattern_bytes: 256 << 10 }
    }
}

impl SchemaLimits {
    /// These limits.
    #[must_use]
    pub fn new(patterns: usize, pattern_bytes: usize) -> SchemaLimits {
        SchemaLimits { patterns, pattern_bytes }
    }

    /// Compiles a schema within the limits.
    pub(super) fn compile(&self, schema: &Value) -> Result<Validator, Unfit> {
        if let Some(pointer) = Patterns::new(self.patterns).first_over(schema) {
            let SchemaLimits { patterns, .. } = self;
            let message = format!(
                "the pattern at `{pointer}` is one more than the {patterns} that a schema may have: \
                 use `enum`, `const`, `format` or lengths in the place of some"
            );
            return Err(Unfit { pointer, message, over_limit: true });
        }
        let options = PatternOptions::regex().size_limit(self.pattern_bytes);
        // The table that matching fills is bounded like the pattern; without room for it another engine matches, linear too.
        let options = options.dfa_size_limit(self.pattern_bytes);
        super::compile(schema, options).map_err(|error| self.unfit(&error))
    }

    fn unfit(&self, error: &ValidationError<'_>) -> Unfit {
        let pointer = error.instance_path().to_string();
        let place = super::place(&pointer);
        let pattern = match error.kind() {
            ValidationErrorKind::Format { format } if format == "regex" => error.instance().as_str(),
            _ => None,
        };
        let (message, over_limit) = match pattern {
            Some(pattern) if !is_pattern(pattern) => {
                (format!("not a JSON Schema: the pattern at {place} is no regular expression"), false)
            }
            Some(pattern) if looks_around(pattern) => (
                format!(
                    "the pattern at {place} has a look-around or a back reference: matching those takes time without \
                     bound, so write it without them"
                ),
                false,
            ),
            Some(_) => (
                format!(
                    "the pattern at {place} takes more than {} bytes when it is compiled: repeat less often in it, and \
                     bound the length by `maxLength` instead",
                    self.pattern_bytes
                ),
                true,
            ),
            None => (format!("not a JSON Schema: {error} at {place}"), false),
        };
        Unfit { pointer, message, over_limit }
    }
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Unfit {}

/// Whether a text has the form of a pattern; nothing is compiled for that.
fn is_pattern(text: &str) -> bool {
    static FORM: LazyLock<Option<Validator>> = LazyLock::new(|| {
        jsonschema::options().should_validate_formats(true).build(&json!({"format": "regex"})).ok()
    });
    FORM.as_ref().is_none_or(|form| form.is_valid(&Value::from(text)))
}

fn looks_around(pattern: &str) -> bool {
    let back = |at: usize| {
        let next = pattern.as_bytes().get(at + 1);
        next.is_some_and(|&c| matches!(c, b'1'..=b'9' | b'k'))
    };
    ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|sign| pattern.contains(sign))
        || pattern.match_indices('\\').any(|(at, _)| back(at))
}

/// Counts the patterns of a schema. References reach any place of it, so that all places count.
pub(super) struct Patterns<'a> {
    left: usize,
    path: Vec<Cow<'a, str>>,
}

impl<'a> Patterns<'a> {
    pub(super) fn new(most: usize) -> Patterns<'a> {
        Patterns { left: most, path: Vec::new() }
    }

    /// How many there are.
    pub(super) fn count(schema: &Value) -> usize {
        let mut all = Patterns::new(usize::MAX);
        all.walk(schema);
        usize::MAX - all.left
    }

    /// The place of the first one that is too many.
    fn first_over(mut self, schema: &'a Value) -> Option<String> {
        self.walk(schema).then(|| {
            let escaped = self.path.iter().map(|part| part.replace('~', "~0").replace('/', "~1"));
            escaped.fold(String::new(), |pointer, part| pointer + "/" + &part)
        })
    }

    /// Whether there are too many; the path leads to the one then.
    fn walk(&mut self, value: &'a Value) -> bool {
        match value {
            Value::Object(fields) => fields.iter().any(|(key, value)| {
                let keys = value.as_object().filter(|_| key == "patternProperties");
                self.path.push(key.into());
                let over = (key == "pattern" && value.is_string() && self.take())
                    || keys.is_some_and(|keys| keys.keys().any(|key| self.at(key)))
                    || self.walk(value);
                if !over {
                    self.path.pop();
                }
                over
            }),
            Value::Array(items) => items.iter().enumerate().any(|(at, item)| {
                if !(item.is_object() || item.is_array()) {
                    return false;
                }
                self.path.push(at.to_string().into());
                let over = self.walk(item);
                if !over {
                    self.path.pop();
                }
                over
            }),
            _ => false,
        }
    }

    fn at(&mut self, key: &'a str) -> bool {
        let over = self.take();
        if over {
            self.path.push(key.into());
        }
        over
    }

    fn take(&mut self) -> bool {
        match self.left.checked_sub(1) {
            Some(left) => self.left = left,
            None => return true,
        }
        false
    }
}
