//! Coverage of a session by dialogues: the actions, exits and rounds of the session that they have reached,
//! and those that no dialogue has reached.

use serde::Serialize;
use serde_json::Value;

use super::state::DialogueStatus;
use super::turn::DialogueTurn;
use crate::script::{Script, ScriptAction, ScriptActionKind};

/// Coverage of the actions of one session.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Coverage {
    /// Name of the session.
    pub session: String,
    /// Actions in order.
    pub actions: Vec<ActionCoverage>,
}

/// Coverage of one action.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ActionCoverage {
    /// Path of the action in the script.
    pub path: String,
    /// Name of its phase.
    pub phase: String,
    /// Topic of its step.
    pub topic: String,
    /// Type of the action.
    pub action_type: String,
    /// The action's own id, if it has one.
    pub action_id: Option<String>,
    /// Condition of the action, if it has one.
    pub condition: Option<String>,
    /// Number of dialogues that reached the action: they called the model for it, or sent its request to the
    /// client.
    pub reached: u32,
    /// Number of dialogues that skipped the action because its condition did not hold.
    pub left_out: u32,
    /// Highest number of rounds answered in a single dialogue.
    pub rounds: u32,
    /// Number of the last round; the action ends after it in any case. `None` for an action without rounds.
    pub max_rounds: Option<u32>,
    /// Level of understanding in the exit criteria of `ai_say`, from 0 to 100; `None` for other actions.
    pub understanding_threshold: Option<f64>,
    /// Ways to end, each with the number of dialogues that took it.
    pub exits: Vec<ExitCount>,
}

/// A way in which an action can end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ExitCount {
    /// Rule of the exit decision for `ai_say`; `answered` or `unanswered` for `ai_ask`.
    pub exit: &'static str,
    /// Number of dialogues that took this way.
    pub count: u32,
}

/// A model call whose outcome is known, with the data that coverage needs.
#[derive(Clone, Debug, Default)]
pub struct CoveredCall {
    /// Path of the action.
    pub path: String,
    /// Number of the answered round, from 1; `None` if no round was answered.
    pub round: Option<u32>,
    /// Rule by which `ai_say` ended, if it did.
    pub exit: Option<String>,
    /// Value that `ai_ask` accepted; null if none.
    pub answer: Value,
}

impl Coverage {
    /// Creates the coverage of a session before any dialogue; `None` if the script has no session of that
    /// name.
    #[must_use]
    pub fn new(script: &Script, session: &str) -> Option<Coverage> {
        let (_, session) = script.find_session(Some(session))?;
        let steps = session.phases.iter().flat_map(|phase| phase.steps.iter().map(move |step| (phase, step)));
        let actions = steps.flat_map(|(phase, step)| {
            step.actions.iter().map(|action| ActionCoverage {
                phase: phase.phase.clone(),
                topic: step.topic.clone(),
                ..ActionCoverage::new(action)
            })
        });
        Some(Coverage { session: session.session.clone(), actions: actions.collect() })
    }

    /// Adds a dialogue: the path of its start in the script (the beginning if `None`), its calls, and its
    /// turns, in order.
    pub fn add_dialogue(&mut self, start: Option<&str>, calls: &[CoveredCall], turns: &[DialogueTurn]) {
        let mut reached_actions = vec![false; self.actions.len()];
        let mut answered_rounds = vec![0; self.actions.len()];
        for call in calls {
            let Some(index) = self.find_action(&call.path) else { continue };
            reached_actions[index] = true;
            answered_rounds[index] = answered_rounds[index].max(call.round.unwrap_or(0));
        }
        // A request to the client reaches an action without a model call.
        for turn in turns.iter().filter(|turn| turn.request.is_some()) {
            let path = turn.position.as_ref().map(|position| position.path.as_str());
            if let Some(index) = path.and_then(|path| self.find_action(path)) {
                reached_actions[index] = true;
            }
        }
        let start_index = start.and_then(|path| self.find_first_below(path)).unwrap_or(0);
        let end_index = self.end_index(turns, start_index);
        for (index, action) in self.actions.iter_mut().enumerate() {
            action.rounds = action.rounds.max(answered_rounds[index]);
            if reached_actions[index] {
                action.reached += 1;
            } else if (start_index..end_index).contains(&index) {
                action.left_out += 1;
            }
        }
        self.count_exits(calls, end_index);
    }

