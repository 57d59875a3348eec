//! Copies the journal into the database, in large commits.
//!
//!
//! Only listings of new rows wait for it: everything is on the journal first, and running messages are read
//! from memory.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior};

use super::Shared;
use super::commit::{Group, State};
use super::tail::Tail;
use crate::store::{MessageRow, StoreError};

/// Longest time that a commit waits for more work.
const PAUSE: Duration = Duration::from_millis(100);
/// Interval at which the database learns the extents of the journal if no commit does that.
const MARKS: Duration = Duration::from_millis(500);
/// Bytes of a group that is written without waiting.
const ENOUGH: usize = 4 << 20;

/// Work for the database.
pub(super) enum Work {
    /// Entries of a message, and its outcome with its end.
    Entries(Arc<Tail>),
    /// No work: commits at once, since a run waits for its entries.
    Hurry,
    /// A new message.
    Message(Arc<MessageRow>),
    /// Everything on the journal up to that segment, which is then removed.
    Segment(u64),
    /// Notifies when everything handed over before is written.
    Flush(oneshot::Sender<()>),
    /// Writes everything and stops the task.
    Close(oneshot::Sender<()>),
}

impl Work {
    /// Returns `true` if someone waits for it.
    fn is_urgent(&self) -> bool {
        matches!(self, Work::Hurry | Work::Flush(_) | Work::Close(_))
    }
}

/// Handle that sends work to the task that writes the database.
#[derive(Clone)]
pub(super) struct Writer(mpsc::UnboundedSender<Work>);

impl Writer {
    pub(super) fn start(shared: Arc<Shared>) -> Writer {
        let (sender, work) = mpsc::unbounded_channel();
        let dead = shared.dead.clone();
        let task = tokio::spawn(run(State::new(shared), work));
        tokio::spawn(async move {
            // Its unfinished work is on the journal; the next start recovers it.
            if task.await.is_err() {
                tracing::error!("the writer of the database has died");
                dead.cancel();
            }
        });
        Writer(sender)
    }

    pub(super) fn tell(&self, work: Work) -> Result<(), StoreError> {
        self.0.send(work).map_err(|_| StoreError::Closed)
    }

    pub(super) async fn flush(&self) -> Result<(), StoreError> {
        self.wait(Work::Flush).await
    }

    pub(super) async fn close(&self) -> Result<(), StoreError> {
        self.wait(Work::Close).await
    }

    async fn wait(&self, work: fn(oneshot::Sender<()>) -> Work) -> Result<(), StoreError> {
        let (done, waiting) = oneshot::channel();
        self.tell(work(done))?;
        waiting.await.map_err(|_| StoreError::Closed)
    }
}

async fn run(mut state: State, mut work: mpsc::UnboundedReceiver<Work>) {
    let mut marks = tokio::time::interval_at(Instant::now() + MARKS, MARKS);
    marks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let first = tokio::select! {
            first = work.recv() => match first {
                Some(first) => Some(first),
                None => return,
            },
            // Messages may run for long before the database gets their entries.
            _ = marks.tick() => None,
        };
        if first.is_none() && !state.is_behind() {
            continue;
        }
        let mut group = Group::default();
        let mut urgent = first.as_ref().is_none_or(Work::is_urgent);
        if let Some(first) = first {
            state.add(first, &mut group);
        }
        let mut pause = std::pin::pin!(tokio::time::sleep(PAUSE));
        while !urgent && group.bytes() < ENOUGH {
            tokio::select! {
                more = work.recv() => match more {
                    Some(more) => {
                        urgent = more.is_urgent();
                        state.add(more, &mut group);
                    }
                    None => break,
                },
                () = pause.as_mut() => break,
            }
        }
        state.mark(&mut group);
        while let Ok(more) = work.try_recv() {
            state.add(more, &mut group);
        }
        let close = group.close;
        state.write(group).await;
        if close {
            return;
        }
    }
}
