//! Responses kept for clients that repeat a request with the same idempotency key.

use async_trait::async_trait;

use super::StoreError;

/// Response to a request that created something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredResponse {
    /// SHA-256 of the request's body.
    pub digest: Vec<u8>,
    /// HTTP status of the response.
    pub status: u16,
    /// `Location` header of the response.
    pub location: Option<String>,
    /// Body of the response, JSON.
    pub body: Vec<u8>,
    /// Ids of things that the response names; empty in a response that was read. Deleting one of these things
    /// deletes the response, too.
    pub named_ids: Vec<String>,
}

/// Identity of a request with an idempotency key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RequestKey {
    /// Owner of the request.
    pub owner: String,
    /// Method and path of the request.
    pub route: String,
    /// Idempotency key of the client.
    pub idempotency_key: String,
}

/// Result of [`Responses::claim_request`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestClaim {
    /// Claimed: the caller processes the request, until [`Responses::release_request`].
    Claimed,
    /// Processed before, with this response.
    Responded(StoredResponse),
    /// Being processed by another caller.
    InProgress,
}

/// Storage of responses.
#[async_trait]
pub trait Responses: Send + Sync {
    /// Claims a request atomically: of several concurrent callers one gets it. No caller gets it if a
    /// response was stored after the RFC 3339 time `since`.
    ///
    /// # Errors
    /// The database failed; the request is not claimed.
    async fn claim_request(&self, request_key: &RequestKey, since: &str) -> Result<RequestClaim, StoreError>;

    /// Stores the response of a claimed request, replacing an expired one. `now` is its RFC 3339 time.
    ///
    /// # Errors
    /// The database failed; the request stays claimed.
    async fn store_response(
        &self,
        request_key: &RequestKey,
        response: &StoredResponse,
        now: &str,
    ) -> Result<(), StoreError>;

    /// Releases a claimed request: it may be processed again unless its response was stored.
    fn release_request(&self, request_key: &RequestKey);

    /// Deletes the responses stored at or before an RFC 3339 time; returns `true` if there were any.
    ///
    /// # Errors
    /// The database failed.
    async fn delete_responses(&self, before: &str) -> Result<bool, StoreError>;
}
