//! Owners beside one another: heavy work of some keeps the others waiting for no more than a turn of each.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::mock::{Mock, reply};
use crate::server::Tambour;

/// Longest time that a small request takes by itself.
const PATIENCE: Duration = Duration::from_secs(15);

/// Has a request sent with a key.
async fn with_key(server: &Tambour, key: &str, method: &str, path: &str, body: &Value) -> (u16, Value) {
    // Heavy work may take longer than other tests wait.
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let request =
        client.request(method.to_uppercase().parse().unwrap(), format!("http://{}{path}", server.address));
    let answer = request.bearer_auth(key).json(body).send().await.unwrap();
    let status = answer.status().as_u16();
    (status, answer.json().await.unwrap_or_default())
}

async fn conversation(server: &Tambour, key: &str) -> String {
    let (status, made) = with_key(server, key, "post", "/api/v1/conversations", &json!({})).await;
    assert_eq!(status, 201, "{made}");
    format!("/api/v1/conversations/{}/state", made["conversation_id"].as_str().unwrap())
}

/// A state whose check against its schema takes long, and more operations than can be checked.
async fn heavy_state(server: &Tambour, key: &str) -> (String, Value) {
    let state = conversation(server, key).await;
    let sets: Vec<Value> = (0..9_000).map(|at| json!(["SET", format!("k{at}"), "v".repeat(20)])).collect();
    let operations = format!("{state}/operations");
    assert_eq!(with_key(server, key, "post", &operations, &json!({"operations": sets})).await.0, 200);
    let mut any = vec![json!({"pattern": "^(x|y)*z$"}); 20];
    any.push(json!({}));
    let schema = json!({"schema": {"additionalProperties": {"anyOf": any}}});
    assert_eq!(with_key(server, key, "put", &format!("{state}/schema"), &schema).await.0, 200);
    let sets: Vec<Value> = (0..9_999).map(|at| json!(["SET", format!("a{at}"), "x"])).collect();
    (operations, json!({ "operations": sets }))
}

