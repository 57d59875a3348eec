//! Rows of conversation states: a base, the updates applied to it, and a snapshot at one of the updates
//! (F-116, R-79). The columns are those of SQLite. Changes of one state are made one after the other.

use std::collections::BTreeSet;

use super::connection::DatabaseConnection;
use super::{PostgresStore, lock};
use crate::fail;
use crate::states::{are_updates_within_limits, compute_state, count_kept_updates};
use crate::{
    MessageRow, StatePoint, StateRollback, StateRow, StateUpdateRow, StateUpdates, States, StoreError,
    StoredUpdate, is_route_update,
};
use async_trait::async_trait;

#[async_trait]
impl States for PostgresStore {
    async fn state(&self, conversation: &str) -> Result<Option<StateRow>, StoreError> {
        let query = sqlx::query_as(
            "select schema, present, upto, position, applied from states left join state_updates \
             on state_updates.conversation_id = states.conversation_id and position > upto \
             where states.conversation_id = $1 order by position",
        );
        let rows: Vec<(Option<String>, String, i64, Option<i64>, Option<String>)> =
            query.bind(conversation).fetch_all(self.pool()).await?;
        let Some((schema, snapshot, snapshot_position, ..)) = rows.first().cloned() else { return Ok(None) };
        let mut next_position = snapshot_position + 1;
        let mut later_updates = Vec::new();
        for (.., position, applied_json) in rows {
            if let (Some(position), Some(applied_json)) = (position, applied_json) {
                next_position = next_position.max(position + 1);
                later_updates.push(applied_json);
            }
        }
        let state = compute_state(snapshot, later_updates).await?;
        Ok(Some(StateRow { state, schema, next_position }))
    }

    async fn state_updates(&self, conversation: &str) -> Result<StateUpdates, StoreError> {
        let mut transaction = self.pool().begin().await?;
        lock_state(&mut transaction, conversation).await?;
        let updates = read_updates(&mut transaction, conversation).await?;
        transaction.commit().await?;
        Ok(updates)
    }

    async fn message_number(&self, conversation: &str, id: &str) -> Result<Option<i64>, StoreError> {
        let query = sqlx::query_scalar("select number from messages where id = $1 and conversation_id = $2");
        Ok(query.bind(id).bind(conversation).fetch_optional(self.pool()).await?)
    }

    async fn put_state_schema(&self, conversation: &str, schema: Option<&str>) -> Result<bool, StoreError> {
        let query = sqlx::query(
            "insert into states (conversation_id, schema) select $1, $2 \
             where exists (select 1 from conversations where id = $1) \
             on conflict (conversation_id) do update set schema = excluded.schema",
        );
        let mut transaction = self.begin_exclusive(conversation).await?;
        let result = query.bind(conversation).bind(schema).execute(&mut *transaction).await?;
        transaction.commit().await?;
        Ok(result.rows_affected() > 0)
    }

    async fn add_state_update(
        &self,
        conversation: &str,
        id: &str,
        update: &StoredUpdate,
        (created, state): (&str, &str),
    ) -> Result<bool, StoreError> {
        let mut transaction = self.begin_exclusive(conversation).await?;
        lock_state(&mut transaction, conversation).await?;
        let query = sqlx::query(
            "insert into states (conversation_id, present, upto) select $1, $2, $3 \
             where exists (select 1 from conversations where id = $1) \
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
             values ($1, 0, $2, $3, \
             (select coalesce(max(number), 0) from messages where conversation_id = $2), $4, $5)",
        );
        let query = query.bind(id).bind(conversation).bind(update.position).bind(created);
        query.bind(&update.applied).execute(&mut *transaction).await?;
        trim_updates(&mut transaction, conversation).await?;
        transaction.commit().await?;
        fail::point("state.after");
        Ok(true)
    }

    async fn store_snapshot(&self, conversation: &str, row: &StateRow) -> Result<(), StoreError> {
        let new_position = row.next_position - 1;
        let state = row.state.to_string();
        let mut transaction = self.pool().begin().await?;
        lock_state(&mut transaction, conversation).await?;
        let query =
            sqlx::query("update states set present = $1, upto = $2 where conversation_id = $3 and upto < $2");
        let query = query.bind(state).bind(new_position).bind(conversation);
        if query.execute(&mut *transaction).await?.rows_affected() > 0 {
            trim_updates(&mut transaction, conversation).await?;
            transaction.commit().await?;
        }
        Ok(())
    }

