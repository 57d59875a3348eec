//! Configuration: defaults, overridden by `tambour.toml`, then by variables `TAMBOUR_*`, then by flags.

mod alias;
mod check;
mod cluster;
mod read;
pub(crate) mod reading_defaults;
pub(crate) mod skeins;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tambour::limits::Limits;

use crate::base::descriptors;
pub use crate::base::origins::ConfigError;
use crate::base::origins::ValueOrigins;
use crate::base::urls::mask_url;
pub use crate::mcp::McpConfig;
use crate::mcp::McpSection;
pub use crate::telemetry::TelemetryConfig;
use crate::tools::ToolLimits;
use crate::upstream::{ConstraintProbes, Timeouts, Upstream, UpstreamKind, UpstreamMetrics, UpstreamSection};
pub use crate::upstream::{Price, UpstreamConfig};
pub use alias::AliasConfig;
pub(crate) use alias::FALLBACK_FIELDS;
pub use cluster::ClusterConfig;

/// Configuration of the server. The defaults work without a file.
#[derive(Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Config {
    /// Address to listen on; port 0 selects a free one.
    pub listen: SocketAddr,
    /// Folder of the database.
    pub data: PathBuf,
    /// Database, as `sqlite:FILE` or `postgres://USER@HOST/NAME`; `tambour.sqlite` in the data folder when
    /// absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
    /// Servers that share a PostgreSQL database.
    pub cluster: ClusterConfig,
    /// Makes acknowledged data survive a power cut (slower).
    pub durable: bool,
    /// Upstreams by name.
    pub upstreams: BTreeMap<String, UpstreamConfig>,
    /// Upstream for requests that name none; the first one by name when absent.
    pub default_upstream: Option<String>,
    /// Currency of the prices of upstreams, such as `USD`.
    pub currency: String,
    /// Aliases: model names for clients of other protocols.
    pub aliases: BTreeMap<String, AliasConfig>,
    /// MCP servers by name.
    pub mcp: BTreeMap<String, McpConfig>,
    /// Admin key that is always valid, for the first start; from `TAMBOUR_API_KEY`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key: Option<String>,
    /// Web origins whose pages may call the server from a browser; none by default.
    pub cors_origins: Vec<String>,
    /// Milliseconds that a run continues after its last reader has left.
    pub grace_ms: u64,
    /// Milliseconds between heartbeats of an event stream.
    pub heartbeat_ms: u64,
    /// Milliseconds that running streams get when the server stops.
    pub drain_ms: u64,
    /// Maximum number of running messages and dialogue turns of one owner, queued ones included.
    pub max_running: usize,
    /// Maximum number of open event streams of one owner.
    pub max_streams: usize,
    /// Maximum number of open event streams of all owners together; by default as many as the limit of open
    /// files allows.
    pub max_streams_total: usize,
    /// Maximum length of a request body in bytes.
    pub max_request: usize,
    /// Maximum length in bytes of a request body that imports files.
    pub max_import: usize,
    /// Approximate maximum length in bytes of the earlier messages that a prompt includes.
    pub max_history: usize,
    /// Retention of messages and dialogues.
    pub retention: RetentionConfig,
    /// Longest pause within a request body, in milliseconds.
    pub body_idle_ms: u64,
    /// Longest time, in milliseconds, in which a whole request body must arrive.
    pub body_ms: u64,
    /// Longest time, in milliseconds, that a client may read nothing of a stream whose message has ended.
    pub reader_idle_ms: u64,
    /// Allows prompts and replies in the server's own log.
    pub log_content: bool,
    /// Filter of the server's own log, such as `info` or `tambour_server=debug`.
    pub log: String,
    /// Writes log lines as JSON.
    pub log_json: bool,
    /// Limits of replies.
    pub limits: Limits,
    /// Timeouts and retries of upstreams.
    pub timeouts: Timeouts,
    /// Limits of tools.
    pub tools: ToolLimits,
    /// Tracing to an OpenTelemetry collector.
    pub telemetry: TelemetryConfig,
    /// Folder whose subfolder `prompts` has templates that override the built-in ones.
    pub config_dir: PathBuf,
    /// Starts even if a part of the journal is lost, and messages with it. Applies to one start, so it is
    /// never read from a file.
    #[serde(skip)]
    pub accept_loss: bool,
    /// Environment variables that begin with `TAMBOUR_` but set nothing; the server warns about each when it
    /// starts.
    #[serde(skip)]
    pub unknown_variables: Vec<String>,
    /// Places that the values come from (file and line, variable or flag), for error messages.
    #[serde(skip)]
    pub(crate) origins: ValueOrigins,
}

/// Limits beyond which messages and dialogues are deleted; none unless set.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetentionConfig {
    /// Days that a message is kept after its request, and a dialogue after its last change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub days: Option<u32>,
    /// Maximum total size in bytes of an owner's messages, and of an owner's dialogues; the oldest are
    /// deleted first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

