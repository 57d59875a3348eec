//! State of a conversation: a JSON tree, and the operations that change it (F-110 to F-117).
//!
//! Operations apply one by one, in order. A refused operation changes nothing and reports the reason; the
//! others still apply.
//!
//! ```
//! use serde_json::json;
//! use tambour::state::{ApplyOptions, Operation, apply};
//!
//! let mut state = json!({"纯田真奈": {"好感度": 5, "price": 0.1}});
//! let operations = json!([["ADD", "纯田真奈.好感度", 3], ["ADD", "纯田真奈.price", 0.2], ["POP", "bag"]]);
//! let results = apply(&mut state, &Operation::parse_list(&operations)?, &ApplyOptions::default());
//! assert_eq!(state.to_string(), r#"{"纯田真奈":{"好感度":8,"price":0.3}}"#);
//! assert_eq!(results[2].reason.map(|reason| reason.to_string()).as_deref(), Some("path_missing"));
//! # Ok::<(), tambour::Error>(())
//! ```
//!
//! [`StateHistory`] records applied operations by message: the present state is a fold of the record, and the
//! state at any message can be restored.

mod command;
mod diff;
mod history;
mod number;
mod operation;
mod path;
mod place;
pub(crate) mod rules;
mod run;

pub(crate) use command::StateCommand;
pub use diff::{StateDifference, diff};
pub use history::{AppliedBlock, HistoryPoint, RollbackError, StateHistory, fold, rollback};
#[doc(hidden)]
pub use number::bound_numbers;
#[doc(hidden)]
pub use operation::OPS;
pub use operation::{Op, Operation, OperationRefusal, RefusalReason};
pub use path::{StatePath, StatePathError, StateStep};
pub use place::{ChangedPlace, StateKey};

use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::event::{StateOperation, StateResult, StateUpdate};
use crate::limits::StateLimits;
use crate::schema::Schema;
use run::BlockRun;

/// Options for applying operations.
#[derive(Clone, Debug, Default)]
pub struct ApplyOptions<'a> {
    /// True to apply all operations or none (option `filament.atomic`, F-113).
    pub is_atomic: bool,
    /// Schema that the state must satisfy after each operation (F-115). Faults that existed before an
    /// operation do not count. Each check reads the entire state.
    pub schema: Option<&'a Schema>,
    /// Limits that no operation may exceed.
    pub limits: StateLimits,
    /// Cancellation flag, set by the caller; operations not yet applied are then refused.
    pub stop_flag: Option<&'a AtomicBool>,
}

/// State attached to the reading of a reply: operations are applied as they arrive, so that events include
/// their results.
#[derive(Clone, Debug, Default)]
pub struct AttachedState {
    /// Id of the message that the reply belongs to, for the record of its operations.
    pub message: String,
    /// The state.
    pub state: Value,
    /// Schema that the state must satisfy (F-115).
    pub schema: Option<Schema>,
    /// Limits that no operation may exceed.
    pub limits: StateLimits,
}

impl AttachedState {
    /// Applies operations and records them; if `is_atomic`, all of them or none. `analysis` is the model's
    /// reason for the operations; an empty one is not recorded.
    pub fn apply(&mut self, analysis: &str, operations: Vec<Operation>, is_atomic: bool) -> AppliedBlock {
        self.apply_until_stopped(analysis, operations, is_atomic, None)
    }

    /// As [`AttachedState::apply`], but refuses the operations that are left once `stop_flag` is set.
    #[doc(hidden)]
    pub fn apply_until_stopped(
        &mut self,
        analysis: &str,
        operations: Vec<Operation>,
        is_atomic: bool,
        stop_flag: Option<&AtomicBool>,
    ) -> AppliedBlock {
        let AttachedState { message, state, schema, limits } = self;
        let options = ApplyOptions { is_atomic, schema: schema.as_ref(), limits: limits.clone(), stop_flag };
        let analysis = (!analysis.is_empty()).then(|| analysis.to_owned());
        AppliedBlock::record(state, message.clone(), analysis, operations, &options)
    }
}

/// Returns the operations of an event, as they were read.
#[doc(hidden)]
#[must_use]
pub fn operations_from_event(update: &StateUpdate) -> Vec<Operation> {
    let to_operation = |StateOperation { op, path, value, refused }: &StateOperation| {
        let operation = Operation::from_stored(op.clone(), path.clone(), value.clone());
        // A reason unknown to this version still refuses.
        let reason = refused.as_ref().map(|word| {
            RefusalReason::deserialize(Value::from(word.as_str())).unwrap_or(RefusalReason::ValueGuessed)
        });
        match reason {
            Some(reason) => operation.refuse(reason, "it was refused when it was read"),
            None => operation,
        }
    };
    update.operations.iter().map(to_operation).collect()
}

