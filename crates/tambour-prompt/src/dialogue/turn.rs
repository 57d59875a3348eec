//! Outcome of one input (S-061).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::DialogueStatus;
use crate::script::ClientActionKind;
use tambour::event::{ExitDecision, Extension, Failure, Form, Notice, Picture, Request, Skill};

/// Outcome of one input of the user, or of one answer of the client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DialogueTurn {
    /// True if nothing failed.
    pub success: bool,
    /// True if the action (S-062) or the dialogue (S-066) has ended, and nothing failed.
    pub completed: bool,
    /// Message of the model to the user.
    pub ai_message: Option<String>,
    /// Status of the dialogue.
    pub status: DialogueStatus,
    /// The current or next action of the script, or the last one if the dialogue has ended.
    pub position: Option<DialoguePosition>,
    /// Data about the action of the turn; `None` if no action ran.
    pub metadata: Option<TurnMetadata>,
    /// True if the dialogue continues without a message of the user: an input without text brings the next
    /// message.
    pub continues: bool,
    /// Failure of the turn (S-065).
    pub error: Option<Failure>,
    /// Notices for the user.
    pub notices: Vec<Notice>,
    /// Request that the client has to answer, if one is pending.
    #[serde(default)]
    pub request: Option<ClientRequest>,
}

/// Request of a dialogue to its client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ClientRequest {
    /// Name of its event: `skill`, `form` or `picture`.
    pub event: ClientActionKind,
    /// Data of the event: `call_id`, which the answer has to repeat, and the fields of the action.
    pub data: Request,
}

impl From<ClientRequest> for Extension {
    fn from(ClientRequest { event, data }: ClientRequest) -> Extension {
        match event {
            ClientActionKind::Skill => Skill(data).into(),
            ClientActionKind::Form => Form(data).into(),
            ClientActionKind::Picture => Picture(data).into(),
        }
    }
}

/// Position of an action in a script.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DialoguePosition {
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

/// Data about the action of a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TurnMetadata {
    /// Type of the action.
    pub action_type: String,
    /// Number of answered rounds (S-060).
    pub current_round: u32,
    /// Number of the last round; the action ends after it in any case. `None` for an action without rounds.
    pub max_rounds: Option<u32>,
    /// Assessment of the user's understanding with the model's reasoning, for `ai_say`.
    pub assessment: Option<Value>,
    /// Exit decision, for `ai_say`.
    pub exit_decision: Option<ExitDecision>,
}

/// Effect of one reply of a model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ReplyEffect {
    /// True if the reply was not accepted and the model is asked again (S-054).
    pub asked_again: bool,
    /// Failure of the round, if the reply has no message or cannot be used, and the model is not asked again.
    /// The next input repeats the request (S-065).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// Exit decision of the round, for `ai_say`.
    pub exit_decision: Option<ExitDecision>,
    /// Assessment of the user's understanding with the model's reasoning, for `ai_say`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assessment: Option<Value>,
    /// Variables that were set.
    pub assigned: Map<String, Value>,
}
