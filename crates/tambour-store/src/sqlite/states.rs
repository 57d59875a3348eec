//! Rows of conversation states: a base, the updates applied to it, and a snapshot at one of the updates
//! (F-116, R-79).
//!
//! The updates of a message are stored with its record in one transaction, so all of them exist or none. The
//! current state is computed when it is read.
//!
//! Some columns have older names: in `states` the snapshot is `present`, its position `upto` and the number
//! of the base `floor`; in `state_updates` the number of the message is `place`, and `passed` is set for
//! updates that are part of the base.

use async_trait::async_trait;
use sqlx::{QueryBuilder, Row, Sqlite, SqliteConnection};

use super::SqliteStore;
use super::transaction::OpenTransaction;
use crate::fail;
use crate::states::{are_updates_within_limits, compute_state, count_kept_updates};
use crate::{
    MessageRow, StatePoint, StateRollback, StateRow, StateUpdateRow, StateUpdates, States, StoreError,
    StoredUpdate, is_route_update,
};

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
        let (schema, snapshot): (Option<String>, String) =
            (first.try_get("schema")?, first.try_get("present")?);
        let snapshot_position: i64 = first.try_get("upto")?;
        let mut next_position = snapshot_position + 1;
        let mut later_updates = Vec::new();
        for row in &rows {
            if let Some(applied_json) = row.try_get::<Option<String>, _>("applied")? {
                next_position = next_position.max(row.try_get::<i64, _>("position")? + 1);
                later_updates.push(applied_json);
            }
        }
        let state = compute_state(snapshot, later_updates).await?;
        Ok(Some(StateRow { state, schema, next_position }))
    }

    async fn state_updates(&self, conversation: &str) -> Result<StateUpdates, StoreError> {
        self.wait_caught_up().await?;
        let mut transaction = OpenTransaction::begin_read(self.pool()).await?;
        let result = read_updates(&mut transaction, conversation).await;
        transaction.end(Ok(())).await?;
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
        let mut transaction = OpenTransaction::begin(self.pool()).await?;
        let writes = async {
            let query = sqlx::query(
                "insert into states (conversation_id, present, upto) select ?1, ?2, ?3 \
                 where exists (select 1 from conversations where id = ?1) \
                 on conflict (conversation_id) do update set present = excluded.present, upto = excluded.upto",
            );
            let query = query.bind(conversation).bind(state).bind(update.position);
            if query.execute(&mut *transaction).await?.rows_affected() == 0 {
                return Ok(false);
            }
            fail::point("state.amid");
            // `number` is the index of an update within its message. This update has no message, so it is 0.
            let query = sqlx::query(
                "insert into state_updates (id, number, conversation_id, position, place, created, applied) \
                 values (?1, 0, ?2, ?3, \
                 (select coalesce(max(number), 0) from messages where conversation_id = ?2), ?4, ?5)",
            );
            let query = query.bind(id).bind(conversation).bind(update.position).bind(created);
            query.bind(&update.applied).execute(&mut *transaction).await?;
            trim_updates(&mut transaction, conversation).await?;
            Ok(true)
        };
        let (has_conversation, write_result) = split_result(writes.await);
        transaction.end(write_result).await?;
        fail::point("state.after");
        Ok(has_conversation)
    }

    async fn store_snapshot(&self, conversation: &str, row: &StateRow) -> Result<(), StoreError> {
        let new_position = row.next_position - 1;
        let query =
            sqlx::query_scalar("select upto from states where conversation_id = ?").bind(conversation);
        let stored_position: Option<i64> = query.fetch_optional(self.pool()).await?;
        if stored_position.is_none_or(|stored_position| stored_position >= new_position) {
            return Ok(());
        }
        let state = row.state.to_string();
        let mut transaction = OpenTransaction::begin(self.pool()).await?;
        let writes = async {
            // `and upto = ?`: another call may have stored a snapshot meanwhile.
            let query =
                sqlx::query("update states set present = ?, upto = ? where conversation_id = ? and upto = ?");
            let query = query.bind(state).bind(new_position).bind(conversation).bind(stored_position);
            query.execute(&mut *transaction).await?;
            trim_updates(&mut transaction, conversation).await
        };
        let write_result = writes.await;
        transaction.end(write_result).await?;
        Ok(())
    }

    async fn roll_state_back(
        &self,
        conversation: &str,
        point: StatePoint<'_>,
    ) -> Result<StateRollback, StoreError> {
        self.wait_caught_up().await?;
        let mut transaction = OpenTransaction::begin(self.pool()).await?;
        let writes = async {
            let mut updates = read_updates(&mut transaction, conversation).await?;
            let Some(count) = updates.count_to(point) else { return Ok(StateRollback::Unknown) };
            let undone = if updates.can_reach(point) { updates.undo_after(count) } else { None };
            let Some(undone) = undone else { return Ok(StateRollback::Gone) };
            store_rollback(&mut transaction, conversation, &updates, &undone).await?;
            Ok(StateRollback::Done(updates.snapshot, undone.len()))
        };
        let write_result: sqlx::Result<StateRollback> = writes.await;
        let (rollback, write_result) = match write_result {
            Ok(rollback) => (rollback, Ok(())),
            // This value is not returned: ending the transaction returns the error.
            Err(error) => (StateRollback::Unknown, Err(error)),
        };
        transaction.end(write_result).await?;
        fail::point("state.after");
        Ok(rollback)
    }
}

