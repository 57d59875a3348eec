//! `cargo xtask work`: instructions that hostile input costs, counted by valgrind's callgrind.
//!
//! Instructions are the same on every run, so that growth with the size of the input can be told from noise. A clock
//! cannot tell on a shared machine, and a count of allocations (`tests/it/hostile.rs`) misses what is only read again.

use std::process::Command;

use anyhow::Context;
use tambour::dialect::DIALECTS;
use tambour::event::Sink;
use tambour::{End, Event, Finding, Options, Pipeline};
use tambour_fixtures::hostile::{PATTERNS, PLACES, input};

/// Sizes of the inputs, each twice the last. What the larger two add is compared with what the smaller two add.
const SIZES: [usize; 3] = [6 << 10, 12 << 10, 24 << 10];

/// Most times by which the second step may cost more than the first: 2 is linear, 4 quadratic.
const GROWTH: f64 = 2.6;

/// Instructions per byte that are never too many: below, growth is that of small buffers.
const CHEAP: f64 = 30.0;

pub(crate) fn valgrind() -> bool {
    crate::test::quiet(Command::new("valgrind").arg("--version"))
}

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    match arguments {
        [] => compare(),
        [word, dialect] if word == "read" => {
            read(dialect);
            Ok(())
        }
        _ => anyhow::bail!("usage: cargo xtask work"),
    }
}

/// The readings whose instructions are counted, in order.
fn cases() -> impl Iterator<Item = (&'static str, &'static str, usize, usize)> {
    PLACES.iter().flat_map(|place| PATTERNS.iter().map(move |pattern| (*place, *pattern))).flat_map(
        |(place, pattern)| {
            let chunks = [usize::MAX, 4].into_iter();
            chunks.flat_map(move |chunk| SIZES.into_iter().map(move |size| (place, pattern, chunk, size)))
        },
    )
}

/// Reads all cases; callgrind writes its counts down after each call of [`reading`].
fn read(dialect: &str) {
    for (place, pattern, chunk, size) in cases() {
        let input = input(place, pattern, size);
        reading(dialect, input.as_bytes(), chunk);
    }
}

struct Nothing;

impl Sink for Nothing {
    fn event(&mut self, _: Event<'_>) {}

    fn finding(&mut self, _: Finding) {}
}

/// One reading. What `limits.hold` bounds grows with the input here, so that its cost shows.
#[inline(never)]
fn reading(dialect: &str, input: &[u8], chunk: usize) {
    let mut options = Options::default();
    options.limits.hold = 1 << 30;
    let mut pipeline = Pipeline::new(dialect, &options).expect("it is in the table");
    input.chunks(chunk).for_each(|chunk| pipeline.push(chunk, &mut Nothing));
    pipeline.finish(&End::stop(), &mut Nothing);
}

fn compare() -> anyhow::Result<()> {
    anyhow::ensure!(valgrind(), "valgrind is not installed: without it instructions cannot be counted");
    let mut complaints = 0;
    for entry in DIALECTS {
        let counts = counts(entry.name)?;
        let cases: Vec<_> = cases().collect();
        anyhow::ensure!(counts.len() == cases.len(), "{} counts of {} cases", counts.len(), cases.len());
        let mut dearest = (0.0, "", "");
        for (counts, cases) in counts.chunks(3).zip(cases.chunks(3)) {
            let (place, pattern, chunk, _) = cases[0];
            let (first, second) = (counts[1].saturating_sub(counts[0]), counts[2].saturating_sub(counts[1]));
            let (growth, per_byte) =
                (second as f64 / first.max(1) as f64, counts[2] as f64 / SIZES[2] as f64);
            if per_byte > dearest.0 {
                dearest = (per_byte, place, pattern);
            }
            if growth > GROWTH && per_byte > CHEAP {
                complaints += 1;
                let chunk = if chunk == 4 { "4 bytes a chunk" } else { "one chunk" };
                println!(
                    "{}: {pattern:?} after {place:?}, {chunk}: {counts:?} instructions at {SIZES:?} bytes, x{growth:.1}",
                    entry.name
                );
            }
        }
        let (per_byte, place, pattern) = dearest;
        println!(
            "{}: at most {per_byte:.0} instructions a byte, for {pattern:?} after {place:?}",
            entry.name
        );
    }
    anyhow::ensure!(complaints == 0, "{complaints} inputs cost more than linear work");
    Ok(())
}

/// Instructions of each call of [`reading`].
fn counts(dialect: &str) -> anyhow::Result<Vec<u64>> {
    let folder = std::env::temp_dir().join(format!("tambour-work-{}-{dialect}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--dump-after=*work*reading*", "--zero-before=*work*reading*"])
        .args(["--dump-line=no", "--combine-dumps=no"])
        .arg(format!("--callgrind-out-file={}", folder.join("out").display()))
        .arg(std::env::current_exe()?)
        .args(["work", "read", dialect])
        .output()
        .context("valgrind")?;
    let counts = summaries(&folder);
    std::fs::remove_dir_all(&folder)?;
    anyhow::ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    counts
}

/// The summaries of the numbered dumps in a folder, in order.
fn summaries(folder: &std::path::Path) -> anyhow::Result<Vec<u64>> {
    let mut dumps = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let number =
            path.extension().and_then(|number| number.to_str()).and_then(|number| number.parse().ok());
        let number: u64 = number.unwrap_or(u64::MAX);
        let text = std::fs::read_to_string(&path)?;
        // The last dump is what came after the last call.
        let by_call = text.lines().any(|line| line.starts_with("desc: Trigger: --dump-after"));
        let count =
            text.lines().find_map(|line| line.strip_prefix("summary: ").or(line.strip_prefix("totals: ")));
        if let (true, Some(count)) = (by_call, count) {
            dumps.push((number, count.trim().parse()?));
        }
    }
    dumps.sort_unstable();
    Ok(dumps.into_iter().map(|(_, count)| count).collect())
}
