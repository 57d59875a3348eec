//! Leases: they add entries to the tail in memory, from which a collector stores them.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::end::EndWriter;
use super::held_rows::RowGuard;
use super::local_runs::LocalRun;
use super::server_runs::ServerRuns;
use crate::{Batch, Lease, MessageRow, PendingAppend, RunEnd, StoreError, WriteOutcome};

/// Interval between checks for runs of other servers that began earlier.
const QUEUE_POLL: Duration = Duration::from_millis(50);

/// Lease held by this process.
pub(super) struct PostgresLease {
    runs: Arc<ServerRuns>,
    row: Arc<MessageRow>,
    run: Arc<LocalRun>,
    /// Number of the next entry to append.
    next_number: u64,
    /// Set when the end of the message is stored.
    is_finished: bool,
    /// Set until the caller that began the run has its lease.
    undelivered: Option<UndeliveredRun>,
}

/// Run whose caller has not received its lease yet. Nobody knows of it, so it is removed if the caller has
/// gone.
pub(super) struct UndeliveredRun {
    /// Id of the conversation that the message has opened.
    pub(super) opened_conversation: Option<String>,
    /// Claim of the idempotency key of the message.
    pub(super) claim: Option<RowGuard>,
}

impl PostgresLease {
    /// Creates the lease of a run whose next entry has number `next_number`.
    pub(super) fn new(
        runs: Arc<ServerRuns>,
        row: Arc<MessageRow>,
        run: Arc<LocalRun>,
        next_number: u64,
        undelivered: Option<UndeliveredRun>,
    ) -> PostgresLease {
        PostgresLease { runs, row, run, next_number, is_finished: false, undelivered }
    }

    /// Notes that the caller has the lease.
    pub(super) fn mark_delivered(&mut self) {
        self.undelivered = None;
    }

    /// Returns `true` while the lease may write.
    fn may_write(&self) -> bool {
        !self.is_finished && self.run.is_held() && self.runs.server_lease.is_valid()
    }

    /// Waits until the database has caught up enough for the run to continue.
    async fn wait_caught_up(&self) -> WriteOutcome {
        tokio::select! {
            biased;
            () = self.run.tail.wait_caught_up() => WriteOutcome::Stored,
            () = self.run.tail.wait_ended() => WriteOutcome::Fenced,
            () = self.runs.abort_waits.cancelled() => WriteOutcome::Unknown,
        }
    }
}

#[async_trait]
impl Lease for PostgresLease {
    fn row(&self) -> &Arc<MessageRow> {
        &self.row
    }

    fn epoch(&self) -> i64 {
        self.run.epoch
    }

    fn next_number(&self) -> u64 {
        self.next_number
    }

