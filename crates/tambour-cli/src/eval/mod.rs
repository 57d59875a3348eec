//! `tambour eval`: measures how well models keep a contract.

mod ask;
mod compare;
mod figures;
mod file;
mod folder;
mod html;
mod judge;
mod junit;
mod lines;
mod plan;
mod plots;
mod prompts;
mod record;
mod recorded;
mod reply;
mod stats;
mod tables;

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressStyle};

use crate::{CommandOutcome, output};
use compare::Baseline;
use figures::{Report, ReportBuilder};
use folder::{RunFolder, RunWriter};
use plan::{EvalPlan, SourceKind};
use recorded::ReplyGroup;

/// Measure how well models keep a contract: valid, usable, faults, time, tokens, cost
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    echo '{\"reply\": \"It is 4.\", \"finish_reason\": \"stop\"}' | tee /tmp/replies.jsonl\n  \
    printf '[contract]\\ndialect=\"plain\"\\n[[sources]]\\nrecorded=\"replies.jsonl\"' | tee /tmp/eval.toml\n  \
    tambour eval /tmp/eval.toml --run \"$(mktemp -d)\"\n\n\
    A run is kept in its folder, so that `--resume` continues it after it was stopped, or prints its report again.\n\n\
    Exit code 1: with --compare a share dropped beyond the bound, a prompt got no reply, or the run could not be written.")]
pub(crate) struct EvalCommand {
    /// File of the evaluation, TOML: contract, prompts, and upstreams, aliases or recorded replies
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Folder of an earlier run, or its report.json: fail if a share dropped beyond --max-drop
    #[arg(long, value_name = "RUN")]
    compare: Option<PathBuf>,
    /// With --compare: percentage points that a share may drop; the whole 95 % interval of the drop must lie above to fail
    #[arg(long, value_name = "POINTS", default_value_t = 0.0, value_parser = parse_points, requires = "compare")]
    max_drop: f64,
    /// Format of the report
    #[arg(long, value_enum, default_value_t = ReportFormat::Table)]
    format: ReportFormat,
    /// Continue the run in its folder: only what is not finished is asked
    #[arg(long)]
    resume: bool,
    /// With --resume: also ask again where a call failed
    #[arg(long, requires = "resume")]
    retry_failed: bool,
    /// Folder of the run; default: FILE with the extension `run`
    #[arg(long, value_name = "DIR")]
    run: Option<PathBuf>,
    /// Write the replies as recordings, with an evaluation, replay upstreams and fixtures of them, to this folder
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,
    /// Model calls at a time; default: `parallel` of FILE, else 4
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=file::MAX_PARALLEL as i64))]
    parallel: Option<u16>,
}

/// Format of the report.
#[derive(Clone, Copy, ValueEnum)]
enum ReportFormat {
    /// For people, in a terminal
    Table,
    /// One JSON object
    Json,
    /// JUnit XML: a suite for each model and dialect, a case for each prompt
    Junit,
    /// Markdown tables
    Markdown,
    /// One HTML page with plots
    Html,
}

/// Number of finished prompts that may wait for the disk.
const QUEUE_LEN: usize = 16;
/// Bytes of replies from which they are written without waiting for more.
const FULL_BATCH_BYTES: usize = 8 << 20;

/// Parses percentage points.
fn parse_points(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(points) if (0.0..=100.0).contains(&points) => Ok(points),
        _ => Err("expected percentage points, 0 to 100".to_owned()),
    }
}

pub(crate) fn run(args: &EvalCommand) -> Result<CommandOutcome> {
    let plan = Arc::new(EvalPlan::read(&args.file, args.parallel.map(usize::from))?);
    let baseline = args.compare.as_deref().map(Baseline::read).transpose()?;
    let path = args.run.clone().unwrap_or_else(|| args.file.with_extension("run"));
    let folder = RunFolder::open(&path, &plan.manifest, args.resume)?;
    let finished = folder.finished_pairs(&plan, args.retry_failed)?;
    let writer = folder.writer()?;
    if let Err(error) = gather_replies(&plan, &finished, writer) {
        output::print_error(&format!("{error:#}"));
        output::print_error(&format!("the replies so far are in {}; `--resume` continues", path.display()));
        return Ok(CommandOutcome::Failed);
    }
    let mut report = judge_replies(&plan, &folder)?;
    folder.write_report(&report.to_json()?)?;
    if let Some(record_folder) = &args.record {
        record::write(&folder, &plan, record_folder)?;
    }
    report.comparison = baseline.map(|baseline| baseline.compare(&report, args.max_drop / 100.0));
    print_report(&report, args.format)?;
    let failure_message = report.failure_message();
    if let Some(message) = &failure_message {
        output::print_error(message);
    }
    let is_regression = report.comparison.as_ref().is_some_and(|comparison| {
        // The table has these lines too, but the log of a job may have only standard error.
        comparison.lines().iter().for_each(|line| output::print_error(line));
        comparison.is_failed()
    });
    Ok(if is_regression || failure_message.is_some() {
        CommandOutcome::Failed
    } else {
        CommandOutcome::Success
    })
}

