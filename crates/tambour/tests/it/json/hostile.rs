//! Hostile text: linear work, bounded memory, no recursion. X-007

use std::time::{Duration, Instant};

use tambour::finding::FindingReport;
use tambour::limits::Limits;
use tambour::repair::json::{JsonEvent, JsonReader, JsonSink, MAX_HELD_BYTES, find, parse_strict};
use tambour_fixtures::queue;

use super::READERS;

#[derive(Default)]
struct EventCounter {
    events: usize,
    reports: usize,
}

impl JsonSink for EventCounter {
    fn event(&mut self, _: JsonEvent<'_>) {
        self.events += 1;
    }

    fn report(&mut self, _: FindingReport) {
        self.reports += 1;
    }
}

const PATTERNS: &[&str] = &[
    "[",
    "{",
    "(",
    "{\"a\":",
    "[{\"\":",
    "\"",
    "'",
    "`",
    "```",
    "\\",
    "\\\"",
    "\\u",
    "\\ud800",
    ",",
    ":",
    "]",
    "}",
    "/",
    "/*",
    "//",
    "#",
    "+",
    "-",
    ".",
    "1",
    "a",
    " ",
    "\n",
    "~",
    "<",
    "<think>",
    "“",
    "：",
    "，",
    "\u{a0}",
    "\u{1}",
    "\"a\" ",
    "\"a\", ",
    "{\"a\":1,\"a\":1,",
    "[1,/**/],",
    "[1,#\n],",
    "{\"a\":\"b, \"c\":\"",
    "{a ",
    "{a: b, ",
    "x(",
    "[x\n",
    "\"\" ",
    "\"+",
    "{\"a\n:\"b\",",
    "\"a\n, \"b\": ",
    "{\"k\":[1},",
    "...",
    "tru",
    "1_",
    "0x",
    "\n{\"event\":\"",
    "{\"a\":\"\n",
    "\"}",
    "\"]}, ",
];

#[test]
fn work_is_linear_and_little_is_held() {
    let starts = ["", "[", "{", "{\"a\":", "{\"a\":\"", "[\"", "{\"", "{'a':'", "{\"a\":x "];
    queue::run_all(&starts, |start| PATTERNS.iter().for_each(|pattern| assert_linear(start, pattern)));
}

fn assert_linear(start: &str, pattern: &str) {
    let limits = Limits::default();
    let text = format!("{start}{}", pattern.repeat((64 << 10) / pattern.len()));
    for constructor in READERS {
        for size in [1, 7, text.len()] {
            let (mut reader, mut count) = (constructor(&limits), EventCounter::default());
            let mut rest = text.as_str();
            while !rest.is_empty() {
                let mut cut = size.min(rest.len());
                while !rest.is_char_boundary(cut) {
                    cut += 1;
                }
                reader.push(&rest[..cut], &mut count);
                assert!(
                    reader.held_bytes() <= MAX_HELD_BYTES,
                    "{start:?} {pattern:?}: {} held",
                    reader.held_bytes()
                );
                rest = &rest[cut..];
            }
            reader.finish(&mut count);
            let bytes = text.len();
            assert!(count.events <= 8 * bytes + 1000, "{start:?} {pattern:?}: {} events", count.events);
            assert!(count.reports <= limits.findings, "{start:?} {pattern:?}: {} reports", count.reports);
            // Each look-ahead counts as 128 bytes, and a byte may be looked at a few times as more arrive.
            assert!(
                reader.work() <= 700 * bytes as u64 + 10_000,
                "{start:?} {pattern:?} by {size}: {}",
                reader.work()
            );
        }
    }
}

#[test]
fn a_megabyte_takes_no_longer_than_it_should() {
    queue::run_all(&["", "[", "{\"a\":\"", "{\"a\":", "[\""], |start| {
        for pattern in PATTERNS {
            let text = format!("{start}{}", pattern.repeat((1 << 20) / pattern.len()));
            let timer = Instant::now();
            let _ = find(&text, &Limits::default());
            let _ = parse_strict(&text, &Limits::default());
            let time = timer.elapsed();
            // Quadratic work would take minutes.
            assert!(time < Duration::from_secs(5), "{start:?} {pattern:?}: {time:?}");
        }
    });
}

#[test]
fn nesting_ends_at_the_limit() {
    let limits = Limits::default();
    for text in ["[".repeat(100_000), "{\"a\":".repeat(100_000), "[{\"a\":".repeat(50_000)] {
        let fault = parse_strict(&text, &limits).expect_err("too deep");
        assert_eq!(fault.rule.code, "limit_exceeded");
        let found = find(&text, &limits);
        assert!(found.is_auto_closed);
        assert_eq!(found.reports[0].rule.code, "limit_exceeded");
        assert_eq!(found.candidate_count, 1);
    }
    let depth = limits.depth;
    let deep = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(parse_strict(&deep, &limits).is_ok());
    assert!(parse_strict(&format!("[{deep}]"), &limits).is_err());
    // Reading resumes with the next line.
    let found = find(&format!("{}\n{{\"a\":1}}", "[".repeat(1000)), &limits);
    assert_eq!(found.value, Some(serde_json::json!({"a": 1})));
}

#[test]
fn keys_are_held_up_to_the_limit() {
    let limits = Limits::default();
    let text = format!("{{\"{}\":1}}", "k".repeat(1 << 20));
    let (mut reader, mut count) = (JsonReader::new_chat(&limits), EventCounter::default());
    for piece in text.as_bytes().chunks(1000) {
        reader.push(std::str::from_utf8(piece).expect("ASCII"), &mut count);
        assert!(reader.held_bytes() <= MAX_HELD_BYTES);
    }
    reader.finish(&mut count);
    assert_eq!(count.reports, 1);
}

#[test]
fn comments_are_held_up_to_the_limit() {
    let mut limits = Limits::default();
    limits.hold = 4 << 10;
    for pattern in ["<!-- ", "<!--", "<!-- {\"a\":1} ", "<!-- - ", "<!-- a --", "<!-- a --> "] {
        let text = pattern.repeat((256 << 10) / pattern.len());
        for size in [1, 1000, text.len()] {
            let (mut reader, mut count) = (JsonReader::new_chat(&limits), EventCounter::default());
            for piece in text.as_bytes().chunks(size) {
                reader.push(std::str::from_utf8(piece).expect("ASCII"), &mut count);
                assert!(
                    reader.held_bytes() <= limits.hold + MAX_HELD_BYTES,
                    "{pattern:?}: {} held",
                    reader.held_bytes()
                );
            }
            reader.finish(&mut count);
            assert!(reader.work() <= 700 * text.len() as u64, "{pattern:?} by {size}: {}", reader.work());
        }
    }
}
