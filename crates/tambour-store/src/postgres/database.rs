//! Interface of the database for runs and their logs: each function is one statement, or one transaction,
//! that is applied as a whole or not at all. After an error it is unknown if it was applied, or will be.

use std::collections::HashSet;
use std::time::Duration;

use async_trait::async_trait;

use crate::{Batch, BeginOutcome, MessageRow, NewRun};

/// Row of a server, without its times.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServerRow<'a> {
    pub(super) id: &'a str,
    /// Base URL at which the other servers reach it.
    pub(super) address: Option<&'a str>,
    /// Time from now on for which the lease holds, by the clock of the database.
    pub(super) lease: Duration,
}

/// Entries of one run, written as one row.
#[derive(Clone, Copy, Debug)]
pub(super) struct EntryRow<'a> {
    pub(super) message: &'a str,
    /// Epoch of the lease that writes them.
    pub(super) epoch: i64,
    pub(super) first: i64,
    pub(super) last: i64,
    pub(super) body: &'a [u8],
}

/// End of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct EndRow<'a> {
    /// Row of the message with its outcome.
    pub(super) row: &'a MessageRow,
    /// Epoch of the lease that writes it.
    pub(super) epoch: i64,
    /// Number of the first entry of the end.
    pub(super) first_number: u64,
    /// Last entries; empty if the log has the end already.
    pub(super) last: &'a Batch,
}

/// Result of inserting a message and its run.
pub(super) enum InsertOutcome {
    /// Number of the message.
    Inserted(i64),
    /// Refused; nothing was written.
    Refused(BeginOutcome),
    /// The commit failed: it may have been applied.
    Unknown(sqlx::Error),
}

/// Holder of the lease of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunHolder {
    /// The message does not exist.
    Gone,
    /// The run has ended.
    Ended,
    /// A server, which may be dead; another will claim the run then.
    Server,
    /// The lease was given up.
    Nobody,
}

/// Database of runs, which several servers share. Dropping a future does not take its statement back.
#[async_trait]
pub(super) trait RunDatabase: Send + Sync {
    /// Renews the lease of a server; inserts its row if it is not there.
    async fn renew_server(&self, server: ServerRow<'_>) -> sqlx::Result<()>;

    /// Deletes the row of a server: others may claim its runs at once.
    async fn delete_server(&self, server: &str) -> sqlx::Result<()>;

    /// Inserts a message and its run, whose lease `server` holds, if `claim_holder` still has the claim of its
    /// idempotency key; refuses it as [`BeginOutcome::InProgress`] otherwise. `None` means that it has no key.
    async fn insert_run(
        &self,
        new: &NewRun,
        server: &str,
        claim_holder: Option<&str>,
    ) -> sqlx::Result<InsertOutcome>;

    /// Returns the number of a message.
    async fn message_number(&self, message: &str) -> sqlx::Result<Option<i64>>;

    /// Deletes a run that has this epoch and its message, and the conversation that it has opened if that has no
    /// other.
    async fn delete_run(
        &self,
        message: &str,
        epoch: i64,
        opened_conversation: Option<&str>,
    ) -> sqlx::Result<()>;

    /// Gives the lease of a run to a server and raises its epoch, if it has no holder, or the holder is this
    /// server or gone. Returns the epoch and the number of the next entry; `None` if the run has ended or
    /// somebody holds or claims it.
    async fn claim_run(&self, message: &str, server: &str) -> sqlx::Result<Option<(i64, i64)>>;

    /// Gives up the lease with this epoch.
    async fn release_run(&self, message: &str, epoch: i64) -> sqlx::Result<()>;

    /// Returns the messages, without details, whose run `server` could claim, oldest first; not those of
    /// `local_messages`, whose lease it has.
    async fn list_claimable(
        &self,
        server: &str,
        local_messages: Vec<String>,
    ) -> sqlx::Result<Vec<MessageRow>>;

    /// Returns a message with its outcome.
    async fn message(&self, message: &str) -> sqlx::Result<Option<MessageRow>>;

    /// Stores the entries of runs whose epoch and next number are as expected. Returns the ids of the messages
    /// whose entries were stored.
    async fn store_entries(&self, rows: &[EntryRow<'_>]) -> sqlx::Result<HashSet<String>>;

    /// Returns the ids of the messages whose entries are stored with the same epoch and bytes.
    async fn find_entries(&self, rows: &[EntryRow<'_>]) -> sqlx::Result<HashSet<String>>;

    /// Stores the end of a run: last entries, record, status, state updates, usage and figures. Returns
    /// `false`, with nothing written, if another lease has been given out or the run was deleted.
    async fn store_end(&self, end: EndRow<'_>) -> sqlx::Result<bool>;

    /// Returns `true` if the end of a message is stored, and a lease with this epoch has written it.
    async fn is_end_stored(&self, message: &str, epoch: i64) -> sqlx::Result<bool>;

    /// Returns the holder of the lease of a run.
    async fn run_holder(&self, message: &str) -> sqlx::Result<RunHolder>;

    /// Returns the base URL of the server that runs a message, unless that is `server` or gone.
    async fn remote_address(&self, message: &str, server: &str) -> sqlx::Result<Option<String>>;

    /// Reads entries after number `after`, oldest first, in whole rows, about `bytes` bytes of them.
    async fn read_entries(&self, message: &str, after: i64, bytes: usize) -> sqlx::Result<Vec<Batch>>;

    /// Returns `true` if a run of the conversation with a number below `number` has a holder.
    async fn has_runs_before(&self, conversation: &str, number: i64) -> sqlx::Result<bool>;

    /// Returns a number above those of all runs of a conversation.
    async fn next_run_number(&self, conversation: &str) -> sqlx::Result<i64>;
}
