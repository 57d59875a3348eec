//! Events to bytes: JSON Lines, and SSE frames of the output protocols.

use std::borrow::Cow;

use proptest::prelude::*;
use serde_json::{Value, json};
use tambour::contract::{StreamCheckOptions, check_transcript};
use tambour::encode::sse::Envelope;
use tambour::encode::{
    Encoder as _, EncoderEntry, EncoderEntryKind, FoldedMessage, NativeEncoder, OutputProtocol, jsonl,
    jsonseq, legacy, sse,
};
use tambour::event;
use tambour::event::{AsideKind, Completed, Event, Failure, Notice};
use tambour::finding::{FindingReport, Profile};
use tambour::span::Place;
use tambour_prompt::catalogue;

/// Sample events, one of each kind.
fn sample_events() -> Vec<Event<'static>> {
    let rule = catalogue::find("T-009").next().expect("T-009 is a rule").rule;
    let finding = FindingReport::new(rule, Place::START, 3, "no `<final>`").judge(Profile::Strict);
    let notice = Notice { code: "n".into(), message: "a\nb".to_owned(), reference: Some("c1".to_owned()) };
    vec![
        Event::Status { state: "running".into() },
        Event::DraftDelta { text: "draft".into() },
        Event::SerpSummary { text: "sum\"mary".into() },
        Event::ThinkingStart,
        Event::Heartbeat { ts: "2026-11-21T10:00:00Z".into() },
        Event::PhaseStart { id: 1, title: "目标".into() },
        Event::PhaseDelta { id: 1, text: "line one\nline two\r\n\u{2028}end".into() },
        Event::PhaseStart { id: 2, title: "plan".into() },
        Event::Aside { kind: AsideKind::Comment, text: "<!-- x -->".into() },
        notice.into(),
        Event::Finding(Box::new(finding)),
        Event::ThinkingEnd,
        Event::FinalDelta { text: "a\tb\\c\u{0}\u{1f}\u{8}\u{c}\u{7f}😀".into() },
        Event::SerpQueries { queries: vec!["q \"1\"".to_owned(), "查询".to_owned()] },
        Event::FinalEnd,
        Event::Completed(Box::new(completed())),
    ]
}

fn completed() -> Completed {
    let mut completed = Completed::default();
    completed.usage = json!({ "total_tokens": 12 });
    completed.metadata.dialect = "thinkingml".to_owned();
    completed
}

fn failure() -> Event<'static> {
    let message = "the connection\nbroke".to_owned();
    Event::Error(Failure::new("upstream_failed", message, true))
}

/// Parses a frame into field names and values.
fn parse_frame(frame: &[u8]) -> Vec<(String, String)> {
    let text = std::str::from_utf8(frame).expect("frames are UTF-8"); // J-034
    let body = text.strip_suffix("\n\n").expect("a blank line ends a frame"); // J-034
    assert!(!body.contains('\r') && !body.contains("\n\n"), "{text:?}");
    let split = |line: &str| line.split_once(": ").map(|(name, value)| (name.to_owned(), value.to_owned()));
    body.lines().map(|line| split(line).expect("`name: value`")).collect()
}

fn frame_fields(write: impl FnOnce(&mut Vec<u8>)) -> Vec<(String, String)> {
    let mut out = Vec::new();
    write(&mut out);
    parse_frame(&out)
}

fn field_value(fields: &[(String, String)], name: &str) -> Option<String> {
    fields.iter().find(|(found, _)| found == name).map(|(_, value)| value.clone())
}

#[test]
fn lines_say_what_the_event_says() {
    for event in sample_events().iter().chain([&failure()]) {
        let mut out = Vec::new();
        jsonl::write_line(event, &mut out);
        let line = String::from_utf8(out).expect("a line is UTF-8");
        assert_eq!(line.matches('\n').count(), 1, "{line}");
        let decoded: Value = serde_json::from_str(&line).expect("a line is JSON");
        assert_eq!(decoded, serde_json::to_value(event).expect("an event is JSON"));
    }
}

