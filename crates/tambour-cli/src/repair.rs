//! `tambour repair`: rewrites a reply so that it passes the strict check.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::builder::PossibleValuesParser;
use tambour::dialect;
use tambour::event::{Event, Joined};
use tambour::{End, Finding, Options, Pipeline, Profile};

use crate::args::{self, OptionArgs, StructureArgs};
use crate::decode::Finish;
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
    /// Finish reason of the reply
    #[arg(long, value_enum, default_value_t = Finish::Stop)]
    finish: Finish,
    /// File with the reply; standard input if absent or `-`
    file: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<Outcome> {
    let options = args.options.structured(Profile::Lenient, args.structure.structure.as_deref())?;
    let from = args.structure.dialect(Some(&args.from), "--from")?.unwrap_or(&args.from);
    let mut input = Input::open(args.file.as_deref())?;
    let mut repair = Repair::new(from, &options)?;
    while let Some(bytes) = input.next()? {
        repair.push(bytes);
    }
    let Repaired { written, findings, failure, outcome } = repair.finish(&args.finish.end())?;

    let name = input::name_of(args.file.as_deref());
    let findings: String = findings.iter().map(|finding| output::line(&name, finding) + "\n").collect();
    // Standard error may be closed; the reply is still printed.
    let _ = io::stderr().write_all(findings.as_bytes());
    if let Some(message) = failure {
        output::complain(&format!("{name}: {message}"));
    }
    let mut stdout = io::stdout();
    stdout.write_all(written.as_bytes())?;
    stdout.flush()?;
    Ok(outcome)
}

/// Repair of one reply, under way.
pub(crate) struct Repair {
    pipeline: Pipeline,
    read: Joined,
}

/// Result of a repair.
pub(crate) struct Repaired {
    /// Repaired reply; empty after a failure.
    pub(crate) written: String,
    pub(crate) findings: Vec<Finding>,
    /// Reason for a missing reply.
    pub(crate) failure: Option<String>,
    /// `Refused` when the answer is missing or was replaced by the fallback.
    pub(crate) outcome: Outcome,
}

impl Repair {
    pub(crate) fn new(from: &str, options: &Options) -> Result<Repair> {
        // Text that a dialect keeps outside its contract, such as a draft, is part of the reply.
        let pipeline = Pipeline::new(from, options)?.with_extensions(true);
        Ok(Repair { pipeline, read: Joined::default() })
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.pipeline.push(bytes, &mut self.read);
    }

    /// Ends the reply. Unfinished parts of a truncated one do not act in the written reply.
    pub(crate) fn finish(mut self, end: &End) -> Result<Repaired> {
        let Repair { pipeline, read } = &mut self;
        pipeline.finish(end, read);
        let (outcome, failure) = match read.events.last() {
            Some(Event::Completed(completed)) if completed.metadata.fallback_reason.is_none() => {
                (Outcome::Fine, None)
            }
            Some(Event::Error(failure)) => (Outcome::Refused, Some(failure.message.to_string())),
            _ => (Outcome::Refused, None),
        };
        let written = if failure.is_none() {
            let written = pipeline.written(&read.events);
            written.with_context(|| format!("replies in {} cannot be written", pipeline.dialect()))?
        } else {
            String::new()
        };
        Ok(Repaired { written, findings: std::mem::take(&mut read.findings), failure, outcome })
    }
}
