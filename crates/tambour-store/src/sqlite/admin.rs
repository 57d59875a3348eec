//! Rows of settings, keys and usage.

use async_trait::async_trait;
use serde_json::Value;
use sqlx::SqliteConnection;

use super::SqliteStore;
use super::figures;
use super::transaction::OpenTransaction;
use crate::fail;
use crate::{Admin, KeyRow, StoreError, UsageRow};

#[async_trait]
impl Admin for SqliteStore {
    async fn settings(&self) -> Result<Vec<(String, String)>, StoreError> {
        Ok(sqlx::query_as("select name, value from settings").fetch_all(self.pool()).await?)
    }

    async fn put_settings(&self, changes: &[(String, Value)]) -> Result<(), StoreError> {
        fail::point("settings.before");
        let mut transaction = OpenTransaction::begin(self.pool()).await?;
        let write_result = write_settings(&mut transaction, changes).await;
        transaction.end(write_result).await?;
        fail::point("settings.after");
        Ok(())
    }

    async fn keys(&self) -> Result<Vec<KeyRow>, StoreError> {
        Ok(sqlx::query_as("select * from keys order by created").fetch_all(self.pool()).await?)
    }

    async fn insert_key(&self, key: &KeyRow) -> Result<(), StoreError> {
        let query = sqlx::query(
            "insert into keys (id, owner, name, hash, admin, created, limits) values (?, ?, ?, ?, ?, ?, ?)",
        );
        let query = query
            .bind(&key.id)
            .bind(&key.owner)
            .bind(&key.name)
            .bind(&key.hash)
            .bind(key.is_admin)
            .bind(&key.created)
            .bind(&key.limits);
        fail::point("key.before");
        query.execute(self.pool()).await?;
        fail::point("key.after");
        Ok(())
    }

    async fn change_key(&self, key: &KeyRow) -> Result<(), StoreError> {
        let query = sqlx::query("update keys set name = ?, limits = ? where id = ?");
        query.bind(&key.name).bind(&key.limits).bind(&key.id).execute(self.pool()).await?;
        Ok(())
    }

    async fn add_usage(&self, usage: &UsageRow) -> Result<(), StoreError> {
        let mut connection = self.pool().acquire().await?;
        fail::point("usage.before");
        add_usage(&mut connection, usage).await?;
        fail::point("usage.after");
        Ok(())
    }

    async fn usage(
        &self,
        owner: Option<&str>,
        (from, to): (&str, &str),
        after: Option<(&str, &str)>,
        limit: u32,
    ) -> Result<Vec<UsageRow>, StoreError> {
        // Usage of messages is stored with their records.
        self.wait_caught_up().await?;
        // Without `after` the list begins with the latest day: this day is later than any.
        let (day, key) = after.unwrap_or(("9999-99-99", ""));
        let query = sqlx::query_as(
            "select * from usage where (?1 is null or owner = ?1) and day between ?2 and ?3 \
             and (day < ?4 or (day = ?4 and key > ?5)) order by day desc, key limit ?6",
        );
        let query = query.bind(owner).bind(from).bind(to).bind(day).bind(key).bind(limit);
        Ok(query.fetch_all(self.pool()).await?)
    }

    async fn hand_over(&self, from: &str, to: &str) -> Result<(), StoreError> {
        self.wait_caught_up().await?;
        // Transfers the rows of messages that have begun meanwhile.
        self.shared.pending.hand_over(from, to);
        let mut transaction = OpenTransaction::begin(self.pool()).await?;
        // `or ignore`: rows whose name, id or idempotency key the new owner already uses stay with the old
        // one.
        let query = sqlx::query(
            "update messages set owner = ?2 where owner = ?1; update conversations set owner = ?2 where owner = ?1; \
             update or ignore tools set owner = ?2 where owner = ?1; \
             update imports set owner = ?2 where owner = ?1; \
             update or ignore documents set owner = ?2 where owner = ?1; \
             update or ignore versions set owner = ?2 where owner = ?1; \
             update dialogues set owner = ?2 where owner = ?1; \
             update or ignore repeats set owner = ?2 where owner = ?1; \
             update or ignore kept set owner = ?2 where owner = ?1; \
             update usage set owner = ?2 where owner = ?1",
        );
        let writes = async {
            query.bind(from).bind(to).execute(&mut *transaction).await?;
            figures::hand_over(&mut transaction, from, to).await
        };
        let write_result = writes.await;
        Ok(transaction.end(write_result).await?)
    }

    async fn delete_key(&self, id: &str) -> Result<bool, StoreError> {
        let result = sqlx::query("delete from keys where id = ?").bind(id).execute(self.pool()).await?;
        Ok(result.rows_affected() > 0)
    }
}

/// Adds to the usage of a key on a day.
pub(super) async fn add_usage(connection: &mut SqliteConnection, usage: &UsageRow) -> sqlx::Result<()> {
    let query = sqlx::query(
        "insert into usage (day, key, name, owner, requests, input_tokens, output_tokens) values (?, ?, ?, ?, ?, ?, ?) \
         on conflict (day, key) do update set requests = requests + excluded.requests, \
         input_tokens = input_tokens + excluded.input_tokens, output_tokens = output_tokens + excluded.output_tokens, \
         name = excluded.name, owner = excluded.owner",
    );
    let query = query.bind(&usage.day).bind(&usage.key).bind(&usage.name).bind(&usage.owner);
    let query = query.bind(usage.requests).bind(usage.input_tokens).bind(usage.output_tokens);
    query.execute(connection).await.map(|_| ())
}

/// Stores changed settings; values are JSON.
async fn write_settings(connection: &mut SqliteConnection, changes: &[(String, Value)]) -> sqlx::Result<()> {
    for (name, value) in changes {
        let query = sqlx::query(
            "insert into settings (name, value) values (?, ?) on conflict (name) do update set value = excluded.value",
        );
        query.bind(name).bind(value.to_string()).execute(&mut *connection).await?;
        fail::point("settings.amid");
    }
    Ok(())
}
