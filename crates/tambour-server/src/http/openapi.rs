//! OpenAPI description of the HTTP interface, and a page to browse it, which loads nothing from other hosts.

use axum::Json;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};
use utoipa::OpenApi;

use super::conversations::NewConversation;
use super::decode::{Check, Decode};
use super::dialogue_turns::{NewFork, NewReplay};
use super::dialogues::{GivenAnswer, NewDialogue, NewInput};
use super::idempotency::ResponseStorage;
use super::imports::{self, NewFile, NewImports};
use super::keys::{KeyChange, NewKey};
use super::new_message::{IfBusy, NewMessage};
use super::operation_docs;
use super::play::NewPlay;
use super::prompts::{MigrateMacros, RenderPrompt};
use super::routes::{ApiOperation, OPERATIONS, ResponseContent};
use super::schemas;
use super::scripts::{NewScript, ScriptText};
use super::states::{NewOperations, NewStateSchema, Rollback};
use super::templates::NewTemplate;
use super::tool_answers::{PostedConfirmation, PostedError, PostedResult, ToolConfirmations, ToolResults};
use super::tool_calls::NewToolCall;
use super::tools::{InlineTool, ToolChoice};
use super::versions::Publish;
use crate::base::tokenizer::Tokenizer;
use crate::config::reading_defaults::{self, Contract};
use crate::tools::{Definition, Executor};
use crate::upstream::Message;

/// Schemas of request bodies and their parts.
#[derive(OpenApi)]
#[openapi(components(schemas(
    NewMessage,
    IfBusy,
    Message,
    Contract,
    Decode,
    Check,
    NewKey,
    KeyChange,
    NewConversation,
    Definition,
    Executor,
    ToolChoice,
    InlineTool,
    NewToolCall,
    ToolResults,
    PostedResult,
    PostedError,
    ToolConfirmations,
    PostedConfirmation,
    NewScript,
    ScriptText,
    NewTemplate,
    Publish,
    NewDialogue,
    NewInput,
    GivenAnswer,
    NewFork,
    NewPlay,
    NewReplay,
    NewImports,
    NewFile,
    RenderPrompt,
    Tokenizer,
    MigrateMacros,
    NewStateSchema,
    NewOperations,
    Rollback,
)))]
struct ComponentSchemas;

/// `GET /openapi.json`: the description.
pub(super) async fn document() -> Json<Value> {
    Json(description())
}

/// Returns the OpenAPI document of the HTTP interface.
#[must_use]
pub fn description() -> Value {
    let mut paths = Map::new();
    for operation in OPERATIONS {
        // `{*name}` matches several segments; OpenAPI knows only `{name}`.
        let entry = paths.entry(operation.path.replace("{*", "{")).or_insert_with(|| json!({}));
        entry[operation.method] = operation_json(operation);
    }
    let mut schemas =
        serde_json::to_value(ComponentSchemas::openapi()).unwrap_or_default()["components"]["schemas"].take();
    schemas["Contract"]["properties"]["options"] = reading_defaults::options_schema();
    for (name, schema) in schemas::response_schemas() {
        schemas[name] = schema;
    }
    let tags =
        operation_docs::TAGS.map(|(name, description)| json!({"name": name, "description": description}));
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Tambour",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Structured replies of language models as one typed, repaired, contract-checked event stream.",
        },
        "tags": tags,
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    })
}

/// Returns a reference to the named schema.
fn schema_ref(schema: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{schema}")})
}

