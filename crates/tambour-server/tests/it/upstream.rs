//! Services that call themselves compatible, and retries.

use serde_json::{Value, json};

use crate::client::{Event, names, text};
use crate::mock::{Mock, Step, delta, finish, frame, reply};
use crate::server::Tambour;

fn ask() -> Value {
    json!({"text": "x", "dialect": "plain", "output_protocol": "jsonseq_v1"})
}

async fn answer(script: Vec<Step>) -> Vec<Event> {
    let mock = Mock::start(vec![script]).await;
    let server = Tambour::with(&mock).await;
    server.stream(&ask()).await.whole().await
}

fn end(events: &[Event]) -> (&str, &Value) {
    let end = events.last().unwrap();
    (&end.name, &end.data)
}

fn send(text: &str) -> Step {
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
        let events = answer(script).await;
        assert_eq!(text(&events, "final_delta"), "Grüße 你好", "{size} bytes a piece"); // J-038
        assert_eq!(end(&events).0, "completed");
        assert_eq!(end(&events).1["usage"]["total_tokens"], 3);
        assert_eq!(end(&events).1["finish_reason"], "stop");
    }
}

/// Shows the rest of a stream with an unreadable frame; calls in it do not act.
#[tokio::test]
async fn a_reply_with_a_broken_frame_is_not_whole() {
    let hole = Step::Send(b"data: {\"choices\":[{\"delta\":{\"content\":\n\n".to_vec());
    for done in [finish("stop"), vec![send("data: [DONE]\n\n"), Step::End]] {
        let events = answer([vec![delta("Fo"), hole.clone(), delta("ur.")], done].concat()).await;
        assert_eq!(text(&events, "final_delta"), "Four.");
        let (name, end) = end(&events);
        assert_eq!((name, &end["metadata"]["truncated"]), ("completed", &json!(true)), "{end}");
    }
}

/// Accepts services that send the whole answer in one frame.
#[tokio::test]
async fn a_long_frame_is_a_frame() {
    let long = "x".repeat(3 << 20);
    let events = answer([vec![delta(&long)], finish("stop")].concat()).await;
    assert_eq!(text(&events, "final_delta").len(), long.len());
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
            send(&format!("\n {:#}", body)),
            Step::End,
        ];
        let events = answer(script).await;
        assert_eq!(text(&events, "final_delta"), "Four.", "{kind}");
        assert_eq!(text(&events, "phase_delta"), "2 and 2", "{kind}");
        assert_eq!(end(&events).1["usage"]["total_tokens"], 9);
    }
}

#[tokio::test]
async fn a_stream_under_a_wrong_type_is_a_stream() {
    let mut script = vec![Step::Head(200, vec![("content-type", "application/json".to_owned())])];
    script.extend(reply("Four.", 2));
    assert_eq!(text(&answer(script).await, "final_delta"), "Four.");
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
    for (part, wanted) in cases {
        let mut script = vec![Step::Send(frame(&json!({"choices": [{"delta": part}]}))), delta("Four.")];
        script.extend(finish("stop"));
        let events = answer(script).await;
        assert_eq!(text(&events, "phase_delta"), wanted, "{part}");
        assert_eq!(text(&events, "final_delta"), "Four.");
    }
}

