//! Begins, claims and gives up runs.

use std::sync::Arc;

use futures_util::FutureExt;
use tokio::sync::oneshot;

use super::PostgresStore;
use super::database::InsertOutcome;
use super::held_rows::{HeldRow, RowGuard};
use super::lease::{PostgresLease, UndeliveredRun};
use super::local_runs::LocalRun;
use super::run_insert::FIRST_EPOCH;
use super::server_runs::ServerRuns;
use crate::fail;
use crate::{BeginOutcome, Lease, MessageRow, Messages, NewRun, RequestKey, StoreError, WriteOutcome};

/// Result of beginning a run, which is passed to the caller's task.
pub(super) enum TaskOutcome {
    Started(Box<PostgresLease>),
    Refused(BeginOutcome),
}

impl PostgresStore {
    /// Begins a message or turn atomically. If the caller goes away meanwhile, the run is removed again.
    pub(super) async fn begin_run(&self, new: NewRun) -> Result<BeginOutcome, StoreError> {
        let store = self.clone();
        self.runs().begin_in_task(async move { store.begin_once(new).await }).await
    }

    /// Begins a run, unless its owner has begun one with the same idempotency key.
    async fn begin_once(&self, new: NewRun) -> Result<TaskOutcome, StoreError> {
        let row = &new.row;
        let mut claim = None;
        if let Some(idempotency_key) = &row.repeat {
            // The empty route distinguishes these keys from the keys of other HTTP requests.
            let key = RequestKey {
                owner: row.owner.clone(),
                route: String::new(),
                idempotency_key: idempotency_key.clone(),
            };
            let mut guard = self.row_guard(HeldRow::Claim(key));
            if !guard.take().await? {
                return Ok(TaskOutcome::Refused(BeginOutcome::InProgress));
            }
            claim = Some(guard);
            if let Some(earlier) = self.message_by_key(&row.owner, idempotency_key, &new.repeat_since).await?
            {
                return Ok(TaskOutcome::Refused(BeginOutcome::Repeated(Box::new(earlier))));
            }
        }
        self.runs().begin(&new, claim).await
    }
}

impl ServerRuns {
    /// Begins a run with `begin`, in a task of its own: dropping the caller must not leave a commit without a
    /// lease.
    pub(super) async fn begin_in_task(
        &self,
        begin: impl Future<Output = Result<TaskOutcome, StoreError>> + Send + 'static,
    ) -> Result<BeginOutcome, StoreError> {
        self.check_available()?;
        let (sender, receiver) = oneshot::channel();
        // Without a receiver the lease is dropped, which removes the run.
        self.spawn(async move { drop(sender.send(begin.await)) });
        match receiver.await.map_err(|_| StoreError::Closed)?? {
            TaskOutcome::Started(mut lease) => {
                lease.mark_delivered();
                let durable = std::future::ready(WriteOutcome::Stored).boxed();
                Ok(BeginOutcome::Started { lease, durable })
            }
            TaskOutcome::Refused(refusal) => Ok(refusal),
        }
    }

    /// Begins a run. `claim` is held until the caller has the lease.
    pub(super) async fn begin(
        self: &Arc<ServerRuns>,
        new: &NewRun,
        claim: Option<RowGuard>,
    ) -> Result<TaskOutcome, StoreError> {
        let row = &new.row;
        // The run is in memory before it is in the database: a run of this server that is not in memory
        // counts as abandoned.
        let run = LocalRun::new(&row.id, FIRST_EPOCH);
        self.local_runs.insert(&run);
        let insertion = self.insert_run(new, claim.as_ref().map(RowGuard::holder)).await;
        let number = match insertion {
            Ok(InsertOutcome::Inserted(number)) => number,
            Ok(InsertOutcome::Refused(refusal)) => {
                self.local_runs.remove(&run);
                return Ok(TaskOutcome::Refused(refusal));
            }
            Ok(InsertOutcome::Unknown(error)) => {
                self.local_runs.remove(&run);
                if let Some(claim) = claim.filter(|_| error.as_database_error().is_none()) {
                    // The database has not answered that it did nothing.
                    claim.release_later();
                }
                return Err(error.into());
            }
            // Without a commit nothing comes of it: the claim is released.
            Err(error) => {
                self.local_runs.remove(&run);
                return Err(error.into());
            }
        };
        fail::point("state.after");
        let row = Arc::new(self.numbered_row(row, number));
        let opened_conversation = new.opens_conversation.then(|| row.conversation_id.clone());
        let undelivered = Some(UndeliveredRun { opened_conversation, claim });
        let next_number = 1;
        let lease = PostgresLease::new(self.clone(), row, run, next_number, undelivered);
        Ok(TaskOutcome::Started(Box::new(lease)))
    }

    /// Returns the row of a message that begins on this server.
    fn numbered_row(&self, row: &MessageRow, number: i64) -> MessageRow {
        let server = Some(self.server.clone());
        MessageRow { number: Some(number), server, epoch: Some(FIRST_EPOCH), ..row.clone() }
    }

    /// Inserts a message and its run. After a commit that failed, looks if they are there nevertheless.
    async fn insert_run(&self, new: &NewRun, claim_holder: Option<&str>) -> sqlx::Result<InsertOutcome> {
        if new.is_exclusive || new.replaces.is_some() {
            self.local_runs.wait_given_up().await;
        }
        match self.database.insert_run(new, &self.server, claim_holder).await? {
            InsertOutcome::Unknown(error) => {
                let number = self.database.message_number(&new.row.id).await.ok().flatten();
                Ok(number.map_or(InsertOutcome::Unknown(error), InsertOutcome::Inserted))
            }
            outcome => Ok(outcome),
        }
    }

    /// Claims a run that has not ended and whose lease no other living server holds; `None` if there is no
    /// such run.
    pub(super) async fn claim_run(
        self: &Arc<ServerRuns>,
        message: &str,
    ) -> Result<Option<Box<dyn Lease>>, StoreError> {
        if let Some(run) = self.local_runs.find(message) {
            run.tail.fence();
            // The appends of the former holder come before the new lease.
            run.wait_idle().await;
        }
        let claimed = self.database.claim_run(message, &self.server).await?;
        let Some((epoch, next_number)) = claimed else { return Ok(None) };
        let Some(row) = self.database.message(message).await? else { return Ok(None) };
        let run = LocalRun::new(message, epoch);
        self.local_runs.insert(&run);
        let next_number = next_number.cast_unsigned();
        let undelivered = None;
        Ok(Some(Box::new(PostgresLease::new(self.clone(), Arc::new(row), run, next_number, undelivered))))
    }

    /// Returns the messages whose run this server could claim: runs whose lease was given up, runs whose server
    /// is gone, and runs of this server without a lease here, because the server could not renew its own lease
    /// for a while.
    pub(super) async fn list_abandoned(&self) -> Result<Vec<MessageRow>, StoreError> {
        let mut rows = self.database.list_claimable(&self.server, self.local_runs.messages()).await?;
        // A run may have begun since.
        rows.retain(|row| self.local_runs.find(&row.id).is_none());
        Ok(rows)
    }
}
