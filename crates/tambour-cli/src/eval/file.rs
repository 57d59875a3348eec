//! File of an evaluation: contract, prompts and sources of replies, in TOML. Paths are relative to its folder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tambour::texts::explain_parse_error;
use tambour_server::upstream::origins::{ValueOrigins, field_at, format_place};
use tambour_server::upstream::{Constrain, Price, Timeouts, UpstreamConfig, UpstreamSection};

use super::lines;

/// Contents of the file.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EvalFile {
    /// Configuration file of the server, for its upstreams and aliases.
    pub(super) config: Option<PathBuf>,
    #[serde(default)]
    pub(super) contract: ContractSection,
    pub(super) prompts: Option<PromptSection>,
    #[serde(default)]
    pub(super) request: RequestSection,
    /// Maximum number of re-asks of an unusable reply.
    #[serde(default = "default_max_reasks")]
    pub(super) max_reasks: u32,
    /// Maximum number of model calls at a time.
    #[serde(default = "default_parallel")]
    pub(super) parallel: usize,
    #[serde(default)]
    pub(super) sources: Vec<SourceSection>,
    /// Upstreams as in `tambour.toml`; they precede those of the configuration.
    #[serde(default)]
    pub(super) upstreams: BTreeMap<String, UpstreamConfig>,
    /// Timeouts and retries as in `tambour.toml`.
    pub(super) timeouts: Option<Timeouts>,
    /// Prices of recordings, by model; `*` applies to all other models.
    #[serde(default)]
    pub(super) prices: BTreeMap<String, Price>,
    /// Currency of the prices.
    pub(super) currency: Option<String>,
}

/// Contract of the replies.
#[derive(Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ContractSection {
    pub(super) dialect: Option<String>,
    /// Dialects to measure, in place of `dialect`.
    pub(super) dialects: Vec<String>,
    /// Profile under which a reply counts as valid as written: `strict` (default) or `lenient`.
    pub(super) profile: Option<String>,
    /// Options by their public names.
    pub(super) options: BTreeMap<String, Value>,
    /// File with the tools, as for `--tools`.
    pub(super) tools: Option<PathBuf>,
    /// File with the expected structure, as for `--structure`.
    pub(super) structure: Option<PathBuf>,
}

/// Prompts to ask.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PromptSection {
    /// JSONL file, text file with a prompt a line, or folder of such files.
    pub(super) path: PathBuf,
    /// System prompt; a prompt and an alias may have their own.
    pub(super) system_prompt: Option<String>,
    /// Adds the format instructions of the dialect to the system prompt.
    #[serde(default = "default_instructions")]
    pub(super) instructions: bool,
}

/// Parameters of the requests.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct RequestSection {
    pub(super) temperature: Option<f64>,
    pub(super) max_tokens: Option<u32>,
    pub(super) top_p: Option<f64>,
    pub(super) seed: Option<i64>,
    /// Sending of the contract; takes precedence over the field of the alias and the upstream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) constrain: Option<Constrain>,
}

/// Source of replies: exactly one of `upstream`, `alias` and `recorded`.
#[derive(Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct SourceSection {
    /// Name in the report; by default that of the upstream, alias or file.
    pub(super) name: Option<String>,
    /// Name of an upstream, or `KIND=URL`.
    pub(super) upstream: Option<String>,
    /// Model to ask the upstream for.
    pub(super) model: Option<String>,
    /// Name of an alias of the configuration.
    pub(super) alias: Option<String>,
    /// JSONL file of recorded replies.
    pub(super) recorded: Option<PathBuf>,
    /// Prices of the recordings, by model; in place of those of the file.
    pub(super) prices: Option<BTreeMap<String, Price>>,
}

/// Maximum size of the file in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// Maximum number of sources.
const MAX_SOURCES: usize = 100;
/// Maximum number of re-asks, the same as for a message of the server.
pub(super) const MAX_REASKS: u32 = 5;
/// Maximum number of model calls at a time.
pub(super) const MAX_PARALLEL: usize = 256;

fn default_max_reasks() -> u32 {
    1
}

fn default_parallel() -> usize {
    4
}

fn default_instructions() -> bool {
    true
}

impl EvalFile {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// The file cannot be read, is not TOML of this form, or has a value out of range; the message names the
    /// place.
    pub(super) fn read(path: &Path) -> Result<EvalFile> {
        let text = lines::read_text(path, MAX_FILE_BYTES)?;
        let file: EvalFile = toml::from_str(&text).map_err(|error| {
            let message = explain_parse_error(error.message().trim());
            let Some(span) = error.span() else { return anyhow!("{}: {message}", path.display()) };
            let field = field_at(&text, span.start).map(|field| format!("`{field}`: ")).unwrap_or_default();
            anyhow!("{}: {field}{message}", format_place(path, &text, span.start))
        })?;
        file.check(&ValueOrigins::from_file(path, &text)).with_context(|| path.display().to_string())?;
        Ok(file)
    }

    fn check(&self, origins: &ValueOrigins) -> Result<()> {
        if self.sources.is_empty() {
            bail!("there is no source of replies; add `[[sources]]` with `upstream`, `alias` or `recorded`");
        }
        if self.sources.len() > MAX_SOURCES {
            bail!("`sources`: at most {MAX_SOURCES}, not {}", self.sources.len());
        }
        for (index, source) in self.sources.iter().enumerate() {
            let kinds = [source.upstream.is_some(), source.alias.is_some(), source.recorded.is_some()];
            if kinds.iter().filter(|is_present| **is_present).count() != 1 {
                bail!("source {}: give one of `upstream`, `alias` and `recorded`", index + 1);
            }
            if source.model.is_some() && source.upstream.is_none() {
                bail!("source {}: `model` goes with `upstream`", index + 1);
            }
        }
        if self.max_reasks > MAX_REASKS {
            bail!("`max_reasks` is at most {MAX_REASKS}, not {}", self.max_reasks);
        }
        if !(1..=MAX_PARALLEL).contains(&self.parallel) {
            bail!("`parallel` takes 1 to {MAX_PARALLEL}, not {}", self.parallel);
        }
        if self.contract.dialect.is_some() && !self.contract.dialects.is_empty() {
            bail!("`contract`: give `dialect` or `dialects`, not both");
        }
        if !matches!(self.contract.profile.as_deref(), None | Some("strict" | "lenient")) {
            bail!("`contract.profile` takes `strict` or `lenient`");
        }
        let timeouts = self.timeouts.unwrap_or_default();
        let section = UpstreamSection { upstreams: &self.upstreams, timeouts: &timeouts, origins };
        section.check_prices()?;
        // Recordings have prices like an upstream.
        for prices in self.sources.iter().filter_map(|source| source.prices.as_ref()).chain([&self.prices]) {
            let mut recordings = UpstreamConfig::from_argument("demo", None)?;
            recordings.prices.clone_from(prices);
            let upstreams = BTreeMap::from([("prices".to_owned(), recordings)]);
            UpstreamSection { upstreams: &upstreams, timeouts: &timeouts, origins: &ValueOrigins::default() }
                .check_prices()
                .map_err(|error| anyhow!("{}", error.to_string().replace("upstreams.prices.", "")))?;
        }
        if self.sources.iter().any(|source| source.prices.is_some() && source.recorded.is_none()) {
            bail!("`sources`: `prices` are those of recorded replies; an upstream has its own");
        }
        Ok(())
    }
}

impl ContractSection {
    /// Returns the names of the dialects; none if the replies name their own.
    pub(super) fn names(&self) -> Vec<&str> {
        self.dialect.iter().chain(&self.dialects).map(String::as_str).collect()
    }
}
