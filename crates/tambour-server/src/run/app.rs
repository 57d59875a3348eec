//! Shared state of the server.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Instant;

use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::base::settings::Settings;
use crate::config::{Config, ConfigError};
use crate::base::cpu_pool::CpuPool;
use crate::run::dialogues::{ParsedTemplateCache, TurnClaims};
use crate::http::RunningThreads;
use crate::http::idempotency::SecretResponses;
use crate::base::problem::Problem;
use crate::base::ids;
use crate::run::keys::KeyRegistry;
use crate::run::live_run::LiveRun;
use crate::mcp::McpServers;
use crate::base::memory::MemoryBudget;
use crate::base::metrics::Metrics;
use crate::base::token_counts::TokenCounts;
use crate::run::quotas::{Quotas, day};
use crate::config::reading_defaults::ReadingDefaults;
use crate::base::rotation::Rotation;
use crate::store::{Figures, MessageRow, RunKind, Store, UsageRow};
use crate::http::streams::StreamRegistry;
use crate::telemetry::TraceHandle;
use crate::tools::{DeskRegistry, SchemaCache, WebhookClient};
use crate::run::turns::TurnQueues;
use crate::upstream::Upstream;

/// The state as handlers receive it.
pub(crate) type AppState = Arc<App>;

/// The state of the server.
pub(crate) struct App {
    /// Part that a reload replaces.
    loaded_config: RwLock<Arc<LoadedConfig>>,
    /// Persistent store.
    pub store: Arc<dyn Store>,
    /// Running messages and turns.
    pub running: RunRegistry,
    /// Memory budget of requests.
    pub memory: MemoryBudget,
    /// Pool for CPU-bound work.
    pub cpu_pool: CpuPool,
    /// Cache of compiled tool schemas.
    pub schemas: SchemaCache,
    /// Pending confirmations and client results that running messages wait for.
    pub desks: DeskRegistry,
    /// Queue of turns in each conversation.
    pub turns: TurnQueues,
    /// Idempotency keys of requests in progress.
    pub claims: Arc<SecretResponses>,
    /// Rate and token limits of keys.
    pub quotas: Quotas,
    /// Cache of parsed dialogue templates.
    pub templates: Arc<ParsedTemplateCache>,
    /// Turns of dialogues in progress that a client may repeat.
    pub turn_claims: Arc<TurnClaims>,
    /// Running messages in conversations named by clients.
    pub threads: RunningThreads,
    /// Open event streams.
    pub streams: Arc<StreamRegistry>,
    /// Settings that can be changed at run time.
    pub settings: RwLock<Settings>,
    /// Held while settings change, in the store and in memory.
    pub settings_change: tokio::sync::Mutex<()>,
    /// API keys.
    pub keys: KeyRegistry,
    /// Counters.
    pub metrics: Metrics,
    /// Tracing spans.
    pub traces: TraceHandle,
    /// Notified when data was deleted and has to be erased from the files.
    pub deletion_notify: Notify,
    /// Cancelled when the server stops accepting requests.
    pub shutdown: CancellationToken,
    /// Cancelled when running messages get no more time.
    pub run_abort: CancellationToken,
    /// Tasks of running messages.
    pub run_tasks: TaskTracker,
}

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
        let well = |name: &str| upstream(name).is_some_and(|upstream| upstream.breaker().is_closed());
        // The sort is stable: both groups keep the order of the configuration.
        chain.sort_by_key(|name| !well(name));
        let weight = |name: &str| self.config.aliases[name].weight.filter(|weight| *weight > 0);
        let first = if weight(alias).is_some() {
            let weighed = |name: &&'a str| well(name).then(|| Some((*name, weight(name)?))).flatten();
            let members: Vec<(&str, u32)> = chain.iter().filter_map(weighed).collect();
            self.rotation.pick_first(alias, &members)
        } else {
            None
        };
        // An upstream whose pause is over is probed first.
        let rested = |name: &&str| upstream(name).is_some_and(|upstream| upstream.breaker().try_probe(now));
        let first = chain.iter().copied().find(rested).or(first);
        if let Some(at) = first.and_then(|first| chain.iter().position(|name| *name == first)) {
            chain[..=at].rotate_right(1);
        }
        chain
    }
}

/// Running messages and turns of dialogues, by id.
#[derive(Default)]
pub(crate) struct RunRegistry {
    by_id: Mutex<HashMap<String, OwnedRun>>,
}

