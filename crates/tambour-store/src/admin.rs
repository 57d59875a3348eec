//! Settings, API keys and usage.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::StoreError;

/// API key without its secret.
#[derive(Clone, Debug)]
pub struct KeyRow {
    /// Id of the key.
    pub id: String,
    /// Owner of everything created with it.
    pub owner: String,
    /// Display name.
    pub name: String,
    /// SHA-256 of the secret.
    pub hash: Vec<u8>,
    /// Right to change settings and keys.
    pub admin: bool,
    /// RFC 3339 time.
    pub created: String,
    /// Limits, as JSON; unlimited if absent.
    pub limits: Option<String>,
}

/// Usage of one key on one day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageRow {
    /// The day, in UTC.
    pub day: String,
    /// Id of the key.
    pub key: String,
    /// Name of the key at that time.
    pub name: String,
    /// Owner of the key.
    pub owner: String,
    /// Number of messages and turns of dialogues.
    pub requests: i64,
    /// Tokens of prompts.
    pub input_tokens: i64,
    /// Tokens of replies.
    pub output_tokens: i64,
}

/// Storage of settings, keys and usage.
#[async_trait]
pub trait Admin: Send + Sync {
    /// Returns all changed settings.
    ///
    /// # Errors
    /// The database failed.
    async fn settings(&self) -> Result<Vec<(String, String)>, StoreError>;

    /// Changes settings, all or none; values are JSON.
    ///
    /// # Errors
    /// The database failed.
    async fn put_settings(&self, changes: &[(String, Value)]) -> Result<(), StoreError>;

    /// Returns all keys.
    ///
    /// # Errors
    /// The database failed.
    async fn keys(&self) -> Result<Vec<KeyRow>, StoreError>;

    /// Inserts a key.
    ///
    /// # Errors
    /// The database failed.
    async fn insert_key(&self, key: &KeyRow) -> Result<(), StoreError>;

    /// Updates name and limits of a key.
    ///
    /// # Errors
    /// The database failed.
    async fn change_key(&self, key: &KeyRow) -> Result<(), StoreError>;

    /// Adds to the usage of a key on a day.
    ///
    /// # Errors
    /// The database failed.
    async fn add_usage(&self, usage: &UsageRow) -> Result<(), StoreError>;

    /// Lists usage, latest day first and by key within a day: of one owner or of all, from one day to another
    /// (inclusive), after a day and key.
    ///
    /// # Errors
    /// The database failed.
    async fn usage(
        &self,
        owner: Option<&str>,
        days: (&str, &str),
        after: Option<(&str, &str)>,
        limit: u32,
    ) -> Result<Vec<UsageRow>, StoreError>;

    /// Transfers everything from one owner to another.
    ///
    /// # Errors
    /// The database failed.
    async fn hand_over(&self, from: &str, to: &str) -> Result<(), StoreError>;

    /// Deletes a key; returns `false` if there was none.
    ///
    /// # Errors
    /// The database failed.
    async fn delete_key(&self, id: &str) -> Result<bool, StoreError>;
}