#[test]
fn a_delta_may_have_other_members() {
    let kind = EncoderEntryKind::Event("final_delta");
    for json in [
        r#"{"text":"a\"b\\"}"#,
        r#"{"text": "a\"b\\"}"#,
        r#"{"text":"a\"b\\","n":1}"#,
        r#"{"text":"a\"b\\","note":"\\"}"#,
        r#"{"n":1,"text":"a\"b\\"}"#,
    ] {
        let mut message = FoldedMessage::default();
        message.push_entry(&EncoderEntry { number: 1, kind, json, reply: None });
        assert_eq!(message.answer, "a\"b\\", "{json}");
    }
}

#[test]
fn frames_have_one_event_line_and_one_data_line() {
    let envelope = Envelope::new("m-1", "r \"1\"");
    for (index, event) in sample_events().iter().chain([&failure()]).enumerate() {
        let number = index as u64 + 7;
        let fields = frame_fields(|out| jsonseq::write_event(event, number, &envelope, out));
        let count = |name: &str| fields.iter().filter(|(found, _)| found == name).count();
        assert_eq!((count("event"), count("data")), (1, 1)); // J-034
        assert_eq!(field_value(&fields, "event").as_deref(), Some(event.name()));
        let data: Value =
            serde_json::from_str(&field_value(&fields, "data").expect("data")).expect("one line of JSON");
        let mut expected = event.data();
        expected["message_id"] = json!("m-1"); // J-030
        expected["request_id"] = json!("r \"1\"");
        assert_eq!(data, expected);
        let is_control = matches!(event.name(), "status" | "heartbeat");
        let id = (!is_control).then(|| number.to_string());
        assert_eq!(field_value(&fields, "id"), id, "{}", event.name()); // J-036
    }
}

#[test]
fn a_whole_stream_passes_the_checker() {
    let envelope = Envelope::new("m", "r");
    let mut out = Vec::new();
    for (index, event) in sample_events().iter().enumerate() {
        jsonseq::write_event(event, index as u64 * 3, &envelope, &mut out);
        sse::write_comment("keep\nalive", &mut out);
    }
    let findings = check_transcript(&out, StreamCheckOptions::default());
    // Findings below an error are advice on the content: J-030, J-034, J-035 and J-036 hold.
    assert!(findings.iter().all(|finding| finding.severity < tambour::Severity::Error), "{findings:?}");
}

#[test]
fn the_raw_reply_is_in_the_legacy_protocol_only() {
    let envelope = Envelope::new("m", "r");
    let mut completed_with_reply = completed();
    completed_with_reply.reply = Some("<final>a</final>".to_owned());
    let event = Event::Completed(Box::new(completed_with_reply));
    let fields = frame_fields(|out| jsonseq::write_event(&event, 9, &envelope, out));
    let data: Value = serde_json::from_str(&field_value(&fields, "data").expect("data")).expect("JSON");
    assert_eq!(data.get("reply"), None);

    let event = Event::Completed(Box::new(completed()));
    let fields = frame_fields(|out| legacy::write_event(&event, "raw\ntext", 9, &envelope, out));
    let data: Value = serde_json::from_str(&field_value(&fields, "data").expect("data")).expect("JSON");
    assert_eq!(data["reply"], "raw\ntext"); // J-032
    assert_eq!(data["metadata"]["dialect"], "thinkingml");
    assert_eq!(data["message_id"], "m");
    assert_eq!(field_value(&fields, "id").as_deref(), Some("9"));
}

