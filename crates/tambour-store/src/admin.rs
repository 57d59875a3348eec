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
    /// Owner of everything created with the key.
    pub owner: String,
    /// Display name.
    pub name: String,
    /// SHA-256 of the secret.
    pub hash: Vec<u8>,
    /// True if the key has the right to change settings and keys.
    pub is_admin: bool,
    /// RFC 3339 time of creation.
    pub created: String,
    /// Limits of the key, as JSON; unlimited if absent.
    pub limits: Option<String>,
}

/// Usage of one key on one day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageRow {
    /// The day in UTC, such as `2026-01-31`.
    pub day: String,
    /// Id of the key.
    pub key: String,
    /// Name of the key when the usage was last added to.
    pub name: String,
    /// Owner of the key at that time.
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
    /// Returns all settings that were changed, by name; values are JSON.
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

    /// Lists usage of one owner or of all, from the first of `days` to the second (inclusive), latest day
    /// first and by key within a day, at most `limit` rows. With `after` only rows that follow that day and
    /// key.
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

    /// Transfers everything that owner `from` has to owner `to`, except for things whose name, id or
    /// idempotency key `to` already uses.
    ///
    /// # Errors
    /// The database failed.
    async fn hand_over(&self, from: &str, to: &str) -> Result<(), StoreError>;

    /// Deletes a key; returns `false` if there was no such key.
    ///
    /// # Errors
    /// The database failed.
    async fn delete_key(&self, id: &str) -> Result<bool, StoreError>;
}
