//! Updates of a state as JSON Patch (RFC 6902).

use serde_json::{Value, json};

use crate::state::{ApplyOptions, Operation, apply};

/// What a `state_update` came to.
#[derive(Default)]
pub(super) struct Update {
    /// What was carried out, as `[op, path, value?]`.
    pub(super) applied: Vec<Value>,
    /// What takes the state before it to the one after it.
    pub(super) patch: Vec<Value>,
    /// What was refused, with what the server says of it.
    pub(super) refused: Vec<(Value, Value)>,
}

/// Takes `state` on to what is after a `state_update`.
pub(super) fn of_update(update: &Value, state: &mut Value) -> Update {
    let list = |name: &str| update[name].as_array().map_or(&[][..], Vec::as_slice);
    let before = state.clone();
    let mut came = Update::default();
    for (at, operation) in list("operations").iter().enumerate() {
        let parts = ["op", "path", "value"].into_iter().filter_map(|key| operation.get(key).cloned());
        let operation = Value::Array(parts.collect());
        // What the server did is told by its results alone.
        let Some(result) = list("results").iter().find(|result| result["index"].as_u64() == Some(at as u64))
        else {
            continue;
        };
        if result["ok"] == true {
            apply(state, &[Operation::from_value(&operation)], &ApplyOptions::default());
            came.applied.push(operation);
        } else {
            came.refused.push((operation, result.clone()));
        }
    }
    let patch = json!(json_patch::diff(&before, state));
    came.patch = patch.as_array().cloned().unwrap_or_default();
    came
}

/// A state of which nothing was said yet.
pub(super) fn empty() -> Value {
    json!({})
}
