//! Dialogues in the database: the state of each, and the record of each call of a model.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::{Once, Page, Retention, StoreError};

/// A dialogue as it is stored.
#[derive(Clone, Debug)]
pub struct DialogueRow {
    /// Its id.
    pub id: String,
    /// Whose it is.
    pub owner: String,
    /// RFC 3339 time.
    pub created: String,
    /// RFC 3339 time of its last step.
    pub changed: String,
    /// The script it runs.
    pub script_id: String,
    /// The version of it.
    pub version: u32,
    /// The text of that version.
    pub script: String,
    /// Where it stands, as a word.
    pub status: String,
    /// The state of the machine, as JSON.
    pub state: String,
}

/// Dialogue as a turn leaves it: stored with the end of the turn, in one step.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Progress {
    /// Status of the dialogue, as a word.
    pub status: String,
    /// The state of the machine, as JSON.
    pub state: String,
    /// RFC 3339 time.
    pub changed: String,
    /// The answer to an input that is taken once.
    pub once: Option<(Once, String)>,
}

/// Dialogues of a store.
#[async_trait]
pub trait Dialogues: Send + Sync {
    /// Makes a dialogue.
    ///
    /// # Errors
    /// The database failed.
    async fn insert_dialogue(&self, row: &DialogueRow) -> Result<(), StoreError>;

    /// The dialogue of that id.
    ///
    /// # Errors
    /// The database failed.
    async fn dialogue(&self, id: &str) -> Result<Option<DialogueRow>, StoreError>;

    /// The dialogues of an owner older than the one called `after`, newest first, at most `limit`.
    ///
    /// # Errors
    /// The database failed.
    async fn dialogues(
        &self,
        owner: &str,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Page<DialogueRow>, StoreError>;

    /// Stores a dialogue that took an input, and of one that is taken once that it was. An earlier input of the dialogue that was taken
    /// and has no answer is forgotten: another has taken its place, and it is a new one when it comes again. All or nothing.
    ///
    /// # Errors
    /// The database failed.
    async fn take_input(&self, row: &DialogueRow, once: Option<&Once>) -> Result<(), StoreError>;

    /// Stores what a step came to: the state, and the record of a call of the model if it was one. All or nothing.
    ///
    /// # Errors
    /// The database failed.
    async fn step_dialogue(&self, row: &DialogueRow, record: Option<&str>) -> Result<(), StoreError>;

    /// Records of calls of a dialogue behind `after`, oldest first, with their numbers, at most `limit`.
    ///
    /// # Errors
    /// The database failed.
    async fn rounds(&self, id: &str, after: i64, limit: u32) -> Result<Vec<(i64, String)>, StoreError>;

    /// Deletes a dialogue with its records and turns, and the answers to its inputs that were kept for the same input again. A turn
    /// that begins meanwhile is refused, and one that still runs is fenced.
    ///
    /// # Errors
    /// The database failed.
    async fn delete_dialogue(&self, id: &str) -> Result<(), StoreError>;

    /// Dialogues whose time is over, oldest first: those without a step since `before`, and the oldest of an owner whose dialogues
    /// have more bytes than that together.
    ///
    /// # Errors
    /// The database failed.
    async fn expired_dialogues(&self, retention: Retention<'_>) -> Result<Vec<String>, StoreError>;
}
