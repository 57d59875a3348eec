//! Repairs, one fault a line: text, value read, and reported codes.

use tambour::limits::Limits;
use tambour::repair::json::find;
use tambour::repair::rules;

use super::{assert_same_under_cuts, codes, json};

/// Text, value, codes without `json_`; `=` marks a code that has no such prefix.
const CASES: &[(&str, &str, &str)] = &[
    // Commas and colons. P-026
    ("[1,2,]", "[1,2]", "trailing_comma"),
    ("{\"a\":1 , \n}", "{\"a\":1}", "trailing_comma"),
    ("[,1]", "[1]", "extra_comma"),
    ("[1,,2]", "[1,2]", "extra_comma"),
    ("[1 2]", "[1,2]", "missing_comma"),
    ("[1 2 3]", "[1,2,3]", "missing_comma missing_comma"),
    (
        "[1 2.5 true null \"x\"]",
        "[1,2.5,true,null,\"x\"]",
        "missing_comma missing_comma missing_comma missing_comma",
    ),
    ("[1 2 three]", "[\"1 2 three\"]", "unquoted_value"),
    ("{\"a\": 1; \"b\": 2}", "{\"a\":1,\"b\":2}", "stray_text missing_comma"),
    ("{\"a\":\"x;y\";\"b\":\"z\"}", "{\"a\":\"x;y\",\"b\":\"z\"}", "stray_text missing_comma"),
    ("[\"a\";\"b\"]", "[\"a\",\"b\"]", "stray_text missing_comma"),
    ("[1; 2; 3]", "[1,2,3]", "stray_text missing_comma stray_text missing_comma"),
    ("{\"a\"= 1}", "{\"a\":1}", "missing_colon"),
    ("{\"a\" => \"x\", \"b\" = [1]}", "{\"a\":\"x\",\"b\":[1]}", "missing_colon missing_colon"),
    ("{\"a\":1\n\"b\":2}", "{\"a\":1,\"b\":2}", "missing_comma"),
    ("{\"a\":\"x\"\"b\":2}", "{\"a\":\"x\",\"b\":2}", "missing_comma"),
    ("[{}{}]", "[{},{}]", "missing_comma"),
    ("{\"a\" 1}", "{\"a\":1}", "missing_colon"),
    ("{\"a\" \"b\"}", "{\"a\":\"b\"}", "missing_colon"),
    ("{\"a\"::1}", "{\"a\":1}", "extra_colon"),
    ("{\"a\":,\"b\":1}", "{\"a\":null,\"b\":1}", "missing_value"),
    ("{\"a\":}", "{\"a\":null}", "missing_value"),
    // Quotes of other kinds.
    ("{'a':'b'}", "{\"a\":\"b\"}", "quote quote"),
    ("{“a”: “b, “c” d”}", "{\"a\":\"b, “c” d\"}", "quote quote inner_quote inner_quote"),
    ("{‘a’:«b»,`c`:`d`}", "{\"a\":\"b\",\"c\":\"d\"}", "quote quote quote quote"),
    ("[\"it’s\", 'it's']", "[\"it’s\",\"it's\"]", "quote inner_quote"),
    ("[‘a” ]’]", "[\"a” ]\"]", "quote"),
    ("[\"a \"b\" c\"]", "[\"a \\\"b\\\" c\"]", "inner_quote inner_quote"),
    (
        "{\"a\":\"he said \"yes\", \"no\" and left\",\"b\":1}",
        "{\"a\":\"he said \\\"yes\\\", \\\"no\\\" and left\",\"b\":1}",
        "inner_quote inner_quote inner_quote inner_quote",
    ),
    ("{\"a\":\"(5'3\")\"}", "{\"a\":\"(5'3\\\")\"}", "inner_quote"),
    ("{\"a\":\"x, \"b\":\"y\"}", "{\"a\":\"x\",\"b\":\"y\"}", "missing_quote"),
    ("{\"a:\"b\"}", "{\"a\":\"b\"}", "missing_quote"),
    ("{\"a: \"x\", \"b\": \"y\"}", "{\"a\":\"x\",\"b\":\"y\"}", "missing_quote"),
    ("[\"a,\n\"b\"]", "[\"a\",\"b\"]", "missing_quote"),
    ("{a\":1}", "{\"a\":1}", "unquoted_key"),
    ("{\"\"a\"\":\"\"b\"\"}", "{\"a\":\"b\"}", "inner_quote inner_quote inner_quote inner_quote"),
    ("{\"a\":\"\"\"b \"c\" d\"\"\"}", "{\"a\":\"b \\\"c\\\" d\"}", "quote inner_quote inner_quote"),
    // Missing quotes.
    ("{a:1,b_2:2}", "{\"a\":1,\"b_2\":2}", "unquoted_key unquoted_key"),
    ("{\"a\":b c, \"d\":1}", "{\"a\":\"b c\",\"d\":1}", "unquoted_value"),
    ("{\"a\": one, two, \"d\":1}", "{\"a\":\"one, two\",\"d\":1}", "unquoted_value"),
    ("[a,\nb]", "[\"a\",\"b\"]", "unquoted_value unquoted_value"),
    ("{\"u\":https://x.y/z?a=1,\"d\":1}", "{\"u\":\"https://x.y/z?a=1\",\"d\":1}", "unquoted_value"),
    ("{\"d\":2024-10-18T18:35:22Z}", "{\"d\":\"2024-10-18T18:35:22Z\"}", "unquoted_value"),
    ("{\"a\":\"b\", NOTE \"c\":1}", "{\"a\":\"b\",\"c\":1}", "stray_text"),
    // Comments, punctuation, spaces.
    ("[1, // one\n2]", "[1,2]", "comment"),
    ("[1, /* , ] */ 2] ", "[1,2]", "comment"),
    ("{\"a\":1 # one\n}", "{\"a\":1}", "comment"),
    (
        "{\"a\"：1，\"b\"：［2］}",
        "{\"a\":1,\"b\":[2]}",
        "punctuation punctuation punctuation punctuation punctuation",
    ),
    ("｛＂a＂：＂b＂｝", "{\"a\":\"b\"}", "punctuation quote punctuation quote punctuation"),
    ("{\"a\":\u{a0}1}", "{\"a\":1}", "space"),
    ("[1,2,...]", "[1,2]", "ellipsis trailing_comma"),
    ("[1,\n  ...\n]", "[1]", "ellipsis trailing_comma"),
    ("{\"a\":(1,2)}", "{\"a\":[1,2]}", "wrapper"),
    // Inside strings.
    ("[\"a\nb\nc\"]", "[\"a\\nb\\nc\"]", "raw_control"),
    ("[\"a\tb\"]", "[\"a\\tb\"]", "raw_control"),
    ("[\"it\\'s\"]", "[\"it's\"]", "escape"),
    ("[\"\\d+\"]", "[\"\\\\d+\"]", "escape"),
    ("[\"\\x41\"]", "[\"A\"]", "escape"),
    ("[\"\\ud83d!\"]", "[\"\u{fffd}!\"]", "escape"),
    ("[\"\\ud83d\\ud83d\\ude00\"]", "[\"\u{fffd}😀\"]", "escape"),
    ("[\"a\" + \"b\"]", "[\"ab\"]", "concatenation"),
    ("{\\\"a\\\":\\\"b \\\\\\\"c\\\\\\\" d\\\"}", "{\"a\":\"b \\\"c\\\" d\"}", "escaped_text escaped_text"),
    // Literals and numbers.
    (
        "[True,False,None,undefined,NaN]",
        "[true,false,null,null,null]",
        "literal literal literal literal number",
    ),
    ("[+1,.5,5.,1_000,0x1F,2e]", "[1,0.5,5.0,1000,31,2.0]", "number number number number number number"),
    ("[-0x1F,+0x1F]", "[-31,31]", "number number"),
    ("[1_,1__0,1_0]", "[\"1_\",\"1__0\",10]", "unquoted_value unquoted_value number"),
    ("[1e999,007,1.2.3]", "[\"1e999\",\"007\",\"1.2.3\"]", "number unquoted_value unquoted_value"),
    ("{\"a\":ObjectId(\"1\"),\"b\":2}", "{\"a\":\"1\",\"b\":2}", "wrapper"),
    // Brackets.
    ("[{\"a\":1,{\"b\":2}]", "[{\"a\":1},{\"b\":2}]", "trailing_comma missing_bracket"),
    ("[{\"a\":1]", "[{\"a\":1}]", "missing_bracket"),
    ("{\"a\":[1,2}", "{\"a\":[1,2]}", "missing_bracket"),
    ("{\"a\":[1},\"b\":2}", "{\"a\":[1],\"b\":2}", "extra_bracket"),
    ("[{\"a\":1}},{\"b\":2}]", "[{\"a\":1},{\"b\":2}]", "extra_bracket"),
    ("{\"a\":1}}]", "{\"a\":1}", "extra_bracket"),
    // The text ends. P-027
    ("{\"a\":[1,{\"b\":\"c", "{\"a\":[1,{\"b\":\"c\"}]}", "missing_quote missing_bracket"),
    ("{\"a\":\"b}", "{\"a\":\"b\"}", "missing_quote"),
    ("{\"a\":\"f(x) {}", "{\"a\":\"f(x) {}\"}", "missing_quote missing_bracket"),
    ("{\"a\":tru", "{\"a\":true}", "literal missing_bracket"),
    ("{\"a\":t", "{\"a\":\"t\"}", "unquoted_value missing_bracket"),
    ("{\"a\":\"b\\u00", "{\"a\":\"b\"}", "escape missing_quote missing_bracket"),
    ("{\"a", "{\"a\":null}", "missing_quote missing_bracket missing_value"),
    // Several values.
    ("{\"a\":1}\n{\"a\":2}\n", "[{\"a\":1},{\"a\":2}]", "several_values"),
    ("{\"a\":1},", "{\"a\":1}", "extra_comma"),
    // P-030
    ("{\"a\":1,\"b\":2,\"a\":3}", "{\"a\":3,\"b\":2}", "=duplicate_key"),
];

