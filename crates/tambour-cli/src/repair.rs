//! `tambour repair`: a reply rewritten so that it passes the strict check.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::builder::PossibleValuesParser;
use tambour::dialect;
use tambour::event::{Event, Joined};
use tambour::{End, Pipeline, Profile};

use crate::args::{self, OptionArgs, StructureArgs};
use crate::input::{self, Input};
use crate::{Outcome, output};

/// Rewrite a reply so that it passes the strict check; findings go to standard error
#[derive(clap::Args)]
#[command(after_help = "Example:\n  \
    printf '<thinking><phase id=\"1\">a</thinking><final>b' | tambour repair --from thinkingml\n\n\
    Exit code 1: the answer was replaced by the fallback.")]
pub(crate) struct Args {
    /// Dialect of the reply
    #[arg(long, value_name = "DIALECT", default_value = dialect::AUTO,
        value_parser = PossibleValuesParser::new(args::dialects()))]
    from: String,
    #[command(flatten)]
    options: OptionArgs,
    #[command(flatten)]
    structure: StructureArgs,
    /// File with the reply; standard input if absent or `-`
    file: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<Outcome> {
    let options = args.options.structured(Profile::Lenient, args.structure.structure.as_deref())?;
    let from = args.structure.dialect(Some(&args.from), "--from")?.unwrap_or(&args.from);
    // What a dialect holds beside its contract, such as a draft, is part of the reply.
    let mut pipeline = Pipeline::new(from, &options)?.with_extensions(true);
    let mut read = Joined::default();
    let mut input = Input::open(args.file.as_deref())?;
    while let Some(bytes) = input.next()? {
        pipeline.push(bytes, &mut read);
    }
    pipeline.finish(&End::stop(), &mut read);

    let name = input::name_of(args.file.as_deref());
    let findings: String = read.findings.iter().map(|finding| output::line(&name, finding) + "\n").collect();
    // Nobody may be reading the findings; the reply is still wanted.
    let _ = io::stderr().write_all(findings.as_bytes());
    let outcome = match read.events.last() {
        Some(Event::Completed(completed)) if completed.metadata.fallback_reason.is_none() => Outcome::Fine,
        Some(Event::Error(failure)) => {
            output::complain(&format!("{name}: {}", failure.message));
            return Ok(Outcome::Refused);
        }
        _ => Outcome::Refused,
    };
    let written = pipeline.written(&read.events);
    let written = written.with_context(|| format!("replies in {} cannot be written", pipeline.dialect()))?;
    let mut stdout = io::stdout();
    stdout.write_all(written.as_bytes())?;
    stdout.flush()?;
    Ok(outcome)
}
