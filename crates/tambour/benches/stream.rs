//! Speed of whole readings: nanoseconds a chunk and megabytes a second for each dialect, and
//! as a lower bound a search for `<` in each chunk, measured in the same run.
//!
//! `cargo xtask bench lib` runs it; without `--bench` it reads each reply once as a smoke test. `--json`
//! prints one object a line. `--count CASE SIZE CHUNK` reads once, for instruction counters; `--only CASE`
//! measures one case.

use std::fmt::Write as _;
use std::hint::black_box;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use tambour::dialect;
use tambour::event::Sink;
use tambour::{Event, Finding, InputEnd, Options, Pipeline};

/// Function that makes a reply of about this many bytes.
type MakeText = fn(usize) -> String;

/// Name, dialect and reply of each case.
const CASES: [(&str, &str, MakeText); 17] = [
    ("plain, think", "plain", plain_reply),
    ("plain, Chinese", "plain", chinese_reply),
    ("plain, code", "plain", code_reply),
    ("thinkingml", "thinkingml", thinkingml_reply),
    ("jsonseq", "jsonseq", jsonseq_reply),
    ("jsonseq, small events", "jsonseq", small_event_reply),
    ("aiplan, small calls", "aiplan", small_call_plan),
    ("aiplan, one argument", "aiplan", large_argument_plan),
    ("aiplan, answer", "aiplan", answer_reply),
    ("filament, content", "filament", story_reply),
    ("filament, operations", "filament", turns_reply),
    ("toolcall, text", "toolcall", plain_reply),
    ("toolcall, hermes", "toolcall", written_calls_reply),
    ("toolcall, one 1 MB argument", "toolcall", written_argument_reply),
    ("auto, plain", "auto", plain_reply),
    ("auto, thinkingml", "auto", thinkingml_reply),
    ("auto, jsonseq", "auto", jsonseq_reply),
];

const SIZES: [usize; 3] = [4 << 10, 64 << 10, 1 << 20];
const CHUNKS: [usize; 3] = [4, 64, usize::MAX];

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
    let each = Duration::from_millis(if flags.is_empty() { 0 } else { 150 });
    match arguments.as_slice() {
        ["--count", case, size, chunk] => read_once(case, size, chunk),
        ["--only", case] => {
            print_table(&measure_cases(each, available_cases().filter(|(name, ..)| name == case)))
        }
        ["--cases"] => available_cases().for_each(|(name, ..)| println!("{name}")),
        ["--json"] => measure_cases(each, available_cases()).iter().for_each(BenchRow::print_json),
        _ => print_table(&measure_cases(each, available_cases())),
    }
}

/// Lists the cases of compiled dialects.
fn available_cases() -> impl Iterator<Item = (&'static str, &'static str, MakeText)> {
    CASES.into_iter().filter(|(_, dialect, _)| dialect::find_dialect(dialect).is_ok())
}

fn read_once(case: &str, size: &str, chunk: &str) {
    let (_, dialect, make) = available_cases().find(|(name, ..)| *name == case).expect("one of `--cases`");
    let (size, chunk) = (size.parse().expect("a size"), chunk.parse().expect("a size"));
    black_box(read_reply(dialect, make(size).as_bytes(), chunk));
}

fn read_reply(dialect: &str, reply: &[u8], chunk: usize) -> usize {
    let mut sink = EventCounter::default();
    static PLAIN: LazyLock<Options> = LazyLock::new(Options::default);
    static CALLING: LazyLock<Options> = LazyLock::new(|| {
        let mut options = Options::default();
        let tools = serde_json::json!({"lint": {"type": "object"}});
        options.set("tools", tools).expect("a registry");
        options
    });
    let options = if dialect == "toolcall" { &CALLING } else { &PLAIN };
    let mut pipeline = Pipeline::new(dialect, options).expect("it is in the table");
    reply.chunks(chunk).for_each(|chunk| pipeline.push(chunk, &mut sink));
    pipeline.finish(&InputEnd::stop(), &mut sink);
    sink.0
}

/// Searches for `<`, the least that a reader of markup does.
fn search_floor(reply: &[u8], chunk: usize) -> usize {
    reply.chunks(chunk).map(|chunk| memchr::memchr(b'<', black_box(chunk)).unwrap_or(1)).sum()
}

/// One measurement.
struct BenchRow {
    case: &'static str,
    bytes: usize,
    chunk: usize,
    time: Duration,
    floor: Duration,
}

impl BenchRow {
    fn nanoseconds_per_chunk(&self, time: Duration) -> f64 {
        time.as_nanos() as f64 / self.bytes.div_ceil(self.chunk.min(self.bytes)) as f64
    }

    fn rate(&self, time: Duration) -> f64 {
        self.bytes as f64 / 1e6 / time.as_secs_f64()
    }

