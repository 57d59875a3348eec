//! Messages: their rows, and what came of them.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::{Figures, Progress, StoreError, Update, Usage};

/// Kinds of runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunKind {
    /// A message of a conversation.
    #[default]
    Message,
    /// A turn of a dialogue, whose id stands in the place of that of a conversation.
    Turn,
}

impl RunKind {
    fn is_message(&self) -> bool {
        *self == RunKind::Message
    }
}

/// A message as it is stored, or a turn of a dialogue.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct MessageRow {
    /// Its place in the order of all messages; given by the store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<i64>,
    /// Its id.
    pub id: String,
    /// Conversation it belongs to.
    pub conversation_id: String,
    /// The request that made it.
    pub request_id: String,
    /// Whose it is.
    pub owner: String,
    /// RFC 3339 time.
    pub created: String,
    /// `running`, `completed`, `failed`, `cancelled`, or `superseded` by one that was made in its place or before it.
    pub status: String,
    /// What was asked for, as JSON.
    pub request: String,
    /// Message or turn.
    #[serde(default, skip_serializing_if = "RunKind::is_message")]
    pub kind: RunKind,
    /// The client's own word for the request (`Idempotency-Key`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<String>,
    /// The server that runs it; absent in messages of versions that did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// At which of its starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<i64>,
    /// What came of it, once it ended.
    #[serde(skip)]
    pub outcome: Option<Outcome>,
}

/// What came of a message that has ended, made from its log.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Outcome {
    /// Bytes of all that is kept of the message.
    pub size: u64,
    /// What the message adds to its conversation, as JSON.
    pub turn: Option<String>,
    /// The record, without what is in the details, as JSON.
    pub summary: String,
    /// Events and findings, as JSON; not read for a listing.
    pub details: Option<String>,
    /// What it applied to the state of its conversation; only on the way to the database.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub updates: Vec<Update>,
    /// What it adds to the usage of its key; only on the way to the database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Addition to the figures of its upstreams; only on the way to the database.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<Figures>,
    /// Dialogue as a turn leaves it; only on the way to the database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Box<Progress>>,
}

/// What a message adds to its conversation.
#[derive(Clone, Debug)]
pub struct Turn {
    /// The message.
    pub id: String,
    /// How it ended.
    pub status: String,
    /// As it was kept.
    pub turn: Option<String>,
    /// What it can be made from where it was not: request and summary.
    pub made_from: Option<(String, Option<String>)>,
}

/// Rows of one page, and whether there are more.
#[derive(Clone, Debug)]
pub struct Page<T> {
    /// In order.
    pub rows: Vec<T>,
    /// Whether more follow.
    pub more: bool,
}

impl Turn {
    /// Bytes that were read for it.
    pub(super) fn size(&self) -> usize {
        let turn = self.turn.as_ref().map_or(0, String::len);
        let made_from = self
            .made_from
            .iter()
            .map(|(request, summary)| request.len() + summary.as_ref().map_or(0, String::len));
        turn + made_from.sum::<usize>()
    }
}

/// Messages of a store.
#[async_trait]
pub trait Messages: Send + Sync {
    /// The message or turn of that id.
    ///
    /// # Errors
    /// The database failed.
    async fn message(&self, id: &str) -> Result<Option<MessageRow>, StoreError>;

    /// The newest message of an owner that was asked for with the same word, since an RFC 3339 time.
    ///
    /// # Errors
    /// The database failed.
    async fn repeated(
        &self,
        owner: &str,
        repeat: &str,
        since: &str,
    ) -> Result<Option<MessageRow>, StoreError>;

    /// Messages of a conversation with a number above `after`, oldest first, without their details: `limit` of them, and no
    /// more than about `bytes`, but for one.
    ///
    /// # Errors
    /// The database failed.
    async fn messages_of(
        &self,
        conversation: &str,
        after: i64,
        limit: u32,
        bytes: usize,
    ) -> Result<Page<MessageRow>, StoreError>;

    /// What the messages before one add to its conversation, newest first: about as many bytes as `bytes`, but for one.
    ///
    /// # Errors
    /// The database failed.
    async fn turns_before(&self, message: &MessageRow, bytes: usize) -> Result<Vec<Turn>, StoreError>;

    /// What one message adds to its conversation, if it is there.
    ///
    /// # Errors
    /// The database failed.
    async fn turn(&self, id: &str) -> Result<Option<Turn>, StoreError>;
}
