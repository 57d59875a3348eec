//! Deleted content leaves the files while other writes run, and no request waits for it; panicked tasks are restarted.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sqlx::sqlite::{SqliteAutoVacuum, SqliteConnectOptions, SqliteJournalMode};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, SqliteConnection};

use crate::client::{Stream, check};
use crate::dialogues::{SAY, answer, say, started, turn};
use crate::mock::{Mock, reply};
use crate::server::{Folder, Tambour, config, within};
use crate::server_process::ServerProcess;

/// Bytes that were deleted.
const MANY: usize = 400 << 20;

/// Number of free pages.
async fn free(connection: &mut SqliteConnection) -> i64 {
    sqlx::query_scalar("pragma freelist_count").fetch_one(connection).await.unwrap()
}

/// A folder with a database of many free pages, and their number.
async fn emptied() -> (Folder, i64) {
    let folder = Folder::new();
    let mock = Mock::start(vec![reply("x", 1)]).await;
    let mut made = config(&folder);
    made.add_upstream(&mock.url(), None).unwrap();
    let file = folder.0.join("data").join("tambour.sqlite");
    let folder = Tambour::serve(folder, made).await.stopped().await;
    let options = SqliteConnectOptions::new()
        .filename(&file)
        .auto_vacuum(SqliteAutoVacuum::Incremental)
        .journal_mode(SqliteJournalMode::Wal);
    let mut connection = options.connect().await.unwrap();
    for text in ["create table filler (a blob)", "begin"] {
        sqlx::query(text).execute(&mut connection).await.unwrap();
    }
    for _ in 0..MANY >> 20 {
        let fill = AssertSqlSafe(format!("insert into filler values (zeroblob({}))", 1 << 20));
        sqlx::query(fill).execute(&mut connection).await.unwrap();
    }
    for text in ["commit", "drop table filler"] {
        sqlx::query(text).execute(&mut connection).await.unwrap();
    }
    let free = free(&mut connection).await;
    assert!(free > 90_000, "{free}");
    connection.close().await.unwrap();
    (folder, free)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn others_write_while_a_large_deletion_leaves_the_file() {
    let (folder, emptied) = emptied().await;
    let file = folder.0.join("data").join("tambour.sqlite");
    let size = || std::fs::metadata(&file).unwrap().len();
    let before = size();
    let mock = Mock::start(vec![reply("x", 1)]).await;
    let mut again = config(&folder);
    again.add_upstream(&mock.url(), None).unwrap();
    again.drain_ms = 100;
    let mut server = Tambour::serve(folder, again).await;
    let (mut slowest, mut during) = (Duration::ZERO, 0);
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(3) {
        let begun = Instant::now();
        let made = server.post("/api/v1/conversations", &json!({})).await;
        assert_eq!(made.status, 201, "{}", made.text);
        slowest = slowest.max(begun.elapsed());
        during += 1;
    }
    assert!(during > 20 && slowest < Duration::from_secs(1), "{during} requests, the slowest in {slowest:?}");
    // Slices have left the file meanwhile.
    let options = SqliteConnectOptions::new().filename(&file).read_only(true);
    let mut connection = options.connect().await.unwrap();
    let left = free(&mut connection).await;
    connection.close().await.unwrap();
    assert!(left < emptied - 1000, "{left} of {emptied} pages are still there");
    // A stop does not wait for the rest.
    let begun = Instant::now();
    server.stopping();
    let _folder = server.stopped().await;
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    assert!(size() <= before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_panics_is_begun_again_and_counted() {
    let mock = Mock::start(vec![reply("a-word-to-delete", 4)]).await;
    let apart = ServerProcess::start(&mock, false);
    for task in ["sweep", "watch"] {
        let file = apart.panic_at(task);
        // The sweep runs after a deletion, the watch on its own.
        let made =
            apart.server.post("/api/v1/messages", &json!({"text": "x", "dialect": "plain"})).await.json;
        let id = made["message_id"].as_str().unwrap().to_owned();
        apart.server.ended(&id).await;
        assert_eq!(apart.server.call("delete", &format!("/api/v1/messages/{id}"), None).await.status, 204);
        let counted = format!("tambour_task_panics_total{{task=\"{task}\"}}");
        crate::server::within(async {
            while !apart.server.get("/metrics").await.text.lines().any(|line| line.starts_with(&counted)) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await;
        std::fs::remove_file(file).unwrap();
    }
    // Both work again.
    crate::deletion::gone(&data(&apart), "a-word-to-delete").await;
    let log = std::fs::read_to_string(apart.server.folder.0.join("log")).unwrap();
    assert!(log.contains("a task of the server panicked; it is begun again"), "{log}");
}

/// The data folder of the server.
fn data(apart: &ServerProcess) -> std::mem::ManuallyDrop<Folder> {
    std::mem::ManuallyDrop::new(Folder(apart.server.folder.0.join("data")))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn threads_of_the_store_that_panic_stop_the_server() {
    for (point, said) in [
        ("checkpoint", "the task that brings the write-ahead file to the database has died"),
        ("sync.before", "the thread that brings the journal to the disk has died"),
    ] {
        let mock = Mock::start(vec![reply(&"x".repeat(2 << 20), 64 << 10)]).await;
        let apart = ServerProcess::durable(&mock);
        let _file = apart.panic_at(point);
        // Enough for a checkpoint.
        for _ in 0..8 {
            // Answered once the message, or the server, has ended.
            let ask = json!({"text": "x", "dialect": "plain", "wait": true}).to_string();
            let url = format!("http://{}/api/v1/messages", apart.server.address);
            let _ = reqwest::Client::builder().no_proxy().build().unwrap().post(url).body(ask).send().await;
        }
        let (code, _folder, log) = apart.ended().await;
        assert_eq!(code, Some(1), "{log}");
        assert!(log.contains(said) && log.contains("the store cannot go on"), "{log}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn settings_that_two_change_at_once_are_the_same_in_memory_and_on_the_disk() {
    let mock = Mock::start(vec![reply("x", 1)]).await;
    let server = Tambour::with(&mock).await;
    let change = |n: usize| json!({"texts": {"fallback": format!("text {n}")}, "text_language": if n.is_multiple_of(2) { "en" } else { "zh" }});
    let changes: Vec<Value> = (0..60).map(change).collect();
    let answers =
        futures_util::future::join_all(changes.iter().map(|change| server.put("/api/v1/settings", change)))
            .await;
    let mut versions: Vec<u64> =
        answers.iter().map(|answer| answer.json["version"].as_u64().unwrap()).collect();
    versions.sort_unstable();
    assert_eq!(*versions.last().unwrap(), 60);
    let shown = server.get("/api/v1/settings").await.json;
    assert_eq!(shown["version"], 60);
    // Two clients change the version they have both read: the second gets a conflict.
    let seen = json!({"text_language": "en", "version": 60});
    assert_eq!(server.put("/api/v1/settings", &seen).await.status, 200);
    let late = server.put("/api/v1/settings", &seen).await;
    assert_eq!((late.status, late.problem(), &late.json["version"]), (409, "settings_changed", &json!(61)));
    let wrong = server.put("/api/v1/settings", &json!({"version": "x"})).await;
    assert_eq!((wrong.status, wrong.problem()), (422, "invalid_field"));
    let shown = server.get("/api/v1/settings").await.json;
    let folder = server.stopped().await;
    let mut again = config(&folder);
    again.add_upstream(&mock.url(), Some("a-model".into())).unwrap();
    let server = Tambour::serve(folder, again).await;
    assert_eq!(server.get("/api/v1/settings").await.json, shown);
}

/// A server that retains nothing, held after its first sweep.
async fn sweeping(mock: &Mock) -> ServerProcess {
    let apart = ServerProcess::with(mock, &json!({"days": 0}), &["sweep"]);
    apart.until_held("sweep").await;
    apart
}

/// Triggers the sweep, and waits until it reaches a fail point where it is held.
async fn sweep_up_to(apart: &ServerProcess, point: &str) {
    // A deletion triggers the sweep.
    let made = apart.server.post("/api/v1/conversations", &json!({})).await.json;
    let path = format!("/api/v1/conversations/{}", made["conversation_id"].as_str().unwrap());
    assert_eq!(apart.server.call("delete", &path, None).await.status, 204);
    apart.hold(point);
    apart.let_go("sweep").await;
    apart.until_held(point).await;
    apart.hold("sweep");
}

/// Releases the sweep from a fail point, up to the end of its pass.
async fn sweep_from(apart: &ServerProcess, point: &str) {
    apart.let_go(point).await;
    apart.until_held("sweep").await;
}

/// Opens the stream of an input.
async fn input(apart: &ServerProcess, dialogue: &str) -> Stream {
    let path = format!("/api/v1/dialogues/{dialogue}/input");
    let body = json!({"text": "甲", "stream": true}).to_string();
    Stream::open(apart.server.address, "POST", &path, &[], Some(&body)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_dialogue_is_deleted_under_a_turn_that_has_begun() {
    let mock = Mock::start(vec![reply(&answer(30, false, "一"), 9)]).await;
    let apart = sweeping(&mock).await;
    let id = started(&apart.server, &[SAY]).await;
    // The dialogue was listed as expired, and a turn begins.
    sweep_up_to(&apart, "sweep.dialogue").await;
    let mut stream = input(&apart, &id).await;
    assert_eq!(stream.status, 200);
    sweep_from(&apart, "sweep.dialogue").await;
    let events = within(stream.rest()).await;
    check(&events);
    assert_eq!(
        (events.last().unwrap().name.as_str(), turn(&events)["ai_message"].clone()),
        ("completed", json!("一"))
    );
    let shown = apart.server.get(&format!("/api/v1/dialogues/{id}")).await;
    assert_eq!(
        (shown.status, shown.json["history"].as_array().map(Vec::len)),
        (200, Some(2)),
        "{}",
        shown.text
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dialogue_that_goes_on_when_its_time_is_over_stays() {
    let mock = Mock::start(vec![reply(&answer(30, false, "一"), 9)]).await;
    let apart = sweeping(&mock).await;
    let id = started(&apart.server, &[SAY]).await;
    // A turn begins and ends between the listing and the deletion.
    sweep_up_to(&apart, "sweep.listed").await;
    assert_eq!(say(&apart.server, &id, "甲").await["ai_message"], "一");
    sweep_from(&apart, "sweep.listed").await;
    let shown = apart.server.get(&format!("/api/v1/dialogues/{id}")).await;
    assert_eq!(shown.status, 200, "{}", shown.text);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_turn_begins_in_a_dialogue_that_is_being_deleted() {
    let mock = Mock::start(vec![reply(&answer(30, false, "一"), 9)]).await;
    let apart = sweeping(&mock).await;
    let id = started(&apart.server, &[SAY]).await;
    let path = format!("/api/v1/dialogues/{id}");
    // The dialogue has a turn of its own to delete.
    assert_eq!(say(&apart.server, &id, "甲").await["ai_message"], "一");
    sweep_up_to(&apart, "deletion.after").await;
    assert_eq!(apart.server.get(&path).await.status, 200, "its row is the last to go");
    assert_eq!(input(&apart, &id).await.status, 404);
    sweep_from(&apart, "deletion.after").await;
    assert_eq!(apart.server.get(&path).await.status, 404);
    assert_eq!(mock.calls().begun, 1);
}
