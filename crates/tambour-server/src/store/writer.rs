//! Group commit: what arrives while a commit runs, or a few milliseconds after one, is one transaction, the next one.
//!
//! First texts, ends and rows of messages are committed at once, since somebody waits for them; further entries wait up to
//! `PAUSE` after the commit before, so that those of many messages go together.

use std::sync::Arc;
use std::time::Duration;

use sqlx::SqlitePool;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::commit::{Group, Record, State, Work};
use super::{Batch, Live, MessageRow, StoreError};

/// From one commit to the next, if nobody waits.
const PAUSE: Duration = Duration::from_millis(5);

/// Hands work to the one task that writes.
#[derive(Clone)]
pub(super) struct Writer {
    /// Messages that got entries.
    later: mpsc::UnboundedSender<Arc<Live>>,
    now: mpsc::UnboundedSender<Work>,
}

impl Writer {
    /// # Errors
    /// There is no connection to the database.
    pub(super) async fn start(pool: &SqlitePool) -> Result<Writer, StoreError> {
        let connection = pool.acquire().await?;
        let (later, waiting) = mpsc::unbounded_channel();
        let (now, work) = mpsc::unbounded_channel();
        let state = State::new(pool, connection);
        tokio::spawn(run(state, waiting, work));
        Ok(Writer { later, now })
    }

    /// Adds entries to a message. Waits only if far more is written than the disk takes.
    pub(super) async fn append(&self, live: &Arc<Live>, batch: &Batch) -> Result<(), StoreError> {
        let appended = live.append(batch);
        let told = match (appended.urgent, appended.tell) {
            (true, _) => self.now.send(Work::Entries(live.clone())).is_ok(),
            (false, true) => self.later.send(live.clone()).is_ok(),
            (false, false) => true,
        };
        if !told {
            return Err(StoreError::Closed);
        }
        if appended.ahead {
            tokio::select! {
                () = live.caught_up() => {}
                () = self.now.closed() => return Err(StoreError::Closed),
            }
        }
        Ok(())
    }

    pub(super) async fn flush(&self) -> Result<(), StoreError> {
        self.wait(Work::Flush).await
    }

    pub(super) async fn settle(&self, live: &Arc<Live>) -> Result<(), StoreError> {
        if live.is_settled() {
            return Ok(());
        }
        self.wait(|done| Work::Settle(live.clone(), done)).await
    }

    pub(super) async fn close(&self) -> Result<(), StoreError> {
        self.wait(Work::Close).await
    }

    /// The row is handed over at once: entries that are appended after this call are not written before it.
    pub(super) fn message(
        &self,
        row: MessageRow,
    ) -> impl Future<Output = Result<(), StoreError>> + Send + use<> {
        let written = self.wait(|done| Work::Message(Box::new(row), done));
        async { written.await? }
    }

    pub(super) async fn record(&self, message: &str, status: &str, json: String) -> Result<(), StoreError> {
        let record = Record { message: message.to_owned(), status: status.to_owned(), json };
        self.wait(|done| Work::Record(Box::new(record), done)).await?
    }

    fn wait<T: Send, W: FnOnce(oneshot::Sender<T>) -> Work>(
        &self,
        work: W,
    ) -> impl Future<Output = Result<T, StoreError>> + Send + use<T, W> {
        let (done, waiting) = oneshot::channel();
        let sent = self.now.send(work(done)).is_ok();
        async move { if sent { waiting.await.map_err(|_| StoreError::Closed) } else { Err(StoreError::Closed) } }
    }
}

async fn run(
    mut state: State,
    mut later: mpsc::UnboundedReceiver<Arc<Live>>,
    mut now: mpsc::UnboundedReceiver<Work>,
) {
    let mut last = Instant::now() - PAUSE;
    loop {
        let mut group = Group::default();
        tokio::select! {
            biased;
            work = now.recv() => match work {
                Some(work) => state.add(work, &mut group),
                None => return,
            },
            Some(live) = later.recv() => {
                state.take(&live, false, &mut group);
                // More come before the pause is over, and wait in their queue without waking anybody.
                if last.elapsed() < PAUSE {
                    tokio::select! {
                        biased;
                        work = now.recv() => match work {
                            Some(work) => state.add(work, &mut group),
                            None => return,
                        },
                        () = tokio::time::sleep_until(last + PAUSE) => {}
                    }
                }
            }
        }
        while let Ok(live) = later.try_recv() {
            state.take(&live, false, &mut group);
        }
        while let Ok(work) = now.try_recv() {
            state.add(work, &mut group);
        }
        last = Instant::now();
        let close = group.close;
        state.write(group).await;
        if close {
            return;
        }
    }
}
