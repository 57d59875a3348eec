//! What a template may keep: values of bounded depth, without anything lazy in them.
//!
//! A loop that puts a value into a list and the list into the value, or a filter over what the last turn of the loop filtered,
//! nests as deep as there are steps; giving such a value up, or going through it, would overflow the stack.

use minijinja::value::{Value, ValueKind};
use minijinja::{Error, ErrorKind, State};

use super::values;

/// Levels of a value that is set.
const DEPTH: usize = 64;

/// The value as it may be set.
///
/// # Errors
/// It is nested too deeply, or has more parts than there is fuel left.
pub(super) fn flat(state: &State<'_, '_>, value: Value) -> Result<Value, Error> {
    level(state, value, DEPTH)
}

fn level(state: &State<'_, '_>, value: Value, depth: usize) -> Result<Value, Error> {
    if !matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable | ValueKind::Map)
        || values::is_own(&value)
    {
        return Ok(value);
    }
    let Some(depth) = depth.checked_sub(1) else {
        let message = format!("a value that is set has at most {DEPTH} levels");
        return Err(Error::new(ErrorKind::InvalidOperation, message));
    };
    // A namespace is changed in place, so it is looked through and left as it is.
    let namespace = value.as_object().is_some_and(|object| object.type_name().ends_with("Namespace"));
    if value.kind() == ValueKind::Map {
        let mut fields = Vec::new();
        for key in value.try_iter()? {
            state.consume_fuel(1)?;
            let field = level(state, value.get_item(&key)?, depth)?;
            fields.push((key, field));
        }
        return Ok(if namespace { value } else { Value::from_pairs(fields) });
    }
    let mut items = Vec::new();
    for item in value.try_iter()? {
        state.consume_fuel(1)?;
        items.push(level(state, item, depth)?);
    }
    Ok(Value::from(items))
}
