//! Rows of messages with their outcomes.

use async_trait::async_trait;
use sqlx::postgres::PgRow;
use sqlx::{FromRow, Row};

use super::PostgresStore;
use crate::{MessageRow, Messages, RowPage, StoreError, TurnHistory};

/// Maximum number of rows that a read asks for: the database sends all of them, wanted or not.
const ROWS_PER_QUERY: i64 = 100;

/// History of a message, with its number.
struct NumberedHistory {
    number: i64,
    turn: TurnHistory,
}

impl FromRow<'_, PgRow> for NumberedHistory {
    fn from_row(row: &PgRow) -> sqlx::Result<NumberedHistory> {
        Ok(NumberedHistory { number: row.try_get("number")?, turn: TurnHistory::from_row(row)? })
    }
}

/// Beginning of a query of [`TurnHistory`] rows. Request and summary are read only where the history itself
/// was not stored.
macro_rules! select_turn {
    () => {
        "select number, id, status, turn, case when turn is null then request end as request, \
         case when turn is null then summary end as summary \
         from messages left join records on message_id = id "
    };
}

#[async_trait]
impl Messages for PostgresStore {
    async fn message(&self, id: &str) -> Result<Option<MessageRow>, StoreError> {
        Ok(self.runs().database.message(id).await?)
    }

    async fn message_by_key(
        &self,
        owner: &str,
        idempotency_key: &str,
        since: &str,
    ) -> Result<Option<MessageRow>, StoreError> {
        let query = sqlx::query_as(
            "select messages.*, size, turn, summary, details from messages \
             left join records on message_id = id \
             where owner = $1 and repeat = $2 and created > $3 order by number desc limit 1",
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
        let rows = sqlx::query_as::<_, MessageRow>(
            "select messages.*, size, turn, summary, null::text as details from messages \
             left join records on message_id = id where conversation_id = $1 and number > $2 \
             order by number limit $3",
        );
        let rows = rows.bind(conversation).bind(after).bind(i64::from(limit) + 1).fetch(self.pool());
        Ok(MessageRow::read_page(rows, limit, bytes).await?)
    }

    async fn history_before(
        &self,
        message: &MessageRow,
        bytes: usize,
    ) -> Result<Vec<TurnHistory>, StoreError> {
        let mut before = message.number.unwrap_or(i64::MAX);
        let (mut turns, mut bytes_left) = (Vec::new(), bytes);
        loop {
            let rows = sqlx::query_as::<_, NumberedHistory>(concat!(
                select_turn!(),
                "where conversation_id = $1 and status <> 'superseded' and number < $2 order by number desc limit $3"
            ));
            let rows = rows.bind(&message.conversation_id).bind(before).bind(ROWS_PER_QUERY);
            let page: Vec<NumberedHistory> = rows.fetch_all(self.pool()).await?;
            let is_last = page.len() < usize::try_from(ROWS_PER_QUERY).unwrap_or(usize::MAX);
            for NumberedHistory { number, turn } in page {
                before = number;
                match bytes_left.checked_sub(turn.size()) {
                    Some(rest) => bytes_left = rest,
                    // The newest history is returned whatever its size.
                    None if turns.is_empty() => bytes_left = 0,
                    None => return Ok(turns),
                }
                turns.push(turn);
            }
            if is_last {
                return Ok(turns);
            }
        }
    }

    async fn turn_history(&self, id: &str) -> Result<Option<TurnHistory>, StoreError> {
        let query = sqlx::query_as(concat!(select_turn!(), "where id = $1")).bind(id);
        Ok(query.fetch_optional(self.pool()).await?)
    }
}
