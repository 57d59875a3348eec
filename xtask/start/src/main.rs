//! `cargo xtask COMMAND`: developer commands.
//!
//! This program has almost no dependencies, so that `serve` and `test` start at once on a fresh clone.
//! Commands that need the library are in `xtask-tools`, which is built with the features of the whole
//! workspace.

mod dist;
mod javascript;
mod need;
mod python;
mod serve;
mod steps;
mod studio;
mod test;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::Context;

/// Function that runs a command with its arguments; `main` prints the error.
type StartCommand = fn(&[String]) -> anyhow::Result<()>;

/// Commands: name, arguments, purpose. Those without a function are in `xtask-tools`.
const COMMANDS: &[(&str, &str, &str, Option<StartCommand>)] = &[
    (
        "serve",
        "[FLAGS]",
        "the server and the studio, with recorded replies of real models as upstream",
        Some(serve::run),
    ),
    ("test", "[--coverage]", "everything that must hold before a change is merged", Some(test::run)),
    ("python", "", "tests of the Python package, as `test` runs them", Some(python::run)),
    ("javascript", "", "tests of the JavaScript package, as `test` runs them", Some(javascript::run)),
    (
        "dist",
        "[--check | --verify] [--binary PATH]",
        "the files of a release in target/dist; `--check` makes, installs and runs each from a debug build",
        Some(dist::run),
    ),
    (
        "book",
        "[--check]",
        "the documentation as a book with a search, in target/book/html",
        Some(dist::run_book),
    ),
    ("programs", "[FILTER...]", "all test programs side by side, as `test` runs them", None),
    ("spec", "[--all | --prove]", "rows of the specification without a test, or without a proof", None),
    ("mutants", "[--list] [--sample N] [WORD...]", "breakages made on purpose, which tests must catch", None),
    (
        "bench",
        "[lib | json | state | prompt | instructions | server]",
        "speed, instructions under valgrind, or the server's costs",
        None,
    ),
    (
        "bindings",
        "[--check | golden FILE]",
        "generated types of the packages for other languages; replies with their events, for the tests",
        None,
    ),
    ("web", "PROFILE FOLDER", "WebAssembly modules of the JavaScript package", None),
    ("coverage", "[--if-there]", "lines of the crates that tests run through", None),
    ("work", "[--all]", "instructions on hostile input under valgrind, which must be linear", None),
    ("fixtures", "", "imports the corpora into fixtures/, if their folder is present", None),
    ("peers", "[--verbose]", "other projects' cases of broken JSON, if their folder is present", None),
    (
        "tavern",
        "FOLDER",
        "compares macros and world info with SillyTavern's own, from its unpacked npm package",
        None,
    ),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((name, command_arguments)) = arguments.split_first() else {
        return print_usage();
    };
    let Some((.., run)) = COMMANDS.iter().find(|(command, ..)| command == name) else {
        eprintln!("there is no command `{name}`");
        return print_usage();
    };
    let result = match run {
        Some(run) => run(command_arguments).map(|()| ExitCode::SUCCESS),
        None => run_tool(TOOLS, &arguments),
    };
    result.unwrap_or_else(|error| {
        eprintln!("{error:#}");
        ExitCode::FAILURE
    })
}

fn print_usage() -> ExitCode {
    eprintln!("cargo xtask COMMAND\n");
    for (name, arguments, purpose, _) in COMMANDS {
        eprintln!("  {:<44} {purpose}", format!("{name} {arguments}"));
    }
    ExitCode::from(2)
}

/// Builds a program of the workspace and runs it with the arguments; its exit code becomes that of this
/// program.
fn run_tool(program: &str, arguments: &[String]) -> anyhow::Result<ExitCode> {
    // Selecting the whole workspace gives dependencies the features of the tests, so that they are built
    // once.
    let build_status =
        cargo_command().args(["build", "--quiet", "--workspace", "--bin", program]).status()?;
    anyhow::ensure!(build_status.success(), "`{program}` did not build");
    let status = built_command(program)?.args(arguments).status()?;
    Ok(status.code().map_or(ExitCode::FAILURE, |code| ExitCode::from(u8::try_from(code).unwrap_or(1))))
}

/// Program with the commands that need the library.
const TOOLS: &str = "xtask-tools";

/// Command of `xtask-tools`.
fn tools_command() -> anyhow::Result<Command> {
    built_command(TOOLS)
}

/// Command of a program that is built into the same folder as this one.
fn built_command(name: &str) -> anyhow::Result<Command> {
    let program = std::env::current_exe()?;
    let folder = program.parent().context("the path of this program has no folder")?;
    Ok(Command::new(folder.join(name).with_extension(std::env::consts::EXE_EXTENSION)))
}

/// Builds a Cargo command that runs in the repository.
fn cargo_command() -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(repository_root());
    command
}

/// Root of the repository.
fn repository_root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().unwrap_or(root)
}