/// Builds the event of an update, with results if it was applied. `analysis` is the model's reason for the
/// operations. A value that must not be used is left out; the reason is in `refused`.
#[must_use]
pub(crate) fn to_event(
    analysis: &str,
    operations: &[Operation],
    results: Option<&[OpResult]>,
) -> StateUpdate {
    let operation_data = |operation: &Operation| StateOperation {
        op: operation.op().to_owned(),
        path: operation.path().to_owned(),
        value: operation.value().filter(|_| operation.unusable_value_reason().is_none()).cloned(),
        refused: operation.unusable_value_reason().map(|reason| reason.to_string()),
    };
    let result_data = |result: &OpResult| StateResult {
        index: result.index,
        ok: result.ok,
        before: result.before.clone(),
        after: result.after.clone(),
        reason: result.reason.map(|reason| reason.to_string()),
    };
    StateUpdate {
        analysis: analysis.to_owned(),
        operations: operations.iter().map(operation_data).collect(),
        results: results.map(|results| results.iter().map(result_data).collect()),
    }
}

/// Lists the refused operations, each with index and reason, for the notice of F-113. Returns `None` if none
/// was refused.
#[doc(hidden)]
#[must_use]
pub fn describe_refusals(operations: &[Operation], results: Option<&[OpResult]>) -> Option<String> {
    let refusals: Vec<(usize, RefusalReason)> = match results {
        Some(results) => results.iter().filter_map(|result| Some((result.index, result.reason?))).collect(),
        None => {
            let refusal = |(at, operation): (usize, &Operation)| Some((at, operation.refusal()?.reason));
            operations.iter().enumerate().filter_map(refusal).collect()
        }
    };
    let listed_refusals: Vec<String> =
        refusals.iter().take(MAX_LISTED_REFUSALS).map(|(at, reason)| format!("{at}: {reason}")).collect();
    let omitted_count = refusals.len().saturating_sub(MAX_LISTED_REFUSALS);
    match (listed_refusals.is_empty(), omitted_count) {
        (true, _) => None,
        (false, 0) => Some(listed_refusals.join(", ")),
        (false, omitted_count) => Some(format!("{}, {omitted_count} more", listed_refusals.join(", "))),
    }
}

/// Maximum number of refused operations listed in a notice.
const MAX_LISTED_REFUSALS: usize = 16;

/// Result of one operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OpResult {
    /// Index of the operation in the block.
    pub index: usize,
    /// True if the operation was carried out.
    pub ok: bool,
    /// The previous value; for `POP` and `DELETE` the removed one. Absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "deserialize_present")]
    pub before: Option<Value>,
    /// The new value; for `PUSH` the new element.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "deserialize_present")]
    pub after: Option<Value>,
    /// Reason of the refusal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<RefusalReason>,
    /// Message of the refusal, with the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Applies operations to a state. Returns one result per operation, in order.
///
/// The cost is that of the operations and the values they touch, plus one walk through the state to measure
/// it. Removing a field or an element moves those after it. The state is never copied.
pub fn apply(state: &mut Value, operations: &[Operation], options: &ApplyOptions<'_>) -> Vec<OpResult> {
    BlockRun::apply(state, operations, options).results
}

/// Deserializes a field that is present, even if it is null.
fn deserialize_present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// Size of a value including its contents, in the units of [`StateLimits`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ValueSize {
    /// Number of values, containers included.
    values: usize,
    /// Bytes of keys and strings.
    bytes: usize,
    /// Nesting levels; 1 for a scalar.
    depth: usize,
    /// Elements of the longest list.
    longest_list: usize,
}

/// Measures a value without recursion, because a caller's value may have any depth.
fn measure(value: &Value) -> ValueSize {
    let mut size = ValueSize::default();
    let mut pending = vec![(value, 1)];
    while let Some((value, depth)) = pending.pop() {
        size.values += 1;
        size.depth = size.depth.max(depth);
        match value {
            Value::String(text) => size.bytes += text.len(),
            Value::Array(items) => {
                size.longest_list = size.longest_list.max(items.len());
                pending.extend(items.iter().map(|item| (item, depth + 1)));
            }
            Value::Object(fields) => {
                size.bytes += fields.keys().map(String::len).sum::<usize>();
                pending.extend(fields.values().map(|value| (value, depth + 1)));
            }
            _ => {}
        }
    }
    size
}
