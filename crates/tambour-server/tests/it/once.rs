//! `Idempotency-Key`: a request that creates something creates it once.

use serde_json::{Value, json};
use sqlx::SqlitePool;
use sqlx::sqlite::SqliteConnectOptions;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::deletion::gone;
use crate::mock::{Mock, reply};
use crate::server::{Answer, Tambour, config, within};
use crate::server_process::ServerProcess;

const CONVERSATIONS: &str = "/api/v1/conversations";
const KEYS: &str = "/api/v1/keys";

async fn send(server: &Tambour, path: &str, body: &Value, word: &str) -> Answer {
    server.call_with("post", path, Some(&body.to_string()), &[("idempotency-key", word)]).await
}

async fn count(server: &Tambour) -> usize {
    server.get(CONVERSATIONS).await.json["data"].as_array().unwrap().len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_request_is_answered_once_also_behind_a_restart() {
    let mock = Mock::start(vec![reply("x", 1)]).await;
    let server = Tambour::with(&mock).await;
    let new = json!({"title": "Greek", "metadata": {"a": 1}});
    let first = send(&server, CONVERSATIONS, &new, "a").await;
    assert_eq!(first.status, 201, "{}", first.text);
    let again = send(&server, CONVERSATIONS, &new, "a").await;
    assert_eq!((again.status, &again.text), (201, &first.text));
    assert_eq!(again.headers["content-type"], "application/json");
    // The answer is the original one, whatever has changed since.
    let path = format!("{CONVERSATIONS}/{}", first.json["conversation_id"].as_str().unwrap());
    server.call("patch", &path, Some(r#"{"title": "Latin"}"#)).await;
    let folder = server.stopped().await;
    let again = config(&folder);
    let server = Tambour::serve(folder, again).await;
    assert_eq!(send(&server, CONVERSATIONS, &new, "a").await.text, first.text);
    assert_eq!(count(&server).await, 1);
    let other = send(&server, CONVERSATIONS, &json!({"title": "Welsh"}), "a").await;
    assert_eq!((other.status, other.problem()), (422, "idempotency_key_reused"));
    // Another key makes another request, and so does another route.
    assert_ne!(send(&server, CONVERSATIONS, &new, "b").await.text, first.text);
    assert_eq!(send(&server, "/api/v1/messages", &json!({"text": "x"}), "a").await.status, 202);
    for word in ["", &"k".repeat(256)] {
        let refused = send(&server, CONVERSATIONS, &new, word).await;
        assert_eq!((refused.status, refused.problem()), (422, "invalid_idempotency_key"));
    }
    // A failed request may be repeated with the same key.
    let wrong = send(&server, CONVERSATIONS, &json!({"titel": "x"}), "c").await;
    assert_eq!((wrong.status, wrong.problem()), (422, "unknown_field"));
    assert_eq!(send(&server, CONVERSATIONS, &new, "c").await.status, 201);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_owner_has_words_of_its_own() {
    let mock = Mock::start(vec![reply("x", 1)]).await;
    let mut server = Tambour::with(&mock).await;
    let local = send(&server, CONVERSATIONS, &json!({}), "a").await.json;
    let admin = server.post(KEYS, &json!({"name": "a", "rights": "admin"})).await.json;
    server.key(admin["key"].as_str());
    // The first key takes over everything of the local user, idempotency keys included.
    assert_eq!(send(&server, CONVERSATIONS, &json!({}), "a").await.json, local);
    let plain = server.post(KEYS, &json!({"name": "b"})).await.json;
    server.key(plain["key"].as_str());
    assert_ne!(send(&server, CONVERSATIONS, &json!({}), "a").await.json, local);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_are_answered_again_from_memory_and_are_in_no_file() {
    let mock = Mock::start(vec![reply("x", 1)]).await;
    let mut server = Tambour::with(&mock).await;
    let admin = server.post(KEYS, &json!({"name": "a", "rights": "admin"})).await.json;
    server.key(admin["key"].as_str());
    let new = json!({"name": "b"});
    let first = send(&server, KEYS, &new, "k").await;
    assert_eq!(first.status, 201);
    assert_eq!(send(&server, KEYS, &new, "k").await.text, first.text);
    assert_eq!(send(&server, KEYS, &json!({"name": "c"}), "k").await.problem(), "idempotency_key_reused");
    let message = server.post("/api/v1/messages", &json!({"text": "x"})).await.json;
    let path = format!("/api/v1/messages/{}/stream_tokens", message["message_id"].as_str().unwrap());
    let token = send(&server, &path, &Value::Null, "t").await;
    assert_eq!(token.status, 201);
    assert_eq!(send(&server, &path, &Value::Null, "t").await.text, token.text);
    assert_ne!(send(&server, &path, &Value::Null, "u").await.text, token.text);
    // A removed API key is not created again.
    let id = first.json["id"].as_str().unwrap();
    assert_eq!(server.call("delete", &format!("{KEYS}/{id}"), None).await.status, 204);
    assert_ne!(send(&server, KEYS, &new, "k").await.json["id"], first.json["id"]);
    let folder = server.stopped().await;
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
    const WORD: &str = "quixotic-zephyr-title";
    let mock = Mock::start(vec![reply("x", 1)]).await;
    let server = Tambour::with(&mock).await;
    let new = json!({"title": WORD});
    let first = send(&server, CONVERSATIONS, &new, "a").await.json;
    let id = first["conversation_id"].as_str().unwrap();
    assert_eq!(server.call("delete", &format!("{CONVERSATIONS}/{id}"), None).await.status, 204);
    gone(&server.folder, WORD).await;
    let second = send(&server, CONVERSATIONS, &new, "a").await.json;
    assert_ne!(second["conversation_id"], id, "what is deleted is not given again");
    let folder = server.stopped().await;
    // One day later.
    let file = config(&folder).database_file().unwrap();
    let pool = SqlitePool::connect_with(SqliteConnectOptions::new().filename(&file)).await.unwrap();
    let aged = sqlx::query("update kept set created = '2020-01-01T00:00:00.000Z'").execute(&pool).await;
    assert_eq!(aged.unwrap().rows_affected(), 1);
    let again = config(&folder);
    let server = Tambour::serve(folder, again).await;
    within(async {
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
    let third = send(&server, CONVERSATIONS, &new, "a").await.json;
    assert_ne!(third["conversation_id"], second["conversation_id"]);
}

async fn asking(apart: &ServerProcess, request: &str) -> TcpStream {
    let mut socket = within(TcpStream::connect(apart.server.address)).await.unwrap();
    within(socket.write_all(request.as_bytes())).await.unwrap();
    socket
}

async fn said(socket: &mut TcpStream, text: &mut String) {
    while !text.ends_with('}') {
        let mut piece = Vec::new();
        assert!(socket.read_buf(&mut piece).await.unwrap() > 0, "an answer comes");
        text.push_str(std::str::from_utf8(&piece).unwrap());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_under_way_is_not_begun_twice_nor_lost_with_its_client() {
    let mock = Mock::start(vec![reply("x", 1)]).await;
    let apart = ServerProcess::start(&mock, false);
    apart.hold("conversation.before");
    let request = format!(
        "POST {CONVERSATIONS} HTTP/1.1\r\nhost: {}\r\nidempotency-key: a\r\ncontent-length: 2\r\n\r\n{{}}",
        apart.server.address
    );
    let (mut one, mut other) = (String::new(), String::new());
    let mut sockets = [asking(&apart, &request).await, asking(&apart, &request).await];
    let [first, second] = &mut sockets;
    // One request is held; the other gets a conflict.
    within(async {
        tokio::select! {
            said = said(first, &mut one) => said,
            said = said(second, &mut other) => said,
        }
    })
    .await;
    let told = format!("{one}{other}");
    assert!(told.starts_with("HTTP/1.1 409 ") && told.contains("request_under_way"), "{told}");
    // The clients disconnect, and the work completes all the same.
    drop(sockets);
    apart.let_go("conversation.before").await;
    let answer = within(async {
        loop {
            let answer = send(&apart.server, CONVERSATIONS, &json!({}), "a").await;
            if answer.status != 409 {
                return answer;
            }
        }
    })
    .await;
    assert_eq!(answer.status, 201);
    assert_eq!(count(&apart.server).await, 1);
    assert_eq!(send(&apart.server, CONVERSATIONS, &json!({}), "a").await.text, answer.text);
}

#[tokio::test]
async fn every_operation_that_makes_something_takes_a_word() {
    let mock = Mock::start(vec![reply("x", 1)]).await;
    let server = Tambour::with(&mock).await;
    let api = server.get("/openapi.json").await.json;
    let mut takes = Vec::new();
    for (path, methods) in api["paths"].as_object().unwrap() {
        let Some(operation) = methods.get("post") else { continue };
        let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
        let described = parameters.iter().any(|parameter| parameter["name"] == "Idempotency-Key");
        let makes = operation["responses"].get("201").is_some()
            || path == "/api/v1/messages"
            || ["/regenerate", "/state/operations", "/input", "/calls"].iter().any(|end| path.ends_with(end));
        assert_eq!(described, makes, "{path}");
        takes.extend(described.then_some(path));
    }
    assert!(takes.len() >= 4, "{takes:?}");
}
