//! Services of every kind over HTTP: requests to them, their answers, and their failures.

use serde_json::{Value, json};
use tambour_server::upstream::ServiceKind;

use crate::client::{Event, message, names, text};
use crate::mock::{Mock, Step, whole};
use crate::server::{Folder, Tambour};
use crate::tool_kit::{Kit, gives, local};

/// All kinds but the one that is the reference for the others.
pub(crate) const OTHERS: [ServiceKind; 3] =
    [ServiceKind::Anthropic, ServiceKind::Gemini, ServiceKind::Ollama];

pub(crate) fn ask() -> Value {
    json!({"text": "x", "dialect": "plain", "output_protocol": "jsonseq_v1"})
}

/// A recorded answer of a kind.
fn recorded(kind: ServiceKind, case: &str) -> Vec<u8> {
    let extension = if kind == ServiceKind::Ollama { "ndjson" } else { "sse" };
    let path = tambour_fixtures::fixtures_folder()
        .join("upstream")
        .join(kind.name())
        .join(format!("{case}.{extension}"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A script that plays a recorded answer in pieces.
pub(crate) fn plays(kind: ServiceKind, case: &str) -> Vec<Step> {
    let bytes = recorded(kind, case);
    bytes.chunks(97).map(|piece| Step::Send(piece.to_vec())).chain([Step::End]).collect()
}

/// A server whose upstream is a service of that kind below `path`, with a model and a key.
pub(crate) async fn server(kind: ServiceKind, mock: &Mock, path: &str) -> Tambour {
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

async fn answer(kind: ServiceKind, script: Vec<Step>) -> Vec<Event> {
    let mock = Mock::start(vec![script]).await;
    server(kind, &mock, "").await.stream(&ask()).await.whole().await
}

pub(crate) fn end(events: &[Event]) -> (&str, &Value) {
    let end = events.last().unwrap();
    (&end.name, &end.data)
}

#[tokio::test]
async fn replies_of_all_kinds_are_the_same_events() {
    // Everything a client sees but ids, times and details of the tokens.
    let seen = |events: &[Event]| {
        let said = ["phase_delta", "final_delta"].map(|name| text(events, name));
        let names: Vec<String> = names(events).into_iter().map(str::to_owned).collect();
        let end = end(events).1;
        let usage =
            ["prompt_tokens", "completion_tokens", "total_tokens"].map(|name| end["usage"][name].clone());
        (names, said, usage, end["finish_reason"].clone(), end["metadata"]["truncated"].clone())
    };
    for case in ["text", "reasoning", "length", "cut"] {
        let wanted = answer(ServiceKind::OpenAi, plays(ServiceKind::OpenAi, case)).await;
        for kind in OTHERS {
            let events = answer(kind, plays(kind, case)).await;
            let (mut seen, mut wanted) = (seen(&events), seen(&wanted));
            if case == "cut" {
                // Some services count tokens as they stream.
                (seen.2, wanted.2) = Default::default();
            }
            assert_eq!(seen, wanted, "{case} of {}", kind.name());
        }
    }
}

#[tokio::test]
async fn what_a_service_refuses_is_filtered() {
    for (kind, case, said) in [
        (ServiceKind::Anthropic, "refusal", "I will"),
        (ServiceKind::Gemini, "safety", "I will"),
        (ServiceKind::Gemini, "blocked", ""),
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
        (ServiceKind::Anthropic, "calls"),
        (ServiceKind::Anthropic, "signed_calls"),
        (ServiceKind::Gemini, "calls"),
        (ServiceKind::Gemini, "named_calls"),
        (ServiceKind::Ollama, "calls"),
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
            (ServiceKind::Anthropic, "calls") => {
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
            (ServiceKind::Anthropic, _) => {
                // Signed reasoning is sent back verbatim, before everything else.
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
            (ServiceKind::Gemini, "calls") => {
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
            (ServiceKind::Gemini, _) => {
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
        // Opaque fields of the service are not shown to others.
        let record = kit.server.ended(&message(&events)).await.to_string();
        assert!(!record.contains("EqQBCg") && !record.contains("CiQB"), "{record}");
    }
}

#[tokio::test]
async fn a_call_that_was_cut_does_not_run() {
    let mock = Mock::start(vec![plays(ServiceKind::Anthropic, "cut_call")]).await;
    let tambour = server(ServiceKind::Anthropic, &mock, "").await;
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
        // A service that is busy, overloaded or broken is called again.
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
        // Retries end once the client has received text.
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
        // Not a reply at all.
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
        let events = answer(kind, vec![Step::Send(bytes.into_bytes()), Step::End]).await;
        assert_eq!(end(&events).1["message"], "the upstream failed: key [access_key] is bad");
    }
}

#[tokio::test]
async fn a_kind_is_configured_by_its_name() {
    use tambour_server::{Config, Server};
    for kind in ServiceKind::ALL {
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
