//! Turns of dialogues: stopped, cancelled, deleted, failed, and retried by clients that disconnect.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::client::{
    Event, EventStream, check_stream, event_names, joined_text, numbered_events, stream_message_id,
};
use crate::dialogues::{SAY_ACTION, halting_script, post_text, round_answer, start_dialogue, turn_of};
use crate::mock::{Gate, MockServer, Step, delta_step, finish_steps, reply_script, response_script};
use crate::promises::post_until_answered;
use crate::server::{Answer, TestServer, with_timeout};
use crate::server_process::ServerProcess;

fn input_path(id: &str) -> String {
    format!("/api/v1/dialogues/{id}/input")
}

async fn open_stream(server: &TestServer, id: &str, body: &Value) -> EventStream {
    let mut body = body.clone();
    body["stream"] = true.into();
    EventStream::open(server.address, "POST", &input_path(id), &[], Some(&body.to_string())).await
}

async fn cancel_turn(server: &TestServer, id: &str) -> Answer {
    server.call("post", &format!("/api/v1/dialogues/{id}/cancel"), None).await
}

/// The only end of a stream, which must be valid.
fn end_event(events: &[Event]) -> (&str, &Value) {
    check_stream(events);
    let last = events.last().unwrap();
    (&last.name, &last.data)
}

