//! What was applied, message by message (F-116, R-79): the state is a fold of it, forwards from a base or backwards from now.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::diff::{Difference, diff};
use super::operation::{Op, Operation};
use super::run::{Ran, Run, nested, undo};
use super::spot::{Part, Spot, at, insert, path_of, take};
use super::{ApplyOptions, OpResult};
use crate::error::{Error, Result};

/// One block of operations of one message, as it was applied. Enough to take it back exactly and to do it again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Applied {
    /// Id of the message.
    pub message: String,
    /// Why, in the model's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub analysis: Option<String>,
    /// The operations as they were written.
    pub operations: Vec<Operation>,
    /// What came of each.
    pub results: Vec<OpResult>,
    /// Where the state changed, in order.
    pub spots: Vec<Spot>,
}

impl Applied {
    /// Applies operations to a state and records it.
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

    /// Takes it back: the state is again what it was, with the order of its fields. Costs what was changed.
    ///
    /// # Errors
    /// The state is not the one after it. It is left as it was.
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

    /// Does it again, as it was done then: limits and schema of today do not matter.
    ///
    /// # Errors
    /// The state is not the one before it. It is left as it was.
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

    /// Takes one change back, if the value that came is there.
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

    /// Does one change again, if the value that went is there.
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

    /// What came at a spot: the value, with the parents that were made for it.
    fn came(&self, spot: &Spot, after: &Value) -> Option<Value> {
        let (op, below) = self.operations.get(spot.index)?.made_below(spot.parts.len())?;
        // An element that was appended stands below the list its path names, so it is no new list.
        let appended = matches!(spot.parts.last(), Some(Part::Index(_)));
        Some(nested(&below, if appended { Op::Set } else { op }, after.clone()))
    }
}

fn unfit(parts: &[Part]) -> Error {
    Error::invalid(format!("the record does not fit the state at `{}`", path_of(parts)))
}

/// The state after these, from the state before them.
///
/// # Errors
/// They do not fit together.
pub fn fold<'a>(mut base: Value, applied: impl IntoIterator<Item = &'a Applied>) -> Result<Value> {
    applied.into_iter().try_for_each(|one| one.redo(&mut base))?;
    Ok(base)
}

/// Takes these back, the last one first.
///
/// # Errors
/// They do not fit the state, which is left as it was.
pub fn rollback(state: &mut Value, applied: &[Applied]) -> Result<()> {
    for (at, one) in applied.iter().enumerate().rev() {
        if let Err(error) = one.undo(state) {
            applied[at + 1..].iter().try_for_each(|one| one.redo(state))?;
            return Err(error);
        }
    }
    Ok(())
}

/// A point of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point<'a> {
    /// Before everything.
    Start,
    /// Before the first update of a message: where its regeneration begins.
    Before(&'a str),
    /// After the last update of a message.
    After(&'a str),
    /// Now.
    End,
}

/// Why a point cannot be gone back to.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum RollbackError {
    /// No update of that message is known.
    Unknown,
    /// It lies before the base: messages after it were deleted or have expired.
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

/// The updates of a conversation, and the state they begin with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct History {
    /// The state before the first update that can be taken back.
    base: Value,
    /// Updates before the base: still told, no longer taken back.
    passed: usize,
    /// Whether the base is another than the one it began with.
    moved: bool,
    applied: Vec<Applied>,
}

impl History {
    /// An empty history.
    #[must_use]
    pub fn new(base: Value) -> History {
        History { base, passed: 0, moved: false, applied: Vec::new() }
    }

    /// Adds what was applied to its last state.
    pub fn push(&mut self, applied: Applied) {
        self.applied.push(applied);
    }

    /// All updates that are known, in order.
    #[must_use]
    pub fn applied(&self) -> &[Applied] {
        &self.applied
    }

    /// The state at a point, folded from the base.
    ///
    /// # Errors
    /// The point is unknown or gone, or the records do not fit together.
    pub fn state(&self, point: Point<'_>) -> std::result::Result<Value, RollbackError> {
        let end = self.place(point)?;
        Ok(fold(self.base.clone(), &self.applied[self.passed..end])?)
    }

    /// Takes `state`, the present one, back to a point; the updates that were taken back, which are no longer in the history.
    ///
    /// # Errors
    /// The point is unknown or gone, or `state` is not the present one. Nothing has changed then.
    pub fn rollback(
        &mut self,
        state: &mut Value,
        to: Point<'_>,
    ) -> std::result::Result<Vec<Applied>, RollbackError> {
        let end = self.place(to)?;
        rollback(state, &self.applied[end..])?;
        Ok(self.applied.split_off(end))
    }

    /// What differs between two points.
    ///
    /// # Errors
    /// As of [`History::state`].
    pub fn diff(
        &self,
        from: Point<'_>,
        to: Point<'_>,
    ) -> std::result::Result<Vec<Difference>, RollbackError> {
        Ok(diff(&self.state(from)?, &self.state(to)?))
    }

    /// Forgets a message: its updates leave the history, the present state stays, and what came before it can no longer be
    /// gone back to. Whether it had any.
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

    /// How many updates come before a point.
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
