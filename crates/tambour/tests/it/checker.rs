//! The checker of event streams (J-001 to J-036, J-060 to J-065, X-001, X-006, X-010). `grammar` compares it with the grammar as
//! a matcher on letters, and feeds it random streams and bytes.

mod grammar;

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tambour::contract::{StreamCheckOptions, StreamChecker, check_events, check_transcript, check_values};
use tambour::event::{AsideKind, Event, Failure, Notice};
use tambour::finding::{Finding, Profile, Severity};
use tambour::options::Options;
use tambour_prompt::catalogue;

// Letters for events: the tests write streams as words.
//   s serp_summary   T thinking_start   P phase_start   d phase_delta   E thinking_end
//   F final_delta    Q serp_queries     X final_end     h heartbeat     c completed   e error

/// Builds the stream that `word` spells; phases get the next id, their deltas the last one.
fn stream(word: &str) -> Vec<Value> {
    let mut id = 0;
    let mut events = Vec::new();
    for letter in word.chars() {
        let (name, data) = match letter {
            's' => ("serp_summary", json!({ "text": "A plan." })),
            'T' => ("thinking_start", json!({})),
            'P' => {
                id += 1;
                ("phase_start", json!({ "id": id, "title": "t" }))
            }
            'd' => ("phase_delta", json!({ "id": id.max(1), "text": "x" })),
            'E' => ("thinking_end", json!({})),
            'F' => ("final_delta", json!({ "text": "x" })),
            'Q' => ("serp_queries", json!({ "queries": ["q"] })),
            'X' => ("final_end", json!({})),
            'h' => ("heartbeat", json!({ "ts": "2026-01-01T00:00:00Z" })),
            'c' => ("completed", json!({})),
            'e' => ("error", json!({ "code": "x", "message": "y", "retryable": false })),
            _ => panic!("no event for {letter}"),
        };
        events.push(json!({ "event": name, "data": data }));
    }
    events
}

fn codes(events: &[Value]) -> Vec<String> {
    row_codes(&check_values(events, StreamCheckOptions::default()))
}

/// `row code` of each finding above information.
fn row_codes(findings: &[Finding]) -> Vec<String> {
    let warnings = findings.iter().filter(|finding| finding.severity != Severity::Info);
    warnings.map(|finding| format!("{} {}", finding.rule, finding.code)).collect()
}

fn word_codes(word: &str) -> Vec<String> {
    codes(&stream(word))
}

/// Builds a valid stream in which `data` replaces the data of the first event called `name`.
fn stream_with(name: &str, data: &Value) -> Vec<Value> {
    let mut events = stream("sTPdPdEFQX");
    let event = events.iter_mut().find(|event| event["event"] == name).expect("an event of that name");
    event["data"] = data.clone();
    events
}

fn sse_text(events: &[Value]) -> String {
    let mut text = String::new();
    for (index, event) in events.iter().enumerate() {
        let mut data = event["data"].clone();
        data["message_id"] = json!("m1");
        data["request_id"] = json!("r1");
        let name = event["event"].as_str().unwrap();
        if !matches!(name, "status" | "heartbeat") {
            text += &format!("id: {}\n", index + 1);
        }
        text += &format!("event: {name}\ndata: {data}\n\n");
    }
    text
}

fn transcript_codes(text: &str) -> Vec<String> {
    row_codes(&check_transcript(text.as_bytes(), StreamCheckOptions::default()))
}

#[test]
fn every_row_with_a_code_has_a_rule() {
    let event_rules = catalogue::all().filter(|entry| entry.owner == "events");
    let rows: BTreeSet<&str> = event_rules.flat_map(|entry| entry.rule.rows).copied().collect();
    let expected_rows = (1..=23).map(|n| format!("J-{n:03}")).chain(
        ["J-030", "J-034", "J-035", "J-036", "J-060", "J-061", "J-062", "J-063", "J-064", "X-010"]
            .map(str::to_owned),
    );
    let queries = (44..=51).map(|n| format!("T-{n:03}"));
    for row in expected_rows.chain(queries) {
        assert!(rows.contains(row.as_str()), "{row}");
    }
}

