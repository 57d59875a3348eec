//! Copy of the workspace, in which breakages (deliberate faults) are applied and tests run.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use serde_json::Value;

use super::list::Breakage;
use crate::stamp;

/// Paths to copy, from the root of the repository: all that a build of the tests reads.
const COPIED_PATHS: &[&str] =
    &["Cargo.toml", "Cargo.lock", "bindings", "crates", "fixtures", "xtask", "benches", "examples", "docs"];

/// Longest run of a test program; a breakage that makes it hang is caught too.
const MAX_TEST_TIME: Duration = Duration::from_secs(180);

/// Profile without optimisation and debug information, since building takes longer than running the tests.
const PROFILE_CONFIG: [&str; 4] = [
    "profile.dev.package.tambour.opt-level=0",
    "profile.dev.package.tambour-prompt.opt-level=0",
    "profile.dev.package.tambour-fixtures.opt-level=0",
    "profile.dev.debug=0",
];

/// Outcome of a breakage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BreakageOutcome {
    /// A test failed.
    Caught,
    /// All tests passed.
    Survived,
    /// The tests do not build with the breakage.
    BuildFailed,
}

impl BreakageOutcome {
    pub(super) fn name(self) -> &'static str {
        match self {
            BreakageOutcome::Caught => "caught",
            BreakageOutcome::Survived => "SURVIVED",
            BreakageOutcome::BuildFailed => "UNBUILT",
        }
    }
}

/// Copy of the workspace.
pub(super) struct WorkspaceCopy {
    root: PathBuf,
    /// Target folder of its builds.
    target: PathBuf,
}

impl WorkspaceCopy {
    /// Updates copy `number` from the workspace at `from`, so that only changes are built.
    pub(super) fn update(from: &Path, number: usize) -> anyhow::Result<WorkspaceCopy> {
        let folder = stamp::target_folder()?.join("mutants").join(number.to_string());
        let tree = WorkspaceCopy { root: folder.join("tree"), target: folder.join("target") };
        for path in COPIED_PATHS {
            copy_changed(&from.join(path), &tree.root.join(path))?;
        }
        Ok(tree)
    }

    /// Runs the tests of these breakages on unchanged sources; they must pass.
    pub(super) fn check_unchanged(&self, breakages: &[Breakage]) -> anyhow::Result<()> {
        let mut packages: Vec<(&str, bool)> =
            breakages.iter().map(|breakage| (breakage.package(), breakage.unit)).collect();
        packages.sort_unstable();
        packages.dedup();
        for (package, is_unit) in packages {
            let matching_breakages = || {
                breakages.iter().filter(|breakage| (breakage.package(), breakage.unit) == (package, is_unit))
            };
            let needs_all_tests = matching_breakages().any(|breakage| breakage.fails.is_empty());
            let filters: Vec<String> =
                matching_breakages().flat_map(|breakage| breakage.fails.clone()).collect();
            let program =
                self.build(package, is_unit)?.with_context(|| format!("{package} does not build"))?;
            let filters: &[String] = if needs_all_tests { &[] } else { &filters };
            let has_passed = self.run_program(package, &program, filters)?;
            anyhow::ensure!(has_passed, "the tests of {package} fail without any breakage");
        }
        Ok(())
    }

    /// Applies a breakage, runs its tests, and reverts it.
    pub(super) fn try_breakage(&self, breakage: &Breakage) -> anyhow::Result<BreakageOutcome> {
        let path = self.root.join(&breakage.file);
        let text = std::fs::read_to_string(&path)?;
        std::fs::write(&path, breakage.apply(&self.root)?)?;
        let outcome = self.run_tests(breakage);
        std::fs::write(&path, text)?;
        outcome
    }

    /// Builds and runs the tests that a breakage must fail.
    fn run_tests(&self, breakage: &Breakage) -> anyhow::Result<BreakageOutcome> {
        let package = breakage.package();
        let Some(program) = self.build(package, breakage.unit)? else {
            return Ok(BreakageOutcome::BuildFailed);
        };
        let has_passed = self.run_program(package, &program, &breakage.fails)?;
        Ok(if has_passed { BreakageOutcome::Survived } else { BreakageOutcome::Caught })
    }

    /// Builds the unit tests of a package if `is_unit` is true, else its integration tests. Returns the path
    /// of the test program; `None` if the build fails.
    fn build(&self, package: &str, is_unit: bool) -> anyhow::Result<Option<PathBuf>> {
        let mut build = Command::new(env!("CARGO"));
        build.args(["test", "--quiet", "--package", package, "--no-run", "--message-format=json"]);
        build.args(if is_unit { &["--lib"][..] } else { &["--test", "it"] });
        build.args(PROFILE_CONFIG.iter().flat_map(|config| ["--config", config]));
        build.current_dir(&self.root).env("CARGO_TARGET_DIR", &self.target).env("RUSTFLAGS", "-Awarnings");
        let output = build.stderr(Stdio::null()).output()?;
        if !output.status.success() {
            return Ok(None);
        }
        let messages = String::from_utf8(output.stdout)?;
        let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let path =
            messages.filter_map(|message| Some(PathBuf::from(message["executable"].as_str()?))).next_back();
        Ok(Some(path.context("cargo did not report the path of the test program")?))
    }

    /// Runs the tests that match `filters`, or all if there are no filters. Returns `true` if they pass, and
    /// `false` if one fails or the program hangs.
    fn run_program(&self, package: &str, program: &Path, filters: &[String]) -> anyhow::Result<bool> {
        let mut child = Command::new(program)
            .args(filters)
            .current_dir(self.root.join("crates").join(package))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let mut stdout = child.stdout.take().context("stdout is piped")?;
        let output_reader = std::thread::spawn(move || {
            let mut output = String::new();
            let _ = std::io::Read::read_to_string(&mut stdout, &mut output);
            output
        });
        let Some(success) = wait_for_exit(&mut child)? else { return Ok(false) };
        let output = output_reader.join().unwrap_or_default();
        let has_run_nothing = output.lines().any(|line| line.starts_with("test result: ok. 0 passed"));
        anyhow::ensure!(!has_run_nothing, "no test of {package} is called {}", filters.join(" or "));
        Ok(success)
    }
}

/// Waits for a process and returns its success; kills it after [`MAX_TEST_TIME`] and returns `None`.
fn wait_for_exit(child: &mut Child) -> anyhow::Result<Option<bool>> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status.success()));
        }
        if start.elapsed() > MAX_TEST_TIME {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Copies changed files, so that others need not be built again, and removes those deleted in `from`.
fn copy_changed(from: &Path, to: &Path) -> anyhow::Result<()> {
    if !from.is_dir() {
        let bytes = std::fs::read(from).with_context(|| from.display().to_string())?;
        if std::fs::read(to).ok().as_ref() != Some(&bytes) {
            if let Some(folder) = to.parent() {
                std::fs::create_dir_all(folder)?;
            }
            std::fs::write(to, bytes)?;
        }
        return Ok(());
    }
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(to)? {
        let Ok(entry) = entry else { continue };
        let path = entry.path();
        if !from.join(entry.file_name()).exists() {
            if path.is_dir() { std::fs::remove_dir_all(path)? } else { std::fs::remove_file(path)? }
        }
    }
    for entry in std::fs::read_dir(from)? {
        let name = entry?.file_name();
        if !matches!(name.to_str(), Some("target" | ".git" | "node_modules")) {
            copy_changed(&from.join(&name), &to.join(&name))?;
        }
    }
    Ok(())
}
