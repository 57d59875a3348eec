//! Databases of earlier versions open and read as before.

use std::path::Path;

use serde_json::json;
use sqlx::SqlitePool;
use sqlx::sqlite::SqliteConnectOptions;

use crate::client::{check, message, numbered};
use crate::mock::{Gate, Mock, Step, delta, reply};
use crate::server::{Folder, Tambour};

/// Database of a killed process whose journal was a table: one completed message, one in the middle.
const DATABASE: &str = "../../fixtures/databases/journal-table.sqlite";
/// Events of the second message that a client had received.
const SEEN: &str = "../../fixtures/databases/journal-table.sse";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_with_the_journal_in_a_table() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = Folder::new();
    let data = folder.0.join("data");
    std::fs::create_dir(&data).unwrap();
    std::fs::copy(root.join(DATABASE), data.join("tambour.sqlite")).unwrap();
    let seen = std::fs::read_to_string(root.join(SEEN)).unwrap();
    let seen: Vec<&str> = seen.split("\n\n").filter(|frame| frame.starts_with("id: ")).collect();
    assert!(seen.len() > 10);
    let config = crate::server::config(&folder);
    let mut server = Tambour::serve(folder, config).await;
    for _ in 0..2 {
        let conversations = server.get("/api/v1/conversations").await.json;
        let id = conversations["data"][0]["conversation_id"].as_str().unwrap();
        let shown = server.get(&format!("/api/v1/conversations/{id}")).await.json;
        let messages = shown["messages"].as_array().unwrap();
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
        let events = server.follow(id, &[]).await.whole().await;
        check(&events);
        let all = numbered(&events);
        for (was, is) in seen.iter().zip(&all) {
            assert_eq!(*was, is.frame.trim_end(), "what was seen has changed");
        }
        assert!(all.len() > seen.len());
        assert_eq!(all.last().unwrap().data["code"], "interrupted");
        let folder = server.stopped().await;
        let config = crate::server::config(&folder);
        server = Tambour::serve(folder, config).await;
    }
}

/// Order of a backup as in `docs/operations.md`: first the journal, then the database, while the server runs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_of_a_running_server() {
    let mock = Mock::start(vec![reply("Done.", 2), vec![delta("begun"), Step::Wait(Gate::new())]]).await;
    let server = Tambour::with(&mock).await;
    let ask = json!({"text": "x", "dialect": "plain", "output_protocol": "jsonseq_v1"});
    let done = message(&server.stream(&ask).await.whole().await);
    let mut running = server.stream(&ask).await;
    let seen = running.until("final_delta").await;
    let data = server.folder.0.join("data");
    let backup = Folder::new();
    let restored = backup.0.join("data");
    std::fs::create_dir_all(restored.join("tambour.journal")).unwrap();
    for segment in std::fs::read_dir(data.join("tambour.journal")).unwrap().map(Result::unwrap) {
        std::fs::copy(segment.path(), restored.join("tambour.journal").join(segment.file_name())).unwrap();
    }
    let from = SqliteConnectOptions::new().filename(data.join("tambour.sqlite"));
    let pool = SqlitePool::connect_with(from).await.unwrap();
    let into = restored.join("tambour.sqlite").display().to_string();
    sqlx::query("vacuum into ?").bind(into).execute(&pool).await.unwrap();
    pool.close().await;
    drop(running);
    drop(server);
    let config = crate::server::config(&backup);
    let server = Tambour::serve(backup, config).await;
    assert_eq!(server.ended(&done).await["answer"], "Done.");
    let events = server.follow(&message(&seen), &[]).await.whole().await;
    check(&events);
    let before = numbered(&seen);
    assert_eq!(numbered(&events)[..before.len()], before);
    assert_eq!(numbered(&events).last().unwrap().data["code"], "interrupted");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_of_a_later_version_is_refused_and_not_changed() {
    let folder = Folder::new();
    let config = crate::server::config(&folder);
    let file = config.database_file().unwrap();
    let folder = Tambour::serve(folder, config).await.stopped().await;
    let pool = SqlitePool::connect_with(SqliteConnectOptions::new().filename(&file)).await.unwrap();
    let later = "insert into _sqlx_migrations select 9999, 'later', installed_on, 1, checksum, 0 from _sqlx_migrations limit 1";
    sqlx::query(later).execute(&pool).await.unwrap();
    let refused = tambour_server::Server::start(crate::server::config(&folder)).await.err().unwrap();
    assert!(refused.to_string().starts_with("the database could not be migrated"), "{refused}");
    let epoch: i64 = sqlx::query_scalar("select epoch from server").fetch_one(&pool).await.unwrap();
    assert_eq!(epoch, 1);
    pool.close().await;
}
