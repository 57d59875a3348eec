//! Guarantees of a stream under any end and any chunking: ends, limits, promptness, round trips.

use serde_json::json;
use tambour::event::{Completed, EventCollector, EventKind, Extension, Failure, FinishReason, Notice};
use tambour::{Event, InputEnd, Options, Pipeline, Profile, Severity, contract};

const REPLY: &str = "<think>draft</think>\n<serp>The user wants a plan.</serp>\n<thinking>\n<phase id=\"1\">\n\
    <title>Goal</title>\nthree days a week\n</phase>\n<phase id=\"2\">\n<title>Plan</title>\npush &amp; pull\n</phase>\n\
    </thinking>\n<final>\n# Plan\n\n- push `a < b`\n<!-- <serp_queries>\n[\"push pull legs\"]\n</serp_queries> -->\n\
    </final>\n";

fn read(dialect: &str, options: &Options, reply: &[u8], end: &InputEnd, extensions: bool) -> EventCollector {
    let mut sink = EventCollector::default();
    let mut pipeline = Pipeline::new(dialect, options).expect("a dialect").with_extensions(extensions);
    pipeline.push(reply, &mut sink);
    pipeline.finish(end, &mut sink);
    sink
}

fn read_by_default(dialect: &str, reply: &str) -> EventCollector {
    read(dialect, &Options::default(), reply.as_bytes(), &InputEnd::stop(), false)
}

fn completed(sink: &EventCollector) -> &Completed {
    match sink.events.last() {
        Some(Event::Completed(completed)) => completed,
        other => panic!("the stream ends with {other:?}"),
    }
}

fn contract_events(sink: &EventCollector) -> Vec<Event<'static>> {
    sink.join_deltas().into_iter().filter(|event| event.kind() == EventKind::Contract).collect()
}

fn assert_valid(sink: &EventCollector) {
    let errors: Vec<_> = contract::check_events(&sink.events)
        .into_iter()
        .filter(|f| f.severity == tambour::Severity::Error)
        .collect();
    assert!(errors.is_empty(), "{errors:?}\n{:?}", sink.events);
}

fn options(values: &[(&str, &str)]) -> Options {
    let mut options = Options::default();
    for (name, value) in values {
        options.set(name, *value).expect("a known option");
    }
    options
}

fn options_with_profile(profile: Profile) -> Options {
    let mut options = Options::default();
    options.profile = profile;
    options
}

#[test]
fn every_way_to_end_has_one_end() {
    let failure = Failure::new("upstream_closed", "reset", true);
    // X-014: each finish reason, a clean end without one, a broken connection, a cancel.
    let ends = [
        (InputEnd::stop(), Some((FinishReason::Stop, false))),
        (InputEnd::Finished(FinishReason::ToolCalls), Some((FinishReason::ToolCalls, false))),
        (InputEnd::Finished(FinishReason::Length), Some((FinishReason::Length, true))),
        (InputEnd::Finished(FinishReason::ContentFilter), Some((FinishReason::ContentFilter, true))),
        (InputEnd::Finished(FinishReason::Cancelled), Some((FinishReason::Cancelled, true))),
        (InputEnd::WithoutReason, Some((FinishReason::Length, true))),
        (InputEnd::Failed(failure.clone()), None),
    ];
    for dialect in ["thinkingml", "jsonseq", "plain", "auto"] {
        for (end, expected) in &ends {
            for cut in [0, 1, 40, 150, REPLY.len()] {
                let sink = read(dialect, &Options::default(), &REPLY.as_bytes()[..cut], end, false);
                let is_terminal = |e: &&Event<'_>| matches!(e, Event::Completed(_) | Event::Error(_));
                assert_eq!(sink.events.iter().filter(is_terminal).count(), 1, "{dialect} {end:?} {cut}"); // J-035
                match (expected, sink.events.last()) {
                    (Some((reason, truncated)), Some(Event::Completed(completed))) => {
                        assert_eq!(completed.finish_reason, *reason);
                        assert!(completed.metadata.truncated || !truncated, "{dialect} {end:?} {cut}");
                    }
                    (None, Some(Event::Error(error))) => assert_eq!(*error, failure),
                    (expected, last) => panic!("{dialect} {end:?} {cut}: {expected:?}, {last:?}"),
                }
                assert_valid(&sink); // X-001
            }
        }
    }
}

