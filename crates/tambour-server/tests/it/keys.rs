//! Keys: access, rights, and ownership.

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::client::stream_message_id;
use crate::mock::{Gate, MockServer, Step, delta_step, finish_steps, reply_script};
use crate::server::{Answer, TestServer, with_timeout};
use crate::server_process::ServerProcess;

/// Creates a key; returns its id and its secret.
pub(crate) async fn new_key(server: &TestServer, name: &str, rights: &str) -> (String, String) {
    let response = server.post("/api/v1/keys", &json!({"name": name, "rights": rights})).await;
    assert_eq!(response.status, 201, "{}", response.text);
    (response.json["id"].as_str().unwrap().to_owned(), response.json["key"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn the_first_key_locks_the_door() {
    let mock = MockServer::start(vec![reply_script("x", 1)]).await;
    let mut server = TestServer::start_default(&mock).await;
    assert_eq!(server.get("/api/v1/settings").await.status, 200);
    let plain = server.post("/api/v1/keys", &json!({"name": "a"})).await;
    assert_eq!((plain.status, plain.problem_code()), (422, "first_key_admin"));
    let unknown_rights = server.post("/api/v1/keys", &json!({"name": "a", "rights": "god"})).await;
    assert_eq!((unknown_rights.status, unknown_rights.problem_code()), (422, "invalid_field"));
    let (admin, secret) = new_key(&server, "admin", "admin").await;
    let refusal = server.get("/api/v1/settings").await;
    assert_eq!((refusal.status, refusal.problem_code()), (401, "unauthorized"));
    assert_eq!(refusal.headers["www-authenticate"], "Bearer");
    for wrong in ["tb_0", "", &secret[1..], &secret.to_uppercase()] {
        server.set_key(Some(wrong));
        assert_eq!(server.get("/api/v1/settings").await.status, 401, "{wrong}");
    }
    server.set_key(Some(&secret));
    assert_eq!(server.get("/api/v1/settings").await.status, 200);
    // The secret is shown once and never stored.
    let all = server.get("/api/v1/keys").await;
    assert_eq!(all.json["data"][0]["rights"], "admin");
    assert!(!all.text.contains(&secret));
    let own_deletion = server.call("delete", &format!("/api/v1/keys/{admin}"), None).await;
    assert_eq!((own_deletion.status, own_deletion.problem_code()), (409, "own_key"));
    let (other, _) = new_key(&server, "other", "plain").await;
    assert_eq!(server.call("delete", &format!("/api/v1/keys/{other}"), None).await.status, 204);
    assert_eq!(server.call("delete", &format!("/api/v1/keys/{other}"), None).await.status, 404);
    let folder = server.stop().await;
    for file in folder.files() {
        let bytes = std::fs::read(file).unwrap();
        assert!(!bytes.windows(secret.len()).any(|part| part == secret.as_bytes()), "no secret on the disk");
    }
    // A key survives a restart, and so does the lock.
    let mut config = crate::server::test_config(&folder);
    config.add_upstream(&mock.url(), None).unwrap();
    let mut server = TestServer::serve(folder, config).await;
    assert_eq!(server.get("/api/v1/settings").await.status, 401);
    server.set_key(Some(&secret));
    assert_eq!(server.get("/api/v1/settings").await.status, 200);
}

#[tokio::test]
async fn a_plain_key_may_not_change_the_server() {
    let mock = MockServer::start(vec![reply_script("x", 1)]).await;
    let mut server = TestServer::start_default(&mock).await;
    let (_, admin) = new_key(&server, "admin", "admin").await;
    server.set_key(Some(&admin));
    let (_, plain) = new_key(&server, "plain", "plain").await;
    server.set_key(Some(&plain));
    assert_eq!(server.get("/api/v1/settings").await.status, 200);
    let change = json!({"text_language": "en"});
    let forbidden_requests = [
        server.put("/api/v1/settings", &change).await,
        server.get("/api/v1/keys").await,
        server.post("/api/v1/keys", &json!({"name": "x", "rights": "admin"})).await,
        server.call("delete", "/api/v1/keys/key_0", None).await,
    ];
    for answer in forbidden_requests {
        assert_eq!((answer.status, answer.problem_code()), (403, "forbidden"));
    }
    server.set_key(Some(&admin));
    assert_eq!(server.put("/api/v1/settings", &change).await.status, 200);
}

#[tokio::test]
async fn what_belongs_to_others_does_not_exist() {
    let gate = Gate::new();
    let mut script = vec![delta_step("mine"), Step::Wait(gate.clone())];
    script.extend(finish_steps("stop"));
    let mock = MockServer::start(vec![script]).await;
    let mut server = TestServer::start(&mock, |config| {
        config.api_key = Some("1234567890123456".to_owned());
        config.grace_ms = 0;
    })
    .await;
    server.set_key(Some("1234567890123456"));
    let (_, first_key) = new_key(&server, "one", "plain").await;
    let (_, second_key) = new_key(&server, "two", "plain").await;
    server.set_key(Some(&first_key));
    let acceptance = server.post("/api/v1/messages", &json!({"text": "x"})).await;
    let id = acceptance.json["message_id"].as_str().unwrap().to_owned();
    let conversation = acceptance.json["conversation_id"].as_str().unwrap().to_owned();
    // During the run and afterwards; an admin has no access to the things of other owners here.
    for round in 0..2 {
        for other in [&second_key, "1234567890123456"] {
            server.set_key(Some(other));
            for path in [
                format!("/api/v1/messages/{id}"),
                format!("/api/v1/messages/{id}/events"),
                format!("/api/v1/conversations/{conversation}"),
            ] {
                let answer = server.get(&path).await;
                assert_eq!((answer.status, answer.problem_code()), (404, "not_found"), "{path}");
            }
            let cancel = server.call("post", &format!("/api/v1/messages/{id}/cancel"), None).await;
            assert_eq!(cancel.status, 404);
            let join = json!({"text": "x", "conversation_id": conversation});
            assert_eq!(server.post("/api/v1/messages", &join).await.status, 404);
            let listing = server.get("/api/v1/conversations").await;
            assert!(!listing.text.contains(&conversation));
        }
        server.set_key(Some(&first_key));
        if round == 0 {
            // Requests of other owners did not disturb it, not even without grace.
            gate.open();
            assert_eq!(server.wait_ended(&id).await["status"], "completed");
        }
    }
    assert_eq!(stream_message_id(&server.follow(&id, &[]).await.read_checked().await), id);
}

#[tokio::test]
async fn pages_of_other_sites_are_not_the_local_user() {
    let mock = MockServer::start(vec![reply_script("x", 1)]).await;
    let mut server =
        TestServer::start(&mock, |config| config.cors_origins = vec!["https://app.example".into()]).await;
    let path = "/api/v1/settings";
    let own_origin = format!("http://{}", server.address);
    for (name, value, status) in [
        ("origin", "https://evil.example", 403),
        ("origin", "null", 403),
        ("host", "rebound.example", 403),
        ("host", "rebound.example:8787", 403),
        ("origin", &own_origin, 200),
        // Another port is another origin, on the same machine too.
        ("origin", "http://localhost:5173", 403),
        ("origin", &format!("http://localhost:{}", server.address.port()), 403),
        ("origin", &own_origin.replace("http://", "https://"), 403),
        ("host", "localhost.evil.example", 403),
        ("host", "127.0.0.1.evil.example", 403),
        ("host", "localhost@evil.example", 403),
        ("origin", "https://app.example", 200),
        ("host", "localhost", 200),
        ("host", "LOCALHOST:8787", 200),
        ("host", "[::1]:8787", 200),
    ] {
        let answer = server.call_with("get", path, None, &[(name, value)]).await;
        assert_eq!(answer.status, status, "{name}: {value}");
    }
    // With a key, only the key decides.
    let (_, secret) = new_key(&server, "admin", "admin").await;
    server.set_key(Some(&secret));
    assert_eq!(server.call_with("get", path, None, &[("origin", "https://evil.example")]).await.status, 200);
}

/// Status of a raw request with this target and these headers.
async fn raw_status(server: &TestServer, target: &str, headers: &str) -> String {
    let mut socket = tokio::net::TcpStream::connect(server.address).await.unwrap();
    let request = format!("GET {target} HTTP/1.1\r\n{headers}connection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    with_timeout(socket.read_to_end(&mut answer)).await.unwrap();
    String::from_utf8_lossy(&answer).split(' ').nth(1).unwrap_or_default().to_owned()
}

#[tokio::test]
async fn only_one_exact_loopback_host_is_the_local_user() {
    let mock = MockServer::start(vec![reply_script("x", 1)]).await;
    let server = TestServer::start_default(&mock).await;
    let path = "/api/v1/settings";
    let port = server.address.port();
    for host in [
        "localhost".to_owned(),
        format!("localhost:{port}"),
        format!("127.0.0.1:{port}"),
        "127.8.9.10".to_owned(),
        "[::1]".to_owned(),
        format!("[::1]:{port}"),
    ] {
        assert_eq!(raw_status(&server, path, &format!("host: {host}\r\n")).await, "200", "{host}");
    }
    for host in [
        "[::1].evil.example",
        "[::1]evil.example:80",
        "[::1]:80.evil.example",
        "[::1]:",
        "[::1",
        "[localhost]",
        "[::2]",
        "::1",
        "localhost.",
        "localhost.evil.example",
        "localhost:evil.example",
        "localhost:80:80",
        "localhost:99999",
        "localhost:+80",
        "127.0.0.1.evil.example",
        "127.0.0.1:80@evil.example",
        "0.0.0.0",
        "0x7f.0.0.1",
        "2130706433",
        "evil.example",
    ] {
        let status = raw_status(&server, path, &format!("host: {host}\r\n")).await;
        assert!(matches!(status.as_str(), "403" | "400"), "{host}: {status}");
    }
    for (target, headers) in [
        (path, ""),
        (path, "host:\r\n"),
        (path, "host: localhost\r\nhost: evil.example\r\n"),
        (path, "host: evil.example\r\nhost: localhost\r\n"),
        (path, "host: localhost\r\nhost: localhost\r\n"),
        ("http://evil.example/api/v1/settings", "host: localhost\r\n"),
        ("http://localhost/api/v1/settings", "host: localhost\r\n"),
    ] {
        let status = raw_status(&server, target, headers).await;
        assert!(matches!(status.as_str(), "403" | "400"), "{target} {headers:?}: {status}");
    }
}

#[tokio::test]
async fn ids_of_templates_are_no_paths() {
    let mock = MockServer::start(vec![reply_script("x", 1)]).await;
    let server = TestServer::start_default(&mock).await;
    let body = json!({"text": "x"}).to_string();
    for id in ["..", ".", "...", "%2e%2e", "%2E", "a%2Fb", "..%2Fa", "%5C..", "a%5Cb"] {
        let mut socket = tokio::net::TcpStream::connect(server.address).await.unwrap();
        let request = format!(
            "PUT /api/v1/templates/{id} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        );
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        with_timeout(socket.read_to_string(&mut answer)).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 422"), "{id}: {answer}");
    }
    for id in ["a", "..a", "a.b-c_d", "ai-say-1"] {
        assert_eq!(
            server.put(&format!("/api/v1/templates/{id}"), &json!({"text": "x"})).await.status,
            200,
            "{id}"
        );
    }
}

#[tokio::test]
async fn nobody_behind_a_proxy_is_the_local_user() {
    let mock = MockServer::start(vec![reply_script("x", 1)]).await;
    let mut server = TestServer::start_default(&mock).await;
    let path = "/api/v1/settings";
    let headers = [
        ("forwarded", "for=203.0.113.7"),
        ("x-forwarded-for", "203.0.113.7"),
        ("x-forwarded-host", "app.example"),
        ("x-forwarded-proto", "https"),
        ("x-real-ip", "127.0.0.1"),
        ("via", "1.1 proxy"),
    ];
    for header in headers {
        let refusal = server.call_with("get", path, None, &[("host", "127.0.0.1"), header]).await;
        assert_eq!((refusal.status, refusal.problem_code()), (403, "behind_proxy"), "{header:?}");
        let detail = refusal.json["detail"].as_str().unwrap();
        assert!(detail.contains(header.0) && detail.contains("TAMBOUR_API_KEY"), "{detail}");
        let key = json!({"name": "mine", "rights": "admin"}).to_string();
        let response = server.call_with("post", "/api/v1/keys", Some(&key), &[header]).await;
        assert_eq!(response.status, 403, "{header:?}");
        // Public routes stay public.
        assert_eq!(server.call_with("get", "/healthz", None, &[header]).await.status, 200);
    }
    // Some clients send no headers and speak an old version.
    let mut socket = tokio::net::TcpStream::connect(server.address).await.unwrap();
    let old = format!("GET {path} HTTP/1.0\r\nhost: {}\r\n\r\n", server.address);
    socket.write_all(old.as_bytes()).await.unwrap();
    let mut answer = String::new();
    with_timeout(socket.read_to_string(&mut answer)).await.unwrap();
    assert!(answer.contains("behind_proxy"), "{answer}");
    // With a key, only the key decides.
    let (_, secret) = new_key(&server, "admin", "admin").await;
    server.set_key(Some(&secret));
    for header in headers {
        assert_eq!(server.call_with("get", path, None, &[header]).await.status, 200, "{header:?}");
    }
}

#[tokio::test]
async fn a_removed_key_ends_its_turns_of_dialogues() {
    let gate = Gate::new();
    let script = vec![delta_step("{\"response\": "), Step::Wait(gate.clone())];
    let mock = MockServer::start(vec![script]).await;
    let mut process = ServerProcess::start(&mock, false);
    let (_, admin) = new_key(&process.server, "admin", "admin").await;
    process.server.set_key(Some(&admin));
    for stream in [true, false] {
        let (id, secret) = new_key(&process.server, "other", "plain").await;
        process.server.set_key(Some(&secret));
        let dialogue =
            crate::dialogues::start_dialogue(&process.server, &["{type: ai_say, content: x}"]).await;
        let path = format!("/api/v1/dialogues/{dialogue}/input");
        let headers = vec![("authorization".to_owned(), format!("Bearer {secret}"))];
        let calls = mock.calls().started;
        let open_input = |body: &serde_json::Value| {
            let (address, path, headers, body) =
                (process.server.address, path.clone(), headers.clone(), body.to_string());
            tokio::spawn(async move {
                let mut stream =
                    crate::client::EventStream::open(address, "POST", &path, &headers, Some(&body)).await;
                (stream.status, stream.read_rest_text().await)
            })
        };
        let first = open_input(&json!({ "stream": stream }));
        mock.wait_until(|now| now.started == calls + 1).await;
        // A second one queues behind it.
        process.hold_at("turn.behind");
        let second = open_input(&json!({ "stream": stream }));
        process.wait_until_held("turn.behind").await;
        process.release("turn.behind").await;
        process.server.set_key(Some(&admin));
        assert_eq!(process.server.call("delete", &format!("/api/v1/keys/{id}"), None).await.status, 204);
        let (_, text) = with_timeout(first).await.unwrap();
        assert!(text.contains("the key was removed"), "{text}");
        let (_, text) = with_timeout(second).await.unwrap();
        assert!(text.contains("unauthorized"), "{text}");
        // The model is not called again, and nothing runs.
        mock.wait_until(|now| now.ended == calls + 1).await;
        process.server.wait_for_metric("tambour_running", 0).await;
        assert_eq!(mock.calls().started, calls + 1);
    }
}

#[tokio::test]
async fn a_key_that_is_removed_while_its_request_waits_is_none() {
    let mock = MockServer::start(vec![reply_script("x", 1)]).await;
    let mut server = TestServer::start_default(&mock).await;
    let (_, admin) = new_key(&server, "admin", "admin").await;
    server.set_key(Some(&admin));
    let bodies = [
        ("POST", "/api/v1/keys", r#"{"name": "again", "rights": "admin"}"#),
        ("POST", "/api/v1/messages", r#"{"text": "x"}"#),
        ("PUT", "/api/v1/settings", r#"{"text_language": "en"}"#),
        ("PUT", "/api/v1/tools/a", r#"{"schema": {}, "executor": {"kind": "client"}}"#),
    ];
    for (method, path, body) in bodies {
        let (id, secret) = new_key(&server, "other", "admin").await;
        let (first, last) = body.split_at(5);
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\nauthorization: Bearer {secret}\r\n\
             content-length: {}\r\nexpect: 100-continue\r\n\r\n",
            server.address,
            body.len()
        );
        let mut socket = tokio::net::TcpStream::connect(server.address).await.unwrap();
        socket.write_all(head.as_bytes()).await.unwrap();
        // The request is accepted: the server asks for its body.
        let mut interim_answer = [0; 25];
        with_timeout(socket.read_exact(&mut interim_answer)).await.unwrap();
        assert_eq!(&interim_answer, b"HTTP/1.1 100 Continue\r\n\r\n");
        socket.write_all(first.as_bytes()).await.unwrap();
        assert_eq!(server.call("delete", &format!("/api/v1/keys/{id}"), None).await.status, 204);
        socket.write_all(last.as_bytes()).await.unwrap();
        let mut answer = String::new();
        with_timeout(socket.read_to_string(&mut answer)).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 401 ") && answer.contains("unauthorized"), "{path}: {answer}");
    }
    assert_eq!(server.get("/api/v1/keys").await.json["data"].as_array().unwrap().len(), 1);
    assert_eq!(server.get("/api/v1/settings").await.json["text_language"], "zh");
    assert_eq!(mock.calls().started, 0);
}

#[tokio::test]
async fn browsers_of_other_origins_only_if_configured() {
    let mock = MockServer::start(vec![reply_script("x", 1)]).await;
    let preflight = [("origin", "https://app.example"), ("access-control-request-method", "POST")];
    let server = TestServer::start_default(&mock).await;
    let answer = server.call_with("options", "/api/v1/messages", None, &preflight).await;
    assert!(!answer.headers.contains_key("access-control-allow-origin"));
    let server =
        TestServer::start(&mock, |config| config.cors_origins = vec!["https://app.example".into()]).await;
    let answer = server.call_with("options", "/api/v1/messages", None, &preflight).await;
    assert_eq!(
        (answer.status, &answer.headers["access-control-allow-origin"]),
        (204, &"https://app.example".parse().unwrap())
    );
    let list = |answer: &Answer, name: &str| answer.headers[name].to_str().unwrap().to_owned();
    for header in ["last-event-id", "idempotency-key", "x-api-key", "authorization", "content-type"] {
        assert!(list(&answer, "access-control-allow-headers").contains(header), "{header}");
    }
    // Every method of the table, and those that other clients add.
    let api = server.get("/openapi.json").await.json;
    let methods =
        api["paths"].as_object().unwrap().values().flat_map(|path| path.as_object().unwrap().keys());
    for method in methods {
        let allowed = list(&answer, "access-control-allow-methods");
        assert!(allowed.split(", ").any(|allowed| allowed.eq_ignore_ascii_case(method)), "{method}");
    }
    let mut preflight_with_headers = preflight.to_vec();
    preflight_with_headers.push(("access-control-request-headers", "x-stainless-lang,authorization"));
    let answer = server.call_with("options", "/api/v1/messages", None, &preflight_with_headers).await;
    assert_eq!(list(&answer, "access-control-allow-headers"), "x-stainless-lang,authorization");
    let other = server.call_with("get", "/healthz", None, &[("origin", "https://other.example")]).await;
    assert!(!other.headers.contains_key("access-control-allow-origin"));
    assert_eq!(other.headers["vary"], "origin", "a cache keeps it apart");
    let foreign_preflight = [("origin", "https://other.example"), preflight[1]];
    let foreign_preflight = server.call_with("options", "/api/v1/messages", None, &foreign_preflight).await;
    assert_eq!((foreign_preflight.status, foreign_preflight.problem_code()), (405, "method_not_allowed"));
    assert!(!foreign_preflight.headers.contains_key("access-control-allow-methods"));
    let simple_answer = server.call_with("get", "/healthz", None, &preflight[..1]).await;
    assert_eq!(simple_answer.headers["access-control-allow-origin"], "https://app.example");
}

#[tokio::test]
async fn requests_have_ids() {
    let mock = MockServer::start(vec![reply_script("x", 1)]).await;
    let server = TestServer::start_default(&mock).await;
    let first = server.get("/healthz").await.headers["x-request-id"].clone();
    let second = server.get("/nothing").await.headers["x-request-id"].clone();
    assert_ne!(first, second);
    let named = server.call_with("get", "/healthz", None, &[("x-request-id", "trace-1")]).await;
    assert_eq!(named.headers["x-request-id"], "trace-1");
    let replaced = server.call_with("get", "/healthz", None, &[("x-request-id", "a b\"c")]).await;
    assert!(replaced.headers["x-request-id"].to_str().unwrap().starts_with("req_"));
}
