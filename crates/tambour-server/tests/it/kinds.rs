//! Services of every kind over HTTP: requests to them, their answers, and their failures.

use serde_json::{Value, json};
use tambour_server::upstream::ServiceKind;

use crate::client::{Event, event_names, joined_text, stream_message_id};
use crate::mock::{MockServer, Step, response_script};
use crate::server::{Folder, TestServer};
use crate::tool_kit::{ToolKit, allow_local_webhooks, webhook_answer};

/// All kinds but the one that is the reference for the others.
pub(crate) const OTHER_KINDS: [ServiceKind; 3] =
    [ServiceKind::Anthropic, ServiceKind::Gemini, ServiceKind::Ollama];

pub(crate) fn request_body() -> Value {
    json!({"text": "x", "dialect": "plain", "output_protocol": "jsonseq_v1"})
}

/// A recorded answer of a kind.
fn recorded_bytes(kind: ServiceKind, case: &str) -> Vec<u8> {
    let extension = if kind == ServiceKind::Ollama { "ndjson" } else { "sse" };
    let path = tambour_fixtures::fixtures_folder()
        .join("upstream")
        .join(kind.name())
        .join(format!("{case}.{extension}"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A script that plays a recorded answer in pieces.
pub(crate) fn recorded_script(kind: ServiceKind, case: &str) -> Vec<Step> {
    let bytes = recorded_bytes(kind, case);
    bytes.chunks(97).map(|piece| Step::Send(piece.to_vec())).chain([Step::End]).collect()
}

/// A server whose upstream is a service of that kind below `path`, with a model and a key.
pub(crate) async fn server_of_kind(kind: ServiceKind, mock: &MockServer, path: &str) -> TestServer {
    let url = format!("{}=http://{}{path}", kind.name(), mock.address);
    TestServer::start(mock, |config| {
        allow_local_webhooks(config);
        config.add_upstream(&url, Some("gemini-2.5-of-tests".to_owned())).unwrap();
        let key = config.data.with_file_name("key");
        std::fs::write(&key, "sk-of-a-test\n").unwrap();
        let upstream = config.upstreams.get_mut(kind.name()).unwrap();
        (upstream.key_env, upstream.key_file) = (None, Some(key));
    })
    .await
}

async fn answer_events(kind: ServiceKind, script: Vec<Step>) -> Vec<Event> {
    let mock = MockServer::start(vec![script]).await;
    server_of_kind(kind, &mock, "").await.open_stream(&request_body()).await.read_checked().await
}

pub(crate) fn end_event(events: &[Event]) -> (&str, &Value) {
    let end = events.last().unwrap();
    (&end.name, &end.data)
}

#[tokio::test]
async fn replies_of_all_kinds_are_the_same_events() {
    // Everything a client sees but ids, times and details of the tokens.
    let comparable = |events: &[Event]| {
        let texts = ["phase_delta", "final_delta"].map(|name| joined_text(events, name));
        let names: Vec<String> = event_names(events).into_iter().map(str::to_owned).collect();
        let end = end_event(events).1;
        let usage =
            ["prompt_tokens", "completion_tokens", "total_tokens"].map(|name| end["usage"][name].clone());
        (names, texts, usage, end["finish_reason"].clone(), end["metadata"]["truncated"].clone())
    };
    for case in ["text", "reasoning", "length", "cut"] {
        let expected = answer_events(ServiceKind::OpenAi, recorded_script(ServiceKind::OpenAi, case)).await;
        for kind in OTHER_KINDS {
            let events = answer_events(kind, recorded_script(kind, case)).await;
            let (mut comparable, mut expected) = (comparable(&events), comparable(&expected));
            if case == "cut" {
                // Some services count tokens as they stream.
                (comparable.2, expected.2) = Default::default();
            }
            assert_eq!(comparable, expected, "{case} of {}", kind.name());
        }
    }
}

#[tokio::test]
async fn what_a_service_refuses_is_filtered() {
    for (kind, case, expected_text) in [
        (ServiceKind::Anthropic, "refusal", "I will"),
        (ServiceKind::Gemini, "safety", "I will"),
        (ServiceKind::Gemini, "blocked", ""),
    ] {
        let events = answer_events(kind, recorded_script(kind, case)).await;
        assert_eq!(
            (end_event(&events).0, &end_event(&events).1["finish_reason"]),
            ("completed", &json!("content_filter"))
        );
        assert!(joined_text(&events, "final_delta").contains(expected_text), "{case}");
    }
}

#[tokio::test]
async fn calls_run_and_the_service_is_told_in_its_own_form() {
    for (kind, case) in [
        (ServiceKind::Anthropic, "calls"),
        (ServiceKind::Anthropic, "signed_calls"),
        (ServiceKind::Gemini, "calls"),
        (ServiceKind::Gemini, "named_calls"),
        (ServiceKind::Ollama, "calls"),
    ] {
        let mock = MockServer::start(vec![recorded_script(kind, case), recorded_script(kind, "text")]).await;
        let tambour = server_of_kind(kind, &mock, "").await;
        let kit = ToolKit {
            model: mock,
            webhook: MockServer::start(vec![webhook_answer(&json!({"score": 7}))]).await,
            server: tambour,
        };
        for name in ["weather", "count", "time"] {
            kit.register(
                name,
                &json!({"schema": {"type": "object", "properties": {"city": {"type": "string"}}}}),
            )
            .await;
        }
        let mut request = request_body();
        request["tools"] = json!(["weather", "count", "time"]);
        request["extensions"] = true.into();
        let events = kit.server.open_stream(&request).await.read_checked().await;
        let calls: Vec<&str> = events
            .iter()
            .filter(|event| event.name == "tool_call")
            .map(|event| event.data["name"].as_str().unwrap())
            .collect();
        let expected = match case {
            "calls" => ["weather", "count"],
            "signed_calls" => ["weather", "time"],
            _ => ["time", "weather"],
        };
        assert_eq!(calls, expected, "{case} of {}", kind.name());
        assert!(joined_text(&events, "final_delta").ends_with("二加二等于四。"));
        let requests = kit.model.requests();
        let body = &requests[1].body;
        let result = json!({"ok": true, "result": {"score": 7}});
        let result_text = result.to_string();
        match (kind, case) {
            (ServiceKind::Anthropic, "calls") => {
                let [.., call_message, result_message] = body["messages"].as_array().unwrap().as_slice()
                else {
                    panic!("{body}")
                };
                assert_eq!(call_message["role"], "assistant");
                assert_eq!(
                    call_message["content"],
                    json!([
                        {"type": "text", "text": "I look it up."},
                        {"type": "tool_use", "id": "toolu_01A", "name": "weather", "input": {"city": "Zürich", "days": 2}},
                        {"type": "tool_use", "id": "toolu_01B", "name": "count", "input": {"of": ["a", {"b": null}]}},
                    ])
                );
                assert_eq!(
                    result_message,
                    &json!({"role": "user", "content": [
                        {"type": "tool_result", "tool_use_id": "toolu_01A", "content": result_text},
                        {"type": "tool_result", "tool_use_id": "toolu_01B", "content": result_text},
                    ]})
                );
                let tool = &body["tools"][0];
                assert_eq!(
                    (&tool["name"], &tool["input_schema"]["type"]),
                    (&json!("weather"), &json!("object"))
                );
            }
            (ServiceKind::Anthropic, _) => {
                // Signed reasoning is sent back verbatim, before everything else.
                let [.., call_message, _] = body["messages"].as_array().unwrap().as_slice() else {
                    panic!("{body}")
                };
                assert_eq!(
                    call_message["content"].as_array().unwrap()[..3],
                    [
                        json!({"type": "thinking", "thinking": "I need the weather.", "signature": "EqQBCgIYAhIM=="}),
                        json!({"type": "redacted_thinking", "data": "EmwKAhgBEgy3va3pzix"}),
                        json!({"type": "text", "text": "Looking."}),
                    ]
                );
            }
            (ServiceKind::Gemini, "calls") => {
                let [.., call_message, result_message] = body["contents"].as_array().unwrap().as_slice()
                else {
                    panic!("{body}")
                };
                assert_eq!(
                    call_message,
                    &json!({"role": "model", "parts": [
                        {"text": "I look it up."},
                        {"functionCall": {"name": "weather", "args": {"city": "Zürich", "days": 2}}, "thoughtSignature": "CiQBcsjafA=="},
                        {"functionCall": {"name": "count", "args": {"of": ["a", {"b": null}]}}},
                    ]})
                );
                assert_eq!(
                    result_message,
                    &json!({"role": "user", "parts": [
                        {"functionResponse": {"name": "weather", "response": result}},
                        {"functionResponse": {"name": "count", "response": result}},
                    ]})
                );
                assert_eq!(body["tools"][0]["functionDeclarations"][1]["name"], "count");
            }
            (ServiceKind::Gemini, _) => {
                let [.., call_message, result_message] = body["contents"].as_array().unwrap().as_slice()
                else {
                    panic!("{body}")
                };
                assert_eq!(call_message["parts"][0]["functionCall"]["id"], "fc_9a");
                assert_eq!(result_message["parts"][1]["functionResponse"]["id"], "fc_9b");
            }
            _ => {
                let [.., call_message, first_result, second_result] =
                    body["messages"].as_array().unwrap().as_slice()
                else {
                    panic!("{body}")
                };
                assert_eq!(
                    call_message["tool_calls"][0],
                    json!({"function": {"name": "weather", "arguments": {"city": "Zürich", "days": 2}}})
                );
                assert_eq!(
                    first_result,
                    &json!({"role": "tool", "content": result_text, "tool_name": "weather"})
                );
                assert_eq!(second_result["tool_name"], "count");
                assert_eq!(body["tools"][0]["function"]["name"], "weather");
            }
        }
        // Opaque fields of the service are not shown to others.
        let record = kit.server.wait_ended(&stream_message_id(&events)).await.to_string();
        assert!(!record.contains("EqQBCg") && !record.contains("CiQB"), "{record}");
    }
}

#[tokio::test]
async fn a_call_that_was_cut_does_not_run() {
    let mock = MockServer::start(vec![recorded_script(ServiceKind::Anthropic, "cut_call")]).await;
    let tambour = server_of_kind(ServiceKind::Anthropic, &mock, "").await;
    let kit = ToolKit {
        model: mock,
        webhook: MockServer::start(vec![webhook_answer(&json!(1))]).await,
        server: tambour,
    };
    kit.register("weather", &json!({})).await;
    let mut request = request_body();
    (request["tools"], request["extensions"]) = (json!(["weather"]), true.into());
    let events = kit.server.open_stream(&request).await.read_checked().await;
    assert_eq!(kit.webhook.calls().started, 0);
    assert!(!event_names(&events).contains(&"tool_call"), "{events:?}");
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
    for kind in OTHER_KINDS {
        // A service that is busy, overloaded or broken is called again.
        let scripts = vec![
            refusal(429, ("retry-after-ms", "1")),
            refusal(529, ("retry-after", "0")),
            recorded_script(kind, "text"),
        ];
        let mock = MockServer::start(scripts).await;
        let events =
            server_of_kind(kind, &mock, "").await.open_stream(&request_body()).await.read_checked().await;
        assert_eq!((end_event(&events).0, mock.calls().started), ("completed", 3), "{}", kind.name());
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
            let mock = MockServer::start(vec![refusal(status, ("retry-after", after))]).await;
            let tambour = server_of_kind(kind, &mock, "").await;
            let events = tambour.open_stream(&request_body()).await.read_checked().await;
            assert_eq!(event_names(&events), ["error"], "{status}"); // J-035
            let end_data = end_event(&events).1;
            assert_eq!(
                (&end_data["code"], &end_data["retryable"]),
                (&json!(code), &json!(retryable)),
                "{status}"
            );
            assert_eq!(end_data["message"], format!("the upstream answered {status}: no [access_key] today"));
            assert_eq!(mock.calls().started, calls, "{status}");
            let metrics = tambour.get("/metrics").await.text;
            let labels = format!("upstream=\"{}\",code=\"{code}\"", kind.name());
            assert!(metrics.contains(&labels), "{labels}: {metrics}");
        }
        // Retries end once the client has received text.
        let half = || {
            let bytes = recorded_bytes(kind, "text");
            Step::Send(bytes[..bytes.len() / 2].to_vec())
        };
        let mock = MockServer::start(vec![vec![half(), Step::Cut]]).await;
        let events =
            server_of_kind(kind, &mock, "").await.open_stream(&request_body()).await.read_checked().await;
        assert_eq!(
            (end_event(&events).0, &end_event(&events).1["code"]),
            ("error", &json!("upstream_closed"))
        );
        assert_eq!(mock.calls().started, 1);
        // An error in the stream.
        let events = answer_events(kind, recorded_script(kind, "error")).await;
        assert_eq!(
            (end_event(&events).0, &end_event(&events).1["code"]),
            ("error", &json!("upstream_error"))
        );
        assert_eq!(joined_text(&events, "final_delta"), "Once upon");
        // Texts that are no reply at all.
        let page = response_script(200, "text/html", "<!doctype html><html><body>It works!</body></html>");
        assert_eq!(end_event(&answer_events(kind, page).await).1["code"], "upstream_malformed");
    }
}

#[tokio::test]
async fn cancelling_closes_the_connection_to_a_service_of_any_kind() {
    for kind in OTHER_KINDS {
        let bytes = recorded_bytes(kind, "length");
        let prefix_length = bytes.len() - recorded_bytes(kind, "length").len() / 3;
        let mock =
            MockServer::start(vec![vec![Step::Send(bytes[..prefix_length].to_vec()), Step::WaitDisconnect]])
                .await;
        let tambour = server_of_kind(kind, &mock, "").await;
        let mut stream = tambour.open_stream(&request_body()).await;
        let mut events = stream.read_until("final_delta").await;
        tambour.call("post", &format!("/api/v1/messages/{}/cancel", stream_message_id(&events)), None).await;
        events.extend(stream.read_rest().await);
        assert_eq!(end_event(&events).1["finish_reason"], "cancelled");
        mock.wait_until(|calls| calls.abandoned == 1).await;
    }
}

#[tokio::test]
async fn every_silence_of_every_kind_ends() {
    for kind in OTHER_KINDS {
        let bytes = recorded_bytes(kind, "length");
        let mock = MockServer::start(vec![vec![
            Step::Send(bytes[..bytes.len() / 2].to_vec()),
            Step::WaitDisconnect,
        ]])
        .await;
        let url = format!("{}=http://{}", kind.name(), mock.address);
        let tambour = TestServer::start(&mock, |config| {
            config.timeouts.silence_ms = 100;
            config.add_upstream(&url, Some("m".to_owned())).unwrap();
        })
        .await;
        let events = tambour.open_stream(&request_body()).await.read_checked().await;
        assert_eq!(
            (end_event(&events).0, &end_event(&events).1["code"]),
            ("error", &json!("upstream_timeout"))
        ); // J-035
        mock.wait_until(|calls| calls.abandoned == 1).await;
    }
}

#[tokio::test]
async fn secrets_in_the_words_of_every_kind_reach_nobody() {
    let secret = "AIzaSyA1bC2dE3fG4hI5jK6lM7nO8pQ9rS0tU1v";
    for (kind, bytes) in [
        (
            ServiceKind::Anthropic,
            format!(
                "data: {{\"type\":\"error\",\"error\":{{\"type\":\"x\",\"message\":\"key {secret} is bad\"}}}}\n\n"
            ),
        ),
        (
            ServiceKind::Gemini,
            format!("data: {{\"error\":{{\"code\":500,\"message\":\"key {secret} is bad\"}}}}\r\n\r\n"),
        ),
        (ServiceKind::Ollama, format!("{{\"error\":\"key {secret} is bad\"}}\n")),
    ] {
        let events = answer_events(kind, vec![Step::Send(bytes.into_bytes()), Step::End]).await;
        assert_eq!(end_event(&events).1["message"], "the upstream failed: key [access_key] is bad");
    }
}

#[tokio::test]
async fn a_kind_is_configured_by_its_name() {
    use tambour_server::{Config, Server};
    for kind in ServiceKind::ALL {
        let name = kind.name();
        let folder = Folder::new();
        for (text, expected_text) in [
            (format!("[upstreams.a]\nkind = \"{name}\"\n"), "FILE:1:12: `upstreams.a.url` is missing"),
            (
                format!("[upstreams.a]\nkind = \"{name}\"\nurl = \"x\"\n"),
                "FILE:3:1: `upstreams.a.url` must begin with",
            ),
            (
                format!(
                    "[upstreams.a]\nkind = \"{name}\"\nurl = \"http://x\"\nkey_env = \"NO_SUCH_KEY_OF_TESTS\"\n"
                ),
                "FILE:4:1: `upstreams.a.key_env` names",
            ),
        ] {
            let path = folder.write_file("tambour.toml", &text);
            let mut config = Config::load(Some(&path), std::iter::empty()).unwrap();
            config.listen = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
            config.data = folder.0.join("data");
            let error = Server::start(config).await.err().expect("it is refused").to_string();
            let error = error.replace(&path.display().to_string(), "FILE");
            assert!(error.starts_with(expected_text), "{error}");
        }
        let environment = [("TAMBOUR_UPSTREAM".to_owned(), format!("{name}=http://127.0.0.1:1"))];
        let config =
            Config::load(Some(&folder.write_file("empty.toml", "")), environment.into_iter()).unwrap();
        assert_eq!(config.upstreams[name].kind, name);
    }
}
