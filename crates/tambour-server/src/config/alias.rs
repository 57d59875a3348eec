//! Names of models for clients of other protocols, and what each stands for.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tambour::schema::{Schema, SchemaLimits};
use tambour::texts::listed;

use super::{Config, ConfigError};
use crate::app::Settings;
use crate::reading::{Contract, Own};
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
    /// Aliases that are asked when this one gives nothing that can be used, one after the other. Of each counts who is asked and how
    /// that one writes; prompt and tools are those of the alias that was named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallback: Vec<String>,
    /// How often it is asked first, beside other aliases of `fallback` that have a weight; without one they are asked in order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
}

/// Fields of an alias that say who is asked and how that one writes.
pub(crate) const CHOICE: [&str; 4] = ["upstream", "model", "dialect", "contract"];

impl AliasConfig {
    /// Its fields as those of a message, but the prompt, which is in a file.
    pub(crate) fn fields(&self) -> Map<String, Value> {
        match serde_json::to_value(self) {
            Ok(Value::Object(mut fields)) => {
                for name in ["skein", "fallback", "weight"] {
                    fields.shift_remove(name);
                }
                fields
            }
            _ => Map::new(),
        }
    }
}

impl Config {
    /// An alias, and all that are asked in its place, each once: those of its `fallback` in order, each followed by those of its own.
    pub(crate) fn chain<'a>(&'a self, alias: &'a str) -> Vec<&'a str> {
        let (mut chain, mut next) = (Vec::new(), vec![alias]);
        while let Some(name) = next.pop() {
            let Some(given) = self.aliases.get(name).filter(|_| !chain.contains(&name)) else { continue };
            chain.push(name);
            next.extend(given.fallback.iter().rev().map(String::as_str));
        }
        chain
    }

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
                let known = listed(upstream, self.upstreams.keys().map(String::as_str));
                let what = format!("names `{upstream}`, and there is no such upstream; known: {known}");
                return Err(self.wrong(&field("upstream"), &what));
            }
            for other in &alias.fallback {
                if other == name || !self.aliases.contains_key(other) {
                    let known = self.aliases.keys().filter(|one| *one != name).map(String::as_str);
                    let known = listed(other, known);
                    let what = format!("names `{other}`, and there is no such other alias; known: {known}");
                    return Err(self.wrong(&field("fallback"), &what));
                }
            }
            if let Some(Err(error)) = alias.dialect.as_deref().map(tambour::dialect::entry) {
                return Err(self.wrong(&field("dialect"), &format!("cannot be used: {error}")));
            }
            if let Some(contract) = &alias.contract {
                let contract = serde_json::from_value::<Contract>(contract.clone()).map_err(|error| {
                    self.wrong(&field("contract"), &format!("has `profile` and `options`: {error}"))
                })?;
                let unusable =
                    |error: String| self.wrong(&field("contract"), &format!("cannot be used: {error}"));
                let options = Own::new(&self.limits, &self.tools, &Settings::default()).with(Some(&contract));
                if let Some(schema) = options.map_err(unusable)?.json_schema() {
                    let limits = SchemaLimits::new(self.tools.max_patterns, self.tools.max_pattern_bytes);
                    Schema::limited(schema.value().clone(), &limits)
                        .map_err(|unfit| unusable(format!("json_value.schema: {unfit}")))?;
                }
            }
        }
        Ok(())
    }
}
