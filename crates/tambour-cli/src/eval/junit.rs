//! Report as JUnit XML: a suite for each model and dialect with a case for each prompt, and a suite for the
//! comparison with an earlier run.

use std::io::{self, Write};

use tambour::event::ReplyWorth;

use super::compare::Comparison;
use super::figures::{PairResult, Report, ReportRow};
use crate::check::escape_xml;

/// Numbers of the cases of a suite.
#[derive(Clone, Copy, Default)]
struct Counts {
    tests: usize,
    failures: usize,
    errors: usize,
}

/// Writes the report. A prompt without a usable reply is a failure, one without any reply an error.
///
/// # Errors
/// The writer fails.
pub(super) fn write(report: &Report, out: &mut impl Write) -> io::Result<()> {
    let mut counts = vec![Counts::default(); report.rows.len()];
    let mut cases: Vec<Vec<usize>> = vec![Vec::new(); report.rows.len()];
    for (index, (row, _, result)) in report.results.iter().enumerate() {
        cases[*row].push(index);
        counts[*row].tests += 1;
        counts[*row].errors += usize::from(result.failure.is_some());
        let is_failed = result.failure.is_none() && result.worth != ReplyWorth::Usable;
        counts[*row].failures += usize::from(is_failed);
    }
    let comparison = report.comparison.as_ref().map(|comparison| (comparison, comparison_counts(comparison)));
    let sum = |field: fn(&Counts) -> usize| -> usize {
        counts.iter().chain(comparison.as_ref().map(|(_, counts)| counts)).map(field).sum()
    };
    writeln!(
        out,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"tambour eval\" tests=\"{}\" failures=\"{}\" \
         errors=\"{}\">",
        sum(|counts| counts.tests),
        sum(|counts| counts.failures),
        sum(|counts| counts.errors),
    )?;
    for ((row, counts), cases) in report.rows.iter().zip(&counts).zip(&cases) {
        begin_suite(out, &row.label(), *counts)?;
        for index in cases {
            let (_, prompt_id, result) = &report.results[*index];
            write_prompt(out, row, prompt_id, result)?;
        }
        writeln!(out, "  </testsuite>")?;
    }
    if let Some((comparison, counts)) = comparison {
        begin_suite(out, "comparison", counts)?;
        write_comparison(out, comparison)?;
        writeln!(out, "  </testsuite>")?;
    }
    writeln!(out, "</testsuites>")
}

fn begin_suite(out: &mut impl Write, name: &str, counts: Counts) -> io::Result<()> {
    let Counts { tests, failures, errors } = counts;
    writeln!(
        out,
        "  <testsuite name=\"{}\" tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\">",
        escape_xml(name),
    )
}

fn write_prompt(
    out: &mut impl Write,
    row: &ReportRow,
    prompt_id: &str,
    result: &PairResult,
) -> io::Result<()> {
    let time = result.first_text_ms.map(|ms| format!(" first text after {ms} ms")).unwrap_or_default();
    let lines = format!("{}{time}\n{}", result.step.name(), result.finding_lines.join("\n"));
    let detail = escape_xml(lines.trim_end());
    let content = match (&result.failure, result.worth) {
        (Some(failure), _) => {
            let (code, message) = (escape_xml(&failure.code), escape_xml(&failure.message));
            format!("<error type=\"{code}\" message=\"{message}\"/>")
        }
        (None, ReplyWorth::Usable) => format!("<system-out>{detail}</system-out>"),
        (None, _) => {
            let code = result.error_code.as_deref().unwrap_or("unusable");
            let message = result.first_error.as_deref().unwrap_or("the reply is not usable");
            format!(
                "<failure type=\"{}\" message=\"{}\">{detail}</failure>",
                escape_xml(code),
                escape_xml(message)
            )
        }
    };
    write_case(out, row.dialect, prompt_id, &content)
}

fn write_case(out: &mut impl Write, class: &str, name: &str, content: &str) -> io::Result<()> {
    writeln!(
        out,
        "    <testcase classname=\"{}\" name=\"{}\">\n      {content}\n    </testcase>",
        escape_xml(class),
        escape_xml(name),
    )
}

fn comparison_counts(comparison: &Comparison) -> Counts {
    let regressions = comparison.shares.iter().filter(|share| share.is_regression).count();
    Counts {
        tests: comparison.shares.len() + comparison.missing.len(),
        failures: regressions + comparison.missing.len(),
        errors: 0,
    }
}

/// Writes a case for each share that was compared, and for each missing row.
fn write_comparison(out: &mut impl Write, comparison: &Comparison) -> io::Result<()> {
    for share in &comparison.shares {
        let line = escape_xml(&share.line());
        let content = if share.is_regression {
            format!("<failure type=\"regression\" message=\"{line}\"/>")
        } else {
            format!("<system-out>{line}</system-out>")
        };
        write_case(out, &share.row, share.figure, &content)?;
    }
    for row in &comparison.missing {
        write_case(out, row, "replies", "<failure type=\"missing\" message=\"no reply in this run\"/>")?;
    }
    Ok(())
}