/// Splits the result of a transaction's work into its value and the result that the transaction ends with.
/// The value means nothing after an error.
fn split_result(result: sqlx::Result<bool>) -> (bool, sqlx::Result<()>) {
    match result {
        Ok(value) => (value, Ok(())),
        Err(error) => (false, Err(error)),
    }
}

/// Undoes the first update that came with a message of this number or above, and all updates after it.
/// Returns `false`, with nothing changed, if the state before it is no longer known.
pub(super) async fn undo_from(
    connection: &mut SqliteConnection,
    conversation: &str,
    number: i64,
) -> sqlx::Result<bool> {
    let mut updates = read_updates(connection, conversation).await?;
    let belongs_to_undone_message =
        |update: &StateUpdateRow| update.message_number >= number && !is_route_update(&update.id);
    if let Some(count) = updates.rows.iter().position(belongs_to_undone_message) {
        let Some(undone) = updates.undo_after(count) else { return Ok(false) };
        store_rollback(connection, conversation, &updates, &undone).await?;
        fail::point("state.amid");
    }
    Ok(true)
}

/// Reads the history of a conversation's state; an empty one if there is none.
async fn read_updates(connection: &mut SqliteConnection, conversation: &str) -> sqlx::Result<StateUpdates> {
    let query = sqlx::query_as("select base, floor, present, upto from states where conversation_id = ?");
    let state: Option<(String, i64, String, i64)> =
        query.bind(conversation).fetch_optional(&mut *connection).await?;
    let Some((base, base_number, snapshot, snapshot_position)) = state else {
        return Ok(StateUpdates::default());
    };
    let query = sqlx::query_as("select * from state_updates where conversation_id = ? order by position");
    let rows: Vec<StateUpdateRow> = query.bind(conversation).fetch_all(&mut *connection).await?;
    Ok(StateUpdates::from_stored((&base, base_number), (&snapshot, snapshot_position), rows))
}

/// Stores a rollback: deletes the undone updates and stores the snapshot. The position of the snapshot stays
/// at or after the positions of all updates, even undone ones, since positions are not used again.
async fn store_rollback(
    connection: &mut SqliteConnection,
    conversation: &str,
    updates: &StateUpdates,
    undone: &[StateUpdateRow],
) -> sqlx::Result<()> {
    let last_position = undone.last().or(updates.rows.last()).map_or(0, |last| last.position);
    let snapshot_position = last_position.max(updates.snapshot_position);
    if let Some(first) = undone.first() {
        let query = sqlx::query("delete from state_updates where conversation_id = ? and position >= ?");
        query.bind(conversation).bind(first.position).execute(&mut *connection).await?;
        fail::point("state.amid");
    }
    let query = sqlx::query("update states set present = ?, upto = ? where conversation_id = ?");
    let query = query.bind(updates.snapshot.to_string()).bind(snapshot_position).bind(conversation);
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

/// Makes the oldest updates beyond the limits part of the base, and deletes them.
async fn trim_updates(connection: &mut SqliteConnection, conversation: &str) -> sqlx::Result<()> {
    let query = sqlx::query_as(
        "select count(*), coalesce(sum(length(applied)), 0) from state_updates where conversation_id = ?",
    );
    let (count, bytes): (i64, i64) = query.bind(conversation).fetch_one(&mut *connection).await?;
    if are_updates_within_limits(count, bytes) {
        return Ok(());
    }
    let query = sqlx::query_scalar(
        "select length(applied) from state_updates where conversation_id = ? order by position desc",
    );
    let sizes: Vec<i64> = query.bind(conversation).fetch_all(&mut *connection).await?;
    let kept_count = count_kept_updates(&sizes);
    let mut updates = read_updates(connection, conversation).await?;
    let dropped_count = updates.rows.len().saturating_sub(kept_count);
    updates.move_to_base(dropped_count.max(updates.base_len()));
    let dropped_positions: Vec<i64> = updates.rows.drain(..dropped_count).map(|row| row.position).collect();
    write_base(connection, conversation, &updates).await?;
    let Some(last) = dropped_positions.last() else { return Ok(()) };
    let query = sqlx::query("delete from state_updates where conversation_id = ? and position <= ?");
    query.bind(conversation).bind(last).execute(connection).await.map(|_| ())
}

/// Inserts the updates of a message, within the transaction of its record. Existing ones are kept.
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
    for (index, update) in updates.iter().enumerate() {
        let query = sqlx::query(
            "insert or ignore into state_updates \
             (id, number, conversation_id, position, place, created, applied) \
             select id, ?, conversation_id, ?, number, ?, ? from messages where id = ?",
        );
        let query = query.bind(i64::try_from(index).unwrap_or(i64::MAX)).bind(update.position);
        let query = query.bind(&row.created).bind(&update.applied).bind(&row.id);
        query.execute(&mut *connection).await?;
        fail::point("state.amid");
    }
    Ok(())
}

/// Removes the updates of deleted messages from the history; the current state is kept. They and all
/// updates before them become part of the base.
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
        if !updates.forget(messages) {
            continue;
        }
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
