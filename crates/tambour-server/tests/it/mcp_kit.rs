//! An MCP server of the test over streamable HTTP, and one that is a shell script.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::{Peer, RequestContext, RoleServer};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ServerHandler, model::NumberOrString};
use serde_json::{Map, Value, json};
use tambour_server::config::McpConfig;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::server::{TestServer, with_timeout};
use crate::tool_kit::tool_schema;

/// Tools of the server, its behaviour, and the requests it received.
#[derive(Default)]
pub(crate) struct McpState {
    pub(crate) tools: Vec<Tool>,
    /// Calls, with their arguments.
    pub(crate) calls: Vec<(String, Value)>,
    /// Calls that were cancelled.
    pub(crate) cancelled: Vec<NumberOrString>,
    pub(crate) list_requests: usize,
    /// Headers of the last request.
    pub(crate) headers: Vec<(String, String)>,
    /// Makes each page of the tools name a next page.
    pub(crate) has_endless_pages: bool,
    /// Makes the server answer nothing.
    pub(crate) is_silent: bool,
    pub(crate) peers: Vec<Peer<RoleServer>>,
}

#[derive(Clone)]
struct McpHandler(Arc<Mutex<McpState>>);

/// A running server.
pub(crate) struct MockMcp {
    pub(crate) state: Arc<Mutex<McpState>>,
    pub(crate) port: u16,
    stop_token: CancellationToken,
}

/// A tool that accepts the arguments of the tests' plans.
pub(crate) fn tool(name: &str) -> Tool {
    let Value::Object(schema) = tool_schema() else { unreachable!() };
    Tool::new(name.to_owned(), format!("what {name} does"), schema)
}

pub(crate) fn tool_with(name: &str, schema: Value) -> Tool {
    let Value::Object(schema) = schema else { unreachable!() };
    Tool::new(name.to_owned(), String::new(), schema)
}

impl ServerHandler for McpHandler {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build())
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        if self.0.lock().unwrap().is_silent {
            std::future::pending::<()>().await;
        }
        let mut state = self.0.lock().unwrap();
        state.list_requests += 1;
        state.peers.push(context.peer);
        // Two tools a page.
        let from: usize =
            request.and_then(|request| request.cursor).map_or(0, |cursor| cursor.parse().unwrap());
        let mut page =
            ListToolsResult::with_all_items(state.tools.iter().skip(from).take(2).cloned().collect());
        let has_more = state.has_endless_pages || from + 2 < state.tools.len();
        page.next_cursor = has_more.then(|| (from + 2).to_string());
        Ok(page)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let args = Value::Object(request.arguments.unwrap_or_default());
        self.0.lock().unwrap().calls.push((request.name.to_string(), args.clone()));
        let text = |text: &str| vec![ContentBlock::text(text)];
        Ok(match &*request.name {
            "fails" => CallToolResult::error(text("the file is not there")),
            "refuses" => return Err(ErrorData::invalid_params("no such arguments", None)),
            "large" => CallToolResult::success(text(&"x".repeat(20_000))),
            "flood" => CallToolResult::success(text(&"x".repeat(6 << 20))),
            "picture" => CallToolResult::success(vec![ContentBlock::image("AAAA", "image/png")]),
            "slow" => {
                context.ct.cancelled().await;
                self.0.lock().unwrap().cancelled.push(context.id);
                CallToolResult::success(vec![])
            }
            "structured" => CallToolResult::structured(json!({"got": args})),
            _ => CallToolResult::success(text(&format!("did {} with {args}", request.name))),
        }
        .into())
    }
}

impl MockMcp {
    /// Starts a server with these tools.
    pub(crate) async fn start(tools: Vec<Tool>) -> MockMcp {
        MockMcp::start_on_port(McpState { tools, ..McpState::default() }, 0).await
    }

    pub(crate) async fn start_on_port(state: McpState, port: u16) -> MockMcp {
        let state = Arc::new(Mutex::new(state));
        let stop_token = CancellationToken::new();
        let mut config = StreamableHttpServerConfig::default();
        config.cancellation_token = stop_token.child_token();
        let handler = McpHandler(state.clone());
        let service = StreamableHttpService::new(
            move || Ok(handler.clone()),
            Arc::new(LocalSessionManager::default()),
            config,
        );
        let header_state = state.clone();
        let record_headers = axum::middleware::from_fn(
            move |request: axum::extract::Request, next: axum::middleware::Next| {
                let headers = request
                    .headers()
                    .iter()
                    .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()));
                header_state.lock().unwrap().headers = headers.collect();
                next.run(request)
            },
        );
        let router = axum::Router::new().nest_service("/mcp", service).layer(record_headers);
        let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (tower_service, listener_token) =
            (hyper_util::service::TowerToHyperService::new(router), stop_token.clone());
        // A connection ends with the server, as it does with a process.
        tokio::spawn(async move {
            while let Some(Ok((socket, _))) = listener_token.run_until_cancelled(listener.accept()).await {
                let (tower_service, connection_token) = (tower_service.clone(), listener_token.clone());
                tokio::spawn(async move {
                    let socket = hyper_util::rt::TokioIo::new(socket);
                    let connection =
                        hyper::server::conn::http1::Builder::new().serve_connection(socket, tower_service);
                    let _ = connection_token.run_until_cancelled(connection).await;
                });
            }
        });
        MockMcp { state, port, stop_token }
    }

    /// Configuration of the server, with these fields beside its URL.
    pub(crate) fn config(&self, fields: &Value) -> McpConfig {
        let mut mcp_config = json!({"url": format!("http://127.0.0.1:{}/mcp", self.port)});
        mcp_config.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        serde_json::from_value(mcp_config).unwrap()
    }

    /// Notifies clients that the tools have changed.
    pub(crate) async fn notify_tools_changed(&self) {
        let peers = self.state.lock().unwrap().peers.clone();
        for peer in peers {
            let _ = peer.notify_tool_list_changed().await;
        }
    }

    /// Waits until the recorded requests satisfy a condition.
    pub(crate) async fn wait_until(&self, mut condition: impl FnMut(&McpState) -> bool) {
        with_timeout(async {
            while !condition(&self.state.lock().unwrap()) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
    }

    pub(crate) fn calls(&self) -> Vec<(String, Value)> {
        self.state.lock().unwrap().calls.clone()
    }

    /// Ends the server and its connections.
    pub(crate) fn stop(&self) {
        self.stop_token.cancel();
    }
}

impl Drop for MockMcp {
    fn drop(&mut self) {
        self.stop_token.cancel();
    }
}

/// A read-only tool.
pub(crate) fn read_only_tool(name: &str) -> Tool {
    tool(name).with_annotations(ToolAnnotations::new().read_only(true))
}

/// Names of the tools visible to a key.
pub(crate) async fn listed_tools(server: &TestServer) -> Vec<String> {
    let tools = server.get("/api/v1/tools?limit=200").await.json;
    tools["data"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// Waits until these tools are visible to a key.
pub(crate) async fn wait_until_listed(server: &TestServer, names: &[&str]) {
    with_timeout(async {
        while listed_tools(server).await != names {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

/// A request that names these tools.
pub(crate) fn request_with_tools(tools: &[&str]) -> Value {
    let mut request: Map<String, Value> = crate::tool_kit::english_option().as_object().unwrap().clone();
    request.insert("tools".into(), json!(tools));
    crate::tool_kit::tool_request(&request.into())
}
