//! Rows of conversation states: a base, the updates applied to it, and a snapshot at one of the updates
//! (F-116, R-79).
//!
//! The updates of a message are stored with its record in one transaction, so all of them exist or none. The
//! current state is computed when it is read.

use async_trait::async_trait;
use sqlx::sqlite::SqliteRow;
use sqlx::{FromRow, QueryBuilder, Row, Sqlite, SqliteConnection};
use tambour::state::AppliedBlock;

use super::SqliteStore;
use super::transaction::OpenTransaction;
use crate::fail;
use crate::states::empty_state;
use crate::{
    MessageRow, StatePoint, StateRollback, StateRow, StateUpdateRow, StateUpdates, States, StoreError,
    StoredUpdate, is_route_update,
};

/// Most updates of one conversation that can be undone, and most bytes of them; older ones become part of the
/// base.
const MAX_UPDATES: usize = 1000;
const MAX_UPDATE_BYTES: usize = 16 << 20;

#[async_trait]
impl States for SqliteStore {
    async fn state(&self, conversation: &str) -> Result<Option<StateRow>, StoreError> {
        self.wait_caught_up().await?;
        let query = sqlx::query(
            "select schema, present, upto, position, applied from states left join state_updates \
             on state_updates.conversation_id = states.conversation_id and position > upto \
             where states.conversation_id = ? order by position",
        );
        let rows = query.bind(conversation).fetch_all(self.pool()).await?;
        let Some(first) = rows.first() else { return Ok(None) };
        let (schema, present): (Option<String>, String) =
            (first.try_get("schema")?, first.try_get("present")?);
        let through: i64 = first.try_get("upto")?;
        let mut next_position = through + 1;
        let mut later_updates = Vec::new();
        for row in &rows {
            if let Some(applied_json) = row.try_get::<Option<String>, _>("applied")? {
                next_position = next_position.max(row.try_get::<i64, _>("position")? + 1);
                later_updates.push(applied_json);
            }
        }
        // Parsing a large state takes a while.
        let work = move || {
            let mut present = serde_json::from_str(&present).unwrap_or_else(|_| empty_state());
            for applied_json in later_updates
                .iter()
                .filter_map(|applied_json| serde_json::from_str::<AppliedBlock>(applied_json).ok())
            {
                if let Err(error) = applied_json.redo(&mut present) {
                    tracing::error!(%error, "a stored update does not fit its state");
                }
            }
            present
        };
        let state = tokio::task::spawn_blocking(work).await.map_err(|_| StoreError::Closed)?;
        Ok(Some(StateRow { state, schema, next_position }))
    }

    async fn state_updates(&self, conversation: &str) -> Result<StateUpdates, StoreError> {
        self.wait_caught_up().await?;
        let mut connection = OpenTransaction::begin_read(self.pool()).await?;
        let result = read_updates(&mut connection, conversation).await;
        connection.end(Ok(())).await?;
        Ok(result?)
    }

    async fn message_number(&self, conversation: &str, id: &str) -> Result<Option<i64>, StoreError> {
        self.wait_caught_up().await?;
        let query = sqlx::query_scalar("select number from messages where id = ? and conversation_id = ?");
        Ok(query.bind(id).bind(conversation).fetch_optional(self.pool()).await?)
    }

    async fn put_state_schema(&self, conversation: &str, schema: Option<&str>) -> Result<bool, StoreError> {
        self.wait_caught_up().await?;
        let query = sqlx::query(
            "insert into states (conversation_id, schema) select ?1, ?2 \
             where exists (select 1 from conversations where id = ?1) \
             on conflict (conversation_id) do update set schema = excluded.schema",
        );
        let result = query.bind(conversation).bind(schema).execute(self.pool()).await?;
        Ok(result.rows_affected() > 0)
    }

