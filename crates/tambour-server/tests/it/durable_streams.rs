//! Durable Streams: the same messages for every way of reading them, from every offset, live and later.

use std::time::Duration;

use serde_json::{Value, json};
use tambour_server::store::{Batch, MessageRow, SqliteStore, Store as _};

use crate::client::{Event, EventStream, numbered_events, stream_message_id};
use crate::mock::{GOOD_REPLY, Gate, MockServer, Step, delta_step, finish_steps, reply_script};
use crate::server::{Answer, TestServer, test_config, with_timeout};

const BEGINNING: &str = "00000000000000000000";

/// One data event of Server-Sent Events, and the control event that followed it.
#[derive(Debug, Default)]
struct Frames {
    /// Data of `data` events.
    data: Vec<String>,
    controls: Vec<Value>,
}

/// Parses Server-Sent Events as the protocol wants them: a control event after each data event.
fn parse_frames(text: &str) -> Frames {
    let mut frames = Frames::default();
    let mut needs_control = false;
    for frame in text.split("\n\n").filter(|frame| !frame.is_empty() && !frame.starts_with(':')) {
        let (name, lines) = frame.split_once('\n').unwrap();
        let lines = lines.split('\n').map(|line| line.strip_prefix("data:").expect("a data line"));
        let lines: Vec<&str> = lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect();
        if name == "event: data" {
            assert!(!needs_control, "{text}");
            frames.data.push(lines.join("\n"));
        } else {
            assert_eq!(name, "event: control");
            frames.controls.push(serde_json::from_str(&lines.join("\n")).unwrap());
        }
        needs_control = name == "event: data";
    }
    assert!(!needs_control, "{text}");
    frames
}

impl Frames {
    fn messages(&self) -> Vec<Value> {
        let lists = self.data.iter().map(|data| serde_json::from_str::<Vec<Value>>(data).unwrap());
        lists.flatten().collect()
    }

    fn is_closed(&self) -> bool {
        let is_closed = |control: &Value| control["streamClosed"] == true;
        assert!(self.controls.iter().rev().skip(1).all(|control| !is_closed(control)), "{self:?}");
        self.controls.last().is_some_and(is_closed)
    }
}

impl Answer {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    fn next_offset(&self) -> String {
        self.header("stream-next-offset").expect("the next offset").to_owned()
    }

    fn is_closed(&self) -> bool {
        self.header("stream-closed") == Some("true")
    }

    fn is_up_to_date(&self) -> bool {
        self.header("stream-up-to-date") == Some("true")
    }

    fn messages(&self) -> Vec<Value> {
        self.json.as_array().expect("a list").clone()
    }
}

fn offset_of(message: &Value) -> String {
    format!("{:020}", message["id"].as_u64().unwrap())
}

fn path(id: &str, query: &str) -> String {
    format!("/api/v1/messages/{id}/stream?{query}")
}

async fn read(server: &TestServer, id: &str, query: &str) -> Answer {
    server.get(&path(id, query)).await
}

/// Reads a closed stream by Server-Sent Events.
async fn read_frames(server: &TestServer, id: &str, query: &str) -> Frames {
    let frames = parse_frames(&server.begin_get(&path(id, query)).await.into_text().await);
    assert!(frames.is_closed(), "{frames:?}");
    frames
}

async fn start_message(server: &TestServer, request: &Value) -> String {
    let acceptance = server.post("/api/v1/messages", request).await;
    acceptance.json["message_id"].as_str().unwrap().to_owned()
}

/// Waits by long polls until the stream has grown to that many messages.
async fn wait_messages(
    server: &TestServer,
    id: &str,
    query: &str,
    mut done: impl FnMut(&str) -> bool,
) -> String {
    let (mut offset, mut text) = ("-1".to_owned(), String::new());
    with_timeout(async {
        while !done(&text) {
            let answer = read(server, id, &format!("offset={offset}&live=long-poll&{query}")).await;
            assert!(matches!(answer.status, 200 | 204), "{}", answer.text);
            offset = answer.next_offset();
            text.push_str(&answer.text);
        }
    })
    .await;
    offset
}

fn request_body(protocol: &str) -> Value {
    json!({"text": "x", "dialect": "thinkingml", "output_protocol": protocol, "extensions": true, "findings": true})
}

