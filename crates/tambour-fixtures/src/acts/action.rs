//! Actions among the events of a reply.

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
    /// An operation of a `state_update` that is not refused.
    Operation,
    /// A `status_bar`.
    Status,
    /// A `choice`.
    Choice,
    /// A `ui_component`.
    Component,
    /// A `media`.
    Media,
    /// An `exit_decision` that ends the action because of what the model assessed.
    Exit,
}

/// One action, without the number that calls get.
#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    /// Kind of the action.
    pub kind: ActionKind,
    /// Its content, as the event has it.
    pub data: Value,
}

impl Action {
    /// Marker words in it.
    #[must_use]
    pub fn words(&self) -> Vec<WordNumber> {
        if self.kind == ActionKind::Exit {
            return level_word(&self.data).into_iter().collect();
        }
        find_words(self.data.to_string().as_bytes()).map(|(_, word)| word).collect()
    }

    /// The values that are carried out, as opposed to shown: all that must be written literally.
    #[must_use]
    pub fn values(&self) -> Option<&Value> {
        match self.kind {
            ActionKind::Call | ActionKind::Planned => Some(&self.data["args"]),
            ActionKind::Operation => Some(&self.data["value"]),
            _ => None,
        }
    }
}

/// The level of understanding that stands for a word.
#[must_use]
pub(super) fn level(word: WordNumber) -> String {
    format!("90.{word:04}")
}

/// The word of a level, in an assessment.
fn level_word(assessment: &Value) -> Option<WordNumber> {
    let level = assessment["understanding_level"].as_f64()?;
    let word = ((level - 90.0) * 10_000.0).round();
    (1.0..10_000.0).contains(&word).then_some(word as WordNumber)
}

/// The actions of a stream, in order.
#[must_use]
pub fn actions(events: &[Event<'_>]) -> Vec<Action> {
    let mut found = Vec::new();
    let mut add = |kind, data| found.push(Action { kind, data });
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
    found
}