    async fn add_state_update(
        &self,
        conversation: &str,
        id: &str,
        update: &StoredUpdate,
        (created, state): (&str, &str),
    ) -> Result<bool, StoreError> {
        self.wait_caught_up().await?;
        let mut connection = OpenTransaction::begin(self.pool()).await?;
        let written = async {
            let query = sqlx::query(
                "insert into states (conversation_id, present, upto) select ?1, ?2, ?3 \
                 where exists (select 1 from conversations where id = ?1) \
                 on conflict (conversation_id) do update set present = excluded.present, upto = excluded.upto",
            );
            let query = query.bind(conversation).bind(state).bind(update.position);
            if query.execute(&mut *connection).await?.rows_affected() == 0 {
                return Ok(false);
            }
            fail::point("state.amid");
            let query = sqlx::query(
                "insert into state_updates (id, number, conversation_id, position, place, created, applied) \
                 values (?1, 0, ?2, ?3, \
                 (select coalesce(max(number), 0) from messages where conversation_id = ?2), ?4, ?5)",
            );
            let query = query.bind(id).bind(conversation).bind(update.position).bind(created);
            query.bind(&update.applied).execute(&mut *connection).await?;
            trim_updates(&mut connection, conversation).await?;
            Ok(true)
        };
        let (has_conversation, written) = split_result(written.await);
        connection.end(written).await?;
        fail::point("state.after");
        Ok(has_conversation)
    }

    async fn store_snapshot(&self, conversation: &str, row: &StateRow) -> Result<(), StoreError> {
        let through = row.next_position - 1;
        let query =
            sqlx::query_scalar("select upto from states where conversation_id = ?").bind(conversation);
        let before: Option<i64> = query.fetch_optional(self.pool()).await?;
        if before.is_none_or(|before| before >= through) {
            return Ok(());
        }
        let state = row.state.to_string();
        let mut connection = OpenTransaction::begin(self.pool()).await?;
        let written = async {
            let query =
                sqlx::query("update states set present = ?, upto = ? where conversation_id = ? and upto = ?");
            let query = query.bind(state).bind(through).bind(conversation).bind(before);
            query.execute(&mut *connection).await?;
            trim_updates(&mut connection, conversation).await
        };
        let written = written.await;
        connection.end(written).await?;
        Ok(())
    }

    async fn roll_state_back(
        &self,
        conversation: &str,
        to: StatePoint<'_>,
    ) -> Result<StateRollback, StoreError> {
        self.wait_caught_up().await?;
        let mut connection = OpenTransaction::begin(self.pool()).await?;
        let written = async {
            let mut updates = read_updates(&mut connection, conversation).await?;
            let Some(count) = updates.count_to(to) else { return Ok(StateRollback::Unknown) };
            let undone = if updates.can_reach(to) { updates.undo_after(count) } else { None };
            let Some(undone) = undone else { return Ok(StateRollback::Gone) };
            store_rollback(&mut connection, conversation, &updates, &undone).await?;
            Ok(StateRollback::Done(updates.snapshot, undone.len()))
        };
        let written: sqlx::Result<StateRollback> = written.await;
        let (change, written) = match written {
            Ok(change) => (change, Ok(())),
            Err(error) => (StateRollback::Unknown, Err(error)),
        };
        connection.end(written).await?;
        fail::point("state.after");
        Ok(change)
    }
}

fn split_result(written: sqlx::Result<bool>) -> (bool, sqlx::Result<()>) {
    match written {
        Ok(value) => (value, Ok(())),
        Err(error) => (false, Err(error)),
    }
}

/// Undoes the updates of messages from a number on. Returns `false`, with nothing changed, if that is no
/// longer possible.
pub(super) async fn undo_from(
    connection: &mut SqliteConnection,
    conversation: &str,
    number: i64,
) -> sqlx::Result<bool> {
    let mut updates = read_updates(connection, conversation).await?;
    let message_position =
        |update: &StateUpdateRow| update.message_number >= number && !is_route_update(&update.id);
    if let Some(count) = updates.rows.iter().position(message_position) {
        let Some(undone) = updates.undo_after(count) else { return Ok(false) };
        store_rollback(connection, conversation, &updates, &undone).await?;
        fail::point("state.amid");
    }
    Ok(true)
}

