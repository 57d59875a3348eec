//! A process that dies at any write: the next start loses nothing that a client has seen, repeats nothing, and closes open
//! messages exactly once.

use serde_json::{Value, json};

use crate::child_process::{ChildReport, child_arguments, die_at, print_seen, run_async, run_child};
use crate::client::{check_stream, numbered_events, stream_message_id};
use crate::mock::{GOOD_REPLY, MockServer, Step, delta_step, finish_steps};
use crate::server::{Folder, TestServer, test_config};
use crate::server_process::ServerProcess;

/// Starts, and dies while it cleans up after another process.
async fn start_and_die(folder: Folder) {
    let server = tambour_server::Server::start(test_config(&folder)).await;
    std::mem::forget((folder, server));
    std::process::exit(0);
}

/// Actions of a client of the dying process; each thing it has seen is a line of standard output at once.
async fn run_client(folder: Folder, durable: bool) {
    let pieces: Vec<String> =
        GOOD_REPLY.chars().collect::<Vec<_>>().chunks(24).map(String::from_iter).collect();
    let recording =
        json!({"id": "a", "chunks": pieces, "finish_reason": "stop", "delays_ms": vec![1; pieces.len()]});
    let file = folder.write_file("replies.jsonl", &recording.to_string());
    let mut config = test_config(&folder);
    config.durable = durable;
    config.add_upstream(&format!("replay={}", file.display()), None).unwrap();
    let server = TestServer::serve(folder, config).await;
    let change = json!({"text_language": "en", "thought_display": "hidden"});
    let settings = server.put("/api/v1/settings", &change).await;
    print_seen("settings", &settings.json["text_language"]);
    let conversation = server.post("/api/v1/conversations", &json!({})).await.json;
    print_seen("conversation", &conversation["conversation_id"]);
    for protocol in ["jsonseq_v1", "legacy"] {
        let request = json!({"text": "x", "dialect": "thinkingml", "output_protocol": protocol,
            "conversation_id": conversation["conversation_id"]});
        let mut stream = server.open_stream(&request).await;
        while let Some(event) = stream.next_event().await {
            print_seen("event", &json!([event.id, event.name, event.frame, event.data["message_id"]]));
        }
    }
    let key = server.post("/api/v1/keys", &json!({"name": "k", "rights": "admin"})).await.json;
    print_seen("key", &key["key"]);
    print_seen("end", &Value::Null);
    // The folder belongs to the parent.
    std::mem::forget(server);
    std::process::exit(0);
}

/// Not a test: the dying process, run by its parent.
#[test]
#[ignore = "the tests below run it"]
fn child() {
    let arguments = child_arguments();
    let folder = Folder(arguments["folder"].as_str().unwrap().into());
    let kind = arguments["kind"].as_str().unwrap();
    if kind == "panic" {
        tambour_server::fail::arm(|point| assert!(point != "run", "a run that panics"));
    } else {
        die_at(arguments["points"].as_u64().unwrap(), |point| point != "run");
    }
    if kind == "start" {
        run_async(start_and_die(folder));
    } else {
        run_async(run_client(folder, kind == "durable"));
    }
}

/// Runs a process that dies after `points` fail points.
fn run_process(points: u64, kind: &str, folder: &Folder) -> ChildReport {
    run_child("crash::child", &json!({"points": points, "kind": kind, "folder": folder.0}))
}

