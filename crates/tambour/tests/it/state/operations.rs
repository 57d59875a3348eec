//! Effect of each operation, and reasons of refusals.

use serde_json::{Value, json};
use tambour::limits::StateLimits;
use tambour::schema::Schema;
use tambour::span::Place;
use tambour::state::{ApplyOptions, Op, Operation, StatePath, apply};

use super::{apply_one, apply_operations, outcome_words, parse_operations};

fn state() -> Value {
    json!({"n": 5, "d": 0.5, "text": "t", "list": [1, 2, 3], "empty": [], "object": {"a": {"b": 1}, "a.b": 2}, "null": null})
}

#[test]
fn each_operation_does_what_it_says() {
    // F-111, F-112
    for (operation, place, expected) in [
        (json!(["SET", "n", "x"]), "/n", json!("x")),
        (json!(["SET", "null", 1]), "/null", json!(1)),
        (json!(["SET", "list[-1]", null]), "/list", json!([1, 2, null])),
        (json!(["SET", "object[\"a.b\"]", 3]), "/object/a.b", json!(3)),
        (json!(["SET", "纯田真奈.心情.x", [1]]), "/纯田真奈", json!({"心情": {"x": [1]}})),
        (json!(["ADD", "n", 2]), "/n", json!(7)),
        (json!(["SUB", "n", 7]), "/n", json!(-2)),
        (json!(["MUL", "object.a.b", 4]), "/object/a/b", json!(4)),
        (json!(["DIV", "n", 2]), "/n", json!(2.5)),
        (json!(["ADD", "list[0]", 1]), "/list", json!([2, 2, 3])),
        (json!(["PUSH", "list", {"x": 1}]), "/list", json!([1, 2, 3, {"x": 1}])),
        (json!(["PUSH", "new.bag", 1]), "/new", json!({"bag": [1]})), // F-117
        (json!(["POP", "list"]), "/list", json!([1, 2])),
        (json!(["DELETE", "list[0]"]), "/list", json!([2, 3])),
        (json!(["DELETE", "object.a"]), "/object", json!({"a.b": 2})),
    ] {
        let (after, word) = apply_one(&state(), operation.clone());
        assert_eq!((word.as_str(), after.pointer(place)), ("ok", Some(&expected)), "{operation}");
    }
}

