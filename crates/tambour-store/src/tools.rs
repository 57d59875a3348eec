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
    /// RFC 3339 time.
    pub created: String,
    /// RFC 3339 time of the last change.
    pub changed: String,
    /// Definition without the secret, as JSON.
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

    /// Stores a tool, replacing one of the same name but not its creation time. Returns `false` if the owner
    /// already has `max` others.
    ///
    /// # Errors
    /// The database failed.
    async fn put_tool(&self, row: &ToolRow, max: u32) -> Result<bool, StoreError>;

    /// Deletes a tool; returns `false` if there was none.
    ///
    /// # Errors
    /// The database failed.
    async fn delete_tool(&self, owner: &str, name: &str) -> Result<bool, StoreError>;
}
