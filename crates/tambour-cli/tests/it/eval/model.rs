//! A model on 127.0.0.1 that answers by a script, in the chat completions interface.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use serde_json::{Value, json};

/// Answer of the model.
pub(crate) enum Answer {
    /// A reply in pieces of some characters, with token counts.
    Reply(String),
    /// A status with a body.
    Status(u16, &'static str),
    /// Nothing, until the client has disconnected.
    Silence,
    /// The beginning of a reply; then the connection closes.
    Cut(String),
}

/// A model that is running; it ends with the test process.
pub(crate) struct ScriptedModel {
    address: String,
    state: Arc<(Mutex<Vec<Value>>, Condvar)>,
}

impl ScriptedModel {
    /// Starts a model. `script` gets the body of a request, and the number of requests before it.
    pub(crate) fn start(script: impl Fn(&Value, usize) -> Answer + Send + Sync + 'static) -> ScriptedModel {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address").to_string();
        let state = Arc::new((Mutex::new(Vec::new()), Condvar::new()));
        let (shared, script) = (state.clone(), Arc::new(script));
        thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let (shared, script) = (shared.clone(), script.clone());
                thread::spawn(move || serve(socket, &shared, &*script));
            }
        });
        ScriptedModel { address, state }
    }

    /// The base URL.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Bodies of the requests so far.
    pub(crate) fn requests(&self) -> Vec<Value> {
        self.state.0.lock().expect("no panic").clone()
    }

    /// Waits until so many requests have arrived.
    pub(crate) fn wait_requests(&self, count: usize) {
        let requests = self.state.0.lock().expect("no panic");
        let is_waiting = |requests: &mut Vec<Value>| requests.len() < count;
        drop(self.state.1.wait_while(requests, is_waiting).expect("no panic"));
    }
}

/// The text of the last message of a request.
pub(crate) fn last_text(body: &Value) -> &str {
    let messages = body["messages"].as_array().expect("messages");
    messages.last().expect("a message")["content"].as_str().expect("a text")
}

fn serve(
    mut socket: TcpStream,
    state: &(Mutex<Vec<Value>>, Condvar),
    script: &(impl Fn(&Value, usize) -> Answer + ?Sized),
) {
    let Some(body) = read_body(&socket) else { return };
    let number = {
        let mut requests = state.0.lock().expect("no panic");
        requests.push(body.clone());
        state.1.notify_all();
        requests.len() - 1
    };
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    // The client may have been killed.
    let _ = match script(&body, number) {
        Answer::Reply(text) => socket.write_all((head.to_owned() + &reply_stream(&text, true)).as_bytes()),
        Answer::Cut(text) => {
            let stream = reply_stream(&text, false);
            let length = stream.len() + 100;
            let head = head.replace("connection: close", &format!("content-length: {length}"));
            socket.write_all((head + &stream).as_bytes())
        }
        Answer::Status(status, body) => {
            let length = body.len();
            let answer = format!(
                "HTTP/1.1 {status} x\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
            );
            socket.write_all(answer.as_bytes())
        }
        Answer::Silence => {
            let _ = socket.read(&mut [0]);
            Ok(())
        }
    };
}

fn read_body(socket: &TcpStream) -> Option<Value> {
    let mut reader = BufReader::new(socket);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}

/// A stream of a reply.
fn reply_stream(text: &str, is_complete: bool) -> String {
    let characters: Vec<char> = text.chars().collect();
    let pieces = characters.chunks(100.max(characters.len() / 1000));
    let mut stream: String = pieces
        .map(|piece| {
            let content: String = piece.iter().collect();
            format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": {"content": content}}]}))
        })
        .collect();
    if is_complete {
        let end = json!({
            "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 10},
        });
        stream += &format!("data: {end}\n\ndata: [DONE]\n\n");
    }
    stream
}
