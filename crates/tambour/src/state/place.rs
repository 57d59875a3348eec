//! Resolves paths to places of the state tree, and reads or changes the values there.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::operation::{OperationRefusal, RefusalReason};
use super::path::{StatePath, StateStep, parse_token_index, write_key, write_steps};
use crate::finding::clip;
use crate::schema::type_name;

/// Key of an object, or index into a list counted from 0.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum StateKey {
    /// A key.
    Key(String),
    /// An index.
    Index(usize),
}

/// Place where an operation changed the state: the outermost value that was added, removed or replaced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ChangedPlace {
    /// Index of the operation.
    pub index: usize,
    /// Keys and indexes from the root.
    pub parts: Vec<StateKey>,
    /// Position of a removed field in its object, from 0; `None` for other changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<usize>,
}

/// Result of following a path.
pub(super) struct ResolvedPath {
    /// Keys and indexes that exist, and the first missing key.
    pub(super) parts: Vec<StateKey>,
    /// Further missing keys below that one.
    pub(super) missing_keys: Vec<String>,
    /// True if there is a value at the end of the path.
    pub(super) has_value: bool,
}

/// Maximum number of characters of a path in a message.
const MAX_SHOWN_PATH: usize = 120;

/// Follows a path. A missing key of an object is not a fault, nor are keys after it.
pub(super) fn resolve_path(state: &Value, path: &StatePath) -> Result<ResolvedPath, OperationRefusal> {
    let steps = path.steps();
    let mut parts = Vec::with_capacity(steps.len());
    let mut node = state;
    for (at, step) in steps.iter().enumerate() {
        let child = match (node, step) {
            (Value::Object(fields), StateStep::Key(key) | StateStep::Token(key)) => {
                parts.push(StateKey::Key(key.clone()));
                match fields.get(key) {
                    Some(child) => child,
                    None => return resolve_missing(parts, steps, at),
                }
            }
            (Value::Array(items), StateStep::Index(index)) => {
                let index = *index;
                // A negative index counts from the end.
                let index_from_start = match usize::try_from(index) {
                    Ok(index) => Some(index),
                    Err(_) => usize::try_from(index.unsigned_abs())
                        .ok()
                        .and_then(|distance| items.len().checked_sub(distance)),
                };
                resolve_element(items, index_from_start, &mut parts, &steps[..=at])?
            }
            (Value::Array(items), StateStep::Token(token)) if parse_token_index(token).is_some() => {
                resolve_element(items, parse_token_index(token), &mut parts, &steps[..=at])?
            }
            (Value::Array(_), _) => {
                let message = format!("{} is a list, which has no keys", format_path(&steps[..at]));
                return Err(OperationRefusal::new(RefusalReason::PathMismatch, message));
            }
            (Value::Object(_), StateStep::Index(_)) => {
                let message = format!("{} is an object, which has no elements", format_path(&steps[..at]));
                return Err(OperationRefusal::new(RefusalReason::PathMismatch, message));
            }
            (scalar, _) => {
                let message =
                    format!("{} is {}, which has no parts", format_path(&steps[..at]), type_name(scalar));
                return Err(OperationRefusal::new(RefusalReason::PathThroughScalar, message));
            }
        };
        node = child;
    }
    Ok(ResolvedPath { parts, missing_keys: Vec::new(), has_value: true })
}

/// Follows the last of `steps` to the element `index` of a list; `None` stands for an index before its start.
fn resolve_element<'a>(
    items: &'a [Value],
    index: Option<usize>,
    parts: &mut Vec<StateKey>,
    steps: &[StateStep],
) -> Result<&'a Value, OperationRefusal> {
    let element = index.and_then(|index| Some((index, items.get(index)?)));
    let Some((index, item)) = element else {
        let message = format!("{} does not exist: the list has {} elements", format_path(steps), items.len());
        return Err(OperationRefusal::new(RefusalReason::IndexOutOfRange, message));
    };
    parts.push(StateKey::Index(index));
    Ok(item)
}

