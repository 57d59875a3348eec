//! Valid JSON is read as `serde_json` reads it, without reports; strict reading accepts only valid JSON.

use proptest::prelude::*;
use serde_json::{Map, Value};
use tambour::limits::Limits;
use tambour::repair::json::{JsonReader, find, parse_strict};

use super::{READERS, assert_same_under_cuts, read};

fn any_value() -> impl Strategy<Value = Value> {
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

fn split_text<'t>(text: &'t str, lengths: &[usize]) -> Vec<&'t str> {
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
    fn valid_json_is_left_alone(value in any_value(), lengths in proptest::collection::vec(1usize..9, 1..6)) {
        for text in [value.to_string(), serde_json::to_string_pretty(&value).expect("values are serialisable")] {
            // A printed float may be read back as a neighbouring one.
            let value: Value = serde_json::from_str(&text).expect("what was printed is read");
            prop_assert_eq!(parse_strict(&text, &Limits::default()), Ok(value.clone()));
            assert_same_mended(&text);
            let reading = read(JsonReader::new_document, &split_text(&text, &lengths));
            prop_assert!(reading.reports.is_empty(), "{}: {:?}", text, reading.reports);
            prop_assert_eq!(&reading.values[0].value, &value);
            prop_assert!(!reading.values[0].end.is_auto_closed && !reading.values[0].end.is_repaired);
            if value.is_object() || value.is_array() {
                let found = find(&text, &Limits::default());
                prop_assert_eq!(found.value, Some(value));
                prop_assert!(found.reports.is_empty(), "{}: {:?}", text, found.reports);
            }
        }
    }

    #[test]
    fn strict_agrees_with_serde_json(
        value in any_value(),
        at in any::<prop::sample::Index>(),
        part in "[\\[\\]{}:,\"'\\\\0-9eE.+ \\n\\-tfn\u{a0}/]{0,2}",
        drop_count in 0usize..3,
    ) {
        let text = mutate(&value.to_string(), at, &part, drop_count);
        assert_same_mended(&text);
        let result = parse_strict(&text, &Limits::default());
        match (&result, serde_json::from_str::<Value>(&text)) {
            (Ok(result), Ok(reference)) => prop_assert_eq!(result, &reference, "{}", text),
            (Err(_), Err(_)) => {}
            (_, reference) => prop_assert!(false, "{}: {:?} {:?}", text, result, reference),
        }
    }

    #[test]
    fn broken_json_is_read_the_same_however_cut(
        value in any_value(),
        at in any::<prop::sample::Index>(),
        part in "[\\[\\]{}:,\"'\\\\0-9e.+ \\n`tf/#“”，\u{a0}]{0,6}",
        drop_count in 0usize..6,
        lengths in proptest::collection::vec(1usize..9, 1..6),
    ) {
        let text = mutate(&value.to_string(), at, &part, drop_count);
        for constructor in READERS {
            prop_assert_eq!(read(constructor, &split_text(&text, &lengths)), read(constructor, &[&text]), "{}", text);
        }
    }

    #[test]
    fn soup_is_read_the_same_however_cut(
        text in "([\\[\\]{}:,\"'\\\\ \\n`a1“，/#+~]|\", \"|\": |```|\\\\\"|\\\\u|d83d|...|x\\(|<think>|\\{\"a\":|\n\\{\"b\":1|true){0,40}",
        lengths in proptest::collection::vec(1usize..9, 1..6),
    ) {
        for constructor in READERS {
            prop_assert_eq!(read(constructor, &split_text(&text, &lengths)), read(constructor, &[&text]), "{}", text);
        }
        let _ = find(&text, &Limits::default());
        let _ = parse_strict(&text, &Limits::default());
    }
}

/// Compares the fast path of valid JSON with the repairing reader.
#[track_caller]
fn assert_same_mended(text: &str) {
    let (limits, mark) = (Limits::default(), '\u{feff}');
    // A byte order mark switches the fast path off.
    let (found, mended) = (find(text, &limits), find(&format!("{mark}{text}"), &limits));
    assert_eq!(found.value, mended.value, "{text}");
    assert_eq!(
        (found.candidate_count, found.is_repaired),
        (mended.candidate_count, mended.is_repaired),
        "{text}"
    );
    assert_eq!(found.is_auto_closed, mended.is_auto_closed, "{text}");
    assert_eq!(super::codes(&found.reports), super::codes(&mended.reports), "{text}");
    if let Some(value) = found.value {
        let original_offset = |at: usize| at - mark.len_utf8();
        assert_eq!(
            (found.span.start, found.span.end),
            (original_offset(mended.span.start), original_offset(mended.span.end)),
            "{text}"
        );
        let surrounding_text = [&text[..found.span.start], &text[found.span.end..]].concat();
        if found.reports.is_empty() && surrounding_text.bytes().all(|byte| byte.is_ascii_whitespace()) {
            assert_eq!(parse_strict(text, &limits), Ok(value), "{text}");
        }
    }
}

