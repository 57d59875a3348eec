//! Responses to dialogue requests that a client may repeat, kept for a day.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::StoreError;

/// Request with an idempotency key, and its response.
#[derive(Clone, Debug)]
pub struct Repeat {
    /// Route and body of the request.
    pub request: String,
    /// Status of the response; [`Repeat::TAKEN`] while there is none.
    pub status: u16,
    /// Body of the response.
    pub answer: String,
    /// Id of the turn that it answers; absent in those of older versions.
    pub turn: Option<String>,
}

impl Repeat {
    /// Status of a request that was accepted and has no response yet.
    pub const TAKEN: u16 = 0;
}

/// Dialogue input that is processed once, even across a restart.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Once {
    /// Owner of the dialogue.
    pub owner: String,
    /// Idempotency key of the client.
    pub repeat: String,
    /// Route and body of the request.
    pub request: String,
    /// RFC 3339 time of the request.
    pub created: String,
    /// RFC 3339 time before which entries are forgotten.
    pub since: String,
    /// Id of the turn that processes it.
    pub turn: String,
}

/// Storage of repeatable requests.
#[async_trait]
pub trait Repeats: Send + Sync {
    /// Returns the response to a request with this key, created at or after `since`.
    ///
    /// # Errors
    /// The database failed.
    async fn repeat(&self, owner: &str, repeat: &str, since: &str) -> Result<Option<Repeat>, StoreError>;
}