    fn print_json(&self) {
        let chunk = if self.chunk == usize::MAX { "null".to_owned() } else { self.chunk.to_string() };
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

/// Measures these cases, each for a duration.
fn measure_cases(
    each: Duration,
    cases: impl Iterator<Item = (&'static str, &'static str, MakeText)>,
) -> Vec<BenchRow> {
    let mut rows = Vec::new();
    for (case, dialect, make) in cases {
        for size in SIZES {
            let reply = make(size);
            let reply = reply.as_bytes();
            for chunk in CHUNKS {
                let time = best_time(each, || read_reply(dialect, reply, chunk));
                let floor = best_time(each, || search_floor(reply, chunk));
                rows.push(BenchRow { case, bytes: reply.len(), chunk, time, floor });
            }
        }
    }
    rows
}

fn print_table(rows: &[BenchRow]) {
    println!(
        "{:<20} {:^26}  {:^17}  {:^16}  {:^18}",
        "", "ns per 4 bytes", "64 bytes, 1 MB", "whole, 1 MB", "floor"
    );
    println!(
        "{:<20} {:>8} {:>8} {:>8}  {:>8} {:>8}  {:>16}  {:>8} {:>9}",
        "", "4 KB", "64 KB", "1 MB", "ns", "MB/s", "MB/s", "ns", "times it"
    );
    // Three sizes, three chunk sizes each.
    for rows in rows.chunks(SIZES.len() * CHUNKS.len()) {
        let (small, middle, large) = (&rows[0], &rows[3], &rows[6]);
        let (lines, whole) = (&rows[7], &rows[8]);
        println!(
            "{:<20} {:>8.1} {:>8.1} {:>8.1}  {:>8.1} {:>8.0}  {:>16.0}  {:>8.1} {:>9.1}",
            small.case,
            small.nanoseconds_per_chunk(small.time),
            middle.nanoseconds_per_chunk(middle.time),
            large.nanoseconds_per_chunk(large.time),
            lines.nanoseconds_per_chunk(lines.time),
            lines.rate(lines.time),
            whole.rate(whole.time),
            large.nanoseconds_per_chunk(large.floor),
            large.time.as_secs_f64() / large.floor.as_secs_f64()
        );
    }
}

/// Returns the best time of several runs: other work on the machine only ever adds.
fn best_time(each: Duration, mut run: impl FnMut() -> usize) -> Duration {
    let (mut least, begin) = (Duration::MAX, Instant::now());
    loop {
        let start = Instant::now();
        black_box(run());
        least = least.min(start.elapsed());
        if begin.elapsed() >= each {
            return least;
        }
    }
}

const PROSE: &str = "Well, this is prose as models write it, more or less: a sentence, then another one. When the \
                     first part is settled (a < b holds here), the second follows from it.\n\n- one item\n- **two** items\n\n";

const CHINESE: &str = "先看问题，再找原因：第一步确认现象，第二步查看日志，第三步逐个排除。每一步都记下结果，方便回头核对。\n\n";

const CODE: &str = "Use a map:\n\n```rust\nlet mut seen: HashMap<String, Vec<u8>> = HashMap::new();\nfor (k, v) in input.iter() {\n    \
                    if v.len() < 3 && k != \"\" { seen.insert(k.clone(), v.to_vec()); }\n}\n```\n\nThen call `get::<T>()` on it.\n\n";

/// Repeats `piece` up to about `size` bytes.
fn repeat_to_size(piece: &str, size: usize) -> String {
    piece.repeat((size / piece.len()).max(1))
}

/// Makes a reply of which a quarter is reasoning and the rest is the answer.
fn plain_reply(size: usize) -> String {
    format!("<think>\n{}</think>\n{}", repeat_to_size(PROSE, size / 4), repeat_to_size(PROSE, size * 3 / 4))
}

fn chinese_reply(size: usize) -> String {
    format!(
        "<think>\n{}</think>\n{}",
        repeat_to_size(CHINESE, size / 4),
        repeat_to_size(CHINESE, size * 3 / 4)
    )
}

fn code_reply(size: usize) -> String {
    format!("<think>\n{}</think>\n{}", repeat_to_size(PROSE, size / 4), repeat_to_size(CODE, size * 3 / 4))
}

fn thinkingml_reply(size: usize) -> String {
    let mut reply = String::from("<serp>The user wants a plan.</serp>\n<thinking>\n");
    for (id, title) in ["Goal", "Facts", "Plan"].into_iter().enumerate() {
        let text = repeat_to_size(PROSE, size / 12);
        let _ = write!(reply, "<phase id=\"{}\">\n<title>{title}</title>\n{text}</phase>\n", id + 1);
    }
    let answer = repeat_to_size(PROSE, size * 3 / 4);
    let _ = write!(
        reply,
        "</thinking>\n<final>\n{answer}<!-- <serp_queries>\n[\"q1\",\"q2\"]\n</serp_queries> -->\n</final>"
    );
    reply
}

/// Makes one `thought` and one `content` element.
fn story_reply(size: usize) -> String {
    let (thought, content) = (repeat_to_size(PROSE, size / 4), repeat_to_size(PROSE, size * 3 / 4));
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
    let delta = |event: &str, mut data: serde_json::Value| {
        data["text"] = PROSE.into();
        line(event, data)
    };
    let none = || serde_json::json!({});
    let mut reply = line("thinking_start", none());
    reply += &line("phase_start", serde_json::json!({"id": 1, "title": "Goal"}));
    reply += &repeat_to_size(&delta("phase_delta", serde_json::json!({"id": 1})), size / 4);
    reply += &line("thinking_end", none());
    reply += &repeat_to_size(&delta("final_delta", none()), size * 3 / 4);
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
    plan_json("TOOL_EXECUTION", None, &[call_json(&repeat_to_size(PROSE, size))])
}

fn answer_reply(size: usize) -> String {
    plan_json("KNOWLEDGE_QA", Some(&repeat_to_size(PROSE, size)), &[])
}

fn written_call(input: &str) -> String {
    let call = serde_json::json!({"name": "lint", "arguments": {"userInput": input, "projectName": "Shop"}});
    format!("<tool_call>\n{call}\n</tool_call>\n")
}

/// Makes calls as text, of about 100 bytes each.
fn written_calls_reply(size: usize) -> String {
    repeat_to_size(&written_call("check it"), size)
}

/// Makes a call as text with one argument of that size.
fn written_argument_reply(size: usize) -> String {
    written_call(&repeat_to_size(PROSE, size))
}
