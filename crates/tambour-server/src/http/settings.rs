//! `GET` and `PUT /api/v1/settings`. Reading requires a key, writing a key with the `admin` right.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::{Extension, Json};
use serde_json::{Map, Value, json};

use super::if_match::{self, ETagHeader, etag};
use super::keys::{Caller, require_admin};
use crate::base::durations::millis;
use crate::base::problem::{Problem, parse_body};
use crate::base::settings::{SETTINGS, Settings, VERSION_NAME};
use crate::http::app::App;
use crate::upstream::ProbedServer;

/// `GET /api/v1/settings`: the settings, with related values of the configuration.
pub(super) async fn show(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
) -> (ETagHeader, Json<Value>) {
    with_tag(settings_json(&app, caller.is_admin))
}

/// Adds the `ETag` header with the version of the settings.
fn with_tag(json: Value) -> (ETagHeader, Json<Value>) {
    (etag(&json[VERSION_NAME]), Json(json))
}

/// Describes the settings. Only an admin sees the models that clients have named.
fn settings_json(app: &App, is_admin: bool) -> Value {
    let (settings, loaded_config) = (app.settings(), app.loaded_config());
    let config = &loaded_config.config;
    let texts = settings.texts();
    let value = |name: &str, default: Value| settings.values.get(name).cloned().unwrap_or(default);
    let upstreams: Vec<Value> = config
        .upstreams
        .iter()
        .map(|(name, upstream)| {
            let probes = loaded_config.upstreams.get(name).map(|upstream| upstream.probed_servers());
            let is_configured = |model: &str| {
                let aliases = config.aliases.values().filter_map(|alias| alias.model.as_deref());
                model.is_empty()
                    || aliases.chain(upstream.model.as_deref()).any(|configured| configured == model)
            };
            let probes = probes.unwrap_or_default().into_iter();
            let probes = probes.filter(|probe| is_admin || is_configured(&probe.model));
            json!({
                "name": name, "kind": upstream.kind, "model": upstream.model,
                "constrain": upstream.constrain.unwrap_or_default(),
                "probes": probes.map(|probe| probe_json(&probe)).collect::<Vec<_>>(),
            })
        })
        .collect();
    json!({
        "version": settings.version(),
        "llm_app_settings": {
            "app_output_protocol": value("llm_app_settings.app_output_protocol", json!("legacy")),
        },
        "text_language": value("text_language", json!("zh")),
        "thought_display": value("thought_display", json!("collapsed")),
        "texts": {"fallback": texts.fallback, "phase_title": texts.phase_title},
        "upstreams": upstreams,
        "default_upstream": config.default_upstream(),
        "limits": config.limits,
        // The other settings of tools, such as the hosts of webhooks, are for the operator only.
        "tools": {"max_iterations": config.tools.max_iterations},
    })
}

/// Describes the forms that a model of a server obeys, as probes found.
fn probe_json(ProbedServer { model, server, fields, is_complete, age }: &ProbedServer) -> Value {
    let forms: Vec<Value> =
        fields.iter().map(|field| json!({"form": field.form.name(), "state": field.state.name()})).collect();
    json!({
        "model": (!model.is_empty()).then_some(model), "server": server, "complete": is_complete,
        "age_ms": millis(*age), "forms": forms,
    })
}

/// `PUT /api/v1/settings`: changes the settings in the body (nested or with dotted names), all or none.
/// `If-Match` or `version` may name the version on which the change is based.
pub(super) async fn change(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    bytes: Bytes,
) -> Result<(ETagHeader, Json<Value>), Problem> {
    require_admin(&caller)?;
    let header_version = if_match::base_number(&headers)?;
    let mut body: Map<String, Value> = parse_body(&bytes)?;
    let body_version = body.shift_remove("version").filter(|version| !version.is_null());
    if let Some(version) = body_version.as_ref().filter(|version| !version.is_u64()) {
        let detail = format!("`version` must be the number that `GET /api/v1/settings` shows, not {version}");
        return Err(Problem::invalid("invalid_field", detail).with("field", "version"));
    }
    let mut changes = Vec::new();
    for (name, value) in body {
        flatten(name, value, &mut changes);
    }
    for (name, value) in &changes {
        let Some((_, is_valid)) = SETTINGS.iter().find(|(setting_name, _)| setting_name == name) else {
            let known_names: Vec<&str> = SETTINGS.iter().map(|(name, _)| *name).collect();
            let detail = format!(
                "there is no setting `{name}` that can be changed; known: {}",
                known_names.join(", ")
            );
            return Err(Problem::invalid("unknown_field", detail).with("field", name.as_str()));
        };
        if !is_valid(value) {
            let detail = format!("the setting `{name}` does not take {value}");
            return Err(Problem::invalid("invalid_field", detail).with("field", name.as_str()));
        }
    }
    let task_app = app.clone();
    app.run_to_completion(async move {
        // One change at a time, so that changes reach memory and database in the same order.
        let _change_guard = task_app.settings_change.lock().await;
        if task_app.store.cluster().is_some() {
            // Another server may have changed the settings a moment ago.
            task_app.replace_settings(Settings::from_stored(task_app.store.settings().await?));
        }
        let current_version = task_app.settings().version();
        if header_version.is_some_and(|version| version != current_version) {
            let detail = format!(
                "the settings have changed in the meantime: they are now at version {current_version}"
            );
            let sent: Map<String, Value> = changes.into_iter().collect();
            return Err(if_match::outdated_problem(detail, settings_json(&task_app, true), sent.into()));
        }
        if let Some(body_version) = body_version.filter(|body_version| *body_version != current_version) {
            let detail = format!(
                "the settings are at version {current_version}, not {body_version}: read them again, then \
                 repeat the change"
            );
            return Err(Problem::conflict("settings_changed", detail).with("version", current_version));
        }
        changes.push((VERSION_NAME.to_owned(), json!(current_version + 1)));
        if let Err(error) = task_app.store.put_settings(&changes).await {
            // The outcome of the write is unknown, so the stored values are loaded.
            if let Ok(stored) = task_app.store.settings().await {
                task_app.replace_settings(Settings::from_stored(stored));
            }
            return Err(error.into());
        }
        let mut settings = task_app.settings();
        settings.values.extend(changes);
        task_app.replace_settings(settings);
        Ok(())
    })
    .await?;
    Ok(with_tag(settings_json(&app, true)))
}

/// Appends a setting to `out`. An object is replaced by its members, whose names are joined with dots.
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
