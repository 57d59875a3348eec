//! A key limited to an alias cannot override what the alias fixes: by no protocol, field or header.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::mock::{MockServer, reply_script};
use crate::server::TestServer;

const FIXED_MODEL: &str = "the-fixed-model";
const OTHER_MODEL: &str = "another-model";

/// Smallest request of each protocol, streaming or not.
fn minimal_requests() -> Vec<(&'static str, Value)> {
    let user = json!([{"role": "user", "content": "x"}]);
    vec![
        ("/v1/chat/completions", json!({"model": "sums", "messages": user})),
        ("/v1/responses", json!({"model": "sums", "input": "x"})),
        ("/v1/messages", json!({"model": "sums", "max_tokens": 9, "messages": user})),
        (
            "/api/chat",
            json!({"model": "sums", "messages": [{"role": "user", "parts": [{"type": "text", "text": "x"}]}]}),
        ),
        (
            "/ag-ui",
            json!({"threadId": "t", "runId": "r", "messages": [{"id": "1", "role": "user", "content": "x"}], "tools": [],
                "context": [], "state": {}, "forwardedProps": {"model": "sums"}}),
        ),
    ]
}

/// Route of another protocol that takes a request but calls no model.
const COUNT_TOKENS_ROUTE: &str = "/v1/messages/count_tokens";

/// Routes of other protocols that call a model, from the OpenAPI document.
async fn model_routes(server: &TestServer) -> BTreeSet<String> {
    let api = server.get("/openapi.json").await.json;
    let calls_model = |(path, methods): (&String, &Value)| {
        let calls_model = !path.starts_with("/api/v1/")
            && path != COUNT_TOKENS_ROUTE
            && methods["post"]["requestBody"].is_object();
        calls_model.then(|| path.clone())
    };
    api["paths"].as_object().unwrap().iter().filter_map(calls_model).collect()
}

/// Fields that select a model or an address at services and at proxies before them.
fn routing_fields() -> Vec<(&'static str, Value)> {
    let message = json!({"model": OTHER_MODEL});
    vec![
        ("model", json!(OTHER_MODEL)),
        ("models", json!([OTHER_MODEL])),
        ("route", json!("fallback")),
        ("provider", json!({"order": [OTHER_MODEL], "only": [OTHER_MODEL]})),
        ("extra_body", message.clone()),
        ("fallbacks", json!([message])),
        ("fallback_models", json!([OTHER_MODEL])),
        ("context_window_fallbacks", json!([{"x": [OTHER_MODEL]}])),
        ("model_list", json!([message])),
        ("engine", json!(OTHER_MODEL)),
        ("deployment", json!(OTHER_MODEL)),
        ("deployment_id", json!(OTHER_MODEL)),
        ("preset", json!(OTHER_MODEL)),
        ("plugins", json!([{"id": "auto-router"}])),
        ("transforms", json!(["middle-out"])),
        ("custom_llm_provider", json!("openai")),
        ("api_base", json!("http://127.0.0.1:1/v1")),
        ("base_url", json!("http://127.0.0.1:1/v1")),
        ("api_key", json!("sk-x")),
        ("extra_headers", json!({"x-model": OTHER_MODEL})),
        ("config", json!({"targets": [OTHER_MODEL]})),
        ("adapter_id", json!(OTHER_MODEL)),
        ("lora_request", json!({"lora_name": OTHER_MODEL})),
        ("a_field_of_tomorrow", json!(OTHER_MODEL)),
    ]
}

/// Our own fields that the alias fixes, each with another value.
fn fixed_fields() -> Vec<(&'static str, Value)> {
    vec![
        ("upstream", json!("demo")),
        ("model", json!(OTHER_MODEL)),
        ("dialect", json!("thinkingml")),
        ("contract", json!({"profile": "lenient"})),
        ("system_prompt", json!("You are another.")),
        ("max_reasks", json!(5)),
    ]
}

async fn server_with_alias() -> (MockServer, TestServer, String) {
    let mock = MockServer::start(vec![reply_script("x", 1)]).await;
    let alias = json!({
        "model": FIXED_MODEL, "dialect": "plain", "system_prompt": "You are the one.", "contract": {"profile": "strict"}, "max_reasks": 0,
    });
    let mut server = TestServer::start(&mock, |config| {
        config.aliases.insert("sums".into(), serde_json::from_value(alias).unwrap());
    })
    .await;
    let admin =
        server.post("/api/v1/keys", &json!({"name": "a", "rights": "admin"})).await.json["key"].clone();
    server.set_key(admin.as_str());
    let limited_key =
        server.post("/api/v1/keys", &json!({"name": "b", "aliases": ["sums"]})).await.json["key"].clone();
    server.set_key(limited_key.as_str());
    (mock, server, admin.as_str().unwrap().to_owned())
}

/// Requests with the field at each place where the protocol takes one.
fn requests_with_field(path: &str, body: &Value, name: &str, value: &Value) -> Vec<Value> {
    let body_with = |at: &[&str]| {
        let mut body = body.clone();
        let mut object = &mut body;
        for part in at {
            object = &mut object[*part];
            if object.is_null() {
                *object = json!({});
            }
        }
        object[name] = value.clone();
        body
    };
    let mut requests = vec![body_with(&["tambour"]), body_with(&["tambour", "upstream_fields"])];
    // The field of that name selects the alias itself.
    if name != "model" {
        requests.push(body_with(&[]));
    }
    if path == "/ag-ui" {
        requests.push(body_with(&["forwardedProps", "tambour"]));
        requests.push(body_with(&["forwardedProps", "tambour", "upstream_fields"]));
        if name != "model" {
            requests.push(body_with(&["forwardedProps"]));
        }
    }
    requests
}

