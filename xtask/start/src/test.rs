//! `cargo xtask test`: every check before a merge, cheapest first.
//!
//! The last line is `N passed, N failed`: the number of tests, with one for each step that has no tests.
//!
//! Nothing should be built twice, since builds take minutes. Cargo chooses the features of dependencies by
//! the selected packages, and builds them again for another selection. So every step but those of the
//! libraries alone selects the whole workspace.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context;

use crate::javascript::{self, WASM_TARGET};
use crate::python;
use crate::steps::{ParallelStep, TestSteps};
use crate::{cargo_command, dist, need, repository_root, studio, tools_command};

/// Iterations of each seeded fuzz test unless `FUZZ_ITERATIONS` says otherwise.
const FUZZ_ITERATIONS: &str = "2500";

/// Longest time of the earlier steps after which coverage is still measured, so that everything stays under
/// 25 minutes on two cores.
const MAX_TIME_BEFORE_COVERAGE: Duration = Duration::from_secs(13 * 60);

/// Seconds for each fuzz target, if cargo-fuzz and a nightly toolchain are installed.
const FUZZ_SECONDS: u64 = 6;

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let with_coverage = match arguments {
        [] => false,
        [argument] if argument == "--coverage" => true,
        _ => anyhow::bail!("usage: cargo xtask test [--coverage]"),
    };
    need::require_programs()?;
    need::install_optional_programs();
    let mut steps = TestSteps::default();
    // Downloads mostly wait for the network, so they hardly slow the compiler down.
    let package_install = std::thread::spawn(studio::install_packages);
    let clients = ClientSetup::start(&steps);
    let python_package = python::PackageSetup::start(&steps);
    let javascript_package = javascript::PackageSetup::start(&steps);
    steps.run_step("format", cargo_command().args(["fmt", "--all", "--check"]));
    let clippy = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    steps.run_step("clippy", cargo_command().args(clippy));
    // Benchmarks are left out: no step runs them, and `clippy` has compiled them.
    let build = ["build", "--workspace", "--lib", "--bins", "--tests", "--examples"];
    if steps.run_step("build", cargo_command().args(build)) {
        let packages =
            package_install.join().unwrap_or_else(|_| Err(anyhow::anyhow!("installing packages panicked")));
        run_steps_after_build(&mut steps, (clients, python_package, javascript_package), packages)?;
    }
    run_fuzz_targets(&mut steps)?;
    if with_coverage && steps.elapsed() < MAX_TIME_BEFORE_COVERAGE {
        steps.run_step("coverage", tools_command()?.args(["coverage", "--if-there"]));
    } else if with_coverage {
        println!("\n== coverage: left out, the other steps took too long for it");
    }
    steps.print_summary()
}

/// Runs the steps that need the built programs. `packages` is the result of installing the studio's packages.
fn run_steps_after_build(
    steps: &mut TestSteps,
    (clients, python_package, javascript_package): (
        ClientSetup,
        python::PackageSetup,
        javascript::PackageSetup,
    ),
    packages: anyhow::Result<()>,
) -> anyhow::Result<()> {
    // The tests leave some of the processor's time to the checks of the studio, which only compute.
    let mut studio_steps = steps.branch();
    let studio_checks = std::thread::spawn(move || {
        let is_built = check_studio(&mut studio_steps, packages);
        (studio_steps, is_built)
    });
    // The modules take a while to build, which nothing waits for.
    let mut javascript_steps = steps.branch();
    let javascript_tests = std::thread::spawn(move || {
        let result = javascript_package.check(&mut javascript_steps);
        (javascript_steps, result)
    });
    steps.run_step("tests", tools_command()?.arg("programs").env("FUZZ_ITERATIONS", FUZZ_ITERATIONS));
    let has_studio = steps.join_thread(studio_checks);
    // The clients mostly wait. The tests of the Python package have one thread.
    let mut client_steps = steps.branch();
    let client_tests = std::thread::spawn(move || {
        let result = python_package.check(&mut client_steps);
        clients.check(&mut client_steps);
        (client_steps, result)
    });
    steps.run_step("tests in documentation", cargo_command().args(["test", "--workspace", "--doc"]));
    steps.run_step("specification", tools_command()?.arg("spec"));
    steps.run_step("specification, proof", tools_command()?.args(["spec", "--prove"]));
    steps.join_thread(client_tests)?;
    steps.join_thread(javascript_tests)?;
    // The inspector reads with the module of the package, which the first build did not have or is replaced.
    let has_studio = has_studio
        && steps.run_step(
            "studio, build with the package",
            &mut studio::npm_command(&["run", "--silent", "build"]),
        );
    if has_studio {
        // This step runs alone, since it counts frames.
        steps.run_step("studio, large data in a browser", &mut pages_command("browser:large"));
    }
    // Tests of pages spend half of their time waiting, so steps that only compute run at the same time.
    let background = start_background(steps)?;
    if has_studio {
        steps.run_step("studio, in a browser", &mut pages_command("browser:pages"));
    }
    for step in background {
        steps.wait_step(step);
    }
    Ok(())
}

