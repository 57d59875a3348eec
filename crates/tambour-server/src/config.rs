//! Configuration: defaults, then `tambour.toml`, then `TAMBOUR_*`, then flags.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tambour::limits::Limits;

use crate::upstream::Timeouts;

/// Everything that can be configured. The defaults work with no file at all.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Config {
    /// Address to listen on; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Folder of the database.
    pub data: PathBuf,
    /// Whether a power cut may not lose what was acknowledged (slower).
    pub durable: bool,
    /// Upstreams by name.
    pub upstreams: BTreeMap<String, UpstreamConfig>,
    /// Name of the upstream that is used when a request names none.
    pub default_upstream: Option<String>,
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
    /// Bytes of a request.
    pub max_request: usize,
    /// Whether prompts and replies may be in the server's own log.
    pub log_content: bool,
    /// Log lines as JSON.
    pub log_json: bool,
    /// Limits on replies.
    pub limits: Limits,
    /// Waiting for upstreams.
    pub timeouts: Timeouts,
}

/// One upstream.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UpstreamConfig {
    /// `openai`, `replay` or `demo`.
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
}

impl Default for Config {
    fn default() -> Config {
        let demo = UpstreamConfig {
            kind: "demo".into(),
            url: String::new(),
            model: None,
            key_env: None,
            key_file: None,
        };
        Config {
            listen: SocketAddr::from(([127, 0, 0, 1], 8787)),
            data: PathBuf::from("tambour-data"),
            durable: false,
            upstreams: BTreeMap::from([("demo".to_owned(), demo)]),
            default_upstream: None,
            api_key: None,
            cors_origins: Vec::new(),
            grace_ms: 10_000,
            heartbeat_ms: 15_000,
            drain_ms: 10_000,
            max_running: 2000,
            max_request: 4 << 20,
            log_content: false,
            log_json: false,
            limits: Limits::default(),
            timeouts: Timeouts::default(),
        }
    }
}

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(pub String);

impl Config {
    /// The configuration of `file` (or `tambour.toml`, if it is there) and the environment.
    ///
    /// # Errors
    /// The file cannot be read or has a field that does not exist; a variable has a value that does not fit.
    pub fn load(
        file: Option<&Path>,
        environment: impl Iterator<Item = (String, String)>,
    ) -> Result<Config, ConfigError> {
        let standard = Path::new("tambour.toml");
        let text = match file.or_else(|| standard.exists().then_some(standard)) {
            Some(path) => std::fs::read_to_string(path)
                .map_err(|error| ConfigError(format!("{}: {error}", path.display())))?,
            None => String::new(),
        };
        let mut table: toml::Table = text
            .parse()
            .map_err(|error| ConfigError(format!("the configuration file is not TOML: {error}")))?;
        for (name, value) in environment {
            if let Some(field) = name.strip_prefix("TAMBOUR_") {
                set(&mut table, &field.to_ascii_lowercase(), &value);
            }
        }
        Config::try_from(table)
    }

    fn try_from(table: toml::Table) -> Result<Config, ConfigError> {
        table.try_into().map_err(|error| ConfigError(format!("the configuration: {error}")))
    }

    /// Adds an upstream given as `KIND=WHERE` (`openai=URL`, `replay=FILE`, `demo`) and makes it the default.
    ///
    /// # Errors
    /// There is no such kind.
    pub fn add_upstream(&mut self, given: &str, model: Option<String>) -> Result<(), ConfigError> {
        let (kind, url) = given.split_once('=').unwrap_or((given, ""));
        if !matches!((kind, url.is_empty()), ("openai" | "replay", false) | ("demo", _)) {
            return Err(ConfigError(format!(
                "`{given}` is no upstream; give openai=URL, replay=FILE or demo"
            )));
        }
        let key_env = (kind == "openai").then(|| "TAMBOUR_UPSTREAM_API_KEY".to_owned());
        let upstream = UpstreamConfig { kind: kind.into(), url: url.into(), model, key_env, key_file: None };
        self.upstreams.insert(kind.to_owned(), upstream);
        self.default_upstream = Some(kind.to_owned());
        Ok(())
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
            if let Some((before, after)) =
                upstream.url.split_once('@').filter(|_| upstream.url.contains("://"))
            {
                let scheme = before.split("://").next().unwrap_or("");
                upstream.url = format!("{scheme}://***@{after}");
            }
        }
        toml::to_string_pretty(&shown).unwrap_or_else(|error| format!("# {error}\n"))
    }
}

/// Sets a field of the table from a variable: `LIMITS_HOLD` is `limits.hold` where `limits` is a table of ours.
fn set(table: &mut toml::Table, field: &str, value: &str) {
    let parsed = match value {
        "true" => toml::Value::Boolean(true),
        "false" => toml::Value::Boolean(false),
        _ => value.parse().map_or_else(|_| toml::Value::String(value.to_owned()), toml::Value::Integer),
    };
    for group in ["limits", "timeouts"] {
        if let Some(inner) = field.strip_prefix(group).and_then(|rest| rest.strip_prefix('_')) {
            let entry = table.entry(group).or_insert_with(|| toml::Value::Table(toml::Table::new()));
            if let toml::Value::Table(entry) = entry {
                entry.insert(inner.to_owned(), parsed);
            }
            return;
        }
    }
    match field {
        // These name no field: the key of `--upstream`, and flags of the command.
        "upstream_api_key" | "config" | "upstream" | "model" => {}
        "cors_origins" => {
            let origins =
                value.split(',').map(|origin| toml::Value::String(origin.trim().to_owned())).collect();
            table.insert(field.to_owned(), toml::Value::Array(origins));
        }
        _ => {
            table.insert(field.to_owned(), parsed);
        }
    }
}