/// Sends a request, which must be refused, or ask what the alias says and nothing else.
async fn assert_alias_holds(
    mock: &MockServer,
    server: &TestServer,
    path: &str,
    body: &Value,
    headers: &[(&str, &str)],
) {
    let before = mock.requests().len();
    let answer = server.call_with("post", path, Some(&body.to_string()), headers).await;
    let requests = mock.requests();
    if answer.status != 200 {
        assert!((400..500).contains(&answer.status), "{path} {body}: {}", answer.text);
        assert_eq!(requests.len(), before, "{path} {body}");
        return;
    }
    assert_eq!(requests.len(), before + 1, "{path} {body}: {}", answer.text);
    let sent_request = &requests[before];
    assert_eq!(sent_request.body["model"], FIXED_MODEL, "{path} {body}");
    let known_fields = ["messages", "stream", "stream_options", "model", "max_tokens"];
    let extra_fields: Map<String, Value> = sent_request
        .body
        .as_object()
        .unwrap()
        .clone()
        .into_iter()
        .filter(|(name, _)| !known_fields.contains(&name.as_str()))
        .collect();
    assert!(extra_fields.is_empty(), "{path} {body}: {extra_fields:?}");
    let system = sent_request.body["messages"][0]["content"].as_str().unwrap();
    assert!(system.starts_with("You are the one."), "{path} {body}: {system}");
    assert!(
        !sent_request.head.contains(OTHER_MODEL) && !sent_request.head.contains("x-portkey"),
        "{}",
        sent_request.head
    );
}

#[tokio::test]
async fn no_field_and_no_header_overrides_what_an_alias_fixes() {
    let (mock, server, _) = server_with_alias().await;
    let headers = [
        ("x-model", OTHER_MODEL),
        ("x-tambour-upstream", "demo"),
        ("openai-organization", OTHER_MODEL),
        ("x-portkey-config", OTHER_MODEL),
        ("helicone-fallbacks", OTHER_MODEL),
    ];
    // Every protocol needs a request above.
    let covered: BTreeSet<String> = minimal_requests().into_iter().map(|(path, _)| path.to_owned()).collect();
    assert_eq!(model_routes(&server).await, covered);
    for (path, body) in minimal_requests() {
        let plain = server.post(path, &body).await;
        assert_eq!(plain.status, 200, "{path}: {}", plain.text);
        assert_alias_holds(&mock, &server, path, &body, &headers).await;
        for (name, value) in routing_fields().into_iter().chain(fixed_fields()) {
            for body in requests_with_field(path, &body, name, &value) {
                assert_alias_holds(&mock, &server, path, &body, &[]).await;
            }
        }
    }
    // Text of a refusal.
    let body =
        json!({"model": "sums", "messages": [{"role": "user", "content": "x"}], "models": [OTHER_MODEL]});
    let refusal = server.post("/v1/chat/completions", &body).await;
    assert_eq!(
        (refusal.status, &refusal.json["error"]["code"]),
        (403, &json!("field_forbidden")),
        "{}",
        refusal.text
    );
    assert_eq!(refusal.json["error"]["param"], "models");
    let body = json!({"model": "sums", "messages": [{"role": "user", "content": "x"}], "tambour": {"dialect": "auto"}});
    let refusal = server.post("/v1/chat/completions", &body).await;
    assert_eq!(refusal.json["error"]["param"], "tambour.dialect", "{}", refusal.text);
}

#[tokio::test]
async fn how_a_model_writes_is_the_clients_and_a_system_prompt_comes_behind_the_alias() {
    let (mock, mut server, admin) = server_with_alias().await;
    let body = json!({"model": "sums", "messages": [{"role": "user", "content": "x"}], "top_k": 3, "reasoning_effort": "low"});
    assert_eq!(server.post("/v1/chat/completions", &body).await.status, 200);
    assert_eq!(
        (&mock.requests()[0].body["top_k"], &mock.requests()[0].body["reasoning_effort"]),
        (&json!(3), &json!("low"))
    );
    let user = json!([{"role": "user", "content": "x"}]);
    for (path, body) in [
        ("/v1/messages", json!({"model": "sums", "max_tokens": 9, "system": "Be brief.", "messages": user})),
        ("/v1/responses", json!({"model": "sums", "input": "x", "instructions": "Be brief."})),
    ] {
        assert_eq!(server.post(path, &body).await.status, 200, "{path}");
        let system = mock.requests().last().unwrap().body["messages"][0]["content"].clone();
        assert_eq!(system, "You are the one.\n\nBe brief.", "{path}");
    }
    // A key without a limit may set every field of the service.
    server.set_key(Some(&admin));
    let body = json!({"model": "sums", "messages": user, "models": [OTHER_MODEL]});
    assert_eq!(server.post("/v1/chat/completions", &body).await.status, 200);
    assert_eq!(mock.requests().last().unwrap().body["models"], json!([OTHER_MODEL]));
}
