//! Rows of conversations.

use async_trait::async_trait;

use super::SqliteStore;
use crate::fail;
use crate::{ConversationRow, Conversations, RowPage, StoreError};

#[async_trait]
impl Conversations for SqliteStore {
    async fn insert_conversation(&self, row: &ConversationRow) -> Result<(), StoreError> {
        fail::point("conversation.before");
        let query = sqlx::query(
            "insert into conversations (id, owner, created, title, metadata) values (?, ?, ?, ?, ?)",
        );
        let query = query.bind(&row.id).bind(&row.owner).bind(&row.created).bind(&row.title);
        query.bind(&row.metadata).execute(self.pool()).await?;
        fail::point("conversation.after");
        Ok(())
    }

    async fn conversation(&self, id: &str) -> Result<Option<ConversationRow>, StoreError> {
        const SELECT: &str = "select * from conversations where id = ?";
        let stored_row = sqlx::query_as(SELECT).bind(id).fetch_optional(self.pool()).await?;
        if let Some(row) = stored_row.or_else(|| self.shared.pending.conversation(id)) {
            return Ok(Some(row));
        }
        // The row may have moved from memory to the database between the two lookups.
        Ok(sqlx::query_as(SELECT).bind(id).fetch_optional(self.pool()).await?)
    }

    async fn change_conversation(&self, row: &ConversationRow) -> Result<(), StoreError> {
        self.wait_caught_up().await?;
        let query = sqlx::query("update conversations set title = ?, metadata = ? where id = ?");
        query.bind(&row.title).bind(&row.metadata).bind(&row.id).execute(self.pool()).await?;
        Ok(())
    }

    async fn conversations(
        &self,
        owner: &str,
        after: Option<&str>,
        limit: u32,
    ) -> Result<RowPage<ConversationRow>, StoreError> {
        self.wait_caught_up().await?;
        // `1 << 62` is above every number: without `after` the list begins with the newest conversation.
        let query = sqlx::query_as(
            "select * from conversations where owner = ?1 \
             and number < coalesce((select number from conversations where id = ?2 and owner = ?1), 1 << 62) \
             order by number desc limit ?3",
        );
        // The additional row, if there is one, shows that more follow.
        let max_rows = i64::from(limit) + 1;
        let rows: Vec<ConversationRow> =
            query.bind(owner).bind(after).bind(max_rows).fetch_all(self.pool()).await?;
        Ok(RowPage::from_rows(rows, limit))
    }

    async fn timed_effects(&self, conversation: &str) -> Result<Option<String>, StoreError> {
        let query = sqlx::query_scalar("select timed from lore where conversation_id = ?").bind(conversation);
        Ok(query.fetch_optional(self.pool()).await?)
    }

    async fn put_timed_effects(&self, conversation: &str, timed_effects: &str) -> Result<(), StoreError> {
        // The conversation may be on the journal only.
        self.wait_caught_up().await?;
        fail::point("lore.before");
        let query = sqlx::query(
            "insert into lore (conversation_id, timed) select id, ?2 from conversations where id = ?1 \
             on conflict (conversation_id) do update set timed = excluded.timed",
        );
        query.bind(conversation).bind(timed_effects).execute(self.pool()).await?;
        fail::point("lore.after");
        Ok(())
    }
}
