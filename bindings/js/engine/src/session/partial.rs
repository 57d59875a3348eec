//! Steps by which the JSON value of a reply grows.

use serde::Deserialize;
use serde_json::{Map, Value};
use tambour::Profile;
use tambour::error::Result;
use tambour_bindings::options::build_options;
use tambour_bindings::partial::{PartialReader, ValueStep};

use super::{Chunk, unknown_method};
use crate::answer::{read_arguments, write};

/// Reader of a value that grows.
pub(super) struct PartialSession(PartialReader);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OpenArguments {
    options: Map<String, Value>,
}

impl PartialSession {
    /// Creates a reader; the limits of the options are its limits.
    pub(super) fn open(arguments: &str) -> Result<PartialSession> {
        let arguments: OpenArguments = read_arguments(arguments)?;
        let options = build_options(&arguments.options, Profile::Lenient)?;
        Ok(PartialSession(PartialReader::new(&options.limits)))
    }

    pub(super) fn push(&mut self, chunk: Chunk<'_>) -> Result<String> {
        let bytes = match chunk {
            Chunk::Text(text) => text.as_bytes(),
            Chunk::Bytes(bytes) => bytes,
        };
        write_steps(self.0.push(bytes))
    }

    pub(super) fn call(&mut self, method: &str) -> Result<String> {
        match method {
            "finish" => write_steps(self.0.finish()),
            _ => Err(unknown_method(method)),
        }
    }
}

/// Writes steps as one JSON array: each a number, followed by its value if it is 4 (key), 6 (piece of a string)
/// or 8 (number, flag or null).
fn write_steps(steps: Vec<ValueStep>) -> Result<String> {
    if steps.is_empty() {
        return Ok(String::new());
    }
    let mut list: Vec<Value> = Vec::with_capacity(2 * steps.len());
    for step in steps {
        let (code, value) = match step {
            ValueStep::Start => (0, None),
            ValueStep::ObjectStart => (1, None),
            ValueStep::ArrayStart => (2, None),
            ValueStep::End => (3, None),
            ValueStep::Key(key) => (4, Some(Value::String(key))),
            ValueStep::StringStart => (5, None),
            ValueStep::StringDelta(text) => (6, Some(Value::String(text))),
            ValueStep::StringEnd => (7, None),
            ValueStep::Number(number) => (8, Some(Value::Number(number))),
            ValueStep::Bool(flag) => (8, Some(Value::Bool(flag))),
            ValueStep::Null => (8, Some(Value::Null)),
            ValueStep::Complete => (9, None),
        };
        list.push(code.into());
        list.extend(value);
    }
    write(&list)
}
