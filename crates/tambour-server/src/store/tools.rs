//! Tools in the database.

use async_trait::async_trait;

use super::StoreError;

/// A registered tool as it is stored.
#[derive(Clone)]
pub struct ToolRow {
    /// Key whose it is.
    pub owner: String,
    /// Unique among those of its owner.
    pub name: String,
    /// RFC 3339 time.
    pub created: String,
    /// RFC 3339 time of the last change.
    pub changed: String,
    /// What was given for it, as JSON, without the secret.
    pub definition: String,
    /// Signs what its webhook is sent.
    pub secret: Option<String>,
}

/// Tools of a store.
#[async_trait]
pub trait Tools: Send + Sync {
    /// The tools of an owner, by name.
    ///
    /// # Errors
    /// The database failed.
    async fn tools(&self, owner: &str) -> Result<Vec<ToolRow>, StoreError>;

    /// One tool of an owner.
    ///
    /// # Errors
    /// The database failed.
    async fn tool(&self, owner: &str, name: &str) -> Result<Option<ToolRow>, StoreError>;

    /// Stores a tool in the place of one of its name; the time it was first made is kept. False when its owner has `most` others
    /// already.
    ///
    /// # Errors
    /// The database failed.
    async fn put_tool(&self, row: &ToolRow, most: u32) -> Result<bool, StoreError>;

    /// Removes a tool; whether there was one.
    ///
    /// # Errors
    /// The database failed.
    async fn delete_tool(&self, owner: &str, name: &str) -> Result<bool, StoreError>;
}
