//! Responses to dialogue requests that a client may repeat, kept for a day.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::StoreError;

/// Request with an idempotency key, and its response.
#[derive(Clone, Debug)]
pub struct InputResponse {
    /// Route and body of the request.
    pub request: String,
    /// Status of the response; [`InputResponse::NO_RESPONSE`] while there is none.
    pub status: u16,
    /// Body of the response.
    pub body: String,
    /// Id of the turn that it answers; absent in those of older versions.
    pub turn: Option<String>,
}

impl InputResponse {
    /// Status of a request that was accepted and has no response yet.
    pub const NO_RESPONSE: u16 = 0;
}

/// Dialogue input that is processed once, even across a restart.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct InputClaim {
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
pub trait InputResponses: Send + Sync {
    /// Returns the response to a request with this key, created at or after `since`.
    ///
    /// # Errors
    /// The database failed.
    async fn input_response(
        &self,
        owner: &str,
        repeat: &str,
        since: &str,
    ) -> Result<Option<InputResponse>, StoreError>;
}
