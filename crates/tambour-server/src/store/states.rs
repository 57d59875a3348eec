//! States of conversations: a base, what was applied to it, and the state as it was at one of the updates (F-116, R-79).
//!
//! The updates of a message come with its record, in the same transaction: all of them or none are there. What they make of
//! the state is worked out when it is read.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tambour::state::Applied;

use super::StoreError;

/// One update of a message on its way to the database.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Update {
    /// Its order within the conversation.
    pub position: i64,
    /// What was applied, as JSON.
    pub applied: String,
}

/// The present state of a conversation.
#[derive(Clone, Debug)]
pub struct StateRow {
    /// The state after all updates.
    pub state: Value,
    /// JSON Schema that updates must satisfy.
    pub schema: Option<String>,
    /// Position of the next update.
    pub next: i64,
}

impl Default for StateRow {
    fn default() -> StateRow {
        StateRow { state: empty(), schema: None, next: 1 }
    }
}

/// An update as it is stored.
#[derive(Clone, Debug)]
pub struct UpdateRow {
    /// Its order within the conversation.
    pub position: i64,
    /// The message, or a word of its own for what came by the route.
    pub id: String,
    /// Number of the message, or of the last one before it.
    pub place: i64,
    /// Whether it lies before the base: it is told, and not taken back any more.
    pub passed: bool,
    /// RFC 3339 time.
    pub created: String,
    /// What was applied.
    pub applied: Applied,
}

/// What was applied to the state of a conversation, oldest first.
#[derive(Clone, Debug)]
pub struct StateUpdates {
    pub(super) base: Value,
    /// Place of the last update that is a part of the base; -1 while there is none.
    pub(super) floor: i64,
    pub(super) present: Value,
    pub(super) upto: i64,
    /// All that is known.
    pub rows: Vec<UpdateRow>,
}

/// A point in the history of a state.
#[derive(Clone, Copy, Debug)]
pub enum Back<'a> {
    /// Before everything.
    Start,
    /// After the update that came by the route under that id.
    Update(&'a str),
    /// After a message, by id and number.
    After(&'a str, i64),
}

/// What came of going back.
#[derive(Clone, Debug)]
pub enum StateChange {
    /// The state it is now, and how many updates were taken back.
    Done(Value, usize),
    /// No such point is known.
    Unknown,
    /// The point lies before what was deleted.
    Gone,
}

pub(super) fn empty() -> Value {
    Value::Object(serde_json::Map::new())
}

impl StateUpdates {
    /// How many updates there are up to a point; `None` if it is not known.
    pub(super) fn count(&self, to: Back<'_>) -> Option<usize> {
        let last = |fits: &dyn Fn(&UpdateRow) -> bool| self.rows.iter().rposition(fits).map(|at| at + 1);
        match to {
            Back::Start => Some(0),
            Back::Update(id) => last(&|row| row.id == id),
            // A message without updates has the state of the one before it.
            Back::After(id, number) => Some(last(&|row| row.id == id || row.place < number).unwrap_or(0)),
        }
    }

    /// Updates that lie before the base.
    pub(super) fn passed(&self) -> usize {
        self.rows.iter().take_while(|row| row.passed).count()
    }

    /// Whether the state at a point can still be told.
    pub(super) fn reaches(&self, to: Back<'_>) -> bool {
        let stands = |id: &str| self.rows.iter().any(|row| row.id == id && !row.passed);
        match to {
            Back::Start => self.floor < 0,
            Back::Update(id) => stands(id),
            Back::After(id, number) => number > self.floor || stands(id),
        }
    }

    /// The state at a point.
    pub fn at(&self, to: Back<'_>) -> StateChange {
        match self.count(to) {
            None => StateChange::Unknown,
            Some(_) if !self.reaches(to) => StateChange::Gone,
            Some(count) => StateChange::Done(redone(self.base.clone(), &self.rows[self.passed()..count]), 0),
        }
    }

    /// The state after all of them.
    #[must_use]
    pub fn now(&self) -> Value {
        let settled = self.rows.partition_point(|row| row.position <= self.upto);
        redone(self.present.clone(), &self.rows[settled..])
    }

    /// Takes all behind the first `count` back; they leave the list. `None` when they are a part of the base.
    pub(super) fn take_back(&mut self, count: usize) -> Option<Vec<UpdateRow>> {
        if count < self.passed() {
            return None;
        }
        self.present = redone(self.base.clone(), &self.rows[self.passed()..count]);
        Some(self.rows.split_off(count))
    }

    /// Makes the first `count` a part of the base.
    pub(super) fn pass(&mut self, count: usize) {
        let passed = self.passed();
        if count > passed {
            self.base = redone(std::mem::take(&mut self.base), &self.rows[passed..count]);
            self.rows[passed..count].iter_mut().for_each(|row| row.passed = true);
            self.floor = self.floor.max(self.rows[count - 1].place);
        }
    }
}

/// A state with these updates. One that does not fit a damaged store is left out.
fn redone(mut state: Value, rows: &[UpdateRow]) -> Value {
    for row in rows {
        if let Err(error) = row.applied.redo(&mut state) {
            tracing::error!(%error, id = row.id, position = row.position, "a stored update does not fit its state");
        }
    }
    state
}

/// Start of the ids of updates that came by the route.
pub const OWN_UPDATE: &str = "upd";

/// Whether an id is that of an update that came by the route.
#[must_use]
pub fn is_own_update(id: &str) -> bool {
    id.strip_prefix(OWN_UPDATE).is_some_and(|rest| rest.starts_with('_'))
}

/// States of a store.
#[async_trait]
pub trait States: Send + Sync {
    /// The state of a conversation as it is now; `None` while it has none.
    ///
    /// # Errors
    /// The database failed.
    async fn state(&self, conversation: &str) -> Result<Option<StateRow>, StoreError>;

    /// What was applied to the state of a conversation.
    ///
    /// # Errors
    /// The database failed.
    async fn state_updates(&self, conversation: &str) -> Result<StateUpdates, StoreError>;

    /// The number of a message of a conversation, in the order in which they came.
    ///
    /// # Errors
    /// The database failed.
    async fn message_number(&self, conversation: &str, id: &str) -> Result<Option<i64>, StoreError>;

    /// Gives the state of a conversation a schema, or none. False when there is no such conversation any more.
    ///
    /// # Errors
    /// The database failed.
    async fn put_state_schema(&self, conversation: &str, schema: Option<&str>) -> Result<bool, StoreError>;

    /// Stores an update that came by the route, and the state after it. False when there is no such conversation any more.
    ///
    /// # Errors
    /// The database failed.
    async fn add_state_update(
        &self,
        conversation: &str,
        id: &str,
        update: &Update,
        created_state: (&str, &str),
    ) -> Result<bool, StoreError>;

    /// Makes what came since the last time a part of what is read at once.
    ///
    /// # Errors
    /// The database failed.
    async fn settle_state(&self, conversation: &str, row: &StateRow) -> Result<(), StoreError>;

    /// Takes the state of a conversation back to a point.
    ///
    /// # Errors
    /// The database failed.
    async fn roll_state_back(&self, conversation: &str, to: Back<'_>) -> Result<StateChange, StoreError>;
}
