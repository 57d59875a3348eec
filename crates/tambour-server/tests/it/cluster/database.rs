//! A database that is gone for a moment, or for too long.

use std::time::Duration;

use serde_json::{Value, json};

use super::proxy::Proxy;
use super::{LEASE_SECONDS, Member};
use crate::client::{Event, check_stream, event_names, joined_text, stream_message_id};
use crate::mock::{Gate, MockServer, Step, delta_step, finish_steps};
use crate::postgres::Cluster;

fn request() -> Value {
    json!({"text": "x", "dialect": "plain", "output_protocol": "jsonseq_v1"})
}

/// Frames of numbered events.
fn frames(events: &[Event]) -> Vec<&str> {
    events.iter().filter(|event| event.id.is_some()).map(|event| event.frame.as_str()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_go_on_when_the_database_was_gone_for_a_moment() {
    let gate = Gate::new();
    let mut script =
        vec![delta_step("one "), Step::Wait(gate.clone()), delta_step("two "), delta_step("three")];
    script.extend(finish_steps("stop"));
    let mock = MockServer::start(vec![script]).await;
    let postgres = Cluster::start().await;
    let database = postgres.new_database().await;
    let members = [Member::start(&database, &mock), Member::start(&database, &mock)];
    let mut own = members[0].server.open_stream(&request()).await;
    let mut seen = own.read_until("final_delta").await;
    let id = stream_message_id(&seen);
    postgres.stop_server();
    // The model goes on: what it writes is shown once the database has it.
    gate.open();
    drop(postgres.start_server().await);
    seen.extend(own.read_rest().await);
    check_stream(&seen);
    assert_eq!(event_names(&seen).last(), Some(&"completed"), "{seen:#?}");
    assert_eq!(joined_text(&seen, "final_delta"), "one two three");
    let log = members[1].server.follow(&id, &[]).await.read_rest().await;
    assert_eq!(frames(&log), frames(&seen));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_shown_while_the_database_is_gone_for_longer_than_the_lease() {
    let gate = Gate::new();
    let mut script = vec![delta_step("one "), Step::Wait(gate.clone()), delta_step("two ")];
    script.push(Step::WaitDisconnect);
    let mock = MockServer::start(vec![script]).await;
    let postgres = Cluster::start().await;
    let database = postgres.new_database().await;
    let members = [Member::start(&database, &mock), Member::start(&database, &mock)];
    let mut own = members[0].server.open_stream(&request()).await;
    let mut seen = own.read_until("final_delta").await;
    let id = stream_message_id(&seen);
    postgres.stop_server();
    gate.open();
    // Not a wait for luck: nothing may come in this time.
    tokio::time::sleep(Duration::from_secs(u64::from(LEASE_SECONDS))).await;
    assert_eq!(members[0].server.get("/readyz").await.status, 503);
    drop(postgres.start_server().await);
    let record = members[1].server.wait_ended(&id).await;
    assert_eq!(record["status"], "failed", "{record}");
    while let Some(event) = own.next_event_or_cut().await {
        seen.push(event);
    }
    let log = members[1].server.follow(&id, &[]).await.read_rest().await;
    check_stream(&log);
    assert!(frames(&log).starts_with(&frames(&seen)), "{seen:#?}\n{log:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_that_was_seen_is_lost_when_a_synchronous_standby_takes_over() {
    let gate = Gate::new();
    let mut script =
        vec![delta_step("one "), Step::Wait(gate.clone()), delta_step("two "), delta_step("three")];
    script.extend(finish_steps("stop"));
    let mock = MockServer::start(vec![script]).await;
    let primary = Cluster::start().await;
    let database = primary.new_database().await;
    let standby = primary.start_standby().await;
    let proxy = Proxy::start(primary.port()).await;
    let url = proxy.database_url(&database);
    let members = [Member::start(&url, &mock), Member::start(&url, &mock)];
    let mut streams = Vec::new();
    for at in 0..8 {
        let mut stream = members[at % 2].server.open_stream(&request()).await;
        let seen = stream.read_until("final_delta").await;
        streams.push((stream, seen));
    }
    primary.stop_server();
    standby.promote().await;
    proxy.set_target(standby.port());
    gate.open();
    for (mut stream, mut seen) in streams {
        let id = stream_message_id(&seen);
        while let Some(event) = stream.next_event_or_cut().await {
            seen.push(event);
        }
        members[1].server.wait_ended(&id).await;
        let log = members[1].server.follow(&id, &[]).await.read_rest().await;
        check_stream(&log);
        assert!(frames(&log).starts_with(&frames(&seen)), "{seen:#?}\n{log:#?}");
    }
}
