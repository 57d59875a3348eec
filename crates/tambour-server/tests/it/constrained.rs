//! Constraints sent along: each server's form, canaries, weaker forms, and the step that gave an answer.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tambour_server::upstream::Constrain;

use crate::child_process::{run_async, run_passing_child};
use crate::client::{Event, joined_text, stream_message_id};
use crate::dialogues::{SAY_ACTION, post_text, round_answer, start_dialogue};
use crate::mock::{GOOD_REPLY, MockServer, ReceivedRequest, Step, reply_script, response_script, sse_frame};
use crate::server::TestServer;

/// Word of the canary, which nothing but a constraint makes a model write.
pub(crate) const CANARY_WORD: &str = "Zyqumbra-47";
pub(crate) const PROSE: &str = "It is 4, I think.";

/// Behaviour of a scripted server towards a form.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Behaviour {
    /// Constrains the reply.
    Obey,
    /// Answers with prose, as to a field that it does not know.
    Ignore,
    /// Refuses the field with this status.
    Refuse(u16),
    /// Obeys the canary, and refuses a larger contract with this status.
    RefuseLarge(u16),
}

/// Server of the table: name, kind, and places of its forms in a request, best first.
pub(crate) struct ServerForm {
    pub(crate) name: &'static str,
    pub(crate) kind: &'static str,
    /// Form, JSON Pointer of its content, and text at the beginning of a grammar.
    pub(crate) forms: &'static [(&'static str, &'static str, &'static str)],
}

pub(crate) const SERVERS: &[ServerForm] = &[
    ServerForm {
        name: "llama.cpp",
        kind: "openai",
        forms: &[
            ("gbnf", "/grammar", ""),
            ("lark", "/grammar", "%llguidance {}\n"),
            ("json-schema", "/json_schema", ""),
        ],
    },
    ServerForm {
        name: "vllm",
        kind: "openai",
        forms: &[
            ("gbnf", "/structured_outputs/grammar", ""),
            ("lark", "/structured_outputs/grammar", "%llguidance {}\n"),
            ("structural-tag", "/structured_outputs/structural_tag", ""),
            ("json-schema", "/structured_outputs/json", ""),
        ],
    },
    ServerForm {
        name: "sglang",
        kind: "openai",
        forms: &[
            ("gbnf", "/ebnf", ""),
            ("structural-tag", "/response_format/format", ""),
            ("json-schema", "/response_format/json_schema/schema", ""),
        ],
    },
    ServerForm {
        name: "openai",
        kind: "openai",
        forms: &[("json-schema", "/response_format/json_schema/schema", "")],
    },
    ServerForm { name: "ollama", kind: "ollama", forms: &[("json-schema", "/format", "")] },
    ServerForm {
        name: "anthropic",
        kind: "anthropic",
        forms: &[("json-schema", "/output_config/format/schema", "")],
    },
    ServerForm {
        name: "gemini",
        kind: "gemini",
        forms: &[("json-schema", "/generationConfig/responseJsonSchema", "")],
    },
];

pub(crate) fn server_form(name: &str) -> &'static ServerForm {
    SERVERS.iter().find(|server| server.name == name).unwrap()
}

/// Form that a request has, with its content as a text. A grammar with the rule `root` is GBNF; one in
/// Lark begins with the line of llguidance.
pub(crate) fn form_of(server: &ServerForm, body: &Value) -> Option<(&'static str, String)> {
    server.forms.iter().find_map(|(form, pointer, start)| {
        let content = body.pointer(pointer)?;
        let text = content.as_str().map_or_else(|| content.to_string(), str::to_owned);
        let is_form = match *form {
            "gbnf" => text.contains("root ::="),
            "lark" => text.starts_with(start) && text.matches("%llguidance").count() == 1,
            _ => true,
        };
        is_form.then_some((*form, text))
    })
}

/// Schema of the requests that a server documents.
pub(crate) fn request_schema(name: &str) -> jsonschema::Validator {
    let path = tambour_fixtures::fixtures_folder().join("upstream/requests").join(format!("{name}.json"));
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    jsonschema::draft202012::new(&schema).unwrap()
}

