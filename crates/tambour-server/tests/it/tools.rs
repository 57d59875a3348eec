//! The registry of tools.

use serde_json::{Value, json};
use tambour_server::store::{SqliteStore, Store as _, ToolRow, Tools as _};

use crate::mock::{MockServer, reply_script};
use crate::server::TestServer;
use crate::tool_kit::{answer_reply, tool_request, tool_schema};

const URL: &str = "https://hooks.example/lint";

fn tool_definition(fields: &Value) -> Value {
    let mut tool = json!({"schema": tool_schema(), "executor": {"kind": "http", "url": URL}});
    tool.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    tool
}

async fn server() -> TestServer {
    let mock = MockServer::start(vec![reply_script(&answer_reply("x"), 9)]).await;
    let hosts = ["hooks.example", "100.64.0.1", "100.127.255.255"].map(str::to_owned);
    TestServer::start(&mock, |config| config.tools.allowed_hosts = hosts.to_vec()).await
}

#[tokio::test]
async fn tools_are_kept_and_their_secrets_are_not_shown() {
    let server = server().await;
    let definition = tool_definition(
        &json!({"description": "checks it", "callers": ["a"], "confirm": true, "read_only": true,
        "executor": {"kind": "http", "url": URL, "timeout_ms": 5000, "secret": "very-secret"}}),
    );
    let response = server.put("/api/v1/tools/lint", &definition).await;
    assert_eq!(response.status, 200, "{}", response.text);
    let snapshot = server.get("/api/v1/tools/lint").await;
    assert_eq!(snapshot.json, response.json);
    assert_eq!(snapshot.json["schema"], tool_schema());
    assert_eq!(snapshot.json["executor"], json!({"kind": "http", "url": URL, "timeout_ms": 5000}));
    assert_eq!((&snapshot.json["signed"], &snapshot.json["confirm"]), (&json!(true), &json!(true)));
    // Another one in its place: all of it.
    let client = json!({"schema": {"type": "object"}, "executor": {"kind": "client"}});
    let unchanged = server.put("/api/v1/tools/lint", &client).await.json;
    assert_eq!((&unchanged["signed"], unchanged.get("callers")), (&json!(false), None));
    assert_eq!(unchanged["created"], snapshot.json["created"]);
    server.put("/api/v1/tools/编辑", &client).await;
    let listing = server.get("/api/v1/tools").await;
    let names: Vec<&Value> =
        listing.json["data"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["lint", "编辑"]);
    assert!(!listing.text.contains("very-secret"));
    assert_eq!(server.call("delete", "/api/v1/tools/lint", None).await.status, 204);
    assert_eq!(server.get("/api/v1/tools/lint").await.problem_code(), "not_found");
    assert_eq!(server.call("delete", "/api/v1/tools/lint", None).await.problem_code(), "not_found");
}

#[tokio::test]
async fn tools_belong_to_their_key() {
    let mut server = server().await;
    let key = server.post("/api/v1/keys", &json!({"name": "a", "rights": "admin"})).await.json;
    server.set_key(key["key"].as_str());
    let other = server.post("/api/v1/keys", &json!({"name": "b"})).await.json;
    server.put("/api/v1/tools/lint", &tool_definition(&json!({}))).await;
    server.set_key(other["key"].as_str());
    assert_eq!(server.get("/api/v1/tools/lint").await.status, 404);
    assert_eq!(server.call("delete", "/api/v1/tools/lint", None).await.status, 404);
    assert_eq!(server.get("/api/v1/tools").await.json, json!({"data": [], "has_more": false}));
    let refusal = server.post("/api/v1/messages", &tool_request(&json!({"tools": ["lint"]}))).await;
    assert_eq!((refusal.status, refusal.problem_code()), (422, "unknown_tool"));
    assert_eq!(refusal.json["close"], json!([]));
    // The same name is another tool for another owner.
    let client = json!({"schema": {"type": "object"}, "executor": {"kind": "client"}});
    assert_eq!(server.put("/api/v1/tools/lint", &client).await.status, 200);
    server.set_key(key["key"].as_str());
    assert_eq!(server.get("/api/v1/tools/lint").await.json["executor"]["kind"], "http");
}

#[tokio::test]
async fn only_admins_name_secrets_of_the_environment() {
    let mut server = server().await;
    let admin = server.post("/api/v1/keys", &json!({"name": "a", "rights": "admin"})).await.json;
    server.set_key(admin["key"].as_str());
    let plain = server.post("/api/v1/keys", &json!({"name": "b"})).await.json;
    let name = "TAMBOUR_TOOL_SECRET_OF_ANOTHER";
    let executor = json!({"kind": "http", "url": URL, "secret_env": name});
    let signed_tool = tool_definition(&json!({ "executor": executor }));
    // An admin learns that the variable does not exist; a plain key gets no such detail.
    let refusal_for_admin = server.put("/api/v1/tools/lint", &signed_tool).await;
    assert_eq!((refusal_for_admin.status, refusal_for_admin.problem_code()), (422, "invalid_field"));
    server.set_key(plain["key"].as_str());
    let refusal = server.put("/api/v1/tools/lint", &signed_tool).await;
    assert_eq!((refusal.status, refusal.problem_code()), (403, "forbidden"), "{}", refusal.text);
    assert!(refusal.json["detail"].as_str().unwrap().contains("secret_env"));
    assert_eq!(refusal.json["field"], "secret_env");
    // A tool that was registered while it was allowed stops working, too.
    let folder = server.stop().await;
    let config = crate::server::test_config(&folder);
    let store = SqliteStore::open(&config.database_file().unwrap(), false).await.unwrap();
    let row = ToolRow {
        owner: plain["owner"].as_str().unwrap().to_owned(),
        name: "lint".to_owned(),
        created: String::new(),
        changed: String::new(),
        definition: signed_tool.to_string(),
        secret: None,
    };
    assert!(store.put_tool(&row, 10).await.unwrap());
    store.close().await;
    let mut server = TestServer::serve(folder, config).await;
    server.set_key(plain["key"].as_str());
    let refusal = server.post("/api/v1/messages", &tool_request(&json!({"tools": ["lint"]}))).await;
    assert_eq!((refusal.status, refusal.problem_code()), (403, "forbidden"), "{}", refusal.text);
}

