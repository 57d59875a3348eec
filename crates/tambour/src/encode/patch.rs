//! Conversion of state updates to JSON Patch (RFC 6902).

use serde_json::{Value, json};

use crate::state::{ApplyOptions, Operation, apply};

/// Result of a `state_update`.
#[derive(Default)]
pub(super) struct StatePatch {
    /// Applied operations, as `[op, path, value?]`.
    pub(super) applied_operations: Vec<Value>,
    /// Patch from the state before to the state after.
    pub(super) patch: Vec<Value>,
    /// Refused operations, each with its result.
    pub(super) refused_operations: Vec<(Value, Value)>,
}

/// Applies a `state_update` to `state`.
pub(super) fn apply_update(update: &Value, state: &mut Value) -> StatePatch {
    let list = |name: &str| update[name].as_array().map_or(&[][..], Vec::as_slice);
    let before = state.clone();
    let mut state_patch = StatePatch::default();
    for (at, operation) in list("operations").iter().enumerate() {
        let parts = ["op", "path", "value"].into_iter().filter_map(|key| operation.get(key).cloned());
        let operation = Value::Array(parts.collect());
        // Only the results tell which operations were applied.
        let Some(result) = list("results").iter().find(|result| result["index"].as_u64() == Some(at as u64))
        else {
            continue;
        };
        if result["ok"] == true {
            apply(state, &[Operation::from_value(&operation)], &ApplyOptions::default());
            state_patch.applied_operations.push(operation);
        } else {
            state_patch.refused_operations.push((operation, result.clone()));
        }
    }
    let patch = json!(json_patch::diff(&before, state));
    state_patch.patch = patch.as_array().cloned().unwrap_or_default();
    state_patch
}

/// Initial state of a conversation.
pub(super) fn initial_state() -> Value {
    json!({})
}