    fn wait_earlier_runs(&self) -> BoxFuture<'static, ()> {
        let (runs, row) = (self.runs.clone(), self.row.clone());
        async move { runs.wait_runs_before(&row.conversation_id, row.number.unwrap_or_default()).await }
            .boxed()
    }

    fn append(&mut self, batch: Batch) -> PendingAppend<'_> {
        debug_assert!(
            batch.first() == self.next_number && !batch.has_end(),
            "the end comes with the outcome of the message"
        );
        if self.runs.closed.is_cancelled() {
            return PendingAppend::Done(WriteOutcome::Down);
        }
        if !self.may_write() {
            return PendingAppend::Done(WriteOutcome::Fenced);
        }
        let is_visible = false;
        let append = self.run.tail.append(&batch, is_visible);
        self.runs.append_queue.queue(&self.run);
        let previous_number = std::mem::replace(&mut self.next_number, batch.last() + 1);
        if !append.is_ahead {
            return PendingAppend::Done(WriteOutcome::Stored);
        }
        PendingAppend::Waiting(Box::pin(async move {
            let outcome = self.wait_caught_up().await;
            if outcome != WriteOutcome::Stored {
                self.next_number = previous_number;
            }
            outcome
        }))
    }

    fn wait_settled(&self) -> BoxFuture<'_, WriteOutcome> {
        async {
            tokio::select! {
                biased;
                () = self.run.tail.wait_visible() => {
                    if self.is_finished || self.may_write() { WriteOutcome::Stored } else { WriteOutcome::Fenced }
                }
                () = self.run.tail.wait_ended() => WriteOutcome::Fenced,
                () = self.runs.abort_waits.cancelled() => WriteOutcome::Unknown,
            }
        }
        .boxed()
    }

    async fn read(&self, after: u64, bytes: usize) -> Result<Vec<Batch>, StoreError> {
        self.runs.read_batches(&self.run.tail.message, after, bytes, Some(&self.run.tail)).await
    }

    async fn finish(&mut self, end: RunEnd) -> WriteOutcome {
        debug_assert!(end.last.is_empty() || end.last.first() == self.next_number, "numbers have no gaps");
        if self.runs.closed.is_cancelled() {
            return WriteOutcome::Down;
        }
        if !self.may_write() {
            return WriteOutcome::Fenced;
        }
        // The end follows everything appended.
        tokio::select! {
            biased;
            () = self.run.wait_idle() => {}
            () = self.run.tail.wait_ended() => return WriteOutcome::Fenced,
            () = self.runs.abort_waits.cancelled() => return WriteOutcome::Down,
        }
        if !self.may_write() {
            return WriteOutcome::Fenced;
        }
        let writer = EndWriter {
            runs: &self.runs,
            row: &self.row,
            epoch: self.run.epoch,
            first_number: self.next_number,
        };
        let (outcome, row) = writer.write(&end).await;
        if outcome == WriteOutcome::Stored {
            self.is_finished = true;
            let end_position = self.run.tail.finish(&end.last, row);
            // Nothing is left to write: the database has it all.
            let force = true;
            if let Some(drained) = self.run.tail.drain(force, |_, _, _| {}) {
                self.run.tail.mark_stored(&drained);
            }
            self.run.tail.publish(end_position);
            self.runs.local_runs.remove(&self.run);
        } else if outcome == WriteOutcome::Fenced {
            self.runs.fenced_runs.fetch_add(1, Ordering::Relaxed);
            self.run.tail.fence();
        }
        outcome
    }
}

impl Drop for PostgresLease {
    fn drop(&mut self) {
        if self.is_finished {
            return;
        }
        let is_held = self.run.is_held();
        let (runs, row, run) = (self.runs.clone(), self.row.clone(), self.run.clone());
        let undelivered = self.undelivered.take();
        // The streams of readers end. Readers may follow the log again when another holder has claimed it.
        self.run.tail.mark_ended();
        if !is_held && undelivered.is_none() {
            self.runs.local_runs.remove(&self.run);
            return;
        }
        // Without a runtime the process is about to end, and the lease with it.
        if tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        self.run.mark_given_up();
        self.runs.spawn(async move {
            run.wait_idle().await;
            let (result, claim) = match undelivered {
                Some(UndeliveredRun { opened_conversation, claim }) => (
                    runs.database.delete_run(&row.id, run.epoch, opened_conversation.as_deref()).await,
                    claim,
                ),
                None => (runs.database.release_run(&row.id, run.epoch).await, None),
            };
            // A repeated request is refused until the claim is dropped.
            drop(claim);
            if let Err(error) = result {
                tracing::error!(%error, message_id = row.id, "the lease of a run could not be given up");
            }
            runs.local_runs.remove(&run);
        });
    }
}

impl ServerRuns {
    /// Waits until no run of the conversation with a number below `number` is left, or the store is closed.
    /// Runs whose lease was given up do not count.
    pub(super) async fn wait_runs_before(&self, conversation: &str, number: i64) {
        loop {
            let run_ended = self.local_runs.wait_run_ended();
            match self.database.has_runs_before(conversation, number).await {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => tracing::error!(%error, "earlier runs could not be looked up; trying again"),
            }
            tokio::select! {
                biased;
                () = run_ended => {}
                () = tokio::time::sleep(QUEUE_POLL) => {}
                () = self.closed.cancelled() => return,
            }
        }
    }
}
