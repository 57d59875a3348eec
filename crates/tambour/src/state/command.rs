//! Operations that depend on the state, like the commands of MVU (F-140); they are resolved when they are
//! applied.

use crate::texts::counted;
use serde_json::{Map, Value};

use super::measure::measure;
use super::operation::{Op, Operation, Reason};
use super::path::{Path, Step};
use super::spot::{at, follow};

/// Way in which the state resolves an operation.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Command {
    /// A string set on a number becomes the number it contains, if it contains one.
    Number,
    /// The root becomes this object.
    Root(Map<String, Value>),
    /// A value is inserted before an item of the list at a path, or under a key of the object there.
    Insert(Path, Value, Value),
    /// An item is removed from the list at a path, by index or as the first equal to a value, or a key from
    /// the object there, by name or position.
    Remove(Path, Value),
}

/// Bytes counted for each value of a list that is rewritten.
const VALUE: usize = 32;

/// Resolves a command on a state to at most `most` operations. `room` is the number of bytes of lists that
/// may still be rewritten.
pub(super) fn settle(
    state: &mut Value,
    operation: &Operation,
    command: &Command,
    most: usize,
    room: &mut usize,
) -> Vec<Operation> {
    let as_it_is = || vec![operation.clone().settled()];
    let one = |op: Op, path: Option<Path>, value: Option<Value>| match path {
        Some(path) => vec![Operation::new(op, path, value)],
        None => as_it_is(),
    };
    match command {
        Command::Number => match (operation.parts(), operation.value().and_then(Value::as_str)) {
            (Ok((op, path)), Some(text)) if place(state, path).is_some_and(|place| place.is_number()) => {
                match serde_json::from_str(text.trim()) {
                    Ok(number @ Value::Number(_)) => one(op, Some(path.clone()), Some(number)),
                    _ => as_it_is(),
                }
            }
            _ => as_it_is(),
        },
        Command::Root(fields) => {
            let Value::Object(old) = &*state else { return as_it_is() };
            let key = |key: &String| Path::new(vec![Step::Key(key.clone())]);
            let gone = old.keys().filter(|name| !fields.contains_key(*name)).filter_map(key);
            let gone = gone.map(|path| Operation::new(Op::Delete, path, None));
            let set = fields
                .iter()
                .filter_map(|(name, value)| Some(Operation::new(Op::Set, key(name)?, Some(value.clone()))));
            gone.chain(set).take(most).collect()
        }
        Command::Insert(path, key, value) => match (place(state, path), key) {
            (Some(Value::Array(items)), Value::Number(index)) => {
                let index = index.as_u64().and_then(|index| usize::try_from(index).ok());
                let Some(index) = index.filter(|index| *index <= items.len()) else {
                    let message = format!("the list has {}", counted(items.len(), "element"));
                    return vec![operation.clone().settled().refuse_for(Reason::IndexOutOfRange, message)];
                };
                if index == items.len() {
                    return one(Op::Push, Some(path.clone()), Some(value.clone()));
                }
                let size = items.iter().map(measure).map(|found| found.bytes + VALUE * found.values).sum();
                let Some(left) = room.checked_sub(size) else {
                    let message = "lists that are written anew have too many bytes";
                    return vec![operation.clone().settled().refuse_for(Reason::LimitExceeded, message)];
                };
                *room = left;
                let mut items = items.clone();
                items.insert(index, value.clone());
                one(Op::Set, Some(path.clone()), Some(Value::Array(items)))
            }
            (Some(Value::Object(_)) | None, Value::String(_) | Value::Number(_)) => {
                let name = key.as_str().map_or_else(|| key.to_string(), str::to_owned);
                one(Op::Set, below(path, Step::Key(name)), Some(value.clone()))
            }
            _ => as_it_is(),
        },
        Command::Remove(path, key) => {
            let step = match place(state, path) {
                Some(Value::Array(items)) => {
                    let index = key.as_u64().and_then(|index| usize::try_from(index).ok());
                    let index = index.filter(|index| *index < items.len());
                    index
                        .or_else(|| items.iter().position(|item| item == key))
                        .and_then(|index| i64::try_from(index).ok().map(Step::Index))
                }
                Some(Value::Object(fields)) => match key {
                    Value::String(name) => Some(Step::Key(name.clone())),
                    key => {
                        let number = key.as_u64().and_then(|number| usize::try_from(number).ok());
                        number.and_then(|number| fields.keys().nth(number)).cloned().map(Step::Key)
                    }
                },
                _ => None,
            };
            one(Op::Delete, step.and_then(|step| below(path, step)), None)
        }
    }
}

fn place<'a>(state: &'a mut Value, path: &Path) -> Option<&'a mut Value> {
    let way = follow(state, path).ok().filter(|way| way.found)?;
    at(state, &way.parts)
}

fn below(path: &Path, step: Step) -> Option<Path> {
    Path::new(path.steps().iter().cloned().chain([step]).collect())
}
