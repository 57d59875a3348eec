//! Messages: both ways to get the answer, records, conversations, refusals.

use serde_json::{Value, json};
use tambour::event::EventCollector;
use tambour::verdict::Contract;
use tambour::{InputEnd, Options, Pipeline};

use crate::client::{event_names, joined_text};
use crate::mock::{GOOD_REPLY, MockServer, delta_step, finish_steps, reply_script, sse_frame};
use crate::mock::{Gate, Step};
use crate::server::TestServer;

fn request_body() -> Value {
    json!({"text": "2 + 2?", "dialect": "thinkingml", "output_protocol": "jsonseq_v1"})
}

const ORDER: [&str; 10] = [
    "serp_summary",
    "thinking_start",
    "phase_start",
    "phase_delta",
    "phase_start",
    "phase_delta",
    "thinking_end",
    "final_delta",
    "serp_queries",
    "final_end",
];

#[tokio::test]
async fn streams_the_answer_of_a_message() {
    let mock = MockServer::start(vec![reply_script(GOOD_REPLY, 7)]).await;
    let server = TestServer::start_default(&mock).await;
    let stream = server.open_stream(&request_body()).await;
    assert_eq!(stream.status, 200);
    assert_eq!(stream.header("content-type"), Some("text/event-stream; charset=utf-8"));
    assert_eq!(stream.header("cache-control"), Some("no-cache, no-transform"));
    assert_eq!(stream.header("x-accel-buffering"), Some("no"));
    assert_eq!(stream.header("content-encoding"), None);
    let request_id = stream.header("x-request-id").unwrap().to_owned();
    let events = stream.read_checked().await;
    assert_eq!(events[0].name, "status"); // J-031
    assert_eq!(events[1].name, "heartbeat"); // J-031: a sign of life at once
    assert_eq!(event_names(&events)[..10], ORDER);
    assert_eq!(joined_text(&events, "final_delta"), "The answer is 4.");
    assert_eq!(events[0].data["request_id"], *request_id);
    let end = &events.last().unwrap().data;
    assert_eq!(end["finish_reason"], "stop");
    assert_eq!(end["usage"]["completion_tokens"], 5);
    assert_eq!(end["metadata"]["dialect"], "thinkingml");
    assert_eq!(end["metadata"]["truncated"], false);
    assert!(end.get("reply").is_none());
    let body = &mock.requests()[0].body;
    assert_eq!(body["model"], "a-model");
    assert_eq!(body["stream"], true);
    assert_eq!(body["messages"], json!([{"role": "user", "content": "2 + 2?"}]));
}

#[tokio::test]
async fn accepts_and_keeps_a_record() {
    let mock = MockServer::start(vec![reply_script(GOOD_REPLY, 7)]).await;
    let server = TestServer::start_default(&mock).await;
    let acceptance = server.post("/api/v1/messages", &request_body()).await;
    assert_eq!(acceptance.status, 202);
    let id = acceptance.json["message_id"].as_str().unwrap();
    assert_eq!(acceptance.headers["location"], format!("/api/v1/messages/{id}/events").as_str());
    let record = server.wait_ended(id).await;
    assert_eq!(record["status"], "completed");
    assert_eq!(record["reply"], GOOD_REPLY);
    assert_eq!(record["request"]["text"], "2 + 2?");
    assert_eq!(record["conversation_id"], acceptance.json["conversation_id"]);
    assert_eq!(record["request_id"], acceptance.json["request_id"]);
    let events: Vec<&str> =
        record["events"].as_array().unwrap().iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(events, ORDER);
    assert!(record["timings"]["total_ms"].is_u64() && record["findings"].is_array());
    assert_eq!(record["usage"]["prompt_tokens"], 7);
    assert_eq!(server.metric("tambour_messages_total").await, 1);
}

#[tokio::test]
async fn text_arrives_while_the_model_writes() {
    let gate = Gate::new();
    let mut script =
        vec![delta_step("Hello"), delta_step(" wor"), Step::Wait(gate.clone()), delta_step("ld")];
    script.extend(finish_steps("stop"));
    let mock = MockServer::start(vec![script]).await;
    let server = TestServer::start_default(&mock).await;
    let mut stream =
        server.open_stream(&json!({"text": "x", "dialect": "plain", "output_protocol": "jsonseq_v1"})).await;
    let mut events = stream.read_until("final_delta").await; // J-037
    while joined_text(&events, "final_delta") != "Hello wor" {
        events.push(stream.next_event().await.unwrap());
    }
    gate.open();
    events.extend(stream.read_rest().await);
    crate::client::check_stream(&events);
    assert_eq!(joined_text(&events, "final_delta"), "Hello world");
}

