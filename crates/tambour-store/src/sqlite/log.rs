//! Logs of messages: read from memory where possible, otherwise from the database.

use std::collections::VecDeque;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt};

use super::SqliteStore;
use crate::rows::read_entries;
use crate::tail::{LogTail, TailReader};
use crate::{
    Batch, BeginOutcome, Lease, Log, LogState, MessageRow, NewRun, ServerIdentity, Store, StoreError,
};

#[async_trait]
impl Log for SqliteStore {
    async fn begin(&self, new: NewRun) -> Result<BeginOutcome, StoreError> {
        self.begin_run(new).await
    }

    async fn claim(&self, message: &str) -> Result<Option<Box<dyn Lease>>, StoreError> {
        self.claim_run(message).await
    }

    async fn list_abandoned(&self) -> Result<Vec<MessageRow>, StoreError> {
        let query = sqlx::query_as(
            "select *, null as size, null as turn, null as summary, null as details from messages \
             where status = 'running' and (server is null or (server = ? and epoch < ?)) order by number",
        );
        let ServerIdentity { server, epoch } = self.identity();
        Ok(query.bind(server).bind(epoch).fetch_all(self.pool()).await?)
    }

    fn wait_idle(&self, conversation: &str) -> BoxFuture<'static, ()> {
        let (shared, conversation) = (self.shared.clone(), conversation.to_owned());
        Box::pin(async move {
            let next_number = shared.run_queue.lock_order().next_number();
            shared.run_queue.wait_earlier_runs(&conversation, next_number).await;
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
            Ok((self.read_batches(message, after, bytes, None).await?, state))
        })
    }

    fn follow(
        &self,
        message: &str,
        after: u64,
        bytes: usize,
    ) -> BoxStream<'static, Result<Batch, StoreError>> {
        let reader = self.shared.pending.tail(message).map(|tail| tail.add_reader());
        let (store, message) = (self.clone(), message.to_owned());
        let batches = VecDeque::new();
        let follower = LogFollower { store, message, last_number: after, bytes, reader, batches };
        stream::try_unfold(follower, |mut follower| async move {
            Ok(follower.next().await?.map(|batch| (batch, follower)))
        })
        .boxed()
    }
}

/// Cursor that follows one log.
struct LogFollower {
    store: SqliteStore,
    /// Id of the message.
    message: String,
    /// Number of the last entry returned.
    last_number: u64,
    /// Approximate bytes of a batch.
    bytes: usize,
    /// Reader of the log's tail; absent if the log was not in memory at the beginning.
    reader: Option<TailReader>,
    /// Batches read from the database and not returned yet.
    batches: VecDeque<Batch>,
}

impl LogFollower {
    /// Returns the next batch, from memory if possible; waits while there is none. `None` when nothing
    /// follows.
    async fn next(&mut self) -> Result<Option<Batch>, StoreError> {
        if self.batches.is_empty() {
            if let Some(reader) = &mut self.reader {
                let progress = reader.wait_more(self.last_number).await;
                if progress.last > self.last_number
                    && let Some(batch) = reader.batch_after(self.last_number, self.bytes)
                {
                    self.last_number = batch.last();
                    return Ok(Some(batch));
                }
            }
            self.batches
                .extend(self.store.read_batches(&self.message, self.last_number, self.bytes, None).await?);
        }
        // A row of the database may begin with entries that were returned before.
        let batch = self.batches.pop_front().map(|batch| batch.skip_through(self.last_number));
        self.last_number = batch.as_ref().map_or(self.last_number, Batch::last);
        Ok(batch)
    }
}

impl SqliteStore {
    /// Returns the state of a message's log.
    async fn log_state(&self, message: &str) -> Result<LogState, StoreError> {
        if let Some(tail) = self.shared.pending.tail(message) {
            return Ok(if tail.is_end_visible() { LogState::Ended } else { LogState::Open });
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

    /// Reads batches of a log from memory or the database. Entries that readers may not see yet are included
    /// only with `lease_tail`, the tail of the caller's lease.
    pub(super) async fn read_batches(
        &self,
        message: &str,
        after: u64,
        bytes: usize,
        lease_tail: Option<&Arc<LogTail>>,
    ) -> Result<Vec<Batch>, StoreError> {
        // The tail is read first, so that entries that leave memory later are found in the database. If no
        // entries are found although the log has some after `after`, they came between the two reads, which
        // are then repeated.
        loop {
            let tail = lease_tail.cloned().or_else(|| self.shared.pending.tail(message));
            let includes_invisible = lease_tail.is_some();
            let recent_batch =
                tail.as_ref().and_then(|tail| tail.recent_batch(after, bytes, includes_invisible));
            if let Some(recent_batch) = recent_batch {
                return Ok(recent_batch.into_iter().collect());
            }
            let batches = self.read_stored(message, after, bytes).await?;
            let last_number = |tail: Arc<LogTail>| {
                if includes_invisible { tail.last_number() } else { tail.progress().last }
            };
            if !batches.is_empty() || tail.is_none_or(|tail| last_number(tail) <= after) {
                return Ok(batches);
            }
        }
    }

    /// Reads batches from the database.
    async fn read_stored(&self, message: &str, after: u64, bytes: usize) -> Result<Vec<Batch>, StoreError> {
        let Ok(after) = i64::try_from(after) else { return Ok(Vec::new()) };
        let rows = sqlx::query_as(
            "select first, last, body from entries where message_id = ? and last > ? order by first",
        )
        .bind(message)
        .bind(after)
        .fetch(self.pool());
        Ok(read_entries(rows, bytes).await?)
    }
}