#[test]
fn good_streams_have_no_findings() {
    for good in ["TPPEFX", "sTPdPdEFFQX", "TPPdddEFX", "sTPdPEFX", "TPPEFQX"] {
        assert_eq!(check_values(&stream(good), StreamCheckOptions::default()), vec![]); // J-001, J-015, J-060
    }
    let deltas = stream("TPPEFX");
    assert_eq!(codes(&deltas), [""; 0]); // J-011: phases without text are allowed.
}

#[test]
fn only_known_events_are_on_a_stream() {
    let mut events = stream("TPdPdEFX");
    events.insert(3, json!({ "event": "content_delta", "data": { "seq": 1, "delta": "x" } }));
    assert_eq!(codes(&events), ["J-001 event_unknown"]); // J-001
    events[3] = json!({ "name": "status" });
    assert_eq!(codes(&events), ["J-050 event_shape"]);
    events[3] = json!(7);
    assert_eq!(codes(&events), ["J-050 event_shape"]);
    events[3] = json!({ "event": "status", "data": "x" });
    assert_eq!(codes(&events), ["J-050 event_shape"]);
}

#[test]
fn the_summary_is_one_plain_text_before_the_thinking() {
    let summary = |data: Value| codes(&stream_with("serp_summary", &data));
    assert_eq!(word_codes("ssTPPEFX"), ["J-002 serp_summary_duplicate"]); // J-002
    assert_eq!(summary(json!({ "text": " \u{3000}" })), ["J-002 serp_summary_empty"]); // J-002
    assert_eq!(summary(json!({})), ["J-002 serp_summary_empty"]);
    assert_eq!(summary(json!({ "text": 5 })), ["J-002 field_type"]); // J-002
    for tags in ["a <b>x</b>", "<serp>x</serp>", "x <br/>", "a < b <i class=\"x\">"] {
        assert_eq!(summary(json!({ "text": tags })), ["J-002 serp_summary_markup"]); // J-002
    }
    for plain in [
        "a < b && c > d",
        "x<3 and y>2",
        "see <https://a.b>",
        "1.5 kg. Two sentences.",
        "两句。没有了！",
        "U.S. data",
    ] {
        assert_eq!(summary(json!({ "text": plain })), [""; 0], "{plain}"); // J-002
    }
    for long in ["One. Two. Three.", "一。二。三。"] {
        assert_eq!(summary(json!({ "text": long })), ["J-002 serp_summary_sentences"]); // J-002
    }
    let markup_findings = check_values(
        &stream_with("serp_summary", &json!({ "text": "<b>x</b>" })),
        StreamCheckOptions::default(),
    );
    assert_eq!(markup_findings[0].severity, Severity::Warning); // J-002: plain text is a should.
    assert_eq!(word_codes("TsPPEFX"), ["J-020 serp_summary_late"]); // J-020
    assert_eq!(word_codes("TPPEFsX"), ["J-020 serp_summary_late"]); // J-020
}

#[test]
fn queries_are_an_array_of_good_strings() {
    let queries = |value: Value| codes(&stream_with("serp_queries", &json!({ "queries": value })));
    assert_eq!(queries(json!("a")), ["J-003 field_type"]); // J-003
    assert_eq!(queries(json!(["a", 3])), ["J-003 field_type"]); // J-003
    assert_eq!(codes(&stream_with("serp_queries", &json!({}))), ["J-003 field_type"]);
    assert_eq!(word_codes("TPPEFQQX"), ["J-003 serp_queries_duplicate_event"]); // J-003
    assert_eq!(queries(json!(["a", "b", "c", "d", "e", "f"])), ["J-004 serp_queries_too_many"]); // J-004, J-064
    assert_eq!(queries(json!(["a", "a "])), ["J-004 serp_queries_duplicate"]); // J-004, J-064
    assert_eq!(queries(json!(["a".repeat(81)])), ["J-004 serp_query_too_long"]); // J-004
    assert_eq!(queries(json!(["mail a@b.com"])), ["J-004 serp_query_sensitive"]); // J-004, J-064
    let four_queries = check_values(
        &stream_with("serp_queries", &json!({ "queries": ["a", "b", "c", "d"] })),
        StreamCheckOptions::default(),
    );
    assert_eq!(
        (four_queries[0].code.as_ref(), four_queries[0].severity),
        ("serp_queries_many", Severity::Info)
    ); // J-005
}

