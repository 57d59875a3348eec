//! `tambour completions`: shell completions.

use std::io::{self, Write};

use anyhow::Result;
use clap::CommandFactory;
use clap_complete::Shell;

use crate::{CommandLine, CommandOutcome};

/// Print completions for a shell
#[derive(clap::Args)]
#[command(after_help = "Example:\n  tambour completions bash")]
pub(crate) struct CompletionsCommand {
    /// Shell
    shell: Shell,
}

pub(crate) fn run(args: &CompletionsCommand) -> Result<CommandOutcome> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut CommandLine::command(), "tambour", &mut script);
    io::stdout().write_all(&script)?;
    Ok(CommandOutcome::Success)
}
