//! Runs and their logs: begin, append, read, follow, finish, claim. Implementations may live in other
//! processes or on other machines.
//!
//! A run answers a message of a conversation or carries out a turn of a dialogue. A turn is stored as a
//! message whose `conversation_id` is the id of the dialogue. The holder of the [`Lease`] drives the run and
//! writes its log. Each [`Log::claim`] raises the epoch of the lease and so fences the former holder: a lease
//! of an older epoch can no longer write. Every operation is atomic: after a crash, either all of its effects
//! are stored or none.

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
    /// Not written: another holder has claimed the run, or the message was deleted.
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
    /// Row of the message. The store sets its number, the id of its server, and the epoch of that server.
    pub row: MessageRow,
    /// True if the message opens its conversation. Otherwise the conversation or dialogue must exist and have
    /// the same owner.
    pub opens_conversation: bool,
    /// True if the message is refused while another one of the conversation runs. Otherwise its run can wait
    /// with [`Lease::wait_earlier_runs`].
    pub is_exclusive: bool,
    /// RFC 3339 time. A message with the same idempotency key that was created before this time does not
    /// count as the same request.
    pub repeat_since: String,
    /// Id of the message that this one replaces. The replaced message and all later ones of the conversation
    /// become superseded, and their state updates are undone.
    pub replaces: Option<String>,
}

/// Result of [`Log::begin`].
pub enum BeginOutcome {
    /// The message has begun.
    Started {
        /// Right to write its log.
        lease: Box<dyn Lease>,
        /// Resolves when the row of the message is as durable as configured. The run may begin before that.
        durable: BoxFuture<'static, WriteOutcome>,
    },
    /// The owner already began a message with the same idempotency key; this is its row.
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
    /// Returns the row of the message, in which its number among all messages is set.
    fn row(&self) -> &Arc<MessageRow>;

    /// Returns the epoch of the lease, which rises each time the run is claimed.
    fn epoch(&self) -> i64;

    /// Returns the number of the next entry to append.
    fn next_number(&self) -> u64;

    /// Waits until the runs that began before this one in the same conversation are over.
    fn wait_earlier_runs(&self) -> BoxFuture<'static, ()>;

    /// Appends a batch, which begins with entry [`Lease::next_number`] and does not contain the end. Readers
    /// see it when it is durable as configured, in the order of appends. The write has started when this
    /// returns; the future only applies back-pressure. Unless it resolves to [`WriteOutcome::Stored`],
    /// [`Lease::next_number`] is unchanged.
    fn append(&mut self, batch: Batch) -> PendingAppend<'_>;

    /// Waits until everything appended is durable as configured and visible to readers.
    fn wait_settled(&self) -> BoxFuture<'_, WriteOutcome>;

    /// Reads batches with the entries after number `after`, oldest first, about `bytes` bytes of them,
    /// including entries that readers may not see yet.
    ///
    /// # Errors
    /// The database failed.
    async fn read(&self, after: u64, bytes: usize) -> Result<Vec<Batch>, StoreError>;

    /// Finishes the run atomically: last batch, status, outcome, state updates, usage. Readers see none of
    /// them before all of them are durable as configured. A finished lease writes nothing more.
    async fn finish(&mut self, end: RunEnd) -> WriteOutcome;
}

/// End of a run.
#[derive(Clone, Debug)]
pub struct RunEnd {
    /// Last entries, including the end of the message; empty if the log has the end already.
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
    async fn begin(&self, new: NewRun) -> Result<BeginOutcome, StoreError>;

    /// Takes over the run of a message; the former holder is fenced. `None` if the run has ended or does not
    /// exist, or if another living server holds its lease.
    ///
    /// # Errors
    /// The database failed.
    async fn claim(&self, message: &str) -> Result<Option<Box<dyn Lease>>, StoreError>;

    /// Returns messages that run although nobody drives them: those that were running when this server last
    /// stopped, those whose row names no server and, if servers share the database, those whose server is
    /// gone. Runs of other living servers are not included.
    ///
    /// # Errors
    /// The database failed.
    async fn list_abandoned(&self) -> Result<Vec<MessageRow>, StoreError>;

    /// Waits until the runs that have begun in a conversation are over.
    fn wait_idle(&self, conversation: &str) -> BoxFuture<'static, ()>;

    /// Reads batches with the entries after number `after`, oldest first, about `bytes` bytes of them; none
    /// if there are no more at present. Also returns the state of the log, which is read before the batches:
    /// an ended log does not grow.
    fn read<'a>(
        &'a self,
        message: &'a str,
        after: u64,
        bytes: usize,
    ) -> BoxFuture<'a, Result<(Vec<Batch>, LogState), StoreError>>;

    /// Follows the entries after number `after`, in batches of about `bytes` bytes. The stream ends after the
    /// end of the log or, for a run that has not ended, when its lease is dropped, or fenced without another
    /// server taking over.
    fn follow(
        &self,
        message: &str,
        after: u64,
        bytes: usize,
    ) -> BoxStream<'static, Result<Batch, StoreError>>;
}

/// Append that may still be in progress. Most appends are done at once and need no allocation.
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
