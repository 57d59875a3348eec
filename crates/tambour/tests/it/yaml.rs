//! YAML in and out (F-004).

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use tambour::yaml::{self, YamlLimits};

fn parse_text(text: &str) -> Value {
    yaml::parse("the text", text).expect("it is YAML")
}

fn parse_error(text: &str) -> tambour::Error {
    yaml::parse("the text", text).expect_err("it is refused")
}

#[test]
fn writes_block_style_with_two_spaces_and_keeps_the_order() {
    let value = json!({
        "name": "Dark Forest", "atmosphere": "Eerie, misty",
        "creatures": ["Shadow Wolves", {"name": "Spirit", "moods": ["shy"]}, []],
        "about": "first line\nsecond line", "alone": {}, "age": 7, "open": true, "none": null,
    });
    // F-004
    assert_eq!(
        yaml::print(&value),
        "name: Dark Forest\n\
         atmosphere: Eerie, misty\n\
         creatures:\n  - Shadow Wolves\n  - name: Spirit\n    moods:\n      - shy\n  - []\n\
         about: |-\n  first line\n  second line\n\
         alone: {}\nage: 7\nopen: true\nnone: null\n"
    );
}

#[test]
fn quotes_text_only_where_a_reader_would_take_it_for_something_else() {
    let quoted_texts = [
        "yes",
        "No",
        "on",
        "OFF",
        "true",
        "null",
        "~",
        "",
        "007",
        "1.0",
        "1e3",
        "0x1F",
        "1_000",
        "2024-01-01",
        "12:30:00",
        ".inf",
        "- a",
        "a: b",
        "a #b",
        "#a",
        "&a",
        "*a",
        "!a",
        "%a",
        "@a",
        "`a",
        "{{user}}",
        "[a",
        "a:",
        " a",
        "a ",
        "? a",
        "---",
        "<<: a",
        "\ta",
        "|",
        ">",
        "'a'",
        "\"a\"",
    ];
    for text in quoted_texts {
        let line = yaml::print(&json!({ "k": text }));
        // F-004
        assert!(line.starts_with("k: \"") || line.starts_with("k: '"), "{line}");
        assert_eq!(parse_text(&line), json!({ "k": text }), "{line}");
    }
    let plain_texts = [
        "it's",
        "say \"hi\"",
        "a\\b",
        "a,b",
        "C#",
        "a:b",
        "https://example.org/x?y=1",
        "灰魂会出现",
        "😀",
        "x&y",
        "50%",
        "me@example.org",
        "word (v2)",
        "a-b",
        "nobody",
        "version 1.0",
    ];
    for text in plain_texts {
        // F-004
        assert_eq!(yaml::print(&json!({ "k": text })), format!("k: {text}\n"));
    }
}

#[test]
fn text_of_any_kind_reads_back_also_indented() {
    let texts = [
        "a\nb",
        "a\nb\n",
        "a\n\n\n",
        "\n",
        "\n\n",
        " \n ",
        "  lead\nx",
        "x \n y",
        "a\r\nb",
        "a\rb",
        "\u{85}",
        "a\u{2028}b\nc",
        "\u{feff}x",
        "\u{1}",
        "\u{0}",
        "\t\nx",
        "x\n\ty",
        "# a\nb",
        "---\na",
        "a\n...\nb",
        "- a\n- b",
        "</tag>\n<tag>",
        "\\n",
        "|\n x",
        "a\n ",
        "%YAML 1.2\n---",
    ];
    for text in texts {
        for value in [
            json!(text),
            json!({ "k": text, "z": 1 }),
            json!([text, [text]]),
            json!({ text: { text: [text] } }),
        ] {
            let printed = yaml::print(&value);
            // F-004
            assert_eq!(parse_text(&printed), value, "{printed}");
            if !value.is_string() {
                assert_eq!(parse_text(&yaml::indent_lines(&printed, 2)), value, "{printed}");
            }
        }
    }
    let long = json!({ "k".repeat(3000): "v", "w".repeat(900): "word ".repeat(5000) });
    assert_eq!(parse_text(&yaml::print(&long)), long);
    // F-004: coordinates, which some writers quote.
    assert_eq!(yaml::print(&json!({"x": 1, "y": "n"})), "x: 1\ny: n\n");
}

