//! Classes describe every event and result as the library writes it.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tambour::event::{
    AsideKind, Event, EventCollector, Extension, Failure, Notice, ToolCall, ToolError, ToolResult,
};
use tambour::verdict::{Contract, ContractForm};
use tambour::{InputEnd, Options, Pipeline};
use tambour_bindings::options::build_options;
use tambour_bindings::replies;
use tambour_bindings::types::{FieldKind, TypeDefinition, type_definitions};
use tambour_fixtures::{fixtures_folder, load_fixtures};

fn find<'a>(definitions: &'a [TypeDefinition], name: &str) -> &'a TypeDefinition {
    definitions.iter().find(|definition| definition.name == name).unwrap_or_else(|| panic!("no class {name}"))
}

/// Complaints about a JSON object that does not have the form of a class.
fn check_object(
    definitions: &[TypeDefinition],
    name: &str,
    value: &Value,
    complaints: &mut BTreeSet<String>,
) {
    let definition = find(definitions, name);
    let Some(object) = value.as_object() else {
        complaints.insert(format!("{name} is no object"));
        return;
    };
    for field in &definition.fields {
        if definition.is_open && field.name == "fields" {
            continue;
        }
        match object.get(&field.name) {
            None if field.may_be_absent => {}
            None => drop(complaints.insert(format!("{name}.{} is absent", field.name))),
            Some(Value::Null) if field.may_be_null || field.kind == FieldKind::Json => {}
            Some(value) => {
                check_kind(definitions, &format!("{name}.{}", field.name), &field.kind, value, complaints)
            }
        }
    }
    for key in object.keys().filter(|_| !definition.is_open) {
        if !definition.fields.iter().any(|field| field.name == *key) {
            complaints.insert(format!("{name} has no field {key}"));
        }
    }
}

fn check_kind(
    definitions: &[TypeDefinition],
    at: &str,
    kind: &FieldKind,
    value: &Value,
    complaints: &mut BTreeSet<String>,
) {
    let fits = match kind {
        FieldKind::Json => true,
        FieldKind::Text => value.is_string(),
        FieldKind::Integer => value.is_i64() || value.is_u64(),
        FieldKind::Number => value.is_number(),
        FieldKind::Flag => value.is_boolean(),
        FieldKind::Words(words) => value.as_str().is_some_and(|word| words.iter().any(|known| known == word)),
        FieldKind::Map(_) => value.is_object(),
        FieldKind::List(kind) => {
            for item in value.as_array().into_iter().flatten() {
                check_kind(definitions, at, kind, item, complaints);
            }
            value.is_array()
        }
        FieldKind::Object(name) => {
            check_object(definitions, name, value, complaints);
            true
        }
    };
    if !fits {
        complaints.insert(format!("{at} is {value}, not {kind:?}"));
    }
}

/// Events without a source in the fixtures.
fn rare_events() -> Vec<Event<'static>> {
    let error = ToolError { code: "gone".into(), message: "it is gone".to_owned() };
    let result = |ok: bool| ToolResult {
        call_id: "call_1".to_owned(),
        ok,
        result: ok.then(|| json!(1)),
        error: (!ok).then(|| error.clone()),
        elapsed_ms: 5,
    };
    let parse = |name: &str, data: Value| {
        Event::from(Extension::parse(name, &data).unwrap_or_else(|| panic!("{name} is an extension")))
    };
    vec![
        Event::Status { state: "running".into() },
        Event::Heartbeat { ts: "2026-01-01T00:00:00Z".into() },
        Event::Error(Failure::new("gone", "it is gone", true)),
        Event::Completed(Box::default()),
        Event::Aside { kind: AsideKind::Comment, text: "a".into() },
        result(true).into(),
        result(false).into(),
        Notice { code: "a".into(), message: "b".to_owned(), reference: Some("call_1".to_owned()) }.into(),
        ToolCall { call_id: "call_1".to_owned(), name: "f".to_owned(), args: json!({}) }.into(),
        parse("tool_start", json!({"call_id": "call_1", "name": "f"})),
        parse("form", json!({"call_id": "call_1", "title": "T"})),
        parse("picture", json!({"call_id": "call_1"})),
        parse("skill", json!({"call_id": "call_1"})),
        parse("media", json!({"type": "image", "src": "a.png", "alt": ""})),
        parse("ui_component", json!({"view": "a.b", "props": {}})),
    ]
}

