//! Messages name the server that runs them, and a start does not close those of other servers.

use std::path::Path;

use sqlx::SqlitePool;
use sqlx::sqlite::SqliteConnectOptions;
use tambour_server::store::{Batch, Log as _, MessageRow, Messages as _, SqliteStore, Store as _};

use crate::journal::begin;

use crate::client::{check_stream, numbered_events};
use crate::server::{Folder, TestServer, test_config};

/// The database of a server that does not run.
async fn open_database(file: &Path) -> SqlitePool {
    SqlitePool::connect_with(SqliteConnectOptions::new().filename(file)).await.unwrap()
}

/// A message in the middle of its reply, as a killed server leaves it.
async fn begin_message(store: &SqliteStore, id: &str) {
    let row = MessageRow {
        id: id.to_owned(),
        conversation_id: "conv_1".to_owned(),
        request_id: format!("req_{id}"),
        owner: "local".to_owned(),
        created: "2026-01-01T00:00:00.000Z".to_owned(),
        status: "running".to_owned(),
        request: r#"{"text":"x","dialect":"plain","output_protocol":"jsonseq_v1"}"#.to_owned(),
        ..MessageRow::default()
    };
    let mut lease = begin(store, &row).await;
    let mut batch = Batch::new(1);
    batch.push_raw(1, "four");
    lease.append(batch).await.into_result().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_closes_what_is_its_own_or_nobodys() {
    let folder = Folder::new();
    let file = test_config(&folder).database_file().unwrap();
    let store = SqliteStore::open(&file, false).await.unwrap();
    let own_identity = store.identity().clone();
    assert_eq!(own_identity.epoch, 1);
    for id in ["msg_own", "msg_nobodys", "msg_foreign", "msg_now"] {
        begin_message(&store, id).await;
    }
    store.close().await;
    let pool = open_database(&file).await;
    let change = "update messages set server = null, epoch = null where id = 'msg_nobodys'; \
        update messages set server = 'srv_other', epoch = 1, lease = '2020-01-01T00:00:00.000Z' where id = 'msg_foreign'; \
        update messages set epoch = 2 where id = 'msg_now'";
    sqlx::query(change).execute(&pool).await.unwrap();
    pool.close().await;
    let config = test_config(&folder);
    let server = TestServer::serve(folder, config).await;
    for id in ["msg_own", "msg_nobodys"] {
        let events = server.follow(id, &[]).await.read_checked().await;
        check_stream(&events);
        assert_eq!(numbered_events(&events).last().unwrap().data["code"], "interrupted", "{id}");
        assert_eq!(server.get(&format!("/api/v1/messages/{id}")).await.json["status"], "failed", "{id}");
    }
    // A message of another server may still be running; one of this start is not of the previous one.
    for id in ["msg_foreign", "msg_now"] {
        let record = server.get(&format!("/api/v1/messages/{id}")).await.json;
        assert_eq!(record["status"], "running", "{id}");
        assert_eq!(record["reply"], "four", "{id}");
        assert!(record.get("error").is_none(), "{id}");
    }
    let folder = server.stop().await;
    let pool = open_database(&file).await;
    let entries =
        sqlx::query_scalar::<_, i64>("select max(last) from entries where message_id = 'msg_foreign'");
    assert_eq!(entries.fetch_one(&pool).await.unwrap(), 1, "nothing was added");
    let rows: Vec<(String, i64)> =
        sqlx::query_as("select id, epoch from server").fetch_all(&pool).await.unwrap();
    assert_eq!(rows, [(own_identity.server.clone(), 2)], "the id stays, the epoch rises");
    pool.close().await;
    // The message of that start belongs to the previous one now.
    let next_config = crate::server::test_config(&folder);
    let server = TestServer::serve(folder, next_config).await;
    assert_eq!(server.get("/api/v1/messages/msg_now").await.json["status"], "failed");
    assert_eq!(server.get("/api/v1/messages/msg_foreign").await.json["status"], "running");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_journal_has_without_its_database_is_closed() {
    let folder = Folder::new();
    let file = folder.0.join("tambour.db");
    let store = SqliteStore::open(&file, false).await.unwrap();
    begin_message(&store, "msg_1").await;
    // After a kill, the entries of the journal are put into an empty database.
    let journal = folder.0.join("tambour.journal");
    let segment = std::fs::read_dir(&journal).unwrap().next().unwrap().unwrap();
    let segment_bytes = std::fs::read(segment.path()).unwrap();
    let own_identity = store.identity().clone();
    store.close().await;
    let other = Folder::new();
    std::fs::create_dir(other.0.join("tambour.journal")).unwrap();
    std::fs::write(other.0.join("tambour.journal/0000000000000001.log"), segment_bytes).unwrap();
    let store = SqliteStore::open(&other.0.join("tambour.db"), false).await.unwrap();
    assert_eq!(store.message("msg_1").await.unwrap().unwrap().status, "running");
    assert_ne!(store.identity().server, own_identity.server);
    // The server that ran it is dead, under any name of its database.
    let abandoned = store.list_abandoned().await.unwrap();
    assert_eq!(abandoned.iter().map(|row| row.id.as_str()).collect::<Vec<_>>(), ["msg_1"]);
    store.close().await;
}
