//! Following a message from any number, during its run and afterwards, without loss or repetition.

use serde_json::{Value, json};
use tambour_server::store::{Batch, MessageRow, SqliteStore, Store as _};

use crate::client::{Event, check_stream, event_names, numbered_events, stream_message_id};
use crate::mock::{GOOD_REPLY, Gate, MockServer, Step, delta_step, finish_steps, reply_script};
use crate::server::TestServer;

fn request_body(protocol: &str) -> Value {
    json!({"text": "x", "dialect": "thinkingml", "output_protocol": protocol, "extensions": true, "findings": true})
}

/// A good reply with a pause in the middle, which lasts until the gate is open.
fn paused_script(gate: &Gate, size: usize) -> Vec<Step> {
    let mut steps = reply_script(GOOD_REPLY, size);
    let middle = steps.len() / 2;
    steps.insert(middle, Step::Wait(gate.clone()));
    steps
}

/// Resumes after each number and expects exactly the rest.
async fn resumes_everywhere(protocol: &str, size: usize) {
    let gate = Gate::new();
    let mock = MockServer::start(vec![paused_script(&gate, size)]).await;
    let server = TestServer::start_default(&mock).await;
    let mut first = server.open_stream(&request_body(protocol)).await;
    let event_name = if protocol == "legacy" { "content_delta" } else { "phase_delta" };
    let mut events = first.read_until(event_name).await;
    let id = stream_message_id(&events);
    let last = events.last().unwrap().id.unwrap();
    // During the run: header and query, from every number so far.
    let mut readers = Vec::new();
    for after in 0..=last {
        let cursor = after.to_string();
        readers.push((after, server.follow(&id, &[("last-event-id", &cursor)]).await));
        let path = format!("{id}/events?after={after}");
        readers.push((after, server.follow(path.trim_end_matches("/events"), &[]).await));
    }
    gate.open();
    events.extend(first.read_rest().await);
    check_stream(&events);
    let all_events = numbered_events(&events);
    let rest = |after: u64| {
        all_events.iter().filter(|event| event.id > Some(after)).cloned().collect::<Vec<Event>>()
    };
    for (after, mut reader) in readers {
        if reader.status == 200 {
            let rest_events = reader.read_rest().await;
            assert_eq!(numbered_events(&rest_events), rest(after), "after {after} while it ran"); // J-036
        }
    }
    // Afterwards, from every number there is.
    server.wait_ended(&id).await;
    let end = all_events.last().unwrap().id.unwrap();
    for after in 0..end {
        let cursor = after.to_string();
        let mut reader = server.follow(&id, &[("last-event-id", &cursor)]).await;
        let rest_events = reader.read_rest().await;
        assert!(reader.has_ended);
        assert_eq!(numbered_events(&rest_events), rest(after), "after {after} when it was over"); // J-036
        let mut joined_events: Vec<Event> =
            all_events.iter().filter(|event| event.id <= Some(after)).cloned().collect();
        joined_events.extend(rest_events);
        check_stream(&joined_events);
    }
    for after in [end.to_string(), (end + 1).to_string(), u64::MAX.to_string(), "9".repeat(40)] {
        let past_end = server.follow(&id, &[("last-event-id", &after)]).await;
        assert_eq!(past_end.status, 204, "{after}");
    }
}

#[tokio::test]
async fn resumes_jsonseq_at_every_number() {
    resumes_everywhere("jsonseq_v1", 11).await;
}

#[tokio::test]
async fn resumes_legacy_at_every_number() {
    resumes_everywhere("legacy", 11).await;
}

#[tokio::test]
async fn resumes_at_every_short_entry() {
    resumes_everywhere("legacy", 2).await;
}

#[tokio::test]
async fn malformed_cursors_are_refused() {
    let gate = Gate::new();
    let mock = MockServer::start(vec![paused_script(&gate, 11), reply_script(GOOD_REPLY, 50)]).await;
    let server = TestServer::start_default(&mock).await;
    let mut first = server.open_stream(&request_body("jsonseq_v1")).await;
    let id = stream_message_id(&first.read_until("phase_delta").await);
    for cursor in ["x", "-1", "1.5", "+1", "0x1", "1 2"] {
        let answer = server
            .call_with("get", &format!("/api/v1/messages/{id}/events"), None, &[("last-event-id", cursor)])
            .await;
        assert_eq!((answer.status, answer.problem_code()), (400, "malformed_cursor"), "{cursor}");
    }
    for cursor in ["%20", "+1", "1%20", "x"] {
        let answer = server.get(&format!("/api/v1/messages/{id}/events?after={cursor}")).await;
        assert_eq!((answer.status, answer.problem_code()), (400, "malformed_cursor"), "{cursor}");
    }
    // A number beyond the end of the log.
    assert_eq!(server.follow(&id, &[("last-event-id", "1000000")]).await.status, 204);
    gate.open();
    first.read_rest().await;
}

