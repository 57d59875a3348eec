//! Record of applied operations, by message (F-116, R-79). The state is a fold of the record, forwards from a
//! base or backwards from the present.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::diff::{Difference, diff};
use super::operation::{Op, Operation};
use super::run::{Ran, Run, nested, undo};
use super::spot::{Part, Spot, at, insert, path_of, take};
use super::{ApplyOptions, OpResult};
use crate::error::{Error, Result};

/// One block of operations of one message, as it was applied, with enough data to undo and redo it exactly.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Applied {
    /// Id of the message.
    pub message: String,
    /// The model's reason for the operations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub analysis: Option<String>,
    /// The operations as they were written.
    pub operations: Vec<Operation>,
    /// Result of each operation.
    pub results: Vec<OpResult>,
    /// Places where the state changed, in order.
    pub spots: Vec<Spot>,
}

impl Applied {
    /// Applies operations to a state and records them.
    #[must_use]
    pub fn record(
        state: &mut Value,
        message: impl Into<String>,
        analysis: Option<String>,
        operations: Vec<Operation>,
        options: &ApplyOptions<'_>,
    ) -> Applied {
        let Ran { operations: settled, results, spots } = Run::of(state, &operations, options);
        let operations = settled.unwrap_or(operations);
        Applied { message: message.into(), analysis, operations, results, spots }
    }

    /// Restores the state before the block, including the order of its fields. The cost is proportional to
    /// the change.
    ///
    /// # Errors
    /// The state is not the one after the block; it is left unchanged.
    pub fn undo(&self, state: &mut Value) -> Result<()> {
        for (at, spot) in self.spots.iter().enumerate().rev() {
            if self.back(state, spot).is_none() {
                for spot in &self.spots[at + 1..] {
                    self.again(state, spot);
                }
                return Err(unfit(&spot.parts));
            }
        }
        Ok(())
    }

    /// Applies the recorded changes again; current limits and schema are ignored.
    ///
    /// # Errors
    /// The state is not the one before the block; it is left unchanged.
    pub fn redo(&self, state: &mut Value) -> Result<()> {
        for (at, spot) in self.spots.iter().enumerate() {
            if self.again(state, spot).is_none() {
                for spot in self.spots[..at].iter().rev() {
                    self.back(state, spot);
                }
                return Err(unfit(&spot.parts));
            }
        }
        Ok(())
    }

    /// Undoes one change if the new value is present.
    fn back(&self, state: &mut Value, spot: &Spot) -> Option<()> {
        let result = self.results.get(spot.index)?;
        let came = match &result.after {
            Some(after) => Some(self.came(spot, after)?),
            None => None,
        };
        if let Some(came) = &came
            && at(state, &spot.parts)? != came
        {
            return None;
        }
        undo(state, &spot.parts, spot.position, result.before.clone(), came.is_some()).then_some(())
    }

    /// Redoes one change if the old value is present.
    fn again(&self, state: &mut Value, spot: &Spot) -> Option<()> {
        let result = self.results.get(spot.index)?;
        if let Some(before) = &result.before
            && at(state, &spot.parts)? != before
        {
            return None;
        }
        match (&result.before, &result.after) {
            (Some(_), Some(after)) => at(state, &spot.parts).map(|place| *place = after.clone()),
            (Some(_), None) => take(state, &spot.parts).map(drop),
            (None, Some(after)) => insert(state, &spot.parts, None, self.came(spot, after)?).ok(),
            (None, None) => None,
        }
    }

    /// Returns the value added at a spot, including the parents created for it.
    fn came(&self, spot: &Spot, after: &Value) -> Option<Value> {
        let (op, below) = self.operations.get(spot.index)?.made_below(spot.parts.len())?;
        // An appended element is below the list that its path names, so no list was created.
        let appended = matches!(spot.parts.last(), Some(Part::Index(_)));
        Some(nested(&below, if appended { Op::Set } else { op }, after.clone()))
    }
}

fn unfit(parts: &[Part]) -> Error {
    Error::invalid(format!("the record does not fit the state at `{}`", path_of(parts)))
}

/// Returns the state after these blocks, from the state before them.
///
/// # Errors
/// The blocks do not fit together.
pub fn fold<'a>(mut base: Value, applied: impl IntoIterator<Item = &'a Applied>) -> Result<Value> {
    applied.into_iter().try_for_each(|one| one.redo(&mut base))?;
    Ok(base)
}

