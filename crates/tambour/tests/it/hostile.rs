//! Hostile input costs no more than any other of its size.
//!
//! Clocks are no measure on a shared machine, so work is counted. Here: bytes allocated, bytes alive at a time, and
//! events and findings sent, at two sizes; the larger may cost only as much more as it is longer. What reads bytes again
//! without copying them escapes this count; `cargo xtask work` counts instructions under valgrind for that.

use tambour::dialect::DIALECTS;
use tambour::event::Sink;
use tambour::{End, Event, Finding, Options, Pipeline};
use tambour_fixtures::hostile::{PATTERNS, PLACES, input};

/// Sizes that are compared, in bytes.
const SMALL: usize = 16 << 10;
const LARGE: usize = 256 << 10;

/// Bytes that one reader may hold at a time, whatever it reads: a few buffers of `limits.hold`.
const ALIVE: u64 = 1 << 20;

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
}

fn cost(dialect: &str, input: &str, size: usize) -> Cost {
    let mut count = Count::default();
    let allocations = allocation_counter::measure(|| {
        let mut pipeline = Pipeline::new(dialect, &Options::default()).expect("it is in the table");
        input.as_bytes().chunks(size).for_each(|chunk| pipeline.push(chunk, &mut count));
        pipeline.finish(&End::stop(), &mut count);
    });
    Cost { sent: count.sent, allocated: allocations.bytes_total, alive: allocations.bytes_max }
}

/// Fails when the larger input costs more than its size allows.
fn linear(dialect: &str, place: &str, pattern: &str, chunk: Option<usize>) -> Result<(), String> {
    let size = |size: usize| chunk.unwrap_or(size);
    let small = cost(dialect, &input(place, pattern, SMALL), size(SMALL));
    let large = cost(dialect, &input(place, pattern, LARGE), size(LARGE));
    let times = (LARGE / SMALL) as u64;
    let complain = |what: &str, small: u64, large: u64| {
        Err(format!("{dialect}, {pattern:?} in {place:?}, chunks of {chunk:?}: {what} {small}, then {large}"))
    };
    // Buffers that are full only in the larger input make up the constant.
    if large.allocated > 2 * times * small.allocated + ALIVE {
        return complain("bytes allocated", small.allocated, large.allocated);
    }
    if large.alive > ALIVE {
        return complain("bytes alive", small.alive, large.alive);
    }
    if large.sent > 2 * times * small.sent + 1000 {
        return complain("events and findings", small.sent, large.sent);
    }
    Ok(())
}

#[test]
fn work_on_hostile_input_is_linear() {
    // X-007, on a small stack too: depth of the input is no depth of calls.
    let work = || {
        let mut complaints = Vec::new();
        for entry in DIALECTS {
            for place in PLACES {
                for pattern in PATTERNS {
                    for chunk in [None, Some(4)] {
                        complaints.extend(linear(entry.name, place, pattern, chunk).err());
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
