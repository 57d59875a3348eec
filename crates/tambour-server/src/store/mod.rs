//! What survives: the log of each message, records, conversations, settings, keys.
//!
//! The log is the truth (invariant 8): an entry is on the journal before any reader sees it. `batch` is its format, `log` the
//! narrow interface (append, read from a number, follow, end), `journal` the files that grow, `writer` what brings them into
//! the database behind them, `commit` one transaction, `pending` what is read meanwhile,
//! `own` the server itself, `messages`, `conversations`, `tools`, `documents`, `dialogues`, `imports`, `kept`, `lore`, `repeats`,
//! `states` and `rows` the tables, `deletion` what takes them away.

pub mod batch;
mod commit;
mod conversations;
mod deletion;
mod dialogues;
mod documents;
mod imports;
mod journal;
mod kept;
pub mod live;
mod log;
mod lore;
mod messages;
mod migrations;
mod own;
mod pending;
mod repeats;
mod rows;
mod states;
mod tools;
mod writer;

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sqlx::SqlitePool;
use sqlx::sqlite::{
    SqliteAutoVacuum, SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous,
};
use tokio_util::sync::CancellationToken;

pub use batch::{Batch, Entry, Kind};
pub use conversations::ConversationRow;
pub use deletion::Retention;
pub use dialogues::DialogueRow;
pub use documents::{Document, DocumentKind, Version};
pub use imports::{ImportKind, ImportRow, Room};
pub use kept::{Kept, Sent};
pub use live::Live;
pub use log::Log;
pub use messages::{MessageRow, Outcome, Page, Turn};
pub use own::Own;
pub use repeats::{Once, Repeat};
pub use rows::{Key, Usage};
pub use states::{Back, OWN_UPDATE, StateChange, StateRow, StateUpdates, Update, UpdateRow, is_own_update};
pub use tools::ToolRow;

use journal::{Journal, Record};
use pending::Pending;
use writer::Work;

