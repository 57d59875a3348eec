//! Confirmed results hold: on a slow disk, after a disconnect, around deletions, and when the server fails.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tambour_server::Server;
use tambour_server::store::{Batch, LogState, MessageOutcome, RunEnd, WriteOutcome};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::client::{Event, check_stream, joined_text, stream_message_id};
use crate::mock::{Gate, MockServer, Step, delta_step, finish_steps, reply_script};
use crate::server::{Folder, TestServer, test_config, with_timeout};
use crate::server_process::ServerProcess;
use crate::state::{StateChat, reply_with_updates};

fn request_body(conversation: &Value) -> Value {
    json!({"text": "x", "dialect": "plain", "conversation_id": conversation, "output_protocol": "jsonseq_v1"})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_sees_the_end_sees_the_record_and_the_state_however_slow_the_disk() {
    let text = |at: u64| reply_with_updates("Fine.", &[json!([["SET", "a", at]])]);
    let mock = MockServer::start((1..=20).map(|at| reply_script(&text(at), 40)).collect()).await;
    let process = ServerProcess::slow(&mock);
    let response = process.server.post("/api/v1/conversations", &json!({})).await.json;
    let conversation = &response["conversation_id"];
    for at in 1..=20 {
        let mut request = request_body(conversation);
        request["dialect"] = "filament".into();
        let events = process.server.open_stream(&request).await.read_checked().await;
        assert_eq!(events.last().unwrap().name, "completed", "{at}");
        let id = stream_message_id(&events);
        let record = process.server.get(&format!("/api/v1/messages/{id}")).await.json;
        assert_eq!(record["status"], "completed", "{at}: {record}");
        let path = format!("/api/v1/conversations/{}", conversation.as_str().unwrap());
        let listing = process.server.get(&path).await.json;
        assert_eq!(listing["messages"][at - 1]["status"], "completed", "{at}");
        let state = process.server.get(&format!("{path}/state")).await.json;
        assert_eq!(state["state"], json!({"a": at}), "{at}");
    }
}

/// Sends a request with an idempotency key and disconnects after `patience`; status and body of the answer if it came before.
async fn post_with_patience(
    server: &TestServer,
    path: &str,
    body: &str,
    key: &str,
    patience: Duration,
) -> Option<(u16, Value)> {
    let mut socket = with_timeout(TcpStream::connect(server.address)).await.unwrap();
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\nidempotency-key: {key}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        server.address,
        body.len()
    );
    let mut answer = String::new();
    let exchange = async {
        socket.write_all(request.as_bytes()).await.unwrap();
        socket.read_to_string(&mut answer).await.unwrap();
    };
    tokio::time::timeout(patience, exchange).await.ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.split(' ').nth(1)?.parse().ok()?, serde_json::from_str(body).unwrap_or_default()))
}

/// Many clients, each of which goes away and asks again until it is answered; what the answers name.
pub(crate) async fn post_until_answered(
    server: &Arc<TestServer>,
    path: &str,
    body: String,
    keys: usize,
) -> Vec<Value> {
    let mut clients = Vec::new();
    for client in 0..8 {
        let (server, path, body) = (server.clone(), path.to_owned(), body.clone());
        clients.push(tokio::spawn(async move {
            let mut answers = Vec::new();
            for key in (client..keys).step_by(8) {
                let mut patience = 200 + u64::try_from(key % 23).unwrap() * 150;
                loop {
                    let name = format!("w{key}");
                    let attempt =
                        post_with_patience(&server, &path, &body, &name, Duration::from_micros(patience));
                    match attempt.await {
                        Some((200..=299, answer)) => break answers.push(answer),
                        Some((409, _)) | None => {}
                        Some((status, answer)) => panic!("{status}: {answer}"),
                    }
                    // An earlier request may still be carried out after many refusals of this one.
                    patience = (patience + patience / 2).min(10_000_000);
                }
            }
            answers
        }));
    }
    let mut answers = Vec::new();
    for client in clients {
        answers.extend(tokio::time::timeout(Duration::from_secs(120), client).await.unwrap().unwrap());
    }
    answers
}