#[test]
fn a_failure_before_the_first_event_is_only_an_error() {
    let failure = Failure::new("upstream_closed", "reset", true);
    let sink = read("thinkingml", &Options::default(), b"  ", &InputEnd::Failed(failure), false);
    assert_eq!(sink.events.len(), 1); // X-001
    assert_valid(&sink);
}

#[test]
fn a_cut_reply_is_closed_and_marked() {
    for cut in 0..REPLY.len() {
        let end = InputEnd::Finished(FinishReason::Length);
        let sink = read("thinkingml", &Options::default(), &REPLY.as_bytes()[..cut], &end, false);
        assert!(completed(&sink).metadata.truncated); // J-056
        assert_valid(&sink);
        for event in &sink.events {
            if let Event::FinalDelta { text } = event {
                // J-045, J-048: the client receives neither half a tag nor half a queries block.
                assert!(
                    !text.contains("<!") && !text.contains("</") && !text.contains("serp"),
                    "{cut}: {text}"
                );
            }
        }
    }
}

#[test]
fn answer_text_is_sent_while_it_arrives() {
    // J-037: 1,000 characters in pieces of 40; each piece is sent before the next arrives.
    let words = "twenty-one small words in a row are sent; ".repeat(24);
    for (dialect, before) in [
        ("thinkingml", "<thinking><phase id=\"1\"><title>t</title></phase></thinking><final>"),
        ("plain", ""),
    ] {
        let mut sink = EventCollector::default();
        let mut pipeline = Pipeline::new(dialect, &Options::default()).expect("a dialect");
        pipeline.push(before.as_bytes(), &mut sink);
        let mut input_len = 0;
        for chunk in words.as_bytes().chunks(40) {
            pipeline.push(chunk, &mut sink);
            input_len += chunk.len();
            let output_len: usize = sink
                .events
                .iter()
                .map(|event| if let Event::FinalDelta { text } = event { text.len() } else { 0 })
                .sum();
            // White space at the very end may wait.
            assert!(input_len - output_len <= 1, "{dialect}: {input_len} in, {output_len} out");
        }
    }
}

#[test]
fn the_text_of_one_long_line_is_sent_while_it_arrives() {
    let mut sink = EventCollector::default();
    let mut pipeline = Pipeline::new("jsonseq", &Options::default()).expect("a dialect");
    let line = format!("{{\"event\":\"final_delta\",\"data\":{{\"text\":\"{}", "word ".repeat(4000));
    pipeline.push(line.as_bytes(), &mut sink);
    let output_len: usize =
        sink.events.iter().map(|e| if let Event::FinalDelta { text } = e { text.len() } else { 0 }).sum();
    assert!(output_len > 19_000, "{output_len}"); // J-037
}

#[test]
fn a_long_delta_is_split_and_nothing_is_lost() {
    let text = "增肌 and 减脂, ".repeat(200);
    let sink = read_by_default("plain", &text);
    let deltas: Vec<&str> = sink
        .events
        .iter()
        .filter_map(|event| if let Event::FinalDelta { text } = event { Some(text.as_ref()) } else { None })
        .collect();
    assert!(deltas.len() > 1); // J-039
    assert_eq!(deltas.concat(), text.trim());
}

#[test]
fn valid_thinkingml_has_no_findings_in_either_profile() {
    for profile in [Profile::Strict, Profile::Lenient] {
        let sink =
            read("thinkingml", &options_with_profile(profile), REPLY.as_bytes(), &InputEnd::stop(), false);
        assert_eq!(sink.findings, [], "{profile:?}"); // X-002
        assert_eq!(completed(&sink).metadata.warnings, 0);
    }
}

