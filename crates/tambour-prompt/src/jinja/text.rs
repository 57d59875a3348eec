//! Converts minijinja values to text and JSON (F-026), spelled as in JSON and not as in Python.

use std::borrow::Cow;

use minijinja::value::{Value, ValueKind};
use minijinja::{Error, ErrorKind};

use super::values;
use crate::print;

/// Maximum nesting depth of a value that is printed or stored.
const MAX_VALUE_DEPTH: usize = 128;

/// Returns the printed form of `value`.
///
/// # Errors
/// The value is nested too deeply, has a list or mapping as a key, or carries an error.
pub(super) fn to_text(value: &Value) -> Result<Cow<'_, str>, Error> {
    if let Some(text) = value.as_str() {
        return Ok(Cow::Borrowed(text));
    }
    Ok(match value.kind() {
        ValueKind::Undefined | ValueKind::None => Cow::Borrowed(""),
        ValueKind::Bool if value.is_true() => Cow::Borrowed("true"),
        ValueKind::Bool => Cow::Borrowed("false"),
        ValueKind::Number if value.is_integer() => Cow::Owned(value.to_string()),
        ValueKind::Number => {
            Cow::Owned(f64::try_from(value.clone()).map_or_else(|_| value.to_string(), print::format_float))
        }
        ValueKind::Invalid => return Err(invalid_value_error(value)),
        ValueKind::Seq | ValueKind::Map | ValueKind::Iterable if values::custom_text(value).is_none() => {
            let mut out = String::new();
            print::write_json(&to_json(value)?, &mut out);
            Cow::Owned(out)
        }
        _ => Cow::Owned(values::custom_text(value).unwrap_or_else(|| value.to_string())),
    })
}

/// Converts `value` to JSON; a value without a JSON form, such as a macro, becomes text.
///
/// # Errors
/// The value is nested too deeply, has a list or mapping as a key, or carries an error.
pub(super) fn to_json(value: &Value) -> Result<serde_json::Value, Error> {
    to_json_within(value, MAX_VALUE_DEPTH)
}

/// Converts a value that may be nested up to `depth` levels deep.
fn to_json_within(value: &Value, depth: usize) -> Result<serde_json::Value, Error> {
    let Some(depth) = depth.checked_sub(1) else { return Err(depth_error()) };
    Ok(match value.kind() {
        ValueKind::Undefined | ValueKind::None => serde_json::Value::Null,
        ValueKind::Bool => value.is_true().into(),
        ValueKind::Number => to_json_number(value),
        ValueKind::Invalid => return Err(invalid_value_error(value)),
        ValueKind::Seq | ValueKind::Iterable => {
            let items = value.try_iter()?.map(|item| to_json_within(&item, depth));
            serde_json::Value::Array(items.collect::<Result<_, _>>()?)
        }
        ValueKind::Map => {
            let mut map = serde_json::Map::new();
            for key in value.try_iter()? {
                check_key(&key)?;
                let field = to_json_within(&value.get_item(&key)?, depth)?;
                map.insert(to_text(&key)?.into_owned(), field);
            }
            serde_json::Value::Object(map)
        }
        _ => values::custom_text(value).unwrap_or_else(|| value.to_string()).into(),
    })
}

/// Rejects a list or mapping as a key, as Jinja does. Printed keys within keys would double in length with
/// each level.
pub(super) fn check_key(key: &Value) -> Result<(), Error> {
    let is_container = matches!(key.kind(), ValueKind::Seq | ValueKind::Map | ValueKind::Iterable);
    if is_container && values::custom_text(key).is_none() {
        return Err(Error::new(
            ErrorKind::InvalidOperation,
            "a list or a mapping cannot be the key of a mapping",
        ));
    }
    Ok(())
}

/// Error for a value that is nested too deeply.
pub(super) fn depth_error() -> Error {
    Error::new(
        ErrorKind::InvalidOperation,
        format!("a value is nested more than {MAX_VALUE_DEPTH} levels deep"),
    )
}

/// Returns the error that an invalid value carries.
fn invalid_value_error(value: &Value) -> Error {
    // Any use of the value fails with that error.
    let error = value.get_attr("").err();
    error.unwrap_or_else(|| Error::new(ErrorKind::InvalidOperation, "an invalid value"))
}

/// Converts a number to JSON; null for a number that JSON lacks, such as infinity.
fn to_json_number(value: &Value) -> serde_json::Value {
    if let Some(integer) = value.as_i64() {
        return integer.into();
    }
    match (u64::try_from(value.clone()), f64::try_from(value.clone())) {
        (Ok(integer), _) if value.is_integer() => integer.into(),
        (_, Ok(float)) => serde_json::Number::from_f64(float).map_or(serde_json::Value::Null, Into::into),
        _ => serde_json::Value::Null,
    }
}
