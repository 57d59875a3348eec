//! Report format `pretty`: findings for people, each with an excerpt that marks its place in the text.

use std::fmt;
use std::io::{self, Write};

use miette::{GraphicalReportHandler, GraphicalTheme, LabeledSpan, SourceCode};
use tambour::{Finding, Severity};

use super::excerpt::Excerpt;
use super::{CheckTotals, CheckedText, ReportEnding, ReportWriter};
use crate::output::{self, visible_char};

/// Report format `pretty`.
pub(super) struct PrettyReport {
    handler: GraphicalReportHandler,
}

impl PrettyReport {
    pub(super) fn new() -> PrettyReport {
        let theme = if output::is_coloured(&io::stdout()) {
            GraphicalTheme::unicode()
        } else {
            GraphicalTheme::unicode_nocolor()
        };
        // A report that does not go to a terminal is 100 columns wide.
        let width = output::terminal_width().map_or(100, usize::from).clamp(40, 160);
        PrettyReport {
            handler: GraphicalReportHandler::new_themed(theme).with_width(width).with_links(false),
        }
    }
}

impl ReportWriter for PrettyReport {
    fn write_text(&mut self, checked_text: &CheckedText<'_>) -> io::Result<()> {
        let name = checked_text.display_name();
        let mut report_text = String::new();
        for finding in checked_text.deciding_findings() {
            let diagnostic =
                FindingDiagnostic { finding, excerpt: Excerpt::new(&name, checked_text.text, finding) };
            if self.handler.render_report(&mut report_text, &diagnostic).is_err() {
                report_text.push_str(&output::finding_line(&name, finding));
            }
            report_text.push('\n');
        }
        io::stdout().write_all(report_text.as_bytes())
    }

    fn write_unreadable(&mut self, _path: &str, _record: Option<u64>, _message: &str) -> io::Result<()> {
        Ok(())
    }

    fn write_end(self: Box<Self>, totals: &CheckTotals, _end: &ReportEnding) -> io::Result<()> {
        let CheckTotals { texts, failed, errors, warnings, infos, .. } = totals;
        let mut stdout = io::stdout();
        writeln!(
            stdout,
            "{texts} checked, {failed} failed; errors: {errors}, warnings: {warnings}, infos: {infos}"
        )?;
        stdout.flush()
    }
}

/// Finding as a `miette` diagnostic.
struct FindingDiagnostic<'a> {
    finding: &'a Finding,
    excerpt: Excerpt,
}

impl fmt::Display for FindingDiagnostic<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.finding.message.chars().map(visible_char).try_for_each(|c| fmt::Write::write_char(f, c))
    }
}

impl fmt::Debug for FindingDiagnostic<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for FindingDiagnostic<'_> {}

impl miette::Diagnostic for FindingDiagnostic<'_> {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        let Finding { severity, rule, code, .. } = self.finding;
        Some(Box::new(format!("{}: {rule} {code}", output::severity_name(*severity))))
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
        Some(Box::new(format!("repair: {}", repair.chars().map(visible_char).collect::<String>())))
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(&self.excerpt)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        Some(Box::new([LabeledSpan::underline(self.excerpt.span())].into_iter()))
    }
}
