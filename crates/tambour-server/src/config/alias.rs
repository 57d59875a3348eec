//! Names of models for clients of other protocols, and what each stands for.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Config, ConfigError};
use crate::reading::Contract;
use crate::skeins;

/// One alias.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct AliasConfig {
    /// Name of an upstream; the default one when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream: Option<String>,
    /// Its model; the upstream's own when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How the model writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialect: Option<String>,
    /// What replies are held to: `profile` and `options`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contract: Option<Value>,
    /// Goes before what the client says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// File of a prompt of blocks, of which what the client says is the history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skein: Option<PathBuf>,
    /// Whether the dialect's format instructions follow it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<bool>,
    /// How often a reply that cannot be used is asked for again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_reasks: Option<u32>,
    /// Registered tools, which the server runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
}

impl AliasConfig {
    /// Its fields as those of a message, but the prompt, which is in a file.
    pub(crate) fn fields(&self) -> Map<String, Value> {
        match serde_json::to_value(self) {
            Ok(Value::Object(mut fields)) => {
                fields.shift_remove("skein");
                fields
            }
            _ => Map::new(),
        }
    }
}

impl Config {
    /// The prompts of blocks of the aliases that have one, by the alias.
    ///
    /// # Errors
    /// A file cannot be read or holds something else, or the alias has a `system_prompt` too.
    pub(crate) fn skeins(&self) -> Result<BTreeMap<String, Value>, ConfigError> {
        let mut skeins = BTreeMap::new();
        for (name, alias) in &self.aliases {
            let Some(path) = &alias.skein else { continue };
            let field = format!("aliases.{name}.skein");
            let wrong = |what: &str| self.wrong(&field, what);
            if alias.system_prompt.is_some() {
                return Err(wrong("stands beside `system_prompt`; an alias has one of them"));
            }
            let text = std::fs::read_to_string(path).map_err(|error| {
                wrong(&format!("names {}, which cannot be read: {error}", path.display()))
            })?;
            let text = Value::from(text);
            skeins::read(&text).map_err(|error| {
                let line = error.place().map(|place| format!(", line {}", place.line)).unwrap_or_default();
                wrong(&format!("names {}, which is no prompt{line}: {error}", path.display()))
            })?;
            skeins.insert(name.clone(), text);
        }
        Ok(skeins)
    }

    /// Looks at the aliases.
    ///
    /// # Errors
    /// One names an upstream or a dialect that there is not, or has a contract that is none.
    pub(super) fn check_aliases(&self) -> Result<(), ConfigError> {
        for (name, alias) in &self.aliases {
            let field = |which: &str| format!("aliases.{name}.{which}");
            if let Some(upstream) = alias.upstream.as_ref().filter(|name| !self.upstreams.contains_key(*name))
            {
                let known: Vec<&str> = self.upstreams.keys().map(String::as_str).collect();
                let what =
                    format!("names `{upstream}`, and there is no such upstream; known: {}", known.join(", "));
                return Err(self.wrong(&field("upstream"), &what));
            }
            if let Some(Err(error)) = alias.dialect.as_deref().map(tambour::dialect::entry) {
                return Err(self.wrong(&field("dialect"), &format!("cannot be used: {error}")));
            }
            if let Some(contract) = &alias.contract {
                serde_json::from_value::<Contract>(contract.clone()).map_err(|error| {
                    self.wrong(&field("contract"), &format!("has `profile` and `options`: {error}"))
                })?;
            }
        }
        Ok(())
    }
}
