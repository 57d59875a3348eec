//! `GET` and `PUT /settings`. Reading requires any key, writing one with the `admin` right.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::{Extension, Json};
use serde_json::{Map, Value, json};

use super::if_match::{self, ETagHeader, etag};
use super::keys::{Caller, require_admin};
use crate::base::problem::{Problem, parse_body};
use crate::base::settings::{SETTINGS, Settings, VERSION_NAME};
use crate::http::app::App;

/// `GET /api/v1/settings`
pub(super) async fn show(State(app): State<Arc<App>>) -> (ETagHeader, Json<Value>) {
    with_tag(settings_json(&app))
}

/// Returns settings with the version on which a change can be based.
fn with_tag(json: Value) -> (ETagHeader, Json<Value>) {
    (etag(&json[VERSION_NAME]), Json(json))
}

fn settings_json(app: &App) -> Value {
    let (settings, loaded_config) = (app.settings(), app.loaded_config());
    let config = &loaded_config.config;
    let texts = settings.texts();
    let value = |name: &str, default: Value| settings.values.get(name).cloned().unwrap_or(default);
    let names: Vec<Value> = config
        .upstreams
        .iter()
        .map(|(name, upstream)| json!({"name": name, "kind": upstream.kind, "model": upstream.model}))
        .collect();
    json!({
        "version": settings.version(),
        "llm_app_settings": {
            "app_output_protocol": value("llm_app_settings.app_output_protocol", json!("legacy")),
        },
        "text_language": value("text_language", json!("zh")),
        "thought_display": value("thought_display", json!("collapsed")),
        "texts": {"fallback": texts.fallback, "phase_title": texts.phase_title},
        "upstreams": names,
        "default_upstream": config.default_upstream(),
        "limits": config.limits,
        // Webhook hosts are visible to the operator only.
        "tools": {"max_iterations": config.tools.max_iterations},
    })
}

/// `PUT /api/v1/settings`: changes the given values, nested or with dotted names; all or none.
pub(super) async fn change(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    bytes: Bytes,
) -> Result<(ETagHeader, Json<Value>), Problem> {
    require_admin(&caller)?;
    let based_on = if_match::base_number(&headers)?;
    let mut changes_json: Map<String, Value> = parse_body(&bytes)?;
    let base_version = changes_json.shift_remove("version").filter(|version| !version.is_null());
    if let Some(version) = base_version.as_ref().filter(|version| !version.is_u64()) {
        let detail = format!("`version` must be the number that `GET /api/v1/settings` shows, not {version}");
        return Err(Problem::invalid("invalid_field", detail).with("field", "version"));
    }
    let mut changes = Vec::new();
    for (name, value) in changes_json {
        flatten(name, value, &mut changes);
    }
    for (name, value) in &changes {
        let Some((_, is_valid)) = SETTINGS.iter().find(|(setting_name, _)| setting_name == name) else {
            let setting_name: Vec<&str> = SETTINGS.iter().map(|(name, _)| *name).collect();
            let detail = format!(
                "there is no setting `{name}` that can be changed; known: {}",
                setting_name.join(", ")
            );
            return Err(Problem::invalid("unknown_field", detail).with("field", name.as_str()));
        };
        if !is_valid(value) {
            let detail = format!("the setting `{name}` does not take {value}");
            return Err(Problem::invalid("invalid_field", detail).with("field", name.as_str()));
        }
    }
    let work = app.clone();
    app.run_to_completion(async move {
        // Serialized, so that memory and database get changes in the same order.
        let _change_guard = work.settings_change.lock().await;
        let now = work.settings().version();
        if based_on.is_some_and(|version| version != now) {
            let detail = format!("the settings have changed in the meantime: they are now at version {now}");
            let changes_map: Map<String, Value> = changes.into_iter().collect();
            return Err(if_match::outdated_problem(detail, settings_json(&work), changes_map.into()));
        }
        if let Some(base_version) = base_version.filter(|base_version| *base_version != now) {
            let detail = format!(
                "the settings are at version {now}, not {base_version}: read them again, then repeat the \
                 change"
            );
            return Err(Problem::conflict("settings_changed", detail).with("version", now));
        }
        changes.push((VERSION_NAME.to_owned(), json!(now + 1)));
        if let Err(error) = work.store.put_settings(&changes).await {
            // The outcome of the write is unknown, so the stored values are loaded.
            if let Ok(stored) = work.store.settings().await {
                work.replace_settings(Settings::from_stored(stored));
            }
            return Err(error.into());
        }
        let mut settings = work.settings();
        settings.values.extend(changes);
        work.replace_settings(settings);
        Ok(())
    })
    .await?;
    Ok(with_tag(settings_json(&app)))
}

/// Flattens objects to dotted names.
fn flatten(name: String, value: Value, out: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(inner) => {
            for (key, value) in inner {
                flatten(format!("{name}.{key}"), value, out);
            }
        }
        value => out.push((name, value)),
    }
}
