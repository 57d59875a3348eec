//! `cargo xtask work`: counts the instructions of hostile input with valgrind's callgrind.
//!
//! Instruction counts repeat exactly, so that growth with the input size can be told from noise. A clock
//! cannot, on a shared machine, and a count of allocations (`tests/it/hostile.rs`) misses repeated reading.
//!
//! Several passes: small inputs, where any growth other than linear is suspicious, and larger ones for the
//! suspicious cases, where steps of buffers and limits weigh less. A step falls within the sizes of one pass,
//! a square shows in each.

use std::fmt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context;
use tambour::dialect::DIALECTS;
use tambour_fixtures::hostile::{self, HostileShape};
use tambour_fixtures::queue;

use crate::stamp::ProofStamp;

/// Pass over an input: its sizes, each twice the last. The cost that the largest size adds is compared with
/// the cost that the middle one adds; 2 is linear, 4 quadratic.
struct WorkPass {
    sizes: [usize; 3],
    /// Greatest growth that is allowed. Buffers and limits of fixed size are why linear work is not exactly
    /// 2.
    max_growth: f64,
}

/// Passes in their order, each over the cases that were suspicious in the one before. Quadratic work shows as
/// much at the sizes of the first with its growth as at twice the sizes with 2.3.
const PASSES: [WorkPass; 3] = [
    WorkPass { sizes: [1 << 10, 2 << 10, 4 << 10], max_growth: 2.15 },
    WorkPass { sizes: [8 << 10, 16 << 10, 32 << 10], max_growth: 2.3 },
    WorkPass { sizes: [40 << 10, 80 << 10, 160 << 10], max_growth: 2.3 },
];

/// Instructions a byte that are never too many: steps in the copying of memory dominate below.
const CHEAP_INSTRUCTIONS: f64 = 60.0;

/// Chunk size in bytes, as models send.
const SENT_CHUNK: usize = 8;

/// Cases of one process; starting one under valgrind takes a second.
const CASES_PER_PROCESS: usize = 128;

/// Sources that the counts depend on.
const COUNTED_SOURCES: &[&str] = &[
    "Cargo.toml",
    "Cargo.lock",
    "crates/tambour/Cargo.toml",
    "crates/tambour/src",
    "crates/tambour-prompt/Cargo.toml",
    "crates/tambour-prompt/src",
    "crates/tambour-fixtures",
    "xtask",
];

pub(crate) fn has_valgrind() -> bool {
    crate::run_quietly(Command::new("valgrind").arg("--version"))
}

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => compare_costs("few"),
        ["--all"] => compare_costs("all"),
        ["--unless-unchanged"] => run_unless_unchanged(),
        ["read", pass, dialect, amount, cases @ ..] => {
            let pass = &PASSES[pass.parse::<usize>()?];
            warm_up_dialect(dialect);
            let all = all_cases(amount);
            for case in cases {
                read_case(dialect, &all[case.parse::<usize>()?], pass);
            }
            Ok(())
        }
        _ => anyhow::bail!("usage: cargo xtask work [--all | --unless-unchanged]"),
    }
}

/// Counts, unless the last successful count had the same sources.
fn run_unless_unchanged() -> anyhow::Result<()> {
    let stamp = ProofStamp::compute(
        &crate::repository_root(),
        "work",
        COUNTED_SOURCES,
        &[&["valgrind", "--version"]],
    )?;
    if stamp.is_known() {
        println!("nothing that the counts depend on has changed since they were last good");
        return Ok(());
    }
    compare_costs("few")?;
    stamp.store()
}

/// Kind of input, read at each size.
struct WorkCase {
    shape: HostileShape,
    chunk: usize,
}

/// Lists `few` or `all` cases. Of the few, most are in chunks as models send: inputs in one chunk differ by
/// the repeated pattern rather than by their place.
fn all_cases(amount: &str) -> Vec<WorkCase> {
    let (sent_amount, whole_amount) = match amount {
        "few" => (hostile::few_shapes(), hostile::fewest_shapes()),
        _ => (hostile::all_shapes(), hostile::all_shapes()),
    };
    let cases =
        |shapes: Vec<HostileShape>, chunk| shapes.into_iter().map(move |shape| WorkCase { shape, chunk });
    cases(sent_amount, SENT_CHUNK).chain(cases(whole_amount, usize::MAX)).collect()
}

