//! The log of messages on the journal, with the database behind it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::TryStreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt};

use super::journal::Record;
use super::tail::{Appended, Reading, Tail};
use super::writer::Work;
use super::{Shared, SqliteStore};
use crate::store::{Appending, Batch, Log, StoreError};

impl Log for SqliteStore {
    fn append<'a>(&'a self, message: &'a str, epoch: i64, batch: Batch) -> Appending<'a> {
        if epoch != self.own.epoch {
            return Appending::Done(Err(StoreError::Superseded));
        }
        let tail = self.shared.pending.begin(message);
        match self.put(&tail, &batch).and_then(|appended| self.tell(&tail, &appended)) {
            Ok(false) => Appending::Done(Ok(())),
            Ok(true) => Appending::Waits(Box::pin(async move { self.caught_up_with(&tail).await })),
            Err(StoreError::Closed) => Appending::Done(Err(StoreError::Closed)),
            Err(error) => Appending::Waits(Box::pin(self.put_again(tail, batch, error))),
        }
    }

    fn read<'a>(
        &'a self,
        message: &'a str,
        after: u64,
        bytes: usize,
    ) -> BoxFuture<'a, Result<Vec<Batch>, StoreError>> {
        Box::pin(self.batches(message, after, bytes))
    }

    fn follow(
        &self,
        message: &str,
        after: u64,
        bytes: usize,
    ) -> BoxStream<'static, Result<Batch, StoreError>> {
        let reading = self.shared.pending.tail(message).map(|tail| tail.read());
        let (store, message) = (self.clone(), message.to_owned());
        let follower = Follower { store, message, after, bytes, reading, waiting: VecDeque::new() };
        stream::try_unfold(follower, |mut follower| async move {
            Ok(follower.next().await?.map(|batch| (batch, follower)))
        })
        .boxed()
    }

    fn shown<'a>(&'a self, message: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let Some(tail) = self.shared.pending.tail(message) else { return Ok(()) };
            tokio::select! {
                () = tail.shown() => Ok(()),
                () = self.shared.dead.cancelled() => Err(StoreError::Closed),
            }
        })
    }

    fn end<'a>(&'a self, message: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let _ = self.shown(message).await;
            if let Some(tail) = self.shared.pending.tail(message) {
                tail.end();
                self.shared.pending.close(&tail);
            }
        })
    }
}

/// Goes along one log.
struct Follower {
    store: SqliteStore,
    message: String,
    after: u64,
    bytes: usize,
    /// Present while the log is written.
    reading: Option<Reading>,
    /// Batches that the database gave.
    waiting: VecDeque<Batch>,
}

impl Follower {
    /// What comes next, from memory if it still has it; waits while there is none.
    async fn next(&mut self) -> Result<Option<Batch>, StoreError> {
        if self.waiting.is_empty() {
            if let Some(reading) = &mut self.reading {
                let progress = reading.more(self.after).await;
                if progress.last > self.after
                    && let Some(batch) = reading.since(self.after, self.bytes)
                {
                    self.after = batch.last();
                    return Ok(Some(batch));
                }
            }
            self.waiting.extend(self.store.batches(&self.message, self.after, self.bytes).await?);
        }
        // A row of the database may begin before that.
        let batch = self.waiting.pop_front().map(|batch| batch.behind(self.after));
        self.after = batch.as_ref().map_or(self.after, Batch::last);
        Ok(batch)
    }
}

impl SqliteStore {
    /// Puts a batch on the journal and in memory.
    fn put(&self, tail: &Arc<Tail>, batch: &Batch) -> Result<Appended, StoreError> {
        let Shared { journal, .. } = &*self.shared;
        let (first, last) = (batch.first(), batch.last());
        let record = Record::Entries { message: &tail.message, first, last, body: batch.body() };
        self.journal(&record, |file| {
            let appended = tail.append(batch, journal.syncer.is_none());
            if let Some(syncer) = &journal.syncer {
                syncer.entries(file, tail, appended.upto);
            }
            appended
        })
    }

    /// Tells the writer of what was put. Whether the run has to wait.
    fn tell(&self, tail: &Arc<Tail>, appended: &Appended) -> Result<bool, StoreError> {
        if appended.tell {
            self.writer.tell(Work::Entries(tail.clone()))?;
        }
        if appended.ahead {
            self.writer.tell(Work::Hurry)?;
        }
        Ok(appended.ahead)
    }

    /// Tries until there is room.
    async fn put_again(
        &self,
        tail: Arc<Tail>,
        batch: Batch,
        mut error: StoreError,
    ) -> Result<(), StoreError> {
        let mut wait = Duration::from_millis(50);
        loop {
            // What cannot be written must not be seen: a disk that is full holds the run until there is room.
            tracing::error!(%error, message_id = tail.message, "trying again");
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = self.shared.closing.cancelled() => return Err(StoreError::Closed),
            }
            wait = (wait * 2).min(Duration::from_secs(1));
            error = match self.put(&tail, &batch) {
                Ok(appended) if self.tell(&tail, &appended)? => return self.caught_up_with(&tail).await,
                Ok(_) => return Ok(()),
                Err(StoreError::Closed) => return Err(StoreError::Closed),
                Err(error) => error,
            };
        }
    }

    /// Waits until the database has enough of a log for the run to go on.
    async fn caught_up_with(&self, tail: &Tail) -> Result<(), StoreError> {
        tokio::select! {
            () = tail.caught_up() => Ok(()),
            () = self.shared.closing.cancelled() => Err(StoreError::Closed),
        }
    }

    async fn batches(&self, message: &str, after: u64, bytes: usize) -> Result<Vec<Batch>, StoreError> {
        loop {
            // Asked for first: what leaves memory meanwhile is in the database.
            let tail = self.shared.pending.tail(message);
            if let Some(recent) = tail.as_ref().and_then(|tail| tail.recent(after, bytes)) {
                return Ok(recent.into_iter().collect());
            }
            let batches = self.stored(message, after, bytes).await?;
            if !batches.is_empty() || tail.is_none_or(|tail| tail.progress().last <= after) {
                return Ok(batches);
            }
        }
    }

    /// Batches that the database has.
    async fn stored(&self, message: &str, after: u64, bytes: usize) -> Result<Vec<Batch>, StoreError> {
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
}
