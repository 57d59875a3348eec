//! The description of the interface, and a page to browse it. Nothing is loaded from elsewhere.

use axum::Json;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use utoipa::OpenApi;

use super::conversations::NewConversation;
use super::decode::{Check, Decode};
use super::keys::NewKey;
use super::messages::{Contract, NewMessage};
use crate::upstream::Message;

#[derive(OpenApi)]
#[openapi(components(schemas(NewMessage, Message, Contract, Decode, Check, NewKey, NewConversation)))]
struct Schemas;

/// One operation: method, path, summary, request schema, success status and what it answers.
type Operation = (&'static str, &'static str, &'static str, Option<&'static str>, &'static str, &'static str);

/// All operations of the interface.
pub(crate) const OPERATIONS: &[Operation] = &[
    (
        "post",
        "/api/v1/messages",
        "Ask a model",
        Some("NewMessage"),
        "202",
        "ids, or with `stream: true` (200) the event stream",
    ),
    (
        "get",
        "/api/v1/messages/{id}",
        "The record of a message",
        None,
        "200",
        "raw reply, events, findings, request, usage, timings",
    ),
    (
        "get",
        "/api/v1/messages/{id}/events",
        "Follow a message",
        None,
        "200",
        "Server-Sent Events; 204 after the last one",
    ),
    (
        "post",
        "/api/v1/messages/{id}/cancel",
        "Stop a message and its upstream call",
        None,
        "202",
        "its status",
    ),
    ("post", "/api/v1/decode", "Events of one reply", Some("Decode"), "200", "events and findings"),
    (
        "post",
        "/api/v1/check",
        "Hold one reply against its contract",
        Some("Check"),
        "200",
        "verdict and findings",
    ),
    ("get", "/api/v1/settings", "Settings", None, "200", "all settings"),
    ("put", "/api/v1/settings", "Change settings", Some("Object"), "200", "all settings"),
    ("get", "/api/v1/conversations", "Conversations, newest first", None, "200", "ids and times"),
    ("post", "/api/v1/conversations", "Begin a conversation", Some("NewConversation"), "201", "its id"),
    (
        "get",
        "/api/v1/conversations/{id}",
        "A conversation and its messages",
        None,
        "200",
        "messages, oldest first",
    ),
    ("get", "/api/v1/keys", "Keys, without secrets", None, "200", "all keys"),
    ("post", "/api/v1/keys", "Make a key", Some("NewKey"), "201", "the key with its secret, once"),
    ("delete", "/api/v1/keys/{id}", "Remove a key", None, "204", "nothing"),
    ("get", "/healthz", "Whether the process lives", None, "200", "ok"),
    ("get", "/readyz", "Whether it takes requests", None, "200", "ready"),
    ("get", "/metrics", "Counters, Prometheus text", None, "200", "counters"),
];

/// `GET /openapi.json`
pub(super) async fn document() -> Json<Value> {
    let mut schemas =
        serde_json::to_value(Schemas::openapi()).unwrap_or_default()["components"]["schemas"].take();
    schemas["Object"] = json!({"type": "object"});
    schemas["Problem"] = json!({
        "type": "object",
        "required": ["type", "title", "status", "code", "detail"],
        "properties": {
            "type": {"type": "string"}, "title": {"type": "string"}, "status": {"type": "integer"},
            "code": {"type": "string", "description": "stable"}, "detail": {"type": "string"},
            "field": {"type": "string"},
        },
    });
    let mut paths = serde_json::Map::new();
    for (method, path, summary, request, status, answer) in OPERATIONS {
        let kind = match *path {
            "/api/v1/messages/{id}/events" => "text/event-stream",
            "/healthz" | "/readyz" | "/metrics" => "text/plain",
            _ => "application/json",
        };
        let mut content = json!({});
        if *status != "204" {
            content[kind] = json!({"schema": {}});
        }
        let problem =
            json!({"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}});
        let mut operation = json!({
            "summary": summary,
            "responses": {
                *status: {"description": answer, "content": content},
                "default": {"description": "a problem", "content": problem},
            },
        });
        if *path == "/api/v1/messages" {
            operation["responses"]["200"] =
                json!({"description": "the event stream", "content": {"text/event-stream": {"schema": {}}}});
        }
        if let Some(schema) = request {
            let reference = json!({"$ref": format!("#/components/schemas/{schema}")});
            operation["requestBody"] = json!({"required": *schema != "NewConversation", "content": {"application/json": {"schema": reference}}});
        }
        if path.contains("{id}") {
            operation["parameters"] =
                json!([{"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}]);
        }
        if path.ends_with("/events") {
            let cursor = "number of the last event that was seen";
            for (name, place) in [("Last-Event-ID", "header"), ("after", "query")] {
                let parameter =
                    json!({"name": name, "in": place, "schema": {"type": "string"}, "description": cursor});
                operation["parameters"]
                    .as_array_mut()
                    .into_iter()
                    .for_each(|all| all.push(parameter.clone()));
            }
        }
        if path.starts_with("/api/") {
            operation["security"] = json!([{"key": []}, {}]);
        }
        let entry = paths.entry(*path).or_insert_with(|| json!({}));
        entry[*method] = operation;
    }
    Json(json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Tambour",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Structured replies of language models as one typed, repaired, contract-checked event stream.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }))
}

/// `GET /docs`
pub(super) async fn page() -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, "default-src 'self'; style-src 'self' 'unsafe-inline'"),
    ];
    (headers, include_str!("docs.html")).into_response()
}

/// `GET /docs.js`
pub(super) async fn script() -> Response {
    ([(header::CONTENT_TYPE, "text/javascript; charset=utf-8")], include_str!("docs.js")).into_response()
}
