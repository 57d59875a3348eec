//! Rows of conversation states: a base, the updates applied to it, and a snapshot at one of the updates
//! (F-116, R-79).
//!
//!
//! The updates of a message are stored with its record in one transaction, so all of them exist or none. The
//! current state is computed when it is read.

use async_trait::async_trait;
use sqlx::sqlite::SqliteRow;
use sqlx::{FromRow, QueryBuilder, Row, Sqlite, SqliteConnection};
use tambour::state::Applied;

use super::SqliteStore;
use super::commit::{begin, end};
use crate::fail;
use crate::store::states::empty;
use crate::store::{
    Back, MessageRow, StateChange, StateRow, StateUpdates, States, StoreError, Update, UpdateRow,
    is_own_update,
};

/// Most updates of one conversation that can be undone, and most bytes of them; older ones become part of the
/// base.
const MOST: usize = 1000;
const MOST_BYTES: usize = 16 << 20;

#[async_trait]
impl States for SqliteStore {
    async fn state(&self, conversation: &str) -> Result<Option<StateRow>, StoreError> {
        self.caught_up().await?;
        let query = sqlx::query(
            "select schema, present, upto, position, applied from states left join state_updates \
             on state_updates.conversation_id = states.conversation_id and position > upto \
             where states.conversation_id = ? order by position",
        );
        let rows = query.bind(conversation).fetch_all(self.pool()).await?;
        let Some(first) = rows.first() else { return Ok(None) };
        let (schema, present): (Option<String>, String) =
            (first.try_get("schema")?, first.try_get("present")?);
        let upto: i64 = first.try_get("upto")?;
        let mut next = upto + 1;
        let mut later = Vec::new();
        for row in &rows {
            if let Some(applied) = row.try_get::<Option<String>, _>("applied")? {
                next = next.max(row.try_get::<i64, _>("position")? + 1);
                later.push(applied);
            }
        }
        // Parsing a large state takes a while.
        let work = move || {
            let mut present = serde_json::from_str(&present).unwrap_or_else(|_| empty());
            for applied in later.iter().filter_map(|applied| serde_json::from_str::<Applied>(applied).ok()) {
                if let Err(error) = applied.redo(&mut present) {
                    tracing::error!(%error, "a stored update does not fit its state");
                }
            }
            present
        };
        let state = tokio::task::spawn_blocking(work).await.map_err(|_| StoreError::Closed)?;
        Ok(Some(StateRow { state, schema, next }))
    }

    async fn state_updates(&self, conversation: &str) -> Result<StateUpdates, StoreError> {
        self.caught_up().await?;
        let mut connection = self.pool().acquire().await?;
        // One transaction gives a consistent view.
        sqlx::query("begin").execute(&mut *connection).await?;
        let read = read(&mut connection, conversation).await;
        end(&mut connection, Ok(())).await?;
        Ok(read?)
    }

    async fn message_number(&self, conversation: &str, id: &str) -> Result<Option<i64>, StoreError> {
        self.caught_up().await?;
        let query = sqlx::query_scalar("select number from messages where id = ? and conversation_id = ?");
        Ok(query.bind(id).bind(conversation).fetch_optional(self.pool()).await?)
    }

    async fn put_state_schema(&self, conversation: &str, schema: Option<&str>) -> Result<bool, StoreError> {
        self.caught_up().await?;
        let query = sqlx::query(
            "insert into states (conversation_id, schema) select ?1, ?2 \
             where exists (select 1 from conversations where id = ?1) \
             on conflict (conversation_id) do update set schema = excluded.schema",
        );
        let done = query.bind(conversation).bind(schema).execute(self.pool()).await?;
        Ok(done.rows_affected() > 0)
    }

