//! Registered tools.

use async_trait::async_trait;

use super::StoreError;

/// Stored tool.
#[derive(Clone)]
pub struct ToolRow {
    /// Owner of the tool.
    pub owner: String,
    /// Name, unique per owner.
    pub name: String,
    /// RFC 3339 time of creation.
    pub created: String,
    /// RFC 3339 time of the last change.
    pub changed: String,
    /// Definition of the tool without its secret, as JSON.
    pub definition: String,
    /// Secret that signs requests to its webhook.
    pub secret: Option<String>,
}

/// Storage of tools.
#[async_trait]
pub trait Tools: Send + Sync {
    /// Lists the tools of an owner by name.
    ///
    /// # Errors
    /// The database failed.
    async fn tools(&self, owner: &str) -> Result<Vec<ToolRow>, StoreError>;

    /// Returns one tool of an owner.
    ///
    /// # Errors
    /// The database failed.
    async fn tool(&self, owner: &str, name: &str) -> Result<Option<ToolRow>, StoreError>;

    /// Stores a tool. An existing tool of the same name is replaced, but its creation time is kept. Returns
    /// `false` if the owner already has `max_tools` other tools.
    ///
    /// # Errors
    /// The database failed.
    async fn put_tool(&self, row: &ToolRow, max_tools: u32) -> Result<bool, StoreError>;

    /// Deletes a tool; returns `false` if there was none.
    ///
    /// # Errors
    /// The database failed.
    async fn delete_tool(&self, owner: &str, name: &str) -> Result<bool, StoreError>;
}
