//! `tambour completions`: shell completions.

use std::io::{self, Write};

use anyhow::Result;
use clap::CommandFactory;
use clap_complete::Shell;

use crate::{Cli, Outcome};

/// Print completions for a shell
#[derive(clap::Args)]
#[command(after_help = "Example:\n  tambour completions bash")]
pub(crate) struct Args {
    /// Shell
    shell: Shell,
}

pub(crate) fn run(args: &Args) -> Result<Outcome> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "tambour", &mut script);
    io::stdout().write_all(&script)?;
    Ok(Outcome::Fine)
}
