//! Resolves paths to places of the state tree, and reads or changes the values there.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::operation::{Reason, Refusal};
use super::path::{Path, Step, token_index, write_key, write_steps};
use crate::finding::clip;
use crate::schema::type_name;

/// Key of an object, or index into a list counted from 0.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Part {
    /// A key.
    Key(String),
    /// An index.
    Index(usize),
}

/// Place where an operation changed the state: the outermost value that was added, removed or replaced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Spot {
    /// Index of the operation.
    pub index: usize,
    /// Path from the root.
    pub parts: Vec<Part>,
    /// Position of a removed field in its object, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<usize>,
}

/// Result of following a path.
pub(super) struct Way {
    /// The existing parts, and the first missing key.
    pub(super) parts: Vec<Part>,
    /// Further missing keys below that one.
    pub(super) below: Vec<String>,
    /// Set if there is a value at the end of the path.
    pub(super) found: bool,
}

/// Most characters of a path in a message.
const SHOWN: usize = 120;

/// Follows a path. A missing key of an object is not a fault, nor are keys after it.
pub(super) fn follow(state: &Value, path: &Path) -> Result<Way, Refusal> {
    let steps = path.steps();
    let mut parts = Vec::with_capacity(steps.len());
    let mut node = state;
    for (at, step) in steps.iter().enumerate() {
        let next = match (node, step) {
            (Value::Object(fields), Step::Key(key) | Step::Token(key)) => {
                parts.push(Part::Key(key.clone()));
                match fields.get(key) {
                    Some(next) => next,
                    None => return missing(parts, steps, at),
                }
            }
            (Value::Array(items), Step::Index(index)) => {
                let index = *index;
                let from_start = match usize::try_from(index) {
                    Ok(index) => Some(index),
                    Err(_) => usize::try_from(index.unsigned_abs())
                        .ok()
                        .and_then(|back| items.len().checked_sub(back)),
                };
                element(items, from_start, &mut parts, &steps[..=at])?
            }
            (Value::Array(items), Step::Token(token)) if token_index(token).is_some() => {
                element(items, token_index(token), &mut parts, &steps[..=at])?
            }
            (Value::Array(_), _) => {
                let message = format!("{} is a list, which has no keys", shown(&steps[..at]));
                return Err(Refusal::new(Reason::PathMismatch, message));
            }
            (Value::Object(_), Step::Index(_)) => {
                let message = format!("{} is an object, which has no elements", shown(&steps[..at]));
                return Err(Refusal::new(Reason::PathMismatch, message));
            }
            (scalar, _) => {
                let message = format!("{} is {}, which has no parts", shown(&steps[..at]), type_name(scalar));
                return Err(Refusal::new(Reason::PathThroughScalar, message));
            }
        };
        node = next;
    }
    Ok(Way { parts, below: Vec::new(), found: true })
}

fn element<'a>(
    items: &'a [Value],
    index: Option<usize>,
    parts: &mut Vec<Part>,
    steps: &[Step],
) -> Result<&'a Value, Refusal> {
    let there = index.and_then(|index| Some((index, items.get(index)?)));
    let Some((index, item)) = there else {
        let message = format!("{} is not there: the list has {} elements", shown(steps), items.len());
        return Err(Refusal::new(Reason::IndexOutOfRange, message));
    };
    parts.push(Part::Index(index));
    Ok(item)
}

/// Handles a path whose step `at` is a missing key.
fn missing(parts: Vec<Part>, steps: &[Step], at: usize) -> Result<Way, Refusal> {
    let keys = steps[at + 1..].iter().map(|step| match step {
        Step::Token(token) if token_index(token).is_some() => None,
        Step::Key(key) | Step::Token(key) => Some(key.clone()),
        Step::Index(_) => None,
    });
    match keys.collect() {
        Some(below) => Ok(Way { parts, below, found: false }),
        // A list can only be created by PUSH.
        None => Err(absent(&steps[..=at])),
    }
}

/// Builds the refusal for a path without a value.
pub(super) fn absent(steps: &[Step]) -> Refusal {
    Refusal::new(Reason::PathMissing, format!("there is nothing at {}", shown(steps)))
}

/// Formats a path for a message.
pub(super) fn shown(steps: &[Step]) -> String {
    if steps.is_empty() {
        return "the state".to_owned();
    }
    let mut text = String::new();
    // Writing to a `String` never fails.
    let _ = write_steps(steps, &mut text);
    format!("`{}`", clip(&text, SHOWN))
}

/// Formats parts as a path in a model's notation.
pub(super) fn path_of(parts: &[Part]) -> String {
    let mut text = String::new();
    for (at, part) in parts.iter().enumerate() {
        let _ = match part {
            Part::Key(key) => write_key(key, at == 0, &mut text),
            Part::Index(index) => write!(text, "[{index}]"),
        };
    }
    text
}

/// Returns the value at `parts`.
pub(super) fn at<'a>(state: &'a mut Value, parts: &[Part]) -> Option<&'a mut Value> {
    parts.iter().try_fold(state, |node, part| match part {
        Part::Key(key) => node.as_object_mut()?.get_mut(key),
        Part::Index(index) => node.as_array_mut()?.get_mut(*index),
    })
}

/// Removes the value at `parts`; returns it with its position if it was a field.
pub(super) fn take(state: &mut Value, parts: &[Part]) -> Option<(Value, Option<usize>)> {
    let (last, parent) = parts.split_last()?;
    match (at(state, parent)?, last) {
        (Value::Object(fields), Part::Key(key)) => {
            // Undo removes the last field, which this finds without a search.
            let last = fields.keys().next_back().is_some_and(|last| last == key);
            let position = if last { fields.len() - 1 } else { fields.keys().position(|one| one == key)? };
            Some((fields.shift_remove(key)?, Some(position)))
        }
        (Value::Array(items), Part::Index(index)) if *index < items.len() => {
            Some((items.remove(*index), None))
        }
        _ => None,
    }
}

/// Inserts a value where there is none: a field at `position` or the end, or an element before the one at its
/// index. Returns the value if it does not fit there.
pub(super) fn insert(
    state: &mut Value,
    parts: &[Part],
    position: Option<usize>,
    value: Value,
) -> Result<(), Value> {
    let Some((last, parent)) = parts.split_last() else { return Err(value) };
    match (at(state, parent), last) {
        (Some(Value::Object(fields)), Part::Key(key)) if !fields.contains_key(key) => {
            let position = position.unwrap_or(fields.len()).min(fields.len());
            fields.shift_insert(position, key.clone(), value);
            Ok(())
        }
        (Some(Value::Array(items)), Part::Index(index)) if *index <= items.len() => {
            items.insert(*index, value);
            Ok(())
        }
        _ => Err(value),
    }
}
