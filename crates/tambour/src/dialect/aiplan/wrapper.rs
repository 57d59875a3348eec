//! Plans that are the only item of a list or under the only key of an object.

use serde_json::Value;

use super::check::PLAN_FIELDS;

/// Keys that may wrap a plan, in any letter case. Under another key it is not a plan.
pub(super) const WRAPPER_KEYS: &[&str] =
    &["aiplan", "ai_plan", "answer", "data", "json", "output", "plan", "reply", "response", "result"];

/// Kind of wrapper around a plan.
pub(super) enum PlanWrapper {
    /// A list with one item.
    List,
    /// An object with this key.
    Key(String),
}

/// Takes a plan out of a list with no other item, or an object with no key but a wrapper key. Returns any
/// other value as it is, without a wrapper.
pub(super) fn unwrap_plan(value: Value) -> (Value, Option<PlanWrapper>) {
    match value {
        Value::Array(mut items) if items.len() == 1 && is_plan(&items[0]) => {
            (items.pop().unwrap_or_default(), Some(PlanWrapper::List))
        }
        Value::Object(fields)
            if fields.len() == 1 && fields.iter().all(|(key, value)| is_wrapper(key, value)) =>
        {
            match fields.into_iter().next() {
                Some((key, value)) => (value, Some(PlanWrapper::Key(key))),
                None => (Value::Null, None),
            }
        }
        value => (value, None),
    }
}

/// Returns true if a plan is under a wrapper key.
fn is_wrapper(key: &str, value: &Value) -> bool {
    WRAPPER_KEYS.iter().any(|name| name.eq_ignore_ascii_case(key.trim())) && is_plan(value)
}

/// Returns true if the value has enough plan fields to be a plan.
fn is_plan(value: &Value) -> bool {
    PLAN_FIELDS.iter().filter(|&&field| value.get(field).is_some()).count() >= MIN_NESTED_FIELDS
}

/// Least number of plan fields that make an object nested in another value a plan.
pub(super) const MIN_NESTED_FIELDS: usize = 2;
