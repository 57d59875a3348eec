//! Services of every kind over HTTP: what they are asked, what comes of their answers, and of their failures.

use serde_json::{Value, json};
use tambour_server::upstream::Kind;

use crate::client::{Event, message, names, text};
use crate::mock::{Asked, Mock, Step, whole};
use crate::server::{Folder, Tambour};
use crate::tool_kit::{Kit, gives, local};

/// The kinds that are not the one all others are held against.
const OTHERS: [Kind; 3] = [Kind::Anthropic, Kind::Gemini, Kind::Ollama];

fn ask() -> Value {
    json!({"text": "x", "dialect": "plain", "output_protocol": "jsonseq_v1"})
}

/// A recorded answer of a kind.
fn recorded(kind: Kind, case: &str) -> Vec<u8> {
    let extension = if kind == Kind::Ollama { "ndjson" } else { "sse" };
    let path =
        tambour_fixtures::folder().join("upstream").join(kind.name()).join(format!("{case}.{extension}"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A recorded answer as it is sent, in pieces.
fn plays(kind: Kind, case: &str) -> Vec<Step> {
    let bytes = recorded(kind, case);
    bytes.chunks(97).map(|piece| Step::Send(piece.to_vec())).chain([Step::End]).collect()
}

/// A server whose upstream is a service of that kind below `path`, with a model and a key.
async fn server(kind: Kind, mock: &Mock, path: &str) -> Tambour {
    let url = format!("{}=http://{}{path}", kind.name(), mock.address);
    Tambour::start(mock, |config| {
        local(config);
        config.add_upstream(&url, Some("gemini-2.5-of-tests".to_owned())).unwrap();
        let key = config.data.with_file_name("key");
        std::fs::write(&key, "sk-of-a-test\n").unwrap();
        let upstream = config.upstreams.get_mut(kind.name()).unwrap();
        (upstream.key_env, upstream.key_file) = (None, Some(key));
    })
    .await
}

async fn answer(kind: Kind, script: Vec<Step>) -> Vec<Event> {
    let mock = Mock::start(vec![script]).await;
    server(kind, &mock, "").await.stream(&ask()).await.whole().await
}

fn end(events: &[Event]) -> (&str, &Value) {
    let end = events.last().unwrap();
    (&end.name, &end.data)
}

#[tokio::test]
async fn replies_of_all_kinds_are_the_same_events() {
    // What a client sees, but for ids, times and details of the tokens.
    let seen = |events: &[Event]| {
        let said = ["phase_delta", "final_delta"].map(|name| text(events, name));
        let names: Vec<String> = names(events).into_iter().map(str::to_owned).collect();
        let end = end(events).1;
        let usage =
            ["prompt_tokens", "completion_tokens", "total_tokens"].map(|name| end["usage"][name].clone());
        (names, said, usage, end["finish_reason"].clone(), end["metadata"]["truncated"].clone())
    };
    for case in ["text", "reasoning", "length", "cut"] {
        let wanted = answer(Kind::OpenAi, plays(Kind::OpenAi, case)).await;
        for kind in OTHERS {
            let events = answer(kind, plays(kind, case)).await;
            let (mut seen, mut wanted) = (seen(&events), seen(&wanted));
            if case == "cut" {
                // Some count as they go.
                (seen.2, wanted.2) = Default::default();
            }
            assert_eq!(seen, wanted, "{case} of {}", kind.name());
        }
    }
}

#[tokio::test]
async fn what_a_service_refuses_is_filtered() {
    for (kind, case, said) in [
        (Kind::Anthropic, "refusal", "I will"),
        (Kind::Gemini, "safety", "I will"),
        (Kind::Gemini, "blocked", ""),
    ] {
        let events = answer(kind, plays(kind, case)).await;
        assert_eq!(
            (end(&events).0, &end(&events).1["finish_reason"]),
            ("completed", &json!("content_filter"))
        );
        assert!(text(&events, "final_delta").contains(said), "{case}");
    }
}

#[tokio::test]
async fn calls_run_and_the_service_is_told_in_its_own_form() {
    for (kind, case) in [
        (Kind::Anthropic, "calls"),
        (Kind::Anthropic, "signed_calls"),
        (Kind::Gemini, "calls"),
        (Kind::Gemini, "named_calls"),
        (Kind::Ollama, "calls"),
    ] {
        let mock = Mock::start(vec![plays(kind, case), plays(kind, "text")]).await;
        let tambour = server(kind, &mock, "").await;
        let kit =
            Kit { model: mock, hook: Mock::start(vec![gives(&json!({"score": 7}))]).await, server: tambour };
        for name in ["weather", "count", "time"] {
            kit.register(
                name,
                &json!({"schema": {"type": "object", "properties": {"city": {"type": "string"}}}}),
            )
            .await;
        }
        let mut ask = ask();
        ask["tools"] = json!(["weather", "count", "time"]);
        ask["extensions"] = true.into();
        let events = kit.server.stream(&ask).await.whole().await;
        let calls: Vec<&str> = events
            .iter()
            .filter(|event| event.name == "tool_call")
            .map(|event| event.data["name"].as_str().unwrap())
            .collect();
        let wanted = match case {
            "calls" => ["weather", "count"],
            "signed_calls" => ["weather", "time"],
            _ => ["time", "weather"],
        };
        assert_eq!(calls, wanted, "{case} of {}", kind.name());
        assert!(text(&events, "final_delta").ends_with("二加二等于四。"));
        let asked = kit.model.asked();
        let body = &asked[1].body;
        let result = json!({"ok": true, "result": {"score": 7}});
        let told = result.to_string();
        match (kind, case) {
            (Kind::Anthropic, "calls") => {
                let [.., called, said] = body["messages"].as_array().unwrap().as_slice() else {
                    panic!("{body}")
                };
                assert_eq!(called["role"], "assistant");
                assert_eq!(
                    called["content"],
                    json!([
                        {"type": "text", "text": "I look it up."},
                        {"type": "tool_use", "id": "toolu_01A", "name": "weather", "input": {"city": "Zürich", "days": 2}},
                        {"type": "tool_use", "id": "toolu_01B", "name": "count", "input": {"of": ["a", {"b": null}]}},
                    ])
                );
                assert_eq!(
                    said,
                    &json!({"role": "user", "content": [
                        {"type": "tool_result", "tool_use_id": "toolu_01A", "content": told},
                        {"type": "tool_result", "tool_use_id": "toolu_01B", "content": told},
                    ]})
                );
                let tool = &body["tools"][0];
                assert_eq!(
                    (&tool["name"], &tool["input_schema"]["type"]),
                    (&json!("weather"), &json!("object"))
                );
            }
            (Kind::Anthropic, _) => {
                // Signed reasoning goes back word for word, before everything.
                let [.., called, _] = body["messages"].as_array().unwrap().as_slice() else {
                    panic!("{body}")
                };
                assert_eq!(
                    called["content"].as_array().unwrap()[..3],
                    [
                        json!({"type": "thinking", "thinking": "I need the weather.", "signature": "EqQBCgIYAhIM=="}),
                        json!({"type": "redacted_thinking", "data": "EmwKAhgBEgy3va3pzix"}),
                        json!({"type": "text", "text": "Looking."}),
                    ]
                );
            }
            (Kind::Gemini, "calls") => {
                let [.., called, said] = body["contents"].as_array().unwrap().as_slice() else {
                    panic!("{body}")
                };
                assert_eq!(
                    called,
                    &json!({"role": "model", "parts": [
                        {"text": "I look it up."},
                        {"functionCall": {"name": "weather", "args": {"city": "Zürich", "days": 2}}, "thoughtSignature": "CiQBcsjafA=="},
                        {"functionCall": {"name": "count", "args": {"of": ["a", {"b": null}]}}},
                    ]})
                );
                assert_eq!(
                    said,
                    &json!({"role": "user", "parts": [
                        {"functionResponse": {"name": "weather", "response": result}},
                        {"functionResponse": {"name": "count", "response": result}},
                    ]})
                );
                assert_eq!(body["tools"][0]["functionDeclarations"][1]["name"], "count");
            }
            (Kind::Gemini, _) => {
                let [.., called, said] = body["contents"].as_array().unwrap().as_slice() else {
                    panic!("{body}")
                };
                assert_eq!(called["parts"][0]["functionCall"]["id"], "fc_9a");
                assert_eq!(said["parts"][1]["functionResponse"]["id"], "fc_9b");
            }
            _ => {
                let [.., called, first, second] = body["messages"].as_array().unwrap().as_slice() else {
                    panic!("{body}")
                };
                assert_eq!(
                    called["tool_calls"][0],
                    json!({"function": {"name": "weather", "arguments": {"city": "Zürich", "days": 2}}})
                );
                assert_eq!(first, &json!({"role": "tool", "content": told, "tool_name": "weather"}));
                assert_eq!(second["tool_name"], "count");
                assert_eq!(body["tools"][0]["function"]["name"], "weather");
            }
        }
        // What only the service can read is nobody else's.
        let record = kit.server.ended(&message(&events)).await.to_string();
        assert!(!record.contains("EqQBCg") && !record.contains("CiQB"), "{record}");
    }
}

#[tokio::test]
async fn a_call_that_was_cut_does_not_run() {
    let mock = Mock::start(vec![plays(Kind::Anthropic, "cut_call")]).await;
    let tambour = server(Kind::Anthropic, &mock, "").await;
    let kit = Kit { model: mock, hook: Mock::start(vec![gives(&json!(1))]).await, server: tambour };
    kit.register("weather", &json!({})).await;
    let mut ask = ask();
    (ask["tools"], ask["extensions"]) = (json!(["weather"]), true.into());
    let events = kit.server.stream(&ask).await.whole().await;
    assert_eq!(kit.hook.calls().begun, 0);
    assert!(!names(&events).contains(&"tool_call"), "{events:?}");
}

#[tokio::test]
async fn services_of_all_kinds_are_asked_again_alike() {
    let refusal = |status: u16, header: (&'static str, &str)| {
        vec![
            Step::Head(status, vec![("content-type", "application/json".into()), (header.0, header.1.into())]),
            Step::Send(
                json!({"type": "error", "error": {"type": "some_error", "message": "no sk-secret12345 today"}})
                    .to_string()
                    .into_bytes(),
            ),
            Step::End,
        ]
    };
    for kind in OTHERS {
        // A service that is busy, overloaded or broken is asked again.
        let scripts = vec![
            refusal(429, ("retry-after-ms", "1")),
            refusal(529, ("retry-after", "0")),
            plays(kind, "text"),
        ];
        let mock = Mock::start(scripts).await;
        let events = server(kind, &mock, "").await.stream(&ask()).await.whole().await;
        assert_eq!((end(&events).0, mock.calls().begun), ("completed", 3), "{}", kind.name());
        for (status, after, code, retryable, calls) in [
            (400, "0", "upstream_refused", false, 1),
            (401, "0", "upstream_unauthorized", false, 1),
            (403, "0", "upstream_unauthorized", false, 1),
            (404, "0", "upstream_refused", false, 1),
            (429, "3600", "upstream_rate_limited", true, 1),
            (500, "0", "upstream_error", true, 3),
            (529, "0", "upstream_error", true, 3),
            (307, "0", "upstream_refused", false, 1),
        ] {
            let mock = Mock::start(vec![refusal(status, ("retry-after", after))]).await;
            let tambour = server(kind, &mock, "").await;
            let events = tambour.stream(&ask()).await.whole().await;
            assert_eq!(names(&events), ["error"], "{status}"); // J-035
            let said = end(&events).1;
            assert_eq!((&said["code"], &said["retryable"]), (&json!(code), &json!(retryable)), "{status}");
            assert_eq!(said["message"], format!("the upstream answered {status}: no [access_key] today"));
            assert_eq!(mock.calls().begun, calls, "{status}");
            let metrics = tambour.get("/metrics").await.text;
            let counted = format!("upstream=\"{}\",code=\"{code}\"", kind.name());
            assert!(metrics.contains(&counted), "{counted}: {metrics}");
        }
        // Nothing is repeated once something has come.
        let half = || {
            let bytes = recorded(kind, "text");
            Step::Send(bytes[..bytes.len() / 2].to_vec())
        };
        let mock = Mock::start(vec![vec![half(), Step::Cut]]).await;
        let events = server(kind, &mock, "").await.stream(&ask()).await.whole().await;
        assert_eq!((end(&events).0, &end(&events).1["code"]), ("error", &json!("upstream_closed")));
        assert_eq!(mock.calls().begun, 1);
        // An error in the stream.
        let events = answer(kind, plays(kind, "error")).await;
        assert_eq!((end(&events).0, &end(&events).1["code"]), ("error", &json!("upstream_error")));
        assert_eq!(text(&events, "final_delta"), "Once upon");
        // What is no reply at all.
        let page = whole(200, "text/html", "<!doctype html><html><body>It works!</body></html>");
        assert_eq!(end(&answer(kind, page).await).1["code"], "upstream_malformed");
    }
}

#[tokio::test]
async fn cancelling_closes_the_connection_to_a_service_of_any_kind() {
    for kind in OTHERS {
        let bytes = recorded(kind, "length");
        let some = bytes.len() - recorded(kind, "length").len() / 3;
        let mock = Mock::start(vec![vec![Step::Send(bytes[..some].to_vec()), Step::Stall]]).await;
        let tambour = server(kind, &mock, "").await;
        let mut stream = tambour.stream(&ask()).await;
        let mut events = stream.until("final_delta").await;
        tambour.call("post", &format!("/api/v1/messages/{}/cancel", message(&events)), None).await;
        events.extend(stream.rest().await);
        assert_eq!(end(&events).1["finish_reason"], "cancelled");
        mock.until(|calls| calls.deserted == 1).await;
    }
}

#[tokio::test]
async fn every_silence_of_every_kind_ends() {
    for kind in OTHERS {
        let bytes = recorded(kind, "length");
        let mock = Mock::start(vec![vec![Step::Send(bytes[..bytes.len() / 2].to_vec()), Step::Stall]]).await;
        let url = format!("{}=http://{}", kind.name(), mock.address);
        let tambour = Tambour::start(&mock, |config| {
            config.timeouts.silence_ms = 100;
            config.add_upstream(&url, Some("m".to_owned())).unwrap();
        })
        .await;
        let events = tambour.stream(&ask()).await.whole().await;
        assert_eq!((end(&events).0, &end(&events).1["code"]), ("error", &json!("upstream_timeout"))); // J-035
        mock.until(|calls| calls.deserted == 1).await;
    }
}

/// What a service is asked for this message.
async fn asked(kind: Kind, path: &str, ask: &Value) -> Asked {
    let mock = Mock::start(vec![plays(kind, "text")]).await;
    let tambour = server(kind, &mock, path).await;
    let mut ask = ask.clone();
    (ask["wait"], ask["dialect"]) = (true.into(), "plain".into());
    let answer = tambour.post("/api/v1/messages", &ask).await;
    assert_eq!(answer.json["status"], "completed", "{}", answer.text);
    mock.asked()[0].clone()
}

#[tokio::test]
async fn bases_have_the_version_or_not() {
    let anthropic = "post /v1/messages http/1.1";
    let gemini = "post /v1beta/models/gemini-2.5-of-tests:streamgeneratecontent?alt=sse http/1.1";
    let ollama = "post /api/chat http/1.1";
    for (kind, path, line) in [
        (Kind::Anthropic, "", anthropic),
        (Kind::Anthropic, "/", anthropic),
        (Kind::Anthropic, "/v1", anthropic),
        (Kind::Anthropic, "/proxy/v1/", "post /proxy/v1/messages http/1.1"),
        (Kind::Anthropic, "/proxy", "post /proxy/v1/messages http/1.1"),
        (Kind::Gemini, "", gemini),
        (Kind::Gemini, "/v1beta", gemini),
        (Kind::Gemini, "/v1beta/", gemini),
        (Kind::Gemini, "/v1", "post /v1/models/gemini-2.5-of-tests:streamgeneratecontent?alt=sse http/1.1"),
        (
            Kind::Gemini,
            "/vertex",
            "post /vertex/v1beta/models/gemini-2.5-of-tests:streamgeneratecontent?alt=sse http/1.1",
        ),
        (Kind::Ollama, "", ollama),
        (Kind::Ollama, "/api", ollama),
        (Kind::Ollama, "/behind/api/", "post /behind/api/chat http/1.1"),
    ] {
        let asked = asked(kind, path, &json!({"text": "x"})).await;
        assert_eq!(asked.head.lines().next(), Some(line), "{path}");
        let key = match kind {
            Kind::Anthropic => ("x-api-key", "sk-of-a-test"),
            Kind::Gemini => ("x-goog-api-key", "sk-of-a-test"),
            _ => ("authorization", "bearer sk-of-a-test"),
        };
        assert_eq!(asked.header(key.0), Some(key.1));
        if kind == Kind::Anthropic {
            assert_eq!(asked.header("anthropic-version"), Some("2023-06-01"));
        }
    }
    // The name of a model is one segment of the address, and nothing else.
    for (model, line) in [
        ("models/gemini-x", "post /v1beta/models/gemini-x:streamgeneratecontent?alt=sse http/1.1"),
        ("tunedModels/mine", "post /v1beta/tunedmodels/mine:streamgeneratecontent?alt=sse http/1.1"),
        (
            "../../x?key=1#",
            "post /v1beta/models/..%2f..%2fx%3fkey=1%23:streamgeneratecontent?alt=sse http/1.1",
        ),
    ] {
        let asked = asked(Kind::Gemini, "", &json!({"text": "x", "model": model})).await;
        assert_eq!(asked.head.lines().next(), Some(line));
    }
}

#[tokio::test]
async fn a_service_that_wants_a_model_is_not_asked_without_one() {
    for kind in OTHERS {
        let mock = Mock::start(vec![plays(kind, "text")]).await;
        let url = format!("{}=http://{}", kind.name(), mock.address);
        let tambour = Tambour::start(&mock, |config| config.add_upstream(&url, None).unwrap()).await;
        let events = tambour.stream(&ask()).await.whole().await;
        assert_eq!((end(&events).0, &end(&events).1["code"]), ("error", &json!("upstream_refused")));
        assert!(end(&events).1["message"].as_str().unwrap().contains("model"));
        assert_eq!(mock.calls().begun, 0);
    }
}

/// A prompt with all that a prompt may have.
fn talk() -> Value {
    json!([
        {"role": "system", "content": "Be brief."},
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": "Look.", "name": "Ann"},
        {"role": "user", "content": [
            {"type": "text", "text": "What is it?"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        ]},
        {"role": "developer", "content": "Be kind."},
        {"role": "assistant", "content": "", "reasoning_content": "I look it up.", "tool_calls": [
            {"id": "a:1", "type": "function", "function": {"name": "look", "arguments": "{\"at\": 1}"}},
            {"id": "b", "type": "function", "function": {"name": "look", "arguments": ""}},
            {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{\"at\""}},
        ]},
        {"role": "tool", "content": "a cat", "tool_call_id": "a:1"},
        {"role": "tool", "content": "[1]", "tool_call_id": "b"},
        {"role": "tool", "content": "{\"error\": 1}", "tool_call_id": "c"},
        {"role": "user", "content": "So?"},
        {"role": "assistant", "content": "It is \n"},
    ])
}

fn sampled(messages: &Value) -> Value {
    json!({
        "messages": messages, "temperature": 0.5, "max_tokens": 77, "top_p": 0.9, "stop": "END", "seed": 3,
        "upstream_fields": {"frequency_penalty": 0.25, "presence_penalty": 0.5, "top_k": 40, "logprobs": true, "user": "u1"},
    })
}

#[tokio::test]
async fn anthropic_is_asked_in_its_form() {
    let body = asked(Kind::Anthropic, "", &sampled(&talk())).await.body;
    assert_eq!(
        body,
        json!({
            "model": "gemini-2.5-of-tests", "max_tokens": 77, "system": "Be brief.\n\nBe kind.", "stream": true,
            "temperature": 0.5, "top_p": 0.9, "stop_sequences": ["END"], "top_k": 40,
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "."}]},
                {"role": "assistant", "content": [{"type": "text", "text": "Hello."}]},
                {"role": "user", "content": [
                    {"type": "text", "text": "Ann: Look."},
                    {"type": "text", "text": "What is it?"},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
                ]},
                {"role": "assistant", "content": [
                    {"type": "tool_use", "id": "a_1", "name": "look", "input": {"at": 1}},
                    {"type": "tool_use", "id": "b", "name": "look", "input": {}},
                    {"type": "tool_use", "id": "c", "name": "look", "input": {"arguments": "{\"at\""}},
                ]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "a_1", "content": "a cat"},
                    {"type": "tool_result", "tool_use_id": "b", "content": "[1]"},
                    {"type": "tool_result", "tool_use_id": "c", "content": "{\"error\": 1}"},
                    {"type": "text", "text": "So?"},
                ]},
                {"role": "assistant", "content": [{"type": "text", "text": "It is"}]},
            ],
        })
    );
    // What is not said: a number of tokens is wanted, and one in the service's own words counts.
    let body = asked(Kind::Anthropic, "", &json!({"text": "x"})).await.body;
    assert_eq!((&body["max_tokens"], body.get("system"), body.get("tools")), (&json!(8192), None, None));
    let more = json!({"max_tokens": 99, "thinking": {"type": "adaptive"}, "stream": false});
    let body = asked(Kind::Anthropic, "", &json!({"text": "x", "upstream_fields": more})).await.body;
    assert_eq!(
        (&body["max_tokens"], &body["thinking"]["type"], &body["stream"]),
        (&json!(99), &json!("adaptive"), &json!(true))
    );
    // A schema that services hold models to, and one that leaves things open.
    for (strict, wanted) in
        [(true, json!({"type": "json_schema", "schema": {"type": "object"}})), (false, Value::Null)]
    {
        let format = json!({"type": "json_schema", "json_schema": {"name": "x", "strict": strict, "schema": {"type": "object"}}});
        let body = asked(Kind::Anthropic, "", &json!({"text": "x", "response_format": format})).await.body;
        assert_eq!(body["output_config"]["format"], wanted);
    }
    // Who says only what goes before everything is heard all the same.
    let said = json!([{"role": "system", "content": "Begin."}]);
    let body = asked(Kind::Anthropic, "", &json!({"messages": said})).await.body;
    assert_eq!(body["messages"], json!([{"role": "user", "content": [{"type": "text", "text": "Begin."}]}]));
    assert_eq!(body.get("system"), None);
}