#[test]
fn what_cannot_be_done_is_refused_alone_and_changes_nothing() {
    // F-113, F-117
    for (operation, word) in [
        (json!(["ADD", "text", 1]), "operation_type_mismatch"),
        (json!(["ADD", "null", 1]), "operation_type_mismatch"),
        (json!(["ADD", "n", "1"]), "operation_type_mismatch"),
        (json!(["DIV", "n", 0]), "division_by_zero"),
        (json!(["DIV", "d", 0.0]), "division_by_zero"),
        (json!(["POP", "empty"]), "list_empty"),
        (json!(["POP", "object"]), "operation_type_mismatch"),
        (json!(["PUSH", "n", 1]), "operation_type_mismatch"),
        (json!(["PUSH", "null", 1]), "operation_type_mismatch"),
        (json!(["SET", "n.x", 1]), "path_through_scalar"),
        (json!(["SET", "null.x", 1]), "path_through_scalar"),
        (json!(["SET", "list.x", 1]), "path_mismatch"),
        (json!(["SET", "object[0]", 1]), "path_mismatch"),
        (json!(["SET", "list[3]", 1]), "index_out_of_range"),
        (json!(["SET", "list[-4]", 1]), "index_out_of_range"),
        (json!(["DELETE", "list[3]"]), "index_out_of_range"),
        (json!(["SET", "list[9223372036854775807]", 1]), "index_out_of_range"),
        (json!(["SET", "list[-9223372036854775808]", 1]), "index_out_of_range"),
        (json!(["SET", "new[0]", 1]), "path_missing"),
        (json!(["PUSH", "new[0]", 1]), "path_missing"),
        (json!(["ADD", "new", 1]), "path_missing"),
        (json!(["SUB", "new", 1]), "path_missing"),
        (json!(["MUL", "new.x", 1]), "path_missing"),
        (json!(["DIV", "new", 1]), "path_missing"),
        (json!(["POP", "new"]), "path_missing"),
        (json!(["DELETE", "object.x"]), "path_missing"),
        (json!(["SET", "", 1]), "path_invalid"),
        (json!(["SET", "a..b", 1]), "path_invalid"),
        (json!(["SET", "a[0", 1]), "path_invalid"),
        (json!(["MUL", "d", 1e308]), "number_out_of_range"), // R-81
        (json!(["INSERT", "n", 1]), "operation_unknown"),
        (json!(["SET", "n"]), "operation_arity"),
        (json!(["SET", "n", 1, 2]), "operation_arity"),
        (json!(["POP", "list", 1]), "operation_arity"),
        (json!(["DELETE", "n", null]), "operation_arity"),
        (json!(["SET"]), "operation_arity"),
        (json!(["SET", 3, 1]), "operation_malformed"),
        (json!({"SET": 1}), "operation_malformed"),
        (json!([]), "operation_malformed"),
        (json!("SET"), "operation_malformed"),
    ] {
        let before = state();
        let (after, found) = apply_one(&before, operation.clone());
        assert_eq!(found, word, "{operation}");
        if word != "ok" {
            assert_eq!(after.to_string(), before.to_string(), "{operation}");
        }
    }
    // The other operations still apply, in order.
    let mut state = json!({"n": 1});
    let block = json!([["ADD", "n", 1], ["ADD", "x", 1], ["MUL", "n", 10], ["NOD", "n"], ["SUB", "n", 3]]);
    let results = apply_operations(&mut state, &block);
    assert_eq!(outcome_words(&results), ["ok", "path_missing", "ok", "operation_unknown", "ok"]);
    assert_eq!(state, json!({"n": 17}));
    assert_eq!(results.iter().map(|result| result.index).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    assert_eq!(results[1].message.as_deref(), Some("there is nothing at `x`"));
}

#[test]
fn numbers_stay_exact() {
    // F-114
    let calculate = |place: Value, op: &str, operand: Value| {
        let (after, word) = apply_one(&json!({"n": place}), json!([op, "n", operand]));
        if word == "ok" { after["n"].to_string() } else { word }
    };
    for (place, op, operand, expected) in [
        (json!(0.1), "ADD", json!(0.2), "0.3"),
        (json!(0.3), "SUB", json!(0.1), "0.2"),
        (json!(1.1), "MUL", json!(1.1), "1.21"),
        (json!(4.35), "MUL", json!(100), "435.0"),
        (json!(0.6), "DIV", json!(0.2), "3.0"),
        (json!(10), "MUL", json!(0.5), "5"),
        (json!(1), "ADD", json!(0.5), "1.5"),
        (json!(1), "ADD", json!(1.0), "2"),
        (json!(6), "DIV", json!(3), "2"),
        (json!(-7), "DIV", json!(2), "-3.5"),
        (json!(1), "DIV", json!(3), "0.3333333333333333"),
        (json!(0), "MUL", json!(-0.0), "0"),
        (json!(1e300), "MUL", json!(1e-300), "1.0"),
        (json!(1e-300), "MUL", json!(1e-300), "0.0"),
        (json!(1e300), "ADD", json!(1e-300), "number_out_of_range"),
        (json!(9_007_199_254_740_993_i64), "ADD", json!(1), "9007199254740994"),
        (json!(i64::MAX), "ADD", json!(1), "9223372036854775808"),
        (json!(u64::MAX), "ADD", json!(1), "number_out_of_range"),
        (json!(u64::MAX), "MUL", json!(u64::MAX), "number_out_of_range"),
        (json!(i64::MIN), "SUB", json!(1), "number_out_of_range"),
        (json!(i64::MIN), "DIV", json!(-1), "9223372036854775808"),
        (json!(u64::MAX), "MUL", json!(1.5), "number_out_of_range"),
        (json!(1e20), "ADD", json!(1), "number_out_of_range"),
        (json!(1e20), "MUL", json!(2), "2e+20"),
        (json!(1e308), "MUL", json!(10), "number_not_finite"), // F-113
        (json!(-1e308), "MUL", json!(1e308), "number_out_of_range"), // R-81
    ] {
        assert_eq!(calculate(place.clone(), op, operand.clone()), expected, "{op} {place} {operand}");
    }
}

#[test]
fn names_are_read_in_any_case_and_told() {
    // F-111
    let operations = parse_operations(&json!([["set", "n", 1], ["Push", "l", 1], ["SET", "n", 2]]));
    assert_eq!(operations.iter().map(Operation::op).collect::<Vec<_>>(), ["SET", "PUSH", "SET"]);
    let codes: Vec<Option<&str>> = operations
        .iter()
        .map(|operation| operation.report(Place::START, 3).map(|report| report.rule.code))
        .collect();
    assert_eq!(codes, [Some("operation_case"), Some("operation_case"), None]);
    let mut state = json!({});
    assert_eq!(outcome_words(&apply(&mut state, &operations, &ApplyOptions::default())), ["ok"; 3]);
    assert_eq!(state, json!({"n": 2, "l": [1]}));
}

#[test]
fn results_say_what_was_and_what_is() {
    // F-116
    let mut state = state();
    let block = json!([
        ["SET", "null", null],
        ["SET", "new.x", 1],
        ["ADD", "n", 1],
        ["PUSH", "list", 4],
        ["POP", "list"],
        ["DELETE", "text"]
    ]);
    let results = serde_json::to_value(apply_operations(&mut state, &block)).expect("results are JSON");
    assert_eq!(
        results,
        json!([
            {"index": 0, "ok": true, "before": null, "after": null},
            {"index": 1, "ok": true, "after": 1},
            {"index": 2, "ok": true, "before": 5, "after": 6},
            {"index": 3, "ok": true, "after": 4},
            {"index": 4, "ok": true, "before": 4},
            {"index": 5, "ok": true, "before": "t"},
        ])
    );
}

#[test]
fn atomic_blocks_apply_as_a_whole_or_not_at_all() {
    // F-113
    let options = ApplyOptions { is_atomic: true, ..ApplyOptions::default() };
    let before = state();
    let mut after = before.clone();
    let block = json!([
        ["SET", "object.a.b", 9],
        ["DELETE", "n"],
        ["SET", "n", 1],
        ["SET", "x.y.z", 1],
        ["POP", "list"],
        ["PUSH", "b", 1],
        ["DELETE", "list[0]"],
        ["ADD", "text", 1],
        ["SET", "n", 2],
        ["NOD", "n"]
    ]);
    let results = apply(&mut after, &parse_operations(&block), &options);
    assert_eq!(after.to_string(), before.to_string());
    let mut expected = vec!["not_applied"; 10];
    expected[7] = "operation_type_mismatch";
    expected[9] = "operation_unknown";
    assert_eq!(outcome_words(&results), expected);
    assert!(results.iter().all(|result| result.before.is_none() && result.after.is_none()));
    assert!(results[0].message.as_deref().is_some_and(|message| message.contains("operation 7")));

    let block = json!([["SET", "x", 1], ["ADD", "x", 1]]);
    assert_eq!(outcome_words(&apply(&mut after, &parse_operations(&block), &options)), ["ok", "ok"]);
    assert_eq!(after["x"], json!(2));
}

#[test]
fn a_schema_refuses_what_breaks_it() {
    // F-115
    let schema = Schema::new(json!({
        "type": "object",
        "required": ["hp"],
        "properties": {"hp": {"type": "integer", "minimum": 0, "maximum": 100}, "list": {"items": {"type": "string"}}}
    }))
    .expect("a schema");
    let options = ApplyOptions { schema: Some(&schema), ..ApplyOptions::default() };
    let mut state = json!({"hp": 50, "list": ["a"]});
    let block = json!([
        ["ADD", "hp", 51],
        ["SET", "hp", "x"],
        ["DELETE", "hp"],
        ["PUSH", "list", 1],
        ["SET", "other.x", 1],
        ["ADD", "hp", 50],
        ["PUSH", "list", "b"]
    ]);
    let results = apply(&mut state, &parse_operations(&block), &options);
    let violation = "schema_violation";
    assert_eq!(outcome_words(&results), [violation, violation, violation, violation, "ok", "ok", "ok"]);
    assert_eq!(state.to_string(), r#"{"hp":100,"list":["a","b"],"other":{"x":1}}"#);
    assert!(results[0].message.as_deref().is_some_and(|message| message.contains("`/hp`")), "{results:?}");

    // Earlier violations do not block other operations, and are tracked as their list moves.
    let mut state = json!({"hp": 500, "list": ["a", 1]});
    let block = json!([
        ["SET", "x", 1],
        ["DELETE", "list[0]"],
        ["PUSH", "list", 2],
        ["SET", "hp", 1],
        ["SET", "hp", -1]
    ]);
    assert_eq!(
        outcome_words(&apply(&mut state, &parse_operations(&block), &options)),
        ["ok", "ok", violation, "ok", violation]
    );
}

#[test]
fn limits_are_reasons() {
    // F-222
    let mut limits = StateLimits::default();
    (limits.path, limits.depth, limits.value, limits.list) = (20, 4, 10, 3);
    (limits.values, limits.bytes, limits.operations) = (14, 40, 12);
    let options = ApplyOptions { limits, ..ApplyOptions::default() };
    let run =
        |state: &mut Value, block: &Value| outcome_words(&apply(state, &parse_operations(block), &options));
    let (exceeded, ok) = ("limit_exceeded", "ok");
    let block = json!([
        ["SET", "aaaaaaaaaaaaaaaaaaaaa", 1],
        ["SET", "a.b.c.d.e", 1],
        ["SET", "a", "elevenbytes"],
        ["SET", "a", [[[[1]]]]],
        ["SET", "a", [[1]]],
        ["SET", "a.b.c", [1]],
        ["SET", "l", [1, 2, 3, 4]],
        ["SET", "l", [1, 2, 3]],
        ["PUSH", "l", 4],
        ["PUSH", "b.c", [1]],
        ["PUSH", "b.c", [[1]]],
        ["SET", "n", 1],
        ["SET", "n", 2]
    ]);
    let mut state = json!({});
    assert_eq!(
        run(&mut state, &block),
        [
            exceeded,
            exceeded,
            exceeded,
            exceeded,
            ok,
            "path_mismatch",
            exceeded,
            ok,
            exceeded,
            ok,
            exceeded,
            ok,
            exceeded
        ]
    );
    assert_eq!(state.to_string(), r#"{"a":[[1]],"l":[1,2,3],"b":{"c":[[1]]},"n":1}"#);
    // The state now has 13 values.
    assert_eq!(
        run(&mut state, &json!([["SET", "x", 1], ["SET", "y", 1], ["DELETE", "l"], ["SET", "y", 1]])),
        [ok, exceeded, ok, ok]
    );
    let mut state = json!({});
    let text = "0123456789";
    let block = json!([
        ["SET", "a", text],
        ["SET", "b", text],
        ["SET", "c", text],
        ["SET", "d", text],
        ["DELETE", "a"],
        ["SET", "d", text]
    ]);
    assert_eq!(run(&mut state, &block), [ok, ok, ok, exceeded, ok, ok]);
    // A value above the limit may shrink.
    let mut state = json!({"a": "x".repeat(100)});
    assert_eq!(
        run(&mut state, &json!([["SET", "b", 1], ["SET", "a", "y"], ["SET", "b", 1]])),
        [exceeded, ok, ok]
    );
}

#[test]
fn operations_keep_their_form() {
    let block = json!([
        ["set", "a", null],
        ["POP", "a"],
        ["NOD", "a", 1],
        ["SET", "a", 1, 2],
        ["SET"],
        7,
        ["ADD", "a..b", 1]
    ]);
    let operations = parse_operations(&block);
    let text = serde_json::to_string(&operations).expect("operations are JSON");
    assert_eq!(serde_json::from_str::<Vec<Operation>>(&text).expect("and read again"), operations);
    assert!(text.starts_with(r#"[{"op":"SET","path":"a","value":null},{"op":"POP","path":"a"},"#), "{text}");
    assert_eq!(operations[5].value(), Some(&json!(7)));
    let refusal_reasons = |operations: &[Operation]| -> Vec<_> {
        operations.iter().map(|operation| operation.refusal().map(|refusal| refusal.reason)).collect()
    };
    assert_eq!(
        refusal_reasons(&serde_json::from_str::<Vec<Operation>>(&text).expect("JSON")),
        refusal_reasons(&operations)
    );
    assert!(Operation::parse_list(&json!({})).is_err());
}

#[test]
fn pointers_find_fields_and_elements() {
    // F-141
    let mut state = json!({"a.b": {"0": 1}, "list": [1, 2], "x/y": 1});
    let set_operation = |pointer: &str| {
        Operation::new(Op::Set, StatePath::from_pointer(pointer).expect("a pointer"), Some(json!(9)))
    };
    let operations =
        ["/a.b/0", "/list/1", "/list/2", "/x~1y", "/list/01", "/a.b/new", "/none/0"].map(set_operation);
    let results = apply(&mut state, &operations, &ApplyOptions::default());
    let (range, mismatch) = ("index_out_of_range", "path_mismatch");
    assert_eq!(outcome_words(&results), ["ok", "ok", range, "ok", mismatch, "ok", "path_missing"]);
    assert_eq!(state, json!({"a.b": {"0": 9, "new": 9}, "list": [1, 9], "x/y": 9}));
}
