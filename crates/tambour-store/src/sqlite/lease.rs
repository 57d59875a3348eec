//! Leases: appends go to the journal first.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::journal::{JournalRecord, LogEnd, Segment};
use super::tail::{LogTail, TailAppend};
use super::writer::WriterTask;
use super::{SqliteStore, StoreState};
use crate::fail;
use crate::{Batch, Lease, MessageRow, PendingAppend, RunEnd, StoreError, WriteOutcome};

/// Lease held by this process.
pub(super) struct SqliteLease {
    store: SqliteStore,
    row: Arc<MessageRow>,
    tail: Arc<LogTail>,
    epoch: i64,
    next: u64,
    /// Set when the end is on the journal.
    is_finished: bool,
}

/// Reason why a record is not on the journal.
enum PutError {
    Fenced,
    Failed(StoreError),
}

impl SqliteLease {
    pub(super) fn new(
        store: SqliteStore,
        row: Arc<MessageRow>,
        tail: Arc<LogTail>,
        epoch: i64,
        next: u64,
    ) -> SqliteLease {
        SqliteLease { store, row, tail, epoch, next, is_finished: false }
    }

    /// Writes a record to the journal if the lease holds, and runs `after_append` before anything else is written.
    fn write_record<T>(
        &self,
        record: &JournalRecord<'_>,
        after_append: impl FnOnce(&Arc<Segment>) -> T,
    ) -> Result<T, PutError> {
        match self.store.append_journal_if(
            record,
            || !self.is_finished && self.tail.is_held(self.epoch),
            after_append,
        ) {
            Ok(Some(result)) => Ok(result),
            Ok(None) => Err(PutError::Fenced),
            Err(error) => Err(PutError::Failed(error)),
        }
    }

    /// Writes a batch to the journal and to memory.
    fn write_batch(&self, batch: &Batch) -> Result<TailAppend, PutError> {
        let journal = &self.store.shared.journal;
        let (first, last) = (batch.first(), batch.last());
        let record = JournalRecord::Entries { message: &self.tail.message, first, last, body: batch.body() };
        self.write_record(&record, |file| {
            let extent = self.tail.append(batch, journal.syncer.is_none());
            if let Some(syncer) = &journal.syncer {
                syncer.queue_entries(file, &self.tail, extent.end);
            }
            extent
        })
    }

    /// Notifies the writer of an append. Returns `true` if the run has to wait.
    fn notify_writer(&self, extent: &TailAppend) -> Result<bool, StoreError> {
        if extent.needs_notify {
            self.store.writer.send(WriterTask::Entries(self.tail.clone()))?;
        }
        if extent.is_ahead {
            self.store.writer.send(WriterTask::Commit)?;
        }
        Ok(extent.is_ahead)
    }

    /// Writes to the journal, retrying until there is space: data that cannot be written must not be seen.
    async fn retry_write<T>(
        &self,
        mut write: impl FnMut() -> Result<T, PutError>,
    ) -> Result<T, WriteOutcome> {
        let mut wait = Duration::from_millis(50);
        loop {
            match write() {
                Ok(result) => return Ok(result),
                Err(PutError::Fenced) => return Err(WriteOutcome::Fenced),
                Err(PutError::Failed(StoreError::Closed)) => return Err(WriteOutcome::Down),
                Err(PutError::Failed(error)) => {
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

    async fn retry_append(&self, batch: Batch) -> WriteOutcome {
        let extent = match self.retry_write(|| self.write_batch(&batch)).await {
            Ok(extent) => extent,
            Err(refusal) => return refusal,
        };
        match self.notify_writer(&extent) {
            Ok(true) => self.wait_caught_up().await,
            Ok(false) => WriteOutcome::Stored,
            // The next start recovers it from the journal.
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
        self.next
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
            batch.first() == self.next && !batch.has_end(),
            "the end comes with what came of the message"
        );
        if self.store.shared.dead.is_cancelled() {
            return PendingAppend::Done(WriteOutcome::Down);
        }
        let last = batch.last();
        match self.write_batch(&batch) {
            Ok(extent) => match self.notify_writer(&extent) {
                Ok(wait) => {
                    let before = std::mem::replace(&mut self.next, last + 1);
                    if !wait {
                        return PendingAppend::Done(WriteOutcome::Stored);
                    }
                    PendingAppend::Waiting(Box::pin(async move {
                        let written = self.wait_caught_up().await;
                        if written != WriteOutcome::Stored {
                            self.next = before;
                        }
                        written
                    }))
                }
                Err(_) => PendingAppend::Done(WriteOutcome::Unknown),
            },
            Err(PutError::Fenced) => PendingAppend::Done(WriteOutcome::Fenced),
            Err(PutError::Failed(StoreError::Closed)) => PendingAppend::Done(WriteOutcome::Down),
            Err(PutError::Failed(error)) => {
                tracing::error!(%error, message_id = self.tail.message, "trying again");
                PendingAppend::Waiting(Box::pin(async move {
                    let written = self.retry_append(batch).await;
                    if written == WriteOutcome::Stored {
                        self.next = last + 1;
                    }
                    written
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
        debug_assert!(last.is_empty() || last.first() == self.next, "numbers have no gaps");
        let row = MessageRow { status, outcome: Some(outcome), ..MessageRow::clone(&self.row) };
        let row = Arc::new(row);
        let StoreState { journal, pending, run_queue, dead, .. } = &*self.store.shared;
        if dead.is_cancelled() {
            return WriteOutcome::Down;
        }
        let write_end = || {
            let record = JournalRecord::End(LogEnd::new(&row, &last));
            self.write_record(&record, |file| {
                pending.count_notification(&row.id);
                let extent = self.tail.finish(&last, row.clone());
                let was_sent = self.store.writer.send(WriterTask::Entries(self.tail.clone()));
                (extent, was_sent, journal.syncer.as_ref().map(|syncer| syncer.queue_waiter(file)))
            })
        };
        let (extent, was_sent, sync_wait) = match self.retry_write(write_end).await {
            Ok(write_outcome) => write_outcome,
            Err(refusal) => return refusal,
        };
        self.is_finished = true;
        let sync_wait = match sync_wait {
            Some(sync_wait) => sync_wait.await.is_ok(),
            None => true,
        };
        if !sync_wait || was_sent.is_err() {
            self.tail.mark_ended();
            return WriteOutcome::Unknown;
        }
        fail::point("record.after");
        // Readers that see the end must see the outcome too.
        pending.set_row(row);
        self.tail.publish(extent);
        run_queue.lock_order().remove(&self.row.conversation_id, self.row.number.unwrap_or_default());
        pending.remove_if_done(&self.tail);
        WriteOutcome::Stored
    }
}

impl Drop for SqliteLease {
    fn drop(&mut self) {
        if !self.is_finished && self.tail.is_held(self.epoch) {
            // Readers stop, and return when another holder has claimed it.
            self.tail.mark_ended();
            self.store.shared.pending.remove_if_done(&self.tail);
        }
        let StoreState { run_queue, .. } = &*self.store.shared;
        run_queue.lock_order().remove(&self.row.conversation_id, self.row.number.unwrap_or_default());
    }
}
