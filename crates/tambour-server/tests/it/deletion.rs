//! Deleted content is gone from every file.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sqlx::ConnectOptions as _;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};

use crate::mock::{Gate, MockServer, Step, delta_step, finish_steps};
use crate::server::{Folder, TestServer, test_config, with_timeout};

/// Words that occur nowhere else.
const INPUT_WORD: &str = "quixotic-zephyr-asked";
const REPLY_WORD: &str = "quixotic-zephyr-said";

async fn server(mock: &MockServer, change: impl FnOnce(&mut tambour_server::Config)) -> TestServer {
    let folder = Folder::new();
    let mut config = test_config(&folder);
    config.add_upstream(&mock.url(), None).unwrap();
    change(&mut config);
    TestServer::serve(folder, config).await
}

fn reply_with_text(text: &str) -> Vec<Step> {
    vec![delta_step(text)].into_iter().chain(finish_steps("stop")).collect()
}

/// Waits up to a minute until a word occurs in no file of the folder.
pub(crate) async fn wait_until_erased(folder: &Folder, word: &str) {
    let start_time = Instant::now();
    loop {
        let contains_word = |file: &std::path::PathBuf| {
            let bytes = std::fs::read(file).unwrap_or_default();
            bytes.windows(word.len()).any(|part| part == word.as_bytes())
        };
        let remaining_files: Vec<_> = folder.files().into_iter().filter(contains_word).collect();
        if remaining_files.is_empty() {
            return;
        }
        assert!(start_time.elapsed() < Duration::from_secs(60), "`{word}` is still in {remaining_files:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn request_body(conversation: &Value, text: &str) -> Value {
    json!({"text": text, "dialect": "plain", "conversation_id": conversation})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_message_is_in_no_file_after_a_minute() {
    let mock = MockServer::start(vec![reply_with_text(REPLY_WORD), reply_with_text("something else")]).await;
    let server = server(&mock, |_| {}).await;
    let conversation = server.post("/api/v1/conversations", &json!({})).await.json["conversation_id"].clone();
    let mut ids = Vec::new();
    for text in [INPUT_WORD, "another question"] {
        let response = server.post("/api/v1/messages", &request_body(&conversation, text)).await.json;
        let id = response["message_id"].as_str().unwrap().to_owned();
        server.wait_ended(&id).await;
        ids.push(id);
    }
    // The reply went to the model again, as history.
    assert!(mock.requests()[1].body.to_string().contains(REPLY_WORD));
    let path = format!("/api/v1/messages/{}", ids[0]);
    assert_eq!(server.call("delete", &path, None).await.status, 204);
    assert_eq!(server.get(&path).await.status, 404);
    assert_eq!(server.get(&format!("{path}/events")).await.status, 404);
    assert_eq!(server.call("delete", &path, None).await.status, 404);
    wait_until_erased(&server.folder, REPLY_WORD).await;
    wait_until_erased(&server.folder, INPUT_WORD).await;
    // The second message survives a restart, the first does not.
    let other = server.get(&format!("/api/v1/messages/{}", ids[1])).await.json;
    assert_eq!(other["answer"], "something else");
    assert_eq!(other["prompt"], json!([{"role": "user", "content": "another question"}]));
    let folder = server.stop().await;
    let config = server_config(&mock)(&folder);
    let server = TestServer::serve(folder, config).await;
    assert_eq!(server.get(&path).await.status, 404);
    let snapshot =
        server.get(&format!("/api/v1/conversations/{}", conversation.as_str().unwrap())).await.json;
    assert_eq!(snapshot["messages"].as_array().unwrap().len(), 1);
}

/// Configuration of a server that restarts in the folder of another.
fn server_config(mock: &MockServer) -> impl FnOnce(&Folder) -> tambour_server::Config + use<> {
    let url = mock.url();
    move |folder| {
        let mut config = test_config(folder);
        config.add_upstream(&url, None).unwrap();
        config
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deleting_a_conversation_cancels_what_runs_in_it() {
    let gate = Gate::new();
    let mock = MockServer::start(vec![vec![delta_step(REPLY_WORD), Step::Wait(gate.clone())]]).await;
    let server = server(&mock, |_| {}).await;
    let mut stream = server
        .open_stream(&json!({"text": INPUT_WORD, "dialect": "plain", "output_protocol": "jsonseq_v1"}))
        .await;
    let events = stream.read_until("final_delta").await;
    let id = crate::client::stream_message_id(&events);
    let record = server.get(&format!("/api/v1/messages/{id}")).await.json;
    let conversation = format!("/api/v1/conversations/{}", record["conversation_id"].as_str().unwrap());
    assert_eq!(server.call("delete", &conversation, None).await.status, 204);
    let rest = stream.read_rest().await;
    assert_eq!(rest.last().unwrap().data["finish_reason"], "cancelled");
    mock.wait_until(|calls| calls.ended == 1).await;
    for path in [&conversation, &format!("/api/v1/messages/{id}")] {
        assert_eq!(server.get(path).await.status, 404);
    }
    wait_until_erased(&server.folder, REPLY_WORD).await;
    wait_until_erased(&server.folder, INPUT_WORD).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_whose_time_is_over_go() {
    let long = "x".repeat(4000);
    let mock = MockServer::start(vec![
        reply_with_text(&format!("{REPLY_WORD} {long}")),
        reply_with_text(&long),
        reply_with_text(&long),
    ])
    .await;
    let server = server(&mock, |config| config.retention.bytes = Some(40_000)).await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        let response = server.post("/api/v1/messages", &request_body(&Value::Null, "x")).await.json;
        let id = response["message_id"].as_str().unwrap().to_owned();
        server.wait_ended(&id).await;
        ids.push(id);
    }
    // A start sweeps at once.
    let folder = server.stop().await;
    let mut config = server_config(&mock)(&folder);
    config.retention.bytes = Some(40_000);
    let server = TestServer::serve(folder, config).await;
    wait_until_erased(&server.folder, REPLY_WORD).await;
    assert_eq!(server.get(&format!("/api/v1/messages/{}", ids[0])).await.status, 404);
    assert_eq!(server.get(&format!("/api/v1/messages/{}", ids[2])).await.status, 200);
    // Retention in days: first nothing is old enough, then everything.
    let folder = server.stop().await;
    let mut config = server_config(&mock)(&folder);
    config.retention.days = Some(1);
    let server = TestServer::serve(folder, config).await;
    assert_eq!(server.get(&format!("/api/v1/messages/{}", ids[2])).await.status, 200);
    let folder = server.stop().await;
    let mut config = server_config(&mock)(&folder);
    config.retention.days = Some(0);
    let server = TestServer::serve(folder, config).await;
    let start_time = Instant::now();
    while server.get(&format!("/api/v1/messages/{}", ids[2])).await.status != 404 {
        assert!(start_time.elapsed() < Duration::from_secs(60));
    }
}

/// A dialogue whose user has entered a word, with an idempotency key.
async fn new_dialogue(server: &TestServer, key: &str) -> String {
    let yaml = "sessions:\n  - session: s\n    phases:\n      - phase: p\n        steps:\n          - topic: t\n            \
                actions:\n              - {type: ai_say, content: x}\n";
    let script = server.post("/api/v1/scripts", &json!({"name": "s", "yaml": yaml})).await.json;
    let new = json!({"script_id": script["script_id"], "variables": {"v": INPUT_WORD}});
    let response = server.post("/api/v1/dialogues", &new).await.json;
    let id = response["dialogue_id"].as_str().unwrap().to_owned();
    // Long enough to dominate the size: the text is in the state and in the record of the call.
    let text = format!("{INPUT_WORD} {}", "x".repeat(20_000));
    let input = json!({"text": text, "request_id": key});
    let turn = server.post(&format!("/api/v1/dialogues/{id}/input"), &input).await;
    assert_eq!(turn.status, 200, "{}", turn.text);
    id
}

fn round_script() -> Vec<Step> {
    reply_with_text(&json!({"response": {"咨询师": REPLY_WORD}}).to_string())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_dialogue_is_in_no_file_after_a_minute() {
    let mock = MockServer::start(vec![round_script()]).await;
    let server = server(&mock, |_| {}).await;
    let id = new_dialogue(&server, "1").await;
    let path = format!("/api/v1/dialogues/{id}");
    assert_eq!(server.call("delete", &path, None).await.status, 204);
    assert_eq!(server.get(&path).await.status, 404);
    wait_until_erased(&server.folder, REPLY_WORD).await;
    wait_until_erased(&server.folder, INPUT_WORD).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dialogues_whose_time_is_over_go() {
    let mock = MockServer::start(vec![round_script(), round_script()]).await;
    let server = server(&mock, |_| {}).await;
    let (first, second) = (new_dialogue(&server, "1").await, new_dialogue(&server, "2").await);
    let folder = server.stop().await;
    let mut config = server_config(&mock)(&folder);
    config.retention.days = Some(1);
    // Room for one of the two.
    config.retention.bytes = Some(75_000);
    let server = TestServer::serve(folder, config).await;
    let start_time = Instant::now();
    while server.get(&format!("/api/v1/dialogues/{first}")).await.status != 404 {
        assert!(start_time.elapsed() < Duration::from_secs(60));
    }
    assert_eq!(server.get(&format!("/api/v1/dialogues/{second}")).await.status, 200);
    let folder = server.stop().await;
    let mut config = server_config(&mock)(&folder);
    config.retention.days = Some(0);
    let server = TestServer::serve(folder, config).await;
    wait_until_erased(&server.folder, REPLY_WORD).await;
    wait_until_erased(&server.folder, INPUT_WORD).await;
    assert_eq!(server.get(&format!("/api/v1/dialogues/{second}")).await.status, 404);
}

/// Connection to the database of a running server.
async fn open_database(server: &TestServer) -> SqliteConnection {
    let file = server.folder.0.join("data").join("tambour.sqlite");
    let options = SqliteConnectOptions::new().filename(file).busy_timeout(Duration::from_secs(10));
    options.connect().await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conversation_that_cannot_be_deleted_stays_open() {
    let mock = MockServer::start(vec![
        reply_with_text(REPLY_WORD),
        vec![delta_step(REPLY_WORD), Step::WaitDisconnect],
        reply_with_text(REPLY_WORD),
    ])
    .await;
    let server = server(&mock, |_| {}).await;
    let mut database = open_database(&server).await;
    let conversation = server.post("/api/v1/conversations", &json!({})).await.json["conversation_id"].clone();
    let path = format!("/api/v1/conversations/{}", conversation.as_str().unwrap());
    let send_message = async || {
        let response = server.post("/api/v1/messages", &request_body(&conversation, "x")).await;
        assert_eq!(response.status, 202, "{}", response.text);
        response.json["message_id"].as_str().unwrap().to_owned()
    };
    let refusal_by_database = async |database: &mut SqliteConnection, refuse, allow| {
        // The write has reached the database only.
        assert_eq!(server.get("/readyz").await.status, 200);
        sqlx::query(refuse).execute(&mut *database).await.unwrap();
        let failure = server.call("delete", &path, None).await;
        assert!(matches!(failure.status, 500 | 503), "{}: {}", failure.status, failure.text);
        sqlx::query(allow).execute(&mut *database).await.unwrap();
        // The failed write is stored by now.
        with_timeout(async { while server.get("/readyz").await.status != 200 {} }).await;
    };
    // The database refuses the deletion.
    let id = send_message().await;
    server.wait_ended(&id).await;
    let refuse =
        "create trigger refuses before delete on conversations begin select raise(abort, 'refused'); end";
    refusal_by_database(&mut database, refuse, "drop trigger refuses").await;
    // The database cannot list what runs either; the run ends all the same.
    let id = send_message().await;
    mock.wait_until(|calls| calls.started == 2).await;
    let (refuse, allow) = ("alter table messages rename to away", "alter table away rename to messages");
    refusal_by_database(&mut database, refuse, allow).await;
    mock.wait_until(|calls| calls.abandoned == 1).await;
    assert_eq!(server.wait_ended(&id).await["status"], "cancelled");
    let id = send_message().await;
    assert_eq!(server.wait_ended(&id).await["status"], "completed");
    assert_eq!(server.call("delete", &path, None).await.status, 204);
    let refusal = server.post("/api/v1/messages", &request_body(&conversation, "x")).await;
    assert_eq!((refusal.status, refusal.problem_code()), (404, "not_found"));
}
