//! The state of a conversation: a JSON tree, and the operations that change it (F-110 to F-117).
//!
//! Operations apply one by one, in order; one that is refused changes nothing and says why, the others go on.
//!
//! ```
//! use serde_json::json;
//! use tambour::state::{ApplyOptions, Operation, apply};
//!
//! let mut state = json!({"纯田真奈": {"好感度": 5, "price": 0.1}});
//! let operations = json!([["ADD", "纯田真奈.好感度", 3], ["ADD", "纯田真奈.price", 0.2], ["POP", "bag"]]);
//! let results = apply(&mut state, &Operation::list(&operations)?, &ApplyOptions::default());
//! assert_eq!(state.to_string(), r#"{"纯田真奈":{"好感度":8,"price":0.3}}"#);
//! assert_eq!(results[2].reason.map(|reason| reason.to_string()).as_deref(), Some("path_missing"));
//! # Ok::<(), tambour::Error>(())
//! ```
//!
//! [`History`] keeps what was applied, by message: the present state is a fold of it, and every message can be gone back to.

mod diff;
mod history;
mod measure;
mod number;
mod operation;
mod path;
pub(crate) mod rules;
mod run;
mod spot;

pub use diff::{Difference, diff};
pub use history::{Applied, History, Point, RollbackError, fold, rollback};
pub use operation::{OPS, Op, Operation, Reason, Refusal};
pub use path::{Path, PathError, Step};
pub use spot::{Part, Spot};

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::limits::StateLimits;
use crate::schema::Schema;
use run::Run;

/// How operations are applied.
#[derive(Clone, Debug, Default)]
pub struct ApplyOptions<'a> {
    /// All of them or none (`filament.atomic`, F-113).
    pub atomic: bool,
    /// What the state must satisfy after each operation (F-115). What was wrong before an operation is not its fault.
    /// Checking costs the whole state for each operation.
    pub schema: Option<&'a Schema>,
    /// Sizes that no operation goes beyond.
    pub limits: StateLimits,
}

/// What came of one operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OpResult {
    /// Its index in the block.
    pub index: usize,
    /// Whether it was carried out.
    pub ok: bool,
    /// The value that was there; of `POP` and `DELETE` the one that was taken out. Absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub before: Option<Value>,
    /// The value that is there now; of `PUSH` the new element.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub after: Option<Value>,
    /// Why it was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// The same in words, with the place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Applies operations to a state; one result each, in order.
///
/// Costs what the operations and the values they touch cost, and one walk through the state to count it; taking a field or
/// element out moves those behind it. The state is never copied.
pub fn apply(state: &mut Value, operations: &[Operation], options: &ApplyOptions<'_>) -> Vec<OpResult> {
    Run::of(state, operations, options).0
}

/// A field that is given, also if it is null.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}
