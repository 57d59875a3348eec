//! Start, serve, stop.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::app::{App, Loaded, Settings};
use crate::config::{Config, ConfigError};
use crate::http::router;
use crate::keys::{CONFIGURED, Keys, LOCAL};
use crate::metrics::Metrics;
use crate::reading::Own;
use crate::record;
use crate::reload::{HangUps, Reload};
use crate::store::{Store, StoreError};
use crate::{data_folder, descriptors, sweep};

/// Why the server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The address cannot be listened on.
    #[error("cannot listen on {0}: {1}")]
    Listen(SocketAddr, std::io::Error),
    /// Others could reach the server, and no key protects it.
    #[error(
        "refusing to listen on {0} without an API key: set TAMBOUR_API_KEY, or make an admin key while listening on 127.0.0.1"
    )]
    Unprotected(SocketAddr),
}

/// A server that is listening.
pub struct Server {
    app: Arc<App>,
    listener: TcpListener,
    address: SocketAddr,
    load: Option<Load>,
}

/// How long runs and connections get to end once they have been told to.
const HALT: Duration = Duration::from_secs(5);

/// Makes a configuration.
type Load = Box<dyn Fn() -> Result<Config, ConfigError> + Send + Sync>;

impl Server {
    /// Opens the store, closes what a crash left open, and listens.
    ///
    /// # Errors
    /// See [`StartError`].
    pub async fn start(config: Config) -> Result<Server, StartError> {
        descriptors::raise();
        let metrics = Metrics::new();
        let loaded = Loaded::new(config, &metrics)?;
        let config = &loaded.config;
        let (listen, configured) = (config.listen, config.api_key.clone().filter(|key| !key.is_empty()));
        let file = config.database_file()?;
        data_folder::prepare(&file, &config.data).map_err(StoreError::Folder)?;
        let store = Store::open(&file, config.durable).await?;
        let keys = Keys::new(store.keys().await?, configured.as_deref());
        if keys.is_empty() && !listen.ip().is_loopback() {
            return Err(StartError::Unprotected(listen));
        }
        if configured.is_some() && store.keys().await?.is_empty() {
            // The first key takes over what the local user had.
            store.hand_over(LOCAL, CONFIGURED).await?;
        }
        let settings = Settings::load(&store).await?;
        // Another server with the same data would be refused here, before its running messages are taken for dead ones.
        let failed = |error| StartError::Listen(listen, error);
        let listener = TcpListener::bind(listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let interrupted =
            record::recover(&store, &Own::new(&config.limits, &config.tools, &settings)).await?;
        if interrupted > 0 {
            tracing::warn!(interrupted, "messages that were running have been closed");
        }
        Ok(Server {
            app: Arc::new(App::new(loaded, metrics, store, settings, keys)),
            listener,
            address,
            load: None,
        })
    }

    /// Loads the configuration again with `load` when the process gets SIGHUP; streams go on.
    #[must_use]
    pub fn reloading(
        mut self,
        load: impl Fn() -> Result<Config, ConfigError> + Send + Sync + 'static,
    ) -> Server {
        self.load = Some(Box::new(load));
        self
    }

    /// What replaces the configuration while the server runs.
    #[must_use]
    pub fn reload(&self) -> Reload {
        Reload { app: self.app.clone() }
    }

    /// The address it listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop`, then drains: no new messages, running ones get `drain_ms`, then they are cancelled.
    pub async fn serve(self, stop: impl Future<Output = ()>) {
        let reload = self.reload();
        let Server { app, listener, load, .. } = self;
        let mut hang_ups = HangUps::new(load.is_some());
        let sweep = tokio::spawn(sweep::run(app.clone()));
        let service = TowerToHyperService::new(router(app.clone()));
        let connections = TaskTracker::new();
        let hang_up = CancellationToken::new();
        let mut stop = std::pin::pin!(stop);
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = &mut stop => break,
                () = app.store.dead() => {
                    tracing::error!("the store cannot go on; the server stops");
                    break;
                }
                () = hang_ups.next() => {
                    if let Some(load) = &load {
                        reload.read_again(load).await;
                    }
                    continue;
                }
            };
            match accepted {
                Ok((socket, _)) => {
                    connections.spawn(connection(socket, service.clone(), hang_up.clone()));
                }
                Err(error) => {
                    // Out of file descriptors, most likely: others may free some.
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
        drop(listener);
        app.closing.cancel();
        app.runs.close();
        let drain = Duration::from_millis(app.loaded().config.drain_ms);
        if tokio::time::timeout(drain, app.runs.wait()).await.is_err() {
            app.halting.cancel();
            if tokio::time::timeout(HALT, app.runs.wait()).await.is_err() {
                // They wait for room on the disk.
                app.store.give_up();
                let _ = tokio::time::timeout(HALT, app.runs.wait()).await;
            }
        }
        hang_up.cancel();
        connections.close();
        let _ = tokio::time::timeout(HALT, connections.wait()).await;
        let _ = sweep.await;
        app.store.close().await;
    }
}

/// Serves one connection. After `hang_up` it takes no further request and ends with the one under way.
async fn connection(
    socket: TcpStream,
    service: TowerToHyperService<axum::Router>,
    hang_up: CancellationToken,
) {
    // Small frames leave at once.
    let _ = socket.set_nodelay(true);
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(Duration::from_secs(30)).max_buf_size(16 << 10);
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(socket), service));
    tokio::select! {
        served = connection.as_mut() => {
            if let Err(error) = served {
                tracing::debug!(%error, "a connection ended");
            }
            return;
        }
        () = hang_up.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}
