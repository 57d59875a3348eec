//! What survives: the log of each message, records, conversations, settings, keys.
//!
//! The log is the truth (invariant 8): an entry is committed before any reader sees it. `batch` is its format, `log` the
//! narrow interface (append, read from a number, follow, end), `writer` the group commit, `rows` everything else.

pub mod batch;
pub mod live;
mod log;
mod rows;
mod writer;

use std::path::Path;
use std::time::Duration;

use sqlx::SqlitePool;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};

pub use batch::{Batch, Entry, Kind};
pub use live::Live;
pub use log::Log;
pub use rows::{Key, MessageRow};

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
    /// The writer has stopped, since the server is stopping.
    #[error("the store has been closed")]
    Closed,
}

/// The store.
#[derive(Clone)]
pub struct Store {
    pool: SqlitePool,
    writer: writer::Writer,
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
        let pool = SqlitePoolOptions::new()
            .max_connections(3)
            .min_connections(1)
            .idle_timeout(Duration::from_secs(60))
            .connect_with(options)
            .await?;
        sqlx::migrate!("./migrations").run(&pool).await?;
        Ok(Store { writer: writer::Writer::start(pool.clone()), pool })
    }

    /// Waits until everything appended so far is committed.
    ///
    /// # Errors
    /// The store has been closed, or a write failed.
    pub async fn flush(&self) -> Result<(), StoreError> {
        self.writer.flush().await
    }

    /// Stops the writer after what it has, and closes the database.
    pub async fn close(&self) {
        let _ = self.writer.flush().await;
        self.pool.close().await;
    }
}
