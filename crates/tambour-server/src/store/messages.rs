//! Messages: their rows, and what came of them.

use serde::{Deserialize, Serialize};
use sqlx::sqlite::SqliteRow;
use sqlx::{FromRow, Row};

use super::journal::Record;
use super::writer::Work;
use super::{Own, Store, StoreError, Update};
use crate::fail;

/// A message as it is stored.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct MessageRow {
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
#[derive(Clone, Debug, Default)]
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
    pub updates: Vec<Update>,
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

/// Reads a [`Turn`]: what it can be made from only where it was not kept.
macro_rules! turn {
    () => {
        "select id, status, turn, iif(turn is null, request, null) as request, \
         iif(turn is null, summary, null) as summary from messages left join records on message_id = id "
    };
}

impl Store {
    /// Accepts a new message, which this server runs, and its conversation if that is new. Its log may be written from this call on. What it gives is
    /// ready when the message would survive what the journal is to survive.
    ///
    /// # Errors
    /// The journal cannot be written, or the database could not be a moment ago.
    pub fn insert_message(
        &self,
        row: &MessageRow,
    ) -> Result<impl Future<Output = Result<(), StoreError>> + Send + use<>, StoreError> {
        self.available()?;
        let Own { server, epoch } = self.own();
        let row = MessageRow { server: Some(server.clone()), epoch: Some(*epoch), ..row.clone() };
        let synced = self.append(&Record::Message(&row), |file| {
            self.shared.pending.put(row.clone());
            let told = self.writer.tell(Work::Message(row.id.clone()));
            told.map(|()| self.shared.journal.syncer.as_ref().map(|syncer| syncer.wait(file)))
        })??;
        Ok(async {
            match synced {
                Some(synced) => synced.await.map_err(|_| StoreError::Closed),
                None => Ok(()),
            }
        })
    }

    /// The message of that id.
    ///
    /// # Errors
    /// The database failed.
    pub async fn message(&self, id: &str) -> Result<Option<MessageRow>, StoreError> {
        if let Some(row) = self.shared.pending.row(id) {
            return Ok(Some(MessageRow::clone(&row)));
        }
        let query = sqlx::query_as(
            "select messages.*, size, turn, summary, details from messages \
             left join records on message_id = id where id = ?",
        );
        Ok(query.bind(id).fetch_optional(self.pool()).await?)
    }

    /// The newest message of an owner that was asked for with the same word, since an RFC 3339 time.
    ///
    /// # Errors
    /// The database failed.
    pub async fn repeated(
        &self,
        owner: &str,
        repeat: &str,
        since: &str,
    ) -> Result<Option<MessageRow>, StoreError> {
        if let Some(row) = self.shared.pending.repeated(owner, repeat) {
            return Ok(Some(MessageRow::clone(&row)));
        }
        let query = sqlx::query_as(
            "select messages.*, size, turn, summary, details from messages \
             left join records on message_id = id \
             where owner = ? and repeat = ? and created > ? order by number desc limit 1",
        );
        Ok(query.bind(owner).bind(repeat).bind(since).fetch_optional(self.pool()).await?)
    }

    /// Messages that were running when this server stopped last: its own, and those of nobody. What another one runs is left
    /// to it.
    ///
    /// # Errors
    /// The database failed.
    pub async fn running(&self) -> Result<Vec<MessageRow>, StoreError> {
        let query = sqlx::query_as(
            "select *, null as size, null as turn, null as summary, null as details from messages \
             where status = 'running' and (server is null or (server = ? and epoch < ?)) order by number",
        );
        let Own { server, epoch } = self.own();
        Ok(query.bind(server).bind(epoch).fetch_all(self.pool()).await?)
    }

