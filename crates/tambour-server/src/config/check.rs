//! Checks of the configuration when the server starts.

use tambour::texts::format_count;

use super::{Config, ConfigError};

/// Minimum length of an API key in characters.
const MIN_KEY_CHARS: usize = 16;
/// Maximum length of a currency's name in characters.
const MAX_CURRENCY_CHARS: usize = 8;

impl Config {
    /// Builds an error about a field, with the origin of its value.
    pub(crate) fn field_error(&self, field: &str, reason: &str) -> ConfigError {
        self.origins.field_error(field, reason)
    }

    /// Checks the values that are not already checked where they are used.
    ///
    /// # Errors
    /// The API key is too short or has blanks around it, the currency is not a short word, the default
    /// upstream is unknown, or a section is invalid.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        if let Some(key) = self.api_key.as_deref().filter(|key| !key.is_empty()) {
            let length = key.chars().count();
            if length < MIN_KEY_CHARS || key.trim() != key {
                let reason = format!(
                    "has {}; it needs at least {MIN_KEY_CHARS}, without blanks around them. `openssl rand -hex 24` makes one",
                    format_count(length, "character")
                );
                return Err(self.field_error("api_key", &reason));
            }
        }
        let currency = &self.currency;
        if !(1..=MAX_CURRENCY_CHARS).contains(&currency.chars().count())
            || currency.chars().any(|c| c.is_whitespace() || c.is_control())
        {
            return Err(self.field_error("currency", "takes a short word such as `USD`"));
        }
        self.upstream_section().check_prices()?;
        self.check_aliases()?;
        self.mcp_section().check_mcp()?;
        self.telemetry.check(&self.origins)?;
        match self.default_upstream() {
            Some(name) if !self.upstreams.contains_key(name) => {
                let known_names: Vec<&str> = self.upstreams.keys().map(String::as_str).collect();
                let reason = format!("names an unknown upstream `{name}`; known: {}", known_names.join(", "));
                Err(self.field_error("default_upstream", &reason))
            }
            _ => Ok(()),
        }
    }
}
