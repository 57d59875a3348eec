//! End of a run: its last entries, record, status, state updates, usage and figures in one transaction.

use std::sync::Arc;
use std::time::Duration;

use sqlx::{Connection, PgConnection};

use super::StoreState;
use super::admin::add_usage;
use super::dialogues::store_progress;
use super::figures::add_figures;
use super::states::insert_updates;
use crate::fail;
use crate::{MessageOutcome, MessageRow, RunEnd, WriteOutcome};

/// Version of the JSON in the rows of `records`.
const RECORD_VERSION: i64 = 1;
/// Longest pause between two attempts to reach the database.
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// Writer of the end of a run.
pub(super) struct EndWriter<'a> {
    pub(super) shared: &'a StoreState,
    pub(super) row: &'a MessageRow,
    /// Epoch of the lease.
    pub(super) epoch: i64,
    /// Number of the first entry of the end.
    pub(super) first_number: u64,
}

impl EndWriter<'_> {
    /// Writes the end, retrying until the database answers, waits are aborted or the lease of this server may
    /// be lost. Also returns the row of the message with its outcome.
    pub(super) async fn write(&self, end: &RunEnd) -> (WriteOutcome, Arc<MessageRow>) {
        let row =
            MessageRow { status: end.status.clone(), outcome: Some(end.outcome.clone()), ..self.row.clone() };
        let row = Arc::new(row);
        let mut pause = Duration::from_millis(20);
        let mut may_be_stored = false;
        loop {
            match self.attempt(end, &row, may_be_stored).await {
                Ok(true) => return (WriteOutcome::Stored, row),
                Ok(false) => return (WriteOutcome::Fenced, row),
                Err(error) if is_permanent(&error) => {
                    tracing::error!(%error, message_id = row.id, "an end cannot be stored");
                    return (WriteOutcome::Unknown, row);
                }
                Err(error) => {
                    tracing::error!(%error, message_id = row.id, "an end could not be stored; trying again");
                    may_be_stored = true;
                }
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.shared.abort_waits.cancelled() => return (WriteOutcome::Unknown, row),
            }
            if !self.shared.server_lease.is_valid() {
                return (WriteOutcome::Unknown, row);
            }
            pause = (pause * 2).min(MAX_PAUSE);
        }
    }

    /// Writes the end, or finds that it is written; `false` if another lease has been given out or the run
    /// was deleted. Gives up when the lease of this server is over, and then closes the connection too: the
    /// database may be silent.
    async fn attempt(&self, end: &RunEnd, row: &MessageRow, may_be_stored: bool) -> sqlx::Result<bool> {
        let mut connection = self.shared.pool.acquire().await?;
        let work = async {
            if self.store(&mut connection, end, row).await? {
                return Ok(true);
            }
            // An earlier attempt without an answer may have stored the end.
            Ok(may_be_stored && self.is_stored(&mut connection).await?)
        };
        match tokio::time::timeout(self.shared.server_lease.valid_time(), work).await {
            Ok(result) => result,
            Err(_) => {
                drop(connection.detach());
                Err(sqlx::Error::PoolTimedOut)
            }
        }
    }

    /// Writes the end in one transaction. Returns `false`, with nothing written, if another lease has been
    /// given out or the run was deleted.
    async fn store(
        &self,
        connection: &mut PgConnection,
        end: &RunEnd,
        row: &MessageRow,
    ) -> sqlx::Result<bool> {
        fail::point("record.before");
        let mut transaction = connection.begin().await?;
        let query = sqlx::query_scalar(
            "delete from runs where id = $1 and epoch = $2 and next = $3 returning cast(day as text)",
        );
        let query = query.bind(&row.id).bind(self.epoch).bind(self.first_number.cast_signed());
        let day: Option<String> = query.fetch_optional(&mut *transaction).await?;
        let Some(day) = day else { return Ok(false) };
        if !end.last.is_empty() {
            let query = sqlx::query(
                "insert into entries (message_id, first, last, epoch, day, body) \
                 values ($1, $2, $3, $4, cast($5 as date), $6)",
            );
            let query = query.bind(&row.id).bind(end.last.first().cast_signed());
            let query = query.bind(end.last.last().cast_signed()).bind(self.epoch).bind(day);
            query.bind(end.last.body()).execute(&mut *transaction).await?;
        }
        fail::point("database.amid");
        insert_record(&mut transaction, row).await?;
        transaction.commit().await?;
        fail::point("record.after");
        Ok(true)
    }

    /// Returns `true` if the end is stored, and was written by this lease.
    async fn is_stored(&self, connection: &mut PgConnection) -> sqlx::Result<bool> {
        let query = sqlx::query_scalar(
            "select exists (select 1 from messages join records on message_id = id \
             where id = $1 and epoch = $2 and status <> 'running')",
        );
        query.bind(&self.row.id).bind(self.epoch).fetch_one(connection).await
    }
}

/// Returns `true` for errors that come again however often the statement is tried: wrong values, broken
/// constraints and statements.
fn is_permanent(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code());
    code.is_some_and(|code| ["22", "23", "42"].iter().any(|class| code.starts_with(class)))
}

/// Writes the outcome of a message: its record, status, state updates, usage and figures. If the record
/// exists already, nothing is written, so that nothing is counted twice.
async fn insert_record(connection: &mut PgConnection, row: &MessageRow) -> sqlx::Result<()> {
    let Some(outcome) = &row.outcome else { return Ok(()) };
    let MessageOutcome { size, turn, summary, details, updates, usage, figures, progress } = outcome;
    let query = sqlx::query(
        "insert into records (message_id, version, size, turn, summary, details) \
         select id, $1, $2, $3, $4, $5 from messages where id = $6 on conflict do nothing",
    );
    let query = query.bind(RECORD_VERSION).bind(size.cast_signed()).bind(turn).bind(summary).bind(details);
    if query.bind(&row.id).execute(&mut *connection).await?.rows_affected() == 0 {
        return Ok(());
    }
    let query = sqlx::query("update messages set status = $1 where id = $2");
    query.bind(&row.status).bind(&row.id).execute(&mut *connection).await?;
    insert_updates(connection, row, updates).await?;
    if let Some(progress) = progress {
        store_progress(connection, &row.conversation_id, progress).await?;
    }
    if let Some(usage) = usage {
        add_usage(connection, usage).await?;
    }
    add_figures(connection, figures).await
}
