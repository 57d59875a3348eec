//! `tambour json`: the one JSON value of a text.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Result;
use tambour::finding::Report;
use tambour::limits::Limits;
use tambour::repair::json;
use tambour::{Finding, Profile};

use crate::input;
use crate::{Outcome, output};

/// Print the one JSON value in a chatty, fenced or broken text; repairs go to standard error, numbers keep all their digits
#[derive(clap::Args)]
#[command(after_help = "Example:\n  printf 'Sure: {\"ok\": True,}' | tambour json\n\n\
    Exit code 1: there is no JSON value.")]
pub(crate) struct Args {
    /// Take only a text that is JSON as it stands (RFC 8259)
    #[arg(long)]
    strict: bool,
    /// File with the text; standard input if absent or `-`
    file: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<Outcome> {
    let bytes = input::read(args.file.as_deref())?;
    let name = input::name_of(args.file.as_deref());
    let limits = Limits::default();
    let text = match str::from_utf8(&bytes) {
        Ok(text) => text.into(),
        Err(error) if args.strict => {
            output::complain(&format!("{name}: {error}"));
            return Ok(Outcome::Refused);
        }
        Err(_) => {
            output::complain(&format!("{name}: bytes that are not UTF-8 were replaced"));
            String::from_utf8_lossy(&bytes)
        }
    };
    let (value, findings) = if args.strict {
        match json::strict_text(&text, &limits) {
            Ok(value) => (Some(value), Vec::new()),
            Err(report) => (None, vec![report.judge(Profile::Strict)]),
        }
    } else {
        let found = json::find_text(&text, &limits);
        (found.value, found.reports.into_iter().map(lenient).collect())
    };
    let lines: String = findings.iter().map(|finding| output::line(&name, finding) + "\n").collect();
    // Nobody may be reading the findings; the value is still wanted.
    let _ = io::stderr().write_all(lines.as_bytes());
    let Some(value) = value else {
        if findings.is_empty() {
            output::complain(&format!("{name}: there is no JSON value"));
        }
        return Ok(Outcome::Refused);
    };
    let mut stdout = io::stdout();
    writeln!(stdout, "{value}")?;
    stdout.flush()?;
    Ok(Outcome::Fine)
}

fn lenient(report: Report) -> Finding {
    report.judge(Profile::Lenient)
}
