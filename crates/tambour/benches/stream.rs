//! Speed of reading whole replies: nanoseconds per chunk and megabytes per second for each dialect. The lower
//! bound (`floor`) is a search for `<` in each chunk, measured in the same run. The texts come from the
//! recorded replies (`recorded/`), cut into chunks like tokens and at fixed lengths.
//!
//! `cargo xtask bench lib` runs it; without `--bench` it reads each reply once as a smoke test. `--json`
//! prints one object per line. `--count CASE SIZE CHUNK` reads once, for instruction counters; CHUNK is a
//! length in bytes, `tokens` or `whole`. `--only CASE` measures one case.

mod recorded;

use std::fmt::Write as _;
use std::hint::black_box;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use tambour::dialect;
use tambour::event::Sink;
use tambour::{Event, Finding, InputEnd, Options, Pipeline};

use recorded::TextKind;

/// Function that makes a reply of about this many bytes.
type TextMaker = fn(usize) -> String;

/// Name, dialect and reply of each case.
const CASES: [(&str, &str, TextMaker); 21] = [
    ("plain, mixed", "plain", |size| plain_reply(TextKind::Mixed, size)),
    ("plain, English", "plain", |size| plain_reply(TextKind::English, size)),
    ("plain, Chinese", "plain", |size| plain_reply(TextKind::Chinese, size)),
    ("plain, code", "plain", |size| plain_reply(TextKind::Code, size)),
    ("thinkingml, mixed", "thinkingml", |size| thinkingml_reply(TextKind::Mixed, size)),
    ("thinkingml, English", "thinkingml", |size| thinkingml_reply(TextKind::English, size)),
    ("thinkingml, Chinese", "thinkingml", |size| thinkingml_reply(TextKind::Chinese, size)),
    ("thinkingml, code", "thinkingml", |size| thinkingml_reply(TextKind::Code, size)),
    ("jsonseq", "jsonseq", jsonseq_reply),
    ("jsonseq, small events", "jsonseq", small_event_reply),
    ("aiplan, small calls", "aiplan", small_call_plan),
    ("aiplan, one argument", "aiplan", large_argument_plan),
    ("aiplan, answer", "aiplan", answer_reply),
    ("filament, content", "filament", story_reply),
    ("filament, operations", "filament", turns_reply),
    ("toolcall, text", "toolcall", |size| plain_reply(TextKind::Mixed, size)),
    ("toolcall, hermes", "toolcall", written_calls_reply),
    ("toolcall, one argument", "toolcall", written_argument_reply),
    ("auto, plain", "auto", |size| plain_reply(TextKind::Mixed, size)),
    ("auto, thinkingml", "auto", |size| thinkingml_reply(TextKind::Mixed, size)),
    ("auto, jsonseq", "auto", jsonseq_reply),
];

const SIZES: [usize; 3] = [4 << 10, 64 << 10, 1 << 20];
const CUTS: [Cut; 4] = [Cut::Bytes(4), Cut::Tokens, Cut::Bytes(64), Cut::Whole];

/// Division of a reply into chunks.
#[derive(Clone, Copy)]
enum Cut {
    /// Chunks of this many bytes, also within a character.
    Bytes(usize),
    /// Chunks of 1 to 12 bytes and whole characters, like tokens.
    Tokens,
    Whole,
}

impl Cut {
    /// Parses a length in bytes, `tokens` or `whole`.
    fn parse(name: &str) -> Cut {
        match name {
            "tokens" => Cut::Tokens,
            "whole" => Cut::Whole,
            length => Cut::Bytes(length.parse().expect("a length in bytes, `tokens` or `whole`")),
        }
    }

    /// Calls `read` with each chunk of the reply.
    fn for_each_chunk<'r>(self, reply: &'r str, mut read: impl FnMut(&'r [u8])) {
        match self {
            Cut::Bytes(length) => reply.as_bytes().chunks(length).for_each(read),
            Cut::Tokens => TokenChunks::new(reply).for_each(read),
            Cut::Whole => read(reply.as_bytes()),
        }
    }

    fn count_chunks(self, reply: &str) -> usize {
        let mut count = 0;
        self.for_each_chunk(reply, |_| count += 1);
        count
    }
}

