//! Upstreams, aliases and MCP servers as shown to admins, and tests of upstreams and aliases.

use serde_json::json;

use crate::mcp_kit::{MockMcp, read_only_tool, tool, wait_until_listed};
use crate::mock::{MockServer, Step, reply_script};
use crate::server::{TestServer, test_config};

/// Makes further calls with a new key of these rights.
async fn use_new_key(server: &mut TestServer, rights: &str) {
    let response = server.post("/api/v1/keys", &json!({"name": rights, "rights": rights})).await;
    server.set_key(response.json["key"].as_str());
}

#[tokio::test]
async fn admins_see_upstreams_and_aliases_without_secrets() {
    let mock = MockServer::start(vec![reply_script("x", 1)]).await;
    let mut server = TestServer::start(&mock, |config| {
        let mut other = config.upstreams["openai"].clone();
        other.url = "http://name:word@127.0.0.1:9/v1".to_owned();
        other.key_env = Some("CARGO_PKG_NAME".to_owned());
        config.upstreams.insert("other".to_owned(), other);
        let alias =
            json!({"upstream": "other", "model": "m", "dialect": "plain", "system_prompt": "Be kind."});
        config.aliases.insert("sums".into(), serde_json::from_value(alias).unwrap());
    })
    .await;
    use_new_key(&mut server, "admin").await;
    let listing = server.get("/api/v1/upstreams").await;
    assert_eq!(listing.status, 200, "{}", listing.text);
    for secret in ["word", "tambour-server", "Be kind"] {
        assert!(!listing.text.contains(secret), "{secret}: {}", listing.text);
    }
    let other = &listing.json["data"][2];
    assert_eq!((&other["name"], &other["url"]), (&json!("other"), &json!("http://***@127.0.0.1:9/v1")));
    assert_eq!((&other["key"], &other["key_env"]), (&json!("***"), &json!("CARGO_PKG_NAME")));
    assert_eq!((&other["default"], &other["aliases"]), (&json!(false), &json!(["sums"])));
    assert_eq!(
        (&listing.json["data"][1]["default"], &listing.json["data"][1]["key"]),
        (&json!(true), &json!(null))
    );
    let alias = &listing.json["aliases"][0];
    assert_eq!(
        (&alias["name"], &alias["upstream"], &alias["has_prompt"]),
        (&json!("sums"), &json!("other"), &json!(true))
    );
    use_new_key(&mut server, "plain").await;
    for (method, path) in [
        ("get", "/api/v1/upstreams"),
        ("post", "/api/v1/upstreams/openai/test"),
        ("post", "/api/v1/aliases/sums/test"),
        ("get", "/api/v1/mcp"),
    ] {
        let refusal = server.call(method, path, None).await;
        assert_eq!((refusal.status, refusal.problem_code()), (403, "forbidden"), "{path}");
    }
}

#[tokio::test]
async fn an_upstream_is_tested() {
    let error_body = r#"{"error": {"message": "bad key sk-abcdef0123456789abcdef"}}"#;
    let refusal = vec![Step::Head(401, Vec::new()), Step::Send(error_body.into()), Step::End];
    let mock = MockServer::start(vec![reply_script("ok", 1), refusal]).await;
    let server = TestServer::start(&mock, |config| {
        let mut unreachable = config.upstreams["openai"].clone();
        unreachable.url = "http://127.0.0.1:9/v1".to_owned();
        config.upstreams.insert("away".to_owned(), unreachable);
        config.timeouts.attempts = 1;
    })
    .await;
    let test = async |name: &str| server.call("post", &format!("/api/v1/upstreams/{name}/test"), None).await;
    let good = test("openai").await;
    assert_eq!((good.status, &good.json["ok"]), (200, &json!(true)), "{}", good.text);
    assert_eq!((&good.json["model"], good.json.get("error")), (&json!("a-model"), None));
    let bad = test("openai").await;
    assert_eq!((bad.status, &bad.json["ok"]), (200, &json!(false)), "{}", bad.text);
    assert_eq!(bad.json["error"]["code"], "upstream_unauthorized");
    assert!(!bad.text.contains("sk-abcdef"), "{}", bad.text);
    let unreachable = test("away").await;
    assert_eq!(unreachable.json["error"]["code"], "upstream_unreachable", "{}", unreachable.text);
    let unknown = test("opneai").await;
    assert_eq!((unknown.status, unknown.problem_code()), (404, "not_found"));
    assert_eq!(unknown.json["close"], json!(["openai"]));
}

