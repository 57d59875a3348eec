//! Values as text: all digits, memory bounded by the text, the same value as the tree.

use proptest::prelude::*;
use serde_json::{Value, json};
use tambour::limits::Limits;
use tambour::repair::json::{
    JsonEvent, JsonReader, JsonSink, ValueCollector, find, find_displayed, find_text, parse_strict,
    parse_strict_text,
};

use super::codes;

fn print_value(text: &str) -> String {
    find_text(text, &Limits::default()).value.unwrap_or_else(|| panic!("{text}: there is a value"))
}

#[test]
fn numbers_keep_all_their_digits() {
    // R-33
    for number in [
        "123456789012345678901",
        "12345678901234567.89",
        "0.1000000000000000055511151231257827",
        "-123456789012345678901234567890e-7",
        "1e999",
        "1E-999",
        "9007199254740993.0",
        "1.10",
        "-0",
        &"7".repeat(5000),
    ] {
        let text = format!("{{\"n\":{number}}}");
        assert_eq!(parse_strict_text(&text, &Limits::default()).as_deref(), Ok(text.as_str()));
        assert_eq!(print_value(&text), text);
        assert_eq!(find_text(&text, &Limits::default()).reports, [], "{number}");
        assert_eq!(parse_strict_text(number, &Limits::default()).as_deref(), Ok(number));
    }
    assert_eq!(
        print_value("[1, +1, .5, 0x1F, 1_000, 01, +123456789012345678901]"),
        "[1,1,0.5,31,1000,\"01\",123456789012345678901]"
    );
}

#[test]
fn a_tree_says_when_digits_are_lost() {
    // R-33
    for (number, is_lost) in [
        ("123456789012345678901", true),
        ("12345678901234567.89", true),
        ("9007199254740993.0", true),
        ("1e-400", true),
        ("18446744073709551615", false),
        ("18446744073709551616", true),
        ("-9223372036854775808", false),
        ("0.30000000000000004", false),
        ("100000000000000000000", false),
        ("1e300", false),
        ("0.1", false),
    ] {
        let text = format!("[0, {number}]");
        let found = find(&text, &Limits::default());
        assert_eq!(codes(&found.reports), vec!["json_number"; usize::from(is_lost)], "{number}");
        for report in found.reports {
            assert_eq!(&text[report.place.offset..report.end], number);
            assert_eq!((report.place.column, report.repair.as_deref()), (5, Some("rounded")));
        }
    }
}

#[test]
fn integers_of_any_length_are_read() {
    // P-019
    for length in 1..400 {
        for sign in ["", "-", "+"] {
            for digit in ["1", "9"] {
                let word = format!("{sign}{}", digit.repeat(length));
                let text = format!("{{\"a\":{word},\"b\":[{word}]}}");
                let limits = Limits::default();
                let printed = print_value(&text);
                assert_eq!(printed, text.replace('+', ""));
                let found = find(&text, &limits).value.expect("a value");
                let exact = sign != "+" && length < 19;
                assert!(
                    !exact || serde_json::from_str(&text).is_ok_and(|text: Value| found == text),
                    "{text}: {found}"
                );
                let fits = word.parse::<f64>().is_ok_and(f64::is_finite);
                assert_eq!(parse_strict(&text, &limits).is_ok(), sign != "+" && fits, "{text}");
                assert_eq!(parse_strict_text(&text, &limits).is_ok(), sign != "+");
            }
        }
    }
}

#[test]
fn the_last_of_equal_keys_is_kept_and_the_others_are_reported() {
    // P-030
    for (text, expected, expected_spans) in [
        ("{\"a\":1,\"a\":2}", "{\"a\":2}", vec!["\"a\":1,"]),
        ("{\"a\":1, \"a\":2, \"a\":3}", "{\"a\":3}", vec!["\"a\":1, ", "\"a\":2, "]),
        ("{\"b\":0,\"a\":{\"x\":1},\"c\":0,\"a\":2}", "{\"b\":0,\"c\":0,\"a\":2}", vec!["\"a\":{\"x\":1},"]),
        ("{\"a\":{\"b\":1,\"b\":2},\"a\":3}", "{\"a\":3}", vec!["\"b\":1,", "\"a\":{\"b\":1,\"b\":2},"]),
        ("[{\"a\\n\":1,\"a\\u000a\":2}]", "[{\"a\\n\":2}]", vec!["\"a\\n\":1,"]),
    ] {
        let printed = find_text(text, &Limits::default());
        assert_eq!(printed.value.as_deref(), Some(expected));
        let tree = find(text, &Limits::default());
        assert_eq!(tree.value, serde_json::from_str(expected).ok());
        for reports in [&printed.reports, &tree.reports] {
            let spans: Vec<&str> =
                reports.iter().map(|report| &text[report.place.offset..report.end]).collect();
            assert_eq!(spans, expected_spans, "{text}");
            assert!(codes(reports).iter().all(|&code| code == "duplicate_key"));
        }
    }
    // Many keys, each of them repeated; the last finding covers the keys that have no finding themselves.
    let members = |value: usize| (0..200).map(|n| format!("\"k{n}\":{value},")).collect::<String>();
    let text = format!("{{{}{}\"z\":0}}", members(1), members(2));
    let found = find_text(&text, &Limits::default());
    assert_eq!(found.value, Some(format!("{{{}\"z\":0}}", members(2))));
    let is_covered =
        |at: usize| found.reports.iter().any(|report| (report.place.offset..report.end).contains(&at));
    assert!((1..=members(1).len()).all(is_covered), "{:?}", found.reports);
    assert!(found.reports.len() <= 16);
}