/// Iterator over chunks of 1 to 12 bytes that end at character boundaries. Their lengths are the same in each
/// run.
struct TokenChunks<'r> {
    unread: &'r str,
    /// State of the random numbers (xorshift), never 0.
    random: u32,
}

impl<'r> TokenChunks<'r> {
    const MAX_LEN: u32 = 12;

    fn new(reply: &'r str) -> TokenChunks<'r> {
        TokenChunks { unread: reply, random: 0x9E37_79B9 }
    }
}

impl<'r> Iterator for TokenChunks<'r> {
    type Item = &'r [u8];

    #[inline]
    fn next(&mut self) -> Option<&'r [u8]> {
        if self.unread.is_empty() {
            return None;
        }
        self.random ^= self.random << 13;
        self.random ^= self.random >> 17;
        self.random ^= self.random << 5;
        let length = (1 + self.random % Self::MAX_LEN) as usize;
        // The character that a cut would split goes to the next chunk, unless it is the first.
        let length = self.unread.floor_char_boundary(length);
        let length = if length == 0 { self.unread.ceil_char_boundary(1) } else { length };
        let (chunk, unread) = self.unread.split_at(length);
        self.unread = unread;
        Some(chunk.as_bytes())
    }
}

/// Sink that counts bytes of text, so that the compiler cannot remove an event.
#[derive(Default)]
struct EventCounter(usize);

impl Sink for EventCounter {
    #[inline]
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

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (flags, arguments): (Vec<&str>, Vec<&str>) =
        arguments.iter().map(String::as_str).partition(|argument| *argument == "--bench");
    let min_time = Duration::from_millis(if flags.is_empty() { 0 } else { 150 });
    match arguments.as_slice() {
        ["--count", case, size, chunk] => read_once(case, size, chunk),
        ["--only", case] => {
            print_table(&measure_cases(min_time, available_cases().filter(|(name, ..)| name == case)))
        }
        ["--cases"] => available_cases().for_each(|(name, ..)| println!("{name}")),
        ["--json"] => measure_cases(min_time, available_cases()).iter().for_each(BenchRow::print_json),
        _ => print_table(&measure_cases(min_time, available_cases())),
    }
}

/// Lists the cases of compiled dialects.
fn available_cases() -> impl Iterator<Item = (&'static str, &'static str, TextMaker)> {
    CASES.into_iter().filter(|(_, dialect, _)| dialect::find_dialect(dialect).is_ok())
}

fn read_once(case: &str, size: &str, chunk: &str) {
    let (_, dialect, make) = available_cases().find(|(name, ..)| *name == case).expect("one of `--cases`");
    let size = size.parse().expect("a size");
    black_box(read_reply(dialect, &make(size), Cut::parse(chunk)));
}

fn read_reply(dialect: &str, reply: &str, cut: Cut) -> usize {
    let mut sink = EventCounter::default();
    static PLAIN: LazyLock<Options> = LazyLock::new(Options::default);
    static CALLING: LazyLock<Options> = LazyLock::new(|| {
        let mut options = Options::default();
        let tools = serde_json::json!({"lint": {"type": "object"}});
        options.set("tools", tools).expect("a registry");
        options
    });
    let options = if dialect == "toolcall" { &CALLING } else { &PLAIN };
    let mut pipeline = Pipeline::new(dialect, options).expect("a dialect of the table");
    cut.for_each_chunk(reply, |chunk| pipeline.push(chunk, &mut sink));
    pipeline.finish(&InputEnd::stop(), &mut sink);
    sink.0
}

/// Searches for `<`: the least work that any reader of markup must do.
fn search_floor(reply: &str, cut: Cut) -> usize {
    let mut sum = 0;
    cut.for_each_chunk(reply, |chunk| sum += memchr::memchr(b'<', black_box(chunk)).unwrap_or(1));
    sum
}

/// One measurement.
struct BenchRow {
    case: &'static str,
    bytes: usize,
    cut: Cut,
    /// Number of chunks.
    chunks: usize,
    time: Duration,
    floor: Duration,
}

impl BenchRow {
    fn nanoseconds_per_chunk(&self, time: Duration) -> f64 {
        time.as_nanos() as f64 / self.chunks as f64
    }

    fn rate(&self, time: Duration) -> f64 {
        self.bytes as f64 / 1e6 / time.as_secs_f64()
    }

