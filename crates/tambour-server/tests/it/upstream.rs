//! Services that call themselves compatible, and retries.

use serde_json::{Value, json};

use crate::client::{Event, event_names, joined_text};
use crate::mock::{MockServer, Step, delta_step, finish_steps, reply_script, sse_frame};
use crate::server::TestServer;

fn request_body() -> Value {
    json!({"text": "x", "dialect": "plain", "output_protocol": "jsonseq_v1"})
}

async fn answer_events(script: Vec<Step>) -> Vec<Event> {
    let mock = MockServer::start(vec![script]).await;
    let server = TestServer::start_default(&mock).await;
    server.open_stream(&request_body()).await.read_checked().await
}

fn end_event(events: &[Event]) -> (&str, &Value) {
    let end = events.last().unwrap();
    (&end.name, &end.data)
}

fn send_step(text: &str) -> Step {
    Step::Send(text.as_bytes().to_vec())
}

#[tokio::test]
async fn reads_any_framing() {
    let body = "\u{feff}: OPENROUTER PROCESSING\r\n\r\nevent: chunk\r\nid: 7\r\ndata:{\"choices\":[{\"delta\":{\"role\":\"assistant\",\
        \"content\":\"\"}}]}\r\n\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"Grüße \"}}]}\n\ndata: {\"id\":1}\n\n\
        data: {\"choices\":[]}\n\ndata: {\"choices\":null}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"你好\"},\"finish_reason\":null}]}\n\n\
        data: PROCESSING\n\ndata: {\"type\":\"ping\",\"choices\":7}\n\ndata: {\"choices\":[{\"delta\":null,\"finish_reason\":\"stop\"}]}\n\n\
        data: {\"choices\":[],\"usage\":{\"total_tokens\":3}}\n\ndata: [DONE]\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"late\"}}]}\n\n";
    for size in [1, 3, 64, 10_000] {
        let mut script: Vec<Step> =
            body.as_bytes().chunks(size).map(|piece| Step::Send(piece.to_vec())).collect();
        script.push(Step::End);
        let events = answer_events(script).await;
        assert_eq!(joined_text(&events, "final_delta"), "Grüße 你好", "{size} bytes a piece"); // J-038
        assert_eq!(end_event(&events).0, "completed");
        assert_eq!(end_event(&events).1["usage"]["total_tokens"], 3);
        assert_eq!(end_event(&events).1["finish_reason"], "stop");
    }
}

/// Shows the rest of a stream with an unreadable frame; calls in it do not act.
#[tokio::test]
async fn a_reply_with_a_broken_frame_is_not_whole() {
    let hole = Step::Send(b"data: {\"choices\":[{\"delta\":{\"content\":\n\n".to_vec());
    for ending in [finish_steps("stop"), vec![send_step("data: [DONE]\n\n"), Step::End]] {
        let events =
            answer_events([vec![delta_step("Fo"), hole.clone(), delta_step("ur.")], ending].concat()).await;
        assert_eq!(joined_text(&events, "final_delta"), "Four.");
        let (name, end) = end_event(&events);
        assert_eq!((name, &end["metadata"]["truncated"]), ("completed", &json!(true)), "{end}");
    }
}

/// Accepts services that send the whole answer in one frame.
#[tokio::test]
async fn a_long_frame_is_a_frame() {
    let long = "x".repeat(3 << 20);
    let events = answer_events([vec![delta_step(&long)], finish_steps("stop")].concat()).await;
    assert_eq!(joined_text(&events, "final_delta").len(), long.len());
}

#[tokio::test]
async fn one_json_body_is_a_reply_too() {
    let body = json!({
        "choices": [{"message": {"role": "assistant", "content": "Four.", "reasoning": "2 and 2"}, "finish_reason": "stop"}],
        "usage": {"total_tokens": 9},
    });
    for kind in ["application/json", "text/event-stream", "text/plain"] {
        let script = vec![
            Step::Head(200, vec![("content-type", kind.to_owned())]),
            send_step(&format!("\n {:#}", body)),
            Step::End,
        ];
        let events = answer_events(script).await;
        assert_eq!(joined_text(&events, "final_delta"), "Four.", "{kind}");
        assert_eq!(joined_text(&events, "phase_delta"), "2 and 2", "{kind}");
        assert_eq!(end_event(&events).1["usage"]["total_tokens"], 9);
    }
}

