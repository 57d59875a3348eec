//! `cargo xtask coverage`: counts the lines of the crates that tests execute (S-100), with cargo-llvm-cov.
//! The tests run once, seeded tests with few inputs.

use std::collections::BTreeMap;
use std::process::Command;

use anyhow::Context;
use serde_json::Value;

/// Minimum percentage of covered lines, over all crates.
const MIN_COVERAGE: f64 = 80.0;

/// Version of cargo-llvm-cov to install if it is missing.
const TOOL_VERSION: &str = "0.9.1";

/// Packages without product code, and one whose tests are in Python.
const EXCLUDED_PACKAGES: [&str; 4] = ["bench-server", "tambour-python", "xtask", "xtask-tools"];

/// Variables that reduce the number of inputs of seeded tests. More inputs find more faults, but cover no
/// more lines.
const SEEDED_INPUTS: [(&str, &str); 1] = [("FUZZ_ITERATIONS", "20")];

/// Parts of the names of tests to leave out: tests of costs are slow when instrumented, and cover no more
/// lines.
const SKIPPED_TESTS: [&str; 1] = ["hostile"];

/// Line counts of one crate.
#[derive(Clone, Copy, Default)]
struct LineCoverage {
    /// Number of lines with code.
    all: u64,
    /// Number of these lines that a test executed.
    covered: u64,
}

impl LineCoverage {
    fn percent(self) -> f64 {
        self.covered as f64 * 100.0 / self.all.max(1) as f64
    }
}

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let is_optional = match arguments {
        [] => false,
        [argument] if argument == "--if-there" => true,
        _ => anyhow::bail!("usage: cargo xtask coverage [--if-there]"),
    };
    if let Err(error) = install_tools() {
        // `cargo xtask test` passes `--if-there` to continue if the tools cannot be installed.
        anyhow::ensure!(is_optional, error);
        println!("left out: {error:#}");
        return Ok(());
    }
    let mut tests = cargo_command(&["llvm-cov", "--no-report", "--workspace", "--lib", "--bins", "--tests"]);
    let exclusions = EXCLUDED_PACKAGES.iter().flat_map(|package| ["--exclude", package]);
    tests.args(exclusions).envs(SEEDED_INPUTS).arg("--");
    let status = tests.args(SKIPPED_TESTS.iter().flat_map(|test| ["--skip", test])).status()?;
    anyhow::ensure!(status.success(), "the tests failed");
    let report = cargo_command(&["llvm-cov", "report", "--json", "--summary-only"]).output()?;
    anyhow::ensure!(report.status.success(), "{}", String::from_utf8_lossy(&report.stderr));
    let crates = lines_by_crate(&serde_json::from_slice(&report.stdout)?)?;
    println!("\n{:<20} {:>8} {:>8} {:>7}", "lines", "all", "run", "%");
    let mut total = LineCoverage::default();
    for (name, lines) in &crates {
        println!("{name:<20} {:>8} {:>8} {:>7.1}", lines.all, lines.covered, lines.percent());
        (total.all, total.covered) = (total.all + lines.all, total.covered + lines.covered);
    }
    println!("{:<20} {:>8} {:>8} {:>7.1}", "together", total.all, total.covered, total.percent());
    anyhow::ensure!(
        total.percent() >= MIN_COVERAGE,
        "fewer than {MIN_COVERAGE} % of the lines are covered (S-100)"
    );
    Ok(())
}

/// Installs missing coverage tools.
fn install_tools() -> anyhow::Result<()> {
    if !crate::run_quietly(&mut cargo_command(&["llvm-cov", "--version"])) {
        let install = ["install", "--locked", "--version", TOOL_VERSION, "cargo-llvm-cov"];
        println!("cargo-llvm-cov is missing: cargo {}", install.join(" "));
        let is_installed = cargo_command(&install).status()?.success();
        anyhow::ensure!(is_installed, "install it with `cargo {}`", install.join(" "));
    }
    // With these variables cargo-llvm-cov uses other tools than those of the toolchain.
    let has_tool_paths = ["LLVM_COV", "LLVM_PROFDATA"].iter().all(|name| std::env::var_os(name).is_some());
    let add_component = ["component", "add", "llvm-tools"];
    if !has_tool_paths
        && !crate::run_quietly(
            Command::new("rustup").args(add_component).current_dir(crate::repository_root()),
        )
    {
        anyhow::bail!(
            "the LLVM tools of the toolchain are missing: run `rustup {}`, or set LLVM_COV and LLVM_PROFDATA to the \
             tools of the LLVM major version that `rustc --version --verbose` prints",
            add_component.join(" ")
        );
    }
    Ok(())
}

/// Builds a Cargo command that runs in the repository.
fn cargo_command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.args(arguments).current_dir(crate::repository_root());
    command
}

/// Reads the line counts of each crate from a report of llvm-cov, without files outside `src`.
fn lines_by_crate(report: &Value) -> anyhow::Result<BTreeMap<String, LineCoverage>> {
    let files = report["data"][0]["files"].as_array().context("the report has no files")?;
    let mut crates: BTreeMap<String, LineCoverage> = BTreeMap::new();
    for file in files {
        let name = file["filename"].as_str().context("a file has no name")?.replace('\\', "/");
        let Some((_, path_in_crates)) = name.rsplit_once("/crates/") else { continue };
        let Some((package, path)) = path_in_crates.split_once('/') else { continue };
        if !path.starts_with("src/") {
            continue;
        }
        let counts = &file["summary"]["lines"];
        let count = |key: &str| counts[key].as_u64().with_context(|| format!("{name} has no `{key}`"));
        let lines = crates.entry(package.to_owned()).or_default();
        lines.all += count("count")?;
        lines.covered += count("covered")?;
    }
    anyhow::ensure!(!crates.is_empty(), "the report names no file of a crate");
    Ok(crates)
}

#[cfg(test)]
mod tests {
    use super::lines_by_crate;
    use serde_json::json;

    #[test]
    fn only_sources_of_the_crates_are_counted() {
        // S-100
        let file = |name: &str, count: u64, covered: u64| json!({"filename": name, "summary": {"lines": {"count": count, "covered": covered}}});
        let report = json!({"data": [{"files": [
            file("/x/crates/a/src/lib.rs", 10, 9), file("/x/crates/a/src/b/c.rs", 10, 0),
            file("/x/crates/a/tests/it/main.rs", 99, 99), file("/x/xtask/src/main.rs", 99, 0),
        ]}]});
        let crates = lines_by_crate(&report).expect("a report");
        assert_eq!(crates.len(), 1);
        assert_eq!((crates["a"].all, crates["a"].covered, crates["a"].percent()), (20, 9, 45.0));
        assert!(lines_by_crate(&json!({"data": [{"files": [file("/x/a.rs", 1, 1)]}]})).is_err());
        assert!(
            lines_by_crate(&json!({"data": [{"files": [{"filename": "/x/crates/a/src/lib.rs"}]}]})).is_err()
        );
    }
}