#[tokio::test]
async fn a_server_that_stops_asks_no_model_for_turns_that_wait() {
    let gate = Gate::new();
    let mock = MockServer::start(vec![
        halting_script("一二", &gate),
        reply_script(&round_answer(30, false, "never"), 9),
    ])
    .await;
    let mut server = TestServer::start_default(&mock).await;
    let id = start_dialogue(&server, &[SAY_ACTION]).await;
    let mut first = open_stream(&server, &id, &json!({"text": "甲"})).await;
    let mut events = first.read_until("final_delta").await;
    let mut second = open_stream(&server, &id, &json!({"text": "乙"})).await;
    second.next_event().await;
    let third = server.begin_post(&input_path(&id), &json!({"text": "丙"})).await;
    server.wait_for_metric("tambour_running", 3).await;
    server.request_stop();
    // Those that wait end at once, the one that runs when it is done.
    let second_events = with_timeout(second.read_rest()).await;
    let last = second_events.last().unwrap();
    assert_eq!((last.name.as_str(), &last.data["code"]), ("error", &json!("interrupted")));
    assert_eq!(last.data["retryable"], true);
    let refusal: Value = serde_json::from_str(&third.into_text().await).unwrap();
    assert_eq!(refusal["code"], "closing");
    gate.open();
    events.extend(with_timeout(first.read_rest()).await);
    assert_eq!(end_event(&events).0, "completed");
    server.stop().await;
    assert_eq!(mock.requests().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_that_panics_has_one_end_and_its_dialogue_goes_on() {
    let replies =
        [round_answer(30, false, "一"), round_answer(40, false, "二"), round_answer(50, false, "三")];
    let mock = MockServer::start(replies.iter().map(|text| reply_script(text, 9)).collect()).await;
    let process = ServerProcess::start(&mock, false);
    let server = &process.server;
    let id = start_dialogue(server, &[&SAY_ACTION.replace("max_rounds: 3", "max_rounds: 9")]).await;
    let panic_file = process.make_panic_at("turn");
    let input_body = json!({"text": "甲", "request_id": "r"});
    let events =
        with_timeout(async { open_stream(server, &id, &input_body).await.read_checked().await }).await;
    let (name, data) = end_event(&events);
    assert_eq!((name, &data["code"], &data["retryable"]), ("error", &json!("internal_error"), &json!(true)));
    assert_eq!(joined_text(&events, "final_delta"), "一");
    // Without a stream the failure is a problem document.
    let failed_answer = server.post(&input_path(&id), &json!({"text": "甲"})).await;
    assert_eq!((failed_answer.status, failed_answer.problem_code()), (500, "internal_error"));
    server.wait_for_metric("tambour_running", 0).await;
    std::fs::remove_file(panic_file).unwrap();
    // The same input continues the recorded turn, and later inputs follow it.
    let events = open_stream(server, &id, &input_body).await.read_checked().await;
    assert_eq!((end_event(&events).0, &turn_of(&events)["ai_message"]), ("completed", &json!("三")));
    assert_eq!(post_text(server, &id, "乙").await["success"], true);
    let history = server.get(&format!("/api/v1/dialogues/{id}")).await.json["history"].clone();
    let texts: Vec<&str> =
        history.as_array().unwrap().iter().map(|message| message["content"].as_str().unwrap()).collect();
    assert_eq!(texts, ["甲", "三", "乙", "三"]);
    assert_eq!(server.call("delete", &format!("/api/v1/dialogues/{id}"), None).await.status, 204);
}

#[tokio::test]
async fn a_turn_that_is_cancelled_does_not_count() {
    let gate = Gate::new();
    let mock = MockServer::start(vec![
        halting_script("一二", &gate),
        vec![Step::WaitDisconnect],
        vec![Step::WaitDisconnect],
        reply_script(&round_answer(30, false, "三"), 9),
    ])
    .await;
    let server = TestServer::start_default(&mock).await;
    let id = start_dialogue(&server, &[SAY_ACTION]).await;
    let idle_cancel = cancel_turn(&server, &id).await;
    assert_eq!(
        (idle_cancel.status, &idle_cancel.json),
        (200, &json!({"dialogue_id": id, "status": "active"}))
    );
    // In the middle of its message.
    let mut stream = open_stream(&server, &id, &json!({"text": "甲"})).await;
    let mut events = stream.read_until("final_delta").await;
    let cancellation = cancel_turn(&server, &id).await;
    assert_eq!(
        (cancellation.status, &cancellation.json),
        (202, &json!({"dialogue_id": id, "status": "cancelling"}))
    );
    events.extend(with_timeout(stream.read_rest()).await);
    let (name, data) = end_event(&events);
    assert_eq!((name, &data["finish_reason"]), ("completed", &json!("cancelled"))); // X-014
    assert_eq!(turn_of(&events)["error"]["code"], "cancelled");
    mock.wait_until(|calls| calls.abandoned == 1).await;
    // Before the model has answered.
    let mut stream = open_stream(&server, &id, &json!({"text": "乙"})).await;
    mock.wait_until(|calls| calls.started == 2).await;
    assert_eq!(cancel_turn(&server, &id).await.status, 202);
    let events = with_timeout(stream.read_rest()).await;
    let (name, data) = end_event(&events);
    assert_eq!(
        (name, &data["finish_reason"]),
        ("completed", &json!("cancelled")),
        "{:?}",
        event_names(&events)
    ); // X-014
    mock.wait_until(|calls| calls.abandoned == 2).await;
    // Without a stream; what waits behind it has its turn.
    let third = server.begin_post(&input_path(&id), &json!({"text": "丙"})).await;
    mock.wait_until(|calls| calls.started == 3).await;
    let fourth = server.begin_post(&input_path(&id), &json!({"text": "丁"})).await;
    server.wait_for_metric("tambour_running", 2).await;
    assert_eq!(cancel_turn(&server, &id).await.status, 202);
    let third: Value = serde_json::from_str(&third.into_text().await).unwrap();
    assert_eq!((&third["success"], &third["error"]["code"]), (&json!(false), &json!("cancelled")));
    assert_eq!((&third["error"]["retryable"], &third["status"]), (&json!(true), &json!("active")));
    let fourth: Value = serde_json::from_str(&fourth.into_text().await).unwrap();
    assert_eq!(fourth["ai_message"], "三");
    assert_eq!(fourth["metadata"]["current_round"], 1, "{fourth}"); // S-065
    let history = server.get(&format!("/api/v1/dialogues/{id}")).await.json["history"].clone();
    assert_eq!((&history[0]["content"], history.as_array().unwrap().len()), (&json!("丁"), 2), "{history}"); // S-063
}

#[tokio::test]
async fn who_deletes_a_dialogue_waits_for_no_model() {
    let gate = Gate::new();
    let mock = MockServer::start(vec![halting_script("一二", &gate)]).await;
    let server = TestServer::start_default(&mock).await;
    let id = start_dialogue(&server, &[SAY_ACTION]).await;
    let mut first = open_stream(&server, &id, &json!({"text": "甲"})).await;
    let mut events = first.read_until("final_delta").await;
    let mut second = open_stream(&server, &id, &json!({"text": "乙"})).await;
    second.next_event().await;
    let third = server.begin_post(&input_path(&id), &json!({"text": "丙"})).await;
    server.wait_for_metric("tambour_running", 3).await;
    let path = format!("/api/v1/dialogues/{id}");
    assert_eq!(server.call("delete", &path, None).await.status, 204);
    events.extend(with_timeout(first.read_rest()).await);
    assert_eq!(end_event(&events).1["finish_reason"], "cancelled"); // X-014
    let second_events = with_timeout(second.read_rest()).await;
    assert_eq!(second_events.last().unwrap().data["code"], "not_found");
    let third: Value = serde_json::from_str(&third.into_text().await).unwrap();
    assert_eq!(third["code"], "not_found");
    assert_eq!(server.get(&path).await.status, 404);
    mock.wait_until(|calls| calls.abandoned == 1).await;
    server.wait_for_metric("tambour_running", 0).await;
    assert_eq!(mock.calls().started, 1);
}

#[tokio::test]
async fn streams_of_turns_are_sent_like_those_of_messages() {
    let gate = Gate::new();
    let mock = MockServer::start(vec![vec![Step::WaitDisconnect], halting_script("一二", &gate)]).await;
    let server = TestServer::start(&mock, |config| config.heartbeat_ms = 20).await;
    let message = server.open_stream(&json!({"text": "x", "dialect": "plain"})).await;
    mock.wait_until(|calls| calls.started == 1).await;
    let id = start_dialogue(&server, &[SAY_ACTION]).await;
    let mut stream = open_stream(&server, &id, &json!({"text": "甲"})).await;
    for header in ["content-type", "cache-control", "x-accel-buffering"] {
        assert!(stream.header(header).is_some(), "{header}");
        assert_eq!(stream.header(header), message.header(header), "{header}");
    }
    let mut events = stream.read_until("heartbeat").await;
    events.extend(stream.read_until("heartbeat").await);
    let heartbeat = events.last().unwrap();
    assert!(heartbeat.data["ts"].is_string() && heartbeat.id.is_none(), "{heartbeat:?}"); // J-036
    gate.open();
    events.extend(with_timeout(stream.read_rest()).await);
    assert_eq!(end_event(&events).0, "completed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_word_makes_one_turn_for_clients_that_go_away() {
    const REQUEST_IDS: usize = 48;
    let action = SAY_ACTION.replace("max_rounds: 3", "max_rounds: 20, require_acknowledgment: false");
    for stream in [false, true] {
        let mock = MockServer::start(
            (0..REQUEST_IDS).map(|_| reply_script(&round_answer(30, false, "一"), 9)).collect(),
        )
        .await;
        let server = Arc::new(TestServer::start_default(&mock).await);
        let id = start_dialogue(&server, &[action.as_str(); 3]).await;
        let body = json!({"text": "甲", "stream": stream}).to_string();
        let answers = post_until_answered(&server, &input_path(&id), body, REQUEST_IDS).await;
        assert_eq!(answers.len(), REQUEST_IDS);
        server.wait_for_metric("tambour_running", 0).await;
        let snapshot = server.get(&format!("/api/v1/dialogues/{id}")).await.json;
        let history = snapshot["history"].as_array().unwrap();
        let user_messages = history.iter().filter(|message| message["role"] == "user").count();
        assert_eq!(
            (user_messages, history.len(), mock.calls().started),
            (REQUEST_IDS, 2 * REQUEST_IDS, REQUEST_IDS),
            "stream: {stream}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_takes_nothing_of_a_turn_that_is_over_is_cut_off() {
    let long = "a piece of four kilobytes ".repeat(500_000);
    let mock = MockServer::start(vec![reply_script(&round_answer(30, false, &long), 64 << 10)]).await;
    let server = TestServer::start(&mock, |config| config.reader_idle_ms = 300).await;
    let id = start_dialogue(&server, &[SAY_ACTION]).await;
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    // A small receive buffer of the system.
    socket.set_recv_buffer_size(4 << 10).unwrap();
    let mut connection = with_timeout(socket.connect(server.address)).await.unwrap();
    let body = json!({"text": "甲", "stream": true}).to_string();
    let head = format!(
        "POST {} HTTP/1.1\r\nhost: {}\r\ncontent-length: {}\r\n\r\n",
        input_path(&id),
        server.address,
        body.len()
    );
    connection.write_all((head + &body).as_bytes()).await.unwrap();
    mock.wait_until(|calls| calls.ended == 1).await;
    server.wait_for_metric("tambour_running", 0).await;
    server.wait_for_metric("tambour_streams_open", 0).await;
    let mut received = Vec::new();
    let _ = with_timeout(connection.read_to_end(&mut received)).await;
    assert!(
        !String::from_utf8_lossy(&received).contains("event: completed"),
        "it was cut off before the end"
    );
}

async fn follow_turn(
    server: &TestServer,
    id: &str,
    turn: &str,
    after: &str,
    headers: &[(&str, &str)],
) -> EventStream {
    let path = format!("/api/v1/dialogues/{id}/turns/{turn}/events{after}");
    let headers: Vec<(String, String)> =
        headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    EventStream::open(server.address, "GET", &path, &headers, None).await
}

#[tokio::test]
async fn a_turn_is_followed_from_every_number() {
    let gate = Gate::new();
    let mock = MockServer::start(vec![halting_script("一二三四", &gate)]).await;
    let server = TestServer::start_default(&mock).await;
    let id = start_dialogue(&server, &[SAY_ACTION]).await;
    let mut first = open_stream(&server, &id, &json!({"text": "甲", "extensions": true})).await;
    let mut events = first.read_until("final_delta").await;
    let turn = stream_message_id(&events);
    let last = events.last().unwrap().id.unwrap();
    // During the run: header and query, from every number so far.
    let mut readers = Vec::new();
    for after in 0..=last {
        let cursor = after.to_string();
        readers.push((after, follow_turn(&server, &id, &turn, "", &[("last-event-id", &cursor)]).await));
        readers.push((after, follow_turn(&server, &id, &turn, &format!("?after={after}"), &[]).await));
    }
    gate.open();
    events.extend(first.read_rest().await);
    check_stream(&events);
    assert_eq!(event_names(&events).last(), Some(&"completed"));
    let all_events = numbered_events(&events);
    let rest = |after: u64| {
        all_events.iter().filter(|event| event.id > Some(after)).cloned().collect::<Vec<Event>>()
    };
    for (after, mut reader) in readers {
        assert_eq!(
            numbered_events(&with_timeout(reader.read_rest()).await),
            rest(after),
            "after {after} while it ran"
        ); // J-036
    }
    server.wait_for_metric("tambour_running", 0).await;
    // Afterwards, from every number before the end; the status with the turn comes again.
    let (end, before) = all_events.split_last().unwrap();
    let end = end.id.unwrap();
    for after in before.iter().filter_map(|event| event.id) {
        let mut reader = follow_turn(&server, &id, &turn, &format!("?after={after}"), &[]).await;
        let rest_events = with_timeout(reader.read_rest()).await;
        assert!(reader.has_ended);
        assert_eq!(numbered_events(&rest_events), rest(after), "after {after} when it was over"); // J-036
        assert_eq!(crate::dialogues::turn_of(&rest_events)["ai_message"], "一二三四");
    }
    for (after, status) in [(end.to_string(), 204), ("9".repeat(40), 204), ("x".to_owned(), 400)] {
        assert_eq!(
            follow_turn(&server, &id, &turn, "", &[("last-event-id", &after)]).await.status,
            status,
            "{after}"
        );
    }
    // A turn is not a message, and belongs to one dialogue.
    assert_eq!(server.get(&format!("/api/v1/messages/{turn}")).await.status, 404);
    assert_eq!(server.get("/api/v1/conversations").await.json["data"], json!([]));
    let post_answer = server.post("/api/v1/messages", &json!({"text": "x", "conversation_id": id})).await;
    assert_eq!((post_answer.status, post_answer.problem_code()), (404, "not_found"));
    let other = start_dialogue(&server, &[SAY_ACTION]).await;
    assert_eq!(follow_turn(&server, &other, &turn, "", &[]).await.status, 404);
    // Deleting a dialogue deletes its turns.
    assert_eq!(server.call("delete", &format!("/api/v1/dialogues/{id}"), None).await.status, 204);
    assert_eq!(follow_turn(&server, &id, &turn, "", &[]).await.status, 404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_whose_server_is_killed_has_one_end_and_its_dialogue_goes_on() {
    let gate = Gate::new();
    let mock = MockServer::start(vec![
        reply_script(&round_answer(30, false, "一"), 9),
        halting_script("二三", &gate),
        reply_script(&round_answer(40, false, "四"), 9),
    ])
    .await;
    let process = ServerProcess::start(&mock, false);
    let id = start_dialogue(&process.server, &[&SAY_ACTION.replace("max_rounds: 3", "max_rounds: 9")]).await;
    post_text(&process.server, &id, "甲").await;
    let input_body = json!({"text": "乙", "request_id": "r"});
    let mut stream = open_stream(&process.server, &id, &input_body).await;
    let mut events = stream.read_until("final_delta").await;
    let folder = process.kill();
    drop(stream);
    let mut config = crate::server::test_config(&folder);
    config.add_upstream(&mock.url(), None).unwrap();
    let server = TestServer::serve(folder, config).await;
    // Delivered frames are unchanged, with a single end after them.
    let last = events.last().unwrap().id.unwrap().to_string();
    let mut rest =
        follow_turn(&server, &id, &stream_message_id(&events), "", &[("last-event-id", &last)]).await;
    events.extend(with_timeout(rest.read_rest()).await);
    let (name, data) = end_event(&events);
    assert_eq!((name, &data["code"], &data["retryable"]), ("error", &json!("interrupted"), &json!(true)));
    assert_eq!(joined_text(&events, "final_delta"), "二");
    // The dialogue is at its last stored state, and the same input continues from there.
    let path = format!("/api/v1/dialogues/{id}");
    let texts_of = |snapshot: &Value| -> Vec<String> {
        let history = snapshot["history"].as_array().unwrap().iter();
        history.map(|entry| entry["content"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(texts_of(&server.get(&path).await.json), ["甲", "一", "乙"]);
    let events = open_stream(&server, &id, &input_body).await.read_checked().await;
    assert_eq!((end_event(&events).0, &turn_of(&events)["ai_message"]), ("completed", &json!("四")));
    assert_eq!(texts_of(&server.get(&path).await.json), ["甲", "一", "乙", "四"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_sees_the_end_of_a_turn_sees_its_dialogue_however_slow_the_disk() {
    let mock =
        MockServer::start((0..10).map(|_| reply_script(&round_answer(30, false, "一"), 40)).collect()).await;
    let process = ServerProcess::slow(&mock);
    let id = start_dialogue(&process.server, &[&SAY_ACTION.replace("max_rounds: 3", "max_rounds: 20")]).await;
    for at in 1..=10 {
        let input_body = json!({"text": format!("text {at}"), "request_id": format!("r{at}")});
        let events = open_stream(&process.server, &id, &input_body).await.read_checked().await;
        assert_eq!(end_event(&events).0, "completed", "{at}");
        let snapshot = process.server.get(&format!("/api/v1/dialogues/{id}")).await.json;
        assert_eq!(snapshot["history"].as_array().unwrap().len(), 2 * at, "{snapshot}");
        assert_eq!(&snapshot["turn"], turn_of(&events), "{at}");
        // Repeating the input gives the same stream.
        let repeated_events = open_stream(&process.server, &id, &input_body).await.read_checked().await;
        assert_eq!(numbered_events(&repeated_events), numbered_events(&events), "{at}");
    }
    assert_eq!(mock.calls().started, 10);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_gets_the_end_of_a_turn_that_is_written_late() {
    let mock = MockServer::start(vec![reply_script(&round_answer(30, false, "一"), 9)]).await;
    let process = ServerProcess::start(&mock, false);
    let server = &process.server;
    let id = start_dialogue(server, &[SAY_ACTION]).await;
    let panic_file = process.make_panic_at("record.before");
    let events =
        with_timeout(async { open_stream(server, &id, &json!({"text": "甲"})).await.read_rest().await })
            .await;
    let is_end = |event: &Event| matches!(&*event.name, "completed" | "error");
    assert!(!events.iter().any(is_end), "{:?}", event_names(&events));
    let turn = stream_message_id(&events);
    let last = events.iter().rev().find_map(|event| event.id).unwrap().to_string();
    let last_event_id = [("last-event-id", last.as_str())];
    // Still served while there is no end.
    assert_eq!(follow_turn(server, &id, &turn, "", &last_event_id).await.status, 200);
    std::fs::remove_file(panic_file).unwrap();
    let rest = with_timeout(async {
        loop {
            let rest = follow_turn(server, &id, &turn, "", &last_event_id).await.read_rest().await;
            if rest.iter().any(is_end) {
                break rest;
            }
        }
    })
    .await;
    assert_eq!(rest.iter().filter(|event| is_end(event)).count(), 1);
    check_stream(&[events, rest].concat());
    // The log is over after it.
    let all = follow_turn(server, &id, &turn, "?after=0", &[]).await.read_rest().await;
    let last = all.iter().rev().find_map(|event| event.id).unwrap().to_string();
    assert_eq!(follow_turn(server, &id, &turn, "", &[("last-event-id", &last)]).await.status, 204);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_input_that_failed_is_asked_again_with_its_own_text() {
    let failures = || vec![response_script(503, "application/json", "{}"); 3];
    let round_reply = |text: &str| vec![reply_script(&round_answer(30, false, text), 9)];
    let scripts =
        [failures(), failures(), round_reply("一"), failures(), round_reply("二"), round_reply("三")]
            .concat();
    let mock = MockServer::start(scripts).await;
    let server = TestServer::start_default(&mock).await;
    let id = start_dialogue(&server, &[&SAY_ACTION.replace("max_rounds: 3", "max_rounds: 9")]).await;
    let input_with_id = async |text: &str, request_id: &str| {
        server.post(&input_path(&id), &json!({"text": text, "request_id": request_id})).await.json
    };
    assert_eq!(input_with_id("甲", "r1").await["success"], false);
    assert_eq!(input_with_id("乙", "r2").await["success"], false);
    // Not the text of the other, which took its place.
    assert_eq!(input_with_id("甲", "r1").await["ai_message"], "一"); // S-065
    assert_eq!(input_with_id("丙", "r3").await["success"], false);
    assert_eq!(input_with_id("丁", "r4").await["ai_message"], "二");
    // A failure is no answer: the retry is a new input, after the inputs of the meantime.
    assert_eq!(input_with_id("丙", "r3").await["ai_message"], "三"); // S-065
    assert_eq!(input_with_id("甲", "r1").await["ai_message"], "一");
    let history = server.get(&format!("/api/v1/dialogues/{id}")).await.json["history"].clone();
    let texts: Vec<&str> =
        history.as_array().unwrap().iter().map(|message| message["content"].as_str().unwrap()).collect();
    assert_eq!(texts, ["甲", "一", "丁", "二", "丙", "三"]); // S-063
}

#[tokio::test]
async fn inputs_that_are_refused_spend_nothing() {
    let mock = MockServer::start(vec![reply_script(&round_answer(30, false, "一"), 9); 3]).await;
    let mut server = TestServer::start_default(&mock).await;
    let admin = server.post("/api/v1/keys", &json!({"name": "a", "rights": "admin"})).await.json;
    server.set_key(admin["key"].as_str());
    let id = start_dialogue(&server, &[&SAY_ACTION.replace("max_rounds: 3", "max_rounds: 9")]).await;
    let small_quota = json!({"name": "few", "owner": admin["owner"], "requests_per_minute": 2});
    let small_quota = server.post("/api/v1/keys", &small_quota).await.json;
    server.set_key(small_quota["key"].as_str());
    for _ in 0..5 {
        let wrong = json!({"answer": {"call_id": "call_9", "value": 1}});
        let refusal = server.post(&input_path(&id), &wrong).await;
        assert_eq!((refusal.status, refusal.problem_code()), (409, "not_waiting"));
    }
    for status in [200, 200, 429] {
        let input_body = json!({"text": "甲", "request_id": format!("r{}", mock.calls().started)});
        assert_eq!(server.post(&input_path(&id), &input_body).await.status, status);
        // An answered input is repeated without a call of the model.
        if status == 200 {
            assert_eq!(server.post(&input_path(&id), &input_body).await.status, 200);
        }
    }
    let usage = server.get("/api/v1/usage").await.json;
    assert_eq!(usage["data"][0]["requests"], 2, "{usage}");
}

#[tokio::test]
async fn a_reply_that_is_asked_for_again_goes_on_with_what_was_shown() {
    let cut_script = || {
        let text = "{\"assessment\": {\"understanding_level\": 30}, \"should_exit\": false} <think>so, hm";
        [vec![delta_step(text)], finish_steps("length")].concat()
    };
    let mock = MockServer::start(vec![
        cut_script(),
        reply_script(&round_answer(30, false, "一"), 9),
        cut_script(),
        cut_script(),
        cut_script(),
    ])
    .await;
    let server = TestServer::start_default(&mock).await;
    let id = start_dialogue(&server, &[&SAY_ACTION.replace("max_rounds: 3", "max_rounds: 9")]).await;
    for text in ["甲", "乙"] {
        let body = json!({"text": text, "extensions": true});
        let events =
            with_timeout(async { open_stream(&server, &id, &body).await.read_checked().await }).await;
        // One valid stream, whatever is asked for again (R-66).
        let (name, data) = end_event(&events);
        match text {
            "甲" => assert_eq!((name, turn_of(&events)["ai_message"].as_str()), ("completed", Some("一"))),
            _ => assert_eq!((name, &data["retryable"]), ("error", &json!(true)), "{data}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelling_reaches_the_turn_that_runs_and_none_that_has_its_end() {
    const ENDED_TURNS: usize = 6;
    let mut script: Vec<Vec<Step>> =
        (0..ENDED_TURNS).map(|_| reply_script(&round_answer(30, false, "一"), 9)).collect();
    script.extend([vec![Step::WaitDisconnect], reply_script(&round_answer(30, false, "二"), 9)]);
    let mock = MockServer::start(script).await;
    let process = ServerProcess::start(&mock, false);
    let server = &process.server;
    let id = start_dialogue(server, &[&SAY_ACTION.replace("max_rounds: 3", "max_rounds: 20")]).await;
    // Turns whose ends are stored, and which have not left yet.
    process.hold_at("turn.over");
    let mut ended_turns = Vec::new();
    for count in 1..=ENDED_TURNS {
        ended_turns.push(server.begin_post(&input_path(&id), &json!({"text": "甲"})).await);
        process.wait_until_many_held("turn.over", count).await;
    }
    // They are not cancelled any more.
    let idle_cancel = cancel_turn(server, &id).await;
    assert_eq!(
        (idle_cancel.status, &idle_cancel.json),
        (200, &json!({"dialogue_id": id, "status": "active"}))
    );
    // The one behind them is, and no other one.
    let mut stream = open_stream(server, &id, &json!({"text": "乙"})).await;
    mock.wait_until(|calls| calls.started == ENDED_TURNS + 1).await;
    let cancellation = cancel_turn(server, &id).await;
    assert_eq!((cancellation.status, &cancellation.json["status"]), (202, &json!("cancelling")));
    mock.wait_until(|calls| calls.abandoned == 1).await;
    let pending = server.begin_post(&input_path(&id), &json!({"text": "丙"})).await;
    process.wait_until_many_held("turn.over", ENDED_TURNS + 2).await;
    process.release("turn.over").await;
    let events = with_timeout(stream.read_rest()).await;
    let (name, data) = end_event(&events);
    assert_eq!((name, &data["finish_reason"]), ("completed", &json!("cancelled"))); // X-014
    for turn in ended_turns {
        let turn: Value = serde_json::from_str(&turn.into_text().await).unwrap();
        assert_eq!((&turn["success"], &turn["ai_message"]), (&json!(true), &json!("一")), "{turn}");
    }
    let pending: Value = serde_json::from_str(&pending.into_text().await).unwrap();
    assert_eq!(pending["ai_message"], "二", "{pending}");
}
