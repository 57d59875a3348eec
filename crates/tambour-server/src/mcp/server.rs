//! One MCP server: a background task keeps it connected and lists its tools again when they change.

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

use super::McpConfig;
use super::connect::{ConnectionError, McpConnection};
use super::{ListedTool, ServerBounds, result, tool_list};
use crate::base::durations::millis;
use crate::base::fail;
use crate::base::restart_backoff::RestartBackoff;
use crate::tools::CallError;
use crate::upstream::redact;

/// Pause after the first failure. Also the shortest time between the starts of two attempts or two listings
/// of the tools, and the longest wait for a connection to close.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Longest pause after a failure.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// Time that a request waits for a server that was never reached.
const REACH_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of characters of an error in the log.
const MAX_LOGGED_CHARS: usize = 500;

/// Handle of a server; dropping it disconnects.
pub(super) struct McpServer {
    shared: Arc<McpState>,
    /// Background task of the connection.
    tasks: TaskTracker,
    /// Set when the background task was started.
    has_started: AtomicBool,
    /// Cancels `McpState::stop` on drop.
    _stop_guard: DropGuard,
}

/// State of a server, shared with its background task.
struct McpState {
    name: String,
    config: McpConfig,
    key: Option<String>,
    bounds: ServerBounds,
    state: watch::Sender<ConnectionState>,
    /// Tools as last listed; `None` before the first time.
    tools: RwLock<Option<Arc<Vec<ListedTool>>>>,
    /// Notified when a call, or a request for the tools, needs a connection and there is none.
    connection_needed: Notify,
    /// Notified when the connection may be broken: a call failed or got no answer.
    connection_doubted: Notify,
    /// Cancelled when the server is stopped or its handle dropped.
    stop: CancellationToken,
}

/// State of the connection.
enum ConnectionState {
    /// Connecting, or waiting for the next attempt.
    Pending,
    Up(LiveConnection),
    /// The last attempt failed, for this reason.
    Down(String),
}

/// Connection as calls use it.
#[derive(Clone)]
struct LiveConnection {
    peer: Peer<RoleClient>,
    /// Flag that is set when the server's program sent a message that was too long; `None` over HTTP.
    too_long_flag: Option<Arc<AtomicBool>>,
}

impl McpServer {
    pub(super) fn new(name: &str, config: McpConfig, key: Option<String>, bounds: ServerBounds) -> McpServer {
        let stop = CancellationToken::new();
        let shared = McpState {
            name: name.to_owned(),
            config,
            key,
            bounds,
            state: watch::Sender::new(ConnectionState::Pending),
            tools: RwLock::default(),
            connection_needed: Notify::new(),
            connection_doubted: Notify::new(),
            stop: stop.clone(),
        };
        McpServer {
            shared: Arc::new(shared),
            tasks: TaskTracker::new(),
            has_started: AtomicBool::new(false),
            _stop_guard: stop.drop_guard(),
        }
    }

    /// Returns `true` if the server has exactly these settings.
    pub(super) fn has_settings(&self, settings: &McpConfig, key: Option<&str>, bounds: ServerBounds) -> bool {
        let McpState { config: own_config, key: own_key, bounds: own_bounds, .. } = &*self.shared;
        own_config == settings && own_key.as_deref() == key && *own_bounds == bounds
    }

    pub(super) fn name(&self) -> &str {
        &self.shared.name
    }

    pub(super) fn config(&self) -> &McpConfig {
        &self.shared.config
    }

    /// Returns the state of the connection: `connected`, `connecting` or `failed`, the last with its reason.
    pub(super) fn state(&self) -> (&'static str, Option<String>) {
        match &*self.shared.state.borrow() {
            ConnectionState::Up(connection) if !connection.peer.is_transport_closed() => ("connected", None),
            ConnectionState::Up(_) | ConnectionState::Pending => ("connecting", None),
            ConnectionState::Down(error) => ("failed", Some(redact(error))),
        }
    }

    /// Starts connecting in the background, once.
    pub(super) fn start(&self) {
        if !self.has_started.swap(true, Ordering::Relaxed) {
            self.tasks.spawn(supervise_connection(self.shared.clone()));
        }
    }

