//! `cargo xtask work`: counts the instructions of hostile input with valgrind's callgrind.
//!
//! Instruction counts repeat exactly, so that growth with the input size is not noise. Times vary on a shared
//! machine, and counts of allocations (`tests/it/hostile.rs`) miss repeated reading.
//!
//! There are several passes: the first over small inputs, where any growth other than linear is suspicious,
//! the others over larger inputs of the suspicious cases. A jump of the cost at the size of a buffer or limit
//! falls within the sizes of one pass only; quadratic work shows in each.

use std::fmt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context;
use tambour::dialect::DIALECTS;
use tambour_fixtures::hostile::{self, HostileShape};
use tambour_fixtures::queue;

use crate::stamp::ProofStamp;

/// Pass over an input at three sizes, each twice the previous one. Growth is the cost that the largest size
/// adds, divided by the cost that the middle size adds: 2 if linear, 4 if quadratic.
struct WorkPass {
    /// Sizes in bytes.
    sizes: [usize; 3],
    /// Maximum growth that is allowed. The growth of linear work is not exactly 2, because of buffers and
    /// limits of fixed size.
    max_growth: f64,
}

/// Passes in order, each over the cases that were suspicious in the previous pass. A quadratic part of the
/// work shows less at small sizes, so the first pass allows less growth: 2.15 finds the same quadratic part
/// there as 2.3 would at twice the sizes.
const PASSES: [WorkPass; 3] = [
    WorkPass { sizes: [1 << 10, 2 << 10, 4 << 10], max_growth: 2.15 },
    WorkPass { sizes: [8 << 10, 16 << 10, 32 << 10], max_growth: 2.3 },
    WorkPass { sizes: [40 << 10, 80 << 10, 160 << 10], max_growth: 2.3 },
];

/// Instructions per byte up to which no growth is suspicious: in such cheap work, jumps in the cost of
/// copying memory dominate.
const CHEAP_INSTRUCTIONS: f64 = 60.0;

/// Chunk size in bytes, like that of models.
const MODEL_CHUNK: usize = 8;

/// Number of cases in one process; starting a process under valgrind takes a second.
const CASES_PER_PROCESS: usize = 128;

/// Files and folders on which the counts depend.
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

/// Returns `true` if valgrind is installed.
pub(crate) fn has_valgrind() -> bool {
    crate::run_quietly(Command::new("valgrind").arg("--version"))
}

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => compare_costs("few"),
        ["--all"] => compare_costs("all"),
        ["--unless-unchanged"] => run_unless_unchanged(),
        // Work of one process, which `WorkJob::count_costs` starts under valgrind.
        ["read", pass_index, dialect, amount, case_indices @ ..] => {
            let pass = &PASSES[pass_index.parse::<usize>()?];
            warm_up_dialect(dialect);
            let cases = all_cases(amount, dialect);
            for case_index in case_indices {
                read_case(dialect, &cases[case_index.parse::<usize>()?], pass);
            }
            Ok(())
        }
        _ => anyhow::bail!("usage: cargo xtask work [--all | --unless-unchanged]"),
    }
}

/// Compares costs, unless the last successful comparison had the same sources.
fn run_unless_unchanged() -> anyhow::Result<()> {
    let stamp = ProofStamp::compute(
        &crate::repository_root(),
        "work",
        COUNTED_SOURCES,
        &[&["valgrind", "--version"]],
    )?;
    if stamp.is_current() {
        println!("sources, compiler and valgrind have not changed since the last successful comparison");
        return Ok(());
    }
    compare_costs("few")?;
    stamp.store()
}

/// Shape of input with the chunks it is read in.
struct WorkCase {
    shape: HostileShape,
    /// Chunk size in bytes; `usize::MAX` for one chunk.
    chunk_size: usize,
}

/// Lists cases of a dialect; `amount` is `few` or `all`. With `few`, most cases are in chunks like those of
/// models, since the cost of inputs in one chunk depends on the repeated pattern more than on its place.
fn all_cases(amount: &str, dialect: &str) -> Vec<WorkCase> {
    let (chunked_shapes, whole_shapes) = match amount {
        "few" => (hostile::few_shapes_of(dialect), hostile::fewest_shapes()),
        _ => (hostile::all_shapes(), hostile::all_shapes()),
    };
    let to_cases = |shapes: Vec<HostileShape>, chunk_size| {
        shapes.into_iter().map(move |shape| WorkCase { shape, chunk_size })
    };
    to_cases(chunked_shapes, MODEL_CHUNK).chain(to_cases(whole_shapes, usize::MAX)).collect()
}

