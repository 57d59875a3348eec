//! Shared state of the server.

mod settings;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Instant;

use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub(crate) use self::settings::{SETTINGS, Settings, VERSION};
use crate::aside::Aside;
use crate::config::{Config, ConfigError, UpstreamConfig};
use crate::dialogues::{ReadTemplates, UnderWay};
use crate::http::Threads;
use crate::http::idempotency::Claims;
use crate::http::problem::Problem;
use crate::ids;
use crate::keys::Keys;
use crate::live::Live;
use crate::mcp::Servers;
use crate::memory::Memory;
use crate::metrics::Metrics;
use crate::quotas::{Quotas, Tokens, day};
use crate::reading::Own;
use crate::rotation::Rotation;
use crate::store::{Figures, MessageRow, RunKind, Store, Usage};
use crate::streams::Streams;
use crate::telemetry::Traces;
use crate::tools::{Desks, Schemas, Webhooks};
use crate::turns::Turns;
use crate::upstream::{Kind, Replay, Service, Source, Upstream};

/// The state as handlers receive it.
pub(crate) type AppState = Arc<App>;

/// The state of the server.
pub(crate) struct App {
    /// Part that a reload replaces.
    loaded: RwLock<Arc<Loaded>>,
    /// Persistent store.
    pub store: Arc<dyn Store>,
    /// Running messages and turns.
    pub live: Running,
    /// Memory budget of requests.
    pub memory: Memory,
    /// Pool for CPU-bound work.
    pub aside: Aside,
    /// Cache of compiled tool schemas.
    pub schemas: Schemas,
    /// Pending confirmations and client results that running messages wait for.
    pub desks: Desks,
    /// Queue of turns in each conversation.
    pub turns: Turns,
    /// Idempotency keys of requests in progress.
    pub claims: Arc<Claims>,
    /// Rate and token limits of keys.
    pub quotas: Quotas,
    /// Cache of parsed dialogue templates.
    pub templates: Arc<ReadTemplates>,
    /// Turns of dialogues in progress that a client may repeat.
    pub under_way: Arc<UnderWay>,
    /// Running messages in conversations named by clients.
    pub threads: Threads,
    /// Open event streams.
    pub streams: Arc<Streams>,
    /// Settings that can be changed at run time.
    pub settings: RwLock<Settings>,
    /// Held while settings change, in the store and in memory.
    pub settings_change: tokio::sync::Mutex<()>,
    /// API keys.
    pub keys: Keys,
    /// Counters.
    pub metrics: Metrics,
    /// Tracing spans.
    pub traces: Traces,
    /// Notified when data was deleted and has to be erased from the files.
    pub deleted: Notify,
    /// Cancelled when the server stops accepting requests.
    pub closing: CancellationToken,
    /// Cancelled when running messages get no more time.
    pub halting: CancellationToken,
    /// Tasks of running messages.
    pub runs: TaskTracker,
}

/// The configuration and everything derived from it.
pub(crate) struct Loaded {
    /// The configuration.
    pub config: Config,
    /// Upstreams by name.
    pub upstreams: BTreeMap<String, Arc<Upstream>>,
    /// Client for webhooks.
    pub webhooks: Webhooks,
    /// MCP servers, whose tools messages may use.
    pub mcp: Servers,
    /// Skeins by alias.
    pub skeins: BTreeMap<String, Value>,
    /// Round-robin state of aliases that share their load.
    rotation: Rotation,
}

impl Loaded {
    /// Builds the state that a configuration describes. MCP servers whose settings equal those in `before`
    /// stay connected.
    pub(crate) fn new(
        config: Config,
        metrics: &Metrics,
        before: Option<&Loaded>,
    ) -> Result<Loaded, ConfigError> {
        config.check()?;
        let upstreams = upstreams(&config, metrics)?;
        let webhooks = Webhooks::new(&config.tools);
        let skeins = config.skeins()?;
        let mcp = Servers::new(&config, before.map(|before| &before.mcp))?;
        Ok(Loaded { config, upstreams, webhooks, mcp, skeins, rotation: Rotation::default() })
    }

    /// Returns the named upstream, or the default one.
    #[must_use]
    pub(crate) fn upstream(&self, name: Option<&str>) -> Option<Arc<Upstream>> {
        self.upstreams.get(name.or_else(|| self.config.default_upstream())?).cloned()
    }

    /// Returns the chain of aliases to try for an alias, in order, until one gives a usable reply. Aliases
    /// whose upstreams keep failing come last.
    pub(crate) fn order<'a>(&'a self, alias: &'a str, now: Instant) -> Vec<&'a str> {
        let mut chain = self.config.chain(alias);
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
            self.rotation.first(alias, &members)
        } else {
            None
        };
        // An upstream whose pause is over is probed first.
        let rested = |name: &&str| upstream(name).is_some_and(|upstream| upstream.breaker().try_again(now));
        let first = chain.iter().copied().find(rested).or(first);
        if let Some(at) = first.and_then(|first| chain.iter().position(|name| *name == first)) {
            chain[..=at].rotate_right(1);
        }
        chain
    }
}