    /// Returns the index of the first action that the turns have not passed.
    fn end_index(&self, turns: &[DialogueTurn], start_index: usize) -> usize {
        let Some(last) = turns.last() else { return start_index };
        if last.status == DialogueStatus::Completed {
            return self.actions.len();
        }
        let path = last.position.as_ref().map(|position| position.path.as_str());
        path.and_then(|path| self.find_action(path)).unwrap_or(start_index)
    }

    /// Counts the exits that one dialogue took. `end_index` is the index of the first action that it has not
    /// passed.
    fn count_exits(&mut self, calls: &[CoveredCall], end_index: usize) {
        for index in 0..self.actions.len() {
            let action = &self.actions[index];
            let action_calls: Vec<&CoveredCall> =
                calls.iter().filter(|call| call.path == action.path).collect();
            let exit = match action.action_type.as_str() {
                "ai_say" => action_calls.iter().rev().find_map(|call| call.exit.clone()),
                // A value was accepted.
                "ai_ask" if action_calls.iter().any(|call| !call.answer.is_null()) => {
                    Some("answered".to_owned())
                }
                // The last round was answered without a value.
                "ai_ask"
                    if action_calls
                        .iter()
                        .any(|call| call.round.is_some() && call.round == action.max_rounds) =>
                {
                    Some("unanswered".to_owned())
                }
                // The action has no variable, so its value is unknown. If the dialogue continued, the
                // question was answered.
                "ai_ask" if index < end_index && !action_calls.is_empty() => Some("answered".to_owned()),
                _ => None,
            };
            let exit_count = self.actions[index]
                .exits
                .iter_mut()
                .find(|candidate| Some(candidate.exit) == exit.as_deref());
            if let Some(exit_count) = exit_count {
                exit_count.count += 1;
            }
        }
    }

    /// Returns the index of the action with this path.
    fn find_action(&self, path: &str) -> Option<usize> {
        self.actions.iter().position(|action| action.path == path)
    }

    /// Returns the index of the first action at or below a path.
    fn find_first_below(&self, parent: &str) -> Option<usize> {
        let is_below = |path: &str| {
            path.strip_prefix(parent)
                .is_some_and(|remainder| remainder.is_empty() || remainder.starts_with('.'))
        };
        self.actions.iter().position(|action| is_below(&action.path))
    }
}

impl ActionCoverage {
    fn new(action: &ScriptAction) -> ActionCoverage {
        let (max_rounds, exits): (_, &[&'static str]) = match &action.kind {
            ScriptActionKind::Say(say) => {
                (Some(say.max_rounds), &["exit_criteria", "llm_suggestion", "max_rounds"])
            }
            ScriptActionKind::Ask(ask) => (Some(ask.max_rounds), &["answered", "unanswered"]),
            ScriptActionKind::Think(_) | ScriptActionKind::Client(_) => (None, &[]),
        };
        ActionCoverage {
            path: action.path.clone(),
            phase: String::new(),
            topic: String::new(),
            action_type: action.type_name().to_owned(),
            action_id: action.action_id.clone(),
            condition: action.condition.clone(),
            reached: 0,
            left_out: 0,
            rounds: 0,
            max_rounds,
            understanding_threshold: match &action.kind {
                ScriptActionKind::Say(say) => Some(say.exit_criteria.understanding_threshold()),
                _ => None,
            },
            exits: exits.iter().map(|exit| ExitCount { exit, count: 0 }).collect(),
        }
    }
}
