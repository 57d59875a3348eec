//! `tambour decode`: streams a raw reply as events.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use clap::builder::PossibleValuesParser;
use tambour::dialect;
use tambour::encode::jsonl;
use tambour::event::{Event, Failure, FinishReason, Sink};
use tambour::exit::{ExitCriteria, ExitRound};
use tambour::{InputEnd, Pipeline, Profile};

use crate::args::{self, OptionArgs, StructureArgs};
use crate::input::{InputReader, PieceSplitter};
use crate::{CommandOutcome, output};

/// Turn a raw reply into events, one JSON object a line, while it arrives
#[derive(clap::Args)]
#[command(after_help = "Example:\n  printf '<think>2 + 2</think>It is 4.' | tambour decode --from plain\n  \
    printf '{\"response\":{\"咨询师\":\"Hello.\"},\"should_exit\":true}' | tambour decode --from ai_say --round 1\n\n\
    The last line is `completed` or `error`. Exit code 1: the fallback text replaced the answer, \
    or the last line is `error`.")]
pub(crate) struct DecodeCommand {
    /// Dialect of the reply
    #[arg(long, value_name = "DIALECT", default_value = dialect::AUTO,
        value_parser = PossibleValuesParser::new(args::dialect_values()))]
    from: String,
    /// Feed N bytes at a time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "chunks")]
    chunk: Option<u32>,
    /// Feed the strings of a JSON array one by one
    #[arg(long, value_name = "FILE", conflicts_with = "file")]
    chunks: Option<PathBuf>,
    #[command(flatten)]
    options: OptionArgs,
    #[command(flatten)]
    structure: StructureArgs,
    /// Print extension events too
    #[arg(long)]
    extensions: bool,
    /// Print findings as `finding` events too
    #[arg(long)]
    findings: bool,
    /// Finish reason of the reply
    #[arg(long, value_enum, default_value_t = Finish::Stop)]
    finish: Finish,
    #[command(flatten)]
    round: RoundArgs,
    /// File with the reply; standard input if absent or `-`
    file: Option<PathBuf>,
}

/// Dialogue round of the reply.
#[derive(clap::Args)]
struct RoundArgs {
    /// Number of the round (`ai_say`); adds the decision whether the action ends after it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    round: Option<u32>,
    /// Last round, 20 at most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=20), requires = "round",
        default_value_t = 5)]
    max_rounds: u32,
    /// Criteria to end before the last round, such as `{"understanding_threshold": 80}`
    #[arg(long, value_name = "JSON", requires = "round")]
    exit_criteria: Option<String>,
}

impl RoundArgs {
    /// Builds the round; `None` without `--round`.
    fn round(&self, dialect: &str) -> Result<Option<ExitRound>> {
        let Some(round) = self.round else { return Ok(None) };
        if dialect != "ai_say" {
            bail!("`--round` is for answers of a dialogue: give `--from ai_say` with it, not `{dialect}`");
        }
        let criteria = self.exit_criteria.as_deref().map(ExitCriteria::from_json).transpose()?;
        Ok(Some(ExitRound { round, max_rounds: self.max_rounds, criteria: criteria.unwrap_or_default() }))
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
#[cfg_attr(
    feature = "mcp",
    derive(serde::Deserialize, schemars::JsonSchema),
    serde(rename_all = "lowercase")
)]
pub(crate) enum Finish {
    /// End of the reply
    #[default]
    Stop,
    /// Token limit
    Length,
}

impl Finish {
    /// Returns the end of the reply that a model service would report.
    pub(crate) fn to_input_end(self) -> InputEnd {
        match self {
            Finish::Stop => InputEnd::stop(),
            Finish::Length => InputEnd::Finished(FinishReason::Length),
        }
    }
}

