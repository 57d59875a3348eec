//! `cargo xtask work`: instructions that hostile input costs, counted by valgrind's callgrind.
//!
//! Instructions are the same on every run, so that growth with the size of the input can be told from noise. A clock
//! cannot tell on a shared machine, and a count of allocations (`tests/it/hostile.rs`) misses what is only read again.

use std::fmt;
use std::path::Path;
use std::process::Command;

use anyhow::Context;
use tambour::dialect::{DIALECTS, Entry};
use tambour::event::Sink;
use tambour::{End, Event, Finding, Options, Pipeline};
use tambour_fixtures::hostile::{FEW, PATTERNS, PLACES, input};

/// Sizes of the inputs, each twice the last. What the larger two add is compared with what the smaller two add.
const SIZES: [usize; 3] = [2 << 10, 4 << 10, 8 << 10];

/// How much larger an input is read before it is complained of: steps of buffers and limits weigh less then.
const LARGER: usize = 4;

/// Most times by which the second step may cost more than the first: 2 is linear, 4 quadratic. Fixed sizes of
/// buffers and limits are why linear work is not exactly 2.
const GROWTH: f64 = 2.3;

/// Instructions a byte that are never too many: below, steps in the copying of memory are all there is to see.
const CHEAP: f64 = 60.0;

/// Chunk sizes: all at once, and as models send.
const CHUNKS: [usize; 2] = [usize::MAX, 4];

pub(crate) fn valgrind() -> bool {
    crate::test::quiet(Command::new("valgrind").arg("--version"))
}

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => compare("few"),
        ["--all"] => compare("all"),
        ["read", dialect, amount] => {
            // What is made once for all readings is no work on an input.
            read_input(dialect, b"{\"thought\": <", usize::MAX);
            cases(amount).iter().for_each(|case| read(dialect, case, 1));
            Ok(())
        }
        ["again", dialect, amount, index] => {
            read_input(dialect, b"{\"thought\": <", usize::MAX);
            read(dialect, &cases(amount)[index.parse::<usize>()?], LARGER);
            Ok(())
        }
        _ => anyhow::bail!("usage: cargo xtask work [--all]"),
    }
}

/// One kind of input, read at each size.
struct Case {
    place: &'static str,
    pattern: &'static str,
    chunk: usize,
}

/// `few` or `all` cases.
fn cases(amount: &str) -> Vec<Case> {
    let places: Vec<&str> = match amount {
        "few" => FEW.1.iter().map(|&place| PLACES[place]).collect(),
        _ => PLACES.to_vec(),
    };
    let patterns = if amount == "few" { FEW.0 } else { PATTERNS };
    let pairs = places.iter().flat_map(|place| patterns.iter().map(move |pattern| (*place, *pattern)));
    pairs.flat_map(|(place, pattern)| CHUNKS.map(|chunk| Case { place, pattern, chunk })).collect()
}

/// Reads a case at each size; callgrind writes its count down after each call of [`reading`].
fn read(dialect: &str, case: &Case, times: usize) {
    for size in SIZES {
        reading(dialect, input(case.place, case.pattern, size * times).as_bytes(), case.chunk);
    }
}

struct Nothing;

