//! PostgreSQL, as one of several servers.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use tambour_server::store::{
    Admin as _, Cluster as _, ConversationLock, DialogueRow, Dialogues as _, Log as _, LogState,
    PostgresOptions, PostgresStore, StatePoint, States as _, Store as _, StoreError, StoredUpdate,
    WriteOutcome,
};

use super::dialogues::{DIALOGUE, FORK, insert_dialogue};
use super::{
    Backend, ENTRIES, SuiteStore, batch, begin_run, insert_conversation, message_row, new_run, read_log,
    run_end,
};
use crate::postgres::cluster;
use crate::server::with_timeout;

/// A store in a database of its own.
pub(super) struct PostgresBackend {
    url: String,
    store: PostgresStore,
    /// Access to the dialogues of the suite, which it may change.
    _locks: Vec<Box<dyn ConversationLock>>,
}

#[async_trait]
impl Backend for PostgresBackend {
    async fn open() -> PostgresBackend {
        let url = cluster().await.new_database().await;
        PostgresBackend::open_at(url).await
    }

    fn store(&self) -> Arc<dyn SuiteStore> {
        Arc::new(self.store.clone())
    }

    async fn crash(self) -> PostgresBackend {
        self.store.crash().await.unwrap();
        // The next server finds what the dead one has left.
        PostgresBackend::open_at(self.url).await
    }

    async fn state(&self, conversation: &str) -> Value {
        self.store.state(conversation).await.unwrap().unwrap_or_default().state
    }

    async fn requests(&self) -> i64 {
        let usage = self.store.usage(None, ("2026-01-01", "2026-01-01"), None, 10).await.unwrap();
        usage.iter().map(|usage| usage.requests).sum()
    }
}

impl PostgresBackend {
    async fn open_at(url: String) -> PostgresBackend {
        let store = PostgresStore::open(&PostgresOptions::new(url.clone())).await.unwrap();
        let mut locks = Vec::new();
        for id in [DIALOGUE, FORK] {
            locks.push(lock(&store, id).await.expect("its server is gone"));
        }
        PostgresBackend { url, store, _locks: locks }
    }
}

/// Takes access to a conversation or dialogue; `None` if another server has it.
async fn lock(store: &PostgresStore, id: &str) -> Option<Box<dyn ConversationLock>> {
    let mut lock = store.conversation_lock(id);
    lock.take().await.unwrap().then_some(lock)
}

/// A server that does not know yet that another one has taken its run over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_database_refuses_entries_of_a_lease_that_was_taken_over() {
    let url = cluster().await.new_database().await;
    let first = PostgresStore::open(&PostgresOptions::new(url.clone())).await.unwrap();
    let second = PostgresStore::open(&PostgresOptions::new(url.clone())).await.unwrap();
    insert_conversation(&first).await;
    let mut old_lease = begin_run(&first, new_run("msg")).await;
    old_lease.append(batch(1)).await.into_result().unwrap();
    assert_eq!(old_lease.wait_settled().await, WriteOutcome::Stored);
    assert!(second.claim("msg").await.unwrap().is_none(), "its server lives");
    // By the clock of the database the first server is gone; by its own it is not.
    let pool = sqlx::PgPool::connect(&url).await.unwrap();
    let query = sqlx::query("update servers set lease_until = now() - interval '1 second' where id = $1");
    query.bind(&first.identity().server).execute(&pool).await.unwrap();
    let mut lease = second.claim("msg").await.unwrap().unwrap();
    assert!(lease.epoch() > old_lease.epoch());
    assert_eq!(lease.next_number(), ENTRIES + 1);
    let _ = old_lease.append(batch(ENTRIES + 1)).await;
    assert_eq!(old_lease.wait_settled().await, WriteOutcome::Fenced);
    assert_eq!(old_lease.finish(run_end(old_lease.next_number(), 1, 0)).await, WriteOutcome::Fenced);
    lease.append(batch(ENTRIES + 1)).await.into_result().unwrap();
    assert_eq!(lease.finish(run_end(2 * ENTRIES + 1, 1, 0)).await, WriteOutcome::Stored);
    for store in [&first, &second] {
        assert_eq!(read_log(store, "msg").await, (2 * ENTRIES + 1, LogState::Ended));
    }
    assert_eq!(first.cluster().unwrap().status().fenced_runs, 1);
}

