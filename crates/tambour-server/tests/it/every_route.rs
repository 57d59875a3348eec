//! Every route of the OpenAPI document against callers and requests that it must refuse.

use serde_json::{Value, json};

use crate::mock::{MockServer, reply_script};
use crate::server::TestServer;

/// Method, path and presence of a body of all operations below `/api/`.
async fn operations(server: &TestServer) -> Vec<(String, String, bool)> {
    let api = server.get("/openapi.json").await.json;
    let mut operations = Vec::new();
    for (path, methods) in api["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap().iter().filter(|_| path.starts_with("/api/")) {
            operations.push((method.clone(), path.clone(), operation.get("requestBody").is_some()));
        }
    }
    assert!(operations.len() > 20);
    operations
}

async fn new_key(server: &TestServer, rights: &str) -> (String, String) {
    let response = server.post("/api/v1/keys", &json!({"name": rights, "rights": rights})).await.json;
    let text = |field: &str| response[field].as_str().unwrap().to_owned();
    (text("id"), text("key"))
}

/// A server with an admin key and a plain key, which owns a message, a conversation and a tool.
struct OwnedThings {
    server: TestServer,
    admin: String,
    message: String,
    conversation: String,
    script: String,
    dialogue: String,
    card: String,
    book: String,
}

async fn create_things() -> OwnedThings {
    let mock = MockServer::start(vec![reply_script("x", 1)]).await;
    let mut server =
        TestServer::start(&mock, |config| (config.max_request, config.max_import) = (10_000, 10_000)).await;
    let (_, admin) = new_key(&server, "admin").await;
    server.set_key(Some(&admin));
    let (_, plain) = new_key(&server, "plain").await;
    server.set_key(Some(&plain));
    let response = server.post("/api/v1/messages", &json!({"text": "x"})).await.json;
    let text = |field: &str| response[field].as_str().unwrap().to_owned();
    let (message, conversation) = (text("message_id"), text("conversation_id"));
    server.wait_ended(&message).await;
    let tool = json!({"schema": {"type": "object"}, "executor": {"kind": "client"}});
    assert_eq!(server.put("/api/v1/tools/a-tool", &tool).await.status, 200);
    let script = server.post("/api/v1/scripts", &body_for("/api/v1/scripts")).await.json;
    let script = script["script_id"].as_str().unwrap().to_owned();
    let dialogue = server.post("/api/v1/dialogues", &json!({"script_id": script})).await.json;
    let dialogue = dialogue["dialogue_id"].as_str().unwrap().to_owned();
    assert_eq!(server.put("/api/v1/templates/a-tool", &json!({"text": "{x}"})).await.status, 200);
    let files = server.post("/api/v1/imports", &body_for("/api/v1/imports")).await.json;
    let card = files["data"][0]["card_id"].as_str().unwrap().to_owned();
    let book = files["data"][1]["lorebook_id"].as_str().unwrap().to_owned();
    OwnedThings { server, admin, message, conversation, script, dialogue, card, book }
}

impl OwnedThings {
    fn path_of(&self, path: &str) -> String {
        let id = match path {
            path if path.contains("conversations") => &self.conversation,
            path if path.contains("scripts") => &self.script,
            path if path.contains("dialogues") => &self.dialogue,
            path if path.contains("cards") => &self.card,
            path if path.contains("lorebooks") => &self.book,
            _ => &self.message,
        };
        path.replace("{id}", id).replace("{name}", "a-tool").replace("{turn}", "turn_x")
    }
}

