//! `tambour json`: finds the JSON value in a text.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Result;
use tambour::finding::FindingReport;
use tambour::limits::Limits;
use tambour::repair::json;
use tambour::{Finding, Profile};

use crate::input;
use crate::{CommandOutcome, output};

/// Print the one JSON value in a chatty, fenced or broken text; repairs go to standard error, numbers keep all their digits
#[derive(clap::Args)]
#[command(after_help = "Example:\n  printf 'Sure: {\"ok\": True,}' | tambour json\n\n\
    Exit code 1: there is no JSON value.")]
pub(crate) struct JsonCommand {
    /// Accept only a text that is valid JSON (RFC 8259)
    #[arg(long)]
    strict: bool,
    /// File with the text; standard input if absent or `-`
    file: Option<PathBuf>,
}

pub(crate) fn run(args: &JsonCommand) -> Result<CommandOutcome> {
    let bytes = input::read_raw(args.file.as_deref())?;
    let name = input::display_name(args.file.as_deref());
    let text = match str::from_utf8(&bytes) {
        Ok(text) => text.into(),
        Err(error) if args.strict => {
            output::print_error(&format!("{name}: {error}"));
            return Ok(CommandOutcome::Failed);
        }
        Err(_) => {
            output::print_error(&format!("{name}: bytes that are not UTF-8 were replaced"));
            String::from_utf8_lossy(&bytes)
        }
    };
    let FoundJson { value, findings } = find_json(&text, args.strict);
    let lines: String = findings.iter().map(|finding| output::finding_line(&name, finding) + "\n").collect();
    // Standard error may be closed; the value is still printed.
    let _ = io::stderr().write_all(lines.as_bytes());
    let Some(value) = value else {
        if findings.is_empty() {
            output::print_error(&format!("{name}: there is no JSON value"));
        }
        return Ok(CommandOutcome::Failed);
    };
    let mut stdout = io::stdout();
    writeln!(stdout, "{value}")?;
    stdout.flush()?;
    Ok(CommandOutcome::Success)
}

/// JSON value found in a text, with the findings.
pub(crate) struct FoundJson {
    /// JSON text of the value, with all digits of its numbers; `None` if there is no value.
    pub(crate) value: Option<String>,
    pub(crate) findings: Vec<Finding>,
}

/// Finds the JSON value in a text. If `strict` is true, the text must be nothing but valid JSON.
pub(crate) fn find_json(text: &str, strict: bool) -> FoundJson {
    let limits = Limits::default();
    if strict {
        return match json::parse_strict_text(text, &limits) {
            Ok(value) => FoundJson { value: Some(value), findings: Vec::new() },
            Err(report) => FoundJson { value: None, findings: vec![report.judge(Profile::Strict)] },
        };
    }
    let found = json::find_displayed(text, &limits);
    let judge_leniently = |report: FindingReport| report.judge(Profile::Lenient);
    FoundJson { value: found.value, findings: found.reports.into_iter().map(judge_leniently).collect() }
}