    async fn roll_state_back(
        &self,
        conversation: &str,
        point: StatePoint<'_>,
    ) -> Result<StateRollback, StoreError> {
        let mut transaction = self.begin_exclusive(conversation).await?;
        lock_state(&mut transaction, conversation).await?;
        let mut updates = read_updates(&mut transaction, conversation).await?;
        let Some(count) = updates.count_to(point) else { return Ok(StateRollback::Unknown) };
        let undone = if updates.can_reach(point) { updates.undo_after(count) } else { None };
        let Some(undone) = undone else { return Ok(StateRollback::Gone) };
        store_rollback(&mut transaction, conversation, &updates, &undone).await?;
        transaction.commit().await?;
        fail::point("state.after");
        Ok(StateRollback::Done(updates.snapshot, undone.len()))
    }
}

/// Serialises changes of a state.
pub(super) async fn lock_state(connection: &mut DatabaseConnection, conversation: &str) -> sqlx::Result<()> {
    lock(connection, &format!("state:{conversation}")).await
}

/// Undoes the first update that came with a message of this number or above, and all updates after it.
/// Returns `false`, with nothing changed, if the state before it is no longer known.
pub(super) async fn undo_from(
    connection: &mut DatabaseConnection,
    conversation: &str,
    number: i64,
) -> sqlx::Result<bool> {
    lock_state(connection, conversation).await?;
    let mut updates = read_updates(connection, conversation).await?;
    let is_of_undone_message =
        |update: &StateUpdateRow| update.message_number >= number && !is_route_update(&update.id);
    if let Some(count) = updates.rows.iter().position(is_of_undone_message) {
        let Some(undone) = updates.undo_after(count) else { return Ok(false) };
        store_rollback(connection, conversation, &updates, &undone).await?;
        fail::point("state.amid");
    }
    Ok(true)
}

/// Reads the history of a conversation's state; an empty one if there is none.
async fn read_updates(connection: &mut DatabaseConnection, conversation: &str) -> sqlx::Result<StateUpdates> {
    let query = sqlx::query_as("select base, floor, present, upto from states where conversation_id = $1");
    let state: Option<(String, i64, String, i64)> =
        query.bind(conversation).fetch_optional(&mut *connection).await?;
    let Some((base, base_number, snapshot, snapshot_position)) = state else {
        return Ok(StateUpdates::default());
    };
    let query = sqlx::query_as("select * from state_updates where conversation_id = $1 order by position");
    let rows: Vec<StateUpdateRow> = query.bind(conversation).fetch_all(connection).await?;
    Ok(StateUpdates::from_stored((&base, base_number), (&snapshot, snapshot_position), rows))
}

/// Stores a rollback: deletes the undone updates and stores the snapshot. The position of the snapshot stays
/// at or after the positions of all updates, even undone ones, since positions are not used again.
async fn store_rollback(
    connection: &mut DatabaseConnection,
    conversation: &str,
    updates: &StateUpdates,
    undone: &[StateUpdateRow],
) -> sqlx::Result<()> {
    let last_position = undone.last().or(updates.rows.last()).map_or(0, |last| last.position);
    if let Some(first) = undone.first() {
        let query = sqlx::query("delete from state_updates where conversation_id = $1 and position >= $2");
        query.bind(conversation).bind(first.position).execute(&mut *connection).await?;
        fail::point("state.amid");
    }
    write_snapshot(connection, conversation, updates, last_position.max(updates.snapshot_position)).await
}

/// Stores the snapshot with `position`, that of the last update that it contains.
async fn write_snapshot(
    connection: &mut DatabaseConnection,
    conversation: &str,
    updates: &StateUpdates,
    position: i64,
) -> sqlx::Result<()> {
    let query = sqlx::query("update states set present = $1, upto = $2 where conversation_id = $3");
    let query = query.bind(updates.snapshot.to_string()).bind(position).bind(conversation);
    query.execute(connection).await.map(|_| ())
}

