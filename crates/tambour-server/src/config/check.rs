//! Checks of the configuration when the server starts.

use std::path::Path;
use tambour::texts::format_count;

use reqwest::Url;

use super::{Config, ConfigError, UPSTREAM_KEY, UpstreamConfig, mask_url};
use crate::upstream::ServiceKind;

/// Minimum length of an API key in characters.
const MIN_KEY_CHARS: usize = 16;

impl Config {
    /// Builds an error about a field, with the origin of its value.
    pub(crate) fn field_error(&self, field: &str, reason: &str) -> ConfigError {
        match self.origins.origin_of(field) {
            Some(place) => ConfigError(format!("{place}: `{field}` {reason}")),
            None => ConfigError(format!("`{field}` {reason}")),
        }
    }

    /// Checks everything that is not checked when it is used.
    ///
    /// # Errors
    /// A weak API key, an unknown default upstream, or an invalid section.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        if let Some(key) = self.api_key.as_deref().filter(|key| !key.is_empty()) {
            let length = key.chars().count();
            if length < MIN_KEY_CHARS || key.trim() != key {
                let reason = format!(
                    "has {}; it takes at least {MIN_KEY_CHARS} without blanks around them. `openssl rand -hex 24` makes one",
                    format_count(length, "character")
                );
                return Err(self.field_error("api_key", &reason));
            }
        }
        self.check_prices()?;
        self.check_aliases()?;
        self.check_mcp()?;
        self.check_telemetry()?;
        match self.default_upstream() {
            Some(name) if !self.upstreams.contains_key(name) => {
                let known_names: Vec<&str> = self.upstreams.keys().map(String::as_str).collect();
                let reason = format!(
                    "names `{name}`, and there is no such upstream; known: {}",
                    known_names.join(", ")
                );
                Err(self.field_error("default_upstream", &reason))
            }
            _ => Ok(()),
        }
    }

    /// Checks and returns the base URL of an upstream.
    ///
    /// # Errors
    /// The scheme is not `http` or `https`, the host is missing, or there is a query.
    pub(crate) fn base_url<'a>(
        &self,
        name: &str,
        kind: ServiceKind,
        upstream: &'a UpstreamConfig,
    ) -> Result<&'a str, ConfigError> {
        let masked_url = mask_url(&upstream.url);
        let url_error = |reason: String| Err(self.field_error(&format!("upstreams.{name}.url"), &reason));
        if upstream.url.trim().is_empty() {
            return url_error(format!("is missing; it takes a base URL such as `{}`", kind.example_url()));
        }
        if !["http://", "https://"].iter().any(|scheme| upstream.url.to_ascii_lowercase().starts_with(scheme))
        {
            let advice =
                if upstream.url.contains("://") { "" } else { &format!("; perhaps `http://{masked_url}`") };
            return url_error(format!(
                "begins with http:// or https://, and `{masked_url}` does not{advice}"
            ));
        }
        match Url::parse(&upstream.url) {
            Ok(url) if url.query().is_none() && url.fragment().is_none() => Ok(&upstream.url),
            Ok(_) => url_error(format!(
                "takes a base URL, without a query: `{}` is put behind `{masked_url}`",
                kind.path()
            )),
            Err(error) => url_error(format!("takes a base URL, and `{masked_url}` is none: {error}")),
        }
    }

    /// Reads the key of an upstream, if one is configured.
    ///
    /// # Errors
    /// The variable is not set, the file cannot be read, or the value is no valid key.
    pub(crate) fn upstream_key(
        &self,
        name: &str,
        upstream: &UpstreamConfig,
    ) -> Result<Option<String>, ConfigError> {
        let field = |subfield: &str| format!("upstreams.{name}.{subfield}");
        let (field, from, key) = match (&upstream.key_env, &upstream.key_file) {
            (_, Some(path)) => {
                (field("key_file"), format!("the file {}", path.display()), read_key_file(path))
            }
            (Some(variable), None) => {
                let key = std::env::var(variable).map_err(|_| "it is not set".to_owned());
                // `--upstream` names this variable even where it is not set: a local model needs no key.
                let unused_key =
                    variable == UPSTREAM_KEY && self.origins.place_in_file(&field("key_env")).is_none();
                if unused_key && key.as_deref().unwrap_or_default().trim().is_empty() {
                    return Ok(None);
                }
                (field("key_env"), format!("the variable `{variable}`"), key)
            }
            (None, None) => return Ok(None),
        };
        key.and_then(|key| parse_key(&key))
            .map(Some)
            .map_err(|error| self.field_error(&field, &format!("names {from}, and {error}")))
    }
}

/// Reads a key from an environment variable.
pub(super) fn key_from_variable(name: &str) -> Result<String, String> {
    std::env::var(name).map_err(|_| "it is not set".to_owned()).and_then(|key| parse_key(&key))
}

/// Trims and validates a key.
fn parse_key(key: &str) -> Result<String, String> {
    match key.trim() {
        "" => Err("it is empty".to_owned()),
        key if key.bytes().all(|byte| byte.is_ascii_graphic()) => Ok(key.to_owned()),
        _ => Err("what it holds is no key: a key is one word of ASCII".to_owned()),
    }
}

fn read_key_file(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("it cannot be read: {error}"))
}
