//! State of a conversation.

use std::sync::{Arc, Mutex};

use serde::Deserialize;
use serde_json::Value;
use tambour::error::Result;
use tambour::state::HistoryPoint;
use tambour_bindings::state::{StateStore, read_point};

use super::{SharedState, unknown_method};
use crate::answer::{read_arguments, write};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OpenArguments {
    value: Value,
    schema: Option<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ApplyArguments {
    operations: Value,
    message: String,
    analysis: String,
    atomic: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PointArguments {
    before: Option<String>,
    after: Option<String>,
}

impl PointArguments {
    fn point<'a>(&'a self, default: HistoryPoint<'a>) -> Result<HistoryPoint<'a>> {
        read_point(self.before.as_deref(), self.after.as_deref(), default)
    }
}

pub(super) fn open(arguments: &str) -> Result<SharedState> {
    let OpenArguments { value, schema } = read_arguments(arguments)?;
    Ok(Arc::new(Mutex::new(StateStore::new(value, schema)?)))
}

pub(super) fn restore(arguments: &str) -> Result<SharedState> {
    Ok(Arc::new(Mutex::new(StateStore::restore(read_arguments(arguments)?)?)))
}

pub(super) fn call(store: &mut StateStore, method: &str, arguments: &str) -> Result<String> {
    match method {
        "value" => write(store.value()),
        "save" => write(&store.save()),
        "history" => write(&store.updates()),
        "apply" => {
            let ApplyArguments { operations, message, analysis, atomic } = read_arguments(arguments)?;
            write(&store.apply(&operations, &message, &analysis, atomic)?)
        }
        "rollback" => {
            let arguments: PointArguments = read_arguments(arguments)?;
            write(&store.rollback(arguments.point(HistoryPoint::Start)?)?)
        }
        "at" => {
            let arguments: PointArguments = read_arguments(arguments)?;
            write(&store.at(arguments.point(HistoryPoint::End)?)?)
        }
        "diff" => {
            let arguments: PointArguments = read_arguments(arguments)?;
            write(&store.diff(arguments.point(HistoryPoint::Start)?, HistoryPoint::End)?)
        }
        "forget" => {
            let message: String = read_arguments(arguments)?;
            write(&store.forget(&message)?)
        }
        _ => Err(unknown_method(method)),
    }
}
