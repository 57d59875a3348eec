//! JSON Patch as operations on the state (F-141). Its pointers become lists of keys, so that keys keep their dots.

use serde_json::{Map, Value};

use crate::state::{Command, Op, Operation, Path, Step};

/// Whether a name is one of JSON Patch, or of what MVU adds to it.
pub(super) fn is_patch(op: &str) -> bool {
    matches!(op, "replace" | "add" | "insert" | "remove" | "delta" | "move" | "copy" | "test")
}

/// One operation of a patch. What has no counterpart is one that is refused.
pub(super) fn operation(op: &str, path: &str, fields: &Map<String, Value>) -> Operation {
    let value = fields.get("value").cloned();
    let read = match path.starts_with('/') {
        true => Path::from_pointer(path),
        false if path.contains('/') => Path::from_pointer(&format!("/{path}")),
        false => path.parse(),
    };
    let Ok(path) = read else {
        // As it stands it would be a path of another kind.
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
        // Something in the middle of a list, or a key: the state alone can tell.
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