#[test]
fn reads_yaml_1_2_and_takes_nothing_for_what_it_is_not() {
    let text = "yes: no\non: off\nzip: 017\nsum: 1_000\nday: 2024-01-01\nat: 12:30:00\nhex: 0x1F\n1: one\n<<: x\nt: true\n";
    let value = json!({
        "yes": "no", "on": "off", "zip": "017", "sum": "1_000", "day": "2024-01-01", "at": "12:30:00", "hex": 31,
        "1": "one", "<<": "x", "t": true,
    });
    assert_eq!(parse_text(text), value);
    assert_eq!(parse_text("# nothing\n"), Value::Null);
    assert_eq!(parse_text("a: &x [1]\nb: *x\n"), json!({"a": [1], "b": [1]}));
}

#[test]
fn an_error_names_what_where_and_the_line() {
    let error = parse_error("name: a\nmood: b\nname: c\n");
    assert!(error.to_string().contains("`name` occurs twice"), "{error}");
    let place = error.location().expect("it has a place");
    assert_eq!((place.line, place.column, &*place.excerpt), (3, 1, "name: c"));
    let error = parse_error("好: [1, 2\n感: 3\n");
    assert_eq!(error.location().map(|place| (place.line, &*place.excerpt)), Some((2, "感: 3")));
    for text in
        ["a: b: c", "a: {{user}}", "[1]: a", "a: .inf", "a: 1\n---\nb: 2", "a: *x", "\"a", "- a\nb: c"]
    {
        let error = parse_error(text);
        assert!(error.to_string().starts_with("the text is not YAML as expected: "), "{error}");
        assert!(error.location().is_some(), "{error}");
    }
}

#[test]
fn reads_typed_values_and_names_the_field() {
    #[derive(serde::Deserialize, Debug)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only its errors are looked at")]
    struct Note {
        name: String,
        depth: u8,
    }
    assert!(yaml::parse_as::<Note>("the note", "name: a\ndepth: 3\n").is_ok());
    let error = yaml::parse_as::<Note>("the note", "name: a\ndepth: deep\n").expect_err("no number");
    assert_eq!(error.location().map(|place| place.line), Some(2), "{error}");
    let error = yaml::parse_as::<Note>("the note", "name: a\ndepht: 3\n").expect_err("no such field");
    assert!(error.to_string().contains("depht"), "{error}");
}

#[test]
fn what_would_cost_too_much_is_refused() {
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for level in 1..9 {
        let before = level - 1;
        bomb += &format!("a{level}: &a{level} [{}]\n", vec![format!("*a{before}"); 9].join(", "));
    }
    let merges = format!("a: &a {{b: 1}}\nc:\n{}", "  - *a\n".repeat(200));
    let hostile = [
        bomb,
        merges,
        "[".repeat(100_000),
        "{a: ".repeat(100_000),
        "- ".repeat(100_000),
        (0..200).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect(),
        "? ".repeat(50_000),
        "- x\n".repeat(200_000),
        "a: b\n---\n".repeat(50_000),
        "x".repeat(5 << 20),
        "&a ".repeat(50_000),
        "!".repeat(100_000),
    ];
    for text in hostile {
        let head: String = text.chars().take(40).collect();
        assert!(yaml::parse("the text", &text).is_err(), "{head}");
    }
    let limits = {
        let mut limits = YamlLimits::default();
        limits.aliases = 0;
        limits
    };
    assert!(yaml::parse_with("the text", "a: &x 1\nb: *x\n", &limits).is_err());
}

/// Generates text with all characters that are special in YAML, markup and templates.
fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[-?:,\\[\\]{}#&*!|>'\"%@` \n\ta-z0-9._~=<\\\\]{0,12}",
        "\\PC{0,8}",
        any::<String>(),
        "(yes|no|on|null|0x1|1e3|<<|=)[ \n]?"
    ]
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_filter("JSON has no others", |number| number.is_finite()).prop_map(Value::from),
        any_text().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((any_text(), inner), 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

proptest! {
    #[test]
    fn every_value_reads_back_as_it_was(value in any_value()) {
        let printed = yaml::print(&value);
        // F-004
        prop_assert_eq!(&parse_text(&printed), &value, "{}", printed);
        if !value.is_string() {
            prop_assert_eq!(&parse_text(&yaml::indent_lines(&printed, 2)), &value, "{}", printed);
        }
        prop_assert_eq!(yaml::print(&parse_text(&printed)), printed);
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "\\PC{0,40}", yaml in "[-?:,\\[\\]{}#&*!|>'\"%@` \n\ta-c01]{0,40}") {
        let _ = yaml::parse("the text", &text);
        let _ = yaml::parse("the text", &yaml);
    }
}
