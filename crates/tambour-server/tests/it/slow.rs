//! Slow clients, and more of them than the server can hold.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::TcpStream;

use crate::client::{check_stream, event_names};
use crate::mock::{Gate, MockServer, Step, delta_step, finish_steps, reply_script};
use crate::server::{TestServer, with_timeout};

/// Opens a connection and sends the head of a request whose body is still to come.
async fn open_request(server: &TestServer, length: usize) -> TcpStream {
    let mut socket = TcpStream::connect(server.address).await.unwrap();
    let head = format!(
        "POST /api/v1/decode HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n",
        server.address
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    socket
}

/// Reads the answer to the end of the connection: status and problem.
async fn read_answer(mut socket: TcpStream) -> (String, Value) {
    let mut answer = Vec::new();
    // The connection may be closed abruptly after the answer.
    let _ = with_timeout(socket.read_to_end(&mut answer)).await;
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").expect("an answer");
    (head.to_lowercase(), serde_json::from_str(body).unwrap())
}

#[tokio::test]
async fn a_body_that_stops_is_given_up() {
    let mock = MockServer::start(vec![reply_script("x", 1)]).await;
    let server = TestServer::start(&mock, |config| config.body_idle_ms = 40).await;
    for body_start in ["", "{\"reply\""] {
        let mut socket = open_request(&server, 100).await;
        socket.write_all(body_start.as_bytes()).await.unwrap();
        let (head, problem) = read_answer(socket).await;
        assert!(head.starts_with("http/1.1 408 "), "{head}");
        assert!(head.contains("connection: close"), "{head}");
        assert_eq!(problem["code"], "slow_body");
        assert!(problem["detail"].as_str().unwrap().contains("`body_idle_ms`, 40 ms"), "{problem}");
    }
}

#[tokio::test]
async fn a_body_that_trickles_is_given_up() {
    let mock = MockServer::start(vec![reply_script("x", 1)]).await;
    let server = TestServer::start(&mock, |config| {
        config.body_idle_ms = 20_000;
        config.body_ms = 60;
    })
    .await;
    let (mut read_half, mut write_half) = open_request(&server, 1 << 20).await.into_split();
    let trickle = tokio::spawn(async move {
        while write_half.write_all(b" ").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    });
    let mut answer = Vec::new();
    while !answer.ends_with(b"}") {
        assert!(with_timeout(read_half.read_buf(&mut answer)).await.unwrap() > 0, "an answer comes");
    }
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 408 ") && answer.contains("`body_ms`, 60 ms"), "{answer}");
    drop(read_half);
    with_timeout(trickle).await.unwrap();
}

#[tokio::test]
async fn a_body_in_pieces_is_a_body() {
    let mock = MockServer::start(vec![reply_script("x", 1)]).await;
    let server = TestServer::start_default(&mock).await;
    let body = json!({"reply": "你好", "dialect": "plain"}).to_string();
    let mut socket = open_request(&server, body.len()).await;
    socket.set_nodelay(true).unwrap();
    for piece in body.as_bytes().chunks(3) {
        socket.write_all(piece).await.unwrap();
        tokio::task::yield_now().await;
    }
    let mut answer = Vec::new();
    while !answer.ends_with(b"}") {
        assert!(with_timeout(socket.read_buf(&mut answer)).await.unwrap() > 0, "an answer comes");
    }
    assert!(answer.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&answer));
    // A body that is too long is refused before it arrives.
    let (head, problem) = read_answer(open_request(&server, 100 << 20).await).await;
    assert!(head.starts_with("http/1.1 413 "), "{head}");
    assert_eq!(problem["code"], "too_large");
}