#[test]
fn thinking_starts_and_ends_once() {
    assert_eq!(word_codes("PPEFX"), ["J-006 thinking_start_missing"]); // J-006
    assert_eq!(word_codes("TTPPEFX"), ["J-006 thinking_start_duplicate"]); // J-006
    assert_eq!(codes(&stream_with("thinking_start", &json!({ "id": 1 }))), ["J-006 field_unexpected"]); // J-006
    assert!(word_codes("TPPFX").contains(&"J-012 thinking_end_missing".to_owned())); // J-012
    assert_eq!(word_codes("TPPEEFX"), ["J-012 thinking_end_duplicate"]); // J-012
    assert_eq!(codes(&stream_with("thinking_end", &json!({ "x": 1 }))), ["J-012 field_unexpected"]); // J-012
}

#[test]
fn phase_ids_are_positive_and_count_up() {
    for id in [json!(0), json!("1"), json!(1.5), json!(-1), json!(null), json!(1e30)] {
        let mut events = stream("TPPEFX");
        events[1]["data"]["id"] = id;
        assert_eq!(codes(&events), ["J-007 phase_id_invalid"]); // J-007, J-061
    }
    let ids = |ids: &[u32]| {
        let mut events = stream("TPPPEFX");
        events.truncate(1 + ids.len());
        events.extend(stream("EFX"));
        for (event, id) in events[1..].iter_mut().zip(ids) {
            event["data"]["id"] = json!(id);
        }
        events
    };
    assert_eq!(codes(&ids(&[1, 1])), ["J-008 phase_id_not_increasing"]); // J-008, J-061
    assert_eq!(codes(&ids(&[1, 2, 1])), ["J-008 phase_id_not_increasing"]); // J-008
    for gap in [&[1, 3][..], &[2, 3], &[2, 3, 4], &[1, 2, 4]] {
        assert_eq!(codes(&ids(gap)), ["J-008 phase_id_not_consecutive"]); // J-008
        let lenient = StreamCheckOptions::new(Options::default());
        let found = check_values(&ids(gap), lenient);
        assert_eq!(found[0].severity, Severity::Warning); // R-04
    }
    let lenient = StreamCheckOptions::new(Options::default());
    assert_eq!(check_values(&ids(&[1, 1]), lenient)[0].severity, Severity::Error); // R-04
}

fn strict_options() -> StreamCheckOptions {
    StreamCheckOptions::default()
}

#[test]
fn titles_are_not_blank() {
    for title in
        [json!({ "id": 1, "title": "" }), json!({ "id": 1, "title": " \u{3000}\n" }), json!({ "id": 1 })]
    {
        assert_eq!(codes(&stream_with("phase_start", &title)), ["J-009 title_empty"]); // J-009, J-062
    }
    assert_eq!(codes(&stream_with("phase_start", &json!({ "id": 1, "title": 1 }))), ["J-009 field_type"]);
}

#[test]
fn deltas_belong_to_the_open_phase() {
    let mut events = stream("TPdPdEFX");
    events[4]["data"]["id"] = json!(1);
    assert_eq!(codes(&events), ["J-010 phase_delta_not_current"]); // J-010, J-063
    events[4]["data"]["id"] = json!(7);
    assert_eq!(codes(&events), ["J-010 phase_delta_unknown"]); // J-010, J-063
    for id in [json!("2"), json!(0), json!(null)] {
        events[4]["data"]["id"] = id;
        assert_eq!(codes(&events), ["J-010 phase_delta_unknown"]); // J-010
    }
    assert_eq!(word_codes("TdPPEFX"), ["J-017 phase_delta_unknown"]); // J-017
    // An unreadable id is one finding.
    let mut events = stream("TPddPdEFX");
    events[1]["data"]["id"] = json!("one");
    assert_eq!(codes(&events), ["J-007 phase_id_invalid"]);
}

#[test]
fn deltas_are_not_empty() {
    assert_eq!(codes(&stream_with("phase_delta", &json!({ "id": 1, "text": "" }))), ["J-011 delta_empty"]); // J-011
    assert_eq!(codes(&stream_with("phase_delta", &json!({ "id": 1 }))), ["J-011 delta_empty"]); // J-011
    assert_eq!(codes(&stream_with("phase_delta", &json!({ "id": 1, "text": [] }))), ["J-011 field_type"]);
    assert_eq!(codes(&stream_with("phase_delta", &json!({ "id": 1, "text": "\n" }))), [""; 0]);
    assert_eq!(codes(&stream_with("final_delta", &json!({ "text": "" }))), ["J-013 delta_empty"]); // J-013
    assert_eq!(codes(&stream_with("final_delta", &json!({ "text": 1 }))), ["J-013 field_type"]); // J-013
}

