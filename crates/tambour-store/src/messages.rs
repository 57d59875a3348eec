//! Messages: their rows and outcomes.

use async_trait::async_trait;
use futures_util::{Stream, TryStreamExt};
use serde::{Deserialize, Serialize};

use super::{DialogueProgress, Figures, StoreError, StoredUpdate, UsageRow};

/// Kind of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunKind {
    /// Message of a conversation.
    #[default]
    Message,
    /// Turn of a dialogue; the id of the dialogue takes the place of the conversation's.
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
    /// `running`, `completed`, `failed`, `cancelled`, or `superseded`: a later message replaced this one or
    /// one before it.
    pub status: String,
    /// The request, as JSON.
    pub request: String,
    /// Kind of the run.
    #[serde(default, skip_serializing_if = "RunKind::is_message")]
    pub kind: RunKind,
    /// Idempotency key that the client sent (`Idempotency-Key`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<String>,
    /// Id of the server that runs it; absent in messages of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Epoch of that server when the message began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<i64>,
    /// Outcome, once the message has ended.
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
    /// Record of the message without its details, as JSON.
    pub summary: String,
    /// Details of the record (prompt, events and findings), as JSON; not read for listings.
    pub details: Option<String>,
    /// Updates of the conversation's state; set only on the way to the database.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub updates: Vec<StoredUpdate>,
    /// Usage to add to the totals of its API key; set only on the way to the database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<UsageRow>,
    /// Figures to add to the totals of its upstreams; set only on the way to the database.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<Figures>,
    /// For a turn, the dialogue as the turn leaves it; set only on the way to the database.
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
    /// History messages as stored, JSON; `None` if they were not stored.
    pub history: Option<String>,
    /// Request and summary (JSON) to rebuild the history from, if it was not stored.
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
    /// Makes a page of the first `limit` rows. The query should request one row more than that, whose
    /// presence shows that more rows follow.
    #[must_use]
    pub fn from_rows(mut rows: Vec<T>, limit: u32) -> RowPage<T> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let has_more = rows.len() > limit;
        rows.truncate(limit);
        RowPage { rows, has_more }
    }
}

impl MessageRow {
    /// Reads a page of rows: at most `limit` rows and about `bytes` bytes, but at least one row. The query
    /// should request one row more than `limit`, whose presence shows that more rows follow.
    pub(super) async fn read_page<E>(
        mut rows: impl Stream<Item = Result<MessageRow, E>> + Unpin,
        limit: u32,
        bytes: usize,
    ) -> Result<RowPage<MessageRow>, E> {
        let (mut page, mut bytes_read) = (RowPage { rows: Vec::new(), has_more: false }, 0);
        while let Some(row) = rows.try_next().await? {
            let is_full = page.rows.len() == usize::try_from(limit).unwrap_or(usize::MAX);
            bytes_read += row.request.len() + row.outcome.as_ref().map_or(0, |outcome| outcome.summary.len());
            if is_full || (bytes_read > bytes && !page.rows.is_empty()) {
                page.has_more = true;
                break;
            }
            page.rows.push(row);
        }
        Ok(page)
    }
}

impl TurnHistory {
    /// Reads about `bytes` bytes of rows, but at least one row.
    pub(super) async fn read_within<E>(
        mut rows: impl Stream<Item = Result<TurnHistory, E>> + Unpin,
        bytes: usize,
    ) -> Result<Vec<TurnHistory>, E> {
        let (mut turns, mut bytes_read) = (Vec::new(), 0);
        while let Some(turn) = rows.try_next().await? {
            bytes_read += turn.size();
            if bytes_read > bytes && !turns.is_empty() {
                break;
            }
            turns.push(turn);
        }
        Ok(turns)
    }

    /// Returns the number of bytes read for this history.
    pub(super) fn size(&self) -> usize {
        let history_bytes = self.history.as_ref().map_or(0, String::len);
        let source_bytes = self
            .source
            .as_ref()
            .map_or(0, |(request, summary)| request.len() + summary.as_ref().map_or(0, String::len));
        history_bytes + source_bytes
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

    /// Returns the newest message of an owner with this idempotency key, created after the RFC 3339 time
    /// `since`.
    ///
    /// # Errors
    /// The database failed.
    async fn message_by_key(
        &self,
        owner: &str,
        idempotency_key: &str,
        since: &str,
    ) -> Result<Option<MessageRow>, StoreError>;

    /// Lists messages of a conversation with a number above `after`, oldest first, without their details: at
    /// most `limit` messages and about `bytes` bytes, but at least one message.
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

    /// Returns the history of the messages before `message` in its conversation, newest first, without
    /// superseded ones: about `bytes` bytes, but at least one message.
    ///
    /// # Errors
    /// The database failed.
    async fn history_before(
        &self,
        message: &MessageRow,
        bytes: usize,
    ) -> Result<Vec<TurnHistory>, StoreError>;

    /// Returns the history of the message with that id.
    ///
    /// # Errors
    /// The database failed.
    async fn turn_history(&self, id: &str) -> Result<Option<TurnHistory>, StoreError>;
}
