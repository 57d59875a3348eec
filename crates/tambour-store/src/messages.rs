//! Messages: their rows and outcomes.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::{DialogueProgress, Figures, StoreError, StoredUpdate, UsageRow};

/// Kind of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunKind {
    /// Message of a conversation.
    #[default]
    Message,
    /// Turn of a dialogue, whose id takes the place of the conversation's.
    Turn,
}

impl RunKind {
    fn is_message(&self) -> bool {
        *self == RunKind::Message
    }
}

/// Stored message, or turn of a dialogue.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct MessageRow {
    /// Number in the order of all messages; assigned by the store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<i64>,
    /// Id of the message.
    pub id: String,
    /// Id of its conversation or dialogue.
    pub conversation_id: String,
    /// Id of the HTTP request that created it.
    pub request_id: String,
    /// Owner of the message.
    pub owner: String,
    /// RFC 3339 time of creation.
    pub created: String,
    /// `running`, `completed`, `failed`, `cancelled`, or `superseded` by a message that replaced it or an
    /// earlier one.
    pub status: String,
    /// The request, as JSON.
    pub request: String,
    /// Kind of the run.
    #[serde(default, skip_serializing_if = "RunKind::is_message")]
    pub kind: RunKind,
    /// Idempotency key of the client (`Idempotency-Key`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<String>,
    /// Id of the server that runs it; absent in messages of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Epoch of that server when the message began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<i64>,
    /// Outcome, once it has ended.
    #[serde(skip)]
    pub outcome: Option<MessageOutcome>,
}

/// Outcome of an ended message, derived from its log.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct MessageOutcome {
    /// Bytes stored for the message.
    pub size: u64,
    /// History messages that it adds to its conversation, as JSON.
    pub turn: Option<String>,
    /// Record without the details, as JSON.
    pub summary: String,
    /// Prompt, events and findings, as JSON; not read for listings.
    pub details: Option<String>,
    /// Updates of the conversation's state; set only on the way to the database.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub updates: Vec<StoredUpdate>,
    /// Usage to add to its key; set only on the way to the database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<UsageRow>,
    /// Figures to add to its upstreams; set only on the way to the database.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<Figures>,
    /// Dialogue as the turn leaves it; set only on the way to the database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Box<DialogueProgress>>,
}

/// History that a message adds to its conversation.
#[derive(Clone, Debug)]
pub struct TurnHistory {
    /// Id of the message.
    pub id: String,
    /// Status of the message.
    pub status: String,
    /// Stored form.
    pub history: Option<String>,
    /// Request and summary to rebuild it from, where it was not stored.
    pub source: Option<(String, Option<String>)>,
}

/// One page of rows.
#[derive(Clone, Debug)]
pub struct RowPage<T> {
    /// Rows in order.
    pub rows: Vec<T>,
    /// True if more rows follow.
    pub has_more: bool,
}

impl<T> RowPage<T> {
    /// Makes a page of the first `limit` rows; one beyond them shows that more follow.
    #[must_use]
    pub fn from_rows(mut rows: Vec<T>, limit: u32) -> RowPage<T> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let has_more = rows.len() > limit;
        rows.truncate(limit);
        RowPage { rows, has_more }
    }
}

impl TurnHistory {
    /// Returns the bytes read for it.
    pub(super) fn size(&self) -> usize {
        let turn = self.history.as_ref().map_or(0, String::len);
        let made_from = self
            .source
            .iter()
            .map(|(request, summary)| request.len() + summary.as_ref().map_or(0, String::len));
        turn + made_from.sum::<usize>()
    }
}

/// Storage of messages.
#[async_trait]
pub trait Messages: Send + Sync {
    /// Returns the message or turn with that id.
    ///
    /// # Errors
    /// The database failed.
    async fn message(&self, id: &str) -> Result<Option<MessageRow>, StoreError>;

    /// Returns the newest message of an owner with this idempotency key, created since an RFC 3339 time.
    ///
    /// # Errors
    /// The database failed.
    async fn message_by_key(
        &self,
        owner: &str,
        repeat: &str,
        since: &str,
    ) -> Result<Option<MessageRow>, StoreError>;

    /// Lists messages of a conversation with a number above `after`, oldest first, without their details: at
    /// most `limit`, and about `bytes`, but at least one.
    ///
    /// # Errors
    /// The database failed.
    async fn conversation_messages(
        &self,
        conversation: &str,
        after: i64,
        limit: u32,
        bytes: usize,
    ) -> Result<RowPage<MessageRow>, StoreError>;

    /// Returns the history of the messages before one in its conversation, newest first: about `bytes`, but
    /// at least one.
    ///
    /// # Errors
    /// The database failed.
    async fn history_before(
        &self,
        message: &MessageRow,
        bytes: usize,
    ) -> Result<Vec<TurnHistory>, StoreError>;

    /// Returns the history of one message.
    ///
    /// # Errors
    /// The database failed.
    async fn turn_history(&self, id: &str) -> Result<Option<TurnHistory>, StoreError>;
}
