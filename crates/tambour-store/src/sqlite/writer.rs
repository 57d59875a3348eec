//! Task that copies what the journal has into the database, in large commits.
//!
//! A run waits for this task only when its log is far ahead of the database, since everything is on the
//! journal first and running messages are read from memory. Queries over many rows wait for the task too.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior};

use super::StoreState;
use super::commit::{CommitGroup, CommitState};
use crate::tail::LogTail;
use crate::{MessageRow, StoreError};

/// Maximum time that a commit waits for more tasks.
const COMMIT_PAUSE: Duration = Duration::from_millis(100);
/// Interval at which the extents of the journal are stored in the database if no other commit stores them.
const EXTENT_INTERVAL: Duration = Duration::from_millis(500);
/// Bytes from which a group is written without waiting for more tasks.
const GROUP_BYTES: usize = 4 << 20;

/// Task for the writer of the database.
pub(super) enum WriterTask {
    /// Writes entries of a log if there are enough for a row or the end of the log is among them. The outcome
    /// of the message is written with the end.
    Entries(Arc<LogTail>),
    /// Commits at once what was sent before, since a run waits for the database.
    Commit,
    /// Writes a new message.
    Message(Arc<MessageRow>),
    /// Writes everything that the journal has up to the segment with this number. The segments are then
    /// removed.
    Segment(u64),
    /// Notifies the sender when everything sent before is written.
    Flush(oneshot::Sender<()>),
    /// Writes everything, notifies the sender and stops the writer.
    Close(oneshot::Sender<()>),
}

impl WriterTask {
    /// Returns `true` if a caller waits for the commit.
    fn is_urgent(&self) -> bool {
        matches!(self, WriterTask::Commit | WriterTask::Flush(_) | WriterTask::Close(_))
    }
}

/// Handle that sends tasks to the writer of the database.
#[derive(Clone)]
pub(super) struct DatabaseWriter(mpsc::UnboundedSender<WriterTask>);

impl DatabaseWriter {
    pub(super) fn start(shared: Arc<StoreState>) -> DatabaseWriter {
        let (sender, tasks) = mpsc::unbounded_channel();
        let dead = shared.dead.clone();
        let writer = tokio::spawn(run_writer(CommitState::new(shared), tasks));
        tokio::spawn(async move {
            // Rows that the writer has not written are on the journal, which the next start replays.
            if writer.await.is_err() {
                tracing::error!("the writer of the database stopped unexpectedly");
                dead.cancel();
            }
        });
        DatabaseWriter(sender)
    }

    /// Sends a task.
    ///
    /// # Errors
    /// The writer has stopped.
    pub(super) fn send(&self, task: WriterTask) -> Result<(), StoreError> {
        self.0.send(task).map_err(|_| StoreError::Closed)
    }

    /// Waits until everything sent before is written.
    pub(super) async fn flush(&self) -> Result<(), StoreError> {
        self.wait(WriterTask::Flush).await
    }

    /// Waits until everything is written and the writer stops.
    pub(super) async fn close(&self) -> Result<(), StoreError> {
        self.wait(WriterTask::Close).await
    }

    /// Sends the task that `new_task` builds from a sender, and waits until that sender is notified.
    async fn wait(&self, new_task: fn(oneshot::Sender<()>) -> WriterTask) -> Result<(), StoreError> {
        let (done_sender, done_receiver) = oneshot::channel();
        self.send(new_task(done_sender))?;
        done_receiver.await.map_err(|_| StoreError::Closed)
    }
}

/// Collects tasks into groups and commits each group, until the store is closed.
async fn run_writer(mut state: CommitState, mut tasks: mpsc::UnboundedReceiver<WriterTask>) {
    let mut extent_timer = tokio::time::interval_at(Instant::now() + EXTENT_INTERVAL, EXTENT_INTERVAL);
    extent_timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let first_task = tokio::select! {
            task = tasks.recv() => match task {
                Some(task) => Some(task),
                None => return,
            },
            // The extents are stored even if no commit is due for a while.
            _ = extent_timer.tick() => None,
        };
        if first_task.is_none() && !state.has_journal_grown() {
            continue;
        }
        let mut group = CommitGroup::default();
        // A commit for the extents alone does not wait for tasks either.
        let mut has_urgent_task = first_task.as_ref().is_none_or(WriterTask::is_urgent);
        if let Some(task) = first_task {
            state.add(task, &mut group);
        }
        let mut pause = std::pin::pin!(tokio::time::sleep(COMMIT_PAUSE));
        while !has_urgent_task && group.bytes() < GROUP_BYTES {
            tokio::select! {
                task = tasks.recv() => match task {
                    Some(task) => {
                        has_urgent_task = task.is_urgent();
                        state.add(task, &mut group);
                    }
                    None => break,
                },
                () = pause.as_mut() => break,
            }
        }
        // The extents are recorded before the remaining tasks are taken, so that the group has every message
        // on the journal up to them.
        state.record_extents(&mut group);
        while let Ok(task) = tasks.try_recv() {
            state.add(task, &mut group);
        }
        let is_last = group.is_last;
        state.write(group).await;
        if is_last {
            return;
        }
    }
}
