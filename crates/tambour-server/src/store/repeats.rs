//! Answers to requests that may come again, kept for a day.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::StoreError;

/// A request with a key, and its answer.
#[derive(Clone, Debug)]
pub struct Repeat {
    /// Route and body.
    pub request: String,
    /// Status of the answer; [`Repeat::TAKEN`] while there is none.
    pub status: u16,
    /// Its body.
    pub answer: String,
    /// The turn whose answer it is; absent in those of versions that did not say.
    pub turn: Option<String>,
}

impl Repeat {
    /// The request has been taken, and has no answer yet.
    pub const TAKEN: u16 = 0;
}

/// An input of a dialogue that is taken once, whatever becomes of the server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Once {
    /// Whose it is.
    pub owner: String,
    /// The client's word for it.
    pub repeat: String,
    /// Route and body.
    pub request: String,
    /// When it came.
    pub created: String,
    /// What came before is forgotten.
    pub since: String,
    /// The turn in which it is taken.
    pub turn: String,
}

/// Repeats of a store.
#[async_trait]
pub trait Repeats: Send + Sync {
    /// The answer to a request with this key, made after `since`.
    ///
    /// # Errors
    /// The database failed.
    async fn repeat(&self, owner: &str, repeat: &str, since: &str) -> Result<Option<Repeat>, StoreError>;
}
