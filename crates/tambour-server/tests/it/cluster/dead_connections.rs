//! Connections to the database that die or break in the middle of a statement or transaction: nothing of this server
//! waits for them for ever, and nothing that they leave behind keeps the other servers out.
//!
//! A lock that a test holds in the database stops what is to be stopped; the database says what waits for it.

use std::time::Duration;

use serde_json::json;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use tambour_server::store::{
    BeginOutcome, Cluster as _, ConversationRow, Conversations as _, Log as _, MessageRow, Messages as _,
    NewRun, PostgresOptions, PostgresStore,
};

use super::proxy::Proxy;
use super::{KEY, Member};
use crate::mock::{MockServer, reply_script};
use crate::postgres::{cluster as postgres, port_of};
use crate::server::with_timeout;

const CONVERSATION: &str = "conv";
/// Lease that does not end while a test runs.
const LONG_LEASE: Duration = Duration::from_secs(600);
/// Connections of a store.
const CONNECTIONS: usize = 16;

/// Transaction of a test, which keeps statements of the servers waiting until it ends.
struct Blocker {
    connection: PgConnection,
}

impl Blocker {
    async fn start(url: &str, statement: &str) -> Blocker {
        let mut connection = PgConnection::connect(url).await.unwrap();
        for statement in ["begin", statement] {
            sqlx::query(AssertSqlSafe(statement.to_owned())).execute(&mut connection).await.unwrap();
        }
        Blocker { connection }
    }

