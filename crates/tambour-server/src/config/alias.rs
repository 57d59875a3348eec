//! Aliases: model names for clients of foreign protocols (`/v1/…`, such as that of OpenAI), each with its
//! upstream and settings. A Skein is a prompt made of blocks, written as YAML.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tambour::schema::{Schema, SchemaLimits};
use tambour::texts::list_names;

use super::skeins;
use super::{Config, ConfigError};
use crate::base::settings::Settings;
use crate::config::reading_defaults::{Contract, ReadingDefaults};
use crate::upstream::Constrain;

/// Configuration of one alias. The fields shared with the body of `POST /api/v1/messages` mean the same
/// there, even when absent.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct AliasConfig {
    /// Name of an upstream; the default one when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream: Option<String>,
    /// Model of that upstream; its default when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Dialect of the model's replies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialect: Option<String>,
    /// Contract of replies: `profile` and `options`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contract: Option<Value>,
    /// System prompt before the client's messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// File of a Skein, which becomes the prompt; the client's messages become its history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skein: Option<PathBuf>,
    /// Adds the dialect's format instructions to the prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<bool>,
    /// Maximum number of re-asks of an unusable reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_reasks: Option<u32>,
    /// Sending of the contract; as the upstream says when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constrain: Option<Constrain>,
    /// Names of registered tools that replies may call; the server runs them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Aliases to try in order if this one gives no usable reply. Each is asked with its own upstream, model,
    /// dialect and contract, but with the prompt and tools of the alias that the client names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallback: Vec<String>,
    /// Share of requests for which this alias is tried first, relative to the weights of the aliases in
    /// `fallback`. If the alias that the client names has no weight, the order is fixed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
}

/// Fields of an alias that select the upstream and say how its replies are read. A fallback replaces only
/// these.
pub(crate) const FALLBACK_FIELDS: [&str; 5] = ["upstream", "model", "dialect", "contract", "constrain"];

impl AliasConfig {
    /// Returns the fields shared with the body of `POST /api/v1/messages`, with the values of this alias.
    pub(crate) fn message_fields(&self) -> Map<String, Value> {
        match serde_json::to_value(self) {
            Ok(Value::Object(mut fields)) => {
                for name in ["skein", "fallback", "weight"] {
                    fields.shift_remove(name);
                }
                fields
            }
            // Not reached: a struct is always written as an object.
            _ => Map::new(),
        }
    }
}

impl Config {
    /// Returns an alias and all its direct and indirect fallbacks: depth first, each once.
    pub(crate) fn alias_chain<'a>(&'a self, alias: &'a str) -> Vec<&'a str> {
        let (mut chain, mut pending) = (Vec::new(), vec![alias]);
        while let Some(name) = pending.pop() {
            let Some(alias_settings) = self.aliases.get(name).filter(|_| !chain.contains(&name)) else {
                continue;
            };
            chain.push(name);
            // Reversed: the first fallback is popped first.
            pending.extend(alias_settings.fallback.iter().rev().map(String::as_str));
        }
        chain
    }

    /// Reads the Skeins of aliases that have one. Returns their YAML, keyed by the name of the alias.
    ///
    /// # Errors
    /// A file cannot be read or is not a Skein, or the alias also has a `system_prompt`.
    pub(crate) fn load_skeins(&self) -> Result<BTreeMap<String, Value>, ConfigError> {
        let mut skeins = BTreeMap::new();
        for (name, alias) in &self.aliases {
            let Some(path) = &alias.skein else { continue };
            let field = format!("aliases.{name}.skein");
            let skein_error = |reason: &str| self.field_error(&field, reason);
            if alias.system_prompt.is_some() {
                return Err(skein_error("cannot be combined with `system_prompt`: give only one of them"));
            }
            let text = std::fs::read_to_string(path).map_err(|error| {
                skein_error(&format!("names {}, which cannot be read: {error}", path.display()))
            })?;
            let text = Value::from(text);
            skeins::parse_skein(&text).map_err(|error| {
                let line = error.location().map(|place| format!(", line {}", place.line)).unwrap_or_default();
                skein_error(&format!("names {}, which is not a valid prompt{line}: {error}", path.display()))
            })?;
            skeins.insert(name.clone(), text);
        }
        Ok(skeins)
    }

    /// Checks the aliases.
    ///
    /// # Errors
    /// An alias names an unknown upstream, fallback or dialect, or has an invalid contract.
    pub(super) fn check_aliases(&self) -> Result<(), ConfigError> {
        for (name, alias) in &self.aliases {
            let field = |subfield: &str| format!("aliases.{name}.{subfield}");
            let unknown_upstream =
                alias.upstream.as_ref().filter(|upstream| !self.upstreams.contains_key(*upstream));
            if let Some(upstream) = unknown_upstream {
                let known_names = list_names(upstream, self.upstreams.keys().map(String::as_str));
                let reason = format!("names an unknown upstream `{upstream}`; known: {known_names}");
                return Err(self.field_error(&field("upstream"), &reason));
            }
            for fallback in &alias.fallback {
                if fallback == name || !self.aliases.contains_key(fallback) {
                    let known_names =
                        self.aliases.keys().filter(|alias_name| *alias_name != name).map(String::as_str);
                    let known_names = list_names(fallback, known_names);
                    let reason =
                        format!("names `{fallback}`, which is not another alias; known: {known_names}");
                    return Err(self.field_error(&field("fallback"), &reason));
                }
            }
            if let Some(Err(error)) = alias.dialect.as_deref().map(tambour::dialect::find_dialect) {
                return Err(self.field_error(&field("dialect"), &format!("cannot be used: {error}")));
            }
            if let Some(contract) = &alias.contract {
                let contract = serde_json::from_value::<Contract>(contract.clone()).map_err(|error| {
                    self.field_error(
                        &field("contract"),
                        &format!("must be an object with `profile` and `options`: {error}"),
                    )
                })?;
                let contract_error =
                    |error: String| self.field_error(&field("contract"), &format!("cannot be used: {error}"));
                let options = ReadingDefaults::new(&self.limits, &self.tools, &Settings::default())
                    .options_for(Some(&contract));
                if let Some(schema) = options.map_err(contract_error)?.json_schema() {
                    // Compiled like the schema of a request, and dropped: only its errors matter.
                    let limits = SchemaLimits::new(self.tools.max_patterns, self.tools.max_pattern_bytes);
                    Schema::with_limits(schema.value().clone(), &limits)
                        .map_err(|error| contract_error(format!("json_value.schema: {error}")))?;
                }
            }
        }
        Ok(())
    }
}
