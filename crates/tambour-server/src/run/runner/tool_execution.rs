//! Executes one tool call over a webhook or an MCP server, for a reply or for a client's request.

use serde_json::Value;

use crate::run::loaded_config::LoadedConfig;
use crate::telemetry::TraceSpan;
use crate::tools::{CallError, Executor, OfferedTool, WebhookRequest};

/// Returns the reason why a call must not run: the caller may not use the tool, the arguments do not match
/// its schema, or the host of its URL is not allowed. A call of a reply was checked when it was read; this is
/// the last check before it has effects.
pub(crate) fn refusal_of_call(
    loaded_config: &LoadedConfig,
    offered_tool: &OfferedTool,
    caller: Option<&str>,
    args: &Value,
) -> Option<CallError> {
    if !offered_tool.tool.allows_caller(caller) {
        return Some(CallError::Forbidden(offered_tool.tool.name.clone()));
    }
    // Only the first mismatch is needed.
    if let Some(mismatch) = offered_tool.tool.check(args, 1).into_iter().next() {
        return Some(CallError::Arguments(mismatch.message, mismatch.pointer));
    }
    let Executor::Http { url, .. } = &offered_tool.executor else { return None };
    loaded_config.webhooks.guard().check_url(url).err().map(CallError::Host)
}

/// Runs a call once, over a webhook or an MCP server.
pub(crate) async fn execute(
    loaded_config: &LoadedConfig,
    executor: &Executor,
    request: &WebhookRequest<'_>,
    span: &TraceSpan,
) -> Result<Value, CallError> {
    match executor {
        Executor::Http { url, timeout_ms, secret, secret_env } => {
            let secrets = (secret.as_ref(), secret_env.as_deref());
            loaded_config.webhooks.call(url, secrets, *timeout_ms, request, span).await
        }
        Executor::Mcp { server, tool } => loaded_config.mcp.call(server, tool, request.args).await,
        Executor::Client {} => Err(CallError::NoExecutor),
    }
}
