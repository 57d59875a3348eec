//! Search for the JSON value within the text of a reply.

use serde_json::{Value, json};
use tambour::finding::FindingReport;
use tambour::limits::Limits;
use tambour::repair::json::{
    JsonEvent, JsonReader, JsonSink, TopKeyTracker, ValueOrigin, find, find_in_string,
};

use super::{assert_same_under_cuts, codes, read};

#[track_caller]
fn assert_found(text: &str, expected: Value) -> Vec<&'static str> {
    let found = find(text, &Limits::default());
    assert_eq!(found.value, Some(expected), "{text:?}");
    assert_same_under_cuts(text);
    codes(&found.reports)
}

#[test]
fn finds_the_value_in_fences_and_prose() {
    let value = || json!({"a": "b"});
    // P-025, S-053
    for text in [
        "{\"a\":\"b\"}",
        "\u{feff}{\"a\":\"b\"}",
        "```json\n{\"a\":\"b\"}\n```",
        "```JSON\r\n{\"a\":\"b\"}\r\n```\r\n",
        "```\n{\"a\":\"b\"}\n```",
        "~~~json\n{\"a\":\"b\"}\n~~~",
        "`````json\n{\"a\":\"b\"}\n`````",
        "```{\"a\":\"b\"}```",
    ] {
        assert!(assert_found(text, value()).is_empty(), "{text:?}");
    }
    // A string that is the whole text is not searched, even with white space around it.
    for text in ["\"{\" ", "\u{feff}\"{\" ", "\u{a0}\"{\"\u{a0}"] {
        assert!(assert_found(text, json!("{")).is_empty(), "{text:?}");
    }
    for text in [
        "Here it is: {\"a\":\"b\"}\nBye!",
        "As [1] and {name} say:\n{\"a\":\"b\"}",
        "Use `{` and `[` with care.\n\n```json\n{\"a\":\"b\"}\n```\nSee [docs](http://x).",
        "Run:\n```bash\necho {1..3} ${x}\n```\nResult:\n```json\n{\"a\":\"b\"}\n```",
        "```python\nd = {'x': 1}\n```\n```json\n{\"a\":\"b\"}\n```",
        "First {\"draft\": 1}, then\n```json\n{\"a\":\"b\"}\n```",
    ] {
        let codes = assert_found(text, value());
        assert!(codes.contains(&"json_text_around"), "{text:?}: {codes:?}"); // P-025: a warning
    }
}

#[test]
fn skips_thinking() {
    // P-025
    assert_found("<think>maybe {\"a\": 2}?</think>\n{\"a\":1}", json!({"a": 1}));
    assert_found("\n<thinking>\n{ or [ or \"\n</thinking>\n```json\n{\"a\":1}\n```", json!({"a": 1}));
    assert_found("maybe {\"a\": 2}?</think>{\"a\":1}", json!({"a": 1}));
    assert_found("{\"a\":\"<think>x</think>\"}", json!({"a": "<think>x</think>"}));
}

#[test]
fn a_fence_in_a_string_does_not_end_the_value() {
    // P-024
    let text =
        "```json\n{\"direct_response\": \"Use:\n```python\nprint(\"hi\")\n```\nDone.\", \"n\": 1}\n```\nOK?";
    let expected = json!({"direct_response": "Use:\n```python\nprint(\"hi\")\n```\nDone.", "n": 1});
    let codes = assert_found(text, expected);
    assert!(codes.contains(&"json_raw_control") && codes.contains(&"json_inner_quote"), "{codes:?}");
}

#[test]
fn a_fence_between_tokens_ends_the_value() {
    let text = "```json\n{\"a\": [1, 2\n```\nand {\"b\": 3} as well";
    assert_found(text, json!({"a": [1, 2]}));
    assert_found(&text.replace("```", "~~~"), json!({"a": [1, 2]}));
}

#[test]
fn finds_scalars_only_when_they_are_all() {
    for (text, value) in [
        ("42", json!(42)),
        (" -0.5e1\n", json!(-5.0)),
        ("\"a [b] c\"", json!("a [b] c")),
        ("```json\nnull\n```", Value::Null),
        ("````json\ntrue\n````", json!(true)),
        ("~~~\n42\n~~~", json!(42)),
        ("True", json!(true)),
        ("\"cut of", json!("cut of")),
        ("'single'", json!("single")),
    ] {
        assert_found(text, value);
    }
    for text in
        ["", " \n", "sorry, no JSON", "I can't do that.", "Use { and }.", "See [the docs].", "{name}!"]
    {
        let found = find(text, &Limits::default());
        assert_eq!(found.value, None, "{text:?}"); // S-054
        assert_same_under_cuts(text);
    }
}

