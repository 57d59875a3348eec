//! Available models: listing them, and showing one (`GET /v1/models`).

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::{Extension, Json};
use serde_json::{Value, json};

use crate::base::problem::Problem;
use crate::http::app::App;
use crate::http::keys::Caller;

/// `GET /v1/models`: aliases, then each upstream with its default model, as far as the key may use them.
pub(in crate::http) async fn list(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
) -> Json<Value> {
    let is_allowed = |name: &&String| caller.limits.check_alias(Some(name)).is_ok();
    let models: Vec<Value> =
        model_names(&app).iter().filter(is_allowed).map(|name| model_json(name)).collect();
    Json(json!({"object": "list", "data": models}))
}

/// `GET /v1/models/{name}`: an alias, or any model of a configured upstream, even one that is not in the
/// list.
pub(in crate::http) async fn show(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
) -> Result<Json<Value>, Problem> {
    caller.limits.check_alias(Some(&name))?;
    let models = model_names(&app);
    let upstream = name.split_once('/').map_or(&*name, |(upstream, _)| upstream);
    if models.contains(&name) || app.loaded_config().upstreams.contains_key(upstream) {
        return Ok(Json(model_json(&name)));
    }
    Err(Problem::new(StatusCode::NOT_FOUND, "model_not_found", format!("there is no model `{name}`")))
}

fn model_names(app: &App) -> Vec<String> {
    let loaded_config = app.loaded_config();
    let upstream_models =
        loaded_config.config.upstreams.iter().map(|(name, upstream)| match &upstream.model {
            Some(model) => format!("{name}/{model}"),
            None => name.clone(),
        });
    loaded_config.config.aliases.keys().cloned().chain(upstream_models).collect()
}

/// Describes a model. The protocol requires `created`, which is unknown.
fn model_json(name: &str) -> Value {
    json!({"id": name, "object": "model", "created": 0, "owned_by": "tambour"})
}
