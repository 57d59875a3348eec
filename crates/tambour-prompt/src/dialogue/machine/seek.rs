//! Finds the next action of the script and begins it.

use serde_json::Map;

use super::Env;
use crate::dialogue::call::filled;
use crate::dialogue::condition;
use crate::dialogue::hooks::Moment;
use crate::dialogue::scopes::declared;
use crate::dialogue::state::{At, Dialogue, Over, Running, Stage};
use crate::dialogue::turn::ClientRequest;
use crate::script::{Action, ActionKind, ClientAction, Script};
use crate::template::{self, system_values};
use tambour::event::{Extension, Request};
use tambour::texts::{Language, bilingual};

impl Dialogue {
    /// Returns the action at the current place, if there is one.
    pub(super) fn action<'s>(&self, script: &'s Script) -> Option<&'s Action> {
        let session = script.sessions.get(self.session)?;
        session.phases.get(self.at.phase)?.steps.get(self.at.step)?.actions.get(self.at.action)
    }

    /// Finds the next action and begins it; `false` if the user has to speak first, or there is no action.
    pub(super) fn begin(&mut self, env: &Env<'_>) -> bool {
        let Some(action) = self.seek(env) else {
            self.over = Some(Over::Completed);
            return false;
        };
        let speaks = matches!(action.kind, ActionKind::Say(_) | ActionKind::Ask(_));
        // A turn has one message. Silent actions may follow it, unless the user has to speak first.
        if !self.turn.open || (self.turn.spoken && (speaks || !self.turn.continues)) {
            return false;
        }
        self.turn.completed &= self.turn.spoken;
        self.running = Some(Running::default());
        if matches!(action.kind, ActionKind::Client(_)) {
            self.requests += 1;
            self.wait_for(Stage::Client { call_id: format!("call_{}", self.requests), told: false });
        } else {
            self.ask_model(env);
        }
        true
    }

    /// Requests the model's answer to the next round.
    pub(super) fn ask_model(&mut self, env: &Env<'_>) {
        if let Some(action) = self.action(env.script) {
            let variables = self.scopes.visible();
            let moment = Moment { action, round: self.current_round() + 1, variables: &variables };
            self.follow(env.hooks.before(&moment));
        }
        self.wait_for(Stage::Model { attempt: 0, because: None });
    }

    /// Finds the next action whose condition holds, from the current place; initializes the variables of
    /// phases and steps on entry.
    pub(super) fn seek<'s>(&mut self, env: &Env<'s>) -> Option<&'s Action> {
        let session = env.script.sessions.get(self.session)?;
        while let Some(phase) = session.phases.get(self.at.phase) {
            if !std::mem::replace(&mut self.at.in_phase, true) {
                self.scopes.phase = declared(&phase.declare);
            }
            while let Some(step) = phase.steps.get(self.at.step) {
                if !std::mem::replace(&mut self.at.in_step, true) {
                    self.scopes.step = declared(&step.declare);
                }
                while let Some(action) = step.actions.get(self.at.action) {
                    if self.holds(action, env.settings.texts.language) {
                        return Some(action);
                    }
                    self.at.action += 1;
                }
                self.at = At { step: self.at.step + 1, action: 0, in_step: false, ..self.at };
            }
            self.at = At { phase: self.at.phase + 1, ..At::default() };
        }
        (self.scopes.phase, self.scopes.step) = (Map::new(), Map::new());
        None
    }

    /// Evaluates the condition of an action; an error becomes a notice.
    pub(super) fn holds(&mut self, action: &Action, language: Language) -> bool {
        let Some(condition) = &action.condition else { return true };
        condition::holds(condition, &self.scopes.visible(), language).unwrap_or_else(|why| {
            let path = &action.path;
            let message = bilingual!(
                language,
                "`{}` 的条件按不成立处理：{}",
                "the condition of `{}` counts as false: {}",
                path,
                why
            );
            self.notice("condition_invalid", message);
            false
        })
    }

    /// Builds the event of an action that the client carries out.
    pub(super) fn request(&mut self, call_id: String, env: &Env<'_>) -> Option<Extension> {
        let action = self.action(env.script)?;
        let ActionKind::Client(ClientAction { kind, fields, .. }) = &action.kind else { return None };
        let variables = self.scopes.visible();
        let round = template::Round {
            now: env.now,
            chat_history: "",
            understanding_threshold: None,
            current_round: 0,
            max_rounds: None,
        };
        let mut system = system_values(&variables, &round);
        // There is no round and no prompt, so only the values about the two speakers are kept.
        system.retain(|name, _| ["time", "who", "user"].contains(&name.as_str()));
        let fields = fields.iter().filter(|(name, _)| *name != "call_id");
        let fields = fields.map(|(name, value)| (name.clone(), filled(value, &variables, &system))).collect();
        let request = ClientRequest { event: *kind, data: Request { call_id, fields } };
        self.answered(None, action, None);
        self.turn.request = Some(request.clone());
        Some(request.into())
    }
}
