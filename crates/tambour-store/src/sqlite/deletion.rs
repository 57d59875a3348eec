//! Deletes rows and erases them from the files.
//!
//! SQLite overwrites deleted rows (`secure_delete`), but the write-ahead file still holds earlier versions of
//! them, and so does the database file until a checkpoint. [`Deletion::sweep`] erases both.

use std::time::{Duration, Instant};

use async_trait::async_trait;
use sqlx::{AssertSqlSafe, QueryBuilder, Row, Sqlite, SqliteConnection};
use tokio_util::sync::CancellationToken;

use super::SqliteStore;
use super::responses::delete_responses_mentioning;
use super::states::forget_messages;
use super::transaction::OpenTransaction;
use super::writer::WriterTask;
use crate::fail;
use crate::{Deletion, Retention, StoreError};

/// Maximum number of expired messages listed at a time.
const EXPIRED_PER_QUERY: usize = 500;
/// Maximum number of messages deleted in one transaction. A transaction blocks other writers, and each
/// message may have megabytes to overwrite.
const MESSAGES_PER_TRANSACTION: usize = 16;
/// Minimum number of pages that a step of the vacuum frees. The first step frees this many. A step blocks
/// other writers.
const MIN_PAGES: u32 = 16;
/// Maximum number of pages that a step frees.
const MAX_PAGES: u32 = 4096;
/// Time that a step should take. The number of its pages is adapted to it.
const STEP_TIME: Duration = Duration::from_millis(20);
/// Pause for other writers between two steps: SQLite's busy handler retries after 1 to 100 ms.
const WRITER_PAUSE: Duration = Duration::from_millis(25);

#[async_trait]
impl Deletion for SqliteStore {
    async fn delete_messages(&self, ids: &[String]) -> Result<(), StoreError> {
        if ids.is_empty() {
            return Ok(());
        }
        self.fence(ids);
        // The next start would restore messages that are still on the journal.
        self.drain_journal().await?;
        for ids in ids.chunks(MESSAGES_PER_TRANSACTION) {
            let start_time = Instant::now();
            let mut transaction = OpenTransaction::begin(self.pool()).await?;
            let deletion = delete_rows(&mut transaction, ids).await;
            transaction.end(deletion).await?;
            // Waiting writers retry only now and then: the pause gives them a chance.
            tokio::time::sleep(start_time.elapsed().min(WRITER_PAUSE)).await;
        }
        ids.iter().for_each(|id| self.shared.pending.remove_log(id));
        fail::point("deletion.after");
        Ok(())
    }

    async fn close_conversation(&self, id: &str) -> Result<(), StoreError> {
        self.shared.run_queue.lock_order().close(id);
        Ok(())
    }

    async fn close_if_idle(&self, id: &str) -> Result<bool, StoreError> {
        let mut order = self.shared.run_queue.lock_order();
        let is_idle = order.unfinished_runs(id).next().is_none();
        if is_idle {
            order.close(id);
        }
        Ok(is_idle)
    }

    async fn delete_conversation(&self, id: &str) -> Result<(), StoreError> {
        self.close_conversation(id).await?;
        let deletion = self.delete_closed_conversation(id).await;
        // Waits for callers that found the conversation before and are about to begin a message in it.
        drop(self.shared.begin_lock.write().await);
        self.shared.run_queue.lock_order().reopen(id);
        deletion
    }

    async fn expired_messages(&self, retention: Retention<'_>) -> Result<Vec<String>, StoreError> {
        let max_rows = i64::try_from(EXPIRED_PER_QUERY).unwrap_or(i64::MAX);
        let mut expired_ids = Vec::new();
        if let Some(before) = retention.before {
            let query = sqlx::query_scalar(
                "select id from messages where created < ? and status <> 'running' and kind is null order by number limit ?",
            );
            expired_ids = query.bind(before).bind(max_rows).fetch_all(self.pool()).await?;
        }
        if let Some(bytes) = retention.bytes.filter(|_| expired_ids.is_empty()) {
            // The newest messages of each owner that fit together are kept.
            let query = sqlx::query_scalar(
                "select id from (select id, sum(size) over (partition by owner order by number desc) as so_far \
                 from messages join records on message_id = id where kind is null) where so_far > ? limit ?",
            );
            let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
            expired_ids = query.bind(bytes).bind(max_rows).fetch_all(self.pool()).await?;
        }
        Ok(expired_ids)
    }

