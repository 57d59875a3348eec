//! `POST /api/v1/prompts/render` and `POST /api/v1/macros/migrate`: previews of prompts, and conversion of
//! macros to templates.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::Deserialize;
use serde_json::{Map, Value};
use tambour_prompt::lore::TimedEffects;
use tambour_prompt::macros::migrate;

use super::keys::Caller;
use crate::base::problem::{Problem, parse_body};
use crate::base::tokenizer::Tokenizer;
use crate::http::app::App;
use crate::run::skeins::{PromptSources, RenderSettings, render, rendered_json};

/// Body of `POST /api/v1/prompts/render`.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RenderPrompt {
    /// Skein, as an object or YAML; made from the card or lorebook when absent.
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    skein: Option<Value>,
    /// Id of an imported card: its character and lore.
    #[serde(default)]
    card_id: Option<String>,
    /// Ids of imported lorebooks.
    #[serde(default)]
    lorebook_ids: Vec<String>,
    /// Variables of the templates: `user`, `char`, `history`, `state`, `now`, `seed` and any other name.
    #[serde(default)]
    #[schema(value_type = Object)]
    context: Map<String, Value>,
    /// State of timed lore: the field `timed` of the previous turn's response.
    #[serde(default)]
    #[schema(value_type = Object)]
    timed: TimedEffects,
    /// Maximum number of tokens of the prompt; the Skein's own limit when absent.
    #[serde(default)]
    max_context: Option<usize>,
    /// Method of counting tokens.
    #[serde(default)]
    tokenizer: Tokenizer,
    /// Treats a missing variable as an error.
    #[serde(default)]
    strict: bool,
    /// Adds the protocol instructions where no slot `protocols` asks for them.
    #[serde(default)]
    instructions: bool,
}

/// `POST /api/v1/prompts/render`: text, messages, tokens and omitted parts. No model is called.
pub(super) async fn render_preview(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    bytes: Bytes,
) -> Result<Response, Problem> {
    let request: RenderPrompt = parse_body(&bytes)?;
    let parts = PromptSources {
        skein: request.skein,
        card: request.card_id,
        books: request.lorebook_ids,
        context: request.context,
        timed: request.timed,
    };
    let settings = RenderSettings {
        max_context: request.max_context,
        tokenizer: request.tokenizer,
        count_tokens: true,
        count_parts: true,
        strict: request.strict,
        instructions: request.instructions,
    };
    let rendered_prompt = render(&app, &caller.owner, parts, settings).await?;
    Ok(Json(rendered_json(&rendered_prompt)).into_response())
}

/// Body of `POST /api/v1/macros/migrate`.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MigrateMacros {
    /// Text with macros.
    text: String,
}

/// `POST /api/v1/macros/migrate`: the text as a template, with notes and the translated macros.
pub(super) async fn migrate_macros(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    bytes: Bytes,
) -> Result<Response, Problem> {
    let MigrateMacros { text } = parse_body(&bytes)?;
    app.cpu_pool.run(&caller.owner, move || Json(migrate(&text)).into_response()).await
}
