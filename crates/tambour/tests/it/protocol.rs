//! The registry of protocols (F-007) and the structures it gives (F-200).

use serde_json::json;
use tambour::options::Language;
use tambour::protocol::{CORE_PROTOCOL, ProtocolRegistry};
use tambour::state::{OPS, Op};
use tambour::structure::{ElementBody, ElementMisfit, ExpectedStructure};

#[test]
fn the_library_brings_the_core_and_one_for_each_other_tag() {
    // F-007
    let registry = ProtocolRegistry::builtin();
    let ids: Vec<&str> = registry.iter().map(|protocol| protocol.id.as_str()).collect();
    assert_eq!(
        ids,
        [
            CORE_PROTOCOL,
            "variable_update_v2",
            "status_bar",
            "details",
            "choice",
            "media",
            "tool_call",
            "ui_component"
        ]
    );
    for protocol in registry.iter() {
        for language in 0..2 {
            assert!(!protocol.instruction[language].is_empty(), "{}", protocol.id);
            let example = protocol.examples[language].concat();
            for element in &protocol.elements {
                assert!(example.contains(&format!("<{}", element.name)), "{}", protocol.id);
            }
        }
    }
    let all = ids.iter().copied();
    let (expected, warnings) = registry.expected_structure(all);
    assert_eq!((expected.elements.len(), warnings.len()), (9, 0));
    assert!(expected.elements.iter().all(|element| element.is_mandatory == (element.name == "content")));
}

#[test]
fn names_give_a_structure() {
    // F-007, F-200: the core is always included, and `find_misfit` knows the order.
    let registry = ProtocolRegistry::builtin();
    let (expected, warnings) = registry.expected_structure(["variable_update_v2", "variable_update_v2"]);
    assert_eq!(expected.names().collect::<Vec<_>>(), ["thought", "content", "variable_update"]);
    assert!(warnings.is_empty());
    assert_eq!(
        expected.find_misfit("content", &["variable_update"]),
        Some(ElementMisfit::Late("variable_update"))
    );
    let (core, _) = registry.expected_structure([]);
    assert_eq!(core.names().collect::<Vec<_>>(), ["thought", "content"]);
}

#[test]
fn an_unknown_name_is_a_warning_and_changes_nothing() {
    // F-007
    let registry = ProtocolRegistry::builtin();
    let (expected, warnings) = registry.expected_structure(["choise", "choice"]);
    assert_eq!(expected, registry.expected_structure(["choice"]).0);
    assert_eq!((warnings.len(), &*warnings[0].protocol), (1, "choise"));
    assert!(warnings[0].message.starts_with("unknown protocol `choise`; known: core, "), "{warnings:?}");
    assert!(registry.examples(["choise"], Language::En).len() == 1);
}

#[test]
fn entries_are_added_as_values() {
    // F-007
    let mut registry = ProtocolRegistry::builtin();
    let entry = json!({
        "id": "weather_v1",
        "version": 1,
        "tags": ["sky", {"name": "weather", "body": "json", "mandatory": true, "aliases": ["forecast"]}],
        "dependency": {"weather": ["content", "sky"]},
        "instruction": {"zh": "天气", "en": "the weather"},
        "examples": {"en": ["<sky>grey</sky>", "<weather>{}</weather>"]},
    });
    registry.add(&entry).expect("an entry");
    let protocol = registry.get("weather_v1").expect("it was added");
    assert_eq!((&*protocol.version, protocol.elements.len()), ("1", 2));
    let (expected, warnings) = registry.expected_structure(["weather_v1"]);
    assert!(warnings.is_empty(), "{warnings:?}");
    let weather = expected.get("weather").expect("a tag");
    assert_eq!(
        (weather.body, weather.is_mandatory, weather.predecessors.len()),
        (ElementBody::Json, true, 2)
    );
    assert_eq!(expected.find_element("Forecast").map(|found| &*found.element.name), Some("weather"));
    assert_eq!(registry.instructions(["weather_v1"], Language::Zh)[1], "天气");
    assert_eq!(
        registry.examples(["weather_v1"], Language::Zh)[1..],
        ["<sky>grey</sky>", "<weather>{}</weather>"]
    );
    // An entry of the same name replaces the old one.
    registry.add(&json!([{"id": "weather_v1"}, {"id": "empty", "instruction": "nothing"}])).expect("a list");
    assert!(registry.get("weather_v1").expect("still there").elements.is_empty());
    assert_eq!(registry.instructions(["empty"], Language::En)[1], "nothing");
}

