//! Configuration of upstreams: its checks, and the upstreams built from it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use url::Url;

use super::constraint::{Constrain, ConstraintProbes, ConstraintServer, constraint_servers};
use super::{
    HttpService, Price, RecordedReplies, ReplySource, ServiceKind, Timeouts, Upstream, UpstreamKind,
    UpstreamMetrics,
};
use crate::origins::{ConfigError, ValueOrigins};
use crate::secrets::{parse_key, read_key_file};
use crate::urls::mask_url;

/// Environment variable with the key of an upstream given by `--upstream` or `TAMBOUR_UPSTREAM`. The variable
/// need not be set.
pub const UPSTREAM_KEY: &str = "TAMBOUR_UPSTREAM_API_KEY";

/// Configuration of one upstream.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UpstreamConfig {
    /// Name of an [`UpstreamKind`].
    pub kind: String,
    /// Base URL, or the file of the recordings.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub url: String,
    /// Default model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Environment variable with the key of the service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_env: Option<String>,
    /// File with the key of the service; takes precedence over `key_env`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_file: Option<PathBuf>,
    /// Server behind the URL, such as `vllm`, if it is not to be found out by probes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Sending of contracts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constrain: Option<Constrain>,
    /// Prices by model; `*` applies to all other models.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub prices: BTreeMap<String, Price>,
}

impl UpstreamConfig {
    /// Reads an upstream given as `KIND=URL`, `KIND=FILE` or `demo`: see [`UpstreamKind::argument_form`].
    ///
    /// # Errors
    /// The kind is unknown, or the URL or file is missing.
    pub fn from_argument(argument: &str, model: Option<String>) -> Result<UpstreamConfig, ConfigError> {
        let (name, url) = argument.split_once('=').unwrap_or((argument, ""));
        let kind = UpstreamKind::from_name(name);
        let Some(kind) = kind.filter(|kind| *kind == UpstreamKind::Demo || !url.is_empty()) else {
            let forms = UpstreamKind::list_argument_forms("");
            return Err(ConfigError(format!("`{argument}` is not an upstream; give {forms}")));
        };
        let is_service = matches!(kind, UpstreamKind::Service(_));
        Ok(UpstreamConfig {
            kind: kind.name().to_owned(),
            url: url.to_owned(),
            model,
            key_env: is_service.then(|| UPSTREAM_KEY.to_owned()),
            key_file: None,
            server: None,
            constrain: None,
            prices: BTreeMap::new(),
        })
    }
}

/// Upstreams of a configuration, with the timeouts and origins that their checks and connections need.
#[derive(Clone, Copy)]
pub struct UpstreamSection<'a> {
    /// Upstreams by name.
    pub upstreams: &'a BTreeMap<String, UpstreamConfig>,
    /// Timeouts and retries of all upstreams.
    pub timeouts: &'a Timeouts,
    /// Origins of the values, named in errors.
    pub origins: &'a ValueOrigins,
}