    fn print_json(&self) {
        let chunk = match self.cut {
            Cut::Bytes(length) => length.to_string(),
            Cut::Tokens => "\"tokens\"".to_owned(),
            Cut::Whole => "null".to_owned(),
        };
        println!(
            "{{\"case\":\"{}\",\"bytes\":{},\"chunk\":{chunk},\"ns_per_chunk\":{:.1},\"mb_per_s\":{:.1},\
             \"floor_ns_per_chunk\":{:.1},\"ratio\":{:.2}}}",
            self.case,
            self.bytes,
            self.nanoseconds_per_chunk(self.time),
            self.rate(self.time),
            self.nanoseconds_per_chunk(self.floor),
            self.time.as_secs_f64() / self.floor.as_secs_f64()
        );
    }
}

/// Measures the cases; repeats each measurement for at least `min_time`.
fn measure_cases(
    min_time: Duration,
    cases: impl Iterator<Item = (&'static str, &'static str, TextMaker)>,
) -> Vec<BenchRow> {
    let mut rows = Vec::new();
    for (case, dialect, make) in cases {
        for size in SIZES {
            let reply = make(size);
            for cut in CUTS {
                let time = best_time(min_time, || read_reply(dialect, &reply, cut));
                let floor = best_time(min_time, || search_floor(&reply, cut));
                let (bytes, chunks) = (reply.len(), cut.count_chunks(&reply));
                rows.push(BenchRow { case, bytes, cut, chunks, time, floor });
            }
        }
    }
    rows
}

fn print_table(rows: &[BenchRow]) {
    println!(
        "{:<21} {:^26}  {:>8}  {:^17}  {:>8}  {:^18}",
        "", "ns per 4 bytes", "token", "64 bytes, 1 MB", "whole", "floor, 4 bytes"
    );
    println!(
        "{:<21} {:>8} {:>8} {:>8}  {:>8}  {:>8} {:>8}  {:>8}  {:>8} {:>9}",
        "", "4 KB", "64 KB", "1 MB", "ns", "ns", "MB/s", "MB/s", "ns", "ratio"
    );
    // The rows of a case are in the order of `SIZES`, and within a size in the order of `CUTS`.
    for rows in rows.chunks(SIZES.len() * CUTS.len()) {
        let (small, middle, large) = (&rows[0], &rows[4], &rows[8]);
        let (tokens, lines, whole) = (&rows[9], &rows[10], &rows[11]);
        println!(
            "{:<21} {:>8.1} {:>8.1} {:>8.1}  {:>8.1}  {:>8.1} {:>8.0}  {:>8.0}  {:>8.1} {:>9.1}",
            small.case,
            small.nanoseconds_per_chunk(small.time),
            middle.nanoseconds_per_chunk(middle.time),
            large.nanoseconds_per_chunk(large.time),
            tokens.nanoseconds_per_chunk(tokens.time),
            lines.nanoseconds_per_chunk(lines.time),
            lines.rate(lines.time),
            whole.rate(whole.time),
            large.nanoseconds_per_chunk(large.floor),
            large.time.as_secs_f64() / large.floor.as_secs_f64()
        );
    }
}

/// Returns the shortest time of several runs: other work on the machine can only lengthen a run.
fn best_time(min_time: Duration, mut run: impl FnMut() -> usize) -> Duration {
    let (mut shortest, begin) = (Duration::MAX, Instant::now());
    loop {
        let start = Instant::now();
        black_box(run());
        shortest = shortest.min(start.elapsed());
        if begin.elapsed() >= min_time {
            return shortest;
        }
    }
}

/// Repeats `piece` up to about `size` bytes.
fn repeat_to_size(piece: &str, size: usize) -> String {
    piece.repeat((size / piece.len()).max(1))
}

/// Makes a reply of which a quarter is reasoning and the rest is the answer.
fn plain_reply(kind: TextKind, size: usize) -> String {
    let reasoning = recorded::make_reasoning(kind, size / 4);
    format!("<think>\n{reasoning}</think>\n{}", recorded::make_answer(kind, size * 3 / 4))
}

