//! Responses kept for clients that repeat a request with the same idempotency key.

use async_trait::async_trait;

use super::StoreError;

/// Response to a request that created something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// SHA-256 of the request's body.
    pub digest: Vec<u8>,
    /// Status of the response.
    pub status: u16,
    /// `Location` header of the response.
    pub location: Option<String>,
    /// Body of the response, JSON.
    pub body: Vec<u8>,
    /// Ids in the response; deleting one of them deletes it too.
    pub names: Vec<String>,
}

/// Identity of a request with an idempotency key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sent {
    /// Owner of the request.
    pub owner: String,
    /// Method and path.
    pub route: String,
    /// Idempotency key of the client.
    pub word: String,
}

/// Result of [`Answers::claim_answer`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// Claimed: the caller processes the request, until [`Answers::release`].
    Taken,
    /// Processed before, with this response.
    Answered(Kept),
    /// Being processed by another caller.
    UnderWay,
}

/// Storage of responses.
#[async_trait]
pub trait Answers: Send + Sync {
    /// Claims a request atomically: of several concurrent callers one gets it, and after a response since the
    /// RFC 3339 time `since` none.
    ///
    /// # Errors
    /// The database failed; the request is not claimed.
    async fn claim_answer(&self, sent: &Sent, since: &str) -> Result<Claim, StoreError>;

    /// Stores the response of a claimed request, replacing an expired one.
    ///
    /// # Errors
    /// The database failed; the request stays claimed.
    async fn keep(&self, sent: &Sent, kept: &Kept, now: &str) -> Result<(), StoreError>;

    /// Releases a claimed request: it may be processed again unless its response was stored.
    fn release(&self, sent: &Sent);

    /// Deletes the responses stored before an RFC 3339 time; returns `true` if there were any.
    ///
    /// # Errors
    /// The database failed.
    async fn forget(&self, before: &str) -> Result<bool, StoreError>;
}
