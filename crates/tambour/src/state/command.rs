//! Operations that depend on the state, such as the commands of MVU, a SillyTavern extension for variables
//! (F-140). They are resolved to plain operations when they are applied.

use crate::texts::format_count;
use serde_json::{Map, Value};

use super::measure;
use super::operation::{Op, Operation, RefusalReason};
use super::path::{StatePath, StateStep};
use super::place::{resolve_path, value_at};

/// Effect of an operation that depends on the state.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub(crate) enum StateCommand {
    /// A string that is set in place of a number becomes a number, if it is the text of one.
    Number,
    /// The fields of the root become those of this object.
    Root(Map<String, Value>),
    /// Inserts `value` into the list at `path` before index `key`, or into the object there under `key`.
    Insert {
        /// Path of the list or object.
        path: StatePath,
        /// Index in the list, or key of the object.
        key: Value,
        /// Value to insert.
        value: Value,
    },
    /// Removes an item from the list at `path`: the one at index `key`, or the first one equal to `key`. From
    /// the object there, removes the key with the name or position `key`.
    Remove {
        /// Path of the list or object.
        path: StatePath,
        /// Index or value of the item, or name or position of the key.
        key: Value,
    },
}

/// Bytes counted for each value of a list that is rewritten.
const VALUE_COST: usize = 32;

/// Resolves a command on a state to at most `limit` plain operations. `rewritable_bytes` is the number
/// of bytes of lists that may still be rewritten; each rewritten list is deducted.
pub(super) fn resolve_command(
    state: &mut Value,
    operation: &Operation,
    command: &StateCommand,
    limit: usize,
    rewritable_bytes: &mut usize,
) -> Vec<Operation> {
    let unchanged = || vec![operation.clone().without_command()];
    // Makes one operation; without a path, the unchanged one.
    let single = |op: Op, path: Option<StatePath>, value: Option<Value>| match path {
        Some(path) => vec![Operation::new(op, path, value)],
        None => unchanged(),
    };
    match command {
        StateCommand::Number => match (operation.parts(), operation.value().and_then(Value::as_str)) {
            (Ok((op, path)), Some(text))
                if find_value(state, path).is_some_and(|value| value.is_number()) =>
            {
                match serde_json::from_str(text.trim()) {
                    Ok(number @ Value::Number(_)) => single(op, Some(path.clone()), Some(number)),
                    _ => unchanged(),
                }
            }
            _ => unchanged(),
        },
        StateCommand::Root(fields) => {
            let Value::Object(old_fields) = &*state else { return unchanged() };
            let path_of = |key: &String| StatePath::new(vec![StateStep::Key(key.clone())]);
            let deletions = old_fields.keys().filter(|name| !fields.contains_key(*name)).filter_map(path_of);
            let deletions = deletions.map(|path| Operation::new(Op::Delete, path, None));
            let assignments = fields.iter().filter_map(|(name, value)| {
                Some(Operation::new(Op::Set, path_of(name)?, Some(value.clone())))
            });
            deletions.chain(assignments).take(limit).collect()
        }
        StateCommand::Insert { path, key, value } => match (find_value(state, path), key) {
            (Some(Value::Array(items)), Value::Number(index)) => {
                let index = index.as_u64().and_then(|index| usize::try_from(index).ok());
                let Some(index) = index.filter(|index| *index <= items.len()) else {
                    let message = format!("the list has {}", format_count(items.len(), "element"));
                    return vec![
                        operation
                            .clone()
                            .without_command()
                            .refuse_with_value(RefusalReason::IndexOutOfRange, message),
                    ];
                };
                if index == items.len() {
                    return single(Op::Push, Some(path.clone()), Some(value.clone()));
                }
                let size = items.iter().map(measure).map(|size| size.bytes + VALUE_COST * size.values).sum();
                let Some(bytes_left) = rewritable_bytes.checked_sub(size) else {
                    let message = "the lists that the command would rewrite have too many bytes";
                    return vec![
                        operation
                            .clone()
                            .without_command()
                            .refuse_with_value(RefusalReason::LimitExceeded, message),
                    ];
                };
                *rewritable_bytes = bytes_left;
                let mut items = items.clone();
                items.insert(index, value.clone());
                single(Op::Set, Some(path.clone()), Some(Value::Array(items)))
            }
            (Some(Value::Object(_)) | None, Value::String(_) | Value::Number(_)) => {
                let name = key.as_str().map_or_else(|| key.to_string(), str::to_owned);
                single(Op::Set, append_step(path, StateStep::Key(name)), Some(value.clone()))
            }
            _ => unchanged(),
        },
        StateCommand::Remove { path, key } => {
            let step = match find_value(state, path) {
                Some(Value::Array(items)) => {
                    let index = key.as_u64().and_then(|index| usize::try_from(index).ok());
                    let index = index.filter(|index| *index < items.len());
                    index
                        .or_else(|| items.iter().position(|item| item == key))
                        .and_then(|index| i64::try_from(index).ok().map(StateStep::Index))
                }
                Some(Value::Object(fields)) => match key {
                    Value::String(name) => Some(StateStep::Key(name.clone())),
                    key => {
                        let number = key.as_u64().and_then(|number| usize::try_from(number).ok());
                        number.and_then(|number| fields.keys().nth(number)).cloned().map(StateStep::Key)
                    }
                },
                _ => None,
            };
            single(Op::Delete, step.and_then(|step| append_step(path, step)), None)
        }
    }
}

/// Returns the value at `path`; `None` if there is none.
fn find_value<'a>(state: &'a mut Value, path: &StatePath) -> Option<&'a mut Value> {
    let resolved = resolve_path(state, path).ok().filter(|resolved| resolved.has_value)?;
    value_at(state, &resolved.parts)
}

/// Returns `path` with one more step; `None` if the step is an empty key.
fn append_step(path: &StatePath, step: StateStep) -> Option<StatePath> {
    StatePath::new(path.steps().iter().cloned().chain([step]).collect())
}