#[tokio::test]
async fn gemini_is_asked_in_its_form() {
    let body = asked(Kind::Gemini, "", &sampled(&talk())).await.body;
    assert_eq!(
        body,
        json!({
            "contents": [
                {"role": "user", "parts": [{"text": "."}]},
                {"role": "model", "parts": [{"text": "Hello."}]},
                {"role": "user", "parts": [
                    {"text": "Ann: Look."}, {"text": "What is it?"}, {"inlineData": {"mimeType": "image/png", "data": "AAAA"}},
                ]},
                {"role": "model", "parts": [
                    {"functionCall": {"name": "look", "args": {"at": 1}}},
                    {"functionCall": {"name": "look", "args": {}}},
                    {"functionCall": {"name": "look", "args": {"arguments": "{\"at\""}}},
                ]},
                {"role": "user", "parts": [
                    {"functionResponse": {"name": "look", "response": {"result": "a cat"}}},
                    {"functionResponse": {"name": "look", "response": {"result": [1]}}},
                    {"functionResponse": {"name": "look", "response": {"error": 1}}},
                    {"text": "So?"},
                ]},
                {"role": "model", "parts": [{"text": "It is \n"}]},
            ],
            "systemInstruction": {"parts": [{"text": "Be brief.\n\nBe kind."}]},
            "generationConfig": {
                "temperature": 0.5, "topP": 0.9, "topK": 40, "maxOutputTokens": 77, "stopSequences": ["END"], "seed": 3,
                "frequencyPenalty": 0.25, "presencePenalty": 0.5,
            },
        })
    );
    // Newer models refuse calls that nobody signed.
    let mut ask = sampled(&talk());
    ask["model"] = "gemini-3.8-flash".into();
    let body = asked(Kind::Gemini, "", &ask).await.body;
    let calls = &body["contents"][3]["parts"];
    assert_eq!(calls[0]["thoughtSignature"], "skip_thought_signature_validator");
    assert_eq!(calls[1].get("thoughtSignature"), None);
    // Fields of the service within those that are sent, which they do not change.
    let more = json!({"generationConfig": {"topP": 0.1, "thinkingConfig": {"includeThoughts": true}}, "safetySettings": []});
    let body =
        asked(Kind::Gemini, "", &json!({"text": "x", "top_p": 0.9, "upstream_fields": more})).await.body;
    assert_eq!(body["generationConfig"], json!({"topP": 0.9, "thinkingConfig": {"includeThoughts": true}}));
    assert_eq!(body["safetySettings"], json!([]));
    // Schemas in the form of the service where they fit it, else as they are.
    let plain =
        json!({"type": "object", "properties": {"a": {"type": "string", "enum": ["x"]}}, "required": ["a"]});
    let mut full = plain.clone();
    full["additionalProperties"] = false.into();
    for (schema, name) in [(plain, "responseSchema"), (full, "responseJsonSchema")] {
        let format = json!({"type": "json_schema", "json_schema": {"name": "x", "schema": schema}});
        let body = asked(Kind::Gemini, "", &json!({"text": "x", "response_format": format})).await.body;
        assert_eq!(body["generationConfig"], json!({"responseMimeType": "application/json", name: schema}));
    }
}

