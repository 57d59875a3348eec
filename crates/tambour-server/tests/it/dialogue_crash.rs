//! A dialogue whose server dies at any write: no input is applied twice, no round is lost, and the dialogue reaches its end.

use serde_json::{Value, json};
use tambour_server::store::{
    Batch, BeginOutcome, Log as _, MessageRow, NewRun, RunKind, SqliteStore, Store as _,
};

use crate::child_process::{child_arguments, die_at, print_seen, run_async, run_child};
use crate::client::{EventStream, event_names};
use crate::dialogues::{round_answer, script_of_actions};
use crate::server::{Folder, TestServer, test_config};

/// Inputs until the dialogue has ended.
const INPUTS: usize = 4;

/// A server whose model never judges that the user has understood.
async fn start_server(folder: Folder) -> TestServer {
    let answer_text = round_answer(30, false, "一");
    let recording = json!({"id": "a", "chunks": [answer_text], "finish_reason": "stop", "delays_ms": [0]});
    let file = folder.write_file("replies.jsonl", &recording.to_string());
    let mut config = test_config(&folder);
    config.add_upstream(&format!("replay={}", file.display()), None).unwrap();
    TestServer::serve(folder, config).await
}

/// Posts input `number`, with a request id of its own.
async fn post_input(server: &TestServer, dialogue: &str, number: usize) -> Value {
    let body = json!({"text": format!("text {number}"), "request_id": format!("r{number}")});
    let turn = server.post(&format!("/api/v1/dialogues/{dialogue}/input"), &body).await;
    assert_eq!(turn.status, 200, "{}", turn.text);
    turn.json
}

async fn run_client(server: TestServer) {
    let actions =
        ["{type: ai_say, content: one, max_rounds: 2}", "{type: ai_say, content: two, max_rounds: 2}"];
    let response =
        server.post("/api/v1/scripts", &json!({"name": "s", "yaml": script_of_actions(&actions)})).await.json;
    let dialogue = server.post("/api/v1/dialogues", &json!({"script_id": response["script_id"]})).await.json;
    print_seen("dialogue", &dialogue["dialogue_id"]);
    for number in 0..INPUTS {
        let turn = post_input(&server, dialogue["dialogue_id"].as_str().unwrap(), number).await;
        print_seen("turn", &turn);
    }
    print_seen("end", &Value::Null);
    // The folder belongs to the parent.
    std::mem::forget(server);
    std::process::exit(0);
}

/// Not a test: the dying process, run by its parent.
#[test]
#[ignore = "the test below runs it"]
fn child() {
    let arguments = child_arguments();
    let folder = Folder(arguments["folder"].as_str().unwrap().into());
    die_at(arguments["points"].as_u64().unwrap(), |point| point != "run");
    run_async(async { run_client(start_server(folder).await).await });
}

/// Numbers of completed and of interrupted calls in the trace.
async fn count_calls(server: &TestServer, dialogue: &str) -> (usize, usize) {
    let trace = server.get(&format!("/api/v1/dialogues/{dialogue}/trace")).await;
    let calls = trace.json["data"].as_array().expect(&trace.text).clone();
    let is_interrupted = |call: &&Value| call["status"] == "interrupted";
    for call in calls.iter().filter(is_interrupted) {
        assert_eq!((&call["error"]["code"], &call["raw"]), (&json!("interrupted"), &Value::Null), "{call}"); // S-096
        assert!(call["prompt"][0]["content"].is_string() && call["upstream"].is_string(), "{call}");
    }
    let is_interrupted = calls.iter().filter(is_interrupted).count();
    (calls.len() - is_interrupted, is_interrupted)
}