/// Makes the library build its lazy parts, so that they do not count as work on an input.
fn warm_up_dialect(dialect: &str) {
    hostile::WARM_UP.iter().for_each(|reply| hostile::read_hostile(dialect, reply.as_bytes(), usize::MAX));
}

/// Reads a case at each size; callgrind writes its count after each call of [`read_counted`].
fn read_case(dialect: &str, case: &WorkCase, pass: &WorkPass) {
    for size in pass.sizes {
        read_counted(dialect, case.shape.build_input(size).as_bytes(), case.chunk_size);
    }
}

/// Reads an input; callgrind counts the instructions of this function, by its name.
#[inline(never)]
fn read_counted(dialect: &str, input: &[u8], chunk_size: usize) {
    hostile::read_hostile(dialect, input, chunk_size);
}

/// Counts the costs of all cases and prints them.
///
/// # Errors
/// A case is suspicious in every pass.
fn compare_costs(amount: &str) -> anyhow::Result<()> {
    anyhow::ensure!(has_valgrind(), "valgrind is not installed: without it instructions cannot be counted");
    let mut jobs = Vec::new();
    for entry in DIALECTS {
        let case_indices: Vec<usize> = (0..all_cases(amount, entry.name).len()).collect();
        let groups = case_indices.chunks(CASES_PER_PROCESS).map(<[usize]>::to_vec);
        jobs.extend(groups.map(|case_indices| WorkJob { dialect: entry.name, case_indices }));
    }
    let costs = count_all(&jobs, 0, amount)?;
    for entry in DIALECTS {
        let dialect_costs: Vec<_> = costs.iter().filter(|(dialect, ..)| *dialect == entry.name).collect();
        let per_byte = |cost: &WorkCost| cost.per_byte(&PASSES[0]);
        let count = dialect_costs.len().max(1);
        let mean_cost = dialect_costs.iter().map(|(.., cost)| per_byte(cost)).sum::<f64>() / count as f64;
        println!("{}: {mean_cost:.0} instructions per byte of hostile input", entry.name);
        if let Some((_, case_index, cost)) =
            dialect_costs.iter().max_by(|a, b| per_byte(&a.2).total_cmp(&per_byte(&b.2)))
        {
            println!("  at most {:.0}: {}", per_byte(cost), all_cases(amount, entry.name)[*case_index]);
        }
    }
    let mut suspicious = select_suspicious(costs, 0);
    for pass_index in 1..PASSES.len() {
        println!("{} suspicious cases are counted again with larger inputs", suspicious.len());
        let costs = count_all(&group_by_dialect(&suspicious), pass_index, amount)?;
        suspicious = select_suspicious(costs, pass_index);
    }
    for (dialect, case_index, cost) in &suspicious {
        let case = &all_cases(amount, dialect)[*case_index];
        println!("{dialect}: {case}: {}", cost.format_cost(&PASSES[PASSES.len() - 1]));
    }
    anyhow::ensure!(suspicious.is_empty(), "{} inputs cost more than linear work", suspicious.len());
    Ok(())
}