#[tokio::test]
async fn ollama_is_asked_in_its_form() {
    let body = asked(Kind::Ollama, "", &sampled(&talk())).await.body;
    assert_eq!(
        body,
        json!({
            "model": "gemini-2.5-of-tests", "stream": true,
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "assistant", "content": "Hello."},
                {"role": "user", "content": "Ann: Look."},
                {"role": "user", "content": "What is it?", "images": ["AAAA"]},
                {"role": "system", "content": "Be kind."},
                {"role": "assistant", "content": "", "thinking": "I look it up.", "tool_calls": [
                    {"function": {"name": "look", "arguments": {"at": 1}}},
                    {"function": {"name": "look", "arguments": {}}},
                    {"function": {"name": "look", "arguments": {"arguments": "{\"at\""}}},
                ]},
                {"role": "tool", "content": "a cat", "tool_name": "look"},
                {"role": "tool", "content": "[1]", "tool_name": "look"},
                {"role": "tool", "content": "{\"error\": 1}", "tool_name": "look"},
                {"role": "user", "content": "So?"},
                {"role": "assistant", "content": "It is \n"},
            ],
            "options": {
                "temperature": 0.5, "top_p": 0.9, "top_k": 40, "num_predict": 77, "stop": ["END"], "seed": 3,
                "frequency_penalty": 0.25, "presence_penalty": 0.5,
            },
        })
    );
    let schema = json!({"type": "object"});
    for (format, wanted) in [
        (json!({"type": "json_object"}), json!("json")),
        (json!({"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}), schema),
    ] {
        let ask = json!({"text": "x", "response_format": format, "upstream_fields": {"think": true, "options": {"num_ctx": 9}}});
        let body = asked(Kind::Ollama, "", &ask).await.body;
        assert_eq!(
            (&body["format"], &body["think"], &body["options"]),
            (&wanted, &json!(true), &json!({"num_ctx": 9}))
        );
    }
}

#[tokio::test]
async fn what_a_client_makes_the_model_call_is_said_in_each_form() {
    let request = |choice: Value| {
        json!({
            "model": "m", "messages": [{"role": "user", "content": "x"}], "tool_choice": choice, "parallel_tool_calls": false,
            "tools": [{"type": "function", "function": {"name": "look", "description": "Looks.", "parameters":
                {"type": "object", "properties": {"at": {"type": "integer"}}}}}],
        })
    };
    let one = json!({"type": "function", "function": {"name": "look"}});
    for (kind, choice, at, wanted) in [
        (
            Kind::Anthropic,
            json!("auto"),
            "/tool_choice",
            json!({"type": "auto", "disable_parallel_tool_use": true}),
        ),
        (
            Kind::Anthropic,
            json!("required"),
            "/tool_choice",
            json!({"type": "any", "disable_parallel_tool_use": true}),
        ),
        (
            Kind::Anthropic,
            one.clone(),
            "/tool_choice",
            json!({"type": "tool", "name": "look", "disable_parallel_tool_use": true}),
        ),
        (Kind::Gemini, json!("required"), "/toolConfig", json!({"functionCallingConfig": {"mode": "ANY"}})),
        (
            Kind::Gemini,
            one,
            "/toolConfig",
            json!({"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["look"]}}),
        ),
        (
            Kind::Gemini,
            json!("auto"),
            "/tools",
            json!([{"functionDeclarations": [{"name": "look", "description": "Looks.", "parameters":
                {"type": "object", "properties": {"at": {"type": "integer"}}}}]}]),
        ),
    ] {
        let mock = Mock::start(vec![plays(kind, "text")]).await;
        let tambour = server(kind, &mock, "").await;
        let mut request = request(choice);
        request["model"] = kind.name().into();
        let answer = tambour.post("/v1/chat/completions", &request).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        assert_eq!(answer.json["usage"]["completion_tokens"], 9);
        let body = &mock.asked()[0].body;
        assert_eq!(body.pointer(at), Some(&wanted), "{body}");
        assert_eq!(body.get("parallel_tool_calls"), None);
    }
}

#[tokio::test]
async fn what_a_kind_cannot_be_sent_is_told() {
    let part = json!({"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}});
    let far = json!({"type": "image_url", "image_url": {"url": "https://example.org/a.png"}});
    for (kind, part, said) in [
        (Kind::Gemini, &part, "input_audio"),
        (Kind::Ollama, &part, "input_audio"),
        (Kind::Ollama, &far, "data:"),
    ] {
        let mock = Mock::start(vec![plays(kind, "text")]).await;
        let tambour = server(kind, &mock, "").await;
        let mut ask = ask();
        ask.as_object_mut().unwrap().remove("text");
        ask["messages"] = json!([{"role": "user", "content": [part]}]);
        let events = tambour.stream(&ask).await.whole().await;
        assert_eq!(end(&events).1["code"], "upstream_refused");
        assert!(end(&events).1["message"].as_str().unwrap().contains(said), "{:?}", end(&events));
        assert_eq!(mock.calls().begun, 0);
    }
    let said = json!({"messages": [{"role": "user", "content": [far, {"type": "document", "source": {}}]}]});
    let body = asked(Kind::Anthropic, "", &said).await.body;
    assert_eq!(
        body["messages"][0]["content"],
        json!([
            {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
            {"type": "document", "source": {}},
        ])
    );
}

#[tokio::test]
async fn secrets_in_the_words_of_every_kind_reach_nobody() {
    let secret = "AIzaSyA1bC2dE3fG4hI5jK6lM7nO8pQ9rS0tU1v";
    for (kind, bytes) in [
        (
            Kind::Anthropic,
            format!(
                "data: {{\"type\":\"error\",\"error\":{{\"type\":\"x\",\"message\":\"key {secret} is bad\"}}}}\n\n"
            ),
        ),
        (
            Kind::Gemini,
            format!("data: {{\"error\":{{\"code\":500,\"message\":\"key {secret} is bad\"}}}}\r\n\r\n"),
        ),
        (Kind::Ollama, format!("{{\"error\":\"key {secret} is bad\"}}\n")),
    ] {
        let events = answer(kind, vec![Step::Send(bytes.into_bytes()), Step::End]).await;
        assert_eq!(end(&events).1["message"], "the upstream failed: key [access_key] is bad");
    }
}

#[tokio::test]
async fn a_kind_is_configured_by_its_name() {
    use tambour_server::{Config, Server};
    for kind in Kind::ALL {
        let name = kind.name();
        let folder = Folder::new();
        for (text, said) in [
            (format!("[upstreams.a]\nkind = \"{name}\"\n"), "FILE:1:12: `upstreams.a.url` is missing"),
            (
                format!("[upstreams.a]\nkind = \"{name}\"\nurl = \"x\"\n"),
                "FILE:3:1: `upstreams.a.url` begins with",
            ),
            (
                format!(
                    "[upstreams.a]\nkind = \"{name}\"\nurl = \"http://x\"\nkey_env = \"NO_SUCH_KEY_OF_TESTS\"\n"
                ),
                "FILE:4:1: `upstreams.a.key_env` names",
            ),
        ] {
            let path = folder.file("tambour.toml", &text);
            let mut config = Config::load(Some(&path), std::iter::empty()).unwrap();
            config.listen = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
            config.data = folder.0.join("data");
            let error = Server::start(config).await.err().expect("it is refused").to_string();
            let error = error.replace(&path.display().to_string(), "FILE");
            assert!(error.starts_with(said), "{error}");
        }
        let given = [("TAMBOUR_UPSTREAM".to_owned(), format!("{name}=http://127.0.0.1:1"))];
        let config = Config::load(Some(&folder.file("empty.toml", "")), given.into_iter()).unwrap();
        assert_eq!(config.upstreams[name].kind, name);
    }
}
