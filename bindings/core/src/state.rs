//! State of a conversation with its history.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tambour::error::{Error, ErrorKind, Result};
use tambour::event::StateUpdate;
use tambour::limits::StateLimits;
use tambour::schema::Schema;
use tambour::state::{
    AppliedBlock, AttachedState, HistoryPoint, Operation, RollbackError, StateHistory, operations_from_event,
};

use crate::records::{AppliedUpdate, OperationResult, StateDifference};

/// A state, the record of its updates, and a schema that it must satisfy.
#[derive(Clone, Debug)]
pub struct StateStore {
    state: Value,
    history: StateHistory,
    schema: Option<Schema>,
}

/// Saved form of a store.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedStore {
    state: Value,
    history: StateHistory,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    schema: Option<Value>,
}

impl StateStore {
    /// Creates a store without updates.
    ///
    /// # Errors
    /// The schema is invalid.
    pub fn new(state: Value, schema: Option<Value>) -> Result<StateStore> {
        let schema = schema.map(Schema::from_checked).transpose()?;
        Ok(StateStore { history: StateHistory::new(state.clone()), state, schema })
    }

    /// Restores a store from [`StateStore::save`].
    ///
    /// # Errors
    /// The value is not a saved store.
    pub fn restore(saved: Value) -> Result<StateStore> {
        let SavedStore { state, history, schema } = serde_json::from_value(saved)
            .map_err(|error| Error::invalid(format!("not a saved state: {error}")))?;
        let schema = schema.map(Schema::from_checked).transpose()?;
        Ok(StateStore { state, history, schema })
    }

    /// Returns the store as a value that [`StateStore::restore`] reads.
    #[must_use]
    pub fn save(&self) -> Value {
        let schema = self.schema.as_ref().map(|schema| schema.value().clone());
        let saved = SavedStore { state: self.state.clone(), history: self.history.clone(), schema };
        serde_json::to_value(saved).unwrap_or_default()
    }

    /// The present state.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.state
    }

    /// State that a pipeline changes while it reads the reply of `message`; [`StateStore::absorb`] takes its
    /// updates over.
    #[must_use]
    pub fn attach(&self, message: &str) -> AttachedState {
        AttachedState {
            message: message.to_owned(),
            state: self.state.clone(),
            schema: self.schema.clone(),
            limits: StateLimits::default(),
        }
    }

    /// Takes over the updates of a pipeline that [`StateStore::attach`] served.
    ///
    /// # Errors
    /// The state has changed meanwhile so that an update does not fit; nothing is changed then.
    pub fn absorb(&mut self, updates: &[AppliedBlock]) -> Result<()> {
        let mut state = self.state.clone();
        updates.iter().try_for_each(|block| block.redo(&mut state))?;
        self.state = state;
        updates.iter().cloned().for_each(|block| self.history.push(block));
        Ok(())
    }

    /// Applies operations: a list of `[op, path, value]`, a list of objects with these keys, or the data of a
    /// `state_update`. If `is_atomic`, all of them or none.
    ///
    /// # Errors
    /// The value is not a list of operations. A fault of one operation is its refusal.
    pub fn apply(
        &mut self,
        operations: &Value,
        message: &str,
        analysis: &str,
        is_atomic: bool,
    ) -> Result<AppliedUpdate> {
        let operations = read_operations(operations)?;
        // The state is moved to where operations are applied, and back.
        let mut attached = AttachedState {
            message: message.to_owned(),
            state: std::mem::take(&mut self.state),
            schema: self.schema.clone(),
            limits: StateLimits::default(),
        };
        let block = attached.apply(analysis, operations, is_atomic);
        self.state = attached.state;
        let update = describe_block(&block);
        self.history.push(block);
        Ok(update)
    }

    /// All known updates in order.
    #[must_use]
    pub fn updates(&self) -> Vec<AppliedUpdate> {
        self.history.applied().iter().map(describe_block).collect()
    }

    /// Returns the state at a point.
    ///
    /// # Errors
    /// The point is unknown or gone.
    pub fn at(&self, point: HistoryPoint<'_>) -> Result<Value> {
        self.history.state(point).map_err(convert_error)
    }

    /// Restores the state to a point; returns the undone updates, which leave the history.
    ///
    /// # Errors
    /// The point is unknown or gone; nothing is changed then.
    pub fn rollback(&mut self, to: HistoryPoint<'_>) -> Result<Vec<AppliedUpdate>> {
        let undone = self.history.rollback(&mut self.state, to).map_err(convert_error)?;
        Ok(undone.iter().map(describe_block).collect())
    }

    /// Compares the states at two points.
    ///
    /// # Errors
    /// A point is unknown or gone.
    pub fn diff(&self, from: HistoryPoint<'_>, to: HistoryPoint<'_>) -> Result<Vec<StateDifference>> {
        let differences = self.history.diff(from, to).map_err(convert_error)?;
        let convert = |difference: tambour::state::StateDifference| StateDifference {
            path: difference.path,
            before: difference.before,
            after: difference.after,
        };
        Ok(differences.into_iter().map(convert).collect())
    }

    /// Removes the updates of a message from the history; the state stays. Returns whether it had any.
    ///
    /// # Errors
    /// The records do not fit together.
    pub fn forget(&mut self, message: &str) -> Result<bool> {
        self.history.remove_message(message)
    }
}

/// Point of a history by words: `start`, `end`, or before or after a message.
///
/// # Errors
/// Both messages are given.
pub fn read_point<'a>(
    before: Option<&'a str>,
    after: Option<&'a str>,
    default: HistoryPoint<'a>,
) -> Result<HistoryPoint<'a>> {
    match (before, after) {
        (None, None) => Ok(default),
        (Some(message), None) => Ok(HistoryPoint::BeforeMessage(message)),
        (None, Some(message)) => Ok(HistoryPoint::AfterMessage(message)),
        (Some(_), Some(_)) => Err(Error::invalid("give `before` or `after`, not both")),
    }
}

/// Describes a block of operations with its results.
#[must_use]
pub fn describe_block(block: &AppliedBlock) -> AppliedUpdate {
    let operations = block.operations.iter().map(|operation| tambour::event::StateOperation {
        op: operation.op().to_owned(),
        path: operation.path().to_owned(),
        value: operation.value().cloned(),
        refused: None,
    });
    let results = block.results.iter().map(|result| OperationResult {
        index: result.index,
        ok: result.ok,
        before: result.before.clone(),
        after: result.after.clone(),
        reason: result.reason.map(|reason| reason.to_string()),
        message: result.message.clone(),
    });
    AppliedUpdate {
        message: block.message.clone(),
        analysis: block.analysis.clone(),
        operations: operations.collect(),
        results: results.collect(),
    }
}

fn read_operations(value: &Value) -> Result<Vec<Operation>> {
    let list = value.get("operations").unwrap_or(value);
    let is_object_list =
        list.as_array().is_some_and(|items| !items.is_empty() && items.iter().all(Value::is_object));
    if !is_object_list {
        return Operation::parse_list(list);
    }
    let update: StateUpdate = serde_json::from_value(json!({ "analysis": "", "operations": list }))
        .map_err(|error| Error::invalid(format!("operations: {error}")))?;
    Ok(operations_from_event(&update))
}

fn convert_error(error: RollbackError) -> Error {
    match error {
        RollbackError::Mismatch(error) if error.kind() == ErrorKind::Invalid => error,
        other => Error::invalid(other.to_string()),
    }
}
