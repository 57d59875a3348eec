//! Everything in the database but the logs.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::sqlite::SqliteRow;
use sqlx::{FromRow, Row, SqliteConnection};

use super::commit::{begin, end};
use super::journal::Record;
use super::writer::Work;
use super::{Store, StoreError};
use crate::fail;

/// A message as it is stored.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
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
    /// Accepts a new message, and its conversation if that is new. Its log may be written from this call on. What it gives is
    /// ready when the message would survive what the journal is to survive.
    ///
    /// # Errors
    /// The journal cannot be written, or the database could not be a moment ago.
    pub fn insert_message(
        &self,
        row: &MessageRow,
    ) -> Result<impl Future<Output = Result<(), StoreError>> + Send + use<>, StoreError> {
        self.available()?;
        let synced = self.append(&Record::Message(row), |file| {
            self.shared.pending.put(row.clone());
            let told = self.writer.tell(Work::Message(row.id.clone()));
            told.map(|()| self.shared.journal.syncer.as_ref().map(|syncer| syncer.wait(file)))
        })??;
        Ok(async {
            match synced {
                Some(synced) => synced.await.map_err(|_| StoreError::Closed),
                None => Ok(()),
            }
        })
    }

    /// The message of that id.
    ///
    /// # Errors
    /// The database failed.
    pub async fn message(&self, id: &str) -> Result<Option<MessageRow>, StoreError> {
        if let Some(row) = self.shared.pending.row(id) {
            return Ok(Some(MessageRow::clone(&row)));
        }
        let query = sqlx::query_as(
            "select messages.*, records.body as record from messages \
             left join records on records.message_id = id where id = ?",
        );
        Ok(query.bind(id).fetch_optional(self.pool()).await?)
    }

    /// Messages that were running when the server stopped.
    ///
    /// # Errors
    /// The database failed.
    pub async fn running(&self) -> Result<Vec<MessageRow>, StoreError> {
        let query =
            sqlx::query_as("select *, null as record from messages where status = 'running' order by number");
        Ok(query.fetch_all(self.pool()).await?)
    }

    /// Messages of a conversation, oldest first.
    ///
    /// # Errors
    /// The database failed.
    pub async fn messages_of(&self, conversation: &str) -> Result<Vec<MessageRow>, StoreError> {
        self.caught_up().await?;
        let query = sqlx::query_as(
            "select messages.*, records.body as record from messages \
             left join records on records.message_id = id where conversation_id = ? order by number",
        );
        Ok(query.bind(conversation).fetch_all(self.pool()).await?)
    }

    /// Keeps what came of a message. The database gets it later; it can be made again from the log.
    ///
    /// # Errors
    /// The store is closed.
    pub fn finish_message(&self, row: &MessageRow, status: &str, record: &Value) -> Result<(), StoreError> {
        fail::point("record.before");
        let row = MessageRow { status: status.to_owned(), record: Some(record.to_string()), ..row.clone() };
        let id = row.id.clone();
        self.shared.pending.put(row);
        self.writer.tell(Work::Record(id))
    }

    /// Makes a conversation.
    ///
    /// # Errors
    /// The database failed.
    pub async fn insert_conversation(&self, id: &str, owner: &str, created: &str) -> Result<(), StoreError> {
        fail::point("conversation.before");
        let query = sqlx::query("insert into conversations (id, owner, created) values (?, ?, ?)");
        query.bind(id).bind(owner).bind(created).execute(self.pool()).await?;
        fail::point("conversation.after");
        Ok(())
    }

    /// Owner and time of a conversation.
    ///
    /// # Errors
    /// The database failed.
    pub async fn conversation(&self, id: &str) -> Result<Option<(String, String)>, StoreError> {
        if let Some(known) = self.shared.pending.conversation(id) {
            return Ok(Some(known));
        }
        let query = sqlx::query_as("select owner, created from conversations where id = ?").bind(id);
        Ok(query.fetch_optional(self.pool()).await?)
    }

    /// The conversations of an owner, newest first: id and time.
    ///
    /// # Errors
    /// The database failed.
    pub async fn conversations(&self, owner: &str, most: u32) -> Result<Vec<(String, String)>, StoreError> {
        self.caught_up().await?;
        let query = sqlx::query_as(
            "select id, created from conversations where owner = ? order by created desc limit ?",
        );
        Ok(query.bind(owner).bind(most).fetch_all(self.pool()).await?)
    }

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
        let query = sqlx::query("insert into keys (id, name, hash, admin, created) values (?, ?, ?, ?, ?)");
        let query = query.bind(&key.id).bind(&key.name).bind(&key.hash).bind(key.admin).bind(&key.created);
        fail::point("key.before");
        query.execute(self.pool()).await?;
        fail::point("key.after");
        Ok(())
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
