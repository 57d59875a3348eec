//! Store on PostgreSQL, which several servers can share.
//!
//! Rows and logs are in the database only. A server holds the `servers` row that it renews; each run names
//! the server that holds its lease, and an epoch. `collector` groups the appends of all runs: one statement
//! checks their epochs and stores their entries, and only then readers see them. `lease` and `end` write
//! logs, `runs` begins and claims runs, `log` reads and follows them. All of them are of `server_runs`, and
//! reach the database through the interface `database`, whose statements are in `run_rows` and `run_insert`.
//! `connection` limits the time of statements, `held_rows` are claims and locks,
//! `deletion` removes runs, `partitions` has the partitions of the logs by day, `cluster` the rows by which servers
//! coordinate, `migrations` updates the schema, and the other modules store the rows that they are named after.

mod admin;
mod cluster;
mod collector;
mod connection;
mod conversations;
mod database;
mod deletion;
mod dialogues;
mod documents;
mod end;
mod figures;
mod held_rows;
mod imports;
mod input_responses;
mod lease;
mod local_runs;
mod log;
mod messages;
mod migrations;
pub(crate) mod partitions;
mod responses;
mod run_insert;
mod run_rows;
mod runs;
mod server_lease;
mod server_runs;
#[cfg(test)]
mod simulation;
mod statement_pool;
mod states;
mod tools;

use std::collections::HashMap;
use std::str::FromStr;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{Connection as _, PgPool};

use crate::{Cluster, RequestKey, ServerIdentity, Store, StoreError, ids};
use connection::{DatabaseConnection, PING_TIMEOUT, StatementState, Transaction};
use held_rows::HeldRow;
use run_rows::PostgresRuns;
use server_lease::ServerLease;
use server_runs::{ServerRuns, TaskSpawner};
use statement_pool::StatementPool;

/// Store on PostgreSQL.
#[derive(Clone)]
pub struct PostgresStore {
    shared: Arc<StoreState>,
    identity: Arc<ServerIdentity>,
}

/// Options for opening a store on PostgreSQL.
#[derive(Clone, Debug)]
pub struct PostgresOptions {
    /// URL of the database, `postgres://USER@HOST:PORT/NAME`.
    pub url: String,
    /// Password that replaces the one in the URL.
    pub password: Option<String>,
    /// Maximum number of connections for everything but appends.
    pub max_connections: u32,
    /// Number of connections that append to logs, at least 1.
    pub append_connections: u32,
    /// Time after which the database cancels a statement.
    pub statement_timeout: Duration,
    /// Time without a renewal, by the clock of the database, after which other servers take over the runs of
    /// this one.
    pub lease: Duration,
}

impl PostgresOptions {
    /// Makes the default options for a database.
    #[must_use]
    pub fn new(url: String) -> PostgresOptions {
        PostgresOptions {
            url,
            password: None,
            max_connections: 16,
            append_connections: 3,
            statement_timeout: Duration::from_secs(10),
            lease: Duration::from_secs(10),
        }
    }
}

/// State shared by the clones of the store.
struct StoreState {
    pool: PgPool,
    /// Connections reserved for the collectors and the lease of this server.
    append_pool: PgPool,
    statements: Arc<StatementState>,
    runs: Arc<ServerRuns>,
    /// Random id of the claim's holder, for each request that this server has claimed.
    request_holders: Mutex<HashMap<RequestKey, String>>,
    /// Rows that are being given up, by the random ids of their holders.
    released_rows: Mutex<HashMap<String, HeldRow>>,
}

/// Maximum time that a request waits for the database before it fails.
const DEADLINE: Duration = Duration::from_secs(2);

impl PostgresStore {
    /// Connects to the database, updates its schema if it is older, and registers this server.
    ///
    /// # Errors
    /// The URL is invalid, the database cannot be reached, or a later version of the server has changed its
    /// schema.
    pub async fn open(options: &PostgresOptions) -> Result<PostgresStore, StoreError> {
        PostgresStore::migrate(options).await?;
        let lease_slot = LeaseSlot::default();
        let pool = open_pool(options, options.max_connections, &lease_slot).await?;
        let append_pool = open_pool(options, options.append_connections.max(1) + 1, &lease_slot).await?;
        let identity = Arc::new(ServerIdentity { server: ids::new_id("srv"), epoch: 1 });
        let statements = Arc::new(StatementState {
            pool: pool.clone(),
            lease_slot: lease_slot.clone(),
            statement_timeout: options.statement_timeout,
        });
        // A renewal is not given up because the lease is lost; appends have limits of their own.
        let append_statements = Arc::new(StatementState {
            pool: append_pool.clone(),
            lease_slot: LeaseSlot::default(),
            statement_timeout: options.statement_timeout,
        });
        let database = Arc::new(PostgresRuns { statements: statements.clone(), append_statements });
        let collectors = options.append_connections.max(1);
        let task_spawner: TaskSpawner = Arc::new(|task| drop(tokio::spawn(task)));
        let runs =
            ServerRuns::start(database, identity.server.clone(), options.lease, collectors, task_spawner)
                .await?;
        lease_slot.get_or_init(|| runs.server_lease.clone());
        let shared = Arc::new(StoreState {
            pool,
            append_pool,
            statements,
            runs,
            request_holders: Mutex::default(),
            released_rows: Mutex::default(),
        });
        Ok(PostgresStore { shared, identity })
    }