/// A whole reply in the protocol of a kind.
pub(crate) fn text_script(kind: &str, text: &str) -> Vec<Step> {
    let frames = match kind {
        "openai" => return reply_script(text, 7),
        "ollama" => {
            let lines = [
                json!({"message": {"role": "assistant", "content": text}, "done": false}),
                json!({"message": {"role": "assistant", "content": ""}, "done": true, "done_reason": "stop"}),
            ];
            let lines: String = lines.map(|line| format!("{line}\n")).concat();
            return response_script(200, "application/x-ndjson", &lines);
        }
        "anthropic" => vec![
            json!({"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 1, "output_tokens": 1}}}),
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}}),
            json!({"type": "message_stop"}),
        ],
        _ => vec![json!({"candidates": [{"content": {"parts": [{"text": text}]}, "finishReason": "STOP"}]})],
    };
    let frame = |data: &Value| match data["type"].as_str() {
        Some(name) if kind == "anthropic" => {
            [format!("event: {name}\n").into_bytes(), sse_frame(data)].concat()
        }
        _ => sse_frame(data),
    };
    frames.iter().map(|data| Step::Send(frame(data))).chain([Step::End]).collect()
}

/// A server that behaves towards each form as `behaviour` says, answers a constrained request with `good`, and
/// refuses what its documentation does not have.
pub(crate) async fn scripted_server(
    server: &'static ServerForm,
    behaviour: impl Fn(&str) -> Behaviour + Send + Sync + 'static,
    good: &'static str,
) -> MockServer {
    let schema = request_schema(server.name);
    MockServer::start_with(move |request: &ReceivedRequest| {
        let faults: Vec<String> = schema.iter_errors(&request.body).map(|fault| fault.to_string()).collect();
        let refuse = |status: u16, text: &str| {
            response_script(status, "application/json", &json!({"error": {"message": text}}).to_string())
        };
        if !faults.is_empty() {
            return refuse(400, &format!("not in the documentation: {faults:?}"));
        }
        let Some((form, content)) = form_of(server, &request.body) else {
            return text_script(server.kind, PROSE);
        };
        let is_canary = content.contains(CANARY_WORD);
        let text = match (is_canary, form) {
            (true, "json-schema") => json!({"answer": CANARY_WORD}).to_string(),
            (true, _) => CANARY_WORD.to_owned(),
            (false, _) => good.to_owned(),
        };
        match behaviour(form) {
            Behaviour::Ignore => text_script(server.kind, PROSE),
            Behaviour::Refuse(status) => refuse(status, "failed to parse grammar"),
            Behaviour::RefuseLarge(status) if !is_canary => refuse(status, "the grammar is too complex"),
            Behaviour::Obey | Behaviour::RefuseLarge(_) => text_script(server.kind, &text),
        }
    })
    .await
}

/// Starts our server for a scripted one. The name of the server is configured, or left to the probes.
pub(crate) async fn start_for(
    mock: &MockServer,
    server: &ServerForm,
    is_named: bool,
    constrain: Option<Constrain>,
) -> TestServer {
    let path = if server.kind == "openai" { "/v1" } else { "" };
    let url = format!("{}=http://{}{path}", server.kind, mock.address);
    TestServer::start(mock, |config| {
        config.add_upstream(&url, Some("a-model".to_owned())).unwrap();
        let upstream = config.upstreams.get_mut(server.kind).unwrap();
        upstream.constrain = constrain;
        upstream.server = is_named.then(|| server.name.to_owned());
    })
    .await
}

pub(crate) fn thinking_request(fields: &Value) -> Value {
    let mut request = json!({
        "text": "2 + 2?", "dialect": "thinkingml", "output_protocol": "jsonseq_v1", "extensions": true,
    });
    request.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    request
}

/// A request whose contract has all forms, also a schema that all servers take.
pub(crate) fn value_request(fields: &Value) -> Value {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let mut request = thinking_request(&json!({
        "dialect": "json_value", "contract": {"options": {"json_value.schema": schema}},
    }));
    request.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    request
}

pub(crate) async fn ask(server: &TestServer, request: &Value) -> Vec<Event> {
    server.open_stream(request).await.read_checked().await
}

pub(crate) fn end_yield(events: &[Event]) -> &Value {
    &events.last().unwrap().data["metadata"]["yield"]
}

/// Requests of a scripted server that are no probes.
pub(crate) fn messages_of(mock: &MockServer) -> Vec<Value> {
    let is_probe = |body: &Value| body.to_string().contains("How much is 2 + 2?");
    mock.requests().into_iter().map(|request| request.body).filter(|body| !is_probe(body)).collect()
}