#[test]
fn reads_json_inside_a_string_when_asked() {
    let found = find_in_string(&json!("{\"a\": 1,}"), &Limits::default()).expect("there is an object");
    assert_eq!(found.value, Some(json!({"a": 1})));
    assert_eq!(find_in_string(&json!("plain"), &Limits::default()), None);
    assert_eq!(find_in_string(&json!(1), &Limits::default()), None);
}

#[test]
fn hands_out_candidates_while_reading() {
    // P-032
    let text = "Draft: {\"v\":1}\n```json\n{\"v\":2}\n```\n```js\n{v:3}\n```";
    let reading = read(JsonReader::new_chat, &[text]);
    let starts: Vec<_> = reading.values.iter().map(|value| (value.start.index, value.start.origin)).collect();
    assert_eq!(starts, [(0, ValueOrigin::Bare), (1, ValueOrigin::JsonFence), (2, ValueOrigin::OtherFence)]);
    assert_eq!(reading.values[1].start.place.line, 3);
    assert_eq!(&text[reading.values[0].start.place.offset..reading.values[0].end.offset], "{\"v\":1}");
}

#[test]
fn a_broken_line_leaves_the_next_ones_alone() {
    // J-051
    let text = "{\"event\":\"a\",\"text\":\"cut\n{\"event\":\"b\"}\ngarbage {\n{\"event\":\"c\",\"x\":[1\n{\n \"event\":\"d\"\n}\n";
    assert_same_under_cuts(text);
    let reading = read(JsonReader::new_lines, &[text]);
    let values: Vec<Value> = reading.values.iter().map(|value| value.value.clone()).collect();
    assert_eq!(values[0], json!({"event": "a", "text": "cut"}));
    assert_eq!(values[1], json!({"event": "b"}));
    assert!(reading.values[0].end.is_auto_closed && !reading.values[1].end.is_auto_closed);
}

/// Collects the deltas of one key.
#[derive(Default)]
struct DeltaCollector {
    key: TopKeyTracker,
    deltas: Vec<String>,
}

impl JsonSink for DeltaCollector {
    fn event(&mut self, event: JsonEvent<'_>) {
        self.key.push_event(&event);
        if let (JsonEvent::StringDelta(text), Some("direct_response")) = (&event, self.key.current_key()) {
            self.deltas.push((*text).to_owned());
        }
    }

    fn report(&mut self, _: FindingReport) {}
}

#[test]
fn strings_grow_as_they_arrive() {
    let (mut reader, mut sink) = (JsonReader::new_chat(&Limits::default()), DeltaCollector::default());
    let mut texts = Vec::new();
    for piece in
        ["{\"x\":{\"direct_response\":\"no\"},\"direct_res", "ponse\": \"Hel", "lo wo", "rld.", "\"}"]
    {
        reader.push(piece, &mut sink);
        texts.push(sink.deltas.concat());
    }
    assert_eq!(texts, ["", "Hel", "Hello wo", "Hello world.", "Hello world."]);
}

#[test]
fn a_value_in_a_closed_comment_is_text() {
    let value = |text: &str| find(text, &Limits::default()).value;
    assert_eq!(value("<!-- {\"a\":1} -->\n{\"b\":2}"), Some(json!({"b": 2})));
    assert_eq!(value("```json\n// {\"a\":1}\n{\"b\":2}\n```"), Some(json!({"b": 2})));
    assert_eq!(value("<!-- {\"a\":1}"), Some(json!({"a": 1})));
    for text in ["<!-- {\"a\":1} -->\n{\"b\":2}", "```\n// {\"a\":1}\n[0\n", "a <!-- <!-- --> --> {\"a\":1}"]
    {
        assert_same_under_cuts(text);
    }
}

#[test]
fn an_object_on_its_line_ends_brackets_of_a_sentence() {
    for before in ["Half-open is [0, 1) here.", "Set a[0", "Write {\"x\": 1 then:", "Like {\"x\": ...:"] {
        for begin in ["\n", "\n```json\n", "\n  ```\n\n  "] {
            let text = format!("{before}{begin}{{\"a\": {{\"b\": [1]}}}}");
            assert_same_under_cuts(&text);
            let whole = read(super::new_seeking_reader, &[&text]);
            assert_eq!(
                whole.values.last().map(|built| built.value.to_string()).as_deref(),
                Some(r#"{"a":{"b":[1]}}"#),
                "{text}"
            );
        }
    }
    // An object that fits at its place is part of the value.
    for text in
        ["So [\n{\"a\":1},\n{\"a\":2}]", "So {\"x\":\n{\"a\":1},\"y\":2}", "So {\"x\":1 \"y\":\n{\"a\":1}}"]
    {
        assert_same_under_cuts(text);
        assert_eq!(read(super::new_seeking_reader, &[text]).values.len(), 1, "{text}");
    }
}
