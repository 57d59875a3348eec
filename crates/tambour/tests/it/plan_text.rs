//! Plans: answers, held bytes, lost text and findings of a reply.

use serde_json::{Value, json};
use tambour::dialect::find_dialect;
use tambour::event::{EventCollector, Extension};
use tambour::verdict::Contract;
use tambour::{Event, InputEnd, Options, Pipeline, Profile};
use tambour_fixtures::corpus::load_recorded;

fn read(reply: &str, options: &Options) -> (EventCollector, usize) {
    let (mut sink, mut held) = (EventCollector::default(), 0);
    let mut pipeline = Pipeline::new("aiplan", options).expect("a dialect").with_extensions(true);
    for chunk in reply.as_bytes().chunks(997) {
        pipeline.push(chunk, &mut sink);
        held = held.max(pipeline.held_bytes());
    }
    pipeline.finish(&InputEnd::stop(), &mut sink);
    (sink, held)
}

fn answer(sink: &EventCollector) -> String {
    let text = |event: &Event<'_>| match event {
        Event::FinalDelta { text } => Some(text.to_string()),
        _ => None,
    };
    sink.events.iter().filter_map(text).collect()
}

fn outcome(sink: &EventCollector) -> Value {
    sink.events.iter().find(|event| event.name() == "plan").expect("every reply has a plan").data()
}

fn metadata(sink: &EventCollector) -> Value {
    sink.events.last().expect("an end").data()["metadata"].clone()
}

fn count_calls(sink: &EventCollector) -> usize {
    sink.events.iter().filter(|event| matches!(event.extension(), Some(Extension::ToolCall(_)))).count()
}

const CALL: &str = "{\"name\":\"lintSRSDocument\",\"args\":{\"userInput\":\"x\"}}";

fn tool_plan(calls: &str) -> String {
    format!(
        "{{\"thought\":\"t\",\"response_mode\":\"TOOL_EXECUTION\",\"direct_response\":null,\"tool_calls\":[{calls}]}}"
    )
}

fn chat_plan(answer: &str) -> String {
    let answer = json!(answer);
    format!(
        "{{\"thought\":\"t\",\"response_mode\":\"GENERAL_CHAT\",\"direct_response\":{answer},\"tool_calls\":[]}}"
    )
}

#[test]
fn recorded_prose_is_the_answer() {
    // R-70
    let mut prose = 0;
    for reply in load_recorded("aiplan").expect("a corpus") {
        let text = reply.joined_text();
        let (sink, _) = read(&text, &Options::default());
        let outcome = outcome(&sink);
        if text.contains("\"thought\"") {
            assert_ne!(metadata(&sink)["unused_reason"], "plan_missing", "{text}");
            continue;
        }
        prose += 1;
        assert_eq!(answer(&sink), text.trim_matches([' ', '\t', '\r', '\n']));
        assert_eq!((&outcome["is_fallback"], &outcome["executable"]), (&json!(true), &json!(false)));
        assert_eq!(outcome["plan"]["direct_response"], "抱歉，我的响应格式有问题，请重新尝试您的请求。");
        let metadata = metadata(&sink);
        assert_eq!(
            (&metadata["unused_reason"], &metadata["fallback_reason"]),
            (&json!("plan_missing"), &Value::Null)
        );
    }
    assert!(prose >= 10, "{prose} replies are prose");
}