#[tokio::test]
async fn each_server_takes_its_forms_as_its_documentation_says() {
    // A table says which form each server takes; every server's request form is tested (issue 32).
    for server in SERVERS {
        for only_form in server.forms.iter().map(|(form, ..)| *form) {
            let behaviour =
                move |form: &str| if form == only_form { Behaviour::Obey } else { Behaviour::Refuse(400) };
            let mock = scripted_server(server, behaviour, "{\"n\": 4}").await;
            let tambour = start_for(&mock, server, true, None).await;
            let events = ask(&tambour, &value_request(&json!({"constrain": "required"}))).await;
            assert_eq!(end_yield(&events), "constrained", "{}, {only_form}: {events:#?}", server.name);
            let sent = messages_of(&mock);
            let (form, content) = form_of(server, sent.last().unwrap()).expect("the message is constrained");
            assert_eq!(form, only_form, "{}", server.name);
            assert!(content.contains("\"n\"") || content.contains("\\\"n\\\""), "{content}");
            // The probes are shown.
            let upstreams = tambour.get("/api/v1/settings").await.json["upstreams"].clone();
            let upstream =
                upstreams.as_array().unwrap().iter().find(|one| one["name"] == server.kind).unwrap();
            let probe = &upstream["probes"][0];
            assert_eq!((&probe["model"], &probe["server"]), (&json!("a-model"), &json!(server.name)));
            let states = probe["forms"].as_array().unwrap().iter();
            let states: Vec<(&str, &str)> = states
                .map(|form| (form["form"].as_str().unwrap(), form["state"].as_str().unwrap()))
                .collect();
            let expected: Vec<(&str, &str)> = server
                .forms
                .iter()
                .map(|(form, ..)| (*form, if *form == only_form { "obeyed" } else { "refused" }))
                .collect();
            assert_eq!(states, expected, "{}", server.name);
        }
    }
}

#[tokio::test]
async fn a_server_that_ignores_or_refuses_all_is_asked_plainly_on_auto() {
    for behaviour in [Behaviour::Ignore, Behaviour::Refuse(400), Behaviour::Refuse(500)] {
        for is_named in [true, false] {
            let mock = scripted_server(server_form("vllm"), move |_| behaviour, GOOD_REPLY).await;
            let tambour = start_for(&mock, server_form("vllm"), is_named, Some(Constrain::Auto)).await;
            let events = ask(&tambour, &thinking_request(&json!({}))).await;
            assert_eq!(events.last().unwrap().name, "completed", "{events:#?}");
            assert_eq!(joined_text(&events, "final_delta"), PROSE);
            assert_eq!(end_yield(&events), "fallback");
            let sent = messages_of(&mock);
            assert_eq!(sent.len(), 1);
            assert!(form_of(server_form("vllm"), &sent[0]).is_none(), "{}", sent[0]);
        }
    }
}

#[tokio::test]
async fn with_required_a_server_that_cannot_is_an_error_before_the_model_is_asked() {
    for is_named in [true, false] {
        let mock = scripted_server(server_form("sglang"), |_| Behaviour::Ignore, GOOD_REPLY).await;
        let tambour = start_for(&mock, server_form("sglang"), is_named, Some(Constrain::Required)).await;
        let events = ask(&tambour, &thinking_request(&json!({}))).await;
        let end = events.last().unwrap();
        assert_eq!((end.name.as_str(), &end.data["code"]), ("error", &json!("upstream_unconstrained")));
        assert_eq!(messages_of(&mock), [json!(null); 0]);
        // A message may want less than its upstream.
        let events = ask(&tambour, &thinking_request(&json!({"constrain": "off"}))).await;
        assert_eq!(joined_text(&events, "final_delta"), PROSE);
    }
    // Neither can recordings, nor a contract without a form.
    let mock = MockServer::start(vec![reply_script("x", 1)]).await;
    let tambour = TestServer::start_default(&mock).await;
    let events =
        ask(&tambour, &thinking_request(&json!({"constrain": "required", "upstream": "demo"}))).await;
    assert_eq!(events.last().unwrap().data["code"], "upstream_unconstrained");
    for dialect in ["plain", "auto"] {
        let request = thinking_request(&json!({"constrain": "required", "dialect": dialect}));
        let answer = tambour.post("/api/v1/messages", &request).await;
        assert_eq!((answer.status, answer.problem_code()), (422, "invalid_field"));
        assert_eq!(answer.json["field"], "constrain");
    }
    let cyclic = json!({"$ref": "#"});
    let contract = json!({"options": {"json_value.schema": cyclic}});
    let request = |constrain: &str| value_request(&json!({"constrain": constrain, "contract": contract}));
    let answer = tambour.post("/api/v1/messages", &request("required")).await;
    assert_eq!(answer.status, 422, "{}", answer.text);
    assert_eq!(mock.calls().started, 0);
}

