//! `POST /decode` and `POST /check`: the commands of the same names, for one reply.

use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use tambour::event::{Collected, FinishReason};
use tambour::verdict::Contract as Held;
use tambour::{End, Pipeline};

use super::new_message::options;
use super::problem::{Problem, body};
use crate::app::App;
use crate::aside::LONG;
use crate::fail;
use crate::reading::Contract;

/// What is asked of `POST /api/v1/decode`.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Decode {
    /// The raw reply.
    reply: String,
    /// How it is written; `auto` finds out.
    #[serde(default)]
    dialect: Option<String>,
    /// Profile and options.
    #[serde(default)]
    contract: Option<Contract>,
    /// `stop`, `length`, `content_filter`, `tool_calls` or `cancelled`.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    finish_reason: Option<FinishReason>,
    /// Whether extension events are wanted.
    #[serde(default)]
    extensions: bool,
}

/// Does what a request asks for: here, or beside the workers when it is long.
async fn done(
    app: Arc<App>,
    bytes: Bytes,
    work: fn(&App, &Bytes) -> Result<Value, Problem>,
) -> Result<Response, Problem> {
    let long = bytes.len() > LONG;
    let worker = app.clone();
    let done = move || {
        fail::point("decode");
        // Writing the answer takes its time too.
        work(&worker, &bytes).map(|answer| Json(answer).into_response())
    };
    if long { app.aside.run(done).await? } else { done() }
}

/// `POST /api/v1/decode`: `events` with neighbouring deltas joined, and `findings`.
pub(super) async fn decode(State(app): State<Arc<App>>, bytes: Bytes) -> Result<Response, Problem> {
    done(app, bytes, decoded).await
}

fn decoded(app: &App, bytes: &Bytes) -> Result<Value, Problem> {
    let asked: Decode = body(bytes)?;
    let options = options(app, asked.contract.as_ref())?;
    let dialect = asked.dialect.as_deref().unwrap_or("auto");
    let pipeline = Pipeline::new(dialect, &options)
        .map_err(|error| Problem::invalid("unknown_dialect", error.to_string()))?;
    let mut sink = Collected::default();
    let mut pipeline = pipeline.with_extensions(asked.extensions);
    pipeline.push_str(&asked.reply, &mut sink);
    pipeline.finish(&End::Finished(asked.finish_reason.unwrap_or_default()), &mut sink);
    Ok(json!({ "dialect": pipeline.dialect(), "events": sink.joined(), "findings": sink.findings }))
}

/// What is asked of `POST /api/v1/check`.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Check {
    /// The raw reply, or the transcript of a stream.
    reply: String,
    /// A dialect, or `events`; `auto` when absent.
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
pub(super) async fn check(State(app): State<Arc<App>>, bytes: Bytes) -> Result<Response, Problem> {
    done(app, bytes, checked).await
}

fn checked(app: &App, bytes: &Bytes) -> Result<Value, Problem> {
    let asked: Check = body(bytes)?;
    let contract = Contract {
        profile: Some(asked.profile.unwrap_or_else(|| "strict".to_owned())),
        options: asked.options,
    };
    let options = options(app, Some(&contract))?;
    let held = Held::named(asked.contract.as_deref().unwrap_or("auto"))
        .map_err(|error| Problem::invalid("unknown_contract", error.to_string()))?;
    let verdict = held.check(asked.reply.as_bytes(), &options);
    let word = if verdict.passed() { "pass" } else { "fail" };
    Ok(json!({ "contract": verdict.contract, "verdict": word, "findings": verdict.findings }))
}