    async fn add_state_update(
        &self,
        conversation: &str,
        id: &str,
        update: &Update,
        (created, state): (&str, &str),
    ) -> Result<bool, StoreError> {
        self.caught_up().await?;
        let mut connection = self.pool().acquire().await?;
        begin(&mut connection).await?;
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
            trim(&mut connection, conversation).await?;
            Ok(true)
        };
        let (there, written) = apart(written.await);
        end(&mut connection, written).await?;
        fail::point("state.after");
        Ok(there)
    }

    async fn settle_state(&self, conversation: &str, row: &StateRow) -> Result<(), StoreError> {
        let upto = row.next - 1;
        let query =
            sqlx::query_scalar("select upto from states where conversation_id = ?").bind(conversation);
        let before: Option<i64> = query.fetch_optional(self.pool()).await?;
        if before.is_none_or(|before| before >= upto) {
            return Ok(());
        }
        let state = row.state.to_string();
        let mut connection = self.pool().acquire().await?;
        begin(&mut connection).await?;
        let written = async {
            let query =
                sqlx::query("update states set present = ?, upto = ? where conversation_id = ? and upto = ?");
            let query = query.bind(state).bind(upto).bind(conversation).bind(before);
            query.execute(&mut *connection).await?;
            trim(&mut connection, conversation).await
        };
        let written = written.await;
        end(&mut connection, written).await?;
        Ok(())
    }

    async fn roll_state_back(&self, conversation: &str, to: Back<'_>) -> Result<StateChange, StoreError> {
        self.caught_up().await?;
        let mut connection = self.pool().acquire().await?;
        begin(&mut connection).await?;
        let written = async {
            let mut updates = read(&mut connection, conversation).await?;
            let Some(count) = updates.count(to) else { return Ok(StateChange::Unknown) };
            let gone = if updates.reaches(to) { updates.take_back(count) } else { None };
            let Some(gone) = gone else { return Ok(StateChange::Gone) };
            write_back(&mut connection, conversation, &updates, &gone).await?;
            Ok(StateChange::Done(updates.present, gone.len()))
        };
        let written: sqlx::Result<StateChange> = written.await;
        let (change, written) = match written {
            Ok(change) => (change, Ok(())),
            Err(error) => (StateChange::Unknown, Err(error)),
        };
        end(&mut connection, written).await?;
        fail::point("state.after");
        Ok(change)
    }
}

fn apart(written: sqlx::Result<bool>) -> (bool, sqlx::Result<()>) {
    match written {
        Ok(done) => (done, Ok(())),
        Err(error) => (false, Err(error)),
    }
}

/// Undoes the updates of messages from a number on. Returns `false`, with nothing changed, if that is no
/// longer possible.
pub(super) async fn take_back_from(
    connection: &mut SqliteConnection,
    conversation: &str,
    number: i64,
) -> sqlx::Result<bool> {
    let mut updates = read(connection, conversation).await?;
    let of_message = |update: &UpdateRow| update.place >= number && !is_own_update(&update.id);
    if let Some(count) = updates.rows.iter().position(of_message) {
        let Some(gone) = updates.take_back(count) else { return Ok(false) };
        write_back(connection, conversation, &updates, &gone).await?;
        fail::point("state.amid");
    }
    Ok(true)
}

async fn read(connection: &mut SqliteConnection, conversation: &str) -> sqlx::Result<StateUpdates> {
    let query = sqlx::query_as("select base, floor, present, upto from states where conversation_id = ?");
    let head: Option<(String, i64, String, i64)> =
        query.bind(conversation).fetch_optional(&mut *connection).await?;
    let Some((base, floor, present, upto)) = head else {
        return Ok(StateUpdates { base: empty(), floor: -1, present: empty(), upto: 0, rows: Vec::new() });
    };
    let query = sqlx::query_as("select * from state_updates where conversation_id = ? order by position");
    let rows: Vec<UpdateRow> = query.bind(conversation).fetch_all(&mut *connection).await?;
    let parse = |text: &str| serde_json::from_str(text).unwrap_or_else(|_| empty());
    Ok(StateUpdates { base: parse(&base), floor, present: parse(&present), upto, rows })
}

/// Stores a rollback. Positions are not reused.
async fn write_back(
    connection: &mut SqliteConnection,
    conversation: &str,
    updates: &StateUpdates,
    gone: &[UpdateRow],
) -> sqlx::Result<()> {
    let last = gone.last().or(updates.rows.last()).map_or(0, |last| last.position);
    let upto = last.max(updates.upto);
    if let Some(first) = gone.first() {
        let query = sqlx::query("delete from state_updates where conversation_id = ? and position >= ?");
        query.bind(conversation).bind(first.position).execute(&mut *connection).await?;
        fail::point("state.amid");
    }
    let query = sqlx::query("update states set present = ?, upto = ? where conversation_id = ?");
    let query = query.bind(updates.present.to_string()).bind(upto).bind(conversation);
    query.execute(&mut *connection).await.map(|_| ())
}

