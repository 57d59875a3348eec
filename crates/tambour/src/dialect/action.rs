//! What a reply wants done. A dialect reads it, complete and valid; the policy stage decides, numbers and tells.

use serde_json::Value;

use crate::exit::Answer;

/// One thing that a reply wants done.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Action {
    /// What its plan came to, and the calls of that plan, at the end of the reply.
    Plan(Plan),
    /// The answer of a dialogue round, at the end of the reply.
    Answer(Answer),
}

/// A plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The object, or the fallback (P-017).
    pub plan: Value,
    /// Calls that may run, in order.
    pub calls: Vec<Call>,
    /// Whether it is the fallback.
    pub is_fallback: bool,
}

/// A call whose arguments satisfy the schema of its tool.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Name of the tool.
    pub name: String,
    /// Arguments.
    pub args: Value,
}
