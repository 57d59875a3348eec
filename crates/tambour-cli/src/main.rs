//! The `tambour` command: arguments and printing. Reading, checking and writing replies belongs to the library.

mod args;
mod check;
mod completions;
mod contract;
mod decode;
mod import;
mod input;
mod json;
mod macros;
#[cfg(feature = "mcp")]
mod mcp;
mod output;
mod prompt;
mod repair;
mod rules;
mod run;
mod sanitize;
mod script;
mod serve;
mod state;

use std::io;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Structured replies of language models as one typed, repaired, contract-checked event stream.
#[derive(Parser)]
#[command(name = "tambour", version, propagate_version = true, arg_required_else_help = true)]
#[command(after_help = "Example:\n  printf 'Hello' | tambour decode --from plain\n\n\
    Exit codes: 0 fine; 1 findings of severity error, refused content or a failed run; \
    2 wrong use or a file that cannot be opened.")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Decode(decode::Args),
    Check(check::Args),
    Repair(repair::Args),
    Rules(rules::Args),
    Json(json::Args),
    #[command(subcommand)]
    Prompt(prompt::Command),
    Import(import::Args),
    Sanitize(sanitize::Args),
    #[command(subcommand)]
    State(state::Command),
    #[command(subcommand)]
    Script(script::Command),
    Run(run::Args),
    #[command(subcommand)]
    Macros(macros::Command),
    #[command(subcommand)]
    Contract(contract::Command),
    Serve(serve::Args),
    #[cfg(feature = "mcp")]
    Mcp(mcp::Args),
    Completions(completions::Args),
}

/// Outcome of a command, as an exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// Exit code 0.
    Fine,
    /// Exit code 1: findings of severity error, refused content or a failed run.
    Refused,
    /// Exit code 2: a file could not be opened or the request was ambiguous; the rest was done.
    Unclear,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> ExitCode {
        ExitCode::from(match outcome {
            Outcome::Fine => 0,
            Outcome::Refused => 1,
            Outcome::Unclear => 2,
        })
    }
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Decode(args) => decode::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Repair(args) => repair::run(&args),
        Command::Json(args) => json::run(&args),
        Command::Prompt(command) => prompt::run(&command),
        Command::Import(args) => import::run(&args),
        Command::Sanitize(args) => sanitize::run(&args),
        Command::State(command) => state::run(&command),
        Command::Script(command) => script::run(&command),
        Command::Run(args) => run::run(&args),
        Command::Macros(command) => macros::run(&command),
        Command::Rules(args) => rules::run(&args),
        Command::Contract(command) => contract::run(&command),
        Command::Serve(args) => serve::run(&args),
        #[cfg(feature = "mcp")]
        Command::Mcp(args) => mcp::run(&args),
        Command::Completions(args) => completions::run(&args),
    };
    match done {
        Ok(outcome) => outcome.into(),
        // The reader of the output closed it, which is no failure.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::complain(&format!("{error:#}"));
            ExitCode::from(2)
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}
