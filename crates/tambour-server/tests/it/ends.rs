//! Every message ends exactly once, in every case; `client::check_stream` verifies each stream here.

use serde_json::{Value, json};

use crate::client::{check, message, names, text};
use crate::mock::{GOOD, Gate, Mock, Step, delta, finish, reply};
use crate::server::{Tambour, within};

fn ask(protocol: &str) -> Value {
    json!({"text": "x", "dialect": "thinkingml", "output_protocol": protocol})
}

/// Cuts the reply after each piece, in each way: stream and record are complete.
#[tokio::test]
async fn a_reply_cut_anywhere_ends_once() {
    let whole = reply(GOOD, 16);
    let pieces = whole.len() - 4;
    let mut scripts = Vec::new();
    let ways: [fn() -> Vec<Step>; 5] = [
        || vec![Step::Cut],
        || vec![Step::Reset],
        || vec![Step::Send(b"data: {\"error\": \"x\"}\n\n".to_vec()), Step::End],
        || vec![Step::End],
        || finish("length"),
    ];
    for way in ways {
        for cut in 1..pieces {
            let mut script: Vec<Step> = whole[..cut].to_vec();
            script.extend(way());
            scripts.push(script);
        }
    }
    let count = scripts.len();
    let mock = Mock::start(scripts).await;
    let server = Tambour::start(&mock, |config| config.timeouts.attempts = 1).await;
    for at in 0..count {
        let protocol = if at % 3 == 0 { "legacy" } else { "jsonseq_v1" };
        let events = server.stream(&ask(protocol)).await.whole().await; // J-035, X-001
        let name = events.last().unwrap().name.clone();
        // A broken connection is an error; a clean end is a truncated reply.
        let wanted = if at < 3 * (pieces - 1) { "error" } else { "completed" };
        assert_eq!(name, wanted, "script {at}");
        if wanted == "completed" {
            assert_eq!(events.last().unwrap().data["metadata"]["truncated"], true); // J-056
        }
        let record = server.ended(&message(&events)).await;
        assert_eq!(record["status"], if wanted == "error" { "failed" } else { "completed" });
    }
    assert_eq!(server.metric("tambour_messages_failed_total").await, 3 * (pieces as u64 - 1));
}

#[tokio::test]
async fn a_reply_without_end_is_stopped_at_the_limit() {
    let flood: Vec<Step> =
        std::iter::repeat_n(delta(&"word ".repeat(200)), 400).chain([Step::Stall]).collect();
    let reasoning = json!({"choices": [{"delta": {"reasoning": "hm ".repeat(300)}}]});
    let thoughts: Vec<Step> =
        std::iter::repeat_n(Step::Send(crate::mock::frame(&reasoning)), 400).chain([Step::Stall]).collect();
    for script in [flood, thoughts] {
        let mock = Mock::start(vec![script]).await;
        let server = Tambour::start(&mock, |config| config.limits.input = 100_000).await;
        for protocol in ["jsonseq_v1", "legacy"] {
            let ask = json!({"text": "x", "dialect": "plain", "output_protocol": protocol});
            let events = server.stream(&ask).await.whole().await;
            let end = &events.last().unwrap().data;
            assert_eq!((&end["code"], &end["retryable"]), (&json!("input_too_large"), &json!(false)));
            let record = server.ended(&message(&events)).await;
            // The log has no entry after the end.
            assert_eq!(record["error"]["code"], "input_too_large");
            assert!(record["reply"].as_str().unwrap().len() <= 110_000);
        }
        // The upstream call is closed as well.
        mock.until(|calls| calls.deserted == 2).await;
    }
}

#[tokio::test]
async fn a_server_that_stops_lets_messages_finish() {
    let gate = Gate::new();
    let mut script = vec![delta("Fo"), Step::Wait(gate.clone()), delta("ur.")];
    script.extend(finish("stop"));
    let mock = Mock::start(vec![script]).await;
    let mut server = Tambour::with(&mock).await;
    let mut stream = server.stream(&json!({"text": "x"})).await;
    let mut events = stream.until("content_delta").await;
    let kept = server.get("/readyz").await;
    assert_eq!(kept.status, 200);
    server.stopping();
    // New connections are refused, and the open one is told to close.
    within(async {
        while server.get("/readyz").await.status != 503 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let refused = server.post("/api/v1/messages", &json!({"text": "x"})).await;
    assert_eq!((refused.status, refused.problem()), (503, "closing"));
    assert!(refused.headers.contains_key("retry-after"));
    gate.open();
    events.extend(stream.rest().await);
    check(&events);
    assert_eq!(events.last().unwrap().data["reply"], "Four.");
    server.stopped().await;
}

#[tokio::test]
async fn a_server_that_stops_does_not_wait_for_ever() {
    let mock =
        Mock::start(vec![vec![delta("<thinking><phase id=\"1\"><title>T</title>x\n"), Step::Stall]]).await;
    let mut server = Tambour::start(&mock, |config| config.drain_ms = 50).await;
    let mut stream = server.stream(&ask("jsonseq_v1")).await;
    let mut events = stream.until("phase_start").await;
    server.stopping();
    events.extend(stream.rest().await);
    check(&events);
    assert_eq!(events.last().unwrap().data["code"], "interrupted"); // J-035
    assert!(names(&events).contains(&"thinking_end"), "what was open is closed");
    mock.until(|calls| calls.deserted == 1).await;
    let folder = server.stopped().await;
    // The next start has no message to close, and serves the same stream.
    let mut config = crate::server::config(&folder);
    config.add_upstream(&mock.url(), None).unwrap();
    let server = Tambour::serve(folder, config).await;
    let again = server.follow(&message(&events), &[]).await.whole().await;
    assert_eq!(crate::client::numbered(&again), crate::client::numbered(&events));
}

#[tokio::test]
async fn long_pieces_are_split_and_whole() {
    let long = "é漢字".repeat(1000);
    let mock = Mock::start(vec![reply(&long, 3000)]).await;
    let server = Tambour::with(&mock).await;
    let ask = json!({"text": "x", "dialect": "plain", "output_protocol": "jsonseq_v1"});
    let events = server.stream(&ask).await.whole().await;
    assert!(events.iter().filter(|event| event.name == "final_delta").count() > 1); // J-039
    assert_eq!(text(&events, "final_delta"), long); // J-039
}
