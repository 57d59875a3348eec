//! `cargo xtask programs`: runs all test programs in parallel.
//!
//! `cargo test` runs them one after the other, and a program that waits for sockets leaves the processor
//! idle.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use anyhow::Context;
use serde_json::Value;
use tambour_fixtures::queue;

/// Test program.
struct TestProgram {
    /// Names of package and target.
    name: String,
    path: PathBuf,
    /// Folder of the package, in which the program runs.
    folder: PathBuf,
    /// Size of the program in bytes.
    size: u64,
}

/// Result of a program.
struct ProgramResult {
    output: Output,
    time: Duration,
}

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let mut programs = build_programs(&crate::repository_root())?;
    // Programs that run longest start first; the size of a program is a good enough estimate of its time.
    programs.sort_by_key(|program| std::cmp::Reverse(program.size));
    let mut failures = Vec::new();
    queue::run_each(
        queue::core_count().max(2),
        &programs,
        |program| program.run(arguments),
        |index, result| {
            let program = &programs[index];
            if !result.is_ok_and(|result| program.show_result(&result)) {
                failures.push(program.name.as_str());
            }
        },
    );
    anyhow::ensure!(failures.is_empty(), "failed: {}", failures.join(", "));
    Ok(())
}

/// Builds the test programs, if needed, and finds them.
fn build_programs(root: &Path) -> anyhow::Result<Vec<TestProgram>> {
    let mut build = Command::new(env!("CARGO"));
    build.args(["test", "--quiet", "--workspace", "--no-run", "--message-format=json"]).current_dir(root);
    let output = build.stderr(std::process::Stdio::inherit()).output()?;
    anyhow::ensure!(output.status.success(), "the tests did not build");
    let mut programs = Vec::new();
    for line in String::from_utf8(output.stdout)?.lines() {
        let message: Value = serde_json::from_str(line).with_context(|| line.to_owned())?;
        let (Some(path), true) = (message["executable"].as_str(), message["profile"]["test"] == true) else {
            continue;
        };
        let to_text = |value: &Value| value.as_str().map(str::to_owned).context("cargo left out a field");
        let folder = PathBuf::from(to_text(&message["manifest_path"])?);
        let folder = folder.parent().context("the path of a manifest has no folder")?.to_owned();
        let package = folder.file_name().unwrap_or_default().to_string_lossy();
        let name = format!("{package} {}", to_text(&message["target"]["name"])?);
        let size = std::fs::metadata(path)?.len();
        programs.push(TestProgram { name, path: path.into(), folder: folder.clone(), size });
    }
    anyhow::ensure!(!programs.is_empty(), "there are no test programs");
    Ok(programs)
}

impl TestProgram {
    fn run(&self, arguments: &[String]) -> anyhow::Result<ProgramResult> {
        let start = Instant::now();
        let mut command = Command::new(&self.path);
        // `cargo test` sets this folder and variable too.
        command.current_dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder).args(arguments);
        let output = command.output().with_context(|| self.path.display().to_string())?;
        Ok(ProgramResult { output, time: start.elapsed() })
    }

    /// Prints the output of the program and returns whether it passed.
    fn show_result(&self, result: &ProgramResult) -> bool {
        println!("-- {}, {:.1} s", self.name, result.time.as_secs_f64());
        for stream in [&result.output.stdout, &result.output.stderr] {
            let stream = String::from_utf8_lossy(stream);
            if !stream.trim().is_empty() {
                println!("{}", stream.trim_matches('\n'));
            }
        }
        result.output.status.success()
    }
}
