//! Every message ends exactly once, in every case; `client::check_stream` verifies each stream here.

use serde_json::{Value, json};

use crate::client::{check_stream, event_names, joined_text, stream_message_id};
use crate::mock::{GOOD_REPLY, Gate, MockServer, Step, delta_step, finish_steps, reply_script};
use crate::server::{TestServer, with_timeout};

fn request_body(protocol: &str) -> Value {
    json!({"text": "x", "dialect": "thinkingml", "output_protocol": protocol})
}

/// Cuts the reply after each piece, in each way: stream and record are complete.
#[tokio::test]
async fn a_reply_cut_anywhere_ends_once() {
    let steps = reply_script(GOOD_REPLY, 16);
    let pieces = steps.len() - 4;
    let mut scripts = Vec::new();
    let ways: [fn() -> Vec<Step>; 5] = [
        || vec![Step::Cut],
        || vec![Step::Reset],
        || vec![Step::Send(b"data: {\"error\": \"x\"}\n\n".to_vec()), Step::End],
        || vec![Step::End],
        || finish_steps("length"),
    ];
    for ending in ways {
        for length in 1..pieces {
            let mut script: Vec<Step> = steps[..length].to_vec();
            script.extend(ending());
            scripts.push(script);
        }
    }
    let count = scripts.len();
    let mock = MockServer::start(scripts).await;
    let server = TestServer::start(&mock, |config| config.timeouts.attempts = 1).await;
    for at in 0..count {
        let protocol = if at % 3 == 0 { "legacy" } else { "jsonseq_v1" };
        let events = server.open_stream(&request_body(protocol)).await.read_checked().await; // J-035, X-001
        let name = events.last().unwrap().name.clone();
        // A broken connection is an error; a clean end is a truncated reply.
        let expected = if at < 3 * (pieces - 1) { "error" } else { "completed" };
        assert_eq!(name, expected, "script {at}");
        if expected == "completed" {
            assert_eq!(events.last().unwrap().data["metadata"]["truncated"], true); // J-056
        }
        let record = server.wait_ended(&stream_message_id(&events)).await;
        assert_eq!(record["status"], if expected == "error" { "failed" } else { "completed" });
    }
    assert_eq!(server.metric("tambour_messages_failed_total").await, 3 * (pieces as u64 - 1));
}

#[tokio::test]
async fn a_reply_without_end_is_stopped_at_the_limit() {
    let flood: Vec<Step> =
        std::iter::repeat_n(delta_step(&"word ".repeat(200)), 400).chain([Step::WaitDisconnect]).collect();
    let reasoning = json!({"choices": [{"delta": {"reasoning": "hm ".repeat(300)}}]});
    let thoughts: Vec<Step> = std::iter::repeat_n(Step::Send(crate::mock::sse_frame(&reasoning)), 400)
        .chain([Step::WaitDisconnect])
        .collect();
    for script in [flood, thoughts] {
        let mock = MockServer::start(vec![script]).await;
        let server = TestServer::start(&mock, |config| config.limits.input = 100_000).await;
        for protocol in ["jsonseq_v1", "legacy"] {
            let request = json!({"text": "x", "dialect": "plain", "output_protocol": protocol});
            let events = server.open_stream(&request).await.read_checked().await;
            let end = &events.last().unwrap().data;
            assert_eq!((&end["code"], &end["retryable"]), (&json!("input_too_large"), &json!(false)));
            let record = server.wait_ended(&stream_message_id(&events)).await;
            // The log has no entry after the end.
            assert_eq!(record["error"]["code"], "input_too_large");
            assert!(record["reply"].as_str().unwrap().len() <= 110_000);
        }
        // The upstream call is closed as well.
        mock.wait_until(|calls| calls.abandoned == 2).await;
    }
}

#[tokio::test]
async fn a_server_that_stops_lets_messages_finish() {
    let gate = Gate::new();
    let mut script = vec![delta_step("Fo"), Step::Wait(gate.clone()), delta_step("ur.")];
    script.extend(finish_steps("stop"));
    let mock = MockServer::start(vec![script]).await;
    let mut server = TestServer::start_default(&mock).await;
    let mut stream = server.open_stream(&json!({"text": "x"})).await;
    let mut events = stream.read_until("content_delta").await;
    let kept_alive = server.get("/readyz").await;
    assert_eq!(kept_alive.status, 200);
    server.request_stop();
    // New connections are refused, and the open one is told to close.
    with_timeout(async {
        while server.get("/readyz").await.status != 503 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let refusal = server.post("/api/v1/messages", &json!({"text": "x"})).await;
    assert_eq!((refusal.status, refusal.problem_code()), (503, "closing"));
    assert!(refusal.headers.contains_key("retry-after"));
    gate.open();
    events.extend(stream.read_rest().await);
    check_stream(&events);
    assert_eq!(events.last().unwrap().data["reply"], "Four.");
    server.stop().await;
}

#[tokio::test]
async fn a_server_that_stops_does_not_wait_for_ever() {
    let mock = MockServer::start(vec![vec![
        delta_step("<thinking><phase id=\"1\"><title>T</title>x\n"),
        Step::WaitDisconnect,
    ]])
    .await;
    let mut server = TestServer::start(&mock, |config| config.drain_ms = 50).await;
    let mut stream = server.open_stream(&request_body("jsonseq_v1")).await;
    let mut events = stream.read_until("phase_start").await;
    server.request_stop();
    events.extend(stream.read_rest().await);
    check_stream(&events);
    assert_eq!(events.last().unwrap().data["code"], "interrupted"); // J-035
    assert!(event_names(&events).contains(&"thinking_end"), "what was open is closed");
    mock.wait_until(|calls| calls.abandoned == 1).await;
    let folder = server.stop().await;
    // The next start has no message to close, and serves the same stream.
    let mut config = crate::server::test_config(&folder);
    config.add_upstream(&mock.url(), None).unwrap();
    let server = TestServer::serve(folder, config).await;
    let later_events = server.follow(&stream_message_id(&events), &[]).await.read_checked().await;
    assert_eq!(crate::client::numbered_events(&later_events), crate::client::numbered_events(&events));
}

#[tokio::test]
async fn long_pieces_are_split_and_whole() {
    let long = "é漢字".repeat(1000);
    let mock = MockServer::start(vec![reply_script(&long, 3000)]).await;
    let server = TestServer::start_default(&mock).await;
    let request = json!({"text": "x", "dialect": "plain", "output_protocol": "jsonseq_v1"});
    let events = server.open_stream(&request).await.read_checked().await;
    assert!(events.iter().filter(|event| event.name == "final_delta").count() > 1); // J-039
    assert_eq!(joined_text(&events, "final_delta"), long); // J-039
}
