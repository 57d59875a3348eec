//! Persistent storage: message logs, records, conversations, settings and keys. The server crate has HTTP and
//! drives the runs.
//!
//! The log is the source of truth (invariant 9): an entry is persisted before any reader sees it. `batch` is
//! its format, `log` its narrow interface (append, read from a number, follow, finish). Rows are behind
//! traits too, each in a file with its row types: `messages`, `conversations`, `tools`, `documents`,
//! `dialogues`, `imports`, `responses`, `input_responses`, `states`, `figures`, `admin`, and `deletion`,
//! which removes them. None of these depends on a database; `sqlite` and `postgres` implement them all.
//! `tail` keeps the end of a log in memory. `server_identity` tells
//! the runs of this server from those of others, `ids` makes ids and timestamps by the `clock`. `fail` has the
//! points at which a test can make a write fail, and `data_folder` restricts files to the server's user.

mod admin;
pub mod batch;
pub mod clock;
mod cluster;
mod conversations;
pub mod data_folder;
mod deletion;
mod dialogues;
mod documents;
#[doc(hidden)]
pub mod fail;
mod figures;
pub mod ids;
mod imports;
mod input_responses;
mod log;
mod messages;
mod postgres;
mod responses;
mod rows;
mod server_identity;
mod sqlite;
mod states;
mod tail;
mod tools;
mod transfer;

use async_trait::async_trait;

pub use admin::{Admin, KeyRow, UsageRow};
pub use batch::{Batch, LogEntry, LogEntryKind};
pub use cluster::{Cluster, ClusterStatus, ConversationLock, PeerReader, StreamTokenRow};
pub use conversations::{ConversationRow, Conversations};
pub use deletion::{Deletion, Retention};
pub use dialogues::{DialogueFilter, DialogueProgress, DialogueRow, Dialogues, RecordChange};
pub use documents::{
    Document, DocumentChange, DocumentKind, DocumentScope, DocumentVersion, Documents, PutOptions, PutOutcome,
};
pub use figures::{
    FigureStep, Figures, FirstTextTimes, ReplyCounts, ReplyFigures, RuleCount, StepFigures, StepRepairs,
};
pub use imports::{ImportKind, ImportQuota, ImportRow, Imports};
pub use input_responses::{InputClaim, InputResponse, InputResponses};
pub use log::{BeginOutcome, Lease, Log, LogState, NewRun, PendingAppend, RunEnd, WriteOutcome};
pub use messages::{MessageOutcome, MessageRow, Messages, RowPage, RunKind, TurnHistory};
pub use postgres::{PostgresOptions, PostgresStore};
pub use responses::{RequestClaim, RequestKey, Responses, StoredResponse};
pub use server_identity::ServerIdentity;
pub use sqlite::{DamagedFile, JournalLoss, JournalReport, ShortFile, SqliteStore, StoreOptions};
pub use states::{
    ROUTE_UPDATE, StatePoint, StateRollback, StateRow, StateUpdateRow, StateUpdates, States, StoredUpdate,
    is_route_update,
};
pub use tools::{ToolRow, Tools};
pub use transfer::{MoveError, MoveProgress, move_data};

/// Error of a store operation.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A database query failed.
    #[error("the database failed: {0}")]
    Database(DatabaseCause),
    /// The schema could not be migrated.
    #[error("the database could not be migrated: {0}")]
    Migration(DatabaseCause),
    /// The data folder, or a file in it, cannot be used.
    #[error("the data folder cannot be used: {0}")]
    Folder(#[from] std::io::Error),
    /// Another server uses the same database. Each of the two would treat the other's running messages as
    /// abandoned.
    #[error("the database {0} is in use by another server")]
    InUse(String),
    /// The journal cannot be written.
    #[error("the journal cannot be written: {0}")]
    Journal(std::io::Error),
    /// A later version of the server wrote this file of the journal. No file of the journal was changed.
    #[error("the journal file {0} was written by a later version of the server; start that version again")]
    LaterJournal(String),
    /// Messages are lost because a part of the journal is damaged or missing.
    #[error("{0}")]
    Loss(Box<JournalLoss>),
    /// The last write to the database failed; the store keeps retrying.
    #[error("the disk cannot be written")]
    Unwritable,
    /// The database did not answer within the deadline.
    #[error("the database does not answer in time")]
    Timeout,
    /// The database could not be reached for so long that other servers may have taken over the runs of this
    /// one.
    #[error("the database does not answer, and other servers may have taken over")]
    LeaseLost,
    /// This server no longer has exclusive access to the conversation or dialogue that was to be changed.
    #[error("another server may have changed the conversation meanwhile")]
    AccessLost,
    /// A later version of the server has changed the schema of the database. Nothing was changed.
    #[error("a later version of the server has migrated the database (to {0}); start that version again")]
    LaterSchema(i64),
    /// The database cannot store a text.
    #[error("a text has a character that the database cannot store: U+0000")]
    Unstorable,
    /// The store accepts no more work: the server is stopping, or the store cannot continue.
    #[error("the store has been closed")]
    Closed,
}

/// Code of PostgreSQL for a text with U+0000.
const NUL_CHARACTER: &str = "22021";

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> StoreError {
        let code = error.as_database_error().and_then(|error| error.code());
        if code.is_some_and(|code| code == NUL_CHARACTER) {
            return StoreError::Unstorable;
        }
        StoreError::Database(error.into())
    }
}

/// Error of a database driver.
pub type DatabaseCause = Box<dyn std::error::Error + Send + Sync>;

/// A store: logs, rows and health.
#[async_trait]
pub trait Store: Log + Rows {
    /// Returns the identity of the server that the store belongs to.
    fn identity(&self) -> &ServerIdentity;

    /// Checks, without using the database, that the store is open and should be able to write.
    ///
    /// # Errors
    /// [`StoreError::Closed`]; [`StoreError::Unwritable`] while a failed write is retried (SQLite);
    /// [`StoreError::LeaseLost`] if the lease of this server is no longer valid (PostgreSQL).
    fn check_available(&self) -> Result<(), StoreError>;

    /// Checks that the database works, within two seconds: SQLite has to store a probe, PostgreSQL to answer
    /// a query.
    ///
    /// # Errors
    /// The database failed or did not answer in time, or [`Store::check_available`] fails.
    async fn check_ready(&self) -> Result<(), StoreError>;

    /// Resolves when the store cannot continue and the process must restart.
    async fn wait_dead(&self);

    /// Ends the retries of writes that fail, for example for lack of disk space. Data that is neither on the
    /// journal nor in the database yet is lost.
    fn release_waiters(&self);

    /// Finishes pending writes and closes the database, each within two seconds. What a SQLite database then
    /// lacks is on the journal, which the next start replays.
    async fn close(&self);

    /// Returns the coordination with other servers; `None` if only this server can use the database.
    fn cluster(&self) -> Option<&dyn Cluster>;
}

/// All row storage.
pub trait Rows:
    Admin
    + Responses
    + Conversations
    + Deletion
    + Dialogues
    + Documents
    + Imports
    + Messages
    + InputResponses
    + ReplyFigures
    + States
    + Tools
{
}

impl<T> Rows for T where
    T: Admin
        + Responses
        + Conversations
        + Deletion
        + Dialogues
        + Documents
        + Imports
        + Messages
        + InputResponses
        + ReplyFigures
        + States
        + Tools
{
}
