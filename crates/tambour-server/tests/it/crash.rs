//! A process that dies at any write: the next start loses nothing that a client has seen, repeats nothing, and closes open
//! messages exactly once.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use crate::client::{check, message, numbered};
use crate::mock::{GOOD, Mock, Step, delta, finish};
use crate::server::{Folder, Tambour, config};
use crate::server_process::ServerProcess;

/// Fail points to pass before the process dies.
static LEFT: AtomicU64 = AtomicU64::new(0);
static KIND: OnceLock<String> = OnceLock::new();

fn die(point: &'static str) {
    let panics = KIND.get().is_some_and(|kind| kind == "panic");
    if panics {
        assert!(point != "run", "a run that panics");
        return;
    }
    if point != "run" && LEFT.fetch_sub(1, Ordering::SeqCst) == 1 {
        // Aborts as if killed: nothing is flushed or closed.
        std::process::abort();
    }
}

/// Starts, and dies while it cleans up after another process.
async fn start_and_die(folder: Folder) {
    let server = tambour_server::Server::start(config(&folder)).await;
    std::mem::forget((folder, server));
    std::process::exit(0);
}

/// Client of the dying process; prints each thing it has seen at once, one line each.
async fn work(folder: Folder, durable: bool) {
    let pieces: Vec<String> = GOOD.chars().collect::<Vec<_>>().chunks(24).map(String::from_iter).collect();
    let recording =
        json!({"id": "a", "chunks": pieces, "finish_reason": "stop", "delays_ms": vec![1; pieces.len()]});
    let file = folder.file("replies.jsonl", &recording.to_string());
    let mut config = config(&folder);
    config.durable = durable;
    config.add_upstream(&format!("replay={}", file.display()), None).unwrap();
    let server = Tambour::serve(folder, config).await;
    let seen = |what: &str, value: &Value| {
        let mut out = std::io::stdout().lock();
        writeln!(out, "\nSEEN {what} {value}").unwrap();
        out.flush().unwrap();
    };
    let change = json!({"text_language": "en", "thought_display": "hidden"});
    let settings = server.put("/api/v1/settings", &change).await;
    seen("settings", &settings.json["text_language"]);
    let conversation = server.post("/api/v1/conversations", &json!({})).await.json;
    seen("conversation", &conversation["conversation_id"]);
    for protocol in ["jsonseq_v1", "legacy"] {
        let ask = json!({"text": "x", "dialect": "thinkingml", "output_protocol": protocol,
            "conversation_id": conversation["conversation_id"]});
        let mut stream = server.stream(&ask).await;
        while let Some(event) = stream.event().await {
            seen("event", &json!([event.id, event.name, event.frame, event.data["message_id"]]));
        }
    }
    let key = server.post("/api/v1/keys", &json!({"name": "k", "rights": "admin"})).await.json;
    seen("key", &key["key"]);
    seen("end", &Value::Null);
    // The folder belongs to the parent.
    std::mem::forget(server);
    std::process::exit(0);
}

/// Not a test: the dying process, run by its parent.
#[test]
#[ignore = "the tests below run it"]
fn child() {
    let given = std::env::var("TAMBOUR_CRASH").expect("the parent says where to die");
    let parts: Vec<&str> = given.splitn(3, ';').collect();
    LEFT.store(parts[0].parse().unwrap(), Ordering::SeqCst);
    KIND.set(parts[1].to_owned()).unwrap();
    let folder = Folder(parts[2].into());
    tambour_server::fail::arm(die);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    match parts[1] {
        "start" => runtime.block_on(start_and_die(folder)),
        kind => runtime.block_on(work(folder, kind == "durable")),
    }
}

/// Runs a process that dies after `points` fail points; returns what its client has seen.
fn run(points: u64, kind: &str, folder: &Folder) -> Vec<(String, Value)> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["crash::child", "--exact", "--ignored", "--nocapture", "--test-threads=1"])
        .env("TAMBOUR_CRASH", format!("{points};{kind};{}", folder.0.display()))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let seen = lines.filter_map(|line| {
        let line = line.ok()?;
        let (what, value) = line.strip_prefix("SEEN ")?.split_once(' ')?;
        Some((what.to_owned(), serde_json::from_str(value).ok()?))
    });
    let seen = seen.collect();
    child.wait().unwrap();
    seen
}

