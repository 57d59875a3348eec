//! Server lifecycle: start, serve, drain and stop.

mod cluster_sync;
pub mod logs;
mod open_store;
pub(crate) mod reload;
mod stream_watch;
mod supervise;
mod sweep;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::base::clock;
use crate::base::ids;
use crate::base::metrics::Metrics;
use crate::base::settings::Settings;
use crate::base::{connection, descriptors};
use crate::config::reading_defaults::ReadingDefaults;
use crate::config::{Config, ConfigError};
use crate::http::app::App;
use crate::http::build_router;
use crate::http::peer_logs::PeerLogs;
use crate::record;
use crate::run::engine::RunEngine;
use crate::run::keys::{CONFIGURED_KEY, KeyRegistry, LOCAL_OWNER};
use crate::run::loaded_config::LoadedConfig;
use crate::run::quotas::{self, Quotas};
use crate::store::{Store, StoreError, UsageRow};
use crate::telemetry::TraceHandle;
use reload::{HangUpSignals, ReloadHandle};

/// Reason why the server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The address cannot be bound.
    #[error("cannot listen on {0}: {1}")]
    Listen(SocketAddr, std::io::Error),
    /// Other machines could reach the server, and no key protects it.
    #[error(
        "refusing to listen on {0} without an API key: set TAMBOUR_API_KEY, or make an admin key while listening on 127.0.0.1"
    )]
    Unprotected(SocketAddr),
    /// The servers that share a database could not tell their users apart.
    #[error(
        "refusing to share a database without an API key: set TAMBOUR_API_KEY to the same key on all servers"
    )]
    UnprotectedCluster,
}

/// The server has stopped by itself because its store failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the server has stopped because its store failed; the log says why")]
pub struct ServerFailed;

/// A server that is listening.
pub struct Server {
    app: Arc<App>,
    listener: TcpListener,
    /// Address that the listener is bound to.
    address: SocketAddr,
    /// Loads the configuration when the process receives SIGHUP; absent if the signal reloads nothing.
    load_config: Option<ConfigLoader>,
    hang_up_signals: HangUpSignals,
}

/// Time that each step of the stop gets: the end of interrupted runs, the end of runs that wait for disk space,
/// and the end of connections.
const HALT_TIMEOUT: Duration = Duration::from_secs(5);

/// Time that the current step of the sweep gets to end when the server stops.
const SWEEP_TIMEOUT: Duration = Duration::from_millis(500);

/// Function that loads the configuration again.
type ConfigLoader = Box<dyn Fn() -> Result<Config, ConfigError> + Send + Sync>;

/// Reads today's token usage of each key.
async fn load_quotas(store: &dyn Store) -> Result<Quotas, StoreError> {
    let today = quotas::day(clock::now());
    Ok(Quotas::new(&today, token_usage(store, &today).await?.into_iter()))
}

/// Reads the tokens that each key, by id, has used on a day.
async fn token_usage(store: &dyn Store, day: &str) -> Result<Vec<(String, u64)>, StoreError> {
    let usage_rows = store.usage(None, (day, day), None, u32::MAX).await?;
    let key_tokens = |usage: UsageRow| {
        let tokens = usage.input_tokens.saturating_add(usage.output_tokens);
        (usage.key, u64::try_from(tokens).unwrap_or(0))
    };
    Ok(usage_rows.into_iter().map(key_tokens).collect())
}

impl Server {
    /// Opens the store, closes messages that a crash left open, and listens.
    ///
    /// # Errors
    /// See [`StartError`].
    pub async fn start(config: Config) -> Result<Server, StartError> {
        descriptors::raise_limit();
        let metrics = Metrics::new();
        let loaded_config = LoadedConfig::new(config, &metrics, None)?;
        let config = &loaded_config.config;
        for variable in &config.unknown_variables {
            tracing::warn!(variable, "unknown variable: no field of the configuration has this name");
        }
        let traces = TraceHandle::start(&config.telemetry, &config.origins)?;
        let (listen, configured_key) = (config.listen, config.api_key.clone().filter(|key| !key.is_empty()));
        let store = open_store::open_store(config, &metrics).await?;
        let keys = KeyRegistry::new(store.keys().await?, configured_key.as_deref());
        if keys.is_empty() && !listen.ip().is_loopback() {
            return Err(StartError::Unprotected(listen));
        }
        let keys = match store.cluster() {
            Some(_) if keys.is_empty() => return Err(StartError::UnprotectedCluster),
            Some(_) => keys.without_local_user(),
            None => keys,
        };
        if configured_key.is_some() && store.keys().await?.is_empty() {
            // Without a stored key, the configured key is the first key of this server: it takes over the data
            // of the local user (stored by requests without a key), if there is any.
            store.hand_over(LOCAL_OWNER, CONFIGURED_KEY).await?;
        }
        let settings = Settings::from_stored(store.settings().await?);
        let quotas = load_quotas(&*store).await?;
        // Bound before `recover`: a second server with the same data and address fails here, before it takes
        // the running messages of the first one for abandoned.
        let listen_error = |error| StartError::Listen(listen, error);
        let listener = TcpListener::bind(listen).await.map_err(listen_error)?;
        let address = listener.local_addr().map_err(listen_error)?;
        if store.cluster().is_none() {
            // Servers that share a database look for abandoned messages all the time (`cluster_sync`).
            let defaults = ReadingDefaults::new(&config.limits, &config.tools, &settings);
            let interrupted = record::recover(&*store, &defaults).await?;
            if interrupted > 0 {
                tracing::warn!(interrupted, "interrupted messages have been closed");
            }
        }
        let own_address = config.cluster.address.clone().unwrap_or_else(|| format!("http://{address}"));
        let configured_secret = config.cluster_secret()?;
        loaded_config.mcp.start();
        let engine = RunEngine::new(loaded_config, metrics, traces, store.clone(), settings, keys, quotas);
        let app = Arc::new(App::new(engine));
        if let Some(cluster) = store.cluster() {
            let secret = match configured_secret {
                Some(secret) => secret,
                None => cluster.secret(&ids::new_secret()).await?,
            };
            if let Some(peer_logs) = PeerLogs::new(secret.clone()) {
                cluster.set_peer_reader(Arc::new(peer_logs));
            }
            let _ = app.cluster_secret.set(secret);
            cluster.publish_address(&own_address).await?;
        }
        Ok(Server {
            app,
            listener,
            address,
            load_config: None,
            // Disabled until `with_reload` subscribes to the signal.
            hang_up_signals: HangUpSignals::new(false),
        })
    }