/// All ids of a listing.
async fn list_ids(server: &TestServer, path: &str, list: &str, id: &str) -> Vec<String> {
    let mut ids: Vec<String> = Vec::new();
    loop {
        let after = ids.last().map(|id| format!("&after={id}")).unwrap_or_default();
        let page = server.get(&format!("{path}?limit=100{after}")).await.json;
        ids.extend(page[list].as_array().unwrap().iter().map(|row| row[id].as_str().unwrap().to_owned()));
        if page["has_more"] != true {
            return ids;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_word_makes_one_message_for_clients_that_go_away() {
    const KEYS: usize = 300;
    let mock = MockServer::start(vec![reply_script("x", 1)]).await;
    let server = Arc::new(TestServer::start(&mock, |config| config.max_running = 1000).await);
    let response = server.post("/api/v1/conversations", &json!({})).await.json;
    let answers = post_until_answered(
        &server,
        "/api/v1/messages",
        request_body(&response["conversation_id"]).to_string(),
        KEYS,
    )
    .await;
    let answered_ids: BTreeSet<&str> =
        answers.iter().map(|answer| answer["message_id"].as_str().unwrap()).collect();
    let path = format!("/api/v1/conversations/{}", response["conversation_id"].as_str().unwrap());
    let stored_ids = list_ids(&server, &path, "messages", "message_id").await;
    assert_eq!((answered_ids.len(), stored_ids.len()), (KEYS, KEYS));
    assert!(stored_ids.iter().all(|id| answered_ids.contains(id.as_str())));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_word_makes_one_dialogue_for_clients_that_go_away() {
    const KEYS: usize = 300;
    let mock = MockServer::start(vec![reply_script("x", 1)]).await;
    let server = Arc::new(TestServer::start_default(&mock).await);
    let yaml = crate::dialogues::script_of_actions(&[crate::dialogues::SAY_ACTION]);
    let script = server.post("/api/v1/scripts", &json!({"name": "s", "yaml": yaml})).await;
    assert_eq!(script.status, 201, "{}", script.text);
    let body = json!({"script_id": script.json["script_id"]}).to_string();
    let answers = post_until_answered(&server, "/api/v1/dialogues", body, KEYS).await;
    let answered_ids: BTreeSet<&str> =
        answers.iter().map(|answer| answer["dialogue_id"].as_str().unwrap()).collect();
    let stored_ids = list_ids(&server, "/api/v1/dialogues", "data", "dialogue_id").await;
    assert_eq!((answered_ids.len(), stored_ids.len()), (KEYS, KEYS));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_conversation_does_not_come_back_while_others_post_to_it() {
    let mock = MockServer::start(vec![reply_script("x", 1)]).await;
    let server = Arc::new(TestServer::start_default(&mock).await);
    for round in 0..10 {
        let response = server.post("/api/v1/conversations", &json!({})).await.json;
        let path = format!("/api/v1/conversations/{}", response["conversation_id"].as_str().unwrap());
        let (mut posters, accepted) = (Vec::new(), Arc::new(AtomicUsize::new(0)));
        for _ in 0..4 {
            let (server, request, accepted) =
                (server.clone(), request_body(&response["conversation_id"]), accepted.clone());
            posters.push(tokio::spawn(async move {
                // Retried for a while longer, until the answer says that there is none.
                let mut refusals = 0;
                while refusals < 5 {
                    let answer = server.post("/api/v1/messages", &request).await;
                    assert!(matches!(answer.status, 202 | 404 | 429), "{}", answer.text);
                    accepted.fetch_add(usize::from(answer.status == 202), Ordering::Relaxed);
                    refusals += u32::from(answer.status == 404);
                }
            }));
        }
        with_timeout(async {
            while accepted.load(Ordering::Relaxed) < 2 * round {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
        .await;
        assert_eq!(server.call("delete", &path, None).await.status, 204);
        assert_eq!(server.get(&path).await.status, 404, "{round}: it is back");
        for poster in posters {
            with_timeout(poster).await.unwrap();
        }
        assert_eq!(server.get(&path).await.status, 404, "{round}: it is back");
    }
    let listing = server.get("/api/v1/conversations").await.json;
    assert_eq!(listing["data"], json!([]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_end_that_panics_is_written_all_the_same() {
    let mock = MockServer::start(vec![reply_script("Four.", 2)]).await;
    let process = ServerProcess::start(&mock, false);
    for point in ["run.end", "record.before"] {
        let panic_file = process.make_panic_at(point);
        let response = process.server.post("/api/v1/messages", &request_body(&Value::Null)).await.json;
        let id = response["message_id"].as_str().unwrap();
        // Retried again and again, and no client is told that it has ended.
        let file = process.server.folder.0.join("log");
        let attempts = if point == "record.before" { 3 } else { 1 };
        let panic_message = format!("`{point}` panics");
        with_timeout(async {
            while std::fs::read_to_string(&file).unwrap().matches(&panic_message).count() < attempts {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
        if point == "record.before" {
            assert_eq!(process.server.get(&format!("/api/v1/messages/{id}")).await.json["status"], "running");
        }
        std::fs::remove_file(panic_file).unwrap();
        let record = process.server.wait_ended(id).await;
        assert!(matches!(record["status"].as_str(), Some("failed" | "completed")), "{record}");
        let events = process.server.follow(id, &[]).await.read_checked().await;
        check_stream(&events);
        process.server.wait_for_metric("tambour_running", 0).await;
        // The conversation goes on.
        let next =
            process.server.post("/api/v1/messages", &request_body(&response["conversation_id"])).await.json;
        assert_eq!(
            process.server.wait_ended(next["message_id"].as_str().unwrap()).await["status"],
            "completed"
        );
    }
}

#[tokio::test]
async fn a_server_that_stops_asks_no_model_for_who_waits() {
    let gate = Gate::new();
    let mut script = vec![delta_step("Fo"), Step::Wait(gate.clone()), delta_step("ur.")];
    script.extend(finish_steps("stop"));
    let mock = MockServer::start(vec![script, reply_script("never", 1)]).await;
    let mut server = TestServer::start_default(&mock).await;
    let response = server.post("/api/v1/conversations", &json!({})).await.json;
    let mut first = server.open_stream(&request_body(&response["conversation_id"])).await;
    first.read_until("final_delta").await;
    let mut second = server.open_stream(&request_body(&response["conversation_id"])).await;
    second.next_event().await;
    server.request_stop();
    // The queued one ends at once, the running one when it is done.
    let events = with_timeout(second.read_rest()).await;
    assert_eq!(events.last().unwrap().data["code"], "interrupted");
    gate.open();
    let events = with_timeout(first.read_rest()).await;
    assert_eq!(events.last().unwrap().name, "completed");
    server.stop().await;
    assert_eq!(mock.requests().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_whose_message_somebody_else_has_claimed_stops() {
    let gate = Gate::new();
    let mut script = vec![delta_step("Fo"), delta_step("ur. "), Step::Wait(gate.clone())];
    // More than any socket buffers.
    script.extend((0..2000).map(|_| delta_step(&"never ".repeat(200))));
    script.extend(finish_steps("stop"));
    let mock = MockServer::start(vec![script]).await;
    let folder = Folder::new();
    let mut config = test_config(&folder);
    config.add_upstream(&mock.url(), Some("a-model".to_owned())).unwrap();
    let server = Server::start(config).await.unwrap();
    let store = server.store();
    let server = TestServer::from_server(folder, server);
    let mut stream = server.open_stream(&request_body(&Value::Null)).await;
    let mut events = stream.read_until("final_delta").await;
    let id = stream_message_id(&events);
    let mut lease = store.claim(&id).await.unwrap().expect("it runs");
    let next = lease.next_number();
    // The run notices at its next write: it leaves the upstream, and nothing more is in the log.
    gate.open();
    mock.wait_until(|calls| calls.abandoned == 1).await;
    server.wait_for_metric("tambour_running", 0).await;
    assert_eq!(lease.wait_settled().await, WriteOutcome::Stored);
    let (batches, state) = store.read(&id, 0, 1 << 20).await.unwrap();
    assert_eq!((batches.last().map(Batch::last), state), (Some(next - 1), LogState::Open));
    // The holder of the lease writes the only end.
    let failure = json!({"code": "interrupted", "message": "taken over", "retryable": true});
    let mut last = Batch::new(next);
    last.push_event("final_end", |out| out.extend_from_slice(b"{}"));
    last.push_event("error", |out| out.extend_from_slice(failure.to_string().as_bytes()));
    let end = RunEnd { last, status: "failed".to_owned(), outcome: MessageOutcome::default() };
    assert_eq!(lease.finish(end).await, WriteOutcome::Stored);
    events.extend(with_timeout(stream.read_rest()).await);
    let log = server.follow(&id, &[]).await.read_checked().await;
    for events in [events, log] {
        let ends = |event: &&Event| matches!(event.name.as_str(), "completed" | "error");
        assert_eq!(events.iter().filter(ends).count(), 1, "{events:?}");
        assert_eq!(events.last().unwrap().data["code"], "interrupted");
        assert!(!joined_text(&events, "final_delta").contains("never"), "{events:?}");
    }
    assert_eq!(server.get(&format!("/api/v1/messages/{id}")).await.json["status"], "failed");
    assert_eq!(mock.calls().started, 1);
}

#[tokio::test]
async fn what_is_refused_spends_nothing() {
    let mock = MockServer::start(vec![reply_script("x", 1)]).await;
    let mut server = TestServer::start_default(&mock).await;
    let admin = server.post("/api/v1/keys", &json!({"name": "a", "rights": "admin"})).await.json;
    server.set_key(admin["key"].as_str());
    let small_quota =
        server.post("/api/v1/keys", &json!({"name": "few", "requests_per_minute": 2})).await.json;
    server.set_key(small_quota["key"].as_str());
    for _ in 0..5 {
        let refusal = server.post("/api/v1/messages", &request_body(&json!("conv_nothing"))).await;
        assert_eq!((refusal.status, refusal.problem_code()), (404, "not_found"));
    }
    for status in [202, 202, 429] {
        assert_eq!(server.post("/api/v1/messages", &request_body(&Value::Null)).await.status, status);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_cannot_be_made_anew_stays() {
    let texts =
        (1..=4).map(|at| reply_script(&reply_with_updates("Fine.", &[json!([["SET", "a", at]])]), 40));
    let mock = MockServer::start(texts.collect()).await;
    let chat = StateChat::new(TestServer::start_default(&mock).await).await;
    let (first, second) = (chat.send("x").await, chat.send("y").await);
    assert_eq!(chat.state().await, json!({"a": 2}));
    // The later one is deleted: the state before the first cannot be computed any more.
    let path = format!("/api/v1/messages/{}", second["message_id"].as_str().unwrap());
    assert_eq!(chat.server.call("delete", &path, None).await.status, 204);
    let path = format!("/api/v1/messages/{}", first["message_id"].as_str().unwrap());
    let refusal = chat.server.call("post", &format!("{path}/regenerate"), None).await;
    assert_eq!((refusal.status, refusal.problem_code()), (409, "state_gone"));
    let conversation = format!("/api/v1/conversations/{}", chat.conversation);
    let snapshot = chat.server.get(&conversation).await.json;
    assert_eq!(snapshot["messages"].as_array().unwrap().len(), 1, "{snapshot}");
    assert_eq!(snapshot["messages"][0]["status"], "completed");
    assert_eq!(chat.state().await, json!({"a": 2}));
}