    /// Messages of a conversation behind the one called `after`, oldest first, without their details: `limit` of them, and no
    /// more than about `bytes`, but for one.
    ///
    /// # Errors
    /// The database failed.
    pub async fn messages_of(
        &self,
        conversation: &str,
        after: Option<&str>,
        limit: u32,
        bytes: usize,
    ) -> Result<Page<MessageRow>, StoreError> {
        use futures_util::TryStreamExt;
        self.caught_up().await?;
        let mut rows = sqlx::query_as::<_, MessageRow>(
            "select messages.*, size, turn, summary, null as details from messages \
             left join records on message_id = id where conversation_id = ?1 \
             and number > coalesce((select number from messages where id = ?2 and conversation_id = ?1), 0) \
             order by number limit ?3",
        )
        .bind(conversation)
        .bind(after)
        .bind(i64::from(limit) + 1)
        .fetch(self.pool());
        let (mut page, mut read) = (Page { rows: Vec::new(), more: false }, 0);
        while let Some(row) = rows.try_next().await? {
            let full = page.rows.len() == usize::try_from(limit).unwrap_or(usize::MAX);
            read += row.request.len() + row.outcome.as_ref().map_or(0, |outcome| outcome.summary.len());
            if full || (read > bytes && !page.rows.is_empty()) {
                page.more = true;
                break;
            }
            page.rows.push(row);
        }
        Ok(page)
    }

    /// What the messages before one add to its conversation, newest first: about as many bytes as `bytes`, but for one.
    ///
    /// # Errors
    /// The database failed.
    pub async fn turns_before(&self, message: &MessageRow, bytes: usize) -> Result<Vec<Turn>, StoreError> {
        use futures_util::TryStreamExt;
        self.caught_up().await?;
        let mut rows = sqlx::query_as::<_, Turn>(concat!(
            turn!(),
            "where conversation_id = ? and status <> 'superseded' \
             and number < (select number from messages where id = ?) order by number desc"
        ))
        .bind(&message.conversation_id)
        .bind(&message.id)
        .fetch(self.pool());
        let (mut turns, mut read) = (Vec::new(), 0);
        while let Some(turn) = rows.try_next().await? {
            read += turn.size();
            if read > bytes && !turns.is_empty() {
                break;
            }
            turns.push(turn);
        }
        Ok(turns)
    }

    /// What one message adds to its conversation, if it is there.
    ///
    /// # Errors
    /// The database failed.
    pub async fn turn(&self, id: &str) -> Result<Option<Turn>, StoreError> {
        self.caught_up().await?;
        let query = sqlx::query_as(concat!(turn!(), "where id = ?")).bind(id);
        Ok(query.fetch_optional(self.pool()).await?)
    }

    /// Keeps what came of a message. The database gets it later; it can be made again from the log.
    ///
    /// # Errors
    /// The store is closed.
    pub fn finish_message(&self, row: &MessageRow, status: &str, outcome: Outcome) -> Result<(), StoreError> {
        fail::point("record.before");
        let row = MessageRow { status: status.to_owned(), outcome: Some(outcome), ..row.clone() };
        let id = row.id.clone();
        self.shared.pending.put(row);
        self.writer.tell(Work::Record(id))
    }
}

impl FromRow<'_, SqliteRow> for MessageRow {
    fn from_row(row: &SqliteRow) -> sqlx::Result<MessageRow> {
        let summary: Option<String> = row.try_get("summary")?;
        let outcome = match summary {
            Some(summary) => Some(Outcome {
                size: row.try_get::<i64, _>("size")?.cast_unsigned(),
                turn: row.try_get("turn")?,
                summary,
                details: row.try_get("details")?,
                updates: Vec::new(),
            }),
            None => None,
        };
        Ok(MessageRow {
            id: row.try_get("id")?,
            conversation_id: row.try_get("conversation_id")?,
            request_id: row.try_get("request_id")?,
            owner: row.try_get("owner")?,
            created: row.try_get("created")?,
            status: row.try_get("status")?,
            request: row.try_get("request")?,
            repeat: row.try_get("repeat")?,
            server: row.try_get("server")?,
            epoch: row.try_get("epoch")?,
            outcome,
        })
    }
}

impl Turn {
    /// Bytes that were read for it.
    fn size(&self) -> usize {
        let turn = self.turn.as_ref().map_or(0, String::len);
        let made_from = self
            .made_from
            .iter()
            .map(|(request, summary)| request.len() + summary.as_ref().map_or(0, String::len));
        turn + made_from.sum::<usize>()
    }
}

impl FromRow<'_, SqliteRow> for Turn {
    fn from_row(row: &SqliteRow) -> sqlx::Result<Turn> {
        let (request, summary): (Option<String>, _) = (row.try_get("request")?, row.try_get("summary")?);
        Ok(Turn {
            id: row.try_get("id")?,
            status: row.try_get("status")?,
            turn: row.try_get("turn")?,
            made_from: request.map(|request| (request, summary)),
        })
    }
}