fn plain_request() -> Value {
    json!({"text": "x", "dialect": "plain", "output_protocol": "jsonseq_v1"})
}

/// A reply in these pieces, which ends when the gate is open.
fn gated_script(pieces: &[&str], gate: &Gate) -> Vec<Step> {
    let mut script: Vec<Step> = pieces.iter().map(|piece| delta_step(piece)).collect();
    script.push(Step::Wait(gate.clone()));
    script.extend(finish_steps("stop"));
    script
}

/// Messages of events, as a stream has them.
fn messages_of(events: &[Event]) -> Vec<Value> {
    let message = |event: &Event| json!({"id": event.id, "event": event.name, "data": event.data});
    numbered_events(events).iter().map(message).collect()
}

async fn any_division_gives_the_same(protocol: &str, view: &str) {
    let gate = Gate::new();
    let mut script = reply_script(GOOD_REPLY, 11);
    script.insert(script.len() / 2, Step::Wait(gate.clone()));
    let mock = MockServer::start(vec![script]).await;
    let server = TestServer::start_default(&mock).await;
    let id = start_message(&server, &request_body(protocol)).await;
    // Live readers from the beginning, one of them waiting at each tail.
    let live = server.begin_get(&path(&id, &format!("offset=-1&live=sse&{view}"))).await;
    let open = read(&server, &id, view).await;
    assert!(!open.is_closed() && open.is_up_to_date());
    gate.open();
    let live = parse_frames(&live.into_text().await);
    assert!(live.is_closed());
    server.wait_ended(&id).await;
    let whole = read(&server, &id, view).await;
    assert!(whole.is_closed() && whole.is_up_to_date());
    if view == "view=text" {
        assert_eq!(whole.text, GOOD_REPLY);
        assert_eq!(live.data.concat(), GOOD_REPLY);
    } else {
        let events = server.follow(&id, &[]).await.read_checked().await;
        assert_eq!(whole.messages(), messages_of(&events)); // J-036
        assert_eq!(live.messages(), whole.messages());
    }
    // Offsets of all messages, which are those of the view.
    let events = read(&server, &id, "").await.messages();
    for offset in std::iter::once(BEGINNING.to_owned()).chain(events.iter().map(offset_of)) {
        let rest = read(&server, &id, &format!("offset={offset}&{view}")).await;
        assert_eq!((rest.status, rest.is_closed()), (200, true));
        assert_eq!(rest.text, read(&server, &id, &format!("offset={offset}&{view}")).await.text);
        let polled = read(&server, &id, &format!("offset={offset}&live=long-poll&{view}")).await;
        let frames = read_frames(&server, &id, &format!("offset={offset}&live=sse&{view}")).await;
        assert_eq!(frames.controls[0].get("streamCursor"), None);
        if view == "view=text" {
            assert!(GOOD_REPLY.ends_with(&rest.text));
            assert_eq!(frames.data.concat(), rest.text);
        } else {
            let expected: Vec<&Value> = events.iter().filter(|message| offset_of(message) > offset).collect();
            assert_eq!(rest.messages().iter().collect::<Vec<_>>(), expected);
            assert_eq!(frames.messages(), rest.messages());
        }
        let has_rest = !matches!(rest.text.as_str(), "" | "[]");
        assert_eq!(polled.status, if has_rest { 200 } else { 204 }, "{offset}");
        assert_eq!(polled.text, if has_rest { rest.text.as_str() } else { "" });
        assert!(polled.is_closed() && polled.is_up_to_date());
        assert!(polled.next_offset() >= offset);
    }
}

#[tokio::test]
async fn any_division_of_events_gives_the_same() {
    any_division_gives_the_same("jsonseq_v1", "view=events").await;
}

#[tokio::test]
async fn any_division_of_legacy_events_gives_the_same() {
    any_division_gives_the_same("legacy", "").await;
}

#[tokio::test]
async fn any_division_of_the_text_gives_the_same() {
    any_division_gives_the_same("jsonseq_v1", "view=text").await;
}

