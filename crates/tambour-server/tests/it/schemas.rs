//! Schemas that cost too much, and those with external references: reported when they are registered.

use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use crate::mock::{MockServer, reply_script};
use crate::server::TestServer;

/// A schema of `levels` levels, each with two references to the next.
pub(crate) fn schema_tower(keyword: &str, levels: usize) -> Value {
    let level = |at: usize| {
        let next = json!({"$ref": format!("#/$defs/d{}", at + 1)});
        let schema = if at == levels { json!({"type": "string"}) } else { json!({ keyword: [next, next] }) };
        (format!("d{at}"), schema)
    };
    json!({"$ref": "#/$defs/d0", "$defs": (0..=levels).map(level).collect::<Map<_, _>>()})
}

fn chat_request(schema: &Value) -> Value {
    json!({
        "model": "openai/m", "messages": [{"role": "user", "content": "x"}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}},
    })
}

/// Submits a schema in every way there is; returns the answers.
async fn submit_everywhere(server: &TestServer, schema: &Value) -> Vec<(&'static str, u16, Value)> {
    let conversation = server.post("/api/v1/conversations", &json!({})).await.json["conversation_id"].clone();
    let state = format!("/api/v1/conversations/{}/state/schema", conversation.as_str().unwrap());
    let tools = json!([{"name": "t", "schema": schema}]);
    let functions = json!([{"type": "function", "function": {"name": "t", "parameters": schema}}]);
    let user = json!([{"role": "user", "content": "x"}]);
    let options = json!({"json_value.schema": schema});
    let contract = json!({"options": options});
    let answers = [
        ("response_format", server.post("/v1/chat/completions", &chat_request(schema)).await),
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
    answers.into_iter().map(|(submission, answer)| (submission, answer.status, answer.json)).collect()
}

/// Code and detail of a refusal, in either form.
fn refusal_code_and_detail(answer: &Value) -> (String, String) {
    let (code, detail) = match answer.get("error") {
        Some(error) => (&error["code"], &error["message"]),
        None => (&answer["code"], &answer["detail"]),
    };
    (code.as_str().unwrap_or_default().to_owned(), detail.as_str().unwrap_or_default().to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn references_that_multiply_are_refused_at_once() {
    let mock = MockServer::start(vec![reply_script("{\"a\": 1}", 9)]).await;
    let server = TestServer::start_default(&mock).await;
    for keyword in ["anyOf", "oneOf", "allOf"] {
        let start_time = Instant::now();
        for (submission, status, answer) in submit_everywhere(&server, &schema_tower(keyword, 18)).await {
            let (code, detail) = refusal_code_and_detail(&answer);
            assert_eq!((status, code.as_str()), (422, "schema_too_complex"), "{submission}: {answer}");
            assert!(detail.contains("references multiply"), "{submission}: {detail}");
        }
        assert!(start_time.elapsed() < Duration::from_secs(5), "{:?}", start_time.elapsed());
    }
    assert_eq!(mock.calls().started, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_schema_refers_to_has_to_be_there() {
    let mock = MockServer::start(vec![reply_script("x", 1)]).await;
    let server = TestServer::start_default(&mock).await;
    for (schema, place, remedy) in [
        (json!({"properties": {"a": {"$ref": "http://127.0.0.1:1/x.json"}}}), "/properties/a/$ref", "$defs"),
        (json!({"$ref": "file:///etc/passwd"}), "/$ref", "$defs"),
        (json!({"items": {"$ref": "#/$defs/none"}}), "/items/$ref", "refer to another place"),
        (json!({"properties": {"a": {"pattern": "^(?=a)b$"}}}), "/properties/a/pattern", "without them"),
    ] {
        for (submission, status, answer) in submit_everywhere(&server, &schema).await {
            let (_, detail) = refusal_code_and_detail(&answer);
            assert_eq!(status, 422, "{submission} {schema}: {answer}");
            assert!(detail.contains(place) && detail.contains(remedy), "{submission}: {detail}");
        }
    }
    assert_eq!(mock.calls().started, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn aliases_with_such_schemas_are_told_at_start() {
    let mock = MockServer::start(vec![reply_script("x", 1)]).await;
    for (schema, expected_text) in [
        (schema_tower("anyOf", 18), "references multiply"),
        (json!({"$ref": "http://127.0.0.1:1/x"}), "another document"),
        (json!({"pattern": "(?!a)"}), "look-around"),
    ] {
        let folder = crate::server::Folder::new();
        let mut config = crate::server::test_config(&folder);
        config.add_upstream(&mock.url(), None).unwrap();
        let alias = json!({"dialect": "json_value", "contract": {"options": {"json_value.schema": schema}}});
        config.aliases.insert("sums".into(), serde_json::from_value(alias).unwrap());
        let refusal = tambour_server::Server::start(config).await.err().expect("it is refused").to_string();
        assert!(refusal.contains("aliases.sums.contract") && refusal.contains(expected_text), "{refusal}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_check_that_is_cut_is_a_finding_and_holds_up_nobody() {
    // A cost that depends on the value: each list in a list doubles it.
    let schema = json!({"allOf": [{"items": {"$ref": "#"}}, {"items": {"$ref": "#"}}]});
    let deep = "[".repeat(60) + "1" + &"]".repeat(60);
    let mock = MockServer::start(vec![reply_script(&deep, 50)]).await;
    let server = TestServer::start_default(&mock).await;
    let request = json!({"text": "x", "dialect": "json_value", "output_protocol": "jsonseq_v1", "findings": true,
        "contract": {"options": {"json_value.schema": schema}}});
    let start_time = Instant::now();
    let events = server.open_stream(&request).await.read_checked().await;
    let error = events.last().unwrap();
    assert_eq!((error.name.as_str(), &error.data["code"]), ("error", &json!("schema_too_complex")));
    let check_answer = server
        .post(
            "/api/v1/check",
            &json!({"reply": deep, "contract": "json_value", "options": {"json_value.schema": schema}}),
        )
        .await;
    assert_eq!(check_answer.json["verdict"], "fail");
    assert!(check_answer.text.contains("schema_too_complex"), "{}", check_answer.text);
    // It is the request that is at fault, and not the server.
    let refusal = server.post("/v1/chat/completions", &chat_request(&schema)).await;
    assert_eq!(
        (refusal.status, refusal_code_and_detail(&refusal.json).0.as_str()),
        (422, "schema_too_complex")
    );
    assert_eq!(refusal.headers["x-should-retry"], "false");
    assert!(start_time.elapsed() < Duration::from_secs(10), "{:?}", start_time.elapsed());
}