/// Running message or turn with its owner.
struct OwnedRun {
    owner: String,
    live_run: Arc<LiveRun>,
    kind: RunKind,
    /// Id of its conversation or dialogue.
    conversation: String,
    /// Set for a turn once the turns before it are over.
    is_active: bool,
}

/// Registration of a turn of a dialogue; dropping it removes the turn.
pub(crate) struct RunningTurn {
    app: Arc<App>,
    live_run: Arc<LiveRun>,
}

impl RunningTurn {
    /// Registers a turn of an owner's dialogue, or returns `None` at the limit.
    pub(crate) fn begin(app: &Arc<App>, owner: &str, dialogue: &str) -> Option<RunningTurn> {
        let most = app.loaded_config().config.max_running;
        let live_run = LiveRun::new(ids::new_id("turn"));
        let added = app.running.insert((owner, dialogue), RunKind::Turn, live_run.clone(), most);
        added.then(|| RunningTurn { app: app.clone(), live_run })
    }

    /// Returns the handle with its readers and its cancellation.
    pub(crate) fn live_run(&self) -> &Arc<LiveRun> {
        &self.live_run
    }

    /// Marks the turn as first in its queue.
    pub(crate) fn mark_active(&self) {
        let mut by_id = self.app.running.lock();
        if let Some(turn) = by_id.get_mut(&self.live_run.id) {
            turn.is_active = true;
        }
    }
}

impl Drop for RunningTurn {
    fn drop(&mut self) {
        self.live_run.mark_over();
        self.app.running.remove(&self.live_run.id);
    }
}