#[tokio::test]
async fn any_cutting_of_the_reply_gives_the_same_record() {
    let scripts = [1, 2, 5, 10_000].map(|size| reply_script(GOOD_REPLY, size)).to_vec();
    let mock = MockServer::start(scripts).await;
    let server = TestServer::start_default(&mock).await;
    let mut first_events: Option<Value> = None;
    for _ in 0..4 {
        let acceptance = server.post("/api/v1/messages", &request_body()).await;
        let record = server.wait_ended(acceptance.json["message_id"].as_str().unwrap()).await;
        let events = record["events"].clone();
        assert_eq!(*first_events.get_or_insert(events.clone()), events); // J-038
    }
}

#[tokio::test]
async fn any_cutting_gives_the_same_asides() {
    let text = "Four.\n<think>or was it five, no, it was not</think>\nYes, four.";
    let mock = MockServer::start([1, 3, 10_000].map(|size| reply_script(text, size)).to_vec()).await;
    let server = TestServer::start_default(&mock).await;
    let mut first_events: Option<Value> = None;
    for _ in 0..3 {
        let acceptance = server.post("/api/v1/messages", &json!({"text": "x", "dialect": "plain"})).await;
        let record = server.wait_ended(acceptance.json["message_id"].as_str().unwrap()).await;
        let asides: Vec<&Value> =
            record["events"].as_array().unwrap().iter().filter(|event| event["event"] == "aside").collect();
        assert_eq!(asides.len(), 1, "{record:#}");
        assert_eq!(*first_events.get_or_insert(record["events"].clone()), record["events"]); // J-038
    }
}

#[tokio::test]
async fn reasoning_becomes_thinking_of_a_plain_reply() {
    let mut script = vec![
        Step::Send(sse_frame(&json!({"choices": [{"delta": {"reasoning_content": "", "content": null}}]}))),
        Step::Send(sse_frame(&json!({"choices": [{"delta": {"reasoning_content": "hm "}}]}))),
        Step::Send(sse_frame(&json!({"choices": [{"delta": {"reasoning": "hm"}}]}))),
        delta_step("Four."),
    ];
    script.extend(finish_steps("stop"));
    let mock = MockServer::start(vec![script]).await;
    let server = TestServer::start_default(&mock).await;
    let events = server
        .open_stream(&json!({"text": "x", "dialect": "plain", "output_protocol": "jsonseq_v1"}))
        .await
        .read_checked()
        .await;
    assert_eq!(joined_text(&events, "phase_delta"), "hm hm");
    assert_eq!(joined_text(&events, "final_delta"), "Four.");
}

#[tokio::test]
async fn extensions_and_findings_only_when_asked_for() {
    let text =
        "<think>draft</think><thinking><phase id=\"3\"><title>T</title>x</phase></thinking><final>y</final>";
    let mock = MockServer::start(vec![reply_script(text, 9)]).await;
    let server = TestServer::start_default(&mock).await;
    let mut request = request_body();
    let plain = server.open_stream(&request).await.read_checked().await;
    request["extensions"] = true.into();
    request["findings"] = true.into();
    let full = server.open_stream(&request).await.read_checked().await;
    assert!(event_names(&full).contains(&"draft_delta") && event_names(&full).contains(&"finding"));
    let mut plain_names = event_names(&full);
    plain_names.retain(|name| !matches!(*name, "draft_delta" | "finding"));
    assert_eq!(plain_names, event_names(&plain));
    // Each extension alone.
    for (option, other_option, extension, other_extension) in [
        ("extensions", "findings", "draft_delta", "finding"),
        ("findings", "extensions", "finding", "draft_delta"),
    ] {
        (request[option], request[other_option]) = (true.into(), false.into());
        let events = server.open_stream(&request).await.read_checked().await;
        assert!(
            event_names(&events).contains(&extension) && !event_names(&events).contains(&other_extension),
            "{option}"
        );
    }
    assert!(plain.last().unwrap().data["metadata"]["repairs"].as_u64().unwrap() > 0);
}

