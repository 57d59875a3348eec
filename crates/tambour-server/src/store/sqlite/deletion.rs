//! What is deleted is gone: from the tables, from the journal, and from what the file system keeps of either.
//!
//! Deleted rows are overwritten (`secure_delete`), but the write-ahead file still has what was written of them before, and the
//! database until it gets the change from there. [`Store::sweep`] brings both to an end.

use async_trait::async_trait;
use sqlx::{QueryBuilder, Row, Sqlite, SqliteConnection};

use super::SqliteStore;
use super::commit::{begin, end};
use super::kept::delete_naming;
use super::states::forget;
use super::writer::Work;
use crate::fail;
use crate::store::{Deletion, Retention, StoreError};

/// Messages of one transaction.
const TOGETHER: usize = 500;

#[async_trait]
impl Deletion for SqliteStore {
    async fn delete_messages(&self, ids: &[String]) -> Result<(), StoreError> {
        if ids.is_empty() {
            return Ok(());
        }
        // The next start would bring back what the journal has.
        self.drain().await?;
        for ids in ids.chunks(TOGETHER) {
            let mut connection = self.pool().acquire().await?;
            begin(&mut connection).await?;
            let deleted = delete(&mut connection, ids).await;
            end(&mut connection, deleted).await?;
        }
        fail::point("deletion.after");
        Ok(())
    }

    async fn delete_conversation(&self, id: &str) -> Result<(), StoreError> {
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

    async fn expired(&self, retention: Retention<'_>) -> Result<Vec<String>, StoreError> {
        let many = i64::try_from(TOGETHER).unwrap_or(i64::MAX);
        let mut expired = Vec::new();
        if let Some(before) = retention.before {
            let query = sqlx::query_scalar(
                "select id from messages where created < ? and status <> 'running' order by number limit ?",
            );
            expired = query.bind(before).bind(many).fetch_all(self.pool()).await?;
        }
        if let Some(bytes) = retention.bytes.filter(|_| expired.is_empty()) {
            // The newest of each owner stay as long as they fit together.
            let query = sqlx::query_scalar(
                "select id from (select id, sum(size) over (partition by owner order by number desc) as so_far \
                 from messages join records on message_id = id) where so_far > ? limit ?",
            );
            let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
            expired = query.bind(bytes).bind(many).fetch_all(self.pool()).await?;
        }
        Ok(expired)
    }

    async fn sweep(&self) -> Result<bool, StoreError> {
        let mut connection = self.pool().acquire().await?;
        let before = truncate(&mut connection).await?;
        sqlx::query("pragma incremental_vacuum").fetch_all(&mut *connection).await?;
        Ok(before && truncate(&mut connection).await?)
    }
}

impl SqliteStore {
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

/// Brings all of the write-ahead file to the database, and empties it. Whether it could.
async fn truncate(connection: &mut SqliteConnection) -> sqlx::Result<bool> {
    let row = sqlx::query("pragma wal_checkpoint(truncate)").fetch_one(connection).await?;
    Ok(row.try_get::<i64, _>(0)? == 0)
}
