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

use crate::server::{Tambour, within};
use crate::tool_kit::schema;

/// Tools of the server, its behaviour, and the requests it received.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) tools: Vec<Tool>,
    /// Calls, with their arguments.
    pub(crate) calls: Vec<(String, Value)>,
    /// Calls that were cancelled.
    pub(crate) cancelled: Vec<NumberOrString>,
    pub(crate) lists: usize,
    /// Headers of the last request.
    pub(crate) headers: Vec<(String, String)>,
    /// Makes each page of the tools name a next page.
    pub(crate) endless: bool,
    /// Makes the server answer nothing.
    pub(crate) silent: bool,
    pub(crate) peers: Vec<Peer<RoleServer>>,
}

#[derive(Clone)]
struct Handler(Arc<Mutex<Seen>>);

/// A running server.
pub(crate) struct Mcp {
    pub(crate) seen: Arc<Mutex<Seen>>,
    pub(crate) port: u16,
    stop: CancellationToken,
}

/// A tool that accepts the arguments of the tests' plans.
pub(crate) fn tool(name: &str) -> Tool {
    let Value::Object(schema) = schema() else { unreachable!() };
    Tool::new(name.to_owned(), format!("what {name} does"), schema)
}

pub(crate) fn tool_with(name: &str, schema: Value) -> Tool {
    let Value::Object(schema) = schema else { unreachable!() };
    Tool::new(name.to_owned(), String::new(), schema)
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build())
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        if self.0.lock().unwrap().silent {
            std::future::pending::<()>().await;
        }
        let mut seen = self.0.lock().unwrap();
        seen.lists += 1;
        seen.peers.push(context.peer);
        // Two tools a page.
        let from: usize =
            request.and_then(|request| request.cursor).map_or(0, |cursor| cursor.parse().unwrap());
        let mut page =
            ListToolsResult::with_all_items(seen.tools.iter().skip(from).take(2).cloned().collect());
        let more = seen.endless || from + 2 < seen.tools.len();
        page.next_cursor = more.then(|| (from + 2).to_string());
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

impl Mcp {
    /// Starts a server with these tools.
    pub(crate) async fn start(tools: Vec<Tool>) -> Mcp {
        Mcp::of(Seen { tools, ..Seen::default() }, 0).await
    }

    pub(crate) async fn of(seen: Seen, port: u16) -> Mcp {
        let seen = Arc::new(Mutex::new(seen));
        let stop = CancellationToken::new();
        let mut config = StreamableHttpServerConfig::default();
        config.cancellation_token = stop.child_token();
        let handler = Handler(seen.clone());
        let service = StreamableHttpService::new(
            move || Ok(handler.clone()),
            Arc::new(LocalSessionManager::default()),
            config,
        );
        let heads = seen.clone();
        let noted = axum::middleware::from_fn(
            move |request: axum::extract::Request, next: axum::middleware::Next| {
                let shown = request
                    .headers()
                    .iter()
                    .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()));
                heads.lock().unwrap().headers = shown.collect();
                next.run(request)
            },
        );
        let router = axum::Router::new().nest_service("/mcp", service).layer(noted);
        let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (served, stopped) = (hyper_util::service::TowerToHyperService::new(router), stop.clone());
        // Connections end with the server, as they do with a process.
        tokio::spawn(async move {
            while let Some(Ok((socket, _))) = stopped.run_until_cancelled(listener.accept()).await {
                let (served, stopped) = (served.clone(), stopped.clone());
                tokio::spawn(async move {
                    let socket = hyper_util::rt::TokioIo::new(socket);
                    let connection =
                        hyper::server::conn::http1::Builder::new().serve_connection(socket, served);
                    let _ = stopped.run_until_cancelled(connection).await;
                });
            }
        });
        Mcp { seen, port, stop }
    }

    /// Configuration of the server, with these fields beside its URL.
    pub(crate) fn config(&self, more: &Value) -> McpConfig {
        let mut given = json!({"url": format!("http://127.0.0.1:{}/mcp", self.port)});
        given.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(given).unwrap()
    }

    /// Notifies clients that the tools have changed.
    pub(crate) async fn changed(&self) {
        let peers = self.seen.lock().unwrap().peers.clone();
        for peer in peers {
            let _ = peer.notify_tool_list_changed().await;
        }
    }

    /// Waits until the recorded requests satisfy a condition.
    pub(crate) async fn until(&self, mut fits: impl FnMut(&Seen) -> bool) {
        within(async {
            while !fits(&self.seen.lock().unwrap()) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
    }

    pub(crate) fn calls(&self) -> Vec<(String, Value)> {
        self.seen.lock().unwrap().calls.clone()
    }

    /// Ends the server and its connections.
    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }
}

impl Drop for Mcp {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// A read-only tool.
pub(crate) fn reading(name: &str) -> Tool {
    tool(name).with_annotations(ToolAnnotations::new().read_only(true))
}

/// Names of the tools visible to a key.
pub(crate) async fn listed(server: &Tambour) -> Vec<String> {
    let tools = server.get("/api/v1/tools?limit=200").await.json;
    tools["data"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// Waits until these tools are visible to a key.
pub(crate) async fn until_listed(server: &Tambour, names: &[&str]) {
    within(async {
        while listed(server).await != names {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

/// A request that names these tools.
pub(crate) fn naming(tools: &[&str]) -> Value {
    let mut more: Map<String, Value> = crate::tool_kit::english().as_object().unwrap().clone();
    more.insert("tools".into(), json!(tools));
    crate::tool_kit::ask(&more.into())
}
