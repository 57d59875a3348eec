//! Deletion: removes data from the tables, from the journal, and from the space that the file system keeps of
//! either.
//!
//! Deleted rows are overwritten (`secure_delete`), but the write-ahead file still holds earlier versions of
//! them, and so does the database until a checkpoint. [`Store::sweep`] erases both.

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use super::StoreError;

/// Retention limits of messages.
#[derive(Clone, Copy, Debug)]
pub struct Retention<'a> {
    /// Messages created before this RFC 3339 time expire.
    pub before: Option<&'a str>,
    /// The oldest messages of an owner expire beyond this many bytes.
    pub bytes: Option<u64>,
}

/// Deletion from a store.
#[async_trait]
pub trait Deletion: Send + Sync {
    /// Deletes messages with their logs and records. The lease of a running one is fenced.
    ///
    /// # Errors
    /// The database failed; some may be deleted.
    async fn delete_messages(&self, ids: &[String]) -> Result<(), StoreError>;

    /// Refuses new messages in a conversation, or turns in a dialogue, until it is deleted.
    fn close_conversation(&self, id: &str);

    /// Does the same atomically, only if nothing runs in it. Returns `true` if it is closed.
    fn close_if_idle(&self, id: &str) -> bool;

    /// Deletes a conversation with all its messages. New messages in it are refused and running ones are
    /// fenced. If it fails, messages may begin in it again.
    ///
    /// # Errors
    /// The database failed; some messages may be deleted.
    async fn delete_conversation(&self, id: &str) -> Result<(), StoreError>;

    /// Lists expired messages, a limited number at a time.
    ///
    /// # Errors
    /// The database failed.
    async fn expired_messages(&self, retention: Retention<'_>) -> Result<Vec<String>, StoreError>;

    /// Erases deleted data from the files, a few pages at a time so that others can write meanwhile. Returns
    /// `true` if all of it is erased; readers may prevent that. Ends early, between steps of some
    /// milliseconds, when `stop` is cancelled.
    ///
    /// # Errors
    /// The database failed.
    async fn sweep(&self, stop: &CancellationToken) -> Result<bool, StoreError>;
}
