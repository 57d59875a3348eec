//! Stopping a message: by its user, and by clients that disconnect.

use serde_json::{Value, json};

use crate::client::{check, message, names, numbered, text};
use crate::mock::{Gate, Mock, Step, delta, finish};
use crate::server::Tambour;

fn ask() -> Value {
    json!({"text": "x", "dialect": "plain", "output_protocol": "jsonseq_v1"})
}

fn endless() -> Vec<Step> {
    vec![delta("Once upon "), delta("a time "), Step::Stall]
}

#[tokio::test]
async fn cancelling_stops_the_upstream_and_ends_well() {
    let mock = Mock::start(vec![endless()]).await;
    let server = Tambour::with(&mock).await;
    let mut stream = server.stream(&ask()).await;
    let mut events = stream.until("final_delta").await;
    let path = format!("/api/v1/messages/{}/cancel", message(&events));
    let answer = server.call("post", &path, None).await;
    assert_eq!((answer.status, &answer.json["status"]), (202, &json!("cancelling")));
    events.extend(stream.rest().await);
    check(&events);
    assert_eq!(events.last().unwrap().name, "completed");
    assert_eq!(events.last().unwrap().data["finish_reason"], "cancelled");
    mock.until(|calls| calls.deserted == 1).await;
    assert_eq!(server.ended(&message(&events)).await["status"], "cancelled");
    server.until_metric("tambour_running", 0).await;
    let again = server.call("post", &path, None).await;
    assert_eq!((again.status, &again.json["status"]), (200, &json!("cancelled")));
}

#[tokio::test]
async fn cancelling_before_the_upstream_answers() {
    let mock = Mock::start(vec![vec![Step::Stall]]).await;
    let server = Tambour::with(&mock).await;
    let id = server.post("/api/v1/messages", &ask()).await.json["message_id"].as_str().unwrap().to_owned();
    mock.until(|calls| calls.begun == 1).await;
    server.call("post", &format!("/api/v1/messages/{id}/cancel"), None).await;
    mock.until(|calls| calls.deserted == 1).await;
    let events = server.follow(&id, &[]).await.whole().await;
    assert_eq!(events.last().unwrap().data["finish_reason"], "cancelled");
}

#[tokio::test]
async fn a_client_that_vanishes_ends_the_call_without_grace() {
    let mock = Mock::start(vec![endless()]).await;
    let server = Tambour::start(&mock, |config| config.grace_ms = 0).await;
    let mut stream = server.stream(&ask()).await;
    let id = message(&stream.until("final_delta").await);
    drop(stream);
    mock.until(|calls| calls.deserted == 1).await;
    assert_eq!(server.ended(&id).await["status"], "cancelled");
    server.until_metric("tambour_running", 0).await;
    check(&server.follow(&id, &[]).await.whole().await);
}

#[tokio::test]
async fn a_client_that_vanishes_before_the_first_byte_ends_the_call() {
    let mock = Mock::start(vec![vec![Step::Stall]]).await;
    let server = Tambour::start(&mock, |config| config.grace_ms = 0).await;
    let stream = server.stream(&ask()).await;
    mock.until(|calls| calls.begun == 1).await;
    drop(stream);
    mock.until(|calls| calls.deserted == 1).await;
}

#[tokio::test]
async fn many_clients_that_vanish_leave_no_call_behind() {
    let mock = Mock::start(vec![endless()]).await;
    let server = Tambour::start(&mock, |config| config.grace_ms = 0).await;
    let mut streams = Vec::new();
    for _ in 0..50 {
        streams.push(server.stream(&ask()).await);
    }
    mock.until(|calls| calls.begun == 50).await;
    drop(streams);
    mock.until(|calls| calls.deserted == 50).await;
    server.until_metric("tambour_running", 0).await;
}

#[tokio::test]
async fn a_client_that_comes_back_in_time_goes_on() {
    let gate = Gate::new();
    let mut script = vec![delta("One "), delta("two "), Step::Wait(gate.clone()), delta("three")];
    script.extend(finish("stop"));
    let mock = Mock::start(vec![script]).await;
    let server = Tambour::start(&mock, |config| config.grace_ms = 20_000).await;
    let mut stream = server.stream(&ask()).await;
    let mut events = stream.until("final_delta").await;
    let last = events.last().unwrap().id.unwrap().to_string();
    let id = message(&events);
    // The client disconnects and comes back more than once.
    drop(stream);
    server.until_metric("tambour_streams_open", 0).await;
    drop(server.follow(&id, &[]).await);
    server.until_metric("tambour_streams_open", 0).await;
    let mut back = server.follow(&id, &[("last-event-id", &last)]).await;
    gate.open();
    let rest = back.rest().await;
    events.extend(rest);
    check(&events);
    assert_eq!(text(&events, "final_delta"), "One two three"); // J-036
    assert_eq!(mock.calls().deserted, 0);
    assert_eq!(names(&events).last(), Some(&"completed"));
}

#[tokio::test]
async fn grace_keeps_the_run_and_ends() {
    let gate = Gate::new();
    let mut script = vec![delta("One "), Step::Wait(gate.clone()), delta("two")];
    script.extend(finish("stop"));
    let mock = Mock::start(vec![script, endless()]).await;
    let server = Tambour::start(&mock, |config| config.grace_ms = 20_000).await;
    let mut stream = server.stream(&ask()).await;
    let id = message(&stream.until("final_delta").await);
    drop(stream);
    server.until_metric("tambour_streams_open", 0).await;
    // The message completes without a reader.
    gate.open();
    assert_eq!(server.ended(&id).await["reply"], "One two");
    assert_eq!(mock.calls().deserted, 0);
    // A short grace period does end.
    let server = Tambour::start(&mock, |config| config.grace_ms = 30).await;
    let mut stream = server.stream(&ask()).await;
    stream.until("final_delta").await;
    drop(stream);
    mock.until(|calls| calls.deserted == 1).await;
}

#[tokio::test]
async fn a_message_that_nobody_reads_runs_to_its_end() {
    let mock = Mock::start(vec![crate::mock::reply("Four.", 1)]).await;
    let server = Tambour::start(&mock, |config| config.grace_ms = 0).await;
    let id = server.post("/api/v1/messages", &ask()).await.json["message_id"].as_str().unwrap().to_owned();
    assert_eq!(server.ended(&id).await["status"], "completed");
    let (one, two) =
        (server.follow(&id, &[]).await.whole().await, server.follow(&id, &[]).await.whole().await);
    assert_eq!(numbered(&one), numbered(&two));
}
