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

    /// Returns the conversation with that id.
    ///
    /// # Errors
    /// The database failed.
    async fn conversation(&self, id: &str) -> Result<Option<ConversationRow>, StoreError>;

    /// Updates title and metadata of a stored conversation.
    ///
    /// # Errors
    /// The database failed.
    async fn change_conversation(&self, row: &ConversationRow) -> Result<(), StoreError>;

    /// Lists the conversations of an owner older than the one with id `after`, newest first, at most `limit`.
    ///
    /// # Errors
    /// The database failed.
    async fn conversations(
        &self,
        owner: &str,
        after: Option<&str>,
        limit: u32,
    ) -> Result<RowPage<ConversationRow>, StoreError>;

    /// Returns the timed lore state of a conversation's earlier turns, as JSON.
    ///
    /// # Errors
    /// The database failed.
    async fn lore(&self, conversation: &str) -> Result<Option<String>, StoreError>;

    /// Replaces the timed lore state, if the conversation exists.
    ///
    /// # Errors
    /// The database failed.
    async fn put_lore(&self, conversation: &str, timed_effects: &str) -> Result<(), StoreError>;
}
