//! Persistent storage: message logs, records, conversations, settings and keys. HTTP and runs are elsewhere.
//!
//! The log is the source of truth (invariant 9): an entry is persisted before any reader sees it. `batch` is
//! its format, `log` its narrow interface (append, read from a number, follow, finish). Rows are behind
//! traits too, each with its row types: `messages`, `conversations`, `tools`, `documents`, `dialogues`,
//! `imports`, `responses`, `input_responses`, `states`, `figures`, `admin`, and `deletion`, which removes them.
//! None of them depends on a database; `sqlite` implements them all. `fail` names the points at which a test
//! can make a write fail, `data_folder` restricts files to the server's user.

mod admin;
pub mod batch;
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
mod responses;
mod server_identity;
mod sqlite;
mod states;
mod tools;

use async_trait::async_trait;

pub use admin::{Admin, KeyRow, UsageRow};
pub use batch::{Batch, LogEntry, LogEntryKind};
pub use conversations::{ConversationRow, Conversations};
pub use deletion::{Deletion, Retention};
pub use dialogues::{CallRecord, DialogueFilter, DialogueProgress, DialogueRow, Dialogues};
pub use documents::{
    Document, DocumentChange, DocumentKind, DocumentScope, DocumentVersion, Documents, PutOptions, PutOutcome,
};
pub use figures::{
    FigureStep, Figures, FirstTexts, ReplyCounts, ReplyFigures, RuleCount, StepFigures, StepRepairs,
};
pub use imports::{ImportKind, ImportQuota, ImportRow, Imports};
pub use input_responses::{InputClaim, InputResponse, InputResponses};
pub use log::{AcquireOutcome, Lease, Log, LogState, NewRun, PendingAppend, RunEnd, WriteOutcome};
pub use messages::{MessageOutcome, MessageRow, Messages, RowPage, RunKind, TurnHistory};
pub use responses::{RequestClaim, RequestKey, Responses, StoredResponse};
pub use server_identity::ServerIdentity;
pub use sqlite::{DamagedFile, JournalLoss, JournalReport, ShortFile, SqliteStore, StoreOptions};
pub use states::{
    ROUTE_UPDATE, StatePoint, StateRollback, StateRow, StateUpdateRow, StateUpdates, States, StoredUpdate,
    is_route_update,
};
pub use tools::{ToolRow, Tools};

/// Error of a store operation.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A database query failed.
    #[error("the database failed: {0}")]
    Database(DatabaseCause),
    /// The schema could not be migrated.
    #[error("the database could not be migrated: {0}")]
    Migration(DatabaseCause),
    /// The data folder could not be created.
    #[error("the data folder cannot be used: {0}")]
    Folder(#[from] std::io::Error),
    /// Another server uses the same database; it would take this one's running messages for abandoned.
    #[error("the database {0} is in use by another server")]
    InUse(String),
    /// The journal cannot be written.
    #[error("the journal cannot be written: {0}")]
    Journal(std::io::Error),
    /// Messages are lost with a part of the journal.
    #[error("{0}")]
    Loss(Box<JournalLoss>),
    /// A recent write failed.
    #[error("the disk cannot be written")]
    Unwritable,
    /// The database did not answer within the deadline.
    #[error("the database does not answer in time")]
    Timeout,
    /// A later start of the server has taken over this one's runs.
    #[error("another start of the server has taken over")]
    Superseded,
    /// The writer has stopped because the server is stopping.
    #[error("the store has been closed")]
    Closed,
}

/// Error of a database driver.
pub type DatabaseCause = Box<dyn std::error::Error + Send + Sync>;

/// A store: logs, rows and health.
#[async_trait]
pub trait Store: Log + Rows {
    /// Returns the identity of the server that the store belongs to.
    fn identity(&self) -> &ServerIdentity;

    /// Checks that the database can follow the journal, as of its last write.
    ///
    /// # Errors
    /// The writer's last attempt failed; it keeps retrying.
    fn check_available(&self) -> Result<(), StoreError>;

    /// Checks that the store can write: writes a probe and waits for the database, at most two seconds.
    ///
    /// # Errors
    /// The store cannot write.
    async fn check_ready(&self) -> Result<(), StoreError>;

    /// Resolves when the store cannot continue and the process must restart.
    async fn wait_dead(&self);

    /// Releases writes that wait for disk space. Their data is lost; the data on the journal is not.
    fn release_waiters(&self);

    /// Stops the writer after its pending work, and closes the database. A database that cannot be written is
    /// not waited for: the next start replays the journal.
    async fn close(&self);
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
