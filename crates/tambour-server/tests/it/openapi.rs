//! The description of the interface, held against the server that serves it.

use serde_json::{Value, json};

use crate::mock::{Mock, reply};
use crate::server::Tambour;

/// A body that an operation takes.
fn body(path: &str) -> Option<Value> {
    Some(match path {
        "/api/v1/messages" => json!({"text": "x"}),
        "/api/v1/decode" | "/api/v1/check" => json!({"reply": "x"}),
        "/api/v1/settings" => json!({"text_language": "en"}),
        "/api/v1/conversations" => json!({}),
        "/api/v1/keys" => json!({"name": "x", "rights": "admin"}),
        "/api/v1/tools/{name}" => json!({"schema": {"type": "object"}, "executor": {"kind": "client"}}),
        "/api/v1/messages/{id}/tool_results" => {
            json!({"results": [{"call_id": "call_1", "ok": true, "result": 1}]})
        }
        "/api/v1/messages/{id}/tool_confirmations" => {
            json!({"confirmations": [{"call_id": "call_1", "allow": true}]})
        }
        "/api/v1/conversations/{id}" => json!({"title": "x"}),
        _ => return None,
    })
}

#[tokio::test]
async fn every_operation_answers_as_described() {
    let mock = Mock::start(vec![reply("Four.", 2)]).await;
    let mut server = Tambour::with(&mock).await;
    let api = server.get("/openapi.json").await.json;
    let accepted = server.post("/api/v1/messages", &json!({"text": "x"})).await.json;
    let message = accepted["message_id"].as_str().unwrap().to_owned();
    server.ended(&message).await;
    let conversation = accepted["conversation_id"].as_str().unwrap().to_owned();
    let mut spare = String::new();
    // Keys last, since the first one locks the door.
    let mut operations: Vec<(String, String, Value)> = Vec::new();
    for (path, methods) in api["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            operations.push((path.clone(), method.clone(), operation.clone()));
        }
    }
    let order = |method: &str| match method {
        "post" => 0,
        "get" => 1,
        _ => 2,
    };
    // A tool is there once it has been put.
    let tool = |path: &str, method: &str| path.contains("/tools/") && method != "put";
    operations.sort_by_key(|(path, method, _)| {
        let deletes = (method == "delete", path.contains("conversations"));
        (path.contains("/keys"), tool(path, method), order(method), deletes)
    });
    for (path, method, operation) in operations {
        let id = if path.contains("conversations") { &conversation } else { &message };
        let id = if path.contains("keys") { &spare } else { id };
        let place = path.replace("{id}", id).replace("{name}", "a-tool");
        let sent = operation.get("requestBody").and_then(|_| body(&path)).map(|body| body.to_string());
        let answer = server.call(&method, &place, sent.as_deref()).await;
        let described = &operation["responses"][answer.status.to_string()];
        if path.contains("/tool_") {
            // Its answer is tried where a message waits for it.
            assert_eq!((answer.status, answer.problem()), (409, "message_ended"));
            continue;
        }
        assert!(described.is_object(), "{method} {place}: {} {}", answer.status, answer.text);
        if let Some(content) = described["content"].as_object().filter(|content| !content.is_empty()) {
            let (kind, content) = content.iter().next().unwrap();
            assert!(answer.headers["content-type"].to_str().unwrap().starts_with(kind), "{method} {place}");
            fits(&api, &content["schema"], &answer.json, &format!("{method} {place}"));
        }
        if path == "/api/v1/keys" && method == "post" {
            server.key(answer.json["key"].as_str());
            let other = server.post("/api/v1/keys", &json!({"name": "y"})).await;
            spare = other.json["id"].as_str().unwrap().to_owned();
        }
    }
}

/// Whether required fields of a described answer are there.
fn fits(api: &Value, schema: &Value, value: &Value, place: &str) {
    let schema = resolved(api, schema);
    for field in schema["required"].as_array().into_iter().flatten() {
        let field = field.as_str().unwrap();
        assert!(value.get(field).is_some(), "{place}: `{field}` is missing in {value}");
    }
    if schema["additionalProperties"].is_null() && schema["properties"].is_object() && value.is_object() {
        for name in value.as_object().unwrap().keys() {
            assert!(schema["properties"].get(name).is_some(), "{place}: `{name}` is not described");
        }
    }
}

fn resolved<'a>(api: &'a Value, schema: &'a Value) -> &'a Value {
    match schema["$ref"].as_str() {
        Some(reference) => {
            let name = reference.rsplit('/').next().unwrap();
            let found = &api["components"]["schemas"][name];
            assert!(found.is_object(), "the schema `{name}` exists");
            found
        }
        None => schema,
    }
}

