//! Effects of a model's answer on its dialogue: history, variables, the record of the turn, and the end of
//! the action.

use serde_json::Value;

use super::super::state::{AwaitedInput, Dialogue};
use super::super::turn::{ReplyEffect, TurnMetadata};
use super::{ASSISTANT, DialogueEnv, USER};
use crate::script::{AskAction, SayAction, ScriptAction, ScriptActionKind};
use tambour::event::{ExitDecision, Failure};
use tambour::exit;
use tambour::texts::Language;
use tambour::texts::format_count;

impl Dialogue {
    /// Applies the answer of a round of `ai_say`: the exit decision ends the action, or lets it continue.
    pub(super) fn apply_say(
        &mut self,
        say: &SayAction,
        answer: &exit::RoundAnswer,
        message: &str,
        env: &DialogueEnv<'_>,
    ) -> ReplyEffect {
        let Some(running_action) = &mut self.running else { return ReplyEffect::default() };
        running_action.round += 1;
        running_action.has_first_message = true;
        let (round, has_replied) = (running_action.round, running_action.replied);
        let language = env.settings.texts.language;
        let decision = exit::decide(round, say.max_rounds, &say.exit_criteria, answer, language);
        let status = exit::action_status(decision.should_exit, say.require_acknowledgment, has_replied);
        self.push_history(ASSISTANT, message);
        if let Some(action) = self.current_action(env.script) {
            self.record_turn(Some(message), action, Some((&decision, &answer.assessment)));
        }
        match status {
            // After an action that requires an acknowledgement, the next one waits for a message of the user.
            exit::ActionStatus::Completed => self.end_action(!say.require_acknowledgment),
            exit::ActionStatus::AwaitingAck => self.await_input(AwaitedInput::Acknowledgement),
            _ => self.await_input(AwaitedInput::User),
        }
        let assessment = Some(answer.assessment.to_full_value());
        ReplyEffect { exit_decision: Some(decision), assessment, ..ReplyEffect::default() }
    }

    /// Applies the answer of a round of `ai_ask`: a value ends the action, and so does the last round without
    /// one.
    pub(super) fn apply_ask(
        &mut self,
        ask: &AskAction,
        value: Option<&Value>,
        message: &str,
        action: &ScriptAction,
        language: Language,
    ) -> ReplyEffect {
        let Some(running_action) = &mut self.running else { return ReplyEffect::default() };
        running_action.round += 1;
        running_action.has_first_message = true;
        let is_last = running_action.round >= ask.max_rounds;
        // If the user has not said anything, the model made the value up.
        let value = value.filter(|_| self.history.iter().any(|entry| entry.role == USER));
        self.push_history(ASSISTANT, message);
        self.record_turn(Some(message), action, None);
        let mut effect = ReplyEffect::default();
        if value.is_none() && !is_last {
            self.await_input(AwaitedInput::User);
            return effect;
        }
        if value.is_none() && ask.required {
            let (path, rounds) = (&action.path, ask.max_rounds);
            let message = match language {
                Language::Zh => format!("`{path}` 问了 {rounds} 轮仍没有得到回答"),
                Language::En => format!("`{path}` got no answer in {}", format_count(rounds, "round")),
            };
            let is_retryable = false;
            self.fail_dialogue(Failure::new("answer_missing", message, is_retryable));
            return effect;
        }
        if let Some(variable) = &ask.variable {
            let value = value.cloned().unwrap_or_default();
            effect.assigned.insert(variable.clone(), value.clone());
            self.scopes.set(variable, value);
        }
        let continues = true;
        self.end_action(continues);
        effect
    }

    /// Records the message of the turn, and the metadata of its action with the exit decision and the
    /// assessment of `ai_say`. Does nothing if the next message belongs to another turn.
    pub(super) fn record_turn(
        &mut self,
        message: Option<&str>,
        action: &ScriptAction,
        decision_data: Option<(&ExitDecision, &exit::Assessment)>,
    ) {
        let max_rounds = match &action.kind {
            ScriptActionKind::Say(say) => Some(say.max_rounds),
            ScriptActionKind::Ask(ask) => Some(ask.max_rounds),
            ScriptActionKind::Think(_) | ScriptActionKind::Client(_) => None,
        };
        // A silent action does not hide the message of an earlier one in the same turn.
        if self.turn.needs_new_turn {
            return;
        }
        self.turn.message = message.map(str::to_owned);
        self.turn.needs_new_turn = message.is_some();
        self.turn.metadata = Some(TurnMetadata {
            action_type: action.type_name().to_owned(),
            current_round: self.current_round(),
            max_rounds,
            assessment: decision_data.map(|(_, assessment)| assessment.to_full_value()),
            exit_decision: decision_data.map(|(decision, _)| decision.clone()),
        });
    }
}
