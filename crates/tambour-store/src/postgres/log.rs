//! Logs of messages. A follower reads from memory a log that this server writes, and otherwise from the
//! server that writes it or from the database, in which it looks for more entries every 100 ms.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt};

use super::PostgresStore;
use crate::rows::read_entries;
use crate::tail::{LogTail, TailReader};
use crate::{Batch, BeginOutcome, Cluster, Lease, Log, LogState, MessageRow, NewRun, StoreError};

/// Interval between checks for entries that another server writes.
const FOLLOW_POLL: Duration = Duration::from_millis(100);
/// Maximum number of rows that a read asks for: the database sends all of them, wanted or not.
const ROWS_PER_QUERY: i64 = 64;
/// Shortest time between two attempts to follow a log on the server that writes it.
const PEER_PAUSE: Duration = Duration::from_secs(1);

#[async_trait]
impl Log for PostgresStore {
    async fn begin(&self, new: NewRun) -> Result<BeginOutcome, StoreError> {
        self.begin_run(new).await
    }

    async fn claim(&self, message: &str) -> Result<Option<Box<dyn Lease>>, StoreError> {
        self.claim_run(message).await
    }

    async fn list_abandoned(&self) -> Result<Vec<MessageRow>, StoreError> {
        // Runs whose lease was given up, runs whose server is gone, and runs of this server without a lease
        // here, because the server could not renew its own lease for a while.
        let query = sqlx::query_as(
            "select messages.*, null::bigint as size, null::text as turn, null::text as summary, \
             null::text as details from messages join runs on runs.id = messages.id \
             where not (runs.id = any($2)) and (runs.server is null or runs.server = $1 \
             or not exists (select 1 from servers where servers.id = runs.server and lease_until > now())) \
             order by messages.number limit 1000",
        );
        let query = query.bind(&self.identity.server).bind(self.shared.local_runs.messages());
        let mut rows: Vec<MessageRow> = query.fetch_all(self.pool()).await?;
        // A run may have begun since.
        rows.retain(|row| self.shared.local_runs.find(&row.id).is_none());
        Ok(rows)
    }

    fn wait_idle(&self, conversation: &str) -> BoxFuture<'static, ()> {
        let (store, conversation) = (self.clone(), conversation.to_owned());
        Box::pin(async move {
            let query = sqlx::query_scalar(
                "select coalesce(max(number), 0) + 1 from runs where conversation_id = $1",
            );
            match query.bind(&conversation).fetch_one(store.pool()).await {
                Ok(next_number) => store.wait_runs_before(&conversation, next_number).await,
                Err(error) => tracing::error!(%error, "runs of a conversation could not be looked up"),
            }
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
            let state = match self.holder(message).await? {
                RunHolder::Gone => LogState::Gone,
                RunHolder::Ended => LogState::Ended,
                RunHolder::Server | RunHolder::Nobody => LogState::Open,
            };
            Ok((self.read_batches(message, after, bytes, None).await?, state))
        })
    }

    fn follow(
        &self,
        message: &str,
        after: u64,
        bytes: usize,
    ) -> BoxStream<'static, Result<Batch, StoreError>> {
        let (store, message) = (self.clone(), message.to_owned());
        let reader = self.shared.local_runs.find(&message).map(|run| run.tail.add_reader());
        let follower = LogFollower {
            store,
            message,
            last_number: after,
            bytes,
            reader,
            peer: None,
            next_peer_attempt: Instant::now(),
            batches: VecDeque::new(),
        };
        stream::try_unfold(follower, |mut follower| async move {
            Ok(follower.next().await?.map(|batch| (batch, follower)))
        })
        .boxed()
    }
}

/// Holder of the lease of a run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RunHolder {
    /// The message does not exist.
    Gone,
    /// The run has ended.
    Ended,
    /// A server, which may be dead; another will claim the run then.
    Server,
    /// The lease was given up.
    Nobody,
}

/// Cursor that follows one log.
struct LogFollower {
    store: PostgresStore,
    /// Id of the message.
    message: String,
    /// Number of the last entry returned.
    last_number: u64,
    /// Approximate bytes of a batch.
    bytes: usize,
    /// Reader of the log's tail; absent if this server does not write the log, or no longer does.
    reader: Option<TailReader>,
    /// Stream from the server that writes the log.
    peer: Option<BoxStream<'static, Batch>>,
    /// Time of the next attempt to open that stream.
    next_peer_attempt: Instant,
    /// Batches read from the database and not returned yet.
    batches: VecDeque<Batch>,
}

