//! JSON Patch as state operations (F-141). Pointers become lists of keys, so that keys may contain dots.

use serde_json::{Map, Value};

use crate::state::{Command, Op, Operation, Path, Step};

/// Returns whether a name is an operation of JSON Patch or of MVU's additions.
pub(super) fn is_patch(op: &str) -> bool {
    matches!(op, "replace" | "add" | "insert" | "remove" | "delta" | "move" | "copy" | "test")
}

/// Converts one operation of a patch. One without a counterpart becomes a refused operation.
pub(super) fn operation(op: &str, path: &str, fields: &Map<String, Value>) -> Operation {
    let value = fields.get("value").cloned();
    let read = match path.starts_with('/') {
        true => Path::from_pointer(path),
        false if path.contains('/') => Path::from_pointer(&format!("/{path}")),
        false => path.parse(),
    };
    let Ok(path) = read else {
        // Taken literally it would be a path of another kind.
        return Operation::stored(Op::Set.name().to_owned(), format!(".{path}"), value);
    };
    let last = match path.steps().last() {
        Some(Step::Token(token)) => token.clone(),
        _ => String::new(),
    };
    let refused = |name: &str| Operation::stored(name.to_owned(), path.to_string(), value.clone());
    let index = !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit());
    match op {
        "replace" => Operation::new(Op::Set, path, value),
        "add" | "insert" if last == "-" => match Path::new(path.steps()[..path.steps().len() - 1].to_vec()) {
            Some(list) => Operation::new(Op::Push, list, value),
            None => refused("insert"),
        },
        // An element in the middle of a list, or a key: only the state can decide.
        "add" | "insert" if index => {
            let list = Path::new(path.steps()[..path.steps().len() - 1].to_vec());
            let key = last.parse::<u64>().map_or_else(|_| Value::from(last.as_str()), Value::from);
            match (list, value.clone()) {
                (Some(list), Some(value)) => refused("insert").settled_by(Command::Insert(list, key, value)),
                _ => refused("insert"),
            }
        }
        "add" | "insert" => Operation::new(Op::Set, path, value),
        "remove" => Operation::new(Op::Delete, path, None),
        "delta" => Operation::new(Op::Add, path, value),
        other => refused(other),
    }
}
