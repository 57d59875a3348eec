//! Environment of a dialogue.

use super::super::hooks::Hooks;
use crate::script::Script;
use crate::template::{Files, Template};
use tambour::error::Result;
use tambour::texts::Texts;

/// Environment of a dialogue, passed to every call.
#[derive(Clone, Copy)]
pub struct Env<'a> {
    /// Script that the dialogue began with.
    pub script: &'a Script,
    /// Templates by id.
    pub templates: &'a dyn Templates,
    /// Current time in milliseconds since 1970 (UTC).
    pub now: i64,
    /// Settings.
    pub settings: &'a Settings,
    /// Hooks; `&()` for none.
    pub hooks: &'a dyn Hooks,
}

/// Source of templates.
pub trait Templates {
    /// Returns the template with this id.
    ///
    /// # Errors
    /// There is no such template (S-022).
    fn template(&self, id: &str) -> Result<Template>;
}

impl Templates for Files {
    fn template(&self, id: &str) -> Result<Template> {
        self.get(id)
    }
}

/// Settings of dialogues.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Settings {
    /// Default texts, which also select the language of templates.
    pub texts: Texts,
    /// Number of history messages in a prompt (S-032).
    pub history: usize,
    /// Most re-asks for an unreadable reply (S-054, R-66).
    pub max_reasks: u32,
    /// Sampling temperature (S-050).
    pub temperature: f64,
    /// Token limit of a reply (S-050).
    pub max_tokens: u32,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { texts: Texts::default(), history: 10, max_reasks: 1, temperature: 0.7, max_tokens: 1000 }
    }
}
