//! Clients over raw TCP, which cost little in comparison with the servers they measure.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

/// Server that a client calls, and the protocol of the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TargetServer {
    /// Model service, without a server in between.
    Upstream,
    /// Bare mapper.
    Bare,
    /// Tambour, in its own protocol.
    Tambour,
    /// Tambour, in a foreign protocol.
    Protocol(ClientProtocol),
}

/// Foreign protocol: one that clients of other services speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientProtocol {
    Chat,
    Responses,
    Anthropic,
    AiSdk,
    AgUi,
}

/// Number of AG-UI threads used so far, which is also the id of the next thread.
static AG_UI_THREADS: AtomicU64 = AtomicU64::new(0);

impl ClientProtocol {
    pub(crate) const ALL: [ClientProtocol; 5] = [
        ClientProtocol::Chat,
        ClientProtocol::Responses,
        ClientProtocol::Anthropic,
        ClientProtocol::AiSdk,
        ClientProtocol::AgUi,
    ];

    /// Label in the table.
    pub(crate) fn name(self) -> &'static str {
        match self {
            ClientProtocol::Chat => "chat completions",
            ClientProtocol::Responses => "Responses",
            ClientProtocol::Anthropic => "Anthropic Messages",
            ClientProtocol::AiSdk => "AI SDK",
            ClientProtocol::AgUi => "AG-UI",
        }
    }

    /// Path and body of a request for a reply of `model`, which Tambour reads as `dialect`.
    fn request(self, model: &str, dialect: &str) -> (&'static str, serde_json::Value) {
        use serde_json::json;
        let model = format!("openai/{model}");
        let tambour = json!({"dialect": dialect});
        let messages = json!([{"role": "user", "content": "x"}]);
        match self {
            ClientProtocol::Chat => (
                "/v1/chat/completions",
                json!({"model": model, "stream": true, "messages": messages, "tambour": tambour}),
            ),
            ClientProtocol::Responses => {
                ("/v1/responses", json!({"model": model, "stream": true, "input": "x", "tambour": tambour}))
            }
            ClientProtocol::Anthropic => (
                "/v1/messages",
                json!({"model": model, "stream": true, "max_tokens": 9, "messages": messages, "tambour": tambour}),
            ),
            ClientProtocol::AiSdk => (
                "/api/chat",
                json!({"model": model, "tambour": tambour, "messages": [{"id": "1", "role": "user", "parts": [{"type": "text", "text": "x"}]}]}),
            ),
            ClientProtocol::AgUi => (
                "/ag-ui",
                // Each request has its own thread, since a thread runs one message at a time.
                json!({"threadId": AG_UI_THREADS.fetch_add(1, Ordering::Relaxed).to_string(), "runId": "r", "messages": [{"id": "1", "role": "user", "content": "x"}], "tools": [],
                       "context": [], "state": {}, "forwardedProps": {"model": model, "tambour": tambour}}),
            ),
        }
    }

    /// Bytes that only a complete answer contains.
    fn end_mark(self) -> &'static [u8] {
        match self {
            ClientProtocol::Chat | ClientProtocol::AiSdk => b"data: [DONE]",
            // The last event repeats the whole answer, so `read_to_end` may discard the event name before the end.
            ClientProtocol::Responses => b"\"total_tokens\"",
            ClientProtocol::Anthropic => b"message_stop",
            ClientProtocol::AgUi => b"RUN_FINISHED",
        }
    }
}

