//! One JSON object a line for each text.

use std::io::{self, Write};

use serde::Serialize;
use tambour::Finding;

use super::baseline::Comparison;
use super::summary::Row;
use super::{Checked, Count, End, Part, Report};

/// Report format `json`.
pub(super) struct Json;

/// Report line of a text.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    example: Option<usize>,
    contract: &'a str,
    verdict: &'static str,
    /// Code of the finding that decided the verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    first_error: Option<&'a str>,
    findings: Vec<Shown<'a>>,
}

/// Finding with its baseline state, `new` or `unchanged`.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    finding: &'a Finding,
    #[serde(skip_serializing_if = "Option::is_none")]
    baseline_state: Option<&'static str>,
}

/// Last line of a report.
#[derive(Serialize)]
struct Last<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<Counts<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    baseline: Option<&'a Comparison>,
}

#[derive(Serialize)]
struct Counts<'a> {
    texts: usize,
    failed: usize,
    unreadable: usize,
    errors: usize,
    warnings: usize,
    infos: usize,
    rules: Vec<Row<'a>>,
}

impl<'a> Line<'a> {
    fn of(checked: &'a Checked<'_>) -> Line<'a> {
        let Checked { part, verdict, .. } = checked;
        let mut line = Line {
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
                .map(|(index, finding)| Shown { finding, baseline_state: checked.state(index) })
                .collect(),
        };
        match part {
            Part::Whole => {}
            Part::Record { line: record, id } => {
                line.record = Some(*record);
                line.id = id.as_deref();
            }
            Part::Example { number, .. } => line.example = Some(*number),
        }
        line
    }
}

impl Report for Json {
    fn checked(&mut self, checked: &Checked<'_>) -> io::Result<()> {
        let mut text = serde_json::to_string(&Line { path: Some(checked.path), ..Line::of(checked) })?;
        text.push('\n');
        io::stdout().write_all(text.as_bytes())
    }

    fn unreadable(&mut self, _path: &str, _record: Option<u64>, _message: &str) -> io::Result<()> {
        Ok(())
    }

    fn finish(self: Box<Self>, count: &Count, end: &End) -> io::Result<()> {
        let mut stdout = io::stdout();
        let Count { texts, failed, unreadable, errors, warnings, infos, .. } = *count;
        let summary = end.summary.as_ref().map(|summary| Counts {
            texts,
            failed,
            unreadable,
            errors,
            warnings,
            infos,
            rules: summary.rows(),
        });
        let last = Last { summary, baseline: end.comparison.as_ref() };
        if last.summary.is_some() || last.baseline.is_some() {
            writeln!(stdout, "{}", serde_json::to_string(&last)?)?;
        }
        stdout.flush()
    }
}

/// Collects the report lines as JSON values.
#[cfg(feature = "mcp")]
pub(super) struct Collected(pub(super) std::rc::Rc<std::cell::RefCell<Vec<serde_json::Value>>>);

#[cfg(feature = "mcp")]
impl Report for Collected {
    fn checked(&mut self, checked: &Checked<'_>) -> io::Result<()> {
        self.0.borrow_mut().push(serde_json::to_value(Line::of(checked))?);
        Ok(())
    }

    fn unreadable(&mut self, _path: &str, _record: Option<u64>, _message: &str) -> io::Result<()> {
        Ok(())
    }

    fn finish(self: Box<Self>, _count: &Count, _end: &End) -> io::Result<()> {
        Ok(())
    }
}
