//! One MCP server: connected in the background with retries, and queried for its tools when they change.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rmcp::model::CallToolRequestParams;
use rmcp::service::{Peer, ServiceError};
use rmcp::{RoleClient, service::ClientCacheConfig};
use serde_json::Value;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::connect::{Connection, NoConnection};
use super::{Bounds, Listed, offered, result};
use crate::config::McpConfig;
use crate::fail;
use crate::supervise::{Pauses, millis};
use crate::tools::Trouble;
use crate::upstream::redacted;

/// Pause after the first failure, and shortest time between two attempts.
const PAUSE: Duration = Duration::from_secs(1);
/// Longest pause.
const LONGEST: Duration = Duration::from_secs(60);
/// Time that a request waits for a server that was never reached.
const REACH: Duration = Duration::from_secs(5);
/// Most characters of an error in the log.
const LOGGED: usize = 500;

/// Handle of a server; dropping it disconnects.
pub(super) struct Server {
    shared: Arc<Shared>,
    tasks: TaskTracker,
    started: AtomicBool,
    _left: DropGuard,
}

struct Shared {
    name: String,
    given: McpConfig,
    key: Option<String>,
    bounds: Bounds,
    state: watch::Sender<State>,
    /// Tools as last listed; absent before the first time.
    listed: RwLock<Option<Arc<Vec<Listed>>>>,
    /// Notified when a call needs a connection.
    wanted: Notify,
    /// Notified when the connection may be broken.
    doubted: Notify,
    leaving: CancellationToken,
}

/// State of the connection.
enum State {
    /// Connecting, or waiting for the next attempt.
    Pending,
    Up(Up),
    /// The last attempt failed, for this reason.
    Down(String),
}

#[derive(Clone)]
struct Up {
    peer: Peer<RoleClient>,
    /// Set when its program sent a message that was too long.
    too_long: Option<Arc<AtomicBool>>,
}

impl Server {
    pub(super) fn new(name: &str, given: McpConfig, key: Option<String>, bounds: Bounds) -> Server {
        let leaving = CancellationToken::new();
        let shared = Shared {
            name: name.to_owned(),
            given,
            key,
            bounds,
            state: watch::Sender::new(State::Pending),
            listed: RwLock::default(),
            wanted: Notify::new(),
            doubted: Notify::new(),
            leaving: leaving.clone(),
        };
        Server {
            shared: Arc::new(shared),
            tasks: TaskTracker::new(),
            started: AtomicBool::new(false),
            _left: leaving.drop_guard(),
        }
    }

    /// Returns `true` if it has exactly these settings.
    pub(super) fn is(&self, given: &McpConfig, key: Option<&str>, bounds: Bounds) -> bool {
        let Shared { given: own, key: own_key, bounds: own_bounds, .. } = &*self.shared;
        own == given && own_key.as_deref() == key && *own_bounds == bounds
    }

    pub(super) fn name(&self) -> &str {
        &self.shared.name
    }

    pub(super) fn config(&self) -> &McpConfig {
        &self.shared.given
    }

    /// Returns the state of the connection: `connected`, `connecting` or `failed`, the last with its reason.
    pub(super) fn state(&self) -> (&'static str, Option<String>) {
        match &*self.shared.state.borrow() {
            State::Up(up) if !up.peer.is_transport_closed() => ("connected", None),
            State::Up(_) | State::Pending => ("connecting", None),
            State::Down(error) => ("failed", Some(redacted(error))),
        }
    }

    /// Starts connecting in the background, once.
    pub(super) fn start(&self) {
        if !self.started.swap(true, Ordering::Relaxed) {
            self.tasks.spawn(kept(self.shared.clone()));
        }
    }