impl TargetServer {
    /// Builds an HTTP request for a reply of `model`, which Tambour reads as `dialect`.
    fn request(self, model: &str, dialect: &str) -> Vec<u8> {
        let (path, body) = match self {
            TargetServer::Upstream => (
                "/v1/chat/completions",
                serde_json::json!({"model": model, "stream": true, "messages": [{"role": "user", "content": "x"}]}),
            ),
            TargetServer::Bare => ("/", serde_json::json!({"model": model, "text": "x"})),
            TargetServer::Protocol(protocol) => protocol.request(model, dialect),
            TargetServer::Tambour => (
                "/api/v1/messages",
                serde_json::json!({
                    "model": model, "text": "x", "dialect": dialect, "output_protocol": "jsonseq_v1", "stream": true,
                }),
            ),
        };
        let body = body.to_string();
        // A server on PostgreSQL (set by `TAMBOUR_DATABASE`) requires an API key.
        let key = std::env::var("TAMBOUR_API_KEY");
        let authorization =
            key.map_or_else(|_| String::new(), |key| format!("authorization: Bearer {key}\r\n"));
        format!(
            "POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n{authorization}content-length: {}\r\n\r\n{body}",
            body.len()
        )
        .into_bytes()
    }
}

/// End of a chunked HTTP answer.
const LAST_CHUNK: &[u8] = b"\r\n0\r\n\r\n";

/// Connection that sends one request after another.
pub(crate) struct BenchClient {
    target: TargetServer,
    socket: TcpStream,
    /// Bytes received of the current answer; `read_to_end` keeps only the last ones.
    received: Vec<u8>,
}

impl BenchClient {
    /// Connects to `target`, which listens on `address`.
    pub(crate) async fn connect(target: TargetServer, address: SocketAddr) -> anyhow::Result<BenchClient> {
        let socket = TcpStream::connect(address).await?;
        socket.set_nodelay(true)?;
        Ok(BenchClient { target, socket, received: Vec::with_capacity(64 << 10) })
    }

    /// Connects with a small receive buffer, so that a client that does not read stalls the server soon.
    pub(crate) async fn connect_narrow(
        target: TargetServer,
        address: SocketAddr,
    ) -> anyhow::Result<BenchClient> {
        let socket = TcpSocket::new_v4()?;
        socket.set_recv_buffer_size(8 << 10)?;
        Ok(BenchClient { target, socket: socket.connect(address).await?, received: Vec::new() })
    }

    /// Reads and discards bytes until the connection ends.
    pub(crate) async fn drain(mut self) {
        while self.socket.read_buf(&mut self.received).await.is_ok_and(|bytes_read| bytes_read > 0) {
            self.received.clear();
        }
    }

    /// Sends a request for a reply of `model`, which Tambour reads as `dialect`.
    pub(crate) async fn send_request(&mut self, model: &str, dialect: &str) -> anyhow::Result<()> {
        self.received.clear();
        Ok(self.socket.write_all(&self.target.request(model, dialect)).await?)
    }

    /// Reads more bytes; false at the end.
    async fn read_more(&mut self) -> anyhow::Result<bool> {
        let bytes_read =
            tokio::time::timeout(Duration::from_secs(60), self.socket.read_buf(&mut self.received)).await??;
        Ok(bytes_read > 0)
    }

    /// Reads until the answer contains `pattern`, and returns the time at which it was found.
    pub(crate) async fn read_until(&mut self, pattern: &[u8]) -> anyhow::Result<Instant> {
        let mut search_start = 0;
        loop {
            if find_bytes(&self.received[search_start..], pattern).is_some() {
                return Ok(Instant::now());
            }
            search_start = self.received.len().saturating_sub(pattern.len());
            anyhow::ensure!(
                self.read_more().await?,
                "{:?} ended before {pattern:?}: {}",
                self.target,
                self.tail_text()
            );
        }
    }

    /// Reads the answer to its end, keeps only the last bytes, and checks that it was complete.
    pub(crate) async fn read_to_end(&mut self) -> anyhow::Result<()> {
        while !self.received.ends_with(LAST_CHUNK) {
            if self.received.len() > 32 << 10 {
                self.received.drain(..self.received.len() - (2 << 10));
            }
            anyhow::ensure!(
                self.read_more().await?,
                "{:?} closed the connection: {}",
                self.target,
                self.tail_text()
            );
        }
        let is_complete = match self.target {
            TargetServer::Upstream => true,
            TargetServer::Protocol(protocol) => find_bytes(&self.received, protocol.end_mark()).is_some(),
            TargetServer::Bare | TargetServer::Tambour => {
                find_bytes(&self.received, b"event: completed").is_some()
            }
        };
        anyhow::ensure!(is_complete, "{:?} did not complete: {}", self.target, self.tail_text());
        Ok(())
    }

