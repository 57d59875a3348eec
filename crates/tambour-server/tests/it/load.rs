//! Many streams at once, and readers that do not read.

use std::time::Instant;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::client::{check_stream, joined_text, stream_message_id};
use crate::mock::{Gate, MockServer, Step, delta_step, finish_steps};
use crate::server::{TestServer, with_timeout};
use crate::server_process::ServerProcess;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_streams_at_once() {
    const STREAMS: usize = 1000;
    let gate = Gate::new();
    let mut script: Vec<Step> = (0..20).map(|n| delta_step(&format!("piece {n} of a reply; "))).collect();
    script.push(Step::Wait(gate.clone()));
    script.push(delta_step("the end"));
    script.extend(finish_steps("stop"));
    let mock = MockServer::start(vec![script]).await;
    let process = ServerProcess::start(&mock, false);
    let server = &process.server;
    // The first request creates the shared state.
    server.get("/metrics").await;
    let before = process.memory();
    let start_time = Instant::now();
    let request = json!({"text": "x", "dialect": "plain", "output_protocol": "jsonseq_v1"});
    // In groups, since the backlog of a listener is limited.
    let mut streams = Vec::new();
    for _ in 0..STREAMS / 50 {
        streams.extend(futures_util::future::join_all((0..50).map(|_| server.open_stream(&request))).await);
    }
    assert!(streams.iter().all(|stream| stream.status == 200));
    mock.wait_until(|calls| calls.started == STREAMS && calls.ended == 0).await;
    // Every reader has all that was written before the first run may continue.
    let mut events = futures_util::future::join_all(streams.iter_mut().map(|stream| async {
        let mut events = stream.read_until("final_delta").await;
        while !joined_text(&events, "final_delta").contains("piece 19") {
            events.push(stream.next_event().await.unwrap());
        }
        events
    }))
    .await;
    assert_eq!(server.metric("tambour_running").await, STREAMS as u64);
    let memory = process.memory();
    gate.open();
    for (stream, events) in streams.iter_mut().zip(&mut events) {
        events.extend(stream.read_rest().await);
        check_stream(events);
        assert!(joined_text(events, "final_delta").ends_with("the end"));
    }
    let ids: std::collections::HashSet<String> =
        events.iter().map(|events| stream_message_id(events)).collect();
    assert_eq!(ids.len(), STREAMS);
    server.wait_for_metric("tambour_running", 0).await;
    if let (Some(before), Some(memory)) = (before, memory) {
        let memory_each = memory.saturating_sub(before) / STREAMS as u64;
        eprintln!("{STREAMS} streams: {:?}, {memory_each} KiB a stream", start_time.elapsed());
        assert!(memory_each < 300, "{memory_each} KiB a stream");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_stalls_holds_nobody() {
    const PIECES: usize = 500;
    let piece = "four kilobytes of it ".repeat(200);
    let (first_gate, second_gate) = (Gate::new(), Gate::new());
    let mut script = vec![delta_step("start "), Step::Wait(first_gate.clone())];
    let mut steps = vec![delta_step(&piece); PIECES];
    steps.extend(finish_steps("stop"));
    script.extend(std::iter::repeat_n(delta_step(&piece), PIECES));
    script.push(Step::Wait(second_gate.clone()));
    script.extend(finish_steps("stop"));
    let mock = MockServer::start(vec![steps.clone(), steps, script]).await;
    let process = ServerProcess::start(&mock, false);
    let server = &process.server;
    let request = json!({"text": "x", "dialect": "plain", "output_protocol": "jsonseq_v1"});
    // Memory that a flood takes without anybody who stalls.
    let (first_reader, second_reader) =
        (server.open_stream(&request).await, server.open_stream(&request).await);
    tokio::join!(first_reader.read_checked(), second_reader.read_checked());
    let mut active_reader = server.open_stream(&request).await;
    let mut events = active_reader.read_until("final_delta").await;
    let id = stream_message_id(&events);
    // Twenty readers of the same message who never read on, and one whose message is its own.
    let mut stalled_readers = Vec::new();
    for _ in 0..20 {
        stalled_readers.push(server.follow(&id, &[]).await);
    }
    let lone_reader = server.open_stream(&request).await;
    let before = process.memory();
    first_gate.open();
    let mut length = 0;
    while length < PIECES * piece.len() {
        let event = with_timeout(active_reader.next_event()).await.unwrap();
        length += event.data["text"].as_str().map_or(0, str::len);
        events.push(event);
    }
    if let Some(before) = before {
        let memory_each = || process.memory().map_or(0, |memory| memory.saturating_sub(before) / 21);
        eprintln!("a stalled reader: {} KiB", memory_each());
        // Memory of pending database writes is not theirs, and freed in a moment.
        with_timeout(async {
            while memory_each() >= 512 {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        })
        .await;
    }
    second_gate.open();
    events.extend(active_reader.read_rest().await);
    check_stream(&events);
    // The message with only a stalled reader reaches its end, too.
    server.wait_for_metric("tambour_running", 0).await;
    // One stalled reader resumes and has missed nothing.
    let mut resumed_reader = stalled_readers.pop().unwrap();
    let resumed_events = resumed_reader.read_rest().await;
    assert!(resumed_reader.has_ended);
    check_stream(&resumed_events);
    assert_eq!(crate::client::numbered_events(&resumed_events), crate::client::numbered_events(&events)); // J-036
    drop(lone_reader);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_stalls_after_the_end_is_cut_off() {
    let mut script = vec![delta_step(&"a piece of four kilobytes ".repeat(160)); 3000];
    script.extend(finish_steps("stop"));
    let mock = MockServer::start(vec![script]).await;
    let server = TestServer::start(&mock, |config| config.reader_idle_ms = 300).await;
    let body = r#"{"text": "x", "dialect": "plain", "output_protocol": "jsonseq_v1", "stream": true}"#;
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    // A small receive buffer of the system.
    socket.set_recv_buffer_size(4 << 10).unwrap();
    let mut connection = with_timeout(socket.connect(server.address)).await.unwrap();
    let length = body.len();
    let head = format!(
        "POST /api/v1/messages HTTP/1.1\r\nhost: {}\r\ncontent-length: {length}\r\n\r\n",
        server.address
    );
    connection.write_all((head + body).as_bytes()).await.unwrap();
    server.wait_for_metric("tambour_messages_total", 1).await;
    server.wait_for_metric("tambour_running", 0).await;
    // It takes nothing, and its connection is closed; what it had been sent before is all that comes.
    server.wait_for_metric("tambour_streams_open", 0).await;
    let mut received = Vec::new();
    let _ = with_timeout(connection.read_to_end(&mut received)).await;
    assert!(
        !String::from_utf8_lossy(&received).contains("event: completed"),
        "it was cut off before the end"
    );
    // It comes back with its cursor, and goes on behind what it had.
    let received = String::from_utf8_lossy(&received);
    let (_, cursor) = received.rsplit_once("\nid: ").expect("events with numbers");
    let cursor = cursor.lines().next().filter(|cursor| !cursor.is_empty()).expect("a number");
    let id = received.split("\"message_id\":\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let mut rest = server.follow(&id, &[("last-event-id", cursor)]).await;
    assert_eq!(rest.read_until("final_delta").await.last().unwrap().data["message_id"], id.as_str());
}

#[tokio::test]
async fn connections_that_do_nothing_or_nonsense_disturb_nobody() {
    let mock = MockServer::start(vec![crate::mock::reply_script("Four.", 2)]).await;
    let server = TestServer::start_default(&mock).await;
    let mut idle_sockets = Vec::new();
    for bytes in [
        &b""[..],
        b"GET",
        b"\x16\x03\x01\x02\x00",
        b"POST /api/v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 100\r\n\r\n{",
    ] {
        let mut socket = with_timeout(tokio::net::TcpStream::connect(server.address)).await.unwrap();
        with_timeout(socket.write_all(bytes)).await.unwrap();
        idle_sockets.push(socket);
    }
    let request = json!({"text": "x", "dialect": "plain", "output_protocol": "jsonseq_v1"});
    assert_eq!(joined_text(&server.open_stream(&request).await.read_checked().await, "final_delta"), "Four.");
    drop(idle_sockets);
    assert_eq!(server.get("/healthz").await.status, 200);
}
