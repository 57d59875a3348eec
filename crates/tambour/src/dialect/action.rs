//! Actions that a reply asks for. A dialect reads them, complete and valid; the policy stage decides on them,
//! numbers them and emits their events.

use serde_json::Value;

use crate::event::Extension;
use crate::exit::RoundAnswer;
use crate::state::Operation;

/// One action that a reply asks for.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ReplyAction {
    /// The plan with its tool calls, or the fallback plan, at the end of the reply.
    Plan(PlanIntent),
    /// One tool call, at the end of the reply.
    Call(CallIntent),
    /// The answer of a dialogue round, at the end of the reply.
    Answer(RoundAnswer),
    /// State operations, when their block closes (F-214).
    Update(UpdateIntent),
    /// An extension event for the client to display, when its block closes.
    Extension(Extension),
    /// A notice to the user that does not end the reply: its code, and its subject.
    Notice(&'static str, Option<String>),
}

/// State operations of one block.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UpdateIntent {
    /// Reason for the operations, in the model's words.
    pub analysis: String,
    /// The operations, including those that can never be applied.
    pub operations: Vec<Operation>,
    /// Set if all operations are applied or none (F-113).
    pub is_atomic: bool,
}

/// The plan of a reply.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanIntent {
    /// The plan object, or the fallback (P-017). Each item of its `tool_calls` may run: it has a `name`, and
    /// `args` that satisfy the schema of that tool.
    pub plan: Value,
    /// Set if `plan` is the fallback.
    pub is_fallback: bool,
}

/// A tool call whose arguments satisfy the schema of its tool.
#[derive(Clone, Debug, PartialEq)]
pub struct CallIntent {
    /// Name of the tool.
    pub name: String,
    /// Arguments.
    pub args: Value,
}
