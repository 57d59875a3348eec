//! Fairness between owners: heavy work of some delays the others by no more than one turn of each.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::mock::{Mock, reply};
use crate::server::{Tambour, within};
use crate::server_process::ServerProcess;

/// Fail point reached by heavy work when its turn has come.
const WORK: &str = "aside";

/// Sends a request with a key.
async fn with_key(server: &Tambour, key: &str, method: &str, path: &str, body: &Value) -> (u16, Value) {
    // Heavy work may take longer than the usual timeout of a test.
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

/// A state that is slow to validate, and a body with more operations than can be validated.
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

/// A lorebook of regular expressions that are too large.
fn heavy_book() -> Value {
    let entries: serde_json::Map<String, Value> = (0..4_000)
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
    let mut apart = ServerProcess::start(&mock, false);
    let admin = apart.server.post("/api/v1/keys", &json!({"name": "a", "rights": "admin"})).await.json;
    apart.server.key(admin["key"].as_str());
    let mut keys = Vec::new();
    for name in ["good", "b", "c", "d"] {
        let made = apart.server.post("/api/v1/keys", &json!({ "name": name })).await.json;
        keys.push(made["key"].as_str().unwrap().to_owned());
    }
    apart.server.key(None);
    let good = keys.remove(0);
    let own = conversation(&apart.server, &good).await;
    let mut heavy = Vec::new();
    // Several heavy requests of each owner are under way until the test is over; all wait for the first to begin.
    for key in keys.iter().chain(&keys) {
        heavy.push((key.clone(), "/api/v1/imports".to_owned(), heavy_book()));
        let (path, body) = heavy_state(&apart.server, key).await;
        heavy.push((key.clone(), path, body));
    }
    apart.hold(WORK);
    let apart = Arc::new(apart);
    let done = Arc::new(AtomicUsize::new(0));
    let heavy: Vec<_> = heavy
        .into_iter()
        .map(|(key, path, body)| {
            let (apart, done) = (apart.clone(), done.clone());
            tokio::spawn(async move {
                loop {
                    let (status, answer) = with_key(&apart.server, &key, "post", &path, &body).await;
                    assert!(matches!(status, 200 | 201), "{status} {answer}");
                    done.fetch_add(1, Ordering::SeqCst);
                }
            })
        })
        .collect();
    apart.until_held(WORK).await;
    apart.let_go(WORK).await;
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
        let before = done.load(Ordering::SeqCst);
        let (status, answer) = with_key(&apart.server, &good, "post", &path, &body).await;
        assert!(status < 300, "{path}: {answer}");
        let others = done.load(Ordering::SeqCst) - before;
        // A small request takes at most two turns, and before each of them every other owner has one. Work completed before the request
        // was sent may still be reported meanwhile.
        println!("{path}: {others} before it");
        assert!(others <= 2 * keys.len() + 1, "{path}: {others} of {} others went first", keys.len());
    }
    assert!(heavy.iter().all(|one| !one.is_finished()));
    heavy.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operations_that_nobody_waits_for_are_not_applied() {
    let mock = Mock::start(vec![reply("x", 1)]).await;
    let apart = ServerProcess::start(&mock, false);
    let server = &apart.server;
    let (path, body) = heavy_state(server, "none").await;
    let before = server.get(path.strip_suffix("/operations").unwrap()).await.json["state"].clone();
    begun_and_left(&apart, &path, &body).await;
    // The conversation is soon free again.
    let set = json!({"operations": [["SET", "b", 1]]});
    within(async { while server.post(&path, &set).await.status != 200 {} }).await;
    let after = server.get(path.strip_suffix("/operations").unwrap()).await.json["state"].clone();
    let (before, after) = (before.as_object().unwrap().len(), after.as_object().unwrap().len());
    assert_eq!(after, before + 1, "nothing of what was left is stored");
}

/// Sends a request and disconnects once its work has begun.
async fn begun_and_left(apart: &ServerProcess, path: &str, body: &Value) {
    apart.hold(WORK);
    let (address, body) = (apart.server.address, body.to_string());
    let mut socket = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    socket.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    apart.until_held(WORK).await;
    drop(socket);
    apart.let_go(WORK).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rendering_whose_client_has_gone_ends() {
    const RENDER: &str = "/api/v1/prompts/render";
    let mock = Mock::start(vec![reply("x", 1)]).await;
    let apart = ServerProcess::start(&mock, false);
    let skein = |text: &str| json!({"skein": {"blocks": [{"tag": "a", "text": text}]}});
    let heavy =
        skein("{% for a in range(100000) %}{{ (a|string ~ '.' ~ a)|replace('1', '2')|title }}{% endfor %}");
    let light = skein("{{ 1 + 1 }}");
    // Time of one request whose client stays: up to its bound.
    let begun = Instant::now();
    let (status, answer) = with_key(&apart.server, "none", "post", RENDER, &heavy).await;
    let bound = begun.elapsed();
    assert_eq!((status, answer["code"].as_str()), (422, Some("prompt_not_rendered")), "{answer}");
    // Each begins when the one before it has ended: together they would take twelve times as long as one.
    let begun = Instant::now();
    for _ in 0..12 {
        begun_and_left(&apart, RENDER, &heavy).await;
    }
    let (status, answer) = with_key(&apart.server, "none", "post", RENDER, &light).await;
    assert_eq!(status, 200, "{answer}");
    assert!(begun.elapsed() < 6 * bound, "{:?}, where one takes {bound:?}", begun.elapsed());
}
