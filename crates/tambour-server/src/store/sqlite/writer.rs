//! Brings what the journal has into the database, in large commits behind it.
//!
//! Nobody waits for it but who lists rows that are new: everything is on the journal before, and running messages are read
//! from memory.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior};

use super::Shared;
use super::commit::{Group, State};
use super::tail::Tail;
use crate::store::{MessageRow, StoreError};

/// How long a commit waits for more to come.
const PAUSE: Duration = Duration::from_millis(100);
/// Time after which the database is told how far the journal is, where nothing else tells it.
const MARKS: Duration = Duration::from_millis(500);
/// Bytes of a group that does not wait.
const ENOUGH: usize = 4 << 20;

/// What the database is to get.
pub(super) enum Work {
    /// Entries of a message, and what came of it with its end.
    Entries(Arc<Tail>),
    /// Nothing more than there is: a run waits until the database has its entries.
    Hurry,
    /// A new message.
    Message(Arc<MessageRow>),
    /// Everything on the journal up to that segment, which then goes.
    Segment(u64),
    /// Everything that was handed over before.
    Flush(oneshot::Sender<()>),
    /// All that there is; nothing comes after it.
    Close(oneshot::Sender<()>),
}

impl Work {
    /// Whether somebody waits for it.
    fn is_urgent(&self) -> bool {
        matches!(self, Work::Hurry | Work::Flush(_) | Work::Close(_))
    }
}

/// Hands work to the one task that writes the database.
#[derive(Clone)]
pub(super) struct Writer(mpsc::UnboundedSender<Work>);

impl Writer {
    pub(super) fn start(shared: Arc<Shared>) -> Writer {
        let (sender, work) = mpsc::unbounded_channel();
        let dead = shared.dead.clone();
        let task = tokio::spawn(run(State::new(shared), work));
        tokio::spawn(async move {
            // What it had in hand is on the journal, and the next start brings it.
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
            // Messages may run for long before the database gets anything of them.
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
