//! `tambour prompt vars`: lists the variables of templates, scripts and Skeins.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Context, Result};
use tambour_prompt::template::{Listed, Source, check};

use crate::input;
use crate::{Outcome, output};

/// List used, undefined and unused variables of templates, scripts and Skeins, one a line with its place
#[derive(clap::Args)]
#[command(after_help = "Example:\n  echo 'Hi {name}, it is {%time%}' | tambour prompt vars -\n\n\
    What a script declares is defined for all files. YAML files are scripts (`sessions`) or Skeins (`blocks`), all others \
    templates.")]
pub(crate) struct Args {
    /// Files; `-` is a template on standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<Outcome> {
    let mut outcome = Outcome::Fine;
    let mut sources = Vec::new();
    for path in &args.files {
        let name = input::name_of(Some(path));
        let text =
            String::from_utf8(input::read(Some(path))?).with_context(|| format!("{name} is not UTF-8"))?;
        match Source::read(&name, &text) {
            Ok(source) => sources.push(source),
            Err(error) => {
                output::complain(&error.to_string());
                outcome = Outcome::Refused;
            }
        }
    }
    let checked = match check(&sources) {
        Ok(checked) => checked,
        Err(error) => {
            output::complain(&error.to_string());
            return Ok(Outcome::Refused);
        }
    };
    let mut stdout = io::stdout().lock();
    for (word, list) in
        [("used", &checked.used), ("undefined", &checked.undefined), ("unused", &checked.unused)]
    {
        for Listed { file, line, column, variable, .. } in list {
            let line = format!("{file}:{line}:{column}: {word} {variable}");
            let line: String = line.chars().map(output::visible).collect();
            writeln!(stdout, "{line}")?;
        }
    }
    stdout.flush()?;
    Ok(outcome)
}
