//! State that the runs of messages and of dialogue turns share.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Instant;

use serde_json::Value;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::base::clock;
use crate::base::cpu_pool::CpuPool;
use crate::base::memory::MemoryBudget;
use crate::base::metrics::Metrics;
use crate::base::problem::Problem;
use crate::base::settings::Settings;
use crate::base::token_counts::TokenCounts;
use crate::config::reading_defaults::ReadingDefaults;
use crate::run::contract_forms::{ContractFormCache, WrittenForms};
use crate::run::dialogues::ParsedTemplateCache;
use crate::run::keys::{Caller, KeyRegistry};
use crate::run::live_run::LiveRun;
use crate::run::loaded_config::LoadedConfig;
use crate::run::quotas::{self, KeyLimits, Quotas, RequestRate, day};
use crate::run::run_registry::RunRegistry;
use crate::run::turns::ConversationQueues;
use crate::store::{Figures, MessageRow, Store, UsageRow};
use crate::telemetry::TraceHandle;
use crate::tools::{DeskRegistry, SchemaCache};

/// State that runs share.
pub(crate) struct RunEngine {
    /// Configuration, which a reload replaces.
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
    /// Cache of contracts as clients read them.
    pub contract_texts: ContractFormCache<String>,
    /// Cache of contracts as they are sent along.
    pub constraint_forms: ContractFormCache<WrittenForms>,
    /// Confirmations and tool results of clients that running messages wait for.
    pub desks: DeskRegistry,
    /// Queues for exclusive access to conversations and dialogues.
    pub conversation_queues: ConversationQueues,
    /// Rate and token limits of keys.
    pub quotas: Quotas,
    /// Cache of parsed dialogue templates.
    pub templates: Arc<ParsedTemplateCache>,
    /// Settings that can be changed at run time.
    pub settings: RwLock<Settings>,
    /// Locked while settings change, in the store and in memory.
    pub settings_change: tokio::sync::Mutex<()>,
    /// API keys.
    pub keys: KeyRegistry,
    /// Metrics of the server.
    pub metrics: Metrics,
    /// Source of tracing spans.
    pub traces: TraceHandle,
    /// Notified when data was deleted and has to be erased from the files of the store.
    pub deletion_notify: Notify,
    /// Cancelled when the server stops accepting requests.
    pub shutdown: CancellationToken,
    /// Cancelled when running messages and turns get no more time.
    pub run_abort: CancellationToken,
    /// Tasks that a stopping server waits for: messages, turns, and other work that is completed even without
    /// its client.
    pub run_tasks: TaskTracker,
}

