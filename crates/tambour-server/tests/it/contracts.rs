//! Contracts of replies over HTTP, as `contract show` prints them.

use serde_json::{Value, json};
use tambour::Options;
use tambour::dialect::DIALECTS;
use tambour::verdict::{Contract, ContractForm};

use crate::mock::{MockServer, reply_script};
use crate::server::TestServer;

async fn start_server() -> TestServer {
    let mock = MockServer::start(vec![reply_script("x", 1)]).await;
    TestServer::start_default(&mock).await
}

#[tokio::test]
async fn contracts_are_those_of_the_library_in_every_form() {
    let server = start_server().await;
    let options = Options::default();
    let mut count = 0;
    for entry in DIALECTS.iter().filter(|entry| entry.name != "toolcall") {
        for form in ContractForm::ALL {
            let path = format!("/api/v1/contracts/{}?format={}", entry.name, form.name());
            let answer = server.get(&path).await;
            let Ok(text) = Contract::Dialect(entry).write(form, &options) else {
                let has_forms = ContractForm::ALL.iter().any(|form| form.exists_for(entry));
                let expected = if has_forms { (422, "invalid_field") } else { (404, "not_found") };
                assert_eq!((answer.status, answer.problem_code()), expected, "{path}");
                continue;
            };
            assert_eq!((answer.status, &answer.text), (200, &text), "{path}");
            let media_type = answer.headers["content-type"].to_str().unwrap();
            let expected = if form.is_json() { "application/json" } else { "text/plain; charset=utf-8" };
            assert_eq!(media_type, expected, "{path}");
            count += 1;
        }
    }
    assert!(count > 20, "{count}");
    // Without a form it is the instructions.
    let prompt = server.get("/api/v1/contracts/aiplan").await.text;
    assert_eq!(prompt, server.get("/api/v1/contracts/aiplan?format=prompt").await.text);
    assert_eq!(prompt, server.post("/api/v1/contracts/aiplan", &json!({})).await.text);
}

#[tokio::test]
async fn tools_structures_schemas_and_options_shape_contracts() {
    let server = start_server().await;
    let schema = json!({"type": "object", "properties": {"a": {"enum": ["only-this"]}}, "required": ["a"]});
    let write = async |name: &str, body: Value| {
        let answer = server.post(&format!("/api/v1/contracts/{name}"), &body).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer.text
    };
    let inline = json!({"name": "add_up", "schema": schema});
    let grammar = write("toolcall", json!({"format": "gbnf", "tools": [inline]})).await;
    assert!(grammar.contains("add_up") && grammar.contains("only-this"), "{grammar}");
    let tool = json!({"schema": schema, "executor": {"kind": "client"}, "callers": ["ada"]});
    assert_eq!(server.put("/api/v1/tools/registered", &tool).await.status, 200);
    let of_caller = async |caller: &str| {
        write("aiplan", json!({"format": "lark", "tools": ["registered"], "caller": caller})).await
    };
    assert!(of_caller("ada").await.contains("registered"));
    assert!(!of_caller("bob").await.contains("\"registered"));
    let value = write("json_value", json!({"format": "json-schema", "schema": schema})).await;
    let mut value: Value = serde_json::from_str(&value).unwrap();
    // The notes stand beside the schema.
    assert!(value.as_object_mut().unwrap().remove("$comment").is_some());
    assert_eq!(value, schema);
    let structure = json!({"mandatory": ["content", "status_bar"]});
    let tags = write("filament", json!({"format": "gbnf", "structure": structure})).await;
    assert_ne!(tags, server.get("/api/v1/contracts/filament?format=gbnf").await.text);
    let english = write("thinkingml", json!({"options": {"text_language": "en"}})).await;
    assert_ne!(english, server.get("/api/v1/contracts/thinkingml").await.text);
    // A tool that has changed is not taken from the cache.
    let changed = json!({"schema": {"type": "object", "properties": {"b": {"const": "another"}}, "required": ["b"]}, "executor": {"kind": "client"}});
    assert_eq!(server.put("/api/v1/tools/registered", &changed).await.status, 200);
    assert!(of_caller("ada").await.contains("another"));
}

#[tokio::test]
async fn what_cannot_be_written_is_refused_with_its_reason() {
    let server = start_server().await;
    for (name, body, status, code) in [
        ("nothing", json!({}), 404, "not_found"),
        ("plain", json!({}), 404, "not_found"),
        ("thinkingml", json!({"format": "ebnf"}), 422, "invalid_field"),
        ("thinkingml", json!({"format": "json-schema"}), 422, "invalid_field"),
        ("thinkingml", json!({"options": {"nothing": 1}}), 422, "invalid_option"),
        ("thinkingml", json!({"structure": {}, "options": {"filament.structure": {}}}), 422, "invalid_field"),
        ("aiplan", json!({"format": "gbnf", "tools": ["nothing"]}), 422, "unknown_tool"),
        ("toolcall", json!({"format": "gbnf"}), 422, "grammar_impossible"),
        ("json_value", json!({"format": "gbnf", "schema": {"type": 1}}), 422, "invalid_option"),
        ("json_value", json!({"format": "gbnf", "schema": false}), 422, "grammar_impossible"),
        ("json_value", json!({"wrong": 1}), 422, "unknown_field"),
    ] {
        let answer = server.post(&format!("/api/v1/contracts/{name}"), &body).await;
        assert_eq!((answer.status, answer.problem_code()), (status, code), "{name} {body}: {}", answer.text);
    }
    let answer = server.get("/api/v1/contracts/aiplan?form=gbnf").await;
    assert_eq!((answer.status, answer.problem_code()), (422, "unknown_field"));
    let answer = server.get("/api/v1/contracts/thinkingxml").await;
    assert_eq!(answer.json["close"], json!(["thinkingml"]));
}
