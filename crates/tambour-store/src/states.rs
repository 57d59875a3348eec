//! States of conversations: a base, the updates applied to it, and a snapshot at one of the updates (F-116,
//!
//!
//! An update comes with a message or from the HTTP route that changes the state. The updates of a message are
//! stored with its record in one transaction, so all of them exist or none. The current state is computed
//! when it is read.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tambour::state::AppliedBlock;

use super::StoreError;

/// Update in its stored form, on its way to the database.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StoredUpdate {
    /// Position among the updates of the conversation, from 1.
    pub position: i64,
    /// Applied operations (an [`AppliedBlock`]), as JSON.
    pub applied: String,
}

/// Current state of a conversation.
#[derive(Clone, Debug)]
pub struct StateRow {
    /// State after all updates.
    pub state: Value,
    /// JSON Schema that updates must satisfy.
    pub schema: Option<String>,
    /// Position of the next update.
    pub next_position: i64,
}

impl Default for StateRow {
    fn default() -> StateRow {
        StateRow { state: empty_state(), schema: None, next_position: 1 }
    }
}

/// Stored update.
#[derive(Clone, Debug)]
pub struct StateUpdateRow {
    /// Position among the updates of the conversation, from 1.
    pub position: i64,
    /// Id of the message that the update came with, or for an update by the HTTP route an id with the prefix
    /// [`ROUTE_UPDATE`].
    pub id: String,
    /// Number of the message that the update came with, or of the last message before the update.
    pub message_number: i64,
    /// True if the update is part of the base: it is still listed but cannot be undone.
    pub is_in_base: bool,
    /// RFC 3339 time of the update, or of the message that it came with.
    pub created: String,
    /// Applied operations.
    pub applied: AppliedBlock,
}

/// History of a conversation's state: base, updates and snapshot.
#[derive(Clone, Debug)]
pub struct StateUpdates {
    /// State before the first update that can be undone.
    pub(super) base: Value,
    /// Message number of the last update that is part of the base; -1 if there is none.
    pub(super) base_number: i64,
    /// State after the updates up to `snapshot_position`.
    pub(super) snapshot: Value,
    /// Position of the last update that is part of the snapshot.
    pub(super) snapshot_position: i64,
    /// Updates, oldest first. The oldest ones may be part of the base.
    pub rows: Vec<StateUpdateRow>,
}

