//! End of a run, written until the database has it.

use std::sync::Arc;

use super::database::EndRow;
use super::server_runs::ServerRuns;
use crate::{MessageRow, RunEnd, WriteOutcome};

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
        let what = format!("the end of {}", row.id);
        let outcome =
            self.runs.write_until_answered(what, |may_be_stored| self.store(end, &row, may_be_stored));
        (outcome.await.unwrap_or(WriteOutcome::Unknown), row)
    }

    /// Stores the end, or finds that it is stored; [`WriteOutcome::Fenced`] if another lease has been given out or
    /// the run was deleted, [`WriteOutcome::Unknown`] if it can never be stored.
    async fn store(&self, end: &RunEnd, row: &MessageRow, may_be_stored: bool) -> sqlx::Result<WriteOutcome> {
        let database = &self.runs.database;
        let end = EndRow { row, epoch: self.epoch, first_number: self.first_number, last: &end.last };
        let is_stored = match database.store_end(end).await {
            // An earlier attempt without an answer may have stored the end.
            Ok(false) if may_be_stored => database.is_end_stored(&row.id, self.epoch).await?,
            Err(error) if is_permanent(&error) => {
                tracing::error!(%error, message_id = row.id, "an end cannot be stored");
                return Ok(WriteOutcome::Unknown);
            }
            result => result?,
        };
        Ok(if is_stored { WriteOutcome::Stored } else { WriteOutcome::Fenced })
    }
}

/// Returns `true` for errors that come again however often the statement is tried: wrong values, broken
/// constraints and statements.
fn is_permanent(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code());
    code.is_some_and(|code| ["22", "23", "42"].iter().any(|class| code.starts_with(class)))
}