#[tokio::test]
async fn a_log_longer_than_memory_is_read_from_the_store() {
    let gate = Gate::new();
    let words: Vec<String> = (0..6000).map(|n| format!("word{n} ")).collect();
    let text = words.concat();
    let mut script = vec![delta_step("Begin. ")];
    script.extend(words.chunks(50).map(|words| delta_step(&words.concat())));
    script.push(Step::Wait(gate.clone()));
    script.extend(finish_steps("stop"));
    let mock = MockServer::start(vec![script]).await;
    let server = TestServer::start_default(&mock).await;
    let request = json!({"text": "x", "dialect": "plain", "output_protocol": "jsonseq_v1"});
    let acceptance = server.post("/api/v1/messages", &request).await;
    let id = acceptance.json["message_id"].as_str().unwrap();
    let mut early_reader = server.follow(id, &[]).await;
    let mut events = Vec::new();
    while !crate::client::joined_text(&events, "final_delta").contains("word5998") {
        events.push(early_reader.next_event().await.unwrap());
    }
    let late_reader = server.follow(id, &[]).await;
    gate.open();
    events.extend(early_reader.read_rest().await);
    check_stream(&events);
    let late_reader = late_reader.read_checked().await;
    assert_eq!(numbered_events(&late_reader), numbered_events(&events));
    assert_eq!(crate::client::joined_text(&late_reader, "final_delta"), format!("Begin. {text}").trim_end());
}

#[tokio::test]
async fn a_quiet_stream_has_heartbeats() {
    let gate = Gate::new();
    let mock = MockServer::start(vec![paused_script(&gate, 11)]).await;
    let server = TestServer::start(&mock, |config| config.heartbeat_ms = 20).await;
    let mut stream = server.open_stream(&request_body("jsonseq_v1")).await;
    let mut events = stream.read_until("phase_delta").await;
    for _ in 0..3 {
        let heartbeat = stream.read_until("heartbeat").await;
        assert!(heartbeat.last().unwrap().data["ts"].as_str().unwrap().ends_with('Z'));
        events.extend(heartbeat);
    }
    gate.open();
    events.extend(stream.read_rest().await);
    check_stream(&events); // J-024, J-036
    assert!(event_names(&events).ends_with(&["final_end", "completed"]));
}

#[tokio::test]
async fn looking_is_not_reading() {
    let gate = Gate::new();
    let mock = MockServer::start(vec![paused_script(&gate, 11)]).await;
    let server = TestServer::start(&mock, |config| config.grace_ms = 0).await;
    let acceptance = server.post("/api/v1/messages", &request_body("jsonseq_v1")).await;
    let id = acceptance.json["message_id"].as_str().unwrap();
    let path = format!("/api/v1/messages/{id}/events");
    // Requests that are no readers: their end does not cancel the message.
    assert_eq!(server.call("head", &path, None).await.status, 200);
    assert_eq!(server.call_with("get", &path, None, &[("last-event-id", "x")]).await.status, 400);
    assert_eq!(server.follow(id, &[("last-event-id", "1000000")]).await.status, 204);
    gate.open();
    assert_eq!(server.wait_ended(id).await["status"], "completed");
}

#[tokio::test]
async fn who_comes_back_at_the_end_of_a_running_message_waits() {
    for protocol in ["jsonseq_v1", "legacy"] {
        let gate = Gate::new();
        let mut script = vec![delta_step("on"), Step::Wait(gate.clone()), delta_step(" and on")];
        script.extend(finish_steps("stop"));
        let mock = MockServer::start(vec![script]).await;
        let server = TestServer::start_default(&mock).await;
        let mut request = request_body(protocol);
        request["dialect"] = "plain".into();
        let mut first = server.open_stream(&request).await;
        let event_name = if protocol == "legacy" { "content_delta" } else { "final_delta" };
        let events = first.read_until(event_name).await;
        let last = events.last().unwrap().id.unwrap();
        drop(first);
        // Nothing comes after it yet, and it is not over: 204 would tell a browser never to come back.
        let mut reader =
            server.follow(&stream_message_id(&events), &[("last-event-id", &last.to_string())]).await;
        assert_eq!(reader.status, 200, "{protocol}"); // J-036
        let greeting = [reader.next_event().await.unwrap(), reader.next_event().await.unwrap()];
        assert_eq!(greeting[0].data["state"], "running");
        assert_eq!(greeting[1].name, "heartbeat");
        gate.open();
        let rest = reader.read_rest().await;
        assert!(reader.has_ended && numbered_events(&rest).iter().all(|event| event.id > Some(last)));
        assert_eq!(crate::client::joined_text(&rest, event_name), " and on");
        assert_eq!(event_names(&rest).last(), Some(&"completed"));
    }
}

#[tokio::test]
async fn a_log_without_an_end_is_no_quiet_success() {
    let mock = MockServer::start(vec![reply_script("x", 1)]).await;
    let server = TestServer::start_default(&mock).await;
    let folder = server.stop().await;
    let config = crate::server::test_config(&folder);
    // Damaged data: the message counts as over, and its log has no end.
    let store = SqliteStore::open(&config.database_file().unwrap(), false).await.unwrap();
    let request = json!({"text": "x", "dialect": "plain", "output_protocol": "jsonseq_v1"});
    let row = MessageRow {
        id: "msg_damaged".to_owned(),
        conversation_id: "conv_damaged".to_owned(),
        request_id: "req".to_owned(),
        owner: "local".to_owned(),
        created: String::new(),
        status: "completed".to_owned(),
        request: request.to_string(),
        ..MessageRow::default()
    };
    let mut lease = crate::journal::begin(&store, &row).await;
    let mut batch = Batch::new(1);
    batch.push_event("final_delta", |out| out.extend_from_slice(b"{\"text\":\"half\"}"));
    lease.append(batch).await.into_result().unwrap();
    drop(lease);
    store.close().await;
    let server = TestServer::serve(folder, config).await;
    let mut stream = server.follow(&row.id, &[]).await;
    let events = stream.read_rest().await;
    assert_eq!(event_names(&events), ["final_delta"]);
    assert!(!stream.has_ended, "the body must not end as if all was well"); // J-035
}