#[tokio::test]
async fn what_is_no_tool_is_refused_with_its_place() {
    let server = server().await;
    let hook = |fields: &Value| {
        let mut hook = json!({"kind": "http", "url": URL});
        hook.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        json!({"executor": hook})
    };
    for (fields, code, field, expected_text) in [
        (json!({"colour": 1}), "unknown_field", "colour", "colour"),
        (hook(&json!({"colour": 1})), "unknown_field", "colour", "colour"),
        (json!({"executor": {"kind": "client", "url": URL}}), "unknown_field", "url", "url"),
        (
            json!({"schema": {"properties": {"a": {"type": "colour"}}}}),
            "invalid_schema",
            "schema",
            "/properties/a/type",
        ),
        (json!({"schema": {"$ref": "https://elsewhere.example/x"}}), "invalid_schema", "schema", "schema"),
        (json!({"schema": []}), "invalid_schema", "schema", "object"),
        (json!({"description": "a\nb"}), "invalid_field", "description", "one line"),
        (json!({"callers": [" "]}), "invalid_field", "callers", "caller"),
        (hook(&json!({"timeout_ms": 0})), "invalid_field", "timeout_ms", "300000"),
        (hook(&json!({"secret": "short"})), "invalid_field", "secret", "8"),
        (hook(&json!({"secret": "long-enough", "secret_env": "X"})), "invalid_field", "secret_env", "both"),
        (
            hook(&json!({"secret_env": "TAMBOUR_API_KEY"})),
            "invalid_field",
            "secret_env",
            "TAMBOUR_TOOL_SECRET_",
        ),
        (
            hook(&json!({"secret_env": "TAMBOUR_TOOL_SECRET_NONE"})),
            "invalid_field",
            "secret_env",
            "no secret",
        ),
        (
            hook(&json!({"url": "https://other.example/"})),
            "webhook_not_allowed",
            "url",
            "tools.allowed_hosts",
        ),
        (hook(&json!({"url": "ftp://hooks.example/"})), "webhook_not_allowed", "url", "http"),
        (hook(&json!({"url": "http://100.64.0.1/"})), "webhook_not_allowed", "url", "private network"),
        (hook(&json!({"url": "http://0x647fffff/"})), "webhook_not_allowed", "url", "100.127.255.255"),
    ] {
        let answer = server.put("/api/v1/tools/lint", &tool_definition(&fields)).await;
        assert_eq!((answer.status, answer.problem_code()), (422, code), "{fields}: {}", answer.text);
        assert_eq!(answer.json["field"], field, "{}", answer.text);
        assert!(answer.json["detail"].as_str().unwrap().contains(expected_text), "{}", answer.text);
        assert!(!answer.text.contains("long-enough"));
    }
    let answer = server.put("/api/v1/tools/a%20b", &tool_definition(&json!({}))).await;
    assert_eq!((answer.problem_code(), &answer.json["field"]), ("invalid_field", &json!("name")));
    assert_eq!(server.get("/api/v1/tools").await.json, json!({"data": [], "has_more": false}));
}

#[tokio::test]
async fn a_message_names_tools_that_exist() {
    let server = server().await;
    server.put("/api/v1/tools/lintSRSDocument", &tool_definition(&json!({}))).await;
    let inline = |fields: &Value| {
        let mut inline = json!({"name": "ask", "schema": {"type": "object"}});
        inline.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        json!({"tools": [inline]})
    };
    for (fields, code, expected_text) in [
        (json!({"tools": ["lintSrsDocument"]}), "unknown_tool", "lintSRSDocument"), // P-015
        (json!({"tools": ["lintSRSDocument", "lintSRSDocument"]}), "invalid_field", "twice"),
        (json!({"tools": [7]}), "invalid_field", "a name or an object"),
        (inline(&json!({"colour": 1})), "unknown_field", "colour"),
        (inline(&json!({"schema": {"type": 7}})), "invalid_schema", "/type"),
        (inline(&json!({"name": ""})), "invalid_field", "1 to 64"),
        (json!({"tools": [], "caller": " "}), "invalid_field", "caller"),
    ] {
        let answer = server.post("/api/v1/messages", &tool_request(&fields)).await;
        assert_eq!((answer.status, answer.problem_code()), (422, code), "{fields}: {}", answer.text);
        assert!(answer.json["detail"].as_str().unwrap().contains(expected_text), "{}", answer.text);
    }
    let answer = server.post("/api/v1/messages", &tool_request(&json!({"tools": ["lintSrsDocument"]}))).await;
    assert_eq!(answer.json["close"], json!(["lintSRSDocument"])); // P-015
    let fine = server.post("/api/v1/messages", &tool_request(&json!({"tools": ["lintSRSDocument"]}))).await;
    assert_eq!(fine.status, 202, "{}", fine.text);
}
