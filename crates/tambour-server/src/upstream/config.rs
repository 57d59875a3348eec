//! Configuration of upstreams.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use reqwest::Url;
use serde::{Deserialize, Serialize};

use super::{HttpService, Price, RecordedReplies, ReplySource, ServiceKind, Timeouts, Upstream};
use crate::base::metrics::UpstreamMetrics;
use crate::base::origins::{ConfigError, ValueOrigins};
use crate::base::secrets::{parse_key, read_key_file};
use crate::base::urls::mask_url;

/// Environment variable with the optional key of `--upstream`.
pub(crate) const UPSTREAM_KEY: &str = "TAMBOUR_UPSTREAM_API_KEY";

/// Configuration of one upstream.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UpstreamConfig {
    /// `openai`, `anthropic`, `gemini`, `ollama`, `replay` or `demo`.
    pub kind: String,
    /// Base URL, or the file of the recordings.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub url: String,
    /// Default model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Environment variable with the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_env: Option<String>,
    /// File with the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_file: Option<PathBuf>,
    /// Prices by model; `*` applies to all others.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub prices: BTreeMap<String, Price>,
}

/// Upstreams of a configuration, with the timeouts and origins that their checks and connections need.
#[derive(Clone, Copy)]
pub(crate) struct UpstreamSection<'a> {
    /// Upstreams by name.
    pub(crate) upstreams: &'a BTreeMap<String, UpstreamConfig>,
    pub(crate) timeouts: &'a Timeouts,
    pub(crate) origins: &'a ValueOrigins,
}

impl UpstreamSection<'_> {
    /// Creates the upstreams of a configuration.
    pub(crate) fn build_upstreams(
        &self,
        metrics: &UpstreamMetrics,
    ) -> Result<BTreeMap<String, Arc<Upstream>>, ConfigError> {
        let make = |(name, given): (&String, &UpstreamConfig)| {
            let made = Upstream::new(name, self.build_source(name, given)?, metrics, given.prices.clone());
            Ok((name.clone(), Arc::new(made)))
        };
        self.upstreams.iter().map(make).collect()
    }

    fn build_source(&self, name: &str, given: &UpstreamConfig) -> Result<ReplySource, ConfigError> {
        let wrong =
            |field: &str, what: &str| self.origins.field_error(&format!("upstreams.{name}.{field}"), what);
        match given.kind.as_str() {
            "demo" => {
                RecordedReplies::load_demo().map(ReplySource::Replay).map_err(|error| wrong("kind", &error))
            }
            "replay" => {
                let read = RecordedReplies::load_file(given.url.as_ref()).map(ReplySource::Replay);
                read.map_err(|error| wrong("url", &format!("names no recordings: {error}")))
            }
            other => {
                let Some(kind) = ServiceKind::from_name(other) else {
                    let known = ServiceKind::ALL.map(ServiceKind::name).join(", ");
                    let what =
                        format!("is `{other}`, and there is no such kind; known: {known}, replay, demo");
                    return Err(wrong("kind", &what));
                };
                let (url, key) = (self.base_url(name, kind, given)?, self.upstream_key(name, given)?);
                HttpService::new(kind, url, given.model.clone(), key, *self.timeouts)
                    .map(|service| ReplySource::Service(Box::new(service)))
                    .map_err(|error| wrong("url", &format!("cannot be asked over TLS: {error}")))
            }
        }
    }

    /// Checks and returns the base URL of an upstream.
    ///
    /// # Errors
    /// The scheme is not `http` or `https`, the host is missing, or there is a query.
    fn base_url<'a>(
        &self,
        name: &str,
        kind: ServiceKind,
        given: &'a UpstreamConfig,
    ) -> Result<&'a str, ConfigError> {
        let shown = mask_url(&given.url);
        let wrong = |what: String| Err(self.origins.field_error(&format!("upstreams.{name}.url"), &what));
        if given.url.trim().is_empty() {
            return wrong(format!("is missing; it takes a base URL such as `{}`", kind.example_url()));
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

    /// Reads the key of an upstream, if one is configured.
    ///
    /// # Errors
    /// The variable is not set, the file cannot be read, or the value is no valid key.
    fn upstream_key(&self, name: &str, given: &UpstreamConfig) -> Result<Option<String>, ConfigError> {
        let field = |which: &str| format!("upstreams.{name}.{which}");
        let (field, from, key) = match (&given.key_env, &given.key_file) {
            (_, Some(path)) => {
                (field("key_file"), format!("the file {}", path.display()), read_key_file(path))
            }
            (Some(variable), None) => {
                let key = std::env::var(variable).map_err(|_| "it is not set".to_owned());
                // `--upstream` names this variable even where it is not set: a local model needs no key.
                let unasked =
                    variable == UPSTREAM_KEY && self.origins.place_in_file(&field("key_env")).is_none();
                if unasked && key.as_deref().unwrap_or_default().trim().is_empty() {
                    return Ok(None);
                }
                (field("key_env"), format!("the variable `{variable}`"), key)
            }
            (None, None) => return Ok(None),
        };
        key.and_then(|key| parse_key(&key))
            .map(Some)
            .map_err(|error| self.origins.field_error(&field, &format!("names {from}, and {error}")))
    }
}
