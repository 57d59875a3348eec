//! Rollback, differences, and the history after a message is deleted.

use serde_json::{Value, json};
use tambour::state::{
    AppliedBlock, ApplyOptions, HistoryPoint, RollbackError, StateHistory, diff, fold, rollback,
};

use super::parse_operations;

/// Builds a history of three messages, the second with two blocks; returns it with the final state.
fn three_messages() -> (StateHistory, Value) {
    let base = json!({"hp": 10, "name": "A", "bag": ["x"]});
    let (mut history, mut state) = (StateHistory::new(base.clone()), base);
    for (message, block) in [
        ("m1", json!([["ADD", "hp", 1], ["DELETE", "name"], ["SET", "a.b.c", 1]])),
        ("m2", json!([["PUSH", "bag", "y"], ["POP", "nothing"]])),
        ("m2", json!([["DELETE", "bag[0]"], ["PUSH", "new.list", 1], ["PUSH", "new.list", 2]])),
        ("m3", json!([["SET", "hp", "dead"]])),
    ] {
        let analysis = Some(format!("since {message}"));
        history.push(AppliedBlock::record(
            &mut state,
            message,
            analysis,
            parse_operations(&block),
            &ApplyOptions::default(),
        ));
    }
    (history, state)
}

#[test]
fn every_message_can_be_gone_back_to() {
    // F-116
    let (history, state) = three_messages();
    assert_eq!(history.state(HistoryPoint::End).expect("a fold").to_string(), state.to_string());
    for (point, expected, remaining_count) in [
        (HistoryPoint::End, state.to_string(), 4),
        (HistoryPoint::AfterMessage("m3"), state.to_string(), 4),
        (
            HistoryPoint::AfterMessage("m2"),
            r#"{"hp":11,"bag":["y"],"a":{"b":{"c":1}},"new":{"list":[1,2]}}"#.to_owned(),
            3,
        ),
        (
            HistoryPoint::BeforeMessage("m3"),
            r#"{"hp":11,"bag":["y"],"a":{"b":{"c":1}},"new":{"list":[1,2]}}"#.to_owned(),
            3,
        ),
        (HistoryPoint::BeforeMessage("m2"), r#"{"hp":11,"bag":["x"],"a":{"b":{"c":1}}}"#.to_owned(), 1),
        (HistoryPoint::AfterMessage("m1"), r#"{"hp":11,"bag":["x"],"a":{"b":{"c":1}}}"#.to_owned(), 1),
        (HistoryPoint::BeforeMessage("m1"), r#"{"hp":10,"name":"A","bag":["x"]}"#.to_owned(), 0),
        (HistoryPoint::Start, r#"{"hp":10,"name":"A","bag":["x"]}"#.to_owned(), 0),
    ] {
        let (mut history, mut state) = (history.clone(), state.clone());
        assert_eq!(history.state(point).expect("a fold").to_string(), expected, "{point:?}");
        let undone_blocks = history.rollback(&mut state, point).expect("a way back");
        assert_eq!((state.to_string(), history.applied().len()), (expected, remaining_count), "{point:?}");
        assert_eq!(undone_blocks.len() + remaining_count, 4);
    }
    let (mut history, mut state) = (history, state);
    assert!(matches!(
        history.rollback(&mut state, HistoryPoint::AfterMessage("m9")),
        Err(RollbackError::UnknownMessage)
    ));
}

#[test]
fn records_hold_who_what_and_why() {
    // F-116
    let (history, _) = three_messages();
    let text = serde_json::to_string(&history).expect("a history is JSON");
    let restored: StateHistory = serde_json::from_str(&text).expect("and read again");
    assert_eq!(restored, history);
    assert_eq!(
        restored.state(HistoryPoint::End).expect("a fold"),
        history.state(HistoryPoint::End).expect("a fold")
    );
    let record = serde_json::to_value(&history.applied()[0]).expect("a record is JSON");
    assert_eq!((&record["message"], &record["analysis"]), (&json!("m1"), &json!("since m1")));
    assert_eq!(record["operations"][0], json!({"op": "ADD", "path": "hp", "value": 1}));
    assert_eq!(record["results"][0], json!({"index": 0, "ok": true, "before": 10, "after": 11}));
}

#[test]
fn differences_are_named_by_their_paths() {
    // F-116
    let (history, _) = three_messages();
    let found = history.diff(HistoryPoint::Start, HistoryPoint::AfterMessage("m2")).expect("two states");
    let found = serde_json::to_value(found).expect("differences are JSON");
    assert_eq!(
        found,
        json!([
            {"path": "hp", "before": 10, "after": 11},
            {"path": "name", "before": "A"},
            {"path": "bag[0]", "before": "x", "after": "y"},
            {"path": "a", "after": {"b": {"c": 1}}},
            {"path": "new", "after": {"list": [1, 2]}},
        ])
    );
    assert!(
        history
            .diff(HistoryPoint::AfterMessage("m1"), HistoryPoint::BeforeMessage("m2"))
            .expect("two states")
            .is_empty()
    );
    let reverse_diff = history.diff(HistoryPoint::End, HistoryPoint::Start).expect("two states");
    assert_eq!((reverse_diff[0].path.as_str(), &reverse_diff[0].after), ("hp", &Some(json!(10))));
    assert_eq!(diff(&json!([1]), &json!({})).len(), 1);
    assert_eq!(diff(&json!({"a.b": 1, "n": null}), &json!({"n": null}))[0].path, "[\"a.b\"]");
    assert!(diff(&json!({"a": 1, "b": 2}), &json!({"b": 2, "a": 1})).is_empty());
}

#[test]
fn a_deleted_message_leaves_the_state_and_closes_the_way_before_it() {
    // R-79
    let (mut history, mut state) = three_messages();
    let current = state.to_string();
    assert!(history.remove_message("m2").expect("they fit"));
    assert!(!history.remove_message("m2").expect("they fit"));
    assert_eq!(history.state(HistoryPoint::End).expect("a fold").to_string(), current);
    let remaining: Vec<&str> = history.applied().iter().map(|block| block.message.as_str()).collect();
    assert_eq!(remaining, ["m1", "m3"]);
    assert!(!serde_json::to_string(&history.applied()).expect("JSON").contains("nothing"));
    for point in [HistoryPoint::Start, HistoryPoint::BeforeMessage("m1"), HistoryPoint::AfterMessage("m1")] {
        let result = history.rollback(&mut state, point);
        assert!(matches!(result, Err(RollbackError::Expired)), "{point:?}");
    }
    let (mut history, mut state) = three_messages();
    assert!(history.remove_message("m2").expect("they fit"));
    history.rollback(&mut state, HistoryPoint::BeforeMessage("m3")).expect("a way back");
    assert_eq!(state.to_string(), r#"{"hp":11,"bag":["y"],"a":{"b":{"c":1}},"new":{"list":[1,2]}}"#);
    assert!(history.remove_message("m1").expect("they fit"));
    assert_eq!(history.state(HistoryPoint::End).expect("a fold"), state);
    // After the oldest message is deleted, the later ones can still be rolled back.
    let (mut history, _) = three_messages();
    assert!(history.remove_message("m1").expect("they fit"));
    assert!(
        history.state(HistoryPoint::BeforeMessage("m2")).is_ok()
            && history.state(HistoryPoint::Start).is_err()
    );
}

#[test]
fn records_that_do_not_fit_change_nothing() {
    let (history, state) = three_messages();
    let mut other = json!({"hp": 1, "bag": ["y"], "new": {"list": [1, 2]}});
    let before = other.to_string();
    assert!(rollback(&mut other, history.applied()).is_err());
    assert_eq!(other.to_string(), before);
    assert!(fold(json!([]), history.applied()).is_err());
    assert!(history.applied()[0].redo(&mut other).is_err());
    assert_eq!(other.to_string(), before);
    assert_eq!(fold(state.clone(), []).expect("nothing to do"), state);
    // Stored records are untrusted data.
    let mut broken = serde_json::to_value(&history.applied()[0]).expect("JSON");
    broken["spots"][0]["index"] = json!(99);
    let broken: AppliedBlock = serde_json::from_value(broken).expect("of the form");
    let mut state = state;
    assert!(broken.undo(&mut state).is_err() && broken.redo(&mut state).is_err());
}
