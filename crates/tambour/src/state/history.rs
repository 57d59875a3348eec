//! Record of applied operations, by message (F-116, R-79). Any state is found from the record, by redoing
//! updates from a base or undoing them from the present.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::diff::{StateDifference, diff};
use super::operation::{Op, Operation};
use super::place::{ChangedPlace, StateKey, format_keys, insert_value, take_value, value_at};
use super::run::{BlockResult, BlockRun, undo_change, wrap_in_parents};
use super::{ApplyOptions, OpResult};
use crate::error::{Error, Result};

/// One block of operations of one message, as it was applied, with enough data to undo and redo it exactly.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AppliedBlock {
    /// Id of the message.
    pub message: String,
    /// The model's reason for the operations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub analysis: Option<String>,
    /// The operations as they were written; in place of a command, the plain operations it resolved to.
    pub operations: Vec<Operation>,
    /// Result of each operation.
    pub results: Vec<OpResult>,
    /// Places where the state changed, in order.
    pub spots: Vec<ChangedPlace>,
}

impl AppliedBlock {
    /// Applies operations to a state and records them.
    #[must_use]
    pub fn record(
        state: &mut Value,
        message: impl Into<String>,
        analysis: Option<String>,
        operations: Vec<Operation>,
        options: &ApplyOptions<'_>,
    ) -> AppliedBlock {
        let BlockResult { operations: resolved_operations, results, spots } =
            BlockRun::apply(state, &operations, options);
        let operations = resolved_operations.unwrap_or(operations);
        AppliedBlock { message: message.into(), analysis, operations, results, spots }
    }

    /// Restores the state before the block, including the order of its fields. The cost is proportional to
    /// the change.
    ///
    /// # Errors
    /// The state is not the one after the block; it is left unchanged.
    pub fn undo(&self, state: &mut Value) -> Result<()> {
        for (at, changed_place) in self.spots.iter().enumerate().rev() {
            if self.undo_change(state, changed_place).is_none() {
                for changed_place in &self.spots[at + 1..] {
                    self.redo_change(state, changed_place);
                }
                return Err(mismatch_error(&changed_place.parts));
            }
        }
        Ok(())
    }

    /// Applies the recorded changes again; current limits and schema are ignored.
    ///
    /// # Errors
    /// The state is not the one before the block; it is left unchanged.
    pub fn redo(&self, state: &mut Value) -> Result<()> {
        for (at, changed_place) in self.spots.iter().enumerate() {
            if self.redo_change(state, changed_place).is_none() {
                for changed_place in self.spots[..at].iter().rev() {
                    self.undo_change(state, changed_place);
                }
                return Err(mismatch_error(&changed_place.parts));
            }
        }
        Ok(())
    }

    /// Undoes one change; `None`, with nothing changed, if the state does not hold the value after the change.
    fn undo_change(&self, state: &mut Value, changed_place: &ChangedPlace) -> Option<()> {
        let result = self.results.get(changed_place.index)?;
        let added_value = match &result.after {
            Some(after) => Some(self.added_value(changed_place, after)?),
            None => None,
        };
        if let Some(added_value) = &added_value
            && value_at(state, &changed_place.parts)? != added_value
        {
            return None;
        }
        let is_present = added_value.is_some();
        undo_change(state, &changed_place.parts, changed_place.position, result.before.clone(), is_present)
            .then_some(())
    }

    /// Redoes one change; `None`, with nothing changed, if the state does not hold the value before the change.
    fn redo_change(&self, state: &mut Value, changed_place: &ChangedPlace) -> Option<()> {
        let result = self.results.get(changed_place.index)?;
        if let Some(before) = &result.before
            && value_at(state, &changed_place.parts)? != before
        {
            return None;
        }
        match (&result.before, &result.after) {
            (Some(_), Some(after)) => {
                value_at(state, &changed_place.parts).map(|place| *place = after.clone())
            }
            (Some(_), None) => take_value(state, &changed_place.parts).map(drop),
            (None, Some(after)) => {
                insert_value(state, &changed_place.parts, None, self.added_value(changed_place, after)?).ok()
            }
            (None, None) => None,
        }
    }

    /// Returns the value added at a changed place, including the parents created for it.
    fn added_value(&self, changed_place: &ChangedPlace, after: &Value) -> Option<Value> {
        let (op, parent_keys) =
            self.operations.get(changed_place.index)?.keys_below(changed_place.parts.len())?;
        // An appended element is below the list that its path names, so no list was created.
        let is_appended = matches!(changed_place.parts.last(), Some(StateKey::Index(_)));
        Some(wrap_in_parents(&parent_keys, if is_appended { Op::Set } else { op }, after.clone()))
    }
}

fn mismatch_error(parts: &[StateKey]) -> Error {
    Error::invalid(format!("the record does not fit the state at `{}`", format_keys(parts)))
}

/// Returns the state after `blocks`; `base` is the state before them.
///
/// # Errors
/// The blocks do not fit together.
pub fn fold<'a>(mut base: Value, blocks: impl IntoIterator<Item = &'a AppliedBlock>) -> Result<Value> {
    blocks.into_iter().try_for_each(|block| block.redo(&mut base))?;
    Ok(base)
}