impl RunRegistry {
    /// Adds a message of an owner's conversation; `false` if the owner has `most` already.
    pub(crate) fn add(&self, owner: &str, conversation: &str, live: Arc<LiveRun>, most: usize) -> bool {
        self.insert((owner, conversation), RunKind::Message, live, most)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, OwnedRun>> {
        self.by_id.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn insert(
        &self,
        (owner, conversation): (&str, &str),
        kind: RunKind,
        live_run: Arc<LiveRun>,
        most: usize,
    ) -> bool {
        let mut by_id = self.lock();
        if by_id.len() >= most && by_id.values().filter(|other| other.owner == owner).count() >= most {
            return false;
        }
        let (owner, conversation) = (owner.to_owned(), conversation.to_owned());
        by_id.insert(live_run.id.clone(), OwnedRun { owner, live_run, kind, conversation, is_active: false });
        true
    }

    /// Returns the running message of that id.
    pub(crate) fn get(&self, id: &str) -> Option<Arc<LiveRun>> {
        let by_id = self.lock();
        by_id.get(id).filter(|run| run.kind == RunKind::Message).map(|run| run.live_run.clone())
    }

    /// Returns the running turn of that id.
    pub(crate) fn get_turn(&self, id: &str) -> Option<Arc<LiveRun>> {
        let by_id = self.lock();
        by_id.get(id).filter(|run| run.kind == RunKind::Turn).map(|run| run.live_run.clone())
    }

    /// Returns all running messages.
    pub(crate) fn all_messages(&self) -> Vec<Arc<LiveRun>> {
        self.select(|run| run.kind == RunKind::Message)
    }

    /// Returns the running messages of a conversation, including queued ones and ones about to begin.
    pub(crate) fn conversation_messages(&self, conversation: &str) -> Vec<Arc<LiveRun>> {
        self.select(|run| run.kind == RunKind::Message && run.conversation == conversation)
    }

    /// Returns the active turn of a dialogue, and ended ones not yet removed.
    pub(crate) fn active_turns(&self, dialogue: &str) -> Vec<Arc<LiveRun>> {
        self.select(|run| run.kind == RunKind::Turn && run.conversation == dialogue && run.is_active)
    }

    /// Returns the turns of a dialogue, including queued ones.
    pub(crate) fn dialogue_turns(&self, dialogue: &str) -> Vec<Arc<LiveRun>> {
        self.select(|run| run.kind == RunKind::Turn && run.conversation == dialogue)
    }

    fn select(&self, fit: impl Fn(&OwnedRun) -> bool) -> Vec<Arc<LiveRun>> {
        self.lock().values().filter(|run| fit(run)).map(|run| run.live_run.clone()).collect()
    }

    /// Removes a message that has ended.
    pub(crate) fn remove(&self, id: &str) {
        self.lock().remove(id);
    }

    /// Returns the number of running messages and turns.
    pub(crate) fn count(&self) -> usize {
        self.lock().len()
    }
}

impl App {
    /// Creates the state of a starting server.
    pub(crate) fn new(
        loaded: LoadedConfig,
        (metrics, traces): (Metrics, TraceHandle),
        store: Arc<dyn Store>,
        settings: Settings,
        keys: KeyRegistry,
        quotas: Quotas,
    ) -> App {
        App {
            loaded_config: RwLock::new(Arc::new(loaded)),
            store,
            running: RunRegistry::default(),
            memory: MemoryBudget::default(),
            cpu_pool: CpuPool::new(),
            schemas: SchemaCache::new(),
            desks: DeskRegistry::default(),
            turns: TurnQueues::default(),
            claims: Arc::default(),
            quotas,
            templates: Arc::new(ParsedTemplateCache::new(
                metrics.template_hits.clone(),
                metrics.template_misses.clone(),
            )),
            turn_claims: Arc::default(),
            threads: RunningThreads::default(),
            streams: Arc::default(),
            settings: RwLock::new(settings),
            settings_change: tokio::sync::Mutex::default(),
            keys,
            metrics,
            traces,
            deletion_notify: Notify::new(),
            shutdown: CancellationToken::new(),
            run_abort: CancellationToken::new(),
            run_tasks: TaskTracker::new(),
        }
    }

    /// Charges usage to a key: for its limits and for `GET /api/v1/usage`.
    pub(crate) async fn charge_key(&self, key: &str, owner: &str, requests: i64, usage: &Value) {
        let more = self.record_usage(key, owner, requests, usage);
        if let Err(error) = self.store.add_usage(&more).await {
            tracing::error!(%error, key, "what was asked with a key is not counted");
        }
    }

    /// Adds the figures of a reply that belongs to no message.
    pub(crate) async fn add_figures(&self, figures: &[Figures]) {
        if let Err(error) = self.store.add_figures(figures).await {
            tracing::error!(%error, "figures of a reply are not counted");
        }
    }

    /// Charges usage to the limits of a key; returns the row to store.
    pub(crate) fn record_usage(&self, key: &str, owner: &str, requests: i64, usage: &Value) -> UsageRow {
        let (tokens, now) = (TokenCounts::from_usage(usage), Timestamp::now());
        self.quotas.spend(key, tokens, now);
        let count = |tokens: u64| i64::try_from(tokens).unwrap_or(i64::MAX);
        UsageRow {
            day: day(now),
            key: key.to_owned(),
            name: self.keys.key_name(key),
            owner: owner.to_owned(),
            requests,
            input_tokens: count(tokens.input),
            output_tokens: count(tokens.output),
        }
    }

    /// Returns the current configuration. Running messages keep the one they began with.
    #[must_use]
    pub(crate) fn loaded_config(&self) -> Arc<LoadedConfig> {
        self.loaded_config.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the configuration for messages that begin from now on.
    pub(crate) fn replace(&self, loaded: LoadedConfig) {
        loaded.mcp.start();
        *self.loaded_config.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(loaded);
    }

    /// Returns the current settings.
    #[must_use]
    pub(crate) fn settings(&self) -> Settings {
        self.settings.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the settings for messages that begin from now on. The caller holds `settings_change`.
    pub(crate) fn replace_settings(&self, settings: Settings) {
        *self.settings.write().unwrap_or_else(PoisonError::into_inner) = settings;
    }

    /// Returns the defaults for reading a reply that begins now.
    #[must_use]
    pub(crate) fn reading_defaults(&self) -> ReadingDefaults {
        let config = &self.loaded_config().config;
        ReadingDefaults::new(&config.limits, &config.tools, &self.settings())
    }

    /// Cancels runs and waits until they have ended.
    pub(crate) async fn cancel_runs(&self, runs: Vec<Arc<LiveRun>>) {
        runs.iter().for_each(|live| live.cancel.cancel());
        for live in runs {
            live.wait_over().await;
        }
    }

    /// Cancels the running messages whose rows match and waits until they have ended.
    pub(crate) async fn cancel_messages(&self, fits: impl Fn(&MessageRow) -> bool) -> Result<(), Problem> {
        for live in self.running.all_messages() {
            let Some(row) = self.store.message(&live.id).await? else { continue };
            if fits(&row) {
                live.cancel.cancel();
                live.wait_over().await;
            }
        }
        Ok(())
    }

    /// Runs work to completion, even if the client that requested it disconnects.
    pub(crate) async fn run_to_completion<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Problem>> + Send + 'static,
    ) -> Result<T, Problem> {
        self.run_tasks.spawn(work).await.unwrap_or_else(|_| Err(Problem::internal()))
    }
}
