//! What one input came to (S-061).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Status;
use crate::script::ClientKind;
use tambour::event::{ExitDecision, Extension, Failure, Form, Notice, Picture, Request, Skill};

/// What one input of the user, or one answer of the client, came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Turn {
    /// Whether nothing failed.
    pub success: bool,
    /// Whether the action is over (S-062); of a dialogue that is over, true (S-066).
    pub completed: bool,
    /// What the model said to the user.
    pub ai_message: Option<String>,
    /// Where the dialogue stands.
    pub status: Status,
    /// The part of the script that comes next or is under way; the last one when the dialogue is over.
    pub position: Option<Position>,
    /// The action that this was about.
    pub metadata: Option<TurnMetadata>,
    /// Whether the dialogue goes on without a word of the user: an input without text brings the next message.
    pub continues: bool,
    /// What failed (S-065).
    pub error: Option<Failure>,
    /// What the user should be told.
    pub notices: Vec<Notice>,
    /// What the client is asked to do, while the dialogue waits for its answer.
    #[serde(default)]
    pub request: Option<ClientRequest>,
}

/// What the client of a dialogue is asked to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ClientRequest {
    /// Name of its event: `skill`, `form` or `picture`.
    pub event: ClientKind,
    /// Data of the event: `call_id`, which the answer names, and the fields of the action.
    pub data: Request,
}

impl From<ClientRequest> for Extension {
    fn from(ClientRequest { event, data }: ClientRequest) -> Extension {
        match event {
            ClientKind::Skill => Skill(data).into(),
            ClientKind::Form => Form(data).into(),
            ClientKind::Picture => Picture(data).into(),
        }
    }
}

/// A part of a script.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Position {
    /// Name of the session.
    pub session: String,
    /// Name of the phase.
    pub phase: String,
    /// Topic of the step.
    pub topic: String,
    /// Type of the action, such as `ai_say`.
    pub action_type: String,
    /// Name of the action, if its author gave it one.
    pub action_id: Option<String>,
    /// Path of the action in the script.
    pub path: String,
}

/// The action of a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TurnMetadata {
    /// Its type.
    pub action_type: String,
    /// Rounds that were answered (S-060).
    pub current_round: u32,
    /// Rounds after which it is over in any case.
    pub max_rounds: Option<u32>,
    /// Assessment of the user's understanding, of `ai_say`, with the model's reasoning.
    pub assessment: Option<Value>,
    /// Whether it is over, of `ai_say`.
    pub exit_decision: Option<ExitDecision>,
}

/// What became of one reply of a model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Replied {
    /// The reply was not taken: the model is asked once more (S-054).
    pub asked_again: bool,
    /// Why the reply answered no round, after the last try: nothing of it is for the user, and the next input asks again
    /// (S-065).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// The decision of the round, of `ai_say`.
    pub exit_decision: Option<ExitDecision>,
    /// Assessment of the user's understanding, of `ai_say`, with the model's reasoning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assessment: Option<Value>,
    /// Variables that got a value.
    pub assigned: Map<String, Value>,
}