#[test]
fn the_answer_comes_after_the_thinking_and_ends_once() {
    assert_eq!(word_codes("TPPEX"), ["J-013 final_delta_missing"]); // J-013
    assert_eq!(word_codes("TPPEF"), ["J-014 final_end_missing"]); // J-014
    assert_eq!(word_codes("TPPEFXX"), ["J-014 final_end_duplicate"]); // J-014
    assert_eq!(codes(&stream_with("final_end", &json!({ "text": "x" }))), ["J-014 field_unexpected"]); // J-014
    assert_eq!(word_codes("TPPFFEFX"), ["J-016 final_before_thinking_end"]); // J-016
    assert!(word_codes("TF").contains(&"J-016 final_before_thinking_end".to_owned())); // J-016
    assert_eq!(word_codes("TPPEFXF"), ["J-018 event_after_final_end"]); // J-018
    assert_eq!(word_codes("TPPEFXhc"), [""; 0]); // J-018
}

#[test]
fn other_orders_are_found_where_they_are() {
    assert_eq!(word_codes("PTPEFX"), ["J-015 order_invalid"]); // J-015, J-060
    let found = check_values(&stream("PTPEFX"), strict_options());
    assert_eq!((found[0].span.start, found[0].line), (1, 2)); // The thinking_start.
    assert_eq!(word_codes("TPPEQFX"), ["J-021 serp_queries_misplaced"]); // J-021
    let found = check_values(&stream("TPPEQFX"), strict_options());
    assert_eq!(found[0].span.start, 4); // The serp_queries.
    assert!(word_codes("TPPEFXQ").contains(&"J-021 serp_queries_misplaced".to_owned())); // J-021
    assert_eq!(word_codes("TPEPFX"), ["J-022 phase_after_thinking_end"]); // J-022
    assert_eq!(word_codes("TPPEdFX"), ["J-022 phase_after_thinking_end"]); // J-022
    assert_eq!(word_codes("TEFX"), ["J-023 phase_missing"]); // J-023
    let found = check_values(&stream("TPdEFX"), strict_options());
    assert_eq!((found[0].code.as_ref(), found[0].severity), ("single_phase", Severity::Info)); // J-019
    assert_eq!(found.len(), 1);
}

#[test]
fn findings_have_one_form_and_stand_in_order() {
    let found = check_values(&stream("PPFEX"), strict_options());
    assert!(found.is_sorted_by_key(|finding| finding.span.start)); // X-006
    let first = serde_json::to_value(&found[0]).unwrap();
    for field in ["rule", "code", "severity", "span", "line", "column", "message", "repair"] {
        assert!(first.get(field).is_some(), "{field}"); // X-006
    }
    for finding in &found {
        assert!(catalogue::rule(&finding.rule, &finding.code).is_some()); // X-006
    }
}

#[test]
fn system_events_do_not_disturb_the_order() {
    let good = stream("sTPdPdEFFQX");
    for at in 0..=good.len() {
        let mut events = good.clone();
        events.insert(at, json!({ "event": "heartbeat", "data": { "ts": "x" } }));
        assert_eq!(check_values(&events, strict_options()), vec![], "at {at}"); // J-024
        events[at] = json!({ "event": "status", "data": { "state": "x" } });
        assert_eq!(check_values(&events, strict_options()), vec![], "at {at}"); // J-024
    }
}

#[test]
fn a_stream_ends_once() {
    assert_eq!(transcript_codes(&sse_text(&stream("TPPEFXc"))), [""; 0]); // J-035
    assert_eq!(transcript_codes(&sse_text(&stream("TPPEFXe"))), [""; 0]); // J-035
    assert_eq!(transcript_codes(&sse_text(&stream("TPPEFX"))), ["J-035 terminal_missing"]); // J-035
    assert_eq!(word_codes("TPPEFXcc"), ["J-035 terminal_duplicate"]); // J-035
    assert_eq!(word_codes("TPPEFXch"), ["J-035 event_after_terminal"]); // J-035
    assert_eq!(word_codes("TPPEFcX"), ["J-035 event_after_terminal"]); // J-035
    // Open sections are closed before an error.
    assert!(word_codes("TPe").contains(&"J-014 final_end_missing".to_owned())); // J-035
    // The end of a bare list is optional by default.
    assert_eq!(word_codes("TPPEFX"), [""; 0]);
    let with_end = strict_options().with_terminal(true);
    assert_eq!(row_codes(&check_values(&stream("TPPEFX"), with_end)), ["J-035 terminal_missing"]);
}

