//! Unwraps a plan that is in a list or under one other key.

use serde_json::Value;

use super::check::FIELDS;

/// Keys that may wrap a plan, in any letter case. Under another key it is not a plan.
pub(super) const WRAPPERS: &[&str] =
    &["aiplan", "ai_plan", "answer", "data", "json", "output", "plan", "reply", "response", "result"];

/// Kind of wrapper around a plan.
pub(super) enum Wrapper {
    List,
    Key(String),
}

/// Takes a plan out of a list with no other item, or an object with no key but a wrapper key.
pub(super) fn unwrap(value: Value) -> (Value, Option<Wrapper>) {
    match value {
        Value::Array(mut items) if items.len() == 1 && is_plan(&items[0]) => {
            (items.pop().unwrap_or_default(), Some(Wrapper::List))
        }
        Value::Object(fields) if fields.len() == 1 && fields.iter().all(|(key, value)| wraps(key, value)) => {
            match fields.into_iter().next() {
                Some((key, value)) => (value, Some(Wrapper::Key(key))),
                None => (Value::Null, None),
            }
        }
        value => (value, None),
    }
}

fn wraps(key: &str, value: &Value) -> bool {
    WRAPPERS.iter().any(|name| name.eq_ignore_ascii_case(key.trim())) && is_plan(value)
}

/// Returns true if the value has enough plan fields to be a plan.
fn is_plan(value: &Value) -> bool {
    FIELDS.iter().filter(|&&field| value.get(field).is_some()).count() >= LEAST
}

/// Fewest plan fields of an object nested in another value that make it a plan.
pub(super) const LEAST: usize = 2;
