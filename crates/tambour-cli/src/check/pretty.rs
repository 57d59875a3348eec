//! Findings for people, each with a pointer into its text.

use std::fmt;
use std::io::{self, Write};

use miette::{GraphicalReportHandler, GraphicalTheme, LabeledSpan, SourceCode};
use tambour::{Finding, Severity};

use super::excerpt::Excerpt;
use super::{Checked, Count, End, Report};
use crate::output::{self, visible};

/// Report format `pretty`.
pub(super) struct Pretty {
    handler: GraphicalReportHandler,
}

impl Pretty {
    pub(super) fn new() -> Pretty {
        let theme = if output::coloured(&io::stdout()) {
            GraphicalTheme::unicode()
        } else {
            GraphicalTheme::unicode_nocolor()
        };
        let width = output::columns().map_or(100, usize::from).clamp(40, 160);
        Pretty { handler: GraphicalReportHandler::new_themed(theme).with_width(width).with_links(false) }
    }
}

impl Report for Pretty {
    fn checked(&mut self, checked: &Checked<'_>) -> io::Result<()> {
        let name = checked.name();
        let mut text = String::new();
        for finding in checked.deciding() {
            let shown = Shown { finding, excerpt: Excerpt::new(&name, checked.text, finding) };
            if self.handler.render_report(&mut text, &shown).is_err() {
                text.push_str(&output::line(&name, finding));
            }
            text.push('\n');
        }
        io::stdout().write_all(text.as_bytes())
    }

    fn unreadable(&mut self, _path: &str, _record: Option<u64>, _message: &str) -> io::Result<()> {
        Ok(())
    }

    fn finish(self: Box<Self>, count: &Count, _end: &End) -> io::Result<()> {
        let Count { texts, failed, errors, warnings, infos, .. } = count;
        let mut stdout = io::stdout();
        writeln!(
            stdout,
            "{texts} checked, {failed} failed; errors: {errors}, warnings: {warnings}, infos: {infos}"
        )?;
        stdout.flush()
    }
}

/// Finding as a `miette` diagnostic.
struct Shown<'a> {
    finding: &'a Finding,
    excerpt: Excerpt,
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.finding.message.chars().map(visible).try_for_each(|c| fmt::Write::write_char(f, c))
    }
}

impl fmt::Debug for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Shown<'_> {}

impl miette::Diagnostic for Shown<'_> {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        let Finding { severity, rule, code, .. } = self.finding;
        Some(Box::new(format!("{}: {rule} {code}", output::word(*severity))))
    }

    fn severity(&self) -> Option<miette::Severity> {
        Some(match self.finding.severity {
            Severity::Error => miette::Severity::Error,
            Severity::Warning => miette::Severity::Warning,
            Severity::Info => miette::Severity::Advice,
        })
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        let repair = self.finding.repair.as_ref()?;
        Some(Box::new(format!("repair: {}", repair.chars().map(visible).collect::<String>())))
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(&self.excerpt)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        Some(Box::new([LabeledSpan::underline(self.excerpt.span())].into_iter()))
    }
}
