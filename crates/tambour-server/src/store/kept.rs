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

/// Result of [`Answers::claim_answer`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// It is the caller's to carry out, until [`Answers::release`].
    Taken,
    /// It was carried out, and answered like this.
    Answered(Kept),
    /// It is being carried out.
    UnderWay,
}

/// Answers of a store.
#[async_trait]
pub trait Answers: Send + Sync {
    /// Takes a request to carry it out, in one step: of all who ask for the same at once, one has it, and once it is answered,
    /// since an RFC 3339 time, nobody has it again.
    ///
    /// # Errors
    /// The database failed; it is not taken.
    async fn claim_answer(&self, sent: &Sent, since: &str) -> Result<Claim, StoreError>;

    /// Keeps the answer of a request that was taken, in the place of one that is too old to be given.
    ///
    /// # Errors
    /// The database failed; the request is still taken.
    async fn keep(&self, sent: &Sent, kept: &Kept, now: &str) -> Result<(), StoreError>;

    /// Lets go of a request that was taken: it may be carried out again, unless its answer was kept.
    fn release(&self, sent: &Sent);

    /// Deletes the answers kept before an RFC 3339 time; whether there were some.
    ///
    /// # Errors
    /// The database failed.
    async fn forget(&self, before: &str) -> Result<bool, StoreError>;
}
