//! Databases of earlier versions open and read as before.

use std::path::Path;

use serde_json::json;
use sqlx::SqlitePool;
use sqlx::sqlite::SqliteConnectOptions;

use crate::client::{check_stream, numbered_events, stream_message_id};
use crate::mock::{Gate, MockServer, Step, delta_step, reply_script};
use crate::server::{Folder, TestServer};

/// Database of a killed process whose journal was a table: one completed message, one in the middle.
const OLD_DATABASE: &str = "../../fixtures/databases/journal-table.sqlite";
/// Events of the second message that a client had received.
const SEEN_EVENTS: &str = "../../fixtures/databases/journal-table.sse";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_with_the_journal_in_a_table() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = Folder::new();
    let data = folder.0.join("data");
    std::fs::create_dir(&data).unwrap();
    std::fs::copy(root.join(OLD_DATABASE), data.join("tambour.sqlite")).unwrap();
    let seen_frames = std::fs::read_to_string(root.join(SEEN_EVENTS)).unwrap();
    let seen_frames: Vec<&str> =
        seen_frames.split("\n\n").filter(|frame| frame.starts_with("id: ")).collect();
    assert!(seen_frames.len() > 10);
    let config = crate::server::test_config(&folder);
    let mut server = TestServer::serve(folder, config).await;
    for _ in 0..2 {
        let conversations = server.get("/api/v1/conversations").await.json;
        let id = conversations["data"][0]["conversation_id"].as_str().unwrap();
        let snapshot = server.get(&format!("/api/v1/conversations/{id}")).await.json;
        let messages = snapshot["messages"].as_array().unwrap();
        assert_eq!(messages.len(), 2);
        let (first, second) = (&messages[0], &messages[1]);
        // The completed message, unchanged: listed without its events, complete on its own.
        assert_eq!(
            (&first["status"], &first["request"]["text"]),
            (&"completed".into(), &"first question".into())
        );
        assert!(first.get("events").is_none() && !first["reply"].as_str().unwrap().is_empty());
        let path = format!("/api/v1/messages/{}", first["message_id"].as_str().unwrap());
        assert!(server.get(&path).await.json["events"].as_array().unwrap().len() > 3);
        // The interrupted message: everything a client had received, then its end.
        let id = second["message_id"].as_str().unwrap();
        let events = server.follow(id, &[]).await.read_checked().await;
        check_stream(&events);
        let all = numbered_events(&events);
        for (seen_frame, event) in seen_frames.iter().zip(&all) {
            assert_eq!(*seen_frame, event.frame.trim_end(), "what was seen has changed");
        }
        assert!(all.len() > seen_frames.len());
        assert_eq!(all.last().unwrap().data["code"], "interrupted");
        let folder = server.stop().await;
        let config = crate::server::test_config(&folder);
        server = TestServer::serve(folder, config).await;
    }
}

/// Order of a backup as in `docs/operations.md`: first the journal, then the database, while the server runs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_of_a_running_server() {
    let mock =
        MockServer::start(vec![reply_script("Done.", 2), vec![delta_step("begun"), Step::Wait(Gate::new())]])
            .await;
    let server = TestServer::start_default(&mock).await;
    let request = json!({"text": "x", "dialect": "plain", "output_protocol": "jsonseq_v1"});
    let completed_id = stream_message_id(&server.open_stream(&request).await.read_checked().await);
    let mut running = server.open_stream(&request).await;
    let seen_events = running.read_until("final_delta").await;
    let data = server.folder.0.join("data");
    let backup = Folder::new();
    let restored = backup.0.join("data");
    std::fs::create_dir_all(restored.join("tambour.journal")).unwrap();
    for segment in std::fs::read_dir(data.join("tambour.journal")).unwrap().map(Result::unwrap) {
        std::fs::copy(segment.path(), restored.join("tambour.journal").join(segment.file_name())).unwrap();
    }
    let from = SqliteConnectOptions::new().filename(data.join("tambour.sqlite"));
    let pool = SqlitePool::connect_with(from).await.unwrap();
    let backup_file = restored.join("tambour.sqlite").display().to_string();
    sqlx::query("vacuum into ?").bind(backup_file).execute(&pool).await.unwrap();
    pool.close().await;
    drop(running);
    drop(server);
    let config = crate::server::test_config(&backup);
    let server = TestServer::serve(backup, config).await;
    assert_eq!(server.wait_ended(&completed_id).await["answer"], "Done.");
    let events = server.follow(&stream_message_id(&seen_events), &[]).await.read_checked().await;
    check_stream(&events);
    let before = numbered_events(&seen_events);
    assert_eq!(numbered_events(&events)[..before.len()], before);
    assert_eq!(numbered_events(&events).last().unwrap().data["code"], "interrupted");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_of_a_later_version_is_refused_and_not_changed() {
    let folder = Folder::new();
    let config = crate::server::test_config(&folder);
    let file = config.database_file().unwrap();
    let folder = TestServer::serve(folder, config).await.stop().await;
    let pool = SqlitePool::connect_with(SqliteConnectOptions::new().filename(&file)).await.unwrap();
    let insertion = "insert into _sqlx_migrations select 9999, 'later', installed_on, 1, checksum, 0 from _sqlx_migrations limit 1";
    sqlx::query(insertion).execute(&pool).await.unwrap();
    let refusal = tambour_server::Server::start(crate::server::test_config(&folder)).await.err().unwrap();
    assert!(refusal.to_string().starts_with("the database could not be migrated"), "{refusal}");
    let epoch: i64 = sqlx::query_scalar("select epoch from server").fetch_one(&pool).await.unwrap();
    assert_eq!(epoch, 1);
    pool.close().await;
}