/// Number of rounds in the trace.
async fn count_rounds(server: &TestServer, dialogue: &str) -> usize {
    count_calls(server, dialogue).await.0
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_dies_between_two_steps_takes_no_input_twice() {
    let (mut deaths, mut deaths_in_calls) = (0, 0);
    for points in 1.. {
        let folder = Folder::new();
        let report = run_child("dialogue_crash::child", &json!({"points": points, "folder": folder.0}));
        if report.has_ended() {
            break;
        }
        let Some(dialogue) = report.find("dialogue") else { continue };
        deaths += 1;
        let dialogue = dialogue.as_str().unwrap();
        let turns: Vec<&Value> = report.values("turn").collect();
        let server = start_server(folder).await;
        let (completed_calls, interrupted_calls) = count_calls(&server, dialogue).await;
        assert!(interrupted_calls <= 1, "{points}: {interrupted_calls}");
        deaths_in_calls += interrupted_calls;
        assert!(
            completed_calls == turns.len() || completed_calls == turns.len() + 1,
            "{points}: {completed_calls} rounds, {} seen",
            turns.len()
        );
        // S-067: an answered input has the same answer, without another round.
        for (number, turn) in turns.iter().enumerate() {
            assert_eq!(post_input(&server, dialogue, number).await, **turn, "{points}");
        }
        assert_eq!(count_rounds(&server, dialogue).await, completed_calls, "{points}");
        // The input under way is applied once, and the dialogue reaches its end.
        for number in turns.len()..INPUTS {
            let turn = post_input(&server, dialogue, number).await;
            assert_eq!(
                turn["status"] == "completed",
                number + 1 == INPUTS,
                "{points}, input {number}: {turn}"
            );
            assert_eq!(count_rounds(&server, dialogue).await, number + 1, "{points}, input {number}");
            assert_eq!(post_input(&server, dialogue, number).await, turn, "{points}");
        }
        // A round counts once, with its record.
        let figures = server.get("/api/v1/figures").await.json;
        assert_eq!(figures["total"]["completed"], INPUTS, "{points}: {figures}");
        let snapshot = server.get(&format!("/api/v1/dialogues/{dialogue}")).await.json;
        assert_eq!(snapshot["status"], "completed", "{points}: {snapshot}");
        let texts: Vec<&str> = snapshot["history"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|history_text| history_text["content"].as_str())
            .collect();
        for number in 0..INPUTS {
            let history_text = format!("text {number}");
            assert_eq!(texts.iter().filter(|text| **text == history_text).count(), 1, "{points}: {texts:?}");
        }
    }
    assert!(deaths > 20, "{deaths}");
    // A call in which the server died is in the trace.
    assert!(deaths_in_calls > 4, "{deaths_in_calls}"); // S-096
}

/// Recovers a turn whose log has its end but whose outcome is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_whose_log_has_its_end_gets_no_second_one() {
    let server = start_server(Folder::new()).await;
    let dialogue = crate::dialogues::start_dialogue(&server, &["{type: ai_say, content: x}"]).await;
    let folder = server.stop().await;
    let store = SqliteStore::open(&folder.0.join("data").join("tambour.sqlite"), false).await.unwrap();
    let ends = [
        ("completed", r#"{"finish_reason":"stop"}"#),
        ("error", r#"{"code":"internal_error","message":"m"}"#),
    ];
    for (at, (name, data)) in ends.into_iter().enumerate() {
        let row = MessageRow {
            id: format!("turn_{at}"),
            conversation_id: dialogue.clone(),
            request_id: "req".to_owned(),
            owner: "local".to_owned(),
            created: "2026-01-01T00:00:00.000Z".to_owned(),
            status: "running".to_owned(),
            request: "{}".to_owned(),
            kind: RunKind::Turn,
            ..MessageRow::default()
        };
        let Ok(BeginOutcome::Started { mut lease, .. }) =
            store.begin(NewRun { row, ..NewRun::default() }).await
        else {
            panic!("it begins")
        };
        let mut log = Batch::new(1);
        log.push_event("final_delta", |out| out.extend_from_slice(r#"{"text":"一"}"#.as_bytes()));
        log.push_event("final_end", |out| out.extend_from_slice(b"{}"));
        log.push_event(name, |out| out.extend_from_slice(data.as_bytes()));
        // Bytes as the store reads them: its API never writes an end alone.
        lease.append(Batch::from_stored(1, log.last(), log.body().to_vec())).await.into_result().unwrap();
    }
    store.close().await;
    drop(store);
    let server = start_server(folder).await;
    for (at, (name, _)) in ends.into_iter().enumerate() {
        let path = format!("/api/v1/dialogues/{dialogue}/turns/turn_{at}/events");
        let events = EventStream::open(server.address, "GET", &path, &[], None).await.read_rest().await;
        assert_eq!(event_names(&events), ["final_delta", "final_end", name]);
        // A client that has read everything learns that the log is over.
        let path = format!("{path}?after=3");
        assert_eq!(EventStream::open(server.address, "GET", &path, &[], None).await.status, 204, "{name}");
    }
}
