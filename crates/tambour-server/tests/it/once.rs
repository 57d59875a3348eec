//! `Idempotency-Key`: a request that creates something creates it once.

use serde_json::{Value, json};
use sqlx::SqlitePool;
use sqlx::sqlite::SqliteConnectOptions;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::deletion::wait_until_erased;
use crate::mock::{MockServer, reply_script};
use crate::server::{Answer, TestServer, test_config, with_timeout};
use crate::server_process::ServerProcess;

const CONVERSATIONS: &str = "/api/v1/conversations";
const KEYS: &str = "/api/v1/keys";

async fn post_with_key(server: &TestServer, path: &str, body: &Value, key: &str) -> Answer {
    server.call_with("post", path, Some(&body.to_string()), &[("idempotency-key", key)]).await
}

async fn conversation_count(server: &TestServer) -> usize {
    server.get(CONVERSATIONS).await.json["data"].as_array().unwrap().len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_request_is_answered_once_also_behind_a_restart() {
    let mock = MockServer::start(vec![reply_script("x", 1)]).await;
    let server = TestServer::start_default(&mock).await;
    let new = json!({"title": "Greek", "metadata": {"a": 1}});
    let first = post_with_key(&server, CONVERSATIONS, &new, "a").await;
    assert_eq!(first.status, 201, "{}", first.text);
    let repeat = post_with_key(&server, CONVERSATIONS, &new, "a").await;
    assert_eq!((repeat.status, &repeat.text), (201, &first.text));
    assert_eq!(repeat.headers["content-type"], "application/json");
    // The answer is the original one, whatever has changed since.
    let path = format!("{CONVERSATIONS}/{}", first.json["conversation_id"].as_str().unwrap());
    server.call("patch", &path, Some(r#"{"title": "Latin"}"#)).await;
    let folder = server.stop().await;
    let repeat = test_config(&folder);
    let server = TestServer::serve(folder, repeat).await;
    assert_eq!(post_with_key(&server, CONVERSATIONS, &new, "a").await.text, first.text);
    assert_eq!(conversation_count(&server).await, 1);
    let other = post_with_key(&server, CONVERSATIONS, &json!({"title": "Welsh"}), "a").await;
    assert_eq!((other.status, other.problem_code()), (422, "idempotency_key_reused"));
    // Another key makes another request, and so does another route.
    assert_ne!(post_with_key(&server, CONVERSATIONS, &new, "b").await.text, first.text);
    assert_eq!(post_with_key(&server, "/api/v1/messages", &json!({"text": "x"}), "a").await.status, 202);
    for key in ["", &"k".repeat(256)] {
        let refusal = post_with_key(&server, CONVERSATIONS, &new, key).await;
        assert_eq!((refusal.status, refusal.problem_code()), (422, "invalid_idempotency_key"));
    }
    // A failed request may be repeated with the same key.
    let wrong = post_with_key(&server, CONVERSATIONS, &json!({"titel": "x"}), "c").await;
    assert_eq!((wrong.status, wrong.problem_code()), (422, "unknown_field"));
    assert_eq!(post_with_key(&server, CONVERSATIONS, &new, "c").await.status, 201);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_owner_has_words_of_its_own() {
    let mock = MockServer::start(vec![reply_script("x", 1)]).await;
    let mut server = TestServer::start_default(&mock).await;
    let local = post_with_key(&server, CONVERSATIONS, &json!({}), "a").await.json;
    let admin = server.post(KEYS, &json!({"name": "a", "rights": "admin"})).await.json;
    server.set_key(admin["key"].as_str());
    // The first key takes over everything of the local user, idempotency keys included.
    assert_eq!(post_with_key(&server, CONVERSATIONS, &json!({}), "a").await.json, local);
    let plain = server.post(KEYS, &json!({"name": "b"})).await.json;
    server.set_key(plain["key"].as_str());
    assert_ne!(post_with_key(&server, CONVERSATIONS, &json!({}), "a").await.json, local);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_are_answered_again_from_memory_and_are_in_no_file() {
    let mock = MockServer::start(vec![reply_script("x", 1)]).await;
    let mut server = TestServer::start_default(&mock).await;
    let admin = server.post(KEYS, &json!({"name": "a", "rights": "admin"})).await.json;
    server.set_key(admin["key"].as_str());
    let new = json!({"name": "b"});
    let first = post_with_key(&server, KEYS, &new, "k").await;
    assert_eq!(first.status, 201);
    assert_eq!(post_with_key(&server, KEYS, &new, "k").await.text, first.text);
    assert_eq!(
        post_with_key(&server, KEYS, &json!({"name": "c"}), "k").await.problem_code(),
        "idempotency_key_reused"
    );
    let message = server.post("/api/v1/messages", &json!({"text": "x"})).await.json;
    let path = format!("/api/v1/messages/{}/stream_tokens", message["message_id"].as_str().unwrap());
    let token = post_with_key(&server, &path, &Value::Null, "t").await;
    assert_eq!(token.status, 201);
    assert_eq!(post_with_key(&server, &path, &Value::Null, "t").await.text, token.text);
    assert_ne!(post_with_key(&server, &path, &Value::Null, "u").await.text, token.text);
    // A removed API key is not created again.
    let id = first.json["id"].as_str().unwrap();
    assert_eq!(server.call("delete", &format!("{KEYS}/{id}"), None).await.status, 204);
    assert_ne!(post_with_key(&server, KEYS, &new, "k").await.json["id"], first.json["id"]);
    let folder = server.stop().await;
    for secret in [&first.json["key"], &token.json["token"]] {
        let secret = secret.as_str().unwrap().as_bytes();
        for file in folder.files() {
            let bytes = std::fs::read(&file).unwrap();
            assert!(!bytes.windows(secret.len()).any(|part| part == secret), "{}", file.display());
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_goes_with_what_it_names_and_after_a_day() {
    const TITLE_WORD: &str = "quixotic-zephyr-title";
    let mock = MockServer::start(vec![reply_script("x", 1)]).await;
    let server = TestServer::start_default(&mock).await;
    let new = json!({"title": TITLE_WORD});
    let first = post_with_key(&server, CONVERSATIONS, &new, "a").await.json;
    let id = first["conversation_id"].as_str().unwrap();
    assert_eq!(server.call("delete", &format!("{CONVERSATIONS}/{id}"), None).await.status, 204);
    wait_until_erased(&server.folder, TITLE_WORD).await;
    let second = post_with_key(&server, CONVERSATIONS, &new, "a").await.json;
    assert_ne!(second["conversation_id"], id, "what is deleted is not given again");
    let folder = server.stop().await;
    // One day later.
    let file = test_config(&folder).database_file().unwrap();
    let pool = SqlitePool::connect_with(SqliteConnectOptions::new().filename(&file)).await.unwrap();
    let aging = sqlx::query("update kept set created = '2020-01-01T00:00:00.000Z'").execute(&pool).await;
    assert_eq!(aging.unwrap().rows_affected(), 1);
    let next_config = test_config(&folder);
    let server = TestServer::serve(folder, next_config).await;
    with_timeout(async {
        while sqlx::query_scalar::<_, i64>(
            "select (select count(*) from kept) + (select count(*) from kept_names)",
        )
        .fetch_one(&pool)
        .await
        .unwrap()
            > 0
        {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    })
    .await;
    pool.close().await;
    let third = post_with_key(&server, CONVERSATIONS, &new, "a").await.json;
    assert_ne!(third["conversation_id"], second["conversation_id"]);
}

async fn send_raw(process: &ServerProcess, request: &str) -> TcpStream {
    let mut socket = with_timeout(TcpStream::connect(process.server.address)).await.unwrap();
    with_timeout(socket.write_all(request.as_bytes())).await.unwrap();
    socket
}

async fn read_answer(socket: &mut TcpStream, text: &mut String) {
    while !text.ends_with('}') {
        let mut piece = Vec::new();
        assert!(socket.read_buf(&mut piece).await.unwrap() > 0, "an answer comes");
        text.push_str(std::str::from_utf8(&piece).unwrap());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_under_way_is_not_begun_twice_nor_lost_with_its_client() {
    let mock = MockServer::start(vec![reply_script("x", 1)]).await;
    let process = ServerProcess::start(&mock, false);
    process.hold_at("conversation.before");
    let request = format!(
        "POST {CONVERSATIONS} HTTP/1.1\r\nhost: {}\r\nidempotency-key: a\r\ncontent-length: 2\r\n\r\n{{}}",
        process.server.address
    );
    let (mut first_text, mut second_text) = (String::new(), String::new());
    let mut sockets = [send_raw(&process, &request).await, send_raw(&process, &request).await];
    let [first, second] = &mut sockets;
    // One request is held; the other gets a conflict.
    with_timeout(async {
        tokio::select! {
            read = read_answer(first, &mut first_text) => read,
            read = read_answer(second, &mut second_text) => read,
        }
    })
    .await;
    let texts = format!("{first_text}{second_text}");
    assert!(texts.starts_with("HTTP/1.1 409 ") && texts.contains("request_under_way"), "{texts}");
    // The clients disconnect, and the work completes all the same.
    drop(sockets);
    process.release("conversation.before").await;
    let answer = with_timeout(async {
        loop {
            let answer = post_with_key(&process.server, CONVERSATIONS, &json!({}), "a").await;
            if answer.status != 409 {
                return answer;
            }
        }
    })
    .await;
    assert_eq!(answer.status, 201);
    assert_eq!(conversation_count(&process.server).await, 1);
    assert_eq!(post_with_key(&process.server, CONVERSATIONS, &json!({}), "a").await.text, answer.text);
}

#[tokio::test]
async fn every_operation_that_makes_something_takes_a_word() {
    let mock = MockServer::start(vec![reply_script("x", 1)]).await;
    let server = TestServer::start_default(&mock).await;
    let api = server.get("/openapi.json").await.json;
    let mut paths = Vec::new();
    for (path, methods) in api["paths"].as_object().unwrap() {
        let Some(operation) = methods.get("post") else { continue };
        let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
        let is_described = parameters.iter().any(|parameter| parameter["name"] == "Idempotency-Key");
        let creates = operation["responses"].get("201").is_some()
            || path == "/api/v1/messages"
            || ["/regenerate", "/state/operations", "/input", "/calls"].iter().any(|end| path.ends_with(end));
        assert_eq!(is_described, creates, "{path}");
        paths.extend(is_described.then_some(path));
    }
    assert!(paths.len() >= 4, "{paths:?}");
}
