//! Leases: appends go to the journal first.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::journal::{Ending, Record, Segment};
use super::tail::{Appended, Tail};
use super::writer::Work;
use super::{Shared, SqliteStore};
use crate::fail;
use crate::store::{Appending, Batch, Lease, MessageRow, RunEnd, StoreError, Written};

/// Lease held by this process.
pub(super) struct SqliteLease {
    store: SqliteStore,
    row: Arc<MessageRow>,
    tail: Arc<Tail>,
    epoch: i64,
    next: u64,
    /// Set when the end is on the journal.
    over: bool,
}

/// Reason why a record is not on the journal.
enum Refused {
    Fenced,
    Failed(StoreError),
}

impl SqliteLease {
    pub(super) fn new(
        store: SqliteStore,
        row: Arc<MessageRow>,
        tail: Arc<Tail>,
        epoch: i64,
        next: u64,
    ) -> SqliteLease {
        SqliteLease { store, row, tail, epoch, next, over: false }
    }

    /// Writes a record to the journal if the lease holds, and runs `then` before anything else is written.
    fn put<T>(&self, record: &Record<'_>, then: impl FnOnce(&Arc<Segment>) -> T) -> Result<T, Refused> {
        match self.store.journal_if(record, || !self.over && self.tail.is_held(self.epoch), then) {
            Ok(Some(done)) => Ok(done),
            Ok(None) => Err(Refused::Fenced),
            Err(error) => Err(Refused::Failed(error)),
        }
    }

    /// Writes a batch to the journal and to memory.
    fn put_batch(&self, batch: &Batch) -> Result<Appended, Refused> {
        let journal = &self.store.shared.journal;
        let (first, last) = (batch.first(), batch.last());
        let record = Record::Entries { message: &self.tail.message, first, last, body: batch.body() };
        self.put(&record, |file| {
            let appended = self.tail.append(batch, journal.syncer.is_none());
            if let Some(syncer) = &journal.syncer {
                syncer.entries(file, &self.tail, appended.upto);
            }
            appended
        })
    }

    /// Notifies the writer of an append. Returns `true` if the run has to wait.
    fn tell(&self, appended: &Appended) -> Result<bool, StoreError> {
        if appended.tell {
            self.store.writer.tell(Work::Entries(self.tail.clone()))?;
        }
        if appended.ahead {
            self.store.writer.tell(Work::Hurry)?;
        }
        Ok(appended.ahead)
    }

