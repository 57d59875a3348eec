//! Keys: access, rights, and ownership.

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::client::message;
use crate::mock::{Gate, Mock, Step, delta, finish, reply};
use crate::server::{Answer, Tambour, within};
use crate::server_process::ServerProcess;

async fn key(server: &Tambour, name: &str, rights: &str) -> (String, String) {
    let made = server.post("/api/v1/keys", &json!({"name": name, "rights": rights})).await;
    assert_eq!(made.status, 201, "{}", made.text);
    (made.json["id"].as_str().unwrap().to_owned(), made.json["key"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn the_first_key_locks_the_door() {
    let mock = Mock::start(vec![reply("x", 1)]).await;
    let mut server = Tambour::with(&mock).await;
    assert_eq!(server.get("/api/v1/settings").await.status, 200);
    let plain = server.post("/api/v1/keys", &json!({"name": "a"})).await;
    assert_eq!((plain.status, plain.problem()), (422, "first_key_admin"));
    let odd = server.post("/api/v1/keys", &json!({"name": "a", "rights": "god"})).await;
    assert_eq!((odd.status, odd.problem()), (422, "invalid_field"));
    let (admin, secret) = key(&server, "admin", "admin").await;
    let none = server.get("/api/v1/settings").await;
    assert_eq!((none.status, none.problem()), (401, "unauthorized"));
    assert_eq!(none.headers["www-authenticate"], "Bearer");
    for wrong in ["tb_0", "", &secret[1..], &secret.to_uppercase()] {
        server.key(Some(wrong));
        assert_eq!(server.get("/api/v1/settings").await.status, 401, "{wrong}");
    }
    server.key(Some(&secret));
    assert_eq!(server.get("/api/v1/settings").await.status, 200);
    // The secret is shown once and never stored.
    let all = server.get("/api/v1/keys").await;
    assert_eq!(all.json["data"][0]["rights"], "admin");
    assert!(!all.text.contains(&secret));
    let own = server.call("delete", &format!("/api/v1/keys/{admin}"), None).await;
    assert_eq!((own.status, own.problem()), (409, "own_key"));
    let (other, _) = key(&server, "other", "plain").await;
    assert_eq!(server.call("delete", &format!("/api/v1/keys/{other}"), None).await.status, 204);
    assert_eq!(server.call("delete", &format!("/api/v1/keys/{other}"), None).await.status, 404);
    let folder = server.stopped().await;
    for file in folder.files() {
        let bytes = std::fs::read(file).unwrap();
        assert!(!bytes.windows(secret.len()).any(|part| part == secret.as_bytes()), "no secret on the disk");
    }
    // A key survives a restart, and so does the lock.
    let mut config = crate::server::config(&folder);
    config.add_upstream(&mock.url(), None).unwrap();
    let mut server = Tambour::serve(folder, config).await;
    assert_eq!(server.get("/api/v1/settings").await.status, 401);
    server.key(Some(&secret));
    assert_eq!(server.get("/api/v1/settings").await.status, 200);
}

#[tokio::test]
async fn a_plain_key_may_not_change_the_server() {
    let mock = Mock::start(vec![reply("x", 1)]).await;
    let mut server = Tambour::with(&mock).await;
    let (_, admin) = key(&server, "admin", "admin").await;
    server.key(Some(&admin));
    let (_, plain) = key(&server, "plain", "plain").await;
    server.key(Some(&plain));
    assert_eq!(server.get("/api/v1/settings").await.status, 200);
    let change = json!({"text_language": "en"});
    let refused = [
        server.put("/api/v1/settings", &change).await,
        server.get("/api/v1/keys").await,
        server.post("/api/v1/keys", &json!({"name": "x", "rights": "admin"})).await,
        server.call("delete", "/api/v1/keys/key_0", None).await,
    ];
    for answer in refused {
        assert_eq!((answer.status, answer.problem()), (403, "forbidden"));
    }
    server.key(Some(&admin));
    assert_eq!(server.put("/api/v1/settings", &change).await.status, 200);
}

#[tokio::test]
async fn what_belongs_to_others_does_not_exist() {
    let gate = Gate::new();
    let mut script = vec![delta("mine"), Step::Wait(gate.clone())];
    script.extend(finish("stop"));
    let mock = Mock::start(vec![script]).await;
    let mut server = Tambour::start(&mock, |config| {
        config.api_key = Some("1234567890123456".to_owned());
        config.grace_ms = 0;
    })
    .await;
    server.key(Some("1234567890123456"));
    let (_, one) = key(&server, "one", "plain").await;
    let (_, two) = key(&server, "two", "plain").await;
    server.key(Some(&one));
    let accepted = server.post("/api/v1/messages", &json!({"text": "x"})).await;
    let id = accepted.json["message_id"].as_str().unwrap().to_owned();
    let conversation = accepted.json["conversation_id"].as_str().unwrap().to_owned();
    // During the run and afterwards; an admin has no access to the things of other owners here.
    for round in 0..2 {
        for other in [&two, "1234567890123456"] {
            server.key(Some(other));
            for path in [
                format!("/api/v1/messages/{id}"),
                format!("/api/v1/messages/{id}/events"),
                format!("/api/v1/conversations/{conversation}"),
            ] {
                let answer = server.get(&path).await;
                assert_eq!((answer.status, answer.problem()), (404, "not_found"), "{path}");
            }
            let cancel = server.call("post", &format!("/api/v1/messages/{id}/cancel"), None).await;
            assert_eq!(cancel.status, 404);
            let join = json!({"text": "x", "conversation_id": conversation});
            assert_eq!(server.post("/api/v1/messages", &join).await.status, 404);
            let listed = server.get("/api/v1/conversations").await;
            assert!(!listed.text.contains(&conversation));
        }
        server.key(Some(&one));
        if round == 0 {
            // Requests of other owners did not disturb it, not even without grace.
            gate.open();
            assert_eq!(server.ended(&id).await["status"], "completed");
        }
    }
    assert_eq!(message(&server.follow(&id, &[]).await.whole().await), id);
}

#[tokio::test]
async fn pages_of_other_sites_are_not_the_local_user() {
    let mock = Mock::start(vec![reply("x", 1)]).await;
    let mut server =
        Tambour::start(&mock, |config| config.cors_origins = vec!["https://app.example".into()]).await;
    let path = "/api/v1/settings";
    let own = format!("http://{}", server.address);
    for (name, value, status) in [
        ("origin", "https://evil.example", 403),
        ("origin", "null", 403),
        ("host", "rebound.example", 403),
        ("host", "rebound.example:8787", 403),
        ("origin", &own, 200),
        // Another port is another origin, on the same machine too.
        ("origin", "http://localhost:5173", 403),
        ("origin", &format!("http://localhost:{}", server.address.port()), 403),
        ("origin", &own.replace("http://", "https://"), 403),
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
    let (_, secret) = key(&server, "admin", "admin").await;
    server.key(Some(&secret));
    assert_eq!(server.call_with("get", path, None, &[("origin", "https://evil.example")]).await.status, 200);
}

/// Status of a raw request with this target and these headers.
async fn raw(server: &Tambour, target: &str, headers: &str) -> String {
    let mut socket = tokio::net::TcpStream::connect(server.address).await.unwrap();
    let request = format!("GET {target} HTTP/1.1\r\n{headers}connection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    within(socket.read_to_end(&mut answer)).await.unwrap();
    String::from_utf8_lossy(&answer).split(' ').nth(1).unwrap_or_default().to_owned()
}

#[tokio::test]
async fn only_one_exact_loopback_host_is_the_local_user() {
    let mock = Mock::start(vec![reply("x", 1)]).await;
    let server = Tambour::with(&mock).await;
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
        assert_eq!(raw(&server, path, &format!("host: {host}\r\n")).await, "200", "{host}");
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
        let status = raw(&server, path, &format!("host: {host}\r\n")).await;
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
        let status = raw(&server, target, headers).await;
        assert!(matches!(status.as_str(), "403" | "400"), "{target} {headers:?}: {status}");
    }
}

#[tokio::test]
async fn ids_of_templates_are_no_paths() {
    let mock = Mock::start(vec![reply("x", 1)]).await;
    let server = Tambour::with(&mock).await;
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
        within(socket.read_to_string(&mut answer)).await.unwrap();
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
    let mock = Mock::start(vec![reply("x", 1)]).await;
    let mut server = Tambour::with(&mock).await;
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
        let refused = server.call_with("get", path, None, &[("host", "127.0.0.1"), header]).await;
        assert_eq!((refused.status, refused.problem()), (403, "behind_proxy"), "{header:?}");
        let detail = refused.json["detail"].as_str().unwrap();
        assert!(detail.contains(header.0) && detail.contains("TAMBOUR_API_KEY"), "{detail}");
        let key = json!({"name": "mine", "rights": "admin"}).to_string();
        let made = server.call_with("post", "/api/v1/keys", Some(&key), &[header]).await;
        assert_eq!(made.status, 403, "{header:?}");
        // Public routes stay public.
        assert_eq!(server.call_with("get", "/healthz", None, &[header]).await.status, 200);
    }
    // Some clients send no headers and speak an old version.
    let mut socket = tokio::net::TcpStream::connect(server.address).await.unwrap();
    let old = format!("GET {path} HTTP/1.0\r\nhost: {}\r\n\r\n", server.address);
    socket.write_all(old.as_bytes()).await.unwrap();
    let mut answer = String::new();
    within(socket.read_to_string(&mut answer)).await.unwrap();
    assert!(answer.contains("behind_proxy"), "{answer}");
    // With a key, only the key decides.
    let (_, secret) = key(&server, "admin", "admin").await;
    server.key(Some(&secret));
    for header in headers {
        assert_eq!(server.call_with("get", path, None, &[header]).await.status, 200, "{header:?}");
    }
}

#[tokio::test]
async fn a_removed_key_ends_its_turns_of_dialogues() {
    let gate = Gate::new();
    let script = vec![delta("{\"response\": "), Step::Wait(gate.clone())];
    let mock = Mock::start(vec![script]).await;
    let mut apart = ServerProcess::start(&mock, false);
    let (_, admin) = key(&apart.server, "admin", "admin").await;
    apart.server.key(Some(&admin));
    for stream in [true, false] {
        let (id, secret) = key(&apart.server, "other", "plain").await;
        apart.server.key(Some(&secret));
        let dialogue = crate::dialogues::started(&apart.server, &["{type: ai_say, content: x}"]).await;
        let path = format!("/api/v1/dialogues/{dialogue}/input");
        let headers = vec![("authorization".to_owned(), format!("Bearer {secret}"))];
        let calls = mock.calls().begun;
        let open = |body: &serde_json::Value| {
            let (address, path, headers, body) =
                (apart.server.address, path.clone(), headers.clone(), body.to_string());
            tokio::spawn(async move {
                let mut stream =
                    crate::client::Stream::open(address, "POST", &path, &headers, Some(&body)).await;
                (stream.status, stream.rest_text().await)
            })
        };
        let first = open(&json!({ "stream": stream }));
        mock.until(|now| now.begun == calls + 1).await;
        // A second one queues behind it.
        apart.hold("turn.behind");
        let second = open(&json!({ "stream": stream }));
        apart.until_held("turn.behind").await;
        apart.let_go("turn.behind").await;
        apart.server.key(Some(&admin));
        assert_eq!(apart.server.call("delete", &format!("/api/v1/keys/{id}"), None).await.status, 204);
        let (_, text) = within(first).await.unwrap();
        assert!(text.contains("the key was removed"), "{text}");
        let (_, text) = within(second).await.unwrap();
        assert!(text.contains("unauthorized"), "{text}");
        // The model is not called again, and nothing runs.
        mock.until(|now| now.over == calls + 1).await;
        apart.server.until_metric("tambour_running", 0).await;
        assert_eq!(mock.calls().begun, calls + 1);
    }
}

#[tokio::test]
async fn a_key_that_is_removed_while_its_request_waits_is_none() {
    let mock = Mock::start(vec![reply("x", 1)]).await;
    let mut server = Tambour::with(&mock).await;
    let (_, admin) = key(&server, "admin", "admin").await;
    server.key(Some(&admin));
    let bodies = [
        ("POST", "/api/v1/keys", r#"{"name": "again", "rights": "admin"}"#),
        ("POST", "/api/v1/messages", r#"{"text": "x"}"#),
        ("PUT", "/api/v1/settings", r#"{"text_language": "en"}"#),
        ("PUT", "/api/v1/tools/a", r#"{"schema": {}, "executor": {"kind": "client"}}"#),
    ];
    for (method, path, body) in bodies {
        let (id, secret) = key(&server, "other", "admin").await;
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
        let mut go_on = [0; 25];
        within(socket.read_exact(&mut go_on)).await.unwrap();
        assert_eq!(&go_on, b"HTTP/1.1 100 Continue\r\n\r\n");
        socket.write_all(first.as_bytes()).await.unwrap();
        assert_eq!(server.call("delete", &format!("/api/v1/keys/{id}"), None).await.status, 204);
        socket.write_all(last.as_bytes()).await.unwrap();
        let mut answer = String::new();
        within(socket.read_to_string(&mut answer)).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 401 ") && answer.contains("unauthorized"), "{path}: {answer}");
    }
    assert_eq!(server.get("/api/v1/keys").await.json["data"].as_array().unwrap().len(), 1);
    assert_eq!(server.get("/api/v1/settings").await.json["text_language"], "zh");
    assert_eq!(mock.calls().begun, 0);
}

#[tokio::test]
async fn browsers_of_other_origins_only_if_configured() {
    let mock = Mock::start(vec![reply("x", 1)]).await;
    let asks = [("origin", "https://app.example"), ("access-control-request-method", "POST")];
    let server = Tambour::with(&mock).await;
    let answer = server.call_with("options", "/api/v1/messages", None, &asks).await;
    assert!(!answer.headers.contains_key("access-control-allow-origin"));
    let server =
        Tambour::start(&mock, |config| config.cors_origins = vec!["https://app.example".into()]).await;
    let answer = server.call_with("options", "/api/v1/messages", None, &asks).await;
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
    let mut more = asks.to_vec();
    more.push(("access-control-request-headers", "x-stainless-lang,authorization"));
    let answer = server.call_with("options", "/api/v1/messages", None, &more).await;
    assert_eq!(list(&answer, "access-control-allow-headers"), "x-stainless-lang,authorization");
    let other = server.call_with("get", "/healthz", None, &[("origin", "https://other.example")]).await;
    assert!(!other.headers.contains_key("access-control-allow-origin"));
    assert_eq!(other.headers["vary"], "origin", "a cache keeps it apart");
    let refused = [("origin", "https://other.example"), asks[1]];
    let refused = server.call_with("options", "/api/v1/messages", None, &refused).await;
    assert_eq!((refused.status, refused.problem()), (405, "method_not_allowed"));
    assert!(!refused.headers.contains_key("access-control-allow-methods"));
    let shown = server.call_with("get", "/healthz", None, &asks[..1]).await;
    assert_eq!(shown.headers["access-control-allow-origin"], "https://app.example");
}

#[tokio::test]
async fn requests_have_ids() {
    let mock = Mock::start(vec![reply("x", 1)]).await;
    let server = Tambour::with(&mock).await;
    let first = server.get("/healthz").await.headers["x-request-id"].clone();
    let second = server.get("/nothing").await.headers["x-request-id"].clone();
    assert_ne!(first, second);
    let given = server.call_with("get", "/healthz", None, &[("x-request-id", "trace-1")]).await;
    assert_eq!(given.headers["x-request-id"], "trace-1");
    let odd = server.call_with("get", "/healthz", None, &[("x-request-id", "a b\"c")]).await;
    assert!(odd.headers["x-request-id"].to_str().unwrap().starts_with("req_"));
}
