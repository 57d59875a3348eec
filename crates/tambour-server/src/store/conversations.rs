//! Conversations: messages in order, with a title and what else a client keeps with them.

use async_trait::async_trait;

use super::{Page, StoreError};

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

/// Conversations of a store.
#[async_trait]
pub trait Conversations: Send + Sync {
    /// Makes a conversation.
    ///
    /// # Errors
    /// The database failed.
    async fn insert_conversation(&self, row: &ConversationRow) -> Result<(), StoreError>;

    /// The conversation of that id.
    ///
    /// # Errors
    /// The database failed.
    async fn conversation(&self, id: &str) -> Result<Option<ConversationRow>, StoreError>;

    /// Changes title and metadata of a conversation that is stored.
    ///
    /// # Errors
    /// The database failed.
    async fn change_conversation(&self, row: &ConversationRow) -> Result<(), StoreError>;

    /// The conversations of an owner older than the one called `after`, newest first, at most `limit`.
    ///
    /// # Errors
    /// The database failed.
    async fn conversations(
        &self,
        owner: &str,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Page<ConversationRow>, StoreError>;

    /// What entries did in earlier turns of a conversation: JSON.
    ///
    /// # Errors
    /// The database failed.
    async fn lore(&self, conversation: &str) -> Result<Option<String>, StoreError>;

    /// Keeps it in the place of what was there, while there is the conversation.
    ///
    /// # Errors
    /// The database failed.
    async fn keep_lore(&self, conversation: &str, timed: &str) -> Result<(), StoreError>;
}
