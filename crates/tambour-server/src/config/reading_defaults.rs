//! Options for reading replies: the server's defaults, overridden by the request.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tambour::Options;
use tambour::limits::Limits;
use tambour::options::Language;

use super::skeins;
use crate::base::settings::Settings;
use crate::tools::ToolLimits;

/// Contract that a reply is checked against.
#[derive(Clone, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Contract {
    /// `strict` or `lenient`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) profile: Option<String>,
    /// Options by their public names, such as `plain.reasoning`.
    #[serde(default)]
    pub(crate) options: BTreeMap<String, Value>,
}

/// The server's defaults for reading any reply.
#[derive(Clone, Debug)]
pub(crate) struct ReadingDefaults {
    /// Options with the limits and texts of the server.
    pub(crate) options: Options,
    /// Maximum length in bytes of a tool result as shown to the model; the rest is cut off.
    pub(crate) max_shown_bytes: usize,
}

impl ReadingDefaults {
    /// Builds the defaults from the limits of the configuration and the stored settings.
    pub(crate) fn new(limits: &Limits, tools: &ToolLimits, settings: &Settings) -> ReadingDefaults {
        let mut options = Options::default();
        options.limits = limits.clone();
        settings.apply(&mut options);
        ReadingDefaults { options, max_shown_bytes: tools.max_shown }
    }

    /// Returns the options of a request: the defaults, overridden by its contract.
    ///
    /// # Errors
    /// The contract has an unknown option, an invalid value, or an option that only the server sets.
    pub(crate) fn options_for(&self, contract: Option<&Contract>) -> Result<Options, String> {
        let mut options = self.options.clone();
        let Some(contract) = contract else { return Ok(options) };
        let profile = contract.profile.iter().map(|profile| ("profile", Value::from(profile.as_str())));
        let contract_options = contract.options.iter().map(|(name, value)| (name.as_str(), value.clone()));
        for (name, value) in profile.chain(contract_options) {
            if name.starts_with("limits.") {
                return Err("limits are set by the server, not by a request".to_owned());
            }
            if name == "tools" {
                return Err("tools are given in `tools` of the request, not as an option".to_owned());
            }
            // Setting the language would replace the texts, which the operator may have changed. The texts are
            // in this language already, so they are kept.
            if name == "text_language" && value.as_str() == Some(language_code(self.options.texts.language)) {
                continue;
            }
            options.set(name, value).map_err(|error| error.to_string())?;
        }
        Ok(options)
    }

    /// Returns the dialect and options of a stored request, which is JSON. If an option of its contract is no
    /// longer valid, the whole contract is ignored.
    pub(crate) fn stored_options(&self, request: &str) -> (String, Options) {
        let request: Value = serde_json::from_str(request).unwrap_or_default();
        let contract: Option<Contract> =
            serde_json::from_value(request["contract"].clone()).unwrap_or_default();
        let mut options = self.options_for(contract.as_ref()).unwrap_or_else(|_| self.options.clone());
        let views: Option<Vec<String>> = serde_json::from_value(request["views"].clone()).unwrap_or_default();
        let skein = request.get("skein").filter(|skein| !skein.is_null());
        // The views were valid when the request was accepted; errors are ignored here.
        let _ = skeins::apply_structure(skein, views.as_deref(), contract.as_ref(), &mut options);
        // The next two options get the values that they had when the message began: with `tools` the server
        // runs the calls of a reply, with `instructions` the prompt contained examples that the model may
        // echo.
        options.tool_loop = request["tools"].is_array();
        options.has_own_examples |= request["instructions"] == true;
        (request["dialect"].as_str().unwrap_or(tambour::dialect::AUTO).to_owned(), options)
    }
}

/// Returns the JSON Schema of the options that a request may set.
pub(crate) fn options_schema() -> Value {
    let is_allowed = |name: &str| !name.starts_with("limits.") && name != "tools";
    let properties: Map<String, Value> = tambour::settings::all_settings()
        .filter(|(_, setting)| is_allowed(setting.name))
        .map(|(_, setting)| (setting.name.to_owned(), setting.schema()))
        .collect();
    json!({
        "type": "object",
        "description": "Options by their public names, such as `plain.reasoning`.",
        "properties": properties,
        "additionalProperties": false,
    })
}

/// Returns the public code of a language.
pub(crate) fn language_code(language: Language) -> &'static str {
    match language {
        Language::Zh => "zh",
        Language::En => "en",
    }
}