#[tokio::test]
async fn a_conversation_goes_on() {
    let mock = MockServer::start(vec![reply_script("First.", 3), reply_script("Second.", 3)]).await;
    let server = TestServer::start_default(&mock).await;
    let conversation = server.post("/api/v1/conversations", &json!({})).await;
    assert_eq!(conversation.status, 201);
    let id = conversation.json["conversation_id"].as_str().unwrap();
    for text in ["one", "two"] {
        let request =
            json!({"text": text, "conversation_id": id, "system_prompt": "Be brief.", "dialect": "plain"});
        server.open_stream(&request).await.read_checked().await;
    }
    // The second request comes right after the end of the first, and has all of it.
    let history = [("system", "Be brief."), ("user", "one"), ("assistant", "First."), ("user", "two")];
    let history: Vec<Value> =
        history.iter().map(|(role, content)| json!({"role": role, "content": content})).collect();
    assert_eq!(mock.requests()[1].body["messages"], json!(history));
    let snapshot = server.get(&format!("/api/v1/conversations/{id}")).await.json;
    assert_eq!(snapshot["messages"].as_array().unwrap().len(), 2);
    assert_eq!(snapshot["messages"][0]["reply"], "First.");
    let listing = server.get("/api/v1/conversations").await.json;
    assert_eq!(listing["data"][0]["conversation_id"], id);
    let unknown = server.post("/api/v1/messages", &json!({"text": "x", "conversation_id": "conv_0"})).await;
    assert_eq!((unknown.status, unknown.problem_code()), (404, "not_found"));
}

#[tokio::test]
async fn refuses_what_it_cannot_do_and_says_why() {
    let mock = MockServer::start(vec![reply_script("x", 1)]).await;
    let server = TestServer::start(&mock, |config| config.max_request = 2000).await;
    let cases = [
        (json!({"text": "x", "colour": 1}), 422, "unknown_field", "colour"),
        (json!({"text": "x", "contract": {"style": 1}}), 422, "unknown_field", "style"),
        (
            json!({"messages": [{"role": "user", "content": "x", "colour": "n"}]}),
            422,
            "unknown_field",
            "colour",
        ),
        (json!({"messages": [{"role": "user"}]}), 422, "missing_field", "content"),
        (json!({"messages": []}), 422, "invalid_field", "messages"),
        (json!({"messages": [{"role": "wizard", "content": "x"}]}), 422, "invalid_field", "messages"),
        (json!({"text": "x", "messages": []}), 422, "invalid_field", "text"),
        (json!({}), 422, "missing_field", "text"),
        (json!({"text": "x", "dialect": "klingon"}), 422, "unknown_dialect", "dialect"),
        (json!({"text": "x", "upstream": "other"}), 422, "unknown_upstream", "upstream"),
        (json!({"text": "x", "output_protocol": "v9"}), 422, "unknown_protocol", "output_protocol"),
        (json!({"text": "x", "max_reasks": 6}), 422, "invalid_field", "max_reasks"),
    ];
    for (body, status, code, field) in cases {
        let answer = server.post("/api/v1/messages", &body).await;
        assert_eq!((answer.status, answer.problem_code()), (status, code), "{body}");
        assert_eq!(answer.json["field"], field, "{body}");
    }
    let wrong_type = server.post("/api/v1/messages", &json!({"text": 5})).await;
    assert_eq!((wrong_type.status, wrong_type.problem_code()), (422, "invalid_field"));
    let option = json!({"text": "x", "contract": {"options": {"hold": "some"}}});
    assert_eq!(server.post("/api/v1/messages", &option).await.problem_code(), "invalid_option");
    let option = json!({"text": "x", "contract": {"options": {"limits.input": 5}}});
    assert_eq!(server.post("/api/v1/messages", &option).await.problem_code(), "invalid_option");
    let broken = server.call("post", "/api/v1/messages", Some("{\"text\":")).await;
    assert_eq!((broken.status, broken.problem_code()), (400, "malformed_json"));
    let with_mark = server.call("post", "/api/v1/messages", Some("\u{FEFF}{\"text\":5}")).await;
    assert_eq!((with_mark.status, with_mark.problem_code()), (422, "invalid_field"));
    let large = server.post("/api/v1/messages", &json!({"text": "x".repeat(3000)})).await;
    assert_eq!((large.status, large.problem_code()), (413, "too_large"));
    assert!(large.json["detail"].as_str().unwrap().contains("`max_request`, 2000 bytes"), "{}", large.text);
    let query = server.get("/api/v1/messages/m/events?colour=1").await;
    assert_eq!((query.status, query.problem_code()), (422, "unknown_field"));
    assert_eq!(query.json["field"], "colour");
    // Types have their JSON names, and internal details are left out.
    let number = server.post("/api/v1/messages", &json!({"text": "x", "temperature": "warm"})).await;
    assert!(number.text.contains("expected a number at"), "{}", number.text);
    let unknown = server.post("/api/v1/messages", &json!({"text": "x", "colour": 1})).await;
    assert!(!unknown.text.contains("named_model"), "{}", unknown.text);
    let nowhere = server.get("/api/v1/nothing").await;
    assert_eq!((nowhere.status, nowhere.problem_code()), (404, "not_found"));
    let method = server.call("delete", "/api/v1/messages", None).await;
    assert_eq!((method.status, method.problem_code()), (405, "method_not_allowed"));
    assert_eq!(mock.calls().started, 0);
    for path in ["", "/events"] {
        let unknown = server.get(&format!("/api/v1/messages/msg_0{path}")).await;
        assert_eq!((unknown.status, unknown.problem_code()), (404, "not_found"));
    }
    let unknown = server.call("post", "/api/v1/messages/msg_0/cancel", None).await;
    assert_eq!((unknown.status, unknown.problem_code()), (404, "not_found"));
}

