//! Rows of settings, keys and usage.

use super::connection::DatabaseConnection;
use super::{PostgresStore, figures};
use crate::fail;
use crate::{Admin, KeyRow, StoreError, UsageRow};
use async_trait::async_trait;
use serde_json::Value;

#[async_trait]
impl Admin for PostgresStore {
    async fn settings(&self) -> Result<Vec<(String, String)>, StoreError> {
        Ok(sqlx::query_as("select name, value from settings").fetch_all(self.pool()).await?)
    }

    async fn put_settings(&self, changes: &[(String, Value)]) -> Result<(), StoreError> {
        fail::point("settings.before");
        let mut transaction = self.pool().begin().await?;
        note_change(&mut transaction, "settings").await?;
        for (name, value) in changes {
            let query = sqlx::query(
                "insert into settings (name, value) values ($1, $2) \
                 on conflict (name) do update set value = excluded.value",
            );
            query.bind(name).bind(value.to_string()).execute(&mut *transaction).await?;
            fail::point("settings.amid");
        }
        transaction.commit().await?;
        fail::point("settings.after");
        Ok(())
    }

    async fn keys(&self) -> Result<Vec<KeyRow>, StoreError> {
        Ok(sqlx::query_as("select * from keys order by created").fetch_all(self.pool()).await?)
    }

    async fn insert_key(&self, key: &KeyRow) -> Result<(), StoreError> {
        fail::point("key.before");
        let mut transaction = self.pool().begin().await?;
        note_change(&mut transaction, "keys").await?;
        let query = sqlx::query(
            "insert into keys (id, owner, name, hash, admin, created, limits) values ($1, $2, $3, $4, $5, $6, $7)",
        );
        let query = query.bind(&key.id).bind(&key.owner).bind(&key.name).bind(&key.hash).bind(key.is_admin);
        query.bind(&key.created).bind(&key.limits).execute(&mut *transaction).await?;
        transaction.commit().await?;
        fail::point("key.after");
        Ok(())
    }

    async fn change_key(&self, key: &KeyRow) -> Result<(), StoreError> {
        let mut transaction = self.pool().begin().await?;
        note_change(&mut transaction, "keys").await?;
        let query = sqlx::query("update keys set name = $1, limits = $2 where id = $3");
        query.bind(&key.name).bind(&key.limits).bind(&key.id).execute(&mut *transaction).await?;
        Ok(transaction.commit().await?)
    }

    async fn add_usage(&self, usage: &UsageRow) -> Result<(), StoreError> {
        let mut connection = DatabaseConnection::acquire(&self.shared.statements).await?;
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
        // Without `after` the list begins with the latest day: this day is later than any.
        let (day, key) = after.unwrap_or(("9999-99-99", ""));
        let query = sqlx::query_as(
            "select * from usage where ($1::text is null or owner = $1) and day between $2 and $3 \
             and (day < $4 or (day = $4 and key > $5)) order by day desc, key limit $6",
        );
        let query = query.bind(owner).bind(from).bind(to).bind(day).bind(key).bind(i64::from(limit));
        Ok(query.fetch_all(self.pool()).await?)
    }

    async fn hand_over(&self, from: &str, to: &str) -> Result<(), StoreError> {
        let mut transaction = self.pool().begin().await?;
        // An owner may have millions of rows.
        transaction.lift_limit().await?;
        // Rows whose name, id or idempotency key the new owner already uses stay with the old one.
        for statement in [
            "update messages set owner = $2 where owner = $1",
            "update conversations set owner = $2 where owner = $1",
            "update tools set owner = $2 where owner = $1 \
             and not exists (select 1 from tools as other where other.owner = $2 and other.name = tools.name)",
            "update imports set owner = $2 where owner = $1",
            "update documents set owner = $2 where owner = $1 and not exists (select 1 from documents as other \
             where other.owner = $2 and other.kind = documents.kind and other.id = documents.id)",
            "update versions set owner = $2 where owner = $1 and not exists (select 1 from versions as other \
             where other.owner = $2 and other.kind = versions.kind and other.id = versions.id \
             and other.version = versions.version)",
            "update dialogues set owner = $2 where owner = $1",
            "update repeats set owner = $2 where owner = $1 and not exists (select 1 from repeats as other \
             where other.owner = $2 and other.repeat = repeats.repeat)",
            "update kept set owner = $2 where owner = $1 and not exists (select 1 from kept as other \
             where other.owner = $2 and other.route = kept.route and other.word = kept.word)",
            "update usage set owner = $2 where owner = $1",
        ] {
            sqlx::query(statement).bind(from).bind(to).execute(&mut *transaction).await?;
        }
        figures::hand_over(&mut transaction, from, to).await?;
        Ok(transaction.commit().await?)
    }

    async fn delete_key(&self, id: &str) -> Result<bool, StoreError> {
        let mut transaction = self.pool().begin().await?;
        note_change(&mut transaction, "keys").await?;
        let result =
            sqlx::query("delete from keys where id = $1").bind(id).execute(&mut *transaction).await?;
        transaction.commit().await?;
        Ok(result.rows_affected() > 0)
    }
}

/// Tells the other servers that settings or keys change with this transaction. The row also serves as a lock:
/// such transactions run one after the other.
async fn note_change(connection: &mut DatabaseConnection, name: &str) -> sqlx::Result<()> {
    let query = sqlx::query(
        "insert into shared_versions (name, version) values ($1, 1) \
         on conflict (name) do update set version = shared_versions.version + 1",
    );
    query.bind(name).execute(connection).await.map(|_| ())
}

/// Adds to the usage of a key on a day.
pub(super) async fn add_usage(connection: &mut DatabaseConnection, usage: &UsageRow) -> sqlx::Result<()> {
    let query = sqlx::query(
        "insert into usage (day, key, name, owner, requests, input_tokens, output_tokens) \
         values ($1, $2, $3, $4, $5, $6, $7) \
         on conflict (day, key) do update set requests = usage.requests + excluded.requests, \
         input_tokens = usage.input_tokens + excluded.input_tokens, \
         output_tokens = usage.output_tokens + excluded.output_tokens, \
         name = excluded.name, owner = excluded.owner",
    );
    let query = query.bind(&usage.day).bind(&usage.key).bind(&usage.name).bind(&usage.owner);
    let query = query.bind(usage.requests).bind(usage.input_tokens).bind(usage.output_tokens);
    query.execute(connection).await.map(|_| ())
}