#[tokio::test]
async fn a_refused_contract_gets_the_next_weaker_form_with_a_notice() {
    let texts = tambour::options::Texts::default();
    assert_ne!(texts.constraint_refusal_text(true), texts.constraint_refusal_text(false));
    for status in [400, 500] {
        let behaviour = move |form: &str| match form {
            "gbnf" => Behaviour::RefuseLarge(status),
            _ => Behaviour::Obey,
        };
        let mock = scripted_server(server_form("llama.cpp"), behaviour, GOOD_REPLY).await;
        let tambour = start_for(&mock, server_form("llama.cpp"), true, Some(Constrain::Auto)).await;
        for round in 0..2 {
            let events = ask(&tambour, &thinking_request(&json!({}))).await;
            assert_eq!(end_yield(&events), "constrained", "{events:#?}");
            let notices = &events.last().unwrap().data["metadata"]["notices"];
            if round == 0 {
                assert_eq!(notices[0]["code"], "constraint_refused");
                assert_eq!(notices[0]["ref"], "gbnf");
                assert_eq!(notices[0]["message"], texts.constraint_refusal_text(true));
            } else {
                // Nothing was refused this time.
                assert!(notices[0].is_null(), "{notices}");
            }
            let forms: Vec<&str> = messages_of(&mock)
                .iter()
                .map(|body| form_of(server_form("llama.cpp"), body).expect("constrained").0)
                .collect();
            // The refusal is remembered.
            assert_eq!(forms, [&["gbnf", "lark"][..], &["lark"][..round]].concat(), "{status}");
        }
        let metrics = tambour.get("/metrics").await.text;
        let line = "tambour_upstream_constraint_refusals_total{upstream=\"openai\",form=\"gbnf\"} 1";
        assert!(metrics.contains(line), "{metrics}");
        // A server that refuses contracts does not count as broken.
        assert_eq!(tambour.get("/api/v1/upstreams").await.json["data"][1]["resting"], false);
    }
    // The last step down is a reply without a constraint.
    let mock = scripted_server(server_form("llama.cpp"), |_| Behaviour::RefuseLarge(400), GOOD_REPLY).await;
    let tambour = start_for(&mock, server_form("llama.cpp"), true, Some(Constrain::Auto)).await;
    let events = ask(&tambour, &thinking_request(&json!({}))).await;
    assert_eq!(joined_text(&events, "final_delta"), PROSE);
    let notice = &events.last().unwrap().data["metadata"]["notices"][0];
    assert_eq!(notice["ref"], "gbnf, lark");
    assert_eq!(notice["message"], texts.constraint_refusal_text(false), "no form is used");
    let events = ask(&tambour, &thinking_request(&json!({"constrain": "required"}))).await;
    assert_eq!(events.last().unwrap().data["code"], "upstream_unconstrained");
}

