//! What is deleted is gone: from the tables, from the journal, and from what the file system keeps of either.
//!
//! Deleted rows are overwritten (`secure_delete`), but the write-ahead file still has what was written of them before, and the
//! database until it gets the change from there. [`Store::sweep`] brings both to an end.

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use super::StoreError;

/// Which messages are deleted since their time is over.
#[derive(Clone, Copy, Debug)]
pub struct Retention<'a> {
    /// Those made before this RFC 3339 time.
    pub before: Option<&'a str>,
    /// The oldest of an owner who has more bytes than that.
    pub bytes: Option<u64>,
}

/// Deletion of a store.
#[async_trait]
pub trait Deletion: Send + Sync {
    /// Deletes messages with their logs and records. A lease of one that still runs is fenced.
    ///
    /// # Errors
    /// The database failed; some may be gone.
    async fn delete_messages(&self, ids: &[String]) -> Result<(), StoreError>;

    /// Lets no message begin in a conversation, or turn in a dialogue, from now on, until it is deleted.
    fn close_conversation(&self, id: &str);

    /// The same, in one step with a look at what runs: where something has begun and is not over, nothing changes. Whether it is closed.
    fn close_idle(&self, id: &str) -> bool;

    /// Deletes a conversation with all its messages. What begins in it meanwhile is refused, and what still runs is fenced: it
    /// does not come back. When it fails, messages may begin in it again.
    ///
    /// # Errors
    /// The database failed; some may be gone.
    async fn delete_conversation(&self, id: &str) -> Result<(), StoreError>;

    /// Messages whose time is over, some of them if there are many.
    ///
    /// # Errors
    /// The database failed.
    async fn expired(&self, retention: Retention<'_>) -> Result<Vec<String>, StoreError>;

    /// Takes what was deleted out of the files, a few pages at a time, so that others write meanwhile. Whether all of it is; readers
    /// may be in the way. Ends early, between two steps of some milliseconds, when `stop` is cancelled.
    ///
    /// # Errors
    /// The database failed.
    async fn sweep(&self, stop: &CancellationToken) -> Result<bool, StoreError>;
}
