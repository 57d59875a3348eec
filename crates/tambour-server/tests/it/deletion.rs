//! Deleted content is gone from every file.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sqlx::ConnectOptions as _;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};

use crate::mock::{Gate, Mock, Step, delta, finish};
use crate::server::{Folder, Tambour, config, within};

/// Words that occur nowhere else.
const ASKED: &str = "quixotic-zephyr-asked";
const SAID: &str = "quixotic-zephyr-said";

async fn server(mock: &Mock, change: impl FnOnce(&mut tambour_server::Config)) -> Tambour {
    let folder = Folder::new();
    let mut config = config(&folder);
    config.add_upstream(&mock.url(), None).unwrap();
    change(&mut config);
    Tambour::serve(folder, config).await
}

fn reply(text: &str) -> Vec<Step> {
    vec![delta(text)].into_iter().chain(finish("stop")).collect()
}

/// Waits up to a minute until a word occurs in no file of the folder.
pub(crate) async fn gone(folder: &Folder, word: &str) {
    let started = Instant::now();
    loop {
        let holds = |file: &std::path::PathBuf| {
            let bytes = std::fs::read(file).unwrap_or_default();
            bytes.windows(word.len()).any(|part| part == word.as_bytes())
        };
        let left: Vec<_> = folder.files().into_iter().filter(holds).collect();
        if left.is_empty() {
            return;
        }
        assert!(started.elapsed() < Duration::from_secs(60), "`{word}` is still in {left:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn ask(conversation: &Value, text: &str) -> Value {
    json!({"text": text, "dialect": "plain", "conversation_id": conversation})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_message_is_in_no_file_after_a_minute() {
    let mock = Mock::start(vec![reply(SAID), reply("something else")]).await;
    let server = server(&mock, |_| {}).await;
    let conversation = server.post("/api/v1/conversations", &json!({})).await.json["conversation_id"].clone();
    let mut ids = Vec::new();
    for text in [ASKED, "another question"] {
        let made = server.post("/api/v1/messages", &ask(&conversation, text)).await.json;
        let id = made["message_id"].as_str().unwrap().to_owned();
        server.ended(&id).await;
        ids.push(id);
    }
    // The reply went to the model again, as history.
    assert!(mock.asked()[1].body.to_string().contains(SAID));
    let path = format!("/api/v1/messages/{}", ids[0]);
    assert_eq!(server.call("delete", &path, None).await.status, 204);
    assert_eq!(server.get(&path).await.status, 404);
    assert_eq!(server.get(&format!("{path}/events")).await.status, 404);
    assert_eq!(server.call("delete", &path, None).await.status, 404);
    gone(&server.folder, SAID).await;
    gone(&server.folder, ASKED).await;
    // The second message survives a restart, the first does not.
    let other = server.get(&format!("/api/v1/messages/{}", ids[1])).await.json;
    assert_eq!(other["answer"], "something else");
    assert_eq!(other["prompt"], json!([{"role": "user", "content": "another question"}]));
    let folder = server.stopped().await;
    let config = server_config(&mock)(&folder);
    let server = Tambour::serve(folder, config).await;
    assert_eq!(server.get(&path).await.status, 404);
    let shown = server.get(&format!("/api/v1/conversations/{}", conversation.as_str().unwrap())).await.json;
    assert_eq!(shown["messages"].as_array().unwrap().len(), 1);
}

/// Configuration of a server that restarts in the folder of another.
fn server_config(mock: &Mock) -> impl FnOnce(&Folder) -> tambour_server::Config + use<> {
    let url = mock.url();
    move |folder| {
        let mut config = config(folder);
        config.add_upstream(&url, None).unwrap();
        config
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deleting_a_conversation_cancels_what_runs_in_it() {
    let gate = Gate::new();
    let mock = Mock::start(vec![vec![delta(SAID), Step::Wait(gate.clone())]]).await;
    let server = server(&mock, |_| {}).await;
    let mut stream =
        server.stream(&json!({"text": ASKED, "dialect": "plain", "output_protocol": "jsonseq_v1"})).await;
    let events = stream.until("final_delta").await;
    let id = crate::client::message(&events);
    let record = server.get(&format!("/api/v1/messages/{id}")).await.json;
    let conversation = format!("/api/v1/conversations/{}", record["conversation_id"].as_str().unwrap());
    assert_eq!(server.call("delete", &conversation, None).await.status, 204);
    let rest = stream.rest().await;
    assert_eq!(rest.last().unwrap().data["finish_reason"], "cancelled");
    mock.until(|calls| calls.over == 1).await;
    for path in [&conversation, &format!("/api/v1/messages/{id}")] {
        assert_eq!(server.get(path).await.status, 404);
    }
    gone(&server.folder, SAID).await;
    gone(&server.folder, ASKED).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_whose_time_is_over_go() {
    let long = "x".repeat(4000);
    let mock = Mock::start(vec![reply(&format!("{SAID} {long}")), reply(&long), reply(&long)]).await;
    let server = server(&mock, |config| config.retention.bytes = Some(40_000)).await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        let made = server.post("/api/v1/messages", &ask(&Value::Null, "x")).await.json;
        let id = made["message_id"].as_str().unwrap().to_owned();
        server.ended(&id).await;
        ids.push(id);
    }
    // A start sweeps at once.
    let folder = server.stopped().await;
    let mut config = server_config(&mock)(&folder);
    config.retention.bytes = Some(40_000);
    let server = Tambour::serve(folder, config).await;
    gone(&server.folder, SAID).await;
    assert_eq!(server.get(&format!("/api/v1/messages/{}", ids[0])).await.status, 404);
    assert_eq!(server.get(&format!("/api/v1/messages/{}", ids[2])).await.status, 200);
    // Retention in days: first nothing is old enough, then everything.
    let folder = server.stopped().await;
    let mut config = server_config(&mock)(&folder);
    config.retention.days = Some(1);
    let server = Tambour::serve(folder, config).await;
    assert_eq!(server.get(&format!("/api/v1/messages/{}", ids[2])).await.status, 200);
    let folder = server.stopped().await;
    let mut config = server_config(&mock)(&folder);
    config.retention.days = Some(0);
    let server = Tambour::serve(folder, config).await;
    let started = Instant::now();
    while server.get(&format!("/api/v1/messages/{}", ids[2])).await.status != 404 {
        assert!(started.elapsed() < Duration::from_secs(60));
    }
}

/// A dialogue whose user has entered a word, with an idempotency key.
async fn dialogue(server: &Tambour, key: &str) -> String {
    let yaml = "sessions:\n  - session: s\n    phases:\n      - phase: p\n        steps:\n          - topic: t\n            \
                actions:\n              - {type: ai_say, content: x}\n";
    let script = server.post("/api/v1/scripts", &json!({"name": "s", "yaml": yaml})).await.json;
    let new = json!({"script_id": script["script_id"], "variables": {"v": ASKED}});
    let made = server.post("/api/v1/dialogues", &new).await.json;
    let id = made["dialogue_id"].as_str().unwrap().to_owned();
    // Long enough to dominate the size: the text is in the state and in the record of the call.
    let text = format!("{ASKED} {}", "x".repeat(20_000));
    let input = json!({"text": text, "request_id": key});
    let turn = server.post(&format!("/api/v1/dialogues/{id}/input"), &input).await;
    assert_eq!(turn.status, 200, "{}", turn.text);
    id
}

fn round() -> Vec<Step> {
    reply(&json!({"response": {"咨询师": SAID}}).to_string())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_dialogue_is_in_no_file_after_a_minute() {
    let mock = Mock::start(vec![round()]).await;
    let server = server(&mock, |_| {}).await;
    let id = dialogue(&server, "1").await;
    let path = format!("/api/v1/dialogues/{id}");
    assert_eq!(server.call("delete", &path, None).await.status, 204);
    assert_eq!(server.get(&path).await.status, 404);
    gone(&server.folder, SAID).await;
    gone(&server.folder, ASKED).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dialogues_whose_time_is_over_go() {
    let mock = Mock::start(vec![round(), round()]).await;
    let server = server(&mock, |_| {}).await;
    let (first, second) = (dialogue(&server, "1").await, dialogue(&server, "2").await);
    let folder = server.stopped().await;
    let mut config = server_config(&mock)(&folder);
    config.retention.days = Some(1);
    // Room for one of the two.
    config.retention.bytes = Some(75_000);
    let server = Tambour::serve(folder, config).await;
    let started = Instant::now();
    while server.get(&format!("/api/v1/dialogues/{first}")).await.status != 404 {
        assert!(started.elapsed() < Duration::from_secs(60));
    }
    assert_eq!(server.get(&format!("/api/v1/dialogues/{second}")).await.status, 200);
    let folder = server.stopped().await;
    let mut config = server_config(&mock)(&folder);
    config.retention.days = Some(0);
    let server = Tambour::serve(folder, config).await;
    gone(&server.folder, SAID).await;
    gone(&server.folder, ASKED).await;
    assert_eq!(server.get(&format!("/api/v1/dialogues/{second}")).await.status, 404);
}

/// Connection to the database of a running server.
async fn database(server: &Tambour) -> SqliteConnection {
    let file = server.folder.0.join("data").join("tambour.sqlite");
    let options = SqliteConnectOptions::new().filename(file).busy_timeout(Duration::from_secs(10));
    options.connect().await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conversation_that_cannot_be_deleted_stays_open() {
    let mock = Mock::start(vec![reply(SAID), vec![delta(SAID), Step::Stall], reply(SAID)]).await;
    let server = server(&mock, |_| {}).await;
    let mut database = database(&server).await;
    let conversation = server.post("/api/v1/conversations", &json!({})).await.json["conversation_id"].clone();
    let path = format!("/api/v1/conversations/{}", conversation.as_str().unwrap());
    let posted = async || {
        let made = server.post("/api/v1/messages", &ask(&conversation, "x")).await;
        assert_eq!(made.status, 202, "{}", made.text);
        made.json["message_id"].as_str().unwrap().to_owned()
    };
    let refused_by = async |database: &mut SqliteConnection, refuse, allow| {
        // The write has reached the database only.
        assert_eq!(server.get("/readyz").await.status, 200);
        sqlx::query(refuse).execute(&mut *database).await.unwrap();
        let failed = server.call("delete", &path, None).await;
        assert!(matches!(failed.status, 500 | 503), "{}: {}", failed.status, failed.text);
        sqlx::query(allow).execute(&mut *database).await.unwrap();
        // The failed write is stored by now.
        within(async { while server.get("/readyz").await.status != 200 {} }).await;
    };
    // The database refuses the deletion.
    let id = posted().await;
    server.ended(&id).await;
    let refuse =
        "create trigger refuses before delete on conversations begin select raise(abort, 'refused'); end";
    refused_by(&mut database, refuse, "drop trigger refuses").await;
    // The database cannot list what runs either; the run ends all the same.
    let id = posted().await;
    mock.until(|calls| calls.begun == 2).await;
    let (refuse, allow) = ("alter table messages rename to away", "alter table away rename to messages");
    refused_by(&mut database, refuse, allow).await;
    mock.until(|calls| calls.deserted == 1).await;
    assert_eq!(server.ended(&id).await["status"], "cancelled");
    let id = posted().await;
    assert_eq!(server.ended(&id).await["status"], "completed");
    assert_eq!(server.call("delete", &path, None).await.status, 204);
    let refused = server.post("/api/v1/messages", &ask(&conversation, "x")).await;
    assert_eq!((refused.status, refused.problem()), (404, "not_found"));
}