#[tokio::test]
async fn a_refusal_within_a_stream_gets_the_next_weaker_form() {
    // SGLang and vLLM compile grammars after the head of the response.
    let mock = MockServer::start_with(|request: &ReceivedRequest| {
        let Some((form, content)) = form_of(server_form("llama.cpp"), &request.body) else {
            return reply_script(PROSE, 9);
        };
        if content.contains(CANARY_WORD) {
            return reply_script(CANARY_WORD, 9);
        }
        if form != "gbnf" {
            return reply_script(GOOD_REPLY, 9);
        }
        let head = json!({"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]});
        let error = json!({"error": {"message": "Failed to compile the grammar"}});
        vec![Step::Send(sse_frame(&head)), Step::Send(sse_frame(&error)), Step::End]
    })
    .await;
    let tambour = start_for(&mock, server_form("llama.cpp"), true, Some(Constrain::Auto)).await;
    for round in 0..2 {
        let events = ask(&tambour, &thinking_request(&json!({}))).await;
        assert_eq!(end_yield(&events), "constrained", "{events:#?}");
        assert_eq!(events.last().unwrap().data["metadata"]["notices"][0]["ref"].is_null(), round == 1);
    }
    let forms: Vec<&str> = messages_of(&mock)
        .iter()
        .map(|body| form_of(server_form("llama.cpp"), body).expect("constrained").0)
        .collect();
    assert_eq!(forms, ["gbnf", "lark", "lark"], "the refusal is remembered");
}

#[tokio::test]
async fn an_error_after_the_first_text_is_no_refusal() {
    // A refusal after text that the client may have is an error of the reply: nothing is asked again.
    let mock = MockServer::start_with(|request: &ReceivedRequest| {
        let Some((_, content)) = form_of(server_form("llama.cpp"), &request.body) else {
            return reply_script(PROSE, 9);
        };
        if content.contains(CANARY_WORD) {
            return reply_script(CANARY_WORD, 9);
        }
        let begun =
            json!({"choices": [{"index": 0, "delta": {"content": "<serp>Sums.</serp>\n<thinking>"}}]});
        let error = json!({"error": {"message": "Failed to compile the grammar"}});
        vec![Step::Send(sse_frame(&begun)), Step::Send(sse_frame(&error)), Step::End]
    })
    .await;
    let tambour = start_for(&mock, server_form("llama.cpp"), true, Some(Constrain::Auto)).await;
    for round in 1..=2 {
        let events = ask(&tambour, &thinking_request(&json!({}))).await;
        let end = events.last().unwrap();
        assert_eq!(end.name, "error", "{events:#?}");
        assert_ne!(end.data["code"], "upstream_unconstrained", "{}", end.data);
        assert!(!end.data.to_string().contains("constraint_refused"), "{}", end.data);
        let forms: Vec<&str> = messages_of(&mock)
            .iter()
            .map(|body| form_of(server_form("llama.cpp"), body).expect("constrained").0)
            .collect();
        // Nothing is remembered against the form either.
        assert_eq!(forms, vec!["gbnf"; round]);
    }
    let metrics = tambour.get("/metrics").await.text;
    assert!(!metrics.contains("tambour_upstream_constraint_refusals_total{"), "{metrics}");
}

#[tokio::test]
async fn a_refusal_without_a_reason_is_answered_plainly_on_auto() {
    let mock = MockServer::start_with(|request: &ReceivedRequest| {
        match form_of(server_form("llama.cpp"), &request.body) {
            Some((_, content)) if content.contains(CANARY_WORD) => reply_script(CANARY_WORD, 9),
            Some(_) => {
                let body = json!({"error": {"message": "invalid argument"}});
                response_script(400, "application/json", &body.to_string())
            }
            None => reply_script(GOOD_REPLY, 9),
        }
    })
    .await;
    let tambour = start_for(&mock, server_form("llama.cpp"), true, Some(Constrain::Auto)).await;
    let events = ask(&tambour, &thinking_request(&json!({}))).await;
    assert_eq!(end_yield(&events), "plain", "{events:#?}");
    assert_eq!(messages_of(&mock).len(), 2);
    let events =
        ask(&tambour, &thinking_request(&json!({"constrain": "required", "temperature": 0.5}))).await;
    assert_eq!(events.last().unwrap().name, "error", "{events:#?}");
}

#[tokio::test]
async fn an_error_of_something_else_is_no_refusal_of_a_form() {
    // A model whose name has the word is missing: nothing is known of its forms, and it is probed again.
    let mock = MockServer::start_with(|_: &ReceivedRequest| {
        let body = json!({"error": {"message": "the model grammar-7b does not exist"}});
        response_script(400, "application/json", &body.to_string())
    })
    .await;
    let tambour = start_for(&mock, server_form("llama.cpp"), true, Some(Constrain::Required)).await;
    let events = ask(&tambour, &thinking_request(&json!({}))).await;
    let end = &events.last().unwrap().data;
    assert_eq!((&end["code"], &end["retryable"]), (&json!("upstream_unconstrained"), &json!(true)));
}

#[tokio::test]
async fn rounds_of_dialogues_are_constrained_as_the_upstream_says() {
    let answer: &'static str = round_answer(30, false, "一").leak();
    let mock = scripted_server(server_form("llama.cpp"), |_| Behaviour::Obey, answer).await;
    let tambour = start_for(&mock, server_form("llama.cpp"), true, Some(Constrain::Required)).await;
    let id = start_dialogue(&tambour, &[SAY_ACTION]).await;
    let first = tambour.post(&format!("/api/v1/dialogues/{id}/input"), &json!({})).await.json;
    assert_eq!(first["ai_message"], "一", "{first}");
    let sent = messages_of(&mock);
    assert_eq!(form_of(server_form("llama.cpp"), &sent[0]).expect("constrained").0, "gbnf");
    let trace = tambour.get(&format!("/api/v1/dialogues/{id}/trace")).await.json;
    assert_eq!(trace["data"][0]["parameters"]["constraint"], "gbnf");
    // A server that ignores forms: an error with `required`, a plain request on `auto`.
    for (constrain, is_sent) in [(Constrain::Required, false), (Constrain::Auto, true)] {
        let mock = scripted_server(server_form("llama.cpp"), |_| Behaviour::Ignore, answer).await;
        let tambour = start_for(&mock, server_form("llama.cpp"), true, Some(constrain)).await;
        let id = start_dialogue(&tambour, &[SAY_ACTION]).await;
        let answer = tambour.post(&format!("/api/v1/dialogues/{id}/input"), &json!({})).await;
        let sent = messages_of(&mock);
        assert_eq!(!sent.is_empty(), is_sent);
        assert_eq!(answer.text.contains("upstream_unconstrained"), !is_sent, "{}", answer.text);
    }
}

/// Contracts that were written for the cache in this process.
static WRITTEN: AtomicUsize = AtomicUsize::new(0);

/// Not a test: the process of the test below, whose hook it needs.
#[test]
#[ignore = "the test below runs it"]
fn cached_rounds_child() {
    tambour_server::fail::arm(|point| {
        WRITTEN.fetch_add(usize::from(point == "contract"), Ordering::SeqCst);
    });
    run_async(async {
        let answer: &'static str = round_answer(30, false, "一").leak();
        let mock = scripted_server(server_form("llama.cpp"), |_| Behaviour::Obey, answer).await;
        let tambour = start_for(&mock, server_form("llama.cpp"), true, Some(Constrain::Required)).await;
        for _ in 0..2 {
            let id = start_dialogue(&tambour, &[SAY_ACTION]).await;
            for _ in 0..2 {
                let turn = post_text(&tambour, &id, "我有点明白了").await;
                assert_eq!(turn["ai_message"], "一", "{turn}");
            }
        }
        let sent = messages_of(&mock);
        assert_eq!(sent.len(), 4);
        assert!(sent.iter().all(|body| form_of(server_form("llama.cpp"), body).is_some()));
        assert_eq!(WRITTEN.load(Ordering::SeqCst), 1, "written once for all rounds");
        // Other texts are another contract.
        let change = json!({"text_language": "en"});
        assert_eq!(tambour.put("/api/v1/settings", &change).await.status, 200);
        let id = start_dialogue(&tambour, &[SAY_ACTION]).await;
        post_text(&tambour, &id, "hello").await;
        assert_eq!(WRITTEN.load(Ordering::SeqCst), 2);
    });
}

#[test]
fn rounds_of_dialogues_write_their_contract_once() {
    run_passing_child("constrained::cached_rounds_child", &json!(null));
}

#[tokio::test]
async fn calls_of_offered_tools_are_strict_where_the_service_can() {
    let schema = json!({"type": "object", "properties": {"at": {"type": "integer"}}, "required": ["at"]});
    let tools = json!([{"name": "look", "schema": schema}]);
    for (kind, server, pointer) in [
        ("openai", "openai", "/tools/0/function"),
        ("anthropic", "anthropic", "/tools/0"),
        ("openai", "vllm", "/tools/0/function"),
    ] {
        for is_refusing in [false, true] {
            let path = format!("{pointer}/strict");
            let kind_name = kind.to_owned();
            let mock = MockServer::start_with(move |request: &ReceivedRequest| {
                if is_refusing && request.body.pointer(&path).is_some() {
                    let body = json!({"error": {"message": "strict: unexpected field"}});
                    return response_script(400, "application/json", &body.to_string());
                }
                text_script(&kind_name, PROSE)
            })
            .await;
            let tambour = start_for(&mock, server_form(server), true, Some(Constrain::Auto)).await;
            for _ in 0..2 {
                let request = thinking_request(&json!({"dialect": "plain", "tools": tools}));
                let events = ask(&tambour, &request).await;
                assert_eq!(joined_text(&events, "final_delta"), PROSE, "{events:#?}");
                assert_eq!(end_yield(&events), "plain");
            }
            let sent: Vec<bool> = messages_of(&mock)
                .iter()
                .map(|body| body.pointer(&format!("{pointer}/strict")) == Some(&json!(true)))
                .collect();
            let expected: &[bool] = match (server, is_refusing) {
                ("vllm", _) => &[false, false],
                (_, false) => &[true, true],
                // The refusal is remembered.
                (_, true) => &[true, false, false],
            };
            assert_eq!(sent, expected, "{server}, refusing: {is_refusing}");
        }
    }
}

#[tokio::test]
async fn an_error_that_a_clients_field_may_have_caused_is_not_remembered() {
    let is_refusing = Arc::new(Mutex::new(true));
    let shared = is_refusing.clone();
    let behaviour = move |_: &str| match *shared.lock().unwrap() {
        true => Behaviour::RefuseLarge(400),
        false => Behaviour::Obey,
    };
    let mock = scripted_server(server_form("llama.cpp"), behaviour, GOOD_REPLY).await;
    let tambour = start_for(&mock, server_form("llama.cpp"), true, Some(Constrain::Auto)).await;
    let request = thinking_request(&json!({"upstream_fields": {"top_k": 3}}));
    assert_ne!(end_yield(&ask(&tambour, &request).await), "constrained");
    *is_refusing.lock().unwrap() = false;
    assert_eq!(end_yield(&ask(&tambour, &thinking_request(&json!({}))).await), "constrained");
}

#[tokio::test]
async fn fields_of_the_client_win() {
    let mock = scripted_server(server_form("llama.cpp"), |_| Behaviour::Obey, GOOD_REPLY).await;
    let tambour = start_for(&mock, server_form("llama.cpp"), true, Some(Constrain::Auto)).await;
    let own_format = json!({"type": "json_object"});
    for fields in [
        json!({"response_format": own_format}),
        json!({"upstream_fields": {"grammar": "root ::= \"mine\""}}),
        json!({"upstream_fields": {"json_schema": {"type": "object"}}}),
        json!({"upstream_fields": {"structured_outputs": {"regex": "a"}}}),
        // A null would take the place of the form.
        json!({"upstream_fields": {"grammar": null}}),
        json!({"upstream_fields": {"response_format": null}}),
        json!({"upstream_fields": {"tools": []}}),
    ] {
        let before = mock.calls().started;
        ask(&tambour, &thinking_request(&fields)).await;
        assert_eq!(mock.calls().started, before + 1, "nothing is probed");
        let body = mock.requests().last().unwrap().body.clone();
        let sent = fields.get("upstream_fields").unwrap_or(&fields).as_object().unwrap();
        for name in ["response_format", "grammar", "json_schema", "structured_outputs"] {
            assert_eq!(body.get(name), sent.get(name), "{fields}");
        }
        let mut required = thinking_request(&fields);
        required["constrain"] = "required".into();
        let events = ask(&tambour, &required).await;
        assert_eq!(events.last().unwrap().data["code"], "upstream_unconstrained");
    }
    // Tools of the service's own interface are sent without a constraint: servers refuse both together.
    let tool = json!({"name": "look", "schema": {"type": "object"}});
    ask(&tambour, &thinking_request(&json!({"tools": [tool]}))).await;
    let body = mock.requests().last().unwrap().body.clone();
    assert!(body.get("tools").is_some() && body.get("grammar").is_none(), "{body}");
}

#[tokio::test]
async fn nothing_is_sent_unless_it_is_wanted() {
    let mock = MockServer::start(vec![reply_script(GOOD_REPLY, 9)]).await;
    let tambour = TestServer::start_default(&mock).await;
    let events = ask(&tambour, &thinking_request(&json!({}))).await;
    assert_eq!(end_yield(&events), "plain");
    let body = mock.requests()[0].body.clone();
    assert_eq!(mock.calls().started, 1);
    assert!(body.get("grammar").is_none() && body.get("response_format").is_none(), "{body}");
}

#[tokio::test]
async fn message_alias_and_upstream_say_whether_in_this_order() {
    let mock = scripted_server(server_form("llama.cpp"), |_| Behaviour::Obey, GOOD_REPLY).await;
    let url = format!("openai=http://{}/v1", mock.address);
    let tambour = TestServer::start(&mock, |config| {
        config.add_upstream(&url, Some("a-model".to_owned())).unwrap();
        let upstream = config.upstreams.get_mut("openai").unwrap();
        (upstream.constrain, upstream.server) = (Some(Constrain::Off), Some("llama.cpp".to_owned()));
        let alias = json!({"upstream": "openai", "dialect": "thinkingml", "constrain": "required"});
        config.aliases.insert("strict".to_owned(), serde_json::from_value(alias).unwrap());
    })
    .await;
    let chat = async |tambour_fields: Value| {
        let request = json!({
            "model": "strict", "messages": [{"role": "user", "content": "2 + 2?"}], "tambour": tambour_fields,
        });
        let answer = tambour.post("/v1/chat/completions", &request).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        messages_of(&mock).last().unwrap().get("grammar").is_some()
    };
    assert!(chat(json!({})).await, "the alias over the upstream");
    assert!(!chat(json!({"constrain": "off"})).await, "the message over the alias");
}

#[tokio::test]
async fn a_constrained_reply_is_still_checked() {
    // A server says that it obeys, but lets through what no contract allows: nothing of it acts.
    let broken = "```aiplan\n{\"thought\": \"t\", \"response_mode\": \"ExecuteTools\", \"direct_response\": null, \"tool_calls\": [{\"name\": \"nothing\", \"args\": {}}]}\n```";
    let mock = scripted_server(server_form("llama.cpp"), |_| Behaviour::Obey, broken).await;
    let tambour = start_for(&mock, server_form("llama.cpp"), true, Some(Constrain::Auto)).await;
    let events = ask(&tambour, &thinking_request(&json!({"dialect": "aiplan"}))).await;
    assert!(events.iter().all(|event| event.name != "tool_call"), "{events:#?}");
    assert_eq!(end_yield(&events), "fallback");
    assert!(form_of(server_form("llama.cpp"), &messages_of(&mock)[0]).is_some());
}

#[tokio::test]
async fn the_metadata_name_the_step_that_gave_the_answer() {
    // Constrained, plain, repaired, reasked, fallback (issue 32).
    let repaired = GOOD_REPLY.replace("</serp>\n", "</serp>\n<final>").replacen("<final>", "", 1);
    let repaired = repaired.replace("<phase id=\"2\">", "<phase id=\"7\">");
    let marker = "<<ParsingError>>";
    for (replies, reasks, expected) in [
        (vec![GOOD_REPLY], 0, "plain"),
        (vec![&*repaired], 0, "repaired"),
        (vec![marker, GOOD_REPLY], 1, "reasked"),
        (vec![marker], 0, "fallback"),
        (vec![marker, marker], 1, "fallback"),
        (vec![PROSE], 0, "fallback"),
    ] {
        let mock = MockServer::start(replies.iter().map(|reply| reply_script(reply, 9)).collect()).await;
        let tambour = TestServer::start_default(&mock).await;
        let events = ask(&tambour, &thinking_request(&json!({"max_reasks": reasks}))).await;
        assert_eq!(end_yield(&events), expected, "{replies:?}: {events:#?}");
        let record = tambour.wait_ended(&stream_message_id(&events)).await;
        assert_eq!(record["metadata"]["yield"], expected);
    }
}

#[tokio::test]
async fn a_re_ask_is_constrained_too_and_does_not_repeat_the_example() {
    let replies = Arc::new(Mutex::new(vec![GOOD_REPLY]));
    let example = tambour::dialect::find_dialect("thinkingml").unwrap().prompt.unwrap();
    let example = example(&tambour::Options::default()).example.into_owned();
    let example_text = example.trim().trim_start_matches("```xml").trim_matches('`').trim().to_owned();
    let first = example_text.clone();
    let mock = MockServer::start_with(move |request: &ReceivedRequest| {
        if request.body.to_string().contains(CANARY_WORD) {
            return reply_script(CANARY_WORD, 9);
        }
        let is_reask = request.body["messages"].as_array().is_some_and(|messages| messages.len() > 4);
        let text = if is_reask { replies.lock().unwrap()[0] } else { first.as_str() };
        reply_script(text, 9)
    })
    .await;
    let tambour = start_for(&mock, server_form("llama.cpp"), true, Some(Constrain::Auto)).await;
    let contract = json!({"options": {"hold": "all"}});
    let request = thinking_request(&json!({"instructions": true, "max_reasks": 1, "contract": contract}));
    let events = ask(&tambour, &request).await;
    assert_eq!(end_yield(&events), "reasked", "{events:#?}");
    let sent = messages_of(&mock);
    assert_eq!(sent.len(), 2);
    assert!(sent.iter().all(|body| body.get("grammar").is_some()));
    let added = sent[1]["messages"].as_array().unwrap()[4..].to_vec();
    let line = example_text.lines().find(|line| line.len() > 20).unwrap();
    assert!(!added.iter().any(|message| message["content"].as_str().unwrap().contains(line)), "{added:?}");
}

#[tokio::test]
async fn a_server_that_is_not_in_the_table_is_refused_at_start() {
    for (kind, server, known) in
        [("openai", "nothing", "llama.cpp, vllm, sglang, openai"), ("ollama", "vllm", "ollama")]
    {
        let folder = crate::server::Folder::new();
        let mut config = crate::server::test_config(&folder);
        config.add_upstream(&format!("{kind}=http://127.0.0.1:9"), Some("m".to_owned())).unwrap();
        config.upstreams.get_mut(kind).unwrap().server = Some(server.to_owned());
        let error = tambour_server::Server::start(config).await.err().expect("it does not start");
        let error = error.to_string();
        assert!(error.contains(server) && error.ends_with(&format!("known: {known}")), "{error}");
    }
}