#[tokio::test]
async fn limits_of_one_owner_are_told_with_a_time() {
    let gate = Gate::new();
    let mut script = vec![delta_step("a"), Step::Wait(gate.clone())];
    script.extend(finish_steps("stop"));
    let mock = MockServer::start(vec![script]).await;
    let server = TestServer::start(&mock, |config| {
        config.max_running = 2;
        config.max_streams = 1;
    })
    .await;
    let first = server.open_stream(&json!({"text": "x"})).await;
    let second = server.post("/api/v1/messages", &json!({"text": "x"})).await;
    assert_eq!(second.status, 202);
    let third = server.post("/api/v1/messages", &json!({"text": "x"})).await;
    assert_eq!((third.status, third.problem_code()), (429, "too_many_running"));
    assert_eq!(third.headers["retry-after"], "1");
    assert!(third.json["detail"].as_str().unwrap().contains("2 messages of this owner"), "{}", third.text);
    let id = second.json["message_id"].as_str().unwrap();
    let other = server.get(&format!("/api/v1/messages/{id}/events")).await;
    assert_eq!((other.status, other.problem_code()), (429, "too_many_streams"));
    assert_eq!(other.headers["retry-after"], "1");
    assert!(other.json["detail"].as_str().unwrap().contains("of this owner are open"), "{}", other.text);
    gate.open();
    first.read_checked().await;
    server.wait_for_metric("tambour_streams_open", 0).await;
    server.follow(id, &[]).await.read_checked().await;
}

#[tokio::test]
async fn decodes_and_checks_one_reply() {
    let mock = MockServer::start(vec![reply_script("x", 1)]).await;
    let server = TestServer::start_default(&mock).await;
    let decode_answer = server.post("/api/v1/decode", &json!({"reply": GOOD_REPLY})).await;
    assert_eq!((decode_answer.status, &decode_answer.json["dialect"]), (200, &json!("thinkingml")));
    assert_eq!(decode_answer.json["events"].as_array().unwrap().len(), 11);
    let cut =
        json!({"reply": "<thinking><phase id=\"1\">", "dialect": "thinkingml", "finish_reason": "length"});
    let events = server.post("/api/v1/decode", &cut).await.json["events"].clone();
    assert_eq!(events.as_array().unwrap().last().unwrap()["data"]["metadata"]["truncated"], true); // J-056
    assert!(decode_answer.json.get("repaired").is_none());
    let open_request =
        json!({"reply": GOOD_REPLY.replace("</thinking>", ""), "dialect": "thinkingml", "repaired": true});
    let repaired_reply = server.post("/api/v1/decode", &open_request).await.json["repaired"].clone();
    let check_request = json!({"reply": repaired_reply, "contract": "thinkingml"});
    assert_eq!(
        server.post("/api/v1/check", &check_request).await.json["verdict"],
        "pass",
        "{repaired_reply}"
    );
    let unusable = json!({"reply": "", "dialect": "thinkingml", "repaired": true});
    assert_eq!(server.post("/api/v1/decode", &unusable).await.json["repaired"], Value::Null);
    let passed_check =
        server.post("/api/v1/check", &json!({"reply": GOOD_REPLY, "contract": "thinkingml"})).await;
    assert_eq!(passed_check.json["verdict"], "pass", "{}", passed_check.text);
    let failed_check =
        server.post("/api/v1/check", &json!({"reply": "<final></final>", "contract": "thinkingml"})).await;
    assert_eq!(failed_check.json["verdict"], "fail");
    for field in ["rule", "code", "severity", "span", "line", "column", "message"] {
        assert!(failed_check.json["findings"][0].get(field).is_some(), "{field}");
    }
    let unknown = server.post("/api/v1/check", &json!({"reply": "", "contract": "klingon"})).await;
    assert_eq!((unknown.status, unknown.problem_code()), (422, "unknown_contract"));
}

