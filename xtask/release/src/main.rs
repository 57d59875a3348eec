//! `xtask-release`: the book, and the files of a release. `cargo xtask` builds and runs it.

mod book;
mod check;
mod dist;
mod first_page;
mod server;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::Context;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match arguments.split_first() {
        Some((command, rest)) if command == "book" => book::run(rest),
        Some((command, rest)) if command == "dist" => dist::run(rest),
        _ => Err(anyhow::anyhow!("commands: book, dist; `cargo xtask` runs them")),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Root of the repository.
fn repository_root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().unwrap_or(root)
}

/// Runs a command that must succeed.
fn run_command(command: &mut Command) -> anyhow::Result<()> {
    let status = command.status().with_context(|| format!("{command:?} does not start"))?;
    anyhow::ensure!(status.success(), "{command:?} ended with {status}");
    Ok(())
}

/// Runs a command that must succeed, and returns its standard output.
fn read_command(command: &mut Command) -> anyhow::Result<String> {
    let output = command.output().with_context(|| format!("{command:?} does not start"))?;
    anyhow::ensure!(
        output.status.success(),
        "{command:?} ended with {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Finds a program in the search path, and in the folders of administrators.
fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    folders.map(|folder| folder.join(name)).find(|program| program.is_file())
}

/// Empties a folder, or creates it.
fn renew_folder(folder: &Path) -> anyhow::Result<()> {
    if folder.exists() {
        std::fs::remove_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())
}

/// Builds a target of the workspace as its tests do, and returns the folder of the build.
fn build_debug(target: &[&str]) -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe()?;
    let folder = program.parent().context("the path of this program has no folder")?.to_owned();
    // Selecting the whole workspace gives dependencies the features of the tests, so that they are built once.
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--quiet", "--workspace"]).args(target).current_dir(repository_root());
    run_command(&mut cargo)?;
    Ok(folder)
}