#[tokio::test]
async fn reasons_to_end_are_told_apart() {
    let done = || vec![delta("Four."), send("data: [DONE]\n\n"), Step::End];
    let events = answer(done()).await;
    assert_eq!(
        (end(&events).1["finish_reason"].as_str(), &end(&events).1["metadata"]["truncated"]),
        (Some("stop"), &json!(false))
    );
    for (reason, told, cut) in [
        ("length", "length", true),
        ("max_tokens", "length", true),
        ("content_filter", "content_filter", true),
        ("stop", "stop", false),
        ("eos", "stop", false),
        ("", "stop", false),
    ] {
        let mut script = vec![delta("Four.")];
        script.extend(finish(reason));
        let events = answer(script).await;
        assert_eq!(end(&events).1["finish_reason"], told, "{reason}");
        assert_eq!(end(&events).1["metadata"]["truncated"], cut, "{reason}"); // J-056
    }
    // A clean end with neither.
    let events = answer(vec![delta("Four."), Step::End]).await;
    assert_eq!(end(&events).1["metadata"]["truncated"], true);
    let events = answer(vec![send(""), Step::End]).await;
    assert_eq!(end(&events).0, "completed");
    assert_eq!(end(&events).1["metadata"]["fallback_reason"], "truncated");
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
    for (bytes, said) in cases {
        let events = answer(vec![delta("Four. "), send(bytes), send("data: [DONE]\n\n"), Step::End]).await;
        assert_eq!(end(&events).0, "error"); // J-035
        assert_eq!(end(&events).1["code"], "upstream_error");
        assert!(end(&events).1["message"].as_str().unwrap().contains(said), "{said}");
        assert!(names(&events).ends_with(&["final_delta", "final_end", "error"]));
    }
    let script = vec![
        Step::Head(200, vec![("content-type", "application/json".to_owned())]),
        send("{\"error\": {\"message\": \"no credit\"}}"),
        Step::End,
    ];
    let events = answer(script).await;
    assert_eq!(names(&events), ["error"]);
    assert!(end(&events).1["message"].as_str().unwrap().contains("no credit"));
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
        let events = answer(vec![Step::Send(bytes.to_vec()), Step::End]).await;
        assert_eq!(names(&events), ["error"]); // J-035
        assert_eq!(end(&events).1["code"], "upstream_malformed");
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
            send("{\"error\": {\"message\": \"busy\"}}"),
            Step::End,
        ]
    };
    let past = "Sun, 06 Nov 1994 08:49:37 GMT";
    let scripts =
        vec![busy(503, ("retry-after", past)), busy(429, ("retry-after-ms", "1")), reply("Four.", 2)];
    let mock = Mock::start(scripts).await;
    let server = Tambour::with(&mock).await;
    let events = server.stream(&ask()).await.whole().await;
    assert_eq!(text(&events, "final_delta"), "Four.");
    assert_eq!(mock.calls().begun, 3);
    // A reset before the first byte is retried, too; one after it is not.
    let mock = Mock::start(vec![vec![Step::Reset], vec![delta("Fo"), Step::Reset], reply("no", 1)]).await;
    let server = Tambour::with(&mock).await;
    let events = server.stream(&ask()).await.whole().await;
    assert_eq!(mock.calls().begun, 2);
    assert_eq!((end(&events).0, &end(&events).1["code"]), ("error", &json!("upstream_closed"))); // J-035
    // Permanent failures are not retried, and neither is a service that asks for a long pause.
    for (status, header, code) in [
        (400, "0", "upstream_refused"),
        (401, "0", "upstream_unauthorized"),
        (429, "3600", "upstream_rate_limited"),
    ] {
        let mock = Mock::start(vec![busy(status, ("retry-after", header))]).await;
        let server = Tambour::with(&mock).await;
        let events = server.stream(&ask()).await.whole().await;
        assert_eq!(names(&events), ["error"]);
        assert_eq!(end(&events).1["code"], code);
        assert!(end(&events).1["message"].as_str().unwrap().contains("busy"));
        assert_eq!(mock.calls().begun, 1, "{status}");
    }
    // Retries are limited.
    let mock = Mock::start(vec![busy(500, ("x-nothing", "0"))]).await;
    let server = Tambour::with(&mock).await;
    let events = server.stream(&ask()).await.whole().await;
    assert_eq!(
        (&end(&events).1["code"], &end(&events).1["retryable"]),
        (&json!("upstream_error"), &json!(true))
    );
    assert_eq!(mock.calls().begun, 3);
}

#[tokio::test]
async fn waits_as_long_as_it_is_asked_to() {
    let busy = vec![Step::Head(429, vec![("retry-after", "1".into())]), Step::End];
    let mock = Mock::start(vec![busy, reply("Four.", 2)]).await;
    let server = Tambour::with(&mock).await;
    let started = std::time::Instant::now();
    server.stream(&ask()).await.whole().await;
    assert!(started.elapsed() >= std::time::Duration::from_secs(1));
}

#[tokio::test]
async fn every_silence_ends() {
    let stalls = [
        (vec![Step::Stall], "sent nothing"),
        (vec![Step::Head(200, vec![]), Step::Stall], "sent nothing"),
        (vec![delta("Fo"), Step::Stall], "fell silent"),
    ];
    for (script, said) in stalls {
        let mock = Mock::start(vec![script]).await;
        let server = Tambour::start(&mock, |config| match said {
            "fell silent" => config.timeouts.silence_ms = 150,
            _ => config.timeouts.first_byte_ms = 150,
        })
        .await;
        let events = server.stream(&ask()).await.whole().await;
        assert_eq!((end(&events).0, &end(&events).1["code"]), ("error", &json!("upstream_timeout"))); // J-035
        assert!(end(&events).1["message"].as_str().unwrap().contains(said));
        assert_eq!(mock.calls().begun, 1, "a call that may be at work is not repeated");
        mock.until(|calls| calls.deserted == 1).await;
    }
}

#[tokio::test]
async fn an_upstream_that_is_not_there_is_told() {
    let mock = Mock::start(vec![reply("x", 1)]).await;
    let nobody = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let server = Tambour::start(&mock, |config| {
        config.add_upstream(&format!("openai=http://{nobody}/v1"), None).unwrap();
    })
    .await;
    let events = server.stream(&ask()).await.whole().await;
    assert_eq!(names(&events), ["error"]);
    assert_eq!(end(&events).1["code"], "upstream_unreachable");
}

