//! The registry of tools.

use serde_json::{Value, json};
use tambour_server::store::{SqliteStore, Store as _, ToolRow, Tools as _};

use crate::mock::{Mock, reply};
use crate::server::Tambour;
use crate::tool_kit::{answer, ask, schema};

const URL: &str = "https://hooks.example/lint";

fn tool(more: &Value) -> Value {
    let mut tool = json!({"schema": schema(), "executor": {"kind": "http", "url": URL}});
    tool.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    tool
}

async fn server() -> Tambour {
    let mock = Mock::start(vec![reply(&answer("x"), 9)]).await;
    let hosts = ["hooks.example", "100.64.0.1", "100.127.255.255"].map(str::to_owned);
    Tambour::start(&mock, |config| config.tools.allowed_hosts = hosts.to_vec()).await
}

#[tokio::test]
async fn tools_are_kept_and_their_secrets_are_not_shown() {
    let server = server().await;
    let given =
        tool(&json!({"description": "checks it", "callers": ["a"], "confirm": true, "read_only": true,
        "executor": {"kind": "http", "url": URL, "timeout_ms": 5000, "secret": "very-secret"}}));
    let put = server.put("/api/v1/tools/lint", &given).await;
    assert_eq!(put.status, 200, "{}", put.text);
    let shown = server.get("/api/v1/tools/lint").await;
    assert_eq!(shown.json, put.json);
    assert_eq!(shown.json["schema"], schema());
    assert_eq!(shown.json["executor"], json!({"kind": "http", "url": URL, "timeout_ms": 5000}));
    assert_eq!((&shown.json["signed"], &shown.json["confirm"]), (&json!(true), &json!(true)));
    // Another tool replaces all of it.
    let client = json!({"schema": {"type": "object"}, "executor": {"kind": "client"}});
    let again = server.put("/api/v1/tools/lint", &client).await.json;
    assert_eq!((&again["signed"], again.get("callers")), (&json!(false), None));
    assert_eq!(again["created"], shown.json["created"]);
    server.put("/api/v1/tools/编辑", &client).await;
    let listed = server.get("/api/v1/tools").await;
    let names: Vec<&Value> =
        listed.json["data"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["lint", "编辑"]);
    assert!(!listed.text.contains("very-secret"));
    assert_eq!(server.call("delete", "/api/v1/tools/lint", None).await.status, 204);
    assert_eq!(server.get("/api/v1/tools/lint").await.problem(), "not_found");
    assert_eq!(server.call("delete", "/api/v1/tools/lint", None).await.problem(), "not_found");
}

#[tokio::test]
async fn tools_belong_to_their_key() {
    let mut server = server().await;
    let key = server.post("/api/v1/keys", &json!({"name": "a", "rights": "admin"})).await.json;
    server.key(key["key"].as_str());
    let other = server.post("/api/v1/keys", &json!({"name": "b"})).await.json;
    server.put("/api/v1/tools/lint", &tool(&json!({}))).await;
    server.key(other["key"].as_str());
    assert_eq!(server.get("/api/v1/tools/lint").await.status, 404);
    assert_eq!(server.call("delete", "/api/v1/tools/lint", None).await.status, 404);
    assert_eq!(server.get("/api/v1/tools").await.json, json!({"data": [], "has_more": false}));
    let refused = server.post("/api/v1/messages", &ask(&json!({"tools": ["lint"]}))).await;
    assert_eq!((refused.status, refused.problem()), (422, "unknown_tool"));
    assert_eq!(refused.json["close"], json!([]));
    // The same name is another tool for another owner.
    let client = json!({"schema": {"type": "object"}, "executor": {"kind": "client"}});
    assert_eq!(server.put("/api/v1/tools/lint", &client).await.status, 200);
    server.key(key["key"].as_str());
    assert_eq!(server.get("/api/v1/tools/lint").await.json["executor"]["kind"], "http");
}

