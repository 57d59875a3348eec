//! Connections to MCP servers: streamable HTTP, or a child process on its standard input and output.

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

use super::McpConfig;
use super::lines::BoundedLines;
use super::stderr;
use crate::base::urls::is_local_host;

/// Connection to an MCP server.
pub(super) struct McpConnection {
    pub(super) service: RunningService<RoleClient, McpHandler>,
    /// Notified when the server's tools have changed.
    pub(super) tools_changed: Arc<Notify>,
    /// Program of the server; empty over HTTP.
    pub(super) program: ServerProcess,
}

/// Child process of a connection; both fields are `None` over HTTP.
#[derive(Default)]
pub(super) struct ServerProcess {
    child: Option<Child>,
    /// Flag that is set when the process sent a message that was too long.
    too_long_flag: Option<Arc<AtomicBool>>,
}

/// Reason why the connection failed or the tools could not be listed, for the log.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectionError {
    #[error("the program `{0}` cannot be started: {1}")]
    Program(String, std::io::Error),
    #[error("the HTTP client cannot be created: {0}")]
    Client(#[from] reqwest::Error),
    #[error("{0}")]
    Refused(#[from] Box<ClientInitializeError>),
    #[error("its list of tools does not end")]
    EndlessList,
    #[error("it failed to list its tools: {0}")]
    NoToolList(#[from] rmcp::ServiceError),
    #[error("it did not answer within {0:?}")]
    Timeout(Duration),
}

/// Handler of a server's requests and notifications; offers the server no capabilities of a client.
pub(super) struct McpHandler {
    tools_changed: Arc<Notify>,
}

/// Bytes that a message may have beyond the maximum length of a result: for its envelope, or if it is a page
/// of the tool list.
const MAX_MESSAGE_OVERHEAD_BYTES: usize = 4 << 20;
/// Maximum length of an error response in bytes.
const MAX_ERROR_BYTES: usize = 4 << 10;
/// Maximum number of concurrent requests to one server over HTTP; further ones wait.
const MAX_CALLS: usize = 1000;
/// Longest pause before an event stream is reopened.
const MAX_REOPEN_PAUSE: Duration = Duration::from_secs(30);
/// Time that a process gets to end after its standard input is closed.
const END_TIMEOUT: Duration = Duration::from_secs(2);
/// Environment variables that every program gets.
const BASE_ENVIRONMENT: [&str; 14] = [
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

impl ClientHandler for McpHandler {
    fn get_info(&self) -> ClientConfig {
        ClientConfig::new(
            ClientCapabilities::default(),
            Implementation::new("tambour", env!("CARGO_PKG_VERSION")),
        )
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.tools_changed.notify_one();
    }
}

impl McpConnection {
    /// Connects to the server with this name and initializes the session.
    ///
    /// # Errors
    /// The program cannot be started, or the server does not accept the session.
    pub(super) async fn open(
        name: &str,
        settings: &McpConfig,
        key: Option<&str>,
        max_result_bytes: usize,
    ) -> Result<McpConnection, ConnectionError> {
        let max_message_bytes = max_result_bytes.saturating_add(MAX_MESSAGE_OVERHEAD_BYTES);
        let tools_changed = Arc::new(Notify::new());
        let handler = McpHandler { tools_changed: tools_changed.clone() };
        let refusal = |error| ConnectionError::Refused(Box::new(error));
        if let Some(url) = &settings.url {
            let transport = StreamableHttpClientTransport::with_client(
                http_client(url)?,
                http_config(url, settings, key, max_message_bytes),
            );
            let service = handler.serve(transport).await.map_err(refusal)?;
            return Ok(McpConnection { service, tools_changed, program: ServerProcess::default() });
        }
        let command = settings.command.as_deref().unwrap_or_default();
        let program_error = |error| ConnectionError::Program(command.to_owned(), error);
        let mut child = spawn(command, settings).map_err(program_error)?;
        if let Some(stderr) = child.stderr.take() {
            tokio::spawn(stderr::log_stderr(name.to_owned(), stderr));
        }
        // Both are piped, so they are present.
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(program_error(std::io::ErrorKind::BrokenPipe.into()));
        };
        let lines = BoundedLines::new(stdout, max_message_bytes);
        let too_long_flag = Some(lines.too_long_flag());
        // `BoundedLines` limits the length.
        let transport = AsyncRwTransport::new_client(lines, stdin).with_max_line_length(usize::MAX);
        let service = handler.serve(transport).await.map_err(refusal)?;
        Ok(McpConnection {
            service,
            tools_changed,
            program: ServerProcess { child: Some(child), too_long_flag },
        })
    }
}

impl ServerProcess {
    /// Returns the flag that is set when the process sent a message that was too long; `None` over HTTP.
    pub(super) fn too_long_flag(&self) -> Option<Arc<AtomicBool>> {
        self.too_long_flag.clone()
    }

    /// Waits for the end of the process, whose standard input the caller has closed. Kills it after a timeout.
    pub(super) async fn wait_end(mut self, name: &str) {
        let Some(child) = &mut self.child else { return };
        if self.too_long_flag.is_some_and(|too_long| too_long.load(Ordering::Relaxed)) {
            tracing::warn!(mcp = name, "the MCP server sent a message that is too long; restarting it");
        }
        match tokio::time::timeout(END_TIMEOUT, child.wait()).await {
            Ok(Ok(status)) => tracing::info!(mcp = name, %status, "the program of the MCP server has ended"),
            Ok(Err(error)) => {
                tracing::warn!(mcp = name, %error, "waiting for the program of the MCP server failed")
            }
            Err(_) => {
                tracing::warn!(mcp = name, "the program of the MCP server did not end in time; killing it");
                let _ = child.kill().await;
            }
        }
    }
}

/// Starts the program with its allowed environment variables.
fn spawn(command: &str, settings: &McpConfig) -> std::io::Result<Child> {
    let names = BASE_ENVIRONMENT.into_iter().chain(settings.env.iter().map(String::as_str));
    let variables = names.filter_map(|name| Some((name, std::env::var_os(name)?)));
    let mut process = Command::new(command);
    process.args(&settings.args).env_clear().envs(variables).kill_on_drop(true);
    process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    process.spawn()
}

/// Creates an HTTP client without redirects, which could leak the key.
fn http_client(url: &str) -> Result<reqwest::Client, reqwest::Error> {
    // Fails if a crypto provider is installed already, which is fine.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut client = reqwest::Client::builder();
    let host = reqwest::Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned));
    if host.is_some_and(|host| is_local_host(&host)) {
        // Proxies of the environment are not used for local hosts.
        client = client.no_proxy();
    }
    client
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .tcp_nodelay(true)
        .user_agent(concat!("tambour/", env!("CARGO_PKG_VERSION")))
        .build()
}

fn http_config(
    url: &str,
    settings: &McpConfig,
    key: Option<&str>,
    max_message_bytes: usize,
) -> StreamableHttpClientTransportConfig {
    let header = |(name, value): (&String, &String)| {
        Some((HeaderName::try_from(name).ok()?, HeaderValue::try_from(value).ok()?))
    };
    // Headers were validated at the start.
    let headers: HashMap<HeaderName, HeaderValue> = settings.headers.iter().filter_map(header).collect();
    let mut config = StreamableHttpClientTransportConfig::with_uri(url)
        .custom_headers(headers)
        .max_concurrent_requests(MAX_CALLS)
        .max_sse_event_size(max_message_bytes)
        .max_json_response_size(max_message_bytes)
        .max_error_response_size(MAX_ERROR_BYTES);
    let mut pauses = ExponentialBackoff::default();
    pauses.max_delay = Some(MAX_REOPEN_PAUSE);
    config.retry_config = Arc::new(pauses);
    match key {
        Some(key) => config.auth_header(key),
        None => config,
    }
}
