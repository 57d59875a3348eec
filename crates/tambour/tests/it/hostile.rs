//! Hostile input costs no more than any other of its size (X-007).
//!
//! Clocks are no measure on a shared machine, so work is counted. Here: bytes allocated, bytes alive at a time, bytes
//! held back, and events and findings sent. Bytes that are read again without a copy escape these counts;
//! `cargo xtask work` counts instructions under valgrind for that.

use tambour::dialect::DIALECTS;
use tambour::event::{JoinedEvents, Sink};
use tambour::verdict::Contract;
use tambour::{Event, Finding, InputEnd, Options, Pipeline, Profile};
use tambour_fixtures::hostile::{self, HostileShape};
use tambour_fixtures::queue;

/// Compared sizes, in bytes.
const SMALL: usize = 8 << 10;
const LARGE: usize = 32 << 10;

/// Sizes of inputs that both exceed the limits of held and kept text, in bytes.
const BIG: usize = 32 << 10;
const HUGE: usize = 96 << 10;

/// Largest number of bytes allocated at a time for any input. Values that are delivered whole, such as
/// the queries, take the most: `limits.hold` bounds their text, and each item costs memory besides.
const MAX_ALIVE_BYTES: u64 = 6 << 20;

/// Size in bytes of inputs whose memory is compared with their size.
const WEIGHED_INPUT_BYTES: usize = 64 << 10;

/// Largest number of allocated bytes for each byte of input, and the constant on top of it: findings, of
/// `limits.findings` at most, and schemas of tools.
const ALIVE_PER_BYTE: u64 = 16;
const BASE_ALIVE_BYTES: u64 = 320 << 10;

/// Bytes for repairing: the rewritten text, up to five times as long where its signs are escaped, is read again.
const ALIVE_PER_REPAIRED_BYTE: u64 = 28;

/// Sink that counts events and findings.
#[derive(Default)]
struct EventCounter {
    count: u64,
}

impl Sink for EventCounter {
    fn event(&mut self, _: Event<'_>) {
        self.count += 1;
    }

    fn finding(&mut self, _: Finding) {
        self.count += 1;
    }
}

/// Cost of a reading.
struct ReadingCost {
    output_count: u64,
    allocated_bytes: u64,
    max_alive_bytes: u64,
    max_held_bytes: usize,
}

fn cost(dialect: &str, input: &str, chunk: usize, options: &Options) -> ReadingCost {
    let (mut count, mut max_held_bytes) = (EventCounter::default(), 0);
    let allocations = allocation_counter::measure(|| {
        let mut pipeline = Pipeline::new(dialect, options).expect("it is in the table");
        for chunk in input.as_bytes().chunks(chunk) {
            pipeline.push(chunk, &mut count);
            max_held_bytes = max_held_bytes.max(pipeline.held_bytes());
        }
        pipeline.finish(&InputEnd::stop(), &mut count);
    });
    ReadingCost {
        output_count: count.count,
        allocated_bytes: allocations.bytes_total,
        max_alive_bytes: allocations.bytes_max,
        max_held_bytes,
    }
}

/// Fails when the larger input costs more than its size allows. `limits.hold` is raised, so that held bytes count as well.
fn check_linear(dialect: &str, shape: &HostileShape, chunk: usize) -> Result<(), String> {
    let mut options = Options::default();
    options.limits.hold = 1 << 30;
    let small = cost(dialect, &shape.build_input(SMALL), chunk, &options);
    let large = cost(dialect, &shape.build_input(LARGE), chunk, &options);
    let ratio = (LARGE / SMALL) as u64;
    // The constant covers buffers that only the larger input fills, and its additional findings.
    if large.allocated_bytes > 2 * ratio * small.allocated_bytes + 32 * LARGE as u64 {
        return Err(format!("{} bytes allocated, then {}", small.allocated_bytes, large.allocated_bytes));
    }
    if large.output_count > (LARGE + options.limits.findings + 100) as u64 {
        return Err(format!("{} events and findings for {LARGE} bytes", large.output_count));
    }
    Ok(())
}

