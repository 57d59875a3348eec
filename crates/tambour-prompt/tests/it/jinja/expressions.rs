use serde_json::{Map, Value, json};
use tambour_prompt::jinja::{evaluate, evaluate_condition, list_variables};

fn map() -> Map<String, Value> {
    let values =
        json!({"年龄": 20, "name": "Tom", "scores": [1, 5], "p": {"q": true}, "empty": "", "none": null});
    values.as_object().cloned().expect("an object")
}

#[test]
fn expressions_have_values() {
    for (expression, value) in [
        ("年龄 >= 18", json!(true)),
        ("年龄 + scores[1]", json!(25)),
        ("name == 'Tom' and p.q", json!(true)),
        ("name in ['Tom', 'Ann']", json!(true)),
        ("scores | length", json!(2)),
        ("name ~ '!'", json!("Tom!")),
        ("'a' if 年龄 > 30 else 'b'", json!("b")),
        ("missing is defined", json!(false)),
        ("missing | default(3)", json!(3)),
        ("none", json!(null)),
    ] {
        assert_eq!(evaluate(expression, &map()).expect(expression), value, "{expression}");
    }
}

#[test]
fn conditions_hold_or_not_or_lack_a_variable() {
    for (expression, holds) in [
        ("年龄 >= 18", Some(true)),
        ("年龄 < 18", Some(false)),
        ("empty", Some(false)),
        ("none", Some(false)),
        ("scores", Some(true)),
        ("missing", None),
        ("missing > 3", None),
        ("not missing", None),
        ("p.nothing == 1", None),
        ("年龄 > 1 or missing", Some(true)),
    ] {
        assert_eq!(evaluate_condition(expression, &map()).expect(expression), holds, "{expression}");
    }
    assert_eq!(list_variables("a > b.c and a").expect("an expression"), ["a", "b"]);
}

#[test]
fn what_is_no_expression_or_costs_too_much_is_an_error() {
    let long = format!("{}1", "-".repeat(3000));
    let deep = format!("{}1{}", "(".repeat(1500), ")".repeat(1500));
    for expression in [
        "",
        "1 +",
        "a = 1",
        "{% if %}",
        "range(100000) | list",
        "'x' * 100000000",
        "debug()",
        &long,
        &deep,
        "1 / 0",
    ] {
        let error = evaluate(expression, &map()).expect_err(expression);
        assert!(error.code().is_some(), "{expression}: {error}");
    }
}