    /// Closes the connection, and waits for the end of the server's program.
    pub(super) async fn stop(&self) {
        self.shared.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Returns the tools as last listed; none before the first time.
    pub(super) fn listed_tools(&self) -> Vec<ListedTool> {
        self.shared.tools().map(|tools| tools.to_vec()).unwrap_or_default()
    }

    /// Returns a listed tool by its exposed name.
    pub(super) fn find_tool(&self, name: &str) -> Option<ListedTool> {
        self.shared.tools()?.iter().find(|tool| tool.name == name).cloned()
    }

    /// Returns `true` if the server has listed its tools at least once.
    pub(super) fn has_listed_tools(&self) -> bool {
        self.shared.tools().is_some()
    }

    /// Waits until an attempt to connect succeeds or fails. Waits at most `REACH_TIMEOUT`, since the request
    /// of a client waits meanwhile. Returns `true` if the server is connected.
    pub(super) async fn wait_connected(&self) -> bool {
        timeout(REACH_TIMEOUT, self.shared.wait_connection()).await.ok().flatten().is_some()
    }

    /// Runs a tool by its name on the server. A call is not repeated, since it may have had effects.
    ///
    /// # Errors
    /// The server is not connected, does not answer in time, or refuses the call; the tool failed; or its
    /// result is too large.
    pub(super) async fn call(&self, tool: &str, args: &Value) -> Result<Value, CallError> {
        let McpState { name, bounds, connection_doubted, .. } = &*self.shared;
        let deadline = Instant::now() + bounds.timeout;
        let server_down = || CallError::ServerDown(name.clone());
        let connection = self.shared.wait_connection().await.ok_or_else(server_down)?;
        let mut params = CallToolRequestParams::new(tool.to_owned());
        match args {
            Value::Object(args) => params = params.with_arguments(args.clone()),
            Value::Null => {}
            _ => {
                return Err(CallError::ServerRefused(
                    "arguments of an MCP server's tool must be an object".to_owned(),
                ));
            }
        }
        match tokio::time::timeout_at(deadline, connection.peer.call_tool_once(params)).await {
            Ok(Ok(response)) => result::call_result(response, bounds.max_result_bytes),
            Ok(Err(error)) => {
                tracing::warn!(mcp = name, tool, error = %ShortError(&error), "a call of an MCP server failed");
                if connection.too_long_flag.is_some_and(|too_long| too_long.load(Ordering::Relaxed)) {
                    return Err(CallError::ResultTooLarge(bounds.max_result_bytes));
                }
                let failure = result::call_error(&error, name, bounds.max_result_bytes);
                if matches!(failure, CallError::ServerDown(_) | CallError::ServerBroken) {
                    connection_doubted.notify_one();
                }
                Err(failure)
            }
            Err(_) => {
                connection_doubted.notify_one();
                Err(CallError::ServerTimeout(millis(bounds.timeout)))
            }
        }
    }
}

/// Keeps the connection task running until the server is stopped; restarts it after a panic.
async fn supervise_connection(shared: Arc<McpState>) {
    let mut pauses = RestartBackoff::new(FIRST_PAUSE, LONGEST_PAUSE);
    loop {
        let start_time = Instant::now();
        let Err(error) = tokio::spawn(shared.clone().stay_connected()).await else { return };
        if !error.is_panic() {
            // Cancelled: the runtime is shutting down.
            return;
        }
        shared.state.send_replace(ConnectionState::Down("the connection panicked; reconnecting".to_owned()));
        let pause = pauses.next_pause(start_time.elapsed());
        let again_ms = millis(pause);
        tracing::error!(
            mcp = shared.name,
            again_ms,
            "the connection to an MCP server panicked; reconnecting"
        );
        if !shared.wait_pause(start_time, pause).await {
            return;
        }
    }
}

impl McpState {
    fn tools(&self) -> Option<Arc<Vec<ListedTool>>> {
        self.tools.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the known tools.
    fn set_tools(&self, tool_list: Vec<ListedTool>) {
        tracing::info!(mcp = self.name, tools = tool_list.len(), "listed the tools of an MCP server");
        *self.tools.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(tool_list));
    }

    /// Returns the connection. Without one, starts an attempt and returns its connection; `None` if the
    /// attempt fails or takes longer than the timeout.
    async fn wait_connection(&self) -> Option<LiveConnection> {
        let mut state = self.state.subscribe();
        match &*state.borrow_and_update() {
            // A connection whose transport is closed has just ended: the next one is awaited below.
            ConnectionState::Up(connection) if !connection.peer.is_transport_closed() => {
                return Some(connection.clone());
            }
            _ => {}
        }
        self.connection_needed.notify_one();
        let attempt = async {
            while state.changed().await.is_ok() {
                match &*state.borrow_and_update() {
                    ConnectionState::Up(connection) => return Some(connection.clone()),
                    ConnectionState::Down(_) => return None,
                    ConnectionState::Pending => {}
                }
            }
            None
        };
        timeout(self.bounds.timeout, attempt).await.ok().flatten()
    }