    /// Reloads the configuration with `load_config` when the process receives SIGHUP; streams continue.
    #[must_use]
    pub fn with_reload(
        mut self,
        load_config: impl Fn() -> Result<Config, ConfigError> + Send + Sync + 'static,
    ) -> Server {
        self.load_config = Some(Box::new(load_config));
        // Subscribed now, not in `serve`: without a handler the signal ends the process.
        self.hang_up_signals = HangUpSignals::new(true);
        self
    }

    /// Returns the handle that replaces the configuration while the server runs.
    #[must_use]
    pub fn reload_handle(&self) -> ReloadHandle {
        ReloadHandle { app: self.app.clone() }
    }

    /// Returns the store, for tests in which another server claims its runs.
    #[must_use]
    pub fn store(&self) -> Arc<dyn Store> {
        self.app.store.clone()
    }

    /// Returns the address that the server listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` is ready, then drains: no message begins; running ones get `drain_ms` and are then
    /// interrupted.
    ///
    /// # Errors
    /// The server has stopped by itself because its store failed. Nothing that a client has seen is lost; the
    /// next start recovers it from the journal.
    pub async fn serve(self, stop: impl Future<Output = ()>) -> Result<(), ServerFailed> {
        let reload = self.reload_handle();
        let Server { app, listener, load_config, mut hang_up_signals, .. } = self;
        let mut sweep = tokio::spawn(supervise::run_supervised(app.clone(), "sweep", sweep::run));
        tokio::spawn(supervise::run_supervised(app.clone(), "watch", stream_watch::watch_streams));
        tokio::spawn(supervise::run_supervised(app.clone(), "cluster", cluster_sync::run));
        let service = TowerToHyperService::new(build_router(app.clone()));
        let connections = TaskTracker::new();
        let connection_stop = CancellationToken::new();
        let mut stop = std::pin::pin!(stop);
        let mut result = Ok(());
        loop {
            let accept_result = tokio::select! {
                accept_result = listener.accept() => accept_result,
                () = &mut stop => break,
                () = app.store.wait_dead() => {
                    tracing::error!("the store failed; the server stops");
                    result = Err(ServerFailed);
                    break;
                }
                () = hang_up_signals.next() => {
                    if let Some(load_config) = &load_config {
                        reload.load_and_apply(load_config).await;
                    }
                    continue;
                }
            };
            match accept_result {
                Ok((socket, _)) => {
                    connections.spawn(connection::serve(socket, service.clone(), connection_stop.clone()));
                }
                Err(error) => {
                    // The process has probably run out of file descriptors. The pause gives other connections
                    // time to free some.
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
        drop(listener);
        app.shutdown.cancel();
        app.run_tasks.close();
        let drain = Duration::from_millis(app.loaded_config().config.drain_ms);
        let drain_end = tokio::time::Instant::now() + drain;
        if tokio::time::timeout(drain, app.run_tasks.wait()).await.is_err() {
            app.run_abort.cancel();
            if tokio::time::timeout(HALT_TIMEOUT, app.run_tasks.wait()).await.is_err() {
                // The remaining runs wait for disk space: their writes are given up.
                app.store.release_waiters();
                let _ = tokio::time::timeout(HALT_TIMEOUT, app.run_tasks.wait()).await;
            }
        }
        connection_stop.cancel();
        connections.close();
        let _ = tokio::time::timeout(HALT_TIMEOUT, connections.wait()).await;
        // The sweep ends after its current step. A step that takes too long is abandoned: it has no effect,
        // or the next start completes it.
        let sweep_deadline = drain_end.max(tokio::time::Instant::now() + SWEEP_TIMEOUT);
        if tokio::time::timeout_at(sweep_deadline, &mut sweep).await.is_err() {
            tracing::warn!("deleted data is still in the files; the next start removes it");
            sweep.abort();
        }
        app.loaded_config().mcp.stop().await;
        app.store.close().await;
        app.traces.stop().await;
        result
    }
}
