//! `tambour mcp`: the commands as tools of an MCP server on standard input and output.

mod tools;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::{Context, Result};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, Implementation,
    ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer, ServerInitializeError};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::{ServerHandler, ServiceExt};
use serde_json::Value;
use tambour_server::mcp::lines::BoundedLines;
use tokio::sync::Semaphore;

use crate::{CommandOutcome, output};

/// Serve `check`, `decode`, `repair`, `json` and `contract` as tools of an MCP server on standard input and output
#[derive(clap::Args)]
#[command(after_help = "Example:\n  \
    printf '{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\\n' | tambour mcp\n\n\
    Standard output belongs to the protocol (JSON-RPC, one message a line); it ends with standard input.")]
pub(crate) struct McpCommand {}

/// Maximum length of a message in bytes: leaves room for the usual JSON escapes in the longest reply.
const MAX_MESSAGE_BYTES: usize = 3 * tools::MAX_TEXT_BYTES;

pub(crate) fn run(_: &McpCommand) -> Result<CommandOutcome> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("the runtime cannot be started")?;
    let result = runtime.block_on(serve_stdio());
    // A read of standard input cannot be cancelled, so it is abandoned.
    runtime.shutdown_background();
    result
}

async fn serve_stdio() -> Result<CommandOutcome> {
    let (stdin, stdout) = rmcp::transport::io::stdio();
    let lines = BoundedLines::new(stdin, MAX_MESSAGE_BYTES);
    let too_long = lines.too_long_flag();
    // `BoundedLines` limits the length of a line already.
    let transport = AsyncRwTransport::new_server(lines, stdout).with_max_line_length(usize::MAX);
    let running = match StdioMcpServer::new().serve(transport).await {
        Ok(running) => running,
        // The client closed the connection without a request.
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(outcome_at_end(&too_long)),
        Err(error) => {
            output::print_error(&format!("the client did not begin with an MCP handshake: {error}"));
            return Ok(CommandOutcome::Failed);
        }
    };
    running.waiting().await.context("the MCP server failed")?;
    Ok(outcome_at_end(&too_long))
}

/// Outcome after the connection has ended; a message over the limit ends it too.
fn outcome_at_end(too_long: &AtomicBool) -> CommandOutcome {
    if !too_long.load(Ordering::Relaxed) {
        return CommandOutcome::Success;
    }
    output::print_error(&format!("a message may have at most {MAX_MESSAGE_BYTES} bytes; the server ended"));
    CommandOutcome::Failed
}

/// MCP server on standard input and output.
struct StdioMcpServer {
    /// Permits for calls in progress; further calls wait.
    call_permits: Arc<Semaphore>,
}

impl StdioMcpServer {
    fn new() -> StdioMcpServer {
        let max_calls = thread::available_parallelism().map_or(1, Into::into);
        StdioMcpServer { call_permits: Arc::new(Semaphore::new(max_calls)) }
    }
}

impl ServerHandler for StdioMcpServer {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("tambour", env!("CARGO_PKG_VERSION")))
            .with_instructions(
                "Structured replies of language models: `contract` gives the format instructions of a dialect, `check` checks a \
                 reply against it, `repair` rewrites a reply so that it passes, `decode` gives its events, and `json` finds \
                 the JSON value in a text.",
            )
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::TOOLS.iter().map(tools::McpToolEntry::to_tool).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(entry) = tools::TOOLS.iter().find(|entry| entry.name == request.name) else {
            let names: Vec<&str> = tools::TOOLS.iter().map(|entry| entry.name).collect();
            let message = format!("there is no tool `{}`; the tools are {}", request.name, names.join(", "));
            return Err(ErrorData::invalid_params(message, None));
        };
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        // The semaphore is never closed, so acquiring a permit does not fail.
        let permit = self.call_permits.clone().acquire_owned().await.ok();
        // A long text must not block the messages of other calls.
        let outcome = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            (entry.run)(arguments)
        });
        let outcome = outcome.await.map_err(|_| ErrorData::internal_error("the tool failed", None))?;
        Ok(match outcome {
            Ok(tools::ToolOutput { text, notes, structured_content }) => {
                let blocks = [text].into_iter().chain(notes).map(ContentBlock::text).collect();
                let mut result = CallToolResult::success(blocks);
                result.structured_content = Some(structured_content);
                result
            }
            Err(error) => CallToolResult::error(vec![ContentBlock::text(format!("{error:#}"))]),
        }
        .into())
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools::TOOLS.iter().find(|entry| entry.name == name).map(tools::McpToolEntry::to_tool)
    }
}
