//! Registry of all options by public name: the common ones and those of each dialect.

use serde_json::Value;

use crate::dialect::DIALECTS;
use crate::error::{Error, Result};
use crate::options::{COMMON_SETTINGS, Options, Setting};

/// All options, each with the dialect it belongs to; `None` for common ones.
///
/// ```
/// let setting = tambour::settings::all_settings().find(|(_, setting)| setting.name == "plain.reasoning");
/// assert_eq!(setting.map(|(owner, setting)| (owner, setting.default)), Some((Some("plain"), "auto")));
/// ```
pub fn all_settings() -> impl Iterator<Item = (Option<&'static str>, &'static Setting)> {
    let common_settings = COMMON_SETTINGS.iter().map(|setting| (None, setting));
    let dialect_settings =
        DIALECTS.iter().flat_map(|entry| entry.settings.iter().map(|setting| (Some(entry.name), setting)));
    common_settings.chain(dialect_settings)
}

impl Options {
    /// Sets one option by its public name. A string is parsed as a value of the command line would be.
    ///
    /// # Errors
    /// The name is unknown, or the option does not accept the value.
    pub fn set(&mut self, name: &str, value: impl Into<Value>) -> Result<()> {
        let found = all_settings().find(|(_, setting)| setting.name == name);
        let Some((_, setting)) = found else {
            return Err(Error::unknown("option", name, all_settings().map(|(_, setting)| setting.name)));
        };
        setting.set(self, &value.into())
    }
}
