//! Speed of whole replies: nanoseconds a chunk and megabytes a second, beside a search for `<` in the same chunks.
//!
//! `cargo bench -p tambour --bench stream`; without `--bench` it reads small replies once, to see that it works.

use std::hint::black_box;
use std::time::{Duration, Instant};

use tambour::{End, Event, Finding, Options, Pipeline, Sink};

/// Counts what it gets.
#[derive(Default)]
struct Counter(usize);

impl Sink for Counter {
    fn event(&mut self, event: Event<'_>) {
        self.0 += match black_box(&event) {
            Event::FinalDelta { text } | Event::PhaseDelta { text, .. } => text.len(),
            _ => 1,
        };
    }

    fn finding(&mut self, finding: Finding) {
        self.0 += finding.message.len();
    }
}

const DIALECTS: [&str; 4] = ["plain", "thinkingml", "jsonseq", "auto"];
const LINE: &str = "The plan has three days: push, pull and legs, with **one** rest day between them.\n";

fn main() {
    let measuring = std::env::args().any(|argument| argument == "--bench");
    let sizes: &[usize] = if measuring { &[4 << 10, 64 << 10, 1 << 20] } else { &[4 << 10] };
    println!(
        "{:<12} {:>8} {:>6} {:>10} {:>10} {:>8}",
        "dialect", "bytes", "chunk", "ns/chunk", "MB/s", "x floor"
    );
    for dialect in DIALECTS {
        for &size in sizes {
            let reply = reply(dialect, size);
            for chunk in [4, 64, usize::MAX] {
                let chunks = cut(&reply, chunk);
                let read = best(measuring, || read(dialect, &chunks));
                // Every byte is looked at: a text with a tag at its start would otherwise cost nothing.
                let floor = best(measuring, || {
                    for chunk in &chunks {
                        black_box(memchr::memchr_iter(b'<', chunk.as_bytes()).count());
                    }
                });
                let each = read.as_secs_f64() * 1e9 / chunks.len() as f64;
                let rate = reply.len() as f64 / read.as_secs_f64() / 1e6;
                let ratio = read.as_secs_f64() / floor.as_secs_f64().max(1e-12);
                let chunk = if chunk == usize::MAX { "whole".to_owned() } else { chunk.to_string() };
                println!(
                    "{dialect:<12} {:>8} {chunk:>6} {each:>10.1} {rate:>10.1} {ratio:>8.1}",
                    reply.len()
                );
            }
        }
    }
}

/// The shortest of many runs: what the machine can do when nothing disturbs it.
fn best(measuring: bool, mut run: impl FnMut()) -> Duration {
    let until = Instant::now() + Duration::from_millis(if measuring { 300 } else { 0 });
    let mut best = Duration::MAX;
    loop {
        let start = Instant::now();
        run();
        best = best.min(start.elapsed());
        if Instant::now() >= until {
            return best;
        }
    }
}

fn read(dialect: &str, chunks: &[&str]) {
    let mut sink = Counter::default();
    let mut pipeline = Pipeline::new(dialect, &Options::default()).expect("the dialect exists");
    for chunk in chunks {
        pipeline.push_str(chunk, &mut sink);
    }
    pipeline.finish(&End::stop(), &mut sink);
    black_box(sink.0);
}

fn cut(reply: &str, chunk: usize) -> Vec<&str> {
    let mut rest = reply;
    let mut chunks = Vec::new();
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(chunk).max(1).min(rest.len()));
        chunks.push(piece);
        rest = after;
    }
    chunks
}

/// A valid reply of about that many bytes, half reasoning and half answer.
fn reply(dialect: &str, size: usize) -> String {
    let half = LINE.repeat((size / 2 / LINE.len()).max(1));
    match dialect {
        "thinkingml" => {
            let mut text = String::from("<serp>A plan.</serp>\n<thinking>\n");
            for (index, lines) in half.as_bytes().chunks(LINE.len() * 16).take(900).enumerate() {
                let lines = String::from_utf8_lossy(lines);
                text.push_str(&format!(
                    "<phase id=\"{}\">\n<title>Goal</title>\n{lines}</phase>\n",
                    index + 1
                ));
            }
            let queries = "<!-- <serp_queries>\n[\"push pull legs\"]\n</serp_queries> -->";
            text.push_str(&format!("</thinking>\n<final>\n{half}{queries}\n</final>\n"));
            text
        }
        "jsonseq" => {
            let line = |event: &str, data: String| format!("{{\"event\":\"{event}\",\"data\":{{{data}}}}}\n");
            let mut text = line("thinking_start", String::new());
            text.push_str(&line("phase_start", "\"id\":1,\"title\":\"Goal\"".to_owned()));
            for piece in half.lines() {
                text.push_str(&line("phase_delta", format!("\"id\":1,\"text\":\"{piece}\\n\"")));
            }
            text.push_str(&line("thinking_end", String::new()));
            for piece in half.lines() {
                text.push_str(&line("final_delta", format!("\"text\":\"{piece}\\n\"")));
            }
            text.push_str(&line("final_end", String::new()));
            text
        }
        _ => format!("<think>{half}</think>\n{half}"),
    }
}
