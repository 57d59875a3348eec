//! Begins, claims and gives up runs.

use std::sync::Arc;

use futures_util::FutureExt;
use sqlx::PgConnection;

use super::PostgresStore;
use super::lease::{PostgresLease, UndeliveredRun};
use super::local_runs::LocalRun;
use super::states::undo_from;
use crate::fail;
use crate::rows::kind_name;
use crate::{
    BeginOutcome, Lease, MessageRow, Messages, NewRun, RequestKey, RunKind, Store, StoreError, WriteOutcome,
};

/// Epoch of the first lease of a run.
const FIRST_EPOCH: i64 = 1;

/// Result of beginning a run, which is passed to the caller's task.
enum TaskOutcome {
    Started(Box<PostgresLease>),
    Refused(BeginOutcome),
}

/// Result of the transaction that begins a run.
enum InsertOutcome {
    /// Number of the message.
    Inserted(i64),
    Refused(BeginOutcome),
}

impl PostgresStore {
    /// Begins a message or turn atomically. If the caller goes away meanwhile, the run is removed again.
    pub(super) async fn begin_run(&self, new: NewRun) -> Result<BeginOutcome, StoreError> {
        self.check_available()?;
        let store = self.clone();
        // In a task of its own: dropping the caller must not leave a commit without a lease.
        let task = tokio::spawn(async move { store.begin_in_task(new).await });
        match task.await.map_err(|_| StoreError::Closed)?? {
            TaskOutcome::Started(mut lease) => {
                lease.mark_delivered();
                let durable = std::future::ready(WriteOutcome::Stored).boxed();
                Ok(BeginOutcome::Started { lease, durable })
            }
            TaskOutcome::Refused(refusal) => Ok(refusal),
        }
    }

