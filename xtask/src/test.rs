//! `cargo xtask test`: everything that must hold before a change is merged, cheapest first.
//!
//! The last line is `N passed, N failed`: tests, and one for each other step.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;

/// Iterations of each seeded fuzz test; about half a minute on two cores.
const FUZZ_ITERATIONS: &str = "20000";

/// Seconds per target where cargo-fuzz and a nightly toolchain are installed.
const FUZZ_SECONDS: u64 = 6;

/// Results of the steps so far.
#[derive(Default)]
struct Results {
    passed: u64,
    failed: u64,
    times: Vec<(String, Duration, bool)>,
}

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    anyhow::ensure!(arguments.is_empty(), "`test` takes no arguments");
    let root = crate::root();
    require()?;
    let mut results = Results::default();
    // Always the whole workspace: another choice of packages may choose other features of dependencies, and build
    // all of them again.
    let clippy = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    let bare = ["clippy", "-p", "tambour", "--no-default-features", "--", "-D", "warnings"];
    results.step("format", &mut cargo(&root, &["fmt", "--all", "--check"]));
    results.step("clippy", &mut cargo(&root, &clippy));
    results.step("clippy without default features", &mut cargo(&root, &bare));
    results.step("tests", &mut cargo(&root, &["test", "--workspace", "--no-fail-fast"]));
    results.step("docs", &mut cargo(&root, &["doc", "--workspace", "--lib", "--no-deps"]));
    results.step("specification", &mut own(&["spec"])?);
    results.step("specification, proof", &mut own(&["spec", "--prove"])?);
    results.step("benches compile", &mut cargo(&root, &["build", "--workspace", "--benches"]));
    let seeded = ["test", "--workspace", "--test", "it", "fuzz::"];
    results.step("fuzz, seeded", cargo(&root, &seeded).env("FUZZ_ITERATIONS", FUZZ_ITERATIONS));
    fuzz(&root, &mut results)?;
    if crate::work::valgrind() {
        results.step("linear work", &mut own(&["work"])?);
    } else {
        println!("\n== linear work: left out, valgrind is not installed");
    }
    results.end()
}

/// Says what is missing before anything runs.
fn require() -> anyhow::Result<()> {
    for (command, component) in [("fmt", "rustfmt"), ("clippy", "clippy")] {
        if !quiet(Command::new(env!("CARGO")).args([command, "--version"])) {
            anyhow::bail!("cargo {command} is missing: install it with `rustup component add {component}`");
        }
    }
    Ok(())
}

/// Whether a command runs and succeeds; its output is thrown away.
pub(crate) fn quiet(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// Another command of this program, in a process of its own.
fn own(arguments: &[&str]) -> anyhow::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(arguments);
    Ok(command)
}

/// cargo in the workspace, with warnings of rustdoc as errors.
fn cargo(root: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.args(arguments).current_dir(root).env("RUSTDOCFLAGS", "-D warnings");
    command
}

/// A short run of each fuzz target, where the tools for it are there.
fn fuzz(root: &Path, results: &mut Results) -> anyhow::Result<()> {
    let ready = quiet(Command::new("cargo").args(["+nightly", "fuzz", "--version"]));
    if !ready {
        println!("\n== fuzz targets: left out, they need a nightly toolchain and cargo-fuzz");
        return Ok(());
    }
    for target in
        tambour_fixtures::files(&root.join("fuzz/fuzz_targets"), "rs").map_err(anyhow::Error::msg)?
    {
        let name = target.file_stem().context("a fuzz target has a name")?.to_string_lossy().into_owned();
        // The first corpus gets what is found, the second is only read.
        let found = root.join("fuzz/target/corpus").join(&name);
        std::fs::create_dir_all(&found)?;
        let mut command = Command::new("cargo");
        command.args(["+nightly", "fuzz", "run", &name]).arg(found).arg(format!("fuzz/corpus/{name}"));
        command.arg("--").current_dir(root);
        command.args(["-seed=1", "-rss_limit_mb=2048", &format!("-max_total_time={FUZZ_SECONDS}")]);
        results.step(&format!("fuzz {name}"), &mut command);
    }
    Ok(())
}

impl Results {
    /// Runs one step, shows its output, and counts the tests in it; a step without tests counts as one.
    fn step(&mut self, name: &str, command: &mut Command) {
        println!("\n== {name}");
        let start = Instant::now();
        let (passed, failed) = match watch(command) {
            Ok((success, 0, 0)) => (u64::from(success), u64::from(!success)),
            // Tests passed, but something else, such as a build, did not.
            Ok((false, passed, 0)) => (passed, 1),
            Ok((_, passed, failed)) => (passed, failed),
            Err(error) => {
                println!("{error:#}");
                (0, 1)
            }
        };
        self.passed += passed;
        self.failed += failed;
        let time = start.elapsed();
        println!("== {name}: {}, {:.1} s", if failed == 0 { "ok" } else { "FAILED" }, time.as_secs_f64());
        self.times.push((name.to_owned(), time, failed == 0));
    }

    fn end(self) -> anyhow::Result<()> {
        println!();
        for (name, time, ok) in &self.times {
            println!("{:>7.1} s  {name}{}", time.as_secs_f64(), if *ok { "" } else { "  FAILED" });
        }
        println!("\n{} passed, {} failed", self.passed, self.failed);
        if self.failed > 0 {
            // The summary is the last line.
            std::process::exit(1);
        }
        Ok(())
    }
}

/// Runs a command, shows its output as it comes, and adds up its `test result:` lines.
fn watch(command: &mut Command) -> anyhow::Result<(bool, u64, u64)> {
    command.stdout(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("{command:?}"))?;
    let (mut passed, mut failed) = (0, 0);
    for line in BufReader::new(child.stdout.take().context("stdout is piped")?).split(b'\n') {
        let line = line?;
        let line = String::from_utf8_lossy(&line);
        println!("{line}");
        if let Some((more_passed, more_failed)) = counted(&line) {
            passed += more_passed;
            failed += more_failed;
        }
    }
    Ok((child.wait()?.success(), passed, failed))
}

/// The counts of a `test result:` line.
fn counted(line: &str) -> Option<(u64, u64)> {
    let counts = line.strip_prefix("test result: ")?.split_once(". ")?.1;
    let count = |word: &str| {
        let part = counts.split(';').find(|part| part.trim().ends_with(word))?;
        part.trim().strip_suffix(word)?.trim().parse().ok()
    };
    Some((count("passed")?, count("failed")?))
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn adds_up_test_results() {
        let line =
            "test result: FAILED. 13 passed; 2 failed; 0 ignored; 0 measured; 9 filtered out; finished in 1s";
        assert_eq!(counted(line), Some((13, 2)));
        assert_eq!(counted("test result: ok. 0 passed; 0 failed; 0 ignored"), Some((0, 0)));
        assert_eq!(counted("12 passed, 0 failed"), None);
    }
}