/// Handles a path whose step `at` is a missing key.
fn resolve_missing(
    parts: Vec<StateKey>,
    steps: &[StateStep],
    at: usize,
) -> Result<ResolvedPath, OperationRefusal> {
    let keys = steps[at + 1..].iter().map(|step| match step {
        StateStep::Token(token) if parse_token_index(token).is_some() => None,
        StateStep::Key(key) | StateStep::Token(key) => Some(key.clone()),
        StateStep::Index(_) => None,
    });
    match keys.collect() {
        Some(missing_keys) => Ok(ResolvedPath { parts, missing_keys, has_value: false }),
        // A list can only be created by PUSH.
        None => Err(path_missing(&steps[..=at])),
    }
}

/// Builds the refusal for a path without a value.
pub(super) fn path_missing(steps: &[StateStep]) -> OperationRefusal {
    OperationRefusal::new(RefusalReason::PathMissing, format!("there is nothing at {}", format_path(steps)))
}

/// Formats a path for a message.
pub(super) fn format_path(steps: &[StateStep]) -> String {
    if steps.is_empty() {
        return "the state".to_owned();
    }
    let mut text = String::new();
    // Writing to a `String` never fails.
    let _ = write_steps(steps, &mut text);
    format!("`{}`", clip(&text, MAX_SHOWN_PATH))
}

/// Formats keys and indexes as a path in the notation that models write.
pub(super) fn format_keys(parts: &[StateKey]) -> String {
    let mut text = String::new();
    for (at, part) in parts.iter().enumerate() {
        let _ = match part {
            StateKey::Key(key) => write_key(key, at == 0, &mut text),
            StateKey::Index(index) => write!(text, "[{index}]"),
        };
    }
    text
}

/// Returns the value at the keys and indexes `parts`; `None` if there is none.
pub(super) fn value_at<'a>(state: &'a mut Value, parts: &[StateKey]) -> Option<&'a mut Value> {
    parts.iter().try_fold(state, |node, part| match part {
        StateKey::Key(key) => node.as_object_mut()?.get_mut(key),
        StateKey::Index(index) => node.as_array_mut()?.get_mut(*index),
    })
}

/// Removes the value at `parts`; returns it, with its position if it was a field of an object.
pub(super) fn take_value(state: &mut Value, parts: &[StateKey]) -> Option<(Value, Option<usize>)> {
    let (last, parent) = parts.split_last()?;
    match (value_at(state, parent)?, last) {
        (Value::Object(fields), StateKey::Key(key)) => {
            // Undoing an addition removes the last field, which is found here without a search.
            let is_last = fields.keys().next_back().is_some_and(|last| last == key);
            let position =
                if is_last { fields.len() - 1 } else { fields.keys().position(|name| name == key)? };
            Some((fields.shift_remove(key)?, Some(position)))
        }
        (Value::Array(items), StateKey::Index(index)) if *index < items.len() => {
            Some((items.remove(*index), None))
        }
        _ => None,
    }
}

/// Inserts a value where there is none: a field at `position` or the end, or an element before the one at its
/// index. Returns the value if it does not fit there.
pub(super) fn insert_value(
    state: &mut Value,
    parts: &[StateKey],
    position: Option<usize>,
    value: Value,
) -> Result<(), Value> {
    let Some((last, parent)) = parts.split_last() else { return Err(value) };
    match (value_at(state, parent), last) {
        (Some(Value::Object(fields)), StateKey::Key(key)) if !fields.contains_key(key) => {
            let position = position.unwrap_or(fields.len()).min(fields.len());
            fields.shift_insert(position, key.clone(), value);
            Ok(())
        }
        (Some(Value::Array(items)), StateKey::Index(index)) if *index <= items.len() => {
            items.insert(*index, value);
            Ok(())
        }
        _ => Err(value),
    }
}