#[test]
fn a_stream_may_fail_before_it_begins() {
    assert_eq!(transcript_codes(&sse_text(&stream("hhe"))), [""; 0]); // X-001
    assert_eq!(word_codes("e"), [""; 0]); // X-001
    let mut events = stream("e");
    events.insert(0, json!({ "event": "notice", "data": { "code": "x", "message": "y" } }));
    assert_eq!(codes(&events), [""; 0]); // X-001, X-010
    assert!(word_codes("hc").contains(&"J-006 thinking_start_missing".to_owned())); // X-001
    assert!(word_codes("se").contains(&"J-014 final_end_missing".to_owned())); // X-001
    assert!(!word_codes("").is_empty());
}

#[test]
fn extension_events_stand_inside_and_change_nothing() {
    const NAMES: &[&str] = &[
        "draft_delta",
        "aside",
        "state_update",
        "tool_call",
        "tool_start",
        "tool_result",
        "status_bar",
        "details",
        "choice",
        "ui_component",
        "media",
        "plan",
        "form",
        "picture",
        "skill",
        "exit_decision",
        "notice",
        "finding",
    ];
    let good = stream("sTPdPdEFQX");
    for name in NAMES {
        let early = matches!(*name, "draft_delta" | "notice" | "finding");
        for at in 0..=good.len() {
            let mut events = good.clone();
            events.insert(at, json!({ "event": name, "data": { "text": "x" } }));
            let expected = match at {
                0 | 1 if early => vec![],
                0 | 1 => vec!["X-010 extension_misplaced"],
                _ if at == good.len() => vec!["X-010 event_after_final_end"],
                _ => vec![],
            };
            assert_eq!(codes(&events), expected, "{name} at {at}"); // X-010
        }
    }
    // Extension events add no finding to a broken stream.
    for broken in ["TPEPFX", "PPEFX", "TPPEQFX", "TPPFEX"] {
        let mut events = Vec::new();
        for event in stream(broken) {
            events.push(json!({ "event": "notice", "data": {} }));
            events.push(event);
        }
        assert_eq!(codes(&events), word_codes(broken)); // X-010
    }
}

#[test]
fn thinking_may_be_left_out_when_that_is_allowed() {
    let allowing_options = || {
        let mut options = strict_options();
        options.options.allow_missing_thinking = true;
        options
    };
    for good in ["FX", "sFX", "FFQX", "TPPEFX"] {
        assert_eq!(check_values(&stream(good), allowing_options()), vec![], "{good}"); // R-24
    }
    let aside = vec![json!({ "event": "aside", "data": { "kind": "comment", "text": "x" } })];
    assert_eq!(row_codes(&check_values(&[aside, stream("FX")].concat(), allowing_options())), [""; 0]);
    for bad in ["TFX", "EFX", "PFX", "dFX", "TPPFX", "FTPPEX", "X", "QFX", "Fs"] {
        assert!(!row_codes(&check_values(&stream(bad), allowing_options())).is_empty(), "{bad}"); // R-24
    }
    assert!(word_codes("FX").contains(&"J-006 thinking_start_missing".to_owned())); // R-24
}

#[test]
fn every_event_on_the_wire_has_its_envelope() {
    let good = sse_text(&stream("TPPEFXc"));
    for (from, to) in [
        ("\"message_id\":\"m1\",", ""),
        ("\"request_id\":\"r1\"", "\"request_id\":1"),
        ("\"message_id\":\"m1\"", "\"message_id\":\"\""),
    ] {
        let broken = good.replacen(from, to, 1);
        assert_eq!(transcript_codes(&broken), ["J-030 envelope_missing"]); // J-030
    }
    let bare = good.replace("\"message_id\":\"m1\",\"request_id\":\"r1\"", "").replace(",}", "}");
    assert_eq!(transcript_codes(&bare), ["J-030 envelope_missing"; 7]); // J-030: system events included.
    let without_envelope = strict_options().with_envelope(false);
    assert_eq!(check_transcript(bare.as_bytes(), without_envelope), vec![]);
    assert_eq!(word_codes("TPPEFXc"), [""; 0]); // J-030: not asked of a bare list.
    let with_envelope = strict_options().with_envelope(true);
    assert_eq!(row_codes(&check_values(&stream("TPPEFX"), with_envelope)), ["J-030 envelope_missing"; 6]);
}

