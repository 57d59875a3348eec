//! Logs of messages. A follower reads from memory a log that this server writes, and otherwise from the
//! server that writes it or from the database, in which it looks for more entries every 100 ms.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt};

use tokio::time::Instant;

use super::PostgresStore;
use super::database::RunHolder;
use super::server_runs::ServerRuns;
use crate::tail::{LogTail, TailReader};
use crate::{Batch, BeginOutcome, Lease, Log, LogState, MessageRow, NewRun, StoreError};

/// Interval between checks for entries that another server writes.
const FOLLOW_POLL: Duration = Duration::from_millis(100);
/// Shortest and longest time between two attempts to follow a log on the server that writes it. It doubles while
/// that server does not answer: the log is not read during an attempt.
const MIN_PEER_PAUSE: Duration = Duration::from_secs(1);
const MAX_PEER_PAUSE: Duration = Duration::from_secs(16);

#[async_trait]
impl Log for PostgresStore {
    async fn begin(&self, new: NewRun) -> Result<BeginOutcome, StoreError> {
        self.begin_run(new).await
    }

    async fn claim(&self, message: &str) -> Result<Option<Box<dyn Lease>>, StoreError> {
        self.runs().claim_run(message).await
    }

    async fn list_abandoned(&self) -> Result<Vec<MessageRow>, StoreError> {
        self.runs().list_abandoned().await
    }

    fn wait_idle(&self, conversation: &str) -> BoxFuture<'static, ()> {
        let (runs, conversation) = (self.runs().clone(), conversation.to_owned());
        Box::pin(async move {
            match runs.database.next_run_number(&conversation).await {
                Ok(next_number) => runs.wait_runs_before(&conversation, next_number).await,
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
            let state = match self.runs().database.run_holder(message).await? {
                RunHolder::Gone => LogState::Gone,
                RunHolder::Ended => LogState::Ended,
                RunHolder::Server | RunHolder::Nobody => LogState::Open,
            };
            Ok((self.runs().read_batches(message, after, bytes, None).await?, state))
        })
    }

    fn follow(
        &self,
        message: &str,
        after: u64,
        bytes: usize,
    ) -> BoxStream<'static, Result<Batch, StoreError>> {
        self.runs().follow(message, after, bytes)
    }
}

/// Cursor that follows one log.
struct LogFollower {
    runs: Arc<ServerRuns>,
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
    /// Time from that attempt to the one after it.
    peer_pause: Duration,
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
            let holder = self.runs.database.run_holder(&self.message).await?;
            let batches = self.runs.read_stored(&self.message, self.last_number, self.bytes).await?;
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
            let attempt = self.open_peer().await;
            self.next_peer_attempt = Instant::now() + self.peer_pause;
            self.peer_pause = (self.peer_pause * 2).min(MAX_PEER_PAUSE);
            if attempt? {
                self.peer_pause = MIN_PEER_PAUSE;
                return Ok(());
            }
        }
        tokio::select! {
            biased;
            () = self.runs.closed.cancelled() => Err(StoreError::Closed),
            () = tokio::time::sleep(FOLLOW_POLL) => Ok(()),
        }
    }

    /// Opens the stream of the server that writes the log; returns `false` if there is none, or it does not
    /// answer.
    async fn open_peer(&mut self) -> Result<bool, StoreError> {
        if let Some(peer_reader) = self.runs.peer_reader.get()
            && let Some(address) = self.runs.database.remote_address(&self.message, &self.runs.server).await?
        {
            self.peer = peer_reader.follow(&address, &self.message, self.last_number).await;
        }
        Ok(self.peer.is_some())
    }
}

impl ServerRuns {
    /// Follows a log, as [`Log::follow`] does.
    pub(super) fn follow(
        self: &Arc<ServerRuns>,
        message: &str,
        after: u64,
        bytes: usize,
    ) -> BoxStream<'static, Result<Batch, StoreError>> {
        let follower = LogFollower {
            runs: self.clone(),
            message: message.to_owned(),
            last_number: after,
            bytes,
            reader: self.local_runs.find(message).map(|run| run.tail.add_reader()),
            peer: None,
            next_peer_attempt: Instant::now(),
            peer_pause: MIN_PEER_PAUSE,
            batches: VecDeque::new(),
        };
        stream::try_unfold(follower, |mut follower| async move {
            Ok(follower.next().await?.map(|batch| (batch, follower)))
        })
        .boxed()
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
        let Some(tail) = lease_tail.filter(|_| batches.is_empty()) else { return Ok(batches) };
        match tail.recent_batch(after, bytes, true) {
            Some(recent_batch) => Ok(recent_batch.into_iter().collect()),
            // Entries may have been stored since the look at the database, and have left memory.
            None => self.read_stored(message, after, bytes).await,
        }
    }

    /// Reads batches from the database.
    async fn read_stored(&self, message: &str, after: u64, bytes: usize) -> Result<Vec<Batch>, StoreError> {
        let Ok(after) = i64::try_from(after) else { return Ok(Vec::new()) };
        Ok(self.database.read_entries(message, after, bytes).await?)
    }
}