#[tokio::test]
async fn metadata_is_described() {
    let mock = Mock::start(vec![reply("Prose.", 2), reply("<<ParsingError>>", 2)]).await;
    let server = Tambour::with(&mock).await;
    let api = server.get("/openapi.json").await.json;
    let described = &api["components"]["schemas"]["Record"]["properties"]["metadata"];
    for field in ["unused_reason", "fallback_reason"] {
        let asked = json!({"text": "x", "dialect": "ai_say", "max_reasks": 0});
        let accepted = server.post("/api/v1/messages", &asked).await.json;
        let record = server.ended(accepted["message_id"].as_str().unwrap()).await;
        assert!(record["metadata"][field].is_string(), "{field}");
        fits(&api, described, &record["metadata"], "the record");
    }
    let events = api["components"]["schemas"]["Event"]["oneOf"].as_array().unwrap();
    let completed = events.iter().find(|event| event["properties"]["event"]["const"] == "completed").unwrap();
    assert_eq!(&completed["properties"]["data"]["properties"]["metadata"], described);
}

#[tokio::test]
async fn other_methods_are_refused() {
    let mock = Mock::start(vec![reply("x", 1)]).await;
    let server = Tambour::with(&mock).await;
    let api = server.get("/openapi.json").await.json;
    for (path, methods) in api["paths"].as_object().unwrap() {
        for method in ["get", "post", "put", "delete", "patch"] {
            if methods.get(method).is_none() {
                let answer =
                    server.call(method, &path.replace("{id}", "x").replace("{name}", "x"), None).await;
                assert_eq!((answer.status, answer.problem()), (405, "method_not_allowed"), "{method} {path}");
            }
        }
    }
}

#[tokio::test]
async fn described_bodies_refuse_what_is_not_described() {
    let mock = Mock::start(vec![reply("x", 1)]).await;
    let server = Tambour::with(&mock).await;
    let api = server.get("/openapi.json").await.json;
    let mut checked = 0;
    for (path, methods) in api["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let Some(request) = operation.get("requestBody") else { continue };
            let schema = resolved(&api, &request["content"]["application/json"]["schema"]);
            assert_eq!(schema["additionalProperties"], false, "{method} {path}");
            let mut sent = body(path).unwrap();
            sent["not_described"] = 1.into();
            let answer = server.call(method, path, Some(&sent.to_string())).await;
            assert_eq!((answer.status, answer.problem()), (422, "unknown_field"), "{method} {path}");
            assert_eq!(answer.json["field"], "not_described");
            checked += 1;
        }
    }
    assert_eq!(checked, 10);
    // The fields that interfaces name for a message are all there, and none but those.
    let fields = api["components"]["schemas"]["NewMessage"]["properties"].as_object().unwrap();
    for field in [
        "conversation_id",
        "messages",
        "text",
        "model",
        "dialect",
        "contract",
        "output_protocol",
        "extensions",
        "findings",
        "tools",
        "caller",
        "max_reasks",
        "stream",
    ] {
        assert!(fields.contains_key(field), "{field}");
    }
}

#[tokio::test]
async fn events_are_described() {
    let mock = Mock::start(vec![reply("x", 1)]).await;
    let server = Tambour::with(&mock).await;
    let api = server.get("/openapi.json").await.json;
    let described: Vec<&str> = api["components"]["schemas"]["Event"]["oneOf"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["properties"]["event"]["const"].as_str().unwrap())
        .collect();
    for name in [
        "serp_summary",
        "final_end",
        "completed",
        "error",
        "draft_delta",
        "aside",
        "notice",
        "finding",
        "plan",
        "tool_call",
        "tool_start",
        "tool_result",
        "exit_decision",
    ] {
        assert!(described.contains(&name), "{name}");
    }
    let page = server.get("/docs").await;
    assert!(page.text.contains("/docs.js") && page.headers.contains_key("content-security-policy"));
}

#[tokio::test]
async fn options_are_listed_with_what_they_take() {
    let mock = Mock::start(vec![reply("Prose.", 1); 40]).await;
    let server = Tambour::with(&mock).await;
    let document = server.get("/openapi.json").await.json;
    let options = &document["components"]["schemas"]["Contract"]["properties"]["options"];
    assert_eq!(options["properties"]["aiplan.variant"]["enum"], json!(["v1", "v2"]));
    assert_eq!(options["properties"]["plain.reasoning"]["default"], "auto");
    // The server's own, and what has a place of its own in the request.
    for name in ["limits.input", "tools"] {
        assert_eq!(options["properties"].get(name), None, "{name}");
    }
    for (_, setting) in tambour::settings::all() {
        let listed = options["properties"].get(setting.name).is_some();
        let value = if setting.default.is_empty() { json!("x") } else { json!(setting.default) };
        let body = json!({"text": "hi", "contract": {"options": {setting.name: value}}});
        let answer = server.post("/api/v1/messages", &body).await;
        let taken = answer.status == 202 || answer.status == 200;
        assert!(taken == listed || setting.name == "round", "{}: {}", setting.name, answer.text);
    }
}
