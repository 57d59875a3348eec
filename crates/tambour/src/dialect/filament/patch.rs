//! JSON Patch as state operations (F-141). Pointers become lists of keys, so that keys may contain dots.

use serde_json::{Map, Value};

use crate::state::{Op, Operation, StateCommand, StatePath, StateStep};

/// Returns whether a name is an operation of JSON Patch or of MVU's additions.
pub(super) fn is_patch_operation(op: &str) -> bool {
    matches!(op, "replace" | "add" | "insert" | "remove" | "delta" | "move" | "copy" | "test")
}

/// Converts one operation of a patch. One without a counterpart becomes a refused operation.
pub(super) fn patch_operation(op: &str, path: &str, fields: &Map<String, Value>) -> Operation {
    let value = fields.get("value").cloned();
    let read = match path.starts_with('/') {
        true => StatePath::from_pointer(path),
        false if path.contains('/') => StatePath::from_pointer(&format!("/{path}")),
        false => path.parse(),
    };
    let Ok(path) = read else {
        // Taken literally it would be a path of another kind.
        return Operation::from_stored(Op::Set.name().to_owned(), format!(".{path}"), value);
    };
    let last = match path.steps().last() {
        Some(StateStep::Token(token)) => token.clone(),
        _ => String::new(),
    };
    let refuse = |name: &str| Operation::from_stored(name.to_owned(), path.to_string(), value.clone());
    let index = !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit());
    match op {
        "replace" => Operation::new(Op::Set, path, value),
        "add" | "insert" if last == "-" => {
            match StatePath::new(path.steps()[..path.steps().len() - 1].to_vec()) {
                Some(list) => Operation::new(Op::Push, list, value),
                None => refuse("insert"),
            }
        }
        // An element in the middle of a list, or a key: only the state can decide.
        "add" | "insert" if index => {
            let list = StatePath::new(path.steps()[..path.steps().len() - 1].to_vec());
            let key = last.parse::<u64>().map_or_else(|_| Value::from(last.as_str()), Value::from);
            match (list, value.clone()) {
                (Some(list), Some(value)) => {
                    refuse("insert").with_command(StateCommand::Insert(list, key, value))
                }
                _ => refuse("insert"),
            }
        }
        "add" | "insert" => Operation::new(Op::Set, path, value),
        "remove" => Operation::new(Op::Delete, path, None),
        "delta" => Operation::new(Op::Add, path, value),
        other => refuse(other),
    }
}
