//! Executes one tool call on the server side, for a reply or for a client.

use serde_json::Value;

use crate::app::Loaded;
use crate::telemetry::Span;
use crate::tools::{Executor, Offered, Request, Trouble};

/// Returns the reason why a call must not run. The call was checked when it was read; this is the last check
/// before it has effects.
pub(crate) fn barred(
    loaded: &Loaded,
    offered: &Offered,
    caller: Option<&str>,
    args: &Value,
) -> Option<Trouble> {
    if !offered.tool.allows(caller) {
        return Some(Trouble::Forbidden(offered.tool.name.clone()));
    }
    if let Some(mismatch) = offered.tool.check(args, 1).into_iter().next() {
        return Some(Trouble::Arguments(mismatch.message, mismatch.pointer));
    }
    let Executor::Http { url, .. } = &offered.executor else { return None };
    loaded.webhooks.guard().url(url).err().map(Trouble::Host)
}

/// Runs a call once, by a webhook or an MCP server.
pub(crate) async fn execute(
    loaded: &Loaded,
    executor: &Executor,
    request: &Request<'_>,
    span: &Span,
) -> Result<Value, Trouble> {
    match executor {
        Executor::Http { url, timeout_ms, secret, secret_env } => {
            let secrets = (secret.as_ref(), secret_env.as_deref());
            loaded.webhooks.call(url, secrets, *timeout_ms, request, span).await
        }
        Executor::Mcp { server, tool } => loaded.mcp.call(server, tool, request.args).await,
        Executor::Client {} => Err(Trouble::Nobody),
    }
}
