//! A script as it is run. Fields that nothing reads are kept as they are (S-012).

use std::hash::{Hash, Hasher};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::answer::AnswerForm;
use tambour::exit::Criteria;
use tambour::span::{Place, Span};

/// A script: its sessions in order.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Script {
    /// The sessions; each dialogue runs one of them.
    pub sessions: Vec<Session>,
    /// Further fields.
    pub more: Map<String, Value>,
}

/// A session: what a dialogue goes through.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Session {
    /// Its name.
    pub session: String,
    /// Variables of the whole session.
    pub declare: Vec<Declared>,
    /// Its phases in order.
    pub phases: Vec<Phase>,
    /// Further fields.
    pub more: Map<String, Value>,
    /// Where it stands.
    pub spot: Spot,
}

/// A variable and its first value (S-002).
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Declared {
    /// Its name, in any script.
    pub var: String,
    /// Its value when the part it is declared in begins.
    pub value: Value,
    /// Further fields.
    pub more: Map<String, Value>,
    /// Where it stands.
    pub spot: Spot,
}

/// A phase of a session.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Phase {
    /// Its name.
    pub phase: String,
    /// Variables that are there as long as the phase.
    pub declare: Vec<Declared>,
    /// Its steps in order.
    pub steps: Vec<Step>,
    /// Further fields.
    pub more: Map<String, Value>,
    /// Where it stands.
    pub spot: Spot,
}

/// A step of a phase.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Step {
    /// What it is about.
    pub topic: String,
    /// Variables that are there as long as the step.
    pub declare: Vec<Declared>,
    /// Its actions in order.
    pub actions: Vec<Action>,
    /// Further fields.
    pub more: Map<String, Value>,
    /// Where it stands.
    pub spot: Spot,
}

/// An action of a step.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Action {
    /// What it does.
    pub kind: ActionKind,
    /// A name of its own, if the author gave one.
    pub action_id: Option<String>,
    /// An expression over variables; where it is false the action is left out.
    pub condition: Option<String>,
    /// The template of its prompt, where it is not the one of its type.
    pub template: Option<String>,
    /// Further fields.
    pub more: Map<String, Value>,
    /// Its path, such as `sessions[0].phases[0].steps[0].actions[0]`.
    pub path: String,
    /// Where it stands.
    pub spot: Spot,
    /// Where the values of its fields stand, by the names that they have in the text.
    pub spots: Vec<(String, Spot)>,
}

/// What an action does.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ActionKind {
    /// `ai_say`: explains something, round by round.
    Say(Say),
    /// `ai_ask`: asks until the answer is known.
    Ask(Ask),
    /// `ai_think`: the model fills variables; nothing is shown.
    Think(Think),
    /// `use_skill`, `show_form`, `show_pic`: the client does it and answers.
    Client(ClientAction),
}

/// `ai_say`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Say {
    /// What is explained (S-004); may hold variables.
    pub content: String,
    /// Whether the user must have replied once before it is over (S-005, S-081).
    pub require_acknowledgment: bool,
    /// Rounds after which it is over in any case (S-006).
    pub max_rounds: u32,
    /// When it may be over before (S-007).
    pub exit_criteria: Criteria,
}

/// `ai_ask`. One that lacks its question loads, and fails when it is reached.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Ask {
    /// What is asked; may hold variables.
    pub question: Option<String>,
    /// Form that the answer has to have.
    pub answer: AnswerForm,
    /// The variable that takes the answer.
    pub variable: Option<String>,
    /// Rounds after which it is over in any case, 3 if not given.
    pub max_rounds: u32,
    /// Whether the dialogue fails without an answer.
    pub required: bool,
}

/// `ai_think`. One that lacks its prompt loads, and fails when it is reached.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Think {
    /// What the model is to think about; may hold variables.
    pub prompt: Option<String>,
    /// Variables that are filled, each with a description for the model.
    pub output: Vec<(String, String)>,
}

/// What the client does.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ClientAction {
    /// Which of them.
    pub kind: ClientKind,
    /// The variable that takes the client's answer.
    pub variable: Option<String>,
    /// All other fields, for the client; texts in them may hold variables.
    pub fields: Map<String, Value>,
}

/// Actions that the client does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ClientKind {
    /// `use_skill`.
    Skill,
    /// `show_form`.
    Form,
    /// `show_pic`.
    Picture,
}

/// Where something stands in the YAML text. That is no part of what it means: all spots are equal.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Spot {
    /// Its beginning.
    pub place: Place,
    /// Byte offset after its first token.
    pub end: usize,
}

impl Action {
    /// Where the value of a field stands, under the first of these names that is there; else the action.
    #[must_use]
    pub fn spot_of(&self, names: &[&str]) -> Spot {
        let of = |name: &&str| self.spots.iter().find(|(known, _)| known == name);
        names.iter().find_map(of).map_or(self.spot, |(_, spot)| *spot)
    }

    /// Its public type, such as `ai_say`.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match &self.kind {
            ActionKind::Say(_) => "ai_say",
            ActionKind::Ask(_) => "ai_ask",
            ActionKind::Think(_) => "ai_think",
            ActionKind::Client(client) => client.kind.type_name(),
        }
    }
}

impl ClientKind {
    /// Its public type, such as `show_form`.
    #[must_use]
    pub fn type_name(self) -> &'static str {
        match self {
            ClientKind::Skill => "use_skill",
            ClientKind::Form => "show_form",
            ClientKind::Picture => "show_pic",
        }
    }
}

impl Script {
    /// The session of that name, or the first one; with its index.
    #[must_use]
    pub fn session(&self, name: Option<&str>) -> Option<(usize, &Session)> {
        let wanted = |(_, session): &(usize, &Session)| name.is_none_or(|name| session.session == name);
        self.sessions.iter().enumerate().find(wanted)
    }

    /// All actions in order.
    pub fn actions(&self) -> impl Iterator<Item = &Action> {
        self.sessions.iter().flat_map(Session::actions)
    }
}

impl Session {
    /// All actions in order.
    pub fn actions(&self) -> impl Iterator<Item = &Action> {
        self.phases.iter().flat_map(|phase| &phase.steps).flat_map(|step| &step.actions)
    }
}

impl Spot {
    /// The same as a range of bytes.
    #[must_use]
    pub fn span(&self) -> Span {
        Span { start: self.place.offset, end: self.end.max(self.place.offset) }
    }
}

impl PartialEq for Spot {
    fn eq(&self, _: &Spot) -> bool {
        true
    }
}

impl Eq for Spot {}

impl Hash for Spot {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}
