//! What survives: the log of each message, records, conversations, settings, keys.
//!
//! The log is the truth (invariant 9): an entry is where it survives before any reader sees it. `batch` is its format, `log`
//! the narrow interface to it (append, read from a number, follow, end). Rows are behind traits too, each with what it stores:
//! `messages`, `conversations`, `tools`, `documents`, `dialogues`, `imports`, `kept`, `repeats`, `states`, `figures`, `admin`, and `deletion`,
//! which takes them away. None of them knows what they are kept in; `sqlite` does.

mod admin;
pub mod batch;
mod conversations;
mod deletion;
mod dialogues;
mod documents;
mod figures;
mod imports;
mod kept;
mod log;
mod messages;
mod own;
mod repeats;
mod sqlite;
mod states;
mod tools;

use async_trait::async_trait;

pub use admin::{Admin, Key, Usage};
pub use batch::{Batch, Entry, Kind};
pub use conversations::{ConversationRow, Conversations};
pub use deletion::{Deletion, Retention};
pub use dialogues::{CallRecord, DialogueFilter, DialogueRow, Dialogues, Progress};
pub use documents::{Document, DocumentChange, DocumentKind, Documents, OfKind, Put, PutOutcome, Version};
pub use figures::{
    FigureStep, Figures, FirstTexts, ReplyCounts, ReplyFigures, RuleCount, StepFigures, StepRepairs,
};
pub use imports::{ImportKind, ImportRow, Imports, Room};
pub use kept::{Answers, Claim, Kept, Sent};
pub use log::{Acquired, Appending, Lease, Log, LogState, NewRun, RunEnd, Written};
pub use messages::{MessageRow, Messages, Outcome, Page, RunKind, Turn};
pub use own::Own;
pub use repeats::{Once, Repeat, Repeats};
pub use sqlite::{DamagedFile, JournalLoss, JournalReport, ShortFile, SqliteStore, StoreOptions};
pub use states::{
    Back, OWN_UPDATE, StateChange, StateRow, StateUpdates, States, Update, UpdateRow, is_own_update,
};
pub use tools::{ToolRow, Tools};

/// Why the store did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database said no.
    #[error("the database failed: {0}")]
    Database(Cause),
    /// The tables could not be brought up to date.
    #[error("the database could not be migrated: {0}")]
    Migration(Cause),
    /// The data folder could not be made.
    #[error("the data folder cannot be used: {0}")]
    Folder(#[from] std::io::Error),
    /// Another server uses the same database; it would take the messages of this one for dead.
    #[error("the database {0} is in use by another server")]
    InUse(String),
    /// Nothing can be written on the journal.
    #[error("the journal cannot be written: {0}")]
    Journal(std::io::Error),
    /// Messages are gone with a part of the journal.
    #[error("{0}")]
    Loss(Box<JournalLoss>),
    /// Something could not be written a moment ago.
    #[error("the disk cannot be written")]
    Full,
    /// The database takes too long.
    #[error("the database does not answer in time")]
    Slow,
    /// A later start of the server has taken over what this one ran.
    #[error("another start of the server has taken over")]
    Superseded,
    /// The writer has stopped, since the server is stopping.
    #[error("the store has been closed")]
    Closed,
}

/// What a database says of itself.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// A store: logs, rows, and how it is.
#[async_trait]
pub trait Store: Log + Rows {
    /// The server this store is of.
    fn own(&self) -> &Own;

    /// Whether the database can follow the journal, as far as is known.
    ///
    /// # Errors
    /// The writer's last attempt failed; it goes on trying.
    fn available(&self) -> Result<(), StoreError>;

    /// Whether something can be stored: tries it, and waits for the database, two seconds at most.
    ///
    /// # Errors
    /// It cannot.
    async fn ready(&self) -> Result<(), StoreError>;

    /// Ends when the store cannot go on, and the process has to begin again.
    async fn dead(&self);

    /// Lets go of those who wait for room on the disk. What they had is lost; what is on the journal is not.
    fn give_up(&self);

    /// Stops the writer after what it has, and closes the database. A database that cannot be written is not waited for: the
    /// next start brings it what the journal has.
    async fn close(&self);
}

/// All that is stored in rows.
pub trait Rows:
    Admin
    + Answers
    + Conversations
    + Deletion
    + Dialogues
    + Documents
    + Imports
    + Messages
    + Repeats
    + ReplyFigures
    + States
    + Tools
{
}

impl<T> Rows for T where
    T: Admin
        + Answers
        + Conversations
        + Deletion
        + Dialogues
        + Documents
        + Imports
        + Messages
        + Repeats
        + ReplyFigures
        + States
        + Tools
{
}
