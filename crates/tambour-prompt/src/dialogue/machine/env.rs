//! Environment that the calls of a dialogue need: script, templates, time, settings and hooks.

use super::super::hooks::Hooks;
use crate::script::Script;
use crate::template::{LayeredTemplate, TemplateFiles};
use tambour::error::Result;
use tambour::texts::Texts;

/// Environment of a dialogue, passed to every call.
#[derive(Clone, Copy)]
pub struct DialogueEnv<'a> {
    /// Script that the dialogue began with.
    pub script: &'a Script,
    /// Templates by id.
    pub templates: &'a dyn TemplateSource,
    /// Current time in milliseconds since 1970 (UTC).
    pub now: i64,
    /// Settings.
    pub settings: &'a DialogueSettings,
    /// Hooks; `&()` for none.
    pub hooks: &'a dyn Hooks,
}

/// Source of templates by id.
pub trait TemplateSource {
    /// Returns the template with this id.
    ///
    /// # Errors
    /// There is no such template (S-022).
    fn template(&self, id: &str) -> Result<LayeredTemplate>;
}

impl TemplateSource for TemplateFiles {
    fn template(&self, id: &str) -> Result<LayeredTemplate> {
        self.get(id)
    }
}

/// Settings of dialogues.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct DialogueSettings {
    /// Default texts; their language also selects the default templates.
    pub texts: Texts,
    /// Maximum number of history messages in a prompt (S-032).
    pub history: usize,
    /// Maximum number of times that a round asks the model again after an unreadable reply (S-054, R-66).
    pub max_reasks: u32,
    /// Sampling temperature (S-050).
    pub temperature: f64,
    /// Token limit of a reply (S-050).
    pub max_tokens: u32,
}

impl Default for DialogueSettings {
    fn default() -> DialogueSettings {
        DialogueSettings {
            texts: Texts::default(),
            history: 10,
            max_reasks: 1,
            temperature: 0.7,
            max_tokens: 1000,
        }
    }
}