    async fn sweep(&self, stop: &CancellationToken) -> Result<bool, StoreError> {
        let mut connection = self.pool().acquire().await?;
        // The passive checkpoint leaves less work for the blocking one after it, which erases as much as
        // possible before the vacuum, since the vacuum may take long. The blocking checkpoint at the end
        // erases the rest.
        checkpoint_passive(&mut connection).await?;
        checkpoint_truncate(&mut connection).await?;
        let mut pages = MIN_PAGES;
        while !stop.is_cancelled() && free_pages(&mut connection).await? > 0 {
            let start_time = Instant::now();
            fail::point("sweep.slice");
            // A pragma takes no bound parameter.
            let vacuum = AssertSqlSafe(format!("pragma incremental_vacuum({pages})"));
            sqlx::query(vacuum).fetch_all(&mut *connection).await?;
            let step_time = start_time.elapsed();
            let is_slow = step_time > STEP_TIME;
            pages = if is_slow { (pages / 2).max(MIN_PAGES) } else { (pages * 2).min(MAX_PAGES) };
            checkpoint_passive(&mut connection).await?;
            tokio::select! {
                () = tokio::time::sleep(WRITER_PAUSE.max(step_time)) => {}
                () = stop.cancelled() => {}
            }
        }
        if stop.is_cancelled() {
            // The next start continues.
            return Ok(false);
        }
        Ok(checkpoint_truncate(&mut connection).await?)
    }
}

impl SqliteStore {
    /// Deletes a conversation that is closed to new runs.
    pub(super) async fn delete_closed_conversation(&self, id: &str) -> Result<(), StoreError> {
        let running: Vec<String> = {
            let order = self.shared.run_queue.lock_order();
            order.unfinished_runs(id).map(|(_, tail)| tail.message.clone()).collect()
        };
        self.fence(&running);
        self.drain_journal().await?;
        let query = sqlx::query_scalar("select id from messages where conversation_id = ?").bind(id);
        let messages: Vec<String> = query.fetch_all(self.pool()).await?;
        self.delete_messages(&messages).await?;
        let mut transaction = OpenTransaction::begin(self.pool()).await?;
        let deletion = delete_conversation(&mut transaction, id).await;
        transaction.end(deletion).await?;
        fail::point("deletion.after");
        Ok(())
    }

    /// Waits until the database has everything that the journal holds now, and the segments that hold it are
    /// removed.
    async fn drain_journal(&self) -> Result<(), StoreError> {
        let full_segment = self.shared.journal.rotate().map_err(StoreError::Journal)?;
        self.writer.send(WriterTask::Segment(full_segment))?;
        self.flush().await
    }
}

/// Deletes messages with their logs, records, state updates and the responses that name them.
async fn delete_rows(connection: &mut SqliteConnection, ids: &[String]) -> sqlx::Result<()> {
    forget_messages(connection, ids).await?;
    for (table, column) in [("entries", "message_id"), ("records", "message_id"), ("messages", "id")] {
        let mut query = QueryBuilder::<Sqlite>::new(format!("delete from {table} where {column} in ("));
        let mut list = query.separated(", ");
        ids.iter().for_each(|id| {
            list.push_bind(id);
        });
        query.push(")").build().execute(&mut *connection).await?;
        fail::point("deletion.amid");
    }
    delete_responses_mentioning(connection, ids).await
}

/// Deletes the row of a conversation, its state, lore and the responses that name it.
async fn delete_conversation(connection: &mut SqliteConnection, id: &str) -> sqlx::Result<()> {
    let query = sqlx::query(
        "delete from conversations where id = ?; delete from states where conversation_id = ?; \
         delete from state_updates where conversation_id = ?; delete from lore where conversation_id = ?",
    );
    query.bind(id).bind(id).bind(id).bind(id).execute(&mut *connection).await?;
    delete_responses_mentioning(connection, &[id.to_owned()]).await
}

/// Returns the number of free pages.
async fn free_pages(connection: &mut SqliteConnection) -> sqlx::Result<i64> {
    sqlx::query_scalar("pragma freelist_count").fetch_one(connection).await
}

/// Runs a passive checkpoint: copies pages to the database file without waiting for readers or writers.
async fn checkpoint_passive(connection: &mut SqliteConnection) -> sqlx::Result<()> {
    sqlx::query("pragma wal_checkpoint(passive)").fetch_one(connection).await.map(|_| ())
}

/// Copies the whole write-ahead file to the database and truncates it. Returns `true` if that was possible.
async fn checkpoint_truncate(connection: &mut SqliteConnection) -> sqlx::Result<bool> {
    let row = sqlx::query("pragma wal_checkpoint(truncate)").fetch_one(connection).await?;
    Ok(row.try_get::<i64, _>(0)? == 0)
}
