//! `POST /api/v1/decode` and `POST /api/v1/check`: decode or check one reply, as the CLI commands of these
//! names do.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::Deserialize;
use serde_json::{Value, json};
use tambour::event::{Event, FinishReason, JoinedEvents};
use tambour::verdict::Contract as VerdictContract;
use tambour::{InputEnd, Options, Pipeline, Profile};

use super::keys::Caller;
use super::new_message::request_options;
use crate::base::cpu_pool::OFFLOAD_BYTES;
use crate::base::fail;
use crate::base::problem::{Problem, parse_body};
use crate::config::reading_defaults::Contract;
use crate::http::app::App;

/// Body of `POST /api/v1/decode`.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Decode {
    /// Raw reply.
    reply: String,
    /// Dialect of the reply; `auto` detects it.
    #[serde(default)]
    dialect: Option<String>,
    /// Profile and options.
    #[serde(default)]
    contract: Option<Contract>,
    /// `stop`, `length`, `content_filter`, `tool_calls` or `cancelled`.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    finish_reason: Option<FinishReason>,
    /// Includes extension events in the response.
    #[serde(default)]
    extensions: bool,
    /// Includes the reply as it should have been written.
    #[serde(default)]
    repaired: bool,
}

/// Runs the work of a request and serializes its result. Uses the CPU pool if the request, of `byte_count`
/// bytes, is long or has a schema.
async fn run_work(
    app: &App,
    caller: &Caller,
    byte_count: usize,
    options: &Options,
    work: impl FnOnce() -> Result<Value, Problem> + Send + 'static,
) -> Result<Response, Problem> {
    let is_offloaded = byte_count > OFFLOAD_BYTES || options.json_schema().is_some();
    let respond = move || {
        fail::point("decode");
        // Serializing the response takes time too.
        work().map(|answer| Json(answer).into_response())
    };
    if is_offloaded { app.cpu_pool.run(&caller.owner, respond).await? } else { respond() }
}

/// `POST /api/v1/decode`: `events` with adjacent deltas merged, and `findings`.
pub(super) async fn decode(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    bytes: Bytes,
) -> Result<Response, Problem> {
    let request: Decode = parse_body(&bytes)?;
    let options = request_options(&app, &caller.owner, request.contract.as_ref()).await?;
    run_work(&app, &caller, bytes.len(), &options.clone(), move || decode_reply(&request, &options)).await
}

fn decode_reply(request: &Decode, options: &Options) -> Result<Value, Problem> {
    let dialect = request.dialect.as_deref().unwrap_or("auto");
    let pipeline = Pipeline::new(dialect, options)
        .map_err(|error| Problem::invalid("unknown_dialect", error.to_string()))?;
    // Adjacent deltas are joined: otherwise there may be as many deltas as the reply has bytes.
    let mut sink = JoinedEvents::default();
    let mut pipeline = pipeline.with_extensions(request.extensions);
    pipeline.push_str(&request.reply, &mut sink);
    pipeline.finish(&InputEnd::Finished(request.finish_reason.unwrap_or_default()), &mut sink);
    let mut answer =
        json!({ "dialect": pipeline.dialect(), "events": sink.events, "findings": sink.findings });
    if request.repaired {
        answer["repaired"] = json!(repair_reply(request, dialect, options));
    }
    Ok(answer)
}

/// Reads the reply leniently and rewrites it in its correct form. `None` if nothing of it is usable, or its
/// dialect cannot be written.
fn repair_reply(request: &Decode, dialect: &str, options: &Options) -> Option<String> {
    let mut options = options.clone();
    options.profile = Profile::Lenient;
    let mut pipeline = Pipeline::new(dialect, &options).ok()?.with_extensions(true);
    let mut events = JoinedEvents::default();
    pipeline.push_str(&request.reply, &mut events);
    pipeline.finish(&InputEnd::Finished(request.finish_reason.unwrap_or_default()), &mut events);
    match events.events.last() {
        Some(Event::Completed(completed)) if completed.metadata.fallback_reason.is_none() => {
            pipeline.rewrite(&events.events)
        }
        _ => None,
    }
}

/// Body of `POST /api/v1/check`.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Check {
    /// Raw reply, or transcript of a stream.
    reply: String,
    /// Dialect, or `events`; `auto` when absent.
    #[serde(default)]
    contract: Option<String>,
    /// `strict` (default) or `lenient`.
    #[serde(default)]
    profile: Option<String>,
    /// Options by their public names.
    #[serde(default)]
    options: std::collections::BTreeMap<String, Value>,
}

/// `POST /api/v1/check`: `verdict` is `pass` or `fail`.
pub(super) async fn check(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    bytes: Bytes,
) -> Result<Response, Problem> {
    let request: Check = parse_body(&bytes)?;
    let contract = Contract {
        profile: Some(request.profile.unwrap_or_else(|| "strict".to_owned())),
        options: request.options,
    };
    let options = request_options(&app, &caller.owner, Some(&contract)).await?;
    let (contract_name, reply) = (request.contract, request.reply);
    run_work(&app, &caller, bytes.len(), &options.clone(), move || {
        check_reply(contract_name.as_deref(), &reply, &options)
    })
    .await
}

/// Checks a reply. `contract_name` is a dialect, or `events` if the reply is the transcript of a stream.
fn check_reply(contract_name: Option<&str>, reply: &str, options: &Options) -> Result<Value, Problem> {
    let contract = VerdictContract::from_name(contract_name.unwrap_or("auto"))
        .map_err(|error| Problem::invalid("unknown_contract", error.to_string()))?;
    let verdict = contract.check(reply.as_bytes(), options);
    let verdict_word = if verdict.passed() { "pass" } else { "fail" };
    Ok(json!({ "contract": verdict.contract, "verdict": verdict_word, "findings": verdict.findings }))
}