#[tokio::test]
async fn a_stream_under_a_wrong_type_is_a_stream() {
    let mut script = vec![Step::Head(200, vec![("content-type", "application/json".to_owned())])];
    script.extend(reply_script("Four.", 2));
    assert_eq!(joined_text(&answer_events(script).await, "final_delta"), "Four.");
}

#[tokio::test]
async fn reasoning_has_several_names() {
    let details =
        json!([{"type": "reasoning.text", "text": "a"}, {"type": "reasoning.summary", "summary": "b"}]);
    let cases = [
        (json!({"reasoning_content": "ab"}), "ab"),
        (json!({"reasoning": "ab"}), "ab"),
        (json!({"reasoning_content": "", "reasoning": "ab"}), "ab"),
        (json!({"reasoning": "ab", "reasoning_details": details}), "ab"),
        (json!({"reasoning_details": details}), "ab"),
        (json!({"reasoning_content": ""}), ""),
        (json!({"content": "<think>ab</think>"}), "ab"),
    ];
    for (part, expected) in cases {
        let mut script =
            vec![Step::Send(sse_frame(&json!({"choices": [{"delta": part}]}))), delta_step("Four.")];
        script.extend(finish_steps("stop"));
        let events = answer_events(script).await;
        assert_eq!(joined_text(&events, "phase_delta"), expected, "{part}");
        assert_eq!(joined_text(&events, "final_delta"), "Four.");
    }
}

#[tokio::test]
async fn reasons_to_end_are_told_apart() {
    let done_script = || vec![delta_step("Four."), send_step("data: [DONE]\n\n"), Step::End];
    let events = answer_events(done_script()).await;
    assert_eq!(
        (end_event(&events).1["finish_reason"].as_str(), &end_event(&events).1["metadata"]["truncated"]),
        (Some("stop"), &json!(false))
    );
    for (reason, expected_reason, cut) in [
        ("length", "length", true),
        ("max_tokens", "length", true),
        ("content_filter", "content_filter", true),
        ("stop", "stop", false),
        ("eos", "stop", false),
        ("", "stop", false),
    ] {
        let mut script = vec![delta_step("Four.")];
        script.extend(finish_steps(reason));
        let events = answer_events(script).await;
        assert_eq!(end_event(&events).1["finish_reason"], expected_reason, "{reason}");
        assert_eq!(end_event(&events).1["metadata"]["truncated"], cut, "{reason}"); // J-056
    }
    // A clean end with neither.
    let events = answer_events(vec![delta_step("Four."), Step::End]).await;
    assert_eq!(end_event(&events).1["metadata"]["truncated"], true);
    let events = answer_events(vec![send_step(""), Step::End]).await;
    assert_eq!(end_event(&events).0, "completed");
    assert_eq!(end_event(&events).1["metadata"]["fallback_reason"], "truncated");
}

#[tokio::test]
async fn errors_in_the_stream_stay_errors() {
    let cases = [
        ("data: {\"error\": {\"message\": \"overloaded\", \"code\": 502}}\n\n", "overloaded"),
        ("data: {\"error\": \"out of memory\"}\n\n", "out of memory"),
        ("event: error\ndata: {\"message\": \"gone\"}\n\n", "gone"),
        (
            "data: {\"error\": {\"message\": \"late\"}, \"choices\": [{\"delta\": {}, \"finish_reason\": \"error\"}]}\n\n",
            "late",
        ),
    ];
    for (bytes, expected_text) in cases {
        let events = answer_events(vec![
            delta_step("Four. "),
            send_step(bytes),
            send_step("data: [DONE]\n\n"),
            Step::End,
        ])
        .await;
        assert_eq!(end_event(&events).0, "error"); // J-035
        assert_eq!(end_event(&events).1["code"], "upstream_error");
        assert!(end_event(&events).1["message"].as_str().unwrap().contains(expected_text), "{expected_text}");
        assert!(event_names(&events).ends_with(&["final_delta", "final_end", "error"]));
    }
    let script = vec![
        Step::Head(200, vec![("content-type", "application/json".to_owned())]),
        send_step("{\"error\": {\"message\": \"no credit\"}}"),
        Step::End,
    ];
    let events = answer_events(script).await;
    assert_eq!(event_names(&events), ["error"]);
    assert!(end_event(&events).1["message"].as_str().unwrap().contains("no credit"));
}

