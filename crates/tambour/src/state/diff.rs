//! Differences between two states.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::place::{StateKey, format_keys};

/// A value that was added, removed or changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StateDifference {
    /// Path of the value; empty if the entire state differs.
    pub path: String,
    /// The value before; absent if there was none.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "super::deserialize_present"
    )]
    pub before: Option<Value>,
    /// The value after; absent if there is none.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "super::deserialize_present"
    )]
    pub after: Option<Value>,
}

/// Compares two states, descending while both have the same kind of container. Differences are in the order
/// of `before`, then added values. The order of fields is ignored.
///
/// ```
/// use serde_json::json;
///
/// let differences = tambour::state::diff(&json!({"a": {"b": 1}, "c": 2}), &json!({"a": {"b": 3}, "c": 2}));
/// assert_eq!(differences.len(), 1);
/// assert_eq!((differences[0].path.as_str(), &differences[0].after), ("a.b", &Some(json!(3))));
/// ```
#[must_use]
pub fn diff(before: &Value, after: &Value) -> Vec<StateDifference> {
    let mut found = Vec::new();
    compare(before, after, &mut Vec::new(), &mut found);
    found
}

/// Maximum number of levels compared; a value below them differs as a whole.
const MAX_DEPTH: usize = 128;

/// Compares the values at the path `keys`.
fn compare(before: &Value, after: &Value, keys: &mut Vec<StateKey>, found: &mut Vec<StateDifference>) {
    match (before, after) {
        (Value::Object(old_fields), Value::Object(new_fields)) if keys.len() < MAX_DEPTH => {
            for (key, value) in old_fields {
                compare_member(StateKey::Key(key.clone()), Some(value), new_fields.get(key), keys, found);
            }
            for (key, value) in new_fields.iter().filter(|(key, _)| !old_fields.contains_key(*key)) {
                compare_member(StateKey::Key(key.clone()), None, Some(value), keys, found);
            }
        }
        (Value::Array(old_items), Value::Array(new_items)) if keys.len() < MAX_DEPTH => {
            for index in 0..old_items.len().max(new_items.len()) {
                let key = StateKey::Index(index);
                compare_member(key, old_items.get(index), new_items.get(index), keys, found);
            }
        }
        _ if before == after => {}
        _ => found.push(StateDifference {
            path: format_keys(keys),
            before: Some(before.clone()),
            after: Some(after.clone()),
        }),
    }
}

/// Compares the values under `key` of the two containers at the path `keys`.
fn compare_member(
    key: StateKey,
    before: Option<&Value>,
    after: Option<&Value>,
    keys: &mut Vec<StateKey>,
    found: &mut Vec<StateDifference>,
) {
    keys.push(key);
    match (before, after) {
        (Some(before), Some(after)) => compare(before, after, keys, found),
        _ => found.push(StateDifference {
            path: format_keys(keys),
            before: before.cloned(),
            after: after.cloned(),
        }),
    }
    keys.pop();
}
