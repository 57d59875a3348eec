//! What world info did in earlier turns of conversations.

use super::{Store, StoreError};
use crate::fail;

impl Store {
    /// What entries did in earlier turns of a conversation: JSON.
    ///
    /// # Errors
    /// The database failed.
    pub async fn lore(&self, conversation: &str) -> Result<Option<String>, StoreError> {
        let query = sqlx::query_scalar("select timed from lore where conversation_id = ?").bind(conversation);
        Ok(query.fetch_optional(self.pool()).await?)
    }

    /// Keeps it in the place of what was there, while there is the conversation.
    ///
    /// # Errors
    /// The database failed.
    pub async fn keep_lore(&self, conversation: &str, timed: &str) -> Result<(), StoreError> {
        // The conversation may be in the journal alone.
        self.caught_up().await?;
        fail::point("lore.before");
        let query = sqlx::query(
            "insert into lore (conversation_id, timed) select id, ?2 from conversations where id = ?1 \
             on conflict (conversation_id) do update set timed = excluded.timed",
        );
        query.bind(conversation).bind(timed).execute(self.pool()).await?;
        fail::point("lore.after");
        Ok(())
    }
}