/// Running messages and turns of dialogues, by id.
#[derive(Default)]
pub(crate) struct Running {
    by_id: Mutex<HashMap<String, OwnedRun>>,
}

/// Running message or turn with its owner.
struct OwnedRun {
    owner: String,
    live: Arc<Live>,
    kind: RunKind,
    /// Id of its conversation or dialogue.
    conversation: String,
    /// Set for a turn once the turns before it are over.
    reached: bool,
}

/// Registration of a turn of a dialogue; dropping it removes the turn.
pub(crate) struct RunningTurn {
    app: Arc<App>,
    live: Arc<Live>,
}

impl RunningTurn {
    /// Registers a turn of an owner's dialogue, or returns `None` at the limit.
    pub(crate) fn begin(app: &Arc<App>, owner: &str, dialogue: &str) -> Option<RunningTurn> {
        let most = app.loaded().config.max_running;
        let live = Live::new(ids::new("turn"));
        let added = app.live.insert((owner, dialogue), RunKind::Turn, live.clone(), most);
        added.then(|| RunningTurn { app: app.clone(), live })
    }

    /// Returns the handle with its readers and its cancellation.
    pub(crate) fn live(&self) -> &Arc<Live> {
        &self.live
    }

    /// Marks the turn as first in its queue.
    pub(crate) fn reached(&self) {
        let mut by_id = self.app.live.lock();
        if let Some(turn) = by_id.get_mut(&self.live.id) {
            turn.reached = true;
        }
    }
}

impl Drop for RunningTurn {
    fn drop(&mut self) {
        self.live.end();
        self.app.live.remove(&self.live.id);
    }
}