    /// Closes the connection and its program.
    pub(super) async fn stop(&self) {
        self.shared.leaving.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Returns the known tools.
    pub(super) fn listed(&self) -> Vec<Listed> {
        self.shared.known().map(|listed| listed.to_vec()).unwrap_or_default()
    }

    /// Returns a known tool by its exposed name.
    pub(super) fn tool(&self, name: &str) -> Option<Listed> {
        self.shared.known()?.iter().find(|listed| listed.name == name).cloned()
    }

    /// Returns `true` if it has listed its tools at least once.
    pub(super) fn is_known(&self) -> bool {
        self.shared.known().is_some()
    }

    /// Waits briefly for a connection or a failed attempt: a request waits with it.
    pub(super) async fn reach(&self) -> bool {
        timeout(REACH, self.shared.up()).await.ok().flatten().is_some()
    }

    /// Runs a tool, once: a call that may have had effects is not repeated.
    pub(super) async fn call(&self, tool: &str, args: &Value) -> Result<Value, Trouble> {
        let Shared { name, bounds, doubted, .. } = &*self.shared;
        let until = Instant::now() + bounds.time;
        let down = || Trouble::ServerDown(name.clone());
        let up = self.shared.up().await.ok_or_else(down)?;
        let mut params = CallToolRequestParams::new(tool.to_owned());
        match args {
            Value::Object(args) => params = params.with_arguments(args.clone()),
            Value::Null => {}
            _ => {
                return Err(Trouble::ServerRefused(
                    "arguments of an MCP server's tool are an object".to_owned(),
                ));
            }
        }
        match tokio::time::timeout_at(until, up.peer.call_tool_once(params)).await {
            Ok(Ok(answer)) => result::result(answer, bounds.result),
            Ok(Err(error)) => {
                tracing::warn!(mcp = name, tool, error = %Said(&error), "a call of an MCP server failed");
                if up.too_long.is_some_and(|too_long| too_long.load(Ordering::Relaxed)) {
                    return Err(Trouble::ResultTooLarge(bounds.result));
                }
                let trouble = result::trouble(&error, name, bounds.result);
                if matches!(trouble, Trouble::ServerDown(_) | Trouble::ServerBroken) {
                    doubted.notify_one();
                }
                Err(trouble)
            }
            Err(_) => {
                doubted.notify_one();
                let ms = u64::try_from(bounds.time.as_millis()).unwrap_or(u64::MAX);
                Err(Trouble::ServerTimeout(ms))
            }
        }
    }
}

/// Keeps the connection task running until the server is dropped; restarts it after a panic.
async fn kept(shared: Arc<Shared>) {
    let mut pauses = Pauses::new(PAUSE, LONGEST);
    loop {
        let began = Instant::now();
        let Err(error) = tokio::spawn(shared.clone().keep()).await else { return };
        if !error.is_panic() {
            // Cancelled: the runtime is shutting down.
            return;
        }
        shared.state.send_replace(State::Down("the connection panicked; it is made again".to_owned()));
        let pause = pauses.behind(began.elapsed());
        let again_ms = millis(pause);
        tracing::error!(
            mcp = shared.name,
            again_ms,
            "the connection to an MCP server panicked; it is made again"
        );
        if !shared.rested(began, pause).await {
            return;
        }
    }
}

impl Shared {
    fn known(&self) -> Option<Arc<Vec<Listed>>> {
        self.listed.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_listed(&self, listed: Vec<Listed>) {
        tracing::info!(mcp = self.name, tools = listed.len(), "tools of an MCP server have joined");
        *self.listed.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(listed));
    }

    /// Returns the connection; without one, that of the next attempt.
    async fn up(&self) -> Option<Up> {
        let mut state = self.state.subscribe();
        match &*state.borrow_and_update() {
            // A connection that has just ended is followed by another one.
            State::Up(up) if !up.peer.is_transport_closed() => return Some(up.clone()),
            _ => {}
        }
        self.wanted.notify_one();
        let attempted = async {
            while state.changed().await.is_ok() {
                match &*state.borrow_and_update() {
                    State::Up(up) => return Some(up.clone()),
                    State::Down(_) => return None,
                    State::Pending => {}
                }
            }
            None
        };
        timeout(self.bounds.time, attempted).await.ok().flatten()
    }

    /// Stays connected until the server is dropped.
    async fn keep(self: Arc<Shared>) {
        let mut pauses = Pauses::new(PAUSE, LONGEST);
        loop {
            let began = Instant::now();
            let opened = tokio::select! {
                () = self.leaving.cancelled() => break,
                opened = timeout(self.bounds.time, self.open()) => opened,
            };
            match opened.unwrap_or(Err(NoConnection::Slow(self.bounds.time))) {
                Ok(connection) => self.stay(connection).await,
                Err(error) => {
                    let error = secretless(&error, &self.given);
                    tracing::warn!(mcp = self.name, error, "an MCP server cannot be reached");
                    self.state.send_replace(State::Down(error));
                }
            }
            if !self.rested(began, pauses.behind(began.elapsed())).await {
                break;
            }
        }
    }

