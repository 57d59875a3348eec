//! Group commit: what arrives while a commit runs is one transaction, the next one, with one row a message.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use sqlx::SqlitePool;
use tokio::sync::{mpsc, oneshot};

use super::{Batch, Live, StoreError};
use crate::fail;

/// Batches that may wait for the disk; a run that is faster waits itself.
const QUEUE: usize = 256;
/// Bytes of a row after which no further batch is joined to it, so that pieces of a log stay small.
const ROW: usize = 8 << 10;
/// Batches of one transaction.
const GROUP: usize = 256;

/// Hands work to the one task that writes logs.
#[derive(Clone)]
pub(super) struct Writer {
    queue: mpsc::Sender<Work>,
}

enum Work {
    Append(Arc<Live>, Batch),
    Flush(oneshot::Sender<()>),
}

/// A batch and the message it belongs to.
type Written = (Arc<Live>, Batch);

impl Writer {
    pub(super) fn start(pool: SqlitePool) -> Writer {
        let (queue, work) = mpsc::channel(QUEUE);
        tokio::spawn(run(pool, work));
        Writer { queue }
    }

    pub(super) async fn append(&self, live: Arc<Live>, batch: Batch) -> Result<(), StoreError> {
        self.queue.send(Work::Append(live, batch)).await.map_err(|_| StoreError::Closed)
    }

    pub(super) async fn flush(&self) -> Result<(), StoreError> {
        let (done, waiting) = oneshot::channel();
        self.queue.send(Work::Flush(done)).await.map_err(|_| StoreError::Closed)?;
        waiting.await.map_err(|_| StoreError::Closed)
    }
}

async fn run(pool: SqlitePool, mut work: mpsc::Receiver<Work>) {
    let mut group = Vec::with_capacity(64);
    while work.recv_many(&mut group, GROUP).await > 0 {
        let (batches, flushes) = joined(group.drain(..));
        if !batches.is_empty() {
            fail::point("log.before");
            if !commit(&pool, &batches).await {
                // The server has stopped. What is not committed is not seen, and nobody is told that it is.
                return;
            }
            fail::point("log.after");
        }
        for (live, batch) in batches {
            live.publish(batch);
        }
        for done in flushes {
            let _ = done.send(());
        }
    }
}

/// What arrived together: batches of one message in one row, as long as that is small; the order of each message is kept.
fn joined(group: impl Iterator<Item = Work>) -> (Vec<Written>, Vec<oneshot::Sender<()>>) {
    let (mut batches, mut flushes) = (Vec::<Written>::new(), Vec::new());
    let mut places = HashMap::new();
    for item in group {
        match item {
            Work::Flush(done) => flushes.push(done),
            Work::Append(live, batch) => match places.entry(Arc::as_ptr(&live)) {
                Entry::Occupied(mut place) => {
                    let place: &mut usize = place.get_mut();
                    if batches[*place].1.body().len() < ROW {
                        batches[*place].1.join(&batch);
                    } else {
                        *place = batches.len();
                        batches.push((live, batch));
                    }
                }
                Entry::Vacant(place) => {
                    place.insert(batches.len());
                    batches.push((live, batch));
                }
            },
        }
    }
    (batches, flushes)
}

/// Writes until it succeeds: what cannot be written must not be seen. A disk that is full holds every run; they go on when
/// there is room. False when the database has been closed.
async fn commit(pool: &SqlitePool, batches: &[Written]) -> bool {
    let mut wait = Duration::from_millis(50);
    while let Err(error) = insert(pool, batches).await {
        if matches!(error, sqlx::Error::PoolClosed) {
            return false;
        }
        tracing::error!(%error, "the log cannot be written; trying again");
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(Duration::from_secs(5));
    }
    true
}

async fn insert(pool: &SqlitePool, batches: &[Written]) -> sqlx::Result<()> {
    const INSERT: &str = "insert or ignore into log (message_id, first, last, body) values (?, ?, ?, ?)";
    // A commit that seemed to fail and did not is not written twice.
    macro_rules! query {
        ($entry:expr) => {
            sqlx::query(INSERT)
                .bind(&$entry.0.id)
                .bind($entry.1.first().cast_signed())
                .bind($entry.1.last().cast_signed())
                .bind($entry.1.body())
        };
    }
    if let [one] = batches {
        // One statement is a transaction of its own.
        return query!(one).execute(pool).await.map(|_| ());
    }
    let mut transaction = pool.begin().await?;
    for batch in batches {
        query!(batch).execute(&mut *transaction).await?;
        fail::point("log.amid");
    }
    transaction.commit().await
}
