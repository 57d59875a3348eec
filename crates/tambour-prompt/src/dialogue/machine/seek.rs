//! Finds an action of the script and begins it: the next one, or the first at a given place.

use serde_json::{Map, Value};

use super::DialogueEnv;
use crate::dialogue::call::fill_variables;
use crate::dialogue::condition;
use crate::dialogue::hooks::HookContext;
use crate::dialogue::state::{
    ActionIndex, AwaitedInput, Dialogue, DialogueEnd, RunningAction, VariableScopes, initial_values,
};
use crate::dialogue::turn::ClientRequest;
use crate::script::{ClientAction, Script, ScriptAction, ScriptActionKind, ScriptSession};
use crate::template::{self, system_values};
use tambour::error::{Error, Result};
use tambour::event::{Extension, Request};
use tambour::texts::{Language, bilingual};

impl Dialogue {
    /// Returns the action at the current place, if there is one.
    pub(super) fn current_action<'s>(&self, script: &'s Script) -> Option<&'s ScriptAction> {
        let session = script.sessions.get(self.session)?;
        session.phases.get(self.at.phase)?.steps.get(self.at.step)?.actions.get(self.at.action)
    }

    /// Finds the next action and begins it. Returns false if an input has to come first, or if there is no
    /// further action, which ends the dialogue.
    pub(super) fn begin_next(&mut self, env: &DialogueEnv<'_>) -> bool {
        let Some(action) = self.find_next(env) else {
            self.over = Some(DialogueEnd::Completed);
            return false;
        };
        let is_speaking = matches!(action.kind, ScriptActionKind::Say(_) | ScriptActionKind::Ask(_));
        // A turn has one message. Silent actions may follow it, unless the user has to speak first.
        let must_wait = self.turn.needs_new_turn && (is_speaking || !self.turn.continues);
        if !self.turn.open || must_wait {
            return false;
        }
        // A turn is completed by the action that sends its message, so the end of a silent action before that
        // one does not count.
        self.turn.completed &= self.turn.needs_new_turn;
        self.running = Some(RunningAction::default());
        if matches!(action.kind, ScriptActionKind::Client(_)) {
            self.requests += 1;
            self.await_input(AwaitedInput::Client {
                call_id: format!("call_{}", self.requests),
                told: false,
            });
        } else {
            self.request_model(env);
        }
        true
    }

    /// Requests the model's answer for the next round.
    pub(super) fn request_model(&mut self, env: &DialogueEnv<'_>) {
        if let Some(action) = self.current_action(env.script) {
            let variables = self.scopes.visible();
            let context = HookContext { action, round: self.current_round() + 1, variables: &variables };
            self.apply_proposals(env.hooks.before_call(&context));
        }
        self.await_input(AwaitedInput::Model { attempt: 0, because: None });
    }

    /// Finds the next action whose condition holds, from the current place; `None` after the last one.
    /// Initializes the variables of phases and steps on entry, and clears them at the end of the session.
    pub(super) fn find_next<'s>(&mut self, env: &DialogueEnv<'s>) -> Option<&'s ScriptAction> {
        let session = env.script.sessions.get(self.session)?;
        while let Some(phase) = session.phases.get(self.at.phase) {
            if !std::mem::replace(&mut self.at.in_phase, true) {
                self.scopes.phase = initial_values(&phase.declare);
            }
            while let Some(step) = phase.steps.get(self.at.step) {
                if !std::mem::replace(&mut self.at.in_step, true) {
                    self.scopes.step = initial_values(&step.declare);
                }
                while let Some(action) = step.actions.get(self.at.action) {
                    if self.evaluate_condition(action, env.settings.texts.language) {
                        return Some(action);
                    }
                    self.at.action += 1;
                }
                self.at = ActionIndex { step: self.at.step + 1, action: 0, in_step: false, ..self.at };
            }
            self.at = ActionIndex { phase: self.at.phase + 1, ..ActionIndex::default() };
        }
        (self.scopes.phase, self.scopes.step) = (Map::new(), Map::new());
        None
    }

    /// Evaluates the condition of an action; true if it has none. An error counts as false and becomes a
    /// notice.
    pub(super) fn evaluate_condition(&mut self, action: &ScriptAction, language: Language) -> bool {
        let Some(condition) = &action.condition else { return true };
        condition::evaluate(condition, &self.scopes.visible(), language).unwrap_or_else(|reason| {
            let path = &action.path;
            let message = bilingual!(
                language,
                "`{}` 的条件按不成立处理：{}",
                "the condition of `{}` counts as false: {}",
                path,
                reason
            );
            self.add_notice("condition_invalid", message);
            false
        })
    }

    /// Builds the event of an action that the client carries out, and records it in the turn; `None` if the
    /// current action is of another kind.
    pub(super) fn build_request(&mut self, call_id: String, env: &DialogueEnv<'_>) -> Option<Extension> {
        let action = self.current_action(env.script)?;
        let ScriptActionKind::Client(ClientAction { kind, fields, .. }) = &action.kind else { return None };
        let variables = self.scopes.visible();
        let round = template::RoundFacts {
            now: env.now,
            chat_history: "",
            understanding_threshold: None,
            current_round: 0,
            max_rounds: None,
        };
        let mut system = system_values(&variables, &round);
        // There is no round and no prompt, so only the time and the names of the two speakers are kept.
        system.retain(|name, _| ["time", "who", "user"].contains(&name.as_str()));
        // The id of the request must not be hidden by a field of the author.
        let fields = fields.iter().filter(|(name, _)| *name != "call_id");
        let fields =
            fields.map(|(name, value)| (name.clone(), fill_variables(value, &variables, &system))).collect();
        let request = ClientRequest { event: *kind, data: Request { call_id, fields } };
        self.record_turn(None, action, None);
        self.turn.request = Some(request.clone());
        Some(request.into())
    }
}

