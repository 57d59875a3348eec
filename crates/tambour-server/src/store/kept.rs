//! Answers that are kept for who sends the same request again.

use async_trait::async_trait;

use super::StoreError;

/// The answer of a request that made something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// SHA-256 of the request's body.
    pub digest: Vec<u8>,
    /// Status of the answer.
    pub status: u16,
    /// Its `Location`.
    pub location: Option<String>,
    /// Its body, JSON.
    pub body: Vec<u8>,
    /// Ids that it names; with one of those things it goes.
    pub names: Vec<String>,
}

/// Whose request it was, and which.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sent {
    /// Whose it was.
    pub owner: String,
    /// Method and path.
    pub route: String,
    /// The client's own word for it.
    pub word: String,
}

/// Answers of a store.
#[async_trait]
pub trait Answers: Send + Sync {
    /// Keeps the answer of a request, in the place of one that is too old to be given.
    ///
    /// # Errors
    /// The database failed.
    async fn keep(&self, sent: &Sent, kept: &Kept, now: &str) -> Result<(), StoreError>;

    /// The answer of a request, if one has been kept since an RFC 3339 time.
    ///
    /// # Errors
    /// The database failed.
    async fn kept(&self, sent: &Sent, since: &str) -> Result<Option<Kept>, StoreError>;

    /// Deletes the answers kept before an RFC 3339 time; whether there were some.
    ///
    /// # Errors
    /// The database failed.
    async fn forget(&self, before: &str) -> Result<bool, StoreError>;
}