/// Builds lazily built parts, which are no work on an input.
fn warm_up_dialect(dialect: &str) {
    hostile::WARM_UP.iter().for_each(|reply| hostile::read_hostile(dialect, reply.as_bytes(), usize::MAX));
}

/// Reads a case at each size; callgrind writes its count after each call of [`read_counted`].
fn read_case(dialect: &str, case: &WorkCase, pass: &WorkPass) {
    for size in pass.sizes {
        read_counted(dialect, case.shape.build_input(size).as_bytes(), case.chunk);
    }
}

/// Work to count.
#[inline(never)]
fn read_counted(dialect: &str, input: &[u8], chunk: usize) {
    hostile::read_hostile(dialect, input, chunk);
}

fn compare_costs(amount: &str) -> anyhow::Result<()> {
    anyhow::ensure!(has_valgrind(), "valgrind is not installed: without it instructions cannot be counted");
    let cases = all_cases(amount);
    let numbers: Vec<usize> = (0..cases.len()).collect();
    let slices = || numbers.chunks(CASES_PER_PROCESS).map(<[usize]>::to_vec);
    let jobs: Vec<WorkJob> = DIALECTS
        .iter()
        .flat_map(|entry| slices().map(|cases| WorkJob { dialect: entry.name, cases }))
        .collect();
    let costs = count_all(&jobs, 0, amount)?;
    for entry in DIALECTS {
        let of_dialect: Vec<_> = costs.iter().filter(|(dialect, ..)| *dialect == entry.name).collect();
        let per_byte = |cost: &WorkCost| cost.per_byte(&PASSES[0]);
        let mean_cost =
            of_dialect.iter().map(|(.., cost)| per_byte(cost)).sum::<f64>() / of_dialect.len().max(1) as f64;
        println!("{}: {mean_cost:.0} instructions a byte of hostile input", entry.name);
        if let Some((_, case, cost)) =
            of_dialect.iter().max_by(|a, b| per_byte(&a.2).total_cmp(&per_byte(&b.2)))
        {
            println!("  at most {:.0}: {}", per_byte(cost), cases[*case]);
        }
    }
    let mut suspicious = select_suspicious(costs, 0);
    for pass in 1..PASSES.len() {
        println!("{} of them looked at again with larger inputs", suspicious.len());
        let costs = count_all(&group_by_dialect(&suspicious), pass, amount)?;
        suspicious = select_suspicious(costs, pass);
    }
    for (dialect, case, cost) in &suspicious {
        println!("{dialect}: {}: {}", cases[*case], cost.format_cost(&PASSES[PASSES.len() - 1]));
    }
    anyhow::ensure!(suspicious.is_empty(), "{} inputs cost more than linear work", suspicious.len());
    Ok(())
}

