//! Configuration: defaults, then `tambour.toml`, then `TAMBOUR_*`, then flags.

mod alias;
mod check;
mod mcp;
mod origins;
mod price;
mod read;
mod telemetry;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tambour::limits::Limits;

use crate::descriptors;
use crate::tools::ToolLimits;
use crate::upstream::{Kind, Timeouts};
pub use alias::AliasConfig;
pub(crate) use alias::CHOICE;
pub use mcp::McpConfig;
pub(crate) use mcp::is_tool_name;
pub(crate) use origins::Origins;
pub use price::Price;
pub use telemetry::TelemetryConfig;

/// Everything that can be configured. The defaults work with no file at all.
#[derive(Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Config {
    /// Address to listen on; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Folder of the database.
    pub data: PathBuf,
    /// `sqlite:FILE`; `tambour.sqlite` in the data folder when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
    /// Whether a power cut may not lose what was acknowledged (slower).
    pub durable: bool,
    /// Upstreams by name.
    pub upstreams: BTreeMap<String, UpstreamConfig>,
    /// Name of the upstream that is used when a request names none.
    pub default_upstream: Option<String>,
    /// Currency of the prices of upstreams, such as `USD`.
    pub currency: String,
    /// Names of models for clients of other protocols, and what they stand for.
    pub aliases: BTreeMap<String, AliasConfig>,
    /// MCP servers by name.
    pub mcp: BTreeMap<String, McpConfig>,
    /// An admin key that always works, for the first start; from `TAMBOUR_API_KEY`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key: Option<String>,
    /// Origins that browsers may call from; none by default.
    pub cors_origins: Vec<String>,
    /// Milliseconds that a run goes on when nobody reads it any more.
    pub grace_ms: u64,
    /// Milliseconds between heartbeats.
    pub heartbeat_ms: u64,
    /// Milliseconds that running streams get when the server stops.
    pub drain_ms: u64,
    /// Running messages of one key.
    pub max_running: usize,
    /// Open event streams of one key.
    pub max_streams: usize,
    /// Open event streams in all; as many as open files allow by default.
    pub max_streams_total: usize,
    /// Bytes of a request.
    pub max_request: usize,
    /// Bytes of a request that imports files.
    pub max_import: usize,
    /// Bytes of earlier messages of a conversation that a model is told, about.
    pub max_history: usize,
    /// How long messages are kept.
    pub retention: Retention,
    /// Milliseconds that the body of a request may stop.
    pub body_idle_ms: u64,
    /// Milliseconds that it may take in all.
    pub body_ms: u64,
    /// Milliseconds after the end of a message that a reader may take nothing of its stream.
    pub reader_idle_ms: u64,
    /// Whether prompts and replies may be in the server's own log.
    pub log_content: bool,
    /// What is in the server's own log, such as `info` or `tambour_server=debug`.
    pub log: String,
    /// Log lines as JSON.
    pub log_json: bool,
    /// Limits on replies.
    pub limits: Limits,
    /// Waiting for upstreams.
    pub timeouts: Timeouts,
    /// How tools may be run.
    pub tools: ToolLimits,
    /// Traces for a collector of OpenTelemetry.
    pub telemetry: TelemetryConfig,
    /// Folder with `prompts`, the templates that replace the shipped ones.
    pub config_dir: PathBuf,
    /// Whether the server starts although messages are gone with a part of the journal; for one start, so never from a file.
    #[serde(skip)]
    pub accept_loss: bool,
    /// Where values come from.
    #[serde(skip)]
    pub(crate) origins: Origins,
}

/// Variable that holds the key of `--upstream`, if there is one.
pub(crate) const UPSTREAM_KEY: &str = "TAMBOUR_UPSTREAM_API_KEY";

/// How long messages are kept: for ever, unless something is set.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Retention {
    /// Days from the request on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub days: Option<u32>,
    /// Bytes of all messages of an owner; the oldest go first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

/// One upstream.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UpstreamConfig {
    /// `openai`, `anthropic`, `gemini`, `ollama`, `replay` or `demo`.
    pub kind: String,
    /// Base URL, or the file of the recordings.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub url: String,
    /// Model to ask for when a request names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Environment variable that holds the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_env: Option<String>,
    /// File that holds the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_file: Option<PathBuf>,
    /// Prices by model; `*` is for all others.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub prices: BTreeMap<String, Price>,
}

