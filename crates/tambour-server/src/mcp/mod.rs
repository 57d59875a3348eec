//! MCP servers (Model Context Protocol): their connections, their exposed tools, and calls to them.

mod config;
#[cfg(feature = "mcp")]
mod connect;
#[cfg(feature = "mcp")]
pub mod lines;
#[cfg(feature = "mcp")]
mod result;
#[cfg(feature = "mcp")]
mod server;
#[cfg(feature = "mcp")]
mod stderr;
#[cfg(not(feature = "mcp"))]
mod stub;
#[cfg(feature = "mcp")]
mod tool_list;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::base::origins::ConfigError;
use crate::tools::{CallError, Definition};
pub use config::McpConfig;
pub(crate) use config::McpSection;
#[cfg(feature = "mcp")]
use server::McpServer;
#[cfg(not(feature = "mcp"))]
use stub::McpServer;

/// MCP servers of a configuration.
#[derive(Default)]
pub(crate) struct McpServers {
    by_name: BTreeMap<String, Arc<McpServer>>,
}

/// Tool of an MCP server that messages may use.
#[derive(Clone, Debug)]
pub(crate) struct ListedTool {
    /// Name under which messages use it: the tool's name on the server, with the configured prefix.
    pub(crate) name: String,
    pub(crate) definition: Definition,
    /// True if the configuration names the tool, rather than all tools by `*`.
    pub(crate) is_listed_explicitly: bool,
    /// Time at which the server listed it (RFC 3339).
    pub(crate) listed_at: String,
}

/// Limits of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ServerBounds {
    /// Timeout of a call and of connecting.
    pub(crate) timeout: Duration,
    /// Maximum length of a result in bytes.
    pub(crate) max_result_bytes: usize,
}

/// Result of looking up a tool name.
pub(crate) enum ToolLookup {
    /// No server has a tool of that name.
    Unknown,
    /// Tool of a server.
    Tool(Box<ListedTool>),
    /// The configuration reserves the name for this server, which lacks the tool or has not listed its tools
    /// yet.
    Reserved(String),
}

impl McpServers {
    /// Creates the servers of a configuration. `previous` are the servers of the configuration before it: a
    /// server with the same settings is taken over and stays connected.
    ///
    /// # Errors
    /// The key of a server cannot be read.
    pub(crate) fn new(
        config: McpSection<'_>,
        previous: Option<&McpServers>,
    ) -> Result<McpServers, ConfigError> {
        let build = |(name, settings): (&String, &McpConfig)| {
            let timeout_ms =
                settings.timeout_ms.unwrap_or(config.tools.timeout_ms).min(config.tools.max_timeout_ms);
            let bounds = ServerBounds {
                timeout: Duration::from_millis(timeout_ms),
                max_result_bytes: config.tools.max_answer,
            };
            let key = settings
                .key_env
                .as_deref()
                .map(|variable| config.read_mcp_key(name, variable))
                .transpose()?;
            let old_server = previous.and_then(|servers| servers.by_name.get(name));
            let unchanged_server =
                old_server.filter(|old_server| old_server.has_settings(settings, key.as_deref(), bounds));
            let server = match unchanged_server {
                Some(unchanged_server) => unchanged_server.clone(),
                None => Arc::new(McpServer::new(name, settings.clone(), key, bounds)),
            };
            Ok((name.clone(), server))
        };
        let by_name = config.servers.iter().map(build).collect::<Result<_, _>>()?;
        Ok(McpServers { by_name })
    }

    /// Connects to the servers in the background and keeps them connected.
    pub(crate) fn start(&self) {
        self.by_name.values().for_each(|server| server.start());
    }

    /// Closes the connections and the child processes.
    pub(crate) async fn stop(&self) {
        futures_util::future::join_all(self.by_name.values().map(|server| server.stop())).await;
    }

    /// Returns the listed tools by exposed name: for each name, the tool that `find_tool` finds.
    pub(crate) fn all_tools(&self) -> BTreeMap<String, ListedTool> {
        let listed_tools = self.by_name.values().flat_map(|server| server.listed_tools());
        let names: Vec<String> = listed_tools.map(|tool| tool.name).collect();
        let tools_by_name = names.into_iter().filter_map(|name| match self.find_tool(&name) {
            ToolLookup::Tool(tool) => Some((name, *tool)),
            _ => None,
        });
        tools_by_name.collect()
    }

    /// Looks up an exposed name of a tool. A name that the configuration of a server lists explicitly belongs
    /// to that server only; any other name belongs to the first server, in order of server names, that lists
    /// a tool with that name.
    pub(crate) fn find_tool(&self, name: &str) -> ToolLookup {
        let naming_server = self.by_name.values().find(|server| server.config().names_explicitly(name));
        let tool = match naming_server {
            Some(server) => server.find_tool(name),
            None => self.by_name.values().find_map(|server| server.find_tool(name)),
        };
        match (tool, naming_server) {
            (Some(tool), _) => ToolLookup::Tool(Box::new(tool)),
            (None, Some(server)) => ToolLookup::Reserved(server.name().to_owned()),
            (None, None) => ToolLookup::Unknown,
        }
    }

    /// Looks up the name of a tool as `find_tool` does, but first waits for servers that may have the tool
    /// and have not listed their tools yet.
    pub(crate) async fn wait_for_tool(&self, name: &str) -> ToolLookup {
        let is_awaited =
            |server: &&Arc<McpServer>| server.config().own_name(name).is_some() && !server.has_listed_tools();
        futures_util::future::join_all(
            self.by_name.values().filter(is_awaited).map(|server| server.wait_connected()),
        )
        .await;
        self.find_tool(name)
    }

    /// Returns `true` if the server has listed its tools at least once.
    pub(crate) fn has_listed_tools(&self, server: &str) -> bool {
        self.by_name.get(server).is_some_and(|server| server.has_listed_tools())
    }

    /// Returns the connection state of each server as a JSON object, in order of their names.
    pub(crate) fn states(&self) -> Vec<Value> {
        let state = |(name, server): (&String, &Arc<McpServer>)| {
            let (state, error) = server.state();
            let tools: Vec<String> = server.listed_tools().into_iter().map(|tool| tool.name).collect();
            let kind = if server.config().url.is_some() { "http" } else { "program" };
            json!({ "name": name, "kind": kind, "state": state, "error": error, "tools": tools })
        };
        self.by_name.iter().map(state).collect()
    }

    /// Runs a tool by its name on the server. A call is not repeated.
    pub(crate) async fn call(&self, server: &str, tool: &str, args: &Value) -> Result<Value, CallError> {
        match self.by_name.get(server) {
            Some(server) => server.call(tool, args).await,
            // The server was removed from the configuration after the message began.
            None => Err(CallError::ServerDown(server.to_owned())),
        }
    }
}
