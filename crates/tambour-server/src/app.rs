//! What all requests share.

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

/// The state as handlers get it.
pub(crate) type AppState = Arc<App>;

/// The state of the server.
pub(crate) struct App {
    /// What a reload replaces.
    loaded: RwLock<Arc<Loaded>>,
    /// What survives.
    pub store: Arc<dyn Store>,
    /// Messages that are running.
    pub live: Running,
    /// Room for what requests take.
    pub memory: Memory,
    /// Does what takes long and waits for nothing.
    pub aside: Aside,
    /// Schemas of tools that were compiled.
    pub schemas: Schemas,
    /// Where clients leave what running messages wait for.
    pub desks: Desks,
    /// Whose turn it is in each conversation.
    pub turns: Turns,
    /// Requests that may come again and are under way.
    pub claims: Arc<Claims>,
    /// How much may be asked with each key.
    pub quotas: Quotas,
    /// Templates of dialogues that were read.
    pub templates: Arc<ReadTemplates>,
    /// Turns of dialogues that may come again and are under way.
    pub under_way: Arc<UnderWay>,
    /// Messages that run in conversations under names of clients.
    pub threads: Threads,
    /// Event streams that are open.
    pub streams: Arc<Streams>,
    /// Settings that can be changed while it runs.
    pub settings: RwLock<Settings>,
    /// Held while these change, in the database and here.
    pub settings_change: tokio::sync::Mutex<()>,
    /// API keys.
    pub keys: Keys,
    /// What is counted.
    pub metrics: Metrics,
    /// Spans of what happens.
    pub traces: Traces,
    /// Something was deleted, and is to leave the files.
    pub deleted: Notify,
    /// Ends when the server stops taking requests.
    pub closing: CancellationToken,
    /// Ends when running messages get no more time.
    pub halting: CancellationToken,
    /// The runs.
    pub runs: TaskTracker,
}

/// The configuration, and what was made of it.
pub(crate) struct Loaded {
    /// How the server is configured.
    pub config: Config,
    /// Upstreams by name.
    pub upstreams: BTreeMap<String, Arc<Upstream>>,
    /// Calls webhooks.
    pub webhooks: Webhooks,
    /// MCP servers, whose tools messages may name.
    pub mcp: Servers,
    /// Prompts of blocks by their alias.
    pub skeins: BTreeMap<String, Value>,
    /// Whose turn it is among aliases that share their work.
    rotation: Rotation,
}

impl Loaded {
    /// Makes what a configuration describes. MCP servers that are as they were `before` stay connected.
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

    /// The upstream of that name, or the default one.
    #[must_use]
    pub(crate) fn upstream(&self, name: Option<&str>) -> Option<Arc<Upstream>> {
        self.upstreams.get(name.or_else(|| self.config.default_upstream())?).cloned()
    }

    /// The aliases that are asked for an alias, in order, until one gives something that can be used. Those whose upstreams failed
    /// again and again come last.
    pub(crate) fn order<'a>(&'a self, alias: &'a str, now: Instant) -> Vec<&'a str> {
        let mut chain = self.config.chain(alias);
        if chain.len() < 2 {
            return chain;
        }
        let upstream = |name: &str| self.upstream(self.config.aliases[name].upstream.as_deref());
        let well = |name: &str| upstream(name).is_some_and(|upstream| upstream.breaker().is_closed());
        // Stable: the order of the configuration is kept within both.
        chain.sort_by_key(|name| !well(name));
        let weight = |name: &str| self.config.aliases[name].weight.filter(|weight| *weight > 0);
        let first = if weight(alias).is_some() {
            let weighed = |name: &&'a str| well(name).then(|| Some((*name, weight(name)?))).flatten();
            let members: Vec<(&str, u32)> = chain.iter().filter_map(weighed).collect();
            self.rotation.first(alias, &members)
        } else {
            None
        };
        // One that has rested long enough shows how it is, before others are asked.
        let rested = |name: &&str| upstream(name).is_some_and(|upstream| upstream.breaker().try_again(now));
        let first = chain.iter().copied().find(rested).or(first);
        if let Some(at) = first.and_then(|first| chain.iter().position(|name| *name == first)) {
            chain[..=at].rotate_right(1);
        }
        chain
    }
}

/// The messages and turns of dialogues that are running, by id.
#[derive(Default)]
pub(crate) struct Running {
    by_id: Mutex<HashMap<String, OwnedRun>>,
}

/// One of them.
struct OwnedRun {
    owner: String,
    live: Arc<Live>,
    kind: RunKind,
    /// Its conversation or dialogue.
    conversation: String,
    /// Those before it are over; known of a turn.
    reached: bool,
}