#[tokio::test]
async fn garbage_is_an_error() {
    let page = "<!doctype html><html><body>It works!</body></html>";
    for bytes in [
        page.as_bytes(),
        b"\xff\xfe\x00\x01garbage\n\ngarbage\n\n",
        b"data: {broken\n\n",
        b"{\"choices\": [{",
    ] {
        let events = answer_events(vec![Step::Send(bytes.to_vec()), Step::End]).await;
        assert_eq!(event_names(&events), ["error"]); // J-035
        assert_eq!(end_event(&events).1["code"], "upstream_malformed");
    }
}

#[tokio::test]
async fn asks_again_before_the_first_byte_only() {
    let busy = |status, header: (&'static str, &str)| {
        vec![
            Step::Head(
                status,
                vec![("content-type", "application/json".into()), (header.0, header.1.into())],
            ),
            send_step("{\"error\": {\"message\": \"busy\"}}"),
            Step::End,
        ]
    };
    let past_date = "Sun, 06 Nov 1994 08:49:37 GMT";
    let scripts = vec![
        busy(503, ("retry-after", past_date)),
        busy(429, ("retry-after-ms", "1")),
        reply_script("Four.", 2),
    ];
    let mock = MockServer::start(scripts).await;
    let server = TestServer::start_default(&mock).await;
    let events = server.open_stream(&request_body()).await.read_checked().await;
    assert_eq!(joined_text(&events, "final_delta"), "Four.");
    assert_eq!(mock.calls().started, 3);
    // A reset before any byte is worth it too; one after the first is not.
    let mock = MockServer::start(vec![
        vec![Step::Reset],
        vec![delta_step("Fo"), Step::Reset],
        reply_script("no", 1),
    ])
    .await;
    let server = TestServer::start_default(&mock).await;
    let events = server.open_stream(&request_body()).await.read_checked().await;
    assert_eq!(mock.calls().started, 2);
    assert_eq!((end_event(&events).0, &end_event(&events).1["code"]), ("error", &json!("upstream_closed"))); // J-035
    // Lasting failures are not asked again, and neither is a service that asks for a long pause.
    for (status, header, code) in [
        (400, "0", "upstream_refused"),
        (401, "0", "upstream_unauthorized"),
        (429, "3600", "upstream_rate_limited"),
    ] {
        let mock = MockServer::start(vec![busy(status, ("retry-after", header))]).await;
        let server = TestServer::start_default(&mock).await;
        let events = server.open_stream(&request_body()).await.read_checked().await;
        assert_eq!(event_names(&events), ["error"]);
        assert_eq!(end_event(&events).1["code"], code);
        assert!(end_event(&events).1["message"].as_str().unwrap().contains("busy"));
        assert_eq!(mock.calls().started, 1, "{status}");
    }
    // Retries are limited.
    let mock = MockServer::start(vec![busy(500, ("x-nothing", "0"))]).await;
    let server = TestServer::start_default(&mock).await;
    let events = server.open_stream(&request_body()).await.read_checked().await;
    assert_eq!(
        (&end_event(&events).1["code"], &end_event(&events).1["retryable"]),
        (&json!("upstream_error"), &json!(true))
    );
    assert_eq!(mock.calls().started, 3);
}