/// Point in the history of a state.
#[derive(Clone, Copy, Debug)]
pub enum StatePoint<'a> {
    /// Before all updates.
    Start,
    /// After the update with this id, which the HTTP route made.
    Update(&'a str),
    /// After a message, by id and number.
    After(&'a str, i64),
}

/// Result of a rollback.
#[derive(Clone, Debug)]
pub enum StateRollback {
    /// The state at the point, and the number of updates undone to reach it.
    Done(Value, usize),
    /// The point is unknown.
    Unknown,
    /// The state at the point is no longer known, because the base includes later updates.
    Gone,
}

/// Returns the state before all updates.
pub(super) fn empty_state() -> Value {
    Value::Object(serde_json::Map::new())
}

/// Maximum number of updates of one conversation that are kept; older ones become part of the base.
const MAX_UPDATES: usize = 1000;
/// Maximum number of bytes of all these updates together.
const MAX_UPDATE_BYTES: usize = 16 << 20;

/// Returns `true` if that many updates of that many bytes may be kept.
pub(crate) fn are_updates_within_limits(count: i64, bytes: i64) -> bool {
    let is_within = |value: i64, max: usize| usize::try_from(value).is_ok_and(|value| value <= max);
    is_within(count, MAX_UPDATES) && is_within(bytes, MAX_UPDATE_BYTES)
}

/// Returns the number of updates to keep of those with these sizes in bytes, newest first: three quarters of
/// the limits. Moving updates to the base costs reading and applying all of them, so it should be rare.
pub(crate) fn count_kept_updates(sizes: &[i64]) -> usize {
    let mut bytes_left = MAX_UPDATE_BYTES / 4 * 3;
    let kept_sizes = sizes.iter().take(MAX_UPDATES / 4 * 3).take_while(|size| {
        let difference = bytes_left.checked_sub(usize::try_from(**size).unwrap_or(usize::MAX));
        bytes_left = difference.unwrap_or(0);
        difference.is_some()
    });
    kept_sizes.count()
}

/// Computes a state from its stored snapshot and the updates after it, both JSON.
pub(crate) async fn compute_state(snapshot: String, later_updates: Vec<String>) -> Result<Value, StoreError> {
    // Parsing a large state takes a while: it must not block the threads of the runtime.
    let computation = move || {
        let mut state = serde_json::from_str(&snapshot).unwrap_or_else(|_| empty_state());
        let blocks = later_updates
            .iter()
            .filter_map(|applied_json| serde_json::from_str::<AppliedBlock>(applied_json).ok());
        for block in blocks {
            if let Err(error) = block.redo(&mut state) {
                tracing::error!(%error, "a stored update does not fit its state");
            }
        }
        state
    };
    tokio::task::spawn_blocking(computation).await.map_err(|_| StoreError::Closed)
}

impl Default for StateUpdates {
    /// Makes the history of a state without updates.
    fn default() -> StateUpdates {
        StateUpdates {
            base: empty_state(),
            base_number: -1,
            snapshot: empty_state(),
            snapshot_position: 0,
            rows: Vec::new(),
        }
    }
}

impl StateUpdates {
    /// Makes a history from its stored form: base and snapshot as JSON, with the number of the message that the
    /// base includes and the position of the snapshot.
    pub(super) fn from_stored(
        (base, base_number): (&str, i64),
        (snapshot, snapshot_position): (&str, i64),
        rows: Vec<StateUpdateRow>,
    ) -> StateUpdates {
        let parse = |text: &str| serde_json::from_str(text).unwrap_or_else(|_| empty_state());
        StateUpdates { base: parse(base), base_number, snapshot: parse(snapshot), snapshot_position, rows }
    }

    /// Removes the updates of deleted messages from the history, and makes them and all updates before them
    /// part of the base; the current state is kept. Returns `false` if there are none.
    pub(super) fn forget(&mut self, messages: &[String]) -> bool {
        let is_forgotten = |row: &StateUpdateRow| messages.contains(&row.id);
        let Some(last) = self.rows.iter().rposition(is_forgotten) else { return false };
        // The snapshot must include the message's values before its updates are removed.
        if let Some(newest_position) = self.rows.last().map(|row| row.position.max(self.snapshot_position)) {
            self.snapshot = self.current_state();
            self.snapshot_position = newest_position;
        }
        self.move_to_base((last + 1).max(self.base_len()));
        self.rows.retain(|row| !is_forgotten(row));
        true
    }

    /// Returns the number of updates up to a point, those in the base included; `None` if the point is
    /// unknown.
    pub(super) fn count_to(&self, point: StatePoint<'_>) -> Option<usize> {
        let count_through_last = |predicate: &dyn Fn(&StateUpdateRow) -> bool| {
            self.rows.iter().rposition(predicate).map(|at| at + 1)
        };
        match point {
            StatePoint::Start => Some(0),
            StatePoint::Update(id) => count_through_last(&|row| row.id == id),
            // A message without updates has the state of the one before it.
            StatePoint::After(id, number) => {
                let is_up_to = |row: &StateUpdateRow| row.id == id || row.message_number < number;
                Some(count_through_last(&is_up_to).unwrap_or(0))
            }
        }
    }

    /// Returns the number of updates that are part of the base.
    pub(super) fn base_len(&self) -> usize {
        self.rows.iter().take_while(|row| row.is_in_base).count()
    }

    /// Returns `true` if the state at a point can still be computed.
    pub(super) fn can_reach(&self, point: StatePoint<'_>) -> bool {
        let has_update_after_base = |id: &str| self.rows.iter().any(|row| row.id == id && !row.is_in_base);
        match point {
            StatePoint::Start => self.base_number < 0,
            StatePoint::Update(id) => has_update_after_base(id),
            StatePoint::After(id, number) => number > self.base_number || has_update_after_base(id),
        }
    }

    /// Computes the state at a point. Nothing is undone.
    pub fn state_at(&self, point: StatePoint<'_>) -> StateRollback {
        match self.count_to(point) {
            None => StateRollback::Unknown,
            Some(_) if !self.can_reach(point) => StateRollback::Gone,
            Some(count) => {
                StateRollback::Done(apply_updates(self.base.clone(), &self.rows[self.base_len()..count]), 0)
            }
        }
    }

    /// Computes the state after all updates.
    #[must_use]
    pub fn current_state(&self) -> Value {
        let snapshot_len = self.rows.partition_point(|row| row.position <= self.snapshot_position);
        apply_updates(self.snapshot.clone(), &self.rows[snapshot_len..])
    }

    /// Removes and returns the updates after the first `count`, and makes the state before them the snapshot.
    /// `None`, with nothing changed, if some of them are part of the base. `snapshot_position` is not
    /// changed: the caller sets it, since positions are not used again.
    pub(super) fn undo_after(&mut self, count: usize) -> Option<Vec<StateUpdateRow>> {
        if count < self.base_len() {
            return None;
        }
        self.snapshot = apply_updates(self.base.clone(), &self.rows[self.base_len()..count]);
        Some(self.rows.split_off(count))
    }

    /// Makes the first `count` updates part of the base.
    pub(super) fn move_to_base(&mut self, count: usize) {
        let base_len = self.base_len();
        if count > base_len {
            self.base = apply_updates(std::mem::take(&mut self.base), &self.rows[base_len..count]);
            self.rows[base_len..count].iter_mut().for_each(|row| row.is_in_base = true);
            self.base_number = self.base_number.max(self.rows[count - 1].message_number);
        }
    }
}

/// Applies updates to a state. An update that does not fit (damaged data) is skipped.
fn apply_updates(mut state: Value, rows: &[StateUpdateRow]) -> Value {
    for row in rows {
        if let Err(error) = row.applied.redo(&mut state) {
            tracing::error!(%error, id = row.id, position = row.position, "a stored update does not fit its state");
        }
    }
    state
}

/// Prefix of the ids of updates that the HTTP route made, not a message.
pub const ROUTE_UPDATE: &str = "upd";

/// Returns `true` for the id of an update that the HTTP route made.
#[must_use]
pub fn is_route_update(id: &str) -> bool {
    id.strip_prefix(ROUTE_UPDATE).is_some_and(|suffix| suffix.starts_with('_'))
}

/// Storage of states.
#[async_trait]
pub trait States: Send + Sync {
    /// Returns the current state of a conversation, or `None` if it has none.
    ///
    /// # Errors
    /// The database failed.
    async fn state(&self, conversation: &str) -> Result<Option<StateRow>, StoreError>;

    /// Returns the updates of a conversation's state.
    ///
    /// # Errors
    /// The database failed.
    async fn state_updates(&self, conversation: &str) -> Result<StateUpdates, StoreError>;

    /// Returns the number of the message with that id; `None` if the conversation has no such message.
    ///
    /// # Errors
    /// The database failed.
    async fn message_number(&self, conversation: &str, id: &str) -> Result<Option<i64>, StoreError>;

    /// Sets or removes the schema of a conversation's state. Returns `false` if the conversation does not
    /// exist.
    ///
    /// # Errors
    /// The database failed, or this server has lost the access of [`Cluster::conversation_lock`](crate::Cluster).
    async fn put_state_schema(&self, conversation: &str, schema: Option<&str>) -> Result<bool, StoreError>;

    /// Stores an update that the HTTP route made. `created_and_state` has the RFC 3339 time of the update,
    /// and the state after the update as JSON. Returns `false` if the conversation does not exist.
    ///
    /// # Errors
    /// The database failed, or this server has lost the access of [`Cluster::conversation_lock`](crate::Cluster).
    async fn add_state_update(
        &self,
        conversation: &str,
        id: &str,
        update: &StoredUpdate,
        created_and_state: (&str, &str),
    ) -> Result<bool, StoreError>;

    /// Stores the state of `row` as the snapshot, so that later reads apply fewer updates. Does nothing if
    /// the stored snapshot is at least as new, or was changed meanwhile.
    ///
    /// # Errors
    /// The database failed.
    async fn store_snapshot(&self, conversation: &str, row: &StateRow) -> Result<(), StoreError>;

    /// Rolls the state of a conversation back to a point, which undoes all updates after it.
    ///
    /// # Errors
    /// The database failed, or this server has lost the access of [`Cluster::conversation_lock`](crate::Cluster).
    async fn roll_state_back(
        &self,
        conversation: &str,
        point: StatePoint<'_>,
    ) -> Result<StateRollback, StoreError>;
}
