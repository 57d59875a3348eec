//! OpenAPI description of the HTTP interface, and a page to browse it, which loads nothing from other hosts.

use axum::Json;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};
use utoipa::OpenApi;

use super::contracts::ContractRequest;
use super::conversations::NewConversation;
use super::decode::{Check, Decode};
use super::dialogue_turns::{NewFork, NewReplay};
use super::dialogues::{GivenAnswer, NewDialogue, NewInput};
use super::imports::{self, NewFile, NewImports};
use super::keys::{KeyChange, NewKey};
use super::new_message::{IfBusy, NewMessage};
use super::operation_docs;
use super::parameters;
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
use crate::upstream::{Constrain, Message};

/// Schemas of request bodies and their parts.
#[derive(OpenApi)]
#[openapi(components(schemas(
    NewMessage,
    Constrain,
    IfBusy,
    Message,
    Contract,
    ContractRequest,
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
    let mut operation_object = json!({
        "summary": operation.summary,
        "responses": responses(operation),
        "operationId": operation.id,
        "tags": [operation.tag],
    });
    if let Some(schema) = operation.request {
        operation_object["requestBody"] = request_body(operation, schema);
    }
    let parameters = parameters::list_parameters(operation);
    if !parameters.is_empty() {
        operation_object["parameters"] = parameters.into();
    }
    if operation.needs_key() {
        // A key, or none while the server has no keys.
        operation_object["security"] = json!([{"key": []}, {}]);
    }
    operation_object
}

/// Describes the request body of an operation; `schema` is the name of its schema.
fn request_body(operation: &ApiOperation, schema: &str) -> Value {
    let mut body = json!({
        // A conversation may be created without a body.
        "required": schema != "NewConversation",
        "content": {"application/json": {"schema": schema_ref(schema)}},
    });
    if let Some(example) = operation_docs::example(operation, "request") {
        body["content"]["application/json"]["example"] = example.clone();
    }
    if operation.path == imports::PATH {
        let file_schema = json!({"type": "string", "format": "binary"});
        body["content"]["multipart/form-data"] = json!({"schema": {
            "type": "object",
            "description": "each part is a file; names of fields are ignored",
            "additionalProperties": file_schema,
        }});
    }
    body
}

/// Describes the responses of an operation by status: the one in its row of the table, its problems, and
/// others.
fn responses(operation: &ApiOperation) -> Value {
    let mut content = match operation.response {
        ResponseContent::Json(schema) | ResponseContent::VersionedJson(schema) => {
            json!({"application/json": {"schema": schema_ref(schema)}})
        }
        ResponseContent::Events if operation.path.starts_with("/api/v1/") => {
            json!({"text/event-stream": {"schema": schema_ref("Event")}})
        }
        ResponseContent::Events => json!({"text/event-stream": {"schema": {"type": "string"}}}),
        ResponseContent::Text(kind) => json!({kind: {"schema": {"type": "string"}}}),
        ResponseContent::Empty => json!({}),
    };
    if let (Some(example), Some(content)) =
        (operation_docs::example(operation, "answer"), content.as_object_mut())
    {
        content.values_mut().for_each(|content| content["example"] = example.clone());
    }
    let outcome = match operation.status {
        "201" => "created",
        "202" => "accepted; the work is not finished yet",
        _ => "done",
    };
    let mut responses = json!({operation.status: {"description": outcome, "content": content}});
    if let ResponseContent::VersionedJson(_) = operation.response {
        responses[operation.status]["headers"]["ETag"] = etag_header();
    }
    for (status, codes) in operation_docs::problems(operation) {
        responses[status.to_string()] = problem_response(operation, status, &codes);
    }
    add_other_responses(operation, &mut responses);
    responses
}

/// Adds the responses of an operation that are neither in its row of the table nor problems.
fn add_other_responses(operation: &ApiOperation, responses: &mut Value) {
    match operation.path {
        "/api/v1/cards/{id}" | "/api/v1/lorebooks/{id}" if operation.method == "get" => {
            responses["200"]["content"]["application/octet-stream"] =
                json!({"schema": {"type": "string", "description": "with `?format=original`, the file"}});
        }
        "/api/v1/contracts/{name}" => {
            responses["200"]["content"]["application/json"] = json!({"schema": {
                "type": "object", "description": "with the formats `json-schema` and `structural-tag`",
            }});
        }
        "/api/v1/messages" => {
            responses["200"] = json!({"description": "with `stream`, the event stream itself; with `wait`, the record", "content": {
                "text/event-stream": {"schema": schema_ref("Event")},
                "application/json": {"schema": schema_ref("Record")},
            }});
        }
        "/v1/chat/completions" | "/v1/messages" | "/v1/responses" | "/v1/responses/{id}"
            if operation.method != "delete" =>
        {
            let events = json!({"schema": {"type": "string", "description": "with `stream`, the events of the protocol"}});
            responses["200"]["content"]["text/event-stream"] = events;
        }
        "/api/chat/{id}/stream" => {
            responses["204"] = json!({"description": "no message is running"});
        }
        "/api/v1/messages/{id}/cancel" => {
            responses["200"] = json!({
                "description": "the message had already ended",
                "content": {"application/json": {"schema": schema_ref("Cancelled")}},
            });
        }
        "/api/v1/dialogues/{id}/cancel" => {
            responses["200"] = json!({
                "description": "no turn is running",
                "content": {"application/json": {"schema": schema_ref("CancelledTurn")}},
            });
        }
        "/api/v1/messages/{id}/events" | "/api/v1/dialogues/{id}/turns/{turn}/events" => {
            responses["204"] = json!({"description": "nothing follows the cursor"});
        }
        "/api/v1/messages/{id}/stream" | "/api/v1/dialogues/{id}/turns/{turn}/stream" => {
            let text = |description: &str| json!({"schema": {"type": "string", "description": description}});
            responses["200"]["content"]["text/plain"] = text("with `view=text`, the raw text of the reply");
            responses["200"]["content"]["text/event-stream"] =
                text("with `live=sse`, `data` events, each followed by a `control` event");
            responses["200"]["headers"] = stream_headers();
            let no_content = "the long poll ended without anything new, or the stream is closed and nothing follows the offset";
            responses["204"] = json!({"description": no_content, "headers": stream_headers()});
            responses["304"] = json!({"description": "unchanged: `If-None-Match` names what would be sent"});
        }
        _ => {}
    }
}

/// Describes the response headers of a Durable Stream.
fn stream_headers() -> Value {
    let headers = [
        ("Stream-Next-Offset", "the offset of the next read"),
        ("Stream-Up-To-Date", "`true` if the response ends at the tail of the stream"),
        ("Stream-Closed", "`true` if the message has ended and nothing follows"),
        ("Stream-Cursor", "the `cursor` of the next live read"),
    ];
    let describe = |(name, description): (&str, &str)| {
        (name.to_owned(), json!({"schema": {"type": "string"}, "description": description}))
    };
    Value::Object(headers.map(describe).into_iter().collect())
}

/// Describes the response header `ETag`, which names the stored version.
fn etag_header() -> Value {
    let description = "the stored version, for `If-Match`; for a script or template its last version, `\"0\"` if there is none";
    json!({"schema": {"type": "string"}, "description": description})
}

/// Describes the problems of one status with their codes and meanings. Routes of other protocols write errors
/// as their protocol requires.
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
