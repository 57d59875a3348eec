//! What is deleted is gone: from the tables, from the journal, and from what the file system keeps of either.
//!
//! Deleted rows are overwritten (`secure_delete`), but the write-ahead file still has what was written of them before, and the
//! database until it gets the change from there. [`Store::sweep`] brings both to an end.

use std::time::{Duration, Instant};

use async_trait::async_trait;
use sqlx::{AssertSqlSafe, QueryBuilder, Row, Sqlite, SqliteConnection};
use tokio_util::sync::CancellationToken;

use super::SqliteStore;
use super::commit::{begin, end};
use super::kept::delete_naming;
use super::states::forget;
use super::writer::Work;
use crate::fail;
use crate::store::{Deletion, Retention, StoreError};

/// Messages that are looked for at a time.
const TOGETHER: usize = 500;
/// Messages of one transaction. Nobody else writes while it lasts, and each may have megabytes, which are overwritten.
const TRANSACTION: usize = 16;
/// Pages that a step of the sweep takes out of the file at first, and at most. Nobody else writes meanwhile.
const SLICE: u32 = 16;
const MOST_PAGES: u32 = 4096;
/// Time that such a step may take about.
const SLICE_TIME: Duration = Duration::from_millis(20);
/// Time for others to write, between two steps: who waits for the database looks again after 1 to 100 ms.
const PAUSE: Duration = Duration::from_millis(25);

#[async_trait]
impl Deletion for SqliteStore {
    async fn delete_messages(&self, ids: &[String]) -> Result<(), StoreError> {
        if ids.is_empty() {
            return Ok(());
        }
        self.fence(ids);
        // The next start would bring back what the journal has.
        self.drain().await?;
        for ids in ids.chunks(TRANSACTION) {
            let begun = Instant::now();
            let mut connection = self.pool().acquire().await?;
            begin(&mut connection).await?;
            let deleted = delete(&mut connection, ids).await;
            end(&mut connection, deleted).await?;
            drop(connection);
            // Who waits to write looks again only now and then.
            tokio::time::sleep(begun.elapsed().min(PAUSE)).await;
        }
        ids.iter().for_each(|id| self.shared.pending.forget(id));
        fail::point("deletion.after");
        Ok(())
    }

    fn close_conversation(&self, id: &str) {
        self.shared.places.order().close(id);
    }

    fn close_idle(&self, id: &str) -> bool {
        let mut order = self.shared.places.order();
        let idle = order.running(id).next().is_none();
        if idle {
            order.close(id);
        }
        idle
    }

    async fn delete_conversation(&self, id: &str) -> Result<(), StoreError> {
        self.close_conversation(id);
        let deleted = self.delete_closed(id).await;
        // Who has found it before may be about to begin a message in it.
        drop(self.shared.acquiring.write().await);
        self.shared.places.order().open(id);
        deleted
    }

    async fn expired(&self, retention: Retention<'_>) -> Result<Vec<String>, StoreError> {
        let many = i64::try_from(TOGETHER).unwrap_or(i64::MAX);
        let mut expired = Vec::new();
        if let Some(before) = retention.before {
            let query = sqlx::query_scalar(
                "select id from messages where created < ? and status <> 'running' and kind is null order by number limit ?",
            );
            expired = query.bind(before).bind(many).fetch_all(self.pool()).await?;
        }
        if let Some(bytes) = retention.bytes.filter(|_| expired.is_empty()) {
            // The newest of each owner stay as long as they fit together.
            let query = sqlx::query_scalar(
                "select id from (select id, sum(size) over (partition by owner order by number desc) as so_far \
                 from messages join records on message_id = id where kind is null) where so_far > ? limit ?",
            );
            let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
            expired = query.bind(bytes).bind(many).fetch_all(self.pool()).await?;
        }
        Ok(expired)
    }

