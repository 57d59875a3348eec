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

use crate::client::{Event, check, message, text};
use crate::mock::{Gate, Mock, Step, delta, finish, reply};
use crate::server::{Folder, Tambour, config, within};
use crate::server_process::ServerProcess;
use crate::state::{Chat, said};

fn ask(conversation: &Value) -> Value {
    json!({"text": "x", "dialect": "plain", "conversation_id": conversation, "output_protocol": "jsonseq_v1"})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_sees_the_end_sees_the_record_and_the_state_however_slow_the_disk() {
    let text = |at: u64| said("Fine.", &[json!([["SET", "a", at]])]);
    let mock = Mock::start((1..=20).map(|at| reply(&text(at), 40)).collect()).await;
    let apart = ServerProcess::slow(&mock);
    let made = apart.server.post("/api/v1/conversations", &json!({})).await.json;
    let conversation = &made["conversation_id"];
    for at in 1..=20 {
        let mut ask = ask(conversation);
        ask["dialect"] = "filament".into();
        let events = apart.server.stream(&ask).await.whole().await;
        assert_eq!(events.last().unwrap().name, "completed", "{at}");
        let id = message(&events);
        let record = apart.server.get(&format!("/api/v1/messages/{id}")).await.json;
        assert_eq!(record["status"], "completed", "{at}: {record}");
        let path = format!("/api/v1/conversations/{}", conversation.as_str().unwrap());
        let listed = apart.server.get(&path).await.json;
        assert_eq!(listed["messages"][at - 1]["status"], "completed", "{at}");
        let state = apart.server.get(&format!("{path}/state")).await.json;
        assert_eq!(state["state"], json!({"a": at}), "{at}");
    }
}

/// Sends a request with an idempotency key and disconnects after `patience`; status and body of the answer if it came before.
async fn asked(
    server: &Tambour,
    path: &str,
    body: &str,
    word: &str,
    patience: Duration,
) -> Option<(u16, Value)> {
    let mut socket = within(TcpStream::connect(server.address)).await.unwrap();
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\nidempotency-key: {word}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        server.address,
        body.len()
    );
    let mut answer = String::new();
    let asking = async {
        socket.write_all(request.as_bytes()).await.unwrap();
        socket.read_to_string(&mut answer).await.unwrap();
    };
    tokio::time::timeout(patience, asking).await.ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.split(' ').nth(1)?.parse().ok()?, serde_json::from_str(body).unwrap_or_default()))
}

