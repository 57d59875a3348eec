//! Dialogues in the database: the state of each, and the record of each call of a model.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::{Figures, Once, Page, Retention, StoreError};

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
    /// The session of it, by its name.
    pub session: String,
    /// The text of that version.
    pub script: String,
    /// Where it stands, as a word.
    pub status: String,
    /// The state of the machine, as JSON.
    pub state: String,
    /// Beginning, as JSON: start, variables, and the dialogue and turn that it was forked from.
    pub origin: String,
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
    /// Records of calls that are not stored yet, in their order.
    #[serde(default)]
    pub records: Vec<CallRecord>,
    /// The answer to an input that is taken once.
    pub once: Option<(Once, String)>,
}

/// Choice of the dialogues that are listed; all where nothing is said.
#[derive(Clone, Copy, Debug, Default)]
pub struct DialogueFilter<'a> {
    /// Those that run this script.
    pub script_id: Option<&'a str>,
    /// Those that run a session of this name.
    pub session: Option<&'a str>,
    /// Those that stand there.
    pub status: Option<&'a str>,
}

/// Record of a call of a model, or of a turn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum CallRecord {
    /// A new one: of a call that begins, or of what took no call.
    New(String),
    /// In the place of the last one, whose call is over.
    Over(String),
    /// A turn that begins: its input, and the state before it.
    Turn(String),
    /// In the place of the last turn, which is over.
    TurnOver(String),
    /// Addition to the figures, of calls that are over. It stays when the dialogue is deleted.
    Figures(Vec<Figures>),
}

/// Dialogues of a store.
#[async_trait]
pub trait Dialogues: Send + Sync {
    /// Makes a dialogue.
    ///
    /// # Errors
    /// The database failed.
    async fn insert_dialogue(&self, row: &DialogueRow) -> Result<(), StoreError>;

    /// Makes a dialogue with the records of the turns of another one that stand before a number, and of their calls. All or
    /// nothing.
    ///
    /// # Errors
    /// The database failed.
    async fn fork_dialogue(&self, row: &DialogueRow, from: &str, before: i64) -> Result<(), StoreError>;

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
        filter: DialogueFilter<'_>,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Page<DialogueRow>, StoreError>;

    /// Stores a dialogue that took an input, with the record of its turn, and of one that is taken once that it was. An earlier input of the dialogue that was taken
    /// and has no answer is forgotten: another has taken its place, and it is a new one when it comes again. All or nothing.
    ///
    /// # Errors
    /// The database failed.
    async fn take_input(
        &self,
        row: &DialogueRow,
        once: Option<&Once>,
        records: &[CallRecord],
    ) -> Result<(), StoreError>;

    /// Stores what a step came to: the state, and records of calls of the model. All or nothing.
    ///
    /// # Errors
    /// The database failed.
    async fn step_dialogue(&self, row: &DialogueRow, records: &[CallRecord]) -> Result<(), StoreError>;

    /// Records of calls of a dialogue behind `after`, oldest first, with their numbers, at most `limit`.
    ///
    /// # Errors
    /// The database failed.
    async fn rounds(&self, id: &str, after: i64, limit: u32) -> Result<Vec<(i64, String)>, StoreError>;

    /// Records of turns of a dialogue behind `after`, oldest first, with their numbers, at most `limit`.
    ///
    /// # Errors
    /// The database failed.
    async fn dialogue_turns(
        &self,
        id: &str,
        after: i64,
        limit: u32,
    ) -> Result<Vec<(i64, String)>, StoreError>;

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
