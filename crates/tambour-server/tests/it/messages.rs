//! Messages: both ways to get the answer, records, conversations, refusals.

use serde_json::{Value, json};
use tambour::event::EventCollector;
use tambour::verdict::Contract;
use tambour::{InputEnd, Options, Pipeline};

use crate::client::{names, text};
use crate::mock::{GOOD, Mock, delta, finish, frame, reply};
use crate::mock::{Gate, Step};
use crate::server::Tambour;

fn asked() -> Value {
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
    let mock = Mock::start(vec![reply(GOOD, 7)]).await;
    let server = Tambour::with(&mock).await;
    let stream = server.stream(&asked()).await;
    assert_eq!(stream.status, 200);
    assert_eq!(stream.header("content-type"), Some("text/event-stream; charset=utf-8"));
    assert_eq!(stream.header("cache-control"), Some("no-cache, no-transform"));
    assert_eq!(stream.header("x-accel-buffering"), Some("no"));
    assert_eq!(stream.header("content-encoding"), None);
    let request_id = stream.header("x-request-id").unwrap().to_owned();
    let events = stream.whole().await;
    assert_eq!(events[0].name, "status"); // J-031
    assert_eq!(events[1].name, "heartbeat"); // J-031: a sign of life at once
    assert_eq!(names(&events)[..10], ORDER);
    assert_eq!(text(&events, "final_delta"), "The answer is 4.");
    assert_eq!(events[0].data["request_id"], *request_id);
    let end = &events.last().unwrap().data;
    assert_eq!(end["finish_reason"], "stop");
    assert_eq!(end["usage"]["completion_tokens"], 5);
    assert_eq!(end["metadata"]["dialect"], "thinkingml");
    assert_eq!(end["metadata"]["truncated"], false);
    assert!(end.get("reply").is_none());
    let body = &mock.asked()[0].body;
    assert_eq!(body["model"], "a-model");
    assert_eq!(body["stream"], true);
    assert_eq!(body["messages"], json!([{"role": "user", "content": "2 + 2?"}]));
}

#[tokio::test]
async fn accepts_and_keeps_a_record() {
    let mock = Mock::start(vec![reply(GOOD, 7)]).await;
    let server = Tambour::with(&mock).await;
    let accepted = server.post("/api/v1/messages", &asked()).await;
    assert_eq!(accepted.status, 202);
    let id = accepted.json["message_id"].as_str().unwrap();
    assert_eq!(accepted.headers["location"], format!("/api/v1/messages/{id}/events").as_str());
    let record = server.ended(id).await;
    assert_eq!(record["status"], "completed");
    assert_eq!(record["reply"], GOOD);
    assert_eq!(record["request"]["text"], "2 + 2?");
    assert_eq!(record["conversation_id"], accepted.json["conversation_id"]);
    assert_eq!(record["request_id"], accepted.json["request_id"]);
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
    let mut script = vec![delta("Hello"), delta(" wor"), Step::Wait(gate.clone()), delta("ld")];
    script.extend(finish("stop"));
    let mock = Mock::start(vec![script]).await;
    let server = Tambour::with(&mock).await;
    let mut stream =
        server.stream(&json!({"text": "x", "dialect": "plain", "output_protocol": "jsonseq_v1"})).await;
    let mut events = stream.until("final_delta").await; // J-037
    while text(&events, "final_delta") != "Hello wor" {
        events.push(stream.event().await.unwrap());
    }
    gate.open();
    events.extend(stream.rest().await);
    crate::client::check(&events);
    assert_eq!(text(&events, "final_delta"), "Hello world");
}

#[tokio::test]
async fn any_cutting_of_the_reply_gives_the_same_record() {
    let scripts = [1, 2, 5, 10_000].map(|size| reply(GOOD, size)).to_vec();
    let mock = Mock::start(scripts).await;
    let server = Tambour::with(&mock).await;
    let mut seen: Option<Value> = None;
    for _ in 0..4 {
        let accepted = server.post("/api/v1/messages", &asked()).await;
        let record = server.ended(accepted.json["message_id"].as_str().unwrap()).await;
        let events = record["events"].clone();
        assert_eq!(*seen.get_or_insert(events.clone()), events); // J-038
    }
}

#[tokio::test]
async fn any_cutting_gives_the_same_asides() {
    let text = "Four.\n<think>or was it five, no, it was not</think>\nYes, four.";
    let mock = Mock::start([1, 3, 10_000].map(|size| reply(text, size)).to_vec()).await;
    let server = Tambour::with(&mock).await;
    let mut seen: Option<Value> = None;
    for _ in 0..3 {
        let accepted = server.post("/api/v1/messages", &json!({"text": "x", "dialect": "plain"})).await;
        let record = server.ended(accepted.json["message_id"].as_str().unwrap()).await;
        let asides: Vec<&Value> =
            record["events"].as_array().unwrap().iter().filter(|event| event["event"] == "aside").collect();
        assert_eq!(asides.len(), 1, "{record:#}");
        assert_eq!(*seen.get_or_insert(record["events"].clone()), record["events"]); // J-038
    }
}

