//! `tambour man`: manual pages.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Command, CommandFactory};
use clap_mangen::Man;

use crate::{CommandLine, CommandOutcome};

/// Print the manual page of a command, or write all of them to a folder
#[derive(clap::Args)]
#[command(after_help = "Example:\n  tambour man contract show")]
pub(crate) struct ManCommand {
    /// Command, such as `decode` or `contract show`; the whole program if absent
    #[arg(value_name = "COMMAND")]
    words: Vec<String>,
    /// Folder for the pages of all commands
    #[arg(long, value_name = "DIR", conflicts_with = "words")]
    folder: Option<PathBuf>,
}

pub(crate) fn run(args: &ManCommand) -> Result<CommandOutcome> {
    let mut program = CommandLine::command();
    // The text is that of `--version` alone; every page has the number.
    program = program.long_version(None::<&str>).disable_help_subcommand(true);
    if let Some(folder) = &args.folder {
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        clap_mangen::generate_to(program, folder).with_context(|| folder.display().to_string())?;
        return Ok(CommandOutcome::Success);
    }
    program.build();
    let command = find_command(&program, &args.words)?;
    let mut page = Vec::new();
    Man::new(command.clone()).render(&mut page)?;
    io::stdout().write_all(&page)?;
    Ok(CommandOutcome::Success)
}

/// Finds the command that the words name, with its whole name.
fn find_command<'a>(program: &'a Command, words: &[String]) -> Result<&'a Command> {
    words.iter().try_fold(program, |command, word| {
        command.find_subcommand(word).with_context(|| format!("there is no command `{}`", words.join(" ")))
    })
}
