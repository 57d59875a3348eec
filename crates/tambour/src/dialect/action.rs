//! What a reply wants done. A dialect reads it, complete and valid; the policy stage decides, numbers and tells.

use serde_json::Value;

use crate::event::Extension;
use crate::exit::Answer;
use crate::state::Operation;

/// One thing that a reply wants done.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Action {
    /// What its plan came to, and the calls of that plan, at the end of the reply.
    Plan(Plan),
    /// One call, at the end of the reply.
    Call(Call),
    /// The answer of a dialogue round, at the end of the reply.
    Answer(Answer),
    /// Operations on the state, when their block closes (F-214).
    Update(Update),
    /// What a client shows or is told, when its block closes.
    Show(Extension),
    /// What the user is told without stopping: its code, and what it is about.
    Notice(&'static str, Option<String>),
}

/// Operations on the state.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Update {
    /// Why, in the model's words.
    pub analysis: String,
    /// The operations, those that can never be carried out among them.
    pub operations: Vec<Operation>,
    /// Whether all of them are carried out or none (F-113).
    pub atomic: bool,
}

/// A plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The object, or the fallback (P-017). Each item of its `tool_calls` may run: `name`, and `args` that satisfy the
    /// schema of that tool.
    pub plan: Value,
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
