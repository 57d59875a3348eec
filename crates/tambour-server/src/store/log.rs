//! The narrow interface to the log of messages: append, read from a number, follow, end.
//!
//! Journal and database are behind it here; a log that several replicas share would be another implementation, and nothing else changes.

use std::sync::Arc;
use std::time::Duration;

use super::journal::Record;
use super::live::{Appended, Reading};
use super::writer::Work;
use super::{Batch, Live, Shared, Store, StoreError};

/// Where the entries of messages are.
pub trait Log: Send + Sync {
    /// Puts a batch on the log of a message. Readers see it once it is accepted, in the order of the appends.
    fn append(&self, live: &Arc<Live>, batch: Batch) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Batches that hold entries after number `after`, oldest first, at most about `bytes` of them; none if there are no more.
    fn read(
        &self,
        message: &str,
        after: u64,
        bytes: usize,
    ) -> impl Future<Output = Result<Vec<Batch>, StoreError>> + Send;

    /// Begins to follow a running message.
    fn follow(&self, live: &Arc<Live>) -> Reading;

    /// Tells followers, when they may see everything, that nothing comes after it.
    fn end(&self, live: &Arc<Live>) -> impl Future<Output = ()> + Send;
}

impl Log for Store {
    async fn append(&self, live: &Arc<Live>, batch: Batch) -> Result<(), StoreError> {
        let mut wait = Duration::from_millis(50);
        let appended = loop {
            match self.put(live, &batch) {
                Ok(appended) => break appended,
                Err(StoreError::Closed) => return Err(StoreError::Closed),
                // What cannot be written must not be seen: a disk that is full holds the run until there is room.
                Err(error) => tracing::error!(%error, message_id = live.id, "trying again"),
            }
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = self.shared.closing.cancelled() => return Err(StoreError::Closed),
            }
            wait = (wait * 2).min(Duration::from_secs(1));
        };
        if appended.tell {
            self.writer.tell(Work::Entries(live.clone()))?;
        }
        if appended.ahead {
            self.writer.tell(Work::Hurry)?;
            tokio::select! {
                () = live.caught_up() => {}
                () = self.shared.closing.cancelled() => return Err(StoreError::Closed),
            }
        }
        Ok(())
    }

    async fn read(&self, message: &str, after: u64, bytes: usize) -> Result<Vec<Batch>, StoreError> {
        loop {
            // Asked for first: what leaves memory meanwhile is in the database.
            let live = self.shared.pending.log(message);
            if let Some(recent) = live.as_ref().and_then(|live| live.recent(after, bytes)) {
                return Ok(recent.into_iter().collect());
            }
            let batches = self.stored(message, after, bytes).await?;
            if !batches.is_empty() || live.is_none_or(|live| live.progress().last <= after) {
                return Ok(batches);
            }
        }
    }

    fn follow(&self, live: &Arc<Live>) -> Reading {
        live.read()
    }

    async fn end(&self, live: &Arc<Live>) {
        let _ = self.shown(live).await;
        live.end();
    }
}

impl Store {
    /// Puts a batch on the journal and in memory.
    fn put(&self, live: &Arc<Live>, batch: &Batch) -> Result<Appended, StoreError> {
        let Shared { journal, pending, .. } = &*self.shared;
        let (first, last) = (batch.first(), batch.last());
        let record = Record::Entries { message: &live.id, first, last, body: batch.body() };
        self.append(&record, |file| {
            let appended = live.append(batch, journal.syncer.is_none());
            if appended.first {
                pending.add(live);
            }
            if let Some(syncer) = &journal.syncer {
                syncer.entries(file, live, appended.upto);
            }
            appended
        })
    }

    /// Batches that the database has.
    async fn stored(&self, message: &str, after: u64, bytes: usize) -> Result<Vec<Batch>, StoreError> {
        use futures_util::TryStreamExt;
        let Ok(after) = i64::try_from(after) else { return Ok(Vec::new()) };
        let mut rows = sqlx::query_as::<_, (i64, i64, Vec<u8>)>(
            "select first, last, body from entries where message_id = ? and last > ? order by first",
        )
        .bind(message)
        .bind(after)
        .fetch(self.pool());
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

    /// Waits until readers may see everything that was appended to a message.
    ///
    /// # Errors
    /// The store cannot go on.
    pub async fn shown(&self, live: &Live) -> Result<(), StoreError> {
        tokio::select! {
            () = live.shown() => Ok(()),
            () = self.dead() => Err(StoreError::Closed),
        }
    }
}
