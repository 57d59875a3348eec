//! The value of a text is the one that the command prints, and partial values lead to it.

use serde_json::{Value, json};
use tambour::limits::Limits;
use tambour::repair::json::{find_displayed, parse_slightly_broken};
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
        // A value that a limit cuts is printed, with a warning, but is none for a program.
        let is_cut = expected.reports.iter().any(|report| report.rule.code == "limit_exceeded");
        let expected_value = expected.value.as_deref().filter(|_| !is_cut).map(read);
        assert_eq!(found, expected_value, "{}", fixture.name);
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

/// Words of strings, among them those that may end a string or a value too early.
const WORDS: [&str; 14] = [
    "a", "b c", "it, then", "True", "null", "", " ", "x,", ", y", "1", "日本", "a\u{a0}", "// no", "say `no`",
];

/// Writes a random value in the style of Python or JSON, mixed.
fn write_value(random: &mut RandomSource, depth: usize, text: &mut String) {
    let quote = |random: &mut RandomSource| if random.below(2) == 0 { '\'' } else { '"' };
    let write_string = |random: &mut RandomSource, text: &mut String| {
        let mark = quote(random);
        text.push(mark);
        text.push_str(WORDS[random.below(WORDS.len())]);
        text.push(mark);
    };
    let blank = |random: &mut RandomSource| ["", " ", "\n", "\n  "][random.below(4)];
    match if depth == 0 { random.below(2) } else { random.below(5) } {
        0 => write_string(random, text),
        1 => text.push_str(["True", "False", "None", "true", "null", "0", "-1.5", "12"][random.below(8)]),
        kind => {
            let is_object = kind > 2;
            text.push(if is_object { '{' } else { '[' });
            let count = random.below(4);
            for index in 0..count {
                text.push_str(blank(random));
                if is_object {
                    let mark = quote(random);
                    text.push_str(&format!("{mark}key{index}{mark}:"));
                    text.push_str(blank(random));
                }
                write_value(random, depth - 1, text);
                text.push_str(blank(random));
                if index + 1 < count || random.below(3) == 0 {
                    text.push(',');
                }
            }
            text.push_str(blank(random));
            text.push(if is_object { '}' } else { ']' });
        }
    }
}

#[test]
fn slightly_broken_objects_are_the_values_that_are_found() {
    let inserts =
        ["'", "\"", ",", ":", "{", "}", "[", "]", "\\", "\n", " ", "True", "'s", "x", "//", "#", "```"];
    let margins = [("", ""), ("```json\n", "\n```"), ("Here's it: ", " I'm done."), ("", "\n'quoted'")];
    let mut random = RandomSource::new(11);
    let mut fast_count = 0;
    for _ in 0..40_000 {
        let mut object = "{'first': ".to_owned();
        write_value(&mut random, 3, &mut object);
        object.push('}');
        for _ in 0..random.below(3) {
            let places: Vec<usize> = object.char_indices().map(|(at, _)| at).collect();
            let at = places[random.below(places.len())];
            match random.below(2) {
                0 => drop(object.remove(at)),
                _ => object.insert_str(at, inserts[random.below(inserts.len())]),
            }
            if object.is_empty() {
                break;
            }
        }
        let (before, after) = margins[random.below(margins.len())];
        let text = format!("{before}{object}{after}");
        let found = find_json(&text, false).0;
        assert_eq!(find_json_value(&text), found, "{text:?}");
        let limits = Limits::default();
        if let Some(value) = parse_slightly_broken(&object, &limits) {
            fast_count += 1;
            assert_eq!(find_json(&object, false).0, Some(FoundJson::Value(value)), "{object:?}");
        }
    }
    assert!(fast_count > 10_000, "{fast_count}");
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

#[test]
fn whole_numbers_keep_their_digits() {
    for text in [
        "100000000000000000000",
        "{\"id\": 20000000000000000000}",
        "{'a': -30771041731397235000,}",
        "1234567",
    ] {
        let (found, _) = find_json(text, false);
        let found = match found.expect("a value") {
            FoundJson::Value(value) => value.to_string(),
            FoundJson::Text(text) => text,
        };
        let digits = |text: &str| text.chars().filter(char::is_ascii_digit).collect::<String>();
        assert_eq!(digits(&found), digits(text), "{found}");
    }
}

#[test]
fn a_string_with_quotes_and_colons_is_a_string() {
    for text in [r#""key\": value""#, r#""a\":1""#, r#" "a\": \"b\"" "#] {
        let (found, findings) = find_json(text, false);
        let expected: Value = serde_json::from_str(text).expect("JSON");
        let found = match found.expect("a value") {
            FoundJson::Value(value) => value,
            FoundJson::Text(text) => serde_json::from_str(&text).expect("JSON"),
        };
        assert_eq!((found, findings.len()), (expected, 0));
    }
    assert!(
        matches!(find_json(r#""a": 1, "b": "c""#, false).0, Some(FoundJson::Text(text)) if text.starts_with('{'))
    );
}

#[test]
fn a_value_that_a_limit_cuts_is_none() {
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    let (found, findings) = find_json(&deep, false);
    assert_eq!(found, None);
    assert_eq!(findings[0].code, "limit_exceeded");
}
