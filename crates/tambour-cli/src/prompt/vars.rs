//! `tambour prompt vars`: lists the variables of templates, scripts and Skeins.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Context, Result};
use tambour_prompt::template::{VariableSource, VariableUse, check_variables};

use crate::input;
use crate::{CommandOutcome, output};

/// List used, undefined and unused variables of templates, scripts and Skeins, one a line with its place
#[derive(clap::Args)]
#[command(after_help = "Example:\n  echo 'Hi {name}, it is {%time%}' | tambour prompt vars -\n\n\
    What a script declares is defined for all files. A YAML file with the key `sessions` is a script, one with \
    `blocks` a Skein; all other files are templates.")]
pub(crate) struct VarsCommand {
    /// Files; `-` is a template on standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

pub(crate) fn run(args: &VarsCommand) -> Result<CommandOutcome> {
    let mut outcome = CommandOutcome::Success;
    let mut sources = Vec::new();
    for path in &args.files {
        let name = input::display_name(Some(path));
        let text = String::from_utf8(input::read_without_bom(Some(path))?)
            .with_context(|| format!("{name} is not UTF-8"))?;
        match VariableSource::read(&name, &text) {
            Ok(source) => sources.push(source),
            Err(error) => {
                output::print_error(&error.to_string());
                outcome = CommandOutcome::Failed;
            }
        }
    }
    let check_result = match check_variables(&sources) {
        Ok(check_result) => check_result,
        Err(error) => {
            output::print_error(&error.to_string());
            return Ok(CommandOutcome::Failed);
        }
    };
    let mut stdout = io::stdout().lock();
    for (word, list) in [
        ("used", &check_result.used),
        ("undefined", &check_result.undefined),
        ("unused", &check_result.unused),
    ] {
        for VariableUse { file, line, column, variable, .. } in list {
            let line = format!("{file}:{line}:{column}: {word} {variable}");
            let line: String = line.chars().map(output::visible_char).collect();
            writeln!(stdout, "{line}")?;
        }
    }
    stdout.flush()?;
    Ok(outcome)
}