/// A turn of a dialogue among what is running, as long as this lasts.
pub(crate) struct RunningTurn {
    app: Arc<App>,
    live: Arc<Live>,
}

impl RunningTurn {
    /// Counts a turn of an owner's dialogue, unless as much runs as may.
    pub(crate) fn begin(app: &Arc<App>, owner: &str, dialogue: &str) -> Option<RunningTurn> {
        let most = app.loaded().config.max_running;
        let live = Live::new(ids::new("turn"));
        let added = app.live.insert((owner, dialogue), RunKind::Turn, live.clone(), most);
        added.then(|| RunningTurn { app: app.clone(), live })
    }

    /// Its readers, and the word to stop.
    pub(crate) fn live(&self) -> &Arc<Live> {
        &self.live
    }

    /// Those before it are over.
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
    /// Adds a message of an owner's conversation, unless the owner has `most` already.
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

    /// The running message of that id.
    pub(crate) fn get(&self, id: &str) -> Option<Arc<Live>> {
        let by_id = self.lock();
        by_id.get(id).filter(|run| run.kind == RunKind::Message).map(|run| run.live.clone())
    }

    /// The running turn of that id.
    pub(crate) fn get_turn(&self, id: &str) -> Option<Arc<Live>> {
        let by_id = self.lock();
        by_id.get(id).filter(|run| run.kind == RunKind::Turn).map(|run| run.live.clone())
    }

    /// The messages that are running.
    pub(crate) fn all(&self) -> Vec<Arc<Live>> {
        self.those(|run| run.kind == RunKind::Message)
    }

    /// The messages of a conversation that are running, those that wait in its line and those that are about to begin too.
    pub(crate) fn messages(&self, conversation: &str) -> Vec<Arc<Live>> {
        self.those(|run| run.kind == RunKind::Message && run.conversation == conversation)
    }

    /// The turn of a dialogue that is running, and those before it that are about to be removed.
    pub(crate) fn reached(&self, dialogue: &str) -> Vec<Arc<Live>> {
        self.those(|run| run.kind == RunKind::Turn && run.conversation == dialogue && run.reached)
    }

    /// The turns of a dialogue, those that wait in its line too.
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

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.lock().len()
    }
}

impl App {
    /// The state of a server that starts.
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

    /// Counts what was asked with a key, for its limits and for `GET /api/v1/usage`.
    pub(crate) async fn spent(&self, key: &str, owner: &str, requests: i64, usage: &Value) {
        let more = self.usage(key, owner, requests, usage);
        if let Err(error) = self.store.add_usage(&more).await {
            tracing::error!(%error, key, "what was asked with a key is not counted");
        }
    }

    /// Adds the figures of a reply that is no message.
    pub(crate) async fn count(&self, figures: &[Figures]) {
        if let Err(error) = self.store.add_figures(figures).await {
            tracing::error!(%error, "figures of a reply are not counted");
        }
    }

    /// Counts what was asked with a key for its limits, and gives what is to be stored of it.
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

    /// The configuration as it is now. What is running keeps the one it began with.
    #[must_use]
    pub(crate) fn loaded(&self) -> Arc<Loaded> {
        self.loaded.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the configuration for what begins from now on.
    pub(crate) fn replace(&self, loaded: Loaded) {
        loaded.mcp.start();
        *self.loaded.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(loaded);
    }

    /// The settings as they are now.
    #[must_use]
    pub(crate) fn settings(&self) -> Settings {
        self.settings.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the settings for what begins from now on. Who calls holds `settings_change`.
    pub(crate) fn replace_settings(&self, settings: Settings) {
        *self.settings.write().unwrap_or_else(PoisonError::into_inner) = settings;
    }

    /// What the server brings to the reading of a reply that comes now.
    #[must_use]
    pub(crate) fn own(&self) -> Own {
        let config = &self.loaded().config;
        Own::new(&config.limits, &config.tools, &self.settings())
    }

    /// Cancels what runs, and waits until it has ended.
    pub(crate) async fn end(&self, runs: Vec<Arc<Live>>) {
        runs.iter().for_each(|live| live.cancel.cancel());
        for live in runs {
            live.ended().await;
        }
    }

    /// Cancels the running messages whose rows fit, and waits until they have ended.
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

    /// Does work to its end, also when the client that asked for it goes away half-way.
    pub(crate) async fn undisturbed<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Problem>> + Send + 'static,
    ) -> Result<T, Problem> {
        self.runs.spawn(work).await.unwrap_or_else(|_| Err(Problem::internal()))
    }
}

/// Makes the upstreams of a configuration.
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
