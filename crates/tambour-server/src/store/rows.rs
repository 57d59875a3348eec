//! Everything in the database but the logs.

use serde_json::Value;
use sqlx::sqlite::SqliteRow;
use sqlx::{FromRow, Row};

use super::{Store, StoreError};
use crate::fail;

/// A message as it is stored.
#[derive(Clone, Debug)]
pub struct MessageRow {
    /// Its id.
    pub id: String,
    /// Conversation it belongs to.
    pub conversation_id: String,
    /// The request that made it.
    pub request_id: String,
    /// Key whose it is.
    pub owner: String,
    /// RFC 3339 time.
    pub created: String,
    /// `running`, `completed`, `failed` or `cancelled`.
    pub status: String,
    /// What was asked for, as JSON.
    pub request: String,
    /// What came of it, as JSON, once it ended.
    pub record: Option<String>,
}

/// An API key, without its secret.
#[derive(Clone, Debug)]
pub struct Key {
    /// Its id, the owner of what it makes.
    pub id: String,
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
    /// Stores a new message, and its conversation if that is new. Its log may be written from this call on, before it is
    /// waited for.
    ///
    /// # Errors
    /// The database failed.
    pub fn insert_message(
        &self,
        row: &MessageRow,
    ) -> impl Future<Output = Result<(), StoreError>> + Send + use<> {
        fail::point("message.before");
        let written = self.writer.message(row.clone());
        async {
            written.await?;
            fail::point("message.after");
            Ok(())
        }
    }

    /// The message of that id.
    ///
    /// # Errors
    /// The database failed.
    pub async fn message(&self, id: &str) -> Result<Option<MessageRow>, StoreError> {
        let query = sqlx::query_as("select * from messages where id = ?").bind(id);
        Ok(query.fetch_optional(&self.pool).await?)
    }

    /// Messages that were running when the server stopped.
    ///
    /// # Errors
    /// The database failed.
    pub async fn running(&self) -> Result<Vec<MessageRow>, StoreError> {
        let query = sqlx::query_as("select * from messages where status = 'running' order by created");
        Ok(query.fetch_all(&self.pool).await?)
    }

    /// Messages of a conversation, oldest first.
    ///
    /// # Errors
    /// The database failed.
    pub async fn messages_of(&self, conversation: &str) -> Result<Vec<MessageRow>, StoreError> {
        let query = sqlx::query_as("select * from messages where conversation_id = ? order by created, id");
        Ok(query.bind(conversation).fetch_all(&self.pool).await?)
    }

    /// Stores what came of a message. Doing it again changes nothing.
    ///
    /// # Errors
    /// The database failed.
    pub async fn finish_message(&self, id: &str, status: &str, record: &Value) -> Result<(), StoreError> {
        fail::point("record.before");
        self.writer.record(id, status, record.to_string()).await?;
        fail::point("record.after");
        Ok(())
    }

    /// Makes a conversation.
    ///
    /// # Errors
    /// The database failed.
    pub async fn insert_conversation(&self, id: &str, owner: &str, created: &str) -> Result<(), StoreError> {
        fail::point("conversation.before");
        let query = sqlx::query("insert into conversations (id, owner, created) values (?, ?, ?)");
        query.bind(id).bind(owner).bind(created).execute(&self.pool).await?;
        fail::point("conversation.after");
        Ok(())
    }

    /// Owner and time of a conversation.
    ///
    /// # Errors
    /// The database failed.
    pub async fn conversation(&self, id: &str) -> Result<Option<(String, String)>, StoreError> {
        let query = sqlx::query_as("select owner, created from conversations where id = ?").bind(id);
        Ok(query.fetch_optional(&self.pool).await?)
    }

    /// The conversations of an owner, newest first: id and time.
    ///
    /// # Errors
    /// The database failed.
    pub async fn conversations(&self, owner: &str, most: u32) -> Result<Vec<(String, String)>, StoreError> {
        let query = sqlx::query_as(
            "select id, created from conversations where owner = ? order by created desc limit ?",
        );
        Ok(query.bind(owner).bind(most).fetch_all(&self.pool).await?)
    }

    /// All settings that were changed.
    ///
    /// # Errors
    /// The database failed.
    pub async fn settings(&self) -> Result<Vec<(String, String)>, StoreError> {
        Ok(sqlx::query_as("select name, value from settings").fetch_all(&self.pool).await?)
    }

    /// Changes settings, all or none; values are JSON.
    ///
    /// # Errors
    /// The database failed.
    pub async fn set(&self, changes: &[(String, Value)]) -> Result<(), StoreError> {
        fail::point("settings.before");
        let mut transaction = self.pool.begin().await?;
        for (name, value) in changes {
            let query = sqlx::query(
                "insert into settings (name, value) values (?, ?) on conflict (name) do update set value = excluded.value",
            );
            query.bind(name).bind(value.to_string()).execute(&mut *transaction).await?;
            fail::point("settings.amid");
        }
        transaction.commit().await?;
        fail::point("settings.after");
        Ok(())
    }

    /// All keys.
    ///
    /// # Errors
    /// The database failed.
    pub async fn keys(&self) -> Result<Vec<Key>, StoreError> {
        Ok(sqlx::query_as("select * from keys order by created").fetch_all(&self.pool).await?)
    }

    /// Stores a key.
    ///
    /// # Errors
    /// The database failed.
    pub async fn insert_key(&self, key: &Key) -> Result<(), StoreError> {
        let query = sqlx::query("insert into keys (id, name, hash, admin, created) values (?, ?, ?, ?, ?)");
        let query = query.bind(&key.id).bind(&key.name).bind(&key.hash).bind(key.admin).bind(&key.created);
        fail::point("key.before");
        query.execute(&self.pool).await?;
        fail::point("key.after");
        Ok(())
    }

    /// Removes a key; whether there was one.
    ///
    /// # Errors
    /// The database failed.
    pub async fn delete_key(&self, id: &str) -> Result<bool, StoreError> {
        let done = sqlx::query("delete from keys where id = ?").bind(id).execute(&self.pool).await?;
        Ok(done.rows_affected() > 0)
    }
}

impl FromRow<'_, SqliteRow> for MessageRow {
    fn from_row(row: &SqliteRow) -> sqlx::Result<MessageRow> {
        Ok(MessageRow {
            id: row.try_get("id")?,
            conversation_id: row.try_get("conversation_id")?,
            request_id: row.try_get("request_id")?,
            owner: row.try_get("owner")?,
            created: row.try_get("created")?,
            status: row.try_get("status")?,
            request: row.try_get("request")?,
            record: row.try_get("record")?,
        })
    }
}

impl FromRow<'_, SqliteRow> for Key {
    fn from_row(row: &SqliteRow) -> sqlx::Result<Key> {
        Ok(Key {
            id: row.try_get("id")?,
            name: row.try_get("name")?,
            hash: row.try_get("hash")?,
            admin: row.try_get("admin")?,
            created: row.try_get("created")?,
        })
    }
}