#[test]
fn what_is_left_out_lies_in_the_span_of_a_finding() {
    // X-006
    for (text, code, spans) in [
        ("{\"a\":1 /* one\ntwo */, \"b\":2 // end\n}", "json_comment", vec!["/* one\ntwo */", "// end"]),
        ("[1, # one\n2]", "json_comment", vec!["# one"]),
        ("[1 /* never closed", "json_comment", vec!["/* never closed"]),
        (
            "{\"a\":1, ALPHA beta\ngamma (delta) \"b\":2}",
            "json_stray_text",
            vec!["ALPHA beta\ngamma (delta) "],
        ),
        ("{\"a\":1, words, \"b\":2}", "json_stray_text", vec![]),
    ] {
        let mut reports: Vec<(usize, usize)> = Vec::new();
        for report in find(text, &Limits::default()).reports {
            if report.rule.code == code {
                reports.push((report.place.offset, report.end));
            }
        }
        let found: Vec<&str> = reports.iter().map(|&(start, end)| &text[start..end]).collect();
        assert_eq!(found, spans, "{text}");
        super::assert_same_under_cuts(text);
    }
    let mut limits = Limits::default();
    limits.hold = 4;
    let text = "{\"abcdef\": 1}";
    let found = find(text, &limits);
    assert_eq!((found.value, found.reports[0].end), (Some(json!({"abcd": 1})), 8));
}

#[test]
fn limits_of_values_are_exact() {
    // X-007
    let mut limits = Limits::default();
    (limits.value, limits.items, limits.depth) = (20, 7, 3);
    // Makers of a text for each limit: bytes of text, keys and values, brackets.
    let bytes = |n: usize| format!("[\"{}\"]", "x".repeat(n));
    let items = |n: usize| format!("[{}]", vec!["1"; n - 1].join(","));
    let depth = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
    for (make, limit) in [(&bytes as &dyn Fn(usize) -> String, 20), (&items, 7), (&depth, 3)] {
        for (n, fits) in [(limit - 1, true), (limit, true), (limit + 1, false)] {
            let text = make(n);
            let found = find(&text, &limits);
            assert_eq!(codes(&found.reports).contains(&"limit_exceeded"), !fits, "{text}");
            assert_eq!(parse_strict(&text, &limits).is_ok(), fits, "{text}");
            let fits = fits || limit != 3;
            assert_eq!(
                parse_strict_text(&text, &limits).is_ok(),
                fits,
                "{text}: text is not limited but in depth"
            );
        }
    }
    // Several values share the limits.
    for (count, fits) in [(6, true), (7, true), (8, false)] {
        let found = find(&"[] ".repeat(count), &limits);
        assert_eq!(found.value.is_some(), fits, "{count}");
        assert_eq!(codes(&found.reports).contains(&"limit_exceeded"), !fits, "{count}");
    }
}