#[tokio::test]
async fn there_are_not_more_streams_than_the_server_can_hold() {
    let gate = Gate::new();
    let mut script = vec![delta_step("on "), Step::Wait(gate.clone()), delta_step("and on")];
    script.extend(finish_steps("stop"));
    let mock = MockServer::start(vec![script]).await;
    let mut server = TestServer::start(&mock, |config| config.max_streams_total = 2).await;
    let request = json!({"text": "x", "dialect": "plain", "output_protocol": "jsonseq_v1"});
    // Any owner counts.
    let admin = server.post("/api/v1/keys", &json!({"name": "a", "rights": "admin"})).await.json;
    server.set_key(admin["key"].as_str());
    let other = server.post("/api/v1/keys", &json!({"name": "b"})).await.json;
    let mut first = server.open_stream(&request).await;
    let mut events = first.read_until("final_delta").await;
    server.set_key(other["key"].as_str());
    let second = server.open_stream(&request).await;
    let mut stream_request = request.clone();
    stream_request["stream"] = true.into();
    let refusal = server.post("/api/v1/messages", &stream_request).await;
    assert_eq!((refusal.status, refusal.problem_code()), (503, "server_full"), "{}", refusal.text);
    assert!(refusal.headers.contains_key("retry-after"));
    assert!(refusal.json["detail"].as_str().unwrap().contains("max_streams_total"), "{}", refusal.text);
    assert_eq!(server.metric("tambour_running").await, 2);
    // Without a stream there is room, and open streams continue.
    let quiet = server.post("/api/v1/messages", &request).await;
    assert_eq!(quiet.status, 202, "{}", quiet.text);
    let id = quiet.json["message_id"].as_str().unwrap();
    let late = server.follow(id, &[]).await;
    assert_eq!(late.status, 503);
    gate.open();
    events.extend(first.read_rest().await);
    check_stream(&events);
    assert!(event_names(&second.read_checked().await).ends_with(&["final_end", "completed"]));
    // There is room again.
    server.wait_for_metric("tambour_streams_open", 0).await;
    assert_eq!(server.follow(id, &[]).await.status, 200);
}

/// Writes a whole request before it reads anything, and gives the answer.
async fn send_before_reading(
    server: &TestServer,
    method: &str,
    path: &str,
    bytes: usize,
    is_chunked: bool,
) -> String {
    let mut socket = with_timeout(TcpStream::connect(server.address)).await.unwrap();
    let length =
        if is_chunked { "transfer-encoding: chunked".to_owned() } else { format!("content-length: {bytes}") };
    let head = format!("{method} {path} HTTP/1.1\r\nhost: {}\r\n{length}\r\n\r\n", server.address);
    with_timeout(socket.write_all(head.as_bytes())).await.unwrap();
    let piece = vec![b'x'; 1 << 20];
    for _ in 0..bytes >> 20 {
        if is_chunked {
            with_timeout(socket.write_all(b"100000\r\n")).await.expect("all of it is taken");
        }
        with_timeout(socket.write_all(&piece)).await.expect("all of it is taken");
        if is_chunked {
            with_timeout(socket.write_all(b"\r\n")).await.expect("all of it is taken");
        }
    }
    if is_chunked {
        with_timeout(socket.write_all(b"0\r\n\r\n")).await.unwrap();
    }
    // The server has closed: after a reset, its answer could not be read any more.
    with_timeout(async {
        while !socket.ready(Interest::READABLE).await.unwrap().is_read_closed() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    let mut answer = Vec::new();
    with_timeout(socket.read_to_end(&mut answer)).await.expect("the connection ends well");
    String::from_utf8(answer).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_early_answer_reaches_who_writes_everything_first() {
    let mock = MockServer::start(vec![reply_script("x", 1)]).await;
    let mut server = TestServer::start_default(&mock).await;
    let (messages, size) = ("/api/v1/messages", 24 << 20);
    for is_chunked in [false, true] {
        let answer = send_before_reading(&server, "POST", messages, size, is_chunked).await;
        assert!(answer.starts_with("HTTP/1.1 413 ") && answer.contains("too_large"), "{answer}");
        let answer = send_before_reading(&server, "POST", "/nothing", size, is_chunked).await;
        assert!(answer.starts_with("HTTP/1.1 404 ") && answer.contains("not_found"), "{answer}");
        let answer = send_before_reading(&server, "POST", "/healthz", size, is_chunked).await;
        assert!(answer.starts_with("HTTP/1.1 405 "), "{answer}");
    }
    let key = server.post("/api/v1/keys", &json!({"name": "k", "rights": "admin"})).await;
    server.set_key(key.json["key"].as_str());
    let answer = send_before_reading(&server, "POST", messages, size, false).await;
    assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_never_stops_sending_is_cut_off() {
    let mock = MockServer::start(vec![reply_script("x", 1)]).await;
    let server = TestServer::start_default(&mock).await;
    let mut socket = open_request(&server, 1 << 40).await;
    let (piece, mut sent_bytes) = (vec![b'x'; 1 << 20], 0usize);
    while with_timeout(socket.write_all(&piece)).await.is_ok() {
        sent_bytes += piece.len();
        assert!(sent_bytes < 200 << 20, "somewhen it is enough");
    }
    assert!(sent_bytes > 32 << 20, "{sent_bytes}");
}
