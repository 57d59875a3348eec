//! What a dialogue is given.

use super::super::hooks::Hooks;
use crate::script::Script;
use crate::template::{Files, Template};
use tambour::error::Result;
use tambour::texts::Texts;

/// What a dialogue is given beside its state.
#[derive(Clone, Copy)]
pub struct Env<'a> {
    /// The script it began with.
    pub script: &'a Script,
    /// Templates by id.
    pub templates: &'a dyn Templates,
    /// The time, in milliseconds since 1970 in UTC.
    pub now: i64,
    /// Settings.
    pub settings: &'a Settings,
    /// What is plugged in; `&()` for nothing.
    pub hooks: &'a dyn Hooks,
}

/// Where templates come from.
pub trait Templates {
    /// The template of this id.
    ///
    /// # Errors
    /// There is none (S-022).
    fn template(&self, id: &str) -> Result<Template>;
}

impl Templates for Files {
    fn template(&self, id: &str) -> Result<Template> {
        self.get(id)
    }
}

/// How dialogues are run.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Settings {
    /// Default texts, and with them the language of templates.
    pub texts: Texts,
    /// Messages of the history that a prompt has (S-032).
    pub history: usize,
    /// How often an unreadable reply is asked for again (S-054, R-66).
    pub max_reasks: u32,
    /// Sampling temperature (S-050).
    pub temperature: f64,
    /// Most tokens of a reply (S-050).
    pub max_tokens: u32,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { texts: Texts::default(), history: 10, max_reasks: 1, temperature: 0.7, max_tokens: 1000 }
    }
}
