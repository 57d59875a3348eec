//! What a check against a schema may cost.

use serde_json::{Map, Value, json};
use tambour::schema::Schema;

/// A chain of definitions, each made of the next twice by `link`; the last is an integer.
fn doubling(depth: usize, link: fn(Value) -> Value) -> Value {
    let definition = |at: usize| {
        let next = || json!({"$ref": format!("#/$defs/d{}", at + 1)});
        let schema = if at == depth {
            json!({"type": "integer"})
        } else {
            json!({"allOf": [link(next()), link(next())]})
        };
        (format!("d{at}"), schema)
    };
    json!({"$defs": (0..=depth).map(definition).collect::<Map<_, _>>(), "$ref": "#/$defs/d0"})
}

#[test]
fn references_that_double_the_work_are_not_followed() {
    let refused = |schema: Value, value: Value| {
        let schema = Schema::new(schema).unwrap();
        assert!(!schema.accepts(&value));
        let wrong = schema.check(&value, 8);
        assert!(wrong.len() == 1 && wrong[0].message.contains("4000000 steps"), "{wrong:?}");
    };
    refused(doubling(40, |next| next), json!(1));
    refused(doubling(40, |next| json!({"anyOf": [next]})), json!("a"));
    // In each element of a list of lists.
    let deep = (0..40).fold(json!(1), |value, _| json!([value]));
    refused(doubling(40, |next| json!({"items": next})), deep.clone());
    refused(json!({"allOf": [{"items": {"$ref": "#"}}, {"items": {"$ref": "#"}}]}), deep.clone());
    let named = json!({"$anchor": "a", "allOf": [{"items": {"$ref": "#a"}}, {"items": {"$ref": "#a"}}]});
    refused(named, deep);
    let fields = (0..40).fold(json!(1), |value, _| json!({"a": value}));
    let both = json!({"properties": {"a": {"$ref": "#"}}, "patternProperties": {"a": {"$ref": "#"}}});
    refused(both, fields.clone());
    let others =
        json!({"anyOf": [{"additionalProperties": {"$ref": "#"}}, {"additionalProperties": {"$ref": "#"}}]});
    refused(others, fields);
    // One that leads back to itself, and one whose address is not this document's.
    refused(json!({"allOf": [{"$ref": "#"}]}), json!(1));
    let elsewhere = json!({"$id": "http://a/b", "$defs": {"c": {"$id": "http://a/c"}}, "$ref": "http://a/c"});
    refused(elsewhere, json!(1));
}

#[test]
fn a_long_list_against_many_schemas_is_not_checked_for_minutes() {
    let many: Vec<_> = (0..5000).map(|at| json!({"items": {"minimum": -at}})).collect();
    let schema = Schema::new(json!({ "allOf": many })).unwrap();
    assert!(schema.accepts(&json!([1, 2, 3])));
    assert!(!schema.accepts(&Value::from(vec![1; 100_000])));
    // What a plain schema takes is not bounded by its length.
    let plain = Schema::new(json!({"items": {"type": "integer"}})).unwrap();
    assert!(plain.accepts(&Value::from(vec![1; 500_000])));
}

#[test]
fn recursive_schemas_of_usual_kinds_are_checked() {
    let tree = json!({
        "$defs": {"tree": {
            "properties": {"left": {"$ref": "#/$defs/tree"}, "right": {"$ref": "#/$defs/tree"}, "n%": {"type": "integer"}},
        }},
        "properties": {"root": {"$ref": "#/$defs/tree"}, "at": {"$ref": "#/$defs/tree/properties/n%25"}},
    });
    let tree = Schema::new(tree).unwrap();
    let grown = (0..14).fold(json!({"n%": 1}), |side, _| json!({"left": side, "right": side}));
    assert!(tree.accepts(&json!({"root": grown, "at": 2})));
    let wrong = tree.check(&json!({"root": {"left": {"n%": "x"}}, "at": "y"}), 8);
    assert_eq!(wrong.len(), 2, "{wrong:?}");
}
