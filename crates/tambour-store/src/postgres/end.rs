//! End of a run, written until the database has it.

use std::sync::Arc;
use std::time::Duration;

use super::database::EndRow;
use super::server_runs::ServerRuns;
use crate::{MessageRow, RunEnd, WriteOutcome};

/// Longest pause between two attempts to reach the database.
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// Writer of the end of a run.
pub(super) struct EndWriter<'a> {
    pub(super) runs: &'a ServerRuns,
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
                biased;
                () = self.runs.abort_waits.cancelled() => return (WriteOutcome::Unknown, row),
                () = tokio::time::sleep(pause) => {}
            }
            if !self.runs.server_lease.is_valid() {
                return (WriteOutcome::Unknown, row);
            }
            pause = (pause * 2).min(MAX_PAUSE);
        }
    }

    /// Writes the end, or finds that it is written; `false` if another lease has been given out or the run
    /// was deleted. Gives up when the lease of this server is over: the database may be silent.
    async fn attempt(&self, end: &RunEnd, row: &MessageRow, may_be_stored: bool) -> sqlx::Result<bool> {
        let database = &self.runs.database;
        let end = EndRow { row, epoch: self.epoch, first_number: self.first_number, last: &end.last };
        let work = async {
            if database.store_end(end).await? {
                return Ok(true);
            }
            // An earlier attempt without an answer may have stored the end.
            Ok(may_be_stored && database.is_end_stored(&row.id, self.epoch).await?)
        };
        let result = tokio::time::timeout(self.runs.server_lease.valid_time(), work).await;
        result.unwrap_or(Err(sqlx::Error::PoolTimedOut))
    }
}

/// Returns `true` for errors that come again however often the statement is tried: wrong values, broken
/// constraints and statements.
fn is_permanent(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code());
    code.is_some_and(|code| ["22", "23", "42"].iter().any(|class| code.starts_with(class)))
}