#[tokio::test]
async fn reasoning_becomes_thinking_of_a_plain_reply() {
    let mut script = vec![
        Step::Send(frame(&json!({"choices": [{"delta": {"reasoning_content": "", "content": null}}]}))),
        Step::Send(frame(&json!({"choices": [{"delta": {"reasoning_content": "hm "}}]}))),
        Step::Send(frame(&json!({"choices": [{"delta": {"reasoning": "hm"}}]}))),
        delta("Four."),
    ];
    script.extend(finish("stop"));
    let mock = Mock::start(vec![script]).await;
    let server = Tambour::with(&mock).await;
    let events = server
        .stream(&json!({"text": "x", "dialect": "plain", "output_protocol": "jsonseq_v1"}))
        .await
        .whole()
        .await;
    assert_eq!(text(&events, "phase_delta"), "hm hm");
    assert_eq!(text(&events, "final_delta"), "Four.");
}

#[tokio::test]
async fn extensions_and_findings_only_when_asked_for() {
    let text =
        "<think>draft</think><thinking><phase id=\"3\"><title>T</title>x</phase></thinking><final>y</final>";
    let mock = Mock::start(vec![reply(text, 9)]).await;
    let server = Tambour::with(&mock).await;
    let mut ask = asked();
    let plain = server.stream(&ask).await.whole().await;
    ask["extensions"] = true.into();
    ask["findings"] = true.into();
    let full = server.stream(&ask).await.whole().await;
    assert!(names(&full).contains(&"draft_delta") && names(&full).contains(&"finding"));
    let mut left = names(&full);
    left.retain(|name| !matches!(*name, "draft_delta" | "finding"));
    assert_eq!(left, names(&plain));
    // Each extension alone.
    for (wanted, other, seen, unseen) in [
        ("extensions", "findings", "draft_delta", "finding"),
        ("findings", "extensions", "finding", "draft_delta"),
    ] {
        (ask[wanted], ask[other]) = (true.into(), false.into());
        let some = server.stream(&ask).await.whole().await;
        assert!(names(&some).contains(&seen) && !names(&some).contains(&unseen), "{wanted}");
    }
    assert!(plain.last().unwrap().data["metadata"]["repairs"].as_u64().unwrap() > 0);
}

#[tokio::test]
async fn a_conversation_goes_on() {
    let mock = Mock::start(vec![reply("First.", 3), reply("Second.", 3)]).await;
    let server = Tambour::with(&mock).await;
    let conversation = server.post("/api/v1/conversations", &json!({})).await;
    assert_eq!(conversation.status, 201);
    let id = conversation.json["conversation_id"].as_str().unwrap();
    for text in ["one", "two"] {
        let ask =
            json!({"text": text, "conversation_id": id, "system_prompt": "Be brief.", "dialect": "plain"});
        server.stream(&ask).await.whole().await;
    }
    // The second request comes right after the end of the first, and has all of it.
    let said = [("system", "Be brief."), ("user", "one"), ("assistant", "First."), ("user", "two")];
    let said: Vec<Value> =
        said.iter().map(|(role, content)| json!({"role": role, "content": content})).collect();
    assert_eq!(mock.asked()[1].body["messages"], json!(said));
    let shown = server.get(&format!("/api/v1/conversations/{id}")).await.json;
    assert_eq!(shown["messages"].as_array().unwrap().len(), 2);
    assert_eq!(shown["messages"][0]["reply"], "First.");
    let all = server.get("/api/v1/conversations").await.json;
    assert_eq!(all["data"][0]["conversation_id"], id);
    let unknown = server.post("/api/v1/messages", &json!({"text": "x", "conversation_id": "conv_0"})).await;
    assert_eq!((unknown.status, unknown.problem()), (404, "not_found"));
}

