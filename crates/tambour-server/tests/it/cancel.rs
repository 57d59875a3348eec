//! Stopping a message: by its user, and by clients that disconnect.

use serde_json::{Value, json};

use crate::client::{check_stream, event_names, joined_text, numbered_events, stream_message_id};
use crate::mock::{Gate, MockServer, Step, delta_step, finish_steps};
use crate::server::TestServer;

fn request_body() -> Value {
    json!({"text": "x", "dialect": "plain", "output_protocol": "jsonseq_v1"})
}

fn endless_script() -> Vec<Step> {
    vec![delta_step("Once upon "), delta_step("a time "), Step::WaitDisconnect]
}

#[tokio::test]
async fn cancelling_stops_the_upstream_and_ends_well() {
    let mock = MockServer::start(vec![endless_script()]).await;
    let server = TestServer::start_default(&mock).await;
    let mut stream = server.open_stream(&request_body()).await;
    let mut events = stream.read_until("final_delta").await;
    let path = format!("/api/v1/messages/{}/cancel", stream_message_id(&events));
    let answer = server.call("post", &path, None).await;
    assert_eq!((answer.status, &answer.json["status"]), (202, &json!("cancelling")));
    events.extend(stream.read_rest().await);
    check_stream(&events);
    assert_eq!(events.last().unwrap().name, "completed");
    assert_eq!(events.last().unwrap().data["finish_reason"], "cancelled");
    mock.wait_until(|calls| calls.abandoned == 1).await;
    assert_eq!(server.wait_ended(&stream_message_id(&events)).await["status"], "cancelled");
    server.wait_for_metric("tambour_running", 0).await;
    let second_cancel = server.call("post", &path, None).await;
    assert_eq!((second_cancel.status, &second_cancel.json["status"]), (200, &json!("cancelled")));
}

#[tokio::test]
async fn cancelling_before_the_upstream_answers() {
    let mock = MockServer::start(vec![vec![Step::WaitDisconnect]]).await;
    let server = TestServer::start_default(&mock).await;
    let id = server.post("/api/v1/messages", &request_body()).await.json["message_id"]
        .as_str()
        .unwrap()
        .to_owned();
    mock.wait_until(|calls| calls.started == 1).await;
    server.call("post", &format!("/api/v1/messages/{id}/cancel"), None).await;
    mock.wait_until(|calls| calls.abandoned == 1).await;
    let events = server.follow(&id, &[]).await.read_checked().await;
    assert_eq!(events.last().unwrap().data["finish_reason"], "cancelled");
}

#[tokio::test]
async fn a_client_that_vanishes_ends_the_call_without_grace() {
    let mock = MockServer::start(vec![endless_script()]).await;
    let server = TestServer::start(&mock, |config| config.grace_ms = 0).await;
    let mut stream = server.open_stream(&request_body()).await;
    let id = stream_message_id(&stream.read_until("final_delta").await);
    drop(stream);
    mock.wait_until(|calls| calls.abandoned == 1).await;
    assert_eq!(server.wait_ended(&id).await["status"], "cancelled");
    server.wait_for_metric("tambour_running", 0).await;
    check_stream(&server.follow(&id, &[]).await.read_checked().await);
}

#[tokio::test]
async fn a_client_that_vanishes_before_the_first_byte_ends_the_call() {
    let mock = MockServer::start(vec![vec![Step::WaitDisconnect]]).await;
    let server = TestServer::start(&mock, |config| config.grace_ms = 0).await;
    let stream = server.open_stream(&request_body()).await;
    mock.wait_until(|calls| calls.started == 1).await;
    drop(stream);
    mock.wait_until(|calls| calls.abandoned == 1).await;
}

#[tokio::test]
async fn many_clients_that_vanish_leave_no_call_behind() {
    let mock = MockServer::start(vec![endless_script()]).await;
    let server = TestServer::start(&mock, |config| config.grace_ms = 0).await;
    let mut streams = Vec::new();
    for _ in 0..50 {
        streams.push(server.open_stream(&request_body()).await);
    }
    mock.wait_until(|calls| calls.started == 50).await;
    drop(streams);
    mock.wait_until(|calls| calls.abandoned == 50).await;
    server.wait_for_metric("tambour_running", 0).await;
}

#[tokio::test]
async fn a_client_that_comes_back_in_time_goes_on() {
    let gate = Gate::new();
    let mut script =
        vec![delta_step("One "), delta_step("two "), Step::Wait(gate.clone()), delta_step("three")];
    script.extend(finish_steps("stop"));
    let mock = MockServer::start(vec![script]).await;
    let server = TestServer::start(&mock, |config| config.grace_ms = 20_000).await;
    let mut stream = server.open_stream(&request_body()).await;
    let mut events = stream.read_until("final_delta").await;
    let last = events.last().unwrap().id.unwrap().to_string();
    let id = stream_message_id(&events);
    // The client disconnects and comes back more than once.
    drop(stream);
    server.wait_for_metric("tambour_streams_open", 0).await;
    drop(server.follow(&id, &[]).await);
    server.wait_for_metric("tambour_streams_open", 0).await;
    let mut reader = server.follow(&id, &[("last-event-id", &last)]).await;
    gate.open();
    let rest = reader.read_rest().await;
    events.extend(rest);
    check_stream(&events);
    assert_eq!(joined_text(&events, "final_delta"), "One two three"); // J-036
    assert_eq!(mock.calls().abandoned, 0);
    assert_eq!(event_names(&events).last(), Some(&"completed"));
}

#[tokio::test]
async fn grace_keeps_the_run_and_ends() {
    let gate = Gate::new();
    let mut script = vec![delta_step("One "), Step::Wait(gate.clone()), delta_step("two")];
    script.extend(finish_steps("stop"));
    let mock = MockServer::start(vec![script, endless_script()]).await;
    let server = TestServer::start(&mock, |config| config.grace_ms = 20_000).await;
    let mut stream = server.open_stream(&request_body()).await;
    let id = stream_message_id(&stream.read_until("final_delta").await);
    drop(stream);
    server.wait_for_metric("tambour_streams_open", 0).await;
    // The message completes without a reader.
    gate.open();
    assert_eq!(server.wait_ended(&id).await["reply"], "One two");
    assert_eq!(mock.calls().abandoned, 0);
    // A short grace period does end.
    let server = TestServer::start(&mock, |config| config.grace_ms = 30).await;
    let mut stream = server.open_stream(&request_body()).await;
    stream.read_until("final_delta").await;
    drop(stream);
    mock.wait_until(|calls| calls.abandoned == 1).await;
}

#[tokio::test]
async fn a_message_that_nobody_reads_runs_to_its_end() {
    let mock = MockServer::start(vec![crate::mock::reply_script("Four.", 1)]).await;
    let server = TestServer::start(&mock, |config| config.grace_ms = 0).await;
    let id = server.post("/api/v1/messages", &request_body()).await.json["message_id"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(server.wait_ended(&id).await["status"], "completed");
    let (first_events, second_events) = (
        server.follow(&id, &[]).await.read_checked().await,
        server.follow(&id, &[]).await.read_checked().await,
    );
    assert_eq!(numbered_events(&first_events), numbered_events(&second_events));
}