#[test]
fn events_are_framed_for_sse() {
    let event = "event: heartbeat\ndata: {\"message_id\":\"m\",\"request_id\":\"r\"}\n\n";
    let codes_with_prefix = |text: &str| transcript_codes(&format!("{text}{}", sse_text(&stream("TPPEFXc"))));
    assert_eq!(codes_with_prefix(event), [""; 0]); // J-034
    assert_eq!(codes_with_prefix(": comment\n\n:\n"), [""; 0]); // J-034
    assert_eq!(codes_with_prefix("retry: 3000\n\n"), [""; 0]);
    assert_eq!(codes_with_prefix("\n\n\u{FEFF}")[0], "J-034 sse_framing"); // A byte order mark stands at the start only.
    assert_eq!(transcript_codes(&format!("\u{FEFF}{}", sse_text(&stream("TPPEFXc")))), [""; 0]);
    for broken in [
        &event.replace("event: heartbeat\n", ""),
        &event.replace("event: heartbeat\n", "event: heartbeat\nevent: heartbeat\n"),
        &event.replace(",", ",\ndata:"),
        "event: heartbeat\n\n",
        "id: 7\n\n",
        &event.replace("event: heartbeat\n", "event: heartbeat\nnote: x\n"),
    ] {
        assert_eq!(codes_with_prefix(broken), ["J-034 sse_framing"], "{broken}"); // J-034
    }
    // A raw line feed in the data cuts it, and the rest of the line is no field.
    let raw = codes_with_prefix("event: heartbeat\ndata: {\"message_id\":\"m\n\",\"request_id\":\"r\"}\n\n");
    assert_eq!(raw, ["J-034 event_json", "J-034 sse_framing"]); // J-034
    assert_eq!(codes_with_prefix("event: heartbeat\ndata: [1]\n\n"), ["J-050 event_shape"]); // J-034
    let bytes =
        [&b"event: heartbeat\ndata: {\"x\":\"\xff\"}\n\n"[..], sse_text(&stream("TPPEFXc")).as_bytes()]
            .concat();
    assert_eq!(row_codes(&check_transcript(&bytes, strict_options())), ["J-034 event_json"]); // J-034: UTF-8.
    let good = sse_text(&stream("TPPEFXc"));
    assert_eq!(transcript_codes(good.strip_suffix('\n').unwrap()), ["J-034 sse_unterminated"]); // J-034
    assert_eq!(transcript_codes(&good.replace('\n', "\r\n")), [""; 0]);
    assert_eq!(transcript_codes(&good.replace('\n', "\r")), [""; 0]);
    // An event that cannot be read still counts for the order.
    let cut = good.replacen("\"title\":\"t\"", "\"title\":\"t", 1);
    assert_eq!(transcript_codes(&cut), ["J-034 event_json"]);
}

#[test]
fn ids_count_up_and_control_events_have_none() {
    let good = sse_text(&stream("TPPhEFXc"));
    assert_eq!(transcript_codes(&good), [""; 0]); // J-036
    assert_eq!(
        transcript_codes(&good.replace("event: heartbeat", "id: 4\nevent: heartbeat")),
        ["J-036 control_event_with_id"]
    ); // J-036
    assert_eq!(transcript_codes(&good.replace("id: 3\n", "id: 2\n")), ["J-036 event_id_not_increasing"]); // J-036
    assert_eq!(transcript_codes(&good.replace("id: 3\n", "id: x\n")), ["J-036 event_id_invalid"]); // J-036
    assert_eq!(transcript_codes(&good.replace("id: 3\n", "")), ["J-036 event_id_missing"]); // J-036
    assert_eq!(transcript_codes(&good.replace("id: 1\n", "")), ["J-036 event_id_missing"]); // J-036
    assert_eq!(transcript_codes(&good.replace("id: 8", "id: 800")), [""; 0]); // Numbers may be skipped.
    let without_ids: String =
        good.lines().filter(|line| !line.starts_with("id")).map(|line| format!("{line}\n")).collect();
    assert_eq!(transcript_codes(&without_ids), [""; 0]);
    let found = check_transcript(good.replace("id: 3\n", "id: 2\n").as_bytes(), strict_options());
    assert!(found.iter().all(|finding| finding.severity == Severity::Warning)); // J-036 is a should.
}