/// Undoes `blocks`, the last one first.
///
/// # Errors
/// The blocks do not fit the state, which is left unchanged.
pub fn rollback(state: &mut Value, blocks: &[AppliedBlock]) -> Result<()> {
    for (at, block) in blocks.iter().enumerate().rev() {
        if let Err(error) = block.undo(state) {
            blocks[at + 1..].iter().try_for_each(|block| block.redo(state))?;
            return Err(error);
        }
    }
    Ok(())
}

/// Point in a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HistoryPoint<'a> {
    /// Before the first update.
    Start,
    /// Before the first update of a message, where its regeneration begins.
    BeforeMessage(&'a str),
    /// After the last update of a message.
    AfterMessage(&'a str),
    /// The present.
    End,
}

/// Reason why a point cannot be restored.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum RollbackError {
    /// No known update belongs to the message.
    UnknownMessage,
    /// The point is before the base, since a message was deleted or has expired.
    Expired,
    /// The records do not fit together.
    Mismatch(Error),
}

impl fmt::Display for RollbackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RollbackError::UnknownMessage => f.write_str("the message did not update the state"),
            RollbackError::Expired => {
                f.write_str("the state of that time is gone, since a message was deleted")
            }
            RollbackError::Mismatch(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RollbackError {}

impl From<Error> for RollbackError {
    fn from(error: Error) -> RollbackError {
        RollbackError::Mismatch(error)
    }
}

/// The updates of a conversation, with the state before them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StateHistory {
    /// The state before the first update that can be undone.
    base: Value,
    /// Number of updates in `applied` that precede the base; they are still listed, but cannot be undone.
    passed: usize,
    /// True once the base is no longer the initial one.
    moved: bool,
    /// All known updates in order.
    applied: Vec<AppliedBlock>,
}

impl StateHistory {
    /// Creates a history without updates, which begins with the state `base`.
    #[must_use]
    pub fn new(base: Value) -> StateHistory {
        StateHistory { base, passed: 0, moved: false, applied: Vec::new() }
    }

    /// Adds a block applied to the latest state.
    pub fn push(&mut self, block: AppliedBlock) {
        self.applied.push(block);
    }

    /// Returns all known updates in order.
    #[must_use]
    pub fn applied(&self) -> &[AppliedBlock] {
        &self.applied
    }

    /// Returns the state at a point, folded from the base.
    ///
    /// # Errors
    /// The point is unknown or gone, or the records do not fit together.
    pub fn state(&self, point: HistoryPoint<'_>) -> std::result::Result<Value, RollbackError> {
        let end = self.updates_before(point)?;
        Ok(fold(self.base.clone(), &self.applied[self.passed..end])?)
    }

    /// Restores the present state `state` to a point. Returns the undone updates, which leave the history.
    ///
    /// # Errors
    /// The point is unknown or gone, or `state` is not the present one. Nothing is changed in that case.
    pub fn rollback(
        &mut self,
        state: &mut Value,
        to: HistoryPoint<'_>,
    ) -> std::result::Result<Vec<AppliedBlock>, RollbackError> {
        let end = self.updates_before(to)?;
        rollback(state, &self.applied[end..])?;
        Ok(self.applied.split_off(end))
    }

    /// Compares the states at two points.
    ///
    /// # Errors
    /// Fails for the same reasons as [`StateHistory::state`].
    pub fn diff(
        &self,
        from: HistoryPoint<'_>,
        to: HistoryPoint<'_>,
    ) -> std::result::Result<Vec<StateDifference>, RollbackError> {
        Ok(diff(&self.state(from)?, &self.state(to)?))
    }

    /// Removes the updates of a message from the history. The present state stays; states before the last
    /// update of the message can no longer be restored. Returns true if the message had updates.
    ///
    /// # Errors
    /// The records do not fit together.
    pub fn remove_message(&mut self, message: &str) -> Result<bool> {
        let Some(last) = self.applied.iter().rposition(|block| block.message == message) else {
            return Ok(false);
        };
        if last >= self.passed {
            self.base = fold(self.base.clone(), &self.applied[self.passed..=last])?;
            self.passed = last + 1;
            self.moved = true;
        }
        let is_of_message = |block: &&AppliedBlock| block.message == message;
        self.passed -= self.applied[..self.passed].iter().filter(is_of_message).count();
        self.applied.retain(|block| block.message != message);
        Ok(true)
    }

    /// Returns the number of updates before a point.
    fn updates_before(&self, point: HistoryPoint<'_>) -> std::result::Result<usize, RollbackError> {
        let check_reachable = |at: Option<usize>| match at {
            None => Err(RollbackError::UnknownMessage),
            Some(at) if at < self.passed => Err(RollbackError::Expired),
            Some(at) => Ok(at),
        };
        match point {
            HistoryPoint::Start if self.moved => Err(RollbackError::Expired),
            HistoryPoint::Start => Ok(0),
            HistoryPoint::BeforeMessage(message) => {
                check_reachable(self.applied.iter().position(|block| block.message == message))
            }
            HistoryPoint::AfterMessage(message) => {
                check_reachable(self.applied.iter().rposition(|block| block.message == message))
                    .map(|at| at + 1)
            }
            HistoryPoint::End => Ok(self.applied.len()),
        }
    }
}