#[test]
fn prose_is_written_as_a_plan() {
    // R-70
    let contract = Contract::from_name("aiplan").expect("a contract");
    let mut strict = Options::default();
    strict.profile = Profile::Strict;
    for prose in
        ["Hello.", "<think>Hm.</think>\nIt is `{\"a\": 1}`.", "```\ncode\n```", "\"quoted\" \\ and\ttabs"]
    {
        assert!(contract.check(prose.as_bytes(), &strict).first_error().is_some(), "{prose}");
        let mut events = EventCollector::default();
        let mut pipeline =
            Pipeline::new("aiplan", &Options::default()).expect("a dialect").with_extensions(true);
        pipeline.push_str(prose, &mut events);
        pipeline.finish(&InputEnd::stop(), &mut events);
        let plan_text = pipeline.rewrite(&events.events).expect("plans can be written");
        assert_eq!(contract.check(plan_text.as_bytes(), &strict).findings, [], "{plan_text}");
        let (second, _) = read(&plan_text, &Options::default());
        assert_eq!(answer(&second), answer(&events));
        assert_eq!(outcome(&second)["plan"]["response_mode"], "GENERAL_CHAT");
        assert_eq!(outcome(&second)["plan"]["direct_response"], answer(&events).as_str());
    }
}

#[test]
fn titles_of_other_dialects_are_lines_of_the_thought() {
    let start = |id, title: &'static str| Event::PhaseStart { id, title: title.into() };
    let delta = |id, text: &'static str| Event::PhaseDelta { id, text: text.into() };
    let events = [
        start(1, "A"),
        delta(1, "a"),
        delta(1, "a"),
        start(2, "B"),
        delta(2, "b\n"),
        delta(2, "b"),
        Event::FinalDelta { text: "ok".into() },
    ];
    let write = find_dialect("aiplan").expect("a dialect").write.expect("plans can be written");
    let text = write(&events);
    let json = text.strip_prefix("```json\n").and_then(|text| text.strip_suffix("\n```\n"));
    let plan: Value = serde_json::from_str(json.expect("a plan in a fence")).expect("JSON");
    // The text of phase 2 begins on a line below its title.
    assert_eq!(plan["thought"], "A\naa\nB\nb\nb");
    assert_eq!(plan["direct_response"], "ok");
}

#[test]
fn an_answer_before_its_mode_is_held_and_counted() {
    // R-78, X-007
    let text = "0123456789abcdef".repeat(64 << 10);
    let reply = format!(
        "{{\"direct_response\":\"{text}\",\"thought\":\"t\",\"response_mode\":\"GENERAL_CHAT\",\"tool_calls\":[]}}"
    );
    let (whole, held) = read(&reply, &Options::default());
    assert!(held.abs_diff(text.len()) < 1000, "{held} bytes are held");
    assert_eq!(answer(&whole), text);
    assert_eq!(outcome(&whole)["is_fallback"], false);
    // `limits.value` bounds the held answer.
    let mut options = Options::default();
    options.limits.value = 10_000;
    let (cut, held) = read(&reply, &options);
    assert!(held < 12_000, "{held} bytes are held");
    assert!(
        cut.findings
            .iter()
            .any(|finding| finding.code == "limit_exceeded" && finding.span.end == reply.len())
    );
    assert_eq!(metadata(&cut)["fallback_reason"], "plan_invalid");
    // An answer that waits for the end of a list or key counts as held, too.
    let (wrapped, held) = read(&format!("[{}]", chat_plan(&text)), &Options::default());
    assert!(held.abs_diff(text.len()) < 1000, "{held} bytes are held");
    assert_eq!(answer(&wrapped), text);
}