/// Gathers the replies of the pairs that are not finished, and writes them to the folder of the run.
///
/// # Errors
/// An upstream cannot be used, a recorded file cannot be read, or the run cannot be written.
fn gather_replies(plan: &Arc<EvalPlan>, finished: &[bool], writer: RunWriter) -> Result<()> {
    let finished_count = finished.iter().filter(|is_finished| **is_finished).count();
    let progress = progress_bar(finished.len(), finished_count);
    let (sender, receiver) = mpsc::sync_channel(QUEUE_LEN);
    let writing = {
        let progress = progress.clone();
        thread::spawn(move || write_groups(writer, &receiver, &progress))
    };
    let gather_result = copy_recorded(plan, finished, &sender).and_then(|()| {
        let is_pending = |pair: &usize| !finished[*pair] && plan.pairs[*pair].prompt.is_some();
        ask::ask_all(plan, (0..finished.len()).filter(is_pending).collect(), &sender)
    });
    drop(sender);
    let Ok(write_result) = writing.join() else { bail!("the replies could not be written") };
    progress.finish_and_clear();
    // A failed write ends the gathering, so it is the cause.
    write_result.and(gather_result)
}

/// Copies the recorded replies that the run lacks.
fn copy_recorded(plan: &EvalPlan, finished: &[bool], sender: &mpsc::SyncSender<ReplyGroup>) -> Result<()> {
    let is_pending =
        |source: usize| plan.pairs.iter().zip(finished).any(|(pair, done)| pair.source == source && !done);
    for (index, source) in plan.sources.iter().enumerate() {
        let SourceKind::Recorded(path) = &source.kind else { continue };
        if !is_pending(index) {
            continue;
        }
        recorded::read_groups(path, |mut group, place| {
            if !plan.complete_recorded(index, &mut group.first)? {
                return Ok(());
            }
            for reask in &mut group.reasks {
                plan.complete_recorded(index, reask)?;
            }
            group.first.reasks = u32::try_from(group.reasks.len()).unwrap_or_default();
            let pair = plan.find_pair(index, &group.first);
            let pair = pair.with_context(|| format!("{place}: the file changed while it was read"))?;
            if !finished[pair] && sender.send(group).is_err() {
                bail!("the replies cannot be written");
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Writes replies as they arrive, all that wait in one go.
fn write_groups(
    mut writer: RunWriter,
    receiver: &mpsc::Receiver<ReplyGroup>,
    progress: &ProgressBar,
) -> Result<()> {
    while let Ok(group) = receiver.recv() {
        let mut bytes = writer.push(&group)?;
        let mut count = 1;
        while bytes < FULL_BATCH_BYTES
            && let Ok(group) = receiver.try_recv()
        {
            bytes = writer.push(&group)?;
            count += 1;
        }
        writer.sync()?;
        progress.inc(count);
    }
    Ok(())
}

/// Judges all replies of a run.
fn judge_replies(plan: &EvalPlan, folder: &RunFolder) -> Result<Report> {
    let mut builder = ReportBuilder::new(plan);
    folder.read_replies(plan, |pair, group| {
        builder.add(pair, &group);
        Ok(())
    })?;
    builder.finish()
}

fn print_report(report: &Report, format: ReportFormat) -> Result<()> {
    let mut stdout = io::stdout().lock();
    let text = match format {
        ReportFormat::Table => tables::format_table(report),
        ReportFormat::Json => report.to_json()?,
        ReportFormat::Junit => {
            let mut out = io::BufWriter::new(stdout);
            junit::write(report, &mut out)?;
            out.flush()?;
            return Ok(());
        }
        ReportFormat::Markdown => tables::format_markdown(report),
        ReportFormat::Html => html::format(report),
    };
    stdout.write_all(text.as_bytes())?;
    stdout.flush()?;
    Ok(())
}

/// Progress bar over all prompts; hidden unless standard error is a terminal.
fn progress_bar(total: usize, finished_count: usize) -> ProgressBar {
    if !io::stderr().is_terminal() || finished_count == total {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(total as u64).with_position(finished_count as u64);
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {human_pos} of {human_len} replies  {eta}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