    async fn begin_in_task(&self, new: NewRun) -> Result<TaskOutcome, StoreError> {
        let row = &new.row;
        let mut claim = None;
        if let Some(idempotency_key) = &row.repeat {
            // The empty route distinguishes these keys from the keys of other HTTP requests.
            let key = RequestKey {
                owner: row.owner.clone(),
                route: String::new(),
                idempotency_key: idempotency_key.clone(),
            };
            claim = self.claim_guarded(key).await?;
            if claim.is_none() {
                return Ok(TaskOutcome::Refused(BeginOutcome::InProgress));
            }
            if let Some(earlier) = self.message_by_key(&row.owner, idempotency_key, &new.repeat_since).await?
            {
                return Ok(TaskOutcome::Refused(BeginOutcome::Repeated(Box::new(earlier))));
            }
        }
        // The run is in memory before it is in the database: a run of this server that is not in memory
        // counts as abandoned.
        let run = LocalRun::new(&row.id, FIRST_EPOCH);
        self.shared.local_runs.insert(&run);
        let insertion = self.pool().limit(self.insert_run(&new)).await;
        let number = match insertion {
            Ok(InsertOutcome::Inserted(number)) => number,
            Ok(InsertOutcome::Refused(refusal)) => {
                self.shared.local_runs.remove(&run);
                return Ok(TaskOutcome::Refused(refusal));
            }
            Err(error) => {
                self.shared.local_runs.remove(&run);
                if let Some(claim) = claim.filter(|_| !is_refusal(&error)) {
                    self.release_later(claim);
                }
                return Err(error);
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
        let server = Some(self.identity().server.clone());
        MessageRow { number: Some(number), server, epoch: Some(FIRST_EPOCH), ..row.clone() }
    }

    /// Inserts a message and its run in one transaction.
    async fn insert_run(&self, new: &NewRun) -> Result<InsertOutcome, StoreError> {
        if new.is_exclusive || new.replaces.is_some() {
            self.shared.local_runs.wait_given_up().await;
        }
        let mut transaction = self.pool().begin().await?;
        let outcome = insert_message(&mut transaction, new, &self.identity().server).await?;
        let InsertOutcome::Inserted(_) = outcome else { return Ok(outcome) };
        if let Err(error) = transaction.commit().await {
            // The transaction may have been committed nevertheless.
            let query = sqlx::query_scalar("select number from messages where id = $1").bind(&new.row.id);
            let number: Option<i64> = query.fetch_optional(self.pool()).await?;
            return number.map(InsertOutcome::Inserted).ok_or_else(|| error.into());
        }
        Ok(outcome)
    }

    /// Claims a run that has not ended and whose lease no other living server holds; `None` if there is no
    /// such run.
    pub(super) async fn claim_run(&self, message: &str) -> Result<Option<Box<dyn Lease>>, StoreError> {
        if let Some(run) = self.shared.local_runs.find(message) {
            run.tail.fence();
            // The appends of the former holder come before the new lease.
            run.wait_idle().await;
        }
        let query = sqlx::query_as(
            "with claimed as (update runs set server = $2, epoch = epoch + 1 where id = \
             (select id from runs where id = $1 and (server is null or server = $2 or not exists \
             (select 1 from servers where servers.id = runs.server and lease_until > now())) \
             for update skip locked) returning id, epoch, next) \
             update messages set server = $2, epoch = claimed.epoch from claimed where messages.id = claimed.id \
             returning claimed.epoch, claimed.next",
        );
        let query = query.bind(message).bind(&self.identity().server);
        let claimed: Option<(i64, i64)> = query.fetch_optional(self.pool()).await?;
        let Some((epoch, next_number)) = claimed else { return Ok(None) };
        let Some(row) = self.message(message).await? else { return Ok(None) };
        let run = LocalRun::new(message, epoch);
        self.shared.local_runs.insert(&run);
        let next_number = next_number.cast_unsigned();
        let undelivered = None;
        Ok(Some(Box::new(PostgresLease::new(self.clone(), Arc::new(row), run, next_number, undelivered))))
    }

    /// Gives up the lease of a run, so that any server may claim it.
    pub(super) async fn release_run(&self, message: &str, epoch: i64) -> Result<(), StoreError> {
        let query = sqlx::query("update runs set server = null where id = $1 and epoch = $2");
        query.bind(message).bind(epoch).execute(self.pool()).await?;
        Ok(())
    }

    /// Removes a run whose caller has gone before it received the lease.
    pub(super) async fn remove_undelivered(
        &self,
        message: &str,
        undelivered: UndeliveredRun,
    ) -> Result<(), StoreError> {
        let mut transaction = self.pool().begin().await?;
        for statement in ["delete from runs where id = $1", "delete from messages where id = $1"] {
            sqlx::query(statement).bind(message).execute(&mut *transaction).await?;
        }
        if let Some(conversation) = &undelivered.opened_conversation {
            let query = sqlx::query(
                "delete from conversations where id = $1 \
                 and not exists (select 1 from messages where conversation_id = $1)",
            );
            query.bind(conversation).execute(&mut *transaction).await?;
        }
        transaction.commit().await?;
        // A repeated request is refused until the claim is dropped.
        drop(undelivered.claim);
        Ok(())
    }
}

/// Returns `true` if the database has answered that it did not do the work.
fn is_refusal(error: &StoreError) -> bool {
    let StoreError::Database(cause) = error else { return false };
    cause.downcast_ref::<sqlx::Error>().is_some_and(|error| error.as_database_error().is_some())
}

/// Inserts a message and its run within a transaction, which is rolled back after a refusal.
async fn insert_message(
    connection: &mut PgConnection,
    new: &NewRun,
    server: &str,
) -> Result<InsertOutcome, StoreError> {
    let NewRun { row, opens_conversation, is_exclusive, replaces, .. } = new;
    let refuse = |refusal| Ok(InsertOutcome::Refused(refusal));
    if *opens_conversation {
        let query = sqlx::query(
            "insert into conversations (id, owner, created) values ($1, $2, $3) on conflict do nothing",
        );
        let query = query.bind(&row.conversation_id).bind(&row.owner).bind(&row.created);
        query.execute(&mut *connection).await?;
    }
    // Locked to the end of the transaction: numbers rise in the order of commits, and a deletion waits.
    let statement = match row.kind {
        RunKind::Message => "select owner from conversations where id = $1 for update",
        RunKind::Turn => "select owner from dialogues where id = $1 for update",
    };
    let query = sqlx::query_scalar(statement).bind(&row.conversation_id);
    let owner: Option<String> = query.fetch_optional(&mut *connection).await?;
    if owner.is_none_or(|owner| owner != row.owner) || is_closed(connection, &row.conversation_id).await? {
        return refuse(BeginOutcome::NoConversation);
    }
    if (*is_exclusive || replaces.is_some()) && has_runs(connection, &row.conversation_id).await? {
        return refuse(BeginOutcome::Busy);
    }
    if let Some(replaced) = replaces
        && let Some(refusal) = supersede(connection, row, replaced).await?
    {
        return refuse(refusal);
    }
    let query = sqlx::query_scalar(
        "insert into messages (id, conversation_id, request_id, owner, created, status, request, kind, repeat, \
         server, epoch) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) returning number",
    );
    let query = query.bind(&row.id).bind(&row.conversation_id).bind(&row.request_id).bind(&row.owner);
    let query = query.bind(&row.created).bind(&row.status).bind(&row.request).bind(kind_name(row.kind));
    let query = query.bind(&row.repeat).bind(server).bind(FIRST_EPOCH);
    let number: i64 = query.fetch_one(&mut *connection).await?;
    let query = sqlx::query(
        "insert into runs (id, number, conversation_id, server, epoch, next, day) \
         values ($1, $2, $3, $4, $5, 1, cast(substr($6, 1, 10) as date))",
    );
    let query = query.bind(&row.id).bind(number).bind(&row.conversation_id).bind(server);
    query.bind(FIRST_EPOCH).bind(&row.created).execute(&mut *connection).await?;
    Ok(InsertOutcome::Inserted(number))
}

/// Returns `true` if no run may begin in the conversation or dialogue.
async fn is_closed(connection: &mut PgConnection, conversation: &str) -> sqlx::Result<bool> {
    let query = sqlx::query_scalar(
        "select exists (select 1 from closed where conversation_id = $1 and lease_until > now())",
    );
    query.bind(conversation).fetch_one(connection).await
}

/// Returns `true` if a run of the conversation or dialogue has not ended. Runs whose lease was given up do not
/// count.
pub(super) async fn has_runs(connection: &mut PgConnection, conversation: &str) -> sqlx::Result<bool> {
    let query = sqlx::query_scalar(
        "select exists (select 1 from runs where conversation_id = $1 and server is not null)",
    );
    query.bind(conversation).fetch_one(connection).await
}

/// Supersedes the message `replaced` and all later ones of its conversation, and undoes their state updates.
/// Returns the reason if that is impossible.
async fn supersede(
    connection: &mut PgConnection,
    row: &MessageRow,
    replaced: &str,
) -> sqlx::Result<Option<BeginOutcome>> {
    let query = sqlx::query_scalar("select number from messages where id = $1 and conversation_id = $2");
    let query = query.bind(replaced).bind(&row.conversation_id);
    let number: Option<i64> = query.fetch_optional(&mut *connection).await?;
    let Some(number) = number else { return Ok(Some(BeginOutcome::NoMessage)) };
    if !undo_from(connection, &row.conversation_id, number).await? {
        return Ok(Some(BeginOutcome::StateGone));
    }
    let query = sqlx::query(
        "update messages set status = 'superseded' \
         where conversation_id = $1 and number >= $2 and status <> 'running'",
    );
    query.bind(&row.conversation_id).bind(number).execute(&mut *connection).await?;
    fail::point("instead.amid");
    Ok(None)
}