#[tokio::test]
async fn a_stream_grows_and_closes() {
    let (second, end) = (Gate::new(), Gate::new());
    let mut script =
        vec![delta_step("one "), Step::Wait(second.clone()), delta_step("two"), Step::Wait(end.clone())];
    script.extend(finish_steps("stop"));
    let mock = MockServer::start(vec![script]).await;
    let server = TestServer::start(&mock, |config| config.heartbeat_ms = 50).await;
    let id = start_message(&server, &plain_request()).await;
    let tail = wait_messages(&server, &id, "view=text", |text| text == "one ").await;
    // Everything at the tail of an open stream.
    let head = server.call("head", &path(&id, "view=text"), None).await;
    let now = read(&server, &id, "offset=now&view=text").await;
    let at_tail = read(&server, &id, &format!("offset={tail}&view=text")).await;
    for answer in [&head, &now, &at_tail] {
        assert_eq!((answer.status, answer.text.as_str(), answer.next_offset()), (200, "", tail.clone()));
        assert!(answer.is_up_to_date() && !answer.is_closed());
    }
    assert_eq!(read(&server, &id, "offset=now").await.text, "[]");
    // A quiet long poll ends by itself.
    let quiet = read(&server, &id, &format!("offset={tail}&live=long-poll&view=text")).await;
    assert_eq!((quiet.status, quiet.next_offset()), (204, tail.clone()));
    assert!(quiet.is_up_to_date() && !quiet.is_closed());
    let live = server.begin_get(&path(&id, "offset=now&live=sse&view=text")).await;
    second.open();
    let later = wait_messages(&server, &id, "view=text", |text| text.ends_with("two")).await;
    assert!(later > tail);
    assert_eq!(read(&server, &id, &format!("offset={tail}&view=text")).await.text, "two");
    let poll_path = path(&id, &format!("offset={later}&live=long-poll&view=text"));
    end.open();
    // Nothing more comes, and the end is told.
    let closed = with_timeout(async {
        loop {
            let answer = server.get(&poll_path).await;
            assert_eq!((answer.status, answer.next_offset()), (204, later.clone()));
            if answer.is_closed() {
                return answer;
            }
        }
    })
    .await;
    assert!(closed.is_up_to_date());
    let frames = parse_frames(&live.into_text().await);
    assert_eq!(frames.data, ["two"]);
    assert!(frames.is_closed());
    assert_eq!(frames.controls[0]["streamNextOffset"], tail);
    assert_eq!(frames.controls[0]["upToDate"], true);
    assert!(frames.controls[0]["streamCursor"].as_str().unwrap().parse::<u64>().is_ok());
}

#[tokio::test]
async fn a_quiet_stream_has_comments() {
    let gate = Gate::new();
    let mock = MockServer::start(vec![gated_script(&["on"], &gate)]).await;
    let server = TestServer::start(&mock, |config| config.heartbeat_ms = 20).await;
    let id = start_message(&server, &plain_request()).await;
    let live_path = path(&id, "offset=-1&live=sse");
    let mut live = EventStream::open(server.address, "GET", &live_path, &[], None).await;
    let mut bytes = Vec::new();
    while memchr::memmem::find_iter(&bytes, b": heartbeat\n\n").count() < 3 {
        use tokio::io::AsyncReadExt;
        assert!(with_timeout(live.socket.read_buf(&mut bytes)).await.unwrap() > 0);
    }
    gate.open();
    assert!(live.read_rest_text().await.contains("\"streamClosed\":true"));
}

#[tokio::test]
async fn lines_of_a_text_are_the_same_wherever_it_is_divided() {
    let gate = Gate::new();
    let pieces = [" a\r", "\nb\rc", "\n\n d\r\n", "  e", "\r", "\r", "f\n", "g\\r", "\nh"];
    let mock = MockServer::start(vec![gated_script(&pieces, &gate)]).await;
    let server = TestServer::start_default(&mock).await;
    let id = start_message(&server, &plain_request()).await;
    let whole = pieces.concat();
    let mut offsets = vec![(BEGINNING.to_owned(), 0)];
    wait_messages(&server, &id, "view=text", |text| text == whole).await;
    gate.open();
    server.wait_ended(&id).await;
    assert_eq!(read(&server, &id, "view=text").await.text, whole);
    // Every number is an offset, those of other entries too.
    let tail = read(&server, &id, "").await.next_offset().parse::<u64>().unwrap();
    for number in 1..=tail {
        let offset = format!("{number:020}");
        let rest = read(&server, &id, &format!("offset={offset}&view=text")).await.text;
        let is_start = offsets.last().unwrap().1 < whole.len() - rest.len();
        if is_start {
            offsets.push((offset, whole.len() - rest.len()));
        }
    }
    let line_ends = |text: &str| text.replace("\r\n", "\n").replace('\r', "\n");
    for (offset, start) in offsets {
        let frames = read_frames(&server, &id, &format!("offset={offset}&live=sse&view=text")).await;
        let joined = line_ends(&whole[..start]) + &frames.data.concat();
        assert_eq!(joined, line_ends(&whole), "{offset}");
    }
}

