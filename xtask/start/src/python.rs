//! Tests of the Python package: its environment, its wheel, and its tests in Python.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::JoinHandle;

use crate::steps::TestSteps;
use crate::{cargo_command, repository_root, tools_command};

/// `cargo xtask python`: tests of the package alone.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    anyhow::ensure!(arguments.is_empty(), "`python` takes no arguments");
    let mut steps = TestSteps::default();
    let setup = PackageSetup::start(&steps);
    if steps.run_step("build", cargo_command().args(["build", "--workspace", "--lib", "--bins"])) {
        setup.check(&mut steps)?;
    }
    steps.print_summary()
}

/// Installation, in progress, of the packages that the tests need.
pub(crate) struct PackageSetup {
    /// Returns the interpreter of the environment; `None` after a failure.
    install: JoinHandle<(TestSteps, Option<PathBuf>)>,
}

impl PackageSetup {
    /// Starts the installation in another thread.
    pub(crate) fn start(steps: &TestSteps) -> PackageSetup {
        let mut branch = steps.branch();
        let install = std::thread::spawn(move || {
            let python = create_environment(&mut branch);
            (branch, python)
        });
        PackageSetup { install }
    }

    /// Waits for the installation, packs the built library as a wheel, and tests it.
    pub(crate) fn check(self, steps: &mut TestSteps) -> anyhow::Result<()> {
        let types = steps.run_step("Python package, types", tools_command()?.args(["bindings", "--check"]));
        let Some(python) = steps.join_thread(self.install).filter(|_| types) else { return Ok(()) };
        let golden = folder().join("golden.jsonl");
        let mut replies = tools_command()?;
        replies.args(["bindings", "golden"]).arg(&golden);
        if !steps.run_step("Python package, replies", &mut replies) {
            return Ok(());
        }
        let wheels = folder().join("wheels");
        let _ = std::fs::remove_dir_all(&wheels);
        let mut pack = Command::new(&python);
        pack.arg(package().join("tests/wheel.py")).arg(library()).arg(&wheels);
        if !steps.run_step("Python package, wheel", &mut pack) {
            return Ok(());
        }
        let mut install = pip(&python);
        install
            .args(["--no-index", "--no-deps", "--force-reinstall", "tambour", "--find-links"])
            .arg(&wheels);
        if steps.run_step("Python package, installation", &mut install) {
            let mut tests = Command::new(&python);
            tests.args(["-m", "pytest", "-p", "no:cacheprovider"]).current_dir(package());
            tests.env("TAMBOUR_GOLDEN", &golden).env("TAMBOUR_WHEELS", &wheels);
            // Caches and compiled files do not belong beside the sources.
            tests.env("PYTHONDONTWRITEBYTECODE", "1").env("MYPY_CACHE_DIR", folder().join("mypy"));
            steps.run_step("Python package, tests", &mut tests);
        }
        Ok(())
    }
}

/// Creates the virtual environment, unless it exists, and installs what the tests need.
fn create_environment(steps: &mut TestSteps) -> Option<PathBuf> {
    let environment = folder().join("environment");
    let python = environment.join("bin/python");
    if !python.is_file() {
        let mut venv = Command::new("python3");
        venv.args(["-m", "venv"]).arg(&environment);
        if !steps.run_step("Python package, environment", &mut venv) {
            return None;
        }
    }
    let mut install = pip(&python);
    install.arg("--requirement").arg(package().join("tests/requirements.txt"));
    steps.run_step("Python package, set-up", &mut install).then_some(python)
}

fn pip(python: &Path) -> Command {
    let mut pip = Command::new(python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    pip
}

/// Folder of the package.
fn package() -> PathBuf {
    repository_root().join("bindings/python")
}

/// Folder of what the tests make.
fn folder() -> PathBuf {
    repository_root().join("target/python-package")
}

/// Path of the built library.
fn library() -> PathBuf {
    let name = format!("{}_native{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    repository_root().join("target/debug").join(name)
}
