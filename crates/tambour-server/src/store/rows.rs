//! Settings and keys.

use serde_json::Value;
use sqlx::sqlite::SqliteRow;
use sqlx::{FromRow, Row, SqliteConnection};

use super::commit::{begin, end};
use super::{Store, StoreError};
use crate::fail;

/// An API key, without its secret.
#[derive(Clone, Debug)]
pub struct Key {
    /// Its id.
    pub id: String,
    /// Whose everything is that is made with it.
    pub owner: String,
    /// Its name.
    pub name: String,
    /// SHA-256 of the secret.
    pub hash: Vec<u8>,
    /// Whether it may change settings and keys.
    pub admin: bool,
    /// RFC 3339 time.
    pub created: String,
}

impl Store {
    /// All settings that were changed.
    ///
    /// # Errors
    /// The database failed.
    pub async fn settings(&self) -> Result<Vec<(String, String)>, StoreError> {
        Ok(sqlx::query_as("select name, value from settings").fetch_all(self.pool()).await?)
    }

    /// Changes settings, all or none; values are JSON.
    ///
    /// # Errors
    /// The database failed.
    pub async fn set(&self, changes: &[(String, Value)]) -> Result<(), StoreError> {
        fail::point("settings.before");
        let mut connection = self.pool().acquire().await?;
        begin(&mut connection).await?;
        let changed = change(&mut connection, changes).await;
        end(&mut connection, changed).await?;
        fail::point("settings.after");
        Ok(())
    }

    /// All keys.
    ///
    /// # Errors
    /// The database failed.
    pub async fn keys(&self) -> Result<Vec<Key>, StoreError> {
        Ok(sqlx::query_as("select * from keys order by created").fetch_all(self.pool()).await?)
    }

    /// Stores a key.
    ///
    /// # Errors
    /// The database failed.
    pub async fn insert_key(&self, key: &Key) -> Result<(), StoreError> {
        let query =
            sqlx::query("insert into keys (id, owner, name, hash, admin, created) values (?, ?, ?, ?, ?, ?)");
        let query = query
            .bind(&key.id)
            .bind(&key.owner)
            .bind(&key.name)
            .bind(&key.hash)
            .bind(key.admin)
            .bind(&key.created);
        fail::point("key.before");
        query.execute(self.pool()).await?;
        fail::point("key.after");
        Ok(())
    }

    /// Makes everything of one owner another one's.
    ///
    /// # Errors
    /// The database failed.
    pub async fn hand_over(&self, from: &str, to: &str) -> Result<(), StoreError> {
        self.caught_up().await?;
        self.shared.pending.hand_over(from, to);
        let mut connection = self.pool().acquire().await?;
        begin(&mut connection).await?;
        let query = sqlx::query(
            "update messages set owner = ?2 where owner = ?1; update conversations set owner = ?2 where owner = ?1; \
             update or ignore tools set owner = ?2 where owner = ?1; \
             update imports set owner = ?2 where owner = ?1; \
             update or ignore documents set owner = ?2 where owner = ?1; \
             update or ignore versions set owner = ?2 where owner = ?1; \
             update dialogues set owner = ?2 where owner = ?1; \
             update or ignore repeats set owner = ?2 where owner = ?1; \
             update or ignore kept set owner = ?2 where owner = ?1",
        );
        let moved = query.bind(from).bind(to).execute(&mut *connection).await.map(|_| ());
        Ok(end(&mut connection, moved).await?)
    }

    /// Removes a key; whether there was one.
    ///
    /// # Errors
    /// The database failed.
    pub async fn delete_key(&self, id: &str) -> Result<bool, StoreError> {
        let done = sqlx::query("delete from keys where id = ?").bind(id).execute(self.pool()).await?;
        Ok(done.rows_affected() > 0)
    }
}

async fn change(connection: &mut SqliteConnection, changes: &[(String, Value)]) -> sqlx::Result<()> {
    for (name, value) in changes {
        let query = sqlx::query(
            "insert into settings (name, value) values (?, ?) on conflict (name) do update set value = excluded.value",
        );
        query.bind(name).bind(value.to_string()).execute(&mut *connection).await?;
        fail::point("settings.amid");
    }
    Ok(())
}

impl FromRow<'_, SqliteRow> for Key {
    fn from_row(row: &SqliteRow) -> sqlx::Result<Key> {
        Ok(Key {
            id: row.try_get("id")?,
            owner: row.try_get("owner")?,
            name: row.try_get("name")?,
            hash: row.try_get("hash")?,
            admin: row.try_get("admin")?,
            created: row.try_get("created")?,
        })
    }
}
