//! Inputs of dialogues that a client may repeat with the same idempotency key, and their responses. They are
//! kept for a day.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::StoreError;

/// Input with an idempotency key, and its response.
#[derive(Clone, Debug)]
pub struct InputResponse {
    /// Route and body of the request.
    pub request: String,
    /// HTTP status of the response; [`InputResponse::NO_RESPONSE`] while there is none.
    pub status: u16,
    /// Body of the response.
    pub body: String,
    /// Id of the turn that processes the input; absent in rows of older versions.
    pub turn: Option<String>,
}

impl InputResponse {
    /// Status of an input that was accepted and has no response yet.
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
    /// RFC 3339 time; inputs requested before this time are forgotten when this input is stored.
    pub since: String,
    /// Id of the turn that processes the input.
    pub turn: String,
}

/// Storage of inputs with their responses.
#[async_trait]
pub trait InputResponses: Send + Sync {
    /// Returns the input of an owner with this idempotency key, requested at or after the RFC 3339 time
    /// `since`, and its response.
    ///
    /// # Errors
    /// The database failed.
    async fn input_response(
        &self,
        owner: &str,
        idempotency_key: &str,
        since: &str,
    ) -> Result<Option<InputResponse>, StoreError>;
}
