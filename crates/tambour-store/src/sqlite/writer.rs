//! Copies the journal into the database, in large commits.
//!
//! Only listings of new rows wait for it: everything is on the journal first, and running messages are read
//! from memory.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior};

use super::StoreState;
use super::commit::{CommitGroup, CommitState};
use super::tail::LogTail;
use crate::{MessageRow, StoreError};

/// Longest time that a commit waits for more work.
const COMMIT_PAUSE: Duration = Duration::from_millis(100);
/// Interval at which the database learns the extents of the journal if no commit does that.
const EXTENT_INTERVAL: Duration = Duration::from_millis(500);
/// Bytes of a group that is written without waiting.
const GROUP_BYTES: usize = 4 << 20;

/// Work for the database.
pub(super) enum WriterTask {
    /// Entries of a message, and its outcome with its end.
    Entries(Arc<LogTail>),
    /// No work: commits at once, since a run waits for its entries.
    Commit,
    /// A new message.
    Message(Arc<MessageRow>),
    /// Everything on the journal up to that segment, which is then removed.
    Segment(u64),
    /// Notifies when everything handed over before is written.
    Flush(oneshot::Sender<()>),
    /// Writes everything and stops the task.
    Close(oneshot::Sender<()>),
}

impl WriterTask {
    /// Returns `true` if someone waits for it.
    fn is_urgent(&self) -> bool {
        matches!(self, WriterTask::Commit | WriterTask::Flush(_) | WriterTask::Close(_))
    }
}

/// Handle that sends work to the task that writes the database.
#[derive(Clone)]
pub(super) struct DatabaseWriter(mpsc::UnboundedSender<WriterTask>);

impl DatabaseWriter {
    pub(super) fn start(shared: Arc<StoreState>) -> DatabaseWriter {
        let (sender, work) = mpsc::unbounded_channel();
        let dead = shared.dead.clone();
        let task = tokio::spawn(run_writer(CommitState::new(shared), work));
        tokio::spawn(async move {
            // Its unfinished work is on the journal; the next start recovers it.
            if task.await.is_err() {
                tracing::error!("the writer of the database stopped unexpectedly");
                dead.cancel();
            }
        });
        DatabaseWriter(sender)
    }

    pub(super) fn send(&self, work: WriterTask) -> Result<(), StoreError> {
        self.0.send(work).map_err(|_| StoreError::Closed)
    }

    pub(super) async fn flush(&self) -> Result<(), StoreError> {
        self.wait(WriterTask::Flush).await
    }

    pub(super) async fn close(&self) -> Result<(), StoreError> {
        self.wait(WriterTask::Close).await
    }

    async fn wait(&self, work: fn(oneshot::Sender<()>) -> WriterTask) -> Result<(), StoreError> {
        let (done_sender, done_receiver) = oneshot::channel();
        self.send(work(done_sender))?;
        done_receiver.await.map_err(|_| StoreError::Closed)
    }
}

async fn run_writer(mut state: CommitState, mut work: mpsc::UnboundedReceiver<WriterTask>) {
    let mut extent_timer = tokio::time::interval_at(Instant::now() + EXTENT_INTERVAL, EXTENT_INTERVAL);
    extent_timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let first = tokio::select! {
            first = work.recv() => match first {
                Some(first) => Some(first),
                None => return,
            },
            // Messages may run for long before the database gets their entries.
            _ = extent_timer.tick() => None,
        };
        if first.is_none() && !state.is_behind() {
            continue;
        }
        let mut group = CommitGroup::default();
        let mut has_urgent = first.as_ref().is_none_or(WriterTask::is_urgent);
        if let Some(first) = first {
            state.add(first, &mut group);
        }
        let mut pause = std::pin::pin!(tokio::time::sleep(COMMIT_PAUSE));
        while !has_urgent && group.bytes() < GROUP_BYTES {
            tokio::select! {
                task = work.recv() => match task {
                    Some(task) => {
                        has_urgent = task.is_urgent();
                        state.add(task, &mut group);
                    }
                    None => break,
                },
                () = pause.as_mut() => break,
            }
        }
        state.record_extents(&mut group);
        while let Ok(task) = work.try_recv() {
            state.add(task, &mut group);
        }
        let close = group.close;
        state.write(group).await;
        if close {
            return;
        }
    }
}