#[tokio::test]
async fn refuses_what_it_cannot_do_and_says_why() {
    let mock = Mock::start(vec![reply("x", 1)]).await;
    let server = Tambour::start(&mock, |config| config.max_request = 2000).await;
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
        assert_eq!((answer.status, answer.problem()), (status, code), "{body}");
        assert_eq!(answer.json["field"], field, "{body}");
    }
    let wrong_type = server.post("/api/v1/messages", &json!({"text": 5})).await;
    assert_eq!((wrong_type.status, wrong_type.problem()), (422, "invalid_field"));
    let option = json!({"text": "x", "contract": {"options": {"hold": "some"}}});
    assert_eq!(server.post("/api/v1/messages", &option).await.problem(), "invalid_option");
    let option = json!({"text": "x", "contract": {"options": {"limits.input": 5}}});
    assert_eq!(server.post("/api/v1/messages", &option).await.problem(), "invalid_option");
    let broken = server.call("post", "/api/v1/messages", Some("{\"text\":")).await;
    assert_eq!((broken.status, broken.problem()), (400, "malformed_json"));
    let marked = server.call("post", "/api/v1/messages", Some("\u{FEFF}{\"text\":5}")).await;
    assert_eq!((marked.status, marked.problem()), (422, "invalid_field"));
    let large = server.post("/api/v1/messages", &json!({"text": "x".repeat(3000)})).await;
    assert_eq!((large.status, large.problem()), (413, "too_large"));
    assert!(large.json["detail"].as_str().unwrap().contains("`max_request`, 2000 bytes"), "{}", large.text);
    let query = server.get("/api/v1/messages/m/events?colour=1").await;
    assert_eq!((query.status, query.problem()), (422, "unknown_field"));
    assert_eq!(query.json["field"], "colour");
    // Types have their JSON names, and internal details are left out.
    let number = server.post("/api/v1/messages", &json!({"text": "x", "temperature": "warm"})).await;
    assert!(number.text.contains("expected a number at"), "{}", number.text);
    let unknown = server.post("/api/v1/messages", &json!({"text": "x", "colour": 1})).await;
    assert!(!unknown.text.contains("named_model"), "{}", unknown.text);
    let nowhere = server.get("/api/v1/nothing").await;
    assert_eq!((nowhere.status, nowhere.problem()), (404, "not_found"));
    let method = server.call("delete", "/api/v1/messages", None).await;
    assert_eq!((method.status, method.problem()), (405, "method_not_allowed"));
    assert_eq!(mock.calls().begun, 0);
    for path in ["", "/events"] {
        let unknown = server.get(&format!("/api/v1/messages/msg_0{path}")).await;
        assert_eq!((unknown.status, unknown.problem()), (404, "not_found"));
    }
    let unknown = server.call("post", "/api/v1/messages/msg_0/cancel", None).await;
    assert_eq!((unknown.status, unknown.problem()), (404, "not_found"));
}

#[tokio::test]
async fn limits_of_one_key_are_told_with_a_time() {
    let gate = Gate::new();
    let mut script = vec![delta("a"), Step::Wait(gate.clone())];
    script.extend(finish("stop"));
    let mock = Mock::start(vec![script]).await;
    let server = Tambour::start(&mock, |config| {
        config.max_running = 2;
        config.max_streams = 1;
    })
    .await;
    let first = server.stream(&json!({"text": "x"})).await;
    let second = server.post("/api/v1/messages", &json!({"text": "x"})).await;
    assert_eq!(second.status, 202);
    let third = server.post("/api/v1/messages", &json!({"text": "x"})).await;
    assert_eq!((third.status, third.problem()), (429, "too_many_running"));
    assert_eq!(third.headers["retry-after"], "1");
    let id = second.json["message_id"].as_str().unwrap();
    let other = server.get(&format!("/api/v1/messages/{id}/events")).await;
    assert_eq!((other.status, other.problem()), (429, "too_many_streams"));
    assert_eq!(other.headers["retry-after"], "1");
    gate.open();
    first.whole().await;
    server.until_metric("tambour_streams_open", 0).await;
    server.follow(id, &[]).await.whole().await;
}