#[test]
fn memory_is_bounded_by_the_text() {
    // X-007: sixteen times the text, and the constant part of the limits.
    let patterns = [
        "{\"x\":1} ",
        "[] ",
        "{},",
        "[1,",
        "{\"a\":",
        "1,",
        "\"\",",
        "\"a\" ",
        "\u{1}",
        "{\"a\":\"\u{1}",
        "{a,",
        "'",
        "[/**/",
        "{\"a\":1,\"a\":1,",
        "[#\n",
        "x(",
        "</think>{\"a\":1}",
        "text [1] ",
        "{\"a\": 1}\n\n",
        "NaN,",
        "<",
        "\\u0001",
    ];
    let size = 512 << 10;
    for start in ["", "[", "[\"", "{\"a\":[", "{\"event\":1}\n["] {
        for pattern in patterns {
            let text = format!("{start}{}", pattern.repeat(size / pattern.len()));
            let max_alive = |read: &mut dyn FnMut()| allocation_counter::measure(read).bytes_max as usize;
            let mut limits = Limits::default();
            limits.items = 4 << 10;
            let max_bytes = 16 * text.len();
            let printed = max_alive(&mut || drop(find_text(&text, &limits)));
            assert!(printed < max_bytes, "{start:?} {pattern:?}: {printed} bytes for the text");
            let printed = max_alive(&mut || drop(parse_strict_text(&text, &limits)));
            assert!(printed < max_bytes, "{start:?} {pattern:?}: {printed} bytes for the strict text");
            // A tree takes more memory for each of its values, whose number `limits.items` bounds.
            let tree = max_alive(&mut || drop(find(&text, &limits)));
            let max_bytes = 2 * text.len() + 600 * limits.items;
            assert!(tree < max_bytes, "{start:?} {pattern:?}: {tree} bytes for the tree");
        }
    }
    // A reader remembers all keys of an object.
    let keys: String = (0..200_000).map(|n| format!("\"{n:x}\":1,")).collect();
    let text = format!("{{{keys}");
    let max_alive = allocation_counter::measure(|| drop(find_text(&text, &Limits::default()))).bytes_max;
    assert!(max_alive < 16 * text.len() as u64, "{max_alive} bytes for {}", text.len());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn text_and_tree_are_the_same_value(
        text in "([\\[\\]{}:,\"'\\\\ \\n`a1“，/#+~.]|\", \"|\": |```|\\\\\"|\\\\u|</think>|...|<think>|\\{\"a\":|\n\\{\"b\":1|true|12){0,40}",
    ) {
        let limits = Limits::default();
        let (tree, printed) = (find(&text, &limits), find_text(&text, &limits));
        prop_assert_eq!(printed.candidate_count, tree.candidate_count);
        prop_assert_eq!(&printed.span, &tree.span);
        let parsed = printed.value.as_deref().map(|text| serde_json::from_str::<Value>(text).expect("it is JSON"));
        prop_assert_eq!(&parsed, &tree.value, "{:?} {:?}", text, printed.value);
        prop_assert_eq!(printed.reports, tree.reports);
        let printed = parse_strict_text(&text, &limits).ok().map(|text| serde_json::from_str::<Value>(&text).expect("it is JSON"));
        prop_assert_eq!(printed, parse_strict(&text, &limits).ok());
    }
}

/// Collects numbers as written.
#[derive(Default)]
struct DigitCollector(Vec<String>);

impl JsonSink for DigitCollector {
    fn event(&mut self, event: JsonEvent<'_>) {
        if let JsonEvent::Digits(digits) = event {
            self.0.push(digits.to_owned());
        }
    }

    fn report(&mut self, _: tambour::finding::FindingReport) {}
}

#[test]
fn digits_are_the_same_however_cut() {
    let text = format!("[1, -2.50, {}, +3, 1e5]", "8".repeat(3000));
    for size in [1, 7, 1000, text.len()] {
        let (mut reader, mut digits) =
            (JsonReader::new_chat(&Limits::default()).with_exact_digits(), DigitCollector::default());
        for piece in text.as_bytes().chunks(size) {
            reader.push(std::str::from_utf8(piece).expect("ASCII"), &mut digits);
        }
        reader.finish(&mut digits);
        assert_eq!(digits.0, ["1", "-2.50", &"8".repeat(3000), "3", "1e5"], "{size}");
    }
    // By default, such a number becomes a text.
    let (mut reader, mut values) = (JsonReader::new_chat(&Limits::default()), ValueCollector::default());
    reader.push(&text, &mut values);
    reader.finish(&mut values);
    assert_eq!(values.values[0].value[2], json!("8".repeat(3000)));
}

#[test]
fn what_a_person_takes_for_a_value_is_found() {
    // R-32
    for (text, value, codes) in [
        ("\"a\": 1, \"b\": 2", "{\"a\":1,\"b\":2}", "missing_bracket"),
        (" \"a\": 1,\n\"b\": {\"c\": 2},\n", "{\"a\":1,\"b\":{\"c\":2}}", "missing_bracket trailing_comma"),
        ("> {\n>   \"a\": 1,\n>   \"b\": [1, 2]\n> }", "{\"a\":1,\"b\":[1,2]}", "stray_text"),
        (
            "Here:\n> {\n> \"a\": \"x > y\"\n> }\ndone",
            "{\"a\":\"x > y\"}",
            "stray_text text_around text_around",
        ),
        ("\"Note\": this is no member", "", ""),
        ("> a quotation of [1]", "[1]", "text_around"),
    ] {
        let found = find_displayed(text, &Limits::default());
        assert_eq!(found.value.unwrap_or_default(), value, "{text}");
        let found_codes: Vec<&str> =
            found.reports.iter().map(|report| report.rule.code.trim_start_matches("json_")).collect();
        assert_eq!(found_codes.join(" "), codes, "{text}");
        assert!(found.reports.iter().all(|report| report.end <= text.len()), "{text}: {:?}", found.reports);
    }
}
