//! Hostile input costs no more than any other of its size (X-007).
//!
//! Clocks are no measure on a shared machine, so work is counted. Here: bytes allocated, bytes alive at a time, bytes
//! held back, and events and findings sent. What reads bytes again without copying them escapes these counts;
//! `cargo xtask work` counts instructions under valgrind for that.

use tambour::dialect::DIALECTS;
use tambour::event::Sink;
use tambour::{End, Event, Finding, Options, Pipeline};
use tambour_fixtures::hostile::{FEW, PLACES, input};
use tambour_fixtures::queue;

/// Sizes that are compared, in bytes.
const SMALL: usize = 8 << 10;
const LARGE: usize = 64 << 10;

/// Sizes of inputs that are read with the default limits; both exceed `limits.hold`.
const BIG: usize = 128 << 10;
const HUGE: usize = 512 << 10;

/// Bytes that one reader may have allocated at a time, whatever it reads. Values that are delivered whole, such as
/// the queries, take the most: `limits.hold` bounds their text, and each item of it has a cost of its own.
const ALIVE: u64 = 6 << 20;

/// Counts what is sent, keeps nothing.
#[derive(Default)]
struct Count {
    sent: u64,
}

impl Sink for Count {
    fn event(&mut self, _: Event<'_>) {
        self.sent += 1;
    }

    fn finding(&mut self, _: Finding) {
        self.sent += 1;
    }
}

/// What a reading cost.
struct Cost {
    sent: u64,
    allocated: u64,
    alive: u64,
    held: usize,
}

fn cost(dialect: &str, input: &str, chunk: usize, options: &Options) -> Cost {
    let (mut count, mut held) = (Count::default(), 0);
    let allocations = allocation_counter::measure(|| {
        let mut pipeline = Pipeline::new(dialect, options).expect("it is in the table");
        for chunk in input.as_bytes().chunks(chunk) {
            pipeline.push(chunk, &mut count);
            held = held.max(pipeline.held());
        }
        pipeline.finish(&End::stop(), &mut count);
    });
    Cost { sent: count.sent, allocated: allocations.bytes_total, alive: allocations.bytes_max, held }
}

/// Fails when the larger input costs more than its size allows. What `limits.hold` bounds grows with the input here,
/// so that its cost shows.
fn linear(dialect: &str, place: &str, pattern: &str, chunk: usize) -> Result<(), String> {
    let mut options = Options::default();
    options.limits.hold = 1 << 30;
    let small = cost(dialect, &input(place, pattern, SMALL), chunk, &options);
    let large = cost(dialect, &input(place, pattern, LARGE), chunk, &options);
    let times = (LARGE / SMALL) as u64;
    // Buffers that only the larger input fills, and findings that only it has, make up the constant.
    if large.allocated > 2 * times * small.allocated + 32 * LARGE as u64 {
        return Err(format!("{} bytes allocated, then {}", small.allocated, large.allocated));
    }
    if large.sent > (LARGE + options.limits.findings + 100) as u64 {
        return Err(format!("{} events and findings for {LARGE} bytes", large.sent));
    }
    Ok(())
}

/// Fails when reading takes more memory, or holds back more, than the limits say.
fn bounded(dialect: &str, place: &str, pattern: &str, chunk: usize) -> Result<(), String> {
    let mut options = Options::default();
    // What is kept whole because it may act grows up to these.
    options.limits.value = 16 << 10;
    options.limits.items = 256;
    let big = cost(dialect, &input(place, pattern, BIG), chunk, &options);
    let huge = cost(dialect, &input(place, pattern, HUGE), chunk, &options);
    if huge.alive > ALIVE || huge.alive > big.alive + (64 << 10) {
        return Err(format!("{} bytes alive, then {}", big.alive, huge.alive));
    }
    let allowed = options.limits.held() + 2 * options.limits.hold;
    if huge.held > allowed {
        return Err(format!("{} bytes held back, {allowed} allowed", huge.held));
    }
    Ok(())
}

type Check = fn(&str, &str, &str, usize) -> Result<(), String>;