    /// Waits until a query returns `true`.
    async fn wait_until(&mut self, query: &str) {
        with_timeout(async {
            loop {
                // The statistics that a transaction has seen do not change.
                sqlx::query("select pg_stat_clear_snapshot()").execute(&mut self.connection).await.unwrap();
                let query = sqlx::query_scalar(AssertSqlSafe(query.to_owned()));
                if query.fetch_one(&mut self.connection).await.unwrap() {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
    }

    /// Waits until so many statements of the servers wait for a lock.
    async fn wait_blocked(&mut self, count: usize) {
        let query = format!(
            "select count(*) = {count} from pg_stat_activity \
             where datname = current_database() and wait_event_type = 'Lock'"
        );
        self.wait_until(&query).await;
    }

    /// Lets the statements go on.
    async fn end(&mut self, statement: &str) {
        sqlx::query(AssertSqlSafe(statement.to_owned())).execute(&mut self.connection).await.unwrap();
    }
}

async fn open(url: &str, lease: Duration) -> PostgresStore {
    let max_connections = u32::try_from(CONNECTIONS).unwrap();
    let options = PostgresOptions { lease, max_connections, ..PostgresOptions::new(url.to_owned()) };
    PostgresStore::open(&options).await.unwrap()
}

async fn insert_conversation(store: &PostgresStore) {
    let row = ConversationRow {
        id: CONVERSATION.to_owned(),
        owner: "owner".to_owned(),
        created: "2026-01-01T00:00:00.000Z".to_owned(),
        ..ConversationRow::default()
    };
    store.insert_conversation(&row).await.unwrap();
}

/// Message with an idempotency key, the same for all.
fn repeated_run(id: &str) -> NewRun {
    let row = MessageRow {
        id: id.to_owned(),
        conversation_id: CONVERSATION.to_owned(),
        owner: "owner".to_owned(),
        created: "2026-01-01T00:00:00.000Z".to_owned(),
        status: "running".to_owned(),
        request: "{}".to_owned(),
        repeat: Some("word".to_owned()),
        ..MessageRow::default()
    };
    NewRun { row, ..NewRun::default() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_of_a_key_on_a_dead_connection_keeps_no_later_change_from_its_server() {
    let mock = MockServer::start(vec![reply_script("x", 1)]).await;
    let database = postgres().await.new_database().await;
    let proxy = Proxy::start(port_of(&database)).await;
    let member = Member::start(&proxy.database_url(&database), &mock);
    let other = Member::start(&database, &mock);
    let key = other.server.post("/api/v1/keys", &json!({"owner": "a", "name": "a"})).await;
    let path = format!("/api/v1/keys/{}", key.json["id"].as_str().unwrap());
    let mut blocker = Blocker::start(&database, "lock table keys in exclusive mode").await;
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let change = http.patch(format!("http://{}{path}", member.server.address)).bearer_auth(KEY);
    let change = tokio::spawn(change.body(r#"{"name": "b"}"#).send());
    blocker.wait_blocked(1).await;
    proxy.silence();
    proxy.heal_for_new();
    blocker.end("rollback").await;
    let later = with_timeout(other.server.post("/api/v1/keys", &json!({"owner": "b", "name": "c"}))).await;
    let secret = later.json["key"].as_str().unwrap_or_else(|| panic!("{}", later.text));
    with_timeout(async {
        let url = format!("http://{}/api/v1/conversations", member.server.address);
        while http.get(&url).bearer_auth(secret).send().await.unwrap().status() != 200 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    assert_eq!(with_timeout(change).await.unwrap().unwrap().status(), 503);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statements_that_are_dropped_on_dead_connections_leave_room_for_others() {
    let database = postgres().await.new_database().await;
    let proxy = Proxy::start(port_of(&database)).await;
    let store = open(&proxy.database_url(&database), LONG_LEASE).await;
    let mut blocker = Blocker::start(&database, "lock table messages in access exclusive mode").await;
    let statements: Vec<_> = (0..CONNECTIONS)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move { store.message("msg").await })
        })
        .collect();
    blocker.wait_blocked(CONNECTIONS).await;
    proxy.silence();
    proxy.heal_for_new();
    for statement in statements {
        statement.abort();
        assert!(statement.await.unwrap_err().is_cancelled());
    }
    blocker.end("rollback").await;
    assert!(store.message("msg").await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_that_comes_after_its_release_keeps_nobody_out() {
    let database = postgres().await.new_database().await;
    let (first, second) = (open(&database, LONG_LEASE).await, open(&database, LONG_LEASE).await);
    let mut second_lock = second.conversation_lock(CONVERSATION);
    assert!(second_lock.take().await.unwrap());
    // The second server is giving its access up.
    let mut blocker = Blocker::start(&database, "delete from conversation_locks").await;
    let mut first_lock = first.conversation_lock(CONVERSATION);
    let taking = tokio::spawn(async move { first_lock.take().await });
    blocker.wait_blocked(1).await;
    taking.abort();
    assert!(taking.await.unwrap_err().is_cancelled());
    blocker
        .wait_until(
            "select exists (select 1 from pg_stat_activity where datname = current_database() \
             and state = 'idle' and query like 'delete from conversation_locks where%')",
        )
        .await;
    blocker.end("commit").await;
    // The lock of the first server is there.
    blocker
        .wait_until(
            "select not exists (select 1 from pg_stat_activity where datname = current_database() \
             and state = 'active' and query like 'insert into conversation_locks%')",
        )
        .await;
    let mut lock = second.conversation_lock(CONVERSATION);
    with_timeout(async {
        while !lock.take().await.unwrap() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_whose_connection_breaks_before_its_commit_can_be_repeated() {
    let database = postgres().await.new_database().await;
    let proxy = Proxy::start(port_of(&database)).await;
    let store = open(&proxy.database_url(&database), LONG_LEASE).await;
    insert_conversation(&store).await;
    let mut blocker = Blocker::start(&database, "lock table conversations in access exclusive mode").await;
    let begin_store = store.clone();
    let beginning = tokio::spawn(async move { begin_store.begin(repeated_run("msg_1")).await });
    // Its claim is stored.
    blocker.wait_blocked(1).await;
    proxy.cut();
    assert!(with_timeout(beginning).await.unwrap().is_err());
    proxy.heal();
    blocker.end("rollback").await;
    with_timeout(async {
        loop {
            match store.begin(repeated_run("msg_2")).await {
                Ok(BeginOutcome::Started { .. }) => return,
                // Connections may still be broken, and the claim is released at that moment.
                Ok(BeginOutcome::InProgress) | Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
                Ok(_) => panic!("nothing else refuses it"),
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stood_still_with_a_claim_inserts_nothing_once_another_has_it() {
    let database = postgres().await.new_database().await;
    let (first, second) = (open(&database, LONG_LEASE).await, open(&database, LONG_LEASE).await);
    insert_conversation(&first).await;
    let mut blocker = Blocker::start(&database, "lock table messages in access exclusive mode").await;
    // It stands still between its claim and the insertion, for longer than its lease by the clock of the database.
    let first_store = first.clone();
    let first_begin = tokio::spawn(async move { first_store.begin(repeated_run("msg_1")).await.unwrap() });
    blocker.wait_blocked(1).await;
    let id = &tambour_server::store::Store::identity(&first).server;
    let statement = format!("update servers set lease_until = now() - interval '1 second' where id = '{id}'");
    let second_begin = tokio::spawn(async move {
        loop {
            // Its first renewal may come late.
            postgres().await.execute(&database, &[&statement]).await;
            match second.begin(repeated_run("msg_2")).await.unwrap() {
                BeginOutcome::InProgress => tokio::time::sleep(Duration::from_millis(5)).await,
                outcome => return outcome,
            }
        }
    });
    blocker.wait_blocked(2).await;
    blocker.end("rollback").await;
    let outcome = with_timeout(first_begin).await.unwrap();
    // It may find the message of the other one before it would insert its own.
    let is_refused = matches!(outcome, BeginOutcome::InProgress | BeginOutcome::Repeated(_));
    assert!(is_refused, "another server has its claim");
    let outcome = with_timeout(second_begin).await.unwrap();
    assert!(matches!(outcome, BeginOutcome::Started { .. }));
    assert!(first.message("msg_1").await.unwrap().is_none());
}
