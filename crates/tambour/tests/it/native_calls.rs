//! Tool calls that an upstream sends apart from the text of a reply.

use serde_json::json;
use tambour::event::{EventCollector, Extension, FinishReason};
use tambour::tool::ToolRegistry;
use tambour::{Event, InputEnd, Options, Pipeline, Severity, contract};

fn options() -> Options {
    let mut options = Options::default();
    options.set("text_language", "en").unwrap();
    let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]});
    let restricted = json!({"type": "object", "x-callers": ["somebody"]});
    options.tools = Some(
        ToolRegistry::from_json(&json!({"add": schema, "now": {"type": "object"}, "closed": restricted}))
            .unwrap(),
    );
    options
}

/// Reads a reply with native calls; returns the calls that act, the codes of the notices, and the sink.
fn read(
    text: &str,
    calls: &[(&str, &str)],
    end: &InputEnd,
) -> (Vec<(String, serde_json::Value)>, Vec<String>, EventCollector) {
    let mut sink = EventCollector::default();
    let mut pipeline = Pipeline::new("plain", &options()).unwrap().with_extensions(true);
    pipeline.push(text.as_bytes(), &mut sink);
    for (name, arguments) in calls {
        pipeline.push_call(name, arguments, &mut sink);
    }
    pipeline.finish(end, &mut sink);
    let mut findings = contract::check_events(&sink.events);
    findings.retain(|finding| finding.severity == Severity::Error);
    assert!(findings.is_empty(), "{findings:?}");
    let notices = pipeline.outcome().metadata.notices.iter().map(|notice| notice.code.to_string()).collect();
    let calls = sink.events.iter().filter_map(|event| match event {
        Event::Extension(extension) => match &**extension {
            Extension::ToolCall(call) => Some((call.name.clone(), call.args.clone())),
            _ => None,
        },
        _ => None,
    });
    (calls.collect(), notices, sink)
}

#[test]
fn whole_valid_calls_act_at_the_end_of_the_reply() {
    let (calls, notices, sink) = read("Adding.", &[("add", "{\"a\": 1}"), ("now", "")], &InputEnd::stop());
    assert_eq!(calls, [("add".to_owned(), json!({"a": 1})), ("now".to_owned(), json!({}))]);
    assert!(notices.is_empty());
    //
    let names: Vec<_> = sink.events.iter().map(Event::name).collect();
    assert!(
        names.ends_with(&["final_delta", "tool_call", "tool_call", "final_end", "completed"]),
        "{names:?}"
    );
    // Complete arguments with faults are repaired; a call acts without any text, too.
    let (calls, ..) = read("", &[("add", "{'a': 1,}")], &InputEnd::Finished(FinishReason::ToolCalls));
    assert_eq!(calls, [("add".to_owned(), json!({"a": 1}))]);
}

#[test]
fn others_are_told_and_never_act() {
    let refusal_code = |name: &str, arguments: &str, end: &InputEnd| {
        let (calls, notices, sink) = read("x", &[(name, arguments)], end);
        assert!(calls.is_empty(), "{calls:?}");
        let Some(Event::Completed(completed)) = sink.events.last() else { panic!("{sink:?}") };
        assert_eq!(completed.metadata.notices[0].reference.as_deref(), Some(name));
        notices.concat()
    };
    assert_eq!(refusal_code("add", "{\"a\": 1}", &InputEnd::Finished(FinishReason::Length)), "tool_call_cut");
    assert_eq!(refusal_code("add", "{\"a\": 1}", &InputEnd::WithoutReason), "tool_call_cut");
    assert_eq!(refusal_code("subtract", "{}", &InputEnd::stop()), "tool_unknown");
    assert_eq!(refusal_code("closed", "{}", &InputEnd::stop()), "tool_forbidden"); // P-033
    assert_eq!(refusal_code("add", "{\"a\": \"x\"}", &InputEnd::stop()), "tool_args_invalid");
    for arguments in ["{\"a\": 1", "{\"a\": 1} {\"a\": 2}", "[1]", "a: 1", "\"{\\\"a\\\": 1}\""] {
        assert_eq!(refusal_code("add", arguments, &InputEnd::stop()), "tool_args_invalid", "{arguments}");
    }
}

#[test]
fn arguments_that_are_in_doubt_never_act() {
    for (arguments, code) in [
        ("{\"a\":NaN}", "value_guessed"),
        ("{\"a\":Infinity}", "value_guessed"),
        ("{\"a\":100 - 30}", "value_guessed"),
        ("{\"a\":1 \"b\":2}", "value_guessed"),
        ("{\"a\":1,\"b\":[2 3]}", "value_guessed"),
        ("{\"a\":1,\"b\":\"he said \"yes\" twice\"}", "value_guessed"),
        ("{\"a\":1,\"b\":bare words}", "value_guessed"),
        ("{\"a\":1,\"a\":2}", "duplicate_key"),
        ("{'a':1,'a':2}", "duplicate_key"),
        ("{\"a\":1,\"b\":{\"c\":1,\"c\":2}}", "duplicate_key"),
        ("{\"a\":1e400}", "number_out_of_range"),
        ("{\"a\":-1e400}", "number_out_of_range"),
        ("{\"a\":12345678901234567890123}", "number_out_of_range"),
        ("{\"a\":1,\"b\":[{\"c\":1e400}]}", "number_out_of_range"),
        ("", "args_missing"),
        (" \n", "args_missing"),
    ] {
        let (calls, notices, _) = read("x", &[("add", arguments)], &InputEnd::stop());
        assert_eq!((calls, notices.as_slice()), (Vec::new(), [code.to_owned()].as_slice()), "{arguments}");
        // The doubt concerns this call alone: another call of the reply runs.
        let (calls, notices, _) = read("x", &[("add", arguments), ("add", "{\"a\":1}")], &InputEnd::stop());
        assert_eq!(calls, [("add".to_owned(), json!({"a": 1}))], "{arguments}");
        assert_eq!(notices, [code], "{arguments}");
    }
    // Some tools need no arguments.
    assert_eq!(read("x", &[("now", " ")], &InputEnd::stop()).0, [("now".to_owned(), json!({}))]);
}

#[test]
fn they_count_as_part_of_the_reply() {
    let mut options = options();
    options.limits.input = 40;
    let mut sink = EventCollector::default();
    let mut pipeline = Pipeline::new("plain", &options).unwrap();
    pipeline.push(b"x", &mut sink);
    pipeline.push_call("add", &" ".repeat(40), &mut sink);
    assert_eq!(sink.events.last().map(Event::name), Some("error"));
}
