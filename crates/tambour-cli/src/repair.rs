//! `tambour repair`: rewrites a reply so that it passes the strict check.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::builder::PossibleValuesParser;
use tambour::dialect;
use tambour::event::{Event, JoinedEvents};
use tambour::{Finding, InputEnd, Options, Pipeline, Profile};

use crate::args::{self, OptionArgs, StructureArgs};
use crate::decode::Finish;
use crate::input::{self, InputReader};
use crate::{CommandOutcome, output};

/// Rewrite a reply so that it passes the strict check; findings go to standard error
#[derive(clap::Args)]
#[command(after_help = "Example:\n  \
    printf '<thinking><phase id=\"1\">a</thinking><final>b' | tambour repair --from thinkingml\n\n\
    Exit code 1: the fallback text replaced the answer, or the reply cannot be repaired, and nothing is printed.")]
pub(crate) struct RepairCommand {
    /// Dialect of the reply
    #[arg(long, value_name = "DIALECT", default_value = dialect::AUTO,
        value_parser = PossibleValuesParser::new(args::dialect_values()))]
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

pub(crate) fn run(args: &RepairCommand) -> Result<CommandOutcome> {
    let options =
        args.options.options_with_structure(Profile::Lenient, args.structure.structure.as_deref())?;
    let from = args.structure.dialect(Some(&args.from), "--from")?.unwrap_or(&args.from);
    let mut input = InputReader::open(args.file.as_deref())?;
    let mut repair = ReplyRepair::new(from, &options)?;
    while let Some(bytes) = input.next_bytes()? {
        repair.push(bytes);
    }
    let RepairedReply { reply, findings, failure, outcome } = repair.finish(&args.finish.to_input_end())?;

    let name = input::display_name(args.file.as_deref());
    let findings: String =
        findings.iter().map(|finding| output::finding_line(&name, finding) + "\n").collect();
    // Standard error may be closed; the reply is still printed.
    let _ = io::stderr().write_all(findings.as_bytes());
    if let Some(message) = failure {
        output::print_error(&format!("{name}: {message}"));
    }
    let mut stdout = io::stdout();
    stdout.write_all(reply.as_bytes())?;
    stdout.flush()?;
    Ok(outcome)
}

/// Repair of one reply, in progress.
pub(crate) struct ReplyRepair {
    pipeline: Pipeline,
    joined_events: JoinedEvents,
}

/// Result of a repair.
pub(crate) struct RepairedReply {
    /// Repaired reply; empty after a failure.
    pub(crate) reply: String,
    pub(crate) findings: Vec<Finding>,
    /// Reason for a missing reply.
    pub(crate) failure: Option<String>,
    /// `Failed` when the answer is missing or was replaced by the fallback.
    pub(crate) outcome: CommandOutcome,
}

impl ReplyRepair {
    pub(crate) fn new(from: &str, options: &Options) -> Result<ReplyRepair> {
        // Extension events carry text outside the contract, such as a draft, which is part of the reply too.
        let pipeline = Pipeline::new(from, options)?.with_extensions(true);
        Ok(ReplyRepair { pipeline, joined_events: JoinedEvents::default() })
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.pipeline.push(bytes, &mut self.joined_events);
    }

    /// Ends the reply and writes it again, so that it passes the strict check. Unfinished parts of a
    /// truncated reply have no effect in the new one.
    ///
    /// # Errors
    /// Replies of the dialect cannot be written.
    pub(crate) fn finish(mut self, end: &InputEnd) -> Result<RepairedReply> {
        let ReplyRepair { pipeline, joined_events } = &mut self;
        pipeline.finish(end, joined_events);
        let (outcome, failure) = match joined_events.events.last() {
            Some(Event::Completed(completed)) if completed.metadata.fallback_reason.is_none() => {
                (CommandOutcome::Success, None)
            }
            Some(Event::Error(failure)) => (CommandOutcome::Failed, Some(failure.message.to_string())),
            _ => (CommandOutcome::Failed, None),
        };
        let reply = if failure.is_none() {
            let written = pipeline.rewrite(&joined_events.events);
            written.with_context(|| format!("replies in {} cannot be written", pipeline.dialect()))?
        } else {
            String::new()
        };
        Ok(RepairedReply { reply, findings: std::mem::take(&mut joined_events.findings), failure, outcome })
    }
}