    /// Connects, again and again, until the server is stopped.
    async fn stay_connected(self: Arc<McpState>) {
        let mut pauses = RestartBackoff::new(FIRST_PAUSE, LONGEST_PAUSE);
        loop {
            let start_time = Instant::now();
            let open_result = tokio::select! {
                () = self.stop.cancelled() => break,
                open_result = timeout(self.bounds.timeout, self.open()) => open_result,
            };
            match open_result.unwrap_or(Err(ConnectionError::Timeout(self.bounds.timeout))) {
                Ok(connection) => self.serve_connection(connection).await,
                Err(error) => {
                    let error = loggable_error(&error, &self.config);
                    tracing::warn!(mcp = self.name, error, "an MCP server cannot be reached");
                    self.state.send_replace(ConnectionState::Down(error));
                }
            }
            if !self.wait_pause(start_time, pauses.next_pause(start_time.elapsed())).await {
                break;
            }
        }
    }

    /// Waits before the next attempt; the pause is cut short when a connection is needed. `start_time` is the
    /// start of the last attempt. Returns `false` if the server is stopped.
    async fn wait_pause(&self, start_time: Instant, pause: Duration) -> bool {
        tokio::select! {
            () = self.stop.cancelled() => false,
            () = sleep(pause) => true,
            () = async {
                self.connection_needed.notified().await;
                sleep_until(start_time + FIRST_PAUSE).await
            } => true,
        }
    }

    /// Connects and lists the tools.
    async fn open(&self) -> Result<McpConnection, ConnectionError> {
        let connection =
            McpConnection::open(&self.name, &self.config, self.key.as_deref(), self.bounds.max_result_bytes)
                .await?;
        // Tools are listed only at first and after a change, so a cached list would be of no use.
        connection.service.set_response_cache_config(ClientCacheConfig::disabled()).await;
        self.set_tools(self.fetch_tools(connection.service.peer()).await?);
        Ok(connection)
    }

    /// Asks the server for its tools.
    async fn fetch_tools(&self, peer: &Peer<RoleClient>) -> Result<Vec<ListedTool>, ConnectionError> {
        fail::point("mcp");
        tool_list::list_tools(&self.name, &self.config, peer).await
    }

    /// Provides a connection to calls until it ends.
    async fn serve_connection(&self, connection: McpConnection) {
        let McpConnection { service, tools_changed, program } = connection;
        let peer = service.peer().clone();
        let close = service.cancellation_token();
        self.state.send_replace(ConnectionState::Up(LiveConnection {
            peer: peer.clone(),
            too_long_flag: program.too_long_flag(),
        }));
        tracing::info!(mcp = self.name, "an MCP server is connected");
        let mut connection_end = std::pin::pin!(service.waiting());
        let mut refresh = std::pin::pin!(self.refresh_tools(&peer, &tools_changed));
        let has_ended = tokio::select! {
            _ = &mut connection_end => true,
            () = self.stop.cancelled() => false,
            () = &mut refresh => false,
        };
        self.state.send_replace(ConnectionState::Pending);
        if !has_ended {
            close.cancel();
            let _ = timeout(FIRST_PAUSE, connection_end).await;
        }
        program.wait_end(&self.name).await;
        tracing::info!(mcp = self.name, "the connection to an MCP server has ended");
    }

    /// Lists the tools again when they change, at most once a second. A doubted connection is tested by
    /// listing the tools: returns if that fails too.
    async fn refresh_tools(&self, peer: &Peer<RoleClient>, tools_changed: &Notify) {
        loop {
            let is_doubted = tokio::select! {
                () = tools_changed.notified() => false,
                () = self.connection_doubted.notified() => true,
            };
            let start_time = Instant::now();
            let tools = timeout(self.bounds.timeout, self.fetch_tools(peer)).await;
            if is_doubted && !matches!(tools, Ok(Ok(_))) {
                return;
            }
            match tools {
                Ok(Ok(tools)) => self.set_tools(tools),
                Ok(Err(error)) => {
                    let error = loggable_error(&error, &self.config);
                    tracing::warn!(mcp = self.name, error, "an MCP server failed to list its changed tools")
                }
                Err(_) => {
                    tracing::warn!(mcp = self.name, "an MCP server did not list its changed tools in time")
                }
            }
            sleep_until(start_time + FIRST_PAUSE).await;
        }
    }
}

/// Formats an error for the log: short, and without the URL, which may contain secrets.
fn loggable_error(error: &impl std::fmt::Display, settings: &McpConfig) -> String {
    let mut message = error.to_string();
    if let Some(url) = &settings.url {
        let normal_url = reqwest::Url::parse(url).map(String::from);
        for url in [Some(url.clone()), normal_url.ok()].into_iter().flatten() {
            message = message.replace(&url, "its URL");
        }
    }
    message.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MAX_LOGGED_CHARS).collect()
}

/// Short form of an error.
struct ShortError<'a>(&'a ServiceError);

impl std::fmt::Display for ShortError<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            ServiceError::McpError(error) => write!(f, "code {}", error.code.0),
            ServiceError::TransportSend(_) => {
                f.write_str("the request could not be sent, or the answer did not arrive")
            }
            other => write!(f, "{other}"),
        }
    }
}
