//! Loaded configuration, with upstreams, MCP servers and Skeins made of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use serde_json::Value;

use crate::base::metrics::Metrics;
use crate::base::rotation::Rotation;
use crate::config::{Config, ConfigError};
use crate::mcp::McpServers;
use crate::tools::WebhookClient;
use crate::upstream::Upstream;

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
    /// Skeins by alias.
    pub skeins: BTreeMap<String, Value>,
    /// Round-robin state of aliases that share their load.
    rotation: Rotation,
}

impl LoadedConfig {
    /// Builds the state that a configuration describes. MCP servers whose settings equal those in `before`
    /// stay connected.
    pub(crate) fn new(
        config: Config,
        metrics: &Metrics,
        before: Option<&LoadedConfig>,
    ) -> Result<LoadedConfig, ConfigError> {
        config.check()?;
        let upstreams = config.upstream_section().build_upstreams(&metrics.upstreams)?;
        let webhooks = WebhookClient::new(&config.tools);
        let skeins = config.load_skeins()?;
        let mcp = McpServers::new(config.mcp_section(), before.map(|before| &before.mcp))?;
        Ok(LoadedConfig { config, upstreams, webhooks, mcp, skeins, rotation: Rotation::default() })
    }

    /// Returns the named upstream, or the default one.
    #[must_use]
    pub(crate) fn upstream(&self, name: Option<&str>) -> Option<Arc<Upstream>> {
        self.upstreams.get(name.or_else(|| self.config.default_upstream())?).cloned()
    }

    /// Returns the chain of aliases to try for an alias, in order, until one gives a usable reply. Aliases
    /// whose upstreams keep failing come last.
    pub(crate) fn fallback_chain<'a>(&'a self, alias: &'a str, now: Instant) -> Vec<&'a str> {
        let mut chain = self.config.alias_chain(alias);
        if chain.len() < 2 {
            return chain;
        }
        let upstream = |name: &str| self.upstream(self.config.aliases[name].upstream.as_deref());
        let is_well = |name: &str| upstream(name).is_some_and(|upstream| upstream.breaker().is_closed());
        // The sort is stable: both groups keep the order of the configuration.
        chain.sort_by_key(|name| !is_well(name));
        let weight = |name: &str| self.config.aliases[name].weight.filter(|weight| *weight > 0);
        let first = if weight(alias).is_some() {
            let weighted = |name: &&'a str| is_well(name).then(|| Some((*name, weight(name)?))).flatten();
            let members: Vec<(&str, u32)> = chain.iter().filter_map(weighted).collect();
            self.rotation.pick_first(alias, &members)
        } else {
            None
        };
        // An upstream whose pause is over is probed first.
        let is_ready = |name: &&str| upstream(name).is_some_and(|upstream| upstream.breaker().try_probe(now));
        let first = chain.iter().copied().find(is_ready).or(first);
        if let Some(at) = first.and_then(|first| chain.iter().position(|name| *name == first)) {
            chain[..=at].rotate_right(1);
        }
        chain
    }
}