/// Starts on what the dead process left, and holds it against what its client had seen. Gives the frames of all messages.
async fn restart_and_compare(folder: Folder, report: &ChildReport, points: u64) -> (Folder, Vec<String>) {
    let config = test_config(&folder);
    let mut server = TestServer::serve(folder, config).await;
    if let Some(key) = report.find("key") {
        assert_eq!(
            server.get("/api/v1/settings").await.status,
            401,
            "{points}: the key was seen, so it is there"
        );
        server.set_key(key.as_str());
        assert_eq!(server.get("/api/v1/settings").await.status, 200);
        // Things made by the local user belong to the local user.
        return (server.stop().await, Vec::new());
    }
    let settings = server.get("/api/v1/settings").await;
    if settings.status == 401 {
        // The key was stored; its secret died with the process.
        return (server.stop().await, Vec::new());
    }
    // All of a change or nothing; all of it when it was seen.
    let changed_settings =
        (settings.json["text_language"] == "en", settings.json["thought_display"] == "hidden");
    assert_eq!(changed_settings.0, changed_settings.1, "{points}: half a change");
    assert!(changed_settings.0 || report.find("settings").is_none(), "{points}: a change was lost");
    let listing = server.get("/api/v1/conversations").await.json;
    let conversations = listing["data"].as_array().unwrap();
    let mut frames = Vec::new();
    let mut known_ids = Vec::new();
    if let Some(id) = report.find("conversation") {
        assert_eq!(&conversations[0]["conversation_id"], id, "{points}: a conversation was lost");
        let path = format!("/api/v1/conversations/{}", id.as_str().unwrap());
        known_ids = server.get(&path).await.json["messages"].as_array().unwrap().clone();
    }
    for message in &known_ids {
        let id = message["message_id"].as_str().unwrap();
        assert_ne!(message["status"], "running", "{points}");
        let events = server.follow(id, &[]).await.read_checked().await; // J-035, X-001
        check_stream(&events);
        let all_events = numbered_events(&events);
        let before: Vec<&Value> =
            report.values("event").filter(|event| event[3] == id && event[0].is_u64()).collect();
        assert!(before.len() <= all_events.len(), "{points}: events were lost");
        for (before_event, after_event) in before.iter().zip(&all_events) {
            assert_eq!(before_event[2], after_event.frame, "{points}: what was seen has changed"); // J-036
        }
        // A client that resumes from its last number gets exactly the rest.
        if let Some(last) = before.last().and_then(|event| event[0].as_u64()) {
            let mut reader = server.follow(id, &[("last-event-id", &last.to_string())]).await;
            let rest = if reader.status == 204 { Vec::new() } else { reader.read_rest().await };
            assert_eq!(numbered_events(&rest), all_events[before.len()..], "{points}"); // J-036
        }
        let record = server.wait_ended(id).await;
        let end = all_events.last().unwrap();
        let status = if end.name == "error" { "failed" } else { "completed" };
        assert_eq!(record["status"], status, "{points}");
        if end.name == "error" {
            assert_eq!(end.data["code"], "interrupted");
        }
        frames.extend(all_events.iter().map(|event| event.frame.clone()));
    }
    for id in report.values("event").map(|event| &event[3]) {
        assert!(known_ids.iter().any(|message| message["message_id"] == *id), "{points}: a message was lost");
    }
    (server.stop().await, frames)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_dies_at_any_write_loses_and_repeats_nothing() {
    die_at_every_step("abort", 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nor_one_that_waits_for_the_disk() {
    // Most places are those of the journal, so a sample is enough.
    die_at_every_step("durable", 6).await;
}

/// Runs processes that die at every `step`-th place until one comes to its end.
async fn die_at_every_step(kind: &'static str, step: u64) {
    let mut lanes = Vec::new();
    // Two lanes keep both cores busy.
    for lane in 0..2 {
        lanes.push(tokio::spawn(async move {
            let (mut points, mut deaths) = (1 + lane * step / 2, 0);
            loop {
                let folder = Folder::new();
                let (report, folder) =
                    tokio::task::spawn_blocking(move || (run_process(points, kind, &folder), folder))
                        .await
                        .unwrap();
                let (folder, first) = restart_and_compare(folder, &report, points).await;
                // Another start changes nothing.
                let (_folder, second) = restart_and_compare(folder, &report, points).await;
                assert_eq!(first, second, "{points}");
                if report.has_ended() {
                    return deaths;
                }
                deaths += 1;
                points += step;
                assert!(points < 2000, "the work has an end");
            }
        }));
    }
    for lane in lanes {
        let deaths: u64 = lane.await.unwrap();
        eprintln!("it died at {deaths} places");
        assert!(deaths > 8, "it died at {deaths} places only");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dying_while_cleaning_up_changes_nothing() {
    // Points at which a message is open: the first, or the second one.
    for points in [16, 22, 32] {
        for start_points in 1..=7 {
            let folder = Folder::new();
            let die_repeatedly = move || {
                let report = run_process(points, "abort", &folder);
                // Dies twice more, at two places of the cleanup.
                run_process(start_points, "start", &folder);
                run_process(1, "start", &folder);
                (report, folder)
            };
            let (report, folder) = tokio::task::spawn_blocking(die_repeatedly).await.unwrap();
            let (folder, first) = restart_and_compare(folder, &report, points).await;
            let (_folder, second) = restart_and_compare(folder, &report, points).await;
            assert!(!first.is_empty(), "{points}: a message is there");
            assert_eq!(first, second, "{points}, {start_points}");
        }
    }
}

#[test]
fn a_run_that_panics_ends_with_an_error() {
    let folder = Folder::new();
    let report = run_process(0, "panic", &folder);
    let ends: Vec<&Value> =
        report.values("event").filter(|event| event[1] == "error" || event[1] == "completed").collect();
    assert_eq!(ends.len(), 2, "{:#?}", report.seen); // J-035
    for end in ends {
        assert!(end[2].as_str().unwrap().contains("internal_error"), "{end}");
    }
    assert!(report.has_ended());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_writer_of_the_database_that_dies_stops_the_server_and_loses_nothing() {
    let gate = crate::mock::Gate::new();
    let mut script = vec![delta_step("before "), Step::Wait(gate.clone()), delta_step("after")];
    script.extend(finish_steps("stop"));
    let mock = MockServer::start(vec![script]).await;
    let process = ServerProcess::start(&mock, false);
    let request = json!({"text": "x", "dialect": "plain", "output_protocol": "jsonseq_v1"});
    let mut stream = process.server.open_stream(&request).await;
    let seen_events = stream.read_until("final_delta").await;
    let id = stream_message_id(&seen_events);
    process.kill_writer();
    gate.open();
    let (code, folder, log) = process.wait_exit().await;
    assert_eq!(code, Some(1), "{log}");
    for log_line in ["the writer of the database stopped unexpectedly", "the store failed; the server stops"]
    {
        let line =
            log.lines().find(|line| line.contains(log_line)).unwrap_or_else(|| panic!("{log_line}: {log}"));
        assert!(line.contains(r#""level":"ERROR""#), "{line}");
    }
    let next_config = test_config(&folder);
    let server = TestServer::serve(folder, next_config).await;
    let events = server.follow(&id, &[]).await.read_checked().await;
    check_stream(&events);
    let before = numbered_events(&seen_events);
    assert_eq!(numbered_events(&events)[..before.len()], before, "what was seen is there"); // J-036
}