#[tokio::test]
async fn hostile_queries_are_refused() {
    let gate = Gate::new();
    let mock = MockServer::start(vec![gated_script(&["on"], &gate), reply_script("Four.", 2)]).await;
    let server = TestServer::start(&mock, |config| config.heartbeat_ms = 20).await;
    let running = start_message(&server, &plain_request()).await;
    wait_messages(&server, &running, "view=text", |text| text == "on").await;
    let ended = start_message(&server, &plain_request()).await;
    server.wait_ended(&ended).await;
    let offsets = [
        "",
        "0",
        "1",
        "-2",
        "-1x",
        "NOW",
        "0,1",
        "0%201",
        "+1",
        "../x",
        "1%00",
        "%0A",
        "%FF",
        "0x1",
        "1e3",
        "0000000000000000000x",
        "99999999999999999999",
        "00000000000000001000",
        "000000000000000000001",
        "0000000000000000000%EF%BC%91",
        "18446744073709551615",
        "18446744073709551616",
    ];
    for id in [&running, &ended] {
        for offset in offsets {
            for live in ["", "&live=long-poll", "&live=sse", "&view=text"] {
                let answer = read(&server, id, &format!("offset={offset}{live}")).await;
                assert_eq!(
                    (answer.status, answer.problem_code()),
                    (400, "malformed_cursor"),
                    "{offset}{live}"
                );
                assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
            }
        }
        let long = "9".repeat(5000);
        assert_eq!(read(&server, id, &format!("offset={long}")).await.problem_code(), "malformed_cursor");
        for query in [
            "live=sse",
            "live=long-poll",
            "live=",
            "live=x&offset=-1",
            "view=",
            "view=json",
            "offset=-1&offset=-1",
            "offset=now&live=sse&live=sse",
            "view=text&view=text",
            "cursor=1&cursor=2",
        ] {
            let answer = read(&server, id, query).await;
            assert_eq!((answer.status, answer.problem_code()), (400, "malformed_request"), "{query}");
        }
        for cursor in ["", "x", "-1", "1.5", "0", "18446744073709551615", "99999999999999999999999", "%00"] {
            let answer =
                read(&server, id, &format!("offset=-1&live=long-poll&cursor={cursor}&foo=bar")).await;
            assert_eq!(answer.status, 200, "{cursor}");
            assert!(answer.header("stream-cursor").unwrap().parse::<u64>().unwrap() > 0);
        }
        let first = read(&server, id, "offset=-1&live=long-poll").await;
        let cursor: u64 = first.header("stream-cursor").unwrap().parse().unwrap();
        let second = read(&server, id, &format!("offset=-1&live=long-poll&cursor={cursor}")).await;
        assert!(second.header("stream-cursor").unwrap().parse::<u64>().unwrap() > cursor);
    }
    for live in ["", "&live=long-poll", "&live=sse"] {
        let unknown = read(&server, "msg_0", &format!("offset=now{live}")).await;
        assert_eq!((unknown.status, unknown.problem_code()), (404, "not_found"));
    }
    assert_eq!(server.call("head", &path("msg_0", ""), None).await.status, 404);
    gate.open();
}

