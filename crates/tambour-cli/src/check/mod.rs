//! `tambour check`: checks replies, transcripts, records and examples against a contract.

mod baseline;
mod excerpt;
mod files;
mod json;
mod junit;
mod pretty;
mod records;
mod sarif;
mod summary;
mod texts;

use std::collections::BTreeMap;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use clap::ValueEnum;
use clap::builder::PossibleValuesParser;
use indicatif::{ProgressBar, ProgressStyle};
use tambour::dialect;
use tambour::verdict::{Contract, Verdict};
use tambour::{Finding, Profile, Severity};

use crate::args::{self, OptionArgs, StructureArgs};
use crate::{Outcome, input, output};
use baseline::{Baseline, Comparison};
pub(crate) use junit::escape;
use summary::Summary;

/// Check replies, transcripts of streams, records or Markdown examples against a contract
#[derive(clap::Args)]
#[command(after_help = "Example:\n  printf 'It is 4.' | tambour check --contract plain -\n\n\
    Exit code 1: a finding of severity error, or no example (--examples). 2: no `--contract`, and replies of several kinds.")]
pub(crate) struct Args {
    /// Dialect of the replies, or `events` for transcripts of a stream; detected if absent, and the same for all texts
    #[arg(long, value_name = "CONTRACT", value_parser = PossibleValuesParser::new(args::contracts()))]
    contract: Option<String>,
    /// Severity of findings
    #[arg(long, value_enum, default_value_t = Strictness::Strict)]
    profile: Strictness,
    #[command(flatten)]
    options: OptionArgs,
    #[command(flatten)]
    structure: StructureArgs,
    /// Check the fenced examples inside Markdown files
    #[arg(long, conflicts_with_all = ["field", "contract_field"])]
    examples: bool,
    /// With --examples: do not fail without any example
    #[arg(long, requires = "examples")]
    allow_empty: bool,
    /// Field of .jsonl records with the reply: a string, or an array of strings that is joined
    #[arg(long, value_name = "NAME")]
    field: Option<String>,
    /// Field of .jsonl records with the contract; `--contract` where it is absent
    #[arg(long, value_name = "NAME", requires = "field")]
    contract_field: Option<String>,
    /// Format of the report
    #[arg(long, value_enum, default_value_t = Format::Pretty)]
    format: Format,
    /// Add counts of broken rules over all texts: on standard error, or as a last line of `--format json`
    #[arg(long)]
    summary: bool,
    /// Compare with this earlier report of `--format json`: list new and gone findings; only new errors fail
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Files and directories; `-` is standard input
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
#[cfg_attr(
    feature = "mcp",
    derive(serde::Deserialize, schemars::JsonSchema),
    serde(rename_all = "lowercase")
)]
pub(crate) enum Strictness {
    /// Every broken *must* rule is an error
    #[default]
    Strict,
    /// Repaired faults are warnings
    Lenient,
}

impl From<Strictness> for Profile {
    fn from(strictness: Strictness) -> Profile {
        match strictness {
            Strictness::Strict => Profile::Strict,
            Strictness::Lenient => Profile::Lenient,
        }
    }
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// For people: findings point into the text
    Pretty,
    /// One JSON object a line for each text
    Json,
    /// SARIF 2.1.0
    Sarif,
    /// JUnit XML
    Junit,
}

/// Checked text with its verdict.
struct Checked<'a> {
    /// Path of the file.
    path: &'a str,
    part: Part,
    /// Text as received; the places of findings refer to it.
    text: &'a [u8],
    verdict: Verdict,
    /// True if the contract was detected because none was given.
    found: bool,
    /// True if each finding is new; empty without a baseline.
    new: Vec<bool>,
}

/// Part of a file that a text covers.
enum Part {
    /// Whole file.
    Whole,
    /// Record on a line, with its `id`.
    Record { line: u64, id: Option<String> },
    /// Fenced block, with its number and line.
    Example { number: usize, line: u32 },
}

