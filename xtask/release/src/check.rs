//! `cargo xtask dist --check`: installs and runs each artefact in a clean place. What this machine cannot do is
//! said and counted as ignored.

mod deb;
mod image;
mod npm;
mod packages;
mod packaging;
mod tarball;

use std::path::PathBuf;
use std::process::Command;

use anyhow::Context;

use crate::dist::Release;
use crate::{find_program, read_command, repository_root, run_command};

/// Result of a check that has not failed.
pub(crate) enum Outcome {
    /// Everything was done; a remark for the reader.
    Success(String),
    /// Something was not done, and why.
    Omission(String),
}

/// Function that checks one artefact.
type Check = fn(&Release) -> anyhow::Result<Outcome>;

/// Checks by name.
const CHECKS: &[(&str, Check)] = &[
    ("checksums", check_sums),
    ("tarball: program, completions, manual pages", tarball::check),
    ("deb: installation, service, upgrade, purge", deb::check),
    ("image: container without a shell and root, with its health check", image::check),
    ("wheel without the command: first page", packages::check_library),
    ("wheel with the command", packages::check_command),
    ("npm packages: first page with the addon and with WebAssembly", npm::check),
    ("SBOM: schema", packages::check_sbom),
    ("release workflow: schema, pins, permissions", packaging::check_workflow),
    ("Homebrew formula", packaging::check_formula),
    ("Helm chart", packaging::check_chart),
];

/// Runs all checks and prints their results, with a last line as that of a test program.
pub(crate) fn run(release: &Release) -> anyhow::Result<()> {
    let (mut passed, mut failed, mut omissions) = (0, 0, 0);
    for (name, check) in CHECKS {
        let start = std::time::Instant::now();
        let result = check(release);
        let seconds = start.elapsed().as_secs_f64();
        match result {
            Ok(Outcome::Success(remark)) => {
                passed += 1;
                println!(
                    "{name}: passed ({seconds:.1} s){}{remark}",
                    if remark.is_empty() { "" } else { ": " }
                );
            }
            Ok(Outcome::Omission(reason)) => {
                omissions += 1;
                println!("{name}: left out, {reason}");
            }
            Err(error) => {
                failed += 1;
                println!("{name}: FAILED: {error:#}");
            }
        }
    }
    let verdict = if failed == 0 { "ok" } else { "FAILED" };
    println!(
        "test result: {verdict}. {passed} passed; {failed} failed; {omissions} ignored; 0 measured; 0 filtered out"
    );
    anyhow::ensure!(failed == 0, "{failed} artefacts failed");
    Ok(())
}

/// Verifies the checksums as a user does.
fn check_sums(release: &Release) -> anyhow::Result<Outcome> {
    if find_program("sha256sum").is_none() {
        return Ok(Outcome::Omission("sha256sum is not installed".to_owned()));
    }
    let mut sums = Command::new("sha256sum");
    sums.args(["--check", "--strict", "--quiet", "SHA256SUMS"]).current_dir(&release.out);
    read_command(&mut sums)?;
    let text = std::fs::read_to_string(release.out.join("SHA256SUMS"))?;
    Ok(Outcome::Success(format!("{} files", text.lines().count())))
}

/// Interpreter of an environment with the tools of the checks: schemas of CycloneDX and of workflows.
fn tools_python() -> anyhow::Result<PathBuf> {
    let folder = repository_root().join("target/dist-tools/checks");
    let python = folder.join("bin/python");
    let requirements = repository_root().join("xtask/release/requirements.txt");
    let installed = folder.join("requirements.txt");
    let wanted = std::fs::read_to_string(&requirements)?;
    if std::fs::read_to_string(&installed).is_ok_and(|text| text == wanted) {
        return Ok(python);
    }
    run_command(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"]);
    run_command(pip.arg(&requirements)).context("installation of the tools")?;
    std::fs::write(installed, wanted)?;
    Ok(python)
}

/// Returns whether this process is of the administrator.
fn is_root() -> bool {
    read_command(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}