#[tokio::test]
async fn a_long_log_is_read_in_chunks_that_caches_can_check() {
    let gate = Gate::new();
    let words: Vec<String> = (0..20_000).map(|n| format!("word{n} ")).collect();
    let pieces: Vec<String> = words.chunks(50).map(<[String]>::concat).collect();
    let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
    let mock = MockServer::start(vec![gated_script(&pieces, &gate)]).await;
    let server = TestServer::start_default(&mock).await;
    let id = start_message(&server, &plain_request()).await;
    let whole = words.concat();
    wait_messages(&server, &id, "view=text", |text| text.len() == whole.len()).await;
    let read_chunks = async |is_ended: bool| {
        let (mut offset, mut chunks) = ("-1".to_owned(), Vec::new());
        loop {
            let answer = read(&server, &id, &format!("offset={offset}&view=text")).await;
            assert!(answer.text.len() < 70_000 && answer.next_offset() > offset);
            assert!(!answer.is_closed() || (is_ended && answer.is_up_to_date()));
            assert_eq!(answer.header("cache-control"), Some("private, no-cache"));
            let tag = answer.header("etag").unwrap().to_owned();
            let chunk_path = path(&id, &format!("offset={offset}&view=text"));
            for (named, status) in
                [(tag.clone(), 304), (format!("\"x\", W/{tag}"), 304), ("\"x\"".to_owned(), 200)]
            {
                let again = server.call_with("get", &chunk_path, None, &[("if-none-match", &named)]).await;
                assert_eq!((again.status, again.next_offset()), (status, answer.next_offset()));
                assert_eq!(again.text.is_empty(), status == 304);
            }
            offset = answer.next_offset();
            let is_last = answer.is_up_to_date();
            chunks.push((answer.text, tag));
            if is_last {
                return chunks;
            }
        }
    };
    let open = read_chunks(false).await;
    assert!(open.len() > 2);
    gate.open();
    server.wait_ended(&id).await;
    let closed = read_chunks(true).await;
    let texts = |chunks: &[(String, String)]| chunks.iter().map(|(text, _)| text.clone()).collect::<Vec<_>>();
    assert_eq!(texts(&open), texts(&closed));
    assert_eq!(texts(&closed).concat(), whole);
    // Only the last one has another end.
    let tags = |chunks: &[(String, String)]| chunks.iter().map(|(_, tag)| tag.clone()).collect::<Vec<_>>();
    assert_eq!(tags(&open)[..open.len() - 1], tags(&closed)[..closed.len() - 1]);
    assert_ne!(tags(&open).last(), tags(&closed).last());
    let frames = read_frames(&server, &id, "offset=-1&live=sse&view=text").await;
    assert_eq!(frames.data, texts(&closed));
}

