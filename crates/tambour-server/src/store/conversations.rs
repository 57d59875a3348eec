//! Conversations: messages in order, with a title and what else a client keeps with them.

use sqlx::sqlite::SqliteRow;
use sqlx::{FromRow, Row};

use super::{Page, Store, StoreError};
use crate::fail;

/// A conversation as it is stored.
#[derive(Clone, Debug, Default)]
pub struct ConversationRow {
    /// Its id.
    pub id: String,
    /// Whose it is.
    pub owner: String,
    /// RFC 3339 time.
    pub created: String,
    /// A name for people.
    pub title: Option<String>,
    /// A JSON object.
    pub metadata: Option<String>,
}

impl Store {
    /// Makes a conversation.
    ///
    /// # Errors
    /// The database failed.
    pub async fn insert_conversation(&self, row: &ConversationRow) -> Result<(), StoreError> {
        fail::point("conversation.before");
        let query = sqlx::query(
            "insert into conversations (id, owner, created, title, metadata) values (?, ?, ?, ?, ?)",
        );
        let query = query.bind(&row.id).bind(&row.owner).bind(&row.created).bind(&row.title);
        query.bind(&row.metadata).execute(self.pool()).await?;
        fail::point("conversation.after");
        Ok(())
    }

    /// The conversation of that id.
    ///
    /// # Errors
    /// The database failed.
    pub async fn conversation(&self, id: &str) -> Result<Option<ConversationRow>, StoreError> {
        let query = sqlx::query_as("select * from conversations where id = ?").bind(id);
        let stored = query.fetch_optional(self.pool()).await?;
        Ok(stored.or_else(|| self.shared.pending.conversation(id)))
    }

    /// Changes title and metadata of a conversation that is stored.
    ///
    /// # Errors
    /// The database failed.
    pub async fn change_conversation(&self, row: &ConversationRow) -> Result<(), StoreError> {
        self.caught_up().await?;
        let query = sqlx::query("update conversations set title = ?, metadata = ? where id = ?");
        query.bind(&row.title).bind(&row.metadata).bind(&row.id).execute(self.pool()).await?;
        Ok(())
    }

    /// The conversations of an owner older than the one called `after`, newest first, at most `limit`.
    ///
    /// # Errors
    /// The database failed.
    pub async fn conversations(
        &self,
        owner: &str,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Page<ConversationRow>, StoreError> {
        self.caught_up().await?;
        let query = sqlx::query_as(
            "select * from conversations where owner = ?1 \
             and number < coalesce((select number from conversations where id = ?2 and owner = ?1), 1 << 62) \
             order by number desc limit ?3",
        );
        let most = i64::from(limit) + 1;
        let mut rows: Vec<ConversationRow> =
            query.bind(owner).bind(after).bind(most).fetch_all(self.pool()).await?;
        let more = rows.len() > usize::try_from(limit).unwrap_or(usize::MAX);
        if more {
            rows.pop();
        }
        Ok(Page { rows, more })
    }
}

impl FromRow<'_, SqliteRow> for ConversationRow {
    fn from_row(row: &SqliteRow) -> sqlx::Result<ConversationRow> {
        Ok(ConversationRow {
            id: row.try_get("id")?,
            owner: row.try_get("owner")?,
            created: row.try_get("created")?,
            title: row.try_get("title")?,
            metadata: row.try_get("metadata")?,
        })
    }
}