impl RunEngine {
    /// Creates the state of a starting server.
    pub(crate) fn new(
        loaded_config: LoadedConfig,
        metrics: Metrics,
        traces: TraceHandle,
        store: Arc<dyn Store>,
        settings: Settings,
        keys: KeyRegistry,
        quotas: Quotas,
    ) -> RunEngine {
        RunEngine {
            loaded_config: RwLock::new(Arc::new(loaded_config)),
            conversation_queues: ConversationQueues::new(store.clone()),
            store,
            running: RunRegistry::default(),
            memory: MemoryBudget::default(),
            cpu_pool: CpuPool::new(),
            schemas: SchemaCache::new(),
            contract_texts: ContractFormCache::new(),
            constraint_forms: ContractFormCache::new(),
            desks: DeskRegistry::default(),
            quotas,
            templates: Arc::new(ParsedTemplateCache::new(
                metrics.template_hits.clone(),
                metrics.template_misses.clone(),
            )),
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

    /// Counts a request of a key, on all servers that share the database.
    ///
    /// # Errors
    /// The tokens of the day are used up, too many requests came within a minute, or the database failed.
    pub(crate) async fn admit_request(&self, caller: &Caller) -> Result<(), Problem> {
        let Some(cluster) = self.store.cluster() else {
            return self.quotas.admit(caller, Instant::now(), clock::now());
        };
        self.quotas.check_tokens(caller, clock::now())?;
        let Some(max) = caller.limits.requests_per_minute else { return Ok(()) };
        let wait = match RequestRate::new(max) {
            Some(rate) => cluster.count_request(&caller.key, rate.interval()).await?,
            None => Some(quotas::MINUTE),
        };
        wait.map_or(Ok(()), |wait| Err(quotas::rate_problem(max, wait)))
    }

    /// Takes back the count of a request that was then refused for another reason.
    pub(crate) fn refund_request(&self, key: &str, limits: &KeyLimits) {
        if self.store.cluster().is_none() {
            return self.quotas.refund(key, limits);
        }
        let Some(rate) = limits.requests_per_minute.and_then(RequestRate::new) else { return };
        let (store, key) = (self.store.clone(), key.to_owned());
        self.run_tasks.spawn(async move {
            let Some(cluster) = store.cluster() else { return };
            if let Err(error) = cluster.refund_request(&key, rate.interval()).await {
                tracing::error!(%error, key, "the count of a request could not be taken back");
            }
        });
    }

    /// Returns the number of messages and turns of an owner that run on other servers.
    pub(crate) async fn count_remote_runs(&self, owner: &str) -> Result<usize, Problem> {
        let Some(cluster) = self.store.cluster() else { return Ok(0) };
        Ok(usize::try_from(cluster.count_remote_runs(owner).await?).unwrap_or(usize::MAX))
    }

    /// Charges tokens to the limits of a key, and adds requests and tokens to its stored usage
    /// (`GET /api/v1/usage`). `usage` has the token counts as an upstream reports them.
    pub(crate) async fn charge_key(&self, key: &str, owner: &str, requests: i64, usage: &Value) {
        let added_usage = self.record_usage(key, owner, requests, usage);
        if let Err(error) = self.store.add_usage(&added_usage).await {
            tracing::error!(%error, key, "the usage of a key could not be counted");
        }
    }

    /// Adds figures of replies that belong to no message.
    pub(crate) async fn add_figures(&self, figures: &[Figures]) {
        if let Err(error) = self.store.add_figures(figures).await {
            tracing::error!(%error, "the figures of a reply could not be counted");
        }
    }

    /// Charges tokens to the limits of a key. Returns the row of its requests and tokens, for the caller to
    /// store.
    pub(crate) fn record_usage(&self, key: &str, owner: &str, requests: i64, usage: &Value) -> UsageRow {
        let (tokens, now) = (TokenCounts::from_usage(usage), clock::now());
        self.quotas.spend(key, tokens, now);
        let token_count = |tokens: u64| i64::try_from(tokens).unwrap_or(i64::MAX);
        UsageRow {
            day: day(now),
            key: key.to_owned(),
            name: self.keys.key_name(key),
            owner: owner.to_owned(),
            requests,
            input_tokens: token_count(tokens.input),
            output_tokens: token_count(tokens.output),
        }
    }

    /// Returns the current configuration. Running messages keep the one they began with.
    #[must_use]
    pub(crate) fn loaded_config(&self) -> Arc<LoadedConfig> {
        self.loaded_config.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the configuration for messages that begin from now on, and connects its MCP servers.
    pub(crate) fn replace(&self, loaded_config: LoadedConfig) {
        loaded_config.mcp.start();
        *self.loaded_config.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(loaded_config);
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
        runs.iter().for_each(|live_run| live_run.cancel.cancel());
        for live_run in runs {
            live_run.wait_over().await;
        }
    }

    /// Cancels the running messages whose rows match and waits until they have ended.
    pub(crate) async fn cancel_messages(
        &self,
        predicate: impl Fn(&MessageRow) -> bool,
    ) -> Result<(), Problem> {
        for live_run in self.running.all_messages() {
            let Some(row) = self.store.message(&live_run.id).await? else { continue };
            if predicate(&row) {
                live_run.cancel.cancel();
                live_run.wait_over().await;
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
