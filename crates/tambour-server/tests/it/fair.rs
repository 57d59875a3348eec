//! Fairness between owners: heavy work of some delays the others by no more than one turn of each.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::mock::{MockServer, reply_script};
use crate::server::{TestServer, with_timeout};
use crate::server_process::ServerProcess;

/// Fail point reached by heavy work when its turn has come.
const CPU_WORK_POINT: &str = "aside";

/// Has a request sent with a key.
async fn send_with_key(
    server: &TestServer,
    key: &str,
    method: &str,
    path: &str,
    body: &Value,
) -> (u16, Value) {
    // Heavy work may take longer than other tests wait.
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let request =
        client.request(method.to_uppercase().parse().unwrap(), format!("http://{}{path}", server.address));
    let answer = request.bearer_auth(key).json(body).send().await.unwrap();
    let status = answer.status().as_u16();
    (status, answer.json().await.unwrap_or_default())
}

async fn new_conversation(server: &TestServer, key: &str) -> String {
    let (status, response) = send_with_key(server, key, "post", "/api/v1/conversations", &json!({})).await;
    assert_eq!(status, 201, "{response}");
    format!("/api/v1/conversations/{}/state", response["conversation_id"].as_str().unwrap())
}

/// A state that is slow to validate, and a body with more operations than can be validated.
async fn heavy_state(server: &TestServer, key: &str) -> (String, Value) {
    let state = new_conversation(server, key).await;
    let sets: Vec<Value> = (0..9_000).map(|at| json!(["SET", format!("k{at}"), "v".repeat(20)])).collect();
    let operations = format!("{state}/operations");
    assert_eq!(send_with_key(server, key, "post", &operations, &json!({"operations": sets})).await.0, 200);
    let mut alternatives = vec![json!({"pattern": "^(x|y)*z$"}); 20];
    alternatives.push(json!({}));
    let schema = json!({"schema": {"additionalProperties": {"anyOf": alternatives}}});
    assert_eq!(send_with_key(server, key, "put", &format!("{state}/schema"), &schema).await.0, 200);
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
    let mock = MockServer::start(vec![reply_script("x", 1)]).await;
    let mut process = ServerProcess::start(&mock, false);
    let admin = process.server.post("/api/v1/keys", &json!({"name": "a", "rights": "admin"})).await.json;
    process.server.set_key(admin["key"].as_str());
    let mut keys = Vec::new();
    for name in ["good", "b", "c", "d"] {
        let response = process.server.post("/api/v1/keys", &json!({ "name": name })).await.json;
        keys.push(response["key"].as_str().unwrap().to_owned());
    }
    process.server.set_key(None);
    let quick_key = keys.remove(0);
    let quick_state = new_conversation(&process.server, &quick_key).await;
    let mut heavy = Vec::new();
    // Several heavy requests of each owner are under way until the test is over; all wait for the first to begin.
    for key in keys.iter().chain(&keys) {
        heavy.push((key.clone(), "/api/v1/imports".to_owned(), heavy_book()));
        let (path, body) = heavy_state(&process.server, key).await;
        heavy.push((key.clone(), path, body));
    }
    process.hold_at(CPU_WORK_POINT);
    let process = Arc::new(process);
    let completed_work = Arc::new(AtomicUsize::new(0));
    let heavy: Vec<_> = heavy
        .into_iter()
        .map(|(key, path, body)| {
            let (process, completed_work) = (process.clone(), completed_work.clone());
            tokio::spawn(async move {
                loop {
                    let (status, answer) = send_with_key(&process.server, &key, "post", &path, &body).await;
                    assert!(matches!(status, 200 | 201), "{status} {answer}");
                    completed_work.fetch_add(1, Ordering::SeqCst);
                }
            })
        })
        .collect();
    process.wait_until_held(CPU_WORK_POINT).await;
    process.release(CPU_WORK_POINT).await;
    let card = json!({"spec": "chara_card_v2", "spec_version": "2.0", "data": {"name": "x"}});
    for (path, body) in [
        (
            "/api/v1/prompts/render".to_owned(),
            json!({"skein": {"blocks": [{"tag": "a", "text": "{{ 1 + 1 }}"}]}}),
        ),
        ("/api/v1/imports".to_owned(), json!({"files": [{"name": "c.json", "json": card}]})),
        (format!("{quick_state}/operations"), json!({"operations": [["SET", "a", 1]]})),
        ("/api/v1/messages".to_owned(), json!({"text": "x", "dialect": "plain", "wait": true})),
    ] {
        let before = completed_work.load(Ordering::SeqCst);
        let (status, answer) = send_with_key(&process.server, &quick_key, "post", &path, &body).await;
        assert!(status < 300, "{path}: {answer}");
        let work_before = completed_work.load(Ordering::SeqCst) - before;
        // A small request has two turns at most, and before each of them each of the others has one. What had been done before it was
        // sent may be told meanwhile.
        println!("{path}: {work_before} before it");
        assert!(
            work_before <= 2 * keys.len() + 1,
            "{path}: {work_before} of {} others went first",
            keys.len()
        );
    }
    assert!(heavy.iter().all(|task| !task.is_finished()));
    heavy.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operations_that_nobody_waits_for_are_not_applied() {
    let mock = MockServer::start(vec![reply_script("x", 1)]).await;
    let process = ServerProcess::start(&mock, false);
    let server = &process.server;
    let (path, body) = heavy_state(server, "none").await;
    let before = server.get(path.strip_suffix("/operations").unwrap()).await.json["state"].clone();
    begin_and_disconnect(&process, &path, &body).await;
    // The conversation is soon free again.
    let set = json!({"operations": [["SET", "b", 1]]});
    with_timeout(async { while server.post(&path, &set).await.status != 200 {} }).await;
    let after = server.get(path.strip_suffix("/operations").unwrap()).await.json["state"].clone();
    let (before, after) = (before.as_object().unwrap().len(), after.as_object().unwrap().len());
    assert_eq!(after, before + 1, "nothing of what was left is stored");
}

/// Sends a request and disconnects once its work has begun.
async fn begin_and_disconnect(process: &ServerProcess, path: &str, body: &Value) {
    process.hold_at(CPU_WORK_POINT);
    let (address, body) = (process.server.address, body.to_string());
    let mut socket = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    socket.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    process.wait_until_held(CPU_WORK_POINT).await;
    drop(socket);
    process.release(CPU_WORK_POINT).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rendering_whose_client_has_gone_ends() {
    const RENDER: &str = "/api/v1/prompts/render";
    let mock = MockServer::start(vec![reply_script("x", 1)]).await;
    let process = ServerProcess::start(&mock, false);
    let skein = |text: &str| json!({"skein": {"blocks": [{"tag": "a", "text": text}]}});
    let heavy =
        skein("{% for a in range(100000) %}{{ (a|string ~ '.' ~ a)|replace('1', '2')|title }}{% endfor %}");
    let light = skein("{{ 1 + 1 }}");
    // Time of one request whose client stays: up to its bound.
    let start_time = Instant::now();
    let (status, answer) = send_with_key(&process.server, "none", "post", RENDER, &heavy).await;
    let bound = start_time.elapsed();
    assert_eq!((status, answer["code"].as_str()), (422, Some("prompt_not_rendered")), "{answer}");
    // Each begins when the one before it has ended: together they would take twelve times as long as one.
    let start_time = Instant::now();
    for _ in 0..12 {
        begin_and_disconnect(&process, RENDER, &heavy).await;
    }
    let (status, answer) = send_with_key(&process.server, "none", "post", RENDER, &light).await;
    assert_eq!(status, 200, "{answer}");
    assert!(start_time.elapsed() < 6 * bound, "{:?}, where one takes {bound:?}", start_time.elapsed());
}
