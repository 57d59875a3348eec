//! The description of the interface, and a page to browse it. Nothing is loaded from elsewhere.

use axum::Json;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};
use utoipa::OpenApi;

use super::answers::{PostedConfirmation, PostedError, PostedResult, ToolConfirmations, ToolResults};
use super::conversations::NewConversation;
use super::decode::{Check, Decode};
use super::keys::NewKey;
use super::messages::{IfBusy, NewMessage};
use super::routes::{Answer, OPERATIONS, Operation};
use super::schemas;
use super::tools::{InlineTool, ToolChoice};
use crate::reading::{self, Contract};
use crate::tools::{Definition, Executor};
use crate::upstream::Message;

#[derive(OpenApi)]
#[openapi(components(schemas(
    NewMessage,
    IfBusy,
    Message,
    Contract,
    Decode,
    Check,
    NewKey,
    NewConversation,
    Definition,
    Executor,
    ToolChoice,
    InlineTool,
    ToolResults,
    PostedResult,
    PostedError,
    ToolConfirmations,
    PostedConfirmation,
)))]
struct Schemas;

/// `GET /openapi.json`
pub(super) async fn document() -> Json<Value> {
    let mut paths = Map::new();
    for operation in OPERATIONS {
        let entry = paths.entry(operation.path).or_insert_with(|| json!({}));
        entry[operation.method] = described(operation);
    }
    let mut schemas =
        serde_json::to_value(Schemas::openapi()).unwrap_or_default()["components"]["schemas"].take();
    schemas["Contract"]["properties"]["options"] = reading::schema();
    for (name, schema) in schemas::answers() {
        schemas[name] = schema;
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

fn reference(schema: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{schema}")})
}

fn described(operation: &Operation) -> Value {
    let events = || json!({"text/event-stream": {"schema": reference("Event")}});
    let content = match operation.answer {
        Answer::Json(schema) => json!({"application/json": {"schema": reference(schema)}}),
        Answer::Events => events(),
        Answer::Text(kind) => json!({kind: {"schema": {"type": "string"}}}),
        Answer::Empty => json!({}),
    };
    let problem = json!({"application/problem+json": {"schema": reference("Problem")}});
    let mut described = json!({
        "summary": operation.summary,
        "responses": {
            operation.status: {"description": "done", "content": content},
            "default": {"description": "a problem", "content": problem},
        },
    });
    let mut parameters = Vec::new();
    for name in ["id", "name"] {
        if operation.path.contains(&format!("{{{name}}}")) {
            parameters
                .push(json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}}));
        }
    }
    if let Some(schema) = operation.request {
        described["requestBody"] = json!({
            "required": schema != "NewConversation",
            "content": {"application/json": {"schema": reference(schema)}},
        });
    }
    match operation.path {
        "/api/v1/conversations" | "/api/v1/conversations/{id}" | "/api/v1/tools" | "/api/v1/keys"
            if operation.method == "get" =>
        {
            let about = [
                ("limit", "integer", "rows of the page, 1 to 200; 50 if absent"),
                ("after", "string", "id of the row before the page"),
            ];
            for (name, kind, about) in about {
                parameters.push(
                    json!({"name": name, "in": "query", "schema": {"type": kind}, "description": about}),
                );
            }
        }
        "/api/v1/messages" => {
            described["responses"]["200"] = json!({"description": "with `stream`, the event stream itself; with `wait`, the record", "content": {
                "text/event-stream": {"schema": reference("Event")},
                "application/json": {"schema": reference("Record")},
            }});
            let about = "a word of the client's own: the same request with it is the same message for a day";
            parameters.push(
                json!({"name": "Idempotency-Key", "in": "header", "schema": {"type": "string"}, "description": about}),
            );
        }
        "/api/v1/messages/{id}/cancel" => {
            described["responses"]["200"] = json!({
                "description": "it has ended before",
                "content": {"application/json": {"schema": reference("Cancelled")}},
            });
        }
        "/api/v1/messages/{id}/events" => {
            described["responses"]["204"] = json!({"description": "nothing comes after the cursor"});
            for (name, place) in [("Last-Event-ID", "header"), ("after", "query")] {
                let about = "number of the last event that was seen";
                parameters.push(
                    json!({"name": name, "in": place, "schema": {"type": "string"}, "description": about}),
                );
            }
        }
        _ => {}
    }
    if !parameters.is_empty() {
        described["parameters"] = parameters.into();
    }
    if operation.path.starts_with("/api/") {
        described["security"] = json!([{"key": []}, {}]);
    }
    described
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