/// Cost of a case, with its dialect and its index.
type CaseCost = (&'static str, usize, WorkCost);

/// Runs all jobs in parallel and lists the costs of their cases.
fn count_all(jobs: &[WorkJob], pass_index: usize, amount: &str) -> anyhow::Result<Vec<CaseCost>> {
    let job_costs = queue::run_all(jobs, |job| job.count_costs(pass_index, amount));
    let mut costs = Vec::new();
    for (job, job_costs) in jobs.iter().zip(job_costs) {
        let indexed_costs = job.case_indices.iter().zip(job_costs?);
        costs.extend(indexed_costs.map(|(case_index, cost)| (job.dialect, *case_index, cost)));
    }
    Ok(costs)
}

/// Selects the costs that grow too much in a pass.
fn select_suspicious(costs: Vec<CaseCost>, pass_index: usize) -> Vec<CaseCost> {
    costs.into_iter().filter(|(.., cost)| cost.is_too_much(&PASSES[pass_index])).collect()
}

/// Groups neighbouring cases of a dialect into jobs of few cases, since large inputs take long.
fn group_by_dialect(cases: &[CaseCost]) -> Vec<WorkJob> {
    let mut jobs: Vec<WorkJob> = Vec::new();
    let max_cases = CASES_PER_PROCESS / 8;
    for (dialect, case_index, _) in cases {
        let has_room = |job: &&mut WorkJob| job.dialect == *dialect && job.case_indices.len() < max_cases;
        match jobs.last_mut().filter(has_room) {
            Some(job) => job.case_indices.push(*case_index),
            None => jobs.push(WorkJob { dialect, case_indices: vec![*case_index] }),
        }
    }
    jobs
}

/// Cases of one dialect for one process.
struct WorkJob {
    dialect: &'static str,
    case_indices: Vec<usize>,
}

impl WorkJob {
    /// Runs this program under callgrind and returns the cost of each case.
    fn count_costs(&self, pass_index: usize, amount: &str) -> anyhow::Result<Vec<WorkCost>> {
        static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("tambour-work-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let output = Command::new("valgrind")
            .args(["--tool=callgrind", "--dump-line=no", "--combine-dumps=no"])
            .args([
                "--dump-after=xtask_tools::work::read_counted",
                "--zero-before=xtask_tools::work::read_counted",
            ])
            // Call graphs are not needed, and writing them costs as much as the counting itself.
            .args(SKIPPED_FUNCTIONS.map(|pattern| format!("--fn-skip={pattern}")))
            .arg(format!("--callgrind-out-file={}", folder.join("out").display()))
            .arg(std::env::current_exe()?)
            .args(["work", "read", &pass_index.to_string(), self.dialect, amount])
            .args(self.case_indices.iter().map(usize::to_string))
            .output()
            .context("valgrind")?;
        let counts = read_counts(&folder);
        std::fs::remove_dir_all(&folder)?;
        anyhow::ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let counts = counts?;
        anyhow::ensure!(
            counts.len() == 3 * self.case_indices.len(),
            "callgrind wrote {} counts for {} cases",
            counts.len(),
            self.case_indices.len()
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

/// Instructions at each size of a pass.
struct WorkCost([u64; 3]);

impl WorkCost {
    /// Growth as [`WorkPass`] defines it.
    fn growth(&self) -> f64 {
        let WorkCost([small, middle, large]) = self;
        large.saturating_sub(*middle) as f64 / middle.saturating_sub(*small).max(1) as f64
    }

    /// Instructions per byte that the largest size adds to the middle one.
    fn per_last_byte(&self, pass: &WorkPass) -> f64 {
        self.0[2].saturating_sub(self.0[1]) as f64 / (pass.sizes[2] - pass.sizes[1]) as f64
    }

    /// Returns `true` if the cost grows too much, and is not negligible.
    fn is_too_much(&self, pass: &WorkPass) -> bool {
        self.growth() > pass.max_growth && self.per_last_byte(pass) > CHEAP_INSTRUCTIONS
    }

    /// Instructions per byte at the largest size.
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
        if self.chunk_size == usize::MAX {
            f.write_str("one chunk")
        } else {
            write!(f, "chunks of {}", self.chunk_size)
        }
    }
}

/// Reads the counts of the dumps that callgrind wrote in a folder, in order of their numbers.
fn read_counts(folder: &Path) -> anyhow::Result<Vec<u64>> {
    let mut dumps = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let Some(number) = path.extension().and_then(|number| number.to_str()?.parse::<u64>().ok()) else {
            continue;
        };
        let text = std::fs::read_to_string(&path)?;
        // Callgrind also dumps when it zeroes its counts; only dumps after a call matter.
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
    fn quadratic_work_is_suspicious_and_linear_work_is_not() {
        for pass in &PASSES {
            let cost = |work: fn(f64) -> f64| WorkCost(pass.sizes.map(|size| work(size as f64) as u64));
            assert!(!cost(|n| 9000.0 + 200.0 * n).is_too_much(pass));
            assert!(cost(|n| 9000.0 + 200.0 * n + 0.01 * n * n).is_too_much(pass));
            assert!(!cost(|n| 0.0001 * n * n).is_too_much(pass));
        }
        // Sorting passes, except at the small sizes of the first pass, which only suspects.
        let sorting_cost = WorkCost(
            PASSES[1].sizes.map(|size| (9000.0 + 200.0 * size as f64 * ((size as f64).log2() / 12.0)) as u64),
        );
        assert!(!sorting_cost.is_too_much(&PASSES[1]));
    }
}
