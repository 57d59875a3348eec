//! The narrow interface to the log of messages: append, read from a number, follow, end.
//!
//! SQLite is behind it here; a log that several replicas share would be another implementation, and nothing else changes.

use std::sync::Arc;

use super::live::Reading;
use super::{Batch, Live, Store, StoreError};

/// Where the entries of messages are.
pub trait Log: Send + Sync {
    /// Puts a batch on the log of a message. Readers see it once it is committed, in the order of the appends.
    fn append(&self, live: &Arc<Live>, batch: Batch) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Batches that hold entries after number `after`, oldest first, at most about `bytes` of them. Of a running message, the
    /// last entries are with whoever follows it.
    fn read(
        &self,
        message: &str,
        after: u64,
        bytes: usize,
    ) -> impl Future<Output = Result<Vec<Batch>, StoreError>> + Send;

    /// Begins to follow a running message.
    fn follow(&self, live: &Arc<Live>) -> Reading;

    /// Waits until everything that was appended is committed, and tells followers that nothing comes after it.
    fn end(&self, live: &Arc<Live>) -> impl Future<Output = Result<(), StoreError>> + Send;
}

impl Log for Store {
    async fn append(&self, live: &Arc<Live>, batch: Batch) -> Result<(), StoreError> {
        self.writer.append(live, &batch).await
    }

    async fn read(&self, message: &str, after: u64, bytes: usize) -> Result<Vec<Batch>, StoreError> {
        use futures_util::TryStreamExt;
        let Ok(after) = i64::try_from(after) else { return Ok(Vec::new()) };
        let mut rows = sqlx::query_as::<_, (i64, i64, Vec<u8>)>(
            "select first, last, body from log where message_id = ? and last > ? order by first",
        )
        .bind(message)
        .bind(after)
        .fetch(&self.pool);
        let (mut batches, mut read) = (Vec::new(), 0);
        while let Some((first, last, body)) = rows.try_next().await? {
            read += body.len();
            batches.push(Batch::stored(first.cast_unsigned(), last.cast_unsigned(), body));
            if read >= bytes {
                break;
            }
        }
        Ok(batches)
    }

    fn follow(&self, live: &Arc<Live>) -> Reading {
        live.read()
    }

    async fn end(&self, live: &Arc<Live>) -> Result<(), StoreError> {
        let settled = self.settle(live).await;
        live.end();
        settled
    }
}
