//! An upstream that plays a script over raw TCP: it pauses, cuts, stalls, floods and sends garbage.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::server::with_timeout;

/// Step of a script.
#[derive(Clone)]
pub(crate) enum Step {
    /// Sends status line and headers; a script without one begins a stream with status 200.
    Head(u16, Vec<(&'static str, String)>),
    /// Sends a piece of the body.
    Send(Vec<u8>),
    /// Waits for the gate, or until the client has disconnected.
    Wait(Gate),
    /// Waits for so many milliseconds, then runs the step.
    After(u64, Box<Step>),
    /// Ends the body properly.
    End,
    /// Closes the connection without ending the body.
    Cut,
    /// Resets the connection.
    Reset,
    /// Waits until the client has disconnected.
    WaitDisconnect,
}

/// A signal that stays set.
#[derive(Clone)]
pub(crate) struct Gate(Arc<watch::Sender<bool>>);

impl Gate {
    pub(crate) fn new() -> Gate {
        Gate(Arc::new(watch::Sender::new(false)))
    }

    pub(crate) fn open(&self) {
        self.0.send_replace(true);
    }

    async fn wait_open(&self) {
        let _ = self.0.subscribe().wait_for(|is_open| *is_open).await;
    }
}

/// A request of the server.
#[derive(Clone, Debug)]
pub(crate) struct ReceivedRequest {
    /// Request line and headers, in lower case.
    pub(crate) head: String,
    pub(crate) body: Value,
    /// The raw body.
    pub(crate) bytes: Vec<u8>,
}

/// Numbers of calls.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CallCounts {
    /// Requests that arrived.
    pub(crate) started: usize,
    /// Requests whose connection is over, in any way.
    pub(crate) ended: usize,
    /// Requests whose client disconnected before the script ended.
    pub(crate) abandoned: usize,
}

pub(crate) struct MockServer {
    pub(crate) address: SocketAddr,
    shared: Arc<MockState>,
}

/// Chooses the script for a request.
type Chooser = dyn Fn(&ReceivedRequest) -> Vec<Step> + Send + Sync;

struct MockState {
    /// Scripts in the order of the requests.
    scripts: Mutex<VecDeque<Arc<Vec<Step>>>>,
    /// Chooses the script instead.
    choose: Option<Box<Chooser>>,
    requests: Mutex<Vec<ReceivedRequest>>,
    calls: watch::Sender<CallCounts>,
}

impl MockServer {
    /// Plays one script a request; the last one again and again.
    pub(crate) async fn start(scripts: Vec<Vec<Step>>) -> MockServer {
        MockServer::serve(scripts, None).await
    }

    /// Plays the script that a function chooses for the request.
    pub(crate) async fn start_with(
        choose: impl Fn(&ReceivedRequest) -> Vec<Step> + Send + Sync + 'static,
    ) -> MockServer {
        MockServer::serve(Vec::new(), Some(Box::new(choose))).await
    }

    async fn serve(scripts: Vec<Vec<Step>>, choose: Option<Box<Chooser>>) -> MockServer {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(MockState {
            scripts: Mutex::new(scripts.into_iter().map(Arc::new).collect()),
            choose,
            requests: Mutex::default(),
            calls: watch::Sender::new(CallCounts::default()),
        });
        let accept_state = shared.clone();
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(serve_call(socket, accept_state.clone()));
            }
        });
        MockServer { address, shared }
    }

    pub(crate) fn url(&self) -> String {
        format!("openai=http://{}/v1", self.address)
    }

    pub(crate) fn requests(&self) -> Vec<ReceivedRequest> {
        self.shared.requests.lock().unwrap().clone()
    }

    pub(crate) fn calls(&self) -> CallCounts {
        *self.shared.calls.borrow()
    }

    /// Waits until the calls satisfy a condition.
    pub(crate) async fn wait_until(&self, condition: impl FnMut(&CallCounts) -> bool) {
        with_timeout(self.shared.calls.subscribe().wait_for(condition)).await.unwrap();
    }
}

async fn serve_call(mut socket: TcpStream, shared: Arc<MockState>) {
    socket.set_nodelay(true).unwrap();
    let Some(received) = read_request(&mut socket).await else { return };
    let chosen = shared.choose.as_ref().map(|choose| Arc::new(choose(&received)));
    shared.requests.lock().unwrap().push(received);
    let script = if let Some(chosen) = chosen {
        chosen
    } else {
        let mut scripts = shared.scripts.lock().unwrap();
        if scripts.len() > 1 { scripts.pop_front().unwrap() } else { scripts[0].clone() }
    };
    shared.calls.send_modify(|calls| calls.started += 1);
    let has_finished = play(&mut socket, &script).await;
    shared.calls.send_modify(|calls| {
        calls.ended += 1;
        calls.abandoned += usize::from(!has_finished);
    });
}

