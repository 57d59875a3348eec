//! Variables of the session, of its phase and of its step. Inner variables hide outer ones of the same name.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::script::VariableDeclaration;

/// Variables of a dialogue by scope, from the outermost to the innermost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct VariableScopes {
    pub(super) session: Map<String, Value>,
    pub(super) phase: Map<String, Value>,
    pub(super) step: Map<String, Value>,
}

/// Returns variables with their initial values. The last declaration of a name counts.
pub(super) fn initial_values(list: &[VariableDeclaration]) -> Map<String, Value> {
    list.iter().map(|declaration| (declaration.var.clone(), declaration.value.clone())).collect()
}

impl VariableScopes {
    /// Returns all visible variables (S-037).
    pub(super) fn visible(&self) -> Map<String, Value> {
        let mut visible = self.session.clone();
        for inner in [&self.phase, &self.step] {
            visible.extend(inner.iter().map(|(name, value)| (name.clone(), value.clone())));
        }
        visible
    }

    /// Sets a variable in the scope that declares it, or in the session.
    pub(super) fn set(&mut self, name: &str, value: Value) {
        let scopes = [&mut self.step, &mut self.phase];
        match scopes.into_iter().find_map(|scope| scope.get_mut(name)) {
            Some(place) => *place = value,
            None => drop(self.session.insert(name.to_owned(), value)),
        }
    }
}
