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
    /// RFC 3339 time of creation.
    pub created: String,
    /// RFC 3339 time of its last step.
    pub changed: String,
    /// Id of its script.
    pub script_id: String,
    /// Version of the script.
    pub version: u32,
    /// Name of the script's session that the dialogue runs.
    pub session: String,
    /// Text of that version of the script.
    pub script: String,
    /// Name of the status; the store does not interpret it.
    pub status: String,
    /// State of the dialogue machine, as JSON.
    pub state: String,
    /// Origin, as JSON: start, variables, and the dialogue and turn that it was forked from.
    pub origin: String,
}

/// Dialogue as a turn leaves it, stored atomically with the end of the turn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DialogueProgress {
    /// Name of the dialogue's status.
    pub status: String,
    /// State of the dialogue machine, as JSON.
    pub state: String,
    /// RFC 3339 time of the change.
    pub changed: String,
    /// Changes to the records of calls and turns that are not stored yet, in order.
    #[serde(default)]
    pub records: Vec<RecordChange>,
    /// Claim of the turn's input, with the body of its response; absent if the input has no idempotency key.
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

/// Change to the records of a dialogue's model calls and turns. Records are JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum RecordChange {
    /// Adds a call record: of a model call that begins, or of a step without a call.
    New(String),
    /// Replaces the last call record, since its call is over.
    Over(String),
    /// Adds a turn record, since a turn begins: its input, and the state before it.
    Turn(String),
    /// Replaces the last turn record, since its turn is over.
    TurnOver(String),
    /// Adds figures of calls that are over. They stay when the dialogue is deleted.
    Figures(Vec<Figures>),
}

/// Prefix of requests that are inputs of a dialogue, as in [`InputClaim`].
pub(crate) fn input_prefix(dialogue: &str) -> String {
    format!("POST dialogues/{dialogue}/input ")
}

/// Statement that inserts a record into a table, unless its dialogue was deleted.
macro_rules! insert_statement {
    ($table:literal) => {
        concat!(
            "insert into ",
            $table,
            " (dialogue_id, record) select $1, $2 where exists (select 1 from dialogues where id = $1)"
        )
    };
}

/// Statement that replaces the last record of a dialogue in a table.
macro_rules! update_statement {
    ($table:literal) => {
        concat!(
            "update ",
            $table,
            " set record = $2 where number = (select max(number) from ",
            $table,
            " where dialogue_id = $1)"
        )
    };
}

impl RecordChange {
    /// Returns the statement that writes the record of a call or turn, and the record; `None` for figures. The
    /// statement's parameters are the id of the dialogue and the record. A deleted dialogue gets no record.
    pub(crate) fn record_statement(&self) -> Option<(&'static str, &str)> {
        match self {
            RecordChange::New(record) => Some((insert_statement!("rounds"), record)),
            RecordChange::Over(record) => Some((update_statement!("rounds"), record)),
            RecordChange::Turn(record) => Some((insert_statement!("dialogue_turns"), record)),
            RecordChange::TurnOver(record) => Some((update_statement!("dialogue_turns"), record)),
            RecordChange::Figures(_) => None,
        }
    }
}

/// Storage of dialogues.
#[async_trait]
pub trait Dialogues: Send + Sync {
    /// Inserts a dialogue.
    ///
    /// # Errors
    /// The database failed.
    async fn insert_dialogue(&self, row: &DialogueRow) -> Result<(), StoreError>;

    /// Inserts a dialogue with copies of the turn records of dialogue `from` that have a number below
    /// `before`, and of the call records of these turns. All or nothing.
    ///
    /// # Errors
    /// The database failed.
    async fn fork_dialogue(&self, row: &DialogueRow, from: &str, before: i64) -> Result<(), StoreError>;

    /// Returns the dialogue with that id.
    ///
    /// # Errors
    /// The database failed.
    async fn dialogue(&self, id: &str) -> Result<Option<DialogueRow>, StoreError>;

    /// Lists the dialogues of an owner that match the filter, newest first, at most `limit`. With `after`
    /// only those that are older than the dialogue with that id.
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

    /// Stores a dialogue that has taken an input, with the record of its turn and, if the input has an
    /// idempotency key, its claim. An earlier input of the dialogue without a response is superseded: it is
    /// forgotten, so a client that repeats it sends a new input. All or nothing.
    ///
    /// # Errors
    /// The database failed, or this server has lost the access of [`Cluster::conversation_lock`](crate::Cluster).
    async fn take_input(
        &self,
        row: &DialogueRow,
        claim: Option<&InputClaim>,
        records: &[RecordChange],
    ) -> Result<(), StoreError>;

    /// Stores state, status and time of a dialogue after a step, with changes to its records. All or nothing.
    ///
    /// # Errors
    /// The database failed, or this server has lost the access of [`Cluster::conversation_lock`](crate::Cluster).
    async fn step_dialogue(&self, row: &DialogueRow, records: &[RecordChange]) -> Result<(), StoreError>;

    /// Lists call records of a dialogue with a number above `after`, with their numbers, oldest first, at
    /// most `limit`.
    ///
    /// # Errors
    /// The database failed.
    async fn call_records(&self, id: &str, after: i64, limit: u32) -> Result<Vec<(i64, String)>, StoreError>;

    /// Lists turn records of a dialogue with a number above `after`, with their numbers, oldest first, at
    /// most `limit`.
    ///
    /// # Errors
    /// The database failed.
    async fn dialogue_turns(
        &self,
        id: &str,
        after: i64,
        limit: u32,
    ) -> Result<Vec<(i64, String)>, StoreError>;

    /// Deletes a dialogue with its records, turns and stored responses. Meanwhile new turns are refused and
    /// running ones are fenced.
    ///
    /// # Errors
    /// The database failed.
    async fn delete_dialogue(&self, id: &str) -> Result<(), StoreError>;

    /// Lists expired dialogues, oldest first: those that are too old and, only if there are none, those
    /// beyond the limit of bytes.
    ///
    /// # Errors
    /// The database failed.
    async fn expired_dialogues(&self, retention: Retention<'_>) -> Result<Vec<String>, StoreError>;
}
