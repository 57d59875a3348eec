//! Answers of calls: JSON text, or an error as JSON text.

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tambour::encode::jsonl;
use tambour::error::{Error, Result};
use tambour::event::Event;

/// JSON text of a result; the error is the JSON text of an object with `message`, `code`, and where there is a
/// place, `line` and `column` from 1.
pub type Answer = std::result::Result<String, String>;

/// Code of the error for a panic.
const INTERNAL: &str = "internal";

/// Runs a call; a panic becomes an error with the code `internal`.
///
/// # Errors
/// The call fails or panics.
pub(crate) fn guard(call: impl FnOnce() -> Result<String>) -> Answer {
    catch(call).unwrap_or_else(|| Err(describe_panic()))
}

/// Runs a call; `None` after a panic.
pub(crate) fn catch(call: impl FnOnce() -> Result<String>) -> Option<Answer> {
    let answer = catch_unwind(AssertUnwindSafe(call)).ok()?;
    Some(answer.map_err(|error| describe_error(&error).to_string()))
}

/// Error for a panic.
pub(crate) fn describe_panic() -> String {
    json!({ "message": "the library has failed; please report the input", "code": INTERNAL }).to_string()
}

/// Describes an error of the library.
pub(crate) fn describe_error(error: &Error) -> Value {
    let mut value = json!({ "message": error.to_string(), "code": error.code() });
    if let Some(place) = error.location() {
        value["line"] = place.line.into();
        value["column"] = place.column.into();
    }
    value
}

/// Reads the arguments of a call.
pub(crate) fn read_arguments<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T> {
    // A place in the text of the engine would tell the caller nothing.
    serde_json::from_str(text).map_err(|error| {
        let message = error.to_string();
        let end = message.rfind(" at line ").unwrap_or(message.len());
        Error::invalid(format!("the settings are not valid: {}", &message[..end]))
    })
}

/// Reads the text of the caller, in which invalid bytes become U+FFFD.
pub(crate) fn read_text(input: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(input)
}

/// Writes a result as JSON.
pub(crate) fn write(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|error| Error::invalid(error.to_string()))
}

/// Writes events as a JSON array; an empty text stands for none.
pub(crate) fn write_events(events: &[Event<'_>]) -> Result<String> {
    let mut list = Vec::new();
    for event in events {
        list.push(if list.is_empty() { b'[' } else { b',' });
        jsonl::write_line(event, &mut list);
        list.pop();
    }
    if !list.is_empty() {
        list.push(b']');
    }
    String::from_utf8(list).map_err(|error| Error::invalid(error.to_string()))
}