impl Default for Config {
    fn default() -> Config {
        let demo = UpstreamConfig {
            kind: "demo".into(),
            url: String::new(),
            model: None,
            key_env: None,
            key_file: None,
            prices: BTreeMap::new(),
        };
        Config {
            listen: SocketAddr::from(([127, 0, 0, 1], 8787)),
            data: PathBuf::from("tambour-data"),
            database: None,
            durable: false,
            upstreams: BTreeMap::from([("demo".to_owned(), demo)]),
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
            max_streams_total: descriptors::streams(),
            max_request: 4 << 20,
            max_import: 32 << 20,
            max_history: 512 << 10,
            retention: Retention::default(),
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
            origins: Origins::default(),
        }
    }
}

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(pub String);

impl Config {
    /// The file of the database.
    ///
    /// # Errors
    /// `database` names another kind of database.
    pub fn database_file(&self) -> Result<PathBuf, ConfigError> {
        let Some(url) = &self.database else { return Ok(self.data.join("tambour.sqlite")) };
        let file = url.strip_prefix("sqlite://").or_else(|| url.strip_prefix("sqlite:"));
        match file {
            Some(file) if !file.is_empty() => Ok(PathBuf::from(file)),
            _ => Err(self.wrong("database", "takes sqlite:FILE; other databases are not there yet")),
        }
    }

    /// Adds an upstream given as `KIND=WHERE` (`openai=URL` and other kinds of services, `replay=FILE`, `demo`) and makes it the default.
    ///
    /// # Errors
    /// There is no such kind.
    pub fn add_upstream(&mut self, given: &str, model: Option<String>) -> Result<(), ConfigError> {
        let (kind, url) = given.split_once('=').unwrap_or((given, ""));
        let service = Kind::named(kind).is_some();
        if kind != "demo" && (url.is_empty() || !(service || kind == "replay")) {
            let services = Kind::ALL.map(|kind| format!("{}=URL", kind.name())).join(", ");
            return Err(ConfigError(format!(
                "`{given}` is no upstream; give {services}, replay=FILE or demo"
            )));
        }
        let key_env = service.then(|| UPSTREAM_KEY.to_owned());
        let (kind, url) = (kind.to_owned(), url.to_owned());
        let upstream = UpstreamConfig {
            kind: kind.clone(),
            url,
            model,
            key_env,
            key_file: None,
            prices: BTreeMap::new(),
        };
        self.upstreams.insert(kind.clone(), upstream);
        self.default_upstream = Some(kind);
        Ok(())
    }

    /// Says that a field was given by `source`, a flag or a variable: errors about its value name it.
    pub fn given_by(&mut self, field: &str, source: &str) {
        self.origins.given_by(field, source);
    }

    /// Name of the upstream that is used when a request names none.
    #[must_use]
    pub fn default_upstream(&self) -> Option<&str> {
        self.default_upstream.as_deref().or_else(|| self.upstreams.keys().next().map(String::as_str))
    }

    /// The configuration as TOML with secrets masked.
    #[must_use]
    pub fn masked(&self) -> String {
        let mut shown = self.clone();
        if shown.api_key.is_some() {
            shown.api_key = Some("***".to_owned());
        }
        for upstream in shown.upstreams.values_mut() {
            upstream.url = without_secrets(&upstream.url);
        }
        shown.mcp.values_mut().for_each(McpConfig::mask);
        shown.telemetry.mask();
        toml::to_string_pretty(&shown).unwrap_or_else(|error| format!("# {error}\n"))
    }
}

impl std::fmt::Debug for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.masked())
    }
}

/// A URL without the password and the query that may stand in it.
pub(crate) fn without_secrets(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (address, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let address =
        address.rsplit_once('@').map_or_else(|| address.to_owned(), |(_, host)| format!("***@{host}"));
    let path = path.split_once('?').map_or_else(|| path.to_owned(), |(path, _)| format!("{path}?***"));
    format!("{scheme}://{address}{path}")
}