impl LogFollower {
    /// Returns the next batch, from memory if possible; waits while there is none. `None` when nothing
    /// follows.
    async fn next(&mut self) -> Result<Option<Batch>, StoreError> {
        while self.batches.is_empty() {
            if let Some(reader) = &mut self.reader {
                let progress = reader.wait_more(self.last_number).await;
                if progress.last > self.last_number
                    && let Some(batch) = reader.batch_after(self.last_number, self.bytes)
                {
                    self.last_number = batch.last();
                    return Ok(Some(batch));
                }
                if progress.has_ended && progress.last <= self.last_number {
                    // The log has ended, or another server continues it: the database knows which.
                    self.reader = None;
                }
            }
            if let Some(peer) = &mut self.peer {
                match peer.next().await {
                    Some(batch)
                        if batch.last() > self.last_number && batch.first() <= self.last_number + 1 =>
                    {
                        let batch = batch.skip_through(self.last_number);
                        self.last_number = batch.last();
                        return Ok(Some(batch));
                    }
                    Some(_) => {}
                    // The log has ended, or the server does not answer: the database knows which.
                    None => self.peer = None,
                }
            }
            // Looked up before the batches are read: an ended log does not grow.
            let holder = self.store.holder(&self.message).await?;
            let batches = self.store.read_stored(&self.message, self.last_number, self.bytes).await?;
            self.batches.extend(batches);
            if self.batches.is_empty() {
                if holder != RunHolder::Server {
                    return Ok(None);
                }
                // Entries that memory has dropped are in the database, unless they were deleted.
                self.reader = None;
                self.wait_more().await?;
            }
        }
        // A row of the database may begin with entries that were returned before.
        let batch = self.batches.pop_front().map(|batch| batch.skip_through(self.last_number));
        self.last_number = batch.as_ref().map_or(self.last_number, Batch::last);
        Ok(batch)
    }
}

impl LogFollower {
    /// Opens the stream of the server that writes the log, or waits until the next check of the database.
    async fn wait_more(&mut self) -> Result<(), StoreError> {
        if self.next_peer_attempt <= Instant::now() {
            self.next_peer_attempt = Instant::now() + PEER_PAUSE;
            if let Some(peer_reader) = self.store.shared.peer_reader.get()
                && let Some(address) = self.store.remote_address(&self.message).await?
            {
                self.peer = peer_reader.follow(&address, &self.message, self.last_number).await;
                if self.peer.is_some() {
                    return Ok(());
                }
            }
        }
        tokio::select! {
            () = tokio::time::sleep(FOLLOW_POLL) => Ok(()),
            () = self.store.shared.closed.cancelled() => Err(StoreError::Closed),
        }
    }
}

impl PostgresStore {
    /// Returns the holder of the lease of a run.
    async fn holder(&self, message: &str) -> Result<RunHolder, StoreError> {
        let query = sqlx::query_as(
            "select messages.status, runs.server from messages left join runs on runs.id = messages.id \
             where messages.id = $1",
        );
        let row: Option<(String, Option<String>)> = query.bind(message).fetch_optional(self.pool()).await?;
        Ok(match row {
            None => RunHolder::Gone,
            Some((status, _)) if status != "running" => RunHolder::Ended,
            Some((_, None)) => RunHolder::Nobody,
            Some((_, Some(_))) => RunHolder::Server,
        })
    }

    /// Reads batches of a log from the database. If it has none, reads `lease_tail`, the tail of the caller's
    /// lease, including entries that readers may not see yet.
    pub(super) async fn read_batches(
        &self,
        message: &str,
        after: u64,
        bytes: usize,
        lease_tail: Option<&Arc<LogTail>>,
    ) -> Result<Vec<Batch>, StoreError> {
        let batches = self.read_stored(message, after, bytes).await?;
        if batches.is_empty()
            && let Some(tail) = lease_tail
            && let Some(recent_batch) = tail.recent_batch(after, bytes, true)
        {
            return Ok(recent_batch.into_iter().collect());
        }
        Ok(batches)
    }

    /// Reads batches from the database.
    async fn read_stored(&self, message: &str, after: u64, bytes: usize) -> Result<Vec<Batch>, StoreError> {
        let Ok(after) = i64::try_from(after) else { return Ok(Vec::new()) };
        let rows = sqlx::query_as(
            "select first, last, body from entries where message_id = $1 and last > $2 \
             and day = (select cast(substr(created, 1, 10) as date) from messages where id = $1) \
             order by first limit $3",
        )
        .bind(message)
        .bind(after)
        .bind(ROWS_PER_QUERY)
        .fetch(self.pool());
        Ok(read_entries(rows, bytes).await?)
    }
}
