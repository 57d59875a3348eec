//! Functions that migrated macros call to read or set a key of a variable that holds a list, an object or the
//! JSON text of one.

use minijinja::Error;
use minijinja::value::Value;
use serde_json::Value as Json;

use super::budget::{self, charge_bytes};
use super::functions::FunctionCall;
use super::tavern::{
    MacroResult, empty_value, normalize, parse_js_number, read_global, read_variable, store_variable,
};
use crate::print;

/// Sets a value at a key of a list or object variable, creating the variable if there is none.
pub(super) fn call_set_key(call: &mut FunctionCall<'_, '_, '_>) -> MacroResult {
    let (name, key, text) = (call.text_argument(0)?, call.text_argument(1)?, call.text_argument(2)?);
    match insert_at_key(call, read_variable(call, &name)?, &key, text)? {
        Some(value) => store_variable(call, &name, value),
        None => warn_without_keys(call, &name),
    }
    Ok(empty_value())
}

/// Returns the value at a key of a variable.
pub(super) fn call_get_key(call: &mut FunctionCall<'_, '_, '_>) -> MacroResult {
    let (name, key) = (call.text_argument(0)?, call.text_argument(1)?);
    let value = read_variable(call, &name)?;
    get_at_key(call, value, &key)
}

/// Sets a value at a key of a global variable, creating the variable if there is none.
pub(super) fn call_set_global_key(call: &mut FunctionCall<'_, '_, '_>) -> MacroResult {
    let (name, key, text) = (call.text_argument(0)?, call.text_argument(1)?, call.text_argument(2)?);
    match insert_at_key(call, read_global(call, &name)?, &key, text)? {
        Some(value) => call.scope.set_global(&name, Some(value))?,
        None => warn_without_keys(call, &name),
    }
    Ok(empty_value())
}

/// Returns the value at a key of a global variable.
pub(super) fn call_get_global_key(call: &mut FunctionCall<'_, '_, '_>) -> MacroResult {
    let (name, key) = (call.text_argument(0)?, call.text_argument(1)?);
    let value = read_global(call, &name)?;
    get_at_key(call, value, &key)
}

/// Warns that a variable has no keys, because it is neither a list nor an object.
fn warn_without_keys(call: &FunctionCall<'_, '_, '_>, name: &str) {
    let name = tambour::finding::clip(name, 60);
    call.warn(
        "variable_without_keys",
        format!("`{name}` is neither a list nor an object, and stays as it is"),
    );
}

/// Returns the value at a key as SillyTavern finds it: an item of a list, a field of an object or a character
/// of a JSON string; empty if there is none. `null` and text that is not JSON are returned as they are.
fn get_at_key(call: &FunctionCall<'_, '_, '_>, value: Option<Json>, key: &str) -> Result<Value, Error> {
    let Some(value) = value else { return Ok(empty_value()) };
    let parsed = match &value {
        Json::String(text) => {
            // JSON text has at most one value for every two bytes.
            budget::charge_copy(call.state, (text.len() as u64 / 2, (text.len() as u64).saturating_mul(4)))?;
            serde_json::from_str::<Json>(text).ok()
        }
        value => {
            budget::charge_json(call.state, value)?;
            Some(value.clone())
        }
    };
    let found = match parsed {
        Some(Json::Array(items)) => parse_index(key).and_then(|at| items.get(at).cloned()),
        Some(Json::Object(fields)) => fields.get(&*object_key(key)).cloned(),
        // `null` has no keys, and text that is not JSON is returned as it is.
        None | Some(Json::Null) => return Ok(normalize(&value)),
        Some(Json::String(text)) => {
            parse_index(key).and_then(|at| text.chars().nth(at)).map(|c| c.to_string().into())
        }
        Some(Json::Number(_) | Json::Bool(_)) => None,
    };
    Ok(match found {
        None => empty_value(),
        // A boolean prints as 1 or 0.
        Some(Json::Bool(flag)) => Value::from(u8::from(flag)),
        Some(found) => normalize(&found),
    })
}

/// Parses a numeric key as a list index: a whole number from 0, below a limit that no real list reaches.
fn parse_index(key: &str) -> Option<usize> {
    let number = parse_js_number(key)?;
    (number >= 0.0 && number.fract() == 0.0 && number < 1e9).then_some(number as usize)
}

/// Returns an object key; numbers are spelled as in JavaScript.
fn object_key(key: &str) -> std::borrow::Cow<'_, str> {
    parse_js_number(key).map_or(key.into(), |number| print::format_float(number).into())
}

/// Returns the list or object with `text` at a key; `None` if the value is neither. A missing or null value
/// becomes a list for a numeric key, else an object. The result is JSON text if the value was JSON text,
/// missing or null.
fn insert_at_key(
    call: &FunctionCall<'_, '_, '_>,
    value: Option<Json>,
    key: &str,
    text: String,
) -> Result<Option<Json>, Error> {
    // True if the result is JSON text.
    let mut is_text = false;
    let parsed = match value {
        Some(Json::String(stored_text)) => {
            budget::charge_copy(
                call.state,
                (stored_text.len() as u64, (stored_text.len() as u64).saturating_mul(4)),
            )?;
            is_text = true;
            // Text that is not JSON is refused below, as any scalar is.
            serde_json::from_str::<Json>(&stored_text).unwrap_or(Json::Bool(false))
        }
        Some(value) => value,
        None => Json::Null,
    };
    let container = match parsed {
        Json::Null if parse_js_number(key).is_some() => {
            is_text = true;
            Json::Array(Vec::new())
        }
        Json::Null => {
            is_text = true;
            Json::Object(serde_json::Map::new())
        }
        value => value,
    };
    let container = match container {
        Json::Array(mut items) => {
            // Non-numeric keys of a list are ignored; an index far past the end would fill it with nulls.
            if let Some(at) = parse_index(key) {
                charge_bytes(
                    call.state,
                    (at.saturating_sub(items.len()) as u64 + 1).saturating_mul(budget::SLOT_BYTES),
                )?;
                if at >= items.len() {
                    items.resize(at + 1, Json::Null);
                }
                items[at] = text.into();
            }
            Json::Array(items)
        }
        Json::Object(mut fields) => {
            fields.insert(object_key(key).into_owned(), text.into());
            Json::Object(fields)
        }
        _ => return Ok(None),
    };
    if !is_text {
        return Ok(Some(container));
    }
    let printed_bytes = budget::printed_bytes(budget::weigh_json(&container));
    charge_bytes(call.state, printed_bytes.saturating_mul(2))?;
    Ok(Some(Json::String(container.to_string())))
}
