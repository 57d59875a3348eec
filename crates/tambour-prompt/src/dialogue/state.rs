//! State of a dialogue. All of it is data, so that it can be saved at any point (S-067).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::turn::{ClientRequest, TurnMetadata};
use crate::script::VariableDeclaration;
use tambour::event::{Failure, Notice};

/// One run of a session of a script.
///
/// Saved and restored with serde. The script is not included: every call needs the script that the dialogue
/// began with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dialogue {
    /// Index of the session in its script.
    pub(super) session: usize,
    /// Position of the running action; between actions, the position where the search for the next one
    /// begins.
    pub(super) at: ActionIndex,
    pub(super) scopes: VariableScopes,
    /// Messages so far, in order.
    pub(super) history: Vec<HistoryMessage>,
    /// State of the running action; `None` between actions.
    pub(super) running: Option<RunningAction>,
    /// Number of requests to the client so far.
    pub(super) requests: u32,
    /// End of the dialogue; `None` while it runs.
    pub(super) over: Option<DialogueEnd>,
    /// Outcome of the current input so far.
    pub(super) turn: PartialTurn,
}

/// Position in a session, by indexes. It may be past the last action of a step; the search for the next
/// action begins there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ActionIndex {
    pub(super) phase: usize,
    pub(super) step: usize,
    pub(super) action: usize,
    /// True once the variables of the phase are initialized.
    pub(super) in_phase: bool,
    /// True once the variables of the step are initialized.
    pub(super) in_step: bool,
}

/// Message of the history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HistoryMessage {
    /// `user` or `assistant`.
    pub role: String,
    /// Text of the message.
    pub content: String,
}

/// State of the running action.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct RunningAction {
    /// Number of answered rounds (S-060).
    pub(super) round: u32,
    /// True once its first message was sent.
    #[serde(rename = "spoken")]
    pub(super) has_first_message: bool,
    /// True once the user has replied to that message (S-081).
    pub(super) replied: bool,
    /// Input that the action waits for.
    #[serde(rename = "stage")]
    pub(super) awaited_input: AwaitedInput,
}

/// Input that an action waits for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum AwaitedInput {
    /// The model's reply.
    Model {
        /// Number of earlier attempts in this round.
        attempt: u32,
        /// Reason why the last attempt was not accepted, if there was one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        because: Option<String>,
    },
    /// Another input of the user after a failure; it repeats the call.
    Retry,
    /// A message of the user.
    #[default]
    User,
    /// Any input of the user, even without text, which ends the action (S-081).
    Acknowledgement,
    /// The client's answer; `told` is true once the caller has the event for the client.
    Client { call_id: String, told: bool },
}

/// End of a dialogue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum DialogueEnd {
    Completed,
    Failed(Failure),
}

/// Outcome of the current input so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct PartialTurn {
    /// True from the first input on. Before it, no action begins.
    pub(super) open: bool,
    /// True if the action of the turn has ended.
    pub(super) completed: bool,
    /// Message of the model to the user.
    pub(super) message: Option<String>,
    /// True if the next message belongs to another turn, because this one has its message, or because its
    /// input acknowledged an action.
    #[serde(rename = "spoken")]
    pub(super) needs_new_turn: bool,
    /// Data about the action of the turn.
    pub(super) metadata: Option<TurnMetadata>,
    /// True if the dialogue continues without a message of the user.
    pub(super) continues: bool,
    /// Failure of the turn, if it failed.
    pub(super) error: Option<Failure>,
    pub(super) notices: Vec<Notice>,
    /// Request that the client has to answer, if one is pending.
    #[serde(default)]
    pub(super) request: Option<ClientRequest>,
}

/// Status of a dialogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DialogueStatus {
    /// The dialogue is running.
    Active,
    /// The user has to reply, which ends the action (S-081).
    AwaitingAck,
    /// The client has to answer a request.
    AwaitingAnswer,
    /// The dialogue has ended.
    Completed,
    /// The dialogue has failed and cannot continue.
    Failed,
}

impl Dialogue {
    /// Returns the status.
    #[must_use]
    pub fn status(&self) -> DialogueStatus {
        match (&self.over, self.running.as_ref().map(|running_action| &running_action.awaited_input)) {
            (Some(DialogueEnd::Completed), _) => DialogueStatus::Completed,
            (Some(DialogueEnd::Failed(_)), _) => DialogueStatus::Failed,
            (None, Some(AwaitedInput::Acknowledgement)) => DialogueStatus::AwaitingAck,
            (None, Some(AwaitedInput::Client { .. })) => DialogueStatus::AwaitingAnswer,
            (None, _) => DialogueStatus::Active,
        }
    }

    /// Returns true if the last model call failed, so that the next input repeats it (S-065).
    #[must_use]
    pub fn needs_retry(&self) -> bool {
        self.over.is_none()
            && self
                .running
                .as_ref()
                .is_some_and(|running_action| running_action.awaited_input == AwaitedInput::Retry)
    }

    /// Returns all visible variables.
    #[must_use]
    pub fn variables(&self) -> Map<String, Value> {
        self.scopes.visible()
    }

    /// Returns the messages so far, in order.
    #[must_use]
    pub fn history(&self) -> &[HistoryMessage] {
        &self.history
    }

    /// Returns the number of answered rounds of the running action (S-060), 0 between actions. The current
    /// round has the next number.
    #[must_use]
    pub fn current_round(&self) -> u32 {
        self.running.as_ref().map_or(0, |running_action| running_action.round)
    }
}

/// Variables of a dialogue by scope, from the outermost to the innermost. Inner ones hide outer ones of the
/// same name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct VariableScopes {
    pub(super) session: Map<String, Value>,
    pub(super) phase: Map<String, Value>,
    pub(super) step: Map<String, Value>,
}

/// Returns the declared variables with their initial values. The last declaration of a name counts.
pub(super) fn initial_values(declarations: &[VariableDeclaration]) -> Map<String, Value> {
    declarations.iter().map(|declaration| (declaration.var.clone(), declaration.value.clone())).collect()
}

impl VariableScopes {
    /// Returns all visible variables (S-037).
    pub(super) fn visible(&self) -> Map<String, Value> {
        let mut visible = self.session.clone();
        for scope in [&self.phase, &self.step] {
            visible.extend(scope.iter().map(|(name, value)| (name.clone(), value.clone())));
        }
        visible
    }

    /// Sets a variable in the scope that declares it, or in the session.
    pub(super) fn set(&mut self, name: &str, value: Value) {
        let scopes = [&mut self.step, &mut self.phase];
        match scopes.into_iter().find_map(|scope| scope.get_mut(name)) {
            Some(current) => *current = value,
            None => drop(self.session.insert(name.to_owned(), value)),
        }
    }
}
