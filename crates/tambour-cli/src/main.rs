//! The `tambour` command: arguments and printing. Reading, checking and writing replies belongs to the library.

mod args;
mod check;
mod completions;
mod contract;
mod database;
mod decode;
mod eval;
mod health;
mod import;
mod input;
mod json;
mod macros;
mod man;
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

/// Text of `--version`: what the program was built from.
const BUILD_INFORMATION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    "\ncommit: ",
    env!("TAMBOUR_BUILD_COMMIT"),
    "\ndate: ",
    env!("TAMBOUR_BUILD_DATE"),
    "\ntarget: ",
    env!("TAMBOUR_BUILD_TARGET"),
    "\nfeatures: ",
    env!("TAMBOUR_BUILD_FEATURES"),
);

/// Structured replies of language models as one typed, repaired, contract-checked event stream.
#[derive(Parser)]
#[command(name = "tambour", version, long_version = BUILD_INFORMATION, propagate_version = true, arg_required_else_help = true)]
#[command(after_help = "Example:\n  printf 'Hello' | tambour decode --from plain\n\n\
    Exit codes: 0 success; 1 findings of severity error, refused content or a failed run; \
    2 wrong usage or a file that cannot be opened.")]
struct CommandLine {
    #[command(subcommand)]
    command: TopCommand,
}

#[derive(Subcommand)]
enum TopCommand {
    Decode(decode::DecodeCommand),
    Check(check::CheckCommand),
    Repair(repair::RepairCommand),
    Rules(rules::RulesCommand),
    Json(json::JsonCommand),
    #[command(subcommand)]
    Prompt(prompt::PromptCommand),
    Import(import::ImportCommand),
    Sanitize(sanitize::SanitizeCommand),
    #[command(subcommand)]
    State(state::StateCommandLine),
    #[command(subcommand)]
    Script(script::ScriptCommand),
    Run(run::RunCommand),
    Eval(eval::EvalCommand),
    #[command(subcommand)]
    Macros(macros::MacrosCommand),
    #[command(subcommand)]
    Contract(contract::ContractCommand),
    Serve(serve::ServeCommand),
    Health(health::HealthCommand),
    Migrate(database::MigrateCommand),
    Move(database::MoveCommand),
    #[cfg(feature = "mcp")]
    Mcp(mcp::McpCommand),
    Completions(completions::CompletionsCommand),
    Man(man::ManCommand),
}

/// Outcome of a command, as an exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CommandOutcome {
    /// Exit code 0.
    Success,
    /// Exit code 1: findings of severity error, refused content or a failed run.
    Failed,
    /// Exit code 2: a file could not be opened or the request was ambiguous; everything else was done.
    UsageError,
}

impl From<CommandOutcome> for ExitCode {
    fn from(outcome: CommandOutcome) -> ExitCode {
        ExitCode::from(match outcome {
            CommandOutcome::Success => 0,
            CommandOutcome::Failed => 1,
            CommandOutcome::UsageError => 2,
        })
    }
}

fn main() -> ExitCode {
    let result = match CommandLine::parse().command {
        TopCommand::Decode(args) => decode::run(&args),
        TopCommand::Check(args) => check::run(&args),
        TopCommand::Repair(args) => repair::run(&args),
        TopCommand::Json(args) => json::run(&args),
        TopCommand::Prompt(command) => prompt::run(&command),
        TopCommand::Import(args) => import::run(&args),
        TopCommand::Sanitize(args) => sanitize::run(&args),
        TopCommand::State(command) => state::run(&command),
        TopCommand::Script(command) => script::run(&command),
        TopCommand::Run(args) => run::run(&args),
        TopCommand::Eval(args) => eval::run(&args),
        TopCommand::Macros(command) => macros::run(&command),
        TopCommand::Rules(args) => rules::run(&args),
        TopCommand::Contract(command) => contract::run(&command),
        TopCommand::Serve(args) => serve::run(&args),
        TopCommand::Health(args) => health::run(&args),
        TopCommand::Migrate(args) => database::migrate(&args),
        TopCommand::Move(args) => database::move_all(&args),
        #[cfg(feature = "mcp")]
        TopCommand::Mcp(args) => mcp::run(&args),
        TopCommand::Completions(args) => completions::run(&args),
        TopCommand::Man(args) => man::run(&args),
    };
    match result {
        Ok(outcome) => outcome.into(),
        // A reader that closes the output early, as `head` does, is not an error.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::print_error(&format!("{error:#}"));
            ExitCode::from(2)
        }
    }
}

/// Returns `true` if the reader of the output has closed it.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}
