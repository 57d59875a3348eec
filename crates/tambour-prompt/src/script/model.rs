//! Typed model of a script. Unknown fields are preserved (S-012). A round of `ai_say` or `ai_ask` is one
//! message of the model, with the reply of the user before it if there is one.

use std::hash::{Hash, Hasher};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::answer::AnswerForm;
use tambour::exit::ExitCriteria;
use tambour::span::{Place, Span};

/// A script: its sessions in order.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Script {
    /// Sessions; each dialogue runs one of them.
    pub sessions: Vec<ScriptSession>,
    /// Unknown fields.
    pub unknown_fields: Map<String, Value>,
}

/// Session: the part of a script that a dialogue runs.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ScriptSession {
    /// Name of the session.
    pub session: String,
    /// Variables of the entire session.
    pub declare: Vec<VariableDeclaration>,
    /// Phases in order.
    pub phases: Vec<ScriptPhase>,
    /// Unknown fields.
    pub unknown_fields: Map<String, Value>,
    /// Place in the text.
    pub spot: SourceSpot,
}

/// Declaration of a variable with its initial value (S-002).
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct VariableDeclaration {
    /// Name of the variable, in any writing system.
    pub var: String,
    /// Value that the variable gets when the session, phase or step that declares it begins; null if the
    /// script gives none.
    pub value: Value,
    /// Unknown fields.
    pub unknown_fields: Map<String, Value>,
    /// Place in the text.
    pub spot: SourceSpot,
}

/// A phase of a session.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ScriptPhase {
    /// Name of the phase.
    pub phase: String,
    /// Variables that exist during the phase.
    pub declare: Vec<VariableDeclaration>,
    /// Steps in order.
    pub steps: Vec<ScriptStep>,
    /// Unknown fields.
    pub unknown_fields: Map<String, Value>,
    /// Place in the text.
    pub spot: SourceSpot,
}

/// A step of a phase.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ScriptStep {
    /// Topic of the step.
    pub topic: String,
    /// Variables that exist during the step.
    pub declare: Vec<VariableDeclaration>,
    /// Actions in order.
    pub actions: Vec<ScriptAction>,
    /// Unknown fields.
    pub unknown_fields: Map<String, Value>,
    /// Place in the text.
    pub spot: SourceSpot,
}

/// An action of a step.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ScriptAction {
    /// Type of the action with its fields.
    pub kind: ScriptActionKind,
    /// Id given by the author.
    pub action_id: Option<String>,
    /// Expression over variables; the action is skipped if it is false.
    pub condition: Option<String>,
    /// Id of the template of the prompt, if not the default of the type.
    pub template: Option<String>,
    /// Unknown fields.
    pub unknown_fields: Map<String, Value>,
    /// Path of the action, such as `sessions[0].phases[0].steps[0].actions[0]`.
    pub path: String,
    /// Place in the text.
    pub spot: SourceSpot,
    /// Places of the field values, by the field names in the text.
    pub spots: Vec<(String, SourceSpot)>,
}

/// Type of an action with its fields.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ScriptActionKind {
    /// `ai_say`: explains a subject in rounds.
    Say(SayAction),
    /// `ai_ask`: asks until the answer is known, or no round is left.
    Ask(AskAction),
    /// `ai_think`: the model fills variables; nothing is shown.
    Think(ThinkAction),
    /// `use_skill`, `show_form`, `show_pic`: the client carries out the action and answers.
    Client(ClientAction),
}

/// Fields of `ai_say`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SayAction {
    /// Content to be explained (S-004); may contain variables.
    pub content: String,
    /// True if the user must have replied once before the action ends (S-005, S-081).
    pub require_acknowledgment: bool,
    /// Number of the last round; the action ends after it in any case (S-006).
    pub max_rounds: u32,
    /// Criteria for ending earlier (S-007).
    pub exit_criteria: ExitCriteria,
}

/// Fields of `ai_ask`. An action without a question can be loaded, but fails when a dialogue reaches it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct AskAction {
    /// Question to the user; may contain variables.
    pub question: Option<String>,
    /// Required form of the answer.
    pub answer: AnswerForm,
    /// Variable for the answer.
    pub variable: Option<String>,
    /// Number of the last round; the action ends after it in any case. Default 3.
    pub max_rounds: u32,
    /// True if the dialogue fails without an answer.
    pub required: bool,
}

/// Fields of `ai_think`. An action without a prompt can be loaded, but fails when a dialogue reaches it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ThinkAction {
    /// Prompt for the model; may contain variables.
    pub prompt: Option<String>,
    /// Variables to fill, each with a description for the model.
    pub output: Vec<(String, String)>,
}

/// Action that the client carries out.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ClientAction {
    /// Kind of the action.
    pub kind: ClientActionKind,
    /// Variable for the client's answer.
    pub variable: Option<String>,
    /// All other fields, passed to the client; their texts may contain variables.
    pub fields: Map<String, Value>,
}

/// Kind of a client action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ClientActionKind {
    /// `use_skill`.
    Skill,
    /// `show_form`.
    Form,
    /// `show_pic`.
    Picture,
}

/// Place of a part in the YAML text. It does not affect the meaning of a script, so all spots compare equal.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct SourceSpot {
    /// Place of the first character.
    pub place: Place,
    /// Byte offset after the first token of the part.
    pub end: usize,
}

impl ScriptAction {
    /// Returns the place of a field's value under the first of these names that is present, else that of the
    /// action.
    #[must_use]
    pub(crate) fn spot_of(&self, names: &[&str]) -> SourceSpot {
        let find_spot = |name: &&str| self.spots.iter().find(|(candidate, _)| candidate == name);
        names.iter().find_map(find_spot).map_or(self.spot, |(_, spot)| *spot)
    }

    /// Returns the public type, such as `ai_say`.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match &self.kind {
            ScriptActionKind::Say(_) => "ai_say",
            ScriptActionKind::Ask(_) => "ai_ask",
            ScriptActionKind::Think(_) => "ai_think",
            ScriptActionKind::Client(client) => client.kind.type_name(),
        }
    }
}

impl ClientActionKind {
    /// Returns the public type, such as `show_form`.
    #[must_use]
    pub fn type_name(self) -> &'static str {
        match self {
            ClientActionKind::Skill => "use_skill",
            ClientActionKind::Form => "show_form",
            ClientActionKind::Picture => "show_pic",
        }
    }
}

impl Script {
    /// Returns the session named `name`, or the first one if `None`, with its index.
    #[doc(hidden)]
    #[must_use]
    pub fn find_session(&self, name: Option<&str>) -> Option<(usize, &ScriptSession)> {
        let is_match =
            |(_, session): &(usize, &ScriptSession)| name.is_none_or(|name| session.session == name);
        self.sessions.iter().enumerate().find(is_match)
    }

    /// Returns all actions in order.
    pub fn actions(&self) -> impl Iterator<Item = &ScriptAction> {
        self.sessions.iter().flat_map(ScriptSession::actions)
    }
}

impl ScriptSession {
    /// Returns all actions in order.
    pub fn actions(&self) -> impl Iterator<Item = &ScriptAction> {
        self.phases.iter().flat_map(|phase| &phase.steps).flat_map(|step| &step.actions)
    }
}

impl SourceSpot {
    /// Returns the byte range.
    #[must_use]
    pub fn span(&self) -> Span {
        Span { start: self.place.offset, end: self.end.max(self.place.offset) }
    }
}

impl PartialEq for SourceSpot {
    fn eq(&self, _: &SourceSpot) -> bool {
        true
    }
}

impl Eq for SourceSpot {}

impl Hash for SourceSpot {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}
