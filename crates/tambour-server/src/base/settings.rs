//! Settings that clients can change while the server runs. They are in the store, unlike the configuration.

use std::collections::BTreeMap;

use serde_json::Value;
use tambour::Options;
use tambour::encode::OutputProtocol;
use tambour::options::Texts;

/// Values of the settings; those without a value have their default.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Settings {
    /// Stored values by dotted name; also the number of changes, under `VERSION_NAME`.
    pub values: BTreeMap<String, Value>,
}

/// Predicate that checks the value of a setting.
type ValueCheck = fn(&Value) -> bool;

/// Names of the settings with the check of their values.
pub(crate) const SETTINGS: &[(&str, ValueCheck)] = &[
    // Any text is accepted: an unknown protocol means the legacy one (J-032).
    ("llm_app_settings.app_output_protocol", Value::is_string),
    ("text_language", |value| matches!(value.as_str(), Some("zh" | "en"))),
    ("thought_display", |value| matches!(value.as_str(), Some("collapsed" | "hidden" | "shown"))),
    ("texts.fallback", is_text),
    ("texts.phase_title", is_text),
];

/// Name under which the number of changes is stored.
pub(crate) const VERSION_NAME: &str = "version";

/// Returns `true` for a text that is not blank and has at most 2000 bytes.
fn is_text(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.trim().is_empty() && text.len() <= 2000)
}

impl Settings {
    /// Reads the stored settings: names with values in JSON. Values that are not valid JSON are left out.
    pub(crate) fn from_stored(stored: impl IntoIterator<Item = (String, String)>) -> Settings {
        let rows = stored.into_iter();
        let values = rows.filter_map(|(name, value)| Some((name, serde_json::from_str(&value).ok()?)));
        Settings { values: values.collect() }
    }

    /// Returns the number of changes so far.
    #[must_use]
    pub(crate) fn version(&self) -> u64 {
        self.values.get(VERSION_NAME).and_then(Value::as_u64).unwrap_or(0)
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.values.get(name)?.as_str()
    }

    /// Returns the output protocol of requests that name none.
    #[must_use]
    pub(crate) fn protocol(&self) -> OutputProtocol {
        OutputProtocol::from_setting(self.text("llm_app_settings.app_output_protocol"))
    }

    /// Applies language and default texts to `options`.
    pub(crate) fn apply(&self, options: &mut Options) {
        // Stored values were checked when they were set.
        let _ = options.set("text_language", self.text("text_language").unwrap_or("zh"));
        if let Some(text) = self.text("texts.fallback") {
            options.texts.fallback = text.to_owned().into();
        }
        if let Some(text) = self.text("texts.phase_title") {
            options.texts.phase_title = text.to_owned().into();
        }
    }

    /// Returns the default texts in the language of the settings.
    #[must_use]
    pub(crate) fn texts(&self) -> Texts {
        let mut options = Options::default();
        self.apply(&mut options);
        options.texts
    }
}
