//! Tests of the JavaScript package: its addon, its WebAssembly modules, its TypeScript, its tests in Node.

use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::thread::JoinHandle;

use anyhow::Context;

use crate::need::has_target;
use crate::steps::TestSteps;
use crate::test::lower_priority;
use crate::{TOOLS, cargo_command, repository_root, run_tool, tools_command};

/// WebAssembly target.
pub(crate) const WASM_TARGET: &str = "wasm32-unknown-unknown";

/// Arguments of npm that install what the package is built and tested with.
const INSTALL: [&str; 5] = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"];

/// Profile of the modules for tests.
const TEST_PROFILE: &str = "web-test";

/// `cargo xtask javascript`: tests of the package alone.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    anyhow::ensure!(arguments.is_empty(), "`javascript` takes no arguments");
    let mut steps = TestSteps::default();
    let setup = PackageSetup::start(&steps);
    if steps.run_step("build", cargo_command().args(["build", "--workspace", "--lib", "--bins"])) {
        setup.check(&mut steps)?;
    }
    steps.print_summary()
}

/// Builds the modules and the TypeScript as a release has them.
pub(crate) fn build_release() -> anyhow::Result<()> {
    let modules = package().join("wasm").display().to_string();
    let code = run_tool(TOOLS, &["web".to_owned(), "web".to_owned(), modules])?;
    anyhow::ensure!(code == ExitCode::SUCCESS, "the WebAssembly modules could not be built");
    for arguments in [&INSTALL[..], &["run", "--silent", "build"]] {
        anyhow::ensure!(npm(arguments).status()?.success(), "`npm {}` failed", arguments.join(" "));
    }
    Ok(())
}

/// Installation, in progress, of the packages that the tests need.
pub(crate) struct PackageSetup {
    install: JoinHandle<(TestSteps, bool)>,
}

impl PackageSetup {
    /// Starts the installation in another thread.
    pub(crate) fn start(steps: &TestSteps) -> PackageSetup {
        let mut branch = steps.branch();
        let install = std::thread::spawn(move || {
            let is_installed = branch.run_step("JavaScript package, set-up", &mut npm(&INSTALL));
            (branch, is_installed)
        });
        PackageSetup { install }
    }

    /// Waits for the installation, puts the built libraries into the package, and tests it.
    pub(crate) fn check(self, steps: &mut TestSteps) -> anyhow::Result<()> {
        let has_modules = build_modules(steps)?;
        if !steps.join_thread(self.install) {
            return Ok(());
        }
        put_addon()?;
        if !steps.run_step("JavaScript package, TypeScript", &mut npm(&["run", "--silent", "build"])) {
            return Ok(());
        }
        let golden = repository_root().join("target/javascript-golden.jsonl");
        let mut replies = tools_command()?;
        replies.args(["bindings", "golden"]).arg(&golden);
        if !steps.run_step("JavaScript package, replies", &mut replies) {
            return Ok(());
        }
        let test = |script| {
            let mut tests = npm(&["run", "--silent", script]);
            tests.env("TAMBOUR_GOLDEN", &golden);
            tests
        };
        steps.run_step("JavaScript package, tests", &mut test("test"));
        if has_modules {
            steps.run_step("JavaScript package, tests with WebAssembly", &mut test("test:wasm"));
        }
        Ok(())
    }
}

/// Builds the WebAssembly modules. Returns `false` if that failed, or the toolchain lacks the target.
fn build_modules(steps: &mut TestSteps) -> anyhow::Result<bool> {
    if !has_target(WASM_TARGET) {
        let _ = Command::new("rustup").args(["target", "add", WASM_TARGET]).status();
    }
    if !has_target(WASM_TARGET) {
        println!(
            "\n== JavaScript package, WebAssembly: left out, install its target with \
             `rustup target add {WASM_TARGET}`"
        );
        return Ok(false);
    }
    let mut build = tools_command()?;
    build.args(["web", TEST_PROFILE]).arg(package().join("wasm"));
    // The build takes minutes, and other tests beside it look at times.
    Ok(steps.run_step("JavaScript package, WebAssembly", &mut lower_priority(build)))
}

/// Puts the built addon where the package looks for one.
fn put_addon() -> anyhow::Result<()> {
    let name = format!("{}tambour_node{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let built = repository_root().join("target/debug").join(name);
    // A loaded addon must not be written over, so the old one is removed first.
    let addon = package().join("loaders/tambour.node");
    let _ = std::fs::remove_file(&addon);
    std::fs::copy(&built, &addon).with_context(|| built.display().to_string())?;
    Ok(())
}

/// npm in the folder of the package.
fn npm(arguments: &[&str]) -> Command {
    let mut command = Command::new("npm");
    command.args(arguments).current_dir(package());
    command
}

/// Folder of the package.
fn package() -> PathBuf {
    repository_root().join("bindings/js")
}