/// Stores the base, and marks the updates that are part of it.
async fn write_base(
    connection: &mut DatabaseConnection,
    conversation: &str,
    updates: &StateUpdates,
) -> sqlx::Result<()> {
    let query = sqlx::query("update states set base = $1, floor = $2 where conversation_id = $3");
    let query = query.bind(updates.base.to_string()).bind(updates.base_number).bind(conversation);
    query.execute(&mut *connection).await?;
    let Some(last) = updates.rows.iter().rfind(|row| row.is_in_base) else { return Ok(()) };
    let query = sqlx::query(
        "update state_updates set passed = true \
         where conversation_id = $1 and position <= $2 and not passed",
    );
    query.bind(conversation).bind(last.position).execute(connection).await.map(|_| ())
}

/// Makes the oldest updates beyond the limits part of the base, and deletes them.
async fn trim_updates(connection: &mut DatabaseConnection, conversation: &str) -> sqlx::Result<()> {
    let query = sqlx::query_as(
        "select count(*), cast(coalesce(sum(octet_length(applied)), 0) as bigint) from state_updates \
         where conversation_id = $1",
    );
    let (count, bytes): (i64, i64) = query.bind(conversation).fetch_one(&mut *connection).await?;
    if are_updates_within_limits(count, bytes) {
        return Ok(());
    }
    let query = sqlx::query_scalar(
        "select cast(octet_length(applied) as bigint) from state_updates \
         where conversation_id = $1 order by position desc",
    );
    let sizes: Vec<i64> = query.bind(conversation).fetch_all(&mut *connection).await?;
    let kept_count = count_kept_updates(&sizes);
    let mut updates = read_updates(connection, conversation).await?;
    let dropped_count = updates.rows.len().saturating_sub(kept_count);
    updates.move_to_base(dropped_count.max(updates.base_len()));
    let dropped_positions: Vec<i64> = updates.rows.drain(..dropped_count).map(|row| row.position).collect();
    write_base(connection, conversation, &updates).await?;
    let Some(last) = dropped_positions.last() else { return Ok(()) };
    let query = sqlx::query("delete from state_updates where conversation_id = $1 and position <= $2");
    query.bind(conversation).bind(last).execute(connection).await.map(|_| ())
}

/// Inserts the updates of a message, within the transaction of its record. Existing ones are kept.
pub(super) async fn insert_updates(
    connection: &mut DatabaseConnection,
    row: &MessageRow,
    updates: &[StoredUpdate],
) -> sqlx::Result<()> {
    if updates.is_empty() {
        return Ok(());
    }
    lock_state(connection, &row.conversation_id).await?;
    let query = sqlx::query("insert into states (conversation_id) values ($1) on conflict do nothing");
    query.bind(&row.conversation_id).execute(&mut *connection).await?;
    for (index, update) in updates.iter().enumerate() {
        let query = sqlx::query(
            "insert into state_updates (id, number, conversation_id, position, place, created, applied) \
             select id, $1, conversation_id, $2, number, $3, $4 from messages where id = $5 \
             on conflict do nothing",
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
    connection: &mut DatabaseConnection,
    messages: &[String],
) -> sqlx::Result<()> {
    let query = sqlx::query_scalar("select distinct conversation_id from state_updates where id = any($1)");
    let conversations: Vec<String> = query.bind(messages).fetch_all(&mut *connection).await?;
    // Transactions lock the states in the same order, so that they cannot deadlock.
    for conversation in conversations.into_iter().collect::<BTreeSet<_>>() {
        lock_state(connection, &conversation).await?;
        let mut updates = read_updates(connection, &conversation).await?;
        if updates.forget(messages) {
            write_snapshot(connection, &conversation, &updates, updates.snapshot_position).await?;
            write_base(connection, &conversation, &updates).await?;
        }
    }
    let query = sqlx::query("delete from state_updates where id = any($1)").bind(messages);
    query.execute(connection).await?;
    fail::point("deletion.amid");
    Ok(())
}