#[test]
fn warnings_and_repairs_are_counted_without_information() {
    // X-009: one phase is information; fields outside `data` are a warning, and are read
    let lines = "{\"event\":\"thinking_start\",\"data\":{}}\n{\"event\":\"phase_start\",\"data\":{\"id\":1,\"title\":\"t\"}}\n\
                 {\"event\":\"thinking_end\",\"data\":{}}\n{\"event\":\"final_delta\",\"text\":\"x\"}\n\
                 {\"event\":\"final_end\",\"data\":{}}\n";
    for profile in [Profile::Strict, Profile::Lenient] {
        let sink =
            read("jsonseq", &options_with_profile(profile), lines.as_bytes(), &InputEnd::stop(), false);
        let found: Vec<(&str, Severity)> =
            sink.findings.iter().map(|finding| (finding.code.as_ref(), finding.severity)).collect();
        assert_eq!(found, [("data_flat", Severity::Warning), ("single_phase", Severity::Info)]);
        let metadata = &completed(&sink).metadata;
        assert_eq!((metadata.warnings, metadata.repairs), (1, 1), "{profile:?}");
    }
}

#[test]
fn writing_and_reading_again_gives_the_same_events() {
    let first = read("thinkingml", &Options::default(), REPLY.as_bytes(), &InputEnd::stop(), true);
    for name in ["thinkingml", "jsonseq"] {
        let write = tambour::dialect::find_dialect(name)
            .ok()
            .and_then(|entry| entry.write)
            .expect("it can be written");
        let text = write(&first.events);
        let second =
            read(name, &options_with_profile(Profile::Strict), text.as_bytes(), &InputEnd::stop(), true);
        assert_eq!(contract_events(&first), contract_events(&second), "{text}"); // X-003
        assert_eq!(second.findings, [], "{text}");
        assert_eq!(
            write(&second.events).replace("<think>draft</think>\n", ""),
            text.replace("<think>draft</think>\n", "")
        );
    }
}

#[test]
fn the_verdict_is_the_same_whole_joined_and_in_pieces() {
    let broken = REPLY.replace("id=\"2\"", "id=\"7\"").replace("<title>Goal</title>", "<Title>Goal</Title>");
    let strict = options_with_profile(Profile::Strict);
    let whole = read("thinkingml", &strict, broken.as_bytes(), &InputEnd::stop(), false);
    // Joined legacy deltas, which carry the raw text, are the reply again.
    let joined: String = broken.split_inclusive('\n').collect();
    let mut pieces = EventCollector::default();
    let mut pipeline = Pipeline::new("thinkingml", &strict).expect("a dialect");
    for byte in joined.as_bytes() {
        pipeline.push(&[*byte], &mut pieces);
    }
    pipeline.finish(&InputEnd::stop(), &mut pieces);
    assert_eq!(whole.findings, pieces.findings); // T-065
    assert!(whole.findings.iter().any(|f| f.code == "phase_id_not_consecutive"));
    assert!(whole.findings.iter().any(|f| f.code == "tag_case"));
}

#[test]
fn findings_say_where_and_what() {
    let sink = read_by_default(
        "thinkingml",
        "<thinking>\n<phase id=\"1\">\n<title>增肌</title> 中<b>x</b>\n</phase>\n</thinking>\n<final>\na\n</final>",
    );
    let tag = sink.findings.iter().find(|f| f.code == "unexpected_tag").expect("the tag is found");
    // X-006: rule, code, place, message and repair in one format.
    assert_eq!((tag.rule.as_ref(), tag.line, tag.column), ("T-037", 3, 20));
    assert_eq!(tag.span.end - tag.span.start, 3);
    let json = serde_json::to_value(tag).expect("a finding is JSON");
    for key in ["rule", "code", "severity", "span", "line", "column", "message", "repair"] {
        assert!(json.get(key).is_some(), "{key}");
    }
}

