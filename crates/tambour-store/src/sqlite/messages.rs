//! Rows of messages with their outcomes.

use async_trait::async_trait;
use sqlx::sqlite::SqliteRow;
use sqlx::{FromRow, Row};

use super::SqliteStore;
use crate::{MessageOutcome, MessageRow, Messages, RowPage, RunKind, StoreError, TurnHistory};

/// Beginning of a query of [`TurnHistory`] rows. Request and summary are read only where the history itself
/// was not stored.
macro_rules! turn {
    () => {
        "select id, status, turn, iif(turn is null, request, null) as request, \
         iif(turn is null, summary, null) as summary from messages left join records on message_id = id "
    };
}

#[async_trait]
impl Messages for SqliteStore {
    async fn message(&self, id: &str) -> Result<Option<MessageRow>, StoreError> {
        if let Some(row) = self.shared.pending.row(id) {
            return Ok(Some(MessageRow::clone(&row)));
        }
        let query = sqlx::query_as(
            "select messages.*, size, turn, summary, details from messages \
             left join records on message_id = id where id = ?",
        );
        Ok(query.bind(id).fetch_optional(self.pool()).await?)
    }

    async fn message_by_key(
        &self,
        owner: &str,
        idempotency_key: &str,
        since: &str,
    ) -> Result<Option<MessageRow>, StoreError> {
        if let Some(row) = self.shared.pending.row_by_key(owner, idempotency_key) {
            return Ok(Some(MessageRow::clone(&row)));
        }
        let query = sqlx::query_as(
            "select messages.*, size, turn, summary, details from messages \
             left join records on message_id = id \
             where owner = ? and repeat = ? and created > ? order by number desc limit 1",
        );
        Ok(query.bind(owner).bind(idempotency_key).bind(since).fetch_optional(self.pool()).await?)
    }

    async fn conversation_messages(
        &self,
        conversation: &str,
        after: i64,
        limit: u32,
        bytes: usize,
    ) -> Result<RowPage<MessageRow>, StoreError> {
        use futures_util::TryStreamExt;
        self.wait_caught_up().await?;
        let mut rows = sqlx::query_as::<_, MessageRow>(
            "select messages.*, size, turn, summary, null as details from messages \
             left join records on message_id = id where conversation_id = ?1 and number > ?2 \
             order by number limit ?3",
        )
        .bind(conversation)
        .bind(after)
        .bind(i64::from(limit) + 1)
        .fetch(self.pool());
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

    async fn history_before(
        &self,
        message: &MessageRow,
        bytes: usize,
    ) -> Result<Vec<TurnHistory>, StoreError> {
        use futures_util::TryStreamExt;
        self.wait_caught_up().await?;
        let mut rows = sqlx::query_as::<_, TurnHistory>(concat!(
            turn!(),
            "where conversation_id = ? and status <> 'superseded' \
             and number < (select number from messages where id = ?) order by number desc"
        ))
        .bind(&message.conversation_id)
        .bind(&message.id)
        .fetch(self.pool());
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

    async fn turn_history(&self, id: &str) -> Result<Option<TurnHistory>, StoreError> {
        self.wait_caught_up().await?;
        let query = sqlx::query_as(concat!(turn!(), "where id = ?")).bind(id);
        Ok(query.fetch_optional(self.pool()).await?)
    }
}

impl FromRow<'_, SqliteRow> for MessageRow {
    fn from_row(row: &SqliteRow) -> sqlx::Result<MessageRow> {
        let summary: Option<String> = row.try_get("summary")?;
        let outcome = match summary {
            Some(summary) => Some(MessageOutcome {
                size: row.try_get::<i64, _>("size")?.cast_unsigned(),
                turn: row.try_get("turn")?,
                summary,
                details: row.try_get("details")?,
                ..MessageOutcome::default()
            }),
            None => None,
        };
        Ok(MessageRow {
            number: row.try_get("number")?,
            id: row.try_get("id")?,
            conversation_id: row.try_get("conversation_id")?,
            request_id: row.try_get("request_id")?,
            owner: row.try_get("owner")?,
            created: row.try_get("created")?,
            status: row.try_get("status")?,
            request: row.try_get("request")?,
            kind: parse_kind(row.try_get("kind")?),
            repeat: row.try_get("repeat")?,
            server: row.try_get("server")?,
            epoch: row.try_get("epoch")?,
            outcome,
        })
    }
}

/// Name of [`RunKind::Turn`] in the database.
const TURN_KIND: &str = "turn";

/// Returns the name of a kind in the database; `None` (null) for a message.
pub(super) fn kind_name(kind: RunKind) -> Option<&'static str> {
    (kind == RunKind::Turn).then_some(TURN_KIND)
}

/// Parses the name of a kind in the database.
fn parse_kind(text: Option<&str>) -> RunKind {
    if text == Some(TURN_KIND) { RunKind::Turn } else { RunKind::Message }
}

impl FromRow<'_, SqliteRow> for TurnHistory {
    fn from_row(row: &SqliteRow) -> sqlx::Result<TurnHistory> {
        let (request, summary): (Option<String>, _) = (row.try_get("request")?, row.try_get("summary")?);
        Ok(TurnHistory {
            id: row.try_get("id")?,
            status: row.try_get("status")?,
            history: row.try_get("turn")?,
            source: request.map(|request| (request, summary)),
        })
    }
}
