//! Logs of messages: read from memory where possible, otherwise from the database.

use std::collections::VecDeque;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::TryStreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt};

use super::SqliteStore;
use super::tail::{Reading, Tail};
use crate::store::{Acquired, Batch, Lease, Log, LogState, MessageRow, NewRun, Own, Store, StoreError};

#[async_trait]
impl Log for SqliteStore {
    async fn acquire(&self, new: NewRun) -> Result<Acquired, StoreError> {
        self.begin_run(new).await
    }

    async fn claim(&self, message: &str) -> Result<Option<Box<dyn Lease>>, StoreError> {
        self.claim_run(message).await
    }

    async fn abandoned(&self) -> Result<Vec<MessageRow>, StoreError> {
        let query = sqlx::query_as(
            "select *, null as size, null as turn, null as summary, null as details from messages \
             where status = 'running' and (server is null or (server = ? and epoch < ?)) order by number",
        );
        let Own { server, epoch } = self.own();
        Ok(query.bind(server).bind(epoch).fetch_all(self.pool()).await?)
    }

    fn idle(&self, conversation: &str) -> BoxFuture<'static, ()> {
        let (shared, conversation) = (self.shared.clone(), conversation.to_owned());
        Box::pin(async move {
            let next = shared.places.order().next();
            shared.places.turn(&conversation, next).await;
        })
    }

    fn read<'a>(
        &'a self,
        message: &'a str,
        after: u64,
        bytes: usize,
    ) -> BoxFuture<'a, Result<(Vec<Batch>, LogState), StoreError>> {
        Box::pin(async move {
            // Read before the batches: an ended log does not grow.
            let state = self.log_state(message).await?;
            Ok((self.batches(message, after, bytes, None).await?, state))
        })
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
}

/// Cursor that follows one log.
struct Follower {
    store: SqliteStore,
    message: String,
    after: u64,
    bytes: usize,
    /// Present while the log is being written.
    reading: Option<Reading>,
    /// Batches read from the database.
    waiting: VecDeque<Batch>,
}

impl Follower {
    /// Returns the next batch, from memory if possible; waits while there is none.
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
            self.waiting.extend(self.store.batches(&self.message, self.after, self.bytes, None).await?);
        }
        // A database row may begin earlier.
        let batch = self.waiting.pop_front().map(|batch| batch.behind(self.after));
        self.after = batch.as_ref().map_or(self.after, Batch::last);
        Ok(batch)
    }
}

impl SqliteStore {
    /// Returns the state of a message's log.
    async fn log_state(&self, message: &str) -> Result<LogState, StoreError> {
        if let Some(tail) = self.shared.pending.tail(message) {
            return Ok(if tail.shows_end() { LogState::Ended } else { LogState::Open });
        }
        let status = match self.shared.pending.row(message) {
            Some(row) => Some(row.status.clone()),
            None => {
                let query = sqlx::query_scalar("select status from messages where id = ?").bind(message);
                query.fetch_optional(self.pool()).await?
            }
        };
        Ok(match status.as_deref() {
            None => LogState::Gone,
            Some("running") => LogState::Open,
            Some(_) => LogState::Ended,
        })
    }

    /// Reads batches of a log as visible to readers, or with its unpublished end if `own` is the lease's
    /// tail.
    pub(super) async fn batches(
        &self,
        message: &str,
        after: u64,
        bytes: usize,
        own: Option<&Arc<Tail>>,
    ) -> Result<Vec<Batch>, StoreError> {
        loop {
            // Looked up first: entries that leave memory meanwhile are in the database.
            let tail = own.cloned().or_else(|| self.shared.pending.tail(message));
            let all = own.is_some();
            if let Some(recent) = tail.as_ref().and_then(|tail| tail.recent(after, bytes, all)) {
                return Ok(recent.into_iter().collect());
            }
            let batches = self.stored(message, after, bytes).await?;
            let last = |tail: Arc<Tail>| if all { tail.last() } else { tail.progress().last };
            if !batches.is_empty() || tail.is_none_or(|tail| last(tail) <= after) {
                return Ok(batches);
            }
        }
    }

    /// Reads batches from the database.
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