/// A book of regular expressions that are too large.
fn heavy_book() -> Value {
    let entries: serde_json::Map<String, Value> = (0..15_000)
        .map(|at| {
            let key = format!("/((a{{1,900}}){{1,900}}){{1,{}}}/", at % 900 + 1);
            (at.to_string(), json!({"uid": at, "key": [key], "content": "c"}))
        })
        .collect();
    json!({"files": [{"name": "b.json", "json": {"entries": entries}}]})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_owners_are_served_beside_heavy_work() {
    let mock = Mock::start(vec![reply("x", 1)]).await;
    let mut server = Tambour::with(&mock).await;
    let admin = server.post("/api/v1/keys", &json!({"name": "a", "rights": "admin"})).await.json;
    server.key(admin["key"].as_str());
    let mut keys = Vec::new();
    for name in ["good", "b", "c", "d"] {
        let made = server.post("/api/v1/keys", &json!({ "name": name })).await.json;
        keys.push(made["key"].as_str().unwrap().to_owned());
    }
    server.key(None);
    let good = keys.remove(0);
    let own = conversation(&server, &good).await;
    let mut heavy = Vec::new();
    for key in &keys {
        heavy.push((key.clone(), "/api/v1/imports".to_owned(), heavy_book()));
        let (path, body) = heavy_state(&server, key).await;
        heavy.push((key.clone(), path, body));
    }
    // How long one of them takes alone.
    let begun = Instant::now();
    for (key, path, body) in &heavy[..2] {
        assert!(matches!(with_key(&server, key, "post", path, body).await.0, 200 | 201));
    }
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    // One turn of each of the others at most.
    let patience = begun.elapsed() * u32::try_from(keys.len()).unwrap() + PATIENCE;
    let server = Arc::new(server);
    let heavy: Vec<_> = heavy
        .into_iter()
        .map(|(key, path, body)| {
            let server = server.clone();
            tokio::spawn(async move { with_key(&server, &key, "post", &path, &body).await })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(300)).await;
    let card = json!({"spec": "chara_card_v2", "spec_version": "2.0", "data": {"name": "x"}});
    for (path, body) in [
        (
            "/api/v1/prompts/render".to_owned(),
            json!({"skein": {"blocks": [{"tag": "a", "text": "{{ 1 + 1 }}"}]}}),
        ),
        ("/api/v1/imports".to_owned(), json!({"files": [{"name": "c.json", "json": card}]})),
        (format!("{own}/operations"), json!({"operations": [["SET", "a", 1]]})),
        ("/api/v1/messages".to_owned(), json!({"text": "x", "dialect": "plain", "wait": true})),
    ] {
        let begun = Instant::now();
        let (status, answer) = with_key(&server, &good, "post", &path, &body).await;
        assert!(status < 300, "{path}: {answer}");
        assert!(begun.elapsed() < patience, "{path}: {:?} of {patience:?}", begun.elapsed());
    }
    for one in heavy {
        let (status, answer) = one.await.unwrap();
        assert!(matches!(status, 200 | 201), "{status} {answer}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operations_that_nobody_waits_for_are_not_applied() {
    let mock = Mock::start(vec![reply("x", 1)]).await;
    let server = Tambour::with(&mock).await;
    let (path, body) = heavy_state(&server, "none").await;
    let before = server.get(path.strip_suffix("/operations").unwrap()).await.json["state"].clone();
    let left = tokio::time::timeout(Duration::from_millis(100), server.post(&path, &body)).await;
    assert!(left.is_err(), "it takes longer");
    // The turn in the conversation is free soon.
    let set = json!({"operations": [["SET", "b", 1]]});
    let begun = Instant::now();
    while server.post(&path, &set).await.status != 200 {
        assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
    }
    let after = server.get(path.strip_suffix("/operations").unwrap()).await.json["state"].clone();
    let (before, after) = (before.as_object().unwrap().len(), after.as_object().unwrap().len());
    assert_eq!(after, before + 1, "nothing of what was left is stored");
}

/// Has a request sent, and goes away after that time.
async fn left(server: &Tambour, path: &str, body: &Value, after: Duration) {
    let body = body.to_string();
    let mut socket = TcpStream::connect(server.address).await.unwrap();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        server.address,
        body.len()
    );
    socket.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    let answered = tokio::time::timeout(after, socket.read_u8()).await;
    assert!(answered.is_err(), "it takes longer");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rendering_whose_client_has_gone_ends() {
    const RENDER: &str = "/api/v1/prompts/render";
    let mock = Mock::start(vec![reply("x", 1)]).await;
    let server = Tambour::with(&mock).await;
    let skein = |text: &str| json!({"skein": {"blocks": [{"tag": "a", "text": text}]}});
    let heavy =
        skein("{% for a in range(100000) %}{{ (a|string ~ '.' ~ a)|replace('1', '2')|title }}{% endfor %}");
    let light = skein("{{ 1 + 1 }}");
    // Time of one that somebody waits for: up to its bound.
    let begun = Instant::now();
    let (status, answer) = with_key(&server, "none", "post", RENDER, &heavy).await;
    let bound = begun.elapsed();
    assert_eq!((status, answer["code"].as_str()), (422, Some("prompt_not_rendered")), "{answer}");
    let soon = Duration::from_millis(20);
    assert!(bound > 3 * soon, "it runs for a while: {bound:?}");
    for _ in 0..12 {
        left(&server, RENDER, &heavy, soon).await;
    }
    let begun = Instant::now();
    let (status, answer) = with_key(&server, "none", "post", RENDER, &light).await;
    assert_eq!(status, 200, "{answer}");
    // All of them together would take twelve times as long as one.
    assert!(begun.elapsed() < 4 * bound, "{:?}, where one takes {bound:?}", begun.elapsed());
}
