//! Loaded configuration, with the upstreams, MCP servers and Skeins that it describes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use serde_json::Value;

use crate::base::metrics::Metrics;
use crate::base::rotation::Rotation;
use crate::config::{Config, ConfigError};
use crate::mcp::McpServers;
use crate::tools::WebhookClient;
use crate::upstream::{ConstraintProbes, Upstream};

/// The configuration and everything derived from it.
pub(crate) struct LoadedConfig {
    /// The configuration.
    pub config: Config,
    /// Upstreams by name.
    pub upstreams: BTreeMap<String, Arc<Upstream>>,
    /// Client for webhooks.
    pub webhooks: WebhookClient,
    /// MCP servers, whose tools messages may use.
    pub mcp: McpServers,
    /// Skeins (prompts) of aliases, by alias; each is a JSON string of YAML.
    pub skeins: BTreeMap<String, Value>,
    /// Results of probes for constraints, kept across reloads.
    probes: ConstraintProbes,
    /// Round-robin state of aliases that share their load.
    rotation: Rotation,
}

impl LoadedConfig {
    /// Builds the state that a configuration describes. MCP servers whose settings equal those in `previous`
    /// stay connected, and
    /// results of probes are kept.
    pub(crate) fn new(
        config: Config,
        metrics: &Metrics,
        previous: Option<&LoadedConfig>,
    ) -> Result<LoadedConfig, ConfigError> {
        config.check()?;
        let probes = previous.map(|previous| previous.probes.clone()).unwrap_or_default();
        let upstreams = config.upstream_section().build_upstreams(&metrics.upstreams, &probes)?;
        let webhooks = WebhookClient::new(&config.tools);
        let skeins = config.load_skeins()?;
        let mcp = McpServers::new(config.mcp_section(), previous.map(|previous| &previous.mcp))?;
        Ok(LoadedConfig { config, upstreams, webhooks, mcp, skeins, probes, rotation: Rotation::default() })
    }

    /// Returns the named upstream, or the default one.
    #[must_use]
    pub(crate) fn upstream(&self, name: Option<&str>) -> Option<Arc<Upstream>> {
        self.upstreams.get(name.or_else(|| self.config.default_upstream())?).cloned()
    }

    /// Returns the aliases to try for an alias, in order, until one gives a usable reply. Aliases whose
    /// upstreams keep failing (open circuit breaker) come last. If the open time of one of them is over, it
    /// comes first instead, as a probe. If `alias` has a weight, the healthy aliases with weights take turns
    /// at coming first.
    pub(crate) fn fallback_chain<'a>(&'a self, alias: &'a str, now: Instant) -> Vec<&'a str> {
        let mut chain = self.config.alias_chain(alias);
        if chain.len() < 2 {
            return chain;
        }
        let upstream = |name: &str| self.upstream(self.config.aliases[name].upstream.as_deref());
        let is_healthy = |name: &str| upstream(name).is_some_and(|upstream| upstream.breaker().is_closed());
        // The sort is stable: both groups keep the order of the configuration.
        chain.sort_by_key(|name| !is_healthy(name));
        let weight = |name: &str| self.config.aliases[name].weight.filter(|weight| *weight > 0);
        let first = if weight(alias).is_some() {
            let weighted_member =
                |name: &&'a str| is_healthy(name).then(|| Some((*name, weight(name)?))).flatten();
            let members: Vec<(&str, u32)> = chain.iter().filter_map(weighted_member).collect();
            self.rotation.pick_first(alias, &members)
        } else {
            None
        };
        // A failed upstream whose open time is over comes before all others, to probe it with this request.
        let may_probe =
            |name: &&str| upstream(name).is_some_and(|upstream| upstream.breaker().try_probe(now));
        let first = chain.iter().copied().find(may_probe).or(first);
        if let Some(index) = first.and_then(|first| chain.iter().position(|name| *name == first)) {
            // Moves the chosen alias to the front; the others keep their order.
            chain[..=index].rotate_right(1);
        }
        chain
    }
}