#[tokio::test]
async fn tells_the_rules_that_findings_name() {
    let mock = MockServer::start(vec![reply_script("x", 1)]).await;
    let server = TestServer::start_default(&mock).await;
    let listing = server.get("/api/v1/rules").await;
    let rules = listing.json["data"].as_array().unwrap();
    assert_eq!(rules.len(), tambour_prompt::catalogue::all().count());
    assert!(rules.iter().all(|rule| rule.get("broken").is_none()));
    for id in ["final_missing", "t-009"] {
        let found = server.get(&format!("/api/v1/rules/{id}")).await.json;
        let rule =
            found["data"].as_array().unwrap().iter().find(|rule| rule["code"] == "final_missing").unwrap();
        assert_eq!((&rule["owner"], &rule["level"]), (&json!("thinkingml"), &json!("must")));
        for (example, verdict) in [("broken", "fail"), ("correct", "pass")] {
            let request = json!({"reply": rule[example], "contract": "thinkingml"});
            assert_eq!(server.post("/api/v1/check", &request).await.json["verdict"], verdict, "{example}");
        }
    }
    let unknown = server.get("/api/v1/rules/klingon").await;
    assert_eq!((unknown.status, unknown.problem_code()), (404, "not_found"));
}

/// Commands of the same names print the results of these library calls.
#[tokio::test]
async fn decoding_and_checking_say_the_same_as_the_commands() {
    let mock = MockServer::start(vec![reply_script("x", 1)]).await;
    let server = TestServer::start_default(&mock).await;
    let cut = &GOOD_REPLY[..100];
    for (text, option) in [
        (GOOD_REPLY, None),
        ("It is 4.", None),
        (cut, None),
        ("<thinking>a</thinking> so <final>Vec<String>", Some(("thinkingml.serp_block", "optional"))),
        ("{\"response\": \"Hello.\"}", Some(("ai_say.role", "coach"))),
        ("<<ParsingError>>", Some(("text_language", "en"))),
        ("", None),
    ] {
        for name in ["auto", "thinkingml", "jsonseq", "aiplan", "ai_say", "plain"] {
            let (mut options, mut json_options) = (Options::default(), json!({}));
            if let Some((option, value)) = option {
                options.set(option, value).unwrap();
                json_options[option] = value.into();
            }
            let mut collector = EventCollector::default();
            let mut pipeline = Pipeline::new(name, &options).unwrap().with_extensions(true);
            pipeline.push(text.as_bytes(), &mut collector);
            pipeline.finish(&InputEnd::stop(), &mut collector);
            let request = json!({"reply": text, "dialect": name, "extensions": true, "contract": {"options": json_options}});
            let decode_answer = server.post("/api/v1/decode", &request).await.json;
            let expected = json!({"dialect": pipeline.dialect(), "events": collector.join_deltas(), "findings": collector.findings});
            assert_eq!(decode_answer, expected, "{name}: {text}");

            options.set("profile", "strict").unwrap();
            let verdict = Contract::from_name(name).unwrap().check(text.as_bytes(), &options);
            let request = json!({"reply": text, "contract": name, "options": json_options});
            let check_answer = server.post("/api/v1/check", &request).await.json;
            let verdict_word = if verdict.passed() { "pass" } else { "fail" };
            let expected =
                json!({"contract": verdict.contract, "verdict": verdict_word, "findings": verdict.findings});
            assert_eq!(check_answer, expected, "{name}: {text}");
        }
    }
    // Without a name the kind is detected and reported.
    let check_answer = server.post("/api/v1/check", &json!({"reply": "It is 4."})).await.json;
    assert_eq!((&check_answer["contract"], &check_answer["verdict"]), (&json!("plain"), &json!("pass")));
}
