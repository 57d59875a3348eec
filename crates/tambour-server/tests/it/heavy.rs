//! Requests that cost much work: they are bounded, and other requests do not wait for them.

use std::sync::Mutex;
use std::thread::ThreadId;

use serde_json::{Map, Value, json};

use crate::mock::{GOOD_REPLY, MockServer, reply_script};
use crate::server::TestServer;
use crate::tool_kit::{answer_reply, tool_request};

/// A schema with these patterns, one a field.
fn schema_of_patterns(patterns: impl IntoIterator<Item = String>) -> Value {
    let fields: Map<String, Value> = patterns
        .into_iter()
        .enumerate()
        .map(|(at, pattern)| (format!("f{at}"), json!({"type": "string", "pattern": pattern})))
        .collect();
    json!({"type": "object", "properties": fields})
}

fn message_with_schema(schema: &Value) -> Value {
    tool_request(&json!({"tools": [{"name": "big", "schema": schema}]}))
}

async fn server_with_config(change: impl FnOnce(&mut tambour_server::Config)) -> TestServer {
    let mock = MockServer::start(vec![reply_script(&answer_reply("x"), 9)]).await;
    TestServer::start(&mock, change).await
}

#[tokio::test]
async fn patterns_of_schemas_have_limits() {
    let server = server_with_config(|_| {}).await;
    // 60 patterns of bounded repeats in less than 4 KB, each a different one.
    let repeats = schema_of_patterns((0..60).map(|at| format!("^(?:[a-z{at}]{{1,90}}){{1,30}}$")));
    assert!(repeats.to_string().len() < 4096);
    let short = schema_of_patterns((0..65).map(|at| format!("^[a-z]+{at}$")));
    let keys = json!({"patternProperties": {"^[a-z]{1,9000}$": {"type": "string"}}});
    let hidden = json!({"$ref": "#/examples/0", "examples": [{"pattern": "^[a-z]{1,9000}$"}]});
    for (schema, pointer, expected_text) in [
        (&repeats, "/properties/f0/pattern", "262144 bytes"),
        (&short, "/properties/f64/pattern", "64"),
        (&keys, "/patternProperties/^[a-z]{1,9000}$", "262144 bytes"),
        (&hidden, "/examples/0/pattern", "262144 bytes"),
    ] {
        let client = json!({"schema": schema, "executor": {"kind": "client"}});
        for refusal in [
            server.post("/api/v1/messages", &message_with_schema(schema)).await,
            server.put("/api/v1/tools/big", &client).await,
        ] {
            assert_eq!((refusal.status, refusal.problem_code()), (422, "schema_limit"), "{}", refusal.text);
            assert_eq!(refusal.json["pointer"], pointer, "{}", refusal.text);
            let detail = refusal.json["detail"].as_str().unwrap();
            assert!(detail.contains(expected_text) && detail.contains(pointer), "{detail}");
        }
    }
    let words: Vec<String> = (0..30_000).map(|at| format!("word{at}")).collect();
    let long = server.post("/api/v1/messages", &message_with_schema(&json!({ "enum": words }))).await;
    assert_eq!((long.status, long.problem_code()), (422, "schema_limit"), "{}", long.text);
    // An unsupported pattern is an error of its own, whatever its size.
    let lookahead = schema_of_patterns(["^(?=a)b$".to_owned()]);
    let refusal = server.post("/api/v1/messages", &message_with_schema(&lookahead)).await;
    assert_eq!((refusal.status, refusal.problem_code()), (422, "invalid_schema"));
    assert!(refusal.json["detail"].as_str().unwrap().contains("look-around"), "{}", refusal.text);
    let allowed_schema = schema_of_patterns((0..64).map(|at| format!("^[a-z]{{1,40}}{at}$")));
    let accepted = server.post("/api/v1/messages", &message_with_schema(&allowed_schema)).await;
    assert_eq!(accepted.status, 202, "{}", accepted.text);
}

