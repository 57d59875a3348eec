//! Many streams at once, and readers that do not read.

use std::time::Instant;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::client::{check, message, text};
use crate::mock::{Gate, Mock, Step, delta, finish};
use crate::server::{Tambour, within};
use crate::server_process::ServerProcess;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_streams_at_once() {
    const STREAMS: usize = 1000;
    let gate = Gate::new();
    let mut script: Vec<Step> = (0..20).map(|n| delta(&format!("piece {n} of a reply; "))).collect();
    script.push(Step::Wait(gate.clone()));
    script.push(delta("the end"));
    script.extend(finish("stop"));
    let mock = Mock::start(vec![script]).await;
    let apart = ServerProcess::start(&mock, false);
    let server = &apart.server;
    // The first request creates the shared state.
    server.get("/metrics").await;
    let before = apart.memory();
    let started = Instant::now();
    let ask = json!({"text": "x", "dialect": "plain", "output_protocol": "jsonseq_v1"});
    // In groups, since the backlog of a listener is limited.
    let mut streams = Vec::new();
    for _ in 0..STREAMS / 50 {
        streams.extend(futures_util::future::join_all((0..50).map(|_| server.stream(&ask))).await);
    }
    assert!(streams.iter().all(|stream| stream.status == 200));
    mock.until(|calls| calls.begun == STREAMS && calls.over == 0).await;
    // Every reader has all that was written before the first run may continue.
    let mut events = futures_util::future::join_all(streams.iter_mut().map(|stream| async {
        let mut events = stream.until("final_delta").await;
        while !text(&events, "final_delta").contains("piece 19") {
            events.push(stream.event().await.unwrap());
        }
        events
    }))
    .await;
    assert_eq!(server.metric("tambour_running").await, STREAMS as u64);
    let held = apart.memory();
    gate.open();
    for (stream, events) in streams.iter_mut().zip(&mut events) {
        events.extend(stream.rest().await);
        check(events);
        assert!(text(events, "final_delta").ends_with("the end"));
    }
    let ids: std::collections::HashSet<String> = events.iter().map(|events| message(events)).collect();
    assert_eq!(ids.len(), STREAMS);
    server.until_metric("tambour_running", 0).await;
    if let (Some(before), Some(held)) = (before, held) {
        let each = held.saturating_sub(before) / STREAMS as u64;
        eprintln!("{STREAMS} streams: {:?}, {each} KiB a stream", started.elapsed());
        assert!(each < 300, "{each} KiB a stream");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_stalls_holds_nobody() {
    const PIECES: usize = 500;
    let piece = "four kilobytes of it ".repeat(200);
    let (flood, more) = (Gate::new(), Gate::new());
    let mut script = vec![delta("start "), Step::Wait(flood.clone())];
    let mut first = vec![delta(&piece); PIECES];
    first.extend(finish("stop"));
    script.extend(std::iter::repeat_n(delta(&piece), PIECES));
    script.push(Step::Wait(more.clone()));
    script.extend(finish("stop"));
    let mock = Mock::start(vec![first.clone(), first, script]).await;
    let apart = ServerProcess::start(&mock, false);
    let server = &apart.server;
    let ask = json!({"text": "x", "dialect": "plain", "output_protocol": "jsonseq_v1"});
    // Memory of a flood without stalled readers.
    let (one, two) = (server.stream(&ask).await, server.stream(&ask).await);
    tokio::join!(one.whole(), two.whole());
    let mut good = server.stream(&ask).await;
    let mut events = good.until("final_delta").await;
    let id = message(&events);
    // Twenty stalled readers of the same message, and one stalled reader of a message of its own.
    let mut stalled = Vec::new();
    for _ in 0..20 {
        stalled.push(server.follow(&id, &[]).await);
    }
    let alone = server.stream(&ask).await;
    let before = apart.memory();
    flood.open();
    let mut length = 0;
    while length < PIECES * piece.len() {
        let event = within(good.event()).await.unwrap();
        length += event.data["text"].as_str().map_or(0, str::len);
        events.push(event);
    }
    if let Some(before) = before {
        let each = || apart.memory().map_or(0, |held| held.saturating_sub(before) / 21);
        eprintln!("a stalled reader: {} KiB", each());
        // Memory of pending database writes is not theirs, and freed in a moment.
        within(async {
            while each() >= 512 {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        })
        .await;
    }
    more.open();
    events.extend(good.rest().await);
    check(&events);
    // The message with only a stalled reader reaches its end, too.
    server.until_metric("tambour_running", 0).await;
    // One stalled reader resumes and has missed nothing.
    let mut late = stalled.pop().unwrap();
    let got = late.rest().await;
    assert!(late.over);
    check(&got);
    assert_eq!(crate::client::numbered(&got), crate::client::numbered(&events)); // J-036
    drop(alone);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_stalls_after_the_end_is_cut_off() {
    let mut script = vec![delta(&"a piece of four kilobytes ".repeat(160)); 3000];
    script.extend(finish("stop"));
    let mock = Mock::start(vec![script]).await;
    let server = Tambour::start(&mock, |config| config.reader_idle_ms = 300).await;
    let body = r#"{"text": "x", "dialect": "plain", "output_protocol": "jsonseq_v1", "stream": true}"#;
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    // A small receive buffer of the system.
    socket.set_recv_buffer_size(4 << 10).unwrap();
    let mut stalled = within(socket.connect(server.address)).await.unwrap();
    let length = body.len();
    let head = format!(
        "POST /api/v1/messages HTTP/1.1\r\nhost: {}\r\ncontent-length: {length}\r\n\r\n",
        server.address
    );
    stalled.write_all((head + body).as_bytes()).await.unwrap();
    server.until_metric("tambour_messages_total", 1).await;
    server.until_metric("tambour_running", 0).await;
    // A reader that does not read is disconnected; only the bytes sent before that arrive.
    server.until_metric("tambour_streams_open", 0).await;
    let mut got = Vec::new();
    let _ = within(stalled.read_to_end(&mut got)).await;
    assert!(!String::from_utf8_lossy(&got).contains("event: completed"), "it was cut off before the end");
    // The reader resumes with its cursor, after the last event it had.
    let got = String::from_utf8_lossy(&got);
    let (_, cursor) = got.rsplit_once("\nid: ").expect("events with numbers");
    let cursor = cursor.lines().next().filter(|cursor| !cursor.is_empty()).expect("a number");
    let id = got.split("\"message_id\":\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let mut rest = server.follow(&id, &[("last-event-id", cursor)]).await;
    assert_eq!(rest.until("final_delta").await.last().unwrap().data["message_id"], id.as_str());
}

#[tokio::test]
async fn connections_that_do_nothing_or_nonsense_disturb_nobody() {
    let mock = Mock::start(vec![crate::mock::reply("Four.", 2)]).await;
    let server = Tambour::with(&mock).await;
    let mut idle = Vec::new();
    for bytes in [
        &b""[..],
        b"GET",
        b"\x16\x03\x01\x02\x00",
        b"POST /api/v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 100\r\n\r\n{",
    ] {
        let mut socket = within(tokio::net::TcpStream::connect(server.address)).await.unwrap();
        within(socket.write_all(bytes)).await.unwrap();
        idle.push(socket);
    }
    let ask = json!({"text": "x", "dialect": "plain", "output_protocol": "jsonseq_v1"});
    assert_eq!(text(&server.stream(&ask).await.whole().await, "final_delta"), "Four.");
    drop(idle);
    assert_eq!(server.get("/healthz").await.status, 200);
}