#[test]
fn limits_are_exact() {
    // X-007: `limits.hold` for text before the plan, then the limits of the object.
    for (length, has_plan) in [(99, true), (100, true), (101, false)] {
        let mut options = Options::default();
        options.limits.hold = 100;
        let text = "x".repeat(length - 30);
        let reply = format!("{text}\n{{\"thought\":1,\"response_mode\":2}}");
        // After prose a plan is recognised by its second key, which is read 30 bytes after the text.
        let (sink, _) = read(&reply, &options);
        let reason = if has_plan { "fallback_reason" } else { "unused_reason" };
        assert_ne!(metadata(&sink)[reason], Value::Null, "{length}");
        assert_eq!(
            sink.findings.iter().any(|finding| finding.code == "limit_exceeded"),
            !has_plan,
            "{length}"
        );
    }
    // Keys and values: the plan has 1 + 4 + 3 and the list, each call 1 + 2 + 1 + 1 + 2.
    let reply = tool_plan(&[CALL, CALL].join(","));
    let bytes = "thoughtresponse_modedirect_responsetool_callstTOOL_EXECUTION".len()
        + 2 * "nameargsuserInputlintSRSDocumentx".len();
    for (shortfall, is_executed) in [(1, false), (0, true)] {
        for is_value_limit in [true, false] {
            let mut options = Options::default();
            if is_value_limit {
                options.limits.value = bytes - shortfall;
            } else {
                options.limits.items = 9 + 2 * 7 - shortfall;
            }
            let (sink, _) = read(&reply, &options);
            assert_eq!(count_calls(&sink), if is_executed { 2 } else { 0 }, "{shortfall} {is_value_limit}");
        }
    }
    let deep = |n: usize| {
        format!(
            "{{\"name\":\"lintSRSDocument\",\"args\":{{\"userInput\":\"x\",\"a\":{}{}}}}}",
            "[".repeat(n),
            "]".repeat(n)
        )
    };
    for (depth, is_executed) in [(9, true), (10, true), (11, false)] {
        let mut options = Options::default();
        options.limits.depth = 14;
        let (sink, _) = read(&tool_plan(&deep(depth)), &options);
        assert_eq!(count_calls(&sink), usize::from(is_executed), "{depth}");
    }
}

#[test]
fn arguments_as_texts_share_the_limits_of_the_plan() {
    // P-031, X-007
    let text = |items: usize| {
        let args = format!("{{\"userInput\":\"x\",\"list\":[{}]}}", vec!["1"; items].join(","));
        json!({"name": "lintSRSDocument", "args": args}).to_string()
    };
    // A text has an object, two keys, a string and a list around its items.
    for (items, is_executed) in
        [(vec![95], true), (vec![96], false), (vec![45, 45], true), (vec![45, 46], false)]
    {
        let mut options = Options::default();
        options.limits.items = 100;
        let call_texts: Vec<String> = items.iter().map(|&items| text(items)).collect();
        let (sink, _) = read(&tool_plan(&call_texts.join(",")), &options);
        assert_eq!(count_calls(&sink), if is_executed { items.len() } else { 0 }, "{items:?}");
        let refusal = sink.findings.iter().find(|finding| finding.code == "tool_call_invalid");
        assert_eq!(refusal.is_some(), !is_executed, "{items:?}");
    }
}

#[test]
fn numbers_of_any_length_run_or_are_refused() {
    // P-019, P-027
    for digits in 1..40 {
        for form in ["-", "", "0.", "1e", "1e-"] {
            let number = format!("{form}{}", "8".repeat(digits));
            for args in [
                format!("{{\"userInput\":\"x\",\"n\":{number}}}"),
                json!(format!("{{\"userInput\":\"x\",\"n\":{number}}}")).to_string(),
            ] {
                let call = format!("{{\"name\":\"lintSRSDocument\",\"args\":{args}}}");
                let (sink, _) = read(&tool_plan(&call), &Options::default());
                // A call runs with the number as written.
                for event in &sink.events {
                    if let Some(Extension::ToolCall(call)) = event.extension() {
                        let argument = call.args["n"].to_string().parse::<f64>();
                        assert_eq!(argument, number.parse::<f64>(), "{number}");
                    }
                }
                let is_exact = form.len() < 2 && digits < 19;
                assert!(!is_exact || count_calls(&sink) == 1, "{number}");
                assert!(
                    count_calls(&sink) == 1
                        || sink.findings.iter().any(|finding| finding.code != "plan_not_fenced")
                );
            }
        }
    }
}