#[test]
fn a_whole_text_is_found_as_it_is_mended() {
    let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    for text in [
        "{}",
        " [ ] ",
        "{\"a\":1}",
        "[1,]",
        "[1 2]",
        "{\"a\":1,\"a\":2}",
        "{\"a\":1 \"b\":2}",
        "[-0,-1,0,00,01,1.50,1e5,-1.5E-3]",
        "[0.1234567890123456789]",
        "[123456789012345678901234567890]",
        "[1e400]",
        "[1.]",
        "[.5]",
        "[+1]",
        "[-]",
        "[1e]",
        "[9007199254740993, 18446744073709551615, 18446744073709551616, -9223372036854775808, -9223372036854775809]",
        "[1.7976931348623157e308, 5e-324, 123456789012.345, -0.0]",
        r#"["\ud83d\ude00", "\u00e9\/\b\f\n\r\t\"\\", "\u0000", "\uFFFF"]"#,
        r#"["\ud83d"]"#,
        r#"["\ude00"]"#,
        r#"["\ud83dx"]"#,
        r#"["\ud83d\u0041"]"#,
        r#"["\udfff\udfff"]"#,
        r#"["\x"]"#,
        r#"["\u12"]"#,
        "[\"a\tb\"]",
        "[\"a\nb\"]",
        "[\"0123456789abcdefg\u{1}h\"]",
        "[\"0123456789abcdefg\\nhijk\u{7f}\"]",
        "[\"open",
        "[\"0123456789abcdefghijklmn",
        "[tru]",
        "[true]",
        "[truex]",
        "[nullnull]",
        "[true false]",
        "{\"a\"}",
        "{a:1}",
        "{\"a\":}",
        "{\"a\":1",
        "[1]]",
        "[1] x",
        "[1] [2]",
        "\u{feff}[1]",
        "[1]\u{a0}",
        "[\u{a0}1]",
        "{\"a\":{\"b\":[{\"c\":null}]}}",
        "[[],{},\"\",0]",
        "{\"\":{\"\":\"\"}}",
        "[\"你好, 😀 }]\"]",
        "// c\n[1]",
        "[1 /* c */]",
        "[NaN]",
        "['a']",
    ] {
        assert_same_mended(text);
    }
    for depth in [1, 127, 128, 129, 200] {
        assert_same_mended(&deep(depth));
        assert_same_mended(&deep(depth).replace('[', "{\"a\":[").replace(']', "]}"));
    }
}

/// The fast path counts limits like the repairing reader.
#[test]
fn limits_of_a_whole_text_are_those_of_one_that_is_mended() {
    let text = r#"{"key": ["value", 1234, true, {"k\u00e9": "\n\n"}], "none": null}"#;
    let narrowings: [fn(&mut Limits, usize); 4] = [
        |target, limit| target.value = limit,
        |target, limit| target.items = limit,
        |target, limit| target.depth = limit,
        |target, limit| target.hold = limit,
    ];
    for limit in 0..40 {
        for narrow in narrowings {
            let mut limits = Limits::default();
            narrow(&mut limits, limit);
            let (found, padded) = (find(text, &limits), find(&format!("{text} "), &limits));
            let mended = find(&format!("\u{feff}{text}"), &limits);
            assert_eq!(found.value, mended.value, "{limit}");
            assert_eq!((found.value, found.reports.len()), (padded.value, mended.reports.len()), "{limit}");
        }
    }
}

fn mutate(text: &str, at: prop::sample::Index, part: &str, drop_count: usize) -> String {
    let bounds: Vec<usize> = (0..=text.len()).filter(|&at| text.is_char_boundary(at)).collect();
    let from = at.index(bounds.len());
    let to = (from + drop_count).min(bounds.len() - 1);
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
        assert_eq!(parse_strict(text, &Limits::default()), Ok(expected), "{text}");
        assert!(read(JsonReader::new_document, &[text]).reports.is_empty(), "{text}");
        assert_same_under_cuts(text);
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
        let fault = parse_strict(text, &Limits::default()).expect_err(text);
        assert_eq!((fault.rule.code, fault.place.line, fault.place.column), (code, line, column), "{text:?}");
        assert_eq!(fault.repair, None);
    }
}
