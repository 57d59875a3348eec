//! `POST /prompts/render` and `POST /macros/migrate`: what a model would be sent, and macros of other programs as templates.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::Deserialize;
use serde_json::{Map, Value};
use tambour_prompt::lore::Timed;
use tambour_prompt::macros::migrate;

use super::keys::Caller;
use super::problem::{Problem, body};
use crate::app::App;
use crate::skeins::{How, Parts, Tokenizer, render, shown};

/// What is asked of `POST /api/v1/prompts/render`.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RenderPrompt {
    /// The prompt: an object, or its YAML; what the card or the book becomes when absent.
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    skein: Option<Value>,
    /// An imported card: its character, and its world info.
    #[serde(default)]
    card_id: Option<String>,
    /// Imported books: their world info.
    #[serde(default)]
    lorebook_ids: Vec<String>,
    /// The variables of the templates: `user`, `char`, `history`, `state`, `now`, `seed` and any other name.
    #[serde(default)]
    #[schema(value_type = Object)]
    context: Map<String, Value>,
    /// What world info did in earlier turns: `timed` of the answer to the turn before.
    #[serde(default)]
    #[schema(value_type = Object)]
    timed: Timed,
    /// Tokens of the prompt, at most; what it says itself when absent.
    #[serde(default)]
    max_context: Option<usize>,
    /// What tokens are counted with.
    #[serde(default)]
    tokenizer: Tokenizer,
    /// Whether a variable that is missing is an error.
    #[serde(default)]
    strict: bool,
    /// Whether the model is told of the protocols where no slot `protocols` asks for it.
    #[serde(default)]
    instructions: bool,
}

/// `POST /api/v1/prompts/render`: the text and the messages, their tokens, and what was left out. No model is asked.
pub(super) async fn preview(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    bytes: Bytes,
) -> Result<Response, Problem> {
    let asked: RenderPrompt = body(&bytes)?;
    let parts = Parts {
        skein: asked.skein,
        card: asked.card_id,
        books: asked.lorebook_ids,
        context: asked.context,
        timed: asked.timed,
    };
    let how = How {
        max_context: asked.max_context,
        tokenizer: asked.tokenizer,
        counted: true,
        itemised: true,
        strict: asked.strict,
        instructions: asked.instructions,
    };
    let rendered = render(&app, &caller.owner, parts, how).await?;
    Ok(Json(shown(&rendered)).into_response())
}

/// What is asked of `POST /api/v1/macros/migrate`.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MigrateMacros {
    /// A text with macros.
    text: String,
}

/// `POST /api/v1/macros/migrate`: the text as a template, what was noticed, and what was translated.
pub(super) async fn macros(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    bytes: Bytes,
) -> Result<Response, Problem> {
    let MigrateMacros { text } = body(&bytes)?;
    app.aside.run(&caller.owner, move || Json(migrate(&text)).into_response()).await
}