#[test]
fn what_is_left_out_lies_in_the_span_of_a_finding() {
    // X-006: (reply, code, texts that its findings cover)
    let (a, b) = (chat_plan("A"), chat_plan("B"));
    let wave = a.replace("GENERAL_CHAT", "WAVE");
    let waves = tool_plan(CALL).replace("TOOL_EXECUTION", "WAVE");
    let cases: Vec<(String, &str, Vec<&str>)> = vec![
        (
            format!("One {{x}} two\n{a}\nthree `four`"),
            "text_outside_plan",
            vec!["One {x} two", "three `four`"],
        ),
        (format!("```json\n{a}\n```\nBye,\n bye.\n"), "text_outside_plan", vec!["Bye,\n bye."]),
        (format!("<think>Hm.</think> {a}"), "text_outside_plan", vec!["<think>Hm.</think> "]),
        (format!("{{\"note\":1}}\n{a}\n[2] ok"), "text_outside_plan", vec!["{\"note\":1}", "[2] ok"]),
        (format!("{a}\n{b}\n{b}"), "multiple_plans", vec![]),
        (format!("{wave}\n{a}"), "multiple_plans", vec![&wave]),
        (
            a.replace("[]}", "[],\"alpha\":\"beta\",\"gamma\":[1]}"),
            "field_unknown",
            vec!["\"alpha\":\"beta\",", "\"gamma\":[1]}"],
        ),
        (wave.clone(), "mode_invalid", vec!["\"response_mode\":\"WAVE\","]),
        (tool_plan(CALL).replace("TOOL_EXECUTION", "WAVE"), "plan_unused", vec![&waves]),
        // The answer holds its text (R-87).
        (wave.clone(), "plan_unused", vec![]),
        (
            tool_plan(&format!("{CALL},{{\"name\":\"wipe\",\"args\":{{\"all\":true}}}}")),
            "tool_unknown",
            vec!["\"name\":\"wipe\",\"args\":{\"all\":true}}]}"],
        ),
        (tool_plan("{\"name\":\"wipe\",\"args\":{}}"), "plan_unused", vec![]),
        (
            "{\"response_mode\":\"GENERAL_CHAT\",\"direct_response\":\"A\",\"tool_calls\":[]}".to_owned(),
            "field_missing",
            vec!["{\"response_mode\":\"GENERAL_CHAT\",\"direct_response\":\"A\",\"tool_calls\":[]}"],
        ),
        ("[1, 2]".to_owned(), "plan_missing", vec!["[1, 2]"]),
        ("好。Yes.".to_owned(), "plan_missing", vec!["好。Yes."]),
        (tool_plan(CALL).replace(']', ""), "truncated", vec![]),
        (
            tool_plan(CALL).trim_end_matches("}]}").to_owned(),
            "truncated",
            vec![tool_plan(CALL).trim_end_matches("}]}").to_owned().leak()],
        ),
    ];
    for (reply, code, expected_texts) in &cases {
        let (sink, _) = read(reply, &Options::default());
        let spans = sink.findings.iter().filter(|finding| finding.code == *code);
        let found: Vec<&str> = spans.map(|finding| &reply[finding.span.start..finding.span.end]).collect();
        if *code == "multiple_plans" && expected_texts.is_empty() {
            assert_eq!(found, [format!("{b}\n{b}")], "{reply}");
        } else {
            assert_eq!(&found, expected_texts, "{reply}: {code} {:?}", sink.findings);
        }
        let all_inside = sink.findings.iter().all(|finding| finding.span.end <= reply.len());
        assert!(all_inside, "{reply}: {:?}", sink.findings);
    }
    // A finding covers all further fields that are not listed one by one.
    let fields: String = (0..100).map(|n| format!(",\"f{n}\":\"v{n}\"")).collect();
    let reply = chat_plan("A").replace("[]}", &format!("[]{fields}}}"));
    let (sink, _) = read(&reply, &Options::default());
    let unknown: Vec<_> = sink.findings.iter().filter(|finding| finding.code == "field_unknown").collect();
    for n in 0..100 {
        let at = reply.find(&format!("\"v{n}\"")).expect("it is there");
        assert!(unknown.iter().any(|finding| finding.span.start <= at && at < finding.span.end), "{n}");
    }
    assert!(unknown.len() <= 9, "{}", unknown.len());
}