#[tokio::test]
async fn responses_are_private_and_of_their_type() {
    let mock = MockServer::start(vec![reply_script("Four.", 2)]).await;
    let server =
        TestServer::start(&mock, |config| config.cors_origins = vec!["https://example.com".to_owned()]).await;
    let id = start_message(&server, &plain_request()).await;
    server.wait_ended(&id).await;
    for (method, query, kind, caching) in [
        ("get", "", "application/json", "private, no-cache"),
        ("get", "view=text", "text/plain; charset=utf-8", "private, no-cache"),
        ("head", "", "application/json", "no-store"),
        ("head", "view=text", "text/plain; charset=utf-8", "no-store"),
        ("get", "offset=now", "application/json", "no-store"),
        ("get", "offset=-1&live=long-poll", "application/json", "no-store"),
        ("get", "offset=-1&live=sse", "text/event-stream", "private, no-cache, no-transform"),
    ] {
        let answer = server.call(method, &path(&id, query), None).await;
        assert_eq!((answer.status, answer.header("content-type")), (200, Some(kind)), "{method} {query}");
        assert_eq!(answer.header("cache-control"), Some(caching), "{method} {query}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("cross-origin-resource-policy"), Some("same-origin"));
        assert_eq!(method == "head", answer.text.is_empty());
    }
    // Pages of configured sites see the headers of the protocol, and may send those of conditional reads.
    let origin = [("origin", "https://example.com")];
    let shown = server.call_with("get", &path(&id, ""), None, &origin).await;
    let exposed = shown.header("access-control-expose-headers").unwrap();
    for name in ["stream-next-offset", "stream-up-to-date", "stream-closed", "stream-cursor", "etag"] {
        assert!(exposed.split(", ").any(|exposed| exposed == name), "{name}: {exposed}");
    }
    let preflight = [origin[0], ("access-control-request-method", "GET")];
    let preflight = server.call_with("options", &path(&id, ""), None, &preflight).await;
    assert!(preflight.header("access-control-allow-headers").unwrap().contains("if-none-match"));
    for method in ["post", "put", "delete", "patch"] {
        let answer = server.call(method, &path(&id, ""), None).await;
        assert_eq!((answer.status, answer.problem_code()), (405, "method_not_allowed"));
    }
}

#[tokio::test]
async fn live_reads_count_as_streams() {
    for (owner_limit, total_limit, refusal) in
        [(1, 10, (429, "too_many_streams")), (10, 1, (503, "server_full"))]
    {
        let gate = Gate::new();
        let mock = MockServer::start(vec![gated_script(&["on"], &gate)]).await;
        let server = TestServer::start(&mock, |config| {
            (config.max_streams, config.max_streams_total) = (owner_limit, total_limit);
        })
        .await;
        let id = start_message(&server, &plain_request()).await;
        let live = server.begin_get(&path(&id, "offset=-1&live=sse")).await;
        for mode in ["sse", "long-poll"] {
            let answer = read(&server, &id, &format!("offset=-1&live={mode}")).await;
            assert_eq!((answer.status, answer.problem_code()), refusal);
            assert_eq!(answer.header("retry-after"), Some("1"));
        }
        assert_eq!(read(&server, &id, "offset=-1").await.status, 200);
        gate.open();
        assert!(parse_frames(&live.into_text().await).is_closed());
        server.wait_for_metric("tambour_streams_open", 0).await;
        assert_eq!(read(&server, &id, "offset=-1&live=long-poll").await.status, 200);
    }
}

#[tokio::test]
async fn only_live_reads_are_readers() {
    let gate = Gate::new();
    let on = || vec![delta_step("on"), Step::WaitDisconnect];
    let mock = MockServer::start(vec![gated_script(&["on"], &gate), on(), on()]).await;
    let server = TestServer::start(&mock, |config| config.grace_ms = 0).await;
    let id = start_message(&server, &plain_request()).await;
    for query in ["", "offset=now", "view=text"] {
        assert_eq!(read(&server, &id, query).await.status, 200);
        assert_eq!(server.call("head", &path(&id, query), None).await.status, 200);
    }
    assert_eq!(read(&server, &id, "offset=x&live=sse").await.status, 400);
    gate.open();
    assert_eq!(server.wait_ended(&id).await["status"], "completed");
    // A live reader that leaves ends the message.
    let id = start_message(&server, &plain_request()).await;
    drop(server.begin_get(&path(&id, "offset=-1&live=sse")).await);
    assert_eq!(server.wait_ended(&id).await["status"], "cancelled");
    let id = start_message(&server, &plain_request()).await;
    wait_messages(&server, &id, "view=text", |text| text == "on").await;
    assert_eq!(server.wait_ended(&id).await["status"], "cancelled");
    let end = read(&server, &id, "").await;
    assert!(end.is_closed());
    assert_eq!(end.messages().last().unwrap()["data"]["finish_reason"], "cancelled");
}

#[tokio::test]
async fn a_removed_key_ends_live_reads() {
    let gate = Gate::new();
    let mock = MockServer::start(vec![gated_script(&["on"], &gate)]).await;
    let mut server = TestServer::start_default(&mock).await;
    let admin = server.post("/api/v1/keys", &json!({"name": "a", "rights": "admin"})).await.json;
    let admin_key = admin["key"].as_str().unwrap();
    server.set_key(Some(admin_key));
    let plain = server.post("/api/v1/keys", &json!({"name": "b"})).await.json;
    server.set_key(plain["key"].as_str());
    let id = start_message(&server, &plain_request()).await;
    let tail = wait_messages(&server, &id, "", |text| text.contains("on")).await;
    let token = server.post(&format!("/api/v1/messages/{id}/stream_tokens"), &json!({})).await.json;
    let token = token["token"].as_str().unwrap();
    let key_header = [("authorization".to_owned(), format!("Bearer {}", plain["key"].as_str().unwrap()))];
    let live_path = path(&id, "offset=-1&live=sse");
    let mut live = EventStream::open(server.address, "GET", &live_path, &key_header, None).await;
    // A token is enough for the stream of its message.
    let token_path = path(&id, &format!("offset=-1&live=sse&token={token}"));
    let mut by_token = EventStream::open(server.address, "GET", &token_path, &[], None).await;
    assert_eq!((live.status, by_token.status), (200, 200));
    server.set_key(None);
    assert_eq!(read(&server, &id, &format!("token={token}")).await.status, 200);
    assert_eq!(read(&server, "msg_0", &format!("token={token}")).await.status, 401);
    // Another owner finds nothing.
    server.set_key(Some(admin_key));
    assert_eq!(read(&server, &id, "").await.problem_code(), "not_found");
    server.set_key(None);
    let plain_header = format!("Bearer {}", plain["key"].as_str().unwrap());
    let admin_header = format!("Bearer {admin_key}");
    let poll_path = path(&id, &format!("offset={tail}&live=long-poll"));
    let plain_headers = [("authorization", plain_header.as_str())];
    let poll = server.call_with("get", &poll_path, None, &plain_headers);
    let removal = async {
        server.wait_for_metric("tambour_streams_open", 3).await;
        let key_path = format!("/api/v1/keys/{}", plain["id"].as_str().unwrap());
        server.call_with("delete", &key_path, None, &[("authorization", &admin_header)]).await
    };
    let (poll, removal) = tokio::join!(poll, removal);
    assert_eq!(removal.status, 204);
    assert_eq!((poll.status, poll.problem_code()), (401, "unauthorized"));
    for stream in [&mut live, &mut by_token] {
        let text = stream.read_rest_text().await;
        assert!(text.contains("upToDate") && !text.contains("streamClosed"), "{text}");
    }
    let refused = server.call_with("get", &path(&id, ""), None, &plain_headers).await;
    assert_eq!((refused.status, refused.problem_code()), (401, "unauthorized"));
    gate.open();
}

#[tokio::test]
async fn a_message_of_a_crashed_server_ends_with_an_error() {
    let mock = MockServer::start(vec![reply_script("x", 1)]).await;
    let folder = TestServer::start_default(&mock).await.stop().await;
    let config = test_config(&folder);
    let store = SqliteStore::open(&config.database_file().unwrap(), false).await.unwrap();
    // One whose run was left behind, and one that counts as over although its log has no end.
    for (id, status) in [("msg_left", "running"), ("msg_damaged", "completed")] {
        let row = MessageRow {
            id: id.to_owned(),
            conversation_id: format!("conv_{id}"),
            request_id: "req".to_owned(),
            owner: "local".to_owned(),
            status: status.to_owned(),
            request: plain_request().to_string(),
            ..MessageRow::default()
        };
        let mut lease = crate::journal::begin(&store, &row).await;
        let mut batch = Batch::new(1);
        batch.push_raw(1, "half");
        batch.push_event("final_delta", |out| out.extend_from_slice(b"{\"text\":\"half\"}"));
        lease.append(batch).await.into_result().unwrap();
        drop(lease);
    }
    store.close().await;
    let server = TestServer::serve(folder, config).await;
    server.wait_ended("msg_left").await;
    let seen = format!("{:020}", 2);
    let frames = read_frames(&server, "msg_left", &format!("offset={seen}&live=sse")).await;
    let messages = frames.messages();
    let end = messages.last().unwrap();
    assert_eq!((&end["event"], &end["data"]["code"]), (&json!("error"), &json!("interrupted"))); // J-035
    let rest = read(&server, "msg_left", &format!("offset={seen}")).await;
    assert!(rest.is_closed());
    assert_eq!(rest.messages(), messages);
    let text = read(&server, "msg_left", "view=text").await;
    assert_eq!((text.text.as_str(), text.is_closed()), ("half", true));
    // A client that has seen more than the store still has gets the error that ends the log.
    let beyond = format!("{:020}", end["id"].as_u64().unwrap() + 7);
    let last = read(&server, "msg_left", &format!("offset={beyond}")).await;
    assert_eq!((last.status, last.is_closed()), (200, true));
    assert_eq!(last.messages(), messages[messages.len() - 1..]);
    // A damaged log is no quiet success.
    let damaged = read(&server, "msg_damaged", "").await;
    assert_eq!((damaged.status, damaged.messages().len()), (200, 1));
    assert!(!damaged.is_closed() && !damaged.is_up_to_date());
    let rest = read(&server, "msg_damaged", &format!("offset={}", damaged.next_offset())).await;
    assert_eq!((rest.status, rest.problem_code()), (500, "damaged"));
    let mut live =
        EventStream::open(server.address, "GET", &path("msg_damaged", "offset=-1&live=sse"), &[], None).await;
    let text = live.read_rest_text().await;
    assert!(
        text.contains("half") && !text.contains("streamClosed") && !text.ends_with("0\r\n\r\n"),
        "{text}"
    );
}

#[tokio::test]
async fn a_stopping_server_closes_its_streams() {
    let mock = MockServer::start(vec![vec![delta_step("on"), Step::WaitDisconnect]]).await;
    let mut server = TestServer::start(&mock, |config| config.drain_ms = 50).await;
    let id = start_message(&server, &plain_request()).await;
    let live = server.begin_get(&path(&id, "offset=-1&live=sse")).await;
    wait_messages(&server, &id, "view=text", |text| text == "on").await;
    server.request_stop();
    let frames = parse_frames(&live.into_text().await);
    assert!(frames.is_closed());
    assert_eq!(frames.messages().last().unwrap()["data"]["code"], "interrupted"); // J-035
    server.stop().await;
}

#[tokio::test]
async fn a_deleted_message_is_gone() {
    let gate = Gate::new();
    let mock = MockServer::start(vec![gated_script(&["on"], &gate)]).await;
    let server = TestServer::start(&mock, |config| config.heartbeat_ms = 60_000).await;
    let id = start_message(&server, &plain_request()).await;
    let tail = wait_messages(&server, &id, "", |text| text.contains("on")).await;
    let poll_path = path(&id, &format!("offset={tail}&live=long-poll"));
    let deletion = async {
        server.wait_for_metric("tambour_streams_open", 1).await;
        server.call("delete", &format!("/api/v1/messages/{id}"), None).await
    };
    let (poll, deletion) = tokio::join!(server.get(&poll_path), deletion);
    assert_eq!(deletion.status, 204);
    // The end of the cancelled message, or nothing, depending on which was seen first.
    assert!(matches!(poll.status, 200 | 404), "{} {}", poll.status, poll.text);
    assert_eq!(read(&server, &id, "").await.problem_code(), "not_found");
}

#[tokio::test]
async fn turns_are_streams_too() {
    let mock = MockServer::start(vec![reply_script("x", 1)]).await;
    let server = TestServer::start_default(&mock).await;
    let script = json!({"name": "s", "yaml": "sessions: [{session: s, phases: []}]"});
    let script = server.post("/api/v1/scripts", &script).await.json;
    let dialogue = server.post("/api/v1/dialogues", &json!({"script_id": script["script_id"]})).await.json;
    let dialogue = dialogue["dialogue_id"].as_str().unwrap();
    let input = format!("/api/v1/dialogues/{dialogue}/input");
    let input_body = json!({"text": "x", "stream": true}).to_string();
    let mut stream = EventStream::open(server.address, "POST", &input, &[], Some(&input_body)).await;
    let events = stream.read_rest().await;
    let turn = stream_message_id(&events);
    let turn_path = format!("/api/v1/dialogues/{dialogue}/turns/{turn}/stream");
    let whole = server.get(&turn_path).await;
    assert!(whole.is_closed());
    let numbered: Vec<Value> =
        whole.messages().into_iter().filter(|message| message.get("id").is_some()).collect();
    assert_eq!(numbered, messages_of(&events));
    let frames = server.begin_get(&format!("{turn_path}?offset=-1&live=sse")).await.into_text().await;
    assert_eq!(parse_frames(&frames).messages(), whole.messages());
    assert_eq!(server.call("head", &turn_path, None).await.next_offset(), whole.next_offset());
    for other in [format!("/api/v1/dialogues/dlg_0/turns/{turn}/stream"), turn_path.replace(&turn, "turn_0")]
    {
        assert_eq!(server.get(&other).await.problem_code(), "not_found");
    }
    // A turn is no message, and a message no turn.
    assert_eq!(read(&server, &turn, "").await.problem_code(), "not_found");
    tokio::time::timeout(Duration::from_secs(30), server.stop()).await.unwrap();
}
