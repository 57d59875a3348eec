//! Requests that cost much work: they are bounded, and other requests do not wait for them.

use std::sync::Mutex;
use std::thread::ThreadId;

use serde_json::{Map, Value, json};

use crate::mock::{GOOD, Mock, reply};
use crate::server::Tambour;
use crate::tool_kit::{answer, ask};

/// A schema with these patterns, one a field.
fn schema(patterns: impl IntoIterator<Item = String>) -> Value {
    let fields: Map<String, Value> = patterns
        .into_iter()
        .enumerate()
        .map(|(at, pattern)| (format!("f{at}"), json!({"type": "string", "pattern": pattern})))
        .collect();
    json!({"type": "object", "properties": fields})
}

fn inline(schema: &Value) -> Value {
    ask(&json!({"tools": [{"name": "big", "schema": schema}]}))
}

async fn server(more: impl FnOnce(&mut tambour_server::Config)) -> Tambour {
    let mock = Mock::start(vec![reply(&answer("x"), 9)]).await;
    Tambour::start(&mock, more).await
}

#[tokio::test]
async fn patterns_of_schemas_have_limits() {
    let server = server(|_| {}).await;
    // 60 patterns of bounded repeats in less than 4 KB, each a different one.
    let repeats = schema((0..60).map(|at| format!("^(?:[a-z{at}]{{1,90}}){{1,30}}$")));
    assert!(repeats.to_string().len() < 4096);
    let short = schema((0..65).map(|at| format!("^[a-z]+{at}$")));
    let keys = json!({"patternProperties": {"^[a-z]{1,9000}$": {"type": "string"}}});
    let hidden = json!({"$ref": "#/examples/0", "examples": [{"pattern": "^[a-z]{1,9000}$"}]});
    for (schema, pointer, said) in [
        (&repeats, "/properties/f0/pattern", "262144 bytes"),
        (&short, "/properties/f64/pattern", "64"),
        (&keys, "/patternProperties/^[a-z]{1,9000}$", "262144 bytes"),
        (&hidden, "/examples/0/pattern", "262144 bytes"),
    ] {
        let client = json!({"schema": schema, "executor": {"kind": "client"}});
        for refused in [
            server.post("/api/v1/messages", &inline(schema)).await,
            server.put("/api/v1/tools/big", &client).await,
        ] {
            assert_eq!((refused.status, refused.problem()), (422, "schema_limit"), "{}", refused.text);
            assert_eq!(refused.json["pointer"], pointer, "{}", refused.text);
            let detail = refused.json["detail"].as_str().unwrap();
            assert!(detail.contains(said) && detail.contains(pointer), "{detail}");
        }
    }
    let words: Vec<String> = (0..30_000).map(|at| format!("word{at}")).collect();
    let long = server.post("/api/v1/messages", &inline(&json!({ "enum": words }))).await;
    assert_eq!((long.status, long.problem()), (422, "schema_limit"), "{}", long.text);
    // An unsupported pattern is an error of its own, whatever its size.
    let ahead = schema(["^(?=a)b$".to_owned()]);
    let refused = server.post("/api/v1/messages", &inline(&ahead)).await;
    assert_eq!((refused.status, refused.problem()), (422, "invalid_schema"));
    assert!(refused.json["detail"].as_str().unwrap().contains("look-around"), "{}", refused.text);
    let fine = schema((0..64).map(|at| format!("^[a-z]{{1,40}}{at}$")));
    let taken = server.post("/api/v1/messages", &inline(&fine)).await;
    assert_eq!(taken.status, 202, "{}", taken.text);
}

