//! Store on a SQLite database behind a journal.
//!
//! Every record of a run is written to the `journal` first. The `writer` task then copies the records into
//! the database in groups, each of which is one transaction (`commit`). Until then readers find the end of a
//! log in memory in its `tail`, and new rows in `pending`. `log` reads logs, `runs` begins and claims runs,
//! `lease` writes their logs, and `run_queue` keeps their order. `transaction` wraps transactions,
//! `migrations` updates the schema, and the other modules store the rows that they are named after.

mod admin;
mod commit;
mod conversations;
mod deletion;
mod dialogues;
mod documents;
mod figures;
mod imports;
mod input_responses;
mod journal;
mod lease;
mod log;
mod messages;
mod migrations;
mod pending;
mod responses;
mod run_queue;
mod runs;
mod server_identity;
mod states;
mod tools;
mod transaction;
mod writer;

use std::fs::{File, TryLockError};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use sqlx::SqlitePool;
use sqlx::sqlite::{
    SqliteAutoVacuum, SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous,
};
use tokio_util::sync::CancellationToken;

use super::{Cluster, ServerIdentity, Store, StoreError};
pub use journal::{DamagedFile, JournalLoss, JournalReport, ShortFile};
use journal::{Journal, JournalRecord, ReplayResult, Segment};
use pending::PendingRows;
use run_queue::RunQueue;
use writer::WriterTask;

/// SQLite store.
#[derive(Clone)]
pub struct SqliteStore {
    shared: Arc<StoreState>,
    writer: writer::DatabaseWriter,
    identity: Arc<ServerIdentity>,
    /// Locked while the database is in use; the system unlocks it when the process dies.
    lock_file: Arc<File>,
}

/// Options for opening a store.
#[derive(Clone, Copy, Debug, Default)]
pub struct StoreOptions {
    /// Makes acknowledged data survive a power cut; otherwise it survives a killed process only.
    pub durable: bool,
    /// Opens the store even if messages are lost.
    pub accept_loss: bool,
}

/// State shared by the store and its writer.
struct StoreState {
    pool: SqlitePool,
    journal: Journal,
    pending: PendingRows,
    run_queue: RunQueue,
    /// Read-locked while a run begins. A deletion locks it for writing to wait for runs that are beginning.
    begin_lock: tokio::sync::RwLock<()>,
    /// Set while the database cannot be written.
    is_unwritable: AtomicBool,
    /// Cancelled when failed writes are no longer retried.
    abort_waits: CancellationToken,
    /// Cancelled when the store cannot continue.
    dead: CancellationToken,
}

/// Maximum time that a request waits for the store before it fails.
const DEADLINE: Duration = Duration::from_secs(2);

impl SqliteStore {
    /// Opens the database in `file`, creating it and its folder if needed. The journal is a folder next to
    /// it. Replays its intact records; losses are accepted and logged.
    ///
    /// # Errors
    /// The folder or the database cannot be used.
    pub async fn open(file: &Path, durable: bool) -> Result<SqliteStore, StoreError> {
        let result = SqliteStore::open_with(file, StoreOptions { durable, accept_loss: true }).await;
        result.map(|(store, _)| store)
    }

    /// Opens the database and reports the state of the journal.
    ///
    /// # Errors
    /// The folder or the database cannot be used; or messages are lost ([`StoreError::Loss`]) and the loss is
    /// not accepted.
    pub async fn open_with(
        file: &Path,
        options: StoreOptions,
    ) -> Result<(SqliteStore, JournalReport), StoreError> {
        let StoreOptions { durable, accept_loss } = options;
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let lock_file = File::create(file.with_extension("lock"))?;
        match lock_file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(StoreError::InUse(file.display().to_string())),
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
        let pool = open_pool(file, durable).await?;
        migrations::run_migrations(&pool).await.map_err(|error| StoreError::Migration(error.into()))?;
        migrations::name_sessions(&pool).await?;
        migrations::rebuild_old_database(&pool).await?;
        let folder = file.with_extension("journal");
        let ReplayResult { next_segment, report } =
            journal::replay(&folder, &pool, durable, accept_loss).await?;
        let identity = Arc::new(server_identity::begin_epoch(&pool).await?);
        // Highest number of a message that something refers to: it must not be used again.
        let query = "select max(coalesce((select max(number) from messages), 0), \
            coalesce((select max(floor) from states), 0), coalesce((select max(place) from state_updates), 0))";
        let last_number = sqlx::query_scalar(query).fetch_one(&pool).await?;
        let dead = CancellationToken::new();
        let shared = Arc::new(StoreState {
            pool,
            journal: Journal::open(folder, next_segment, durable, &dead)?,
            pending: PendingRows::default(),
            run_queue: RunQueue::with_last_number(last_number),
            begin_lock: tokio::sync::RwLock::default(),
            is_unwritable: AtomicBool::new(false),
            abort_waits: CancellationToken::new(),
            dead,
        });
        let writer = writer::DatabaseWriter::start(shared.clone());
        Ok((SqliteStore { writer, identity, shared, lock_file: Arc::new(lock_file) }, report))
    }

