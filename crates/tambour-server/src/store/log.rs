//! Runs and their logs: begin, append, read, follow, finish, take over. What implements it may be anywhere; nothing of it is of one process.
//!
//! A run is a message of a conversation, or a turn of a dialogue, whose id stands in the place of that of a conversation then.
//! It is run by whoever holds its [`Lease`]. A lease has an epoch, which rises with each [`Log::claim`]: an older one
//! writes nothing any more. What is one step for a caller is one step for the store: all of it is there after a crash, or none.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;

use super::{Batch, MessageRow, Outcome, StoreError};

/// Result of a write to a log. A run goes on after [`Written::Stored`] alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Written {
    /// It is on the log. Readers see it once it is as durable as the store is configured to be.
    Stored,
    /// It is not on the log: somebody else has claimed the run, or it was deleted.
    Fenced,
    /// Nobody knows whether it is on the log.
    Unknown,
    /// It is not on the log, and nothing else will be: the store has stopped.
    Down,
}

impl Written {
    /// `Err` with anything but [`Written::Stored`].
    ///
    /// # Errors
    /// The run must stop.
    pub fn stored(self) -> Result<(), Written> {
        if self == Written::Stored { Ok(()) } else { Err(self) }
    }
}

/// A message that is to begin.
#[derive(Clone, Debug, Default)]
pub struct NewRun {
    /// The message. Its number, server and epoch are given by the store.
    pub row: MessageRow,
    /// Whether its conversation begins with it. Otherwise there must be one, of the same owner.
    pub opens: bool,
    /// Whether it is refused while another message of the conversation runs.
    pub alone: bool,
    /// RFC 3339 time: a message before it with the same word (`row.repeat`) is not the same request any more.
    pub since: String,
    /// Id of the message in whose place it is made. That one and all later ones are superseded, and what they applied to the
    /// state is taken back.
    pub instead: Option<String>,
}

/// Result of [`Log::acquire`].
pub enum Acquired {
    /// The message has begun.
    Begun {
        /// The right to write its log.
        lease: Box<dyn Lease>,
        /// Ready when the message survives what the store is to survive. The run may begin before.
        kept: BoxFuture<'static, Written>,
    },
    /// The same owner has begun this message with the same word.
    Repeated(Box<MessageRow>),
    /// A request with the same word is beginning.
    UnderWay,
    /// Another message of the conversation runs.
    Busy,
    /// There is no such conversation or dialogue, or not any more.
    NoConversation,
    /// There is no message to be made anew, or not any more.
    NoMessage,
    /// The state before the message to be made anew is gone.
    StateGone,
}

/// The right to write the log of one run.
#[async_trait]
pub trait Lease: Send + Sync {
    /// The message, with its number in the order of all of them.
    fn row(&self) -> &Arc<MessageRow>;

    /// Rises each time somebody claims the run.
    fn epoch(&self) -> i64;

    /// Number of the next entry.
    fn next(&self) -> u64;

    /// Waits until the runs that began before it in the same conversation are over.
    fn turn(&self) -> BoxFuture<'static, ()>;

    /// Puts a batch, which begins with entry [`Lease::next`] and does not hold the end, behind what the log has.
    /// Readers see it when it is durable as configured, in the order of the appends.
    /// Gives a future that waits as long as the run has to; the batch is on its way already. With anything but
    /// [`Written::Stored`], [`Lease::next`] is what it was.
    fn append(&mut self, batch: Batch) -> Appending<'_>;

    /// Waits until everything that was appended is durable as configured, and readers may see it.
    fn settled(&self) -> BoxFuture<'_, Written>;

    /// Batches behind entry `after`, oldest first, about `bytes` of them; also those that readers may not see yet.
    ///
    /// # Errors
    /// The database failed.
    async fn read(&self, after: u64, bytes: usize) -> Result<Vec<Batch>, StoreError>;

    /// Ends the run in one step: the last batch, how the message ended, what came of it, its updates of the state, its usage.
    /// Nobody sees one of them before all are durable as configured.
    async fn finish(&mut self, end: RunEnd) -> Written;
}

/// The end of a run.
#[derive(Clone, Debug)]
pub struct RunEnd {
    /// The last entries, the end among them; empty when the log has it already.
    pub last: Batch,
    /// `completed`, `failed` or `cancelled`.
    pub status: String,
    /// What came of it.
    pub outcome: Outcome,
}

/// How a log stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogState {
    /// More may come.
    Open,
    /// Its run has ended.
    Ended,
    /// There is no such message, or not any more.
    Gone,
}

/// Where the entries of messages are. Each message has a log of its own, whose entries have numbers from 1 without gaps.
#[async_trait]
pub trait Log: Send + Sync {
    /// Begins a message, in one step: its word is taken, it has its place and number in its conversation, and what it is made
    /// instead of is superseded. What is refused has changed nothing.
    ///
    /// # Errors
    /// The store cannot keep it, or could keep nothing a moment ago.
    async fn acquire(&self, new: NewRun) -> Result<Acquired, StoreError>;

    /// Takes over a run that has not ended; whoever had it before is fenced. `None` when it has ended, or is gone.
    ///
    /// # Errors
    /// The database failed.
    async fn claim(&self, message: &str) -> Result<Option<Box<dyn Lease>>, StoreError>;

    /// Messages whose runs were going on when this server stopped last: its own, and those of nobody. What another server runs
    /// is left to it.
    ///
    /// # Errors
    /// The database failed.
    async fn abandoned(&self) -> Result<Vec<MessageRow>, StoreError>;

    /// Waits until the runs that have begun in a conversation are over.
    fn idle(&self, conversation: &str) -> BoxFuture<'static, ()>;

    /// Batches that hold entries after number `after`, oldest first, at most about `bytes` of them; none if there are no more
    /// at present. How the log stood when they were read.
    fn read<'a>(
        &'a self,
        message: &'a str,
        after: u64,
        bytes: usize,
    ) -> BoxFuture<'a, Result<(Vec<Batch>, LogState), StoreError>>;

    /// The entries after number `after`, in batches of about `bytes`, as they come. It ends when nothing follows: behind the
    /// end of the log, or where a log without an end goes on no more.
    fn follow(
        &self,
        message: &str,
        after: u64,
        bytes: usize,
    ) -> BoxStream<'static, Result<Batch, StoreError>>;
}

/// A batch on its way to the log. Most are there at once, and cost no allocation.
pub enum Appending<'a> {
    /// It is there, or will not be.
    Done(Written),
    /// It is there when this says so, or the run has to wait until what is behind has caught up.
    Waits(BoxFuture<'a, Written>),
}

impl Future for Appending<'_> {
    type Output = Written;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Written> {
        match &mut *self {
            Appending::Done(done) => Poll::Ready(*done),
            Appending::Waits(waits) => waits.as_mut().poll(context),
        }
    }
}
