//! Actions among the events of a reply. Marker words in an action tell which block of the reply it comes
//! from.

use serde_json::{Value, json};
use tambour::Event;
use tambour::event::{DecisionSource, Extension};
use tambour::state::operations_from_event;

use crate::words::{WordNumber, find_words};

/// Kind of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ActionKind {
    /// A `tool_call`.
    Call,
    /// A call within a plan that is executable.
    Planned,
    /// An operation of a `state_update`, unless it was refused.
    Operation,
    /// A `status_bar`.
    Status,
    /// A `choice`.
    Choice,
    /// A `ui_component`.
    Component,
    /// A `media`.
    Media,
    /// An `exit_decision` that ends the action because of the model's assessment.
    Exit,
}

/// One action of a reply, without the id that the library gives to a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    /// Kind of the action.
    pub kind: ActionKind,
    /// Content of the event: name and arguments of a call, parts of an operation, the assessment of an exit.
    pub data: Value,
}

impl Action {
    /// Marker words in the action.
    #[must_use]
    pub fn words(&self) -> Vec<WordNumber> {
        if self.kind == ActionKind::Exit {
            return word_from_level(&self.data).into_iter().collect();
        }
        find_words(self.data.to_string().as_bytes()).map(|(_, word)| word).collect()
    }

    /// Arguments of a call or value of an operation; each text and number in them must appear
    /// literally in the reply. `None` for other actions.
    #[must_use]
    pub fn values(&self) -> Option<&Value> {
        match self.kind {
            ActionKind::Call | ActionKind::Planned => Some(&self.data["args"]),
            ActionKind::Operation => Some(&self.data["value"]),
            _ => None,
        }
    }
}

/// Encodes a marker word as a level of understanding, since the level, not a text, decides whether a round
/// ends: word 17 becomes 90.0017.
#[must_use]
pub(super) fn encode_as_level(word: WordNumber) -> String {
    format!("90.{word:04}")
}

/// Decodes the marker word from the level of an assessment; `None` if the level encodes no word.
fn word_from_level(assessment: &Value) -> Option<WordNumber> {
    let level = assessment["understanding_level"].as_f64()?;
    let word = ((level - 90.0) * 10_000.0).round();
    (1.0..10_000.0).contains(&word).then_some(word as WordNumber)
}

/// Lists the actions of a stream, in order.
#[must_use]
pub fn actions(events: &[Event<'_>]) -> Vec<Action> {
    let mut actions = Vec::new();
    let mut add = |kind, data| actions.push(Action { kind, data });
    for event in events.iter().filter_map(Event::extension) {
        match event {
            Extension::ToolCall(call) => {
                add(ActionKind::Call, json!({ "name": call.name, "args": call.args }));
            }
            Extension::Plan(outcome) if outcome.executable => {
                let calls = outcome.plan["tool_calls"].as_array();
                for call in calls.into_iter().flatten() {
                    add(ActionKind::Planned, json!({ "name": call["name"], "args": call["args"] }));
                }
            }
            Extension::StateUpdate(update) => {
                for (index, operation) in operations_from_event(update).into_iter().enumerate() {
                    let is_refused = update.results.as_ref().is_some_and(|results| !results[index].ok);
                    if !is_refused && operation.refusal().is_none() {
                        let data = json!({
                            "op": operation.op(), "path": operation.path(), "value": operation.value()
                        });
                        add(ActionKind::Operation, data);
                    }
                }
            }
            Extension::StatusBar(_) => add(ActionKind::Status, event.data()),
            Extension::Choice(_) => add(ActionKind::Choice, event.data()),
            Extension::UiComponent(_) => add(ActionKind::Component, event.data()),
            Extension::Media(_) => add(ActionKind::Media, event.data()),
            Extension::ExitDecision(decision)
                if decision.should_exit && decision.decision_source == DecisionSource::ExitCriteria =>
            {
                add(ActionKind::Exit, decision.assessment.clone());
            }
            _ => {}
        }
    }
    actions
}
