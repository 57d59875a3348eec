//! Starts a dialogue at a given place of the script.

use serde_json::{Map, Value};

use crate::dialogue::scopes::{VariableScopes, initial_values};
use crate::dialogue::state::{ActionIndex, Dialogue};
use crate::script::{Script, ScriptSession};
use tambour::error::{Error, Result};

impl Dialogue {
    /// Begins a session at one of its steps or actions. `place` is a path in the script, such as
    /// `sessions[0].phases[1].steps[0]`; `session` is the name of the session, by default that of the place.
    /// `variables` are values from the caller; they take precedence over those that session, phase and step
    /// declare.
    ///
    /// # Errors
    /// No session has that name, or there is no action at the place.
    pub fn start_at(
        script: &Script,
        session: Option<&str>,
        place: &str,
        variables: Map<String, Value>,
    ) -> Result<Dialogue> {
        let mut dialogue = Dialogue::start(script, session, Map::new())?;
        let sessions = script.sessions.iter().enumerate();
        let is_selected = |index: &usize| session.is_none() || *index == dialogue.session;
        let found = sessions.filter(|(index, _)| is_selected(index)).find_map(|(index, session)| {
            let (phase, step, action) = find_action(session, place)?;
            Some((index, ActionIndex { phase, step, action, in_phase: true, in_step: true }))
        });
        let Some((index, at)) = found else {
            let places = script.actions().flat_map(|action| [step_path(&action.path), &action.path]);
            return Err(Error::unknown("place in the script", place, places));
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
fn find_action(session: &ScriptSession, place: &str) -> Option<(usize, usize, usize)> {
    let is_at_place =
        |path: &str| path.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    session.phases.iter().enumerate().find_map(|(phase, found)| {
        found.steps.iter().enumerate().find_map(|(step, found)| {
            let action = found.actions.iter().position(|action| is_at_place(&action.path))?;
            Some((phase, step, action))
        })
    })
}

/// Returns the path of an action's step.
fn step_path(path: &str) -> &str {
    path.rsplit_once('.').map_or(path, |(step, _)| step)
}
