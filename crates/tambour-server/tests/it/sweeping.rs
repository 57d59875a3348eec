//! Deleted content leaves the files while other writes run, and no request waits for it; panicked tasks are restarted.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sqlx::sqlite::{SqliteAutoVacuum, SqliteConnectOptions, SqliteJournalMode};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, SqliteConnection};
use tambour_server::store::{Deletion as _, SqliteStore, Store as _};
use tokio_util::sync::CancellationToken;

use crate::client::{EventStream, check_stream};
use crate::dialogues::{SAY_ACTION, post_text, round_answer, start_dialogue, turn_of};
use crate::mock::{MockServer, reply_script};
use crate::server::{Folder, TestServer, test_config, with_timeout};
use crate::server_process::ServerProcess;

/// Bytes that were deleted.
const DELETED_BYTES: usize = 400 << 20;

/// Number of free pages.
async fn free_pages(connection: &mut SqliteConnection) -> i64 {
    sqlx::query_scalar("pragma freelist_count").fetch_one(connection).await.unwrap()
}

/// A folder with a database of many free pages, and their number.
async fn emptied_database() -> (Folder, i64) {
    let folder = Folder::new();
    let mock = MockServer::start(vec![reply_script("x", 1)]).await;
    let mut database_config = test_config(&folder);
    database_config.add_upstream(&mock.url(), None).unwrap();
    let file = folder.0.join("data").join("tambour.sqlite");
    let folder = TestServer::serve(folder, database_config).await.stop().await;
    let options = SqliteConnectOptions::new()
        .filename(&file)
        .auto_vacuum(SqliteAutoVacuum::Incremental)
        .journal_mode(SqliteJournalMode::Wal);
    let mut connection = options.connect().await.unwrap();
    for text in ["create table filler (a blob)", "begin"] {
        sqlx::query(text).execute(&mut connection).await.unwrap();
    }
    for _ in 0..DELETED_BYTES >> 20 {
        let fill = AssertSqlSafe(format!("insert into filler values (zeroblob({}))", 1 << 20));
        sqlx::query(fill).execute(&mut connection).await.unwrap();
    }
    for text in ["commit", "drop table filler"] {
        sqlx::query(text).execute(&mut connection).await.unwrap();
    }
    let free = free_pages(&mut connection).await;
    assert!(free > 90_000, "{free}");
    connection.close().await.unwrap();
    (folder, free)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn others_write_while_a_large_deletion_leaves_the_file() {
    let (folder, free_page_count) = emptied_database().await;
    let file = folder.0.join("data").join("tambour.sqlite");
    let size = || std::fs::metadata(&file).unwrap().len();
    let before = size();
    let mock = MockServer::start(vec![reply_script("x", 1)]).await;
    let mut next_config = test_config(&folder);
    next_config.add_upstream(&mock.url(), None).unwrap();
    next_config.drain_ms = 100;
    let mut server = TestServer::serve(folder, next_config).await;
    let (mut slowest_request, mut requests_during) = (Duration::ZERO, 0);
    let start_time = Instant::now();
    while start_time.elapsed() < Duration::from_secs(3) {
        let request_start = Instant::now();
        let response = server.post("/api/v1/conversations", &json!({})).await;
        assert_eq!(response.status, 201, "{}", response.text);
        slowest_request = slowest_request.max(request_start.elapsed());
        requests_during += 1;
    }
    assert!(
        requests_during > 20 && slowest_request < Duration::from_secs(1),
        "{requests_during} requests, the slowest in {slowest_request:?}"
    );
    // Slices have left the file meanwhile.
    let options = SqliteConnectOptions::new().filename(&file).read_only(true);
    let mut connection = options.connect().await.unwrap();
    let remaining_pages = free_pages(&mut connection).await;
    connection.close().await.unwrap();
    assert!(
        remaining_pages < free_page_count - 1000,
        "{remaining_pages} of {free_page_count} pages are still there"
    );
    // A stop does not wait for the rest.
    let request_start = Instant::now();
    server.request_stop();
    let _folder = server.stop().await;
    assert!(request_start.elapsed() < Duration::from_secs(3), "{:?}", request_start.elapsed());
    assert!(size() <= before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sweep_that_a_reader_blocks_only_at_first_erases_everything() {
    let folder = Folder::new();
    let file = folder.0.join("tambour.db");
    let store = SqliteStore::open(&file, false).await.unwrap();
    let options = SqliteConnectOptions::new()
        .filename(&file)
        .busy_timeout(Duration::from_secs(10))
        .pragma("wal_autocheckpoint", "0");
    let mut connection = options.connect().await.unwrap();
    for text in
        ["create table filler (a blob)", "insert into filler values (zeroblob(1048576))", "drop table filler"]
    {
        sqlx::query(text).execute(&mut connection).await.unwrap();
    }
    let free_page_count = free_pages(&mut connection).await;
    assert!(free_page_count > 100, "{free_page_count}");
    // This reader needs the write-ahead file, which cannot be truncated meanwhile.
    let mut reader = options.connect().await.unwrap();
    for text in ["begin", "select count(*) from messages"] {
        sqlx::query(text).execute(&mut reader).await.unwrap();
    }
    let sweeping_store = store.clone();
    let sweep = tokio::spawn(async move { sweeping_store.sweep(&CancellationToken::new()).await });
    // The first checkpoint gives up after ten seconds; then pages are freed.
    with_timeout(async {
        while free_pages(&mut connection).await == free_page_count {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    reader.close().await.unwrap();
    assert!(with_timeout(sweep).await.unwrap().unwrap());
    connection.close().await.unwrap();
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_panics_is_begun_again_and_counted() {
    let mock = MockServer::start(vec![reply_script("a-word-to-delete", 4)]).await;
    let process = ServerProcess::start(&mock, false);
    for task in ["sweep", "watch"] {
        let file = process.make_panic_at(task);
        // The sweep looks when something was deleted, the watch by itself.
        let response =
            process.server.post("/api/v1/messages", &json!({"text": "x", "dialect": "plain"})).await.json;
        let id = response["message_id"].as_str().unwrap().to_owned();
        process.server.wait_ended(&id).await;
        assert_eq!(process.server.call("delete", &format!("/api/v1/messages/{id}"), None).await.status, 204);
        let metric_name = format!("tambour_task_panics_total{{task=\"{task}\"}}");
        crate::server::with_timeout(async {
            while !process
                .server
                .get("/metrics")
                .await
                .text
                .lines()
                .any(|line| line.starts_with(&metric_name))
            {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await;
        std::fs::remove_file(file).unwrap();
    }
    // Both work again.
    crate::deletion::wait_until_erased(&data_folder(&process), "a-word-to-delete").await;
    let log = std::fs::read_to_string(process.server.folder.0.join("log")).unwrap();
    assert!(log.contains("a task of the server panicked; restarting it"), "{log}");
}

/// The data folder of the server.
fn data_folder(process: &ServerProcess) -> std::mem::ManuallyDrop<Folder> {
    std::mem::ManuallyDrop::new(Folder(process.server.folder.0.join("data")))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn threads_of_the_store_that_panic_stop_the_server() {
    for (point, log_line) in [
        ("checkpoint", "the task that copies the write-ahead file to the database panicked"),
        ("sync.before", "the thread that writes the journal to the disk panicked"),
    ] {
        let mock = MockServer::start(vec![reply_script(&"x".repeat(2 << 20), 64 << 10)]).await;
        let process = ServerProcess::durable(&mock);
        let _file = process.make_panic_at(point);
        // Enough for a checkpoint.
        for _ in 0..8 {
            // It is answered when it has ended, or the server has.
            let request = json!({"text": "x", "dialect": "plain", "wait": true}).to_string();
            let url = format!("http://{}/api/v1/messages", process.server.address);
            let _ =
                reqwest::Client::builder().no_proxy().build().unwrap().post(url).body(request).send().await;
        }
        let (code, _folder, log) = process.wait_exit().await;
        assert_eq!(code, Some(1), "{log}");
        assert!(log.contains(log_line) && log.contains("the store failed; the server stops"), "{log}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn settings_that_two_change_at_once_are_the_same_in_memory_and_on_the_disk() {
    let mock = MockServer::start(vec![reply_script("x", 1)]).await;
    let server = TestServer::start_default(&mock).await;
    let change = |n: usize| json!({"texts": {"fallback": format!("text {n}")}, "text_language": if n.is_multiple_of(2) { "en" } else { "zh" }});
    let changes: Vec<Value> = (0..60).map(change).collect();
    let answers =
        futures_util::future::join_all(changes.iter().map(|change| server.put("/api/v1/settings", change)))
            .await;
    let mut versions: Vec<u64> =
        answers.iter().map(|answer| answer.json["version"].as_u64().unwrap()).collect();
    versions.sort_unstable();
    assert_eq!(*versions.last().unwrap(), 60);
    let snapshot = server.get("/api/v1/settings").await.json;
    assert_eq!(snapshot["version"], 60);
    // Two who change what they have both read: the second is told.
    let first_change = json!({"text_language": "en", "version": 60});
    assert_eq!(server.put("/api/v1/settings", &first_change).await.status, 200);
    let late = server.put("/api/v1/settings", &first_change).await;
    assert_eq!(
        (late.status, late.problem_code(), &late.json["version"]),
        (409, "settings_changed", &json!(61))
    );
    let wrong = server.put("/api/v1/settings", &json!({"version": "x"})).await;
    assert_eq!((wrong.status, wrong.problem_code()), (422, "invalid_field"));
    let snapshot = server.get("/api/v1/settings").await.json;
    let folder = server.stop().await;
    let mut next_config = test_config(&folder);
    next_config.add_upstream(&mock.url(), Some("a-model".into())).unwrap();
    let server = TestServer::serve(folder, next_config).await;
    assert_eq!(server.get("/api/v1/settings").await.json, snapshot);
}

/// A server that retains nothing, held after its first sweep.
async fn server_without_retention(mock: &MockServer) -> ServerProcess {
    let process = ServerProcess::start_with(mock, &json!({"days": 0}), &["sweep"]);
    process.wait_until_held("sweep").await;
    process
}

/// Triggers the sweep, and waits until it reaches a fail point where it is held.
async fn sweep_up_to(process: &ServerProcess, point: &str) {
    // A deletion triggers the sweep.
    let response = process.server.post("/api/v1/conversations", &json!({})).await.json;
    let path = format!("/api/v1/conversations/{}", response["conversation_id"].as_str().unwrap());
    assert_eq!(process.server.call("delete", &path, None).await.status, 204);
    process.hold_at(point);
    process.release("sweep").await;
    process.wait_until_held(point).await;
    process.hold_at("sweep");
}

/// Releases the sweep from a fail point, up to the end of its pass.
async fn sweep_from(process: &ServerProcess, point: &str) {
    process.release(point).await;
    process.wait_until_held("sweep").await;
}

/// Opens the stream of an input.
async fn open_input(process: &ServerProcess, dialogue: &str) -> EventStream {
    let path = format!("/api/v1/dialogues/{dialogue}/input");
    let body = json!({"text": "甲", "stream": true}).to_string();
    EventStream::open(process.server.address, "POST", &path, &[], Some(&body)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_dialogue_is_deleted_under_a_turn_that_has_begun() {
    let mock = MockServer::start(vec![reply_script(&round_answer(30, false, "一"), 9)]).await;
    let process = server_without_retention(&mock).await;
    let id = start_dialogue(&process.server, &[SAY_ACTION]).await;
    // The dialogue was listed as expired, and a turn begins.
    sweep_up_to(&process, "sweep.dialogue").await;
    let mut stream = open_input(&process, &id).await;
    assert_eq!(stream.status, 200);
    sweep_from(&process, "sweep.dialogue").await;
    let events = with_timeout(stream.read_rest()).await;
    check_stream(&events);
    assert_eq!(
        (events.last().unwrap().name.as_str(), turn_of(&events)["ai_message"].clone()),
        ("completed", json!("一"))
    );
    let snapshot = process.server.get(&format!("/api/v1/dialogues/{id}")).await;
    assert_eq!(
        (snapshot.status, snapshot.json["history"].as_array().map(Vec::len)),
        (200, Some(2)),
        "{}",
        snapshot.text
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dialogue_that_goes_on_when_its_time_is_over_stays() {
    let mock = MockServer::start(vec![reply_script(&round_answer(30, false, "一"), 9)]).await;
    let process = server_without_retention(&mock).await;
    let id = start_dialogue(&process.server, &[SAY_ACTION]).await;
    // A turn begins and ends between the listing and the deletion.
    sweep_up_to(&process, "sweep.listed").await;
    assert_eq!(post_text(&process.server, &id, "甲").await["ai_message"], "一");
    sweep_from(&process, "sweep.listed").await;
    let snapshot = process.server.get(&format!("/api/v1/dialogues/{id}")).await;
    assert_eq!(snapshot.status, 200, "{}", snapshot.text);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_turn_begins_in_a_dialogue_that_is_being_deleted() {
    let mock = MockServer::start(vec![reply_script(&round_answer(30, false, "一"), 9)]).await;
    let process = server_without_retention(&mock).await;
    let id = start_dialogue(&process.server, &[SAY_ACTION]).await;
    let path = format!("/api/v1/dialogues/{id}");
    // The dialogue has a turn of its own to delete.
    assert_eq!(post_text(&process.server, &id, "甲").await["ai_message"], "一");
    sweep_up_to(&process, "deletion.after").await;
    assert_eq!(process.server.get(&path).await.status, 200, "its row is the last to go");
    assert_eq!(open_input(&process, &id).await.status, 404);
    sweep_from(&process, "deletion.after").await;
    assert_eq!(process.server.get(&path).await.status, 404);
    assert_eq!(mock.calls().started, 1);
}