/// Why the store did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database said no.
    #[error("the database failed: {0}")]
    Database(#[from] sqlx::Error),
    /// The tables could not be brought up to date.
    #[error("the database could not be migrated: {0}")]
    Migration(#[from] sqlx::migrate::MigrateError),
    /// The data folder could not be made.
    #[error("the data folder cannot be used: {0}")]
    Folder(#[from] std::io::Error),
    /// Another server uses the same database; it would take the messages of this one for dead.
    #[error("the database {0} is in use by another server")]
    InUse(PathBuf),
    /// Nothing can be written on the journal.
    #[error("the journal cannot be written: {0}")]
    Journal(std::io::Error),
    /// Something could not be written a moment ago.
    #[error("the disk cannot be written")]
    Full,
    /// The database takes too long.
    #[error("the database does not answer in time")]
    Slow,
    /// The writer has stopped, since the server is stopping.
    #[error("the store has been closed")]
    Closed,
}

/// The store.
#[derive(Clone)]
pub struct Store {
    shared: Arc<Shared>,
    writer: writer::Writer,
    own: Arc<Own>,
    /// Held as long as the database is used; the system lets go of it when the process dies.
    lock: Arc<File>,
}

/// What the store and its writer share.
struct Shared {
    pool: SqlitePool,
    journal: Journal,
    pending: Pending,
    /// The database cannot be written at present.
    behind: AtomicBool,
    /// What cannot be written is not waited for any more.
    closing: CancellationToken,
    /// The store cannot go on.
    dead: CancellationToken,
}

/// How long who asks waits for the store, at most.
const DEADLINE: Duration = Duration::from_secs(2);

impl Store {
    /// Opens the database in `file`, and makes it and its folder if need be. The journal is a folder beside it.
    ///
    /// # Errors
    /// The folder or the database cannot be used.
    pub async fn open(file: &Path, durable: bool) -> Result<Store, StoreError> {
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let lock = File::create(file.with_extension("lock"))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(StoreError::InUse(file.to_owned())),
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
        let pool = pool(file, durable).await?;
        migrations::run(&pool).await?;
        migrations::vacuum(&pool).await?;
        let folder = file.with_extension("journal");
        journal::replay(&folder, &pool).await?;
        let own = Arc::new(own::begin(&pool).await?);
        let dead = CancellationToken::new();
        let shared = Arc::new(Shared {
            pool,
            journal: Journal::open(folder, durable, &dead)?,
            pending: Pending::default(),
            behind: AtomicBool::new(false),
            closing: CancellationToken::new(),
            dead,
        });
        Ok(Store { writer: writer::Writer::start(shared.clone()), own, shared, lock: Arc::new(lock) })
    }

    /// The server this store is of.
    #[must_use]
    pub fn own(&self) -> &Own {
        &self.own
    }

    fn pool(&self) -> &SqlitePool {
        &self.shared.pool
    }

    /// Whether the database can follow the journal, as far as is known.
    ///
    /// # Errors
    /// The writer's last attempt failed; it goes on trying.
    pub fn available(&self) -> Result<(), StoreError> {
        if self.shared.dead.is_cancelled() || self.shared.closing.is_cancelled() {
            return Err(StoreError::Closed);
        }
        if self.shared.behind.load(Ordering::Relaxed) { Err(StoreError::Full) } else { Ok(()) }
    }

    /// Whether something can be stored: tries it, and waits for the database, two seconds at most.
    ///
    /// # Errors
    /// It cannot.
    pub async fn ready(&self) -> Result<(), StoreError> {
        self.append(&Record::Probe, |_| ())?;
        self.flush().await?;
        self.available()
    }

    /// Waits until the database has what was handed over, two seconds at most.
    async fn flush(&self) -> Result<(), StoreError> {
        let flushed = tokio::time::timeout(DEADLINE, self.writer.flush()).await;
        flushed.unwrap_or(Err(StoreError::Slow))
    }

    /// Waits until the database has every row that was handed over, two seconds at most.
    async fn caught_up(&self) -> Result<(), StoreError> {
        if self.shared.pending.is_empty() { Ok(()) } else { self.flush().await }
    }

    /// Writes a record on the journal, does `then` before anything else is written, and tells the writer of full segments.
    fn append<T>(&self, record: &Record<'_>, then: impl FnOnce(&Arc<File>) -> T) -> Result<T, StoreError> {
        let appended = self.shared.journal.append(record, then).map_err(StoreError::Journal)?;
        if let Some(full) = appended.full {
            self.writer.tell(Work::Segment(full))?;
        }
        Ok(appended.then)
    }

    /// Ends when the store cannot go on, and the process has to begin again.
    pub async fn dead(&self) {
        self.shared.dead.cancelled().await;
    }

    /// Lets go of those who wait for room on the disk. What they had is lost; what is on the journal is not.
    pub fn give_up(&self) {
        self.shared.closing.cancel();
    }

    /// Stops the writer after what it has, and closes the database. A database that cannot be written is not waited for: the
    /// next start brings it what the journal has.
    pub async fn close(&self) {
        if tokio::time::timeout(DEADLINE, self.writer.close()).await.is_err() {
            self.give_up();
        }
        let _ = tokio::time::timeout(DEADLINE, self.pool().close()).await;
        let _ = self.lock.unlock();
    }
}

/// Connections to the database.
async fn pool(file: &Path, durable: bool) -> Result<SqlitePool, StoreError> {
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
    // Each connection is a thread with a page cache of its own.
    let options = options.pragma("cache_size", "-512");
    // What is deleted is overwritten.
    let options = options.pragma("secure_delete", "on");
    // What is written goes on to the file of the database beside the writer, so that no commit waits for the disk.
    let options = options.pragma("wal_autocheckpoint", "0");
    let pool = SqlitePoolOptions::new()
        .max_connections(4)
        .min_connections(1)
        .idle_timeout(Duration::from_secs(60))
        // A file does not go away as a server does.
        .test_before_acquire(false);
    Ok(pool.connect_with(options).await?)
}