#[tokio::test]
async fn waits_as_long_as_it_is_asked_to() {
    let busy = vec![Step::Head(429, vec![("retry-after", "1".into())]), Step::End];
    let mock = MockServer::start(vec![busy, reply_script("Four.", 2)]).await;
    let server = TestServer::start_default(&mock).await;
    let start_time = std::time::Instant::now();
    server.open_stream(&request_body()).await.read_checked().await;
    assert!(start_time.elapsed() >= std::time::Duration::from_secs(1));
}

#[tokio::test]
async fn every_silence_ends() {
    let silences = [
        (vec![Step::WaitDisconnect], "sent nothing"),
        (vec![Step::Head(200, vec![]), Step::WaitDisconnect], "sent nothing"),
        (vec![delta_step("Fo"), Step::WaitDisconnect], "stopped sending"),
    ];
    for (script, expected_text) in silences {
        let mock = MockServer::start(vec![script]).await;
        let server = TestServer::start(&mock, |config| match expected_text {
            "stopped sending" => config.timeouts.silence_ms = 150,
            _ => config.timeouts.first_byte_ms = 150,
        })
        .await;
        let events = server.open_stream(&request_body()).await.read_checked().await;
        assert_eq!(
            (end_event(&events).0, &end_event(&events).1["code"]),
            ("error", &json!("upstream_timeout"))
        ); // J-035
        assert!(end_event(&events).1["message"].as_str().unwrap().contains(expected_text));
        assert_eq!(mock.calls().started, 1, "a call that may be at work is not repeated");
        mock.wait_until(|calls| calls.abandoned == 1).await;
    }
}

#[tokio::test]
async fn an_upstream_that_is_not_there_is_told() {
    let mock = MockServer::start(vec![reply_script("x", 1)]).await;
    let closed_address = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let server = TestServer::start(&mock, |config| {
        config.add_upstream(&format!("openai=http://{closed_address}/v1"), None).unwrap();
    })
    .await;
    let events = server.open_stream(&request_body()).await.read_checked().await;
    assert_eq!(event_names(&events), ["error"]);
    assert_eq!(end_event(&events).1["code"], "upstream_unreachable");
}

#[tokio::test]
async fn recordings_are_played() {
    let mock = MockServer::start(vec![reply_script("x", 1)]).await;
    let lines = [
        json!({"id": "one", "chunks": ["<final>", "1</final>"], "finish_reason": "stop", "protocol": "thinkingml"}),
        json!({"id": "two", "chunks": ["2"], "protocol": "plain", "delays_ms": [1]}),
    ];
    let folder = crate::server::Folder::new();
    let file = folder.write_file("replies.jsonl", &lines.map(|line| line.to_string()).join("\n"));
    let server = TestServer::start(&mock, |config| {
        config.add_upstream(&format!("replay={}", file.display()), None).unwrap();
        config.add_upstream("demo", None).unwrap();
    })
    .await;
    let mut request =
        json!({"text": "x", "dialect": "thinkingml", "output_protocol": "jsonseq_v1", "upstream": "replay"});
    assert_eq!(joined_text(&server.open_stream(&request).await.read_checked().await, "final_delta"), "1");
    request["model"] = "two".into();
    request["dialect"] = "plain".into();
    assert_eq!(joined_text(&server.open_stream(&request).await.read_checked().await, "final_delta"), "2");
    request["model"] = "three".into();
    assert_eq!(
        end_event(&server.open_stream(&request).await.read_checked().await).1["code"],
        "recording_not_found"
    );
    // The demonstration is the default here, and it is what real models wrote.
    for dialect in ["thinkingml", "jsonseq", "aiplan", "ai_say", "filament"] {
        let request = json!({"text": "x", "dialect": dialect, "output_protocol": "jsonseq_v1"});
        let events = server.open_stream(&request).await.read_checked().await;
        assert_eq!(end_event(&events).0, "completed", "{dialect}");
        assert_eq!(end_event(&events).1["metadata"]["dialect"], dialect);
        assert!(!joined_text(&events, "final_delta").is_empty(), "{dialect}");
    }
}