/// Describes an operation.
fn operation_json(operation: &ApiOperation) -> Value {
    let example = |part| operation_docs::example(operation, part).cloned();
    let mut content = match operation.response {
        ResponseContent::Json(schema) => json!({"application/json": {"schema": schema_ref(schema)}}),
        ResponseContent::Events if operation.path.starts_with("/api/v1/") => {
            json!({"text/event-stream": {"schema": schema_ref("Event")}})
        }
        ResponseContent::Events => json!({"text/event-stream": {"schema": {"type": "string"}}}),
        ResponseContent::Text(kind) => json!({kind: {"schema": {"type": "string"}}}),
        ResponseContent::Empty => json!({}),
    };
    if let (Some(example), Some(content)) = (example("answer"), content.as_object_mut()) {
        content.values_mut().for_each(|content| content["example"] = example.clone());
    }
    let mut operation_object = json!({
        "summary": operation.summary,
        "responses": {
            operation.status: {"description": "done", "content": content},
        },
        "operationId": operation.id,
        "tags": [operation.tag],
    });
    for (status, codes) in operation_docs::problems(operation) {
        operation_object["responses"][status.to_string()] = problem_response(operation, status, &codes);
    }
    let mut parameters = Vec::new();
    for name in ["id", "name", "turn"] {
        if ["{", "{*"].iter().any(|open| operation.path.contains(&format!("{open}{name}}}"))) {
            parameters
                .push(json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}}));
        }
    }
    if let Some(schema) = operation.request {
        operation_object["requestBody"] = json!({
            // A conversation may be created without a body.
            "required": schema != "NewConversation",
            "content": {"application/json": {"schema": schema_ref(schema)}},
        });
        if let Some(example) = example("request") {
            operation_object["requestBody"]["content"]["application/json"]["example"] = example;
        }
    }
    match operation.path {
        "/api/v1/conversations" if operation.method == "get" => {
            let doc = [
                ("limit", "integer", "rows of the page, 1 to 200; 50 if absent"),
                (
                    "after",
                    "string",
                    "id of the last row of the previous page; with `q`, `next` of the previous response",
                ),
                ("q", "string", "only those with this text in their title or in a message, ignoring case"),
            ];
            for (name, kind, doc) in doc {
                parameters
                    .push(json!({"name": name, "in": "query", "description": doc, "schema": {"type": kind}}));
            }
        }
        "/api/v1/conversations/{id}"
        | "/api/v1/tools"
        | "/api/v1/keys"
        | "/api/v1/cards"
        | "/api/v1/dialogues/{id}/turns"
        | "/api/v1/lorebooks"
            if operation.method == "get" =>
        {
            let doc = [
                ("limit", "integer", "rows of the page, 1 to 200; 50 if absent"),
                ("after", "string", "id of the last row of the previous page"),
            ];
            for (name, kind, doc) in doc {
                parameters
                    .push(json!({"name": name, "in": "query", "schema": {"type": kind}, "description": doc}));
            }
        }
        "/api/v1/dialogues" if operation.method == "get" => {
            let doc = [
                ("limit", "integer", "rows of the page, 1 to 200; 50 if absent"),
                ("after", "string", "id of the last row of the previous page"),
                ("script_id", "string", "only those that run this script"),
                ("session", "string", "only those that run a session of this name"),
                ("status", "string", "only those with this status, such as `awaiting_answer`"),
            ];
            for (name, kind, doc) in doc {
                parameters
                    .push(json!({"name": name, "in": "query", "description": doc, "schema": {"type": kind}}));
            }
        }
        "/api/v1/figures" => {
            let steps = json!({"type": "string", "enum": ["hour", "day"]});
            let day = json!({"type": "string", "format": "date"});
            let doc = [
                ("from", day.clone(), "first day in UTC; six days before the last one if absent"),
                ("to", day, "last day; today if absent"),
                ("by", steps, "length of a step, `day` if absent: at most 366 days by `day`, 31 by `hour`"),
            ];
            for (name, schema, doc) in doc {
                parameters.push(json!({"name": name, "in": "query", "schema": schema, "description": doc}));
            }
        }
        "/v1/responses/{id}/input_items" => {
            let doc = [
                ("limit", "integer", "items, 1 to 100; 20 if absent"),
                ("order", "string", "`desc`, the newest first, or `asc`"),
                ("after", "string", "id of the last item of the previous page"),
            ];
            for (name, kind, doc) in doc {
                parameters
                    .push(json!({"name": name, "in": "query", "schema": {"type": kind}, "description": doc}));
            }
        }
        "/api/v1/cards/{id}" | "/api/v1/lorebooks/{id}" if operation.method == "get" => {
            let schema = json!({"type": "string", "enum": ["read", "v3", "original"]});
            let doc = "`v3`: V3 JSON with everything in the file; `original`: the file as it was imported";
            parameters.push(json!({"name": "format", "in": "query", "schema": schema, "description": doc}));
            operation_object["responses"]["200"]["content"]["application/octet-stream"] =
                json!({"schema": {"type": "string", "description": "with `?format=original`, the file"}});
        }
        imports::PATH => {
            let files = json!({"type": "string", "format": "binary"});
            operation_object["requestBody"]["content"]["multipart/form-data"] = json!({"schema": {
                "type": "object",
                "description": "each part is a file; names of fields are ignored",
                "additionalProperties": files,
            }});
        }
        "/api/v1/messages" => {
            operation_object["responses"]["200"] = json!({"description": "with `stream`, the event stream itself; with `wait`, the record", "content": {
                "text/event-stream": {"schema": schema_ref("Event")},
                "application/json": {"schema": schema_ref("Record")},
            }});
        }
        "/v1/chat/completions" | "/v1/messages" | "/v1/responses" | "/v1/responses/{id}"
            if operation.method != "delete" =>
        {
            let events = json!({"schema": {"type": "string", "description": "with `stream`, the events of the protocol"}});
            operation_object["responses"]["200"]["content"]["text/event-stream"] = events;
        }
        "/api/chat/{id}/stream" => {
            operation_object["responses"]["204"] = json!({"description": "no message is running"});
        }
        "/api/v1/messages/{id}/cancel" => {
            operation_object["responses"]["200"] = json!({
                "description": "it had already ended",
                "content": {"application/json": {"schema": schema_ref("Cancelled")}},
            });
        }
        "/api/v1/dialogues/{id}/cancel" => {
            operation_object["responses"]["200"] = json!({
                "description": "no turn is running",
                "content": {"application/json": {"schema": schema_ref("CancelledTurn")}},
            });
        }
        "/api/v1/messages/{id}/events" | "/api/v1/dialogues/{id}/turns/{turn}/events" => {
            operation_object["responses"]["204"] = json!({"description": "nothing follows the cursor"});
            for (name, place) in [("Last-Event-ID", "header"), ("after", "query")] {
                let doc = "number of the last event received";
                parameters.push(
                    json!({"name": name, "in": place, "schema": {"type": "string"}, "description": doc}),
                );
            }
        }
        "/api/v1/scripts/{id}" | "/api/v1/templates/{name}" => {
            if operation.method == "get" {
                let doc = "a version instead of the published one";
                parameters.push(
                    json!({"name": "version", "in": "query", "schema": {"type": "integer"}, "description": doc}),
                );
            }
            if operation.method == "put" {
                for (name, doc) in [
                    ("draft", "stores the version without publishing it"),
                    ("autosave", "with `draft` and `If-Match`: replaces the previous autosave"),
                ] {
                    let schema = json!({"type": "boolean"});
                    parameters
                        .push(json!({"name": name, "in": "query", "schema": schema, "description": doc}));
                }
            }
            if operation.method != "get" {
                parameters.push(if_match_parameter());
            }
            if operation.method != "delete" {
                operation_object["responses"]["200"]["headers"]["ETag"] = etag_header();
            }
        }
        "/api/v1/scripts/{id}/publish" | "/api/v1/templates/{name}/publish" => {
            parameters.push(if_match_parameter());
            operation_object["responses"]["200"]["headers"]["ETag"] = etag_header();
        }
        "/api/v1/settings"
        | "/api/v1/conversations/{id}/state"
        | "/api/v1/conversations/{id}/state/schema"
        | "/api/v1/conversations/{id}/state/operations"
        | "/api/v1/conversations/{id}/state/rollback" => {
            if operation.method != "get" {
                parameters.push(if_match_parameter());
            }
            operation_object["responses"]["200"]["headers"]["ETag"] = etag_header();
        }
        _ => {}
    }
    if operation.stored_response.is_some() || operation.handles_idempotency() {
        let doc = match operation.stored_response {
            Some(ResponseStorage::Secret(lifetime)) => {
                let seconds = lifetime.as_secs();
                format!(
                    "a key chosen by the client: the same request with it has the same response for {seconds} s, as long as the server runs"
                )
            }
            _ => "a key chosen by the client: the same request with it has the same response for a day"
                .to_owned(),
        };
        parameters.push(
            json!({"name": "Idempotency-Key", "in": "header", "schema": {"type": "string"}, "description": doc}),
        );
    }
    if !parameters.is_empty() {
        operation_object["parameters"] = parameters.into();
    }
    if operation.needs_key() {
        // A key, or none while the server has no keys.
        operation_object["security"] = json!([{"key": []}, {}]);
    }
    operation_object
}