#[tokio::test]
async fn decodes_and_checks_one_reply() {
    let mock = Mock::start(vec![reply("x", 1)]).await;
    let server = Tambour::with(&mock).await;
    let decoded = server.post("/api/v1/decode", &json!({"reply": GOOD})).await;
    assert_eq!((decoded.status, &decoded.json["dialect"]), (200, &json!("thinkingml")));
    assert_eq!(decoded.json["events"].as_array().unwrap().len(), 11);
    let cut =
        json!({"reply": "<thinking><phase id=\"1\">", "dialect": "thinkingml", "finish_reason": "length"});
    let events = server.post("/api/v1/decode", &cut).await.json["events"].clone();
    assert_eq!(events.as_array().unwrap().last().unwrap()["data"]["metadata"]["truncated"], true); // J-056
    assert!(decoded.json.get("repaired").is_none());
    let open = json!({"reply": GOOD.replace("</thinking>", ""), "dialect": "thinkingml", "repaired": true});
    let repaired = server.post("/api/v1/decode", &open).await.json["repaired"].clone();
    let held = json!({"reply": repaired, "contract": "thinkingml"});
    assert_eq!(server.post("/api/v1/check", &held).await.json["verdict"], "pass", "{repaired}");
    let unusable = json!({"reply": "", "dialect": "thinkingml", "repaired": true});
    assert_eq!(server.post("/api/v1/decode", &unusable).await.json["repaired"], Value::Null);
    let passed = server.post("/api/v1/check", &json!({"reply": GOOD, "contract": "thinkingml"})).await;
    assert_eq!(passed.json["verdict"], "pass", "{}", passed.text);
    let failed =
        server.post("/api/v1/check", &json!({"reply": "<final></final>", "contract": "thinkingml"})).await;
    assert_eq!(failed.json["verdict"], "fail");
    for field in ["rule", "code", "severity", "span", "line", "column", "message"] {
        assert!(failed.json["findings"][0].get(field).is_some(), "{field}");
    }
    let unknown = server.post("/api/v1/check", &json!({"reply": "", "contract": "klingon"})).await;
    assert_eq!((unknown.status, unknown.problem()), (422, "unknown_contract"));
}

#[tokio::test]
async fn tells_the_rules_that_findings_name() {
    let mock = Mock::start(vec![reply("x", 1)]).await;
    let server = Tambour::with(&mock).await;
    let all = server.get("/api/v1/rules").await;
    let rules = all.json["data"].as_array().unwrap();
    assert_eq!(rules.len(), tambour_prompt::catalogue::all().count());
    assert!(rules.iter().all(|rule| rule.get("broken").is_none()));
    for id in ["final_missing", "t-009"] {
        let found = server.get(&format!("/api/v1/rules/{id}")).await.json;
        let rule =
            found["data"].as_array().unwrap().iter().find(|rule| rule["code"] == "final_missing").unwrap();
        assert_eq!((&rule["owner"], &rule["level"]), (&json!("thinkingml"), &json!("must")));
        for (example, verdict) in [("broken", "fail"), ("correct", "pass")] {
            let asked = json!({"reply": rule[example], "contract": "thinkingml"});
            assert_eq!(server.post("/api/v1/check", &asked).await.json["verdict"], verdict, "{example}");
        }
    }
    let unknown = server.get("/api/v1/rules/klingon").await;
    assert_eq!((unknown.status, unknown.problem()), (404, "not_found"));
}

/// Commands of the same names print the results of these library calls.
#[tokio::test]
async fn decoding_and_checking_say_the_same_as_the_commands() {
    let mock = Mock::start(vec![reply("x", 1)]).await;
    let server = Tambour::with(&mock).await;
    let cut = &GOOD[..100];
    for (text, option) in [
        (GOOD, None),
        ("It is 4.", None),
        (cut, None),
        ("<thinking>a</thinking> so <final>Vec<String>", Some(("thinkingml.serp_block", "optional"))),
        ("{\"response\": \"Hello.\"}", Some(("ai_say.role", "coach"))),
        ("<<ParsingError>>", Some(("text_language", "en"))),
        ("", None),
    ] {
        for name in ["auto", "thinkingml", "jsonseq", "aiplan", "ai_say", "plain"] {
            let (mut options, mut given) = (Options::default(), json!({}));
            if let Some((option, value)) = option {
                options.set(option, value).unwrap();
                given[option] = value.into();
            }
            let mut read = EventCollector::default();
            let mut pipeline = Pipeline::new(name, &options).unwrap().with_extensions(true);
            pipeline.push(text.as_bytes(), &mut read);
            pipeline.finish(&InputEnd::stop(), &mut read);
            let asked =
                json!({"reply": text, "dialect": name, "extensions": true, "contract": {"options": given}});
            let decoded = server.post("/api/v1/decode", &asked).await.json;
            let wanted = json!({"dialect": pipeline.dialect(), "events": read.join_deltas(), "findings": read.findings});
            assert_eq!(decoded, wanted, "{name}: {text}");

            options.set("profile", "strict").unwrap();
            let verdict = Contract::from_name(name).unwrap().check(text.as_bytes(), &options);
            let asked = json!({"reply": text, "contract": name, "options": given});
            let checked = server.post("/api/v1/check", &asked).await.json;
            let word = if verdict.passed() { "pass" } else { "fail" };
            let wanted = json!({"contract": verdict.contract, "verdict": word, "findings": verdict.findings});
            assert_eq!(checked, wanted, "{name}: {text}");
        }
    }
    // Without a name the kind is detected and reported.
    let checked = server.post("/api/v1/check", &json!({"reply": "It is 4."})).await.json;
    assert_eq!((&checked["contract"], &checked["verdict"]), (&json!("plain"), &json!("pass")));
}