#[test]
fn a_reply_over_the_input_limit_is_closed_and_fails() {
    let options = options(&[("limits.input", "100")]);
    for size in [100, 101, 5000] {
        let reply = "a".repeat(size);
        let mut sink = EventCollector::default();
        let mut pipeline = Pipeline::new("plain", &options).expect("a dialect");
        for chunk in reply.as_bytes().chunks(7) {
            pipeline.push(chunk, &mut sink);
        }
        pipeline.finish(&InputEnd::stop(), &mut sink);
        let has_failed = matches!(sink.events.last(), Some(Event::Error(e)) if e.code == "input_too_large");
        assert_eq!(has_failed, size > 100, "{size}"); // X-007
        let text: String = sink
            .events
            .iter()
            .filter_map(|e| if let Event::FinalDelta { text } = e { Some(text.as_ref()) } else { None })
            .collect();
        assert_eq!(text.len(), size.min(100));
        assert_valid(&sink);
    }
}

#[test]
fn what_exceeds_a_limit_is_text_with_a_finding() {
    let small_limits = options(&[("limits.hold", "200"), ("limits.phases", "3")]);
    let long = "word ".repeat(100);
    let phases: String =
        (1..=5).map(|id| format!("<phase id=\"{id}\"><title>t{id}</title>x</phase>")).collect();
    let cases = [
        (
            "thinkingml",
            format!("{long}<thinking><phase id=\"1\"><title>t</title></phase></thinking><final>a</final>"),
        ),
        ("thinkingml", format!("<thinking>{phases}</thinking><final>a</final>")),
        (
            "thinkingml",
            format!(
                "<thinking><phase id=\"1\"><title>t</title>a <final> {long}</phase></thinking><final>b</final>"
            ),
        ),
        ("jsonseq", format!("{long}\n{{\"event\":\"thinking_start\"}}")),
        (
            "jsonseq",
            format!(
                "{{\"event\":\"thinking_start\",\"data\":{{}}}}\n{{\"event\":\"final_delta\",\"data\":{{\"text\":\"{long}\"}}}}"
            ),
        ),
    ];
    for (dialect, reply) in cases {
        let sink = read(dialect, &small_limits, reply.as_bytes(), &InputEnd::stop(), false);
        assert!(sink.findings.iter().any(|f| f.code == "limit_exceeded"), "{reply}\n{:?}", sink.findings); // X-007
        assert_valid(&sink);
        let output: String =
            sink.events.iter().filter_map(|e| e.data()["text"].as_str().map(str::to_owned)).collect();
        if reply.contains("word") {
            assert!(output.contains(long.trim()), "{reply}\n{output}");
        }
    }
}

#[test]
fn reasoning_in_a_field_of_its_own() {
    // X-012: phase 1 of a plain reply, a draft elsewhere.
    for (dialect, reply, phase) in
        [("plain", "It is 4.", "2 + 2"), ("thinkingml", REPLY, "three days a week")]
    {
        let mut sink = EventCollector::default();
        let mut pipeline =
            Pipeline::new(dialect, &Options::default()).expect("a dialect").with_extensions(true);
        pipeline.push_reasoning("2 + 2", &mut sink);
        pipeline.push(reply.as_bytes(), &mut sink);
        pipeline.finish(&InputEnd::stop(), &mut sink);
        let first = sink
            .events
            .iter()
            .find_map(|e| if let Event::PhaseDelta { text, .. } = e { Some(text.as_ref()) } else { None });
        assert_eq!(first, Some(phase));
        let has_draft =
            sink.events.iter().any(|e| matches!(e, Event::DraftDelta { text } if text == "2 + 2"));
        assert_eq!(has_draft, dialect == "thinkingml");
        assert_valid(&sink);
    }
}

#[test]
fn a_draft_reaches_nobody_who_did_not_ask() {
    let plain_sink = read_by_default("thinkingml", REPLY);
    assert!(plain_sink.events.iter().all(|event| !event.data().to_string().contains("draft"))); // J-047
    let extended_sink = read("thinkingml", &Options::default(), REPLY.as_bytes(), &InputEnd::stop(), true);
    assert!(extended_sink.events.iter().any(|event| matches!(event, Event::DraftDelta { .. })));
    // X-010: without the extensions the stream is the same.
    let filtered: Vec<_> = extended_sink
        .join_deltas()
        .into_iter()
        .filter(|event| event.kind() != EventKind::Extension)
        .collect();
    assert_eq!(filtered, plain_sink.join_deltas());
}

