//! The value of a text is the one that the command prints, and partial values lead to it.

use serde_json::{Value, json};
use tambour::limits::Limits;
use tambour::repair::json::find_displayed;
use tambour_bindings::json::{FoundJson, find_json, find_json_value};
use tambour_bindings::partial::{PartialReader, ValueStep};
use tambour_fixtures::random::RandomSource;
use tambour_fixtures::{fixtures_folder, load_fixtures};

#[test]
fn values_are_those_of_the_command() {
    let mut found_count = 0;
    for fixture in load_fixtures(&fixtures_folder()).expect("the fixtures are readable") {
        let Ok(text) = std::str::from_utf8(&fixture.input) else { continue };
        let expected = find_displayed(text, &Limits::default());
        let (found, findings) = find_json(text, false);
        let is_same = match (&found, find_json_value(text)) {
            (Some(FoundJson::Text(_)), Some(FoundJson::Value(_))) => false,
            (found, lone) => *found == lone,
        };
        assert!(is_same, "{}", fixture.name);
        // Values as deep as the limit are deeper than serde_json reads; those are compared as text.
        let read = |text: &str| serde_json::from_str::<Value>(text).map_err(|_| text.to_owned());
        let found = found.map(|value| match value {
            FoundJson::Value(value) => read(&value.to_string()),
            FoundJson::Text(text) => read(&text),
        });
        assert_eq!(found, expected.value.as_deref().map(read), "{}", fixture.name);
        assert_eq!(findings.len(), expected.reports.len(), "{}", fixture.name);
        found_count += usize::from(found.is_some());
    }
    assert!(found_count > 1000, "{found_count}");
}

#[test]
fn lone_objects_are_the_values_that_are_found() {
    let parts = [
        "Sure: ",
        "\n",
        "```json\n",
        "```",
        "```\n",
        "[1] ",
        "{\"a\": 1}",
        "{\"a\": [{\"b\": \"}\"}]}",
        "{x}",
        "<think>",
        "</think>",
        "~~~\n",
        "// no\n",
        "'q' ",
        "\"q\" ",
        "{\"n\": 12345678901234567890123}",
        "{\"a\": 1, \"a\": 2}",
        " 42 ",
        "`",
        "> ",
        "◁think▷",
        "{",
        "}",
        "json",
        "Done.",
    ];
    let mut random = RandomSource::new(7);
    let mut lone_count = 0;
    for _ in 0..60_000 {
        let count = random.below(6) + 1;
        let text: String = (0..count).map(|_| parts[random.below(parts.len())]).collect();
        let (found, findings) = find_json(&text, false);
        let value = find_json_value(&text);
        assert_eq!(value, found, "{text:?}");
        lone_count += usize::from(value.is_some() && !findings.is_empty());
    }
    assert!(lone_count > 1000, "{lone_count}");
}

#[test]
fn digits_are_kept() {
    let (found, _) = find_json("Sum: {'n': 12345678901234567890123}", false);
    assert_eq!(found, Some(FoundJson::Text(r#"{"n":12345678901234567890123}"#.to_owned())));
}

/// Builds the value of steps.
fn build(steps: &[ValueStep]) -> Option<Value> {
    let mut stack: Vec<(Value, Option<String>)> = Vec::new();
    let mut root = None;
    let mut text = String::new();
    let mut put = |stack: &mut Vec<(Value, Option<String>)>, value: Value| match stack.last_mut() {
        Some((Value::Array(items), _)) => items.push(value),
        Some((Value::Object(fields), key)) => drop(fields.insert(key.take().expect("a key"), value)),
        _ => root = Some(value),
    };
    for step in steps {
        match step {
            ValueStep::Start => stack.clear(),
            ValueStep::ObjectStart => stack.push((json!({}), None)),
            ValueStep::ArrayStart => stack.push((json!([]), None)),
            ValueStep::Key(key) => stack.last_mut().expect("an object").1 = Some(key.clone()),
            ValueStep::End => {
                let (value, _) = stack.pop().expect("an open value");
                put(&mut stack, value);
            }
            ValueStep::StringStart => text.clear(),
            ValueStep::StringDelta(piece) => text.push_str(piece),
            ValueStep::StringEnd => put(&mut stack, Value::String(std::mem::take(&mut text))),
            ValueStep::Number(number) => put(&mut stack, Value::Number(number.clone())),
            ValueStep::Bool(flag) => put(&mut stack, Value::Bool(*flag)),
            ValueStep::Null => put(&mut stack, Value::Null),
            ValueStep::Complete => {}
        }
    }
    root
}

#[test]
fn steps_lead_to_the_value() {
    let reply = "Sure [1]:\n```json\n{'a': [1, 2.5, True, None], \"b\": {\"c\": \"x\\ny\"}, d: [[]],}\n```";
    let expected = json!({"a": [1, 2.5, true, null], "b": {"c": "x\ny"}, "d": [[]]});
    for size in [1, 3, 7, 1000] {
        let mut reader = PartialReader::new(&Limits::default());
        let mut steps = Vec::new();
        reply.as_bytes().chunks(size).for_each(|chunk| steps.extend(reader.push(chunk)));
        steps.extend(reader.finish());
        assert_eq!(build(&steps), Some(expected.clone()), "{size}");
    }
}

#[test]
fn steps_stop_at_the_limit() {
    let mut limits = Limits::default();
    limits.input = 8;
    let mut reader = PartialReader::new(&limits);
    let count: usize = (0..1000).map(|_| reader.push(b"[1, ").len()).sum();
    assert!(count < 8, "{count}");
}
