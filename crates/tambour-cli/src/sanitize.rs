//! `tambour sanitize`: checks inline HTML against the allow list as it arrives.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Result;
use clap::ValueEnum;
use tambour::html::{Mode, Piece, Sanitizer};
use tambour::lex::utf8::Utf8;
use tambour::limits::Limits;
use tambour::{Finding, Profile};

use crate::input::{self, Input, Pieces};
use crate::{Outcome, output};

/// Leave only harmless inline HTML in a Markdown text; changes are reported on standard error
#[derive(clap::Args)]
#[command(after_help = "Example:\n  printf '<b>Hi</b> <img src=x>, 1 < 2' | tambour sanitize\n\n\
    What stays: span with a plain style, br, b, strong, i, em, u, s, ruby, rt, rp, and all code.")]
pub(crate) struct Args {
    /// Feed N bytes at a time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    chunk: Option<u32>,
    /// Treatment of other markup
    #[arg(long, value_enum, default_value_t = Unlisted::Escape)]
    mode: Unlisted,
    /// File with the text; standard input if absent or `-`
    file: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Unlisted {
    /// Show it as text
    Escape,
    /// Remove it
    Strip,
}

pub(crate) fn run(args: &Args) -> Result<Outcome> {
    let mode = match args.mode {
        Unlisted::Escape => Mode::Escape,
        Unlisted::Strip => Mode::Strip,
    };
    let limits = Limits::default();
    let mut input = Input::open(args.file.as_deref())?;
    let mut pieces = args.chunk.map(|size| Pieces::new(size as usize));
    let (mut utf8, mut sanitizer) = (Utf8::default(), Sanitizer::new(mode, &limits));
    let mut told = Told { name: input::name_of(args.file.as_deref()), most: limits.findings, more: 0 };
    let mut stdout = io::stdout().lock();
    let mut text = String::new();
    while let Some(bytes) = input.next()? {
        let mut push = |bytes: &[u8]| {
            utf8.push(bytes, &mut |piece, _| sanitizer.push(piece, &mut |piece| told.take(piece, &mut text)));
        };
        match &mut pieces {
            None => push(bytes),
            Some(pieces) => pieces.cut(bytes, push),
        }
        stdout.write_all(text.as_bytes())?;
        stdout.flush()?;
        text.clear();
    }
    let rest = pieces.map(Pieces::rest).unwrap_or_default();
    let mut last =
        |piece: &str, _: Option<usize>| sanitizer.push(piece, &mut |piece| told.take(piece, &mut text));
    utf8.push(&rest, &mut last);
    utf8.finish(&mut last);
    sanitizer.finish(&mut |piece| told.take(piece, &mut text));
    stdout.write_all(text.as_bytes())?;
    stdout.flush()?;
    told.finish();
    Ok(Outcome::Fine)
}

/// Printer of findings, up to a limit.
struct Told {
    name: String,
    most: usize,
    more: usize,
}

impl Told {
    fn take(&mut self, piece: Piece<'_>, text: &mut String) {
        match piece {
            Piece::Text(piece) => text.push_str(piece),
            Piece::Found(_) if self.most == 0 => self.more += 1,
            Piece::Found(report) => {
                self.most -= 1;
                let finding: Finding = report.judge(Profile::Lenient);
                // Standard error may be closed; the text is still printed.
                let _ = writeln!(io::stderr(), "{}", output::line(&self.name, &finding));
            }
        }
    }

    fn finish(&self) {
        if self.more > 0 {
            output::complain(&format!("{}: {} more findings are not listed", self.name, self.more));
        }
    }
}