#[tokio::test]
async fn an_alias_is_tested_with_its_upstream_and_model() {
    let refusal = vec![
        Step::Head(404, Vec::new()),
        Step::Send(r#"{"error": {"message": "no model m"}}"#.into()),
        Step::End,
    ];
    let mock = MockServer::start(vec![reply_script("ok", 1), refusal]).await;
    let server = TestServer::start(&mock, |config| {
        let mut unreachable = config.upstreams["openai"].clone();
        unreachable.url = "http://127.0.0.1:9/v1".to_owned();
        config.upstreams.insert("away".to_owned(), unreachable);
        for (name, alias) in [
            ("sums", json!({"model": "m", "system_prompt": "Be kind.", "fallback": ["far"]})),
            ("far", json!({"upstream": "away", "dialect": "thinkingml"})),
        ] {
            config.aliases.insert(name.into(), serde_json::from_value(alias).unwrap());
        }
        config.timeouts.attempts = 1;
    })
    .await;
    let test = async |name: &str| server.call("post", &format!("/api/v1/aliases/{name}/test"), None).await;
    let good = test("sums").await;
    assert_eq!((good.status, &good.json["ok"]), (200, &json!(true)), "{}", good.text);
    let names = ["name", "upstream", "model"].map(|name| good.json[name].as_str().unwrap());
    assert_eq!(names, ["sums", "openai", "m"]);
    // Only the model of the alias applies: no prompt, and no fallback upstreams.
    let request = mock.requests().pop().unwrap().body;
    assert_eq!((&request["model"], &request["max_tokens"]), (&json!("m"), &json!(16)));
    assert_eq!(request["messages"].as_array().unwrap().len(), 1, "{request}");
    let bad = test("sums").await;
    assert_eq!((bad.status, &bad.json["ok"]), (200, &json!(false)), "{}", bad.text);
    assert!(bad.json["error"]["code"].is_string(), "{}", bad.text);
    let unreachable_alias = test("far").await;
    assert_eq!(
        (&unreachable_alias.json["upstream"], &unreachable_alias.json["error"]["code"]),
        (&json!("away"), &json!("upstream_unreachable"))
    );
    let unknown = test("sumz").await;
    assert_eq!((unknown.status, unknown.problem_code()), (404, "not_found"));
    assert_eq!(unknown.json["close"], json!(["sums"]));
}

#[tokio::test]
async fn mcp_servers_are_told_with_their_state() {
    let mcp = MockMcp::start(vec![tool("echo"), read_only_tool("look")]).await;
    let mock = MockServer::start(vec![reply_script("x", 1)]).await;
    let server = TestServer::start(&mock, |config| {
        config.mcp.insert("files".to_owned(), mcp.config(&json!({"tools": ["*"], "prefix": "fs_"})));
        let unreachable = json!({"url": "http://127.0.0.1:9/mcp?key=hidden", "tools": ["x"]});
        config.mcp.insert("away".to_owned(), serde_json::from_value(unreachable).unwrap());
    })
    .await;
    wait_until_listed(&server, &["fs_echo", "fs_look"]).await;
    let listing = crate::server::with_timeout(async {
        loop {
            let listing = server.get("/api/v1/mcp").await;
            if listing.json["data"][0]["state"] == "failed" {
                break listing;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    })
    .await;
    assert!(!listing.text.contains("hidden"), "{}", listing.text);
    let (unreachable, files) = (&listing.json["data"][0], &listing.json["data"][1]);
    assert!(unreachable["error"].is_string() && unreachable["tools"] == json!([]), "{unreachable}");
    assert_eq!(
        (&files["name"], &files["state"], &files["kind"]),
        (&json!("files"), &json!("connected"), &json!("http"))
    );
    assert_eq!(files["tools"], json!(["fs_echo", "fs_look"]));
}

#[tokio::test]
async fn recordings_name_a_dialect_that_there_is() {
    let folder = crate::server::Folder::new();
    let file =
        folder.write_file("r.jsonl", "{\"id\": \"a\", \"protocol\": \"plane\", \"chunks\": [\"x\"]}\n");
    let mut config = test_config(&folder);
    config.add_upstream(&format!("replay={}", file.display()), None).unwrap();
    let refusal =
        tambour_server::Server::start(config.clone()).await.err().expect("it is refused").to_string();
    assert!(refusal.contains("line 1: unknown `protocol` `plane`; known: plain"), "{refusal}");
    folder.write_file("r.jsonl", "{\"id\": \"a\", \"protocol\": \"ai_ask\", \"chunks\": [\"x\"]}\n");
    let server = TestServer::serve(folder, config).await;
    let response =
        server.post("/api/v1/messages", &json!({"text": "x", "dialect": "json_value", "wait": true})).await;
    let message = response.json["error"]["message"].as_str().unwrap_or_else(|| panic!("{}", response.text));
    assert!(message.contains("whose `protocol` is `json_value`; known: ai_ask"), "{message}");
}
