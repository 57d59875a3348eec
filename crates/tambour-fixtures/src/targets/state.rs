//! Fuzz target: paths and operations of a state.

use serde_json::{Map, Value, json};
use tambour::state::{AppliedBlock, ApplyOptions, Operation, StatePath, apply, diff};

use crate::random::RandomSource;

/// Reads text as a path, and as a state with operations, `{"state": ..., "operations": [...]}`. A printed
/// path must read back, operations must be undone and redone exactly, and refused ones must change nothing.
///
/// # Panics
/// An invariant is broken.
pub fn check_state(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for path in [text.parse::<StatePath>(), StatePath::from_pointer(&text)].into_iter().flatten() {
        let path_text = path.to_string();
        let reparsed: StatePath =
            path_text.parse().unwrap_or_else(|error| panic!("{path_text:?} of {text:?}: {error}"));
        assert_eq!(reparsed.to_string(), path_text, "{text:?}");
    }
    let Ok(mut input) = serde_json::from_str::<Value>(&text) else { return };
    let Some(before) = input.get_mut("state").map(Value::take) else { return };
    let Some(Ok(operations)) = input.get("operations").map(Operation::parse_list) else { return };
    for is_atomic in [false, true] {
        let options = ApplyOptions { is_atomic, ..ApplyOptions::default() };
        let mut after = before.clone();
        let record = AppliedBlock::record(&mut after, "m", None, operations.clone(), &options);
        let all_succeeded = record.results.iter().all(|result| result.ok);
        assert_eq!(record.results.len(), operations.len(), "{text}");
        if is_atomic && !all_succeeded {
            assert!(record.results.iter().all(|result| !result.ok), "{text}");
            assert_eq!(after.to_string(), before.to_string(), "a refused block changed the state: {text}");
        }
        if !is_atomic {
            check_single_operations(&before, &operations, &record, &after);
        }
        let stored_record = serde_json::to_string(&record).expect("a record is JSON");
        let stored_record: AppliedBlock = serde_json::from_str(&stored_record).expect("a record reads back");
        let mut restored = after.clone();
        stored_record.undo(&mut restored).unwrap_or_else(|error| panic!("{error}: {text}"));
        assert_eq!(restored.to_string(), before.to_string(), "after undo: {text}");
        stored_record.redo(&mut restored).unwrap_or_else(|error| panic!("{error}: {text}"));
        assert_eq!(restored.to_string(), after.to_string(), "after redo: {text}");
        assert_eq!(diff(&before, &after).is_empty(), before == after, "{text}");
    }
}

/// Checks that each operation alone has the effect it has in the block, and that a refused one changes
/// nothing.
fn check_single_operations(before: &Value, operations: &[Operation], record: &AppliedBlock, after: &Value) {
    let mut state = before.clone();
    for (operation, expected) in operations.iter().zip(&record.results) {
        // Texts are compared, since comparison of values ignores the order of fields.
        let text_before = state.to_string();
        let result = apply(&mut state, std::slice::from_ref(operation), &ApplyOptions::default()).remove(0);
        assert_eq!(
            (result.ok, result.reason),
            (expected.ok, expected.reason),
            "{operation:?} on {text_before}"
        );
        if !result.ok {
            assert_eq!(state.to_string(), text_before, "{operation:?}");
        }
    }
    assert_eq!(state.to_string(), after.to_string());
}

/// Makes an input for [`check_state()`]: a path, or a state with operations that often match parts of it.
#[must_use]
pub fn random_state_input(random: &mut RandomSource) -> Vec<u8> {
    if random.below(4) == 0 {
        let mut path: String = (0..random.below(8)).map(|_| *random.pick(PATH_STEPS)).collect();
        if random.below(2) == 0 {
            path = format!("/{}", path.replace('.', "/"));
        }
        return path.into_bytes();
    }
    let state: Map<String, Value> = (0..random.below(6))
        .map(|_| ((*random.pick(STATE_KEYS)).to_owned(), random_state_part(random, 0)))
        .collect();
    let count = 1 + random.below(12);
    let operations: Vec<Value> = (0..count)
        .map(|_| {
            let op =
                *random.pick(&["SET", "ADD", "SUB", "MUL", "DIV", "PUSH", "POP", "DELETE", "push", "NOD"]);
            let mut path = (*random.pick(STATE_KEYS)).to_owned();
            for _ in 0..random.below(3) {
                path += random.pick::<&str>(&[".a", ".b", "[0]", "[1]", "[-1]", "[\"c.d\"]", ".名", "."]);
            }
            match op {
                "POP" | "DELETE" => json!([op, path]),
                "SET" | "PUSH" => json!([op, path, random_state_part(random, 1)]),
                _ => json!([op, path, random_number(random)]),
            }
        })
        .collect();
    json!({"state": state, "operations": operations}).to_string().into_bytes()
}

const STATE_KEYS: &[&str] = &["a", "b", "c.d", "名", "list"];

const PATH_STEPS: &[&str] = &[
    "a",
    "名",
    ".",
    "..",
    "[0]",
    "[-1]",
    "[",
    "]",
    "\"",
    "[\"a.b\"]",
    "[\"\\n\"]",
    " ",
    "~1",
    "~",
    "0",
    "\\",
];

fn random_state_part(random: &mut RandomSource, depth: usize) -> Value {
    match random.below(if depth < 3 { 6 } else { 3 }) {
        0 => random.pick(&[Value::Null, Value::Bool(true), Value::from("text")]).clone(),
        1 | 2 => random_number(random),
        3 => (0..random.below(4)).map(|_| random_state_part(random, depth + 1)).collect(),
        _ => Value::Object(
            (0..random.below(4))
                .map(|_| ((*random.pick(STATE_KEYS)).to_owned(), random_state_part(random, depth + 1)))
                .collect(),
        ),
    }
}

fn random_number(random: &mut RandomSource) -> Value {
    match random.below(6) {
        0 => Value::from(random.next_bits()),
        1 => Value::from(f64::from_bits(random.next_bits())),
        2 => Value::from(0),
        3 => json!(random.below(100) as f64 / 10.0),
        _ => Value::from(random.below(20) as i64 - 10),
    }
}