async fn read_request(socket: &mut TcpStream) -> Option<ReceivedRequest> {
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break String::from_utf8_lossy(&bytes[..end]).to_lowercase();
        }
        if socket.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    let length: usize = length.map_or(0, |length| length.trim().parse().unwrap());
    let start = head.len() + 4;
    while bytes.len() < start + length {
        if socket.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    let bytes = bytes[start..start + length].to_vec();
    Some(ReceivedRequest { head, body: serde_json::from_slice(&bytes).unwrap_or_default(), bytes })
}

/// Plays a script; returns true if it reached its end.
async fn play(socket: &mut TcpStream, script: &[Step]) -> bool {
    let mut has_head = false;
    for step in script {
        if !has_head
            && !matches!(
                step,
                Step::Head(..) | Step::Wait(_) | Step::Cut | Step::Reset | Step::WaitDisconnect
            )
        {
            has_head = true;
            if !write_head(socket, 200, &[("content-type", "text/event-stream".to_owned())]).await {
                return false;
            }
        }
        let can_continue = match step {
            Step::Head(status, headers) => {
                has_head = true;
                write_head(socket, *status, headers).await
            }
            Step::Send(bytes) => write_chunk(socket, bytes).await,
            Step::After(millis, next_step) => {
                tokio::time::sleep(std::time::Duration::from_millis(*millis)).await;
                let Step::Send(bytes) = &**next_step else { panic!("what follows a pause is sent") };
                write_chunk(socket, bytes).await
            }
            Step::Wait(gate) => tokio::select! {
                () = gate.wait_open() => true,
                () = wait_disconnect(socket) => false,
            },
            Step::End => write(socket, b"0\r\n\r\n").await,
            Step::Cut => return true,
            Step::Reset => {
                socket.set_zero_linger().unwrap();
                return true;
            }
            Step::WaitDisconnect => {
                wait_disconnect(socket).await;
                false
            }
        };
        if !can_continue {
            return false;
        }
    }
    true
}

async fn write_head(socket: &mut TcpStream, status: u16, headers: &[(&'static str, String)]) -> bool {
    let mut head = format!("HTTP/1.1 {status} X\r\ntransfer-encoding: chunked\r\nconnection: close\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    write(socket, head.as_bytes()).await
}

/// Sends a chunk of the body; returns false if the client has disconnected.
async fn write_chunk(socket: &mut TcpStream, bytes: &[u8]) -> bool {
    let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
    chunk.extend_from_slice(bytes);
    chunk.extend_from_slice(b"\r\n");
    write(socket, &chunk).await
}

/// Writes, unless the client disconnects first.
async fn write(socket: &mut TcpStream, bytes: &[u8]) -> bool {
    socket.write_all(bytes).await.is_ok()
}

impl ReceivedRequest {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

/// Waits until the client has disconnected.
async fn wait_disconnect(socket: &mut TcpStream) {
    let mut rest = [0; 256];
    while socket.read(&mut rest).await.is_ok_and(|length| length > 0) {}
}

/// A frame with a piece of text.
pub(crate) fn delta_step(text: &str) -> Step {
    Step::Send(sse_frame(&json!({"choices": [{"index": 0, "delta": {"content": text}}]})))
}

/// A frame of an event stream.
pub(crate) fn sse_frame(data: &Value) -> Vec<u8> {
    format!("data: {data}\n\n").into_bytes()
}

/// Finish reason, token counts, `[DONE]` and the end.
pub(crate) fn finish_steps(reason: &str) -> Vec<Step> {
    vec![
        Step::Send(sse_frame(&json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}))),
        Step::Send(sse_frame(&json!({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 5}}))),
        Step::Send(b"data: [DONE]\n\n".to_vec()),
        Step::End,
    ]
}

/// A whole reply in pieces of `size` characters.
pub(crate) fn reply_script(text: &str, size: usize) -> Vec<Step> {
    let characters: Vec<char> = text.chars().collect();
    let mut steps: Vec<Step> =
        characters.chunks(size).map(|piece| delta_step(&piece.iter().collect::<String>())).collect();
    steps.extend(finish_steps("stop"));
    steps
}

/// A complete response that is no stream.
pub(crate) fn response_script(status: u16, kind: &str, body: &str) -> Vec<Step> {
    vec![
        Step::Head(status, vec![("content-type", kind.to_owned())]),
        Step::Send(body.as_bytes().to_vec()),
        Step::End,
    ]
}

/// A good reply.
pub(crate) const GOOD_REPLY: &str = "<serp>You want to know.</serp>\n<thinking>\n<phase id=\"1\">\n<title>Look</title>\nfirst thought\n</phase>\n\
<phase id=\"2\">\n<title>Decide</title>\nsecond thought\n</phase>\n</thinking>\n<final>\nThe answer is 4.\n\
<!-- <serp_queries>\n[\"two plus two\"]\n</serp_queries> -->\n</final>";