    /// Waits for the next attempt: for a pause, cut short when a call needs a connection. Returns `false` if
    /// the server is dropped.
    async fn rested(&self, began: Instant, pause: Duration) -> bool {
        tokio::select! {
            () = self.leaving.cancelled() => false,
            () = sleep(pause) => true,
            () = async { self.wanted.notified().await; sleep_until(began + PAUSE).await } => true,
        }
    }

    /// Connects and lists the tools.
    async fn open(&self) -> Result<Connection, NoConnection> {
        let connection =
            Connection::open(&self.name, &self.given, self.key.as_deref(), self.bounds.result).await?;
        // The tools are listed when they change.
        connection.service.set_response_cache_config(ClientCacheConfig::disabled()).await;
        self.set_listed(self.list(connection.service.peer()).await?);
        Ok(connection)
    }

    /// Lists the tools.
    async fn list(&self, peer: &Peer<RoleClient>) -> Result<Vec<Listed>, NoConnection> {
        fail::point("mcp");
        offered::list(&self.name, &self.given, peer).await
    }

    /// Provides a connection to calls until it ends.
    async fn stay(&self, connection: Connection) {
        let Connection { service, changed, program } = connection;
        let peer = service.peer().clone();
        let end = service.cancellation_token();
        self.state.send_replace(State::Up(Up { peer: peer.clone(), too_long: program.said_too_much() }));
        tracing::info!(mcp = self.name, "an MCP server is connected");
        let mut ended = std::pin::pin!(service.waiting());
        let mut refreshing = std::pin::pin!(self.refresh(&peer, &changed));
        let over = tokio::select! {
            _ = &mut ended => true,
            () = self.leaving.cancelled() => false,
            () = &mut refreshing => false,
        };
        self.state.send_replace(State::Pending);
        if !over {
            end.cancel();
            let _ = timeout(PAUSE, ended).await;
        }
        program.end(&self.name).await;
        tracing::info!(mcp = self.name, "the connection to an MCP server has ended");
    }

    /// Lists the tools again when they change, at most once a second. Returns when the connection is suspect
    /// and listing fails too.
    async fn refresh(&self, peer: &Peer<RoleClient>, changed: &Notify) {
        loop {
            let doubted = tokio::select! {
                () = changed.notified() => false,
                () = self.doubted.notified() => true,
            };
            let began = Instant::now();
            let listed = timeout(self.bounds.time, self.list(peer)).await;
            if doubted && !matches!(listed, Ok(Ok(_))) {
                return;
            }
            match listed {
                Ok(Ok(listed)) => self.set_listed(listed),
                Ok(Err(error)) => {
                    let error = secretless(&error, &self.given);
                    tracing::warn!(mcp = self.name, error, "the changed tools of an MCP server are not known")
                }
                Err(_) => {
                    tracing::warn!(mcp = self.name, "an MCP server does not list its changed tools in time")
                }
            }
            sleep_until(began + PAUSE).await;
        }
    }
}

/// Formats an error for the log: short, and without the URL, which may contain secrets.
fn secretless(error: &impl std::fmt::Display, given: &McpConfig) -> String {
    let mut said = error.to_string();
    if let Some(url) = &given.url {
        let parsed = reqwest::Url::parse(url).map(String::from);
        for url in [Some(url.clone()), parsed.ok()].into_iter().flatten() {
            said = said.replace(&url, "its URL");
        }
    }
    said.chars().map(|c| if c.is_control() { ' ' } else { c }).take(LOGGED).collect()
}

/// Short form of an error.
struct Said<'a>(&'a ServiceError);

impl std::fmt::Display for Said<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            ServiceError::McpError(error) => write!(f, "code {}", error.code.0),
            ServiceError::TransportSend(_) => f.write_str("it cannot be sent, or not be answered"),
            other => write!(f, "{other}"),
        }
    }
}
