//! Upstreams that send without end and without content.

use serde_json::{Value, json};

use crate::client::Event;
use crate::mock::{MockServer, Step, delta_step, finish_steps, sse_frame};
use crate::server::{TestServer, with_timeout};

/// A script of `step` thousands of times, with a pause in each where `millis` is not 0; it does not end on its own.
fn endless_script(first_steps: Vec<Step>, step: &Step, times: usize) -> Vec<Step> {
    let mut steps = first_steps;
    steps.extend(std::iter::repeat_n(step.clone(), times));
    steps.push(Step::WaitDisconnect);
    steps
}

fn comment_step(bytes: usize) -> Step {
    Step::Send(format!(": {}\n\n", "x".repeat(bytes)).into_bytes())
}

fn empty_delta_step() -> Step {
    Step::Send(sse_frame(&json!({"choices": [{"index": 0, "delta": {"content": ""}}]})))
}

fn request_body() -> Value {
    json!({"text": "x", "dialect": "plain", "output_protocol": "jsonseq_v1"})
}

fn failure_code(events: &[Event]) -> (&str, &str) {
    let last = events.last().unwrap();
    assert_eq!(last.name, "error", "{last:?}");
    (last.data["code"].as_str().unwrap(), last.data["message"].as_str().unwrap())
}

#[tokio::test]
async fn signs_of_life_are_no_content() {
    for step in [Step::After(20, Box::new(comment_step(1))), Step::After(20, Box::new(empty_delta_step()))] {
        for first_steps in [vec![], vec![delta_step("Fo")]] {
            let mock = MockServer::start(vec![endless_script(first_steps, &step, 100_000)]).await;
            let server = TestServer::start(&mock, |config| config.timeouts.content_ms = 300).await;
            let events = with_timeout(server.open_stream(&request_body()).await.read_checked()).await;
            let (code, message) = failure_code(&events);
            assert_eq!(code, "upstream_timeout");
            assert!(message.contains("timeouts.content_ms"), "{message}");
            mock.wait_until(|calls| calls.abandoned == 1).await;
        }
    }
}

#[tokio::test]
async fn a_reply_has_a_bound_as_a_whole() {
    let mock = MockServer::start(vec![endless_script(
        vec![],
        &Step::After(20, Box::new(delta_step("and "))),
        100_000,
    )])
    .await;
    let server = TestServer::start(&mock, |config| config.timeouts.total_ms = 300).await;
    let events = with_timeout(server.open_stream(&request_body()).await.read_checked()).await;
    let (code, message) = failure_code(&events);
    assert_eq!(code, "upstream_timeout");
    assert!(message.contains("timeouts.total_ms"), "{message}");
    mock.wait_until(|calls| calls.abandoned == 1).await;
}

#[tokio::test]
async fn frames_count_as_input() {
    // As fast as the connection takes it: without a pause in which a timer could fire.
    for (step, expected_text) in [
        (comment_step(32 << 10), "without content"),
        (Step::Send(sse_frame(&json!({"choices": [], "padding": "x".repeat(32 << 10)}))), "without content"),
        (
            Step::Send(sse_frame(
                &json!({"choices": [{"index": 0, "delta": {"content": "a"}}], "padding": "x".repeat(32 << 10)}),
            )),
            "frames of the reply",
        ),
    ] {
        let mock = MockServer::start(vec![endless_script(vec![], &step, 300)]).await;
        let server = TestServer::start(&mock, |config| config.limits.input = 100_000).await;
        let events = with_timeout(server.open_stream(&request_body()).await.read_checked()).await;
        let (code, message) = failure_code(&events);
        assert_eq!(code, "input_too_large", "{message}");
        assert!(message.contains(expected_text) && message.contains("limits.input"), "{message}");
        mock.wait_until(|calls| calls.abandoned == 1).await;
    }
}

#[tokio::test]
async fn a_frame_that_brings_content_is_none_without_however_long_it_is() {
    let long =
        json!({"padding": "x".repeat(300 << 10), "choices": [{"index": 0, "delta": {"content": "a"}}]});
    let mut steps = vec![Step::Send(sse_frame(&long)); 3];
    steps.extend(finish_steps("stop"));
    let mock = MockServer::start(vec![steps]).await;
    let server = TestServer::start(&mock, |config| config.limits.input = 100_000).await;
    let events = with_timeout(server.open_stream(&request_body()).await.read_checked()).await;
    assert_eq!(events.last().unwrap().name, "completed", "{events:?}");
}

#[tokio::test]
async fn turns_of_dialogues_have_these_bounds_too() {
    for (step, code) in [
        (Step::After(20, Box::new(comment_step(1))), "upstream_timeout"),
        (comment_step(32 << 10), "input_too_large"),
        (
            Step::Send(sse_frame(
                &json!({"choices": [{"index": 0, "delta": {"reasoning_content": "x".repeat(4000)}}]}),
            )),
            "input_too_large",
        ),
    ] {
        let mock = MockServer::start(vec![endless_script(vec![], &step, 300)]).await;
        let server = TestServer::start(&mock, |config| {
            config.timeouts.content_ms = 300;
            config.limits.input = 100_000;
        })
        .await;
        let id = crate::dialogues::start_dialogue(&server, &["{type: ai_say, content: x}"]).await;
        let turn = with_timeout(server.post(&format!("/api/v1/dialogues/{id}/input"), &json!({}))).await;
        assert_eq!(turn.json["error"]["code"], code, "{}", turn.text);
        mock.wait_until(|calls| calls.abandoned == 1).await;
    }
}

#[tokio::test]
async fn a_long_reply_of_small_frames_comes_whole() {
    // Each frame has fifty times the bytes of its text, as those of real services do.
    let mut steps: Vec<Step> = (0..2000).map(|_| delta_step("word ")).collect();
    steps.extend(finish_steps("stop"));
    let mock = MockServer::start(vec![steps]).await;
    let server = TestServer::start(&mock, |config| config.limits.input = 20_000).await;
    let events = server.open_stream(&request_body()).await.read_checked().await;
    assert_eq!(events.last().unwrap().name, "completed");
}