#[test]
fn the_flat_form_is_read_with_a_warning() {
    let mut events = stream("TPPEFX");
    events[4] = json!({ "event": "final_delta", "text": "x" });
    events[0] = json!({ "event": "thinking_start" });
    assert_eq!(codes(&events), ["J-050 event_flat"]);
    assert_eq!(check_values(&events, strict_options())[0].severity, Severity::Warning);
}

#[test]
fn typed_events_are_checked_alike() {
    let events = [
        Notice { code: "x".into(), message: "y".into(), reference: None }.into(),
        Event::ThinkingStart,
        Event::PhaseStart { id: 1, title: "a".into() },
        Event::PhaseDelta { id: 1, text: "x".into() },
        Event::Aside { kind: AsideKind::Comment, text: "x".into() },
        Event::PhaseStart { id: 2, title: "b".into() },
        Event::ThinkingEnd,
        Event::FinalDelta { text: "x".into() },
        Event::SerpQueries { queries: vec!["q".to_owned()] },
        Event::FinalEnd,
        Event::Error(Failure::new("x", "y", true)),
    ];
    assert_eq!(check_events(&events), vec![]);
    assert_eq!(
        row_codes(&check_events(&events[1..3])),
        ["J-012 thinking_end_missing", "J-013 final_delta_missing", "J-014 final_end_missing"]
    );
}

#[test]
fn profile_first_only_and_limits() {
    let broken = stream("sPPFEFXF");
    let all = check_values(&broken, strict_options());
    let mut first_only = strict_options();
    first_only.options.first_only = true;
    let found = check_values(&broken, first_only);
    assert_eq!(found.len(), 1);
    assert_eq!(Some(&found[0]), all.iter().find(|finding| finding.severity == Severity::Error));
    let mut few_findings = strict_options();
    few_findings.options.limits.findings = 2;
    let found = check_values(&broken, few_findings);
    assert_eq!(found.len(), 3);
    assert_eq!(found[2].code, "limit_exceeded"); // X-007
    assert!(found[2].message.starts_with(&format!("{} more", all.len() - 2)));
    let mut short_input = strict_options();
    short_input.options.limits.input = 60;
    let line = format!("{}\n", json!({ "event": "heartbeat", "data": { "ts": "x".repeat(100) } }));
    let good: String = stream("TPPEFX").iter().map(|event| format!("{event}\n")).collect();
    assert_eq!(
        row_codes(&check_transcript((line + &good).as_bytes(), short_input)),
        ["X-007 limit_exceeded"]
    ); // X-007
    assert_eq!(check_values(&broken, strict_options())[0].severity, Severity::Error);
    assert_eq!(Options::default().profile, Profile::Lenient);
}

#[test]
fn places_are_those_of_the_transcript() {
    let text = "{\"event\":\"thinking_start\",\"data\":{}}\n\n{\"event\":\"x\"}\r\n";
    let found = check_transcript(text.as_bytes(), strict_options());
    let unknown = found.iter().find(|finding| finding.code == "event_unknown").unwrap();
    assert_eq!((&text[unknown.span.start..unknown.span.end], unknown.line), ("{\"event\":\"x\"}", 3)); // X-006
    let good = sse_text(&stream("TPPEFXc"));
    let text = format!(": hi\n\n{}", good.replacen("\"t\"", "\" \"", 1));
    let found = check_transcript(text.as_bytes(), strict_options());
    assert_eq!(found[0].code, "title_empty");
    assert!(text[found[0].span.start..].starts_with("id: 2\nevent: phase_start")); // X-006
    assert!(text[..found[0].span.end].ends_with('}'));
    assert_eq!(found[0].line as usize, text[..found[0].span.start].matches('\n').count() + 1);
}

