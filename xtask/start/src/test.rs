//! `cargo xtask test`: every check before a merge, cheapest first.
//!
//! The last line is `N passed, N failed`: tests, and one for each other step.
//!
//! Nothing is built twice, since minutes matter. Cargo chooses the features of dependencies by the selected
//! packages, and builds them again for another selection; every step but one selects the whole workspace with
//! all targets.

use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Context;

use crate::steps::TestSteps;
use crate::{cargo_command, need, repository_root, studio, tools_command};

/// Iterations of each seeded fuzz test unless `FUZZ_ITERATIONS` says otherwise; about half a minute on two
/// cores.
const FUZZ_ITERATIONS: &str = "5000";

/// Time that earlier steps may take, so that everything stays under 25 minutes on two cores.
const MAX_TIME_BEFORE_COVERAGE: Duration = Duration::from_secs(13 * 60);

/// Target for which the libraries are checked if the toolchain has it.
const WASM: &str = "wasm32-unknown-unknown";

/// Seconds per target where cargo-fuzz and a nightly toolchain are installed.
const FUZZ_SECONDS: u64 = 6;

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let coverage = match arguments {
        [] => false,
        [argument] if argument == "--coverage" => true,
        _ => anyhow::bail!("usage: cargo xtask test [--coverage]"),
    };
    need::require_programs()?;
    let mut steps = TestSteps::default();
    steps.run_step("format", cargo_command().args(["fmt", "--all", "--check"]));
    let clippy = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    steps.run_step("clippy", cargo_command().args(clippy));
    // Alone, the libraries have their own features, without those that other packages add.
    let mut alone = cargo_command();
    alone.args(["check", "--quiet", "--package", "tambour", "--package", "tambour-prompt"]);
    if need::has_target(WASM) {
        alone.args(["--target", WASM]);
    }
    steps.run_step("libraries alone", &mut alone);
    // Without benchmarks, which only `clippy` compiles: nothing here runs them.
    let build = ["build", "--workspace", "--lib", "--bins", "--tests", "--examples"];
    if steps.run_step("build", cargo_command().args(build)) {
        run_proofs(&mut steps)?;
    }
    let docs = ["doc", "--workspace", "--lib", "--no-deps"];
    steps.run_step("docs", cargo_command().args(docs).env("RUSTDOCFLAGS", "-D warnings"));
    run_fuzz_targets(&mut steps)?;
    if coverage && steps.elapsed() < MAX_TIME_BEFORE_COVERAGE {
        steps.run_step("coverage", tools_command()?.args(["coverage", "--if-there"]));
    } else if coverage {
        println!("\n== coverage: left out, the other steps took too long for it");
    }
    steps.print_summary()
}

/// Runs the steps that need the built programs.
fn run_proofs(steps: &mut TestSteps) -> anyhow::Result<()> {
    steps.run_step("tests", tools_command()?.arg("programs").env("FUZZ_ITERATIONS", FUZZ_ITERATIONS));
    // Instruction counts are not affected by parallel steps.
    let work = match need::is_installed("valgrind") {
        true => {
            let mut work = tools_command()?;
            work.args(["work", "--unless-unchanged"]);
            Some(steps.start_step("linear work", work))
        }
        false => {
            println!("\n== linear work: left out, valgrind is not installed");
            None
        }
    };
    check_clients(steps);
    let studio = check_studio(steps);
    steps.run_step("tests in documentation", cargo_command().args(["test", "--workspace", "--doc"]));
    steps.run_step("specification", tools_command()?.arg("spec"));
    steps.run_step("specification, proof", tools_command()?.args(["spec", "--prove"]));
    if let Some(work) = work {
        steps.wait_step(work);
    }
    if let Some(mut pages) = studio {
        // Runs alone, since it counts frames.
        steps.run_step("studio, in a browser", &mut pages);
    }
    Ok(())
}

