//! Options by name, with dots or without.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use tambour::Profile;
use tambour::settings::all_settings;
use tambour_bindings::input_end::{FINISH_REASONS, parse_end};
use tambour_bindings::options::build_options;

fn build(values: &Value) -> tambour::Result<tambour::Options> {
    let values: Map<String, Value> = values.as_object().cloned().unwrap_or_default();
    build_options(&values, Profile::Lenient)
}

#[test]
fn names_without_dots_are_unique() {
    let names: Vec<&str> = all_settings().map(|(_, setting)| setting.name).collect();
    let plain: BTreeSet<String> = names.iter().map(|name| name.replace('.', "_")).collect();
    assert_eq!(plain.len(), names.len());
}

#[test]
fn both_spellings_set_the_option() {
    let options = build(&json!({"limits_input": 5, "limits.hold": 7, "profile": "strict"})).expect("options");
    assert_eq!((options.limits.input, options.limits.hold, options.profile), (5, 7, Profile::Strict));
    let error = build(&json!({"limits_inputs": 5})).expect_err("no option");
    assert!(error.to_string().contains("`limits_inputs`"), "{error}");
    assert!(build(&json!({"limits_input": -5})).is_err());
}

#[test]
fn tools_may_be_a_list() {
    let schema = json!({"type": "object", "required": ["a"]});
    let function = json!({"name": "add", "description": "Adds.", "parameters": schema});
    for tool in [
        json!({"type": "function", "function": function}),
        function,
        json!({"name": "add", "input_schema": schema}),
    ] {
        let tools = build(&json!({ "tools": [tool] })).expect("tools").tools.expect("a registry");
        let tool = tools.get("add").expect("the tool");
        assert_eq!(tool.schema()["required"], json!(["a"]));
    }
    for tools in [json!([{}]), json!([5]), json!([{"name": "a"}, {"name": "a"}])] {
        assert!(build(&json!({ "tools": tools })).is_err(), "{tools}");
    }
}

#[test]
fn ends_have_words() {
    for word in FINISH_REASONS {
        let end = parse_end(Some(word), false).expect("a reason");
        assert_eq!(end.is_truncated(), !["stop", "tool_calls"].contains(&word), "{word}");
        assert!(parse_end(Some(word), true).expect("a reason").is_truncated(), "{word}");
    }
    assert!(parse_end(None, false).expect("an end").is_truncated());
    assert!(parse_end(Some("end"), false).is_err());
}

#[test]
fn tool_loop_is_an_option_of_programs() {
    assert!(build(&json!({ "tool_loop": true })).expect("options").tool_loop);
    let error = build(&json!({ "tool_loop": "yes" })).expect_err("no flag").to_string();
    assert!(error.contains("`tool_loop` is true or false"), "{error}");
}
