//! Wheels, with and without the command.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use super::Release;
use crate::{repository_root, run_command};

/// Version of maturin that builds the wheels.
const MATURIN: &str = "maturin>=1.16,<2";

/// Makes the wheel with the command (`python/`), and the one without (`python-library/`), which has the same
/// name: an index takes only one of them.
pub(super) fn make_wheels(release: &Release) -> anyhow::Result<()> {
    let bindings = repository_root().join("bindings/python");
    let small = release.out.join("python-library");
    let full = release.out.join("python");
    for folder in [&small, &full] {
        std::fs::create_dir_all(folder)?;
    }
    match &release.library {
        Some(library) => {
            let stripped = release.work.join("library.so");
            run_command(Command::new("strip").arg("-o").arg(&stripped).arg(library))?;
            let mut pack = Command::new("python3");
            pack.arg(bindings.join("tests/wheel.py")).arg(&stripped).arg(&small);
            run_command(pack.stdout(std::process::Stdio::null()))?;
        }
        None => build_wheel(release, &bindings, &small)?,
    }
    let wheels: Vec<PathBuf> =
        std::fs::read_dir(&small)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    let [wheel] = &wheels[..] else { anyhow::bail!("there is one wheel, not {wheels:?}") };
    let copy = full.join(wheel.file_name().context("a wheel has a name")?);
    std::fs::copy(wheel, &copy)?;
    run_command(Command::new("python3").arg(bindings.join("add_command.py")).arg(&copy).arg(&release.program))
}

/// Builds the wheel with maturin, in an environment of its own.
fn build_wheel(release: &Release, bindings: &Path, folder: &Path) -> anyhow::Result<()> {
    let environment = repository_root().join("target/dist-tools/maturin");
    let program = environment.join("bin/maturin");
    if !program.is_file() {
        run_command(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
        let mut pip = Command::new(environment.join("bin/python"));
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", MATURIN]);
        run_command(&mut pip)?;
    }
    let mut maturin = Command::new(program);
    maturin.args(["build", "--locked", "--profile", "wheel", "--out"]).arg(folder).current_dir(bindings);
    maturin.env("SOURCE_DATE_EPOCH", release.epoch.to_string());
    run_command(&mut maturin)
}
