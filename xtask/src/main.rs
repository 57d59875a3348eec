//! `xtask-tools`: the developer commands that need the library. `cargo xtask` builds and runs it.

mod bench;
mod bindings;
mod coverage;
mod fixtures;
mod mutants;
mod peers;
mod programs;
mod spec;
mod stamp;
mod tavern;
mod web;
mod work;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// Function that runs a command with its arguments; `main` prints the error.
type ToolCommand = fn(&[String]) -> anyhow::Result<()>;

/// Commands by name; `cargo xtask` (in `xtask/start`) describes them.
const COMMANDS: &[(&str, ToolCommand)] = &[
    ("programs", programs::run),
    ("spec", spec::run),
    ("mutants", mutants::run),
    ("bench", bench::run),
    ("bindings", bindings::run),
    ("coverage", coverage::run),
    ("work", work::run),
    ("fixtures", fixtures::run),
    ("peers", peers::run),
    ("tavern", tavern::run),
    ("web", web::run),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let command = arguments.split_first().and_then(|(name, command_arguments)| {
        let (_, run) = COMMANDS.iter().find(|(command, _)| command == name)?;
        Some((run, command_arguments))
    });
    let Some((run, command_arguments)) = command else {
        let names: Vec<&str> = COMMANDS.iter().map(|(name, _)| *name).collect();
        eprintln!("commands: {}; `cargo xtask` runs them", names.join(", "));
        return ExitCode::from(2);
    };
    match run(command_arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs a command without its output and returns whether it succeeded.
fn run_quietly(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// Root of the repository.
fn repository_root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    root.canonicalize().unwrap_or(root)
}
