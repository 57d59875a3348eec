//! A key limited to an alias cannot override what the alias fixes: by no protocol, field or header.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::mock::{Mock, reply};
use crate::server::Tambour;

const FIXED: &str = "the-fixed-model";
const OTHER: &str = "another-model";

/// Smallest request of each protocol, streaming or not.
fn requests() -> Vec<(&'static str, Value)> {
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
const ASKS_NOBODY: &str = "/v1/messages/count_tokens";

/// Routes of other protocols that call a model, from the OpenAPI document.
async fn asking(server: &Tambour) -> BTreeSet<String> {
    let api = server.get("/openapi.json").await.json;
    let asks = |(path, methods): (&String, &Value)| {
        let asks = !path.starts_with("/api/v1/")
            && path != ASKS_NOBODY
            && methods["post"]["requestBody"].is_object();
        asks.then(|| path.clone())
    };
    api["paths"].as_object().unwrap().iter().filter_map(asks).collect()
}

/// Fields that select a model or an address at services and at proxies before them.
fn choosing() -> Vec<(&'static str, Value)> {
    let message = json!({"model": OTHER});
    vec![
        ("model", json!(OTHER)),
        ("models", json!([OTHER])),
        ("route", json!("fallback")),
        ("provider", json!({"order": [OTHER], "only": [OTHER]})),
        ("extra_body", message.clone()),
        ("fallbacks", json!([message])),
        ("fallback_models", json!([OTHER])),
        ("context_window_fallbacks", json!([{"x": [OTHER]}])),
        ("model_list", json!([message])),
        ("engine", json!(OTHER)),
        ("deployment", json!(OTHER)),
        ("deployment_id", json!(OTHER)),
        ("preset", json!(OTHER)),
        ("plugins", json!([{"id": "auto-router"}])),
        ("transforms", json!(["middle-out"])),
        ("custom_llm_provider", json!("openai")),
        ("api_base", json!("http://127.0.0.1:1/v1")),
        ("base_url", json!("http://127.0.0.1:1/v1")),
        ("api_key", json!("sk-x")),
        ("extra_headers", json!({"x-model": OTHER})),
        ("config", json!({"targets": [OTHER]})),
        ("adapter_id", json!(OTHER)),
        ("lora_request", json!({"lora_name": OTHER})),
        ("a_field_of_tomorrow", json!(OTHER)),
    ]
}

/// Our own fields that the alias fixes, each with another value.
fn fixed() -> Vec<(&'static str, Value)> {
    vec![
        ("upstream", json!("demo")),
        ("model", json!(OTHER)),
        ("dialect", json!("thinkingml")),
        ("contract", json!({"profile": "lenient"})),
        ("system_prompt", json!("You are another.")),
        ("max_reasks", json!(5)),
    ]
}

async fn server() -> (Mock, Tambour, String) {
    let mock = Mock::start(vec![reply("x", 1)]).await;
    let alias = json!({
        "model": FIXED, "dialect": "plain", "system_prompt": "You are the one.", "contract": {"profile": "strict"}, "max_reasks": 0,
    });
    let mut server = Tambour::start(&mock, |config| {
        config.aliases.insert("sums".into(), serde_json::from_value(alias).unwrap());
    })
    .await;
    let admin =
        server.post("/api/v1/keys", &json!({"name": "a", "rights": "admin"})).await.json["key"].clone();
    server.key(admin.as_str());
    let limited =
        server.post("/api/v1/keys", &json!({"name": "b", "aliases": ["sums"]})).await.json["key"].clone();
    server.key(limited.as_str());
    (mock, server, admin.as_str().unwrap().to_owned())
}

/// Requests with the field at each place where the protocol takes one.
fn places(path: &str, body: &Value, name: &str, value: &Value) -> Vec<Value> {
    let with = |at: &[&str]| {
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
    let mut all = vec![with(&["tambour"]), with(&["tambour", "upstream_fields"])];
    // The field of that name selects the alias itself.
    if name != "model" {
        all.push(with(&[]));
    }
    if path == "/ag-ui" {
        all.push(with(&["forwardedProps", "tambour"]));
        all.push(with(&["forwardedProps", "tambour", "upstream_fields"]));
        if name != "model" {
            all.push(with(&["forwardedProps"]));
        }
    }
    all
}

/// Sends a request that must either be refused or reach the model with the alias's settings only.
async fn holds(mock: &Mock, server: &Tambour, path: &str, body: &Value, headers: &[(&str, &str)]) {
    let before = mock.asked().len();
    let answer = server.call_with("post", path, Some(&body.to_string()), headers).await;
    let asked = mock.asked();
    if answer.status != 200 {
        assert!((400..500).contains(&answer.status), "{path} {body}: {}", answer.text);
        assert_eq!(asked.len(), before, "{path} {body}");
        return;
    }
    assert_eq!(asked.len(), before + 1, "{path} {body}: {}", answer.text);
    let sent = &asked[before];
    assert_eq!(sent.body["model"], FIXED, "{path} {body}");
    let known = ["messages", "stream", "stream_options", "model", "max_tokens"];
    let more: Map<String, Value> = sent
        .body
        .as_object()
        .unwrap()
        .clone()
        .into_iter()
        .filter(|(name, _)| !known.contains(&name.as_str()))
        .collect();
    assert!(more.is_empty(), "{path} {body}: {more:?}");
    let system = sent.body["messages"][0]["content"].as_str().unwrap();
    assert!(system.starts_with("You are the one."), "{path} {body}: {system}");
    assert!(!sent.head.contains(OTHER) && !sent.head.contains("x-portkey"), "{}", sent.head);
}

#[tokio::test]
async fn no_field_and_no_header_overrides_what_an_alias_fixes() {
    let (mock, server, _) = server().await;
    let headers = [
        ("x-model", OTHER),
        ("x-tambour-upstream", "demo"),
        ("openai-organization", OTHER),
        ("x-portkey-config", OTHER),
        ("helicone-fallbacks", OTHER),
    ];
    // Every protocol needs a request above.
    let held: BTreeSet<String> = requests().into_iter().map(|(path, _)| path.to_owned()).collect();
    assert_eq!(asking(&server).await, held);
    for (path, body) in requests() {
        let plain = server.post(path, &body).await;
        assert_eq!(plain.status, 200, "{path}: {}", plain.text);
        holds(&mock, &server, path, &body, &headers).await;
        for (name, value) in choosing().into_iter().chain(fixed()) {
            for body in places(path, &body, name, &value) {
                holds(&mock, &server, path, &body, &[]).await;
            }
        }
    }
    // Text of a refusal.
    let body = json!({"model": "sums", "messages": [{"role": "user", "content": "x"}], "models": [OTHER]});
    let refused = server.post("/v1/chat/completions", &body).await;
    assert_eq!(
        (refused.status, &refused.json["error"]["code"]),
        (403, &json!("field_forbidden")),
        "{}",
        refused.text
    );
    assert_eq!(refused.json["error"]["param"], "models");
    let body = json!({"model": "sums", "messages": [{"role": "user", "content": "x"}], "tambour": {"dialect": "auto"}});
    let refused = server.post("/v1/chat/completions", &body).await;
    assert_eq!(refused.json["error"]["param"], "tambour.dialect", "{}", refused.text);
}

#[tokio::test]
async fn how_a_model_writes_is_the_clients_and_a_system_prompt_comes_behind_the_alias() {
    let (mock, mut server, admin) = server().await;
    let body = json!({"model": "sums", "messages": [{"role": "user", "content": "x"}], "top_k": 3, "reasoning_effort": "low"});
    assert_eq!(server.post("/v1/chat/completions", &body).await.status, 200);
    assert_eq!(
        (&mock.asked()[0].body["top_k"], &mock.asked()[0].body["reasoning_effort"]),
        (&json!(3), &json!("low"))
    );
    let user = json!([{"role": "user", "content": "x"}]);
    for (path, body) in [
        ("/v1/messages", json!({"model": "sums", "max_tokens": 9, "system": "Be brief.", "messages": user})),
        ("/v1/responses", json!({"model": "sums", "input": "x", "instructions": "Be brief."})),
    ] {
        assert_eq!(server.post(path, &body).await.status, 200, "{path}");
        let system = mock.asked().last().unwrap().body["messages"][0]["content"].clone();
        assert_eq!(system, "You are the one.\n\nBe brief.", "{path}");
    }
    // A key without a limit may set every field of the service.
    server.key(Some(&admin));
    let body = json!({"model": "sums", "messages": user, "models": [OTHER]});
    assert_eq!(server.post("/v1/chat/completions", &body).await.status, 200);
    assert_eq!(mock.asked().last().unwrap().body["models"], json!([OTHER]));
}
