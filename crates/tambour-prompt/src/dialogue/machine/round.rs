//! Effects of the answer of a round.

use serde_json::Value;

use super::super::state::{Dialogue, Stage};
use super::super::turn::{Replied, TurnMetadata};
use super::{ASSISTANT, Env, USER};
use crate::script::{Action, ActionKind, Ask, Say};
use tambour::event::{ExitDecision, Failure};
use tambour::exit;
use tambour::texts::Language;
use tambour::texts::counted;

impl Dialogue {
    /// Handles the answer of a round of `ai_say`.
    pub(super) fn said(&mut self, say: &Say, answer: &exit::Answer, message: &str, env: &Env<'_>) -> Replied {
        let Some(running) = &mut self.running else { return Replied::default() };
        running.round += 1;
        running.spoken = true;
        let (round, replied) = (running.round, running.replied);
        let language = env.settings.texts.language;
        let decision = exit::decide(round, say.max_rounds, &say.exit_criteria, answer, language);
        let status = exit::status(decision.should_exit, say.require_acknowledgment, replied);
        self.say(ASSISTANT, message);
        if let Some(action) = self.action(env.script) {
            self.answered(Some(message), action, Some((&decision, &answer.assessment)));
        }
        match status {
            exit::Status::Completed => self.done(!say.require_acknowledgment),
            exit::Status::AwaitingAck => self.wait_for(Stage::Acknowledgement),
            _ => self.wait_for(Stage::User),
        }
        let assessment = Some(answer.assessment.told());
        Replied { exit_decision: Some(decision), assessment, ..Replied::default() }
    }

    /// Handles the answer of a round of `ai_ask`.
    pub(super) fn asked(
        &mut self,
        ask: &Ask,
        value: Option<&Value>,
        message: &str,
        action: &Action,
        language: Language,
    ) -> Replied {
        let Some(running) = &mut self.running else { return Replied::default() };
        running.round += 1;
        running.spoken = true;
        let last = running.round >= ask.max_rounds;
        // If the user has not said anything, the model made the value up.
        let value = value.filter(|_| self.history.iter().any(|said| said.role == USER));
        self.say(ASSISTANT, message);
        self.answered(Some(message), action, None);
        let mut came = Replied::default();
        if value.is_none() && !last {
            self.wait_for(Stage::User);
            return came;
        }
        if value.is_none() && ask.required {
            let (path, rounds) = (&action.path, ask.max_rounds);
            let message = match language {
                Language::Zh => format!("`{path}` 问了 {rounds} 轮仍没有得到回答"),
                Language::En => format!("`{path}` got no answer in {}", counted(rounds, "round")),
            };
            self.fails(Failure::new("answer_missing", message, false));
            return came;
        }
        if let Some(variable) = &ask.variable {
            let value = value.cloned().unwrap_or_default();
            came.assigned.insert(variable.clone(), value.clone());
            self.scopes.set(variable, value);
        }
        self.done(true);
        came
    }

    /// Records the message and metadata of the turn.
    pub(super) fn answered(
        &mut self,
        message: Option<&str>,
        action: &Action,
        decided: Option<(&ExitDecision, &exit::Assessment)>,
    ) {
        let max_rounds = match &action.kind {
            ActionKind::Say(say) => Some(say.max_rounds),
            ActionKind::Ask(ask) => Some(ask.max_rounds),
            ActionKind::Think(_) | ActionKind::Client(_) => None,
        };
        // A silent action does not hide the message of an earlier one in the same turn.
        if self.turn.spoken {
            return;
        }
        self.turn.message = message.map(str::to_owned);
        self.turn.spoken = message.is_some();
        self.turn.metadata = Some(TurnMetadata {
            action_type: action.type_name().to_owned(),
            current_round: self.current_round(),
            max_rounds,
            assessment: decided.map(|(_, assessment)| assessment.told()),
            exit_decision: decided.map(|(decision, _)| decision.clone()),
        });
    }
}
