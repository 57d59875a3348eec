//! How replies of a message are read: what the server brings, then what the request says.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tambour::Options;
use tambour::limits::Limits;
use tambour::options::Language;

use crate::app::Settings;
use crate::skeins;
use crate::tools::ToolLimits;

/// What a reply is held to.
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

/// What the server brings to the reading of every reply.
#[derive(Clone, Debug)]
pub(crate) struct Own {
    /// Its limits and texts.
    pub(crate) options: Options,
    /// Bytes of one result that a model is shown.
    pub(crate) max_shown: usize,
}

impl Own {
    pub(crate) fn new(limits: &Limits, tools: &ToolLimits, settings: &Settings) -> Own {
        let mut options = Options::default();
        options.limits = limits.clone();
        settings.apply(&mut options);
        Own { options, max_shown: tools.max_shown }
    }

    /// The options of a request.
    ///
    /// # Errors
    /// An option that there is not, a value that it does not take, or one that is the server's.
    pub(crate) fn with(&self, contract: Option<&Contract>) -> Result<Options, String> {
        let mut options = self.options.clone();
        let Some(contract) = contract else { return Ok(options) };
        let profile = contract.profile.iter().map(|profile| ("profile", Value::from(profile.as_str())));
        let set = contract.options.iter().map(|(name, value)| (name.as_str(), value.clone()));
        for (name, value) in profile.chain(set) {
            if name.starts_with("limits.") {
                return Err("limits are the server's, not a request's".to_owned());
            }
            if name == "tools" {
                return Err("tools are given by `tools` of the request, not as an option".to_owned());
            }
            // The operator's own texts are in the language of the settings: who asks for that one gets them.
            if name == "text_language" && value.as_str() == Some(word(self.options.texts.language)) {
                continue;
            }
            options.set(name, value).map_err(|error| error.to_string())?;
        }
        Ok(options)
    }

    /// Dialect and options of a stored request. What it cannot have any more is as the server has it.
    pub(crate) fn of_request(&self, request: &str) -> (String, Options) {
        let request: Value = serde_json::from_str(request).unwrap_or_default();
        let contract: Option<Contract> =
            serde_json::from_value(request["contract"].clone()).unwrap_or_default();
        let mut options = self.with(contract.as_ref()).unwrap_or_else(|_| self.options.clone());
        let views: Option<Vec<String>> = serde_json::from_value(request["views"].clone()).unwrap_or_default();
        let skein = request.get("skein").filter(|skein| !skein.is_null());
        // It was taken once.
        let _ = skeins::apply(skein, views.as_deref(), contract.as_ref(), &mut options);
        options.tool_loop = request["tools"].is_array();
        options.own_examples |= request["instructions"] == true;
        (request["dialect"].as_str().unwrap_or(tambour::dialect::AUTO).to_owned(), options)
    }
}

/// JSON Schema of the options that a request may set.
pub(crate) fn schema() -> Value {
    let may = |name: &str| !name.starts_with("limits.") && name != "tools";
    let properties: Map<String, Value> = tambour::settings::all()
        .filter(|(_, setting)| may(setting.name))
        .map(|(_, setting)| (setting.name.to_owned(), setting.schema()))
        .collect();
    json!({
        "type": "object",
        "description": "Options by their public names, such as `plain.reasoning`.",
        "properties": properties,
        "additionalProperties": false,
    })
}

/// The public word for a language.
pub(crate) fn word(language: Language) -> &'static str {
    match language {
        Language::Zh => "zh",
        Language::En => "en",
    }
}
