//! Schemas that cost too much, and those with external references: reported when they are registered.

use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use crate::mock::{Mock, reply};
use crate::server::Tambour;

/// A schema of `levels` levels, each with two references to the next.
pub(crate) fn tower(word: &str, levels: usize) -> Value {
    let level = |at: usize| {
        let next = json!({"$ref": format!("#/$defs/d{}", at + 1)});
        let schema = if at == levels { json!({"type": "string"}) } else { json!({ word: [next, next] }) };
        (format!("d{at}"), schema)
    };
    json!({"$ref": "#/$defs/d0", "$defs": (0..=levels).map(level).collect::<Map<_, _>>()})
}

fn chat(schema: &Value) -> Value {
    json!({
        "model": "openai/m", "messages": [{"role": "user", "content": "x"}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}},
    })
}

/// Submits a schema in every way there is; returns the answers.
async fn given(server: &Tambour, schema: &Value) -> Vec<(&'static str, u16, Value)> {
    let conversation = server.post("/api/v1/conversations", &json!({})).await.json["conversation_id"].clone();
    let state = format!("/api/v1/conversations/{}/state/schema", conversation.as_str().unwrap());
    let tools = json!([{"name": "t", "schema": schema}]);
    let functions = json!([{"type": "function", "function": {"name": "t", "parameters": schema}}]);
    let user = json!([{"role": "user", "content": "x"}]);
    let options = json!({"json_value.schema": schema});
    let contract = json!({"options": options});
    let answers = [
        ("response_format", server.post("/v1/chat/completions", &chat(schema)).await),
        (
            "text.format",
            server
                .post(
                    "/v1/responses",
                    &json!({"model": "openai/m", "input": "x", "text": {"format": {"type": "json_schema", "name": "n", "schema": schema}}}),
                )
                .await,
        ),
        ("contract", server.post("/api/v1/messages", &json!({"text": "x", "dialect": "json_value", "contract": contract})).await),
        ("check", server.post("/api/v1/check", &json!({"reply": "1", "contract": "json_value", "options": options})).await),
        ("decode", server.post("/api/v1/decode", &json!({"reply": "1", "dialect": "json_value", "contract": contract})).await),
        ("tools", server.post("/api/v1/messages", &json!({"text": "x", "tools": tools})).await),
        ("functions", server.post("/v1/chat/completions", &json!({"model": "openai/m", "messages": user, "tools": functions})).await),
        ("registered", server.put("/api/v1/tools/t", &json!({"schema": schema, "executor": {"kind": "client"}})).await),
        ("state", server.put(&state, &json!({ "schema": schema })).await),
    ];
    answers.into_iter().map(|(way, answer)| (way, answer.status, answer.json)).collect()
}

/// Code and detail of a refusal, in either form.
fn told(answer: &Value) -> (String, String) {
    let (code, detail) = match answer.get("error") {
        Some(error) => (&error["code"], &error["message"]),
        None => (&answer["code"], &answer["detail"]),
    };
    (code.as_str().unwrap_or_default().to_owned(), detail.as_str().unwrap_or_default().to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn references_that_multiply_are_refused_at_once() {
    let mock = Mock::start(vec![reply("{\"a\": 1}", 9)]).await;
    let server = Tambour::with(&mock).await;
    for word in ["anyOf", "oneOf", "allOf"] {
        let started = Instant::now();
        for (way, status, answer) in given(&server, &tower(word, 18)).await {
            let (code, detail) = told(&answer);
            assert_eq!((status, code.as_str()), (422, "schema_too_complex"), "{way}: {answer}");
            assert!(detail.contains("references multiply"), "{way}: {detail}");
        }
        assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    }
    assert_eq!(mock.calls().begun, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_schema_refers_to_has_to_be_there() {
    let mock = Mock::start(vec![reply("x", 1)]).await;
    let server = Tambour::with(&mock).await;
    for (schema, place, remedy) in [
        (json!({"properties": {"a": {"$ref": "http://127.0.0.1:1/x.json"}}}), "/properties/a/$ref", "$defs"),
        (json!({"$ref": "file:///etc/passwd"}), "/$ref", "$defs"),
        (json!({"items": {"$ref": "#/$defs/none"}}), "/items/$ref", "name another place"),
        (json!({"properties": {"a": {"pattern": "^(?=a)b$"}}}), "/properties/a/pattern", "without them"),
    ] {
        for (way, status, answer) in given(&server, &schema).await {
            let (_, detail) = told(&answer);
            assert_eq!(status, 422, "{way} {schema}: {answer}");
            assert!(detail.contains(place) && detail.contains(remedy), "{way}: {detail}");
        }
    }
    assert_eq!(mock.calls().begun, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn aliases_with_such_schemas_are_told_at_start() {
    let mock = Mock::start(vec![reply("x", 1)]).await;
    for (schema, said) in [
        (tower("anyOf", 18), "references multiply"),
        (json!({"$ref": "http://127.0.0.1:1/x"}), "another document"),
        (json!({"pattern": "(?!a)"}), "look-around"),
    ] {
        let folder = crate::server::Folder::new();
        let mut config = crate::server::config(&folder);
        config.add_upstream(&mock.url(), None).unwrap();
        let alias = json!({"dialect": "json_value", "contract": {"options": {"json_value.schema": schema}}});
        config.aliases.insert("sums".into(), serde_json::from_value(alias).unwrap());
        let refused = tambour_server::Server::start(config).await.err().expect("it is refused").to_string();
        assert!(refused.contains("aliases.sums.contract") && refused.contains(said), "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_check_that_is_cut_is_a_finding_and_holds_up_nobody() {
    // A cost that depends on the value: each list in a list doubles it.
    let schema = json!({"allOf": [{"items": {"$ref": "#"}}, {"items": {"$ref": "#"}}]});
    let deep = "[".repeat(60) + "1" + &"]".repeat(60);
    let mock = Mock::start(vec![reply(&deep, 50)]).await;
    let server = Tambour::with(&mock).await;
    let ask = json!({"text": "x", "dialect": "json_value", "output_protocol": "jsonseq_v1", "findings": true,
        "contract": {"options": {"json_value.schema": schema}}});
    let started = Instant::now();
    let events = server.stream(&ask).await.whole().await;
    let error = events.last().unwrap();
    assert_eq!((error.name.as_str(), &error.data["code"]), ("error", &json!("schema_too_complex")));
    let checked = server
        .post(
            "/api/v1/check",
            &json!({"reply": deep, "contract": "json_value", "options": {"json_value.schema": schema}}),
        )
        .await;
    assert_eq!(checked.json["verdict"], "fail");
    assert!(checked.text.contains("schema_too_complex"), "{}", checked.text);
    // The fault is that of the request, not of the server.
    let refused = server.post("/v1/chat/completions", &chat(&schema)).await;
    assert_eq!((refused.status, told(&refused.json).0.as_str()), (422, "schema_too_complex"));
    assert_eq!(refused.headers["x-should-retry"], "false");
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
}
