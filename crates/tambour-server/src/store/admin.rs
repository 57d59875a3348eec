//! Settings and keys.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::StoreError;

/// An API key, without its secret.
#[derive(Clone, Debug)]
pub struct Key {
    /// Its id.
    pub id: String,
    /// Whose everything is that is made with it.
    pub owner: String,
    /// Its name.
    pub name: String,
    /// SHA-256 of the secret.
    pub hash: Vec<u8>,
    /// Whether it may change settings and keys.
    pub admin: bool,
    /// RFC 3339 time.
    pub created: String,
    /// What it may do, as JSON; all where it is absent.
    pub limits: Option<String>,
}

/// What was asked with one key on one day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// The day, in UTC.
    pub day: String,
    /// Id of the key, and its name.
    pub key: String,
    /// Its name then.
    pub name: String,
    /// Whose it is.
    pub owner: String,
    /// Messages and turns of dialogues.
    pub requests: i64,
    /// Tokens of prompts.
    pub input_tokens: i64,
    /// Tokens of replies.
    pub output_tokens: i64,
}

/// Admin of a store.
#[async_trait]
pub trait Admin: Send + Sync {
    /// All settings that were changed.
    ///
    /// # Errors
    /// The database failed.
    async fn settings(&self) -> Result<Vec<(String, String)>, StoreError>;

    /// Changes settings, all or none; values are JSON.
    ///
    /// # Errors
    /// The database failed.
    async fn set(&self, changes: &[(String, Value)]) -> Result<(), StoreError>;

    /// All keys.
    ///
    /// # Errors
    /// The database failed.
    async fn keys(&self) -> Result<Vec<Key>, StoreError>;

    /// Stores a key.
    ///
    /// # Errors
    /// The database failed.
    async fn insert_key(&self, key: &Key) -> Result<(), StoreError>;

    /// Changes name and limits of a key that is stored.
    ///
    /// # Errors
    /// The database failed.
    async fn change_key(&self, key: &Key) -> Result<(), StoreError>;

    /// Adds to what was asked with a key on a day.
    ///
    /// # Errors
    /// The database failed.
    async fn add_usage(&self, more: &Usage) -> Result<(), StoreError>;

    /// What was asked, the last day first and of a day by key: of one owner, or of all; from one day to another, both included; behind
    /// a day and key.
    ///
    /// # Errors
    /// The database failed.
    async fn usage(
        &self,
        owner: Option<&str>,
        from_to: (&str, &str),
        after: Option<(&str, &str)>,
        limit: u32,
    ) -> Result<Vec<Usage>, StoreError>;

    /// Makes everything of one owner another one's.
    ///
    /// # Errors
    /// The database failed.
    async fn hand_over(&self, from: &str, to: &str) -> Result<(), StoreError>;

    /// Removes a key; whether there was one.
    ///
    /// # Errors
    /// The database failed.
    async fn delete_key(&self, id: &str) -> Result<bool, StoreError>;
}