#[tokio::test]
async fn only_admins_name_secrets_of_the_environment() {
    let mut server = server().await;
    let admin = server.post("/api/v1/keys", &json!({"name": "a", "rights": "admin"})).await.json;
    server.key(admin["key"].as_str());
    let plain = server.post("/api/v1/keys", &json!({"name": "b"})).await.json;
    let name = "TAMBOUR_TOOL_SECRET_OF_ANOTHER";
    let executor = json!({"kind": "http", "url": URL, "secret_env": name});
    let signed = tool(&json!({ "executor": executor }));
    // An admin learns that the variable does not exist; a plain key gets no such detail.
    let told = server.put("/api/v1/tools/lint", &signed).await;
    assert_eq!((told.status, told.problem()), (422, "invalid_field"));
    server.key(plain["key"].as_str());
    let refused = server.put("/api/v1/tools/lint", &signed).await;
    assert_eq!((refused.status, refused.problem()), (403, "forbidden"), "{}", refused.text);
    assert!(refused.json["detail"].as_str().unwrap().contains("secret_env"));
    assert_eq!(refused.json["field"], "secret_env");
    // A tool that was registered while it was allowed stops working, too.
    let folder = server.stopped().await;
    let config = crate::server::config(&folder);
    let store = SqliteStore::open(&config.database_file().unwrap(), false).await.unwrap();
    let row = ToolRow {
        owner: plain["owner"].as_str().unwrap().to_owned(),
        name: "lint".to_owned(),
        created: String::new(),
        changed: String::new(),
        definition: signed.to_string(),
        secret: None,
    };
    assert!(store.put_tool(&row, 10).await.unwrap());
    store.close().await;
    let mut server = Tambour::serve(folder, config).await;
    server.key(plain["key"].as_str());
    let refused = server.post("/api/v1/messages", &ask(&json!({"tools": ["lint"]}))).await;
    assert_eq!((refused.status, refused.problem()), (403, "forbidden"), "{}", refused.text);
}

#[tokio::test]
async fn what_is_no_tool_is_refused_with_its_place() {
    let server = server().await;
    let hook = |more: &Value| {
        let mut hook = json!({"kind": "http", "url": URL});
        hook.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"executor": hook})
    };
    for (more, code, field, said) in [
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
        let answer = server.put("/api/v1/tools/lint", &tool(&more)).await;
        assert_eq!((answer.status, answer.problem()), (422, code), "{more}: {}", answer.text);
        assert_eq!(answer.json["field"], field, "{}", answer.text);
        assert!(answer.json["detail"].as_str().unwrap().contains(said), "{}", answer.text);
        assert!(!answer.text.contains("long-enough"));
    }
    let answer = server.put("/api/v1/tools/a%20b", &tool(&json!({}))).await;
    assert_eq!((answer.problem(), &answer.json["field"]), ("invalid_field", &json!("name")));
    assert_eq!(server.get("/api/v1/tools").await.json, json!({"data": [], "has_more": false}));
}

#[tokio::test]
async fn a_message_names_tools_that_exist() {
    let server = server().await;
    server.put("/api/v1/tools/lintSRSDocument", &tool(&json!({}))).await;
    let inline = |more: &Value| {
        let mut inline = json!({"name": "ask", "schema": {"type": "object"}});
        inline.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"tools": [inline]})
    };
    for (more, code, said) in [
        (json!({"tools": ["lintSrsDocument"]}), "unknown_tool", "lintSRSDocument"), // P-015
        (json!({"tools": ["lintSRSDocument", "lintSRSDocument"]}), "invalid_field", "twice"),
        (json!({"tools": [7]}), "invalid_field", "a name or an object"),
        (inline(&json!({"colour": 1})), "unknown_field", "colour"),
        (inline(&json!({"schema": {"type": 7}})), "invalid_schema", "/type"),
        (inline(&json!({"name": ""})), "invalid_field", "1 to 64"),
        (json!({"tools": [], "caller": " "}), "invalid_field", "caller"),
    ] {
        let answer = server.post("/api/v1/messages", &ask(&more)).await;
        assert_eq!((answer.status, answer.problem()), (422, code), "{more}: {}", answer.text);
        assert!(answer.json["detail"].as_str().unwrap().contains(said), "{}", answer.text);
    }
    let answer = server.post("/api/v1/messages", &ask(&json!({"tools": ["lintSrsDocument"]}))).await;
    assert_eq!(answer.json["close"], json!(["lintSRSDocument"])); // P-015
    let fine = server.post("/api/v1/messages", &ask(&json!({"tools": ["lintSRSDocument"]}))).await;
    assert_eq!(fine.status, 202, "{}", fine.text);
}
