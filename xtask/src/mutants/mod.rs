//! `cargo xtask mutants`: deliberate breakages, each of which a test must notice.
//!
//! Breakages are data (`xtask/mutants/*.toml`): a text of a source file, its replacement, and the tests that
//! must then fail. Each is applied in a copy of the workspace below `target/`.

mod list;
mod tree;

use std::path::Path;
use std::time::Instant;

use tambour_fixtures::queue;

use list::Breakage;
use tree::{BreakageOutcome, WorkspaceCopy};

const USAGE: &str = "usage: cargo xtask mutants [--list] [--sample N] [--jobs N] [WORD...]";

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let root = crate::repository_root();
    let (mut sample_size, mut jobs, mut only_lists, mut words) = (None, None, false, Vec::new());
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let mut next_number = || arguments.next().and_then(|number| number.parse::<usize>().ok());
        match argument.as_str() {
            "--list" => only_lists = true,
            "--sample" => sample_size = Some(next_number().ok_or_else(|| anyhow::anyhow!(USAGE))?),
            "--jobs" => jobs = Some(next_number().ok_or_else(|| anyhow::anyhow!(USAGE))?),
            word if word.starts_with('-') => anyhow::bail!(USAGE),
            word => words.push(word),
        }
    }
    let mut breakages = list::read_breakages(&root)?;
    list::check_breakages(&root, &breakages)?;
    breakages.retain(|breakage| words.is_empty() || words.iter().any(|word| breakage.is_about(word)));
    let breakages = match sample_size {
        Some(sample_size) => select_spread(breakages, sample_size),
        None => breakages,
    };
    anyhow::ensure!(!breakages.is_empty(), "no breakage matches these words");
    if only_lists {
        breakages.iter().for_each(|breakage| println!("{}: {}", breakage.file, breakage.name));
        return Ok(());
    }
    // A build uses several cores; a copy of the workspace for every two cores keeps all busy.
    try_all(&root, &breakages, jobs.unwrap_or(queue::core_count().div_ceil(2)))
}

/// Selects about `sample_size` breakages, spread over the list.
fn select_spread(breakages: Vec<Breakage>, sample_size: usize) -> Vec<Breakage> {
    let step = breakages.len().div_ceil(sample_size.max(1)).max(1);
    breakages.into_iter().step_by(step).collect()
}

/// Applies each breakage in one of `jobs` copies of the workspace.
///
/// # Errors
/// A breakage is not noticed, or does not build.
fn try_all(root: &Path, breakages: &[Breakage], jobs: usize) -> anyhow::Result<()> {
    let jobs = jobs.clamp(1, breakages.len());
    let chunk_size = breakages.len().div_ceil(jobs);
    let shares: Vec<(usize, &[Breakage])> = breakages.chunks(chunk_size).enumerate().collect();
    let outcomes =
        queue::run_in_order(jobs, &shares, |(number, breakages)| -> anyhow::Result<Vec<BreakageOutcome>> {
            let tree = WorkspaceCopy::update(root, *number)?;
            // Tests that fail already cannot notice a breakage.
            tree.check_unchanged(breakages)?;
            breakages
                .iter()
                .map(|breakage| {
                    let start = Instant::now();
                    let outcome = tree.try_breakage(breakage)?;
                    println!(
                        "{:<9} {:>5.1} s  {}: {}",
                        outcome.name(),
                        start.elapsed().as_secs_f64(),
                        breakage.file,
                        breakage.name
                    );
                    Ok(outcome)
                })
                .collect()
        });
    let mut all_outcomes = Vec::new();
    for job_outcomes in outcomes {
        all_outcomes.extend(job_outcomes?);
    }
    let count = |kind: BreakageOutcome| all_outcomes.iter().filter(|outcome| **outcome == kind).count();
    let (survived_count, unbuilt_count) =
        (count(BreakageOutcome::Survived), count(BreakageOutcome::BuildFailed));
    println!(
        "\n{} caught, {survived_count} survived, {unbuilt_count} did not build",
        all_outcomes.len() - survived_count - unbuilt_count
    );
    anyhow::ensure!(survived_count == 0, "{survived_count} breakages were not noticed");
    anyhow::ensure!(unbuilt_count == 0, "{unbuilt_count} breakages do not build, and so show nothing");
    Ok(())
}
