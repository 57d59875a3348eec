//! What is looked at when the server starts, before anything is asked of it.

use std::path::Path;
use tambour::texts::counted;

use reqwest::Url;

use super::{Config, ConfigError, UPSTREAM_KEY, UpstreamConfig, without_secrets};
use crate::upstream::Kind;

/// Fewest characters of a key that somebody thinks up.
const KEY: usize = 16;

impl Config {
    /// An error about a field, with the place it comes from.
    pub(crate) fn wrong(&self, field: &str, what: &str) -> ConfigError {
        match self.origins.of(field) {
            Some(place) => ConfigError(format!("{place}: `{field}` {what}")),
            None => ConfigError(format!("`{field}` {what}")),
        }
    }

    /// Looks at what all of the server rests on.
    ///
    /// # Errors
    /// A key that can be guessed, or a default upstream that there is not.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        if let Some(key) = self.api_key.as_deref().filter(|key| !key.is_empty()) {
            let length = key.chars().count();
            if length < KEY || key.trim() != key {
                let what = format!(
                    "has {}; it takes at least {KEY} without blanks around them. `openssl rand -hex 24` makes one",
                    counted(length, "character")
                );
                return Err(self.wrong("api_key", &what));
            }
        }
        self.check_prices()?;
        self.check_aliases()?;
        self.check_mcp()?;
        self.check_telemetry()?;
        match self.default_upstream() {
            Some(name) if !self.upstreams.contains_key(name) => {
                let known: Vec<&str> = self.upstreams.keys().map(String::as_str).collect();
                let what =
                    format!("names `{name}`, and there is no such upstream; known: {}", known.join(", "));
                Err(self.wrong("default_upstream", &what))
            }
            _ => Ok(()),
        }
    }

    /// The base URL of an upstream, if it is one.
    ///
    /// # Errors
    /// It has no scheme, another one than `http` and `https`, or no host.
    pub(crate) fn base_url<'a>(
        &self,
        name: &str,
        kind: Kind,
        given: &'a UpstreamConfig,
    ) -> Result<&'a str, ConfigError> {
        let shown = without_secrets(&given.url);
        let wrong = |what: String| Err(self.wrong(&format!("upstreams.{name}.url"), &what));
        if given.url.trim().is_empty() {
            return wrong(format!("is missing; it takes a base URL such as `{}`", kind.example()));
        }
        if !["http://", "https://"].iter().any(|scheme| given.url.to_ascii_lowercase().starts_with(scheme)) {
            let advice = if given.url.contains("://") { "" } else { &format!("; perhaps `http://{shown}`") };
            return wrong(format!("begins with http:// or https://, and `{shown}` does not{advice}"));
        }
        match Url::parse(&given.url) {
            Ok(url) if url.query().is_none() && url.fragment().is_none() => Ok(&given.url),
            Ok(_) => {
                wrong(format!("takes a base URL, without a query: `{}` is put behind `{shown}`", kind.path()))
            }
            Err(error) => wrong(format!("takes a base URL, and `{shown}` is none: {error}")),
        }
    }

    /// The key of an upstream, where one is configured.
    ///
    /// # Errors
    /// The variable is not set, the file cannot be read, or what is there can be no key.
    pub(crate) fn upstream_key(
        &self,
        name: &str,
        given: &UpstreamConfig,
    ) -> Result<Option<String>, ConfigError> {
        let field = |which: &str| format!("upstreams.{name}.{which}");
        let (field, from, key) = match (&given.key_env, &given.key_file) {
            (_, Some(path)) => (field("key_file"), format!("the file {}", path.display()), file(path)),
            (Some(variable), None) => {
                let key = std::env::var(variable).map_err(|_| "it is not set".to_owned());
                // What `--upstream` names whether there is a key or not: a model of one's own needs none.
                let unasked = variable == UPSTREAM_KEY && self.origins.in_file(&field("key_env")).is_none();
                if unasked && key.as_deref().unwrap_or_default().trim().is_empty() {
                    return Ok(None);
                }
                (field("key_env"), format!("the variable `{variable}`"), key)
            }
            (None, None) => return Ok(None),
        };
        key.and_then(|key| word(&key))
            .map(Some)
            .map_err(|error| self.wrong(&field, &format!("names {from}, and {error}")))
    }
}

/// The key in a variable of the environment.
pub(super) fn variable(name: &str) -> Result<String, String> {
    std::env::var(name).map_err(|_| "it is not set".to_owned()).and_then(|key| word(&key))
}

/// A key, without the blanks around it.
fn word(key: &str) -> Result<String, String> {
    match key.trim() {
        "" => Err("it is empty".to_owned()),
        key if key.bytes().all(|byte| byte.is_ascii_graphic()) => Ok(key.to_owned()),
        _ => Err("what it holds is no key: a key is one word of ASCII".to_owned()),
    }
}

fn file(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("it cannot be read: {error}"))
}
