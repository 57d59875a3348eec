//! Rows of conversations.

use async_trait::async_trait;

use super::PostgresStore;
use crate::fail;
use crate::{ConversationRow, Conversations, RowPage, StoreError};

#[async_trait]
impl Conversations for PostgresStore {
    async fn insert_conversation(&self, row: &ConversationRow) -> Result<(), StoreError> {
        fail::point("conversation.before");
        let query = sqlx::query(
            "insert into conversations (id, owner, created, title, metadata) values ($1, $2, $3, $4, $5)",
        );
        let query = query.bind(&row.id).bind(&row.owner).bind(&row.created).bind(&row.title);
        query.bind(&row.metadata).execute(self.pool()).await?;
        fail::point("conversation.after");
        Ok(())
    }

    async fn conversation(&self, id: &str) -> Result<Option<ConversationRow>, StoreError> {
        let query = sqlx::query_as("select * from conversations where id = $1").bind(id);
        Ok(query.fetch_optional(self.pool()).await?)
    }

    async fn change_conversation(&self, row: &ConversationRow) -> Result<(), StoreError> {
        let query = sqlx::query("update conversations set title = $1, metadata = $2 where id = $3");
        query.bind(&row.title).bind(&row.metadata).bind(&row.id).execute(self.pool()).await?;
        Ok(())
    }

    async fn conversations(
        &self,
        owner: &str,
        after: Option<&str>,
        limit: u32,
    ) -> Result<RowPage<ConversationRow>, StoreError> {
        // Without `after` the list begins with the newest conversation.
        let query = sqlx::query_as(
            "select * from conversations where owner = $1 and number < coalesce( \
             (select number from conversations where id = $2 and owner = $1), 9223372036854775807) \
             order by number desc limit $3",
        );
        // The additional row, if there is one, shows that more follow.
        let max_rows = i64::from(limit) + 1;
        let rows: Vec<ConversationRow> =
            query.bind(owner).bind(after).bind(max_rows).fetch_all(self.pool()).await?;
        Ok(RowPage::from_rows(rows, limit))
    }

    async fn timed_effects(&self, conversation: &str) -> Result<Option<String>, StoreError> {
        let query =
            sqlx::query_scalar("select timed from lore where conversation_id = $1").bind(conversation);
        Ok(query.fetch_optional(self.pool()).await?)
    }

    async fn put_timed_effects(&self, conversation: &str, timed_effects: &str) -> Result<(), StoreError> {
        fail::point("lore.before");
        let query = sqlx::query(
            "insert into lore (conversation_id, timed) select id, $2 from conversations where id = $1 \
             on conflict (conversation_id) do update set timed = excluded.timed",
        );
        query.bind(conversation).bind(timed_effects).execute(self.pool()).await?;
        fail::point("lore.after");
        Ok(())
    }
}
