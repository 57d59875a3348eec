//! Deletion: removes data from the tables and the journal, and erases its traces from the files.
//!
//! Deleting leaves traces at first, since a database keeps earlier versions of its pages. [`Deletion::sweep`]
//! erases them.

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use super::StoreError;

/// Retention limits of messages or dialogues; absent ones do not limit.
#[derive(Clone, Copy, Debug)]
pub struct Retention<'a> {
    /// Messages created, and dialogues last changed, before this RFC 3339 time expire.
    pub before: Option<&'a str>,
    /// Maximum number of bytes stored for an owner; the oldest messages or dialogues beyond it expire.
    pub bytes: Option<u64>,
}

/// Deletion from a store.
#[async_trait]
pub trait Deletion: Send + Sync {
    /// Deletes messages with their logs and records. The lease of a running message is fenced.
    ///
    /// # Errors
    /// The database failed; some of the messages may be deleted.
    async fn delete_messages(&self, ids: &[String]) -> Result<(), StoreError>;

    /// Refuses new messages in a conversation, or turns in a dialogue, until its deletion succeeds or fails.
    ///
    /// # Errors
    /// The database failed.
    async fn close_conversation(&self, id: &str) -> Result<(), StoreError>;

    /// Closes the conversation or dialogue as [`Deletion::close_conversation`] does, but only if nothing runs
    /// in it; checks and closes atomically. Returns `true` if it was closed.
    ///
    /// # Errors
    /// The database failed.
    async fn close_if_idle(&self, id: &str) -> Result<bool, StoreError>;

    /// Deletes a conversation with all its messages. Meanwhile new messages in it are refused and running
    /// ones are fenced. After a failure messages may begin in it again.
    ///
    /// # Errors
    /// The database failed; some messages may be deleted.
    async fn delete_conversation(&self, id: &str) -> Result<(), StoreError>;

    /// Lists messages that have ended and expired, a limited number at a time: first those that are too old
    /// and, only if there are none, those beyond the limit of bytes.
    ///
    /// # Errors
    /// The database failed.
    async fn expired_messages(&self, retention: Retention<'_>) -> Result<Vec<String>, StoreError>;

    /// Erases deleted data from the files, in steps of a few milliseconds so that others can write between
    /// the steps. Returns `true` if everything is erased; readers of old pages may prevent that. Returns
    /// `false` early when `stop` is cancelled.
    ///
    /// # Errors
    /// The database failed.
    async fn sweep(&self, stop: &CancellationToken) -> Result<bool, StoreError>;
}