/// Fails when reading allocates or holds back more than the limits allow.
fn check_bounded(dialect: &str, shape: &HostileShape, chunk: usize) -> Result<(), String> {
    let mut options = Options::default();
    // Objects that may act are kept whole up to these limits.
    options.limits.value = 8 << 10;
    options.limits.hold = 8 << 10;
    options.limits.items = 128;
    options.limits.findings = 100;
    let big = cost(dialect, &shape.build_input(BIG), chunk, &options);
    let huge = cost(dialect, &shape.build_input(HUGE), chunk, &options);
    if huge.max_alive_bytes > MAX_ALIVE_BYTES || huge.max_alive_bytes > big.max_alive_bytes + (32 << 10) {
        return Err(format!("{} bytes alive, then {}", big.max_alive_bytes, huge.max_alive_bytes));
    }
    let max_held = options.limits.max_held_bytes() + 2 * options.limits.hold;
    if huge.max_held_bytes > max_held {
        return Err(format!("{} bytes held back, {max_held} allowed", huge.max_held_bytes));
    }
    Ok(())
}

/// Fails when decoding, checking or repairing exceeds the allowed bytes for each byte of the input.
fn check_weight(dialect: &str, shape: &HostileShape, chunk: usize) -> Result<(), String> {
    let input = shape.build_input(WEIGHED_INPUT_BYTES);
    // Limits in the same proportion to this input as the defaults to the longest reply.
    let mut options = Options::default();
    let limits = &mut options.limits;
    let ratio = limits.input / WEIGHED_INPUT_BYTES;
    (limits.hold, limits.value, limits.items) =
        (limits.hold / ratio, limits.value / ratio, limits.items / ratio);
    let mut strict = options.clone();
    strict.profile = Profile::Strict;
    let decode = cost(dialect, &input, chunk, &options).max_alive_bytes;
    let contract = Contract::from_name(dialect).expect("a dialect is a contract");
    let check = allocation_counter::measure(|| drop(contract.check(input.as_bytes(), &strict))).bytes_max;
    let repair = allocation_counter::measure(|| {
        let mut sink = JoinedEvents::default();
        let pipeline = Pipeline::new(dialect, &options).expect("it is in the table");
        let mut pipeline = pipeline.with_extensions(true);
        input.as_bytes().chunks(chunk).for_each(|chunk| pipeline.push(chunk, &mut sink));
        pipeline.finish(&InputEnd::stop(), &mut sink);
        drop(pipeline.rewrite(&sink.events));
    });
    for (name, alive, per_byte) in [
        ("decode", decode, ALIVE_PER_BYTE),
        ("check", check, ALIVE_PER_BYTE),
        ("repair", repair.bytes_max, ALIVE_PER_REPAIRED_BYTE),
    ] {
        if alive > per_byte * input.len() as u64 + BASE_ALIVE_BYTES {
            return Err(format!("{name}: {alive} bytes alive for {} of input", input.len()));
        }
    }
    Ok(())
}

type Check = fn(&str, &HostileShape, usize) -> Result<(), String>;

/// Runs a check on every dialect, in threads with a small stack: nested input must not nest calls.
fn check_dialects(shapes: &[HostileShape], chunks: &'static [usize], check: Check) {
    let jobs_of = |dialect: &'static str| shapes.chunks(16).map(move |shapes| (dialect, shapes));
    let jobs: Vec<_> = DIALECTS.iter().flat_map(|entry| jobs_of(entry.name)).collect();
    queue::check_all(&jobs, |&(dialect, shapes)| {
        let shapes = shapes.to_vec();
        let work = move || {
            let mut complaints = Vec::new();
            for shape in &shapes {
                for &chunk in chunks {
                    if let Err(error) = check(dialect, shape, chunk) {
                        complaints.push(format!("{dialect}, {shape}, {chunk}: {error}"));
                    }
                }
            }
            if complaints.is_empty() { Ok(()) } else { Err(complaints.join("\n")) }
        };
        let thread = std::thread::Builder::new().stack_size(256 << 10).spawn(work).expect("a thread starts");
        thread.join().expect("no reading panics")
    });
}

#[test]
fn work_on_hostile_input_is_linear() {
    // X-007
    check_dialects(&hostile::few_shapes(), &[4, usize::MAX], check_linear);
}

#[test]
fn memory_on_hostile_input_is_bounded() {
    // X-007
    check_dialects(&hostile::few_shapes(), &[512], check_bounded);
}

#[test]
fn memory_is_bounded_by_the_bytes_of_the_input() {
    // X-007
    check_dialects(&hostile::fewest_shapes(), &[4 << 10], check_weight);
}

