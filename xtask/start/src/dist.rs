//! `cargo xtask dist` and `cargo xtask book`: commands of `xtask-release`, and their steps in the tests.

use std::process::{Command, ExitCode};

use crate::{built_command, javascript, run_tool, studio};

/// Program with the commands.
const RELEASE: &str = "xtask-release";

/// Makes the files of a release. A program that is built for it has the studio in it.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let has_program =
        arguments.iter().any(|argument| ["--binary", "--check", "--verify"].contains(&argument.as_str()));
    if !has_program {
        // The inspector of the studio reads with the small modules.
        javascript::build_release()?;
        studio::build_studio();
    }
    run_release("dist", arguments)
}

/// Builds the book.
pub(crate) fn run_book(arguments: &[String]) -> anyhow::Result<()> {
    run_release("book", arguments)
}

/// Runs a command of `xtask-release`.
fn run_release(command: &str, arguments: &[String]) -> anyhow::Result<()> {
    let words: Vec<String> = [command.to_owned()].iter().chain(arguments).cloned().collect();
    let code = run_tool(RELEASE, &words)?;
    anyhow::ensure!(code == ExitCode::SUCCESS, "`{command}` failed");
    Ok(())
}

/// Commands that check the book with its links and programs, and each artefact of a release, made from the debug
/// build.
pub(crate) fn check_commands() -> anyhow::Result<[Command; 2]> {
    let mut book = built_command(RELEASE)?;
    book.args(["book", "--check"]);
    let mut release = built_command(RELEASE)?;
    release.args(["dist", "--check"]);
    Ok([book, release])
}
