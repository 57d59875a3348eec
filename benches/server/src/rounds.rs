//! Cost of a dialogue round without the time of the model (S-102): whole turns over HTTP, with a model that
//! answers at once.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Instant;

use anyhow::Context;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::client;
use crate::process::BenchProcess;
use crate::table::{FigureTable, FigureTarget, median, quantile};

/// Number of rounds of one dialogue.
const ROUNDS: usize = 20;

/// Reply of the model in each round.
pub(crate) fn round_reply() -> String {
    json!({
        "assessment": {
            "understanding_level": 40, "has_questions": true, "expressed_understanding": false,
            "reasoning": "The user asks for an example.",
        },
        "response": {"guide": "Think of the last time you were late. What went through your mind, and what did you do then?"},
        "should_exit": false,
        "exit_reason": "",
    })
    .to_string()
}

/// Script with one action of 20 rounds.
const SCRIPT: &str = "sessions:\n  - session: s\n    phases:\n      - phase: p\n        steps:\n          - topic: t\n            \
                      actions:\n              - {type: ai_say, content: Explain the model., max_rounds: 20}\n";

/// Connection that sends one request after another.
struct RoundCaller {
    socket: TcpStream,
    /// Received bytes that follow the answers read so far.
    received: Vec<u8>,
}

impl RoundCaller {
    /// Posts JSON and returns the JSON answer.
    async fn post(&mut self, path: &str, body: &Value) -> anyhow::Result<Value> {
        let body = body.to_string();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        self.socket.write_all(format!("{head}{body}").as_bytes()).await?;
        let answer = client::read_http_message(&mut self.socket, &mut self.received).await?;
        let (head, body) = answer.context("the server closed the connection")?;
        anyhow::ensure!(head.starts_with("HTTP/1.1 20"), "{path}: {head}{}", String::from_utf8_lossy(&body));
        Ok(serde_json::from_slice(&body)?)
    }
}

/// Plays dialogues and prints the times of their rounds. There are 50 dialogues, divided by `divisor`.
pub(crate) async fn run(
    program: &Path,
    upstream: SocketAddr,
    divisor: usize,
    table: &mut FigureTable,
) -> anyhow::Result<()> {
    let server = BenchProcess::start_tambour_with_model(program, upstream, "round")?;
    let socket = TcpStream::connect(server.address).await?;
    socket.set_nodelay(true)?;
    let mut caller = RoundCaller { socket, received: Vec::new() };
    let script = caller.post("/api/v1/scripts", &json!({"name": "s", "yaml": SCRIPT})).await?;
    let mut times = Vec::new();
    // The first dialogue warms up and does not count.
    for dialogue_number in 0..=50 / divisor {
        let new_dialogue = json!({"script_id": script["script_id"]});
        let dialogue = caller.post("/api/v1/dialogues", &new_dialogue).await?;
        let path = format!(
            "/api/v1/dialogues/{}/input",
            dialogue["dialogue_id"].as_str().context("no dialogue id")?
        );
        for round in 1..=ROUNDS {
            let start = Instant::now();
            let turn = caller.post(&path, &json!({"text": "Can you give me an example?"})).await?;
            if dialogue_number > 0 {
                times.push(start.elapsed().as_secs_f64() * 1e3);
            }
            anyhow::ensure!(turn["metadata"]["current_round"] == round, "not round {round}: {turn}");
        }
    }
    table.print_line("round of a dialogue, median", "ms", None, median(&times), &FigureTarget::None);
    let label = format!("round of a dialogue, p99 of {}", times.len());
    table.print_line(&label, "ms", None, quantile(&times, 0.99), &FigureTarget::AtMost(10.0));
    Ok(())
}