    async fn sweep(&self, stop: &CancellationToken) -> Result<bool, StoreError> {
        let mut connection = self.pool().acquire().await?;
        // What a checkpoint brings to the database while others write need not be brought while they wait.
        passive(&mut connection).await?;
        let before = truncate(&mut connection).await?;
        let mut pages = SLICE;
        while !stop.is_cancelled() && free_pages(&mut connection).await? > 0 {
            let begun = Instant::now();
            fail::point("sweep.slice");
            // A pragma takes no bound value.
            let vacuum = AssertSqlSafe(format!("pragma incremental_vacuum({pages})"));
            sqlx::query(vacuum).fetch_all(&mut *connection).await?;
            let took = begun.elapsed();
            pages = if took > SLICE_TIME { (pages / 2).max(SLICE) } else { (pages * 2).min(MOST_PAGES) };
            passive(&mut connection).await?;
            tokio::select! {
                () = tokio::time::sleep(PAUSE.max(took)) => {}
                () = stop.cancelled() => {}
            }
        }
        if stop.is_cancelled() {
            // The next start goes on.
            return Ok(false);
        }
        Ok(before && truncate(&mut connection).await?)
    }
}

impl SqliteStore {
    /// Deletes a conversation in which nothing begins.
    pub(super) async fn delete_closed(&self, id: &str) -> Result<(), StoreError> {
        let running: Vec<String> = {
            let order = self.shared.places.order();
            order.running(id).map(|(_, tail)| tail.message.clone()).collect()
        };
        self.fence(&running);
        self.drain().await?;
        let query = sqlx::query_scalar("select id from messages where conversation_id = ?").bind(id);
        let messages: Vec<String> = query.fetch_all(self.pool()).await?;
        self.delete_messages(&messages).await?;
        let mut connection = self.pool().acquire().await?;
        begin(&mut connection).await?;
        let deleted = delete_conversation(&mut connection, id).await;
        end(&mut connection, deleted).await?;
        drop(connection);
        fail::point("deletion.after");
        Ok(())
    }

    /// Waits until the database has all that is on the journal, and the journal has nothing.
    async fn drain(&self) -> Result<(), StoreError> {
        let full = self.shared.journal.turn().map_err(StoreError::Journal)?;
        self.writer.tell(Work::Segment(full))?;
        self.flush().await
    }
}

async fn delete(connection: &mut SqliteConnection, ids: &[String]) -> sqlx::Result<()> {
    forget(connection, ids).await?;
    for (table, column) in [("entries", "message_id"), ("records", "message_id"), ("messages", "id")] {
        let mut query = QueryBuilder::<Sqlite>::new(format!("delete from {table} where {column} in ("));
        let mut list = query.separated(", ");
        ids.iter().for_each(|id| {
            list.push_bind(id);
        });
        query.push(")").build().execute(&mut *connection).await?;
        fail::point("deletion.amid");
    }
    delete_naming(connection, ids).await
}

async fn delete_conversation(connection: &mut SqliteConnection, id: &str) -> sqlx::Result<()> {
    let query = sqlx::query(
        "delete from conversations where id = ?; delete from states where conversation_id = ?; \
         delete from state_updates where conversation_id = ?; delete from lore where conversation_id = ?",
    );
    query.bind(id).bind(id).bind(id).bind(id).execute(&mut *connection).await?;
    delete_naming(connection, &[id.to_owned()]).await
}

/// Pages of the database that hold nothing.
async fn free_pages(connection: &mut SqliteConnection) -> sqlx::Result<i64> {
    sqlx::query_scalar("pragma freelist_count").fetch_one(connection).await
}

/// Brings of the write-ahead file to the database what no reader needs, while others write.
async fn passive(connection: &mut SqliteConnection) -> sqlx::Result<()> {
    sqlx::query("pragma wal_checkpoint(passive)").fetch_one(connection).await.map(|_| ())
}

/// Brings all of the write-ahead file to the database, and empties it. Whether it could.
async fn truncate(connection: &mut SqliteConnection) -> sqlx::Result<bool> {
    let row = sqlx::query("pragma wal_checkpoint(truncate)").fetch_one(connection).await?;
    Ok(row.try_get::<i64, _>(0)? == 0)
}
