//! Report format `json`: a line with a JSON object for each text. The MCP tool `check` returns the same
//! objects.

use std::io::{self, Write};

use serde::Serialize;
use tambour::Finding;

use super::baseline::BaselineComparison;
use super::summary::RuleSummaryRow;
use super::{CheckTotals, CheckedText, ReportEnding, ReportWriter, TextPart};

/// Report format `json`.
pub(super) struct JsonReport;

/// Report line of a text; the fields before `contract` say where the text is.
#[derive(Serialize)]
struct JsonReportLine<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'a str>,
    /// Line of the record in the file, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<u64>,
    /// Field `id` of the record.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    /// Number of the fenced example in the file, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    example: Option<usize>,
    contract: &'a str,
    verdict: &'static str,
    /// Code of the finding that decided the verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    first_error: Option<&'a str>,
    findings: Vec<JsonReportFinding<'a>>,
}

/// Finding with its baseline state, `new` or `unchanged`.
#[derive(Serialize)]
struct JsonReportFinding<'a> {
    #[serde(flatten)]
    finding: &'a Finding,
    #[serde(skip_serializing_if = "Option::is_none")]
    baseline_state: Option<&'static str>,
}

/// Last line of a report that has a summary or a comparison.
#[derive(Serialize)]
struct JsonReportEnd<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<JsonReportCounts<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    baseline: Option<&'a BaselineComparison>,
}

/// Totals of the run, and counts of broken rules.
#[derive(Serialize)]
struct JsonReportCounts<'a> {
    texts: usize,
    failed: usize,
    unreadable: usize,
    errors: usize,
    warnings: usize,
    infos: usize,
    rules: Vec<RuleSummaryRow<'a>>,
}

impl<'a> JsonReportLine<'a> {
    /// Describes a text without its path.
    fn from_checked(checked_text: &'a CheckedText<'_>) -> JsonReportLine<'a> {
        let CheckedText { part, verdict, .. } = checked_text;
        let mut line = JsonReportLine {
            path: None,
            record: None,
            id: None,
            example: None,
            contract: verdict.contract,
            verdict: if verdict.passed() { "pass" } else { "fail" },
            first_error: verdict.first_error().map(|finding| finding.code.as_ref()),
            findings: verdict
                .findings
                .iter()
                .enumerate()
                .map(|(index, finding)| JsonReportFinding {
                    finding,
                    baseline_state: checked_text.baseline_state(index),
                })
                .collect(),
        };
        match part {
            TextPart::Document => {}
            TextPart::Record { line: record, id } => {
                line.record = Some(*record);
                line.id = id.as_deref();
            }
            TextPart::Example { number, .. } => line.example = Some(*number),
        }
        line
    }
}

impl ReportWriter for JsonReport {
    fn write_text(&mut self, checked_text: &CheckedText<'_>) -> io::Result<()> {
        let mut line = serde_json::to_string(&JsonReportLine {
            path: Some(checked_text.path),
            ..JsonReportLine::from_checked(checked_text)
        })?;
        line.push('\n');
        io::stdout().write_all(line.as_bytes())
    }

    fn write_unreadable(&mut self, _path: &str, _record: Option<u64>, _message: &str) -> io::Result<()> {
        Ok(())
    }

    fn write_end(self: Box<Self>, totals: &CheckTotals, end: &ReportEnding) -> io::Result<()> {
        let mut stdout = io::stdout();
        let CheckTotals { texts, failed, unreadable, errors, warnings, infos, .. } = *totals;
        let summary = end.summary.as_ref().map(|summary| JsonReportCounts {
            texts,
            failed,
            unreadable,
            errors,
            warnings,
            infos,
            rules: summary.rows(),
        });
        let end_line = JsonReportEnd { summary, baseline: end.comparison.as_ref() };
        if end_line.summary.is_some() || end_line.baseline.is_some() {
            writeln!(stdout, "{}", serde_json::to_string(&end_line)?)?;
        }
        stdout.flush()
    }
}

/// Collects the report lines, without paths, as JSON values in a list shared with the caller.
#[cfg(feature = "mcp")]
pub(super) struct JsonReportCollector(pub(super) std::rc::Rc<std::cell::RefCell<Vec<serde_json::Value>>>);

#[cfg(feature = "mcp")]
impl ReportWriter for JsonReportCollector {
    fn write_text(&mut self, checked_text: &CheckedText<'_>) -> io::Result<()> {
        self.0.borrow_mut().push(serde_json::to_value(JsonReportLine::from_checked(checked_text))?);
        Ok(())
    }

    fn write_unreadable(&mut self, _path: &str, _record: Option<u64>, _message: &str) -> io::Result<()> {
        Ok(())
    }

    fn write_end(self: Box<Self>, _totals: &CheckTotals, _end: &ReportEnding) -> io::Result<()> {
        Ok(())
    }
}