impl Dialogue {
    /// Begins a session at the first action at or below `start_path`, a path in the script such as
    /// `sessions[0].phases[1].steps[0]`. `session` is the name of the session; `None` selects the session
    /// that contains the path. `variables` are values from the caller; they take precedence over those that
    /// session, phase and step declare.
    ///
    /// # Errors
    /// No session has that name, or there is no action at or below the path.
    pub fn start_at(
        script: &Script,
        session: Option<&str>,
        start_path: &str,
        variables: Map<String, Value>,
    ) -> Result<Dialogue> {
        let mut dialogue = Dialogue::start(script, session, Map::new())?;
        let sessions = script.sessions.iter().enumerate();
        let is_selected = |index: &usize| session.is_none() || *index == dialogue.session;
        let found = sessions.filter(|(index, _)| is_selected(index)).find_map(|(index, session)| {
            let (phase, step, action) = find_action(session, start_path)?;
            Some((index, ActionIndex { phase, step, action, in_phase: true, in_step: true }))
        });
        let Some((index, at)) = found else {
            let paths = script.actions().flat_map(|action| [step_path(&action.path), &action.path]);
            return Err(Error::unknown("place in the script", start_path, paths));
        };
        let session = &script.sessions[index];
        let phase = &session.phases[at.phase];
        (dialogue.session, dialogue.at) = (index, at);
        dialogue.scopes = VariableScopes {
            session: initial_values(&session.declare),
            phase: initial_values(&phase.declare),
            step: initial_values(&phase.steps[at.step].declare),
        };
        variables.into_iter().for_each(|(name, value)| dialogue.scopes.set(&name, value));
        Ok(dialogue)
    }
}

/// Returns the indexes of phase, step and action of the first action at or below a path.
fn find_action(session: &ScriptSession, start_path: &str) -> Option<(usize, usize, usize)> {
    let is_at_or_below = |path: &str| {
        path.strip_prefix(start_path)
            .is_some_and(|remainder| remainder.is_empty() || remainder.starts_with('.'))
    };
    session.phases.iter().enumerate().find_map(|(phase_index, phase)| {
        phase.steps.iter().enumerate().find_map(|(step_index, step)| {
            let action_index = step.actions.iter().position(|action| is_at_or_below(&action.path))?;
            Some((phase_index, step_index, action_index))
        })
    })
}

/// Returns the path of an action's step.
fn step_path(path: &str) -> &str {
    path.rsplit_once('.').map_or(path, |(step, _)| step)
}