impl Default for Config {
    fn default() -> Config {
        let demo = UpstreamConfig {
            kind: UpstreamKind::Demo.name().to_owned(),
            url: String::new(),
            model: None,
            key_env: None,
            key_file: None,
            server: None,
            constrain: None,
            prices: BTreeMap::new(),
        };
        Config {
            listen: SocketAddr::from(([127, 0, 0, 1], 8787)),
            data: PathBuf::from("tambour-data"),
            database: None,
            cluster: ClusterConfig::default(),
            durable: false,
            upstreams: BTreeMap::from([(demo.kind.clone(), demo)]),
            default_upstream: None,
            currency: "USD".to_owned(),
            aliases: BTreeMap::new(),
            mcp: BTreeMap::new(),
            api_key: None,
            cors_origins: Vec::new(),
            grace_ms: 10_000,
            heartbeat_ms: 15_000,
            drain_ms: 10_000,
            max_running: 2000,
            max_streams: 4000,
            max_streams_total: descriptors::max_streams(),
            max_request: 4 << 20,
            max_import: 32 << 20,
            max_history: 512 << 10,
            retention: RetentionConfig::default(),
            body_idle_ms: 30_000,
            body_ms: 120_000,
            reader_idle_ms: 60_000,
            log_content: false,
            log: "info".to_owned(),
            log_json: false,
            limits: Limits::default(),
            timeouts: Timeouts::default(),
            tools: ToolLimits::default(),
            telemetry: TelemetryConfig::default(),
            config_dir: PathBuf::from("config"),
            accept_loss: false,
            unknown_variables: Vec::new(),
            origins: ValueOrigins::default(),
        }
    }
}

impl Config {
    /// Returns the file of a SQLite database.
    ///
    /// # Errors
    /// `database` names another kind of database.
    pub fn database_file(&self) -> Result<PathBuf, ConfigError> {
        let Some(url) = &self.database else { return Ok(self.data.join("tambour.sqlite")) };
        let file = url.strip_prefix("sqlite://").or_else(|| url.strip_prefix("sqlite:"));
        match file {
            Some(file) if !file.is_empty() => Ok(PathBuf::from(file)),
            _ => Err(self.field_error("database", "takes sqlite:FILE or postgres://USER@HOST/NAME")),
        }
    }

    /// Adds an upstream and makes it the default one. `argument` is `KIND=URL` for a model service (such as
    /// `openai=URL`), `replay=FILE` or `demo`. The upstream is named after its kind; returns this name.
    ///
    /// # Errors
    /// The kind is unknown, or the URL or file is missing.
    pub fn add_upstream(&mut self, argument: &str, model: Option<String>) -> Result<String, ConfigError> {
        let upstream = UpstreamConfig::from_argument(argument, model)?;
        let name = upstream.kind.clone();
        self.upstreams.insert(name.clone(), upstream);
        self.default_upstream = Some(name.clone());
        Ok(name)
    }

    /// Adds an upstream as [`Config::add_upstream`] does; errors about it name `source`, the flag or variable
    /// that contained `argument`.
    ///
    /// # Errors
    /// The kind is unknown, or the URL or file is missing.
    pub fn add_upstream_from(
        &mut self,
        source: &str,
        argument: &str,
        model: Option<String>,
    ) -> Result<(), ConfigError> {
        let name =
            self.add_upstream(argument, model).map_err(|error| ConfigError(format!("{source}: {error}")))?;
        self.note_source(&format!("upstreams.{name}"), source);
        Ok(())
    }

    /// Records that a field was set by `source`, a flag or variable. Errors about its value then name
    /// `source`.
    pub fn note_source(&mut self, field: &str, source: &str) {
        self.origins.note_source(field, source);
    }

    /// Returns the upstream for requests that name none.
    #[must_use]
    pub fn default_upstream(&self) -> Option<&str> {
        self.default_upstream.as_deref().or_else(|| self.upstreams.keys().next().map(String::as_str))
    }

    /// Returns the section of the configuration that upstreams read.
    pub(crate) fn upstream_section(&self) -> UpstreamSection<'_> {
        UpstreamSection { upstreams: &self.upstreams, timeouts: &self.timeouts, origins: &self.origins }
    }

    /// Creates the default upstream, for callers without a server.
    ///
    /// # Errors
    /// There is no default upstream, or a configured upstream cannot be used.
    pub fn open_default_upstream(&self) -> Result<Arc<Upstream>, ConfigError> {
        let (metrics, probes) = (UpstreamMetrics::default(), ConstraintProbes::default());
        let mut upstreams = self.upstream_section().build_upstreams(&metrics, &probes)?;
        let name = self.default_upstream().unwrap_or_default();
        upstreams.remove(name).ok_or_else(|| ConfigError(format!("there is no upstream `{name}`")))
    }

    /// Returns the section of the configuration that MCP servers read.
    pub(crate) fn mcp_section(&self) -> McpSection<'_> {
        McpSection { servers: &self.mcp, tools: &self.tools, origins: &self.origins }
    }

    /// Returns the configuration as TOML. Secrets are masked.
    #[must_use]
    pub fn to_masked_toml(&self) -> String {
        let mut masked = self.clone();
        if masked.api_key.is_some() {
            masked.api_key = Some("***".to_owned());
        }
        masked.database = masked.database.as_deref().map(mask_url);
        for upstream in masked.upstreams.values_mut() {
            upstream.url = mask_url(&upstream.url);
        }
        masked.mcp.values_mut().for_each(McpConfig::mask);
        masked.telemetry.mask();
        toml::to_string_pretty(&masked).unwrap_or_else(|error| format!("# {error}\n"))
    }
}

impl std::fmt::Debug for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.to_masked_toml())
    }
}