/// Checks and builds the studio. Returns the command that tests its pages in a browser with the built server.
fn check_studio(steps: &mut TestSteps) -> Option<Command> {
    println!("\n== studio, set-up");
    if let Err(error) = studio::install_packages() {
        println!("{error:#}");
        steps.run_step(
            "studio, set-up",
            &mut studio::npm_command(&["ci", "--ignore-scripts", "--no-audit", "--no-fund"]),
        );
        return None;
    }
    let server = repository_root().join("target/debug/tambour").display().to_string();
    let scripts: [(&str, &[&str]); 5] = [
        ("studio, types of the interface", &["run", "--silent", "types:check", "--", &server]),
        ("studio, type check", &["run", "--silent", "typecheck"]),
        ("studio, lints", &["run", "--silent", "lint"]),
        ("studio, tests", &["run", "--silent", "test"]),
        ("studio, build", &["run", "--silent", "build"]),
    ];
    let mut is_built = true;
    for (name, arguments) in scripts {
        is_built = steps.run_step(name, &mut studio::npm_command(arguments));
    }
    is_built.then(|| {
        let mut pages = studio::npm_command(&["run", "--silent", "browser"]);
        pages.env("TAMBOUR", &server);
        pages
    })
}

/// Tests published clients of other protocols with the server, in the versions of their lock file.
fn check_clients(steps: &mut TestSteps) {
    let folder = repository_root().join("tests/clients");
    let mut setup = Command::new("npm");
    setup
        .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"])
        .current_dir(&folder);
    let run = |program: &std::path::Path, arguments: &[&str]| {
        let mut command = Command::new(program);
        command.arg(folder.join(arguments[0])).args(&arguments[1..]).current_dir(repository_root());
        command
    };
    let (node, server) = (std::path::Path::new("node"), "target/debug/tambour");
    if !steps.run_step("clients, set-up", &mut setup) {
        return;
    }
    steps.run_step("clients", &mut run(node, &["clients.mjs", server, "fixtures"]));
    let Some(python) = prepare_python(steps, &folder) else { return };
    steps.run_step("clients, Python", &mut run(&python, &["clients.py", server, "fixtures"]));
    steps.run_step("clients, agents in Python", &mut run(&python, &["openai_agents.py", server]));
    let python_path = python.display().to_string();
    steps.run_step(
        "clients, examples of the page",
        &mut run(node, &["snippets.mjs", server, "docs/clients.md", &python_path]),
    );
}

/// Creates a Python environment with the packages of the lock file in a folder of its own.
fn prepare_python(steps: &mut TestSteps, folder: &std::path::Path) -> Option<std::path::PathBuf> {
    let place = repository_root().join("target/clients-python");
    let python = place.join("bin/python");
    if !python.is_file() {
        let mut venv_command = Command::new("python3");
        venv_command.args(["-m", "venv"]).arg(&place);
        if !steps.run_step("clients, a Python of their own", &mut venv_command) {
            return None;
        }
    }
    let mut install = Command::new(&python);
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"]);
    install.arg(folder.join("requirements.txt")).current_dir(repository_root());
    steps.run_step("clients, set-up of Python", &mut install).then_some(python)
}

/// Runs each fuzz target briefly, if its tools are installed.
fn run_fuzz_targets(steps: &mut TestSteps) -> anyhow::Result<()> {
    let mut build_command = Command::new("cargo");
    build_command.args(["+nightly", "fuzz", "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
    if !build_command.status().is_ok_and(|status| status.success()) {
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
        let found = repository_root().join("fuzz/target/corpus").join(&name);
        std::fs::create_dir_all(&found)?;
        let mut command = Command::new("cargo");
        command.args(["+nightly", "fuzz", "run", &name]).arg(found).arg(format!("fuzz/corpus/{name}"));
        command.arg("--").current_dir(repository_root());
        command.args(["-seed=1", "-rss_limit_mb=2048", &format!("-max_total_time={FUZZ_SECONDS}")]);
        steps.run_step(&format!("fuzz {name}"), &mut command);
    }
    Ok(())
}