    /// Writes to the journal, retrying until there is space: data that cannot be written must not be seen.
    async fn put_in_time<T>(&self, mut put: impl FnMut() -> Result<T, Refused>) -> Result<T, Written> {
        let mut wait = Duration::from_millis(50);
        loop {
            match put() {
                Ok(done) => return Ok(done),
                Err(Refused::Fenced) => return Err(Written::Fenced),
                Err(Refused::Failed(StoreError::Closed)) => return Err(Written::Down),
                Err(Refused::Failed(error)) => {
                    tracing::error!(%error, message_id = self.tail.message, "trying again");
                }
            }
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = self.store.shared.closing.cancelled() => return Err(Written::Down),
            }
            wait = (wait * 2).min(Duration::from_secs(1));
        }
    }

    async fn append_in_time(&self, batch: Batch) -> Written {
        let appended = match self.put_in_time(|| self.put_batch(&batch)).await {
            Ok(appended) => appended,
            Err(refused) => return refused,
        };
        match self.tell(&appended) {
            Ok(true) => self.caught_up().await,
            Ok(false) => Written::Stored,
            // The next start recovers it from the journal.
            Err(_) => Written::Unknown,
        }
    }

    /// Waits until the database has caught up enough for the run to continue.
    async fn caught_up(&self) -> Written {
        let Shared { closing, dead, .. } = &*self.store.shared;
        tokio::select! {
            () = self.tail.caught_up() => Written::Stored,
            () = closing.cancelled() => Written::Unknown,
            () = dead.cancelled() => Written::Unknown,
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

    fn next(&self) -> u64 {
        self.next
    }

    fn turn(&self) -> BoxFuture<'static, ()> {
        let (shared, row) = (self.store.shared.clone(), self.row.clone());
        async move { shared.places.turn(&row.conversation_id, row.number.unwrap_or_default()).await }.boxed()
    }

    fn append(&mut self, batch: Batch) -> Appending<'_> {
        debug_assert!(
            batch.first() == self.next && !batch.ends(),
            "the end comes with what came of the message"
        );
        if self.store.shared.dead.is_cancelled() {
            return Appending::Done(Written::Down);
        }
        let last = batch.last();
        match self.put_batch(&batch) {
            Ok(appended) => match self.tell(&appended) {
                Ok(waits) => {
                    let before = std::mem::replace(&mut self.next, last + 1);
                    if !waits {
                        return Appending::Done(Written::Stored);
                    }
                    Appending::Waits(Box::pin(async move {
                        let written = self.caught_up().await;
                        if written != Written::Stored {
                            self.next = before;
                        }
                        written
                    }))
                }
                Err(_) => Appending::Done(Written::Unknown),
            },
            Err(Refused::Fenced) => Appending::Done(Written::Fenced),
            Err(Refused::Failed(StoreError::Closed)) => Appending::Done(Written::Down),
            Err(Refused::Failed(error)) => {
                tracing::error!(%error, message_id = self.tail.message, "trying again");
                Appending::Waits(Box::pin(async move {
                    let written = self.append_in_time(batch).await;
                    if written == Written::Stored {
                        self.next = last + 1;
                    }
                    written
                }))
            }
        }
    }

    fn settled(&self) -> BoxFuture<'_, Written> {
        async {
            tokio::select! {
                biased;
                () = self.tail.shown() => Written::Stored,
                () = self.store.shared.dead.cancelled() => Written::Unknown,
            }
        }
        .boxed()
    }

    async fn read(&self, after: u64, bytes: usize) -> Result<Vec<Batch>, StoreError> {
        self.store.batches(&self.tail.message, after, bytes, Some(&self.tail)).await
    }

    async fn finish(&mut self, end: RunEnd) -> Written {
        fail::point("record.before");
        let RunEnd { last, status, outcome } = end;
        debug_assert!(last.is_empty() || last.first() == self.next, "numbers have no gaps");
        let row = MessageRow { status, outcome: Some(outcome), ..MessageRow::clone(&self.row) };
        let row = Arc::new(row);
        let Shared { journal, pending, places, dead, .. } = &*self.store.shared;
        if dead.is_cancelled() {
            return Written::Down;
        }
        let put = || {
            let record = Record::End(Ending::new(&row, &last));
            self.put(&record, |file| {
                pending.tell(&row.id);
                let upto = self.tail.finish(&last, row.clone());
                let told = self.store.writer.tell(Work::Entries(self.tail.clone()));
                (upto, told, journal.syncer.as_ref().map(|syncer| syncer.wait(file)))
            })
        };
        let (upto, told, synced) = match self.put_in_time(put).await {
            Ok(done) => done,
            Err(refused) => return refused,
        };
        self.over = true;
        let synced = match synced {
            Some(synced) => synced.await.is_ok(),
            None => true,
        };
        if !synced || told.is_err() {
            self.tail.end();
            return Written::Unknown;
        }
        fail::point("record.after");
        // Readers that see the end must see the outcome too.
        pending.show(row);
        self.tail.publish(upto);
        places.order().leave(&self.row.conversation_id, self.row.number.unwrap_or_default());
        pending.close(&self.tail);
        Written::Stored
    }
}

impl Drop for SqliteLease {
    fn drop(&mut self) {
        if !self.over && self.tail.is_held(self.epoch) {
            // Readers stop, and return when another holder has claimed it.
            self.tail.end();
            self.store.shared.pending.close(&self.tail);
        }
        let Shared { places, .. } = &*self.store.shared;
        places.order().leave(&self.row.conversation_id, self.row.number.unwrap_or_default());
    }
}
