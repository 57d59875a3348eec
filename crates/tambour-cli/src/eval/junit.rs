//! Report as JUnit XML: a suite for each model and dialect with a case for each prompt, and a suite for the
//! comparison with an earlier run.

use std::fmt::Write as _;

use tambour::event::ReplyWorth;

use super::compare::Comparison;
use super::figures::{PairResult, Report, ReportRow};
use crate::check::escape_xml;

/// Test suite.
#[derive(Default)]
struct Suite {
    name: String,
    tests: usize,
    failures: usize,
    errors: usize,
    /// `testcase` elements, as XML.
    cases: String,
}

/// Formats the report. A prompt without a usable reply is a failure, one without any reply an error.
pub(super) fn format(report: &Report) -> String {
    let mut suites: Vec<Suite> =
        report.rows.iter().map(|row| Suite { name: row.label(), ..Suite::default() }).collect();
    for (row, prompt_id, result) in &report.results {
        suites[*row].add_prompt(&report.rows[*row], prompt_id, result);
    }
    suites.extend(report.comparison.as_ref().map(comparison_suite));
    let sum = |field: fn(&Suite) -> usize| suites.iter().map(field).sum::<usize>();
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"tambour eval\" tests=\"{}\" failures=\"{}\" \
         errors=\"{}\">\n",
        sum(|suite| suite.tests),
        sum(|suite| suite.failures),
        sum(|suite| suite.errors),
    );
    for Suite { name, tests, failures, errors, cases } in &suites {
        let _ = writeln!(
            out,
            "  <testsuite name=\"{}\" tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\">\n{cases}  \
             </testsuite>",
            escape_xml(name),
        );
    }
    out + "</testsuites>\n"
}

impl Suite {
    fn add_prompt(&mut self, row: &ReportRow, prompt_id: &str, result: &PairResult) {
        let time = result.first_text_ms.map(|ms| format!(" first text after {ms} ms")).unwrap_or_default();
        let lines = format!("{}{time}\n{}", result.rung.name(), result.finding_lines.join("\n"));
        let detail = escape_xml(lines.trim_end());
        let content = match (&result.failure, result.worth) {
            (Some(failure), _) => {
                self.errors += 1;
                let (code, message) = (escape_xml(&failure.code), escape_xml(&failure.message));
                format!("<error type=\"{code}\" message=\"{message}\"/>")
            }
            (None, ReplyWorth::Usable) => format!("<system-out>{detail}</system-out>"),
            (None, _) => {
                self.failures += 1;
                let code = result.error_code.as_deref().unwrap_or("unusable");
                let message = result.first_error.as_deref().unwrap_or("the reply is not usable");
                format!(
                    "<failure type=\"{}\" message=\"{}\">{detail}</failure>",
                    escape_xml(code),
                    escape_xml(message)
                )
            }
        };
        self.push_case(row.dialect, prompt_id, &content);
    }

    fn push_case(&mut self, class: &str, name: &str, content: &str) {
        self.tests += 1;
        let _ = writeln!(
            self.cases,
            "    <testcase classname=\"{}\" name=\"{}\">\n      {content}\n    </testcase>",
            escape_xml(class),
            escape_xml(name),
        );
    }
}

/// Suite with a case for each share that was compared, and for each missing row.
fn comparison_suite(comparison: &Comparison) -> Suite {
    let mut suite = Suite { name: "comparison".to_owned(), ..Suite::default() };
    for share in &comparison.shares {
        let line = escape_xml(&share.line());
        let content = if share.is_regression {
            suite.failures += 1;
            format!("<failure type=\"regression\" message=\"{line}\"/>")
        } else {
            format!("<system-out>{line}</system-out>")
        };
        suite.push_case(&share.row, share.figure, &content);
    }
    for row in &comparison.missing {
        suite.failures += 1;
        suite.push_case(row, "replies", "<failure type=\"missing\" message=\"no reply in this run\"/>");
    }
    suite
}