#[tokio::test]
async fn limits_of_patterns_are_settings_and_hold_for_the_tools_of_a_message_together() {
    let server = server_with_config(|config| {
        config.tools.max_patterns = 2;
        config.tools.max_pattern_bytes = 4096;
    })
    .await;
    let two_patterns = schema_of_patterns(["^a+b$".to_owned(), "^b+c$".to_owned()]);
    assert_eq!(server.post("/api/v1/messages", &message_with_schema(&two_patterns)).await.status, 202);
    let three_patterns = schema_of_patterns((0..3).map(|at| format!("^a+{at}$")));
    assert_eq!(
        server.post("/api/v1/messages", &message_with_schema(&three_patterns)).await.problem_code(),
        "schema_limit"
    );
    let large = schema_of_patterns(["^[a-z]{1,200}$".to_owned()]);
    assert_eq!(
        server.post("/api/v1/messages", &message_with_schema(&large)).await.problem_code(),
        "schema_limit"
    );
    // Five tools of two patterns each.
    let tools: Vec<Value> =
        (0..5).map(|at| json!({"name": format!("t{at}"), "schema": two_patterns})).collect();
    let refusal_of_many = server.post("/api/v1/messages", &tool_request(&json!({"tools": tools}))).await;
    assert_eq!(
        (refusal_of_many.status, refusal_of_many.problem_code()),
        (422, "schema_limit"),
        "{}",
        refusal_of_many.text
    );
    assert_eq!(
        server.post("/api/v1/messages", &tool_request(&json!({"tools": tools[..4]}))).await.status,
        202
    );
    // Nor is one taken that was registered under other limits.
    let client = json!({"schema": two_patterns, "executor": {"kind": "client"}});
    assert_eq!(server.put("/api/v1/tools/kept", &client).await.status, 200);
    let mut stricter_config = crate::server::test_config(&server.folder);
    stricter_config.tools.max_patterns = 1;
    server.reload_handle().apply(stricter_config).await.unwrap();
    let refusal_of_stored = server.post("/api/v1/messages", &tool_request(&json!({"tools": ["kept"]}))).await;
    assert_eq!(
        (refusal_of_stored.status, refusal_of_stored.problem_code()),
        (422, "schema_limit"),
        "{}",
        refusal_of_stored.text
    );
}

/// Work done so far: its name, and the thread that ran it.
static WORK_DONE: Mutex<Vec<(&str, ThreadId)>> = Mutex::new(Vec::new());

/// Threads that did this work during `request`. The server has one worker here, the test's own thread.
async fn threads_of_work<T>(work: &str, request: impl Future<Output = T>) -> (T, usize, usize) {
    tambour_server::fail::arm(|point| {
        if matches!(point, "schema" | "decode") {
            WORK_DONE.lock().unwrap().push((point, std::thread::current().id()));
        }
    });
    let count = |on_own_thread: bool| {
        let work_done = WORK_DONE.lock().unwrap();
        let of_work = work_done
            .iter()
            .filter(|(name, id)| *name == work && (*id == std::thread::current().id()) == on_own_thread);
        of_work.count()
    };
    let before = (count(true), count(false));
    let answer = request.await;
    (answer, count(true) - before.0, count(false) - before.1)
}

#[tokio::test]
async fn schemas_are_compiled_beside_the_workers() {
    let server = server_with_config(|_| {}).await;
    let slow = message_with_schema(&schema_of_patterns((0..60).map(|at| format!("^[a-z{at}]{{1,900}}$"))));
    let (accepted, own_count, other_count) =
        threads_of_work("schema", server.post("/api/v1/messages", &slow)).await;
    assert_eq!((accepted.status, own_count), (202, 0));
    assert!(other_count > 0);
}

#[tokio::test]
async fn long_replies_are_read_beside_the_workers() {
    let server = server_with_config(|_| {}).await;
    let long = GOOD_REPLY.replace("first thought", &"a <b>thought</b> & \"more\" `x < y`\n".repeat(3000));
    for path in ["/api/v1/decode", "/api/v1/check"] {
        let (short, own_count, _) =
            threads_of_work("decode", server.post(path, &json!({ "reply": GOOD_REPLY }))).await;
        assert_eq!((short.status, own_count), (200, 1), "{path}");
        let (answer, own_count, other_count) =
            threads_of_work("decode", server.post(path, &json!({ "reply": long }))).await;
        assert_eq!((answer.status, own_count), (200, 0), "{path}");
        assert!(other_count > 0, "{path}");
    }
    // They are read like short ones.
    let decode_answer = server.post("/api/v1/decode", &json!({ "reply": long })).await;
    assert_eq!(decode_answer.json["dialect"], "thinkingml");
    assert_eq!(decode_answer.json["events"].as_array().unwrap().last().unwrap()["event"], "completed");
    let malformed = server.call("post", "/api/v1/decode", Some(&format!("{{\"reply\": {long:?}"))).await;
    assert_eq!((malformed.status, malformed.problem_code()), (400, "malformed_json"));
}