#[test]
fn mends_and_reports_each_fault() {
    for (text, value, expected) in CASES {
        let found = find(text, &Limits::default());
        assert_eq!(found.value, Some(json(value)), "{text:?}"); // P-026, R-33
        let expected: Vec<String> = expected
            .split(' ')
            .map(|code| code.strip_prefix('=').map_or(format!("json_{code}"), str::to_owned))
            .collect();
        assert_eq!(codes(&found.reports), expected, "{text:?}");
        for report in &found.reports {
            assert!(report.repair.is_some(), "{report:?}"); // P-026: each repair listed
            assert!(report.place.offset <= text.len() && report.end <= text.len(), "{report:?}");
            let column = text[..report.place.offset].rsplit('\n').next().unwrap_or("").chars().count() + 1;
            assert_eq!(report.place.column as usize, column, "{text:?} {report:?}");
            let line = text[..report.place.offset].matches('\n').count() + 1;
            assert_eq!(report.place.line as usize, line, "{text:?} {report:?}");
        }
    }
}

#[test]
fn reads_the_same_under_every_cut() {
    for (text, ..) in CASES {
        assert_same_under_cuts(text);
        // Truncated at each place, too: a value that the reader closes is the same under every cut.
        for end in (0..text.len()).filter(|&end| text.is_char_boundary(end)) {
            let bytes: Vec<&str> = text[..end].split_inclusive(|_| true).collect();
            for constructor in super::READERS {
                assert_eq!(
                    super::read(constructor, &bytes),
                    super::read(constructor, &[&text[..end]]),
                    "{:?}",
                    &text[..end]
                );
            }
        }
    }
}

#[test]
fn says_what_was_closed_by_us() {
    // P-027
    for (text, is_closed) in [
        ("{\"a\":1}", false),
        ("{'a':1,}", false),
        ("{\"a\":[1,2}", false),
        ("{\"a\":1", true),
        ("{\"args\":{\"userInput\":\"dele", true),
        ("{\"a\":\"b}", true),
        ("```json\n{\"a\":[1\n```\nDone.", true),
    ] {
        assert_eq!(find(text, &Limits::default()).is_auto_closed, is_closed, "{text:?}");
    }
}

#[test]
fn every_rule_has_a_case() {
    for rule in rules::ALL {
        let has_case = CASES.iter().any(|(.., codes)| {
            codes.split(' ').any(|code| rule.code.ends_with(code.trim_start_matches('=')))
        });
        let other_codes = ["json_text_around", "json_no_value", "limit_exceeded"];
        assert!(has_case || other_codes.contains(&rule.code), "{} has no case", rule.code);
    }
}