#[tokio::test]
async fn limits_of_patterns_are_settings_and_hold_for_the_tools_of_a_message_together() {
    let server = server(|config| {
        config.tools.max_patterns = 2;
        config.tools.max_pattern_bytes = 4096;
    })
    .await;
    let two = schema(["^a+b$".to_owned(), "^b+c$".to_owned()]);
    assert_eq!(server.post("/api/v1/messages", &inline(&two)).await.status, 202);
    let three = schema((0..3).map(|at| format!("^a+{at}$")));
    assert_eq!(server.post("/api/v1/messages", &inline(&three)).await.problem(), "schema_limit");
    let large = schema(["^[a-z]{1,200}$".to_owned()]);
    assert_eq!(server.post("/api/v1/messages", &inline(&large)).await.problem(), "schema_limit");
    // Five tools of two patterns each.
    let tools: Vec<Value> = (0..5).map(|at| json!({"name": format!("t{at}"), "schema": two})).collect();
    let many = server.post("/api/v1/messages", &ask(&json!({"tools": tools}))).await;
    assert_eq!((many.status, many.problem()), (422, "schema_limit"), "{}", many.text);
    assert_eq!(server.post("/api/v1/messages", &ask(&json!({"tools": tools[..4]}))).await.status, 202);
    // A tool that was registered under other limits is refused as well.
    let client = json!({"schema": two, "executor": {"kind": "client"}});
    assert_eq!(server.put("/api/v1/tools/kept", &client).await.status, 200);
    let mut stricter = crate::server::config(&server.folder);
    stricter.tools.max_patterns = 1;
    server.reload().apply(stricter).await.unwrap();
    let kept = server.post("/api/v1/messages", &ask(&json!({"tools": ["kept"]}))).await;
    assert_eq!((kept.status, kept.problem()), (422, "schema_limit"), "{}", kept.text);
}

/// Work done so far: its name, and the thread that ran it.
static DONE: Mutex<Vec<(&str, ThreadId)>> = Mutex::new(Vec::new());

/// Threads that did this work during `request`. The server has one worker here, the test's own thread.
async fn threads<T>(work: &str, request: impl Future<Output = T>) -> (T, usize, usize) {
    tambour_server::fail::arm(|point| {
        if matches!(point, "schema" | "decode") {
            DONE.lock().unwrap().push((point, std::thread::current().id()));
        }
    });
    let count = |own: bool| {
        let done = DONE.lock().unwrap();
        let of =
            done.iter().filter(|(name, id)| *name == work && (*id == std::thread::current().id()) == own);
        of.count()
    };
    let before = (count(true), count(false));
    let answer = request.await;
    (answer, count(true) - before.0, count(false) - before.1)
}

#[tokio::test]
async fn schemas_are_compiled_beside_the_workers() {
    let server = server(|_| {}).await;
    let slow = inline(&schema((0..60).map(|at| format!("^[a-z{at}]{{1,900}}$"))));
    let (taken, own, others) = threads("schema", server.post("/api/v1/messages", &slow)).await;
    assert_eq!((taken.status, own), (202, 0));
    assert!(others > 0);
}

#[tokio::test]
async fn long_replies_are_read_beside_the_workers() {
    let server = server(|_| {}).await;
    let long = GOOD.replace("first thought", &"a <b>thought</b> & \"more\" `x < y`\n".repeat(3000));
    for path in ["/api/v1/decode", "/api/v1/check"] {
        let (short, own, _) = threads("decode", server.post(path, &json!({ "reply": GOOD }))).await;
        assert_eq!((short.status, own), (200, 1), "{path}");
        let (read, own, others) = threads("decode", server.post(path, &json!({ "reply": long }))).await;
        assert_eq!((read.status, own), (200, 0), "{path}");
        assert!(others > 0, "{path}");
    }
    // They are read like short ones.
    let decoded = server.post("/api/v1/decode", &json!({ "reply": long })).await;
    assert_eq!(decoded.json["dialect"], "thinkingml");
    assert_eq!(decoded.json["events"].as_array().unwrap().last().unwrap()["event"], "completed");
    let malformed = server.call("post", "/api/v1/decode", Some(&format!("{{\"reply\": {long:?}"))).await;
    assert_eq!((malformed.status, malformed.problem()), (400, "malformed_json"));
}
