//! The state tree: paths, operations, arithmetic, history.

mod history;
mod operations;
mod paths;

use serde_json::Value;
use tambour::state::{ApplyOptions, OpResult, Operation, apply};

/// Applies operations with default options.
fn apply_operations(state: &mut Value, operations: &Value) -> Vec<OpResult> {
    apply(state, &parse_operations(operations), &ApplyOptions::default())
}

fn parse_operations(operations: &Value) -> Vec<Operation> {
    Operation::parse_list(operations).expect("operations are a list")
}

/// Reason of each result, or `ok`.
fn outcome_words(results: &[OpResult]) -> Vec<String> {
    let word = |result: &OpResult| {
        assert_eq!(result.ok, result.reason.is_none());
        assert_eq!(result.ok, result.message.is_none());
        result.reason.map_or_else(|| "ok".to_owned(), |reason| reason.to_string())
    };
    results.iter().map(word).collect()
}

/// Applies one operation; returns the new state, and `ok` or the reason.
fn apply_one(state: &Value, operation: Value) -> (Value, String) {
    let mut state = state.clone();
    let results = apply_operations(&mut state, &Value::Array(vec![operation]));
    (state, outcome_words(&results).remove(0))
}