#[tokio::test]
async fn recordings_are_played() {
    let mock = Mock::start(vec![reply("x", 1)]).await;
    let lines = [
        json!({"id": "one", "chunks": ["<final>", "1</final>"], "finish_reason": "stop", "protocol": "thinkingml"}),
        json!({"id": "two", "chunks": ["2"], "protocol": "plain", "delays_ms": [1]}),
    ];
    let folder = crate::server::Folder::new();
    let file = folder.file("replies.jsonl", &lines.map(|line| line.to_string()).join("\n"));
    let server = Tambour::start(&mock, |config| {
        config.add_upstream(&format!("replay={}", file.display()), None).unwrap();
        config.add_upstream("demo", None).unwrap();
    })
    .await;
    let mut ask =
        json!({"text": "x", "dialect": "thinkingml", "output_protocol": "jsonseq_v1", "upstream": "replay"});
    assert_eq!(text(&server.stream(&ask).await.whole().await, "final_delta"), "1");
    ask["model"] = "two".into();
    ask["dialect"] = "plain".into();
    assert_eq!(text(&server.stream(&ask).await.whole().await, "final_delta"), "2");
    ask["model"] = "three".into();
    assert_eq!(end(&server.stream(&ask).await.whole().await).1["code"], "recording_not_found");
    // The demonstration is the default here, and plays recordings of real models.
    for dialect in ["thinkingml", "jsonseq", "aiplan", "ai_say", "filament"] {
        let ask = json!({"text": "x", "dialect": dialect, "output_protocol": "jsonseq_v1"});
        let events = server.stream(&ask).await.whole().await;
        assert_eq!(end(&events).0, "completed", "{dialect}");
        assert_eq!(end(&events).1["metadata"]["dialect"], dialect);
        assert!(!text(&events, "final_delta").is_empty(), "{dialect}");
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
    let words = |secret: &str| {
        format!("Key {secret} of ({secret}) may not: Bearer {secret}, key=\"{secret}\"；密钥{secret}无效")
    };
    let head = |status| Step::Head(status, vec![("content-type", "application/json".to_owned())]);
    let scripts = secrets.iter().flat_map(|secret| {
        let error = json!({"error": {"message": words(secret)}});
        [
            vec![head(401), send(&error.to_string()), Step::End],
            vec![delta("Four. "), Step::Send(frame(&error)), Step::End],
            vec![head(200), send(&json!({ "error": words(secret) }).to_string()), Step::End],
        ]
    });
    let mock = Mock::start(scripts.collect()).await;
    let server = Tambour::with(&mock).await;
    for secret in secrets.iter().flat_map(|secret| [secret; 3]) {
        let events = server.stream(&ask()).await.whole().await;
        let (name, data) = end(&events);
        assert_eq!(name, "error");
        let said = data["message"].as_str().unwrap();
        assert!(!said.contains(secret) && !said.contains(&secret[..6]), "{said}");
        for word in ["Key ", " may not: Bearer ", "；密钥", "无效"] {
            assert!(said.contains(word), "{word}: {said}");
        }
        let record = server.ended(&crate::client::message(&events)).await.to_string();
        assert!(!record.contains(secret), "{record}");
    }
    // A truncated secret is masked, too.
    let long = format!("{}8f14e45fceea167a5a36dedd4bea2543", "x".repeat(280));
    let events = answer(vec![Step::Send(frame(&json!({ "error": long }))), Step::End]).await;
    assert!(!end(&events).1["message"].as_str().unwrap().contains("8f14"));
    // Helpful details are passed on.
    for words in [
        "The model `deepseek-ai/DeepSeek-R1-Distill-Qwen-32B` does not exist or you do not have access to it.",
        "Rate limit reached for gpt-4o-mini-2024-07-18: Limit 200000, Used 199123, Requested 20000. Try again in 1m13.5s.",
        "maximum context length is 131072 tokens; see https://platform.example/docs/guides/error-codes#2026-11-22",
        "Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF is loading, user-friendly task-force org-chart",
    ] {
        let events = answer(vec![Step::Send(frame(&json!({ "error": words }))), Step::End]).await;
        assert_eq!(end(&events).1["message"], format!("the upstream failed: {words}"));
    }
}

#[tokio::test]
async fn redirects_are_not_followed() {
    for status in [301, 302, 303, 307, 308] {
        let elsewhere = Mock::start(vec![reply("from elsewhere", 4)]).await;
        let place = format!("http://{}/v1/chat/completions", elsewhere.address);
        let mock = Mock::start(vec![vec![Step::Head(status, vec![("location", place)]), Step::End]]).await;
        let server = Tambour::with(&mock).await;
        let events = server.stream(&ask()).await.whole().await;
        assert_eq!(names(&events), ["error"], "{status}");
        assert_eq!(end(&events).1["code"], "upstream_refused");
        assert!(end(&events).1["message"].as_str().unwrap().contains(&status.to_string()));
        assert_eq!((mock.calls().begun, elsewhere.asked().len()), (1, 0), "{status}");
    }
}
