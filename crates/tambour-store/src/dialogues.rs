//! Dialogues: their state, and records of turns and model calls.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::{Figures, InputClaim, Retention, RowPage, StoreError};

/// Stored dialogue.
#[derive(Clone, Debug)]
pub struct DialogueRow {
    /// Id of the dialogue.
    pub id: String,
    /// Owner of the dialogue.
    pub owner: String,
    /// RFC 3339 time.
    pub created: String,
    /// RFC 3339 time of its last step.
    pub changed: String,
    /// Id of its script.
    pub script_id: String,
    /// Version of the script.
    pub version: u32,
    /// Name of its session.
    pub session: String,
    /// Text of that version.
    pub script: String,
    /// Status, as a word.
    pub status: String,
    /// State of the machine, as JSON.
    pub state: String,
    /// Origin, as JSON: start, variables, and the dialogue and turn that it was forked from.
    pub origin: String,
}

/// Dialogue as a turn leaves it, stored atomically with the end of the turn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DialogueProgress {
    /// Status of the dialogue, as a word.
    pub status: String,
    /// State of the machine, as JSON.
    pub state: String,
    /// RFC 3339 time.
    pub changed: String,
    /// Records of calls not stored yet, in order.
    #[serde(default)]
    pub records: Vec<CallRecord>,
    /// Response to an input that is processed once.
    pub once: Option<(InputClaim, String)>,
}

/// Filter of listed dialogues; absent fields match all.
#[derive(Clone, Copy, Debug, Default)]
pub struct DialogueFilter<'a> {
    /// Id of the script.
    pub script_id: Option<&'a str>,
    /// Name of the session.
    pub session: Option<&'a str>,
    /// Status of the dialogue.
    pub status: Option<&'a str>,
}

/// Record of a model call or of a turn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum CallRecord {
    /// New record: of a call that begins, or of a step without a call.
    New(String),
    /// Replaces the last call record, whose call is over.
    Over(String),
    /// A turn that begins: its input, and the state before it.
    Turn(String),
    /// Replaces the last turn record, whose turn is over.
    TurnOver(String),
    /// Addition to the figures, of calls that are over. It stays when the dialogue is deleted.
    Figures(Vec<Figures>),
}

/// Storage of dialogues.
#[async_trait]
pub trait Dialogues: Send + Sync {
    /// Inserts a dialogue.
    ///
    /// # Errors
    /// The database failed.
    async fn insert_dialogue(&self, row: &DialogueRow) -> Result<(), StoreError>;

    /// Inserts a dialogue with copies of another one's turn records before a number, and of their call
    /// records. All or nothing.
    ///
    /// # Errors
    /// The database failed.
    async fn fork_dialogue(&self, row: &DialogueRow, from: &str, before: i64) -> Result<(), StoreError>;

    /// Returns the dialogue with that id.
    ///
    /// # Errors
    /// The database failed.
    async fn dialogue(&self, id: &str) -> Result<Option<DialogueRow>, StoreError>;

    /// Lists the dialogues of an owner older than the one with id `after`, newest first, at most `limit`.
    ///
    /// # Errors
    /// The database failed.
    async fn dialogues(
        &self,
        owner: &str,
        filter: DialogueFilter<'_>,
        after: Option<&str>,
        limit: u32,
    ) -> Result<RowPage<DialogueRow>, StoreError>;

    /// Stores a dialogue that took an input, with the record of its turn, and the claim of an input that is
    /// processed once. An earlier input of the dialogue without a response is forgotten: it was superseded
    /// and counts as new when repeated. All or nothing.
    ///
    /// # Errors
    /// The database failed.
    async fn take_input(
        &self,
        row: &DialogueRow,
        claim: Option<&InputClaim>,
        records: &[CallRecord],
    ) -> Result<(), StoreError>;

    /// Stores the state after a step, with records of model calls. All or nothing.
    ///
    /// # Errors
    /// The database failed.
    async fn step_dialogue(&self, row: &DialogueRow, records: &[CallRecord]) -> Result<(), StoreError>;

    /// Lists call records of a dialogue after `after` with their numbers, oldest first, at most `limit`.
    ///
    /// # Errors
    /// The database failed.
    async fn rounds(&self, id: &str, after: i64, limit: u32) -> Result<Vec<(i64, String)>, StoreError>;

    /// Lists turn records of a dialogue after `after` with their numbers, oldest first, at most `limit`.
    ///
    /// # Errors
    /// The database failed.
    async fn dialogue_turns(
        &self,
        id: &str,
        after: i64,
        limit: u32,
    ) -> Result<Vec<(i64, String)>, StoreError>;

    /// Deletes a dialogue with its records, turns and stored responses. New turns are refused and running
    /// ones are fenced.
    ///
    /// # Errors
    /// The database failed.
    async fn delete_dialogue(&self, id: &str) -> Result<(), StoreError>;

    /// Lists expired dialogues, oldest first: those without a step since `before`, and the oldest ones of an
    /// owner beyond `bytes`.
    ///
    /// # Errors
    /// The database failed.
    async fn expired_dialogues(&self, retention: Retention<'_>) -> Result<Vec<String>, StoreError>;
}