/// Runs a check on every dialect, in threads with a small stack: depth of the input is no depth of calls.
fn each(
    places: Vec<&'static str>,
    patterns: &'static [&'static str],
    chunks: &'static [usize],
    check: Check,
) {
    let of_dialect = |dialect: &'static str| places.iter().map(move |place| (dialect, *place));
    let jobs: Vec<_> = DIALECTS.iter().flat_map(|entry| of_dialect(entry.name)).collect();
    queue::check(&jobs, |&(dialect, place)| {
        let work = move || -> Result<(), String> {
            for pattern in patterns {
                for &chunk in chunks {
                    check(dialect, place, pattern, chunk).map_err(|error| {
                        format!("{dialect}, {pattern:?} after {place:?}, {chunk}: {error}")
                    })?;
                }
            }
            Ok(())
        };
        let thread = std::thread::Builder::new().stack_size(256 << 10).spawn(work).expect("a thread starts");
        thread.join().expect("no reading panics")
    });
}

#[test]
fn work_on_hostile_input_is_linear() {
    // X-007
    let places = FEW.1.iter().map(|&place| PLACES[place]).collect();
    each(places, FEW.0, &[4, usize::MAX], linear);
}

#[test]
fn memory_on_hostile_input_is_bounded() {
    // X-007
    let places = FEW.1.iter().map(|&place| PLACES[place]).collect();
    each(places, FEW.0, &[512], bounded);
}

/// Replies of many small values, or of few large ones.
fn large_replies(size: usize) -> Vec<String> {
    let many = |pattern: &str| pattern.repeat(size / pattern.len());
    let call = |args: &str| {
        format!(
            "{{\"thought\":\"t\",\"response_mode\":\"TOOL_EXECUTION\",\"direct_response\":null,\"tool_calls\":\
             [{{\"name\":\"lintSRSDocument\",\"args\":{args}}}]}}"
        )
    };
    let event = "{\"event\":\"thinking_start\",\"data\":{}}\n";
    vec![
        call(&format!("\"[{}{{}}]\"", many("{},"))),
        call(&format!("\"{{\\\"userInput\\\":[{}1]}}\"", many("1,"))),
        call(&format!("{{\"userInput\":[{}1]}}", many("1,"))),
        call(&format!("{{\"userInput\":\"{}\"}}", many("x"))),
        call(&format!("{{{}\"userInput\":1}}", many("\"a\":1,"))),
        format!("[{}{{}}]", many("{},")),
        format!("{{\"plan\":[{}{{}}]}}", many("{},")),
        format!("{event}[{}{{}}]", many("{},")),
        format!("{event}{{\"event\":\"serp_queries\",\"data\":{{\"queries\":[{}\"\"]}}}}", many("\"\",")),
        format!("{{\"should_exit\":false,\"response\":{{\"a\":[{}{{}}]}}}}", many("{},")),
        format!("{{\"direct_response\":\"{}\"}}", many("\\n")),
        many("{\"x\":1} "),
        many("{\"thought\":\"t\"}\n"),
        many("\u{1}"),
    ]
}

#[test]
fn memory_is_bounded_by_the_reply() {
    // X-007: whatever a reply holds, sixteen times its length is enough to read it.
    let size = 1 << 20;
    let work = move || {
        let mut complaints = Vec::new();
        for reply in large_replies(size) {
            for entry in DIALECTS {
                for chunk in [1000, usize::MAX] {
                    let alive = cost(entry.name, &reply, chunk, &Options::default()).alive;
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
    // R-22, X-007: what is not held is not read again.
    let start = "{\"thought\":\"t\",\"response_mode\":\"GENERAL_CHAT\",\"direct_response\":\"";
    for blank in ["\\n", "\n", " ", "\\t\\r"] {
        for chunk in [1, 4, 4096] {
            let reply = format!("{start}{}Hi\",\"tool_calls\":[]}}", blank.repeat(50_000));
            let (mut count, mut held) = (Count::default(), 0);
            let mut pipeline = Pipeline::new("aiplan", &Options::default()).expect("it is in the table");
            for chunk in reply.as_bytes().chunks(chunk) {
                pipeline.push(chunk, &mut count);
                held = held.max(pipeline.held());
            }
            pipeline.finish(&End::stop(), &mut count);
            assert!(held < 256, "{blank:?} in pieces of {chunk}: {held} bytes are held");
        }
    }
}