/// A server that stood still for longer than its lease, and goes on with what it had begun.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_database_refuses_changes_of_a_server_that_has_lost_its_access() {
    let url = cluster().await.new_database().await;
    let first = PostgresStore::open(&PostgresOptions::new(url.clone())).await.unwrap();
    let second = PostgresStore::open(&PostgresOptions::new(url.clone())).await.unwrap();
    insert_conversation(&first).await;
    insert_dialogue(&first).await;
    let conversation = message_row("msg").conversation_id;
    let update = |position| StoredUpdate { position, applied: "[]".to_owned() };
    let row = first.dialogue(DIALOGUE).await.unwrap().unwrap();
    let _first_lock = lock(&first, &conversation).await.unwrap();
    assert!(lock(&second, &conversation).await.is_none(), "its server lives");
    assert!(first.add_state_update(&conversation, "upd_1", &update(1), ("", "{}")).await.unwrap());
    let pool = sqlx::PgPool::connect(&url).await.unwrap();
    let query = sqlx::query("update servers set lease_until = now() - interval '1 second' where id = $1");
    query.bind(&first.identity().server).execute(&pool).await.unwrap();
    let mut locks = Vec::new();
    for id in [&*conversation, DIALOGUE] {
        locks.push(lock(&second, id).await.unwrap());
    }
    // The same holds once the other server has given the access up.
    for is_given_up in [false, true] {
        if is_given_up {
            locks.clear();
            let count = "select count(*) from conversation_locks";
            with_timeout(async {
                while sqlx::query_scalar::<_, i64>(count).fetch_one(&pool).await.unwrap() > 0 {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            })
            .await;
        }
        let results = [
            first.add_state_update(&conversation, "upd_2", &update(2), ("", "{}")).await.map(|_| ()),
            first.roll_state_back(&conversation, StatePoint::Start).await.map(|_| ()),
            first.put_state_schema(&conversation, Some("{}")).await.map(|_| ()),
            first.step_dialogue(&DialogueRow { state: "1".to_owned(), ..row.clone() }, &[]).await,
            first.take_input(&DialogueRow { state: "2".to_owned(), ..row.clone() }, None, &[]).await,
        ];
        for (at, result) in results.into_iter().enumerate() {
            assert!(matches!(result, Err(StoreError::AccessLost)), "change {at}, {is_given_up}: {result:?}");
        }
    }
    let state = second.state(&conversation).await.unwrap().unwrap();
    assert_eq!((state.next_position, state.schema), (2, None));
    assert_eq!(second.dialogue(DIALOGUE).await.unwrap().unwrap().state, row.state);
}

/// Servers of the version before name no holder in their locks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn locks_of_servers_of_the_version_before_are_respected_and_respect_others() {
    let url = cluster().await.new_database().await;
    let pool = sqlx::PgPool::connect(&url).await.unwrap();
    for statement in [
        "alter table conversation_locks drop column holder",
        "delete from _sqlx_migrations where version = 2",
        "insert into servers (id, started, lease_until) values ('old', '', now() + interval '1 hour')",
        "insert into conversation_locks (conversation_id, server) values ('conv', 'old')",
    ] {
        sqlx::query(statement).execute(&pool).await.unwrap();
    }
    let store = PostgresStore::open(&PostgresOptions::new(url)).await.unwrap();
    assert!(lock(&store, "conv").await.is_none());
    // As the version before gives it up, and tries to take it again.
    let query = "delete from conversation_locks where conversation_id = 'conv' and server = 'old'";
    assert_eq!(sqlx::query(query).execute(&pool).await.unwrap().rows_affected(), 1);
    let _lock = lock(&store, "conv").await.expect("nobody has it");
    assert_eq!(sqlx::query(query).execute(&pool).await.unwrap().rows_affected(), 0);
    let query = "insert into conversation_locks (conversation_id, server) values ('conv', 'old') \
        on conflict (conversation_id) do update set server = excluded.server \
        where conversation_locks.server = excluded.server or not exists (select 1 from servers \
        where servers.id = conversation_locks.server and lease_until > now())";
    assert_eq!(sqlx::query(query).execute(&pool).await.unwrap().rows_affected(), 0);
}
