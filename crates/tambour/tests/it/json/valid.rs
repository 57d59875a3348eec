//! Valid JSON is read as `serde_json` reads it, without reports; strict reading accepts nothing else.

use proptest::prelude::*;
use serde_json::{Map, Value};
use tambour::limits::Limits;
use tambour::repair::json::{Reader, find, strict};

use super::{READERS, read, same_under_cuts};

fn value() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        "[ -~]{0,12}",
        "[\\n\\t\"'\\\\{}\\[\\],:/#+` a😀”“，é]{0,10}",
        any::<String>(),
        Just("a\", \"b\": ".to_owned()),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::vec((text.clone(), inner), 0..6)
                .prop_map(|items| Value::Object(items.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

fn cut<'t>(text: &'t str, lengths: &[usize]) -> Vec<&'t str> {
    let (mut pieces, mut rest) = (Vec::new(), text);
    let mut lengths = lengths.iter().cycle();
    while !rest.is_empty() {
        let mut at = lengths.next().copied().unwrap_or(1).clamp(1, rest.len());
        while !rest.is_char_boundary(at) {
            at += 1;
        }
        pieces.push(&rest[..at]);
        rest = &rest[at..];
    }
    pieces
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn valid_json_is_left_alone(value in value(), lengths in proptest::collection::vec(1usize..9, 1..6)) {
        for text in [value.to_string(), serde_json::to_string_pretty(&value).expect("values are serialisable")] {
            // What is printed may be read back as a neighbouring float.
            let value: Value = serde_json::from_str(&text).expect("what was printed is read");
            prop_assert_eq!(strict(&text, &Limits::default()), Ok(value.clone()));
            let reading = read(Reader::document, &cut(&text, &lengths));
            prop_assert!(reading.reports.is_empty(), "{}: {:?}", text, reading.reports);
            prop_assert_eq!(&reading.values[0].value, &value);
            prop_assert!(!reading.values[0].end.closed_by_us && !reading.values[0].end.repaired);
            if value.is_object() || value.is_array() {
                let found = find(&text, &Limits::default());
                prop_assert_eq!(found.value, Some(value));
                prop_assert!(found.reports.is_empty(), "{}: {:?}", text, found.reports);
            }
        }
    }

    #[test]
    fn strict_agrees_with_serde_json(
        value in value(),
        at in any::<prop::sample::Index>(),
        part in "[\\[\\]{}:,\"'\\\\0-9eE.+ \\n\\-tfn\u{a0}/]{0,2}",
        drop in 0usize..3,
    ) {
        let text = mutate(&value.to_string(), at, &part, drop);
        let ours = strict(&text, &Limits::default());
        match (&ours, serde_json::from_str::<Value>(&text)) {
            (Ok(ours), Ok(theirs)) => prop_assert_eq!(ours, &theirs, "{}", text),
            (Err(_), Err(_)) => {}
            (_, theirs) => prop_assert!(false, "{}: {:?} {:?}", text, ours, theirs),
        }
    }

    #[test]
    fn broken_json_is_read_the_same_however_cut(
        value in value(),
        at in any::<prop::sample::Index>(),
        part in "[\\[\\]{}:,\"'\\\\0-9e.+ \\n`tf/#“”，\u{a0}]{0,6}",
        drop in 0usize..6,
        lengths in proptest::collection::vec(1usize..9, 1..6),
    ) {
        let text = mutate(&value.to_string(), at, &part, drop);
        for new in READERS {
            prop_assert_eq!(read(new, &cut(&text, &lengths)), read(new, &[&text]), "{}", text);
        }
    }

    #[test]
    fn soup_is_read_the_same_however_cut(
        text in "([\\[\\]{}:,\"'\\\\ \\n`a1“，/#+~]|\", \"|\": |```|\\\\\"|\\\\u|d83d|...|x\\(|<think>|\\{\"a\":|\n\\{\"b\":1|true){0,40}",
        lengths in proptest::collection::vec(1usize..9, 1..6),
    ) {
        for new in READERS {
            prop_assert_eq!(read(new, &cut(&text, &lengths)), read(new, &[&text]), "{}", text);
        }
        let _ = find(&text, &Limits::default());
        let _ = strict(&text, &Limits::default());
    }
}

fn mutate(text: &str, at: prop::sample::Index, part: &str, drop: usize) -> String {
    let bounds: Vec<usize> = (0..=text.len()).filter(|&at| text.is_char_boundary(at)).collect();
    let from = at.index(bounds.len());
    let to = (from + drop).min(bounds.len() - 1);
    format!("{}{part}{}", &text[..bounds[from]], &text[bounds[to]..])
}

#[test]
fn numbers_and_escapes_are_those_of_serde_json() {
    let texts = [
        "[0,-0,-0.0,1e5,1E+2,12345678901234567890,123456789012345678901234567890,-9223372036854775808,0.1]",
        "[1.7976931348623157e308,5e-324,1e-999]",
        "[\"\\u0041\\ud83d\\ude00\\u0000\\/\\b\\f\\\"\\\\\"]",
        "{\"a\":1,\"\":{},\"b\":[]}",
        " [ ] ",
    ];
    for text in texts {
        let expected: Value = serde_json::from_str(text).expect("it is valid");
        assert_eq!(strict(text, &Limits::default()), Ok(expected), "{text}");
        assert!(read(Reader::document, &[text]).reports.is_empty(), "{text}");
        same_under_cuts(text);
    }
}

#[test]
fn strict_names_the_place_of_the_first_fault() {
    for (text, code, line, column) in [
        ("", "json_no_value", 1, 1),
        ("{\"a\": 1,\n é: 2, }", "json_unquoted_key", 2, 2),
        ("[1] x", "json_several_values", 1, 5),
        ("[1,]", "json_trailing_comma", 1, 3),
        ("{\"a\":\"\n\"}", "json_raw_control", 1, 7),
        ("[\"\\ud800\"]", "json_escape", 1, 3),
        ("[1", "json_missing_bracket", 1, 3),
        ("{\"a\":1}}", "json_extra_bracket", 1, 8),
    ] {
        let fault = strict(text, &Limits::default()).expect_err(text);
        assert_eq!((fault.rule.code, fault.place.line, fault.place.column), (code, line, column), "{text:?}");
        assert_eq!(fault.repair, None);
    }
}