#[tokio::test]
async fn secrets_in_the_words_of_a_service_reach_nobody() {
    let secrets = [
        "sk-proj-Ab12Cd34Ef56Gh78Ij90Kl12",
        "sk-abc",
        "sk-ab***********************wxyz",
        "org-Xy12Zw34Ab56Cd78",
        "proj_Qw12Er34Ty56Ui78",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl1234567",
        "8f14e45fceea167a5a36dedd4bea2543",
        "123e4567-e89b-12d3-a456-426614174000",
        "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA=",
    ];
    let error_body = |secret: &str| {
        format!("Key {secret} of ({secret}) may not: Bearer {secret}, key=\"{secret}\"；密钥{secret}无效")
    };
    let head = |status| Step::Head(status, vec![("content-type", "application/json".to_owned())]);
    let scripts = secrets.iter().flat_map(|secret| {
        let error = json!({"error": {"message": error_body(secret)}});
        [
            vec![head(401), send_step(&error.to_string()), Step::End],
            vec![delta_step("Four. "), Step::Send(sse_frame(&error)), Step::End],
            vec![head(200), send_step(&json!({ "error": error_body(secret) }).to_string()), Step::End],
        ]
    });
    let mock = MockServer::start(scripts.collect()).await;
    let server = TestServer::start_default(&mock).await;
    for secret in secrets.iter().flat_map(|secret| [secret; 3]) {
        let events = server.open_stream(&request_body()).await.read_checked().await;
        let (name, data) = end_event(&events);
        assert_eq!(name, "error");
        let error_message = data["message"].as_str().unwrap();
        assert!(!error_message.contains(secret) && !error_message.contains(&secret[..6]), "{error_message}");
        for expected_word in ["Key ", " may not: Bearer ", "；密钥", "无效"] {
            assert!(error_message.contains(expected_word), "{expected_word}: {error_message}");
        }
        let record = server.wait_ended(&crate::client::stream_message_id(&events)).await.to_string();
        assert!(!record.contains(secret), "{record}");
    }
    // A secret that is cut is one all the same.
    let long_secret = format!("{}8f14e45fceea167a5a36dedd4bea2543", "x".repeat(280));
    let events =
        answer_events(vec![Step::Send(sse_frame(&json!({ "error": long_secret }))), Step::End]).await;
    assert!(!end_event(&events).1["message"].as_str().unwrap().contains("8f14"));
    // Text that helps and is no secret is kept.
    for error_body in [
        "The model `deepseek-ai/DeepSeek-R1-Distill-Qwen-32B` does not exist or you do not have access to it.",
        "Rate limit reached for gpt-4o-mini-2024-07-18: Limit 200000, Used 199123, Requested 20000. Try again in 1m13.5s.",
        "maximum context length is 131072 tokens; see https://platform.example/docs/guides/error-codes#2026-11-22",
        "Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF is loading, user-friendly task-force org-chart",
    ] {
        let events =
            answer_events(vec![Step::Send(sse_frame(&json!({ "error": error_body }))), Step::End]).await;
        assert_eq!(end_event(&events).1["message"], format!("the upstream failed: {error_body}"));
    }
}

#[tokio::test]
async fn redirects_are_not_followed() {
    for status in [301, 302, 303, 307, 308] {
        let other_server = MockServer::start(vec![reply_script("from elsewhere", 4)]).await;
        let place = format!("http://{}/v1/chat/completions", other_server.address);
        let mock =
            MockServer::start(vec![vec![Step::Head(status, vec![("location", place)]), Step::End]]).await;
        let server = TestServer::start_default(&mock).await;
        let events = server.open_stream(&request_body()).await.read_checked().await;
        assert_eq!(event_names(&events), ["error"], "{status}");
        assert_eq!(end_event(&events).1["code"], "upstream_refused");
        assert!(end_event(&events).1["message"].as_str().unwrap().contains(&status.to_string()));
        assert_eq!((mock.calls().started, other_server.requests().len()), (1, 0), "{status}");
    }
}