#[test]
fn nothing_but_extensions_comes_from_elsewhere() {
    // X-001: inserted events of the contract would break the grammar, so they cannot be expressed.
    for name in ["final_end", "thinking_start", "completed", "draft_delta", "nonsense"] {
        assert_eq!(Extension::parse(name, &json!({"text": "x"})), None, "{name}");
    }
    let mut sink = EventCollector::default();
    let mut pipeline = Pipeline::new("plain", &Options::default()).expect("a dialect").with_extensions(true);
    let notice = Notice { code: "x".into(), message: "y".into(), reference: None };
    pipeline.insert(notice.clone(), &mut sink);
    pipeline.push(b"It is ", &mut sink);
    pipeline.insert(notice.clone(), &mut sink);
    pipeline.push(b"4.", &mut sink);
    pipeline.finish(&InputEnd::stop(), &mut sink);
    pipeline.insert(notice, &mut sink);
    assert_valid(&sink);
    assert_eq!(sink.events.iter().filter(|event| event.name() == "notice").count(), 2);
}

#[test]
fn an_extension_is_its_name_its_data_and_its_schema() {
    // X-010: a logged extension parses to the one that was sent; the served schema knows each.
    let data = [
        ("plan", json!({"plan": {}, "executable": false, "is_fallback": true})),
        ("tool_call", json!({"call_id": "call_1", "name": "n", "args": {"a": 1}})),
        ("tool_start", json!({"call_id": "call_1", "name": "n"})),
        ("tool_result", json!({"call_id": "call_1", "ok": true, "result": 4, "elapsed_ms": 7})),
        (
            "state_update",
            json!({
                "analysis": "a", "operations": [{"op": "SET", "path": "p", "value": null}, {"op": "POP", "path": "q"}],
                "results": [{"index": 0, "ok": true, "after": null}, {"index": 1, "ok": false, "reason": "path_missing"}],
            }),
        ),
        (
            "status_bar",
            json!({"items": [{"name": "n", "text": "t", "items": [{"name": "m", "text": "u", "items": []}]}]}),
        ),
        ("details", json!({"summary": "s", "text": "t"})),
        ("choice", json!({"prompt": "p", "options": [{"id": "a", "text": "A"}]})),
        ("ui_component", json!({"view": "a.b", "props": {}, "fallback_text": "t"})),
        ("media", json!({"type": "image", "src": "a.png", "alt": ""})),
        ("element", json!({"name": "n", "attributes": {"a": "b"}, "text": "", "value": [1]})),
        (
            "exit_decision",
            json!({
                "should_exit": true, "reason": "r", "decision_source": "max_rounds", "unmet": ["has_questions"], "round": 3,
                "max_rounds": 3, "assessment": {"understanding_level": 80},
            }),
        ),
        ("notice", json!({"code": "c", "message": "m", "ref": "call_1"})),
        ("form", json!({"call_id": "call_1", "title": "t"})),
        ("picture", json!({"call_id": "call_1", "src": "a.png"})),
        ("skill", json!({"call_id": "call_1", "name": "n"})),
    ];
    assert_eq!(data.each_ref().map(|(name, _)| *name), *Extension::NAMES);
    let schema = jsonschema::validator_for(&Extension::schema()).expect("a schema");
    for (name, data) in data {
        let extension = Extension::parse(name, &data).unwrap_or_else(|| panic!("{name} is an extension"));
        assert_eq!((extension.name(), extension.data()), (name, data.clone()));
        let event = Event::from(extension);
        assert_eq!((event.name(), event.kind(), event.data()), (name, EventKind::Extension, data.clone()));
        let value = serde_json::to_value(&event).expect("JSON");
        assert!(schema.is_valid(&value), "{value}");
        assert!(!schema.is_valid(&json!({"event": name, "data": {}})), "{name}");
        assert_eq!(tambour::event::parse_kind(name), Some(EventKind::Extension));
    }
}
