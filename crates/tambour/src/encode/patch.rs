//! Updates of a state as JSON Patch (RFC 6902).

use serde_json::Value;

use crate::state::{ApplyOptions, Operation, apply};

/// The patch of a `state_update`, which takes `state` to what is after it, and the operations that were refused. Without a state
/// there is nothing that a patch could be applied to.
pub(super) fn of_update(update: &Value, state: &mut Option<Value>) -> (Vec<Value>, Vec<Value>) {
    let list = |name: &str| update[name].as_array().map_or(&[][..], Vec::as_slice);
    let (operations, results) = (list("operations"), list("results"));
    let is_refused = |result: &&Value| result["ok"] == false;
    let refused = results.iter().filter(is_refused).cloned().collect();
    let Some(state) = state else { return (Vec::new(), refused) };
    let before = state.clone();
    for (at, operation) in operations.iter().enumerate() {
        let came = |result: &&Value| result["index"].as_u64() == Some(at as u64);
        // What the server did is told by its results alone.
        if !results.iter().find(came).is_some_and(|result| result["ok"] == true) {
            continue;
        }
        let parts = ["op", "path", "value"].into_iter().filter_map(|key| operation.get(key).cloned());
        let operation = Operation::from_value(&Value::Array(parts.collect()));
        apply(state, &[operation], &ApplyOptions::default());
    }
    let patch = serde_json::to_value(json_patch::diff(&before, state)).unwrap_or_default();
    let Value::Array(patch) = patch else { return (Vec::new(), refused) };
    (patch, refused)
}