/// Many clients that disconnect and retry until they have an answer; returns the answers.
pub(crate) async fn persistent(server: &Arc<Tambour>, path: &str, body: String, words: usize) -> Vec<Value> {
    let mut clients = Vec::new();
    for client in 0..8 {
        let (server, path, body) = (server.clone(), path.to_owned(), body.clone());
        clients.push(tokio::spawn(async move {
            let mut answers = Vec::new();
            for word in (client..words).step_by(8) {
                let mut patience = 200 + u64::try_from(word % 23).unwrap() * 150;
                loop {
                    let name = format!("w{word}");
                    let asked = asked(&server, &path, &body, &name, Duration::from_micros(patience));
                    match asked.await {
                        Some((200..=299, answer)) => break answers.push(answer),
                        Some((409, _)) | None => {}
                        Some((status, answer)) => panic!("{status}: {answer}"),
                    }
                    patience += patience / 2;
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
async fn listed(server: &Tambour, path: &str, list: &str, id: &str) -> Vec<String> {
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
    const WORDS: usize = 300;
    let mock = Mock::start(vec![reply("x", 1)]).await;
    let server = Arc::new(Tambour::start(&mock, |config| config.max_running = 1000).await);
    let made = server.post("/api/v1/conversations", &json!({})).await.json;
    let answers =
        persistent(&server, "/api/v1/messages", ask(&made["conversation_id"]).to_string(), WORDS).await;
    let told: BTreeSet<&str> = answers.iter().map(|answer| answer["message_id"].as_str().unwrap()).collect();
    let path = format!("/api/v1/conversations/{}", made["conversation_id"].as_str().unwrap());
    let there = listed(&server, &path, "messages", "message_id").await;
    assert_eq!((told.len(), there.len()), (WORDS, WORDS));
    assert!(there.iter().all(|id| told.contains(id.as_str())));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_word_makes_one_dialogue_for_clients_that_go_away() {
    const WORDS: usize = 300;
    let mock = Mock::start(vec![reply("x", 1)]).await;
    let server = Arc::new(Tambour::with(&mock).await);
    let yaml = crate::dialogues::script(&[crate::dialogues::SAY]);
    let script = server.post("/api/v1/scripts", &json!({"name": "s", "yaml": yaml})).await;
    assert_eq!(script.status, 201, "{}", script.text);
    let body = json!({"script_id": script.json["script_id"]}).to_string();
    let answers = persistent(&server, "/api/v1/dialogues", body, WORDS).await;
    let told: BTreeSet<&str> = answers.iter().map(|answer| answer["dialogue_id"].as_str().unwrap()).collect();
    let there = listed(&server, "/api/v1/dialogues", "data", "dialogue_id").await;
    assert_eq!((told.len(), there.len()), (WORDS, WORDS));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_conversation_does_not_come_back_while_others_post_to_it() {
    let mock = Mock::start(vec![reply("x", 1)]).await;
    let server = Arc::new(Tambour::with(&mock).await);
    for round in 0..10 {
        let made = server.post("/api/v1/conversations", &json!({})).await.json;
        let path = format!("/api/v1/conversations/{}", made["conversation_id"].as_str().unwrap());
        let (mut posters, taken) = (Vec::new(), Arc::new(AtomicUsize::new(0)));
        for _ in 0..4 {
            let (server, ask, taken) = (server.clone(), ask(&made["conversation_id"]), taken.clone());
            posters.push(tokio::spawn(async move {
                // Retried for a while longer, until the answer says that there is none.
                let mut refused = 0;
                while refused < 5 {
                    let answer = server.post("/api/v1/messages", &ask).await;
                    assert!(matches!(answer.status, 202 | 404 | 429), "{}", answer.text);
                    taken.fetch_add(usize::from(answer.status == 202), Ordering::Relaxed);
                    refused += u32::from(answer.status == 404);
                }
            }));
        }
        within(async {
            while taken.load(Ordering::Relaxed) < 2 * round {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
        .await;
        assert_eq!(server.call("delete", &path, None).await.status, 204);
        assert_eq!(server.get(&path).await.status, 404, "{round}: it is back");
        for poster in posters {
            within(poster).await.unwrap();
        }
        assert_eq!(server.get(&path).await.status, 404, "{round}: it is back");
    }
    let listed = server.get("/api/v1/conversations").await.json;
    assert_eq!(listed["data"], json!([]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_end_that_panics_is_written_all_the_same() {
    let mock = Mock::start(vec![reply("Four.", 2)]).await;
    let apart = ServerProcess::start(&mock, false);
    for point in ["run.end", "record.before"] {
        let panics = apart.panic_at(point);
        let made = apart.server.post("/api/v1/messages", &ask(&Value::Null)).await.json;
        let id = made["message_id"].as_str().unwrap();
        // Retried again and again, and no client is told that it has ended.
        let file = apart.server.folder.0.join("log");
        let tries = if point == "record.before" { 3 } else { 1 };
        let said = format!("`{point}` panics");
        within(async {
            while std::fs::read_to_string(&file).unwrap().matches(&said).count() < tries {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
        if point == "record.before" {
            assert_eq!(apart.server.get(&format!("/api/v1/messages/{id}")).await.json["status"], "running");
        }
        std::fs::remove_file(panics).unwrap();
        let record = apart.server.ended(id).await;
        assert!(matches!(record["status"].as_str(), Some("failed" | "completed")), "{record}");
        let events = apart.server.follow(id, &[]).await.whole().await;
        check(&events);
        apart.server.until_metric("tambour_running", 0).await;
        // The conversation continues.
        let next = apart.server.post("/api/v1/messages", &ask(&made["conversation_id"])).await.json;
        assert_eq!(apart.server.ended(next["message_id"].as_str().unwrap()).await["status"], "completed");
    }
}

#[tokio::test]
async fn a_server_that_stops_asks_no_model_for_who_waits() {
    let gate = Gate::new();
    let mut script = vec![delta("Fo"), Step::Wait(gate.clone()), delta("ur.")];
    script.extend(finish("stop"));
    let mock = Mock::start(vec![script, reply("never", 1)]).await;
    let mut server = Tambour::with(&mock).await;
    let made = server.post("/api/v1/conversations", &json!({})).await.json;
    let mut first = server.stream(&ask(&made["conversation_id"])).await;
    first.until("final_delta").await;
    let mut second = server.stream(&ask(&made["conversation_id"])).await;
    second.event().await;
    server.stopping();
    // The queued one ends at once, the running one when it is done.
    let events = within(second.rest()).await;
    assert_eq!(events.last().unwrap().data["code"], "interrupted");
    gate.open();
    let events = within(first.rest()).await;
    assert_eq!(events.last().unwrap().name, "completed");
    server.stopped().await;
    assert_eq!(mock.asked().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_whose_message_somebody_else_has_claimed_stops() {
    let gate = Gate::new();
    let mut script = vec![delta("Fo"), delta("ur. "), Step::Wait(gate.clone())];
    // More than any socket buffers.
    script.extend((0..2000).map(|_| delta(&"never ".repeat(200))));
    script.extend(finish("stop"));
    let mock = Mock::start(vec![script]).await;
    let folder = Folder::new();
    let mut config = config(&folder);
    config.add_upstream(&mock.url(), Some("a-model".to_owned())).unwrap();
    let server = Server::start(config).await.unwrap();
    let store = server.store();
    let server = Tambour::of(folder, server);
    let mut stream = server.stream(&ask(&Value::Null)).await;
    let mut events = stream.until("final_delta").await;
    let id = message(&events);
    let mut lease = store.claim(&id).await.unwrap().expect("it runs");
    let next = lease.next_number();
    // The run notices at its next write: it leaves the upstream, and nothing more is in the log.
    gate.open();
    mock.until(|calls| calls.deserted == 1).await;
    server.until_metric("tambour_running", 0).await;
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
    events.extend(within(stream.rest()).await);
    let log = server.follow(&id, &[]).await.whole().await;
    for events in [events, log] {
        let ends = |event: &&Event| matches!(event.name.as_str(), "completed" | "error");
        assert_eq!(events.iter().filter(ends).count(), 1, "{events:?}");
        assert_eq!(events.last().unwrap().data["code"], "interrupted");
        assert!(!text(&events, "final_delta").contains("never"), "{events:?}");
    }
    assert_eq!(server.get(&format!("/api/v1/messages/{id}")).await.json["status"], "failed");
    assert_eq!(mock.calls().begun, 1);
}

#[tokio::test]
async fn what_is_refused_spends_nothing() {
    let mock = Mock::start(vec![reply("x", 1)]).await;
    let mut server = Tambour::with(&mock).await;
    let admin = server.post("/api/v1/keys", &json!({"name": "a", "rights": "admin"})).await.json;
    server.key(admin["key"].as_str());
    let few = server.post("/api/v1/keys", &json!({"name": "few", "requests_per_minute": 2})).await.json;
    server.key(few["key"].as_str());
    for _ in 0..5 {
        let refused = server.post("/api/v1/messages", &ask(&json!("conv_nothing"))).await;
        assert_eq!((refused.status, refused.problem()), (404, "not_found"));
    }
    for status in [202, 202, 429] {
        assert_eq!(server.post("/api/v1/messages", &ask(&Value::Null)).await.status, status);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_cannot_be_made_anew_stays() {
    let texts = (1..=4).map(|at| reply(&said("Fine.", &[json!([["SET", "a", at]])]), 40));
    let mock = Mock::start(texts.collect()).await;
    let chat = Chat::of(Tambour::with(&mock).await).await;
    let (first, second) = (chat.ask("x").await, chat.ask("y").await);
    assert_eq!(chat.state().await, json!({"a": 2}));
    // The later one is deleted: the state before the first cannot be computed any more.
    let path = format!("/api/v1/messages/{}", second["message_id"].as_str().unwrap());
    assert_eq!(chat.server.call("delete", &path, None).await.status, 204);
    let path = format!("/api/v1/messages/{}", first["message_id"].as_str().unwrap());
    let refused = chat.server.call("post", &format!("{path}/regenerate"), None).await;
    assert_eq!((refused.status, refused.problem()), (409, "state_gone"));
    let conversation = format!("/api/v1/conversations/{}", chat.conversation);
    let shown = chat.server.get(&conversation).await.json;
    assert_eq!(shown["messages"].as_array().unwrap().len(), 1, "{shown}");
    assert_eq!(shown["messages"][0]["status"], "completed");
    assert_eq!(chat.state().await, json!({"a": 2}));
}