#[test]
fn repairing_bytes_that_are_no_text_takes_little_memory() {
    // X-007
    let input = vec![0xFF; WEIGHED_INPUT_BYTES];
    for entry in DIALECTS {
        let repair = allocation_counter::measure(|| {
            let mut sink = JoinedEvents::default();
            let mut pipeline = Pipeline::new(entry.name, &Options::default()).expect("it is in the table");
            pipeline.push(&input, &mut sink);
            pipeline.finish(&InputEnd::stop(), &mut sink);
            drop(pipeline.rewrite(&sink.events));
        });
        let alive = repair.bytes_max;
        assert!(
            alive < ALIVE_PER_REPAIRED_BYTE * WEIGHED_INPUT_BYTES as u64 + BASE_ALIVE_BYTES,
            "{}: {alive} bytes alive",
            entry.name
        );
    }
}

/// Builds replies of many small values, or of few large ones.
fn large_replies(size: usize) -> Vec<String> {
    let repeat_to_size = |pattern: &str| pattern.repeat(size / pattern.len());
    let call = |args: &str| {
        format!(
            "{{\"thought\":\"t\",\"response_mode\":\"TOOL_EXECUTION\",\"direct_response\":null,\"tool_calls\":\
             [{{\"name\":\"lintSRSDocument\",\"args\":{args}}}]}}"
        )
    };
    let event = "{\"event\":\"thinking_start\",\"data\":{}}\n";
    vec![
        call(&format!("\"[{}{{}}]\"", repeat_to_size("{},"))),
        call(&format!("\"{{\\\"userInput\\\":[{}1]}}\"", repeat_to_size("1,"))),
        call(&format!("{{\"userInput\":[{}1]}}", repeat_to_size("1,"))),
        call(&format!("{{\"userInput\":\"{}\"}}", repeat_to_size("x"))),
        call(&format!("{{{}\"userInput\":1}}", repeat_to_size("\"a\":1,"))),
        format!("[{}{{}}]", repeat_to_size("{},")),
        format!("{{\"plan\":[{}{{}}]}}", repeat_to_size("{},")),
        format!("{event}[{}{{}}]", repeat_to_size("{},")),
        format!(
            "{event}{{\"event\":\"serp_queries\",\"data\":{{\"queries\":[{}\"\"]}}}}",
            repeat_to_size("\"\",")
        ),
        format!("{{\"should_exit\":false,\"response\":{{\"a\":[{}{{}}]}}}}", repeat_to_size("{},")),
        format!("{{\"direct_response\":\"{}\"}}", repeat_to_size("\\n")),
        repeat_to_size("{\"x\":1} "),
        repeat_to_size("{\"thought\":\"t\"}\n"),
        repeat_to_size("\u{1}"),
    ]
}

#[test]
fn memory_is_bounded_by_the_reply() {
    // X-007: reading any reply takes at most sixteen times its length.
    let size = 1 << 20;
    let work = move || {
        let mut complaints = Vec::new();
        for reply in large_replies(size) {
            for entry in DIALECTS {
                for chunk in [1000, usize::MAX] {
                    let alive = cost(entry.name, &reply, chunk, &Options::default()).max_alive_bytes;
                    if alive > 16 * reply.len() as u64 {
                        let start: String = reply.chars().take(120).collect();
                        complaints.push(format!("{}: {alive} bytes alive: {start}", entry.name));
                    }
                }
            }
        }
        complaints
    };
    let thread = std::thread::Builder::new().stack_size(256 << 10).spawn(work).expect("a thread starts");
    let complaints = thread.join().expect("no reading panics");
    assert!(complaints.is_empty(), "{}:\n{}", complaints.len(), complaints.join("\n"));
}

#[test]
fn what_comes_before_an_answer_is_not_kept() {
    // R-22, X-007: text that is not held is not read again.
    let answer = "\"response_mode\":\"GENERAL_CHAT\",\"direct_response\":\"";
    let thought = "\"thought\":\"t\"";
    for blank in ["\\n", "\n", " ", "\\t\\r"] {
        for chunk in [1, 4, 4096] {
            let blanks = blank.repeat(50_000);
            // The second reply waits for the thought as well.
            for reply in [
                format!("{{{thought},{answer}{blanks}Hi\",\"tool_calls\":[]}}"),
                format!("{{{answer}{blanks}Hi\",{thought},\"tool_calls\":[]}}"),
            ] {
                let (mut count, mut max_held) = (EventCounter::default(), 0);
                let mut pipeline = Pipeline::new("aiplan", &Options::default()).expect("it is in the table");
                for chunk in reply.as_bytes().chunks(chunk) {
                    pipeline.push(chunk, &mut count);
                    max_held = max_held.max(pipeline.held_bytes());
                }
                pipeline.finish(&InputEnd::stop(), &mut count);
                assert!(max_held < 256, "{blank:?} in pieces of {chunk}: {max_held} bytes are held");
            }
        }
    }
}