async fn read_updates(connection: &mut SqliteConnection, conversation: &str) -> sqlx::Result<StateUpdates> {
    let query = sqlx::query_as("select base, floor, present, upto from states where conversation_id = ?");
    let head: Option<(String, i64, String, i64)> =
        query.bind(conversation).fetch_optional(&mut *connection).await?;
    let Some((base, base_number, present, snapshot_position)) = head else {
        return Ok(StateUpdates {
            base: empty_state(),
            base_number: -1,
            snapshot: empty_state(),
            snapshot_position: 0,
            rows: Vec::new(),
        });
    };
    let query = sqlx::query_as("select * from state_updates where conversation_id = ? order by position");
    let rows: Vec<StateUpdateRow> = query.bind(conversation).fetch_all(&mut *connection).await?;
    let parse = |text: &str| serde_json::from_str(text).unwrap_or_else(|_| empty_state());
    Ok(StateUpdates { base: parse(&base), base_number, snapshot: parse(&present), snapshot_position, rows })
}

/// Stores a rollback. Positions are not reused.
async fn store_rollback(
    connection: &mut SqliteConnection,
    conversation: &str,
    updates: &StateUpdates,
    undone: &[StateUpdateRow],
) -> sqlx::Result<()> {
    let last = undone.last().or(updates.rows.last()).map_or(0, |last| last.position);
    let through = last.max(updates.snapshot_position);
    if let Some(first) = undone.first() {
        let query = sqlx::query("delete from state_updates where conversation_id = ? and position >= ?");
        query.bind(conversation).bind(first.position).execute(&mut *connection).await?;
        fail::point("state.amid");
    }
    let query = sqlx::query("update states set present = ?, upto = ? where conversation_id = ?");
    let query = query.bind(updates.snapshot.to_string()).bind(through).bind(conversation);
    query.execute(&mut *connection).await.map(|_| ())
}

/// Stores the base, and marks the updates that are part of it.
async fn write_base(
    connection: &mut SqliteConnection,
    conversation: &str,
    updates: &StateUpdates,
) -> sqlx::Result<()> {
    let query = sqlx::query("update states set base = ?, floor = ? where conversation_id = ?");
    let query = query.bind(updates.base.to_string()).bind(updates.base_number).bind(conversation);
    query.execute(&mut *connection).await?;
    let Some(last) = updates.rows.iter().rfind(|row| row.is_in_base) else { return Ok(()) };
    let query = sqlx::query(
        "update state_updates set passed = 1 where conversation_id = ? and position <= ? and passed = 0",
    );
    query.bind(conversation).bind(last.position).execute(connection).await.map(|_| ())
}

/// Removes the oldest updates beyond the limits.
async fn trim_updates(connection: &mut SqliteConnection, conversation: &str) -> sqlx::Result<()> {
    let query = sqlx::query_as(
        "select count(*), coalesce(sum(length(applied)), 0) from state_updates where conversation_id = ?",
    );
    let (count, bytes): (i64, i64) = query.bind(conversation).fetch_one(&mut *connection).await?;
    let is_within = |value: i64, max: usize| usize::try_from(value).is_ok_and(|value| value <= max);
    if is_within(count, MAX_UPDATES) && is_within(bytes, MAX_UPDATE_BYTES) {
        return Ok(());
    }
    let query = sqlx::query_scalar(
        "select length(applied) from state_updates where conversation_id = ? order by position desc",
    );
    let sizes: Vec<i64> = query.bind(conversation).fetch_all(&mut *connection).await?;
    // Frees a quarter of the limit at once, since it requires applying all of them.
    let mut room = MAX_UPDATE_BYTES / 4 * 3;
    let kept_count = sizes.iter().take(MAX_UPDATES / 4 * 3).take_while(|size| {
        let room_left = room.checked_sub(usize::try_from(**size).unwrap_or(usize::MAX));
        room = room_left.unwrap_or(0);
        room_left.is_some()
    });
    let kept_count = kept_count.count();
    let mut updates = read_updates(connection, conversation).await?;
    let dropped_count = updates.rows.len().saturating_sub(kept_count);
    updates.move_to_base(dropped_count.max(updates.base_len()));
    let dropped: Vec<i64> = updates.rows.drain(..dropped_count).map(|row| row.position).collect();
    write_base(connection, conversation, &updates).await?;
    let Some(last) = dropped.last() else { return Ok(()) };
    let query = sqlx::query("delete from state_updates where conversation_id = ? and position <= ?");
    query.bind(conversation).bind(last).execute(connection).await.map(|_| ())
}