#[test]
fn classes_fit_every_event_of_every_fixture() {
    let definitions = type_definitions();
    let (mut complaints, mut seen) = (BTreeSet::new(), BTreeSet::new());
    let mut check = |event: &Event<'_>| {
        let class = definitions.iter().find(|definition| definition.event.as_deref() == Some(event.name()));
        let class = class.unwrap_or_else(|| panic!("no class of the event {}", event.name()));
        seen.insert(event.name());
        check_object(&definitions, &class.name, &event.data(), &mut complaints);
    };
    rare_events().iter().for_each(&mut check);
    for fixture in load_fixtures(&fixtures_folder()).expect("the fixtures are readable") {
        let Ok(pipeline) = Pipeline::new(&fixture.dialect, &fixture.options) else { continue };
        let mut collector = EventCollector::default();
        let mut pipeline = pipeline.with_extensions(true).with_findings(true);
        pipeline.push(&fixture.input, &mut collector);
        pipeline.finish(&fixture.end, &mut collector);
        collector.events.iter().for_each(&mut check);
    }
    let known: BTreeSet<&str> =
        definitions.iter().filter_map(|definition| definition.event.as_deref()).collect();
    assert!(complaints.is_empty(), "{complaints:#?}");
    assert!(Extension::NAMES.iter().all(|name| known.contains(name)), "{known:?}");
    let unseen: Vec<&&str> = known.iter().filter(|name| !seen.contains(*name)).collect();
    assert!(unseen.is_empty(), "events that no input has: {unseen:?}");
}

#[test]
fn classes_come_after_those_that_they_need() {
    fn needed(kind: &FieldKind) -> Option<&str> {
        match kind {
            FieldKind::Object(name) => Some(name),
            FieldKind::List(kind) | FieldKind::Map(kind) => needed(kind),
            _ => None,
        }
    }
    let mut known = BTreeSet::new();
    for definition in type_definitions() {
        for name in definition.fields.iter().filter_map(|field| needed(&field.kind)) {
            assert!(known.contains(name) || name == definition.name, "{} needs {name}", definition.name);
        }
        assert!(known.insert(definition.name.clone()), "{} is there twice", definition.name);
    }
    assert!(known.len() > 45, "{known:?}");
}

#[test]
fn contracts_are_those_of_the_command() {
    let options = Options::default();
    for entry in tambour::dialect::DIALECTS {
        let contract = Contract::Dialect(entry);
        for form in ContractForm::ALL {
            let given = replies::contract(entry.name, form.name(), &options);
            let text = match contract.write(form, &options) {
                Ok(text) => text,
                Err(error) => {
                    let message = given.expect_err("no such form").to_string();
                    assert_eq!(message, error.to_string());
                    continue;
                }
            };
            match given.expect("the same form") {
                replies::ContractForm::Text(given) => {
                    assert_eq!(given, text, "{} {}", entry.name, form.name())
                }
                replies::ContractForm::Json(given) => {
                    let value: Value = serde_json::from_str(&text).expect("JSON");
                    assert_eq!(given, value, "{} {}", entry.name, form.name());
                    assert_eq!(given["$comment"].is_string(), form == ContractForm::JsonSchema);
                }
            }
        }
    }
    let message = replies::contract("plain", "xml", &options).expect_err("no form").to_string();
    assert!(message.contains("json-schema"), "{message}");
}

#[test]
fn records_fit_their_classes() {
    let definitions = type_definitions();
    let mut complaints = BTreeSet::new();
    let mut check = |name: &str, record: Value| check_object(&definitions, name, &record, &mut complaints);
    let options = Options::default();
    let verdict = replies::check("thinkingml", b"<final>\nHi.\n</final>", &options).expect("a contract");
    check("Verdict", json!(verdict));
    let repair = replies::repair("thinkingml", b"<final>Hi", &options, &InputEnd::stop()).expect("a reply");
    check("Repair", json!(repair));
    let tools = json!({"tools": {"add": {"type": "object"}}});
    let options = build_options(tools.as_object().expect("an object"), tambour::Profile::Lenient);
    let mut pipeline = Pipeline::new("toolcall", &options.expect("options")).expect("a dialect");
    let mut collector = EventCollector::default();
    pipeline.push(b"<tool_call>{\"name\": \"add\", \"arguments\": {}}</tool_call>", &mut collector);
    pipeline.finish(&InputEnd::stop(), &mut collector);
    check("Outcome", json!(replies::outcome(&pipeline)));
    assert!(complaints.is_empty(), "{complaints:#?}");
}
