//! Tests of the Python package: its environment, its wheel, its tests in Python, and batches with Ray and Spark.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::steps::TestSteps;
use crate::{cargo_command, repository_root, tools_command};

/// Longest time of the installation of Ray and Spark, which are large. It runs beside other steps; a registry
/// that is slower leaves the tests of batches out.
const MAX_ENGINE_INSTALLATION: Duration = Duration::from_secs(240);

/// Time after which the tests of batches count as hanging. They take one to two minutes.
const MAX_ENGINE_TESTS: Duration = Duration::from_secs(300);

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
    /// Returns the interpreter of the environment with Ray and Spark, or why there is none.
    engines: JoinHandle<Result<PathBuf, String>>,
}

impl PackageSetup {
    /// Starts the installation in another thread.
    pub(crate) fn start(steps: &TestSteps) -> PackageSetup {
        let mut branch = steps.branch();
        let install = std::thread::spawn(move || {
            let python = create_environment(&mut branch);
            (branch, python)
        });
        PackageSetup { install, engines: std::thread::spawn(install_engines) }
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
            add_pytest(&mut tests).current_dir(package());
            tests.env("TAMBOUR_GOLDEN", &golden).env("TAMBOUR_WHEELS", &wheels);
            tests.env("MYPY_CACHE_DIR", folder().join("mypy"));
            steps.run_step("Python package, tests", &mut tests);
            let engines = self.engines.join().unwrap_or_else(|_| Err("its thread has panicked".to_owned()));
            check_engines(steps, engines, &wheels);
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

/// Installs Ray and Spark into an environment of their own, which is made anew if an earlier installation was
/// not finished. The error says why they are not there.
fn install_engines() -> Result<PathBuf, String> {
    let environment = folder().join("engines");
    let (python, mark) = (environment.join("bin/python"), environment.join("installed"));
    let requirements = repository_root().join("tests/batch/requirements.txt");
    let wanted = std::fs::read(&requirements).map_err(|error| error.to_string())?;
    if std::fs::read(&mark).is_ok_and(|installed| installed == wanted) {
        return Ok(python);
    }
    let _ = std::fs::remove_dir_all(&environment);
    let start = Instant::now();
    let mut venv = Command::new("python3");
    venv.args(["-m", "venv"]).arg(&environment);
    let mut install = pip(&python);
    install.arg("--requirement").arg(&requirements);
    for command in [&mut venv, &mut install] {
        command.stdout(Stdio::null());
        run_within(command, MAX_ENGINE_INSTALLATION.saturating_sub(start.elapsed()))?;
    }
    std::fs::write(&mark, wanted).map_err(|error| error.to_string())?;
    Ok(python)
}

/// Runs a command, which is stopped after `time`. The error says how it ended if it did not succeed.
fn run_within(command: &mut Command, time: Duration) -> Result<(), String> {
    let start = Instant::now();
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(format!("the installation ended with {status}")),
            Ok(None) if start.elapsed() < time => std::thread::sleep(Duration::from_millis(200)),
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err("the registry of packages is too slow".to_owned());
            }
            Err(error) => return Err(error.to_string()),
        }
    }
}

/// Tests batches with Ray and Spark, if they could be installed.
fn check_engines(steps: &mut TestSteps, engines: Result<PathBuf, String>, wheels: &Path) {
    let python = match engines {
        Ok(_) if !cfg!(target_os = "linux") => {
            return println!("\n== Python package, batches: left out, they find workers in /proc");
        }
        Ok(python) => python,
        Err(reason) => return println!("\n== Python package, batches: left out, {reason}"),
    };
    let mut install = pip(&python);
    install.args(["--no-index", "--no-deps", "--force-reinstall", "tambour", "--find-links"]).arg(wheels);
    if !steps.run_step("Python package, installation for batches", &mut install) {
        return;
    }
    // `timeout` also ends clusters that hang.
    let mut tests = Command::new("timeout");
    tests.args(["--kill-after=5", &MAX_ENGINE_TESTS.as_secs().to_string()]).arg(&python);
    add_pytest(&mut tests).args(["-q", "."]).current_dir(repository_root().join("tests/batch"));
    steps.run_step("Python package, batches with Ray and Spark", &mut tests);
}

/// Adds pytest to the command of an interpreter. Caches and compiled files do not belong beside the sources.
fn add_pytest(command: &mut Command) -> &mut Command {
    command.args(["-m", "pytest", "-p", "no:cacheprovider", "-p", "counts"]);
    command.env("PYTHONPATH", repository_root().join("tests/plugins")).env("PYTHONDONTWRITEBYTECODE", "1")
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