/// Inserts the updates of a message together with its record. Existing ones are skipped.
pub(super) async fn insert_updates(
    connection: &mut SqliteConnection,
    row: &MessageRow,
    updates: &[StoredUpdate],
) -> sqlx::Result<()> {
    if updates.is_empty() {
        return Ok(());
    }
    let query = sqlx::query("insert or ignore into states (conversation_id) values (?)");
    query.bind(&row.conversation_id).execute(&mut *connection).await?;
    for (number, update) in updates.iter().enumerate() {
        let query = sqlx::query(
            "insert or ignore into state_updates \
             (id, number, conversation_id, position, place, created, applied) \
             select id, ?, conversation_id, ?, number, ?, ? from messages where id = ?",
        );
        let query = query.bind(i64::try_from(number).unwrap_or(i64::MAX)).bind(update.position);
        let query = query.bind(&row.created).bind(&update.applied).bind(&row.id);
        query.execute(&mut *connection).await?;
        fail::point("state.amid");
    }
    Ok(())
}

/// Removes deleted messages' updates from the history; the current state is kept.
pub(super) async fn forget_messages(
    connection: &mut SqliteConnection,
    messages: &[String],
) -> sqlx::Result<()> {
    let mut query =
        QueryBuilder::<Sqlite>::new("select distinct conversation_id from state_updates where id in (");
    let mut list = query.separated(", ");
    messages.iter().for_each(|id| {
        list.push_bind(id);
    });
    let conversations: Vec<String> = query.push(")").build_query_scalar().fetch_all(&mut *connection).await?;
    for conversation in conversations {
        let mut updates = read_updates(connection, &conversation).await?;
        let is_forgotten = |row: &StateUpdateRow| messages.contains(&row.id);
        let Some(last) = updates.rows.iter().rposition(is_forgotten) else { continue };
        // The snapshot must include the message's values before its updates are removed.
        if let Some(newest_position) =
            updates.rows.last().map(|row| row.position.max(updates.snapshot_position))
        {
            updates.snapshot = updates.current_state();
            updates.snapshot_position = newest_position;
        }
        updates.move_to_base((last + 1).max(updates.base_len()));
        updates.rows.retain(|row| !is_forgotten(row));
        let query = sqlx::query("update states set present = ?, upto = ? where conversation_id = ?");
        let query =
            query.bind(updates.snapshot.to_string()).bind(updates.snapshot_position).bind(&conversation);
        query.execute(&mut *connection).await?;
        write_base(connection, &conversation, &updates).await?;
    }
    let mut query = QueryBuilder::<Sqlite>::new("delete from state_updates where id in (");
    let mut list = query.separated(", ");
    messages.iter().for_each(|id| {
        list.push_bind(id);
    });
    query.push(")").build().execute(&mut *connection).await?;
    fail::point("deletion.amid");
    Ok(())
}

impl FromRow<'_, SqliteRow> for StateUpdateRow {
    fn from_row(row: &SqliteRow) -> sqlx::Result<StateUpdateRow> {
        let applied_json: String = row.try_get("applied")?;
        Ok(StateUpdateRow {
            position: row.try_get("position")?,
            id: row.try_get("id")?,
            message_number: row.try_get("place")?,
            is_in_base: row.try_get("passed")?,
            created: row.try_get("created")?,
            applied: serde_json::from_str(&applied_json)
                .map_err(|error| sqlx::Error::Decode(error.into()))?,
        })
    }
}