/// Stores the base, and marks the updates that are part of it.
async fn write_base(
    connection: &mut SqliteConnection,
    conversation: &str,
    updates: &StateUpdates,
) -> sqlx::Result<()> {
    let query = sqlx::query("update states set base = ?, floor = ? where conversation_id = ?");
    let query = query.bind(updates.base.to_string()).bind(updates.floor).bind(conversation);
    query.execute(&mut *connection).await?;
    let Some(last) = updates.rows.iter().rfind(|row| row.passed) else { return Ok(()) };
    let query = sqlx::query(
        "update state_updates set passed = 1 where conversation_id = ? and position <= ? and passed = 0",
    );
    query.bind(conversation).bind(last.position).execute(connection).await.map(|_| ())
}

/// Removes the oldest updates beyond the limits.
async fn trim(connection: &mut SqliteConnection, conversation: &str) -> sqlx::Result<()> {
    let query = sqlx::query_as(
        "select count(*), coalesce(sum(length(applied)), 0) from state_updates where conversation_id = ?",
    );
    let (count, bytes): (i64, i64) = query.bind(conversation).fetch_one(&mut *connection).await?;
    let fits = |value: i64, most: usize| usize::try_from(value).is_ok_and(|value| value <= most);
    if fits(count, MOST) && fits(bytes, MOST_BYTES) {
        return Ok(());
    }
    let query = sqlx::query_scalar(
        "select length(applied) from state_updates where conversation_id = ? order by position desc",
    );
    let sizes: Vec<i64> = query.bind(conversation).fetch_all(&mut *connection).await?;
    // Frees a quarter of the limit at once, since it requires applying all of them.
    let mut room = MOST_BYTES / 4 * 3;
    let stay = sizes.iter().take(MOST / 4 * 3).take_while(|size| {
        let left = room.checked_sub(usize::try_from(**size).unwrap_or(usize::MAX));
        room = left.unwrap_or(0);
        left.is_some()
    });
    let stay = stay.count();
    let mut updates = read(connection, conversation).await?;
    let away = updates.rows.len().saturating_sub(stay);
    updates.pass(away.max(updates.passed()));
    let gone: Vec<i64> = updates.rows.drain(..away).map(|row| row.position).collect();
    write_base(connection, conversation, &updates).await?;
    let Some(last) = gone.last() else { return Ok(()) };
    let query = sqlx::query("delete from state_updates where conversation_id = ? and position <= ?");
    query.bind(conversation).bind(last).execute(connection).await.map(|_| ())
}

/// Inserts the updates of a message together with its record. Existing ones are skipped.
pub(super) async fn insert_updates(
    connection: &mut SqliteConnection,
    row: &MessageRow,
    updates: &[Update],
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
pub(super) async fn forget(connection: &mut SqliteConnection, messages: &[String]) -> sqlx::Result<()> {
    let mut query =
        QueryBuilder::<Sqlite>::new("select distinct conversation_id from state_updates where id in (");
    let mut list = query.separated(", ");
    messages.iter().for_each(|id| {
        list.push_bind(id);
    });
    let conversations: Vec<String> = query.push(")").build_query_scalar().fetch_all(&mut *connection).await?;
    for conversation in conversations {
        let mut updates = read(connection, &conversation).await?;
        let goes = |row: &UpdateRow| messages.contains(&row.id);
        let Some(last) = updates.rows.iter().rposition(goes) else { continue };
        // The snapshot must include the message's values before its updates are removed.
        if let Some(newest) = updates.rows.last().map(|row| row.position.max(updates.upto)) {
            updates.present = updates.now();
            updates.upto = newest;
        }
        updates.pass((last + 1).max(updates.passed()));
        updates.rows.retain(|row| !goes(row));
        let query = sqlx::query("update states set present = ?, upto = ? where conversation_id = ?");
        let query = query.bind(updates.present.to_string()).bind(updates.upto).bind(&conversation);
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

impl FromRow<'_, SqliteRow> for UpdateRow {
    fn from_row(row: &SqliteRow) -> sqlx::Result<UpdateRow> {
        let applied: String = row.try_get("applied")?;
        Ok(UpdateRow {
            position: row.try_get("position")?,
            id: row.try_get("id")?,
            place: row.try_get("place")?,
            passed: row.try_get("passed")?,
            created: row.try_get("created")?,
            applied: serde_json::from_str(&applied).map_err(|error| sqlx::Error::Decode(error.into()))?,
        })
    }
}
