//! Copies of values that a template sets: of bounded depth, and without lazy values in them.
//!
//! A loop that puts a value into a list and the list into the value, or that filters the result of its
//! previous iteration, nests one level deeper in each iteration. Dropping or traversing such a value would
//! overflow the stack.

use minijinja::value::{Value, ValueKind};
use minijinja::{Error, ErrorKind, State};

use super::budget::{SLOT_BYTES, charge, charge_bytes, memory_error, stopped_error};
use super::scope::PromptScope;
use super::text::check_key;
use super::{operators, values};

/// Maximum nesting depth of a value that a template sets.
const MAX_SET_DEPTH: usize = 64;

/// Returns a copy of the value that a template may set.
///
/// # Errors
/// The value is nested too deeply, has more parts than the budget allows, or has a list or map as a key; or
/// the rendering must stop.
pub(super) fn flatten(state: &State<'_, '_>, value: Value) -> Result<Value, Error> {
    match value.as_str() {
        Some(text) => charge_bytes(state, text.len() as u64)?,
        // Numbers and other plain values need no copy.
        None if value.as_object().is_none() => {}
        None => return flatten_level(state, PromptScope::find(state).as_deref(), value, MAX_SET_DEPTH),
    }
    Ok(value)
}

/// Like [`flatten`], for a value that is unpacked into several names.
///
/// # Errors
/// Same as [`flatten`]; also fails if there are far too many items to unpack.
pub(super) fn flatten_row(state: &State<'_, '_>, value: Value) -> Result<Value, Error> {
    operators::check_row(&value)?;
    flatten(state, value)
}

/// Copies a value that may be nested up to `depth` levels deep.
fn flatten_level(
    state: &State<'_, '_>,
    scope: Option<&PromptScope>,
    value: Value,
    depth: usize,
) -> Result<Value, Error> {
    if let Some(text) = value.as_str() {
        charge(state, 0, text.len() as u64)?;
    }
    if !matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable | ValueKind::Map)
        || values::is_own_object(&value)
    {
        return Ok(value);
    }
    let Some(depth) = depth.checked_sub(1) else {
        let message = format!("a value that is set may have at most {MAX_SET_DEPTH} levels");
        return Err(Error::new(ErrorKind::InvalidOperation, message));
    };
    // A namespace is changed in place: its fields are checked, but it is not copied.
    let is_namespace = value.as_object().is_some_and(|object| object.type_name().ends_with("Namespace"));
    if value.kind() == ValueKind::Map {
        let mut fields = Vec::new();
        for key in value.try_iter()? {
            charge_part(state, scope)?;
            check_key(&key)?;
            if let Some(text) = key.as_str() {
                charge(state, 0, text.len() as u64)?;
            }
            let field = flatten_level(state, scope, value.get_item(&key)?, depth)?;
            fields.push((key, field));
        }
        return Ok(if is_namespace { value } else { Value::from_pairs(fields) });
    }
    let mut items = Vec::new();
    for item in value.try_iter()? {
        charge_part(state, scope)?;
        items.push(flatten_level(state, scope, item, depth)?);
    }
    Ok(Value::from(items))
}

/// Charges for one more part of a value.
fn charge_part(state: &State<'_, '_>, scope: Option<&PromptScope>) -> Result<(), Error> {
    state.consume_fuel(1)?;
    match scope {
        Some(scope) if !scope.budget.charge_bytes(SLOT_BYTES) => Err(memory_error()),
        Some(scope) if !scope.budget.may_continue(1) => Err(stopped_error()),
        _ => Ok(()),
    }
}