/// Cost of a case, with its dialect and its number.
type CaseCost = (&'static str, usize, WorkCost);

fn count_all(jobs: &[WorkJob], pass: usize, amount: &str) -> anyhow::Result<Vec<CaseCost>> {
    let counted = queue::run_all(jobs, |job| job.count_costs(pass, amount));
    let mut costs = Vec::new();
    for (job, counted) in jobs.iter().zip(counted) {
        costs.extend(job.cases.iter().zip(counted?).map(|(case, cost)| (job.dialect, *case, cost)));
    }
    Ok(costs)
}

fn select_suspicious(costs: Vec<CaseCost>, pass: usize) -> Vec<CaseCost> {
    costs.into_iter().filter(|(.., cost)| cost.is_too_much(&PASSES[pass])).collect()
}

/// Groups cases into processes of few cases, since large inputs take long.
fn group_by_dialect(cases: &[CaseCost]) -> Vec<WorkJob> {
    let mut jobs: Vec<WorkJob> = Vec::new();
    for (dialect, case, _) in cases {
        match jobs.last_mut().filter(|job| job.dialect == *dialect && job.cases.len() < CASES_PER_PROCESS / 8)
        {
            Some(job) => job.cases.push(*case),
            None => jobs.push(WorkJob { dialect, cases: vec![*case] }),
        }
    }
    jobs
}

/// Cases of one process.
struct WorkJob {
    dialect: &'static str,
    cases: Vec<usize>,
}

impl WorkJob {
    /// Runs this program under callgrind and returns the cost of each case.
    fn count_costs(&self, pass: usize, amount: &str) -> anyhow::Result<Vec<WorkCost>> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("tambour-work-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let output = Command::new("valgrind")
            .args(["--tool=callgrind", "--dump-line=no", "--combine-dumps=no"])
            .args([
                "--dump-after=xtask_tools::work::read_counted",
                "--zero-before=xtask_tools::work::read_counted",
            ])
            // Call graphs are not needed, and cost as much to write as the counting itself.
            .args(SKIPPED_FUNCTIONS.map(|pattern| format!("--fn-skip={pattern}")))
            .arg(format!("--callgrind-out-file={}", folder.join("out").display()))
            .arg(std::env::current_exe()?)
            .args(["work", "read", &pass.to_string(), self.dialect, amount])
            .args(self.cases.iter().map(usize::to_string))
            .output()
            .context("valgrind")?;
        let counts = read_counts(&folder);
        std::fs::remove_dir_all(&folder)?;
        anyhow::ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let counts = counts?;
        anyhow::ensure!(
            counts.len() == 3 * self.cases.len(),
            "{} counts of {} cases",
            counts.len(),
            self.cases.len()
        );
        Ok(counts.chunks_exact(3).map(|counts| WorkCost([counts[0], counts[1], counts[2]])).collect())
    }
}

/// Functions whose work is counted as that of their caller: all but [`read_counted`].
const SKIPPED_FUNCTIONS: [&str; 16] = [
    "tambour::*",
    "tambour_fixtures::*",
    "core::*",
    "alloc::*",
    "std::*",
    "<*",
    "hashbrown::*",
    "indexmap::*",
    "memchr::*",
    "serde_json::*",
    "__r*",
    "malloc*",
    "realloc*",
    "free*",
    "_int_*",
    "*mem*",
];

/// Instructions at each size.
struct WorkCost([u64; 3]);

impl WorkCost {
    fn growth(&self) -> f64 {
        let WorkCost([small, middle, large]) = self;
        large.saturating_sub(*middle) as f64 / middle.saturating_sub(*small).max(1) as f64
    }

    /// Instructions a byte between the larger two sizes.
    fn per_last_byte(&self, pass: &WorkPass) -> f64 {
        self.0[2].saturating_sub(self.0[1]) as f64 / (pass.sizes[2] - pass.sizes[1]) as f64
    }

    fn is_too_much(&self, pass: &WorkPass) -> bool {
        self.growth() > pass.max_growth && self.per_last_byte(pass) > CHEAP_INSTRUCTIONS
    }

    fn per_byte(&self, pass: &WorkPass) -> f64 {
        self.0[2] as f64 / pass.sizes[2] as f64
    }

    fn format_cost(&self, pass: &WorkPass) -> String {
        format!("{:?} instructions at {:?} bytes, growth {:.2}", self.0, pass.sizes, self.growth())
    }
}

impl fmt::Display for WorkCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, ", self.shape)?;
        if self.chunk == usize::MAX {
            f.write_str("one chunk")
        } else {
            write!(f, "chunks of {}", self.chunk)
        }
    }
}

/// Reads the counts of the numbered dumps in a folder, in order.
fn read_counts(folder: &Path) -> anyhow::Result<Vec<u64>> {
    let mut dumps = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let Some(number) = path.extension().and_then(|number| number.to_str()?.parse::<u64>().ok()) else {
            continue;
        };
        let text = std::fs::read_to_string(&path)?;
        // Zeroing dumps too; only dumps after a call count.
        if !text.contains("desc: Trigger: --dump-after") {
            continue;
        }
        let count = text.lines().find_map(|line| line.strip_prefix("summary: ")).context("no summary")?;
        dumps.push((number, count.trim().parse()?));
    }
    dumps.sort_unstable();
    Ok(dumps.into_iter().map(|(_, count)| count).collect())
}

#[cfg(test)]
mod tests {
    use super::{PASSES, WorkCost};

    #[test]
    fn a_square_is_seen_and_a_line_is_not() {
        for pass in &PASSES {
            let cost = |work: fn(f64) -> f64| WorkCost(pass.sizes.map(|size| work(size as f64) as u64));
            assert!(!cost(|n| 9000.0 + 200.0 * n).is_too_much(pass));
            assert!(cost(|n| 9000.0 + 200.0 * n + 0.01 * n * n).is_too_much(pass));
            assert!(!cost(|n| 0.0001 * n * n).is_too_much(pass));
        }
        // The first pass is over small inputs and only suspects.
        let sorted = WorkCost(
            PASSES[1].sizes.map(|size| (9000.0 + 200.0 * size as f64 * ((size as f64).log2() / 12.0)) as u64),
        );
        assert!(!sorted.is_too_much(&PASSES[1]));
    }
}
