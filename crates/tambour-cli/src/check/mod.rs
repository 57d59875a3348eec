//! `tambour check`: checks replies, transcripts, records and examples against a contract.

mod baseline;
mod compressed;
mod excerpt;
mod files;
mod jobs;
mod json;
mod junit;
mod lines;
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
use crate::{CommandOutcome, input, output};
use baseline::{Baseline, BaselineComparison};
pub(crate) use junit::escape_xml;
pub(crate) use summary::RuleSummary;

/// Check replies, transcripts of streams, records or Markdown examples against a contract
#[derive(clap::Args)]
#[command(after_help = "Example:\n  printf 'It is 4.' | tambour check --contract plain -\n\n\
    Exit code 1: a finding of severity error, or no example (--examples). 2: no `--contract`, and replies of several kinds.")]
pub(crate) struct CheckCommand {
    /// Dialect of the replies, or `events` for transcripts of a stream; detected for each text if absent; all texts must then be of one kind
    #[arg(long, value_name = "CONTRACT", value_parser = PossibleValuesParser::new(args::contract_values()))]
    contract: Option<String>,
    /// Severity that findings get
    #[arg(long, value_enum, default_value_t = Strictness::Strict)]
    profile: Strictness,
    #[command(flatten)]
    options: OptionArgs,
    #[command(flatten)]
    structure: StructureArgs,
    /// Check the fenced examples inside Markdown files
    #[arg(long, conflicts_with_all = ["field", "contract_field"])]
    examples: bool,
    /// With --examples: succeed even if there are no examples
    #[arg(long, requires = "examples")]
    allow_empty: bool,
    /// Field that holds the reply in .jsonl records, which may be compressed (.gz, .zst): a string, or an array of strings that is joined
    #[arg(long, value_name = "NAME")]
    field: Option<String>,
    /// Field that holds the contract in .jsonl records; `--contract` where it is absent
    #[arg(long, value_name = "NAME", requires = "field")]
    contract_field: Option<String>,
    /// Number of records that are checked at the same time; by default the number of cores
    #[arg(long, value_name = "N", requires = "field", value_parser = clap::value_parser!(u16).range(1..=256))]
    jobs: Option<u16>,
    /// Format of the report
    #[arg(long, value_enum, default_value_t = ReportFormat::Pretty)]
    format: ReportFormat,
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
enum ReportFormat {
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
struct CheckedText<'a> {
    /// Path of the file.
    path: &'a str,
    part: TextPart,
    /// Text as received; the places of findings refer to it.
    text: &'a [u8],
    verdict: Verdict,
    /// True if the contract was detected because none was given.
    is_detected: bool,
    /// Flag for each finding, true if the baseline lacks it; empty without a baseline.
    new_flags: Vec<bool>,
}

/// Part of a file that a text covers.
enum TextPart {
    /// Whole file.
    Document,
    /// Record on a line of the file, from 1, with its field `id`.
    Record { line: u64, id: Option<String> },
    /// Fenced block: its number, from 1, and the line of the file on which it begins.
    Example { number: usize, line: u32 },
}

/// Writer of a report in one format.
trait ReportWriter {
    /// Reports a checked text.
    fn write_text(&mut self, checked_text: &CheckedText<'_>) -> io::Result<()>;

    /// Reports a file that could not be read, or the record on `line` of the file.
    fn write_unreadable(&mut self, path: &str, line: Option<u64>, message: &str) -> io::Result<()>;

    /// Writes the end of the report.
    fn write_end(self: Box<Self>, totals: &CheckTotals, end: &ReportEnding) -> io::Result<()>;
}

/// Optional parts at the end of a report.
#[derive(Default)]
struct ReportEnding {
    summary: Option<RuleSummary>,
    comparison: Option<BaselineComparison>,
}

/// Totals of a check.
#[derive(Default)]
struct CheckTotals {
    /// Number of checked texts.
    texts: usize,
    /// Number of texts with an error.
    failed: usize,
    /// Number of findings of severity error.
    errors: usize,
    /// Number of findings of severity warning.
    warnings: usize,
    /// Number of findings of severity info.
    infos: usize,
    /// Number of files and records that could not be checked.
    unreadable: usize,
    /// Number of texts by detected kind, which is the name of a dialect; empty if a contract was given.
    kinds: BTreeMap<&'static str, usize>,
}

impl CheckTotals {
    /// Returns an error message if texts of several kinds were detected.
    fn mixed_kinds_message(&self) -> Option<String> {
        if self.kinds.len() < 2 {
            return None;
        }
        let kinds: Vec<String> = self.kinds.iter().map(|(kind, count)| format!("{kind} ({count})")).collect();
        Some(format!(
            "several kinds of text: {}; say with --contract what they should be (`--contract auto`: each as detected)",
            kinds.join(", ")
        ))
    }
}

pub(crate) fn run(args: &CheckCommand) -> Result<CommandOutcome> {
    let baseline = args.baseline.as_deref().map(Baseline::read).transpose()?;
    let dialect_name = args.structure.dialect(args.contract.as_deref(), "--contract")?;
    let plan = texts::CheckPlan {
        contract: Contract::from_name(dialect_name.unwrap_or(dialect::AUTO))?,
        is_named: dialect_name.is_some(),
        options: args
            .options
            .options_with_structure(args.profile.into(), args.structure.structure.as_deref())?,
        examples: args.examples,
        field: args.field.as_deref(),
        contract_field: args.contract_field.as_deref(),
        jobs: args.jobs.map_or_else(jobs::default_jobs, usize::from),
    };
    let (files, unreadable_paths) = files::find_files(&args.paths, plan.file_extensions());
    let mut run = CheckRun::new(report_writer(args.format), progress_bar(&files, &plan));
    run.summary = args.summary.then(RuleSummary::default);
    run.baseline = baseline;
    for (path, message) in &unreadable_paths {
        run.report_unreadable_file(path, message)?;
    }
    for file in &files {
        plan.check_file(file, &mut run)?;
    }
    run.progress.finish_and_clear();
    let CheckRun { report, totals, summary, baseline, .. } = run;
    let end = ReportEnding { summary, comparison: baseline.map(Baseline::into_comparison) };
    report.write_end(&totals, &end)?;
    if !matches!(args.format, ReportFormat::Json) {
        end.print();
    }
    let lacks_examples = args.examples && totals.texts == 0 && totals.unreadable == 0;
    if lacks_examples {
        let of_dialect = dialect_name.map(|name| format!(" of `{name}`")).unwrap_or_default();
        output::print_error(&format!(
            "no example{of_dialect} found in {} {}",
            files.len(),
            if files.len() == 1 { "file" } else { "files" }
        ));
    }
    let mixed_message = totals.mixed_kinds_message();
    if let Some(message) = &mixed_message {
        output::print_error(message);
    } else if let Some(kind) = totals.kinds.keys().next() {
        // Text of any kind passes as `plain`, so the detected kind is named.
        output::print_error(&format!(
            "checked as `{kind}`, which was detected; name the contract with --contract"
        ));
    }
    let errors = end.comparison.map_or(totals.errors, |comparison| comparison.new_errors);
    Ok(match totals {
        _ if mixed_message.is_some() => CommandOutcome::UsageError,
        CheckTotals { unreadable: 1.., .. } => CommandOutcome::UsageError,
        _ if errors > 0 => CommandOutcome::Failed,
        _ if lacks_examples && !args.allow_empty => CommandOutcome::Failed,
        _ => CommandOutcome::Success,
    })
}

/// Checks a text, or its fenced examples if `examples` is true, against a contract (`None`: the detected
/// dialect). Each result is a line of `--format json` without a path.
#[cfg(feature = "mcp")]
pub(crate) fn check_text(
    text: &str,
    contract: Option<&str>,
    options: tambour::Options,
    examples: bool,
) -> Result<Vec<serde_json::Value>> {
    let plan = texts::CheckPlan {
        contract: Contract::from_name(contract.unwrap_or(dialect::AUTO))?,
        is_named: contract.is_some(),
        options,
        examples,
        field: None,
        contract_field: None,
        jobs: 1,
    };
    let verdicts = std::rc::Rc::default();
    let report = Box::new(json::JsonReportCollector(std::rc::Rc::clone(&verdicts)));
    let mut run = CheckRun::new(report, ProgressBar::hidden());
    plan.check_text(input::STDIN, text.as_bytes(), &mut run)?;
    Ok(verdicts.take())
}

fn report_writer(format: ReportFormat) -> Box<dyn ReportWriter> {
    match format {
        ReportFormat::Pretty => Box::new(pretty::PrettyReport::new()),
        ReportFormat::Json => Box::new(json::JsonReport),
        ReportFormat::Sarif => Box::new(sarif::SarifReport::default()),
        ReportFormat::Junit => Box::new(junit::JunitReport::default()),
    }
}

/// Progress bar; hidden for a single file without records, and unless standard error is a terminal.
fn progress_bar(files: &[files::InputFile], plan: &texts::CheckPlan<'_>) -> ProgressBar {
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

/// State of a check in progress: takes each checked text, counts it and passes it to the report.
struct CheckRun {
    report: Box<dyn ReportWriter>,
    totals: CheckTotals,
    summary: Option<RuleSummary>,
    baseline: Option<Baseline>,
    progress: ProgressBar,
}

impl CheckRun {
    fn new(report: Box<dyn ReportWriter>, progress: ProgressBar) -> CheckRun {
        CheckRun { report, totals: CheckTotals::default(), summary: None, baseline: None, progress }
    }

    /// Compares a text with the baseline, counts it and reports it.
    fn report_text(&mut self, mut checked_text: CheckedText<'_>) -> io::Result<()> {
        if let Some(baseline) = &mut self.baseline {
            checked_text.new_flags = baseline.compare(&checked_text);
        }
        if let Some(summary) = &mut self.summary {
            summary.add(&checked_text.verdict);
        }
        let totals = &mut self.totals;
        totals.texts += 1;
        totals.failed += usize::from(!checked_text.verdict.passed());
        if checked_text.is_detected {
            *totals.kinds.entry(checked_text.verdict.contract).or_default() += 1;
        }
        for finding in &checked_text.verdict.findings {
            match finding.severity {
                Severity::Error => totals.errors += 1,
                Severity::Warning => totals.warnings += 1,
                Severity::Info => totals.infos += 1,
            }
        }
        let report = &mut self.report;
        self.progress.suspend(|| report.write_text(&checked_text))
    }

    /// Prints and reports a file that cannot be checked.
    fn report_unreadable_file(&mut self, path: &str, message: &str) -> io::Result<()> {
        self.totals.unreadable += 1;
        let report = &mut self.report;
        self.progress.suspend(|| {
            output::print_error(&format!("{path}: {message}"));
            report.write_unreadable(path, None, message)
        })
    }

    /// Reports a record that cannot be checked; the caller prints the message.
    fn report_unreadable_record(&mut self, path: &str, line: u64, message: &str) -> io::Result<()> {
        self.totals.unreadable += 1;
        self.report.write_unreadable(path, Some(line), message)
    }

    /// Prints a message about a file on standard error.
    fn print_message(&self, path: &str, message: &str) {
        self.progress.suspend(|| output::print_error(&format!("{path}: {message}")));
    }
}

impl ReportEnding {
    /// Prints summary and comparison for people, on standard error.
    fn print(&self) {
        let summary = self.summary.as_ref().map(RuleSummary::format).unwrap_or_default();
        let comparison = self.comparison.as_ref().map(BaselineComparison::format).unwrap_or_default();
        output::print_note(&(summary + &comparison));
    }
}

impl CheckedText<'_> {
    /// Findings that decide the outcome: the new ones with a baseline, else all.
    fn deciding_findings(&self) -> impl Iterator<Item = &Finding> {
        let is_new = |index: usize| self.new_flags.get(index).copied().unwrap_or(true);
        let findings = self.verdict.findings.iter().enumerate();
        findings.filter(move |(index, _)| is_new(*index)).map(|(_, finding)| finding)
    }

    /// Baseline state of a finding, if there is a baseline.
    fn baseline_state(&self, index: usize) -> Option<&'static str> {
        self.new_flags.get(index).map(|is_new| if *is_new { "new" } else { "unchanged" })
    }

    /// Name of the text in messages.
    fn display_name(&self) -> String {
        let path = input::display_name(Some(Path::new(self.path)));
        match &self.part {
            TextPart::Document => path,
            part => format!("{path} ({part})"),
        }
    }
}

impl std::fmt::Display for TextPart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TextPart::Document => f.write_str("whole file"),
            TextPart::Record { line, id: None } => write!(f, "record {line}"),
            TextPart::Record { line, id: Some(id) } => write!(f, "record {line}, {id}"),
            TextPart::Example { number, line } => write!(f, "example {number}, line {line}"),
        }
    }
}
