//! Renders the templates of one prompt in order and collects warnings, requested effects and variables.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value};

use super::budget::Budget;
use super::scope::PromptScope;
use super::{Engine, PromptContext};
use tambour::error::Result;

/// The templates of one prompt, rendered one after the other in a shared scope.
#[derive(Debug)]
pub struct Assembly {
    scope: Arc<PromptScope>,
}

impl Assembly {
    /// Starts a prompt. `random_seed` seeds `random` and `roll` when the context has no `seed`; `pick` never
    /// uses it.
    #[must_use]
    pub fn new(engine: &Engine, context: PromptContext, random_seed: u64) -> Assembly {
        Assembly::with_budget(engine, context, random_seed, Budget::new(engine.limits()))
    }

    /// Like [`Assembly::new`], but charges `budget`, which other assemblies may share and which may stop the
    /// rendering.
    #[must_use]
    pub fn with_budget(
        engine: &Engine,
        context: PromptContext,
        random_seed: u64,
        budget: Budget,
    ) -> Assembly {
        Assembly { scope: PromptScope::new(engine.clone(), context, random_seed, budget) }
    }

    /// Renders the next template and returns its text. `name` appears in errors and warnings.
    ///
    /// # Errors
    /// Fails when the template does not compile, uses something forbidden, exceeds a limit, or reads a
    /// missing value in strict mode. The error names template, line and column and quotes the line (F-025).
    pub fn render(&mut self, name: &str, source: &str) -> Result<String> {
        self.scope.engine.render(&self.scope, name, source)
    }

    /// Migrates the macros of a text, then renders it (F-030).
    ///
    /// # Errors
    /// Same as [`Assembly::render`].
    pub fn render_macros(&mut self, name: &str, source: &str) -> Result<String> {
        let migrated_text = self.scope.migrate(source);
        self.render(name, &migrated_text.text)
    }

    /// Returns the warnings, effects and variables collected so far.
    #[must_use]
    pub fn outcome(&self) -> AssemblyOutcome {
        let (warnings, more_warnings) = self.scope.warnings();
        AssemblyOutcome {
            warnings,
            more_warnings,
            effects: self.scope.effects(),
            local: self.scope.locals(),
            global: self.scope.globals(),
        }
    }
}

/// A problem found while a template was rendered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TemplateWarning {
    /// Stable code, such as `variable_undefined` or `macro_unknown`.
    pub code: &'static str,
    /// Name of the template; empty if it is unknown.
    pub template: String,
    /// Line in the template, from 1; `None` if the position is unknown.
    pub line: Option<usize>,
    /// Column in Unicode scalar values, from 1; `None` if the position is unknown.
    pub column: Option<usize>,
    /// Description of the problem, in lower case.
    pub message: String,
}

/// A side effect that a prompt requests. The library performs none of them (F-023, F-035).
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Effect {
    /// Persistent write of a global variable; `null` removes it.
    SetGlobal {
        /// Name of the variable.
        name: String,
        /// New value.
        value: Value,
    },
    /// Word that the model call should ban.
    Banned {
        /// Word to ban.
        word: String,
    },
}

/// Result of rendering the templates of a prompt, besides their text.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct AssemblyOutcome {
    /// Warnings, in the order of their discovery.
    pub warnings: Vec<TemplateWarning>,
    /// Number of warnings dropped because the list was full.
    pub more_warnings: usize,
    /// Effects, in the order in which templates requested them.
    pub effects: Vec<Effect>,
    /// Variables that templates set in the temporary scope, which ends with the prompt.
    pub local: Map<String, Value>,
    /// Global variables as they will be once the effects are applied.
    pub global: Map<String, Value>,
}
