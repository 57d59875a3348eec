//! States that replies change.

use serde_json::json;
use tambour::state::HistoryPoint;
use tambour_bindings::state::{StateStore, read_point};

#[test]
fn updates_of_a_pipeline_are_taken_over() {
    let mut store = StateStore::new(json!({"n": 1}), None).expect("a state");
    let mut attached = store.attach("m1");
    let operations = tambour::state::Operation::parse_list(&json!([["ADD", "n", 2]])).expect("a list");
    let block = attached.apply("", operations, false);
    assert_eq!(store.value(), &json!({"n": 1}));
    store.absorb(std::slice::from_ref(&block)).expect("it fits");
    assert_eq!(store.value(), &json!({"n": 3}));
    // The state is no longer the one that the update began with.
    assert!(store.absorb(&[block]).is_err());
    assert_eq!(store.value(), &json!({"n": 3}));
    assert_eq!(store.updates().len(), 1);
    store.rollback(HistoryPoint::BeforeMessage("m1")).expect("it is known");
    assert_eq!(store.value(), &json!({"n": 1}));
}

#[test]
fn a_failed_apply_keeps_the_state() {
    let mut store = StateStore::new(json!({"n": 1}), None).expect("a state");
    assert!(store.apply(&json!(5), "m", "", false).is_err());
    assert_eq!(store.value(), &json!({"n": 1}));
    assert!(read_point(Some("a"), Some("b"), HistoryPoint::End).is_err());
}

#[test]
fn operations_as_objects_keep_their_refusals() {
    let mut store = StateStore::new(json!({}), None).expect("a state");
    let operations = json!({"analysis": "", "operations": [
        {"op": "SET", "path": "a", "value": 1},
        {"op": "POP", "path": "a", "refused": "value_guessed"},
    ]});
    let update = store.apply(&operations, "m", "", false).expect("operations");
    assert_eq!(update.results.iter().map(|result| result.ok).collect::<Vec<_>>(), [true, false]);
    assert_eq!(update.results[1].reason.as_deref(), Some("value_guessed"));
    assert_eq!(store.value(), &json!({"a": 1}));
}
