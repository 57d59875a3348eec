//! The way to an MCP server: streamable HTTP, or a program that is started and spoken to on its standard input and output.

use std::collections::HashMap;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::http::{HeaderName, HeaderValue};
use rmcp::model::{ClientCapabilities, ClientConfig, Implementation};
use rmcp::service::{ClientInitializeError, NotificationContext, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientHandler, RoleClient, ServiceExt};
use tokio::process::{Child, Command};
use tokio::sync::Notify;

use super::lines::Lines;
use super::stderr;
use crate::config::McpConfig;
use crate::upstream::is_local;

/// A connection.
pub(super) struct Connection {
    pub(super) service: RunningService<RoleClient, Handler>,
    /// The tools may have changed.
    pub(super) changed: Arc<Notify>,
    pub(super) program: Program,
}

/// What was started for a connection, if anything was.
#[derive(Default)]
pub(super) struct Program {
    child: Option<Child>,
    /// It said more in one message than it may.
    too_long: Option<Arc<AtomicBool>>,
}

/// Why there is no connection, for the log.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoConnection {
    #[error("the program `{0}` cannot be started: {1}")]
    Program(String, std::io::Error),
    #[error("there is no client for HTTP: {0}")]
    Client(#[from] reqwest::Error),
    #[error("{0}")]
    Refused(#[from] Box<ClientInitializeError>),
    #[error("it lists its tools without end")]
    Endless,
    #[error("it does not list its tools: {0}")]
    Unlisted(#[from] rmcp::ServiceError),
    #[error("it did not answer within {0:?}")]
    Slow(Duration),
}

/// What we are as a client: one that offers nothing to servers.
pub(super) struct Handler {
    changed: Arc<Notify>,
}

/// Bytes that a message may have beside a result: a page of tools, for example.
const MESSAGE: usize = 4 << 20;
/// Bytes of an answer that is an error.
const ERROR: usize = 4 << 10;
/// Calls that may be under way; as many messages run.
const CALLS: usize = 1000;
/// The longest pause before a stream of events is asked for again.
const AGAIN: Duration = Duration::from_secs(30);
/// How long a program gets to end after its standard input has.
const END: Duration = Duration::from_secs(2);
/// Variables that every program gets.
const ENVIRONMENT: [&str; 14] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LC_ALL",
    "TZ",
    "TMPDIR",
    "TEMP",
    "TMP",
    "SYSTEMROOT",
    "USERPROFILE",
    "APPDATA",
];

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        ClientConfig::new(
            ClientCapabilities::default(),
            Implementation::new("tambour", env!("CARGO_PKG_VERSION")),
        )
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }
}

impl Connection {
    /// Connects, and says hello.
    pub(super) async fn open(
        name: &str,
        given: &McpConfig,
        key: Option<&str>,
        result: usize,
    ) -> Result<Connection, NoConnection> {
        let most = result.saturating_add(MESSAGE);
        let changed = Arc::new(Notify::new());
        let handler = Handler { changed: changed.clone() };
        let refused = |error| NoConnection::Refused(Box::new(error));
        if let Some(url) = &given.url {
            let transport =
                StreamableHttpClientTransport::with_client(client(url)?, over_http(url, given, key, most));
            let service = handler.serve(transport).await.map_err(refused)?;
            return Ok(Connection { service, changed, program: Program::default() });
        }
        let command = given.command.as_deref().unwrap_or_default();
        let failed = |error| NoConnection::Program(command.to_owned(), error);
        let mut child = spawn(command, given).map_err(failed)?;
        if let Some(stderr) = child.stderr.take() {
            tokio::spawn(stderr::tell(name.to_owned(), stderr));
        }
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(failed(std::io::ErrorKind::BrokenPipe.into()));
        };
        let lines = Lines::new(stdout, most);
        let too_long = Some(lines.too_long());
        let transport = AsyncRwTransport::new_client(lines, stdin).with_max_line_length(usize::MAX);
        let service = handler.serve(transport).await.map_err(refused)?;
        Ok(Connection { service, changed, program: Program { child: Some(child), too_long } })
    }
}

impl Program {
    /// Whether it said more than it may.
    pub(super) fn said_too_much(&self) -> Option<Arc<AtomicBool>> {
        self.too_long.clone()
    }

    /// Waits for its end, which it was told by that of its standard input.
    pub(super) async fn end(mut self, name: &str) {
        let Some(child) = &mut self.child else { return };
        if self.too_long.is_some_and(|too_long| too_long.load(Ordering::Relaxed)) {
            tracing::warn!(mcp = name, "the MCP server sent a message that is too long; it is started anew");
        }
        match tokio::time::timeout(END, child.wait()).await {
            Ok(Ok(status)) => tracing::info!(mcp = name, %status, "the program of the MCP server has ended"),
            Ok(Err(error)) => {
                tracing::warn!(mcp = name, %error, "the program of the MCP server cannot be waited for")
            }
            Err(_) => {
                tracing::warn!(mcp = name, "the program of the MCP server does not end, and is ended");
                let _ = child.kill().await;
            }
        }
    }
}

/// Starts the program, with the variables it may have.
fn spawn(command: &str, given: &McpConfig) -> std::io::Result<Child> {
    let names = ENVIRONMENT.into_iter().chain(given.env.iter().map(String::as_str));
    let variables = names.filter_map(|name| Some((name, std::env::var_os(name)?)));
    let mut starting = Command::new(command);
    starting.args(&given.args).env_clear().envs(variables).kill_on_drop(true);
    starting.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    starting.spawn()
}

/// No redirects: they could lead the key elsewhere.
fn client(url: &str) -> Result<reqwest::Client, reqwest::Error> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut client = reqwest::Client::builder();
    let host = reqwest::Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned));
    if host.is_some_and(|host| is_local(&host)) {
        // A proxy of the environment is for the world outside.
        client = client.no_proxy();
    }
    client
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .tcp_nodelay(true)
        .user_agent(concat!("tambour/", env!("CARGO_PKG_VERSION")))
        .build()
}

fn over_http(
    url: &str,
    given: &McpConfig,
    key: Option<&str>,
    most: usize,
) -> StreamableHttpClientTransportConfig {
    let header = |(name, value): (&String, &String)| {
        Some((HeaderName::try_from(name).ok()?, HeaderValue::try_from(value).ok()?))
    };
    // What was checked at start.
    let headers: HashMap<HeaderName, HeaderValue> = given.headers.iter().filter_map(header).collect();
    let mut config = StreamableHttpClientTransportConfig::with_uri(url)
        .custom_headers(headers)
        .max_concurrent_requests(CALLS)
        .max_sse_event_size(most)
        .max_json_response_size(most)
        .max_error_response_size(ERROR);
    let mut pauses = ExponentialBackoff::default();
    pauses.max_delay = Some(AGAIN);
    config.retry_config = Arc::new(pauses);
    match key {
        Some(key) => config.auth_header(key),
        None => config,
    }
}
