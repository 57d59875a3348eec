//! Conversations: messages in order, with a title and client metadata.

use async_trait::async_trait;

use super::{RowPage, StoreError};

/// Stored conversation.
#[derive(Clone, Debug, Default)]
pub struct ConversationRow {
    /// Id of the conversation.
    pub id: String,
    /// Owner of the conversation.
    pub owner: String,
    /// RFC 3339 time of creation.
    pub created: String,
    /// Title.
    pub title: Option<String>,
    /// Client metadata, a JSON object.
    pub metadata: Option<String>,
}

/// Storage of conversations.
#[async_trait]
pub trait Conversations: Send + Sync {
    /// Inserts a conversation.
    ///
    /// # Errors
    /// The database failed.
    async fn insert_conversation(&self, row: &ConversationRow) -> Result<(), StoreError>;

    /// Returns the conversation with that id, of any owner.
    ///
    /// # Errors
    /// The database failed.
    async fn conversation(&self, id: &str) -> Result<Option<ConversationRow>, StoreError>;

    /// Updates title and metadata of a conversation; does nothing if it does not exist.
    ///
    /// # Errors
    /// The database failed.
    async fn change_conversation(&self, row: &ConversationRow) -> Result<(), StoreError>;

    /// Lists the conversations of an owner, newest first, at most `limit`. With `after` only those that are
    /// older than the conversation with that id.
    ///
    /// # Errors
    /// The database failed.
    async fn conversations(
        &self,
        owner: &str,
        after: Option<&str>,
        limit: u32,
    ) -> Result<RowPage<ConversationRow>, StoreError>;

    /// Returns the timed effects of lore entries (periods in which an entry stays active or cannot become
    /// active) after the conversation's last turn, as JSON; `None` if none were stored.
    ///
    /// # Errors
    /// The database failed.
    async fn timed_effects(&self, conversation: &str) -> Result<Option<String>, StoreError>;

    /// Replaces the timed effects of lore entries, if the conversation exists.
    ///
    /// # Errors
    /// The database failed.
    async fn put_timed_effects(&self, conversation: &str, timed_effects: &str) -> Result<(), StoreError>;
}
