//! Upstream that both measured servers call: a model service with streaming OpenAI chat completions. The name
//! of the model in a request sets the length and pace of the reply.
//!
//! - `burst-N`: N chunks, one write each, as fast as the socket takes them
//! - `blocks-N`: N chunks in large writes
//! - `paced-N-MS`: N chunks, one every MS milliseconds
//! - `hold-N-MS`: like `paced-N-MS` (like `blocks-N` if MS is 0), then nothing until the client disconnects
//! - `round`: the reply of a dialogue round, in large writes
//!
//! `GET /running` returns the number of calls in progress.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, MissedTickBehavior};

/// Length of the text in a chunk, in bytes.
pub(crate) const CHUNK_LEN: usize = 4;

const RESPONSE_HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// Makes a reply of `chunks` chunks in the dialect `thinkingml`: a summary, two phases of thinking, and an
/// answer that is about three quarters of the reply.
pub(crate) fn build_reply(chunks: usize) -> String {
    const WORDS: &str = "A model writes one word after another, and a reader wants each of them at once. ";
    let filler = |length: usize| WORDS.chars().cycle().take(length).collect::<String>();
    let length = chunks * CHUNK_LEN;
    let mut text = format!(
        "<serp>You want words.</serp>\n<thinking>\n<phase id=\"1\">\n<title>Look</title>\n{}\n</phase>\n\
         <phase id=\"2\">\n<title>Decide</title>\n{}\n</phase>\n</thinking>\n<final>\n",
        filler(length / 8),
        filler(length / 8),
    );
    let answer_len = length.saturating_sub(text.len() + "\n</final>".len());
    text.push_str(&filler(answer_len));
    text.push_str("\n</final>");
    text
}

/// Pace of an answer.
#[derive(Clone, Copy)]
enum AnswerPace {
    /// One write for each chunk, without pauses.
    Burst,
    /// Large writes.
    Blocks,
    /// One chunk after each interval.
    Every(Duration),
}

/// Requested reply, parsed from the name of a model.
struct AnswerRequest {
    pace: AnswerPace,
    text: String,
    /// True if the answer stays open after its text.
    holds_open: bool,
}

/// Serves the upstream on a free port.
pub(crate) async fn serve_upstream() -> anyhow::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    crate::process::announce(listener.local_addr()?);
    let running = Arc::new(AtomicUsize::new(0));
    loop {
        let (socket, _) = listener.accept().await?;
        let running = running.clone();
        tokio::spawn(async move {
            let _ = serve_connection(socket, &running).await;
        });
    }
}

/// Answers the requests of a connection; `running` counts the calls in progress.
async fn serve_connection(mut socket: TcpStream, running: &AtomicUsize) -> anyhow::Result<()> {
    socket.set_nodelay(true)?;
    let mut received = Vec::with_capacity(2048);
    while let Some((head, body)) = crate::client::read_http_message(&mut socket, &mut received).await? {
        if head.starts_with("GET /running") {
            let count = running.load(Ordering::SeqCst).to_string();
            let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{count}", count.len());
            socket.write_all(answer.as_bytes()).await?;
            continue;
        }
        let request: serde_json::Value = serde_json::from_slice(&body)?;
        let model = request["model"].as_str().unwrap_or("");
        let answer_request = parse_model(model).ok_or_else(|| anyhow::anyhow!("unknown model: {model}"))?;
        running.fetch_add(1, Ordering::SeqCst);
        let result = write_answer(&mut socket, &answer_request).await;
        running.fetch_sub(1, Ordering::SeqCst);
        result?;
    }
    Ok(())
}

/// Parses the pace and text of an answer from a model name; `None` for an unknown name.
fn parse_model(model: &str) -> Option<AnswerRequest> {
    if model == "round" {
        return Some(AnswerRequest {
            pace: AnswerPace::Blocks,
            text: crate::rounds::round_reply(),
            holds_open: false,
        });
    }
    let mut words = model.split('-');
    let (name, chunks) = (words.next()?, words.next()?.parse().ok()?);
    let interval_ms = words.next().map(str::parse).transpose().ok()?;
    let pace = match (name, interval_ms) {
        ("burst", None) => AnswerPace::Burst,
        ("blocks", None) | ("hold", Some(0)) => AnswerPace::Blocks,
        ("paced" | "hold", Some(interval_ms)) => AnswerPace::Every(Duration::from_millis(interval_ms)),
        _ => return None,
    };
    Some(AnswerRequest { pace, text: build_reply(chunks), holds_open: name == "hold" })
}

/// Writes an answer at its pace.
async fn write_answer(socket: &mut TcpStream, request: &AnswerRequest) -> std::io::Result<()> {
    let text = &request.text;
    // The reply is ASCII, so that it can be cut anywhere.
    let mut pieces = (0..text.len()).step_by(CHUNK_LEN).map(|at| &text[at..text.len().min(at + CHUNK_LEN)]);
    let mut out = RESPONSE_HEAD.as_bytes().to_vec();
    write_frame(pieces.next().unwrap_or(""), &mut out);
    match request.pace {
        AnswerPace::Burst => {
            socket.write_all(&out).await?;
            for piece in pieces {
                out.clear();
                write_frame(piece, &mut out);
                socket.write_all(&out).await?;
            }
        }
        AnswerPace::Every(interval) => {
            socket.write_all(&out).await?;
            let mut ticks = tokio::time::interval_at(Instant::now() + interval, interval);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
            for piece in pieces {
                tokio::select! {
                    biased;
                    disconnected = wait_for_disconnect(socket) => return disconnected,
                    _ = ticks.tick() => {}
                }
                out.clear();
                write_frame(piece, &mut out);
                socket.write_all(&out).await?;
            }
        }
        AnswerPace::Blocks => {
            for piece in pieces {
                write_frame(piece, &mut out);
                if out.len() > 32 << 10 {
                    socket.write_all(&out).await?;
                    out.clear();
                }
            }
            socket.write_all(&out).await?;
        }
    }
    if request.holds_open {
        return wait_for_disconnect(socket).await;
    }
    out.clear();
    write_event(
        r#"{"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
        &mut out,
    );
    write_event(
        r#"{"id":"c","object":"chat.completion.chunk","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":9}}"#,
        &mut out,
    );
    write_event("[DONE]", &mut out);
    out.extend_from_slice(b"0\r\n\r\n");
    socket.write_all(&out).await
}

/// Waits until the client disconnects, then returns an error, which ends the connection. Bytes that the
/// client sends meanwhile are discarded.
async fn wait_for_disconnect(socket: &mut TcpStream) -> std::io::Result<()> {
    let mut discarded = [0; 64];
    while socket.read(&mut discarded).await? > 0 {}
    Err(std::io::ErrorKind::ConnectionReset.into())
}

/// Writes a frame with a piece of the reply, with the fields that real services send.
fn write_frame(text: &str, out: &mut Vec<u8>) {
    let text = serde_json::to_string(text).expect("text is JSON");
    write_event(
        &format!(
            r#"{{"id":"chatcmpl-0123456789","object":"chat.completion.chunk","created":1790000000,"model":"m","choices":[{{"index":0,"delta":{{"content":{text}}},"finish_reason":null}}]}}"#
        ),
        out,
    );
}

/// Writes `data` as a server-sent event, in an HTTP chunk of its own. The chunk has 8 bytes more than `data`:
/// `data: ` and two line ends.
fn write_event(data: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("{:x}\r\ndata: {data}\n\n\r\n", data.len() + 8).as_bytes());
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_reply_has_the_length_of_its_chunks() {
        assert_eq!(super::build_reply(1000).len(), 4000);
    }
}