    /// Updates the schema of the database.
    ///
    /// # Errors
    /// The URL is invalid, the database cannot be reached, or a later version of the server has changed its
    /// schema.
    pub async fn migrate(options: &PostgresOptions) -> Result<(), StoreError> {
        let max_connections = 2;
        let lease_slot = LeaseSlot::default();
        // A migration of a large table may take longer than any limit.
        let unlimited = PostgresOptions { statement_timeout: Duration::ZERO, ..options.clone() };
        let pool = open_pool(&unlimited, max_connections, &lease_slot).await?;
        migrations::run_migrations(&pool).await?;
        let statement_timeout = options.statement_timeout;
        let statements = Arc::new(StatementState { pool: pool.clone(), lease_slot, statement_timeout });
        if let Err(error) = partitions::create_partitions(StatementPool(&statements)).await {
            tracing::warn!(%error, "the partitions of the next days could not be created; the sweep tries again");
        }
        pool.close().await;
        Ok(())
    }

    fn pool(&self) -> StatementPool<'_> {
        StatementPool(&self.shared.statements)
    }

    fn runs(&self) -> &Arc<ServerRuns> {
        &self.shared.runs
    }

    /// Begins a transaction that changes a conversation or dialogue to which this server has exclusive access,
    /// and keeps the access until the transaction ends.
    ///
    /// # Errors
    /// [`StoreError::AccessLost`] if another server has taken the access since: this one stood still for longer
    /// than its lease.
    async fn begin_exclusive(&self, conversation: &str) -> Result<Transaction, StoreError> {
        let mut transaction = self.pool().begin().await?;
        let query = sqlx::query(
            "select 1 from conversation_locks where conversation_id = $1 and server = $2 for share",
        );
        let query = query.bind(conversation).bind(&self.identity.server);
        match query.fetch_optional(&mut *transaction).await? {
            Some(_) => Ok(transaction),
            None => Err(StoreError::AccessLost),
        }
    }

    /// Returns the pool, for a move of all data.
    pub(crate) fn move_pool(&self) -> &PgPool {
        &self.shared.pool
    }

    /// Stops everything at once, as if the process was killed, and lets the lease of the server end.
    ///
    /// # Errors
    /// The database failed.
    #[doc(hidden)]
    pub async fn crash(&self) -> Result<(), StoreError> {
        self.runs().crash().await
    }
}

#[async_trait]
impl Store for PostgresStore {
    fn identity(&self) -> &ServerIdentity {
        &self.identity
    }

    fn check_available(&self) -> Result<(), StoreError> {
        self.runs().check_available()
    }

    async fn check_ready(&self) -> Result<(), StoreError> {
        self.check_available()?;
        let probe = sqlx::query("select 1").execute(self.pool());
        match tokio::time::timeout(DEADLINE, probe).await {
            Ok(result) => result.map(|_| ()).map_err(StoreError::from),
            Err(_) => Err(StoreError::Timeout),
        }
    }

    async fn wait_dead(&self) {
        // The database may come back: the store never gives up.
        std::future::pending().await
    }

    fn release_waiters(&self) {
        self.runs().abort_waits.cancel();
    }

    async fn close(&self) {
        self.runs().close(DEADLINE).await;
        let closing = async { tokio::join!(self.shared.pool.close(), self.shared.append_pool.close()) };
        let _ = tokio::time::timeout(DEADLINE, closing).await;
    }

    fn cluster(&self) -> Option<&dyn Cluster> {
        Some(self)
    }
}

/// Lease of this server, once it has one.
type LeaseSlot = Arc<OnceLock<Arc<ServerLease>>>;

/// Opens the connection pool. Connections that are released while the lease of this server may be lost are
/// closed at once: the pool would wait for their answer, and the database may be silent.
async fn open_pool(
    options: &PostgresOptions,
    max_connections: u32,
    lease_slot: &LeaseSlot,
) -> Result<PgPool, StoreError> {
    let mut connect_options =
        PgConnectOptions::from_str(&options.url)?.application_name("tambour").options([
            ("statement_timeout", options.statement_timeout.as_millis().to_string()),
            // Other servers wait for the rows that a silent one has locked.
            ("idle_in_transaction_session_timeout", options.lease.as_millis().to_string()),
            ("client_min_messages", "warning".to_owned()),
        ]);
    if let Some(password) = &options.password {
        connect_options = connect_options.password(password);
    }
    let (released_slot, acquired_slot) = (lease_slot.clone(), lease_slot.clone());
    let pool = PgPoolOptions::new()
        .after_release(move |_, _| {
            let is_lost = released_slot.get().is_some_and(|lease| !lease.is_valid());
            Box::pin(std::future::ready(if is_lost { Err(sqlx::Error::PoolTimedOut) } else { Ok(true) }))
        })
        // In place of the test of the pool, which would wait for each connection that is dead.
        .test_before_acquire(false)
        .before_acquire(move |connection, metadata| {
            let is_doubtful = acquired_slot.get().is_some_and(|lease| lease.is_doubtful(metadata.idle_for));
            Box::pin(async move {
                if is_doubtful {
                    return Ok(false);
                }
                let ping = tokio::time::timeout(PING_TIMEOUT, connection.ping()).await;
                Ok(matches!(ping, Ok(Ok(()))))
            })
        })
        .max_connections(max_connections.max(1))
        .min_connections(1)
        .acquire_timeout(Duration::from_secs(5))
        .idle_timeout(Duration::from_secs(60));
    Ok(pool.connect_with(connect_options).await?)
}

/// Waits for the lock named `scope` and holds it until the transaction ends. It serialises transactions that
/// read rows before they write them.
async fn lock(connection: &mut DatabaseConnection, scope: &str) -> sqlx::Result<()> {
    let query = sqlx::query("select pg_advisory_xact_lock(hashtextextended($1, 0))").bind(scope);
    query.execute(connection).await.map(|_| ())
}
