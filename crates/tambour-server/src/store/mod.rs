//! What survives: the log of each message, records, conversations, settings, keys.
//!
//! The log is the truth (invariant 8): an entry is committed before any reader sees it. `batch` is its format, `log` the
//! narrow interface (append, read from a number, follow, end), `writer` the group commit, `commit` one of them, `journal`
//! what it writes, `rows` everything else.

pub mod batch;
mod commit;
mod journal;
pub mod live;
mod log;
mod migrations;
mod rows;
mod tools;
mod writer;

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sqlx::SqlitePool;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};

pub use batch::{Batch, Entry, Kind};
pub use live::Live;
pub use log::Log;
pub use rows::{Key, MessageRow};
pub use tools::ToolRow;

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
    /// The writer has stopped, since the server is stopping.
    #[error("the store has been closed")]
    Closed,
}

/// The store.
#[derive(Clone)]
pub struct Store {
    pool: SqlitePool,
    writer: writer::Writer,
    /// Held as long as the database is used; the system lets go of it when the process dies.
    lock: Arc<File>,
}

impl Store {
    /// Opens the database in `file`, and makes it and its folder if need be.
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
        // NORMAL survives a killed process, FULL a power cut too.
        let synchronous = if durable { SqliteSynchronous::Full } else { SqliteSynchronous::Normal };
        let options = SqliteConnectOptions::new()
            .filename(file)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(synchronous)
            .busy_timeout(Duration::from_secs(10))
            .statement_cache_capacity(32);
        // Each connection is a thread with a page cache of its own.
        let options = options.pragma("cache_size", "-512");
        // What is written goes on to the file of the database beside the writer, so that no commit waits for the disk.
        let options = options.pragma("wal_autocheckpoint", "0");
        let pool = SqlitePoolOptions::new()
            .max_connections(3)
            .min_connections(1)
            .idle_timeout(Duration::from_secs(60))
            // A file does not go away as a server does.
            .test_before_acquire(false)
            .connect_with(options)
            .await?;
        migrations::run(&pool).await?;
        journal::replay(&pool).await?;
        Ok(Store { writer: writer::Writer::start(&pool).await?, pool, lock: Arc::new(lock) })
    }

    /// Waits until everything appended so far is committed.
    ///
    /// # Errors
    /// The store has been closed, or a write failed.
    pub async fn flush(&self) -> Result<(), StoreError> {
        self.writer.flush().await
    }

    /// Waits until all entries of a message are committed, and can be read with [`Log::read`].
    ///
    /// # Errors
    /// The store has been closed.
    pub async fn settle(&self, live: &Arc<Live>) -> Result<(), StoreError> {
        self.writer.settle(live).await
    }

    /// Stops the writer after what it has, and closes the database.
    pub async fn close(&self) {
        let _ = self.writer.close().await;
        self.pool.close().await;
        let _ = self.lock.unlock();
    }
}
