//! The templates of one prompt, and what they leave behind.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value};

use super::budget::Budget;
use super::scope::Scope;
use super::{Context, Engine};
use tambour::error::Result;

/// The templates of one prompt, rendered one after the other.
#[derive(Debug)]
pub struct Assembly {
    scope: Arc<Scope>,
}

impl Assembly {
    /// Begins a prompt. `chance` seeds `random` and `roll` if the context has no `seed`; `pick` goes by `chat_id` and `seed`
    /// alone.
    #[must_use]
    pub fn new(engine: &Engine, context: Context, chance: u64) -> Assembly {
        Assembly::within(engine, context, chance, Budget::new(engine.limits()))
    }

    /// As [`Assembly::new`], within a budget that it may share with others and that may be told to stop.
    #[must_use]
    pub fn within(engine: &Engine, context: Context, chance: u64, budget: Budget) -> Assembly {
        Assembly { scope: Scope::new(engine.clone(), context, chance, budget) }
    }

    /// Renders the next template. `name` is for errors and warnings.
    ///
    /// # Errors
    /// It does not compile, uses what is not allowed, costs too much, or is strict and asks for what is missing; with
    /// template, line, column and the line (F-025).
    pub fn render(&mut self, name: &str, source: &str) -> Result<String> {
        self.scope.engine.render(&self.scope, name, source)
    }

    /// Migrates the macros of a text, then renders it (F-030).
    ///
    /// # Errors
    /// As [`Assembly::render`].
    pub fn render_macros(&mut self, name: &str, source: &str) -> Result<String> {
        let migrated = self.scope.migrated(source);
        self.render(name, &migrated.text)
    }

    /// What the prompt left behind so far.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        let (warnings, more_warnings) = self.scope.warnings();
        Outcome {
            warnings,
            more_warnings,
            effects: self.scope.effects(),
            local: self.scope.locals(),
            global: self.scope.globals(),
        }
    }
}

/// What was noticed while a template was rendered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Warning {
    /// A stable code, such as `variable_undefined` or `macro_unknown`.
    pub code: &'static str,
    /// Name of the template.
    pub template: String,
    /// Line in it, from 1, if the place is known.
    pub line: Option<usize>,
    /// Column in Unicode scalar values, from 1.
    pub column: Option<usize>,
    /// What is wrong, in lower case.
    pub message: String,
}

/// What a prompt asks to be done; nothing was done (F-023, F-035).
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Effect {
    /// A lasting write of a global variable; `null` removes it.
    SetGlobal {
        /// Its name.
        name: String,
        /// Its new value.
        value: Value,
    },
    /// A word that the call of the model should ban.
    Banned {
        /// The word.
        word: String,
    },
}

/// What a prompt left behind.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Outcome {
    /// In the order in which they were noticed.
    pub warnings: Vec<Warning>,
    /// Warnings beyond those that are kept.
    pub more_warnings: usize,
    /// In the order in which they were asked for.
    pub effects: Vec<Effect>,
    /// The temporary scope: what templates set.
    pub local: Map<String, Value>,
    /// The global variables as they would be after the effects.
    pub global: Map<String, Value>,
}
