//! Available models: `GET /v1/models`.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::{Extension, Json};
use serde_json::{Value, json};

use crate::app::App;
use crate::http::keys::Caller;
use crate::http::problem::Problem;

/// `GET /v1/models`: aliases, then each upstream with its default model.
pub(in crate::http) async fn list(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
) -> Json<Value> {
    let may = |name: &&String| caller.limits.only(Some(name)).is_ok();
    let data: Vec<Value> = names(&app).iter().filter(may).map(|name| model(name)).collect();
    Json(json!({"object": "list", "data": data}))
}

/// `GET /v1/models/{name}`
pub(in crate::http) async fn show(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
) -> Result<Json<Value>, Problem> {
    caller.limits.only(Some(&name))?;
    let known = names(&app);
    let upstream = name.split_once('/').map_or(&*name, |(upstream, _)| upstream);
    if known.contains(&name) || app.loaded().upstreams.contains_key(upstream) {
        return Ok(Json(model(&name)));
    }
    Err(Problem::new(StatusCode::NOT_FOUND, "model_not_found", format!("there is no model `{name}`")))
}

fn names(app: &App) -> Vec<String> {
    let loaded = app.loaded();
    let of_upstream = loaded.config.upstreams.iter().map(|(name, upstream)| match &upstream.model {
        Some(model) => format!("{name}/{model}"),
        None => name.clone(),
    });
    loaded.config.aliases.keys().cloned().chain(of_upstream).collect()
}

fn model(name: &str) -> Value {
    json!({"id": name, "object": "model", "created": 0, "owned_by": "tambour"})
}
