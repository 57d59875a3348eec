//! Group commit: what arrives while a commit runs is one transaction, the next one.

use std::sync::Arc;
use std::time::Duration;

use sqlx::SqlitePool;
use tokio::sync::{mpsc, oneshot};

use super::{Batch, Live, StoreError};

/// Batches that may wait for the disk; a run that is faster waits itself.
const QUEUE: usize = 1024;
/// Batches of one transaction.
const GROUP: usize = 512;

/// Hands work to the one task that writes logs.
#[derive(Clone)]
pub(super) struct Writer {
    queue: mpsc::Sender<Work>,
}

enum Work {
    Append(Arc<Live>, Batch),
    Flush(oneshot::Sender<()>),
}

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
        let (mut batches, mut flushes) = (Vec::with_capacity(group.len()), Vec::new());
        for item in group.drain(..) {
            match item {
                Work::Append(live, batch) => batches.push((live, batch)),
                Work::Flush(done) => flushes.push(done),
            }
        }
        commit(&pool, &batches).await;
        for (live, batch) in batches {
            live.publish(batch);
        }
        for done in flushes {
            let _ = done.send(());
        }
    }
}

/// Writes until it succeeds: what cannot be written must not be seen. A disk that is full holds every run; they go on when
/// there is room.
async fn commit(pool: &SqlitePool, batches: &[(Arc<Live>, Batch)]) {
    let mut wait = Duration::from_millis(50);
    while let Err(error) = insert(pool, batches).await {
        if matches!(error, sqlx::Error::PoolClosed) {
            return;
        }
        tracing::error!(%error, "the log cannot be written; trying again");
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(Duration::from_secs(5));
    }
}

async fn insert(pool: &SqlitePool, batches: &[(Arc<Live>, Batch)]) -> sqlx::Result<()> {
    const INSERT: &str = "insert or ignore into log (message_id, first, last, body) values (?, ?, ?, ?)";
    if let [(live, batch)] = batches {
        // One statement is a transaction of its own.
        sqlx::query(INSERT)
            .bind(&live.id)
            .bind(batch.first().cast_signed())
            .bind(batch.last().cast_signed())
            .bind(batch.body())
            .execute(pool)
            .await?;
        return Ok(());
    }
    if batches.is_empty() {
        return Ok(());
    }
    let mut transaction = pool.begin().await?;
    for (live, batch) in batches {
        sqlx::query(INSERT)
            .bind(&live.id)
            .bind(batch.first().cast_signed())
            .bind(batch.last().cast_signed())
            .bind(batch.body())
            .execute(&mut *transaction)
            .await?;
    }
    transaction.commit().await
}