/// Undoes these blocks, last one first.
///
/// # Errors
/// The blocks do not fit the state, which is left unchanged.
pub fn rollback(state: &mut Value, applied: &[Applied]) -> Result<()> {
    for (at, one) in applied.iter().enumerate().rev() {
        if let Err(error) = one.undo(state) {
            applied[at + 1..].iter().try_for_each(|one| one.redo(state))?;
            return Err(error);
        }
    }
    Ok(())
}

/// Point in a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point<'a> {
    /// Before the first update.
    Start,
    /// Before the first update of a message, where its regeneration begins.
    Before(&'a str),
    /// After the last update of a message.
    After(&'a str),
    /// The present.
    End,
}

/// Reason why a point cannot be restored.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum RollbackError {
    /// The message has no known update.
    Unknown,
    /// The point is before the base: messages after it were deleted or have expired.
    Gone,
    /// The records do not fit together.
    Unfit(Error),
}

impl fmt::Display for RollbackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RollbackError::Unknown => f.write_str("the message has no update of the state"),
            RollbackError::Gone => f.write_str("the state of that time is gone, since a message was deleted"),
            RollbackError::Unfit(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RollbackError {}

impl From<Error> for RollbackError {
    fn from(error: Error) -> RollbackError {
        RollbackError::Unfit(error)
    }
}

/// The updates of a conversation, with the state before them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct History {
    /// The state before the first update that can be undone.
    base: Value,
    /// Number of updates before the base: still listed, but no longer undone.
    passed: usize,
    /// Set once the base differs from the initial one.
    moved: bool,
    applied: Vec<Applied>,
}

impl History {
    /// Creates an empty history.
    #[must_use]
    pub fn new(base: Value) -> History {
        History { base, passed: 0, moved: false, applied: Vec::new() }
    }

    /// Adds a block applied to the latest state.
    pub fn push(&mut self, applied: Applied) {
        self.applied.push(applied);
    }

    /// Returns all known updates in order.
    #[must_use]
    pub fn applied(&self) -> &[Applied] {
        &self.applied
    }

    /// Returns the state at a point, folded from the base.
    ///
    /// # Errors
    /// The point is unknown or gone, or the records do not fit together.
    pub fn state(&self, point: Point<'_>) -> std::result::Result<Value, RollbackError> {
        let end = self.place(point)?;
        Ok(fold(self.base.clone(), &self.applied[self.passed..end])?)
    }

    /// Restores `state`, the present one, to a point. Returns the undone updates, which leave the history.
    ///
    /// # Errors
    /// The point is unknown or gone, or `state` is not the present one. Nothing is changed in that case.
    pub fn rollback(
        &mut self,
        state: &mut Value,
        to: Point<'_>,
    ) -> std::result::Result<Vec<Applied>, RollbackError> {
        let end = self.place(to)?;
        rollback(state, &self.applied[end..])?;
        Ok(self.applied.split_off(end))
    }

    /// Compares the states at two points.
    ///
    /// # Errors
    /// As for [`History::state`].
    pub fn diff(
        &self,
        from: Point<'_>,
        to: Point<'_>,
    ) -> std::result::Result<Vec<Difference>, RollbackError> {
        Ok(diff(&self.state(from)?, &self.state(to)?))
    }

    /// Removes the updates of a message from the history. The present state stays; states before its last
    /// update can no longer be restored. Returns true if the message had updates.
    ///
    /// # Errors
    /// The records do not fit together.
    pub fn forget(&mut self, message: &str) -> Result<bool> {
        let Some(last) = self.applied.iter().rposition(|one| one.message == message) else {
            return Ok(false);
        };
        if last >= self.passed {
            self.base = fold(self.base.clone(), &self.applied[self.passed..=last])?;
            self.passed = last + 1;
            self.moved = true;
        }
        let of = |one: &&Applied| one.message == message;
        self.passed -= self.applied[..self.passed].iter().filter(of).count();
        self.applied.retain(|one| one.message != message);
        Ok(true)
    }

    /// Returns the number of updates before a point.
    fn place(&self, point: Point<'_>) -> std::result::Result<usize, RollbackError> {
        let reachable = |at: Option<usize>| match at {
            None => Err(RollbackError::Unknown),
            Some(at) if at < self.passed => Err(RollbackError::Gone),
            Some(at) => Ok(at),
        };
        match point {
            Point::Start if self.moved => Err(RollbackError::Gone),
            Point::Start => Ok(0),
            Point::Before(message) => reachable(self.applied.iter().position(|one| one.message == message)),
            Point::After(message) => {
                reachable(self.applied.iter().rposition(|one| one.message == message)).map(|at| at + 1)
            }
            Point::End => Ok(self.applied.len()),
        }
    }
}