    /// Reserves the numbers of lost entries that [`SqliteStore::open_with`] has reported, since clients may
    /// have seen them. Must be called before running messages are closed.
    ///
    /// # Errors
    /// The database failed.
    pub async fn reserve_numbers(&self, report: &JournalReport) -> Result<(), StoreError> {
        journal::reserve_numbers(self.pool(), report).await
    }

    fn pool(&self) -> &SqlitePool {
        &self.shared.pool
    }

    /// Returns the pool, for a move of all data.
    pub(crate) fn move_pool(&self) -> &SqlitePool {
        self.pool()
    }

    /// Waits until the database has everything handed to the writer, at most two seconds.
    async fn flush(&self) -> Result<(), StoreError> {
        let result = tokio::time::timeout(DEADLINE, self.writer.flush()).await;
        result.unwrap_or(Err(StoreError::Timeout))
    }

    /// Waits until the database has every row handed to the writer, at most two seconds. Logs may still be
    /// ahead of it.
    async fn wait_caught_up(&self) -> Result<(), StoreError> {
        if self.shared.pending.is_empty() { Ok(()) } else { self.flush().await }
    }

    /// Writes a record to the journal, runs `after_append` before any other record is written, and notifies
    /// the writer of a segment that became full.
    fn append_journal<T>(
        &self,
        record: &JournalRecord<'_>,
        after_append: impl FnOnce(&Arc<Segment>) -> T,
    ) -> Result<T, StoreError> {
        let result = self.append_journal_if(record, || true, after_append)?;
        Ok(result.expect("the record is always allowed"))
    }

    /// Does the same as [`SqliteStore::append_journal`] if `is_allowed` returns `true`; otherwise does
    /// nothing and returns `None`. `is_allowed` is called with the journal locked.
    fn append_journal_if<T>(
        &self,
        record: &JournalRecord<'_>,
        is_allowed: impl FnOnce() -> bool,
        after_append: impl FnOnce(&Arc<Segment>) -> T,
    ) -> Result<Option<T>, StoreError> {
        let append =
            self.shared.journal.append_if(record, is_allowed, after_append).map_err(StoreError::Journal)?;
        let Some(append) = append else { return Ok(None) };
        if let Some(full) = append.full_segment {
            self.writer.send(WriterTask::Segment(full))?;
        }
        Ok(Some(append.result))
    }
}

#[async_trait]
impl Store for SqliteStore {
    fn identity(&self) -> &ServerIdentity {
        &self.identity
    }

    fn check_available(&self) -> Result<(), StoreError> {
        if self.shared.dead.is_cancelled() || self.shared.abort_waits.is_cancelled() {
            return Err(StoreError::Closed);
        }
        if self.shared.is_unwritable.load(Ordering::Relaxed) { Err(StoreError::Unwritable) } else { Ok(()) }
    }

    async fn check_ready(&self) -> Result<(), StoreError> {
        self.append_journal(&JournalRecord::Probe, |_| ())?;
        self.flush().await?;
        self.check_available()
    }

    async fn wait_dead(&self) {
        self.shared.dead.cancelled().await;
    }

    fn release_waiters(&self) {
        self.shared.abort_waits.cancel();
    }

    async fn close(&self) {
        if tokio::time::timeout(DEADLINE, self.writer.close()).await.is_err() {
            self.release_waiters();
        }
        let _ = tokio::time::timeout(DEADLINE, self.pool().close()).await;
        let _ = self.lock_file.unlock();
    }

    fn cluster(&self) -> Option<&dyn Cluster> {
        None
    }
}

/// Opens a connection pool.
async fn open_pool(file: &Path, durable: bool) -> Result<SqlitePool, StoreError> {
    // NORMAL survives a killed process, FULL a power cut too.
    let synchronous = if durable { SqliteSynchronous::Full } else { SqliteSynchronous::Normal };
    let options = SqliteConnectOptions::new()
        .filename(file)
        .create_if_missing(true)
        .auto_vacuum(SqliteAutoVacuum::Incremental)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(synchronous)
        .busy_timeout(Duration::from_secs(10))
        .statement_cache_capacity(32);
    // Each connection is a thread with its own page cache.
    let options = options.pragma("cache_size", "-512");
    // Deleted data is overwritten.
    let options = options.pragma("secure_delete", "on");
    // Checkpoints run on another connection than the writer's, so that no commit waits for the disk.
    let options = options.pragma("wal_autocheckpoint", "0");
    let pool = SqlitePoolOptions::new()
        .max_connections(4)
        .min_connections(1)
        .idle_timeout(Duration::from_secs(60))
        // The test would detect that a database server is gone, but a file does not go away.
        .test_before_acquire(false);
    Ok(pool.connect_with(options).await?)
}