pub(crate) fn run(args: &DecodeCommand) -> Result<CommandOutcome> {
    let mut options =
        args.options.options_with_structure(Profile::Lenient, args.structure.structure.as_deref())?;
    let from = args.structure.dialect(Some(&args.from), "--from")?.unwrap_or(&args.from);
    options.round = args.round.round(from)?;
    let pipeline = Pipeline::new(from, &options)?;
    let pipeline = pipeline.with_extensions(args.extensions).with_findings(args.findings);
    let mut decoder = DecodeRun { pipeline, lines: EventLines::default(), stdout: io::stdout().lock() };
    let mut end = args.finish.to_input_end();
    if let Some(path) = &args.chunks {
        for chunk in read_chunks(path)? {
            decoder.push(chunk.as_bytes())?;
        }
    } else if let Some(failure) = decoder.read_input(args.file.as_deref(), args.chunk)? {
        end = InputEnd::Failed(failure);
    }
    decoder.finish(&end)
}

/// Reads a JSON array of strings.
fn read_chunks(path: &Path) -> Result<Vec<String>> {
    let bytes = crate::input::read_without_bom(Some(path))?;
    serde_json::from_slice(&bytes)
        .with_context(|| format!("{} is not a JSON array of strings", crate::input::display_name(Some(path))))
}

/// Decoding in progress: a pipeline, and the output of its events.
struct DecodeRun<W> {
    pipeline: Pipeline,
    lines: EventLines,
    stdout: W,
}

impl<W: Write> DecodeRun<W> {
    /// Reads a file (`None`: standard input) to its end and decodes it, in pieces of `piece_size` bytes if
    /// given. A failure after the first bytes is returned, to end the stream with `error`.
    fn read_input(&mut self, file: Option<&Path>, piece_size: Option<u32>) -> Result<Option<Failure>> {
        let mut input = InputReader::open(file)?;
        let mut splitter = piece_size.map(|size| PieceSplitter::new(size as usize));
        let mut has_begun = false;
        loop {
            let bytes = match input.next_bytes() {
                Ok(bytes) => bytes,
                Err(error) if has_begun => {
                    let message = format!("{error:#}");
                    output::print_error(&message);
                    return Ok(Some(Failure::new("input_failed", message, false)));
                }
                Err(error) => return Err(error),
            };
            has_begun = true;
            let DecodeRun { pipeline, lines, .. } = self;
            match (&mut splitter, bytes) {
                (None, Some(bytes)) => pipeline.push(bytes, lines),
                (Some(splitter), Some(bytes)) => splitter.push(bytes, |piece| pipeline.push(piece, lines)),
                (splitter, None) => {
                    let remainder = splitter.take().map(PieceSplitter::into_remainder).unwrap_or_default();
                    pipeline.push(&remainder, lines);
                    return Ok(None);
                }
            }
            self.flush()?;
        }
    }

    fn push(&mut self, chunk: &[u8]) -> Result<()> {
        self.pipeline.push(chunk, &mut self.lines);
        self.flush()
    }

    fn finish(mut self, end: &InputEnd) -> Result<CommandOutcome> {
        self.pipeline.finish(end, &mut self.lines);
        self.flush()?;
        Ok(if self.lines.lacks_answer { CommandOutcome::Failed } else { CommandOutcome::Success })
    }

    /// Prints the buffered events immediately.
    fn flush(&mut self) -> Result<()> {
        if !self.lines.buffer.is_empty() {
            self.stdout.write_all(&self.lines.buffer)?;
            self.stdout.flush()?;
            self.lines.buffer.clear();
        }
        Ok(())
    }
}

/// Events as lines of JSON, collected until they are printed.
#[derive(Default)]
pub(crate) struct EventLines {
    pub(crate) buffer: Vec<u8>,
    /// True if the stream ended with `error`, or the answer was replaced by the fallback.
    pub(crate) lacks_answer: bool,
}

impl Sink for EventLines {
    fn event(&mut self, event: Event<'_>) {
        jsonl::write_line(&event, &mut self.buffer);
        self.lacks_answer |= match &event {
            Event::Error(_) => true,
            Event::Completed(completed) => completed.metadata.fallback_reason.is_some(),
            _ => false,
        };
    }
}