/// Describes the request header that names the version on which a change is based.
fn if_match_parameter() -> Value {
    let description = "the `ETag` that the change is based on: the change is refused unless it names the \
                       last version";
    json!({"name": "If-Match", "in": "header", "schema": {"type": "string"}, "description": description})
}

/// Describes the response header that names the stored version.
fn etag_header() -> Value {
    let description = "the stored version, for `If-Match`; for a script or template its last version, `\"0\"` if there is none";
    json!({"schema": {"type": "string"}, "description": description})
}

/// Describes the problems of one status with their codes and meanings. Routes of other protocols have the
/// error form of their protocol.
fn problem_response(operation: &ApiOperation, status: u16, codes: &[(&str, &str)]) -> Value {
    let lines: Vec<String> = codes.iter().map(|(code, meaning)| format!("`{code}`: {meaning}")).collect();
    let description = lines.join("\n");
    if operation.path.starts_with("/v1/") {
        let content = json!({"application/json": {"schema": schema_ref("Object")}});
        return json!({"description": description, "content": content});
    }
    let code_names: Vec<&str> = codes.iter().map(|(code, _)| *code).collect();
    let schema = json!({"allOf": [
        schema_ref("Problem"),
        {"properties": {"status": {"const": status}, "code": {"enum": code_names}}},
    ]});
    json!({"description": description, "content": {"application/problem+json": {"schema": schema}}})
}

/// `GET /docs`: the page.
pub(super) async fn page() -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, "default-src 'self'; style-src 'self' 'unsafe-inline'"),
    ];
    (headers, include_str!("docs.html")).into_response()
}

/// `GET /docs.js`: the script of the page.
pub(super) async fn script() -> Response {
    ([(header::CONTENT_TYPE, "text/javascript; charset=utf-8")], include_str!("docs.js")).into_response()
}