    /// Reads the whole answer and joins the texts of the events with these names.
    pub(crate) async fn read_text(&mut self, events: &[&str]) -> anyhow::Result<String> {
        while !self.received.ends_with(LAST_CHUNK) {
            anyhow::ensure!(self.read_more().await?, "{:?} closed the connection", self.target);
        }
        let (mut text, mut is_text) = (String::new(), false);
        let body_text = String::from_utf8(decode_chunked(&self.received)?)?;
        for line in body_text.lines() {
            if let Some(name) = line.strip_prefix("event: ") {
                is_text = events.contains(&name);
            } else if let Some(data) = line.strip_prefix("data: ").filter(|_| is_text) {
                let data: serde_json::Value = serde_json::from_str(data)?;
                text.push_str(data["text"].as_str().context("an event has no text")?);
            }
        }
        Ok(text)
    }

    /// Last bytes of the answer, for a message.
    fn tail_text(&self) -> String {
        let tail = &self.received[self.received.len().saturating_sub(600)..];
        String::from_utf8_lossy(tail).into_owned()
    }
}

/// Fetches the body of a short answer with `GET`.
pub(crate) async fn fetch(address: SocketAddr, path: &str) -> anyhow::Result<String> {
    let mut socket = TcpStream::connect(address).await?;
    socket.write_all(format!("GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n").as_bytes()).await?;
    let mut received = Vec::new();
    let (_, body) =
        read_http_message(&mut socket, &mut received).await?.context("the server closed the connection")?;
    Ok(String::from_utf8(body)?)
}

/// Decodes the body of a chunked answer.
fn decode_chunked(answer: &[u8]) -> anyhow::Result<Vec<u8>> {
    let body_start = find_bytes(answer, b"\r\n\r\n").context("the answer has no head")? + 4;
    let (mut remaining, mut body) = (&answer[body_start..], Vec::new());
    loop {
        let size_end = find_bytes(remaining, b"\r\n").context("a chunk has no size")?;
        let size = usize::from_str_radix(std::str::from_utf8(&remaining[..size_end])?, 16)?;
        if size == 0 {
            return Ok(body);
        }
        body.extend_from_slice(
            remaining.get(size_end + 2..size_end + 2 + size).context("a chunk is cut off")?,
        );
        remaining = &remaining[size_end + 4 + size..];
    }
}

/// Reads the head and body of the next request or answer; `None` if the connection ends first.
/// `received` keeps bytes that belong to later messages.
pub(crate) async fn read_http_message(
    socket: &mut TcpStream,
    received: &mut Vec<u8>,
) -> anyhow::Result<Option<(String, Vec<u8>)>> {
    let body_start = loop {
        if let Some(end) = find_bytes(received, b"\r\n\r\n") {
            break end + 4;
        }
        if socket.read_buf(received).await? == 0 {
            return Ok(None);
        }
    };
    let head = String::from_utf8_lossy(&received[..body_start]).into_owned();
    let lengths = head.lines().filter_map(|line| line.split_once(':'));
    let mut lengths = lengths.filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length: usize = lengths.next().map_or(Ok(0), |(_, length)| length.trim().parse())?;
    while received.len() < body_start + length {
        if socket.read_buf(received).await? == 0 {
            return Ok(None);
        }
    }
    let body = received[body_start..body_start + length].to_vec();
    received.drain(..body_start + length);
    Ok(Some((head, body)))
}

fn find_bytes(bytes: &[u8], pattern: &[u8]) -> Option<usize> {
    bytes.windows(pattern.len()).position(|window| window == pattern)
}
