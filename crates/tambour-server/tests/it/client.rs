//! A small client of event streams over raw TCP, which can stall, vanish and observe how a body ends.

use std::net::SocketAddr;

use serde_json::Value;
use tambour::contract::{StreamCheckOptions, TranscriptForm, check_transcript};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::server::with_timeout;

/// An event of the stream.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Event {
    pub(crate) id: Option<u64>,
    pub(crate) name: String,
    pub(crate) data: Value,
    /// Text of the frame.
    pub(crate) frame: String,
}

/// An open stream.
pub(crate) struct EventStream {
    pub(crate) socket: TcpStream,
    pub(crate) status: u16,
    pub(crate) head: String,
    /// Bytes of the body, still in chunked encoding.
    unread_chunks: Vec<u8>,
    /// Text of the body, not parsed into events yet.
    unparsed_text: Vec<u8>,
    /// True once the body has ended properly.
    pub(crate) has_ended: bool,
}

impl EventStream {
    pub(crate) async fn open(
        address: SocketAddr,
        method: &str,
        path: &str,
        headers: &[(String, String)],
        body: Option<&str>,
    ) -> EventStream {
        let mut socket = with_timeout(TcpStream::connect(address)).await.unwrap();
        let mut request = format!("{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n");
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        let body = body.unwrap_or("");
        request.push_str(&format!("content-length: {}\r\n\r\n{body}", body.len()));
        with_timeout(socket.write_all(request.as_bytes())).await.unwrap();
        let mut unread_chunks = Vec::new();
        let end = loop {
            if let Some(end) = unread_chunks.windows(4).position(|four| four == b"\r\n\r\n") {
                break end;
            }
            assert!(with_timeout(socket.read_buf(&mut unread_chunks)).await.unwrap() > 0, "an answer comes");
        };
        let head = String::from_utf8(unread_chunks[..end].to_vec()).unwrap().to_lowercase();
        unread_chunks.drain(..end + 4);
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        EventStream { socket, status, head, unread_chunks, unparsed_text: Vec::new(), has_ended: false }
    }

    /// Header of the response.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    /// Reads the next event; `None` when the body has ended, properly or not.
    pub(crate) async fn next_event(&mut self) -> Option<Event> {
        loop {
            if let Some(end) = memchr::memmem::find(&self.unparsed_text, b"\n\n") {
                let frame: Vec<u8> = self.unparsed_text.drain(..end + 2).collect();
                return Some(parse(String::from_utf8(frame).unwrap()));
            }
            if self.has_ended || !self.read_more().await {
                assert!(self.unparsed_text.is_empty(), "a frame is never left half sent");
                return None;
            }
        }
    }

    /// Reads up to an event of that name.
    pub(crate) async fn read_until(&mut self, name: &str) -> Vec<Event> {
        let mut events = Vec::new();
        while events.last().is_none_or(|event: &Event| event.name != name) {
            events.push(self.next_event().await.unwrap_or_else(|| panic!("`{name}` comes: {events:#?}")));
        }
        events
    }

    /// Reads all events to the end of the body.
    pub(crate) async fn read_rest(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(event) = self.next_event().await {
            events.push(event);
        }
        events
    }

    /// Reads the rest of the body as text.
    pub(crate) async fn read_rest_text(&mut self) -> String {
        let _ = with_timeout(self.socket.read_to_end(&mut self.unread_chunks)).await;
        String::from_utf8_lossy(&self.unread_chunks).into_owned()
    }

    /// Reads the next event of a server that may be killed; an incomplete frame counts as none.
    pub(crate) async fn next_event_or_cut(&mut self) -> Option<Event> {
        loop {
            if let Some(end) = memchr::memmem::find(&self.unparsed_text, b"\n\n") {
                let frame: Vec<u8> = self.unparsed_text.drain(..end + 2).collect();
                return Some(parse(String::from_utf8(frame).unwrap()));
            }
            if self.has_ended || !self.read_more().await {
                return None;
            }
        }
    }

    /// Reads a stream that must end properly, and checks it against the contract.
    pub(crate) async fn read_checked(mut self) -> Vec<Event> {
        let events = self.read_rest().await;
        assert!(self.has_ended, "the body ends well, and not behind {:?}", events.last());
        check_stream(&events);
        events
    }

