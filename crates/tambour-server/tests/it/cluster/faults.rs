//! Servers that are killed or stopped while readers everywhere look on.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{LEASE_SECONDS, Member, start_members};
use crate::client::{Event, check_stream, event_names, joined_text, numbered_events, stream_message_id};
use crate::mock::{Gate, MockServer, Step, delta_step, reply_script};

/// Longest time from a death to the end of its messages: the lease, and two looks at the database.
const TAKEOVER: Duration = Duration::from_secs(LEASE_SECONDS as u64 + 3);

fn request() -> Value {
    json!({"text": "x", "dialect": "plain", "output_protocol": "jsonseq_v1"})
}

/// Frames of numbered events.
fn frames(events: &[Event]) -> Vec<&str> {
    events.iter().filter(|event| event.id.is_some()).map(|event| event.frame.as_str()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_of_a_killed_server_ends_on_another() {
    let mock = MockServer::start(vec![vec![delta_step("one "), Step::WaitDisconnect]]).await;
    let (_, mut members) = start_members(3, &mock).await;
    let mut own = members[0].server.open_stream(&request()).await;
    let seen = own.read_until("final_delta").await;
    let id = stream_message_id(&seen);
    let mut remote = members[1].server.follow(&id, &[]).await;
    let mut remote_seen = remote.read_until("final_delta").await;
    members[0].kill();
    let death = Instant::now();
    remote_seen.extend(remote.read_rest().await);
    assert!(death.elapsed() < TAKEOVER, "{:?}", death.elapsed());
    check_stream(&remote_seen);
    let end = remote_seen.last().unwrap();
    assert_eq!((end.name.as_str(), &end.data["code"]), ("error", &json!("interrupted")));
    // The reader of the killed server has seen a part of the same log.
    assert_eq!(frames(&seen)[..], frames(&remote_seen)[..frames(&seen).len()]);
    let late_seen = members[2].server.follow(&id, &[]).await.read_rest().await;
    assert_eq!(frames(&late_seen), frames(&remote_seen));
    assert_eq!(members[2].server.wait_ended(&id).await["status"], "failed");
    // Its model is asked by nobody any more.
    assert_eq!(mock.calls().started, 1);
    let takeovers = [
        members[1].server.metric("tambour_takeovers_total").await,
        members[2].server.metric("tambour_takeovers_total").await,
    ];
    assert_eq!(takeovers.iter().sum::<u64>(), 1, "{takeovers:?}");
    assert!(members[1].server.metric("tambour_lease_age_ms").await < u64::from(LEASE_SECONDS) * 600);
    assert_eq!(members[1].server.metric("tambour_runs_held").await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_was_stopped_shows_nothing_that_another_has_not() {
    let gate = Gate::new();
    let mut script = vec![delta_step("one "), Step::Wait(gate.clone())];
    script.extend((0..50).map(|at| Step::After(2, Box::new(delta_step(&format!("late {at} "))))));
    script.push(Step::WaitDisconnect);
    let mock = MockServer::start(vec![script]).await;
    let (_, members) = start_members(2, &mock).await;
    let mut own = members[0].server.open_stream(&request()).await;
    let mut seen = own.read_until("final_delta").await;
    let id = stream_message_id(&seen);
    members[0].signal("STOP");
    // The model goes on, and the other server ends the message.
    gate.open();
    let record = members[1].server.wait_ended(&id).await;
    assert_eq!(record["status"], "failed", "{record}");
    members[0].signal("CONT");
    while let Some(event) = own.next_event_or_cut().await {
        seen.push(event);
    }
    let log = members[1].server.follow(&id, &[]).await.read_rest().await;
    check_stream(&log);
    assert!(frames(&log).starts_with(&frames(&seen)), "{seen:#?}\n{log:#?}");
    assert_eq!(event_names(&log).iter().filter(|name| matches!(**name, "completed" | "error")).count(), 1);
    // The server goes on with other messages.
    let answer = members[0].server.post("/api/v1/messages", &request()).await;
    assert_eq!(answer.status, 202, "{}", answer.text);
    assert!(numbered_events(&log).len() >= numbered_events(&seen).len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_of_which_nobody_has_seen_anything_is_asked_once_more() {
    let silence = vec![Step::WaitDisconnect];
    let mock =
        MockServer::start(vec![silence.clone(), reply_script("hello", 5), silence.clone(), silence]).await;
    let (database, mut members) = start_members(3, &mock).await;
    let answer = members[0].server.post("/api/v1/messages", &request()).await;
    let id = answer.json["message_id"].as_str().unwrap().to_owned();
    mock.wait_until(|calls| calls.started == 1).await;
    let remote = members[1].server.follow(&id, &[]).await;
    members[0].kill();
    let seen = remote.read_checked().await;
    assert_eq!(event_names(&seen).last(), Some(&"completed"), "{seen:#?}");
    assert_eq!(joined_text(&seen, "final_delta"), "hello");
    assert_eq!(mock.calls().started, 2);
    // Once: if the second server dies, too, the message ends.
    let answer = members[1].server.post("/api/v1/messages", &request()).await;
    let id = answer.json["message_id"].as_str().unwrap().to_owned();
    mock.wait_until(|calls| calls.started == 3).await;
    members[1].kill();
    mock.wait_until(|calls| calls.started == 4).await;
    let late = Member::start(&database, &mock);
    members[2].kill();
    let record = late.server.wait_ended(&id).await;
    assert_eq!(record["status"], "failed", "{record}");
    assert_eq!(mock.calls().started, 4);
}
