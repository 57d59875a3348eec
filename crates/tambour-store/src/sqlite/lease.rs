//! Leases: they write a record to the journal first, then its entries to the tail in memory, and then notify
//! the writer of the database.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::journal::{JournalRecord, LogEnd, Segment};
use super::writer::WriterTask;
use super::{SqliteStore, StoreState};
use crate::fail;
use crate::tail::{LogTail, TailAppend};
use crate::{Batch, Lease, MessageRow, PendingAppend, RunEnd, StoreError, WriteOutcome};

/// Lease held by this process.
pub(super) struct SqliteLease {
    store: SqliteStore,
    row: Arc<MessageRow>,
    tail: Arc<LogTail>,
    epoch: i64,
    /// Number of the next entry to append.
    next_number: u64,
    /// Set when the end of the message is on the journal.
    is_finished: bool,
}

/// Reason why a record is not on the journal.
enum RecordError {
    /// The lease is no longer valid, or has finished its run.
    Fenced,
    /// The journal could not be written.
    Failed(StoreError),
}

impl SqliteLease {
    /// Creates the lease of a run whose next entry has number `next_number`.
    pub(super) fn new(
        store: SqliteStore,
        row: Arc<MessageRow>,
        tail: Arc<LogTail>,
        epoch: i64,
        next_number: u64,
    ) -> SqliteLease {
        SqliteLease { store, row, tail, epoch, next_number, is_finished: false }
    }

    /// Writes a record to the journal if the lease is still valid, and runs `after_append` before any other
    /// record is written.
    fn write_record<T>(
        &self,
        record: &JournalRecord<'_>,
        after_append: impl FnOnce(&Arc<Segment>) -> T,
    ) -> Result<T, RecordError> {
        let may_write = || !self.is_finished && self.tail.is_held(self.epoch);
        match self.store.append_journal_if(record, may_write, after_append) {
            Ok(Some(result)) => Ok(result),
            Ok(None) => Err(RecordError::Fenced),
            Err(error) => Err(RecordError::Failed(error)),
        }
    }

    /// Writes a batch to the journal and to the tail. Readers see it at once or, with `durable`, after a
    /// sync.
    fn write_batch(&self, batch: &Batch) -> Result<TailAppend, RecordError> {
        let journal = &self.store.shared.journal;
        let (first, last) = (batch.first(), batch.last());
        let record = JournalRecord::Entries { message: &self.tail.message, first, last, body: batch.body() };
        self.write_record(&record, |segment| {
            let is_visible = journal.syncer.is_none();
            let append = self.tail.append(batch, is_visible);
            if let Some(syncer) = &journal.syncer {
                syncer.queue_entries(segment, &self.tail, append.end);
            }
            append
        })
    }

    /// Notifies the writer of an append, if that is due. Returns `true` if the run has to wait for the
    /// database.
    fn notify_writer(&self, append: &TailAppend) -> Result<bool, StoreError> {
        if append.needs_notify {
            self.store.writer.send(WriterTask::Entries(self.tail.clone()))?;
        }
        if append.is_ahead {
            self.store.writer.send(WriterTask::Commit)?;
        }
        Ok(append.is_ahead)
    }

    /// Writes to the journal, retrying until there is space or waits are aborted: readers must not see data
    /// that is not on the journal.
    async fn retry_write<T>(
        &self,
        mut write: impl FnMut() -> Result<T, RecordError>,
    ) -> Result<T, WriteOutcome> {
        let mut wait = Duration::from_millis(50);
        loop {
            match write() {
                Ok(result) => return Ok(result),
                Err(RecordError::Fenced) => return Err(WriteOutcome::Fenced),
                Err(RecordError::Failed(StoreError::Closed)) => return Err(WriteOutcome::Down),
                Err(RecordError::Failed(error)) => {
                    tracing::error!(%error, message_id = self.tail.message, "trying again");
                }
            }
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = self.store.shared.abort_waits.cancelled() => return Err(WriteOutcome::Down),
            }
            wait = (wait * 2).min(Duration::from_secs(1));
        }
    }

    /// Appends a batch after a first attempt has failed.
    async fn retry_append(&self, batch: Batch) -> WriteOutcome {
        let append = match self.retry_write(|| self.write_batch(&batch)).await {
            Ok(append) => append,
            Err(failure) => return failure,
        };
        match self.notify_writer(&append) {
            Ok(true) => self.wait_caught_up().await,
            Ok(false) => WriteOutcome::Stored,
            // The batch is on the journal; the next start recovers it.
            Err(_) => WriteOutcome::Unknown,
        }
    }

    /// Waits until the database has caught up enough for the run to continue.
    async fn wait_caught_up(&self) -> WriteOutcome {
        let StoreState { abort_waits, dead, .. } = &*self.store.shared;
        tokio::select! {
            () = self.tail.wait_caught_up() => WriteOutcome::Stored,
            () = abort_waits.cancelled() => WriteOutcome::Unknown,
            () = dead.cancelled() => WriteOutcome::Unknown,
        }
    }
}