#[test]
fn places_in_an_array_are_those_of_the_transcript() {
    // X-006: an array with a byte order mark, ends of lines of all kinds, and brackets in its texts
    let text = "\u{FEFF} [\r\n{\"event\":\"thinking_start\",\"data\":{}},\r\n\n  {\"event\":\"字]\\\"[\"} , \r[1,[2]]\n]\n";
    let found = check_transcript(text.as_bytes(), strict_options());
    let find_code = |code: &str| found.iter().find(|finding| finding.code == code).expect("it is found");
    let excerpt = |code: &str| {
        (
            &text[find_code(code).span.start..find_code(code).span.end],
            find_code(code).line,
            find_code(code).column,
        )
    };
    assert_eq!(excerpt("event_unknown"), ("{\"event\":\"字]\\\"[\"}", 4, 3));
    assert_eq!(excerpt("event_shape"), ("[1,[2]]", 4, 24));
    assert_eq!(find_code("final_end_missing").span.start, text.len());
    let broken = check_transcript(b" \n[{\"event\":1},", strict_options());
    assert_eq!((broken[0].code.as_ref(), broken[0].span.start, broken[0].span.end), ("event_json", 2, 15));
    let mut short_input = strict_options();
    short_input.options.limits.input = 60;
    let long = check_transcript(format!("[\n{}]", "1,".repeat(100)).as_bytes(), short_input);
    assert_eq!((long[0].code.as_ref(), long[0].span.start, long[0].span.end), ("limit_exceeded", 0, 203)); // X-007
}

#[test]
fn the_first_error_is_listed_whatever_comes_before_it() {
    // X-006, X-007: warnings beyond the limit, then an error
    let flat = "{\"event\":\"final_delta\",\"text\":\"x\"}\n".repeat(5);
    let good: String = stream("TPPE").iter().map(|event| format!("{event}\n")).collect();
    let text = format!(
        "{good}{flat}{{\"event\":\"x\"}}\n{{\"event\":\"y\"}}\n{{\"event\":\"final_end\",\"data\":{{}}}}\n"
    );
    let mut few_findings = strict_options();
    few_findings.options.limits.findings = 2;
    let codes = |options| -> Vec<String> {
        check_transcript(text.as_bytes(), options).into_iter().map(|finding| finding.code.into()).collect()
    };
    assert_eq!(codes(few_findings.clone()), ["event_flat", "event_flat", "event_unknown", "limit_exceeded"]);
    few_findings.options.first_only = true;
    assert_eq!(codes(few_findings), ["event_unknown"]);
    let mut lenient = StreamCheckOptions::default();
    lenient.options.first_only = true;
    let flat = "{\"event\":\"final_delta\",\"text\":\"x\"}\n".repeat(2);
    let text = format!("{good}{flat}{{\"event\":\"final_end\",\"data\":{{}}}}\n");
    let found = check_transcript(text.as_bytes(), lenient);
    // Without an error, the first finding is listed.
    assert_eq!((found.len(), found[0].code.as_ref(), found[0].span.start), (1, "event_flat", good.len()));
}

#[test]
fn the_example_of_the_specification_passes() {
    // The specification shows the example without the common fields and without the end (R-26).
    let text = r##"event: serp_summary
data: {"text":"用户要一份三分化训练计划，包含频率与动作选择。"}

event: thinking_start
data: {}

event: phase_start
data: {"id":1,"title":"需求拆解"}

event: phase_delta
data: {"id":1,"text":"目标=增肌；器械=健身房；每周3-4练。"}

event: thinking_end
data: {}

event: final_delta
data: {"text":"# 三分化训练方案\n- Day1 推...\n"}

event: serp_queries
data: {"queries":["三分化训练怎么安排","三分化训练动作选择","三分化训练频率与恢复"]}

event: final_end
data: {}

"##;
    let found = check_transcript(text.as_bytes(), strict_options().with_envelope(false).with_terminal(false));
    assert_eq!(row_codes(&found), [""; 0]); // J-015, J-034, R-26
    assert_eq!(found.len(), 1); // Its only phase, J-019.
}

#[test]
fn findings_are_known_as_soon_as_they_are_made() {
    let mut checker = StreamChecker::new(strict_options());
    checker
        .push(b"\n\n{\"event\":\"thinking_start\",\"data\":{}}\n{\"event\":\"final_delta\",\"data\":{\"te");
    assert!(checker.findings().is_empty());
    checker.push(b"xt\":\"x\"}}\n");
    assert_eq!(row_codes(checker.findings()), ["J-016 final_before_thinking_end"]); // J-065
}