/// Starts the steps that run in the background, at low priority, while other steps run.
fn start_background(steps: &TestSteps) -> anyhow::Result<Vec<ParallelStep>> {
    let mut docs = cargo_command();
    docs.args(["doc", "--quiet", "--workspace", "--lib", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings");
    let has_wasm = need::has_target(WASM_TARGET);
    // Selected alone, the libraries get none of the features that other packages turn on in dependencies.
    let check_libraries = |arguments: &[&str]| {
        let mut command = cargo_command();
        command.args(["check", "--quiet"]).args(arguments);
        command
    };
    let libraries = check_libraries(&["--package", "tambour", "--package", "tambour-prompt"]);
    // `tambour-prompt` turns on features of `tambour`, so each library is also checked by itself.
    let mut tambour_alone = check_libraries(&["--package", "tambour", "--no-default-features"]);
    if has_wasm {
        // Not `tambour-prompt`: dates and random numbers of templates need an operating system.
        tambour_alone.args(["--target", WASM_TARGET]);
    }
    let tambour_prompt_alone = check_libraries(&["--package", "tambour-prompt", "--no-default-features"]);
    let [book, release_files] = dist::check_commands()?;
    let mut background = vec![
        ("book", book),
        ("files of a release", release_files),
        ("docs", docs),
        ("libraries alone", libraries),
        ("tambour alone, no features", tambour_alone),
        ("tambour-prompt alone, no features", tambour_prompt_alone),
    ];
    if need::is_installed("valgrind") {
        // Instruction counts are not affected by parallel steps.
        let mut work = tools_command()?;
        work.args(["work", "--unless-unchanged"]);
        background.push(("linear work", work));
    } else {
        println!("\n== linear work: left out, valgrind is not installed");
    }
    Ok(background
        .into_iter()
        .map(|(name, command)| steps.start_step(name, lower_priority(command)))
        .collect())
}

/// Returns the command at the lowest priority, if the system has `nice`, else unchanged.
pub(crate) fn lower_priority(command: Command) -> Command {
    if !need::is_installed("nice") {
        return command;
    }
    let mut nice = Command::new("nice");
    nice.args(["-n", "19"]).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => nice.env(name, value),
            None => nice.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        nice.current_dir(folder);
    }
    nice
}

/// Path of the built server.
fn server_program() -> String {
    repository_root().join("target/debug/tambour").display().to_string()
}

/// Makes the command that tests the pages of the studio in a browser with the built server; `script` is the
/// name of an npm script of the studio.
fn pages_command(script: &str) -> Command {
    let mut pages = studio::npm_command(&["run", "--silent", script]);
    pages.env("TAMBOUR", server_program());
    pages
}

/// Checks and builds the studio. Returns `true` if it was built.
fn check_studio(steps: &mut TestSteps, packages: anyhow::Result<()>) -> bool {
    if let Err(error) = packages {
        println!("\n{error:#}");
        steps.run_step(
            "studio, set-up",
            &mut studio::npm_command(&["ci", "--ignore-scripts", "--no-audit", "--no-fund"]),
        );
        return false;
    }
    let server = server_program();
    let scripts: [(&str, &[&str]); 5] = [
        ("studio, types of the interface", &["run", "--silent", "types:check", "--", &server]),
        ("studio, type check", &["run", "--silent", "typecheck"]),
        ("studio, lints", &["run", "--silent", "lint"]),
        ("studio, tests", &["run", "--silent", "test"]),
        ("studio, build", &["run", "--silent", "build"]),
    ];
    // The last script is the build.
    let mut is_built = true;
    for (name, arguments) in scripts {
        is_built = steps.run_step(name, &mut lower_priority(studio::npm_command(arguments)));
    }
    is_built
}

/// Installation, in progress, of published clients of other protocols in the versions of their lock files.
struct ClientSetup {
    /// Folder with the tests of the clients.
    folder: PathBuf,
    install: JoinHandle<(TestSteps, InstalledClients)>,
}

/// Clients that could be installed.
struct InstalledClients {
    /// True if the npm packages are installed.
    has_npm_packages: bool,
    /// Interpreter of the environment with the Python packages.
    python: Option<PathBuf>,
}

impl ClientSetup {
    /// Starts the installation in another thread.
    fn start(steps: &TestSteps) -> ClientSetup {
        let folder = repository_root().join("tests/clients");
        let (mut branch, clients_folder) = (steps.branch(), folder.clone());
        let install = std::thread::spawn(move || {
            let clients = install_clients(&mut branch, &clients_folder);
            (branch, clients)
        });
        ClientSetup { folder, install }
    }

    /// Waits for the installation and tests the clients with the server.
    fn check(self, steps: &mut TestSteps) {
        let ClientSetup { folder, install } = self;
        // The first argument is a file in the folder of the clients.
        let client_command = |program: &Path, arguments: &[&str]| {
            let mut command = Command::new(program);
            command.arg(folder.join(arguments[0])).args(&arguments[1..]).current_dir(repository_root());
            command
        };
        let (node, server) = (Path::new("node"), "target/debug/tambour");
        let InstalledClients { has_npm_packages, python } = steps.join_thread(install);
        if !has_npm_packages {
            return;
        }
        // Each test starts its own server and mostly waits.
        let streams = client_command(node, &["durable_streams.mjs", server]);
        let mut started = vec![steps.start_step("clients, Durable Streams", streams)];
        if let Some(python) = &python {
            let python_path = python.display().to_string();
            let tests: [(&str, &Path, &[&str]); 3] = [
                ("clients, Python", python, &["clients.py", server, "fixtures"]),
                ("clients, agents in Python", python, &["openai_agents.py", server]),
                (
                    "clients, examples of the page",
                    node,
                    &["snippets.mjs", server, "docs/clients.md", &python_path],
                ),
            ];
            started.extend(tests.map(|(name, program, arguments)| {
                steps.start_step(name, client_command(program, arguments))
            }));
        }
        steps.run_step("clients", &mut client_command(node, &["clients.mjs", server, "fixtures"]));
        for step in started {
            steps.wait_step(step);
        }
    }
}

/// Installs the packages that `folder` lists: those of npm there, those of Python in a virtual environment.
fn install_clients(steps: &mut TestSteps, folder: &Path) -> InstalledClients {
    let mut npm = Command::new("npm");
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"]).current_dir(folder);
    let has_npm_packages = steps.run_step("clients, set-up", &mut npm);
    let python = create_python_environment(steps).filter(|python| {
        let mut pip = Command::new(python);
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        pip.arg("--requirement").arg(folder.join("requirements.txt")).current_dir(repository_root());
        steps.run_step("clients, set-up of Python", &mut pip)
    });
    InstalledClients { has_npm_packages, python }
}

/// Creates the virtual environment for Python packages, unless it exists. Returns its interpreter; `None`
/// after a failure.
fn create_python_environment(steps: &mut TestSteps) -> Option<PathBuf> {
    let environment = repository_root().join("target/clients-python");
    let python = environment.join("bin/python");
    if !python.is_file() {
        let mut venv = Command::new("python3");
        venv.args(["-m", "venv"]).arg(&environment);
        if !steps.run_step("clients, Python environment", &mut venv) {
            return None;
        }
    }
    Some(python)
}

/// Runs each fuzz target briefly, if its tools are installed.
fn run_fuzz_targets(steps: &mut TestSteps) -> anyhow::Result<()> {
    let mut version_command = Command::new("cargo");
    version_command.args(["+nightly", "fuzz", "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
    if !version_command.status().is_ok_and(|status| status.success()) {
        println!("\n== fuzz targets: left out, they need a nightly toolchain and cargo-fuzz");
        return Ok(());
    }
    let mut targets: Vec<_> = std::fs::read_dir(repository_root().join("fuzz/fuzz_targets"))?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    targets.sort();
    for target in targets {
        let name = target.file_stem().context("a fuzz target has a name")?.to_string_lossy().into_owned();
        // The first corpus receives new inputs, the second is only read.
        let new_inputs = repository_root().join("fuzz/target/corpus").join(&name);
        std::fs::create_dir_all(&new_inputs)?;
        let mut command = Command::new("cargo");
        command.args(["+nightly", "fuzz", "run", &name]).arg(new_inputs).arg(format!("fuzz/corpus/{name}"));
        command.arg("--").current_dir(repository_root());
        command.args(["-seed=1", "-rss_limit_mb=2048", &format!("-max_total_time={FUZZ_SECONDS}")]);
        steps.run_step(&format!("fuzz {name}"), &mut command);
    }
    Ok(())
}
