//! Deletes rows. A whole day of logs is dropped with its partition.

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use super::PostgresStore;
use super::connection::DatabaseConnection;
use super::partitions;
use super::responses::delete_responses_mentioning;
use super::run_insert::has_runs;
use super::states::{forget_messages, lock_state};
use crate::fail;
use crate::{Deletion, Retention, StoreError};

/// Maximum number of expired messages listed at a time.
const EXPIRED_PER_QUERY: i64 = 500;
/// Maximum number of messages deleted in one transaction.
const MESSAGES_PER_TRANSACTION: usize = 100;

#[async_trait]
impl Deletion for PostgresStore {
    async fn delete_messages(&self, ids: &[String]) -> Result<(), StoreError> {
        self.runs().local_runs.fence(ids);
        for ids in ids.chunks(MESSAGES_PER_TRANSACTION) {
            let mut transaction = self.pool().begin().await?;
            delete_rows(&mut transaction, ids).await?;
            transaction.commit().await?;
        }
        fail::point("deletion.after");
        Ok(())
    }

    async fn close_conversation(&self, id: &str) -> Result<(), StoreError> {
        let mut transaction = self.pool().begin().await?;
        lock_conversation(&mut transaction, id).await?;
        insert_closed(&mut transaction, id).await?;
        Ok(transaction.commit().await?)
    }

    async fn close_if_idle(&self, id: &str) -> Result<bool, StoreError> {
        self.runs().local_runs.wait_given_up().await;
        let mut transaction = self.pool().begin().await?;
        lock_conversation(&mut transaction, id).await?;
        if has_runs(&mut transaction, id).await? {
            return Ok(false);
        }
        insert_closed(&mut transaction, id).await?;
        transaction.commit().await?;
        Ok(true)
    }

    async fn delete_conversation(&self, id: &str) -> Result<(), StoreError> {
        self.close_conversation(id).await?;
        let deletion = self.delete_closed_conversation(id).await;
        self.reopen_conversation(id).await?;
        deletion
    }

    async fn expired_messages(&self, retention: Retention<'_>) -> Result<Vec<String>, StoreError> {
        let mut expired_ids = Vec::new();
        if let Some(before) = retention.before {
            let query = sqlx::query_scalar(
                "select id from messages where created < $1 and status <> 'running' and kind is null \
                 order by number limit $2",
            );
            expired_ids = query.bind(before).bind(EXPIRED_PER_QUERY).fetch_all(self.pool()).await?;
        }
        if let Some(bytes) = retention.bytes.filter(|_| expired_ids.is_empty()) {
            // The newest messages of each owner that fit together are kept.
            let query = sqlx::query_scalar(
                "select id from (select id, sum(size) over (partition by owner order by number desc) as so_far \
                 from messages join records on message_id = id where kind is null) as sizes \
                 where so_far > $1 limit $2",
            );
            let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
            expired_ids = query.bind(bytes).bind(EXPIRED_PER_QUERY).fetch_all(self.pool()).await?;
        }
        Ok(expired_ids)
    }

    async fn sweep(&self, _stop: &CancellationToken) -> Result<bool, StoreError> {
        partitions::delete_stale_rows(self.pool()).await?;
        let change = async {
            partitions::create_partitions(self.pool()).await?;
            partitions::drop_partitions(self.pool()).await
        };
        if let Err(error) = change.await {
            tracing::warn!(%error, "the partitions of the logs are in use; the next sweep changes them");
        }
        Ok(true)
    }
}

impl PostgresStore {
    /// Deletes a conversation that is closed to new runs.
    pub(super) async fn delete_closed_conversation(&self, id: &str) -> Result<(), StoreError> {
        let query = sqlx::query_scalar("select id from messages where conversation_id = $1").bind(id);
        let messages: Vec<String> = query.fetch_all(self.pool()).await?;
        self.delete_messages(&messages).await?;
        let mut transaction = self.pool().begin().await?;
        lock_state(&mut transaction, id).await?;
        for statement in [
            "delete from conversations where id = $1",
            "delete from states where conversation_id = $1",
            "delete from state_updates where conversation_id = $1",
            "delete from lore where conversation_id = $1",
        ] {
            sqlx::query(statement).bind(id).execute(&mut *transaction).await?;
        }
        delete_responses_mentioning(&mut transaction, &[id.to_owned()]).await?;
        transaction.commit().await?;
        fail::point("deletion.after");
        Ok(())
    }

    /// Lets runs begin again in a conversation or dialogue, if it still exists.
    pub(super) async fn reopen_conversation(&self, id: &str) -> Result<(), StoreError> {
        sqlx::query("delete from closed where conversation_id = $1").bind(id).execute(self.pool()).await?;
        Ok(())
    }
}

/// Locks the row of a conversation or dialogue until the end of the transaction: waits for a run that is
/// beginning in it, and makes all later runs wait.
async fn lock_conversation(connection: &mut DatabaseConnection, id: &str) -> sqlx::Result<()> {
    for statement in [
        "select 1 from conversations where id = $1 for update",
        "select 1 from dialogues where id = $1 for update",
    ] {
        sqlx::query(statement).bind(id).execute(&mut *connection).await?;
    }
    Ok(())
}

/// Closes a conversation or dialogue to new runs for a minute, so that it does not stay closed if the server
/// dies before the deletion has ended.
async fn insert_closed(connection: &mut DatabaseConnection, id: &str) -> sqlx::Result<()> {
    let query = sqlx::query(
        "insert into closed (conversation_id, lease_until) values ($1, now() + interval '1 minute') \
         on conflict (conversation_id) do update set lease_until = excluded.lease_until",
    );
    query.bind(id).execute(connection).await.map(|_| ())
}

/// Deletes messages with their runs, logs, records, state updates and the responses that name them.
async fn delete_rows(connection: &mut DatabaseConnection, ids: &[String]) -> sqlx::Result<()> {
    // First the runs: nothing is appended to the logs after that.
    let query = sqlx::query("delete from runs where id = any($1)").bind(ids);
    query.execute(&mut *connection).await?;
    forget_messages(connection, ids).await?;
    // Logs of days before that of the oldest message that stays are dropped with their partitions.
    let query = sqlx::query(
        "delete from entries where message_id = any($1) and day >= coalesce( \
         (select cast(substr(min(created), 1, 10) as date) from messages where not id = any($1)), '0001-01-01')",
    );
    query.bind(ids).execute(&mut *connection).await?;
    fail::point("deletion.amid");
    for statement in
        ["delete from records where message_id = any($1)", "delete from messages where id = any($1)"]
    {
        sqlx::query(statement).bind(ids).execute(&mut *connection).await?;
        fail::point("deletion.amid");
    }
    delete_responses_mentioning(connection, ids).await
}