impl Sink for Nothing {
    fn event(&mut self, _: Event<'_>) {}

    fn finding(&mut self, _: Finding) {}
}

/// What is counted.
#[inline(never)]
fn reading(dialect: &str, input: &[u8], chunk: usize) {
    read_input(dialect, input, chunk);
}

/// What `limits.hold` bounds grows with the input here, so that its cost shows.
fn read_input(dialect: &str, input: &[u8], chunk: usize) {
    let mut options = Options::default();
    options.limits.hold = 1 << 30;
    let mut pipeline = Pipeline::new(dialect, &options).expect("it is in the table");
    input.chunks(chunk).for_each(|chunk| pipeline.push(chunk, &mut Nothing));
    pipeline.finish(&End::stop(), &mut Nothing);
}

fn compare(amount: &str) -> anyhow::Result<()> {
    anyhow::ensure!(valgrind(), "valgrind is not installed: without it instructions cannot be counted");
    let cases = cases(amount);
    let mut complaints = 0;
    // One process a dialect, two at a time.
    let mut all = Vec::new();
    for pair in DIALECTS.chunks(2) {
        all.extend(std::thread::scope(|scope| {
            let run =
                |entry: &'static Entry| scope.spawn(|| costs(&["read", entry.name, amount], cases.len()));
            let running: Vec<_> = pair.iter().map(run).collect();
            let results = running.into_iter().map(|thread| thread.join().expect("no reading panics"));
            results.collect::<Vec<_>>()
        }));
    }
    for (entry, costs) in DIALECTS.iter().zip(all) {
        let costs = costs?;
        for (index, (case, cost)) in
            cases.iter().zip(&costs).enumerate().filter(|(_, (_, cost))| cost.is_too_much())
        {
            let again = costs_again(entry.name, amount, index)?;
            if again.is_too_much() {
                complaints += 1;
                println!("{}: {case}: {cost}, {again} times {LARGER}", entry.name);
            }
        }
        let dearest = cases.iter().zip(&costs).max_by_key(|(_, cost)| cost.0[2]);
        let mean = costs.iter().map(Cost::per_byte).sum::<f64>() / costs.len() as f64;
        println!("{}: {mean:.0} instructions a byte of hostile input", entry.name);
        if let Some((case, cost)) = dearest {
            println!("  at most {:.0}: {case}", cost.per_byte());
        }
    }
    anyhow::ensure!(complaints == 0, "{complaints} inputs cost more than linear work");
    Ok(())
}

/// Instructions at each size.
struct Cost([u64; 3]);

impl Cost {
    fn growth(&self) -> f64 {
        let Cost([small, middle, large]) = self;
        large.saturating_sub(*middle) as f64 / middle.saturating_sub(*small).max(1) as f64
    }

    /// What a byte costs between the larger two sizes.
    fn last_byte(&self) -> f64 {
        self.0[2].saturating_sub(self.0[1]) as f64 / (SIZES[2] - SIZES[1]) as f64
    }

    fn is_too_much(&self) -> bool {
        self.growth() > GROWTH && self.last_byte() > CHEAP
    }

    fn per_byte(&self) -> f64 {
        self.0[2] as f64 / SIZES[2] as f64
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} instructions at {SIZES:?} bytes, growth {:.2}", self.0, self.growth())
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} after {:?}, ", self.pattern, self.place)?;
        if self.chunk == usize::MAX {
            f.write_str("one chunk")
        } else {
            write!(f, "chunks of {}", self.chunk)
        }
    }
}

/// The cost of one case with larger inputs.
fn costs_again(dialect: &str, amount: &str, index: usize) -> anyhow::Result<Cost> {
    let costs = costs(&["again", dialect, amount, &index.to_string()], 1)?;
    costs.into_iter().next().context("one case")
}

/// Runs `xtask work` with these arguments, the second one a dialect, under callgrind: the cost of each of so many cases.
fn costs(arguments: &[&str], cases: usize) -> anyhow::Result<Vec<Cost>> {
    let folder = std::env::temp_dir().join(format!("tambour-work-{}-{}", std::process::id(), arguments[1]));
    std::fs::create_dir_all(&folder)?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--dump-after=xtask::work::reading", "--zero-before=xtask::work::reading"])
        .args(["--dump-line=no", "--combine-dumps=no"])
        .arg(format!("--callgrind-out-file={}", folder.join("out").display()))
        .arg(std::env::current_exe()?)
        .arg("work")
        .args(arguments)
        .output()
        .context("valgrind")?;
    let counts = counts(&folder);
    std::fs::remove_dir_all(&folder)?;
    anyhow::ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let counts = counts?;
    anyhow::ensure!(counts.len() == 3 * cases, "{} counts of {cases} cases", counts.len());
    Ok(counts.chunks_exact(3).map(|counts| Cost([counts[0], counts[1], counts[2]])).collect())
}

/// The counts of the numbered dumps in a folder, in order.
fn counts(folder: &Path) -> anyhow::Result<Vec<u64>> {
    let mut dumps = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let Some(number) = path.extension().and_then(|number| number.to_str()?.parse::<u64>().ok()) else {
            continue;
        };
        let text = std::fs::read_to_string(&path)?;
        // Zeroing dumps too; only those after a call count.
        if !text.contains("desc: Trigger: --dump-after") {
            continue;
        }
        let count = text.lines().find_map(|line| line.strip_prefix("summary: ")).context("no summary")?;
        dumps.push((number, count.trim().parse()?));
    }
    dumps.sort_unstable();
    Ok(dumps.into_iter().map(|(_, count)| count).collect())
}
