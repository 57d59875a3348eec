//! The log of messages: append, read from a number, follow, end. What implements it may be anywhere; nothing of it is of one process.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;

use super::{Batch, StoreError};

/// Where the entries of messages are. Each message has a log of its own, whose entries have numbers from 1 without gaps.
pub trait Log: Send + Sync {
    /// Puts a batch behind what the log of a message has. Readers see it once it is accepted, in the order of the appends.
    /// `epoch` is the start of the server that runs the message ([`Own`](super::Own)): who has been superseded is refused.
    /// What it gives waits as long as the run has to; the batch is on its way already.
    fn append<'a>(&'a self, message: &'a str, epoch: i64, batch: Batch) -> Appending<'a>;

    /// Batches that hold entries after number `after`, oldest first, at most about `bytes` of them; none if there are no more
    /// at present.
    fn read<'a>(
        &'a self,
        message: &'a str,
        after: u64,
        bytes: usize,
    ) -> BoxFuture<'a, Result<Vec<Batch>, StoreError>>;

    /// The entries after number `after`, in batches of about `bytes`, as they come. It ends when nothing follows: behind the
    /// end of the log, or where a log without an end goes on no more.
    fn follow(
        &self,
        message: &str,
        after: u64,
        bytes: usize,
    ) -> BoxStream<'static, Result<Batch, StoreError>>;

    /// Waits until readers may see everything that was appended.
    fn shown<'a>(&'a self, message: &'a str) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Tells followers, when they may see everything, that nothing comes after it.
    fn end<'a>(&'a self, message: &'a str) -> BoxFuture<'a, ()>;
}

/// A batch on its way to the log. Most are there at once, and cost no allocation.
pub enum Appending<'a> {
    /// It is there, or will not be.
    Done(Result<(), StoreError>),
    /// It is there when this says so, or the run has to wait until what is behind has caught up.
    Waits(BoxFuture<'a, Result<(), StoreError>>),
}

impl Future for Appending<'_> {
    type Output = Result<(), StoreError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut *self {
            Appending::Done(done) => Poll::Ready(std::mem::replace(done, Ok(()))),
            Appending::Waits(waits) => waits.as_mut().poll(context),
        }
    }
}
