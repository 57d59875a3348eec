//! The state of a dialogue. All of it is data, so that it can be saved at any point (S-067).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::scopes::Scopes;
use super::turn::{ClientRequest, TurnMetadata};
use tambour::event::{Failure, Notice};

/// One run of a session of a script.
///
/// Saved and restored with serde. The script is not part of it: what a dialogue began with, it must be given to its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dialogue {
    /// Index of the session in its script.
    pub(super) session: usize,
    pub(super) at: At,
    pub(super) scopes: Scopes,
    pub(super) history: Vec<Said>,
    /// The action under way; `None` before the one at `at`.
    pub(super) running: Option<Running>,
    /// Requests of the client so far.
    pub(super) requests: u32,
    pub(super) over: Option<Over>,
    /// What the input under way came to so far.
    pub(super) turn: Gathered,
}

/// A place in a session, by indexes. It may lie behind the last action of a step; the next one is looked for from there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct At {
    pub(super) phase: usize,
    pub(super) step: usize,
    pub(super) action: usize,
    /// Whether the variables of its phase and of its step are there.
    pub(super) in_phase: bool,
    pub(super) in_step: bool,
}

/// Something said: one message of the history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Said {
    /// `user` or `assistant`.
    pub role: String,
    /// The text.
    pub content: String,
}

/// An action under way.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Running {
    /// Rounds that were answered (S-060).
    pub(super) round: u32,
    /// Whether its first message was said, and whether the user has replied since (S-081).
    pub(super) spoken: bool,
    pub(super) replied: bool,
    pub(super) stage: Stage,
}

/// What the action waits for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Stage {
    /// The model, for the n-th time in this round; and why the time before was not the last.
    Model {
        attempt: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        because: Option<String>,
    },
    /// The caller, after a failure.
    Retry,
    /// What the user says.
    #[default]
    User,
    /// Any reply of the user (S-081).
    Acknowledgement,
    /// The client's answer; `told` when the event was given out.
    Client { call_id: String, told: bool },
}

/// How a dialogue ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Over {
    Completed,
    Failed(Failure),
}

/// What an input came to so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Gathered {
    /// Whether an input is under way. Between two of them nothing is begun.
    pub(super) open: bool,
    pub(super) completed: bool,
    pub(super) message: Option<String>,
    /// Whether the user has their answer: what speaks next is another turn.
    pub(super) spoken: bool,
    pub(super) metadata: Option<TurnMetadata>,
    /// Whether the dialogue goes on without a word of the user.
    pub(super) continues: bool,
    pub(super) error: Option<Failure>,
    pub(super) notices: Vec<Notice>,
    #[serde(default)]
    pub(super) request: Option<ClientRequest>,
}

/// Where a dialogue stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Status {
    /// It goes on.
    Active,
    /// The action is over as soon as the user has replied (S-081).
    AwaitingAck,
    /// The client has to answer.
    AwaitingAnswer,
    /// It is over.
    Completed,
    /// It has failed and cannot go on.
    Failed,
}

impl Dialogue {
    /// Where it stands.
    #[must_use]
    pub fn status(&self) -> Status {
        match (&self.over, self.running.as_ref().map(|running| &running.stage)) {
            (Some(Over::Completed), _) => Status::Completed,
            (Some(Over::Failed(_)), _) => Status::Failed,
            (None, Some(Stage::Acknowledgement)) => Status::AwaitingAck,
            (None, Some(Stage::Client { .. })) => Status::AwaitingAnswer,
            (None, _) => Status::Active,
        }
    }

    /// Whether the last call of a model failed, so that the next input asks again (S-065).
    #[must_use]
    pub fn waits_to_ask_again(&self) -> bool {
        self.over.is_none() && self.running.as_ref().is_some_and(|running| running.stage == Stage::Retry)
    }

    /// All variables that can be seen.
    #[must_use]
    pub fn variables(&self) -> Map<String, Value> {
        self.scopes.visible()
    }

    /// What was said so far, in order.
    #[must_use]
    pub fn history(&self) -> &[Said] {
        &self.history
    }

    /// Rounds of the action under way that were answered (S-060).
    #[must_use]
    pub fn current_round(&self) -> u32 {
        self.running.as_ref().map_or(0, |running| running.round)
    }
}
