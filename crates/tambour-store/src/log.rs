//! Runs and their logs: begin, append, read, follow, finish, claim. Implementations may live in other
//! processes or on other machines.
//!
//! A run is a message of a conversation or a turn of a dialogue. For a turn, `conversation_id` holds the id
//! of the dialogue. A run is driven by the holder of its [`Lease`]. Each [`Log::claim`] raises the epoch of
//! the lease, and an older epoch can no longer write. Every operation is atomic: after a crash all of it is
//! there, or none.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;

use super::{Batch, MessageOutcome, MessageRow, StoreError};

/// Result of a write to a log. A run continues only after [`WriteOutcome::Stored`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum WriteOutcome {
    /// Written. Readers see it once it is as durable as the store is configured to be.
    Stored,
    /// Not written: another holder has claimed the run, or it was deleted.
    Fenced,
    /// Unknown whether it was written.
    Unknown,
    /// Not written, and nothing else will be: the store has stopped.
    Down,
}

impl WriteOutcome {
    /// Returns `Err` for anything but [`WriteOutcome::Stored`].
    ///
    /// # Errors
    /// The write failed; the run must stop.
    pub fn into_result(self) -> Result<(), WriteOutcome> {
        if self == WriteOutcome::Stored { Ok(()) } else { Err(self) }
    }
}

/// Message or turn to begin.
#[derive(Clone, Debug, Default)]
pub struct NewRun {
    /// Row of the message. The store sets number, server and epoch.
    pub row: MessageRow,
    /// True if it opens its conversation. Otherwise that must exist and have the same owner.
    pub opens_conversation: bool,
    /// True if it is refused while another message of the conversation runs.
    pub is_exclusive: bool,
    /// RFC 3339 time. Messages begun before it do not count as repetitions, even with the same idempotency
    /// key.
    pub repeat_since: String,
    /// Id of the message that it replaces. That one and all later ones become superseded, and their state
    /// updates are undone.
    pub replaces: Option<String>,
}

/// Result of [`Log::acquire`].
pub enum AcquireOutcome {
    /// The message has begun.
    Started {
        /// Right to write its log.
        lease: Box<dyn Lease>,
        /// Resolves when the message is durable. The run may begin before.
        durable: BoxFuture<'static, WriteOutcome>,
    },
    /// The same owner has begun this message with the same idempotency key.
    Repeated(Box<MessageRow>),
    /// A request with the same idempotency key is beginning.
    InProgress,
    /// Another message of the conversation runs.
    Busy,
    /// The conversation or dialogue does not exist.
    NoConversation,
    /// The message to be replaced does not exist.
    NoMessage,
    /// The state before the message to be replaced is gone.
    StateGone,
}

/// Right to write the log of one run.
#[async_trait]
pub trait Lease: Send + Sync {
    /// Returns the row of the message, with its number among all messages.
    fn row(&self) -> &Arc<MessageRow>;

    /// Returns the epoch, which rises each time the run is claimed.
    fn epoch(&self) -> i64;

    /// Returns the number of the next entry.
    fn next_number(&self) -> u64;

    /// Waits until the runs that began before it in the same conversation are over.
    fn wait_earlier_runs(&self) -> BoxFuture<'static, ()>;

    /// Appends a batch, which begins with entry [`Lease::next_number`] and does not contain the end. Readers see it
    /// when it is durable as configured, in the order of appends. The write has started when this returns;
    /// the future only applies back-pressure. Unless it resolves to [`WriteOutcome::Stored`], [`Lease::next_number`] is
    /// unchanged.
    fn append(&mut self, batch: Batch) -> PendingAppend<'_>;

    /// Waits until everything appended is durable as configured and visible to readers.
    fn wait_settled(&self) -> BoxFuture<'_, WriteOutcome>;

    /// Reads batches after entry `after`, oldest first, about `bytes` of them, including those that readers
    /// may not see yet.
    ///
    /// # Errors
    /// The database failed.
    async fn read(&self, after: u64, bytes: usize) -> Result<Vec<Batch>, StoreError>;

    /// Finishes the run atomically: last batch, status, outcome, state updates, usage. Readers see none of
    /// them before all are durable as configured.
    async fn finish(&mut self, end: RunEnd) -> WriteOutcome;
}

/// End of a run.
#[derive(Clone, Debug)]
pub struct RunEnd {
    /// Last entries, including the end; empty if the log has it already.
    pub last: Batch,
    /// `completed`, `failed` or `cancelled`.
    pub status: String,
    /// Outcome of the message.
    pub outcome: MessageOutcome,
}

/// State of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogState {
    /// More entries may follow.
    Open,
    /// The run has ended.
    Ended,
    /// The message does not exist.
    Gone,
}

/// Logs of messages. Each message has its own log, whose entries are numbered from 1 without gaps.
#[async_trait]
pub trait Log: Send + Sync {
    /// Begins a message atomically: claims its idempotency key, assigns its number and place in the
    /// conversation, and supersedes the message that it replaces. A refusal changes nothing.
    ///
    /// # Errors
    /// The store is closed, or a recent write failed.
    async fn acquire(&self, new: NewRun) -> Result<AcquireOutcome, StoreError>;

    /// Takes over a run that has not ended; the former holder is fenced. `None` if it has ended or does not
    /// exist.
    ///
    /// # Errors
    /// The database failed.
    async fn claim(&self, message: &str) -> Result<Option<Box<dyn Lease>>, StoreError>;

    /// Returns messages that were running when this server last stopped, and those whose row names no server
    /// (written by older versions). Runs of other servers are not included.
    ///
    /// # Errors
    /// The database failed.
    async fn list_abandoned(&self) -> Result<Vec<MessageRow>, StoreError>;

    /// Waits until the runs that have begun in a conversation are over.
    fn wait_idle(&self, conversation: &str) -> BoxFuture<'static, ()>;

    /// Reads batches with entries after number `after`, oldest first, about `bytes` at most; none if there
    /// are no more at present. Returns the state of the log at the time of reading too.
    fn read<'a>(
        &'a self,
        message: &'a str,
        after: u64,
        bytes: usize,
    ) -> BoxFuture<'a, Result<(Vec<Batch>, LogState), StoreError>>;

    /// Follows the entries after number `after`, in batches of about `bytes`. The stream ends after the end
    /// of the log or, for a run that has not ended, when its writer goes away.
    fn follow(
        &self,
        message: &str,
        after: u64,
        bytes: usize,
    ) -> BoxStream<'static, Result<Batch, StoreError>>;
}

/// An append in progress. Most are done at once and need no allocation.
pub enum PendingAppend<'a> {
    /// Completed, with its result.
    Done(WriteOutcome),
    /// Resolves when the batch is written, or when the run may continue after back-pressure.
    Waiting(BoxFuture<'a, WriteOutcome>),
}

impl Future for PendingAppend<'_> {
    type Output = WriteOutcome;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<WriteOutcome> {
        match &mut *self {
            PendingAppend::Done(outcome) => Poll::Ready(*outcome),
            PendingAppend::Waiting(wait) => wait.as_mut().poll(context),
        }
    }
}