impl UpstreamSection<'_> {
    /// Creates the upstreams of a configuration, by name, which share the results of `probes`.
    ///
    /// # Errors
    /// A kind, URL, key or file of recordings is invalid.
    pub fn build_upstreams(
        &self,
        metrics: &UpstreamMetrics,
        probes: &ConstraintProbes,
    ) -> Result<BTreeMap<String, Arc<Upstream>>, ConfigError> {
        let build = |(name, config): (&String, &UpstreamConfig)| {
            Ok((name.clone(), Arc::new(self.build_upstream(name, config, metrics, probes)?)))
        };
        self.upstreams.iter().map(build).collect()
    }

    /// Creates one upstream, whose calls are counted in `metrics`.
    pub(crate) fn build_upstream(
        &self,
        name: &str,
        config: &UpstreamConfig,
        metrics: &UpstreamMetrics,
        probes: &ConstraintProbes,
    ) -> Result<Upstream, ConfigError> {
        let source = self.build_source(name, config, probes)?;
        Ok(Upstream::new(name, source, metrics, config.prices.clone()).with_constrain(config.constrain))
    }

    /// Creates the source of replies of the upstream `name`.
    fn build_source(
        &self,
        name: &str,
        settings: &UpstreamConfig,
        probes: &ConstraintProbes,
    ) -> Result<ReplySource, ConfigError> {
        let field_error = |field: &str, reason: &str| {
            self.origins.field_error(&format!("upstreams.{name}.{field}"), reason)
        };
        let Some(kind) = UpstreamKind::from_name(&settings.kind) else {
            let known_names: Vec<&str> = UpstreamKind::all().map(UpstreamKind::name).collect();
            let reason = format!(
                "is `{}`, which is not a known kind; known: {}",
                settings.kind,
                known_names.join(", ")
            );
            return Err(field_error("kind", &reason));
        };
        let server = match (&settings.server, kind) {
            (None, _) => None,
            (Some(server), UpstreamKind::Service(kind))
                if ConstraintServer::from_name(server, kind).is_some() =>
            {
                ConstraintServer::from_name(server, kind)
            }
            (Some(server), _) => {
                let of_kind = constraint_servers().filter(|(_, server_kind)| *server_kind == kind.name());
                let known_names: Vec<&str> = of_kind.map(|(name, _)| name).collect();
                let known = if known_names.is_empty() { "none".to_owned() } else { known_names.join(", ") };
                let reason = format!(
                    "is `{server}`, which is no server of the kind `{}`; known: {known}",
                    kind.name()
                );
                return Err(field_error("server", &reason));
            }
        };
        match kind {
            UpstreamKind::Demo => RecordedReplies::load_demo()
                .map(ReplySource::Replay)
                .map_err(|error| field_error("kind", &error)),
            UpstreamKind::Replay => {
                let replies = RecordedReplies::load_file(settings.url.as_ref()).map(ReplySource::Replay);
                replies.map_err(|error| {
                    field_error("url", &format!("does not name a file of recordings: {error}"))
                })
            }
            UpstreamKind::Service(kind) => {
                let (url, key) = (self.base_url(name, kind, settings)?, self.upstream_key(name, settings)?);
                HttpService::new(kind, url, settings.model.clone(), key, *self.timeouts)
                    .map(|service| {
                        ReplySource::Service(Box::new(service.with_constraints(server, probes.clone())))
                    })
                    .map_err(|error| field_error("url", &format!("cannot be used over TLS: {error}")))
            }
        }
    }

    /// Checks and returns the base URL of an upstream.
    ///
    /// # Errors
    /// The scheme is not `http` or `https`, the host is missing, or there is a query or fragment.
    fn base_url<'a>(
        &self,
        name: &str,
        kind: ServiceKind,
        upstream: &'a UpstreamConfig,
    ) -> Result<&'a str, ConfigError> {
        let masked_url = mask_url(&upstream.url);
        let url_error =
            |reason: String| Err(self.origins.field_error(&format!("upstreams.{name}.url"), &reason));
        if upstream.url.trim().is_empty() {
            return url_error(format!(
                "is missing; it takes a base URL such as `{}`",
                kind.api().example_url()
            ));
        }
        if !["http://", "https://"].iter().any(|scheme| upstream.url.to_ascii_lowercase().starts_with(scheme))
        {
            let advice = if upstream.url.contains("://") {
                ""
            } else {
                &format!("; did you mean `http://{masked_url}`?")
            };
            return url_error(format!("must begin with http:// or https://, but is `{masked_url}`{advice}"));
        }
        match Url::parse(&upstream.url) {
            Ok(url) if url.query().is_none() && url.fragment().is_none() => Ok(&upstream.url),
            Ok(_) => url_error(format!(
                "must be a base URL without a query: `{}` is appended to `{masked_url}`",
                kind.api().path()
            )),
            Err(error) => url_error(format!("must be a base URL, but is `{masked_url}`: {error}")),
        }
    }

    /// Reads the key of an upstream, if one is configured.
    ///
    /// # Errors
    /// The variable is not set, the file cannot be read, or the value is not a valid key.
    fn upstream_key(&self, name: &str, upstream: &UpstreamConfig) -> Result<Option<String>, ConfigError> {
        let field = |subfield: &str| format!("upstreams.{name}.{subfield}");
        let (field, source_text, key) = match (&upstream.key_env, &upstream.key_file) {
            (_, Some(path)) => {
                (field("key_file"), format!("the file {}", path.display()), read_key_file(path))
            }
            (Some(variable), None) => {
                let key = std::env::var(variable).map_err(|_| "it is not set".to_owned());
                // An upstream given by `--upstream` names this variable even if it is not set: a local model
                // needs no key. A variable that the configuration file names must be set.
                let is_key_optional =
                    variable == UPSTREAM_KEY && self.origins.place_in_file(&field("key_env")).is_none();
                if is_key_optional && key.as_deref().unwrap_or_default().trim().is_empty() {
                    return Ok(None);
                }
                (field("key_env"), format!("the variable `{variable}`"), key)
            }
            (None, None) => return Ok(None),
        };
        key.and_then(|key| parse_key(&key))
            .map(Some)
            .map_err(|error| self.origins.field_error(&field, &format!("names {source_text}, but {error}")))
    }
}