    /// Reads more of the body; false at its end.
    async fn read_more(&mut self) -> bool {
        loop {
            if let Some(line) = memchr::memmem::find(&self.unread_chunks, b"\r\n") {
                let size = std::str::from_utf8(&self.unread_chunks[..line]).unwrap();
                let size = usize::from_str_radix(size, 16).unwrap();
                let (start, end) = (line + 2, line + 2 + size);
                if self.unread_chunks.len() >= end + 2 {
                    self.unparsed_text.extend_from_slice(&self.unread_chunks[start..end]);
                    self.unread_chunks.drain(..end + 2);
                    self.has_ended |= size == 0;
                    return true;
                }
            }
            match with_timeout(self.socket.read_buf(&mut self.unread_chunks)).await {
                Ok(length) if length > 0 => {}
                _ => return false,
            }
        }
    }
}

/// Parses a frame: at most one `id:`, one `event:` and one `data:` line, in that order, and nothing else (J-034).
fn parse(frame: String) -> Event {
    let mut lines = frame.trim_end_matches('\n').split('\n').peekable();
    let id = lines.next_if(|line| line.starts_with("id: ")).map(|line| line[4..].parse().unwrap());
    let name = lines.next().unwrap().strip_prefix("event: ").expect("an event line").to_owned();
    let data = lines.next().unwrap().strip_prefix("data: ").expect("a data line");
    let data: Value = serde_json::from_str(data).unwrap();
    assert_eq!(lines.next(), None, "{frame}");
    Event { id, name, data, frame }
}

/// Checks every complete stream: one envelope (J-030), control events without ids and rising ids (J-036), a single end as the
/// last event (J-035); and the contract, where contract events are sent.
pub(crate) fn check_stream(events: &[Event]) {
    let names: Vec<&str> = events.iter().map(|event| event.name.as_str()).collect();
    let ends = names.iter().filter(|name| matches!(**name, "completed" | "error")).count();
    assert_eq!(ends, 1, "exactly one end: {names:?}"); // J-035
    assert!(matches!(*names.last().unwrap(), "completed" | "error"), "the end is last: {names:?}"); // J-035
    let mut last = 0;
    for event in events {
        for field in ["message_id", "request_id"] {
            assert_eq!(event.data[field], events[0].data[field], "{event:?}"); // J-030
            assert!(event.data[field].as_str().is_some_and(|id| !id.is_empty()), "{event:?}"); // J-030
        }
        let control = matches!(event.name.as_str(), "status" | "heartbeat");
        assert_eq!(event.id.is_none(), control, "{event:?}"); // J-036
        if let Some(id) = event.id {
            assert!(id > last, "ids rise: {id} after {last}"); // J-036
            last = id;
        }
    }
    let legacy = events.last().unwrap().data.get("reply").is_some() || names.contains(&"content_delta");
    let frames: String = events.iter().map(|event| event.frame.as_str()).collect();
    if legacy {
        let is_legacy_event =
            |name: &&str| matches!(*name, "status" | "heartbeat" | "content_delta" | "completed" | "error");
        assert!(names.iter().all(is_legacy_event), "{names:?}");
    } else {
        let findings =
            check_transcript(frames.as_bytes(), StreamCheckOptions::default().with_form(TranscriptForm::Sse));
        let errors: Vec<_> =
            findings.iter().filter(|finding| finding.severity == tambour::Severity::Error).collect();
        assert!(errors.is_empty(), "{errors:#?}\n{frames}");
    }
}

/// Names of the events without control events; adjacent deltas count as one.
pub(crate) fn event_names(events: &[Event]) -> Vec<&str> {
    let mut names: Vec<&str> = events.iter().map(|event| event.name.as_str()).collect();
    names.retain(|name| !matches!(*name, "status" | "heartbeat"));
    names.dedup_by(|a, b| a == b && a.ends_with("_delta"));
    names
}

/// Joined text of all events of that name.
pub(crate) fn joined_text(events: &[Event], name: &str) -> String {
    let matching = events.iter().filter(|event| event.name == name);
    matching.map(|event| event.data["text"].as_str().or(event.data["delta"].as_str()).unwrap()).collect()
}

/// Id of the message that a stream belongs to.
pub(crate) fn stream_message_id(events: &[Event]) -> String {
    events[0].data["message_id"].as_str().unwrap().to_owned()
}

/// Events that carry a number.
pub(crate) fn numbered_events(events: &[Event]) -> Vec<Event> {
    events.iter().filter(|event| event.id.is_some()).cloned().collect()
}