#[test]
fn an_entry_that_is_none_says_why() {
    // F-007
    for (value, message) in [
        (json!("a"), "a protocol must be an object of id, version"),
        (json!({"id": " "}), "a protocol must have an `id`"),
        (json!({"id": "a", "tag": []}), "protocol `a`: unknown key of a protocol `tag`"),
        (json!({"id": "a", "tags": "b"}), "protocol `a`: `tags` must be a list"),
        (json!({"id": "a", "tags": ["b c"]}), "protocol `a`: `a tag` must contain names of tags"),
        (json!({"id": "a", "tags": ["b", "b"]}), "protocol `a`: `b` is listed twice"),
        (
            json!({"id": "a", "tags": [{"name": "b", "body": "xml"}]}),
            "protocol `a`: unknown `body` of a tag `xml`",
        ),
        (json!({"id": "a", "tags": [{"name": "b", "mandatory": 1}]}), "protocol `a`: `mandatory` of a tag"),
        (json!({"id": "a", "tags": [{"body": "text"}]}), "protocol `a`: `name` is missing"),
        (
            json!({"id": "a", "tags": ["b"], "dependency": {"c": "b"}}),
            "protocol `a`: unknown tag in `dependency` `c`",
        ),
        (json!({"id": "a", "instruction": 1}), "protocol `a`: `instruction` must be"),
        (json!({"id": "a", "examples": {"fr": "x"}}), "protocol `a`: `examples` must be"),
    ] {
        let mut registry = ProtocolRegistry::builtin();
        let error = registry.add(&value).expect_err("it is none").to_string();
        assert!(error.starts_with(message), "{value}: {error}");
        assert_eq!(registry, ProtocolRegistry::builtin(), "nothing half added");
    }
}

#[test]
fn dependencies_that_cannot_hold_are_left_out() {
    // F-200
    let mut registry = ProtocolRegistry::builtin();
    registry
        .add(&json!([
            {"id": "a", "tags": ["one"], "dependency": {"one": "two"}},
            {"id": "b", "tags": ["two"], "dependency": {"two": "one"}},
        ]))
        .expect("each is sound");
    let (expected, warnings) = registry.expected_structure(["a", "b"]);
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].message.contains("cycle"));
    assert!(!expected.must_follow("one", "one"));
    let (_, warnings) = registry.expected_structure(["a"]);
    assert!(warnings[0].message.contains("not active"), "{warnings:?}");
}

#[test]
fn a_structure_is_written_as_it_is_read() {
    // F-200
    let value = json!({
        "mandatory": [{"name": "story", "role": "content", "aliases": ["tale"]}],
        "optional": ["plan", {"name": "facts", "body": "json"}],
        "dependency": {"facts": ["story"]},
    });
    let expected = ExpectedStructure::from_json(&value).expect("a structure");
    assert_eq!(expected.elements[0].role(), "content");
    assert_eq!(expected.to_json(), value);
    let (generated, _) = ProtocolRegistry::builtin().expected_structure(["variable_update_v2"]);
    let second = ExpectedStructure::from_json(&generated.to_json()).expect("what was written");
    assert_eq!(second.to_json(), generated.to_json());
    for (wrong, message) in [
        (json!({"mandatory": [{"name": "a", "as": "b"}]}), "unknown key of a tag `as`; known: name, role"),
        (json!({"mandatory": [{"name": "a", "role": "b c"}]}), "`role` must contain names of tags"),
        (json!({"mandatory": [{"role": "b"}]}), "`name` is missing"),
    ] {
        let error = ExpectedStructure::from_json(&wrong).expect_err("none").to_string();
        assert!(error.starts_with(message), "{error}");
    }
}

#[test]
fn texts_name_every_operation_of_the_state() {
    // F-111
    let names = OPS.map(Op::name);
    let quoted = names.map(|name| format!("\"{name}\"")).join(", ");
    let (last, others) = names.split_last().unwrap();
    let alternatives = format!("{} or {last}", others.join(", "));
    let registry = ProtocolRegistry::builtin();
    let protocol = registry.iter().find(|protocol| protocol.id == "variable_update_v2").unwrap();
    let [chinese, english] = &protocol.instruction;
    let rule = tambour::catalogue::all().find(|entry| entry.rule.code == "operation_unknown").unwrap().rule;
    for (text, list) in [
        (chinese.as_str(), names.join("、")),
        (english.as_str(), alternatives.clone()),
        (rule.title, alternatives),
        (include_str!("../../../../docs/dialects/filament.md"), names.join(" ")),
        (include_str!("../../../../studio/src/pages/conversations/operations.ts"), format!("[{quoted}]")),
    ] {
        assert!(text.contains(&list), "{list} is not in {text}");
    }
}