#[test]
fn the_legacy_protocol_has_raw_text_and_system_events() {
    let envelope = Envelope::new("m", "r");
    let fields = frame_fields(|out| legacy::write_content_delta(4, "<final>\n\"x", 12, &envelope, out));
    assert_eq!(field_value(&fields, "event").as_deref(), Some("content_delta"));
    assert_eq!(field_value(&fields, "id").as_deref(), Some("12"));
    let data: Value = serde_json::from_str(&field_value(&fields, "data").expect("data")).expect("JSON");
    assert_eq!(data, json!({ "seq": 4, "delta": "<final>\n\"x", "message_id": "m", "request_id": "r" }));

    for event in sample_events().iter().chain([&failure()]) {
        let mut out = Vec::new();
        legacy::write_event(event, "raw", 1, &envelope, &mut out);
        let is_system = event.kind() == event::EventKind::System;
        assert_eq!(!out.is_empty(), is_system, "{}", event.name()); // J-032, J-031
        if is_system {
            let id = field_value(&parse_frame(&out), "id");
            assert_eq!(id.is_none(), matches!(event.name(), "status" | "heartbeat"));
        }
    }
}

#[test]
fn the_legacy_protocol_is_the_default() {
    // J-032
    assert_eq!(OutputProtocol::from_setting(None), OutputProtocol::Legacy);
    assert_eq!(OutputProtocol::from_setting(Some("jsonseq_v9")), OutputProtocol::Legacy);
    assert_eq!(OutputProtocol::from_setting(Some("jsonseq_v1")), OutputProtocol::JsonSeqV1);
    for protocol in OutputProtocol::ALL {
        assert_eq!(OutputProtocol::from_name(protocol.name()), Some(*protocol));
    }
}

proptest! {
    #[test]
    fn any_text_survives(text in any::<String>(), id in any::<u32>(), number in any::<u64>()) {
        let event = Event::PhaseDelta { id, text: Cow::Borrowed(&text) };
        let fields = frame_fields(|out| jsonseq::write_event(&event, number, &Envelope::new(&text, ""), out)); // J-034
        let data: Value = serde_json::from_str(&field_value(&fields, "data").expect("data")).expect("JSON");
        let expected = json!({ "id": id, "text": text, "message_id": text, "request_id": "" });
        prop_assert_eq!(data, expected);
        prop_assert_eq!(field_value(&fields, "id"), Some(number.to_string()));
    }
}

#[test]
fn a_frame_may_have_the_number_0() {
    for id in [0, 7, 10, u64::MAX] {
        let mut out = Vec::new();
        sse::write_frame("x", Some(id), &Envelope::new("m", "r"), &mut out, |out| {
            out.extend_from_slice(b"{}")
        });
        assert_eq!(parse_frame(&out)[0], ("id".to_owned(), id.to_string()));
    }
}

#[test]
fn a_comment_is_one_line() {
    // J-034
    for text in ["a\nb", "a\rb"] {
        let mut out = Vec::new();
        sse::write_comment(text, &mut out);
        assert_eq!(out, b": a b\n\n");
    }
}

#[test]
fn the_whole_reply_of_thinkingml_is_escaped_where_its_thinking_speaks_of_the_answer() {
    // R-90: the reply that clients receive, written from the log.
    let reply = "<thinking>I mention <final> here.</thinking>\n<final>Hi</final>";
    let encoded_reply = |dialect: &str| {
        let log =
            json!({ "usage": null, "finish_reason": "stop", "metadata": { "dialect": dialect } }).to_string();
        let mut encoder = NativeEncoder::new(Envelope::new("m", "r"), OutputProtocol::Legacy, false, false);
        let kind = EncoderEntryKind::Event("completed");
        assert!(encoder.wants_reply(kind));
        let fields = frame_fields(|out| {
            encoder.write_entry(&EncoderEntry { number: 3, kind, json: &log, reply: Some(reply) }, out)
        });
        let data: Value = serde_json::from_str(&field_value(&fields, "data").expect("data")).expect("JSON");
        assert_eq!(data["metadata"]["dialect"], dialect);
        data["reply"].as_str().map(str::to_owned)
    };
    let escaped = "<thinking>I mention &lt;final&gt; here.</thinking>\n<final>Hi</final>";
    assert_eq!(encoded_reply("thinkingml").as_deref(), Some(escaped));
    assert_eq!(encoded_reply("plain").as_deref(), Some(reply));
}
