//! Turns of dialogues: stopped, cancelled, deleted, failed, and retried by clients that disconnect.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::client::{Event, Stream, check, message, names, numbered, text};
use crate::dialogues::{SAY, answer, halting, say, started, turn};
use crate::mock::{Gate, Mock, Step, delta, finish, reply, whole};
use crate::promises::persistent;
use crate::server::{Answer, Tambour, within};
use crate::server_process::ServerProcess;

fn input(id: &str) -> String {
    format!("/api/v1/dialogues/{id}/input")
}

async fn open(server: &Tambour, id: &str, body: &Value) -> Stream {
    let mut body = body.clone();
    body["stream"] = true.into();
    Stream::open(server.address, "POST", &input(id), &[], Some(&body.to_string())).await
}

async fn cancel(server: &Tambour, id: &str) -> Answer {
    server.call("post", &format!("/api/v1/dialogues/{id}/cancel"), None).await
}

/// The only end of a stream, which must be valid.
fn end(events: &[Event]) -> (&str, &Value) {
    check(events);
    let last = events.last().unwrap();
    (&last.name, &last.data)
}

#[tokio::test]
async fn a_server_that_stops_asks_no_model_for_turns_that_wait() {
    let gate = Gate::new();
    let mock = Mock::start(vec![halting("一二", &gate), reply(&answer(30, false, "never"), 9)]).await;
    let mut server = Tambour::with(&mock).await;
    let id = started(&server, &[SAY]).await;
    let mut first = open(&server, &id, &json!({"text": "甲"})).await;
    let mut events = first.until("final_delta").await;
    let mut second = open(&server, &id, &json!({"text": "乙"})).await;
    second.event().await;
    let third = server.begin(&input(&id), &json!({"text": "丙"})).await;
    server.until_metric("tambour_running", 3).await;
    server.stopping();
    // Queued inputs end at once, the running one when it is done.
    let waited = within(second.rest()).await;
    let last = waited.last().unwrap();
    assert_eq!((last.name.as_str(), &last.data["code"]), ("error", &json!("interrupted")));
    assert_eq!(last.data["retryable"], true);
    let refused: Value = serde_json::from_str(&third.text().await).unwrap();
    assert_eq!(refused["code"], "closing");
    gate.open();
    events.extend(within(first.rest()).await);
    assert_eq!(end(&events).0, "completed");
    server.stopped().await;
    assert_eq!(mock.asked().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_that_panics_has_one_end_and_its_dialogue_goes_on() {
    let replies = [answer(30, false, "一"), answer(40, false, "二"), answer(50, false, "三")];
    let mock = Mock::start(replies.iter().map(|text| reply(text, 9)).collect()).await;
    let apart = ServerProcess::start(&mock, false);
    let server = &apart.server;
    let id = started(server, &[&SAY.replace("max_rounds: 3", "max_rounds: 9")]).await;
    let panics = apart.panic_at("turn");
    let asked = json!({"text": "甲", "request_id": "r"});
    let events = within(async { open(server, &id, &asked).await.whole().await }).await;
    let (name, data) = end(&events);
    assert_eq!((name, &data["code"], &data["retryable"]), ("error", &json!("internal_error"), &json!(true)));
    assert_eq!(text(&events, "final_delta"), "一");
    // Without a stream the failure is a problem document.
    let failed = server.post(&input(&id), &json!({"text": "甲"})).await;
    assert_eq!((failed.status, failed.problem()), (500, "internal_error"));
    server.until_metric("tambour_running", 0).await;
    std::fs::remove_file(panics).unwrap();
    // The same input continues the recorded turn, and later inputs follow it.
    let events = open(server, &id, &asked).await.whole().await;
    assert_eq!((end(&events).0, &turn(&events)["ai_message"]), ("completed", &json!("三")));
    assert_eq!(say(server, &id, "乙").await["success"], true);
    let history = server.get(&format!("/api/v1/dialogues/{id}")).await.json["history"].clone();
    let said: Vec<&str> =
        history.as_array().unwrap().iter().map(|one| one["content"].as_str().unwrap()).collect();
    assert_eq!(said, ["甲", "三", "乙", "三"]);
    assert_eq!(server.call("delete", &format!("/api/v1/dialogues/{id}"), None).await.status, 204);
}

#[tokio::test]
async fn a_turn_that_is_cancelled_does_not_count() {
    let gate = Gate::new();
    let mock = Mock::start(vec![
        halting("一二", &gate),
        vec![Step::Stall],
        vec![Step::Stall],
        reply(&answer(30, false, "三"), 9),
    ])
    .await;
    let server = Tambour::with(&mock).await;
    let id = started(&server, &[SAY]).await;
    let idle = cancel(&server, &id).await;
    assert_eq!((idle.status, &idle.json), (200, &json!({"dialogue_id": id, "status": "active"})));
    // In the middle of its message.
    let mut stream = open(&server, &id, &json!({"text": "甲"})).await;
    let mut events = stream.until("final_delta").await;
    let told = cancel(&server, &id).await;
    assert_eq!((told.status, &told.json), (202, &json!({"dialogue_id": id, "status": "cancelling"})));
    events.extend(within(stream.rest()).await);
    let (name, data) = end(&events);
    assert_eq!((name, &data["finish_reason"]), ("completed", &json!("cancelled"))); // X-014
    assert_eq!(turn(&events)["error"]["code"], "cancelled");
    mock.until(|calls| calls.deserted == 1).await;
    // Before the model has answered.
    let mut stream = open(&server, &id, &json!({"text": "乙"})).await;
    mock.until(|calls| calls.begun == 2).await;
    assert_eq!(cancel(&server, &id).await.status, 202);
    let events = within(stream.rest()).await;
    let (name, data) = end(&events);
    assert_eq!((name, &data["finish_reason"]), ("completed", &json!("cancelled")), "{:?}", names(&events)); // X-014
    mock.until(|calls| calls.deserted == 2).await;
    // Without a stream; the next input in the queue gets its turn.
    let third = server.begin(&input(&id), &json!({"text": "丙"})).await;
    mock.until(|calls| calls.begun == 3).await;
    let fourth = server.begin(&input(&id), &json!({"text": "丁"})).await;
    server.until_metric("tambour_running", 2).await;
    assert_eq!(cancel(&server, &id).await.status, 202);
    let third: Value = serde_json::from_str(&third.text().await).unwrap();
    assert_eq!((&third["success"], &third["error"]["code"]), (&json!(false), &json!("cancelled")));
    assert_eq!((&third["error"]["retryable"], &third["status"]), (&json!(true), &json!("active")));
    let fourth: Value = serde_json::from_str(&fourth.text().await).unwrap();
    assert_eq!(fourth["ai_message"], "三");
    assert_eq!(fourth["metadata"]["current_round"], 1, "{fourth}"); // S-065
    let history = server.get(&format!("/api/v1/dialogues/{id}")).await.json["history"].clone();
    assert_eq!((&history[0]["content"], history.as_array().unwrap().len()), (&json!("丁"), 2), "{history}"); // S-063
}

#[tokio::test]
async fn who_deletes_a_dialogue_waits_for_no_model() {
    let gate = Gate::new();
    let mock = Mock::start(vec![halting("一二", &gate)]).await;
    let server = Tambour::with(&mock).await;
    let id = started(&server, &[SAY]).await;
    let mut first = open(&server, &id, &json!({"text": "甲"})).await;
    let mut events = first.until("final_delta").await;
    let mut second = open(&server, &id, &json!({"text": "乙"})).await;
    second.event().await;
    let third = server.begin(&input(&id), &json!({"text": "丙"})).await;
    server.until_metric("tambour_running", 3).await;
    let path = format!("/api/v1/dialogues/{id}");
    assert_eq!(server.call("delete", &path, None).await.status, 204);
    events.extend(within(first.rest()).await);
    assert_eq!(end(&events).1["finish_reason"], "cancelled"); // X-014
    let waited = within(second.rest()).await;
    assert_eq!(waited.last().unwrap().data["code"], "not_found");
    let third: Value = serde_json::from_str(&third.text().await).unwrap();
    assert_eq!(third["code"], "not_found");
    assert_eq!(server.get(&path).await.status, 404);
    mock.until(|calls| calls.deserted == 1).await;
    server.until_metric("tambour_running", 0).await;
    assert_eq!(mock.calls().begun, 1);
}

#[tokio::test]
async fn streams_of_turns_are_sent_like_those_of_messages() {
    let gate = Gate::new();
    let mock = Mock::start(vec![vec![Step::Stall], halting("一二", &gate)]).await;
    let server = Tambour::start(&mock, |config| config.heartbeat_ms = 20).await;
    let message = server.stream(&json!({"text": "x", "dialect": "plain"})).await;
    mock.until(|calls| calls.begun == 1).await;
    let id = started(&server, &[SAY]).await;
    let mut stream = open(&server, &id, &json!({"text": "甲"})).await;
    for header in ["content-type", "cache-control", "x-accel-buffering"] {
        assert!(stream.header(header).is_some(), "{header}");
        assert_eq!(stream.header(header), message.header(header), "{header}");
    }
    let mut events = stream.until("heartbeat").await;
    events.extend(stream.until("heartbeat").await);
    let beat = events.last().unwrap();
    assert!(beat.data["ts"].is_string() && beat.id.is_none(), "{beat:?}"); // J-036
    gate.open();
    events.extend(within(stream.rest()).await);
    assert_eq!(end(&events).0, "completed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_word_makes_one_turn_for_clients_that_go_away() {
    const WORDS: usize = 48;
    let own = SAY.replace("max_rounds: 3", "max_rounds: 20, require_acknowledgment: false");
    for stream in [false, true] {
        let mock = Mock::start((0..WORDS).map(|_| reply(&answer(30, false, "一"), 9)).collect()).await;
        let server = Arc::new(Tambour::with(&mock).await);
        let id = started(&server, &[own.as_str(); 3]).await;
        let body = json!({"text": "甲", "stream": stream}).to_string();
        let answers = persistent(&server, &input(&id), body, WORDS).await;
        assert_eq!(answers.len(), WORDS);
        server.until_metric("tambour_running", 0).await;
        let shown = server.get(&format!("/api/v1/dialogues/{id}")).await.json;
        let history = shown["history"].as_array().unwrap();
        let said = history.iter().filter(|one| one["role"] == "user").count();
        assert_eq!((said, history.len(), mock.calls().begun), (WORDS, 2 * WORDS, WORDS), "stream: {stream}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_takes_nothing_of_a_turn_that_is_over_is_cut_off() {
    let long = "a piece of four kilobytes ".repeat(500_000);
    let mock = Mock::start(vec![reply(&answer(30, false, &long), 64 << 10)]).await;
    let server = Tambour::start(&mock, |config| config.reader_idle_ms = 300).await;
    let id = started(&server, &[SAY]).await;
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    // A small receive buffer of the system.
    socket.set_recv_buffer_size(4 << 10).unwrap();
    let mut stalled = within(socket.connect(server.address)).await.unwrap();
    let body = json!({"text": "甲", "stream": true}).to_string();
    let head = format!(
        "POST {} HTTP/1.1\r\nhost: {}\r\ncontent-length: {}\r\n\r\n",
        input(&id),
        server.address,
        body.len()
    );
    stalled.write_all((head + &body).as_bytes()).await.unwrap();
    mock.until(|calls| calls.over == 1).await;
    server.until_metric("tambour_running", 0).await;
    server.until_metric("tambour_streams_open", 0).await;
    let mut got = Vec::new();
    let _ = within(stalled.read_to_end(&mut got)).await;
    assert!(!String::from_utf8_lossy(&got).contains("event: completed"), "it was cut off before the end");
}

async fn follow(server: &Tambour, id: &str, turn: &str, after: &str, headers: &[(&str, &str)]) -> Stream {
    let path = format!("/api/v1/dialogues/{id}/turns/{turn}/events{after}");
    let headers: Vec<(String, String)> =
        headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Stream::open(server.address, "GET", &path, &headers, None).await
}

#[tokio::test]
async fn a_turn_is_followed_from_every_number() {
    let gate = Gate::new();
    let mock = Mock::start(vec![halting("一二三四", &gate)]).await;
    let server = Tambour::with(&mock).await;
    let id = started(&server, &[SAY]).await;
    let mut first = open(&server, &id, &json!({"text": "甲", "extensions": true})).await;
    let mut events = first.until("final_delta").await;
    let turn = message(&events);
    let last = events.last().unwrap().id.unwrap();
    // During the run: header and query, from every number so far.
    let mut readers = Vec::new();
    for after in 0..=last {
        let cursor = after.to_string();
        readers.push((after, follow(&server, &id, &turn, "", &[("last-event-id", &cursor)]).await));
        readers.push((after, follow(&server, &id, &turn, &format!("?after={after}"), &[]).await));
    }
    gate.open();
    events.extend(first.rest().await);
    check(&events);
    assert_eq!(names(&events).last(), Some(&"completed"));
    let all = numbered(&events);
    let rest =
        |after: u64| all.iter().filter(|event| event.id > Some(after)).cloned().collect::<Vec<Event>>();
    for (after, mut reader) in readers {
        assert_eq!(numbered(&within(reader.rest()).await), rest(after), "after {after} while it ran"); // J-036
    }
    server.until_metric("tambour_running", 0).await;
    // Afterwards, from every number before the end; the status with the turn comes again.
    let (end, before) = all.split_last().unwrap();
    let end = end.id.unwrap();
    for after in before.iter().filter_map(|event| event.id) {
        let mut reader = follow(&server, &id, &turn, &format!("?after={after}"), &[]).await;
        let got = within(reader.rest()).await;
        assert!(reader.over);
        assert_eq!(numbered(&got), rest(after), "after {after} when it was over"); // J-036
        assert_eq!(crate::dialogues::turn(&got)["ai_message"], "一二三四");
    }
    for (after, status) in [(end.to_string(), 204), ("9".repeat(40), 204), ("x".to_owned(), 400)] {
        assert_eq!(
            follow(&server, &id, &turn, "", &[("last-event-id", &after)]).await.status,
            status,
            "{after}"
        );
    }
    // A turn is not a message, and belongs to one dialogue.
    assert_eq!(server.get(&format!("/api/v1/messages/{turn}")).await.status, 404);
    assert_eq!(server.get("/api/v1/conversations").await.json["data"], json!([]));
    let posted = server.post("/api/v1/messages", &json!({"text": "x", "conversation_id": id})).await;
    assert_eq!((posted.status, posted.problem()), (404, "not_found"));
    let other = started(&server, &[SAY]).await;
    assert_eq!(follow(&server, &other, &turn, "", &[]).await.status, 404);
    // Deleting a dialogue deletes its turns.
    assert_eq!(server.call("delete", &format!("/api/v1/dialogues/{id}"), None).await.status, 204);
    assert_eq!(follow(&server, &id, &turn, "", &[]).await.status, 404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_whose_server_is_killed_has_one_end_and_its_dialogue_goes_on() {
    let gate = Gate::new();
    let mock = Mock::start(vec![
        reply(&answer(30, false, "一"), 9),
        halting("二三", &gate),
        reply(&answer(40, false, "四"), 9),
    ])
    .await;
    let apart = ServerProcess::start(&mock, false);
    let id = started(&apart.server, &[&SAY.replace("max_rounds: 3", "max_rounds: 9")]).await;
    say(&apart.server, &id, "甲").await;
    let asked = json!({"text": "乙", "request_id": "r"});
    let mut stream = open(&apart.server, &id, &asked).await;
    let mut events = stream.until("final_delta").await;
    let folder = apart.killed();
    drop(stream);
    let mut config = crate::server::config(&folder);
    config.add_upstream(&mock.url(), None).unwrap();
    let server = Tambour::serve(folder, config).await;
    // Delivered frames are unchanged, with a single end after them.
    let last = events.last().unwrap().id.unwrap().to_string();
    let mut rest = follow(&server, &id, &message(&events), "", &[("last-event-id", &last)]).await;
    events.extend(within(rest.rest()).await);
    let (name, data) = end(&events);
    assert_eq!((name, &data["code"], &data["retryable"]), ("error", &json!("interrupted"), &json!(true)));
    assert_eq!(text(&events, "final_delta"), "二");
    // The dialogue is at its last stored state, and the same input continues from there.
    let path = format!("/api/v1/dialogues/{id}");
    let said = |shown: &Value| -> Vec<String> {
        let history = shown["history"].as_array().unwrap().iter();
        history.map(|one| one["content"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(said(&server.get(&path).await.json), ["甲", "一", "乙"]);
    let events = open(&server, &id, &asked).await.whole().await;
    assert_eq!((end(&events).0, &turn(&events)["ai_message"]), ("completed", &json!("四")));
    assert_eq!(said(&server.get(&path).await.json), ["甲", "一", "乙", "四"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_sees_the_end_of_a_turn_sees_its_dialogue_however_slow_the_disk() {
    let mock = Mock::start((0..10).map(|_| reply(&answer(30, false, "一"), 40)).collect()).await;
    let apart = ServerProcess::slow(&mock);
    let id = started(&apart.server, &[&SAY.replace("max_rounds: 3", "max_rounds: 20")]).await;
    for at in 1..=10 {
        let asked = json!({"text": format!("text {at}"), "request_id": format!("r{at}")});
        let events = open(&apart.server, &id, &asked).await.whole().await;
        assert_eq!(end(&events).0, "completed", "{at}");
        let shown = apart.server.get(&format!("/api/v1/dialogues/{id}")).await.json;
        assert_eq!(shown["history"].as_array().unwrap().len(), 2 * at, "{shown}");
        assert_eq!(&shown["turn"], turn(&events), "{at}");
        // Repeating the input gives the same stream.
        let again = open(&apart.server, &id, &asked).await.whole().await;
        assert_eq!(numbered(&again), numbered(&events), "{at}");
    }
    assert_eq!(mock.calls().begun, 10);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_gets_the_end_of_a_turn_that_is_written_late() {
    let mock = Mock::start(vec![reply(&answer(30, false, "一"), 9)]).await;
    let apart = ServerProcess::start(&mock, false);
    let server = &apart.server;
    let id = started(server, &[SAY]).await;
    let panics = apart.panic_at("record.before");
    let events = within(async { open(server, &id, &json!({"text": "甲"})).await.rest().await }).await;
    let is_end = |event: &Event| matches!(&*event.name, "completed" | "error");
    assert!(!events.iter().any(is_end), "{:?}", names(&events));
    let turn = message(&events);
    let last = events.iter().rev().find_map(|event| event.id).unwrap().to_string();
    let seen = [("last-event-id", last.as_str())];
    // Still served while there is no end.
    assert_eq!(follow(server, &id, &turn, "", &seen).await.status, 200);
    std::fs::remove_file(panics).unwrap();
    let rest = within(async {
        loop {
            let rest = follow(server, &id, &turn, "", &seen).await.rest().await;
            if rest.iter().any(is_end) {
                break rest;
            }
        }
    })
    .await;
    assert_eq!(rest.iter().filter(|event| is_end(event)).count(), 1);
    check(&[events, rest].concat());
    // The log is over after it.
    let all = follow(server, &id, &turn, "?after=0", &[]).await.rest().await;
    let last = all.iter().rev().find_map(|event| event.id).unwrap().to_string();
    assert_eq!(follow(server, &id, &turn, "", &[("last-event-id", &last)]).await.status, 204);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_input_that_failed_is_asked_again_with_its_own_text() {
    let down = || vec![whole(503, "application/json", "{}"); 3];
    let said = |text: &str| vec![reply(&answer(30, false, text), 9)];
    let scripts = [down(), down(), said("一"), down(), said("二"), said("三")].concat();
    let mock = Mock::start(scripts).await;
    let server = Tambour::with(&mock).await;
    let id = started(&server, &[&SAY.replace("max_rounds: 3", "max_rounds: 9")]).await;
    let ask = async |text: &str, word: &str| {
        server.post(&input(&id), &json!({"text": text, "request_id": word})).await.json
    };
    assert_eq!(ask("甲", "r1").await["success"], false);
    assert_eq!(ask("乙", "r2").await["success"], false);
    // Not the text of the other, which took its place.
    assert_eq!(ask("甲", "r1").await["ai_message"], "一"); // S-065
    assert_eq!(ask("丙", "r3").await["success"], false);
    assert_eq!(ask("丁", "r4").await["ai_message"], "二");
    // A failure is no answer: the retry is a new input, after the inputs of the meantime.
    assert_eq!(ask("丙", "r3").await["ai_message"], "三"); // S-065
    assert_eq!(ask("甲", "r1").await["ai_message"], "一");
    let history = server.get(&format!("/api/v1/dialogues/{id}")).await.json["history"].clone();
    let told: Vec<&str> =
        history.as_array().unwrap().iter().map(|one| one["content"].as_str().unwrap()).collect();
    assert_eq!(told, ["甲", "一", "丁", "二", "丙", "三"]); // S-063
}

#[tokio::test]
async fn inputs_that_are_refused_spend_nothing() {
    let mock = Mock::start(vec![reply(&answer(30, false, "一"), 9); 3]).await;
    let mut server = Tambour::with(&mock).await;
    let admin = server.post("/api/v1/keys", &json!({"name": "a", "rights": "admin"})).await.json;
    server.key(admin["key"].as_str());
    let id = started(&server, &[&SAY.replace("max_rounds: 3", "max_rounds: 9")]).await;
    let few = json!({"name": "few", "owner": admin["owner"], "requests_per_minute": 2});
    let few = server.post("/api/v1/keys", &few).await.json;
    server.key(few["key"].as_str());
    for _ in 0..5 {
        let wrong = json!({"answer": {"call_id": "call_9", "value": 1}});
        let refused = server.post(&input(&id), &wrong).await;
        assert_eq!((refused.status, refused.problem()), (409, "not_waiting"));
    }
    for status in [200, 200, 429] {
        let word = json!({"text": "甲", "request_id": format!("r{}", mock.calls().begun)});
        assert_eq!(server.post(&input(&id), &word).await.status, status);
        // An answered input is repeated without a call of the model.
        if status == 200 {
            assert_eq!(server.post(&input(&id), &word).await.status, 200);
        }
    }
    let usage = server.get("/api/v1/usage").await.json;
    assert_eq!(usage["data"][0]["requests"], 2, "{usage}");
}

#[tokio::test]
async fn a_reply_that_is_asked_for_again_goes_on_with_what_was_shown() {
    let cut = || {
        let text = "{\"assessment\": {\"understanding_level\": 30}, \"should_exit\": false} <think>so, hm";
        [vec![delta(text)], finish("length")].concat()
    };
    let mock = Mock::start(vec![cut(), reply(&answer(30, false, "一"), 9), cut(), cut(), cut()]).await;
    let server = Tambour::with(&mock).await;
    let id = started(&server, &[&SAY.replace("max_rounds: 3", "max_rounds: 9")]).await;
    for text in ["甲", "乙"] {
        let body = json!({"text": text, "extensions": true});
        let events = within(async { open(&server, &id, &body).await.whole().await }).await;
        // One valid stream, whatever is asked for again (R-66).
        let (name, data) = end(&events);
        match text {
            "甲" => assert_eq!((name, turn(&events)["ai_message"].as_str()), ("completed", Some("一"))),
            _ => assert_eq!((name, &data["retryable"]), ("error", &json!(true)), "{data}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelling_reaches_the_turn_that_runs_and_none_that_has_its_end() {
    const ENDED: usize = 6;
    let mut script: Vec<Vec<Step>> = (0..ENDED).map(|_| reply(&answer(30, false, "一"), 9)).collect();
    script.extend([vec![Step::Stall], reply(&answer(30, false, "二"), 9)]);
    let mock = Mock::start(script).await;
    let apart = ServerProcess::start(&mock, false);
    let server = &apart.server;
    let id = started(server, &[&SAY.replace("max_rounds: 3", "max_rounds: 20")]).await;
    // Turns whose ends are stored, but which are still registered.
    apart.hold("turn.over");
    let mut ended = Vec::new();
    for many in 1..=ENDED {
        ended.push(server.begin(&input(&id), &json!({"text": "甲"})).await);
        apart.until_many_held("turn.over", many).await;
    }
    // Too late to cancel.
    let idle = cancel(server, &id).await;
    assert_eq!((idle.status, &idle.json), (200, &json!({"dialogue_id": id, "status": "active"})));
    // The next turn is cancelled, and no other.
    let mut stream = open(server, &id, &json!({"text": "乙"})).await;
    mock.until(|calls| calls.begun == ENDED + 1).await;
    let told = cancel(server, &id).await;
    assert_eq!((told.status, &told.json["status"]), (202, &json!("cancelling")));
    mock.until(|calls| calls.deserted == 1).await;
    let waiting = server.begin(&input(&id), &json!({"text": "丙"})).await;
    apart.until_many_held("turn.over", ENDED + 2).await;
    apart.let_go("turn.over").await;
    let events = within(stream.rest()).await;
    let (name, data) = end(&events);
    assert_eq!((name, &data["finish_reason"]), ("completed", &json!("cancelled"))); // X-014
    for turn in ended {
        let turn: Value = serde_json::from_str(&turn.text().await).unwrap();
        assert_eq!((&turn["success"], &turn["ai_message"]), (&json!(true), &json!("一")), "{turn}");
    }
    let waiting: Value = serde_json::from_str(&waiting.text().await).unwrap();
    assert_eq!(waiting["ai_message"], "二", "{waiting}");
}