/// A body that the route accepts.
fn body_for(path: &str) -> Value {
    match path {
        "/api/v1/messages/{id}/tool_results" => json!({"results": [{"call_id": "c", "ok": true}]}),
        "/api/v1/messages/{id}/tool_confirmations" => {
            json!({"confirmations": [{"call_id": "c", "allow": true}]})
        }
        "/api/v1/tools/{name}" => json!({"schema": {"type": "object"}, "executor": {"kind": "client"}}),
        "/api/v1/scripts" => json!({"name": "s", "yaml": "sessions: [{session: s, phases: []}]"}),
        "/api/v1/scripts/validate" => json!({"yaml": "x"}),
        "/api/v1/scripts/{id}" => json!({"yaml": "sessions: [{session: s, phases: []}]"}),
        "/api/v1/scripts/{id}/publish" | "/api/v1/templates/{name}/publish" => json!({"version": 1}),
        "/api/v1/templates/{name}" => json!({"text": "{x}"}),
        "/api/v1/imports" => json!({"files": [
            {"name": "a.json", "json": {"name": "A", "first_mes": "x"}},
            {"name": "b.json", "json": {"entries": {}}},
        ]}),
        "/api/v1/dialogues" => json!({"script_id": "x"}),
        "/api/v1/dialogues/{id}/forks" => json!({"turn": "turn_x"}),
        "/api/v1/scripts/{id}/replay" => json!({"test": "turns: []"}),
        "/api/v1/conversations/{id}/state/schema" => json!({"schema": {}}),
        "/api/v1/conversations/{id}/state/operations" => json!({"operations": [["SET", "a", 1]]}),
        "/api/v1/conversations/{id}/state/rollback" => json!({"to": null}),
        _ => json!({}),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_of_another_owner_is_found() {
    let mut things = create_things().await;
    let admin = things.admin.clone();
    things.server.set_key(Some(&admin));
    let mut attempts = 0;
    for (method, path, takes_body) in operations(&things.server).await {
        // Things stored under a name of the caller's choice are its own, and so are chats.
        if path.starts_with("/api/chat")
            || !(path.contains("{id}") || path.contains("{name}"))
            || (method == "put" && path.contains("{name}"))
        {
            continue;
        }
        let sent_body = takes_body.then(|| body_for(&path).to_string());
        let answer = things.server.call(&method, &things.path_of(&path), sent_body.as_deref()).await;
        assert_eq!(answer.status, 404, "{method} {path}: {}", answer.text);
        attempts += 1;
    }
    assert!(attempts > 10, "{attempts}");
    // Listings do not show the things of another owner either.
    for path in [
        "/api/v1/conversations",
        "/api/v1/tools",
        "/api/v1/scripts",
        "/api/v1/dialogues",
        "/api/v1/cards",
        "/api/v1/lorebooks",
    ] {
        assert_eq!(things.server.get(path).await.json, json!({"data": [], "has_more": false}), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_removed_key_and_no_key_are_let_in_nowhere() {
    let mut things = create_things().await;
    let admin = things.admin.clone();
    things.server.set_key(Some(&admin));
    let (id, removed_key) = new_key(&things.server, "admin").await;
    assert_eq!(things.server.call("delete", &format!("/api/v1/keys/{id}"), None).await.status, 204);
    for secret in [Some(removed_key.as_str()), None] {
        things.server.set_key(secret);
        for (method, path, takes_body) in operations(&things.server).await {
            let sent_body = takes_body.then(|| body_for(&path).to_string());
            let answer = things.server.call(&method, &things.path_of(&path), sent_body.as_deref()).await;
            assert_eq!((answer.status, answer.problem_code()), (401, "unauthorized"), "{method} {path}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_is_too_long_is_refused_everywhere() {
    let mut things = create_things().await;
    let admin = things.admin.clone();
    let long = format!("{{\"text\":\"{}\"}}", "x".repeat(20_000));
    let mut attempts = 0;
    for (method, path, takes_body) in operations(&things.server).await {
        if takes_body {
            if path.contains("keys") || path.contains("settings") {
                things.server.set_key(Some(&admin));
            }
            let answer = things.server.call(&method, &things.path_of(&path), Some(&long)).await;
            assert_eq!((answer.status, answer.problem_code()), (413, "too_large"), "{method} {path}");
            attempts += 1;
        }
    }
    assert!(attempts > 8, "{attempts}");
}