impl Running {
    /// Adds a message of an owner's conversation; `false` if the owner has `most` already.
    pub(crate) fn add(&self, owner: &str, conversation: &str, live: Arc<Live>, most: usize) -> bool {
        self.insert((owner, conversation), RunKind::Message, live, most)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, OwnedRun>> {
        self.by_id.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn insert(
        &self,
        (owner, conversation): (&str, &str),
        kind: RunKind,
        live: Arc<Live>,
        most: usize,
    ) -> bool {
        let mut by_id = self.lock();
        if by_id.len() >= most && by_id.values().filter(|other| other.owner == owner).count() >= most {
            return false;
        }
        let (owner, conversation) = (owner.to_owned(), conversation.to_owned());
        by_id.insert(live.id.clone(), OwnedRun { owner, live, kind, conversation, reached: false });
        true
    }

    /// Returns the running message of that id.
    pub(crate) fn get(&self, id: &str) -> Option<Arc<Live>> {
        let by_id = self.lock();
        by_id.get(id).filter(|run| run.kind == RunKind::Message).map(|run| run.live.clone())
    }

    /// Returns the running turn of that id.
    pub(crate) fn get_turn(&self, id: &str) -> Option<Arc<Live>> {
        let by_id = self.lock();
        by_id.get(id).filter(|run| run.kind == RunKind::Turn).map(|run| run.live.clone())
    }

    /// Returns all running messages.
    pub(crate) fn all(&self) -> Vec<Arc<Live>> {
        self.those(|run| run.kind == RunKind::Message)
    }

    /// Returns the running messages of a conversation, including queued ones and ones about to begin.
    pub(crate) fn messages(&self, conversation: &str) -> Vec<Arc<Live>> {
        self.those(|run| run.kind == RunKind::Message && run.conversation == conversation)
    }

    /// Returns the active turn of a dialogue, and ended ones not yet removed.
    pub(crate) fn reached(&self, dialogue: &str) -> Vec<Arc<Live>> {
        self.those(|run| run.kind == RunKind::Turn && run.conversation == dialogue && run.reached)
    }

    /// Returns the turns of a dialogue, including queued ones.
    pub(crate) fn turns(&self, dialogue: &str) -> Vec<Arc<Live>> {
        self.those(|run| run.kind == RunKind::Turn && run.conversation == dialogue)
    }

    fn those(&self, fit: impl Fn(&OwnedRun) -> bool) -> Vec<Arc<Live>> {
        self.lock().values().filter(|run| fit(run)).map(|run| run.live.clone()).collect()
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
        loaded: Loaded,
        (metrics, traces): (Metrics, Traces),
        store: Arc<dyn Store>,
        settings: Settings,
        keys: Keys,
        quotas: Quotas,
    ) -> App {
        App {
            loaded: RwLock::new(Arc::new(loaded)),
            store,
            live: Running::default(),
            memory: Memory::default(),
            aside: Aside::new(),
            schemas: Schemas::new(),
            desks: Desks::default(),
            turns: Turns::default(),
            claims: Arc::default(),
            quotas,
            templates: Arc::new(ReadTemplates::new(
                metrics.template_hits.clone(),
                metrics.template_misses.clone(),
            )),
            under_way: Arc::default(),
            threads: Threads::default(),
            streams: Arc::default(),
            settings: RwLock::new(settings),
            settings_change: tokio::sync::Mutex::default(),
            keys,
            metrics,
            traces,
            deleted: Notify::new(),
            closing: CancellationToken::new(),
            halting: CancellationToken::new(),
            runs: TaskTracker::new(),
        }
    }

    /// Charges usage to a key: for its limits and for `GET /api/v1/usage`.
    pub(crate) async fn spent(&self, key: &str, owner: &str, requests: i64, usage: &Value) {
        let more = self.usage(key, owner, requests, usage);
        if let Err(error) = self.store.add_usage(&more).await {
            tracing::error!(%error, key, "what was asked with a key is not counted");
        }
    }

    /// Adds the figures of a reply that belongs to no message.
    pub(crate) async fn count(&self, figures: &[Figures]) {
        if let Err(error) = self.store.add_figures(figures).await {
            tracing::error!(%error, "figures of a reply are not counted");
        }
    }

    /// Charges usage to the limits of a key; returns the row to store.
    pub(crate) fn usage(&self, key: &str, owner: &str, requests: i64, usage: &Value) -> Usage {
        let (tokens, now) = (Tokens::of(usage), Timestamp::now());
        self.quotas.spend(key, tokens, now);
        let count = |tokens: u64| i64::try_from(tokens).unwrap_or(i64::MAX);
        Usage {
            day: day(now),
            key: key.to_owned(),
            name: self.keys.name(key),
            owner: owner.to_owned(),
            requests,
            input_tokens: count(tokens.input),
            output_tokens: count(tokens.output),
        }
    }

    /// Returns the current configuration. Running messages keep the one they began with.
    #[must_use]
    pub(crate) fn loaded(&self) -> Arc<Loaded> {
        self.loaded.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the configuration for messages that begin from now on.
    pub(crate) fn replace(&self, loaded: Loaded) {
        loaded.mcp.start();
        *self.loaded.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(loaded);
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
    pub(crate) fn own(&self) -> Own {
        let config = &self.loaded().config;
        Own::new(&config.limits, &config.tools, &self.settings())
    }

    /// Cancels runs and waits until they have ended.
    pub(crate) async fn end(&self, runs: Vec<Arc<Live>>) {
        runs.iter().for_each(|live| live.cancel.cancel());
        for live in runs {
            live.ended().await;
        }
    }

    /// Cancels the running messages whose rows match and waits until they have ended.
    pub(crate) async fn end_all(&self, fits: impl Fn(&MessageRow) -> bool) -> Result<(), Problem> {
        for live in self.live.all() {
            let Some(row) = self.store.message(&live.id).await? else { continue };
            if fits(&row) {
                live.cancel.cancel();
                live.ended().await;
            }
        }
        Ok(())
    }

    /// Runs work to completion, even if the client that requested it disconnects.
    pub(crate) async fn undisturbed<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Problem>> + Send + 'static,
    ) -> Result<T, Problem> {
        self.runs.spawn(work).await.unwrap_or_else(|_| Err(Problem::internal()))
    }
}

/// Creates the upstreams of a configuration.
pub(crate) fn upstreams(
    config: &Config,
    metrics: &Metrics,
) -> Result<BTreeMap<String, Arc<Upstream>>, ConfigError> {
    let make = |(name, given): (&String, &UpstreamConfig)| {
        let made =
            Upstream::new(name, source(name, given, config)?, &metrics.upstreams, given.prices.clone());
        Ok((name.clone(), Arc::new(made)))
    };
    config.upstreams.iter().map(make).collect()
}

fn source(name: &str, given: &UpstreamConfig, config: &Config) -> Result<Source, ConfigError> {
    let wrong = |field: &str, what: &str| config.wrong(&format!("upstreams.{name}.{field}"), what);
    match given.kind.as_str() {
        "demo" => Replay::demo().map(Source::Replay).map_err(|error| wrong("kind", &error)),
        "replay" => {
            let read = Replay::file(given.url.as_ref()).map(Source::Replay);
            read.map_err(|error| wrong("url", &format!("names no recordings: {error}")))
        }
        other => {
            let Some(kind) = Kind::named(other) else {
                let known = Kind::ALL.map(Kind::name).join(", ");
                let what = format!("is `{other}`, and there is no such kind; known: {known}, replay, demo");
                return Err(wrong("kind", &what));
            };
            let (url, key) = (config.base_url(name, kind, given)?, config.upstream_key(name, given)?);
            Service::new(kind, url, given.model.clone(), key, config.timeouts)
                .map(|service| Source::Service(Box::new(service)))
                .map_err(|error| wrong("url", &format!("cannot be asked over TLS: {error}")))
        }
    }
}