/// Writer of results in one format.
trait Report {
    /// Reports a checked text.
    fn checked(&mut self, checked: &Checked<'_>) -> io::Result<()>;

    /// Reports a file, or the record on a line of it, that could not be read.
    fn unreadable(&mut self, path: &str, record: Option<u64>, message: &str) -> io::Result<()>;

    /// Writes the end of the report.
    fn finish(self: Box<Self>, count: &Count, end: &End) -> io::Result<()>;
}

/// Optional parts at the end of a report.
#[derive(Default)]
struct End {
    summary: Option<Summary>,
    comparison: Option<Comparison>,
}

/// Totals of a run.
#[derive(Default)]
struct Count {
    texts: usize,
    failed: usize,
    errors: usize,
    warnings: usize,
    infos: usize,
    unreadable: usize,
    /// Number of texts of each detected kind, when no contract was given.
    kinds: BTreeMap<&'static str, usize>,
}

impl Count {
    /// Returns a complaint when texts of several kinds were detected.
    fn mixed(&self) -> Option<String> {
        if self.kinds.len() < 2 {
            return None;
        }
        let kinds: Vec<String> = self.kinds.iter().map(|(kind, count)| format!("{kind} ({count})")).collect();
        Some(format!(
            "several kinds of text: {}; say with --contract what they should be (`--contract auto`: each is what it is)",
            kinds.join(", ")
        ))
    }
}

pub(crate) fn run(args: &Args) -> Result<Outcome> {
    let baseline = args.baseline.as_deref().map(Baseline::read).transpose()?;
    let named = args.structure.dialect(args.contract.as_deref(), "--contract")?;
    let plan = texts::Plan {
        contract: Contract::named(named.unwrap_or(dialect::AUTO))?,
        named: named.is_some(),
        options: args.options.structured(args.profile.into(), args.structure.structure.as_deref())?,
        examples: args.examples,
        field: args.field.as_deref(),
        contract_field: args.contract_field.as_deref(),
    };
    let (files, missing) = files::find(&args.paths, plan.file_types());
    let mut run = Run::new(report(args.format), progress(&files, &plan));
    run.summary = args.summary.then(Summary::default);
    run.baseline = baseline;
    for (path, message) in &missing {
        run.unreadable(path, message)?;
    }
    for file in &files {
        plan.check(file, &mut run)?;
    }
    run.progress.finish_and_clear();
    let Run { report, count, summary, baseline, .. } = run;
    let end = End { summary, comparison: baseline.map(Baseline::comparison) };
    report.finish(&count, &end)?;
    if !matches!(args.format, Format::Json) {
        end.print();
    }
    let empty = args.examples && count.texts == 0 && count.unreadable == 0;
    if empty {
        let of = named.map(|name| format!(" of `{name}`")).unwrap_or_default();
        output::complain(&format!(
            "no example{of} found in {} {}",
            files.len(),
            if files.len() == 1 { "file" } else { "files" }
        ));
    }
    let mixed = count.mixed();
    if let Some(message) = &mixed {
        output::complain(message);
    } else if let Some(kind) = count.kinds.keys().next() {
        // Text of any kind passes as `plain`, so the detected kind is named.
        output::complain(&format!("checked as `{kind}`, since no --contract says what it should be"));
    }
    let errors = end.comparison.map_or(count.errors, |comparison| comparison.new_errors);
    Ok(match count {
        _ if mixed.is_some() => Outcome::Unclear,
        Count { unreadable: 1.., .. } => Outcome::Unclear,
        _ if errors > 0 => Outcome::Refused,
        _ if empty && !args.allow_empty => Outcome::Refused,
        _ => Outcome::Fine,
    })
}

/// Checks a text against a contract (`None`: the detected kind), or the examples of a Markdown text. Each result
/// is a line of `--format json` without a path.
#[cfg(feature = "mcp")]
pub(crate) fn text(
    text: &str,
    contract: Option<&str>,
    options: tambour::Options,
    examples: bool,
) -> Result<Vec<serde_json::Value>> {
    let plan = texts::Plan {
        contract: Contract::named(contract.unwrap_or(dialect::AUTO))?,
        named: contract.is_some(),
        options,
        examples,
        field: None,
        contract_field: None,
    };
    let verdicts = std::rc::Rc::default();
    let report = Box::new(json::Collected(std::rc::Rc::clone(&verdicts)));
    let mut run = Run::new(report, ProgressBar::hidden());
    plan.text(input::STDIN, text.as_bytes(), &mut run)?;
    Ok(verdicts.take())
}

fn report(format: Format) -> Box<dyn Report> {
    match format {
        Format::Pretty => Box::new(pretty::Pretty::new()),
        Format::Json => Box::new(json::Json),
        Format::Sarif => Box::new(sarif::Sarif::default()),
        Format::Junit => Box::new(junit::Junit::default()),
    }
}

/// Progress bar for long work; hidden unless standard error is a terminal.
fn progress(files: &[files::File], plan: &texts::Plan<'_>) -> ProgressBar {
    if (files.len() < 2 && plan.field.is_none()) || !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(files.iter().map(|file| file.size).sum());
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {bytes} of {total_bytes}  {msg}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// Check under way; receives each text.
struct Run {
    report: Box<dyn Report>,
    count: Count,
    summary: Option<Summary>,
    baseline: Option<Baseline>,
    progress: ProgressBar,
}

impl Run {
    fn new(report: Box<dyn Report>, progress: ProgressBar) -> Run {
        Run { report, count: Count::default(), summary: None, baseline: None, progress }
    }

    fn checked(&mut self, mut checked: Checked<'_>) -> io::Result<()> {
        if let Some(baseline) = &mut self.baseline {
            checked.new = baseline.compare(&checked);
        }
        if let Some(summary) = &mut self.summary {
            summary.add(&checked.verdict);
        }
        let count = &mut self.count;
        count.texts += 1;
        count.failed += usize::from(!checked.verdict.passed());
        if checked.found {
            *count.kinds.entry(checked.verdict.contract).or_default() += 1;
        }
        for finding in &checked.verdict.findings {
            match finding.severity {
                Severity::Error => count.errors += 1,
                Severity::Warning => count.warnings += 1,
                Severity::Info => count.infos += 1,
            }
        }
        let report = &mut self.report;
        self.progress.suspend(|| report.checked(&checked))
    }

    fn unreadable(&mut self, path: &str, message: &str) -> io::Result<()> {
        self.count.unreadable += 1;
        let report = &mut self.report;
        self.progress.suspend(|| {
            output::complain(&format!("{path}: {message}"));
            report.unreadable(path, None, message)
        })
    }

    /// Reports a record that cannot be checked.
    fn unreadable_record(&mut self, path: &str, line: u64, message: &str) -> io::Result<()> {
        self.count.unreadable += 1;
        self.report.unreadable(path, Some(line), message)
    }

    /// Prints a message about a file on standard error.
    fn tell(&self, path: &str, message: &str) {
        self.progress.suspend(|| output::complain(&format!("{path}: {message}")));
    }
}

impl End {
    /// Prints it for people.
    fn print(&self) {
        let summary = self.summary.as_ref().map(Summary::lines).unwrap_or_default();
        let comparison = self.comparison.as_ref().map(Comparison::lines).unwrap_or_default();
        output::note(&(summary + &comparison));
    }
}

impl Checked<'_> {
    /// Findings that decide the outcome: the new ones with a baseline, else all.
    fn deciding(&self) -> impl Iterator<Item = &Finding> {
        let is_new = |index: usize| self.new.get(index).copied().unwrap_or(true);
        let findings = self.verdict.findings.iter().enumerate();
        findings.filter(move |(index, _)| is_new(*index)).map(|(_, finding)| finding)
    }

    /// Baseline state of a finding, if there is a baseline.
    fn state(&self, index: usize) -> Option<&'static str> {
        self.new.get(index).map(|new| if *new { "new" } else { "unchanged" })
    }

    /// Name of the text in messages.
    fn name(&self) -> String {
        let path = input::name_of(Some(Path::new(self.path)));
        match &self.part {
            Part::Whole => path,
            part => format!("{path} ({part})"),
        }
    }
}

impl std::fmt::Display for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Part::Whole => f.write_str("whole file"),
            Part::Record { line, id: None } => write!(f, "record {line}"),
            Part::Record { line, id: Some(id) } => write!(f, "record {line}, {id}"),
            Part::Example { number, line } => write!(f, "example {number}, line {line}"),
        }
    }
}
