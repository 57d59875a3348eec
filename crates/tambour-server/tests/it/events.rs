//! Following a message from any number, during its run and afterwards, without loss or repetition.

use serde_json::{Value, json};
use tambour_server::store::{Batch, MessageRow, SqliteStore, Store as _};

use crate::client::{Event, check, message, names, numbered};
use crate::mock::{GOOD, Gate, Mock, Step, delta, finish, reply};
use crate::server::Tambour;

fn asked(protocol: &str) -> Value {
    json!({"text": "x", "dialect": "thinkingml", "output_protocol": protocol, "extensions": true, "findings": true})
}

/// A good reply with a pause in the middle, which lasts until the gate is open.
fn paused(gate: &Gate, size: usize) -> Vec<Step> {
    let mut steps = reply(GOOD, size);
    let middle = steps.len() / 2;
    steps.insert(middle, Step::Wait(gate.clone()));
    steps
}

/// Resumes after each number and expects exactly the rest.
async fn resumes_everywhere(protocol: &str, size: usize) {
    let gate = Gate::new();
    let mock = Mock::start(vec![paused(&gate, size)]).await;
    let server = Tambour::with(&mock).await;
    let mut first = server.stream(&asked(protocol)).await;
    let seen = if protocol == "legacy" { "content_delta" } else { "phase_delta" };
    let mut events = first.until(seen).await;
    let id = message(&events);
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
    events.extend(first.rest().await);
    check(&events);
    let all = numbered(&events);
    let rest =
        |after: u64| all.iter().filter(|event| event.id > Some(after)).cloned().collect::<Vec<Event>>();
    for (after, mut reader) in readers {
        if reader.status == 200 {
            let got = reader.rest().await;
            assert_eq!(numbered(&got), rest(after), "after {after} while it ran"); // J-036
        }
    }
    // Afterwards, from every number there is.
    server.ended(&id).await;
    let end = all.last().unwrap().id.unwrap();
    for after in 0..end {
        let cursor = after.to_string();
        let mut reader = server.follow(&id, &[("last-event-id", &cursor)]).await;
        let got = reader.rest().await;
        assert!(reader.over);
        assert_eq!(numbered(&got), rest(after), "after {after} when it was over"); // J-036
        let mut joined: Vec<Event> = all.iter().filter(|event| event.id <= Some(after)).cloned().collect();
        joined.extend(got);
        check(&joined);
    }
    for after in [end.to_string(), (end + 1).to_string(), u64::MAX.to_string(), "9".repeat(40)] {
        let past = server.follow(&id, &[("last-event-id", &after)]).await;
        assert_eq!(past.status, 204, "{after}");
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
    let mock = Mock::start(vec![paused(&gate, 11), reply(GOOD, 50)]).await;
    let server = Tambour::with(&mock).await;
    let mut first = server.stream(&asked("jsonseq_v1")).await;
    let id = message(&first.until("phase_delta").await);
    for cursor in ["x", "-1", "1.5", "+1", "0x1", "1 2"] {
        let answer = server
            .call_with("get", &format!("/api/v1/messages/{id}/events"), None, &[("last-event-id", cursor)])
            .await;
        assert_eq!((answer.status, answer.problem()), (400, "malformed_cursor"), "{cursor}");
    }
    for cursor in ["%20", "+1", "1%20", "x"] {
        let answer = server.get(&format!("/api/v1/messages/{id}/events?after={cursor}")).await;
        assert_eq!((answer.status, answer.problem()), (400, "malformed_cursor"), "{cursor}");
    }
    // A number beyond the end of the log.
    assert_eq!(server.follow(&id, &[("last-event-id", "1000000")]).await.status, 204);
    gate.open();
    first.rest().await;
}

#[tokio::test]
async fn a_log_longer_than_memory_is_read_from_the_store() {
    let gate = Gate::new();
    let words: Vec<String> = (0..6000).map(|n| format!("word{n} ")).collect();
    let text = words.concat();
    let mut script = vec![delta("Begin. ")];
    script.extend(words.chunks(50).map(|words| delta(&words.concat())));
    script.push(Step::Wait(gate.clone()));
    script.extend(finish("stop"));
    let mock = Mock::start(vec![script]).await;
    let server = Tambour::with(&mock).await;
    let ask = json!({"text": "x", "dialect": "plain", "output_protocol": "jsonseq_v1"});
    let accepted = server.post("/api/v1/messages", &ask).await;
    let id = accepted.json["message_id"].as_str().unwrap();
    let mut early = server.follow(id, &[]).await;
    let mut events = Vec::new();
    while !crate::client::text(&events, "final_delta").contains("word5998") {
        events.push(early.event().await.unwrap());
    }
    let late = server.follow(id, &[]).await;
    gate.open();
    events.extend(early.rest().await);
    check(&events);
    let late = late.whole().await;
    assert_eq!(numbered(&late), numbered(&events));
    assert_eq!(crate::client::text(&late, "final_delta"), format!("Begin. {text}").trim_end());
}

#[tokio::test]
async fn a_quiet_stream_has_heartbeats() {
    let gate = Gate::new();
    let mock = Mock::start(vec![paused(&gate, 11)]).await;
    let server = Tambour::start(&mock, |config| config.heartbeat_ms = 20).await;
    let mut stream = server.stream(&asked("jsonseq_v1")).await;
    let mut events = stream.until("phase_delta").await;
    for _ in 0..3 {
        let beat = stream.until("heartbeat").await;
        assert!(beat.last().unwrap().data["ts"].as_str().unwrap().ends_with('Z'));
        events.extend(beat);
    }
    gate.open();
    events.extend(stream.rest().await);
    check(&events); // J-024, J-036
    assert!(names(&events).ends_with(&["final_end", "completed"]));
}

#[tokio::test]
async fn looking_is_not_reading() {
    let gate = Gate::new();
    let mock = Mock::start(vec![paused(&gate, 11)]).await;
    let server = Tambour::start(&mock, |config| config.grace_ms = 0).await;
    let accepted = server.post("/api/v1/messages", &asked("jsonseq_v1")).await;
    let id = accepted.json["message_id"].as_str().unwrap();
    let path = format!("/api/v1/messages/{id}/events");
    // Requests that are no readers: their end does not cancel the message.
    assert_eq!(server.call("head", &path, None).await.status, 200);
    assert_eq!(server.call_with("get", &path, None, &[("last-event-id", "x")]).await.status, 400);
    assert_eq!(server.follow(id, &[("last-event-id", "1000000")]).await.status, 204);
    gate.open();
    assert_eq!(server.ended(id).await["status"], "completed");
}

#[tokio::test]
async fn who_comes_back_at_the_end_of_a_running_message_waits() {
    for protocol in ["jsonseq_v1", "legacy"] {
        let gate = Gate::new();
        let mut script = vec![delta("on"), Step::Wait(gate.clone()), delta(" and on")];
        script.extend(finish("stop"));
        let mock = Mock::start(vec![script]).await;
        let server = Tambour::with(&mock).await;
        let mut ask = asked(protocol);
        ask["dialect"] = "plain".into();
        let mut first = server.stream(&ask).await;
        let seen = if protocol == "legacy" { "content_delta" } else { "final_delta" };
        let events = first.until(seen).await;
        let last = events.last().unwrap().id.unwrap();
        drop(first);
        // The log has no later entry yet and is not over: 204 would tell a browser never to reconnect.
        let mut back = server.follow(&message(&events), &[("last-event-id", &last.to_string())]).await;
        assert_eq!(back.status, 200, "{protocol}"); // J-036
        let greeting = [back.event().await.unwrap(), back.event().await.unwrap()];
        assert_eq!(greeting[0].data["state"], "running");
        assert_eq!(greeting[1].name, "heartbeat");
        gate.open();
        let rest = back.rest().await;
        assert!(back.over && numbered(&rest).iter().all(|event| event.id > Some(last)));
        assert_eq!(crate::client::text(&rest, seen), " and on");
        assert_eq!(names(&rest).last(), Some(&"completed"));
    }
}

#[tokio::test]
async fn a_log_without_an_end_is_no_quiet_success() {
    let mock = Mock::start(vec![reply("x", 1)]).await;
    let server = Tambour::with(&mock).await;
    let folder = server.stopped().await;
    let config = crate::server::config(&folder);
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
    let server = Tambour::serve(folder, config).await;
    let mut stream = server.follow(&row.id, &[]).await;
    let events = stream.rest().await;
    assert_eq!(names(&events), ["final_delta"]);
    assert!(!stream.over, "the body must not end as if all was well"); // J-035
}
