//! `tambour sanitize`: leaves only allowed inline HTML in a text as it arrives.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Result;
use clap::ValueEnum;
use tambour::html::{HtmlMode, HtmlSanitizer, SanitizedPiece};
use tambour::lex::utf8::Utf8Decoder;
use tambour::limits::Limits;
use tambour::{Finding, Profile};

use crate::input::{self, InputReader, PieceSplitter};
use crate::{CommandOutcome, output};

/// Leave only harmless inline HTML in a Markdown text; changes are reported on standard error
#[derive(clap::Args)]
#[command(after_help = "Example:\n  printf '<b>Hi</b> <img src=x>, 1 < 2' | tambour sanitize\n\n\
    What stays: span with a plain style, br, b, strong, i, em, u, s, ruby, rt, rp, and all code.")]
pub(crate) struct SanitizeCommand {
    /// Feed N bytes at a time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    chunk: Option<u32>,
    /// Treatment of other markup
    #[arg(long, value_enum, default_value_t = UnlistedMarkup::Escape)]
    mode: UnlistedMarkup,
    /// File with the text; standard input if absent or `-`
    file: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum UnlistedMarkup {
    /// Show it as text
    Escape,
    /// Remove it
    Strip,
}

pub(crate) fn run(args: &SanitizeCommand) -> Result<CommandOutcome> {
    let mode = match args.mode {
        UnlistedMarkup::Escape => HtmlMode::Escape,
        UnlistedMarkup::Strip => HtmlMode::Strip,
    };
    let limits = Limits::default();
    let mut input = InputReader::open(args.file.as_deref())?;
    let mut splitter = args.chunk.map(|size| PieceSplitter::new(size as usize));
    let (mut utf8, mut sanitizer) = (Utf8Decoder::default(), HtmlSanitizer::new(mode, &limits));
    let mut printer = FindingPrinter {
        name: input::display_name(args.file.as_deref()),
        remaining_findings: limits.findings,
        omitted_findings: 0,
    };
    let mut stdout = io::stdout().lock();
    let mut text = String::new();
    while let Some(bytes) = input.next_bytes()? {
        let mut push = |bytes: &[u8]| {
            utf8.push(bytes, &mut |piece, _replaced_bytes| {
                sanitizer.push(piece, &mut |piece| printer.take_piece(piece, &mut text))
            });
        };
        match &mut splitter {
            None => push(bytes),
            Some(splitter) => splitter.push(bytes, push),
        }
        stdout.write_all(text.as_bytes())?;
        stdout.flush()?;
        text.clear();
    }
    let remainder = splitter.map(PieceSplitter::into_remainder).unwrap_or_default();
    let mut sanitize = |piece: &str, _replaced_bytes: Option<usize>| {
        sanitizer.push(piece, &mut |piece| printer.take_piece(piece, &mut text))
    };
    utf8.push(&remainder, &mut sanitize);
    utf8.finish(&mut sanitize);
    sanitizer.finish(&mut |piece| printer.take_piece(piece, &mut text));
    stdout.write_all(text.as_bytes())?;
    stdout.flush()?;
    printer.finish();
    Ok(CommandOutcome::Success)
}

/// Printer of findings, up to a limit.
struct FindingPrinter {
    name: String,
    /// Number of findings that may still be printed.
    remaining_findings: usize,
    omitted_findings: usize,
}

impl FindingPrinter {
    /// Takes a piece: appends its text to `text`, or prints its finding.
    fn take_piece(&mut self, piece: SanitizedPiece<'_>, text: &mut String) {
        match piece {
            SanitizedPiece::Text(piece) => text.push_str(piece),
            SanitizedPiece::Report(_) if self.remaining_findings == 0 => self.omitted_findings += 1,
            SanitizedPiece::Report(report) => {
                self.remaining_findings -= 1;
                let finding: Finding = report.judge(Profile::Lenient);
                // Standard error may be closed; the text is still printed.
                let _ = writeln!(io::stderr(), "{}", output::finding_line(&self.name, &finding));
            }
        }
    }

    /// Prints the number of findings that were not printed.
    fn finish(&self) {
        if self.omitted_findings > 0 {
            output::print_error(&format!(
                "{}: {} more findings are not listed",
                self.name, self.omitted_findings
            ));
        }
    }
}
