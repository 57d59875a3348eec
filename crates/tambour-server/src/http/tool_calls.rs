//! Calls of a registered tool without a model: `POST /api/v1/tools/{name}/calls`.

use std::sync::Arc;
use std::time::Instant;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::{Extension, Json};
use serde::Deserialize;
use serde_json::{Value, json};
use tambour::event::ToolResult;

use super::keys::Caller;
use super::tools::select_named;
use crate::base::cpu_pool::run_in_place;
use crate::base::durations::millis;
use crate::base::ids;
use crate::base::metrics::Metrics;
use crate::base::problem::{Problem, parse_body};
use crate::http::app::App;
use crate::run::runner;
use crate::telemetry::TraceSpan;
use crate::tools::{Executor, WebhookRequest};

/// Body of `POST /api/v1/tools/{name}/calls`.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewToolCall {
    /// Arguments of the call.
    #[serde(default)]
    #[schema(value_type = Object)]
    args: Value,
    /// Name of the caller, if the tool is limited to callers.
    #[serde(default)]
    caller: Option<String>,
    /// True once a person has confirmed this call, if the tool requires that.
    #[serde(default)]
    confirmed: bool,
}

/// `POST /api/v1/tools/{name}/calls`: checks the arguments, runs the tool once, and returns its result. The
/// call continues if the client disconnects.
pub(super) async fn call(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    bytes: Bytes,
) -> Result<Json<Value>, Problem> {
    let NewToolCall { args, caller: caller_name, confirmed } = parse_body(&bytes)?;
    // Keys that are limited to aliases may not call tools.
    caller.limits.check_alias(None)?;
    let args = if args.is_null() { json!({}) } else { args };
    // The tool is named by the path, so a missing one is a 404.
    let selected_tool = match select_named(&app, &caller, &name).await {
        Err(problem) if problem.code() == "unknown_tool" => return Err(Problem::not_found(problem.detail())),
        found => found?,
    };
    if let Executor::Client {} = selected_tool.executor {
        let detail =
            format!("`{name}` is run by the client that offers it to a model; the server cannot call it");
        return Err(Problem::invalid("tool_of_client", detail).with("field", "name"));
    }
    if selected_tool.tool.requires_confirmation && !confirmed {
        let detail = format!("`{name}` runs only after a person has agreed to the call: send `confirmed`");
        return Err(Problem::conflict("confirmation_required", detail).with("field", "confirmed"));
    }
    // A webhook may take minutes, so the call counts among the running messages of the owner. It is
    // registered like a turn of a dialogue named after the tool.
    let running_turn = super::dialogues::register_turn(&app, &caller, &name).await?;
    app.admit_request(&caller).await?;
    let call_id = ids::new_id("call");
    let task_app = app.clone();
    app.run_to_completion(async move {
        let _registration = running_turn;
        let loaded_config = task_app.loaded_config();
        let language = task_app.settings().texts().language;
        let start_time = Instant::now();
        let request = WebhookRequest {
            // The call belongs to no message, so its own id takes the place of the message's.
            message_id: &call_id,
            call_id: &call_id,
            name: &name,
            args: &args,
            caller: caller_name.as_deref(),
        };
        let refusal = {
            // A schema check may take long: it waits for a permit of the CPU pool, and does not block other
            // tasks.
            let _permit = task_app.cpu_pool.acquire(&caller.owner).await?;
            run_in_place(|| {
                runner::refusal_of_call(&loaded_config, &selected_tool, caller_name.as_deref(), &args)
            })
        };
        let answer = match refusal {
            Some(call_error) => Err(call_error),
            None => {
                Metrics::increment(&task_app.metrics.tool_calls);
                runner::execute(&loaded_config, &selected_tool.executor, &request, &TraceSpan::default())
                    .await
            }
        };
        let elapsed_ms = millis(start_time.elapsed());
        let (result, error) = match answer {
            Ok(result) => (Some(result), None),
            Err(call_error) => (None, Some(call_error.error(language))),
        };
        // One request without tokens.
        task_app.charge_key(&caller.key, &caller.owner, 1, &Value::Null).await;
        Ok(Json(json!(ToolResult { call_id, ok: error.is_none(), result, error, elapsed_ms })))
    })
    .await
}