#[async_trait]
impl Lease for SqliteLease {
    fn row(&self) -> &Arc<MessageRow> {
        &self.row
    }

    fn epoch(&self) -> i64 {
        self.epoch
    }

    fn next_number(&self) -> u64 {
        self.next_number
    }

    fn wait_earlier_runs(&self) -> BoxFuture<'static, ()> {
        let (shared, row) = (self.store.shared.clone(), self.row.clone());
        async move {
            let number = row.number.unwrap_or_default();
            shared.run_queue.wait_earlier_runs(&row.conversation_id, number).await;
        }
        .boxed()
    }

    fn append(&mut self, batch: Batch) -> PendingAppend<'_> {
        debug_assert!(
            batch.first() == self.next_number && !batch.has_end(),
            "the end is written by `finish`, with the outcome"
        );
        if self.store.shared.dead.is_cancelled() {
            return PendingAppend::Done(WriteOutcome::Down);
        }
        let last = batch.last();
        match self.write_batch(&batch) {
            Ok(append) => match self.notify_writer(&append) {
                Ok(must_wait) => {
                    let previous_number = std::mem::replace(&mut self.next_number, last + 1);
                    if !must_wait {
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
                Err(_) => PendingAppend::Done(WriteOutcome::Unknown),
            },
            Err(RecordError::Fenced) => PendingAppend::Done(WriteOutcome::Fenced),
            Err(RecordError::Failed(StoreError::Closed)) => PendingAppend::Done(WriteOutcome::Down),
            Err(RecordError::Failed(error)) => {
                tracing::error!(%error, message_id = self.tail.message, "trying again");
                PendingAppend::Waiting(Box::pin(async move {
                    let outcome = self.retry_append(batch).await;
                    if outcome == WriteOutcome::Stored {
                        self.next_number = last + 1;
                    }
                    outcome
                }))
            }
        }
    }

    fn wait_settled(&self) -> BoxFuture<'_, WriteOutcome> {
        async {
            tokio::select! {
                biased;
                () = self.tail.wait_visible() => WriteOutcome::Stored,
                () = self.store.shared.dead.cancelled() => WriteOutcome::Unknown,
            }
        }
        .boxed()
    }

    async fn read(&self, after: u64, bytes: usize) -> Result<Vec<Batch>, StoreError> {
        self.store.read_batches(&self.tail.message, after, bytes, Some(&self.tail)).await
    }

    async fn finish(&mut self, end: RunEnd) -> WriteOutcome {
        fail::point("record.before");
        let RunEnd { last, status, outcome } = end;
        debug_assert!(last.is_empty() || last.first() == self.next_number, "numbers have no gaps");
        let row = MessageRow { status, outcome: Some(outcome), ..MessageRow::clone(&self.row) };
        let row = Arc::new(row);
        let StoreState { journal, pending, run_queue, dead, .. } = &*self.store.shared;
        if dead.is_cancelled() {
            return WriteOutcome::Down;
        }
        let write_end = || {
            let record = JournalRecord::End(LogEnd::new(&row, &last));
            self.write_record(&record, |segment| {
                pending.count_notification(&row.id);
                let end = self.tail.finish(&last, row.clone());
                let send_result = self.store.writer.send(WriterTask::Entries(self.tail.clone()));
                (end, send_result, journal.syncer.as_ref().map(|syncer| syncer.queue_waiter(segment)))
            })
        };
        let (end, send_result, sync_wait) = match self.retry_write(write_end).await {
            Ok(written_end) => written_end,
            Err(failure) => return failure,
        };
        self.is_finished = true;
        let is_durable = match sync_wait {
            Some(sync_wait) => sync_wait.await.is_ok(),
            None => true,
        };
        if !is_durable || send_result.is_err() {
            self.tail.mark_ended();
            return WriteOutcome::Unknown;
        }
        fail::point("record.after");
        // Readers that see the end must see the outcome too.
        pending.set_row(row);
        self.tail.publish(end);
        run_queue.lock_order().remove(&self.row.conversation_id, self.row.number.unwrap_or_default());
        pending.remove_if_done(&self.tail);
        WriteOutcome::Stored
    }
}

impl Drop for SqliteLease {
    fn drop(&mut self) {
        if !self.is_finished && self.tail.is_held(self.epoch) {
            // The streams of readers end. Readers may follow the log again when another holder has claimed
            // it.
            self.tail.mark_ended();
            self.store.shared.pending.remove_if_done(&self.tail);
        }
        let StoreState { run_queue, .. } = &*self.store.shared;
        run_queue.lock_order().remove(&self.row.conversation_id, self.row.number.unwrap_or_default());
    }
}