fn find<'a>(seen: &'a [(String, Value)], what: &str) -> Option<&'a Value> {
    seen.iter().find(|(name, _)| name == what).map(|(_, value)| value)
}

/// Starts in the folder of the dead process and compares with what its client had seen. Returns the frames of all messages.
async fn start_again(folder: Folder, seen: &[(String, Value)], points: u64) -> (Folder, Vec<String>) {
    let config = config(&folder);
    let mut server = Tambour::serve(folder, config).await;
    if let Some(key) = find(seen, "key") {
        assert_eq!(
            server.get("/api/v1/settings").await.status,
            401,
            "{points}: the key was seen, so it is there"
        );
        server.key(key.as_str());
        assert_eq!(server.get("/api/v1/settings").await.status, 200);
        // Things made by the local user belong to the local user.
        return (server.stopped().await, Vec::new());
    }
    let settings = server.get("/api/v1/settings").await;
    if settings.status == 401 {
        // The key was stored; its secret died with the process.
        return (server.stopped().await, Vec::new());
    }
    // A change is stored entirely or not at all; entirely when a client has seen it.
    let changed = (settings.json["text_language"] == "en", settings.json["thought_display"] == "hidden");
    assert_eq!(changed.0, changed.1, "{points}: half a change");
    assert!(changed.0 || find(seen, "settings").is_none(), "{points}: a change was lost");
    let listed = server.get("/api/v1/conversations").await.json;
    let conversations = listed["data"].as_array().unwrap();
    let mut frames = Vec::new();
    let mut known = Vec::new();
    if let Some(id) = find(seen, "conversation") {
        assert_eq!(&conversations[0]["conversation_id"], id, "{points}: a conversation was lost");
        let path = format!("/api/v1/conversations/{}", id.as_str().unwrap());
        known = server.get(&path).await.json["messages"].as_array().unwrap().clone();
    }
    for message in &known {
        let id = message["message_id"].as_str().unwrap();
        assert_ne!(message["status"], "running", "{points}");
        let events = server.follow(id, &[]).await.whole().await; // J-035, X-001
        check(&events);
        let all = numbered(&events);
        let before: Vec<&Value> = seen
            .iter()
            .filter(|(what, value)| what == "event" && value[3] == id)
            .map(|(_, value)| value)
            .collect();
        let before: Vec<&Value> = before.into_iter().filter(|event| event[0].is_u64()).collect();
        assert!(before.len() <= all.len(), "{points}: events were lost");
        for (was, is) in before.iter().zip(&all) {
            assert_eq!(was[2], is.frame, "{points}: what was seen has changed"); // J-036
        }
        // A client that resumes from its last number gets exactly the rest.
        if let Some(last) = before.last().and_then(|event| event[0].as_u64()) {
            let mut back = server.follow(id, &[("last-event-id", &last.to_string())]).await;
            let rest = if back.status == 204 { Vec::new() } else { back.rest().await };
            assert_eq!(numbered(&rest), all[before.len()..], "{points}"); // J-036
        }
        let record = server.ended(id).await;
        let end = all.last().unwrap();
        let status = if end.name == "error" { "failed" } else { "completed" };
        assert_eq!(record["status"], status, "{points}");
        if end.name == "error" {
            assert_eq!(end.data["code"], "interrupted");
        }
        frames.extend(all.iter().map(|event| event.frame.clone()));
    }
    let seen_messages = seen.iter().filter(|(what, _)| what == "event").map(|(_, event)| &event[3]);
    for id in seen_messages {
        assert!(known.iter().any(|message| message["message_id"] == *id), "{points}: a message was lost");
    }
    (server.stopped().await, frames)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_dies_at_any_write_loses_and_repeats_nothing() {
    dies_everywhere("abort", 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nor_one_that_waits_for_the_disk() {
    // Most places are those of the journal, so a sample is enough.
    dies_everywhere("durable", 6).await;
}

/// Runs processes that die at every `step`-th place until one comes to its end.
async fn dies_everywhere(kind: &'static str, step: u64) {
    let mut lanes = Vec::new();
    // Two lanes keep both cores busy.
    for lane in 0..2 {
        lanes.push(tokio::spawn(async move {
            let (mut points, mut died) = (1 + lane * step / 2, 0);
            loop {
                let folder = Folder::new();
                let (seen, folder) =
                    tokio::task::spawn_blocking(move || (run(points, kind, &folder), folder)).await.unwrap();
                let done = find(&seen, "end").is_some();
                let (folder, first) = start_again(folder, &seen, points).await;
                // Another start changes nothing.
                let (_folder, second) = start_again(folder, &seen, points).await;
                assert_eq!(first, second, "{points}");
                if done {
                    return died;
                }
                died += 1;
                points += step;
                assert!(points < 2000, "the work has an end");
            }
        }));
    }
    for lane in lanes {
        let died: u64 = lane.await.unwrap();
        eprintln!("it died at {died} places");
        assert!(died > 8, "it died at {died} places only");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dying_while_cleaning_up_changes_nothing() {
    // Points at which a message is open: the first, or the second one.
    for points in [16, 22, 32] {
        for again in 1..=7 {
            let folder = Folder::new();
            let dying = move || {
                let seen = run(points, "abort", &folder);
                // Dies twice more, at two places of the cleanup.
                run(again, "start", &folder);
                run(1, "start", &folder);
                (seen, folder)
            };
            let (seen, folder) = tokio::task::spawn_blocking(dying).await.unwrap();
            let (folder, first) = start_again(folder, &seen, points).await;
            let (_folder, second) = start_again(folder, &seen, points).await;
            assert!(!first.is_empty(), "{points}: a message is there");
            assert_eq!(first, second, "{points}, {again}");
        }
    }
}

#[test]
fn a_run_that_panics_ends_with_an_error() {
    let folder = Folder::new();
    let seen = run(0, "panic", &folder);
    let ends: Vec<&Value> = seen
        .iter()
        .filter(|(what, event)| what == "event" && (event[1] == "error" || event[1] == "completed"))
        .map(|(_, event)| event)
        .collect();
    assert_eq!(ends.len(), 2, "{seen:#?}"); // J-035
    for end in ends {
        assert!(end[2].as_str().unwrap().contains("internal_error"), "{end}");
    }
    assert!(find(&seen, "end").is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_writer_of_the_database_that_dies_stops_the_server_and_loses_nothing() {
    let gate = crate::mock::Gate::new();
    let mut script = vec![delta("before "), Step::Wait(gate.clone()), delta("after")];
    script.extend(finish("stop"));
    let mock = Mock::start(vec![script]).await;
    let apart = ServerProcess::start(&mock, false);
    let ask = json!({"text": "x", "dialect": "plain", "output_protocol": "jsonseq_v1"});
    let mut stream = apart.server.stream(&ask).await;
    let seen = stream.until("final_delta").await;
    let id = message(&seen);
    apart.kill_writer();
    gate.open();
    let (code, folder, log) = apart.ended().await;
    assert_eq!(code, Some(1), "{log}");
    for said in ["the writer of the database has died", "the store cannot go on; the server stops"] {
        let line = log.lines().find(|line| line.contains(said)).unwrap_or_else(|| panic!("{said}: {log}"));
        assert!(line.contains(r#""level":"ERROR""#), "{line}");
    }
    let again = config(&folder);
    let server = Tambour::serve(folder, again).await;
    let events = server.follow(&id, &[]).await.whole().await;
    check(&events);
    let before = numbered(&seen);
    assert_eq!(numbered(&events)[..before.len()], before, "what was seen is there"); // J-036
}