fn thinkingml_reply(kind: TextKind, size: usize) -> String {
    let mut reply = String::from("<serp>The user wants a plan.</serp>\n<thinking>\n");
    for (id, title) in ["Goal", "Facts", "Plan"].into_iter().enumerate() {
        let text = recorded::make_reasoning(kind, size / 12);
        let _ = write!(reply, "<phase id=\"{}\">\n<title>{title}</title>\n{text}</phase>\n", id + 1);
    }
    let answer = recorded::make_answer(kind, size * 3 / 4);
    let _ = write!(
        reply,
        "</thinking>\n<final>\n{answer}<!-- <serp_queries>\n[\"q1\",\"q2\"]\n</serp_queries> -->\n</final>"
    );
    reply
}

/// Makes one `thought` and one `content` element.
fn story_reply(size: usize) -> String {
    let thought = recorded::make_reasoning(TextKind::Mixed, size / 4);
    let content = recorded::make_answer(TextKind::Mixed, size * 3 / 4);
    format!("<thought>\n{thought}</thought>\n<content>\n{content}</content>\n")
}

/// Makes short `content` elements, each with operations on the state.
fn turns_reply(size: usize) -> String {
    let turn = "<content>\nThe rope creaks. <b>Down</b> in the well somebody answers, quietly.\n</content>\n<variable_update>\n\
        <analysis>somebody is in the well</analysis>\n[[\"SET\", \"location\", \"old well\"], [\"SUB\", \"torch.minutes\", 10]]\n\
        </variable_update>\n";
    repeat_to_size(turn, size)
}

fn jsonseq_reply(size: usize) -> String {
    let line = |event: &str, data: serde_json::Value| {
        format!("{}\n", serde_json::json!({"event": event, "data": data}))
    };
    let deltas = |event: &str, data: serde_json::Value, text: String| {
        // One paragraph per delta.
        let lines = text.split_inclusive("\n\n").map(|text| {
            let mut data = data.clone();
            data["text"] = text.into();
            line(event, data)
        });
        lines.collect::<String>()
    };
    let none = || serde_json::json!({});
    let (reasoning, answer) = (
        recorded::make_reasoning(TextKind::Mixed, size / 4),
        recorded::make_answer(TextKind::Mixed, size * 3 / 4),
    );
    let mut reply = line("thinking_start", none());
    reply += &line("phase_start", serde_json::json!({"id": 1, "title": "Goal"}));
    reply += &deltas("phase_delta", serde_json::json!({"id": 1}), reasoning);
    reply += &line("thinking_end", none());
    reply += &deltas("final_delta", none(), answer);
    reply += &line("serp_queries", serde_json::json!({"queries": ["q1", "q2"]}));
    reply + &line("final_end", none())
}

/// Makes deltas of one word each.
fn small_event_reply(size: usize) -> String {
    let reply = repeat_to_size("{\"event\":\"final_delta\",\"data\":{\"text\":\"word \"}}\n", size);
    reply + "{\"event\":\"final_end\",\"data\":{}}\n"
}

fn plan_json(mode: &str, answer: Option<&str>, calls: &[serde_json::Value]) -> String {
    let plan = serde_json::json!({
        "thought": "The request is clear.", "response_mode": mode, "direct_response": answer, "tool_calls": calls,
    });
    format!("```json\n{plan:#}\n```\n")
}

fn call_json(input: &str) -> serde_json::Value {
    serde_json::json!({"name": "lintSRSDocument", "args": {"userInput": input, "projectName": "Shop"}})
}

/// Makes calls of about 100 bytes each.
fn small_call_plan(size: usize) -> String {
    let calls = vec![call_json("check it"); (size / 150).max(1)];
    plan_json("TOOL_EXECUTION", None, &calls)
}

fn large_argument_plan(size: usize) -> String {
    plan_json("TOOL_EXECUTION", None, &[call_json(&recorded::make_answer(TextKind::Mixed, size))])
}

fn answer_reply(size: usize) -> String {
    plan_json("KNOWLEDGE_QA", Some(&recorded::make_answer(TextKind::Mixed, size)), &[])
}

fn written_call(input: &str) -> String {
    let call = serde_json::json!({"name": "lint", "arguments": {"userInput": input, "projectName": "Shop"}});
    format!("<tool_call>\n{call}\n</tool_call>\n")
}

/// Makes calls as text, of about 100 bytes each.
fn written_calls_reply(size: usize) -> String {
    repeat_to_size(&written_call("check it"), size)
}

/// Makes a call as text, with one argument of about `size` bytes.
fn written_argument_reply(size: usize) -> String {
    written_call(&recorded::make_answer(TextKind::Mixed, size))
}
